(* The entries of all spans, exactformer/model/speculate.py: every token is an entry of its own
   span, every inner span a hole in the span around it. Sorted by depth, the entries of a span stand
   side by side, and a span's number is that of its `(` in the order of the text.

   On a sequence with matching parentheses (a forest) that gives the spans in the order of the text,
   each with its own tokens and holes. Spans that touch do no harm here: `separate` is not
   needed. *)
From mathcomp Require Import all_ssreflect.
From Coq Require Import ZArith Lia.
From Exactformer Require Import Circuit Forests.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section Enter.
Variables (cell : eqType) (empty opening closing : cell) (gate : cell -> Z).
Implicit Types (x : cell) (X : seq cell) (g s : forest cell).

(* ---- definitions ---- *)

(* position, whether it is a hole, token *)
Notation entry := (nat * bool * cell)%type.
(* depth, how many `(` there are up to here, entry *)
Notation item := (Z * nat * entry)%type.

(* from position i on, with c times `(` before it; A are the depth counts *)
Fixpoint items (i c : nat) (X : seq cell) (A : seq (Z * Z)) : seq item :=
  match X, A with
  | x :: X, a :: A =>
      let own := Z.max a.1 a.2 in let around := Z.min a.1 a.2 in let c := c + (x == opening) in
      (if (x != empty) && (0 <? own)%Z then [:: (own, c, (i, false, x))] else [::])
      ++ (if (x == opening) && (0 <? around)%Z then [:: (around, c, (i, true, x))] else [::])
      ++ items i.+1 c X A
  | _, _ => [::]
  end.

Definition at_depth (d : nat) (l : seq item) : seq item :=
  [seq t <- l | (t.1.1 =? Z.of_nat d)%Z].

Arguments at_depth : simpl never.

(* each `(` that is no hole starts a span; `id` is the number of the one before *)
Fixpoint numbered (id : nat) (l : seq item) : seq (nat * entry) :=
  if l is (_, c, (i, hole, x)) :: l then
    let id := if ~~ hole && (x == opening) then c else id in (id, (i, hole, x)) :: numbered id l
  else [::].

(* sorted by sequence, depth (which is no more than the length) and position; then numbered *)
Definition sorted (n : nat) (l : seq item) : seq item := flatten [seq at_depth d l | d <- iota 1 n].
Fixpoint sorted_items (i c : nat) (batch : seq (seq cell)) : seq item :=
  if batch is X :: batch then
    sorted (size X) (items i c X (depth_counts (map gate X)))
    ++ sorted_items (i + size X) (c + count_mem opening X) batch
  else [::].
Definition enter (batch : seq (seq cell)) : seq (nat * entry) :=
  numbered 0 (sorted_items 0 0 batch).

Definition of_span (E : seq (nat * entry)) (j : nat) : seq entry := [seq t.2 | t <- E & t.1 == j].

Arguments of_span : simpl never.

(* ---- what it should be, on forests ---- *)

Notation flat := (flat opening closing).

(* the entries of what is directly in a span; g begins at position i *)
Fixpoint own (i : nat) g : seq entry :=
  match g with
  | Nil => [::]
  | Cell x g => (if x != empty then [:: (i, false, x)] else [::]) ++ own i.+1 g
  | Span s g => (i, true, opening) :: own (i + (size (flat s)).+2) g
  end.
Definition span_entries (i : nat) s : seq entry :=
  (i, false, opening) :: own i.+1 s ++ [:: (i.+1 + size (flat s), false, closing)].
Fixpoint spans_of (i : nat) g : seq (seq entry) :=
  match g with
  | Nil => [::]
  | Cell x g => spans_of i.+1 g
  | Span s g => span_entries i s :: spans_of i.+1 s ++ spans_of (i + (size (flat s)).+2) g
  end.
Fixpoint opens g : nat :=
  match g with Nil => 0 | Cell _ g => opens g | Span s g => (opens s + opens g).+1 end.

