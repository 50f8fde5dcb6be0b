(* T6 with T3 and T4: on a device, too, every value that is tried in a hole gives what it should.
   Whatever rounding makes of a trial is what whole numbers make of it, if the checker accepts the
   weights; all else of the logarithmic layer is in whole numbers. *)
From mathcomp Require Import all_ssreflect.
From Coq Require Import ZArith.
From Exactformer Require Import Circuit Ranks GatedResidual Expressions NextState Checker.
From Exactformer Require Import Verdict RunningModel SpansInOrder SpanWords.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section Device.
Variables (a : algebra) (slots : nat) (G_PE G_R : row) (W_Q W_K : seq row) (ff : feedforward).
Hypothesis accepted : verdict a slots G_PE G_R W_Q W_K ff = None.
Variables (emin p : Z).
Hypotheses (emin_le : (emin <= 0)%Z) (p_ge : (8 <= p)%Z).
Let w := Weights (vocabulary_size a) slots G_PE G_R W_Q W_K (compute ff).
Notation L := (language_of a).
Notation A := (alphabet_of a id).
Notation G := (model_gates id w).

(* what the cells of a span with v in its hole may become *)
Definition may_try (v : value L) (E : seq (nat * bool * row)) (Y : seq row) : Prop :=
  List.Forall2 (may_become emin p w ff) (reduced (rank_gate G) (@Sees _) (put A (Some v) E)) Y.

Theorem trials_are_exact (E : seq (nat * bool * [eqType of row])) (s : open_span L) v Y :
  map (@face _) E = open_word A s -> takes s.1 (size s.2) -> may_try v E Y ->
  Y = try_value A G (model_local id id w) (Some v) E.
Proof.
move=> h tk; have back : reads_back a (@id row) id by [].
have RG := gates_right back (cases_accepted accepted).
have := every_trial_is_a_case RG v h tk; rewrite /may_try /try_value !reducedE.
move: (ranked _ _) => C; elim: (put A (Some v) E) Y => [|x X IH] Y /=.
  by move=> _ F; inversion F.
case=> xC /IH {}IH F; inversion F as [|? y ? Y' may F' E1 E2]; congr cons; last exact: IH.
exact: (local_exact accepted emin_le p_ge xC may).
Qed.
End Device.
