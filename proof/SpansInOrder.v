(* All spans of a batch in the order of their `(`, and the scan over them. The hole of span j holds
   u_{j+1}: a span's only inner span comes right after it; and a span without a hole does not look
   at what comes after it. So neither siblings nor the sequences of a batch need marks between them.

   The scan gives each span the value of its expression if that is a chain, and nothing otherwise;
   `outermost` then selects the spans that an iteration (`next`) replaces. *)
From mathcomp Require Import all_ssreflect.
From Exactformer Require Import Expressions GlobalEvaluation Strahler Speculate Scan.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section Spans.
Variable L : language.
Implicit Types (e : expr L) (a : seq (expr L)) (x : option (value L)).

(* ---- a span with its holes ---- *)

(* an operator with its operands: a value, or None for a hole *)
Definition open_span : Type := operator L * seq (option (value L)).
Implicit Types s : open_span.

Definition count_holes s : nat := count (fun x => ~~ x) s.2.
Definition fill (v : value L) (operands : seq (option (value L))) : seq (value L) :=
  map (odflt v) operands.

(* F: what it is worth, by what its hole is worth; None is what is not known *)
Definition F s x : option (value L) :=
  match count_holes s with
  | 0 => Some (apply s.1 (pmap id s.2))
  | 1 => if x is Some v then Some (apply s.1 (fill v s.2)) else None
  | _ => None
  end.

(* ---- all spans in order ---- *)

(* the spans of an expression, as expressions, in the order of their `(` *)
Fixpoint spans e : seq (expr L) :=
  if e is Node _ a then e :: flatten (map spans a) else [::].
Definition all_spans (batch : seq (expr L)) : seq (expr L) := flatten (map spans batch).

(* an operand as its span sees it *)
Definition seen e : option (value L) := if e is Leaf v then Some v else None.
Definition opened e : option open_span := if e is Node o a then Some (o, map seen a) else None.
Definition in_text (batch : seq (expr L)) : seq open_span := pmap opened (all_spans batch).

Definition worth e : option (value L) := if chain e then Some (eval e) else None.

(* ---- the scan ---- *)

Definition u (batch : seq (expr L)) : seq (option (value L)) := scan F (in_text batch) None.

Lemma count_holes_seen o a : count_holes (o, map seen a) = holes a.
Proof. by rewrite /count_holes /holes /= count_map; apply: eq_count => -[]. Qed.

Lemma all_spans_cons e a : all_spans (e :: a) = spans e ++ all_spans a.
Proof. by []. Qed.

(* without an inner span there is nothing after a span that belongs to it *)
Lemma no_hole a : holes a = 0 ->
  [/\ all_spans a = [::], pmap id (map seen a) = map (@eval L) a & all (@chain L) a].
Proof.
by elim: a => //= -[v|o b] a IH //=; rewrite /holes /= add0n => /IH[E -> ->].
Qed.

(* the only inner span comes first among all that are inside *)
Lemma one_hole a : holes a = 1 -> exists e : expr L, [/\ is_span e, all_spans a = spans e,
  fill (eval e) (map seen a) = map (@eval L) a & all (@chain L) a = chain e].
Proof.
elim: a => //= -[v|o b] a IH /=.
  rewrite /holes /= add0n => /IH[e [se E fE ce]]; exists e; split=> //.
  by rewrite -[RHS]/(v :: map (@eval L) a) -fE.
rewrite /holes /= add1n => -[h0]; have [E _ ->] := no_hole h0.
exists (Node o b); rewrite all_spans_cons E cats0 andbT; split=> //=; congr cons.
by elim: a h0 {IH E} => //= -[v|o' b'] a IH //=; rewrite /holes /= add0n => /IH ->.
Qed.

(* what follows the spans of an expression has no influence on them *)
Lemma scan_expression e rest last : let u := scan F rest last in
  scan F (pmap opened (spans e) ++ rest) last = map worth (spans e) ++ u.
