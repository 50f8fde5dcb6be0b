(* T3, rounding: whatever the order of the sums, however products and sums are fused, a sum of n
   products errs by at most n u (1 + 2 n u) of the sum of their sizes, if each operation errs by at
   most u of its result.

   `summed may ps x` says that x is what a device may return for the sum of the products ps, where
   `may e y` says that it may return y for an operation whose exact result is e. *)
From Coq Require Import Reals Lra Lia List Permutation.
Import ListNotations.
Open Scope R_scope.

Inductive summed (may : R -> R -> Prop) : list R -> R -> Prop :=
  | product p y : may p y -> summed may [p] y
  | fused p s x y : summed may s x -> may (x + p) y -> summed may (p :: s) y
  | added s t x y z : summed may s x -> summed may t y -> may (x + y) z -> summed may (s ++ t) z
  | reordered s t x : Permutation s t -> summed may s x -> summed may t x.

(* relative errors only: numbers neither underflow nor overflow; see Binary64.v *)
Definition near (u e y : R) : Prop := exists d, Rabs d <= u /\ y = e * (1 + d).

Fixpoint sumR (s : list R) : R := match s with [] => 0 | p :: s => p + sumR s end.
Fixpoint sizeR (s : list R) : R := match s with [] => 0 | p :: s => Rabs p + sizeR s end.

Lemma sumR_app s t : sumR (s ++ t) = sumR s + sumR t.
Proof. induction s; simpl; lra. Qed.
Lemma sizeR_app s t : sizeR (s ++ t) = sizeR s + sizeR t.
Proof. induction s; simpl; lra. Qed.
Lemma sumR_permutation s t : Permutation s t -> sumR s = sumR t.
Proof. induction 1; simpl; lra. Qed.
Lemma sizeR_permutation s t : Permutation s t -> sizeR s = sizeR t.
Proof. induction 1; simpl; lra. Qed.
Lemma sizeR_nonneg s : 0 <= sizeR s.
Proof. induction s; simpl; [lra|]. pose proof (Rabs_pos a). lra. Qed.
Lemma sumR_le_sizeR s : Rabs (sumR s) <= sizeR s.
Proof.
  induction s as [|p s IH]; simpl; [rewrite Rabs_R0; lra|].
  pose proof (Rabs_triang p (sumR s)). lra.
Qed.
Lemma summed_nonempty may s x : summed may s x -> (1 <= length s)%nat.
Proof.
  induction 1; simpl; try lia.
  - rewrite app_length. lia.
  - rewrite <- (Permutation_length H). lia.
Qed.

