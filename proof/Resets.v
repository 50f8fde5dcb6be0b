(* Texts of one batch do not mix. Where a text starts the map of its row forgets what arrives, so it
   is a constant; one scan over the rows of all texts, done in pairs and some rows at a time, gives
   each row the state that reading its own text from the start would. *)
From mathcomp Require Import all_ssreflect.
From Coq Require Import ZArith.
From Exactformer Require Import Circuit Scan MachineLayer.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section Resets.
Variable W : nat.
Notation table := (seq nat).
Implicit Types (F : seq table) (f : table).
Notation is_table := (is_table W.+1).

(* one symbol after the other *)
Definition go (x : nat) f : nat := entry f x.
Definition one_by_one (x : nat) F : seq nat := belast x (scanl go x F).

(* ---- the scan, from the left ---- *)

Lemma scan_rev F x : rev (scan entry (rev F) x) = scanl go x F.
Proof.
elim: F x => //= f F IH x; rewrite rev_cons -cats1 scan_cat rev_cat /= -IH.
by [].
Qed.

Lemma led_to_one_by_one F x : all is_table F -> x <= W -> led_to W F x = scanl go x F.
Proof. by move=> tF xW; rewrite /led_to scan_from_right_is_the_scan ?all_rev // scan_rev. Qed.

Lemma last_scanl x F : last x (scanl go x F) = foldl go x F.
Proof. by elim: F x => //= f F IH x. Qed.

Lemma go_below x f : is_table f -> x <= W -> go x f <= W.
Proof. by move=> tf xW; rewrite -ltnS; apply: entry_below. Qed.

Lemma foldl_below x F : all is_table F -> x <= W -> foldl go x F <= W.
Proof. by elim: F x => //= f F IH x /andP[tf tF] xW; apply: IH => //; apply: go_below. Qed.

Lemma belast_scanl_cat x F G : belast x (scanl go x (F ++ G))
  = belast x (scanl go x F) ++ belast (foldl go x F) (scanl go (foldl go x F) G).
Proof. by elim: F x => //= f F IH x; rewrite IH. Qed.

Lemma size_one_by_one x F : size (one_by_one x F) = size F.
Proof. by rewrite size_belast size_scanl. Qed.

(* ---- some rows at a time ---- *)

Notation row_map := (bool * table)%type.
Implicit Types (rows : seq row_map) (portions : seq (seq row_map)).

Definition known_at (rows : seq row_map) (u : seq nat) : seq nat :=
  [seq if p.1.1 then 0 else p.2 | p <- zip rows u].

Lemma known_at_cat r r' u u' : size r = size u ->
  known_at (r ++ r') (u ++ u') = known_at r u ++ known_at r' u'.
Proof. by move=> E; rewrite /known_at zip_cat // map_cat. Qed.

Lemma flatten_cut n step rows : flatten (cut n step rows) = rows.
Proof. by elim: n rows => [|n IH] rows /=; rewrite ?cats0 // IH cat_take_drop. Qed.

Lemma is_table_restarting (p : row_map) : is_table p.2 -> is_table (restarting W p).
Proof.
case: p => [[|]] f // /andP[/eqP sf /allP fW]; rewrite /Scan.is_table size_nseq eqxx.
by apply/allP => x /nseqP[-> _]; apply: fW; rewrite mem_nth // sf.
Qed.

Lemma arriving_one_by_one portions x : all (fun p : row_map => is_table p.2) (flatten portions) ->
  x <= W -> arriving W portions x
  = known_at (flatten portions) (one_by_one x (map (restarting W) (flatten portions))).
Proof.
elim: portions x => //= now portions IH x; rewrite all_cat => /andP[ts tp] xW.
have tr : all is_table (map (restarting W) now).
  by rewrite all_map; apply: sub_all ts => p /= /is_table_restarting.
rewrite led_to_one_by_one // last_scanl IH ?foldl_below // map_cat /one_by_one belast_scanl_cat.
by rewrite known_at_cat // size_belast size_scanl size_map.
Qed.

(* ---- resets ---- *)

Definition starting F : seq row_map := zip [seq i == 0 | i <- iota 0 (size F)] F.

