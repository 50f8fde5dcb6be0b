(* Sequences with matching parentheses as forests: a cell or a span, then the rest. First child and
   next sibling, so that Coq's own induction suffices. *)
From mathcomp Require Import all_ssreflect.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Inductive forest (cell : Type) :=
  | Nil
  | Cell of cell & forest cell
  | Span of forest cell & forest cell.
Arguments Nil {cell}.

Section Forests.
Variables (cell : Type) (opening closing : cell).
Notation forest := (forest cell).
Implicit Types (g h : forest) (s : seq cell).

(* the sequence it stands for *)
Fixpoint flat g : seq cell :=
  match g with
  | Nil => [::]
  | Cell x g => x :: flat g
  | Span s g => opening :: flat s ++ closing :: flat g
  end.

(* levels of spans *)
Fixpoint levels g : nat :=
  match g with Nil => 0 | Cell _ g => levels g | Span s g => maxn (levels s).+1 (levels g) end.

(* how deep each position is, within k spans; parentheses are as deep as what they enclose *)
Fixpoint nesting (k : nat) g : seq nat :=
  match g with
  | Nil => [::]
  | Cell _ g => k :: nesting k g
  | Span s g => k.+1 :: nesting k.+1 s ++ k.+1 :: nesting k g
  end.

Lemma size_nesting k g : size (nesting k g) = size (flat g).
Proof. by elim: g k => //= [x g IH|s IHs g IH] k; rewrite ?size_cat /= ?IHs IH. Qed.

Lemma nesting_le k g : all (fun i => k <= i <= k + levels g) (nesting k g).
Proof.
elim: g k => //= [x g IH k|s IHs g IH k]; first by rewrite leqnn leq_addr IH.
have h : k < k + maxn (levels s).+1 (levels g).
  by rewrite -[X in X < _]addn0 ltn_add2l leq_max.
rewrite leqnSn h all_cat /= leqnSn h /=; apply/andP; split.
  apply: sub_all (IHs k.+1) => i /andP[a b]; rewrite (ltnW a) /=.
  by apply: leq_trans b _; rewrite addSnnS leq_add2l leq_maxl.
apply: sub_all (IH k) => i /andP[-> b] /=.
by apply: leq_trans b _; rewrite leq_add2l leq_maxr.
Qed.

(* some position is as deep as there are levels *)
Lemma nesting_attained k g : 0 < levels g -> k + levels g \in nesting k g.
Proof.
elim: g k => //= [x g IH k h|s IHs g IH k _]; first by rewrite inE IH // orbT.
rewrite inE mem_cat inE; case: (ltnP (levels s) (levels g)) => h.
  have -> : maxn (levels s).+1 (levels g) = levels g by apply/maxn_idPr.
  by rewrite IH ?orbT //; apply: leq_ltn_trans h.
have -> : maxn (levels s).+1 (levels g) = (levels s).+1 by apply/maxn_idPl; apply: leqW.
rewrite -addSnnS; case: (posnP (levels s)) => [->|d0]; first by rewrite addn0 eqxx.
by rewrite IHs // orbT.
Qed.

Lemma levels_span (s g : forest) : maxn (levels s).+1 (levels g) = 0 -> False.
Proof. by move=> h; have := leq_maxl (levels s).+1 (levels g); rewrite h. Qed.

Lemma nesting_flat k g : levels g = 0 -> nesting k g = nseq (size (flat g)) k.
Proof. by elim: g k => //= [x g IH k /IH ->//|s _ g _ k /levels_span]. Qed.

(* there are at least as many `(` as levels *)
Lemma levels_le_opening (is_open : pred cell) g :
  is_open opening -> levels g <= count is_open (flat g).
Proof.
move=> io; elim: g => //= [x g IH|s IHs g IH]; first exact: leq_trans IH (leq_addl _ _).
rewrite io count_cat /= geq_max; apply/andP; split.
  by rewrite add1n ltnS; apply: leq_trans IHs (leq_addr _ _).
by apply: leq_trans IH _; rewrite !addnA leq_addl.
Qed.

(* ---- joining ---- *)

Fixpoint cells s g : forest := if s is x :: s then Cell x (cells s g) else g.
Fixpoint join g h : forest :=
  match g with Nil => h | Cell x g => Cell x (join g h) | Span s g => Span s (join g h) end.
Definition joined (gs : seq forest) h := foldr join h gs.

Lemma flat_cells s g : flat (cells s g) = s ++ flat g.
Proof. by elim: s => //= x s ->. Qed.
Lemma flat_join g h : flat (join g h) = flat g ++ flat h.
Proof. by elim: g => //= [x g ->//|s _ g ->]; rewrite -catA. Qed.
Lemma flat_joined gs h : flat (joined gs h) = flatten (map flat gs) ++ flat h.
Proof. by elim: gs => //= g gs IH; rewrite flat_join IH catA. Qed.
Lemma levels_cells s g : levels (cells s g) = levels g.
Proof. by elim: s. Qed.
Lemma levels_join g h : levels (join g h) = maxn (levels g) (levels h).
Proof. by elim: g => //= [|s _ g ->]; rewrite ?max0n ?maxnA. Qed.
Lemma levels_joined gs h : levels (joined gs h) = maxn (foldr maxn 0 (map levels gs)) (levels h).
Proof. by elim: gs => /= [|g gs IH]; rewrite ?max0n // levels_join IH maxnA. Qed.
Lemma nesting_join k g h : nesting k (join g h) = nesting k g ++ nesting k h.
Proof. by elim: g => //= [x g ->//|s _ g ->]; rewrite -catA. Qed.
Lemma join_cells s g h : join (cells s g) h = cells s (join g h).
Proof. by elim: s => //= x s ->. Qed.
Lemma cells_cat s t g : cells s (cells t g) = cells (s ++ t) g.
Proof. by elim: s => //= x s ->. Qed.
End Forests.
