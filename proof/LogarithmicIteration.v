(* One iteration of the logarithmic layer on a batch of sequences, exactformer/model/speculate.py:
   enter, speculate, scan, select, write. On states of expressions it gives the states of the
   expressions in which every chain has become its value. *)
From mathcomp Require Import all_ssreflect.
From Coq Require Import ZArith Lia.
From Exactformer Require Import Circuit Ranks Forests GatedResidual Expressions PaddedExpressions.
From Exactformer Require Import NextState GlobalEvaluation Strahler Speculate Scan SpansInOrder.
From Exactformer Require Import Enter SpanWords.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

(* what comes after each place of a list, r after the last one *)
Definition after T (l : seq T) (r : T) : seq T := behead (rcons l r).

Lemma after_cons T (x : T) l r : after (x :: l) r = head r l :: after l r.
Proof. by case: l. Qed.
Lemma size_after T (l : seq T) r : size (after l r) = size l.
Proof. by rewrite size_behead size_rcons. Qed.
Lemma after_cat T (l l' : seq T) r : after (l ++ l') r = after l (head r l') ++ after l' r.
Proof. by elim: l => [|x l IH] //; rewrite cat_cons !after_cons IH; case: l {IH}. Qed.

Section Iteration.
Variables (L : language) (cell : eqType) (A : alphabet L cell) (G : gates cell).
Variables (local : cell -> seq (cell * Z) -> cell) (value_of : cell -> option (value L)).
Notation entry := (nat * bool * cell)%type.
Notation empties n := (nseq n (empty A)).
Notation try_value := (try_value A G local).
Notation flat := (flat (opening A) (closing A)).
Notation own := (own (empty A) (opening A) (closing A)).
Notation spans_of := (spans_of (empty A) (opening A) (closing A)).
Notation span_entries := (span_entries (empty A) (opening A) (closing A)).

(* ---- definitions ---- *)

(* of each span: its entries; what it is worth; whether it is outermost; what comes after it *)
Notation note := (option (value L) * bool * option (value L))%type.
Implicit Types (T : seq (seq entry * note)) (N : seq note) (p : padded L).

Definition finished T : seq nat :=
  flatten [seq map (@position cell) t.1 | t <- T & isSome t.2.1.1].
Definition written_at T : seq (nat * cell) :=
  flatten [seq zip (map (@position cell) t.1) (try_value t.2.2 t.1) | t <- T & t.2.1.2].

Definition find_cell (W : seq (nat * cell)) (i : nat) : option cell :=
  if [seq q.2 | q <- W & q.1 == i] is y :: _ then Some y else None.

(* zero in the positions that are finished, then what is written *)
Definition reduce T (i : nat) (X : seq cell) : seq cell :=
  [seq if find_cell (written_at T) q.1 is Some y then y
       else if q.1 \in finished T then empty A else q.2 | q <- zip (iota i (size X)) X].

Definition entered (batch : seq (seq cell)) : seq (seq entry) :=
  let E := enter (empty A) (opening A) (gate G) batch in
  [seq of_span E j | j <- iota 1 (count_mem (opening A) (flatten batch))].

Definition notes (S : seq (seq entry)) : seq note :=
  let u := scan (speculated A G local value_of) S None in
  let top := outermost_from false (zip (map (@holes_in cell) S) (map isSome u)) in
  zip (zip u top) (after u None).

Definition iterate_log (batch : seq (seq cell)) : seq (seq cell) :=
  let S := entered batch in
  reshape (shape batch) (reduce (zip S (notes S)) 0 (flatten batch)).

(* ---- positions ---- *)

Definition within (i n : nat) T : bool :=
  all (fun t => all (fun e : entry => i <= position e < i + n) t.1) T.

Let within_cons i n t T : within i n (t :: T)
  = all (fun e : entry => i <= position e < i + n) t.1 && within i n T.
Proof. by []. Qed.
Let within_cat i n T T' : within i n (T ++ T') = within i n T && within i n T'.
Proof. exact: all_cat. Qed.

Let own_within i g : all (fun e : entry => i <= position e < i + size (flat g)) (own i g).
Proof.
have weak i' j n m (l : seq entry) : i' <= j -> j + n <= i' + m ->
    all (fun e : entry => j <= position e < j + n) l ->
    all (fun e : entry => i' <= position e < i' + m) l.
  move=> ij nm; apply: sub_all => e /andP[a b]; rewrite (leq_trans ij a) /=.
  exact: leq_trans b nm.
elim: g i => //= [x g IH|s _ g IH] i.
  rewrite all_cat; apply/andP; split; last by apply: weak (IH i.+1); rewrite // addSnnS.
  by case: ifP => //= _; rewrite /position /= leqnn addnS ltnS leq_addr.
apply/andP; split; first by rewrite /position /= leqnn addnS ltnS leq_addr.
by apply: weak (IH _); rewrite ?leq_addr // size_cat /= !addnS !addSn -!addnA.
Qed.

Lemma spans_within i g N : within i (size (flat g)) (zip (spans_of i g) N).
Proof.
have weak i' j n m T : i' <= j -> j + n <= i' + m -> within j n T -> within i' m T.
  move=> ij nm; apply: sub_all => t; apply: sub_all => e /andP[a b]; rewrite (leq_trans ij a) /=.
  exact: leq_trans b nm.
