(* Each condition is needed: without it there is a concrete expression, row or sum that goes wrong.
   The model is XOR in prefix notation, `( ^ a b )`, tokens ( ) 0 1 ^. *)
From Coq Require Import Reals Lra List.
From mathcomp Require Import all_ssreflect.
From Coq Require Import ZArith.
From Exactformer Require Import Circuit Ranks GatedResidual Expressions GlobalEvaluation Checker.
From Exactformer Require Import Feedforward Margin Verdict Rounding Binary64.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Local Open Scope nat_scope.

Definition xor : algebra := Algebra 1 [:: [:: (2, [:: 0; 1; 1; 0])]] true.

Definition right_G_PE : row := [:: 1; -1; 0; 0; 0]%Z.
Definition W_Q' : seq row := [:: [:: 0; 0; 0; 0; 1]; [:: 0; 0; 0; 0; 1]]%Z.
Definition W_K' : seq row := [:: [:: 0; 0; 1; 1; 0]; [:: 0; 0; 0; 0; 1]]%Z.
Definition table : feedforward :=
  Table [:: [:: 0; 0; 2; 0; 1]; [:: 0; 0; 1; 1; 1]; [:: 0; 0; 0; 2; 1]]%Z
        [:: [:: 0; 0; 1; 0; 0]; [:: 0; 0; 0; 1; 0]; [:: 0; 0; 1; 0; 0]]%Z.
Definition model (G_PE : row) : weights := Weights 5 1 G_PE [::] W_Q' W_K' (compute table).

Example xor_is_exact : verdict xor 1 right_G_PE [::] W_Q' W_K' table = None.
Proof. by vm_compute. Qed.

(* ( ^ ( ^ 0 1 ) ( ^ 1 1 ) ) is 1 *)
Definition O_ : operator (language_of xor) := @Ordinal 1 0 isT.
Definition zero : expr (language_of xor) := @Leaf (language_of xor) (@Ordinal 2 0 isT).
Definition one : expr (language_of xor) := @Leaf (language_of xor) (@Ordinal 2 1 isT).
Definition expression := Node O_ [:: Node O_ [:: zero; one]; Node O_ [:: one; one]].

(* the tokens that are left after a run *)
Definition left_over (w : weights) (X : seq row) : seq row :=
  if run id id w [:: (nseq (size X) true, X)] is [:: (Y, _)] then [seq y <- Y | y != zero_row xor]
  else [::].
Definition with_empty_positions : seq row := layout (alphabet_of xor id) expression.
Definition without : seq row := [seq x <- with_empty_positions | x != zero_row xor].

Example with_them_it_is_right :
  left_over (model right_G_PE) with_empty_positions = [:: one_hot xor (value_token 1)].
Proof. by vm_compute. Qed.

(* 1. Without the empty position after `)`, siblings become one cluster: nothing sensible is
   left. *)
Example without_them_it_is_wrong :
  left_over (model right_G_PE) without <> [:: one_hot xor (value_token 1)].
Proof. by vm_compute. Qed.

(* 2. A wrong gate: `1` counted as if it opened a span. The checker names the token, and the same
   expression goes wrong. *)
Definition wrong_G_PE : row := [:: 1; -1; 0; 1; 0]%Z.

Example wrong_gate_is_found :
  verdict xor 1 wrong_G_PE [::] W_Q' W_K' table = Some (Wrong_gate 3).
Proof. by vm_compute. Qed.

Example wrong_gate_is_wrong :
  left_over (model wrong_G_PE) with_empty_positions <> [:: one_hot xor (value_token 1)].
Proof. by vm_compute. Qed.

(* 3. Where order matters, a rank gate that also counts the operator of prefix notation: the first
   operand then has rank 2 like the second, both fall into one slot, and no feedforward whatever can
   tell 0 - 1 from 1 - 0. Counting values alone keeps them apart. *)
Definition received_by_operator (G_R : row) (operands : seq nat) : row :=
  received (Weights 5 2 right_G_PE G_R W_Q' W_K' id) (one_hot xor 4)
    (ranked (fun x => dot x G_R) (map (one_hot xor) (span xor 0 operands))).

Example counting_operators_loses_the_order :
  let G_R := [:: 0; 0; 1; 1; 1]%Z in
  received_by_operator G_R [:: 0; 1] = received_by_operator G_R [:: 1; 0].
Proof. by vm_compute. Qed.

Example counting_values_keeps_the_order :
  let G_R := [:: 0; 0; 1; 1; 0]%Z in
  received_by_operator G_R [:: 0; 1] <> received_by_operator G_R [:: 1; 0].
Proof. by vm_compute. Qed.

(* 4. One entry of the table changed. *)
Definition tampered : feedforward :=
  Table [:: [:: 0; 0; 2; 0; 1]; [:: 0; 0; 1; 1; 1]; [:: 0; 0; 0; 2; 1]]%Z
        [:: [:: 0; 0; 1; 0; 0]; [:: 0; 0; 1; 0; 0]; [:: 0; 0; 1; 0; 0]]%Z.

Example tampered_is_found :
  verdict xor 1 right_G_PE [::] W_Q' W_K' tampered = Some (Wrong_row 0 [:: 0; 1] 4).
Proof. by vm_compute. Qed.

(* 5. A margin below the bound: 2^53 + 1 - 2^53 is positive, but a device that adds from the left
   may return zero. *)
Example a_sum_that_loses_its_sign :
  (0 < sumR [:: - 2 ^ 53; 1; 2 ^ 53])%R
  /\ summed (near u64) [:: - 2 ^ 53; 1; 2 ^ 53]%R 0%R.
Proof.
set T := (2 ^ 53)%R; have T0 : (0 < T)%R by apply: pow_lt; lra.
have u : (u64 = 2 * / T)%R by rewrite /u64 /T -(tech_pow_Rmult 2 52); field; apply: pow_nonzero;
  lra.
have same e : near u64 e e.
  exists 0%R; split; last ring.
  rewrite Rabs_R0 u; apply: Rmult_le_pos; [lra|left; exact: Rinv_0_lt_compat].
split; first by rewrite /=; lra.
have big : summed (near u64) [:: T] T by exact/product/same.
have lost : near u64 (T + 1) T.
  exists (- / (T + 1))%R; split; last by field; lra.
  rewrite Rabs_Ropp Rabs_pos_eq; last by left; apply: Rinv_0_lt_compat; lra.
  rewrite u; apply: (Rle_trans _ (/ T)); first by apply: Rinv_le_contravar; lra.
  by have := Rinv_0_lt_compat _ T0; lra.
apply: (fused _ _ _ _ _ (fused _ _ _ _ _ big lost)).
have -> : (T + - T = 0)%R by ring.
exact: same.
Qed.

(* The check sees it: an output 2^53 - 2^53 + b is certain only where b is large enough. *)
Definition near_zero (b : Z) : perceptron :=
  Perceptron Relu 0 [:: [:: 2 ^ 53]; [:: 2 ^ 53]]%Z [:: 0; 0]%Z 0 [:: [:: 1; -1]]%Z [:: b].

Example too_near_is_refused :
  outputs_certain (near_zero 1) 1 1 [:: 1]%Z (outputs (near_zero 1) [:: 1]%Z) = false.
Proof. by vm_compute. Qed.

Example far_enough_is_accepted :
  outputs_certain (near_zero 1000) 1 1 [:: 1]%Z (outputs (near_zero 1000) [:: 1]%Z).
Proof. by vm_compute. Qed.