Lemma size_spans_of i g : size (spans_of i g) = opens g.
Proof. by elim: g i => //= s IHs g IH i; rewrite size_cat IHs IH. Qed.

(* no parenthesis among the cells *)
Fixpoint calm g : bool :=
  match g with
  | Nil => true
  | Cell x g => (gate x =? 0)%Z && calm g
  | Span s g => calm s && calm g
  end.

Hypotheses (gate_opening : gate opening = 1%Z) (gate_closing : gate closing = (-1)%Z)
           (gate_empty : gate empty = 0%Z).

(* ---- depth counts ---- *)

Fixpoint counts (a : Z) X : seq (Z * Z) :=
  if X is x :: X then (a + gate x, a)%Z :: counts (a + gate x) X else [::].
Fixpoint sum_gate X : Z := if X is x :: X then (gate x + sum_gate X)%Z else 0%Z.

Lemma sum_gate_cat X Y : sum_gate (X ++ Y) = (sum_gate X + sum_gate Y)%Z.
Proof. by elim: X => //= x X ->; lia. Qed.
Lemma sum_gate_flat g : calm g -> sum_gate (flat g) = 0%Z.
Proof.
elim: g => //= [x g IH /andP[/Z.eqb_eq -> /IH ->]//|s IHs g IH /andP[/IHs hs /IH hg]].
by rewrite sum_gate_cat /= hs hg gate_opening gate_closing.
Qed.

Lemma depth_counts_are_counts X : sum_gate X = 0%Z -> depth_counts (map gate X) = counts 0 X.
Proof.
have last_cumsum a Y : last a (scanl Z.add a (map gate Y)) = (a + sum_gate Y)%Z.
  by elim: Y a => [|y Y IH] a /=; rewrite ?IH; lia.
move=> h; rewrite /depth_counts /cumsum last_cumsum h Z.add_0_l.
suff E a : [seq (p.1, (p.1 - p.2 - 0)%Z) | p <- zip (scanl Z.add a (map gate X)) (map gate X)]
  = counts a X by apply: E.
by elim: X a {h} => //= x X IH a; rewrite IH; congr ((_, _) :: _); lia.
Qed.

(* ---- items of a forest: within k spans, after c times `(` ---- *)

Fixpoint forest_items (i c k : nat) g : seq item :=
  let K := Z.of_nat k in
  match g with
  | Nil => [::]
  | Cell x g => (if (x != empty) && (0 < k) then [:: (K, c, (i, false, x))] else [::])
                ++ forest_items i.+1 c k g
  | Span s g =>
      (Z.of_nat k.+1, c.+1, (i, false, opening))
      :: (if 0 < k then [:: (K, c.+1, (i, true, opening))] else [::])
      ++ forest_items i.+1 c.+1 k.+1 s
      ++ (Z.of_nat k.+1, c.+1 + opens s, (i.+1 + size (flat s), false, closing))
      :: forest_items (i + (size (flat s)).+2) (c.+1 + opens s) k g
  end.

Let opening_not x : (gate x =? 0)%Z -> (x == opening) = false.
Proof. by move/Z.eqb_eq=> h; apply/eqP => E; move: h; rewrite E gate_opening. Qed.
Let positive k : (0 <? Z.of_nat k)%Z = (0 < k).
Proof. by case: k. Qed.

Lemma items_forest i c k g Y : calm g ->
  items i c (flat g ++ Y) (counts (Z.of_nat k) (flat g ++ Y))
  = forest_items i c k g
    ++ items (i + size (flat g)) (c + opens g) Y (counts (Z.of_nat k) Y).
Proof.
elim: g i c k Y => [|x g IH|s IHs g IH] i c k Y; first by rewrite /= !addn0.
  case/andP=> x0 cg; rewrite /= opening_not //=; move/Z.eqb_eq: x0 => ->.
  by rewrite Z.add_0_r Z.max_id positive addn0 IH // addSnnS catA.
case/andP=> cs cg; have on : opening != empty.
  by apply/eqP => E; move: gate_opening; rewrite E gate_empty.
