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

Definition largest_entry (W : seq row) : Z := foldr Z.max 1%Z (map largest W).
Definition fan_in (a : algebra) : nat := foldr maxn 0 (flatten (map (map fst) (operators a))).

(* No sum of sizes that attention takes over a span is larger: each token of the span is received at
   most so often in each dimension. *)
Definition reach (a : algebra) (w : weights) : Z :=
  (largest_entry (W_Q w) * largest_entry (W_K w) * (Z.of_nat (size (W_Q w)) + 1)
   * Z.of_nat (3 + fan_in a))%Z.

Definition certain (ff : feedforward) (width : nat) (most : Z) : row -> row -> bool :=
  match ff with
  | Network p => outputs_certain p width most
  | Table _ _ => fun _ _ => true
  end.

Definition check_weights (a : algebra) (w : weights) (ff : feedforward) : option failure :=
  orelse (unless (reach a w <=? exact_narrow)%Z Wide_routing)
    (if ff is Network p then
       orelse (unless (well_sized p (S w * D w)) Wrong_size)
              (unless (weights_in_range p) Out_of_range)
     else None).

(* None: exact. *)
Definition verdict (a : algebra) (S : nat) (G_PE G_R : row) (W_Q W_K : seq row) (ff : feedforward) :
    option failure :=
  let w := Weights (vocabulary_size a) S G_PE G_R W_Q W_K (compute ff) in
  orelse (check_weights a w ff)
    (check a w (certain ff (S * vocabulary_size a) (reach a w))).
