(* The conditions on machines are needed: without one there is a concrete text that goes wrong. The
   machine is parity, tokens 0 1 $, states even and odd, written down as a table. *)
From mathcomp Require Import all_ssreflect.
From Coq Require Import ZArith.
From Exactformer Require Import Circuit Feedforward Verdict MachineLayer RowsOfTexts Machines
  MachineChecked.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Definition parity : machine := Machine 0
  [:: [:: Some 0; Some 1; None]; [:: Some 1; Some 0; None]]
  [:: [:: None; None; Some 0]; [:: None; None; Some 1]] (Some 2).

(* what the weights give, 0 1 $ even odd, for 0, 1 and $ in the states even and odd *)
Definition weights_of (outputs : seq row) : feedforward :=
  Table [seq one_hot_of 3 t ++ one_hot_of 2 q | t <- iota 0 3, q <- iota 0 2] outputs.
Definition even : row := [:: 0; 0; 0; 1; 0]%Z.
Definition odd : row := [:: 0; 0; 0; 0; 1]%Z.
Definition says_0 : row := [:: 1; 0; 0; 0; 0]%Z.
Definition says_1 : row := [:: 0; 1; 0; 0; 0]%Z.
Definition right : feedforward := weights_of [:: even; odd; odd; even; says_0; says_1].

(* the answer that the layer leaves at the mark of each text; its token, if there is one *)
Definition answered_by (G_K : row) (ff : feedforward) (texts : seq (seq nat)) : seq nat :=
  let batch := [seq machine_input parity 3 false (text, [:: true; false]) | text <- texts] in
  [seq find (Z.eqb 1) (flatten p.2) - 3 * size p.1
  | p <- zip texts (iterate_machine 3 2 G_K false (positive 2 ff) 3 batch)].
Definition ones : row := [:: 1; 1; 1]%Z.

(* with all conditions met: 111, 1 and 101, in one batch *)
Example parity_is_exact : verdict_machine parity 3 2 ones right = None.
Proof. by vm_compute. Qed.
Example parity_answers :
  answered_by ones right [:: [:: 1; 1; 1]; [:: 1]; [:: 1; 0; 1]] = [:: 1; 1; 0].
Proof. by vm_compute. Qed.

(* 1. The gate of the key: with 0 on the symbol 1, rows of a text are joined, and 1 goes wrong. *)
Definition joining : row := [:: 1; 0; 1]%Z.
Example the_gate_is_looked_at : verdict_machine parity 3 2 joining right = Some (Gate_of_key 1).
Proof. by vm_compute. Qed.
Example the_gate_matters : answered_by joining right [:: [:: 1]] <> [:: 1].
Proof. by vm_compute. Qed.

(* 2. A transition: 1 leads from odd to odd. The shortest text that shows it is 11. *)
Definition stuck : feedforward := weights_of [:: even; odd; odd; odd; says_0; says_1].
Example a_wrong_transition_is_found :
  verdict_machine parity 3 2 ones stuck = Some (Row_fault (Wrong_answer [:: 1; 1] 2)).
Proof. by vm_compute. Qed.
Example a_transition_matters : answered_by ones stuck [:: [:: 1; 1]] = [:: 1].
Proof. by vm_compute. Qed.

(* 3. An answer: $ in the state odd says 0. *)
Definition silent : feedforward := weights_of [:: even; odd; odd; even; says_0; says_0].
Example a_wrong_answer_is_found :
  verdict_machine parity 3 2 ones silent = Some (Row_fault (Wrong_answer [:: 1] 2)).
Proof. by vm_compute. Qed.

(* 4. Exactly one next state: in two at once, none is known, and nothing is written. *)
Definition torn : feedforward :=
  weights_of [:: even; odd; [:: 0; 0; 0; 1; 1]%Z; even; says_0; says_1].
Example two_next_states_are_none :
  verdict_machine parity 3 2 ones torn = Some (Row_fault (No_next_state [::] 1)).
Proof. by vm_compute. Qed.

(* 5. Nothing but the answer: a symbol that leaves a token of its own is found. *)
Definition leaving : feedforward :=
  weights_of [:: [:: 1; 0; 0; 1; 0]%Z; odd; odd; even; says_0; says_1].
Example a_token_on_the_way_is_found :
  verdict_machine parity 3 2 ones leaving = Some (Row_fault (Wrong_answer [::] 0)).
Proof. by vm_compute. Qed.

(* 6. The start of a text: if the map there did not forget what arrives, and 0 did not arrive, the
   text before would go on. The mark's map leads nowhere, so after it nothing would be known. *)
Example texts_start_anew :
  let rows := [seq (p.1, map_of 3 2 (positive 2 right) (one_hot_of 3 p.2))
              | p <- [:: (true, 1); (false, 2); (true, 1); (false, 2)]] in
  arriving 2 [:: rows] 0 = [:: 0; 1; 0; 1] /\
  arriving 2 [:: [seq (false, p.2) | p <- rows]] 0 = [:: 0; 1; 2; 2].
Proof. by vm_compute. Qed.
