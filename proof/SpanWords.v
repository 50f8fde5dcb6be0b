(* What each span of a state holds, and F as the weights compute it. With a value in its hole, a
   span is a span of depth 1 (a word), the very case that the checker has looked at; so the F that
   comes from the local map is the F of the algebra. *)
From mathcomp Require Import all_ssreflect.
From Coq Require Import ZArith Lia.
From Exactformer Require Import Circuit Ranks Forests GatedResidual Expressions PaddedExpressions.
From Exactformer Require Import NextState GlobalEvaluation Strahler Speculate Scan SpansInOrder.
From Exactformer Require Import Enter.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section Words.
Variables (L : language) (cell : eqType) (A : alphabet L cell) (G : gates cell).
Variables (local : cell -> seq (cell * Z) -> cell) (value_of : cell -> option (value L)).
Notation entry := (nat * bool * cell)%type.
Notation empties n := (nseq n (empty A)).
Notation flat := (flat (opening A) (closing A)).
Notation own := (own (empty A) (opening A) (closing A)).
Notation spans_of := (spans_of (empty A) (opening A) (closing A)).
Notation span_entries := (span_entries (empty A) (opening A) (closing A)).
Implicit Types (p : padded L) (E : seq entry) (x : option (value L)).

(* ---- definitions ---- *)

Definition is_hole (t : entry) : bool := t.1.2.
Definition position (t : entry) : nat := t.1.1.
Definition holes_in E : nat := count is_hole E.

(* the tokens of a span with x in its hole *)
Definition put x E : seq cell :=
  [seq if is_hole t then (if x is Some v then of_value A v else t.2) else t.2 | t <- E].
(* what they become: ranks, attention, feedforward and threshold, within the span *)
Definition try_value x E : seq cell := reduced (rank_gate G) local (put x E).
(* the value that is all that a span becomes *)
Definition span_value (Y : seq cell) : option (value L) :=
  if full A Y is [:: y] then value_of y else None.

Definition speculated E x : option (value L) :=
  match holes_in E with
  | 0 => span_value (try_value None E)
  | 1 => if x is Some v then span_value (try_value (Some v) E) else None
  | _ => None
  end.

(* ---- words with holes ---- *)

Fixpoint strip p : expr L :=
  match p with PLeaf _ v _ => Leaf v | PNode o a => Node o (map strip a) end.

(* an entry without its position *)
Definition face (t : entry) : bool * cell := (is_hole t, t.2).
Definition operand_face x : bool * cell :=
  if x is Some v then (false, of_value A v) else (true, opening A).
Definition open_word (s : open_span L) : seq (bool * cell) :=
  let k := before L (size s.2) in
  (false, opening A) :: map operand_face (take k s.2) ++ (false, of_operator A s.1)
  :: map operand_face (drop k s.2) ++ [:: (false, closing A)].

Hypotheses (RG : right_gates A G) (RL : right_local A G local)
           (value_ofK : forall v, value_of (of_value A v) = Some v).

