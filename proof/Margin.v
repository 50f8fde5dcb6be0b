(* How far binary64 can move the outputs of a perceptron, in whole numbers, so that the check can be
   run: every operation errs by at most 2^-52 of its result, in any rounding mode, fused or not, and
   sums may be taken in any order. Why this is a bound is proved in Rounding.v.

   A sum of `count` products errs by at most growth count / 2^104 of the sum of their sizes. The
   bound is one for all bags of at most `most` tokens; binary64 is so fine that nothing is lost by
   this. Errors are kept as whole numbers over known powers of two. *)
From mathcomp Require Import all_ssreflect.
From Coq Require Import ZArith.
From Exactformer Require Import Circuit Feedforward.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Definition u_inverse : Z := (2 ^ 52)%Z.
Definition base : Z := (2 ^ 104)%Z.

(* count u (1 + 2 count u), times 2^104; for count u <= 1/2 *)
Definition growth (count : Z) : Z := (count * (u_inverse + 2 * count))%Z.
Definition few (count : Z) : bool := (2 * count <=? u_inverse)%Z.

Definition absolute (x : row) : row := map Z.abs x.
Definition largest (x : row) : Z := foldr Z.max 0%Z (absolute x).

(* the error of the activated number where the number's size is at most `size` and its own error
   e / base; over `activated_base` *)
Definition activated_error (a : activation) (size e : Z) : Z :=
  if a is Square then
    (u_inverse * (2 * size * base * e + e * e) + (size * base + e) * (size * base + e))%Z
  else e.
Definition activated_base (a : activation) : Z :=
  if a is Square then (u_inverse * base * base)%Z else base.

Section Margin.
Variables (p : perceptron) (width : nat) (most : Z).  (* of a bag: its width, and how many tokens *)

Definition count_1 : Z := (Z.of_nat width + 1)%Z.
Definition count_2 : Z := (Z.of_nat (size (W_1 p)) + 1)%Z.

(* at most so large is each hidden number before the activation *)
Definition hidden_sizes : row :=
  [seq (most * largest c.1 + Z.abs c.2)%Z | c <- zip (W_1 p) (b_1 p)].
Definition hidden_errors : row :=
  [seq activated_error (act p) s (growth count_1 * s)%Z | s <- hidden_sizes].

(* how far an output can be moved, over activated_base * base; `c` are the weights into it *)
Definition output_bound (c : row) (b : Z) : Z :=
  let size := (dot (map (activate (act p)) hidden_sizes) (absolute c) + Z.abs b * scale_2 p)%Z in
  let spread := dot hidden_errors (absolute c) in
  (spread * base + growth count_2 * (activated_base (act p) * size + spread))%Z.
Definition output_bounds : row := [seq output_bound c.1 c.2 | c <- zip (W_2 p) (b_2 p)].

(* Bags H of these sizes: every output Z is farther from zero than it can be moved. *)
Definition outputs_certain : row -> row -> bool :=
  let bounds := output_bounds in
  let factor := (activated_base (act p) * base)%Z in
  let usable := few count_1 && few count_2 in
  fun H Z =>
  [&& usable, size H == width, (total (absolute H) <=? most)%Z
    & all (fun q => (q.2 <? Z.abs q.1 * factor)%Z) (zip Z bounds)].

(* float32 weights, none so small that a device may take it for zero *)
Definition float32_over (shift : nat) (z : Z) : bool :=
  let one := (2 ^ Z.of_nat shift)%Z in
  (z =? 0)%Z || (one <=? Z.abs z * 2 ^ 126)%Z && (Z.abs z <? one * 2 ^ 128)%Z.

Definition weights_in_range : bool :=
  [&& shift_1 p <= 149, shift_2 p <= 149,
      all (all (float32_over (shift_1 p))) (W_1 p), all (float32_over (shift_1 p)) (b_1 p),
      all (all (float32_over (shift_2 p))) (W_2 p) & all (float32_over (shift_2 p)) (b_2 p)].

(* sizes fit, so that no weight is left out where lists are paired up *)
Definition well_sized : bool :=
  [&& size (W_1 p) == size (b_1 p), size (W_2 p) == size (b_2 p),
      all (fun c => size c == width) (W_1 p) & all (fun c => size c == size (W_1 p)) (W_2 p)].
End Margin.
