(* The checker and the model as OCaml: numbers of type Z become zarith's, those of type nat, which
   only count and index, become machine integers. *)
From mathcomp Require Import all_ssreflect.
From Coq Require Import ZArith Extraction ExtrOcamlBasic ExtrOcamlZBigInt ExtrOcamlNatInt.
From Exactformer Require Import Circuit Feedforward Checker Margin Verdict Units.

(* rows without dense vectors *)
Definition gate_rows := @gate_of row id.
Definition rank_gate_rows := @rank_gate_of row id.
Definition iterate_rows := @iterate row id id.
Definition run_rows := @run row id id.

Extraction Language OCaml.
Extraction "exact.ml" verdict vocabulary_size compute depth_counts reduction_mask clusters ranks
  typed_attention gate_rows rank_gate_rows iterate_rows run_rows
  max_units min_units complement_of median_units median_mean_units sum_units saturating_units
  first_units difference_units implies_units.
