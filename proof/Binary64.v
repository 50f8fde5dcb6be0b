(* binary64 errs by at most 2^-52 of each result, in every rounding mode, as long as nothing
   underflows; and nothing does where all numbers are multiples of one power of two that is not too
   small, for sums and roundings keep that. Float32 weights, their products with whole numbers, the
   squares and their products with weights again are multiples of 2^-447. *)
From Coq Require Import Reals Lra Lia List Permutation ZArith.
From Flocq Require Import Core Relative.
From Exactformer Require Import Rounding RoutedSums.
Import ListNotations.
Open Scope R_scope.

Definition u64 : R := / 2 ^ 52.

Definition multiple (k : Z) (x : R) : Prop := exists m : Z, x = IZR m * bpow radix2 k.

Lemma multiple_plus k x y : multiple k x -> multiple k y -> multiple k (x + y).
Proof. intros (m & ->) (n & ->). exists (m + n)%Z. rewrite plus_IZR. ring. Qed.

Lemma multiple_mult k l x y : multiple k x -> multiple l y -> multiple (k + l) (x * y).
Proof. intros (m & ->) (n & ->). exists (m * n)%Z. rewrite mult_IZR, bpow_plus. ring. Qed.

Lemma multiple_finer k l x : (l <= k)%Z -> multiple k x -> multiple l x.
Proof.
  intros h (m & ->). exists (m * 2 ^ (k - l))%Z.
  rewrite mult_IZR, (IZR_Zpower radix2), Rmult_assoc, <- bpow_plus by lia. f_equal. f_equal. lia.
Qed.

Section Operation.
Variables (k : Z) (rnd : R -> Z).
Context {V : Valid_rnd rnd}.
Hypothesis k_not_small : (-1022 <= k)%Z.
Notation fexp := (FLT_exp (-1074) 53).
Notation rounded := (round radix2 fexp rnd).

Lemma rounded_multiple x : multiple k x -> multiple k (rounded x).
Proof.
  intros M. destruct (Z_le_gt_dec k (cexp radix2 fexp x)) as [h|h].
  - apply multiple_finer with (cexp radix2 fexp x); [exact h|].
    exists (rnd (scaled_mantissa radix2 fexp x)). reflexivity.
  - (* x is itself in the format *)
    rewrite round_generic; [exact M|exact V|]. destruct M as (m & ->).
    apply generic_format_F2R' with (f := Float radix2 m k); [reflexivity|].
    intros _. unfold F2R in h. simpl in *. lia.
Qed.

Lemma rounded_near x : multiple k x -> near u64 x (rounded x).
Proof.
  intros (m & E). destruct (Z.eq_dec m 0) as [->|Hm].
  - exists 0. rewrite Rabs_R0. split; [unfold u64; pose proof (pow_lt 2 52 ltac:(lra));
      left; apply Rinv_0_lt_compat; lra|].
    rewrite E. replace (0 * bpow radix2 k) with 0 by ring. rewrite round_0; [ring|exact V].
  - destruct (@relative_error_FLT_ex radix2 (-1074) 53 ltac:(reflexivity) rnd V x) as (d & Hd & Hx).
    + rewrite E, Rabs_mult, (Rabs_pos_eq (bpow radix2 k)) by apply bpow_ge_0.
      apply Rle_trans with (1 * bpow radix2 k); [rewrite Rmult_1_l; apply bpow_le; lia|].
      apply Rmult_le_compat_r; [apply bpow_ge_0|]. rewrite <- abs_IZR. apply IZR_le. lia.
    + exists d. split; [|exact Hx]. left. apply Rlt_le_trans with (1 := Hd). right.
      unfold u64. rewrite (pow_IZR 2 52).
      replace (bpow radix2 (-53 + 1)) with (/ bpow radix2 52) by now rewrite <- bpow_opp.
      reflexivity.
Qed.
End Operation.

Theorem summed_near k ps x : (-1022 <= k)%Z -> summed binary64 ps x -> Forall (multiple k) ps ->
  summed (near u64) ps x /\ multiple k x.
