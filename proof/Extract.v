(* The checker and the model as OCaml: numbers of type Z become zarith's, those of type nat, which
   only count and index, become machine integers. *)
From mathcomp Require Import all_ssreflect.
From Coq Require Import ZArith Extraction ExtrOcamlBasic ExtrOcamlZBigInt ExtrOcamlNatInt.
From Exactformer Require Import Circuit Feedforward Checker Margin Verdict Units.
From Exactformer Require Import Expressions Strahler Speculate Scan SpansInOrder MapTables.
From Exactformer Require Import GatedResidual LogarithmicIteration.
From Exactformer Require Import MachineLayer RowsOfTexts Machines MachineChecked.

(* rows without dense vectors *)
Definition gate_rows := @gate_of row id.
Definition rank_gate_rows := @rank_gate_of row id.
Definition iterate_rows := @iterate row id id.
Definition run_rows := @run row id id.

(* the logarithmic layer on expressions whose values and operators are numbers *)
Definition plain (a : algebra) : language := {|
  value := nat;
  operator := nat;
  takes := fun o n => n \in arities a o;
  apply := result a;
  before := operands_before a;
  tail := closing_slot a
|}.
Definition plain_leaf (a : algebra) (v : nat) : expr (plain a) := @Leaf (plain a) v.
Definition plain_node (a : algebra) (o : nat) (e : seq (expr (plain a))) : expr (plain a) :=
  @Node (plain a) o e.
Definition plain_strahler (a : algebra) (e : expr (plain a)) : nat := strahler e.
Definition plain_value (a : algebra) (e : expr (plain a)) : nat := eval e.
Definition plain_next (a : algebra) (e : expr (plain a)) : expr (plain a) := next e.

(* holes, F, u and top of all spans of a batch, as speculate.py has them *)
Definition plain_step (a : algebra) (batch : seq (expr (plain a))) :
    seq nat * seq (seq nat) * seq nat * seq bool :=
  let V := n_values a in
  let rows := map (@row_of (plain a) V id id) (in_text batch) in
  (map (@count_holes (plain a)) (in_text batch), rows, scan_from_right V.+1 rows V,
   outermost batch).

(* and on states, of rows without dense vectors *)
Definition plain_alphabet (a : algebra) : alphabet (plain a) [eqType of row] :=
  @Alphabet (plain a) [eqType of row] (zero_row a) (one_hot a 0) (one_hot a 1)
    (fun v : nat => one_hot a (value_token v)) (fun o : nat => one_hot a (operator_token a o)).
Definition plain_value_of (a : algebra) (x : row) : option nat :=
  ohead [seq v <- iota 0 (n_values a) | x == one_hot a (value_token v)].
Definition iterate_log_rows (a : algebra) (w : weights) (batch : seq (seq row)) : seq (seq row) :=
  @iterate_log (plain a) [eqType of row] (plain_alphabet a) (model_gates (id : row -> row) w)
    (model_local (id : row -> row) id w) (@plain_value_of a) batch.

(* the layer of machines *)
Definition iterate_machine_rows (D W : nat) (G_K : row) (backwards : bool) (ff : feedforward)
    (step : nat) (batch : seq (seq bool * seq row)) : seq (seq row) :=
  iterate_machine D W G_K backwards (positive W ff) step batch.

Extraction Language OCaml.
Extraction "exact.ml" verdict verdict_machine iterate_machine_rows
  turned transduced answered machine_input
  vocabulary_size compute depth_counts reduction_mask clusters ranks
  typed_attention gate_rows rank_gate_rows iterate_rows run_rows
  max_units min_units complement_of median_units median_mean_units sum_units saturating_units
  first_units difference_units implies_units
  scan_from_right plain_leaf plain_node plain_strahler plain_value plain_next plain_step
  iterate_log_rows.
