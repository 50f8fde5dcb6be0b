(* The scan, exactformer/model/scan.py: u_j = F_j(u_{j+1}), from the right. Composition of maps is
   associative, so neighbours may be composed first, in any grouping; the groups of scan.py are
   pairs, pairs of pairs and so on. *)
From mathcomp Require Import all_ssreflect.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

(* ---- the scan as it is meant ---- *)

Section Meaning.
Variables (map_ T : Type) (at_ : map_ -> T -> T).

Fixpoint scan (F : seq map_) (last : T) : seq T :=
  if F is f :: F then let u := scan F last in at_ f (head last u) :: u else [::].

(* what arrives at the left end *)
Definition through (F : seq map_) (last : T) : T := foldr at_ last F.

Lemma head_scan F last : head last (scan F last) = through F last.
Proof. by elim: F => //= f F ->. Qed.

Lemma scan_cat F G last : scan (F ++ G) last = scan F (through G last) ++ scan G last.
Proof.
elim: F => //= f F IH; congr cons; last exact: IH.
congr at_; rewrite !head_scan /through foldr_cat //.
Qed.

Lemma size_scan F last : size (scan F last) = size F.
Proof. by elim: F => //= f F ->. Qed.

(* ---- any grouping ---- *)

Variable compose : map_ -> map_ -> map_.
Variables (good : pred map_) (known : pred T). (* what is a map here, and on what *)
Hypotheses
  (known_at : forall f x, good f -> known x -> known (at_ f x))
  (good_compose : forall f g, good f -> good g -> good (compose f g))
  (at_compose : forall f g x, good f -> good g -> known x -> at_ (compose f g) x = at_ f (at_ g x)).

Lemma known_through F x : all good F -> known x -> known (through F x).
Proof. by move=> gF kx; elim: F gF => //= f F IH /andP[gf /IH]; apply: known_at. Qed.

Inductive grouping := One of map_ | Two of grouping & grouping.
Fixpoint in_order (g : grouping) : seq map_ :=
  match g with One f => [:: f] | Two g h => in_order g ++ in_order h end.
Fixpoint composed (g : grouping) : map_ :=
  match g with One f => f | Two g h => compose (composed g) (composed h) end.

(* What a stretch of maps does as a whole depends on their order only, not on the grouping. *)
Theorem any_grouping g x : all good (in_order g) -> known x ->
  at_ (composed g) x = through (in_order g) x.
Proof.
have well h : all good (in_order h) -> good (composed h).
  elim: h => [f|h IHh h' IHh'] /=; first by rewrite andbT.
  by rewrite all_cat => /andP[/IHh gh /IHh' gh']; apply: good_compose.
elim: g x => //= g IHg h IHh x; rewrite all_cat => /andP[gg gh] kx.
by rewrite at_compose ?well // IHh // IHg ?known_through // /through foldr_cat.
Qed.

(* ---- in pairs, as scan.py does it ---- *)

Variable identity : map_.
Hypotheses (good_identity : good identity) (at_identity : forall x, known x -> at_ identity x = x).

(* neighbours composed; a map that is left over, with the identity *)
Fixpoint paired (F : seq map_) : seq map_ :=
  match F with
  | f :: g :: F => compose f g :: paired F
  | [:: f] => [:: compose f identity]
  | [::] => [::]
  end.

(* `arriving` has one value for each pair, from its right: those for each map, from its right *)
Fixpoint spread (F : seq map_) (arriving : seq T) : seq T :=
  match F, arriving with
  | _ :: g :: F, x :: arriving => at_ g x :: x :: spread F arriving
  | [:: f], x :: _ => [:: at_ identity x]
  | _, _ => [::]
  end.

(* each level has half as many maps; `levels` only ends the recursion *)
Fixpoint arriving (levels : nat) (F : seq map_) (last : T) : seq T :=
  match F with
  | [::] | [:: _] => [seq last | _ <- F]
  | _ => if levels is l.+1 then spread F (arriving l (paired F) last) else [::]
  end.

Definition scan_in_pairs (F : seq map_) (last : T) : seq T :=
  [seq at_ p.1 p.2 | p <- zip F (arriving (size F) F last)].

(* what should arrive at each map: u of the next one *)
Definition from_right (F : seq map_) (last : T) : seq T := behead (scan F last ++ [:: last]).

Let induction2 (Q : seq map_ -> Prop) : Q [::] -> (forall f, Q [:: f]) ->
  (forall f g F, Q F -> Q (f :: g :: F)) -> forall F, Q F.
