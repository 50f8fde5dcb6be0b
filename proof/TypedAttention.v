(* Lemma 3 of the paper, typed attention: what a position receives is the bag of the tokens of its
   cluster, slot by slot, each as often as the types of the two route it; in whatever order they
   stand. A zero row receives nothing and sends nothing, so empty positions may stand anywhere. *)
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

(* ---- Q (K^T X) = (Q K^T) X: attention adds up a bag ---- *)

(* how often a position that holds x receives each y: an entry of Q K^T *)
Definition route (x y : row) : Z :=
  total [seq (dot x c.1 * dot y c.2)%Z | c <- zip (W_Q w) (W_K w)].

Definition bag_entry (x : row) (C : seq (row * Z)) (s t : nat) : Z :=
  total [seq (route x y.1 * nth 0 y.1 t)%Z | y <- C & slot (S w) y.2 == s].

Lemma total_skips_zeros (l : seq (Z * row)) t :
  total [seq (q.1 * nth 0 q.2 t)%Z | q <- l & ~~ (q.1 =? 0)%Z]
    = total [seq (q.1 * nth 0 q.2 t)%Z | q <- l].
Proof. by elim: l => //= q l IH; case: Z.eqb_spec => [->|_] /=; rewrite IH. Qed.

Theorem received_is_a_bag x C : received w x C
  = flatten [seq [seq bag_entry x C s t | t <- iota 0 (D w)] | s <- iota 0 (S w)].
Proof.
rewrite /received; congr flatten; apply: eq_map => s; rewrite {1}/weighted.
apply/eq_in_map => t; rewrite mem_iota add0n => /andP[_ tD]; rewrite total_skips_zeros -map_comp.
rewrite /bag_entry /route; set C_s := [seq y <- C | _].
have E c : nth 0%Z (sums w C s c) t = total [seq (dot y.1 c * nth 0 y.1 t)%Z | y <- C_s].
  by rewrite /sums /weighted (nth_map 0) ?size_iota // nth_iota // total_skips_zeros -map_comp.
rewrite (eq_map (f2 := fun c => (dot x c.1 * total [seq (dot y.1 c.2 * nth 0 y.1 t)%Z
  | y <- C_s])%Z));
  last by move=> c /=; rewrite E.
elim: (zip (W_Q w) (W_K w)) => /= [|c l IH]; first by elim: (C_s) => //= y C' <-.
rewrite {}IH; elim: (C_s) => /= [|y C' IH]; first by rewrite Z.mul_0_r.
by rewrite -IH; ring.
Qed.

(* the order of a cluster matters through the ranks alone *)
Corollary received_in_any_order x C C' : perm_eq C C' -> received w x C = received w x C'.
Proof.
move=> pC; rewrite !received_is_a_bag; congr flatten; apply: eq_map => s; apply: eq_map => t.
rewrite /bag_entry.
have : perm_eq [seq y <- C | slot (S w) y.2 == s] [seq y <- C' | slot (S w) y.2 == s].
  exact: perm_filter.
move/(perm_map (fun y : row * Z => (route x y.1 * nth 0 y.1 t)%Z)); set l := map _ _;
  set l' := map _ _.
have cat (u v : seq Z) : total (u ++ v) = (total u + total v)%Z by elim: u => //= z u ->; lia.
move/(catCA_perm_ind (P := fun u => total l = total u)); apply=> // u v r ->.
by rewrite !cat; lia.
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
