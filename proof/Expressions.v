(* Expressions: what they mean and how they are written down.

   One definition covers both notations. Infix, `( a op b )` and `( op a )`: at most one operand on
   either side of the operator, no tail. Prefix, `( op a b ... )`: no operand before the operator,
   and an empty position after each `)`. *)
From mathcomp Require Import all_ssreflect.
From Coq Require Import ZArith.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Record language := Language {
  value : Type;
  operator : Type;
  takes : operator -> nat -> bool;               (* the numbers of operands *)
  apply : operator -> seq value -> value;
  before : nat -> nat;                           (* how many operands stand before the operator *)
  tail : nat                                     (* empty positions after each `)` *)
}.

(* Spans that are siblings never touch: something empty, or the operator, is between them. *)
Definition separate (L : language) : Prop :=
  forall (o : operator L) n, takes o n ->
  (0 < tail L) || (before L n <= 1) && (n - before L n <= 1).

Definition infix_before (n : nat) : nat := if n == 2 then 1 else 0.

(* the cells of a state that stand for tokens *)
Record alphabet (L : language) (cell : eqType) := Alphabet {
  empty : cell;
  opening : cell;
  closing : cell;
  of_value : value L -> cell;
  of_operator : operator L -> cell
}.
Arguments Alphabet {L cell}.

Inductive expr (L : language) := Leaf of value L | Node of operator L & seq (expr L).

Section Expressions.
Variables (L : language) (cell : eqType) (A : alphabet L cell).
Implicit Types e : expr L.

Fixpoint wf e : bool :=
  if e is Node o a then takes o (size a) && all wf a else true.

Fixpoint eval e : value L :=
  match e with Leaf v => v | Node o a => apply o (map eval a) end.

Fixpoint depth e : nat :=
  if e is Node o a then (foldr maxn 0 (map depth a)).+1 else 0.

Fixpoint layout e : seq cell :=
  match e with
  | Leaf v => [:: of_value A v]
  | Node o a => let s := map layout a in let k := before L (size a) in
      opening A :: flatten (take k s) ++ of_operator A o :: flatten (drop k s)
      ++ closing A :: nseq (tail L) (empty A)
  end.

(* a span of depth 1, its operands being values *)
Definition word (o : operator L) (a : seq (value L)) : seq cell :=
  let k := before L (size a) in
  opening A :: map (of_value A) (take k a) ++ of_operator A o :: map (of_value A) (drop k a)
  ++ [:: closing A].
End Expressions.