Lemma face_own i i' g : map face (own i g) = map face (own i' g).
Proof.
by elim: g i i' => //= [x g IH|s _ g IH] i i'; rewrite ?map_cat (IH _ (i'.+1)) //;
  rewrite ?(IH _ (i' + (size (flat s)).+2)) //; case: ifP.
Qed.

Lemma own_join i g h : own i (join g h) = own i g ++ own (i + size (flat g)) h.
Proof.
elim: g i => //= [|x g IH|s _ g IH] i; first by rewrite addn0.
  by rewrite IH addSnnS catA.
by rewrite IH size_cat /= !addnS !addSn -!addnA.
Qed.

Lemma own_empties i n : own i (cells (empties n) Nil) = [::].
Proof. by elim: n i => //= n IH i; rewrite eqxx IH. Qed.

(* an operand is one entry of its span: a value or a hole *)
Lemma face_operand i p : map face (own i (forest_of A p)) = [:: operand_face (seen (strip p))].
Proof.
case: p => [l v r|o a] /=; last by rewrite own_empties.
elim: l i => //= [|l IH] i; last by rewrite eqxx IH.
by rewrite (value_not_empty RG) /= own_empties.
Qed.

Lemma face_operands i a h : map face (own i (joined (map (forest_of A) a) h))
  = map operand_face (map (@seen L) (map strip a)) ++ map face (own i h).
Proof.
elim: a i => //= p a IH i; rewrite own_join map_cat face_operand /= (face_own _ i) IH.
by [].
Qed.

Lemma face_span i o (a : seq (padded L)) : let k := before L (size a) in
  map face (span_entries i (joined (take k (map (forest_of A) a))
    (Cell (of_operator A o) (joined (drop k (map (forest_of A) a)) Nil))))
  = open_word (o, map (@seen L) (map strip a)).
Proof.
move=> k; rewrite /open_word /= !size_map -/k -!map_take -!map_drop map_cat face_operands /=.
rewrite (operator_not_empty RG) /= (face_own _ 0) face_operands /= cats0.
by rewrite !map_take !map_drop -catA.
Qed.

(* all spans in the order of the text *)
Theorem spans_are_words i p : map (map face) (spans_of i (forest_of A p))
  = map open_word (pmap (@opened L) (spans (strip p))).
Proof.
have of_empties i' n : spans_of i' (cells (empties n) Nil) = [::] by elim: n i' => /=.
elim/padded_induction: p i => [l v r|o a IH] i.
  by rewrite /=; elim: l i => [|l IH] i /=; rewrite ?of_empties ?IH.
rewrite [forest_of _ _]/= [spans_of _ _]/= of_empties cats0 [spans _]/= [pmap _ _]/=.
rewrite map_cons face_span [RHS]map_cons; congr cons.
have list_ b i' h : foldr (fun p => and (forall i, map (map face) (spans_of i (forest_of A p))
      = map open_word (pmap (@opened L) (spans (strip p))))) True b ->
    map (map face) (spans_of i' (joined (map (forest_of A) b) h))
    = map open_word (pmap (@opened L) (all_spans (map strip b)))
      ++ map (map face) (spans_of (i' + size (flatten (map flat (map (forest_of A) b)))) h).
  elim: b i' => [|q b IHb] i' /=; first by rewrite addn0.
  case=> hq hb; rewrite spans_of_join map_cat hq IHb // all_spans_cons pmap_cat map_cat -catA.
  by rewrite size_cat addnA.
set k := before L (size a); rewrite -/(all_spans (map strip a)).
have [h1 h2] : foldr (fun p => and (forall i, map (map face) (spans_of i (forest_of A p))
      = map open_word (pmap (@opened L) (spans (strip p))))) True (take k a) /\
    foldr (fun p => and (forall i, map (map face) (spans_of i (forest_of A p))
      = map open_word (pmap (@opened L) (spans (strip p))))) True (drop k a).
  by rewrite -{1}(cat_take_drop k a) in IH; elim: (take k a) IH => //= q b IHb [hq /IHb []].
rewrite -map_take list_ //= -map_drop list_ //= cats0 -map_cat -pmap_cat.
by rewrite /all_spans -flatten_cat -!map_cat cat_take_drop.
Qed.

(* ---- F ---- *)

Lemma holes_in_faces E s : map face E = open_word s -> holes_in E = count_holes s.
Proof.
move=> h; have -> : holes_in E = count fst (map face E) by rewrite count_map.
rewrite h /open_word /count_holes /= count_cat /= count_cat /= addn0 add0n !count_map.
rewrite -[in RHS](cat_take_drop (before L (size s.2)) s.2) count_cat.
by rewrite ?addn0 ?add0n; congr addn; apply: eq_count; case.
Qed.

(* with a value in its hole, or without a hole, a span is a word *)
Lemma put_is_a_word x E s (values : seq (value L)) : map face E = open_word s ->
  [seq if y is Some v then Some v else x | y <- s.2] = map Some values ->
  put x E = word A s.1 values.
Proof.
move=> h filled; have sz : size values = size s.2.
  by rewrite -(size_map Some) -filled size_map.
have -> : put x E = [seq if t.1 then (if x is Some v then of_value A v else t.2) else t.2
    | t <- map face E] by rewrite -map_comp.
have one l vs : [seq if y is Some v then Some v else x | y <- l] = map Some vs ->
    [seq if t.1 then (if x is Some v then of_value A v else t.2) else t.2 | t <- map operand_face l]
    = map (of_value A) vs.
  by elim: l vs => [|y l IH] [|v vs] //= [E1 /IH <-]; case: y E1 => [v'|] /=; [case=> ->|move=> ->].
rewrite h /open_word /word /= map_cat /= map_cat /= sz; congr (_ :: _ ++ _ :: _ ++ _); apply: one.
  by rewrite map_take filled map_take.
by rewrite map_drop filled map_drop.
Qed.

Lemma span_value_word E x s values : map face E = open_word s ->
  [seq if y is Some v then Some v else x | y <- s.2] = map Some values -> takes s.1 (size values) ->
  span_value (try_value x E) = Some (apply s.1 values).
Proof.
move=> h filled tk; rewrite /try_value (put_is_a_word h filled).
have [l [r ->]] := local_case RL tk; rewrite /span_value /full filter_cat /=.
by rewrite -!/(full A _) !full_empties (value_not_empty RG) /= value_ofK.
Qed.

(* Every position of every trial sees a case: what the checker has looked at, and what the theorem
   on rounding (RunningModel.v) is about. *)
Theorem every_trial_is_a_case E s v : map face E = open_word s -> takes s.1 (size s.2) ->
  All (sees_case A G) (reduced (rank_gate G) (@Sees cell) (put (Some v) E)).
Proof.
move=> h tk; rewrite (@put_is_a_word _ _ _ (fill v s.2) h).
  by apply: (reduced_sees RG) (erefl _); rewrite size_map.
by rewrite /fill -map_comp; apply: eq_map => -[].
Qed.

(* the F of the weights is the F of the algebra *)
Theorem speculated_is_F E s x : map face E = open_word s -> takes s.1 (size s.2) ->
  speculated E x = F s x.
Proof.
move=> h tk; rewrite /speculated /F (holes_in_faces h) /count_holes.
case n: (count _ _) => [|[|m]] //.
  have all_known : s.2 = map Some (pmap id s.2).
    by elim: (s.2) n => //= -[v|] l IH //= /IH {1}->.
  apply: (span_value_word h); first by rewrite [in LHS]all_known -map_comp.
  by rewrite -(size_map Some) -all_known.
case: x => // v; apply: (span_value_word h); last by rewrite size_map.
by rewrite /fill -map_comp; apply: eq_map => -[].
Qed.
End Words.