Proof.
move=> q0 q1 q2 F; suff [] : Q F /\ forall f, Q (f :: F) by [].
elim: F => [|g F [IH IH']]; split=> // f; exact: q2.
Qed.

Lemma good_paired F : all good F -> all good (paired F).
Proof.
elim/induction2: F => //= [f|f g F IH]; first by rewrite !andbT => gf; apply: good_compose.
by case/and3P=> gf gg /IH ->; rewrite good_compose.
Qed.

Lemma size_paired F : size (paired F) = uphalf (size F).
Proof. by elim/induction2: F => //= f g F ->. Qed.

Lemma through_paired F x : all good F -> known x -> through (paired F) x = through F x.
Proof.
move=> gF kx; elim/induction2: F gF => //= [f|f g F IH].
  by rewrite andbT => gf; rewrite at_compose // at_identity.
by case/and3P=> gf gg gF; rewrite IH // at_compose // known_through.
Qed.

Lemma from_right_cons f F last : from_right (f :: F) last = scan F last ++ [:: last].
Proof. by []. Qed.

Lemma from_the_left F last : scan F last ++ [:: last] = through F last :: from_right F last.
Proof. by case: F => //= h F; rewrite head_scan. Qed.

Lemma spread_paired F last : all good F -> known last ->
  spread F (from_right (paired F) last) = from_right F last.
Proof.
move=> + kl; elim/induction2: F => // [f _|f g F IH]; first by rewrite /= at_identity.
case/and3P=> gf gg gF; rewrite [paired _]/= !from_right_cons.
rewrite from_the_left [spread _ _]/= through_paired // IH // [scan _ _]/= head_scan.
by rewrite /= -from_the_left.
Qed.

Lemma arriving_from_right l F last : size F <= l.+1 -> all good F -> known last ->
  arriving l F last = from_right F last.
Proof.
elim: l F => [|l IH] [|f [|g F]] // le gF kl.
rewrite -[arriving _ _ _]/(spread (f :: g :: F) (arriving l (paired (f :: g :: F)) last)).
rewrite IH ?good_paired ?spread_paired // size_paired /= ltnS leq_uphalf_double.
by apply: (@leq_trans l); rewrite -?addnn ?leq_addr.
Qed.

Theorem scan_in_pairs_is_the_scan F last : all good F -> known last ->
  scan_in_pairs F last = scan F last.
Proof.
move=> gF kl; rewrite /scan_in_pairs arriving_from_right // {gF}.
elim: F => // f F IH; rewrite from_right_cons from_the_left [zip _ _]/= map_cons IH.
by rewrite /= head_scan.
Qed.
End Meaning.

(* ---- maps as tables ---- *)

(* A map on {0, ..., W-1} is a row of W numbers below W: F[x] is where x goes. *)
Section Tables.
Variable W : nat.
Notation table := (seq nat).
Implicit Types f g : table.

Definition is_table f : bool := (size f == W) && all (fun x => x < W) f.
Definition entry f (x : nat) : nat := nth 0 f x.
Definition gather f g : table := [seq entry f x | x <- g]. (* x goes to f[g[x]] *)
Definition same : table := iota 0 W.

(* composition of tables is associative *)
Theorem gather_associative f g h : is_table g -> is_table h ->
  gather (gather f g) h = gather f (gather g h).
Proof.
case/andP=> /eqP sg _ /andP[_ hW]; rewrite /gather -map_comp; apply/eq_in_map => x /(allP hW) xW.
by rewrite /= /entry (nth_map 0) ?sg.
Qed.

Lemma is_table_gather f g : is_table f -> is_table g -> is_table (gather f g).
Proof.
case/andP=> /eqP sf fW /andP[/eqP sg gW]; rewrite /is_table size_map sg eqxx all_map.
by apply/allP => x /(allP gW) xW /=; apply: (allP fW); rewrite mem_nth ?sf.
Qed.

Lemma is_table_same : is_table same.
Proof. by rewrite /is_table size_iota eqxx; apply/allP => x; rewrite mem_iota. Qed.

Lemma entry_below f x : is_table f -> x < W -> entry f x < W.
Proof. by case/andP=> /eqP sf /allP fW xW; apply: fW; rewrite mem_nth ?sf. Qed.

Lemma entry_gather f g x : is_table f -> is_table g -> x < W ->
  entry (gather f g) x = entry f (entry g x).
Proof. by move=> _ /andP[/eqP sg _] xW; rewrite /entry (nth_map 0) ?sg. Qed.

Lemma entry_same x : x < W -> entry same x = x.
Proof. by move=> xW; rewrite /entry nth_iota. Qed.

Definition scan_from_right : seq table -> nat -> seq nat := scan_in_pairs entry gather same.

(* scan.py, which works in pairs, gives u_j = F_j(u_{j+1}) *)
Theorem scan_from_right_is_the_scan (F : seq table) last : all is_table F -> last < W ->
  scan_from_right F last = scan entry F last.
Proof.
move=> tF lW; apply: (@scan_in_pairs_is_the_scan _ _ _ _ is_table (fun x => x < W)) => //.
- exact: entry_below.
- exact: is_table_gather.
- exact: entry_gather.
- exact: is_table_same.
exact: entry_same.
Qed.

(* and so does any other grouping *)
Theorem tables_in_any_grouping (g : grouping table) x : all is_table (in_order g) -> x < W ->
  entry (composed gather g) x = through entry (in_order g) x.
Proof.
apply: (@any_grouping _ _ _ _ is_table (fun x => x < W)).
- exact: entry_below.
- exact: is_table_gather.
exact: entry_gather.
Qed.
End Tables.
