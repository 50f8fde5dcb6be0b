(* F as speculate.py holds it, one row of V + 1 numbers for each span: values are 0 ... V-1, and V
   stands for one that is not known yet. The scan of these rows, done in pairs as in scan.py, gives
   each chain its value. *)
From mathcomp Require Import all_ssreflect.
From Exactformer Require Import Expressions GlobalEvaluation Strahler Speculate Scan SpansInOrder.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section Tables.
Variables (L : language) (V : nat) (number : value L -> nat) (numbered : nat -> value L).
Hypotheses (number_below : forall v, number v < V) (numberK : cancel number numbered).
Implicit Types (x : option (value L)) (s : open_span L).

Definition number_of x : nat := if x is Some v then number v else V.
Definition number_to (i : nat) : option (value L) := if i < V then Some (numbered i) else None.
Definition row_of s : seq nat := [seq number_of (F s (number_to i)) | i <- iota 0 V.+1].

Lemma number_of_below x : number_of x < V.+1.
Proof. by case: x => [v|] /=; rewrite ltnS // ltnW. Qed.
Lemma number_ofK x : number_to (number_of x) = x.
Proof. by case: x => [v|]; rewrite /number_to /= ?number_below ?numberK ?ltnn. Qed.

Lemma is_table_row_of s : is_table V.+1 (row_of s).
Proof.
rewrite /is_table size_map size_iota eqxx all_map.
by apply/allP => i _; apply: number_of_below.
Qed.

Lemma entry_row_of s x : entry (row_of s) (number_of x) = number_of (F s x).
Proof.
rewrite /entry (nth_map 0) ?size_iota ?number_of_below // nth_iota ?number_of_below //.
by rewrite number_ofK.
Qed.

Theorem scan_of_tables (batch : seq (expr L)) :
  scan_from_right V.+1 (map row_of (in_text batch)) V
  = [seq number_of (worth e) | e <- all_spans batch].
Proof.
rewrite scan_from_right_is_the_scan //; last first.
  by elim: (in_text batch) => //= s l ->; rewrite is_table_row_of.
rewrite (map_comp number_of) -scan_evaluates_chains /u.
elim: (in_text batch) => //= s l ->; rewrite -(entry_row_of s); congr (entry _ _ :: _).
by case: (scan _ _ _).
Qed.
End Tables.
