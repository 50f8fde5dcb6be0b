(* The steps of Margin.v, one by one: growth, the sum of sizes, the error of an activated number and
   of a whole layer are bounds on what binary64 can do. *)
From Coq Require Import Reals Lra Lia List ZArith.
From Flocq Require Import Core.
From mathcomp Require Import all_ssreflect.
From Exactformer Require Import Circuit Feedforward Margin Rounding RoutedSums Binary64.
From Exactformer Require Import PerceptronRounding.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Open Scope R_scope.

Opaque u_inverse base.

(* ---- constants ---- *)

Lemma base_square : base = (u_inverse * u_inverse)%Z.
Proof. by vm_compute. Qed.
Lemma u_inverse_pos : 0 < IZR u_inverse.
Proof. by apply: IZR_lt. Qed.
Lemma base_pos : 0 < IZR base.
Proof. by apply: IZR_lt. Qed.
Lemma u64_inverse : u64 = / IZR u_inverse.
Proof. by rewrite /u64 (pow_IZR 2 52). Qed.
Lemma u64_nonneg : 0 <= u64.
Proof. rewrite u64_inverse; left; apply: Rinv_0_lt_compat; exact: u_inverse_pos. Qed.

Lemma gamma_growth n count : few count -> (Z.of_nat n <= count)%Z ->
  gamma u64 n <= IZR (growth count) / IZR base.
Proof.
move=> /Z.leb_le fc nc; have U0 := u_inverse_pos.
have n0 : 0 <= INR n by apply: pos_INR.
have nI : INR n <= IZR count by rewrite INR_IZR_INZ; apply: IZR_le.
have c2 : 2 * IZR count <= IZR u_inverse by rewrite -mult_IZR; apply: IZR_le.
set t := INR n * u64; set c := IZR count * u64.
have t0 : 0 <= t by apply: Rmult_le_pos => //; apply: u64_nonneg.
have tc : t <= c by apply: Rmult_le_compat_r => //; apply: u64_nonneg.
have ch : c <= 1 / 2.
  rewrite /c u64_inverse; apply: (Rmult_le_reg_r (IZR u_inverse)) => //.
  by rewrite Rmult_assoc Rinv_l; lra.
have := gamma_bound u64 u64_nonneg n (Rle_trans _ _ _ tc ch); rewrite -/t => G.
have -> : IZR (growth count) / IZR base = c * (1 + 2 * c).
  rewrite /c u64_inverse base_square /growth !mult_IZR plus_IZR !mult_IZR; field; lra.
nra.
Qed.

(* ---- the sum of sizes ---- *)

Lemma largest_nonneg c : (0 <= largest c)%Z.
Proof. rewrite /largest; elim: (absolute c) => //= x s; lia. Qed.

Lemma dot_largest (H c : row) :
  (dot (absolute H) (absolute c) <= total (absolute H) * largest c)%Z.
Proof.
have T (s : row) : (0 <= total (absolute s))%Z by elim: s => //= x s; lia.
elim: H c => [|h H IH] [|w c] //=; first by rewrite /largest /=; lia.
have := IH c; have := T H; have := @largest_nonneg c;
  rewrite /largest /= -/(absolute c) -/(largest c).
set m := largest c; have : (Z.abs w <= Z.max (Z.abs w) m)%Z by lia.
have : (m <= Z.max (Z.abs w) m)%Z by lia.
move: (Z.max _ _) (Z.abs_nonneg h) => M h0 mM wM m0 t0 D; nia.
Qed.

Lemma dot_le_sizes (x c : row) : (Z.abs (dot x c) <= dot (absolute x) (absolute c))%Z.
Proof.
elim: x c => [|x0 x IH] [|w c] //=; have := IH c.
by have := Z.abs_triangle (x0 * w) (dot x c); rewrite Z.abs_mul; lia.
Qed.

(* ---- one activated number ---- *)

Section Activated.
Variables (a : activation) (h s e : Z) (x y : R).
Hypotheses (s0 : (0 <= s)%Z) (e0 : (0 <= e)%Z) (hs : (Z.abs h <= s)%Z).
Hypothesis close_x : Rabs (x - IZR h) <= IZR e / IZR base.
Hypothesis act_x : may_activate (near u64) a x y.

Lemma activated_close :
  Rabs (y - IZR (activate a h)) <= IZR (activated_error a s e) / IZR (activated_base a).
Proof.
have B0 := base_pos; have U0 := u_inverse_pos.
move: act_x; rewrite /may_activate /activate /activated_error /activated_base; case: a => [->|N].
  have -> : IZR (Z.max h 0) = Rmax (IZR h) 0.
    case: (Z.le_gt_cases h 0) => c; first by rewrite Z.max_r // Rmax_right //; apply: (IZR_le h 0).
    rewrite Z.max_l; last lia.
    by rewrite Rmax_left //; left; apply: (IZR_lt 0 h); lia.
  by move: close_x; unfold Rmax, Rabs; repeat destruct Rle_dec; repeat destruct Rcase_abs; lra.
have cx := close_x; set E := IZR e / IZR base in cx *; have E0 : 0 <= E.
  by apply: Rmult_le_pos; [apply: (IZR_le 0 e)|left; apply: Rinv_0_lt_compat].