Proof.
  intros hk.
  induction 1 as [q y Hy|q s x y Hx IH Hy|s t x y z Hx IHx Hy IHy Hz|s t x P Hx IH]; intros M.
  - inversion_clear M. destruct Hy as (rnd & V & ->).
    split; [apply product; now apply rounded_near with k|now apply rounded_multiple].
  - inversion_clear M. destruct (IH H0) as [S M']. destruct Hy as (rnd & V & ->).
    assert (multiple k (x + q)) by now apply multiple_plus.
    split; [apply fused with x; [exact S|now apply rounded_near with k]|now apply rounded_multiple].
  - apply Forall_app in M. destruct M as [M1 M2].
    destruct (IHx M1) as [S1 M1']. destruct (IHy M2) as [S2 M2']. destruct Hz as (rnd & V & ->).
    assert (multiple k (x + y)) by now apply multiple_plus.
    split; [apply added with x y; auto; now apply rounded_near with k|now apply rounded_multiple].
  - destruct IH as [S M'].
    { apply Forall_forall. intros y Hy. rewrite Forall_forall in M. apply M.
      now apply Permutation_in with s. }
    split; [apply reordered with s; auto|exact M'].
Qed.

(* Nothing overflows: a sum, and so each of its parts, is at most twice the sum of the sizes. *)
Theorem summed_in_range ps x : summed (near u64) ps x -> INR (length ps) * u64 <= 1 / 2 ->
  Rabs x <= 2 * sizeR ps.
Proof.
  intros S h. assert (u0 : 0 <= u64).
  { left. apply Rinv_0_lt_compat. apply pow_lt. lra. }
  pose proof (sumR_error u64 u0 ps x S) as E. pose proof (gamma_bound u64 u0 (length ps) h) as G.
  pose proof (sumR_le_sizeR ps). pose proof (sizeR_nonneg ps). pose proof (pos_INR (length ps)).
  assert (0 <= INR (length ps) * u64) by (apply Rmult_le_pos; lra).
  assert (gamma u64 (length ps) <= 1) by nra.
  assert (gamma u64 (length ps) * sizeR ps <= 1 * sizeR ps) by (apply Rmult_le_compat_r; lra).
  replace x with (x - sumR ps + sumR ps) by ring. pose proof (Rabs_triang (x - sumR ps) (sumR ps)).
  lra.
Qed.

(* So every single operation of a sum whose sizes are small enough stays within any such limit. *)
Theorem nothing_overflows top ps x : summed (near u64) ps x -> INR (length ps) * u64 <= 1 / 2 ->
  2 * sizeR ps < top -> summed (fun e y => near u64 e y /\ Rabs y < top) ps x.
Proof.
  assert (u0 : 0 <= u64) by (left; apply Rinv_0_lt_compat; apply pow_lt; lra).
  assert (fewer : forall m n, (m <= n)%nat -> INR n * u64 <= 1 / 2 -> INR m * u64 <= 1 / 2).
  { intros m n h l. apply Rle_trans with (INR n * u64); [|exact l].
    apply Rmult_le_compat_r; [exact u0|]. now apply le_INR. }
  induction 1 as [q y Hy|q s x y Hx IH Hy|s t x y z Hx IHx Hy IHy Hz|s t x P Hx IH]; intros n h.
  - apply product. split; [exact Hy|].
    apply Rle_lt_trans with (2 := h). apply summed_in_range; [now apply product|exact n].
  - pose proof (Rabs_pos q). simpl in h. apply fused with x.
    + apply IH; [|lra]. apply fewer with (2 := n). simpl. lia.
    + split; [exact Hy|]. apply Rle_lt_trans with (2 := h).
      apply (summed_in_range (q :: s)); [now apply fused with x|exact n].
  - pose proof (sizeR_nonneg s). pose proof (sizeR_nonneg t). rewrite sizeR_app in h.
    rewrite app_length in n. apply added with x y.
    + apply IHx; [|lra]. apply fewer with (2 := n). lia.
    + apply IHy; [|lra]. apply fewer with (2 := n). lia.
    + split; [exact Hz|]. rewrite <- sizeR_app in h. apply Rle_lt_trans with (2 := h).
      apply summed_in_range; [now apply added with x y|now rewrite app_length].
  - rewrite <- (Permutation_length P) in n. rewrite <- (sizeR_permutation _ _ P) in h.
    apply reordered with s; [exact P|now apply IH].
Qed.
