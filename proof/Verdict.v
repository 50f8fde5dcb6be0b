(* The whole check of a model, as the extracted checker runs it: the cases of Checker.v, the margin
   of Margin.v on everything that is ever received, and what makes routed sums whole numbers that
   float32, float16 and bfloat16 all hold. *)
From mathcomp Require Import all_ssreflect.
From Coq Require Import ZArith.
From Exactformer Require Import Circuit Feedforward Checker Margin.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Inductive feedforward := Network of perceptron | Table of seq row & seq row.

Definition compute (ff : feedforward) : row -> row :=
  match ff with Network p => outputs p | Table bags results => look_up bags results end.

(* whole numbers up to here are exact in float32, float16 and bfloat16 *)
Definition exact_narrow : Z := 256.

Definition narrow (H : row) : bool := all (fun z => (0 <=? z)%Z && (z <=? exact_narrow)%Z) H.

(* no bag holds more: each of the tokens of a span is received once for each dimension at most *)
Definition most_received (a : algebra) (w : weights) : Z :=
  Z.of_nat (size (W_Q w) * (3 + foldr maxn 0 (flatten (map (map fst) (operators a))))).

Definition certain (ff : feedforward) (width : nat) (most : Z) : row -> row -> bool :=
  match ff with
  | Network p => let sure := outputs_certain p width most in fun H Z => narrow H && sure H Z
  | Table _ _ => fun H _ => narrow H
  end.

Definition binary (W : seq row) : bool := all (all (fun z => (z =? 0)%Z || (z =? 1)%Z)) W.

Definition check_weights (a : algebra) (w : weights) (ff : feedforward) : option failure :=
  orelse (unless (binary (W_Q w) && binary (W_K w)) Wrong_routing)
    (orelse (first (fun o => unless (all (fun n => (Z.of_nat n + 3 <=? exact_narrow)%Z) (arities a o))
                                    (Wide_operator o)) (iota 0 (n_operators a)))
      (if ff is Network p then
         orelse (unless (well_sized p (S w * D w)) Wrong_size)
                (unless (weights_in_range p) Out_of_range)
       else None)).

(* None: exact. *)
Definition verdict (a : algebra) (S : nat) (G_PE G_R : row) (W_Q W_K : seq row) (ff : feedforward) :
    option failure :=
  let w := Weights (vocabulary_size a) S G_PE G_R W_Q W_K (compute ff) in
  orelse (check_weights a w ff) 
    (check a w (certain ff (S * vocabulary_size a) (most_received a w))).
