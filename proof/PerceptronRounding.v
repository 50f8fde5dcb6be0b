(* T3 for the perceptron: if the check of Margin.v accepts a bag, then whatever binary64 makes of it,
   operation by operation and in any order, has the signs of the exact outputs. Here: what a device
   may compute, that nothing underflows, and that it may be looked at in whole numbers. *)
From Coq Require Import Reals Lra Lia List ZArith.
From Flocq Require Import Core.
From mathcomp Require Import all_ssreflect.
From Exactformer Require Import Circuit Feedforward Margin Rounding RoutedSums Binary64.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Open Scope R_scope.

(* ---- what the device computes ---- *)

(* the float that is a whole number over 2^shift *)
Definition over (shift : nat) (z : Z) : R := IZR z * bpow radix2 (- Z.of_nat shift).

(* the products of a row with a column of weights, and the bias *)
Definition terms (x c : seq R) (b : R) : seq R := ([seq q.1 * q.2 | q <- zip x c] ++ [:: b])%list.

Section Device.
Variable may : R -> R -> Prop.

Definition may_activate (a : activation) (h y : R) : Prop :=
  if a is Square then may (h * h) y else y = Rmax h 0.

Definition may_layer (shift : nat) (W : seq row) (b : row) (x y : seq R) : Prop :=
  Forall2 (fun q z => summed may (terms x (map (over shift) q.1) (over shift q.2)) z) (zip W b) y.

(* `y` may be what comes out for the bag H *)
Definition may_output (p : perceptron) (H : row) (y : seq R) : Prop :=
  exists hidden active,
    [/\ may_layer (shift_1 p) (W_1 p) (b_1 p) (map IZR H) hidden,
        Forall2 (may_activate (act p)) hidden active
      & may_layer (shift_2 p) (W_2 p) (b_2 p) active y].
End Device.

(* ---- nothing underflows: binary64 errs relatively only ---- *)

Lemma over_multiple shift z : (shift <= 149)%N -> multiple (-149) (over shift z).
Proof. move=> /leP h; apply: (@multiple_finer (- Z.of_nat shift)); [lia|by exists z]. Qed.

Lemma terms_multiple k shift x c b : (shift <= 149)%N -> (k <= 0)%Z -> Forall (multiple k) x ->
  Forall (multiple (k - 149)) (terms x (map (over shift) c) (over shift b)).
Proof.
move=> hu hk mx; apply/Forall_app; split; last first.
  constructor=> //; apply: (@multiple_finer (-149)); [lia|exact: over_multiple].
elim: mx c => [|x0 x' m0 _ IH] [|w c] //=; constructor=> //.
by apply: (@multiple_mult k (-149)) => //; apply: over_multiple.
Qed.

Lemma layer_near k shift W b x y : (shift <= 149)%N -> (-873 <= k <= 0)%Z -> Forall (multiple k) x ->
  may_layer binary64 shift W b x y ->
  may_layer (near u64) shift W b x y /\ Forall (multiple (k - 149)) y.
Proof.
move=> hu hk mx; rewrite /may_layer; elim=> [|q z l y' Hz _ [IH1 IH2]]; first by split; constructor.
have [||S M] := summed_near (k - 149) _ _ _ Hz; [lia|by apply: terms_multiple => //; lia|].
by split; constructor.
Qed.

Lemma output_near p H y : (shift_1 p <= 149)%N -> (shift_2 p <= 149)%N ->
  may_output binary64 p H y -> may_output (near u64) p H y.
Proof.
move=> h1 h2 [h [a [L1 Ac L2]]]; exists h, a.
have mH : Forall (multiple 0) (map IZR H).
  by elim: (H) => [|z H' IH] /=; constructor=> //; exists z; rewrite /= Rmult_1_r.
have [|L1' m1] := layer_near h1 _ mH L1; first lia.
have [Ac' m2] : Forall2 (may_activate (near u64) (act p)) h a /\ Forall (multiple (-298)) a.
  elim: Ac m1 => [_|h0 a0 h' a' H0 _ IH m1]; first by split; constructor.
  inversion_clear m1 as [|? ? m0 m']; have [IH1 IH2] := IH m'.
  have [A0 M0] : may_activate (near u64) (act p) h0 a0 /\ multiple (-298) a0.
    move: H0; rewrite /may_activate; case: (act p) => [->|[rnd [V ->]]].
      split=> //; apply: (@multiple_finer (-149)); first lia.
      by rewrite /Rmax; case: Rle_dec => // _; exists 0%Z; rewrite Rmult_0_l.
    have mm : multiple (-298) (h0 * h0) by apply: (@multiple_mult (-149) (-149)).
    by split; [apply: (@rounded_near (-298))|apply: rounded_multiple] => //; lia.
  by split; constructor.
by have [|L2' _] := layer_near h2 _ m2 L2; [lia|split].
Qed.

(* ---- scaling to whole numbers is exact ---- *)

Definition whole_terms (x c : row) (b : Z) : row := ([seq q.1 * q.2 | q <- zip x c] ++ [:: b])%Z.

Lemma sum_whole_terms x c b : sumR (map IZR (whole_terms x c b)) = IZR (dot x c + b).
Proof.
elim: x c => [|x0 x IH] [|w c] /=; rewrite ?Rplus_0_r ?Z.add_0_l //.
by rewrite IH -plus_IZR; congr IZR; lia.
Qed.

Lemma size_whole_terms x c b :
  sizeR (map IZR (whole_terms x c b)) = IZR (dot (absolute x) (absolute c) + Z.abs b).
Proof.
elim: x c => [|x0 x IH] [|w c] /=; rewrite ?Rplus_0_r ?Z.add_0_l -?abs_IZR //.
by rewrite IH -plus_IZR Z.abs_mul; congr IZR; lia.
Qed.

Lemma count_whole_terms x c b : (size (whole_terms x c b) <= (size x).+1)%N.
Proof. by rewrite size_cat size_map size_zip addn1 ltnS geq_minl. Qed.

(* a first layer of float weights, times 2^shift, is one of whole numbers *)
Lemma scaled_layer_1 may_u shift H c b z : summed (near may_u) (terms (map IZR H) (map (over shift)
  c) (over shift b)) z ->
  summed (near may_u) (map IZR (whole_terms H c b)) (bpow radix2 (Z.of_nat shift) * z).
Proof.
move/(summed_scaled may_u (bpow radix2 (Z.of_nat shift))); set F := bpow _ _.
have FI x : F * (x * bpow radix2 (- Z.of_nat shift)) = x.
  by rewrite /F (Rmult_comm x) -Rmult_assoc -bpow_plus Z.add_opp_diag_r Rmult_1_l.
suff -> : List.map (Rmult F) (terms (map IZR H) (map (over shift) c) (over shift b))
  = map IZR (whole_terms H c b) by [].
rewrite /terms /whole_terms List.map_app map_cat /=; congr cat; last by rewrite FI.
by elim: H c => [|h H IH] [|w c] //=;
  rewrite IH /over -Rmult_assoc (Rmult_comm F) Rmult_assoc FI mult_IZR.
Qed.