Proof.
elim/expr_induction: e rest last => //= o a IH rest last.
have inside : scan F (pmap opened (all_spans a) ++ rest) last
    = map worth (all_spans a) ++ scan F rest last.
  elim: a rest last IH => // e a IHa rest last [h /IHa {}IHa].
  by rewrite all_spans_cons pmap_cat map_cat -!catA h IHa.
rewrite [scan _ _ _]inside; congr cons.
rewrite /F count_holes_seen /worth /=; case E: (holes a) => [|[|n]] //=.
  by have [_ -> ->] := no_hole E.
have [e [se -> fE ->]] := one_hole E.
case: e se fE => // o' b _ fE; rewrite [spans _]/= /= /worth.
by case: ifP => // _; rewrite fE.
Qed.

(* Each span gets the value of its expression if that is a chain, and nothing otherwise. *)
Theorem scan_evaluates_chains (batch : seq (expr L)) : u batch = map worth (all_spans batch).
Proof.
rewrite /u /in_text; have := @scan_expression _ [::] None.
elim: batch => // e batch IH _; rewrite all_spans_cons pmap_cat map_cat scan_expression.
by rewrite IH // => e'; apply: scan_expression.
Qed.

(* ---- the outermost ones ---- *)

(* u_j is known, unless span j is the hole of span j-1 and u_{j-1} is known; `around` says that *)
Fixpoint outermost_from (around : bool) (l : seq (nat * bool)) : seq bool :=
  if l is (holes, known) :: l
  then known && ~~ around :: outermost_from ((holes == 1) && known) l
  else [::].
Definition outermost (batch : seq (expr L)) : seq bool :=
  outermost_from false (zip (map count_holes (in_text batch)) (map isSome (u batch))).

(* chains that are not inside a chain; `inside` says whether e is *)
Fixpoint outermost_chains (inside : bool) e : seq bool :=
  if e is Node _ a
  then chain e && ~~ inside :: flatten (map (outermost_chains (inside || chain e)) a)
  else [::].

(* what `outermost` looks at, of one span *)
Let fact e : nat * bool := (if e is Node _ a then holes a else 0, chain e).

Lemma spans_are_spans (batch : seq (expr L)) : all (@is_span L) (all_spans batch).
Proof.
have one e : all (@is_span L) (spans e).
  elim/expr_induction: e => //= o a; elim: a => //= e a IH [h /IH].
  by rewrite all_cat h.
by elim: batch => // e batch IH; rewrite all_spans_cons all_cat one.
Qed.

Lemma outermost_facts batch :
  outermost batch = outermost_from false (map fact (all_spans batch)).
Proof.
rewrite /outermost scan_evaluates_chains /in_text; congr outermost_from.
elim: (all_spans batch) (spans_are_spans batch) => //= -[//|o a] l IH /IH /= -> /=.
by rewrite count_holes_seen /fact /worth; case: (chain _).
Qed.

Lemma no_hole_no_marks inside a : holes a = 0 -> flatten (map (outermost_chains inside) a) = [::].
Proof. by elim: a => //= -[v|o b] a IH //=; rewrite /holes /= add0n => /IH. Qed.

(* After the last span inside e the scan is out of e: that span has no hole. *)
Lemma outermost_expression (around : bool) e rest : (around -> chain e) ->
  outermost_from around (map fact (spans e) ++ rest)
  = outermost_chains around e ++ outermost_from (around && ~~ is_span e) rest.