Lemma starting_cons f F : starting (f :: F) = (true, f) :: [seq (false, g) | g <- F].
Proof.
rewrite /starting /=; congr cons; suff E n : zip [seq i == 0 | i <- iota n.+1 (size F)] F = [seq (false, g) | g <- F].
  exact: E.
by elim: F n => //= g F IH n; rewrite IH.
Qed.

Lemma starting_nil : starting [::] = [::]. Proof. by []. Qed.

Lemma restarting_later F : map (restarting W) [seq (false, g) | g <- F] = F.
Proof. by elim: F => //= g F ->. Qed.

Lemma known_at_later F u : size u = size F -> known_at [seq (false, g) | g <- F] u = u.
Proof. by elim: F u => [|g F IH] [|x u] //= [/IH]; rewrite /known_at /= => ->. Qed.

(* whatever arrives at a text, its rows get what reading it from the start gives *)
Lemma text_from_the_start F x : all is_table F -> x <= W ->
  known_at (starting F) (one_by_one x (map (restarting W) (starting F))) = one_by_one 0 F.
Proof.
case: F => [|f F] // /andP[tf tF] xW.
rewrite starting_cons map_cons restarting_later /one_by_one /= /known_at /=; congr cons.
have -> : go x (nseq W.+1 (nth W f 0)) = go 0 f.
  rewrite /go /entry nth_nseq ltnS xW; apply: set_nth_default.
  by case/andP: tf => /eqP ->.
by rewrite [LHS]known_at_later // size_belast size_scanl.
Qed.

(* whatever stands before a text, and in whichever grouping all maps up to here are composed: the
   composition leads where reading the text from its start does *)
Theorem a_text_in_any_grouping (before : seq row_map) f F (g : grouping table) x :
  in_order g = rev (map (restarting W) (before ++ starting (f :: F))) ->
  all (fun p : row_map => is_table p.2) before -> all is_table (f :: F) -> x <= W ->
  entry (composed gather g) x = foldl go 0 (f :: F).
Proof.
move=> order tb /andP[tf tF] xW; have tr : all is_table (in_order g).
  rewrite order all_rev all_map all_cat starting_cons /= [X in _ && (X && _)](_ : _ = true);
    last exact: (@is_table_restarting (true, f)).
  apply/andP; split; first by apply: sub_all tb => p; apply: is_table_restarting.
  by rewrite all_map; apply: sub_all tF.
rewrite (tables_in_any_grouping tr) ?ltnS // /through order.
rewrite -[foldr _ _ _]/(foldr (fun f y => go y f) x _) -foldl_rev revK map_cat foldl_cat.
rewrite starting_cons map_cons restarting_later /=.
set y := foldl _ x _; have yW : y <= W.
  apply: (@foldl_below x (map (restarting W) before)) => //.
  by rewrite all_map; apply: sub_all tb => p; apply: is_table_restarting.
congr (foldl _ _ F); rewrite /go /entry -[LHS]/(nth 0 (nseq W.+1 _) y) nth_nseq ltnS yW.
by apply: set_nth_default; case/andP: tf => /eqP ->.
Qed.

Theorem texts_do_not_mix step (texts : seq (seq table)) : all (all is_table) texts ->
  let rows := flatten (map starting texts) in
  arriving W (cut (size rows) step rows) 0 = flatten (map (one_by_one 0) texts).
Proof.
move=> tt rows; rewrite arriving_one_by_one ?flatten_cut //; last first.
  rewrite {}/rows; elim: texts tt => //= F texts IH /andP[tF /IH tt]; rewrite all_cat tt andbT.
  by case: F tF => // f F /andP[tf tF]; rewrite starting_cons /= tf all_map.
rewrite /rows {rows}; move: (leq0n W); move: {1 2}0 => x.
elim: texts x tt => //= F texts IH x /andP[tF tt] xW.
rewrite map_cat {1}/one_by_one belast_scanl_cat known_at_cat ?size_belast ?size_scanl ?size_map //.
have := text_from_the_start tF xW; rewrite {1}/one_by_one => ->; congr cat.
apply: IH => //; apply: foldl_below => //; rewrite all_map; apply/allP => p.
case: F tF => // f F /andP[tf tF]; rewrite starting_cons inE => /orP[/eqP ->|/mapP[g gF ->]] /=.
  exact: (@is_table_restarting (true, f)).
exact: (allP tF).
Qed.
End Resets.
