(* T6: the logarithmic layer leaves the value of each expression of a batch in one position of it
   and nothing elsewhere, after as many iterations as its Horton-Strahler number is and not before;
   if gates and local map are right, as T2 says of checked weights. *)
From mathcomp Require Import all_ssreflect.
From Coq Require Import ZArith Lia.
From Exactformer Require Import Circuit Ranks Forests GatedResidual Expressions PaddedExpressions.
From Exactformer Require Import NextState GlobalEvaluation Strahler Speculate Scan SpansInOrder.
From Exactformer Require Import Enter SpanWords LogarithmicIteration ChainReduction.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section Evaluation.
Variables (L : language) (cell : eqType) (A : alphabet L cell) (G : gates cell).
Variables (local : cell -> seq (cell * Z) -> cell) (value_of : cell -> option (value L)).
Hypotheses (RG : right_gates A G) (RL : right_local A G local)
           (value_ofK : forall v, value_of (of_value A v) = Some v).
Notation empties n := (nseq n (empty A)).
Notation flat := (flat (opening A) (closing A)).
Notation spans_of := (spans_of (empty A) (opening A) (closing A)).
Notation becomes := (becomes A G local).
Notation strip := (@strip L).
Notation note := (option (value L) * bool * option (value L))%type.
Implicit Types (e : expr L) (es : seq (expr L)) (p : padded L) (r : option (value L)).

(* ---- the notes of all spans of an expression; r is what the span after it is worth ---- *)

Definition notes_of e r : seq note :=
  let u := map (@worth L) (spans e) in zip (zip u (outermost_chains false e)) (after u r).
Definition notes_all es r : seq note :=
  let u := map (@worth L) (all_spans es) in
  zip (zip u (flatten (map (outermost_chains false) es))) (after u r).

Lemma notes_all_cons e es r :
  notes_all (e :: es) r = notes_of e (head r (map (@worth L) (all_spans es))) ++ notes_all es r.
Proof.
rewrite /notes_all /notes_of all_spans_cons map_cat after_cat [flatten _]/= !zip_cat //.
all: by rewrite ?size_zip ?size_after ?size_map ?size_outermost_chains ?minnn.
Qed.