have S0 : 0 <= IZR s by apply: (IZR_le 0 s).
have hS : Rabs (IZR h) <= IZR s by rewrite -abs_IZR; apply: IZR_le.
(* the square of what is near h, and then its rounding *)
have sq : Rabs (x * x - IZR (h * h)) <= 2 * IZR s * E + E * E.
  rewrite mult_IZR; have -> : x * x - IZR h * IZR h = (x - IZR h) * (2 * IZR h + (x - IZR h))
    by ring.
  rewrite Rabs_mult; have T := Rabs_triang (2 * IZR h) (x - IZR h).
  rewrite (Rabs_mult 2) (Rabs_pos_eq 2) in T; last lra.
  have P1 := Rabs_pos (x - IZR h); have P2 := Rabs_pos (2 * IZR h + (x - IZR h)).
  apply: Rle_trans (Rmult_le_compat _ E _ (2 * IZR s + E) P1 P2 cx _) _; first lra.
  right; ring.
have size_x : Rabs (x * x) <= (IZR s + E) * (IZR s + E).
  rewrite Rabs_mult; have T := Rabs_triang (IZR h) (x - IZR h).
  have -> : x = IZR h + (x - IZR h) by ring.
  have P := Rabs_pos (IZR h + (x - IZR h)).
  by apply: Rmult_le_compat => //; move: T; replace (IZR h + (x - IZR h)) with x by ring; lra.
case: N => d [du ->].
have -> : x * x * (1 + d) - IZR (h * h) = (x * x - IZR (h * h)) + d * (x * x) by ring.
have T := Rabs_triang (x * x - IZR (h * h)) (d * (x * x)); rewrite (Rabs_mult d) in T.
have M : Rabs d * Rabs (x * x) <= u64 * ((IZR s + E) * (IZR s + E)).
  by apply: Rmult_le_compat => //; apply: Rabs_pos.
apply: Rle_trans T _; apply: Rle_trans (Rplus_le_compat _ _ _ _ sq M) _; right.
rewrite /E u64_inverse; rewrite !(mult_IZR, plus_IZR); field; lra.
Qed.

Lemma activated_error_nonneg : (0 <= activated_error a s e)%Z.
Proof.
have B0 : (0 < base)%Z by []; have U0 : (0 < u_inverse)%Z by [].
rewrite /activated_error; case: a => //.
have b0 : (0 <= s * base + e)%Z by nia.
have q0 : (0 <= 2 * s * base * e + e * e)%Z by nia.
by nia.
Qed.

Lemma activate_mono : (Z.abs (activate a h) <= activate a s)%Z.
Proof. rewrite /activate; case: a => //; [lia|nia]. Qed.
End Activated.

(* ---- a whole hidden layer, and an output ---- *)

(* what the device has, the exact numbers, bounds on their sizes, and errors over M *)
Fixpoint close (M : R) (x : seq R) (exact sizes errors : row) : Prop :=
  match x, exact, sizes, errors with
  | x :: xs, z :: zs, s :: ss, e :: es =>
      [/\ Rabs (x - IZR z) <= IZR e / M, (Z.abs z <= s)%Z, (0 <= e)%Z & close M xs zs ss es]
  | [::], [::], [::], [::] => True
  | _, _, _, _ => False
  end.

Lemma close_products M x exact sizes errors c : 0 < M -> close M x exact sizes errors ->
  let ps := [seq q.1 * q.2 | q <- zip x (map IZR c)] in
  let spread := IZR (dot errors (absolute c)) / M in
  Rabs (sumR ps - IZR (dot exact c)) <= spread
  /\ sizeR ps <= IZR (dot sizes (absolute c)) + spread.
Proof.
move=> M0; elim: x exact sizes errors c => [|x xs IH] [|z zs] [|s ss] [|e es] //= [|w c] //=.
- by move=> _; rewrite Rminus_0_r Rabs_R0; split; rewrite /Rdiv; lra.
- by move=> _; rewrite Rminus_0_r Rabs_R0; split; rewrite /Rdiv; lra.
- by move=> _; rewrite Rminus_0_r Rabs_R0; split; rewrite /Rdiv; lra.
move=> [cl zs_ e0 /(IH _ _ _ c)[I1 I2]]; rewrite !plus_IZR !mult_IZR abs_IZR.
set W := Rabs (IZR w); have W0 : 0 <= W by apply: Rabs_pos.
have Ee : 0 <= IZR e / M by apply: Rmult_le_pos; [apply: (IZR_le 0 e)|left;
  apply: Rinv_0_lt_compat].
have xw : Rabs (x * IZR w - IZR z * IZR w) <= IZR e / M * W.
  by rewrite -Rmult_minus_distr_r Rabs_mult; apply: Rmult_le_compat_r.
have zS : Rabs (IZR z) <= IZR s by rewrite -abs_IZR; apply: IZR_le.
have xS : Rabs (x * IZR w) <= (IZR s + IZR e / M) * W.
  rewrite Rabs_mult; apply: Rmult_le_compat_r => //.
  have := Rabs_triang (IZR z) (x - IZR z); replace (IZR z + (x - IZR z)) with x by ring; lra.
have split_ : (IZR e * W + IZR (dot es (absolute c))) / M
   = IZR e / M * W + IZR (dot es (absolute c)) / M by field; lra.
rewrite split_; split; last by lra.
have T := Rabs_triang (x * IZR w - IZR z * IZR w) (sumR [seq q.1 * q.2 | q <- zip xs (map IZR c)] -
  IZR (dot zs c)).
apply: Rle_trans (Rle_trans _ _ _ _ T) _; last by lra.
by right; congr Rabs; ring.
Qed.
