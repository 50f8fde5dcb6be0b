(* What an iteration of the logarithmic layer makes of a stretch of a state: nothing is changed in a
   span that waits, and an outermost chain becomes one value among empty positions. *)
From mathcomp Require Import all_ssreflect.
From Coq Require Import ZArith Lia.
From Exactformer Require Import Circuit Ranks Forests GatedResidual Expressions PaddedExpressions.
From Exactformer Require Import NextState GlobalEvaluation Strahler Speculate Scan SpansInOrder.
From Exactformer Require Import Enter SpanWords LogarithmicIteration.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section Becomes.
Variables (L : language) (cell : eqType) (A : alphabet L cell) (G : gates cell).
Variables (local : cell -> seq (cell * Z) -> cell).
Notation entry := (nat * bool * cell)%type.
Notation empties n := (nseq n (empty A)).
Notation try_value := (try_value A G local).
Notation flat := (flat (opening A) (closing A)).
Notation own := (own (empty A) (opening A) (closing A)).
Notation spans_of := (spans_of (empty A) (opening A) (closing A)).
Notation span_entries := (span_entries (empty A) (opening A) (closing A)).
Notation reduce := (reduce A G local).
Notation positions := (map (@position cell)).
Notation note := (option (value L) * bool * option (value L))%type.
Implicit Types (N : seq note) (g s : forest cell).

(* a stretch g from position i on, whose spans have the notes N, becomes X *)
Definition becomes (i : nat) g N (X : seq cell) : Prop :=
  size N = opens g /\ reduce (zip (spans_of i g) N) i (flat g) = X.

Lemma becomes_nil i : becomes i Nil [::] [::].
Proof. by []. Qed.

(* side by side, stretches do not touch each other *)
Lemma becomes_join i g h N N' X X' : becomes i g N X -> becomes (i + size (flat g)) h N' X' ->
  becomes i (join g h) (N ++ N') (X ++ X').