have cn : closing != empty by apply/eqP => E; move: gate_closing; rewrite E gate_empty.
have co : (closing == opening) = false.
  by apply/eqP => E; move: gate_closing; rewrite E gate_opening.
have up : (Z.of_nat k + 1 = Z.of_nat k.+1)%Z by lia.
have down : (Z.of_nat k.+1 + -1 = Z.of_nat k)%Z by lia.
rewrite [flat _]/= [LHS]/= gate_opening eqxx on /= addn1 up.
have -> : Z.max (Z.of_nat k.+1) (Z.of_nat k) = Z.of_nat k.+1 by lia.
have -> : Z.min (Z.of_nat k.+1) (Z.of_nat k) = Z.of_nat k by lia.
rewrite !positive /= -catA /= IHs //= gate_closing down co cn addn0.
have -> : Z.max (Z.of_nat k) (Z.of_nat k.+1) = Z.of_nat k.+1 by lia.
rewrite positive /= IH //; congr cons; rewrite -!catA; congr (_ ++ (_ ++ _ :: _)).
rewrite size_cat /= addnS addSn -!addnA !addnS.
by rewrite !addSn -!addnA.
Qed.

(* ---- sorted by depth and numbered ---- *)

Fixpoint last_id (id : nat) (l : seq item) : nat :=
  if l is (_, c, (_, hole, x)) :: l
  then last_id (if ~~ hole && (x == opening) then c else id) l else id.

Lemma numbered_cat id l l' : numbered id (l ++ l') = numbered id l ++ numbered (last_id id l) l'.
Proof. by elim: l id => //= -[[d c] [[i hole] x]] l IH id /=; rewrite IH. Qed.

Let at_depth_cat d l l' : at_depth d (l ++ l') = at_depth d l ++ at_depth d l'.
Proof. exact: filter_cat. Qed.
Let at_depth_cons d k c t l : at_depth d ((Z.of_nat k, c, t) :: l)
  = if k == d then (Z.of_nat k, c, t) :: at_depth d l else at_depth d l.
Proof.
rewrite /at_depth /=; have -> // : (Z.of_nat k =? Z.of_nat d)%Z = (k == d).
by apply/idP/eqP => [/Z.eqb_eq/Nat2Z.inj|->]; rewrite ?Z.eqb_refl.
Qed.

(* what is within k spans is no less deep *)
Lemma nothing_shallow d i c k g : d < k -> at_depth d (forest_items i c k g) = [::].
Proof.
elim: g i c k => //= [x g IH|s IHs g IH] i c k dk.
  by case: ifP => _ /=; rewrite ?at_depth_cons ?(gtn_eqF dk) IH.
rewrite at_depth_cons (gtn_eqF (leqW dk)) !at_depth_cat IHs ?(leqW dk) // at_depth_cons.
rewrite (gtn_eqF (leqW dk)) IH // cats0; case: ifP => // _.
by rewrite at_depth_cons (gtn_eqF dk).
Qed.

(* what is directly within k spans belongs to the span that began last *)
Lemma directly_within id i c k g : 0 < k -> calm g ->
  let l := at_depth k (forest_items i c k g) in
  numbered id l = map (pair id) (own i g) /\ last_id id l = id.
Proof.
move=> k0; elim: g i c => //= [x g IH|s _ g IH] i c.
  case/andP=> x0 cg; have [E1 E2] := IH i.+1 c cg; rewrite k0 andbT.
  case: ifP => _ //=; rewrite at_depth_cons eqxx /= opening_not //=.
  by rewrite E1 E2.
case/andP=> cs cg; rewrite k0 at_depth_cons (gtn_eqF (ltnSn k)) at_depth_cat /= at_depth_cons eqxx.
rewrite at_depth_cat nothing_shallow //= at_depth_cons (gtn_eqF (ltnSn k)).
by have [-> ->] := IH (i + (size (flat s)).+2) (c.+1 + opens s) cg.
Qed.