(* one more operation: from errors g1 of s1 and g2 of s2 to (1 + u) g + u of what is added *)
Lemma near_error u e e' y b : near u e' y -> Rabs (e' - e) <= b -> 0 <= u ->
  Rabs (y - e) <= b + u * (Rabs e + b).
Proof.
  intros (d & Hd & ->) Hb Hu.
  replace (e' * (1 + d) - e) with ((e' - e) + d * e') by ring.
  pose proof (Rabs_triang (e' - e) (d * e')) as T. rewrite (Rabs_mult d e') in T.
  assert (Rabs e' <= Rabs e + b).
  { replace e' with (e + (e' - e)) at 1 by ring. pose proof (Rabs_triang e (e' - e)). lra. }
  pose proof (Rabs_pos d). pose proof (Rabs_pos e').
  assert (Rabs d * Rabs e' <= u * (Rabs e + b)) by (apply Rmult_le_compat; lra).
  lra.
Qed.

Section Sum.
Variable u : R.
Hypothesis u_nonneg : 0 <= u.

Definition gamma (n : nat) : R := (1 + u) ^ n - 1.

Lemma gamma_mono m n : (m <= n)%nat -> gamma m <= gamma n.
Proof. intros h. unfold gamma. pose proof (Rle_pow (1 + u) m n ltac:(lra) h). lra. Qed.
Lemma gamma_nonneg n : 0 <= gamma n.
Proof. pose proof (gamma_mono 0 n (Nat.le_0_l n)) as h. unfold gamma in *. simpl in h. lra. Qed.
Lemma gamma_succ n : gamma (Datatypes.S n) = gamma n + u * (1 + gamma n).
Proof. unfold gamma. simpl. ring. Qed.

Theorem sumR_error s x : summed (near u) s x -> Rabs (x - sumR s) <= gamma (length s) * sizeR s.
Proof.
  induction 1 as [p y Hy|p s x y Hx IH Hy|s t x y z Hx IHx Hy IHy Hz|s t x P Hx IH].
  - pose proof (near_error u p p y 0 Hy) as E. rewrite Rminus_diag_eq, Rabs_R0 in E by reflexivity.
    simpl. replace (y - (p + 0)) with (y - p) by ring. unfold gamma. simpl.
    specialize (E (Rle_refl 0) u_nonneg). lra.
  - assert (E : Rabs (y - (sumR s + p)) <= gamma (length s) * sizeR s
                + u * (Rabs (sumR s + p) + gamma (length s) * sizeR s)).
    { apply (near_error u (sumR s + p) (x + p)); auto.
      replace (x + p - (sumR s + p)) with (x - sumR s) by ring. exact IH. }
    simpl length. rewrite gamma_succ. simpl. replace (p + sumR s) with (sumR s + p) by ring.
    pose proof (Rabs_triang (sumR s) p). pose proof (sumR_le_sizeR s). pose proof (Rabs_pos p).
    pose proof (gamma_nonneg (length s)) as G. pose proof (sizeR_nonneg s).
    assert (u * Rabs (sumR s + p) <= u * (sizeR s + Rabs p)) by (apply Rmult_le_compat_l; lra).
    assert (0 <= gamma (length s) * Rabs p) by (apply Rmult_le_pos; lra).
    assert (0 <= u * (gamma (length s) * Rabs p)) by (apply Rmult_le_pos; lra).
    lra.
  - set (n := length s) in *. set (m := length t) in *.
    assert (E : Rabs (z - (sumR s + sumR t)) <= (gamma n * sizeR s + gamma m * sizeR t)
                + u * (Rabs (sumR s + sumR t) + (gamma n * sizeR s + gamma m * sizeR t))).
    { apply (near_error u (sumR s + sumR t) (x + y)); auto.
      replace (x + y - (sumR s + sumR t)) with ((x - sumR s) + (y - sumR t)) by ring.
      pose proof (Rabs_triang (x - sumR s) (y - sumR t)). lra. }
    rewrite sumR_app, sizeR_app, app_length. fold n m.
    pose proof (summed_nonempty _ _ _ Hx) as N1. pose proof (summed_nonempty _ _ _ Hy) as N2.
    pose proof (Rabs_triang (sumR s) (sumR t)). pose proof (sumR_le_sizeR s).
    pose proof (sumR_le_sizeR t).
    pose proof (sizeR_nonneg s). pose proof (sizeR_nonneg t).
    assert (u * Rabs (sumR s + sumR t) <= u * (sizeR s + sizeR t)) by (apply Rmult_le_compat_l;
      lra).
    assert (G1 : gamma (Datatypes.S n) <= gamma (n + m)) by (apply gamma_mono; unfold n, m in *;
      lia).
    assert (G2 : gamma (Datatypes.S m) <= gamma (n + m)) by (apply gamma_mono; unfold n, m in *;
      lia).
    assert (gamma (Datatypes.S n) * sizeR s <= gamma (n + m) * sizeR s)
      by (apply Rmult_le_compat_r; lra).
    assert (gamma (Datatypes.S m) * sizeR t <= gamma (n + m) * sizeR t)
      by (apply Rmult_le_compat_r; lra).
    rewrite gamma_succ in *. lra.
  - rewrite <- (sumR_permutation _ _ P), <- (sizeR_permutation _ _ P), <- (Permutation_length P).
    exact IH.
Qed.

(* the bound that is computed *)
Lemma gamma_bound n : INR n * u <= 1 / 2 -> gamma n <= INR n * u * (1 + 2 * (INR n * u)).
Proof.
  intros h. enough (gamma n <= INR n * u + (INR n * u) * (INR n * u)).
  { pose proof (pos_INR n). assert (0 <= INR n * u) by (apply Rmult_le_pos; lra). nra. }
  induction n as [|n IH]; [unfold gamma; simpl; lra|].
  rewrite S_INR in *. pose proof (pos_INR n) as P.
  assert (P1 : 0 <= INR n * u) by (apply Rmult_le_pos; lra).
  assert (h' : INR n * u <= 1 / 2) by nra. specialize (IH h'). rewrite gamma_succ.
  assert (u * gamma n <= u * (INR n * u + INR n * u * (INR n * u))) by (apply Rmult_le_compat_l;
    lra).
  nra.
Qed.

(* Only relative errors count, so a sum may be scaled by anything. *)
Lemma summed_scaled c s x : summed (near u) s x -> summed (near u) (map (Rmult c) s) (c * x).
Proof.
  assert (N : forall e y, near u e y -> near u (c * e) (c * y)).
  { intros e y (d & Hd & ->). exists d. split; [exact Hd|ring]. }
  induction 1 as [p y Hy|p s x y Hx IH Hy|s t x y z Hx IHx Hy IHy Hz|s t x P Hx IH]; simpl.
  - apply product. auto.
  - apply fused with (c * x); auto. replace (c * x + c * p) with (c * (x + p)) by ring. auto.
  - rewrite map_app. apply added with (c * x) (c * y); auto.
    replace (c * x + c * y) with (c * (x + y)) by ring. auto.
  - apply reordered with (map (Rmult c) s); auto. apply Permutation_map. exact P.
Qed.
End Sum.

(* Whatever is farther from zero than it can be moved keeps its sign. *)
Lemma sign_kept z z' b : Rabs (z' - z) <= b -> b < Rabs z -> (0 < z' <-> 0 < z).
Proof.
  intros h1 h2. unfold Rabs in h1, h2. destruct (Rcase_abs (z' - z)), (Rcase_abs z); lra.
Qed.