Proof.
elim/expr_induction: e around rest => [v|o a IH] around rest; first by rewrite /= andbT.
have inside (b : bool) rest' : (b -> holes a <= 1 /\ all (@chain L) a) ->
    outermost_from b (map fact (all_spans a) ++ rest')
    = flatten (map (outermost_chains b) a) ++ outermost_from (b && (holes a == 0)) rest'.
  elim: a b rest' IH => [|e a IHa] b rest' /=; first by rewrite andbT.
  case=> he ha only_; rewrite all_spans_cons map_cat -!catA he; last by case/only_=> _ /andP[].
  congr (_ ++ _); case: b only_ => [/(_ isT)[le ca]|_]; last by rewrite !IHa.
  case: e le {he} ca => [v|o' b] /=; rewrite /holes /= ?add0n ?add1n.
    by move=> le ca; rewrite IHa.
  by case E: (count _ _) => // _ _; have [-> _ _] := no_hole E; rewrite no_hole_no_marks.
move=> ac; rewrite [spans _]/= [map _ _]/= [outermost_chains _ _]/= [LHS]/= andbF; congr cons.
rewrite -/(all_spans a) inside; last by case/andP=> _ /= /andP[].
have -> : (holes a == 1) && chain (Node o a) && (holes a == 0) = false.
  by case: (holes a) => [|[|n]] //=; rewrite andbF.
case: (posnP (holes a)) => [h0|h]; first by rewrite !no_hole_no_marks.
suff -> : (holes a == 1) && chain (Node o a) = around || chain (Node o a) by [].
case: around ac => [/(_ isT) c|_]; last by rewrite /=; case: (holes a) h => [|[|n]].
by rewrite c andbT; case/andP: c; case: (holes a) h => [|[|n]].
Qed.

Theorem outermost_are_the_chains batch :
  outermost batch = flatten (map (outermost_chains false) batch).
Proof.
rewrite outermost_facts; elim: batch => // e batch IH.
by rewrite all_spans_cons map_cat outermost_expression // IH.
Qed.

(* ---- what is written ---- *)

(* Of all spans in order, whether each is selected and what it is worth: those that are selected
   become values. *)
Fixpoint written (l : seq (bool * option (value L))) e : expr L :=
  match e with
  | Leaf v => Leaf v
  | Node o a =>
      if l is (true, Some v) :: _ then Leaf v else
      Node o ((fix go l a :=
        if a is e :: a then written l e :: go (drop (size (spans e)) l) a else [::]) (behead l) a)
  end.
Fixpoint written_all (l : seq (bool * option (value L))) (batch : seq (expr L)) : seq (expr L) :=
  if batch is e :: batch then written l e :: written_all (drop (size (spans e)) l) batch else [::].

Lemma written_node l o a : written l (Node o a)
  = if l is (true, Some v) :: _ then Leaf v else Node o (written_all (behead l) a).
Proof. by []. Qed.

Let marks e := zip (outermost_chains false e) (map worth (spans e)).

Lemma size_outermost_chains inside e : size (outermost_chains inside e) = size (spans e).
Proof.
elim/expr_induction: e inside => //= o a IH inside; congr _.+1; move: (inside || _) => b.
by elim: a IH => //= e a IHa [h /IHa E]; rewrite !size_cat h E.
Qed.

Let marks_all a : zip (flatten (map (outermost_chains false) a)) (map worth (all_spans a))
  = flatten (map marks a).
Proof.
elim: a => // e a IH; rewrite all_spans_cons map_cat /= zip_cat ?IH //.
by rewrite size_map size_outermost_chains.
Qed.

Let size_marks e : size (marks e) = size (spans e).
Proof. by rewrite size_zip size_map size_outermost_chains minnn. Qed.

Lemma written_is_next e rest : written (marks e ++ rest) e = next e.
Proof.
elim/expr_induction: e rest => // o a IH rest; rewrite written_node next_node.
have -> : marks (Node o a) = (chain (Node o a) && true, worth (Node o a)) ::
    zip (flatten (map (outermost_chains (chain (Node o a))) a)) (map worth (all_spans a)) by [].
rewrite /worth andbT; case: (chain (Node o a)) => //; rewrite marks_all /=; congr Node.
elim: a IH rest => //= e a IHa [h /IHa {}IHa] rest.
by rewrite -catA h drop_size_cat ?size_marks ?IHa.
Qed.

(* One iteration: scan, select, write. *)
Theorem iteration_is_next batch : written_all (zip (outermost batch) (u batch)) batch
  = map (@next L) batch.
Proof.
rewrite outermost_are_the_chains scan_evaluates_chains marks_all.
elim: batch => //= e batch IH; rewrite written_is_next drop_size_cat ?size_marks ?IH //.
Qed.
End Spans.