(* the entries of the spans at depth d *)
Fixpoint deep (d i c k : nat) g : seq (nat * entry) :=
  match g with
  | Nil => [::]
  | Cell x g => deep d i.+1 c k g
  | Span s g => (if d == k.+1 then map (pair c.+1) (span_entries i s) else deep d i.+1 c.+1 k.+1 s)
                ++ deep d (i + (size (flat s)).+2) (c.+1 + opens s) k g
  end.

Lemma numbered_deep d id i c k g : k < d -> calm g ->
  numbered id (at_depth d (forest_items i c k g)) = deep d i c k g.
Proof.
elim: g id i c k => //= [x g IH|s IHs g IH] id i c k kd.
  case/andP=> _ cg; rewrite at_depth_cat numbered_cat IH //.
  by case: ifP => _ //=; rewrite at_depth_cons (ltn_eqF kd).
case/andP=> cs cg; have co : (closing == opening) = false.
  by apply/eqP => E; move: gate_closing; rewrite E gate_opening.
have skip l :
    at_depth d ((if 0 < k then [:: (Z.of_nat k, c.+1, (i, true, opening))] else [::]) ++ l)
    = at_depth d l.
  by case: ifP => _ //=; rewrite at_depth_cons (ltn_eqF kd).
rewrite at_depth_cons skip at_depth_cat at_depth_cons; case: (d =P k.+1) => [E|/eqP ne].
  subst d; rewrite eqxx /= eqxx numbered_cat.
  have [-> ->] := directly_within c.+1 i.+1 c.+1 (ltn0Sn k) cs.
  by rewrite /= co IH // map_cat -catA.
have {}kd : k.+1 < d by rewrite ltn_neqAle eq_sym ne.
by rewrite eq_sym (negbTE ne) numbered_cat IHs // IH // ltnW.
Qed.

Lemma numbered_sorted id n i c g : calm g ->
  numbered id (sorted n (forest_items i c 0 g)) = flatten [seq deep d i c 0 g | d <- iota 1 n].
Proof.
move=> cg; rewrite /sorted.
have : all (leq 1) (iota 1 n) by apply/allP => d; rewrite mem_iota; case/andP.
elim: (iota 1 n) id => //= d l IH id /andP[d0 /IH E].
by rewrite numbered_cat E numbered_deep.
Qed.

(* ---- span by span ---- *)

Lemma of_span_cat E E' j : of_span (E ++ E') j = of_span E j ++ of_span E' j.
Proof. by rewrite /of_span filter_cat map_cat. Qed.

