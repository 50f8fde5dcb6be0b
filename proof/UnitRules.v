(* T5, definitions: what a unit is, the units of each rule (exactformer/domains/units.py) and those
   rules that ssreflect does not have (exactformer/domains/rules.py).

   Operands are places among n values. Slot 0 holds the first operand, slot 1 the second and so on;
   the last slot holds all that are left. *)
From mathcomp Require Import all_ssreflect.
From Coq Require Import ZArith.
From Exactformer Require Import Circuit.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

(* ---- units.py: what a unit is ---- *)

Record unit_of := Unit {
  adding : seq (seq Z);     (* what an operand adds: by slot, then by place *)
  bias : Z;
  cap : Z;                  (* of the sum, where no period is given *)
  period : Z;
  code : Z
}.

(* an operator's units, and the place of the result for each code *)
Record units := Units { parts : seq unit_of; readout : seq nat }.

Implicit Types (a : seq nat) (n slots v m : nat).

Definition sum_of (W : seq (seq Z)) a : Z :=
  total [seq nth 0%Z (nth [::] W (minn q.1 (size W).-1)) q.2 | q <- zip (iota 0 (size a)) a].

Definition condensed (u : unit_of) a : Z :=
  let s := (sum_of (adding u) a + bias u)%Z in
  if (period u =? 0)%Z then Z.min (Z.max s 0) (cap u) else (s mod period u)%Z.

Definition code_of (us : units) a : Z := total [seq (condensed u a * code u)%Z | u <- parts us].
Definition result_of (us : units) a : nat := nth 0 (readout us) (Z.to_nat (code_of us a)).

(* a row of weights by place, and a unit that weighs operands by their place alone *)
Definition by_place n (weight : nat -> Z) : seq Z := [seq weight x | x <- iota 0 n].
Definition counts n slots (weight : nat -> Z) (bias cap period : Z) : unit_of :=
  Unit (nseq slots (by_place n weight)) bias cap period 1.
Definition one_if (b : bool) : Z := if b then 1%Z else 0%Z.

(* ---- units.py: the units of each rule ---- *)

Definition max_units n slots : units :=
  Units [seq counts n slots (fun x => one_if (v <= x)) 0 1 0 | v <- iota 1 n.-1] (iota 0 n).
Definition min_units n slots : units :=
  Units [seq counts n slots (fun x => one_if (x < v)) 0 1 0 | v <- iota 1 n.-1] (rev (iota 0 n)).
Definition complement_of n (us : units) : units :=
  Units (parts us) [seq n.-1 - x | x <- readout us].
Definition below n slots bias : seq unit_of :=
  [seq counts n slots (fun x => if x < v then 1%Z else (-1)%Z) bias 1 0 | v <- iota 1 n.-1].
Definition median_units n slots : units := Units (below n slots 1) (rev (iota 0 n)).
Definition median_mean_units n slots : units :=
  Units (below n slots 1 ++ below n slots 0) (rev [seq t./2 | t <- iota 0 (2 * n - 1)]).
Definition sum_units n slots : units :=
  Units [:: counts n slots Z.of_nat 0 0 (Z.of_nat n)] (iota 0 n).
Definition saturating_units n slots : units :=
  Units [:: counts n slots Z.of_nat 0 (Z.of_nat n.-1) 0] (iota 0 n).
Definition first_units n slots : units :=
  Units [:: Unit (by_place n Z.of_nat :: nseq slots.-1 (nseq n 0%Z)) 0 (Z.of_nat n.-1) 0 1]
        (iota 0 n).
Definition difference_units n slots : units :=
  let value := Unit (by_place n Z.of_nat :: nseq slots.-1 (by_place n (fun x => - Z.of_nat x)%Z))
                    0 0 (Z.of_nat n) 1 in
  let more := Unit (nseq n 0%Z :: nseq slots.-1 (nseq n 1%Z)) 0 1 0 (Z.of_nat n) in
  Units [:: value; more] ([seq (n - x) %% n | x <- iota 0 n] ++ iota 0 n).
Definition implies_units n slots : units :=
  let step v := Unit (by_place n (fun x => one_if (v <= n.-1 - x))
                      :: by_place n (fun x => one_if (v <= x))
                      :: nseq (slots - 2) (nseq n 0%Z)) 0 1 0 1 in
  Units [seq step v | v <- iota 1 n.-1] (iota 0 n).

(* ---- rules.py ---- *)

Definition largest a : nat := foldr maxn 0 a.
Definition smallest a : nat := foldr minn (head 0 a) a.
Definition lower_median a : nat := nth 0 (sort leq a) ((size a).-1 ./2).
Definition upper_median a : nat := nth 0 (sort leq a) ((size a)./2).
