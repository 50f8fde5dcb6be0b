(* What an expression becomes, iteration by iteration: an expression with empty positions around its
   leaves, which earlier reductions have left behind. Every state of a run is the layout of such a
   padded expression, and one iteration evaluates its deepest operators. *)
From mathcomp Require Import all_ssreflect.
From Coq Require Import ZArith Lia.
From Exactformer Require Import Circuit Ranks Forests ReductionMask GatedResidual.
From Exactformer Require Import DepthOneReduction Expressions.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

(* A leaf with l empty positions before it and r after it. *)
Inductive padded (L : language) :=
  | PLeaf of nat & value L & nat
  | PNode of operator L & seq (padded L).
Arguments PLeaf {L}.

Section Padded.
Variables (L : language) (cell : eqType) (A : alphabet L cell).
Implicit Types (p : padded L) (a : seq (padded L)).
Notation empties n := (nseq n (empty A)).

Section Induction.
Variable Q : padded L -> Prop.
Hypotheses (leaf : forall l v r, Q (PLeaf l v r))
           (node : forall o a, foldr (fun p => and (Q p)) True a -> Q (PNode o a)).
Fixpoint padded_induction p : Q p :=
  match p with
  | PLeaf l v r => leaf l v r
  | PNode o a => node o ((fix F a : foldr (fun p => and (Q p)) True a :=
       match a with [::] => I | p :: a => conj (padded_induction p) (F a) end) a)
  end.
End Induction.

Fixpoint pwf p : bool :=
  if p is PNode o a then takes o (size a) && all pwf a else true.
Fixpoint peval p : value L :=
  match p with PLeaf _ v _ => v | PNode o a => apply o (map peval a) end.
Fixpoint pdepth p : nat :=
  if p is PNode o a then (foldr maxn 0 (map pdepth a)).+1 else 0.

Fixpoint forest_of p : forest cell :=
  match p with
  | PLeaf l v r => cells (empties l ++ of_value A v :: empties r) Nil
  | PNode o a => let k := before L (size a) in let gs := map forest_of a in
      Span (joined (take k gs) (Cell (of_operator A o) (joined (drop k gs) Nil)))
           (cells (empties (tail L)) Nil)
  end.
Notation flat := (flat (opening A) (closing A)).
Definition playout p : seq cell := flat (forest_of p).
Definition width p : nat := size (playout p).

(* the positions of a node from `(` to `)` *)
Definition span_width a : nat := (size (flatten (map flat (map forest_of a)))).+3.

Lemma levels_forest_of p : levels (forest_of p) = pdepth p.
Proof.
elim/padded_induction: p => [l v r|o a IH] /=; first by rewrite levels_cells.
rewrite levels_cells maxn0 levels_joined /= levels_joined /= maxn0; congr _.+1.
have -> : map pdepth a = map (@levels cell) (map forest_of a).
  by elim: a IH => //= p a IHa [-> /IHa ->].
rewrite -[in RHS](cat_take_drop (before L (size a)) (map forest_of a)) map_cat.
by elim: (take _ _) => /= [|g s <-]; rewrite ?max0n ?maxnA.
Qed.

Lemma playout_leaf l v r : playout (PLeaf l v r) = empties l ++ of_value A v :: empties r.
Proof. by rewrite /playout flat_cells cats0. Qed.
Lemma width_leaf l v r : width (PLeaf l v r) = l + r.+1.
Proof. by rewrite /width playout_leaf size_cat /= !size_nseq. Qed.
Lemma width_node o a : width (PNode o a) = span_width a + tail L.
Proof.
rewrite /width /playout /span_width /= size_cat flat_joined /= flat_joined /= cats0 flat_cells cats0.
rewrite -[in RHS](cat_take_drop (before L (size a)) (map forest_of a)) map_cat flatten_cat.
by rewrite !size_cat /= size_nseq -!plusE; lia.
Qed.
Lemma span_width_sum a : span_width a = (sumn (map width a)).+3.
Proof. by rewrite /span_width size_flatten /shape -!map_comp. Qed.