Let of_span_mine j (l : seq entry) : of_span (map (pair j) l) j = l.
Proof. by rewrite /of_span; elim: l => //= t l; rewrite eqxx /= => ->. Qed.
Let of_span_other j j' (l : seq entry) : j' != j -> of_span (map (pair j') l) j = [::].
Proof. by move=> /negbTE ne; rewrite /of_span; elim: l => //= t l; rewrite ne. Qed.

Lemma deep_outside d i c k g j : (j <= c) || (c + opens g < j) -> of_span (deep d i c k g) j = [::].
Proof.
elim: g i c k => //= [x g IH|s IHs g IH] i c k out; first exact: IH.
rewrite of_span_cat IH ?cats0; last first.
  by move: out; rewrite -!plusE => /orP[/leP|/ltP] h; apply/orP; [left; apply/leP|right; apply/ltP];
    lia.
case: ifP => _; last first.
  by apply: IHs; move: out; rewrite -!plusE => /orP[/leP|/ltP] h; apply/orP;
    [left; apply/leP|right; apply/ltP]; lia.
apply: (@of_span_other j c.+1 (span_entries i s)); apply/eqP => E; move: out.
rewrite -{}E -!plusE.
by case/orP=> [/leP|/ltP]; lia.
Qed.

Lemma deep_inside n i c k g j : levels g <= n -> j < opens g ->
  of_span (flatten [seq deep d i c k g | d <- iota k.+1 n]) (c + j).+1 = nth [::] (spans_of i g) j.
Proof.
have pick (h : nat -> seq (nat * entry)) m l :
    of_span (flatten (map h l)) m = flatten [seq of_span (h d) m | d <- l].
  by elim: l => //= d l <-; rewrite of_span_cat.
elim: g n i c k j => // [x g IH|s IHs g IH] n i c k j; first exact: IH.
rewrite [levels _]/= geq_max [opens _]/= => /andP[ls lg]; case: n ls lg => // n ls lg jo.
pose mine d := if d == k.+1 then map (pair c.+1) (span_entries i s) else deep d i.+1 c.+1 k.+1 s.
pose others d := deep d (i + (size (flat s)).+2) (c.+1 + opens s) k g.
rewrite -[[seq _ | d <- _]]/[seq mine d ++ others d | d <- iota k.+1 n.+1] [spans_of _ _]/=.
have split_ m : of_span (flatten [seq mine d ++ others d | d <- iota k.+1 n.+1]) m
    = flatten [seq of_span (mine d) m ++ of_span (others d) m | d <- iota k.+1 n.+1].
  by rewrite pick; congr flatten; apply: eq_map => d; rewrite of_span_cat.
have inner m : flatten [seq of_span (mine d) m | d <- iota k.+1 n.+1]
    = of_span (map (pair c.+1) (span_entries i s)) m
      ++ of_span (flatten [seq deep d i.+1 c.+1 k.+1 s | d <- iota k.+2 n]) m.
  rewrite [iota _ _]/= map_cons {1}/mine eqxx pick; congr (_ ++ flatten _); apply/eq_in_map => d.
  by rewrite mem_iota /mine => /andP[/gtn_eqF ->].
have none m (h : nat -> seq (nat * entry)) l : (forall d, of_span (h d) m = [::]) ->
    of_span (flatten (map h l)) m = [::].
  by move=> h0; elim: l => //= d l; rewrite of_span_cat h0.
rewrite split_; case: (leqP j (opens s)) => js.
  have out d : of_span (others d) (c + j).+1 = [::].
    apply: deep_outside; apply/orP; left; apply/leP; move/leP: js; rewrite -!plusE; lia.
  have -> : [seq of_span (mine d) (c + j).+1 ++ of_span (others d) (c + j).+1 | d <- iota k.+1 n.+1]
      = [seq of_span (mine d) (c + j).+1 | d <- iota k.+1 n.+1].
    by apply: eq_map => d; rewrite out cats0.
  rewrite inner; case: j js {jo out} => [|j] js.
    by rewrite addn0 of_span_mine none ?cats0 // => d; apply: deep_outside; rewrite leqnn.
  rewrite of_span_other; last by rewrite eqSS; apply/eqP; rewrite -plusE; lia.
  by rewrite /= addnS -addSn IHs // nth_cat size_spans_of js.
have out d : of_span (mine d) (c + j).+1 = [::].
  rewrite /mine; case: ifP => _.
    by apply: of_span_other; apply/eqP; move/ltP: js; rewrite -plusE; lia.
  by apply: deep_outside; apply/orP; right; apply/ltP; move/ltP: js; rewrite -!plusE; lia.
have -> : [seq of_span (mine d) (c + j).+1 ++ of_span (others d) (c + j).+1 | d <- iota k.+1 n.+1]
    = [seq of_span (others d) (c + j).+1 | d <- iota k.+1 n.+1].
  by apply: eq_map => d; rewrite out.
have Ej : (c + j).+1 = (c.+1 + opens s + (j.-1 - opens s)).+1.
  by move/ltP: js; rewrite -!plusE -!minusE; lia.
rewrite -pick Ej IH //; last first.
  by apply/ltP; move/ltP: js; move/ltP: jo; rewrite -!plusE -!minusE; lia.
case: j js {jo out Ej split_} => //= j js.
by rewrite nth_cat size_spans_of ltnNge -ltnS js.
Qed.

(* ---- a batch: its sequences one after the other ---- *)

Lemma spans_of_join i g h : spans_of i (join g h) = spans_of i g ++ spans_of (i + size (flat g)) h.
Proof.
elim: g i => //= [|x g IH|s _ g IH] i; first by rewrite addn0.
  by rewrite IH addSnnS.
by rewrite IH -catA size_cat /= !addnS !addSn -!addnA.
Qed.
Lemma opens_join g h : opens (join g h) = opens g + opens h.
Proof. by elim: g => //= s _ g ->; rewrite addSn addnA. Qed.

Lemma count_opening g : calm g -> count_mem opening (flat g) = opens g.
Proof.
have co : (closing == opening) = false.
  by apply/eqP => E; move: gate_closing; rewrite E gate_opening.
elim: g => //= [x g IH /andP[x0 /IH ->]|s IHs g IH /andP[/IHs hs /IH hg]].
  by rewrite opening_not.
by rewrite eqxx count_cat /= co hs hg.
Qed.

Lemma levels_le_size g : levels g <= size (flat g).
Proof. by rewrite -count_predT; apply: levels_le_opening. Qed.

Let deep_all (i c : nat) (gs : seq (forest cell)) : seq (nat * entry) :=
  (fix go i c gs := if gs is g :: gs then
     flatten [seq deep d i c 0 g | d <- iota 1 (size (flat g))]
     ++ go (i + size (flat g)) (c + opens g) gs
   else [::]) i c gs.

Lemma enter_deep id i c gs : all calm gs ->
  numbered id (sorted_items i c (map flat gs)) = deep_all i c gs.
Proof.
elim: gs id i c => //= g gs IH id i c /andP[cg cgs].
rewrite numbered_cat depth_counts_are_counts ?sum_gate_flat //.
have := items_forest i c 0 [::] cg; rewrite cats0 /= cats0 => ->.
by rewrite numbered_sorted // IH // count_opening.
Qed.

Lemma of_span_deep_all i c gs j : j < opens (joined gs Nil) ->
  of_span (deep_all i c gs) (c + j).+1 = nth [::] (spans_of i (joined gs Nil)) j.
Proof.
have pick (h : nat -> seq (nat * entry)) m l : (forall d, of_span (h d) m = [::]) ->
    of_span (flatten (map h l)) m = [::].
  by move=> h0; elim: l => //= d l; rewrite of_span_cat h0.
have before_ i' c' gs' m : m <= c' -> of_span (deep_all i' c' gs') m = [::].
  elim: gs' i' c' => //= g gs' IHg i' c' le; rewrite of_span_cat IHg.
    by rewrite cats0; apply: pick => d; apply: deep_outside; rewrite le.
  exact: leq_trans le (leq_addr _ _).
elim: gs i c j => //= g gs IH i c j; rewrite opens_join spans_of_join nth_cat size_spans_of => jo.
rewrite of_span_cat; case: ltnP => jg.
  by rewrite deep_inside ?levels_le_size // before_ ?cats0 // -addnS leq_add2l.
rewrite pick => [|d]; last by apply: deep_outside; rewrite orbC ltnS leq_add2l jg.
by rewrite /= -(subnKC jg) addnA IH ?addKn // -(ltn_add2l (opens g)) subnKC.
Qed.

(* The entries with number j are those of the j-th span in the order of the text. *)
Theorem enter_gives_the_spans gs : all calm gs ->
  [seq of_span (enter (map flat gs)) j | j <- iota 1 (opens (joined gs Nil))]
  = spans_of 0 (joined gs Nil).
Proof.
move=> cgs; rewrite /enter enter_deep //; apply: (@eq_from_nth _ [::]).
  by rewrite size_map size_iota size_spans_of.
move=> j; rewrite size_map size_iota => jo.
by rewrite (nth_map 0) ?size_iota // nth_iota // -(of_span_deep_all 0 0 jo).
Qed.
End Enter.
