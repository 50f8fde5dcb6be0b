(* The whole-number perceptron of Feedforward.v is the perceptron of the float weights, scaled by a
   power of two: nothing is lost, and no sign changes. *)
From Coq Require Import Reals Lra Lia List ZArith.
From Flocq Require Import Core.
From mathcomp Require Import all_ssreflect.
From Exactformer Require Import Circuit Feedforward PerceptronRounding.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Open Scope R_scope.

(* ---- f(H) = act(H W_1 + b_1) W_2 + b_2 in real numbers, with the float weights themselves ---- *)

Fixpoint real_dot (x y : seq R) : R :=
  match x, y with a :: x, b :: y => a * b + real_dot x y | _, _ => 0 end.

Definition real_layer (shift : nat) (W : seq row) (b : row) (x : seq R) : seq R :=
  [seq real_dot x (map (over shift) c.1) + over shift c.2 | c <- zip W b].

Definition real_activate (a : activation) (h : R) : R := if a is Square then h * h else Rmax h 0.

Definition real_outputs (p : perceptron) (H : row) : seq R :=
  real_layer (shift_2 p) (W_2 p) (b_2 p)
    (map (real_activate (act p)) (real_layer (shift_1 p) (W_1 p) (b_1 p) (map IZR H))).

(* ---- it is the whole-number one over a power of two ---- *)

Lemma over_plus k y z : over k y + over k z = over k (y + z).
Proof. by rewrite /over plus_IZR; ring. Qed.

Lemma over_mult k l y z : over k y * over l z = over (k + l) (y * z).
Proof.
rewrite /over mult_IZR Nat2Z.inj_add Z.opp_add_distr bpow_plus; ring.
Qed.

Lemma over_finer k l z : over l z = over (k + l) (z * 2 ^ Z.of_nat k).
Proof.
rewrite /over mult_IZR (IZR_Zpower radix2); last lia.
rewrite Nat2Z.inj_add Z.opp_add_distr bpow_plus.
have E : bpow radix2 (Z.of_nat k) * bpow radix2 (- Z.of_nat k) = 1.
  by rewrite -bpow_plus Z.add_opp_diag_r.
by rewrite -[LHS]Rmult_1_l -E; ring.
Qed.

Lemma over_sign k z : 0 < over k z <-> (0 < z)%Z.
Proof.
have B := bpow_gt_0 radix2 (- Z.of_nat k); rewrite /over; split=> h.
  by apply: lt_IZR; apply: (Rmult_lt_reg_r _ _ _ B); rewrite Rmult_0_l.
by apply: Rmult_lt_0_compat => //; apply: (IZR_lt 0).
Qed.

Lemma real_dot_over k l (x c : row) :
  real_dot (map (over k) x) (map (over l) c) = over (k + l) (dot x c).
Proof.
elim: x c => [|y x IH] [|w c] /=; try by rewrite /over Rmult_0_l.
by rewrite IH over_mult over_plus.
Qed.

Lemma real_layer_over k l W b x :
  real_layer l W b (map (over k) x)
  = map (over (k + l)) (affine W [seq (z * 2 ^ Z.of_nat k)%Z | z <- b] x).
Proof.
rewrite /real_layer /affine; elim: W b => [|c W IH] [|z b] //=.
by rewrite real_dot_over (over_finer k l) over_plus IH.
Qed.

Lemma real_activate_over a k z : real_activate a (over k z) = over (k * degree a) (activate a z).
Proof.
case: a => /=; last by rewrite over_mult muln2 addnn.
rewrite muln1 /over; have B := bpow_ge_0 radix2 (- Z.of_nat k).
case: (Z.le_gt_cases z 0) => c.
  rewrite Z.max_r // Rmult_0_l Rmax_right //; have := IZR_le z 0 c; nra.
rewrite Z.max_l; last lia.
have z0 : 0 < IZR z by apply: (IZR_lt 0); lia.
by rewrite Rmax_left //; nra.
Qed.

Theorem scaling_is_exact p H :
  real_outputs p H = map (over (shift_1 p * degree (act p) + shift_2 p)) (outputs p H).
Proof.
rewrite /real_outputs.
have -> : map IZR H = map (over 0) H by apply: eq_map => z; rewrite /over /= Rmult_1_r.
rewrite real_layer_over add0n.
have -> : [seq (z * 2 ^ Z.of_nat 0)%Z | z <- b_1 p] = b_1 p.
  by rewrite (eq_map (f2 := id)) ?map_id // => z; rewrite Z.mul_1_r.
rewrite -/(hidden p H) -map_comp.
rewrite (eq_map (f2 := over (shift_1 p * degree (act p)) \o activate (act p))) => [|z].
  by rewrite map_comp real_layer_over.
exact: real_activate_over.
Qed.

(* so the threshold sees the same *)
Corollary scaling_keeps_signs p H :
  Forall2 (fun x z => 0 < x <-> (0 < z)%Z) (real_outputs p H) (outputs p H).
Proof.
rewrite scaling_is_exact; elim: (outputs p H) => [|z s IH] /=; constructor=> //.
exact: over_sign.
Qed.
