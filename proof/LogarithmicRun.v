(* T6, the whole run: iterate while a parenthesis is left in some sequence of the batch. Each
   sequence ends with the value of its expression and has taken as many iterations as its
   Horton-Strahler number is. *)
From mathcomp Require Import all_ssreflect.
From Coq Require Import ZArith Lia.
From Exactformer Require Import Circuit Forests GatedResidual Expressions PaddedExpressions.
From Exactformer Require Import NextState GlobalEvaluation Strahler Speculate.
From Exactformer Require Import LogarithmicIteration LogarithmicEvaluation.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section Run.
Variables (L : language) (cell : eqType) (A : alphabet L cell) (G : gates cell).
Variables (local : cell -> seq (cell * Z) -> cell) (value_of : cell -> option (value L)).
Notation iterate_log := (iterate_log A G local value_of).

(* a state with the iterations that have reduced something in it: those that began with a span *)
Definition advance_log (batch : seq (seq cell * nat)) : seq (seq cell * nat) :=
  zip (iterate_log (unzip1 batch)) [seq s.2 + (opening A \in s.1) | s <- batch].

(* `fuel` only ends the recursion *)
Fixpoint run_log (fuel : nat) (batch : seq (seq cell * nat)) : seq (seq cell * nat) :=
  if fuel is n.+1 then
    if has (fun s => opening A \in s.1) batch then run_log n (advance_log batch) else batch
  else batch.

Hypotheses (RG : right_gates A G) (RL : right_local A G local)
           (value_ofK : forall v, value_of (of_value A v) = Some v).

Definition answers_by_number (b : expr L * nat) (s : seq cell * nat) : Prop :=
  let: (e, m) := b in let n := size (layout A e) in
  exists2 i, i < n & s = (only A (n + m) i (eval e), strahler e).

(* a span is left as long as the number is not reached *)
Lemma span_is_left k (b : expr L * nat) X : answers_log A k b X ->
  (opening A \in X) = (k < strahler b.1).
Proof.
case: b => e m; rewrite /answers_log /=; case: leqP => // _ [i _ ->].
have on : (opening A == empty A) = false.
  by apply/eqP => E; have := gate_opening RG; rewrite E (gate_empty RG).
have ov : (opening A == of_value A (eval e)) = false.
  by apply/eqP => E; have := gate_opening RG; rewrite E (gate_value RG).
by rewrite /only mem_cat inE ov !mem_nseq on !andbF.
Qed.

Lemma run_from k fuel (batch : seq (expr L * nat)) (states : seq (seq cell * nat)) :
  all (fun b => wf b.1) batch ->
  unzip1 states = ssrnat.iter k iterate_log (map (start A) batch) ->
  unzip2 states = [seq minn k (strahler b.1) | b <- batch] ->
  all (fun b => strahler b.1 <= k + fuel) batch ->
  List.Forall2 answers_by_number batch (run_log fuel states).
Proof.
move=> wb; elim: fuel k states => [|fuel IH] k states E1 E2 enough.
  have F := logarithmic_evaluation RG RL value_ofK k wb; rewrite -E1 in F.
  rewrite /=; elim: batch states F E2 enough {wb E1} => [|[e m] batch IHb] [|[X c] states] //= F.
  inversion F as [|? ? ? ? ans F' e1 e2] => -[-> E2] /andP[le enough]; constructor; last exact: IHb.
  move: ans; rewrite addn0 in le; rewrite /answers_log le /= => -[i il ->]; exists i => //.
  by rewrite (minn_idPr le).
have F := logarithmic_evaluation RG RL value_ofK k wb; rewrite -E1 in F.
rewrite [run_log _ _]/=; case: ifP => [_|none]; last first.
  elim: batch states F E2 none {wb E1 enough IH} => [|[e m] batch IHb] [|[X c] states] //= F.
  inversion F as [|? ? ? ? ans F' e1 e2] => -[-> E2] /norP[no none].
  constructor; last exact: IHb (negbTE none).
  have := span_is_left ans; rewrite (negbTE no) /= => /esym/negbT; rewrite -leqNgt => le.
  by move: ans; rewrite /answers_log le => -[i il ->]; exists i => //; rewrite (minn_idPr le).
have sz : size (iterate_log (unzip1 states)) = size states.
  have F' := logarithmic_evaluation RG RL value_ofK k.+1 wb; rewrite iterS -E1 in F'.
  rewrite -(size_map fst states) -/(unzip1 states); move: F F'.
  move: (unzip1 states) (iterate_log _) => X Y F; elim: F Y => [|b x bs xs _ _ IHF] Y F'.
    by inversion F'.
  by inversion F' as [|? y ? ys _ F'']; rewrite /= (IHF ys).
apply: (IH k.+1); last by rewrite addSnnS.
  by rewrite /advance_log unzip1_zip ?size_map ?sz // E1.
rewrite /advance_log unzip2_zip ?size_map ?sz //.
elim: batch states F E2 {wb E1 enough IH sz} => [|[e m] batch IHb] [|[X c] states] //= F.
inversion F as [|? ? ? ? ans F' e1 e2] => -[-> E2]; rewrite IHb //; congr cons.
rewrite (span_is_left ans) /=; case: ltnP => h; first by rewrite !(minn_idPl _) ?addn1 // ltnW.
by rewrite addn0 !(minn_idPr _) // leqW.
Qed.

(* as many iterations as the largest number, at most: as `(`, say *)
Theorem run_log_evaluates fuel (batch : seq (expr L * nat)) :
  all (fun b => wf b.1) batch -> all (fun b => strahler b.1 <= fuel) batch ->
  List.Forall2 answers_by_number batch (run_log fuel [seq (start A b, 0) | b <- batch]).
Proof.
move=> wb enough; apply: (@run_from 0) => //; rewrite /unzip1 /unzip2 -map_comp //.
by apply: eq_map => b; rewrite /= min0n.
Qed.
End Run.