Lemma notes_all_cat es es' r :
  notes_all (es ++ es') r
  = notes_all es (head r (map (@worth L) (all_spans es'))) ++ notes_all es' r.
Proof.
elim: es => // e es IH; rewrite cat_cons !notes_all_cons IH catA; congr ((notes_of _ _ ++ _) ++ _).
rewrite /all_spans map_cat flatten_cat map_cat.
by case: (map (@worth L) (flatten (map (@spans L) es))).
Qed.

Lemma notes_of_node o a r : let e := Node o a in let u := map (@worth L) (all_spans a) in
  notes_of e r = (worth e, chain e, head r u)
    :: zip (zip u (flatten (map (outermost_chains (chain e)) a))) (after u r).
Proof.
move=> e u; rewrite /notes_of [spans _]/= map_cons after_cons.
by rewrite [outermost_chains _ _]/= andbT.
Qed.

(* inside a chain everything is known and nothing is outermost *)
Lemma inside_a_chain es r : all (@chain L) es -> let u := map (@worth L) (all_spans es) in
  let N := zip (zip u (flatten (map (outermost_chains true) es))) (after u r) in
  size N = size (all_spans es) /\ all (fun n : note => n.1.1 && ~~ n.1.2) N.
Proof.
have marks e : outermost_chains true e = nseq (size (spans e)) false.
  elim/expr_induction: e => //= o a IH; rewrite andbF; congr cons.
  by elim: a IH => //= e a IHa [-> /IHa ->]; rewrite size_cat nseqD.
have chains e : chain e -> all (@chain L) (spans e).
  elim/expr_induction: e => //= o a IH; case/andP=> -> ca; rewrite ca /=.
  by elim: a IH ca => //= e a IHa [h /IHa {}IHa] /andP[/h h1 /IHa]; rewrite all_cat h1.
move=> ces u N; have cs : all (@chain L) (all_spans es).
  by elim: es ces {u N} => // e es IH /andP[/chains ce /IH]; rewrite all_spans_cons all_cat ce.
rewrite {}/N; have -> : flatten (map (outermost_chains true) es) = nseq (size (all_spans es)) false.
  elim: es {ces u cs} => //= e es ->; by rewrite marks all_spans_cons size_cat nseqD.
have sa : size (after u r) = size (all_spans es) by rewrite size_after size_map.
split; first by rewrite !size_zip size_nseq sa size_map !minnn.
rewrite {}/u in sa *; move: (after _ r) sa.
elim: (all_spans es) cs => [|e l IH] /=; first by move=> _ [|y ys].
by case/andP=> ce /IH {}IH [|y ys] //= [/IH ->]; rewrite /worth ce.
Qed.

(* ---- an outermost chain holds a word, once what comes after it is put into its hole ---- *)

Lemma chain_filled es r : (holes es <= 1) && all (@chain L) es ->
  let x := head r (map (@worth L) (all_spans es)) in
  [seq if y is Some v then Some v else x | y <- map (@seen L) es] = map Some (map (@eval L) es).
Proof.
case/andP=> h ces x; case E: (holes es) h => [|[|n]] // _.
  rewrite {}/x; move: (head _ _) => x; elim: es E {ces} => //= -[v|o b] es IH //=.
  by rewrite /holes /= add0n => /IH ->.
have [e [se Es fE ce]] := one_hole E; rewrite /x Es; rewrite ce in ces.
have -> : head r (map (@worth L) (spans e)) = Some (eval e).
  case: e se ces {Es fE ce} => // o a _ ces.
  by rewrite [spans _]/= map_cons [head _ _]/= /worth ces.
by rewrite -fE /fill; elim: (map _ es) => //= -[v|] l ->.
Qed.

(* ---- stretches of a state ---- *)

Lemma opens_forest p : opens (forest_of A p) = size (spans (strip p)).
Proof.
rewrite -(size_spans_of (empty A) (opening A) (closing A) 0) -(size_map (map (@face cell))).
rewrite (spans_are_words RG) size_map; elim/padded_induction: p => //= o a IH; congr _.+1.
by elim: a IH => //= q a IHa [h /IHa E]; rewrite pmap_cat !size_cat h E.
Qed.

Let joined_join (gs : seq (forest cell)) h : joined gs h = join (joined gs Nil) h.
Proof.
have assoc (g g' : forest cell) : join (join g g') h = join g (join g' h).
  by elim: g => //= [x g ->|s _ g ->].
by elim: gs => //= g gs ->; rewrite assoc.
Qed.

Let take_parts (T T' : Type) k (a : seq T) (b b' : seq T') : size b = size (take k a) ->
  size b' = size (drop k a) -> take k (b ++ b') = b /\ drop k (b ++ b') = b'.
Proof.
case: (leqP k (size a)) => le.
  by rewrite size_takel // => <- _; rewrite take_size_cat ?drop_size_cat.
rewrite (take_oversize (ltnW le)) (drop_oversize (ltnW le)) => sb /size0nil ->.
by rewrite cats0 take_oversize ?drop_oversize // sb ltnW.
Qed.

Lemma next_stretch p i r : pwf p -> exists p',
  becomes i (forest_of A p) (notes_of (strip p) r) (playout A p') /\ strip p' = next (strip p).
Proof.
elim/padded_induction: p i r => [l v t|o a IH] i r.
  by move=> _; exists (PLeaf l v t); split=> //; rewrite playout_leaf -[X in becomes _ _ _ X]cats0;
    apply: becomes_cells; apply: becomes_nil.
case/andP=> tk wa; have list_ b i' r' : all (@pwf L) b ->
    foldr (fun p => and (forall i r, pwf p -> exists p',
      becomes i (forest_of A p) (notes_of (strip p) r) (playout A p')
      /\ strip p' = next (strip p))) True b ->
    exists b', becomes i' (joined (map (forest_of A) b) Nil) (notes_all (map strip b) r')
      (flatten (map (playout A) b')) /\ map strip b' = map (@next L) (map strip b).
  elim: b i' r' => [|q b IHb] i' r' /=; first by exists [::].
  case/andP=> wq wb [hq hb]; rewrite notes_all_cons.
  have [q' [Bq nq]] := hq i' (head r' (map (@worth L) (all_spans (map strip b)))) wq.
  have [b' [Bb nb]] := IHb (i' + size (flat (forest_of A q))) r' wb hb.
  by exists (q' :: b'); rewrite /= nq nb; split=> //; apply: becomes_join.
set k := before L (size a); set es := map strip a.
have -> : forest_of A (PNode o a) = join (Span (join (joined (map (forest_of A) (take k a)) Nil)
    (Cell (of_operator A o) (joined (map (forest_of A) (drop k a)) Nil))) Nil)
    (cells (empties (tail L)) Nil) by rewrite -joined_join !map_take !map_drop.
rewrite -[notes_of _ _]cats0 -/es [strip _]/= -/es.
set s := join (joined _ Nil) _.
have tail_ j : becomes j (cells (empties (tail L)) Nil) [::] (empties (tail L)).
  by rewrite -[X in becomes _ _ _ X]cats0; apply: becomes_cells; apply: becomes_nil.
rewrite notes_of_node next_node; case c: (chain (Node o es)).
  have /andP[h1 ces] := c; have [sN known] := inside_a_chain r ces.
  have faces : map (@face cell) (span_entries (empty A) (opening A) (closing A) i s)
      = open_word A (o, map (@seen L) es).
    by rewrite /s -joined_join !map_take !map_drop; apply: (face_span RG i o a).
  have tk' : takes o (size (map (@eval L) es)) by rewrite !size_map.
  have [l [t Y]] := local_case RL tk'.
  rewrite -(put_is_a_word faces (chain_filled r c)) in Y.
  have sN' : size (zip (zip (map (@worth L) (all_spans es))
      (flatten (map (outermost_chains true) es))) (after (map (@worth L) (all_spans es)) r))
      = opens s.
    rewrite sN; have := opens_forest (PNode o a); rewrite [spans _]/= [size _]/= -/(all_spans es).
    have -> : forest_of A (PNode o a) = join (Span s Nil) (cells (empties (tail L)) Nil).
      by rewrite /s -joined_join !map_take !map_drop.
    rewrite opens_join [opens (Span _ _)]/= addn0.
    have -> : opens (cells (empties (tail L)) (@Nil cell)) = 0 by elim: (tail L).
    by rewrite addn0 => -[].
  have [l' [t' B]] := becomes_value (eval (Node o es)) sN' known (value_not_empty RG _) Y.
  exists (PLeaf l' (eval (Node o es)) (t' + tail L)); split=> //.
  rewrite playout_leaf nseqD -cat_cons catA; apply: becomes_join (tail_ _).
  by rewrite /worth c.
have w12 : all (@pwf L) (take k a) && all (@pwf L) (drop k a) by rewrite -all_cat cat_take_drop.
case/andP: w12 => w1 w2; have [i1 i2] : foldr (fun p => and (forall i r, pwf p -> exists p',
      becomes i (forest_of A p) (notes_of (strip p) r) (playout A p')
      /\ strip p' = next (strip p))) True (take k a) /\ foldr (fun p => and (forall i r, pwf p ->
      exists p', becomes i (forest_of A p) (notes_of (strip p) r) (playout A p')
      /\ strip p' = next (strip p))) True (drop k a).
  by rewrite -{1}(cat_take_drop k a) in IH; elim: (take k a) IH => //= q b IHb [hq /IHb []].
have [b1 [B1 n1]] :=
  list_ _ i.+1 (head r (map (@worth L) (all_spans (map strip (drop k a))))) w1 i1.
have [b2 [B2 n2]] :=
  list_ _ (i.+1 + size (flat (joined (map (forest_of A) (take k a)) Nil))).+1 r w2 i2.
have s1 : size b1 = size (take k a) by rewrite -(size_map strip) n1 !size_map.
have s2 : size b2 = size (drop k a) by rewrite -(size_map strip) n2 !size_map.
have [t1 t2] := take_parts s1 s2.
exists (PNode o (b1 ++ b2)); split; last first.
  by rewrite [strip _]/= map_cat n1 n2 -!map_cat cat_take_drop.
have sb : size (b1 ++ b2) = size a by rewrite size_cat s1 s2 -size_cat cat_take_drop.
have -> : playout A (PNode o (b1 ++ b2)) = (opening A :: (flatten (map (playout A) b1)
    ++ of_operator A o :: flatten (map (playout A) b2)) ++ [:: closing A]) ++ empties (tail L).
  rewrite /playout [forest_of _ _]/= sb -/k -!map_take -!map_drop t1 t2 /= flat_joined /=.
  by rewrite flat_joined /= flat_cells !cats0 -!map_comp -[in RHS]catA.
apply: becomes_join (tail_ _); rewrite /worth c; apply: becomes_waiting.
rewrite -/(notes_all es r) /es -{1}(cat_take_drop k a) map_cat notes_all_cat.
by apply: becomes_join => //; apply: becomes_cell.
Qed.

(* ---- a batch of states ---- *)

(* a padded expression with empty positions after it *)
Notation state q := (state_of A q.1 q.2).
Notation tree q := (strip q.1).
Notation iterate_log := (iterate_log A G local value_of).
Implicit Types qs : seq (padded L * nat).
Let forest_ (q : padded L * nat) := forest_of_state A q.1 q.2.

Let calm_join g h : calm (gate G) (join g h) = calm (gate G) g && calm (gate G) h.
Proof. by elim: g => //= [x g ->|s _ g ->]; rewrite andbA. Qed.
Let calm_joined gs h : calm (gate G) (joined gs h) = all (calm (gate G)) gs && calm (gate G) h.
Proof. by elim: gs => //= g gs IH; rewrite calm_join IH andbA. Qed.
Let calm_cells t g : all (fun x => (gate G x =? 0)%Z) t -> calm (gate G) g ->
  calm (gate G) (cells t g).
Proof. by elim: t => //= x t IH /andP[-> /IH h] /h ->. Qed.

Lemma calm_forest p : calm (gate G) (forest_of A p).
Proof.
elim/padded_induction: p => [l v r|o a IH] /=.
  by apply: calm_cells; rewrite // all_cat /= !(gate_empties RG) (gate_value RG).
rewrite (calm_cells (gate_empties RG _)) // andbT calm_joined /= calm_joined /=.
rewrite (gate_operator RG) /=.
have : all (calm (gate G)) (map (forest_of A) a) by elim: a IH => //= q a IHa [-> /IHa].
by rewrite -{1}(cat_take_drop (before L (size a)) (map _ a)) all_cat andbT.
Qed.

Let calm_states qs : all (calm (gate G)) (map forest_ qs).
Proof.
by elim: qs => //= q qs ->; rewrite calm_join calm_forest (calm_cells (gate_empties RG _)).
Qed.

Let states_flat qs : [seq state q | q <- qs] = map flat (map forest_ qs).
Proof. by rewrite -map_comp; apply: eq_map => q /=; rewrite flat_state. Qed.

Lemma entered_states qs :
  entered A G [seq state q | q <- qs] = spans_of 0 (joined (map forest_ qs) Nil).
Proof.
rewrite /entered states_flat -(enter_gives_the_spans (gate_opening RG) (gate_closing RG)
  (gate_empty RG) (calm_states qs)).
rewrite (_ : flatten _ = flat (joined (map forest_ qs) Nil)); last by rewrite flat_joined cats0.
by rewrite (count_opening (gate_opening RG) (gate_closing RG)) // calm_joined calm_states.
Qed.

Lemma faces_states i qs : map (map (@face cell)) (spans_of i (joined (map forest_ qs) Nil))
  = map (open_word A) (in_text [seq tree q | q <- qs]).
Proof.
have of_empties i' n : spans_of i' (cells (empties n) Nil) = [::] by elim: n i' => /=.
elim: qs i => // q qs IH i; rewrite /in_text map_cons all_spans_cons pmap_cat map_cat.
rewrite [joined _ _]/= !spans_of_join of_empties cats0 map_cat (spans_are_words RG).
by rewrite IH.
Qed.

Let takes_in_text es : all (@wf L) es ->
  all (fun s : open_span L => takes s.1 (size s.2)) (in_text es).
Proof.
have one e : wf e -> all (@wf L) (spans e).
  elim/expr_induction: e => //= o a IH; case/andP=> tk wa; rewrite tk wa /=.
  by elim: a IH wa {tk} => //= e a IHa [h /IHa {}IHa] /andP[/h h1 /IHa]; rewrite all_cat h1.
have all_ : all (@wf L) es -> all (@wf L) (all_spans es).
  by elim: es => // e es IH /andP[/one h /IH]; rewrite all_spans_cons all_cat h.
rewrite /in_text => /all_; elim: (all_spans es) => //= -[v|o a] l IH //= /andP[/andP[tk _] /IH ->].
by rewrite size_map tk.
Qed.

(* scan and selection on the entries of a batch are those on its expressions *)
Lemma notes_are_those_of_the_trees S es : all (@wf L) es ->
  map (map (@face cell)) S = map (open_word A) (in_text es) ->
  notes A G local value_of S = notes_all es None.
Proof.
move=> /takes_in_text tk faces.
have scans : scan (speculated A G local value_of) S None = scan (@F L) (in_text es) None
    /\ map (@holes_in cell) S = map (@count_holes L) (in_text es).
  elim: S (in_text es) faces tk => [|E S IH] [|s l] //= [fE fS] /andP[ts tl].
  have [-> ->] := IH l fS tl.
  by rewrite (speculated_is_F RG RL value_ofK _ fE) // (holes_in_faces fE).
case: scans => scans hs; rewrite /notes scans hs -[scan _ _ _]/(u es).
rewrite -[outermost_from _ _]/(outermost es) outermost_are_the_chains.
by rewrite scan_evaluates_chains.
Qed.

Lemma pwf_strip p : pwf p = wf (strip p).
Proof.
elim/padded_induction: p => //= o a IH; rewrite size_map all_map; congr andb.
by elim: a IH => //= q a IHa [-> /IHa ->].
Qed.

Lemma next_states qs i r : all (fun q => pwf q.1) qs -> exists qs',
  [/\ becomes i (joined (map forest_ qs) Nil) (notes_all [seq tree q | q <- qs] r)
        (flatten [seq state q | q <- qs']),
     [seq tree q | q <- qs'] = map (@next L) [seq tree q | q <- qs],
     unzip2 qs' = unzip2 qs & shape [seq state q | q <- qs'] = shape [seq state q | q <- qs]].
Proof.
have size_of i' g N X : becomes i' g N X -> size X = size (flat g).
  by case=> _ <-; rewrite size_reduce.
elim: qs i r => [|[p m] qs IH] i r /=; first by exists [::].
case/andP=> wp wqs; set r' := head r (map (@worth L) (all_spans [seq tree q | q <- qs])).
have [p' [B np]] := next_stretch i r' wp.
have B' : becomes i (forest_ (p, m)) (notes_of (strip p) r') (state_of A p' m).
  rewrite -[notes_of _ _]cats0; apply: becomes_join => //.
  by rewrite -[X in becomes _ _ _ X]cats0; apply: becomes_cells; apply: becomes_nil.
have [qs' [Bs ns ms ss]] := IH (i + size (flat (forest_ (p, m)))) r wqs.
exists ((p', m) :: qs'); rewrite /= np ns ms ss; split=> //.
  by rewrite notes_all_cons; apply: becomes_join.
by rewrite (size_of _ _ _ _ B') flat_state.
Qed.

(* One iteration of a batch: every expression becomes the next one. *)
Theorem next_batch qs : all (fun q => wf (tree q)) qs -> exists qs',
  [/\ iterate_log [seq state q | q <- qs] = [seq state q | q <- qs'],
     [seq tree q | q <- qs'] = map (@next L) [seq tree q | q <- qs],
     unzip2 qs' = unzip2 qs & shape [seq state q | q <- qs'] = shape [seq state q | q <- qs]].
Proof.
move=> wqs; have [|qs' [[_ E] ns ms ss]] := @next_states qs 0 None.
  by apply: sub_all wqs => q; rewrite pwf_strip.
exists qs'; split=> //; rewrite /iterate_log entered_states.
rewrite (@notes_are_those_of_the_trees _ [seq tree q | q <- qs]) ?faces_states ?all_map //.
rewrite -ss -[RHS]flattenK; congr reshape; rewrite -E; congr (reduce _ _ _ _ _ _).
by rewrite flat_joined cats0 states_flat.
Qed.

(* ---- k iterations ---- *)

Definition start (b : expr L * nat) : seq cell := layout A b.1 ++ empties b.2.

(* the value in one position once k is the number or more; before that, spans are left *)
Definition answers_log (k : nat) (b : expr L * nat) (X : seq cell) : Prop :=
  let: (e, m) := b in let n := size (layout A e) in
  if strahler e <= k then exists2 i, i < n & X = only A (n + m) i (eval e)
  else opening A \in X.

Theorem logarithmic_evaluation k (batch : seq (expr L * nat)) : all (fun b => wf b.1) batch ->
  List.Forall2 (answers_log k) batch (ssrnat.iter k iterate_log (map start batch)).
Proof.
move=> wb; have strip_none e : strip (pad_none e) = e.
  elim/expr_induction: e => //= o a IH; congr Node.
  by elim: a IH => //= e a IHa [-> /IHa ->].
have [qs [-> trees pads shapes]] : exists qs,
    [/\ ssrnat.iter k iterate_log (map start batch) = [seq state q | q <- qs],
       [seq tree q | q <- qs] = [seq ssrnat.iter k (@next L) b.1 | b <- batch],
       unzip2 qs = unzip2 batch & shape [seq state q | q <- qs] = shape (map start batch)].
  elim: k => [|k [qs [E trees pads shapes]]].
    exists [seq (pad_none b.1, b.2) | b <- batch]; rewrite /unzip2 -!map_comp; split=> //.
    - by apply: eq_map => -[e m]; rewrite /= /start /state_of layout_pad_none.
    - by apply: eq_map => -[e m] /=; rewrite strip_none.
    by congr shape; apply: eq_map => -[e m]; rewrite /= /start /state_of layout_pad_none.
  have [|qs' [E' trees' pads' shapes']] := @next_batch qs.
    rewrite -(all_map (fun q => tree q) (@wf L)) trees all_map; apply: sub_all wb => b /= wb.
    by elim: k {E trees} => //= k; apply: wf_next.
  exists qs'; rewrite iterS E E' trees' trees -map_comp pads' shapes'; split=> //.
elim: batch qs trees pads shapes {wb} => [|[e m] batch IH] [|[p m'] qs] //= [te ts] [-> ps] [se ss].
constructor; last exact: IH.
have := iterations_are_strahler k e; have := eval_iterations k e; rewrite -te.
rewrite /answers_log /=; case: p te se => [l v r|o a] te se /= ev <-.
  exists l; first by move: se; rewrite /state_of playout_leaf /start !size_cat /= !size_nseq => se;
    apply/ltP; move: se; rewrite -!plusE; lia.
  rewrite -ev state_of_leaf width_leaf; congr (only A _ _ _).
  by move: se; rewrite /state_of playout_leaf /start !size_cat /= !size_nseq => ->.
by rewrite /state_of /playout /= inE eqxx.
Qed.
End Evaluation.
