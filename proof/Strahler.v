(* The Horton-Strahler number of an expression, exactformer/domains/strahler.py: how bushy its tree
   is, where depth is how tall. It is at most the depth, and at most 1 + log2 of the values. *)
From mathcomp Require Import all_ssreflect.
From Exactformer Require Import Expressions GlobalEvaluation.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Definition largest (s : seq nat) : nat := foldr maxn 0 s.

(* of a span, by the numbers of its operands: the largest, or one more if two or more have it *)
Definition span_number (s : seq nat) : nat :=
  maxn 1 (largest s + (1 < count_mem (largest s) s)).

Fixpoint strahler (L : language) (e : expr L) : nat :=
  if e is Node _ a then span_number (map (@strahler L) a) else 0.

(* how many values are written in it *)
Fixpoint values (L : language) (e : expr L) : nat :=
  if e is Node _ a then sumn (map (@values L) a) else 1.

(* ---- lists of numbers ---- *)

Lemma le_largest s : all (fun x => x <= largest s) s.
Proof.
elim: s => //= x s IH; rewrite leq_maxl; apply: sub_all IH => y /leq_trans; apply.
exact: leq_maxr.
Qed.

Lemma largest_in s : 0 < largest s -> largest s \in s.
Proof.
elim: s => //= x s IH; rewrite inE; case: (leqP (largest s) x) => h; first by rewrite eqxx.
by move=> /IH ->; rewrite orbT.
Qed.

Lemma span_number_pos s : 0 < span_number s.
Proof. by rewrite leq_max. Qed.

(* At most k above the number of each operand: 2^m values for each operand of the number m, and two
   of these if it counts twice. *)
Lemma span_number_values k (numbers values : seq nat) : size numbers = size values ->
  all (fun p => 2 ^ p.1 <= 2 ^ k * p.2) (zip numbers values) -> 0 < largest numbers ->
  2 ^ span_number numbers <= 2 ^ k * sumn values.
Proof.
move=> sz le l0; rewrite /span_number; set m := largest numbers.
have many n i : n <= count_mem i numbers -> n * 2 ^ i <= 2 ^ k * sumn values.
  elim: numbers values sz le {l0 m} n => [|x s IH] [|y t] // sz; first by move=> _ [].
  case: sz => sz /= /andP[xy le] n; rewrite mulnDr; have {}IH := IH t sz le.
  case: (x =P i) => [xi|_] /=; last by rewrite add0n => /IH h; apply: leq_trans h (leq_addl _ _).
  case: n => // n; rewrite add1n ltnS mulSn => /IH h; apply: leq_add => //.
  by rewrite -xi.
rewrite (maxn_idPr _); last by apply: leq_trans (leq_addr _ _).
case: ltnP => [two|_]; first by rewrite addn1 expnS; apply: many.
rewrite addn0 -[2 ^ m]mul1n; apply: many.
by rewrite -has_count has_pred1; apply: largest_in.
Qed.

(* ---- expressions ---- *)

Section Bounds.
Variable L : language.
Implicit Types e : expr L.

Lemma strahler_leaf e : (strahler e == 0) = (if e is Leaf _ then true else false).
Proof. by case: e => //= o a; rewrite eqn0Ngt span_number_pos. Qed.

(* never more iterations than the paper's layer takes *)
Theorem strahler_le_depth e : strahler e <= depth e.
Proof.
elim/expr_induction: e => //= o a IH; rewrite /span_number geq_max /=.
apply: (@leq_trans (largest (map (@strahler L) a)).+1).
  by rewrite -[X in _ <= X]addn1 leq_add2l leq_b1.
rewrite ltnS; elim: a IH => //= e a IHa [le /IHa h].
by rewrite geq_max !leq_max le h orbT.
Qed.

(* no operator without operands *)
Definition all_take (n : nat) : Prop := forall (o : operator L) k, takes o k -> n <= k.

Lemma values_pos e : all_take 1 -> wf e -> 0 < values e.
Proof.
move=> some; elim/expr_induction: e => //= o a IH /andP[/some + wa].
case: a IH wa => //= e a [h _] /andP[/h h1 _] _; exact: leq_trans h1 (leq_addr _ _).
Qed.

Let zip_all k a : foldr (fun e => and (wf e -> 2 ^ strahler e <= 2 ^ k * values e)) True a ->
  all (@wf L) a ->
  all (fun p => 2 ^ p.1 <= 2 ^ k * p.2) (zip (map (@strahler L) a) (map (@values L) a)).
Proof. by elim: a => //= e a IH [h /IH {}IH] /andP[/h -> /IH]. Qed.

(* one more than the logarithm of the values, at most *)
Theorem strahler_logarithmic e : all_take 1 -> wf e -> 2 ^ strahler e <= 2 * values e.
Proof.
move=> some; elim/expr_induction: e => // o a IH we; case/andP: (we) => _ wa.
have := @span_number_values 1 (map (@strahler L) a) (map (@values L) a).
rewrite expn1 !size_map [values _]/= [strahler _]/=.
case: (posnP (largest _)) => [l0 _|l0]; last first.
  by apply=> //; apply: (@zip_all 1).
have -> : span_number (map (@strahler L) a) = 1.
  by apply/maxn_idPl; rewrite l0 leq_b1.
by rewrite expn1 leq_pmulr //; apply: (values_pos some we).
Qed.

(* the logarithm itself, if every operator takes two operands or more *)
Theorem strahler_logarithm e : all_take 2 -> wf e -> 2 ^ strahler e <= values e.
Proof.
move=> two; have some : all_take 1 by move=> o k /two /ltnW.
elim/expr_induction: e => // o a IH /andP[tk wa].
have := @span_number_values 0 (map (@strahler L) a) (map (@values L) a).
rewrite expn0 mul1n !size_map [values _]/= [strahler _]/=.
case: (posnP (largest _)) => [l0 _|l0]; last first.
  by apply=> //; apply: (@zip_all 0) => //; elim: (a) IH => //= e b IHb [h /IHb];
    split=> // /h; rewrite expn0 mul1n.
have -> : span_number (map (@strahler L) a) = 1.
  by apply/maxn_idPl; rewrite l0 leq_b1.
case: a tk wa {IH l0} => [|e [|e' a]] /= /two // _ /and3P[].
move=> /(values_pos some) h /(values_pos some) h' _.
by rewrite expn1; apply: (@leq_add 1 1) => //; apply: leq_trans h' (leq_addr _ _).
Qed.
End Bounds.
