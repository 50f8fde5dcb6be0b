(* The layer of machines: exactformer/model/machine.py and reading.py, definition by definition and
   with their names. In its one iteration each token is read in the state of all before it.

   A batch is a list of sequences, each with what is inside and its state, as in Circuit.v. The
   weights' machine has the states 0 ... W-1, of which 0 is the start, and W stands for one that is
   not known. The check of these definitions against the Python is a test, which runs them,
   extracted, beside machine.py (tests/test_proof_machines.py). *)
From mathcomp Require Import all_ssreflect.
From Coq Require Import ZArith.
From Exactformer Require Import Circuit Scan.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section Layer.
Variables (D W : nat) (G_K : row) (backwards : bool).
(* which of D + W numbers are above the threshold, for a bag beside a state: the feedforward *)
Variable try : row -> nat -> seq bool.

(* ---- keys, and the rows of a sequence ---- *)

Definition keys (X : seq row) : seq Z :=
  let gate := [seq dot x G_K | x <- X] in
  let count := cumsum gate in                                                   (* Eq. 3 *)
  if backwards then [seq (last 0 count - p.1 + p.2)%Z | p <- zip count gate] else count.

(* the positions that hold a token: all are reduced *)
Definition occupied (inside : seq bool) (X : seq row) : seq bool :=
  [seq p.1 && (0 <? total p.2)%Z | p <- zip inside X].

(* the row of each position, from 1; 0 for none *)
Definition number_rows (key : seq Z) (P : seq bool) : seq nat :=
  [seq if p.2 then Z.to_nat (Z.max p.1 1) else 0 | p <- zip key P].
Definition numbered (s : seq bool * seq row) : seq nat :=
  number_rows (keys s.2) (occupied s.1 s.2).

(* H: for each row the sum of the tokens that are in it; Eqs. 10 to 12 *)
Definition bag (X : seq row) (rows : seq nat) (i : nat) : row :=
  [seq total [seq nth 0%Z p.1 t | p <- zip X rows & p.2 == i] | t <- iota 0 D].
Definition bags (X : seq row) (rows : seq nat) : seq row :=
  [seq bag X rows i | i <- iota 1 (foldr maxn 0 rows)].

(* ---- a row is a map of states to states, found by trying them all ---- *)

Definition alone (Q : seq bool) : option nat :=
  if count id Q == 1 then Some (find id Q) else None.

Definition next_of (h : row) (q : nat) : nat := odflt W (alone (drop D (try h q))).
Definition map_of (h : row) : seq nat := rcons [seq next_of h q | q <- iota 0 W] W.   (* F *)

(* the tokens of a row for the state that arrives; none for a state not known *)
Definition given (h : row) (u : nat) : row :=
  if u < W then [seq (if b then 1 else 0)%Z | b <- take D (try h u)] else nseq D 0%Z.

(* ---- the states that arrive ---- *)

(* where a text starts, the map forgets what arrives *)
Definition restarting (p : bool * seq nat) : seq nat :=
  if p.1 then nseq W.+1 (nth W p.2 0) else p.2.

(* what each map leads to, by the scan of scan.py, which goes from the right *)
Definition led_to (F : seq (seq nat)) (first : nat) : seq nat :=
  rev (scan_from_right W.+1 (rev F) first).

(* some rows at a time; the next ones go on from there *)
Fixpoint arriving (portions : seq (seq (bool * seq nat))) (first : nat) : seq nat :=
  if portions is now :: portions then
    let after := led_to (map restarting now) first in
    [seq if p.1.1 then 0 else p.2 | p <- zip now (belast first after)]
      ++ arriving portions (last first after)
  else [::].

Fixpoint cut A (fuel step : nat) (s : seq A) : seq (seq A) :=
  if fuel is n.+1 then take step s :: cut n step (drop step s) else [:: s].

(* ---- the iteration ---- *)

(* What a row gives is written at its last position; the others become empty; Eq. 13. *)
Fixpoint write_rows (Y : seq row) (X : seq row) (rows : seq nat) : seq row :=
  match X, rows with
  | x :: X, i :: rows =>
      (if i == 0 then x else if i \in rows then nseq D 0%Z else nth (nseq D 0%Z) Y i.-1)
        :: write_rows Y X rows
  | _, _ => [::]
  end.

Definition starts (H : seq row) : seq bool := [seq i == 0 | i <- iota 0 (size H)].

Definition iterate_machine (step : nat) (batch : seq (seq bool * seq row)) : seq (seq row) :=
  let rows := map numbered batch in
  let H := [seq bags p.1.2 p.2 | p <- zip batch rows] in
  let all := flatten H in
  let F := zip (flatten (map starts H)) (map map_of all) in
  let u := arriving (cut (size F) step F) 0 in
  let Y := [seq given p.1 p.2 | p <- zip all u] in
  [seq write_rows q.2 q.1.1.2 q.1.2 | q <- zip (zip batch rows) (reshape (map size H) Y)].
End Layer.