(* The nodes at level j become leaves. `where_` is the position within its span where a node leaves
   its value: the operator's in the paper, but any will do. *)
Section Evaluated.
Variable where_ : operator L -> seq (padded L) -> nat.
Fixpoint evaluated (j : nat) p : padded L :=
  match p with
  | PLeaf _ _ _ => p
  | PNode o a =>
      if j <= 1 then PLeaf (where_ o a) (peval p) (span_width a - (where_ o a).+1 + tail L)
      else PNode o (map (evaluated j.-1) a)
  end.

(* ---- evaluation keeps the value and the width, and takes one level off ---- *)

Lemma peval_evaluated j p : peval (evaluated j p) = peval p.
Proof.
elim/padded_induction: p j => [l v r|o a IH] j //=; case: ifP => //= _; congr (apply o _).
by elim: a IH => //= p a IHa [-> /IHa ->].
Qed.

Lemma pwf_evaluated j p : pwf p -> pwf (evaluated j p).
Proof.
elim/padded_induction: p j => [l v r|o a IH] j //= /andP[tk wa]; case: ifP => //= _.
rewrite size_map tk /=.
by elim: a IH wa {tk} => //= p a IHa [hp ha] /andP[wp wa]; rewrite hp // IHa.
Qed.

Lemma pdepth_evaluated j p : 0 < j -> pdepth p <= j ->
  pdepth (evaluated j p) = minn (pdepth p) j.-1.
Proof.
elim/padded_induction: p j => [l v r|o a IH] j j0 /=; first by rewrite min0n.
case: ifP => [j1 _|j1 dj] /=; first by case: (j) j0 j1 => [|[|n]] //; rewrite minn0.
have {}j1 : 0 < j.-1 by case: (j) j1 => [|[|n]].
have {}dj : foldr maxn 0 (map pdepth a) <= j.-1 by case: (j) dj.
rewrite -{2}(prednK j1) minnSS; congr _.+1.
elim: a IH dj => [|p a IHa] /=; first by rewrite min0n.
by case=> hp ha; rewrite geq_max => /andP[dp da]; rewrite hp // IHa // minn_maxl.
Qed.

Hypothesis within : forall o a, where_ o a < span_width a.

Lemma width_evaluated j p : width (evaluated j p) = width p.
Proof.
elim/padded_induction: p j => [l v r|o a IH] j //; rewrite [evaluated _ _]/=; case: ifP => // _.
  by have /ltP := within o a; rewrite width_node width_leaf -!plusE -!minusE; lia.
rewrite !width_node !span_width_sum -map_comp.
suff -> : map (width \o evaluated j.-1) a = map width a by [].
by elim: a IH => //= p a IHa [-> /IHa ->].
Qed.
End Evaluated.

(* ---- spans are apart ---- *)

(* the gate is +1 on `(`, -1 on `)` and 0 elsewhere; empty positions add nothing to a rank; and no
   token looks like an empty position *)
Record right_gates (G : gates cell) : Prop := RightGates {
  gate_opening : gate G (opening A) = 1%Z;
  gate_closing : gate G (closing A) = (-1)%Z;
  gate_value : forall v, gate G (of_value A v) = 0%Z;
  gate_operator : forall o, gate G (of_operator A o) = 0%Z;
  gate_empty : gate G (empty A) = 0%Z;
  rank_gate_empty : rank_gate G (empty A) = 0%Z;
  value_not_empty : forall v, of_value A v != empty A;
  operator_not_empty : forall o, of_operator A o != empty A
}.

Variable G : gates cell.
Hypotheses (sep : separate L) (RG : right_gates G).
Notation apart := (apart (gate G)).

Lemma gate_empties n : all (fun x => (gate G x =? 0)%Z) (empties n).
Proof. by elim: n => //= n ->; rewrite gate_empty. Qed.

Lemma tail_closes p : 0 < tail L -> ~~ ends_in_span (forest_of p).
Proof.
move=> t0; elim/padded_induction: p => [l v r|o a _] /=; first by rewrite ends_in_span_cells.
by case: (tail L) t0 => //= n _; rewrite ends_in_span_cells.
Qed.

Lemma apart_joined a h : all apart (map forest_of a) -> apart h -> ~~ is_span h ->
  (0 < tail L) || (size a <= 1) -> apart (joined (map forest_of a) h).
Proof.
move=> aa ah nh c; case: (posnP (tail L)) c => [_ /= s1|t0 _].
  case: a aa s1 => [|p [|p' a]] //= /andP[ap _] _.
  by apply: apart_join; rewrite // nh orbT.
elim: a aa => //= p a IHa /andP[ap aa].
by apply: apart_join => //; [apply: IHa|rewrite tail_closes].
Qed.

Lemma apart_forest_of p : pwf p -> apart (forest_of p).
Proof.
elim/padded_induction: p => [l v r _|o a IH /= /andP[tk wa]] /=.
  by rewrite apart_cells // all_cat /= !gate_empties gate_value.
rewrite (apart_cells (gate_empties _)) // andbT; apply/andP; split; last by case: (tail L).
have aa : all apart (map forest_of a).
  by elim: a wa IH {tk} => //= p a IHa /andP[wp wa] [h /(IHa wa) ->]; rewrite h.
move: aa; rewrite -{1}(cat_take_drop (before L (size a)) a) map_cat all_cat -map_take -map_drop.
case/andP=> a1 a2; have := sep tk.
case: (posnP (tail L)) => [_ /= /andP[b1 b2]|t0 _].
  apply: apart_joined => //=.
    by rewrite gate_operator //= apart_joined // size_drop b2 orbT.
  rewrite size_take; case: ifP => [_|/negbT]; rewrite ?b1 ?orbT // -leqNgt => h.
  by rewrite (leq_trans h b1) orbT.
by apply: apart_joined; rewrite ?t0 //= gate_operator //= apart_joined // t0.
Qed.

(* ---- a deepest span, without its empty positions, is a word ---- *)

Definition full (C : seq cell) := filter (predC1 (empty A)) C.

Lemma full_empties n : full (empties n) = [::].
Proof. by elim: n => //= n ->; rewrite eqxx. Qed.

Lemma full_leaves a : foldr maxn 0 (map pdepth a) = 0 ->
  full (flatten (map flat (map forest_of a))) = full (map (of_value A) (map peval a)).
Proof.
elim: a => //= p a IH; case: p => [l v r|o b] /=; last first.
  move=> h; have := leq_maxl (foldr maxn 0 (map pdepth b)).+1 (foldr maxn 0 (map pdepth a)).
  by rewrite h.
rewrite max0n => /IH h; rewrite /full filter_cat -/(full (flatten _)) h flat_cells cats0 filter_cat /=.
by rewrite -!/(full (empties _)) !full_empties /=; case: ifP.
Qed.

Let foldr_max_cat s t : foldr maxn 0 (s ++ t) = maxn (foldr maxn 0 s) (foldr maxn 0 t).
Proof. by elim: s => /= [|x s ->]; rewrite ?max0n ?maxnA. Qed.

Lemma full_parts a : foldr maxn 0 (map pdepth a) = 0 -> let k := before L (size a) in
  full (flatten (map flat (take k (map forest_of a))))
    = full (map (of_value A) (take k (map peval a)))
  /\ full (flatten (map flat (drop k (map forest_of a))))
     = full (map (of_value A) (drop k (map peval a))).
Proof.
move=> E k; move: E; rewrite -{1}(cat_take_drop k a) map_cat foldr_max_cat => E.
rewrite -!map_take -!map_drop; split; apply: full_leaves; apply/eqP; rewrite -leqn0 -[X in _ <= X]E.
  exact: leq_maxl.
exact: leq_maxr.
Qed.

Lemma full_span o a : foldr maxn 0 (map pdepth a) = 0 ->
  let k := before L (size a) in
  full (opening A :: (flatten (map flat (take k (map forest_of a))) ++
        of_operator A o :: flatten (map flat (drop k (map forest_of a)))) ++ [:: closing A])
  = full (word A o (map peval a)).
Proof.
move=> /full_parts[E1 E2] k; rewrite /word size_map -/k /full /= !filter_cat /= !filter_cat /=.
by rewrite -/(full _) E1 -/(full (flatten _)) E2; do 2 case: ifP => //=; rewrite -?catA.
Qed.

Lemma full_ranked C :
  [seq y <- ranked (rank_gate G) C | y.1 != empty A] = ranked (rank_gate G) (full C).
Proof.
rewrite /ranked /cumsum; move: 0%Z; elim: C => //= x C IH r.
case: (x =P empty A) => [->|_] /=; last by rewrite IH.
by rewrite rank_gate_empty // Z.add_0_r IH.
Qed.
(* no token of a word is empty *)
Lemma full_word o (a : seq (value L)) : full (word A o a) = word A o a.
Proof.
have values s : full (map (of_value A) s) = map (of_value A) s.
  by apply/all_filterP; rewrite all_map; elim: s => //= v s ->; rewrite (value_not_empty RG).
have on : opening A != empty A by apply/eqP => E; have := gate_opening RG; rewrite E gate_empty.
have cn : closing A != empty A by apply/eqP => E; have := gate_closing RG; rewrite E gate_empty.
rewrite /word /full /= on filter_cat /= (operator_not_empty RG) filter_cat /= cn.
by rewrite -!/(full (map _ _)) !values.
Qed.
End Padded.
