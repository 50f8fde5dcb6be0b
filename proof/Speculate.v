(* The logarithmic layer on expressions, exactformer/model/speculate.py: one iteration replaces
   every chain of spans by its value. That keeps the value of the expression and takes exactly one
   off its Horton-Strahler number, so an expression takes as many iterations as that number is. *)
From mathcomp Require Import all_ssreflect.
From Exactformer Require Import Expressions GlobalEvaluation Strahler.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section Speculate.
Variable L : language.
Implicit Types e : expr L.

Definition is_span e : bool := if e is Node _ _ then true else false.

(* how many operands are spans: those that a span waits for *)
Definition holes (a : seq (expr L)) : nat := count is_span a.

(* A span that is worth something: at most one inner span, and that one a chain again. *)
Fixpoint chain e : bool := if e is Node _ a then (holes a <= 1) && all chain a else true.

(* one iteration: the outermost chains become values *)
Fixpoint next e : expr L :=
  match e with
  | Leaf v => Leaf v
  | Node o a => if chain e then Leaf (eval e) else Node o (map next a)
  end.

Lemma next_node o a : next (Node o a)
  = if chain (Node o a) then Leaf (eval (Node o a)) else Node o (map next a).
Proof. by []. Qed.

(* ---- the value is kept ---- *)

Let map_eq B (g h : expr L -> B) a : foldr (fun e => and (g e = h e)) True a -> map g a = map h a.
Proof. by elim: a => //= e a IH [-> /IH ->]. Qed.

Theorem eval_next e : eval (next e) = eval e.
Proof.
elim/expr_induction: e => // o a IH; rewrite next_node; case: ifP => //= _.
by rewrite -map_comp (map_eq IH).
Qed.

Lemma wf_next e : wf e -> wf (next e).
Proof.
elim/expr_induction: e => // o a IH; rewrite next_node; case: ifP => //= _ /andP[tk wa].
rewrite size_map tk /=; elim: a IH wa {tk} => //= e a IHa [h /IHa {}IHa] /andP[/h -> /IHa ->].
by [].
Qed.

(* ---- the number falls by one ---- *)

(* chains are the spans of number 1 *)
Lemma chain_strahler e : chain e = (strahler e <= 1).
Proof.
elim/expr_induction: e => //= o a IH; rewrite /span_number geq_max leqnn /=.
set s := map _ a; have -> : all chain a = (largest s <= 1).
  by rewrite {}/s; elim: a IH => //= e a IHa [-> /IHa ->]; rewrite geq_max.
have spans : holes a = count (leq 1) s.
  by rewrite /s; elim: (a) => //= -[v|o' b] b' -> //=; rewrite span_number_pos.
have le := le_largest s; rewrite spans andbC.
case: (largest s) le (@largest_in s) => [|[|m]] le att //=.
- have -> : count (leq 1) s = 0.
    by apply/eqP; rewrite -leqn0 leqNgt -has_count; apply/hasPn => x /(allP le); case: x.
  by rewrite leq_b1.
- have -> : count_mem 1 s = count (leq 1) s.
    by apply: eq_in_count => x /(allP le); case: x => [|[|x]].
  by rewrite leqNgt; case: ltnP.
Qed.

Lemma largest_pred s : largest (map predn s) = (largest s).-1.
Proof.
by elim: s => //= x s ->; case: x (largest s) => [|x] [|y]; rewrite ?max0n ?maxn0 ?maxnSS.
Qed.

Lemma span_number_pred s : 1 < span_number s -> span_number (map predn s) = (span_number s).-1.
Proof.
rewrite /span_number largest_pred leq_max /=; have le := le_largest s.
case: (largest s) le => [|[|m]] le; rewrite ?add0n.
- by rewrite ltnNge leq_b1.
- case: (1 < count_mem 1 s) => // _.
  by case: (1 < count_mem _ _).
move=> _; rewrite count_map (eq_in_count (a2 := pred1 m.+2)) => [|[|x] _ //]; rewrite /= ?addSn.
by rewrite !(maxn_idPr _).
Qed.

Theorem strahler_next e : strahler (next e) = (strahler e).-1.
Proof.
elim/expr_induction: e => // o a IH; rewrite next_node chain_strahler; case: leqP => [le|gt].
  by apply/eqP; rewrite eq_sym -leqn0 -ltnS prednK // span_number_pos.
by rewrite /= -map_comp -span_number_pred // -map_comp (map_eq IH).
Qed.

(* ---- as many iterations as the number ---- *)

Lemma strahler_iterations k e : strahler (iter k next e) = strahler e - k.
Proof. by elim: k => [|k IH]; rewrite ?subn0 // iterS strahler_next IH subnS. Qed.

Lemma eval_iterations k e : eval (iter k next e) = eval e.
Proof. by elim: k => // k IH; rewrite iterS eval_next. Qed.

(* after k iterations a value is left if and only if k is the number or more *)
Theorem iterations_are_strahler k e : ~~ is_span (iter k next e) = (strahler e <= k).
Proof.
rewrite -subn_eq0 -strahler_iterations strahler_leaf.
by case: (iter k next e).
Qed.

(* and that value is the expression's *)
Theorem value_is_left e : iter (strahler e) next e = Leaf (eval e).
Proof.
have := iterations_are_strahler (strahler e) e; rewrite leqnn.
by case E: (iter _ _ _) => [v|//] _; rewrite -(eval_iterations (strahler e)) E.
Qed.
End Speculate.
