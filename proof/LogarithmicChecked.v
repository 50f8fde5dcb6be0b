(* T6 with T2: weights that the checker accepts compute every expression by the logarithmic layer,
   too. No further check is needed: each value that is tried in a hole makes a case of the check. *)
From mathcomp Require Import all_ssreflect.
From Coq Require Import ZArith.
From Exactformer Require Import Circuit GatedResidual Expressions PaddedExpressions NextState.
From Exactformer Require Import GlobalEvaluation Strahler Checker LogarithmicIteration.
From Exactformer Require Import LogarithmicEvaluation LogarithmicRun.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section Checked.
Variables (a : algebra) (w : weights) (certain : row -> row -> bool).
Variables (cell : eqType) (read : cell -> row) (write : row -> cell).
Hypotheses (RB : reads_back a read write) (ok : check a w certain = None).
Notation L := (language_of a).
Notation A := (alphabet_of a write).

Definition value_of (x : cell) : option (value L) := [pick v : 'I_(n_values a) | x == of_value A v].

Lemma value_ofK v : value_of (of_value A v) = Some v.
Proof.
rewrite /value_of; case: pickP => [v' /eqP E|/(_ v)]; last by rewrite eqxx.
have below (i : 'I_(n_values a)) : value_token i < vocabulary_size a.
  by rewrite /vocabulary_size -addnA ltn_add2l; apply: leq_trans (leq_addr _ _).
have := congr1 read E; rewrite !(proj2 RB) // => /(congr1 (fun r => nth 0%Z r (value_token v))).
rewrite !(nth_map 0) ?size_iota // !nth_iota // !add0n eqxx; case: eqP => // /eqP.
by rewrite eqn_add2l => /eqP/val_inj ->.
Qed.

Theorem checked_weights_are_exact_in_log k (batch : seq (expr L * nat)) :
  all (fun b => wf b.1) batch ->
  let iterate := iterate_log A (model_gates read w) (model_local read write w) value_of in
  List.Forall2 (answers_log A k) batch (ssrnat.iter k iterate (map (start A) batch)).
Proof.
exact: (logarithmic_evaluation (gates_right RB ok) (local_right RB ok) value_ofK).
Qed.

Theorem checked_run_is_exact_in_log fuel (batch : seq (expr L * nat)) :
  all (fun b => wf b.1) batch -> all (fun b => strahler b.1 <= fuel) batch ->
  List.Forall2 (answers_by_number A) batch
    (run_log A (model_gates read w) (model_local read write w) value_of fuel
      [seq (start A b, 0) | b <- batch]).
Proof.
exact: (run_log_evaluates (gates_right RB ok) (local_right RB ok) value_ofK).
Qed.
End Checked.

(* without dense vectors *)
Corollary checked_rows_are_exact_in_log a w certain k (batch : seq (expr (language_of a) * nat)) :
  check a w certain = None -> all (fun b => wf b.1) batch ->
  let A := alphabet_of a id in
  let iterate := iterate_log A (model_gates id w) (model_local id id w) (@value_of a _ id) in
  List.Forall2 (answers_log A k) batch (ssrnat.iter k iterate (map (start A) batch)).
Proof. by move=> ok wb; apply: (checked_weights_are_exact_in_log _ ok). Qed.