Proof.
case=> sN <- [sN' <-]; split; first by rewrite size_cat sN sN' opens_join.
rewrite spans_of_join flat_join zip_cat ?size_spans_of // reduce_cat.
rewrite (@reduce_before L cell A G local _ _ _ (size (flat h))) ?spans_within //.
rewrite (@reduce_after L cell A G local _ _ _ (i)) ?leq_addr // addKn; exact: spans_within.
Qed.

Let kept_before T i x m : within i.+1 m T -> reduce T i [:: x] = [:: x].
Proof.
move=> w; rewrite -[T]cat0s (@reduce_before L cell A G local _ _ _ m) ?reduce_nothing //.
by rewrite [size _]/= addn1.
Qed.
Let kept_after T m n X : within m n T -> reduce T (m + n) X = X.
Proof.
move=> w; rewrite -[T]cats0 (@reduce_after L cell A G local _ _ _ m) ?leq_addr ?reduce_nothing //.
by rewrite addKn.
Qed.

Lemma becomes_cell i x g N X : becomes i.+1 g N X -> becomes i (Cell x g) N (x :: X).
Proof.
case=> sN <-; split=> //; rewrite [flat _]/= [spans_of _ _]/= -cat1s reduce_cat.
rewrite [size [:: _]]/= addn1.
by rewrite (kept_before _ (spans_within _ _ _ _)).
Qed.

Lemma becomes_cells i t g N X : becomes (i + size t) g N X -> becomes i (cells t g) N (t ++ X).
Proof.
elim: t i => /= [|x t IH] i; first by rewrite addn0.
by rewrite addnS -addSn => /IH; apply: becomes_cell.
Qed.

(* a span that waits stays *)
Lemma becomes_waiting i s x N X : becomes i.+1 s N X ->
  becomes i (Span s Nil) ((None, false, x) :: N) (opening A :: X ++ [:: closing A]).
Proof.
case=> sN <-; split; first by rewrite /= sN addn0.
rewrite [spans_of _ _]/= cats0 [zip _ _]/=; set T := zip _ N.
have -> i' X' : reduce ((span_entries i s, (None, false, x)) :: T) i' X' = reduce T i' X' by [].
rewrite [flat _]/= -cat1s reduce_cat [size [:: _]]/= addn1 reduce_cat.
by rewrite (kept_before _ (spans_within _ _ _ _)) (kept_after _ (spans_within _ _ _ _)).
Qed.

(* ---- a chain that is outermost ---- *)

(* every token of a stretch is an entry of some span, or would be one of a span around it *)
Definition cover i g : seq nat := positions (own i g) ++ flatten (map positions (spans_of i g)).

Lemma tokens_covered i g : all (fun q => (q.2 != empty A) ==> (q.1 \in cover i g))
  (zip (iota i (size (flat g))) (flat g)).
Proof.
have widen (P Q : seq nat) (l : seq (nat * cell)) : (forall j, j \in P -> j \in Q) ->
    all (fun q => (q.2 != empty A) ==> (q.1 \in P)) l ->
    all (fun q => (q.2 != empty A) ==> (q.1 \in Q)) l.
  move=> PQ; apply: sub_all => q /implyP h; apply/implyP => /h; exact: PQ.
elim: g i => // [x g IH|s IHs g IH] i.
  rewrite [flat _]/= [iota _ _]/= [zip _ _]/=; apply/andP; split.
    by apply/implyP => /= xn; rewrite /cover /= xn /= inE eqxx.
  apply: widen (IH i.+1) => j; rewrite /cover /= map_cat !mem_cat.
  by case/orP=> ->; rewrite ?orbT.
have -> : zip (iota i (size (flat (Span s g)))) (flat (Span s g)) = [:: (i, opening A)]
    ++ zip (iota i.+1 (size (flat s))) (flat s) ++ [:: (i.+1 + size (flat s), closing A)]
    ++ zip (iota (i + (size (flat s)).+2) (size (flat g))) (flat g).
  by rewrite /= size_cat iotaD zip_cat ?size_iota //= !addnS addSn.
have E j : (j \in cover i (Span s g)) = [|| j == i,
    j \in positions (own (i + (size (flat s)).+2) g),
    j \in positions (span_entries i s), j \in flatten (map positions (spans_of i.+1 s))
    | j \in flatten (map positions (spans_of (i + (size (flat s)).+2) g))].
  rewrite (_ : cover i (Span s g) = (i :: positions (own (i + (size (flat s)).+2) g))
    ++ positions (span_entries i s)
    ++ flatten (map positions (spans_of i.+1 s ++ spans_of (i + (size (flat s)).+2) g))) //.
  by rewrite map_cat flatten_cat mem_cat inE !mem_cat !orbA.
have Es j : (j \in positions (span_entries i s))
    = [|| j == i, j \in positions (own i.+1 s) | j == i.+1 + size (flat s)].
  by rewrite /Enter.span_entries map_cons map_cat inE mem_cat mem_seq1.
rewrite !all_cat !all_seq1; apply/and4P; split.
- by apply/implyP => _; rewrite E eqxx.
- apply: widen (IHs i.+1) => j; rewrite E /cover mem_cat => /orP[h|->]; last by rewrite !orbT.
  by rewrite Es h !orbT.
- by apply/implyP => _; rewrite E Es eqxx !orbT.
apply: widen (IH _) => j; rewrite E /cover mem_cat.
by case/orP=> ->; rewrite !orbT.
Qed.

Lemma positions_ascend j i g e : j < i -> i + size (flat g) <= e ->
  path ltn j (positions (own i g) ++ [:: e]).
Proof.
elim: g j i => //= [|x g IH|s _ g IH] j i ji.
- by rewrite addn0 andbT => /(leq_trans ji).
- rewrite addnS -addSn => ie; case: ifP => _ /=; last by apply: IH ie; apply: leqW.
  by rewrite /position /= ji; apply: IH.
rewrite size_cat /= => ie; rewrite {1}/position /= ji /=; apply: IH.
  by rewrite -[X in X < _]addn0 ltn_add2l.
by apply: leq_trans ie; rewrite !addnS !addSn -!addnA.
Qed.

(* cells that are written in ascending positions, among empty ones *)
Lemma full_written i n (ps : seq nat) (Y : seq cell) : size ps = size Y ->
  all (fun j => i <= j < i + n) ps -> path.sorted ltn ps ->
  full A [seq if find_cell (zip ps Y) j is Some y then y else empty A | j <- iota i n] = full A Y.
Proof.
have ahead k (l : seq nat) Z : all (leq k.+1) l -> find_cell (zip l Z) k = None.
  rewrite /find_cell; elim: l Z => [|a l IH] [|z Z] //= /andP[ka /IH E].
  by rewrite gtn_eqF.
have skip l : full A (empty A :: l) = full A l by rewrite /full /= eqxx.
elim: n i ps Y => [|n IH] i [|p ps] [|y Y] // sz.
- by rewrite addn0 /= leqNgt andNb.
- move=> _ _; have := IH i.+1 [::] [::] erefl isT isT; rewrite /full /= /find_cell /=.
  by rewrite eqxx.
rewrite [all _ _]/= => /andP[/andP[ip pn] all_ps] so; have so' := path_sorted so.
have later : all (leq p.+1) ps by apply: order_path_min so => a b c; apply: ltn_trans.
rewrite [iota _ _]/= map_cons; case: (ltngtP i p) ip => // [ip|E] _.
  rewrite ahead; last by rewrite /= ip; apply: sub_all later => j; apply: ltn_trans.
  rewrite skip; apply: IH => //.
  rewrite /= ip addSnnS pn; apply/allP => j jin; have := allP all_ps _ jin.
  by have /= pj := allP later _ jin; rewrite (ltn_trans ip pj) => /andP[].
subst p; have -> : [seq if find_cell (zip (i :: ps) (y :: Y)) j is Some y' then y' else empty A
    | j <- iota i.+1 n] = [seq if find_cell (zip ps Y) j is Some y' then y' else empty A
    | j <- iota i.+1 n].
  apply/eq_in_map => j; rewrite mem_iota => /andP[pj _]; rewrite /find_cell /=.
  by rewrite (ltn_eqF pj).
have -> : find_cell (zip (i :: ps) (y :: Y)) i = Some y by rewrite /find_cell /= eqxx.
have {}IH : full A [seq if find_cell (zip ps Y) j is Some y' then y' else empty A
    | j <- iota i.+1 n] = full A Y.
  apply: IH => //; first by case: sz.
  apply/allP => j jin; have := allP all_ps _ jin; have := allP later _ jin.
  by rewrite /= addSnnS => -> /andP[].
by rewrite /full /= -/(full A Y) -IH.
Qed.

Lemma one_is_left (X : seq cell) v : full A X = [:: v] ->
  exists l r, X = empties l ++ v :: empties r.
Proof.
have none Y : full A Y = [::] -> Y = empties (size Y).
  by elim: Y => //= y Y IH; case: (y =P empty A) => [->|_] //= /IH {1}->.
elim: X => //= x X IH; case: (x =P empty A) => [->|_] /=.
  by move/IH=> [l [r ->]]; exists l.+1, r.
by case=> -> /none ->; exists 0, (size X).
Qed.

Lemma becomes_value i s w x N l v r : size N = opens s ->
  all (fun n : note => n.1.1 && ~~ n.1.2) N -> v != empty A ->
  try_value x (span_entries i s) = empties l ++ v :: empties r ->
  exists l' r', becomes i (Span s Nil) ((Some w, true, x) :: N) (empties l' ++ v :: empties r').
Proof.
move=> sN known vn Y; rewrite /becomes; set T := zip _ _; set X := reduce T i _.
suff /one_is_left[l' [r' ->]] : full A X = [:: v] by exists l', r'; rewrite /= sN addn0.
have ET : T = (span_entries i s, (Some w, true, x)) :: zip (spans_of i.+1 s) N.
  by rewrite /T [spans_of _ _]/= cats0.
