(* Lemma 3 of the paper, typed attention: what a position receives is a sum over its cluster. A zero
   row receives nothing and sends nothing, so empty positions may stand anywhere. *)
From mathcomp Require Import all_ssreflect.
From Coq Require Import ZArith Lia.
From Exactformer Require Import Circuit Ranks GatedResidual Expressions PaddedExpressions NextState.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Lemma dot_zero n x : dot (nseq n 0%Z) x = 0%Z.
Proof. by elim: n x => [|n IH] [|y x] //=; rewrite IH. Qed.

Section Attention.
Variable w : weights.
Notation zero := (nseq (D w) 0%Z).

Lemma weighted_zero (s : seq (Z * row)) : all (fun p => (p.1 =? 0)%Z) s -> weighted w s = zero.
Proof.
move=> s0; rewrite /weighted (_ : filter _ s = [::]).
  by rewrite -{2}(size_iota 0 (D w)); elim: (iota _ _) => //= i l ->.
by elim: s s0 => //= p s IH /andP[-> /IH].
Qed.

Lemma received_by_zero C : received w zero C = nothing w.
Proof.
rewrite /received (eq_map (f2 := fun=> zero)) => [|s].
  rewrite /nothing -{2}(size_iota 0 (S w)); elim: (iota _ _) => //= i l ->.
  by rewrite -nseqD.
by apply: weighted_zero; rewrite all_map; apply/allP => qk _ /=; rewrite dot_zero.
Qed.

Lemma received_from_zero x (C : seq (row * Z)) :
  received w x C = received w x [seq y <- C | y.1 != zero].
Proof.
rewrite /received; congr flatten; apply: eq_map => s; congr weighted.
apply: eq_map => qk; congr pair; apply: eq_map => t; congr (total (map _ _)).
elim: C => //= y C IH; case: (y.1 =P zero) => [y0|_] /=; case: ifP => //= _; last by rewrite IH.
by rewrite y0 dot_zero.
Qed.
End Attention.

(* ---- the model's local map is right, if it is right on every span of depth 1 ---- *)

Section Model.
Variables (L : language) (cell : eqType) (A : alphabet L cell).
Variables (read : cell -> row) (write : row -> cell) (w : weights).
Notation G := (model_gates read w).
Notation local := (model_local read write w).
Hypothesis read_empty : read (empty A) = nseq (D w) 0%Z.

Lemma model_local_neutral x C : local x C = local x [seq y <- C | y.1 != empty A].
Proof.
rewrite /model_local; congr (write (threshold (f w _))).
rewrite received_from_zero [RHS]received_from_zero; congr received.
rewrite /tokens !filter_map; congr map; rewrite -filter_predI; apply: eq_filter => y /=.
by case: (y.1 =P empty A) => [->|_]; rewrite ?andbT //= read_empty eqxx.
Qed.

Lemma model_right_local :
  write (threshold (f w (nothing w))) = empty A ->
  (forall (o : operator L) a, takes o (size a) -> exists l r,
    reduced (rank_gate G) local (word A o a)
    = nseq l (empty A) ++ of_value A (apply o a) :: nseq r (empty A)) ->
  right_local A G local.
Proof.
move=> Y0 cases; split=> // [C|x C]; last exact: model_local_neutral.
by rewrite /model_local read_empty received_by_zero Y0.
Qed.

Lemma model_gate_empty : gate G (empty A) = 0%Z /\ rank_gate G (empty A) = 0%Z.
Proof. by rewrite /= /gate_of /rank_gate_of read_empty !dot_zero. Qed.
End Model.