have zip_cat_any (S S' : seq (seq entry)) N' :
    exists N1 N2, zip (S ++ S') N' = zip S N1 ++ zip S' N2.
  elim: S N' => [|x S IH] N'; first by exists [::], N'; case: N'.
  case: N' => [|y N']; first by exists [::], [::]; case: (S').
  by have [N1 [N2 E]] := IH N'; exists (y :: N1), N2; rewrite /= E.
elim: g i N => [|x g IH|s IHs g IH] i N; first by case: N.
  by apply: weak (IH i.+1 N); rewrite //= addSnnS.
case: N => [|y N] //; rewrite [spans_of _ _]/= [zip _ _]/= within_cons; apply/andP; split.
  have -> : (span_entries i s, y).1
    = [:: (i, false, opening A)] ++ own i.+1 s
      ++ [:: (i.+1 + size (flat s), false, closing A)] by [].
  rewrite !all_cat !all_seq1; apply/and3P; split.
    by rewrite /position /= leqnn addnS ltnS leq_addr.
    apply: sub_all (own_within i.+1 s) => e /andP[a b]; rewrite (ltnW a) /=.
    by apply: leq_trans b _; rewrite /= size_cat /= addSn !addnS !ltnS addnA leqW ?leq_addr.
  by rewrite /position /= leqW ?leq_addr //= size_cat /= addSn !addnS !ltnS addnA leq_addr.
have [N1 [N2 ->]] := zip_cat_any (spans_of i.+1 s) (spans_of (i + (size (flat s)).+2) g) N.
rewrite within_cat; apply/andP; split.
  apply: weak (IHs i.+1 N1); rewrite //= size_cat /= addSn !addnS; apply: leqW.
  by rewrite ltnS addnA leq_addr.
by apply: weak (IH _ N2); rewrite ?leq_addr //= size_cat /= !addnS !addSn -!addnA.
Qed.

(* a span without entry at a position has no effect there *)
Let untouched i n T j : within i n T -> ~~ (i <= j < i + n) ->
  (j \in finished T) = false /\ find_cell (written_at T) j = None.
Proof.
elim: T => //= -[E [[y t] x]] T IH /andP[wE /IH {}IH] out; have [f w] := IH out.
have no : all (fun q => q != j) (map (@position cell) E).
  rewrite all_map; apply: sub_all wE => e; apply: contraL => /eqP ->; exact: out.
split.
  rewrite /finished /=; case: (y) => [v|] //=; rewrite mem_cat -/(finished T) f orbF.
  by apply/negP => /(allP no); rewrite eqxx.
rewrite /find_cell /written_at /=; case: (t) => //=; rewrite -/(written_at T) filter_cat map_cat.
have -> : [seq q <- zip (map (@position cell) E) (try_value x E) | q.1 == j] = [::].
  by elim: (map _ E) (try_value x E) no => [|a l IHl] [|b l'] //= /andP[/negbTE -> /IHl ->].
exact: w.
Qed.

Let finished_cat T T' j : (j \in finished (T ++ T')) = (j \in finished T) || (j \in finished T').
Proof. by rewrite /finished filter_cat map_cat flatten_cat mem_cat. Qed.
Let written_cat T T' j : find_cell (written_at (T ++ T')) j
  = if find_cell (written_at T) j is Some y then Some y else find_cell (written_at T') j.
Proof.
rewrite /written_at filter_cat map_cat flatten_cat /find_cell filter_cat map_cat.
by case: [seq q.2 | q <- flatten _ & _ == _].
Qed.

Lemma size_reduce T i X : size (reduce T i X) = size X.
Proof. by rewrite size_map size_zip size_iota minnn. Qed.

Lemma reduce_cat T i X Y : reduce T i (X ++ Y) = reduce T i X ++ reduce T (i + size X) Y.
Proof. by rewrite /reduce size_cat iotaD zip_cat ?size_iota // map_cat. Qed.

Let eq_reduce T T' i X :
  (forall j, i <= j < i + size X -> (j \in finished T) = (j \in finished T')
     /\ find_cell (written_at T) j = find_cell (written_at T') j) -> reduce T i X = reduce T' i X.
Proof.
move=> same; apply/eq_in_map => -[j x] /(map_f fst) /=.
rewrite -/(unzip1 _) unzip1_zip ?size_iota // mem_iota => /same[-> ->].
by [].
Qed.

Lemma reduce_before T T' i m X : within (i + size X) m T' -> reduce (T ++ T') i X = reduce T i X.
Proof.
move=> w; apply: eq_reduce => j /andP[_ b]; rewrite finished_cat written_cat.
have [|-> ->] := untouched (j := j) w; first by rewrite negb_and -ltnNge b.
by rewrite orbF; case: find_cell.
Qed.

Lemma reduce_after T T' i m X : within m (i - m) T -> m <= i ->
  reduce (T ++ T') i X = reduce T' i X.
Proof.
move=> w le; apply: eq_reduce => j /andP[a _]; rewrite finished_cat written_cat.
have [|-> ->] := untouched (j := j) w; first by rewrite negb_and subnKC // -leqNgt a orbT.
by [].
Qed.

Lemma reduce_nothing i X : reduce [::] i X = X.
Proof.
rewrite /reduce /find_cell /written_at /finished /=.
by elim: X i => //= x X IH i; rewrite IH.
Qed.
End Iteration.