have fin : finished T
    = positions (span_entries i s) ++ flatten (map positions (spans_of i.+1 s)).
  rewrite ET -[LHS]/(positions (span_entries i s) ++ finished (zip (spans_of i.+1 s) N)).
  congr cat; have : size (spans_of i.+1 s) = size N by rewrite size_spans_of.
  rewrite /finished; elim: (spans_of i.+1 s) N known {sN T X ET} => [|S Ss IH] [|n N] //=.
  by case/andP=> /andP[-> _] /IH h [] /h /= ->.
have wri : written_at A G local T
    = zip (positions (span_entries i s)) (try_value x (span_entries i s)).
  rewrite ET -[LHS]/(zip (positions (span_entries i s)) (try_value x (span_entries i s))
    ++ written_at A G local (zip (spans_of i.+1 s) N)) -[RHS]cats0.
  congr cat; have : size (spans_of i.+1 s) = size N by rewrite size_spans_of.
  rewrite /written_at; elim: (spans_of i.+1 s) N known {sN T X ET fin} => [|S Ss IH] [|n N] //=.
  by case/andP=> /andP[_ /negbTE ->] /IH h [] /h.
have sub j : j \in cover i (Span s Nil) -> j \in finished T.
  rewrite fin (_ : cover _ _ = i :: positions (span_entries i s)
    ++ flatten (map positions (spans_of i.+1 s ++ [::]))) // cats0 inE mem_cat.
  by case/orP=> [/eqP ->|//]; rewrite /Enter.span_entries map_cons inE eqxx.
set n := size (flat (Span s Nil)).
have -> : X = [seq if find_cell (zip (positions (span_entries i s))
    (try_value x (span_entries i s))) j is Some y then y else empty A | j <- iota i n].
  rewrite /X /LogarithmicIteration.reduce -/n wri.
  have := tokens_covered i (Span s Nil); rewrite -/n.
  have : size (iota i n) = size (flat (Span s Nil)) by rewrite size_iota.
  elim: (iota i n) (flat _) => [|j js IH] [|y Ys] //= [/IH {}IH] /andP[h /IH ->]; congr cons.
  case: find_cell => //; case: ifP => // /negbT nin; apply/eqP; apply/contraT => yn.
  by move: nin; rewrite sub //; apply: (implyP h).
rewrite full_written.
- rewrite Y /full filter_cat /= vn -!/(full A (empties _)) !full_empties //.
- by rewrite /SpanWords.try_value reducedE !size_map.
- have /andP[h _] : within i n (zip (spans_of i (Span s Nil)) [:: (Some w, true, x)]).
    exact: spans_within.
  by rewrite all_map; exact: h.
by rewrite /Enter.span_entries map_cons map_cat; apply: positions_ascend.
Qed.
End Becomes.
