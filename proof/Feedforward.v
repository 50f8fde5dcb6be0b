(* The feedforward in whole numbers: a perceptron with one hidden layer, or a table of bags.

   Each weight of a perceptron is a float, so a whole number over a power of two: W_1 and b_1 over
   2^shift_1, W_2 and b_2 over 2^shift_2. Its outputs are then whole numbers over a common power of
   two, and what matters is their sign; that this scaling is exact is proved in Scaling.v. *)
From mathcomp Require Import all_ssreflect.
From Coq Require Import ZArith.
From Exactformer Require Import Circuit.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Inductive activation := Relu | Square.

Record perceptron := Perceptron {
  act : activation;
  shift_1 : nat;
  W_1 : seq row;      (* columns: the weights into each hidden unit *)
  b_1 : row;
  shift_2 : nat;
  W_2 : seq row;      (* columns: the weights into each output *)
  b_2 : row
}.

Definition activate (a : activation) (z : Z) : Z := if a is Square then (z * z)%Z else Z.max z 0.
Definition degree (a : activation) : nat := if a is Square then 2 else 1.

Definition affine (W : seq row) (b : row) (x : row) : row :=
  [seq (dot x c.1 + c.2)%Z | c <- zip W b].

Definition hidden (p : perceptron) (H : row) : row := affine (W_1 p) (b_1 p) H.

(* 2^(shift_1 * degree), by which b_2 is scaled to the denominator of the products *)
Definition scale_2 (p : perceptron) : Z := (2 ^ Z.of_nat (shift_1 p * degree (act p)))%Z.

Definition outputs (p : perceptron) (H : row) : row :=
  affine (W_2 p) [seq (b * scale_2 p)%Z | b <- b_2 p] (map (activate (act p)) (hidden p H)).

(* f(H) = 1/2 on the coordinates of the output of the bag that H equals, -1/2 elsewhere;
   times two *)
Definition look_up (bags results : seq row) (H : row) : row :=
  if [seq q.2 | q <- zip bags results & all2 Z.eqb q.1 H] is r :: _
  then [seq (if 0 <? z then 1 else -1)%Z | z <- r]
  else [seq (-1)%Z | _ <- head [::] results].
