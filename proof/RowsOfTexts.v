(* With the gate 1 on every token the key is a count of tokens, so that each token is a row of its
   own, in the order in which the text is read; and what a row gives is written where its token was.
   So the layer reads each text of a batch one symbol after the other. *)
From mathcomp Require Import all_ssreflect.
From Coq Require Import ZArith Lia.
From Exactformer Require Import Circuit Scan MachineLayer Resets.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

(* the order in which a text is read, and back *)
Definition turned (backwards : bool) A (s : seq A) : seq A := if backwards then rev s else s.

Lemma turnedK b A (s : seq A) : turned b (turned b s) = s.
Proof. by case: b => //=; rewrite revK. Qed.
Lemma size_turned b A (s : seq A) : size (turned b s) = size s.
Proof. by case: b => //=; rewrite size_rev. Qed.
Lemma map_turned b A B (g : A -> B) s : map g (turned b s) = turned b (map g s).
Proof. by case: b => //=; rewrite map_rev. Qed.
Lemma mem_turned b (s : seq nat) : turned b s =i s.
Proof. by case: b => //= x; rewrite mem_rev. Qed.
Lemma uniq_turned b (s : seq nat) : uniq (turned b s) = uniq s.
Proof. by case: b => //=; rewrite rev_uniq. Qed.

Section Rows.
Variables (D : nat) (G_K : row) (backwards : bool).
Notation zero := (nseq D 0%Z).
Notation turned := (turned backwards).

(* what a token has to be *)
Definition is_token (x : row) : bool :=
  [&& size x == D, dot x G_K == 1%Z & (0 <? total x)%Z].

(* ---- keys ---- *)

Lemma dot_zero n G : dot (nseq n 0%Z) G = 0%Z.
Proof. by elim: n G => //= n IH [|g G] //; rewrite IH. Qed.
Lemma total_zero n : total (nseq n 0%Z) = 0%Z.
Proof. by elim: n => //= n ->. Qed.

Lemma gates_of_text xs m : all is_token xs ->
  [seq dot x G_K | x <- xs ++ nseq m zero] = nseq (size xs) 1%Z ++ nseq m 0%Z.
Proof.
move=> tx; rewrite map_cat map_nseq dot_zero; congr cat.
by elim: xs tx => //= x xs IH /andP[/and3P[_ /eqP -> _] /IH ->].
Qed.

Lemma count_ones n m a : scanl Z.add a (nseq n 1%Z ++ nseq m 0%Z)
  = [seq (a + Z.of_nat i)%Z | i <- iota 1 n] ++ nseq m (a + Z.of_nat n)%Z.
Proof.
elim: n a => [|n IH] a /=.
  elim: m a => //= m IH a; rewrite (_ : (a + 0 = a)%Z) ?IH; last lia.
  by rewrite (_ : (a + Z.of_nat 0 = a)%Z) //; lia.
rewrite IH; congr cons; congr cat; last by congr nseq; lia.
rewrite -[2]add1n iotaDl -map_comp; apply: eq_map => i /=; rewrite -plusE; lia.
Qed.

Lemma occupied_text xs inside m : all is_token xs -> size inside = m ->
  occupied (nseq (size xs) true ++ inside) (xs ++ nseq m zero)
  = nseq (size xs) true ++ nseq m false.
Proof.
move=> tx <-; rewrite /occupied zip_cat ?size_nseq // map_cat; congr cat.
  by elim: xs tx => //= x xs IH /andP[/and3P[_ _ ->] /IH ->].
by elim: inside => //= b inside ->; rewrite total_zero andbF.
Qed.

Lemma nseq_false_numbers (key : seq Z) m : size key = m ->
  [seq if p.2 then Z.to_nat (Z.max p.1 1) else 0 | p <- zip key (nseq m false)] = nseq m 0.
Proof. by move=> <-; elim: key => //= z key ->. Qed.

(* each token has a row of its own *)
Lemma numbered_text xs inside m : all is_token xs -> size inside = m ->
  numbered G_K backwards (nseq (size xs) true ++ inside, xs ++ nseq m zero)
  = turned (iota 1 (size xs)) ++ nseq m 0.
Proof.
move=> tx si; rewrite /numbered /number_rows /= occupied_text // /keys gates_of_text //.
rewrite /cumsum count_ones; set n := size xs; rewrite /RowsOfTexts.turned; case: backwards.
- rewrite zip_cat ?size_map ?size_iota ?size_nseq // map_cat zip_cat; last first.
    by rewrite size_map size_zip size_map size_iota !size_nseq minnn.
  rewrite map_cat nseq_false_numbers ?size_map ?size_zip ?size_nseq ?minnn //; congr cat.
  have -> : last 0%Z ([seq (0 + Z.of_nat i)%Z | i <- iota 1 n] ++ nseq m (0 + Z.of_nat n)%Z)
      = Z.of_nat n.
    rewrite last_cat -nth_last size_nseq nth_nseq; case: m {si} => //= [|m]; last by rewrite leqnn.
    case: n => // n; rewrite -nth_last size_map size_iota (nth_map 0) ?size_iota // nth_iota //.
  apply: (@eq_from_nth _ 0); rewrite !size_map !size_zip !size_map !size_zip !size_map ?size_rev
    !size_iota !size_nseq !minnn // => i lin.
  rewrite (nth_map (0%Z, false)) ?size_zip ?size_map ?size_zip ?size_map ?size_iota ?size_nseq
    ?minnn // nth_zip ?size_map ?size_zip ?size_map ?size_iota ?size_nseq ?minnn //=.
  rewrite nth_nseq lin (nth_map (0%Z, 0%Z)) ?size_zip ?size_map ?size_iota ?size_nseq ?minnn //.
  rewrite nth_zip ?size_map ?size_iota ?size_nseq //= (nth_map 0) ?size_iota // nth_nseq lin.
  rewrite nth_rev ?size_iota // !nth_iota //; last by rewrite ltn_subrL; apply: leq_ltn_trans lin.
  move: lin => /ltP lin; rewrite -plusE -minusE; lia.
rewrite zip_cat ?size_map ?size_iota ?size_nseq // map_cat nseq_false_numbers ?size_nseq //.
congr cat; rewrite -[n in nseq n true](size_iota 1); have : 0 \notin iota 1 n by rewrite mem_iota.
elim: (iota 1 n) => //= i l IH; rewrite inE => /norP[/eqP i0 /IH ->]; congr cons; lia.
Qed.

(* ---- bags ---- *)

Lemma one_position xs ks (i : nat) x0 : uniq ks -> size xs = size ks -> i < size ks ->
  [seq p.1 | p <- zip xs ks & p.2 == nth 0 ks i] = [:: nth x0 xs i] :> seq row.
Proof.
elim: ks xs i => //= k ks IH [|x xs] //= [|i] /andP[kn uk] [sz] lt /=.
  rewrite eqxx /=; congr cons; elim: ks xs sz kn {IH uk lt} => [|k' ks IH] [|y xs] //= [sz].
  by rewrite inE => /norP[/negbTE nk kn]; rewrite eq_sym nk IH.
have -> : (k == nth 0 ks i) = false by apply: contraNF kn => /eqP ->; rewrite mem_nth.
exact: IH.
Qed.

Lemma bag_of_token xs ks m i : uniq ks -> 0 \notin ks -> size xs = size ks -> i < size ks ->
  all is_token xs -> bag D (xs ++ nseq m zero) (ks ++ nseq m 0) (nth 0 ks i) = nth zero xs i.
Proof.
move=> uk k0 sz lt tx; rewrite /bag zip_cat // filter_cat.
have -> : [seq p <- zip (nseq m zero) (nseq m 0) | p.2 == nth 0 ks i] = [::].
  have : nth 0 ks i != 0 by apply: contraNneq k0 => <-; rewrite mem_nth.
  by move/negbTE=> n0; elim: m => //= m IH; rewrite eq_sym n0.
rewrite cats0; have one := one_position zero uk sz lt.
have -> : [seq total [seq nth 0%Z p.1 t | p <- zip xs ks & p.2 == nth 0 ks i] | t <- iota 0 D]
  = [seq nth 0%Z (nth zero xs i) t | t <- iota 0 D].
  apply: eq_map => t; rewrite (map_comp (fun x => nth 0%Z x t) fst) one /=; lia.
have /and3P[/eqP szx _ _] : is_token (nth zero xs i) by apply: (allP tx); rewrite mem_nth // sz.
by rewrite -{2}szx -/(mkseq _ _) mkseq_nth.
Qed.

Lemma foldr_maxn_le n s : {in s, forall k, k <= n} -> foldr maxn 0 s <= n.
Proof.
elim: s => //= k s IH le; rewrite geq_max le ?mem_head // IH // => j js; apply: le.
by rewrite inE js orbT.
Qed.

Lemma le_foldr_maxn s k : k \in s -> k <= foldr maxn 0 s.
Proof.
elim: s => //= j s IH; rewrite inE => /orP[/eqP ->|/IH le]; first exact: leq_maxl.
exact: leq_trans le (leq_maxr _ _).
Qed.

Lemma largest_number n m : foldr maxn 0 (turned (iota 1 n) ++ nseq m 0) = n.
Proof.
apply/eqP; rewrite eqn_leq; apply/andP; split.
  apply: foldr_maxn_le => k; rewrite mem_cat mem_turned mem_iota => /orP[/andP[_]|].
    by rewrite add1n ltnS.
  by case/nseqP=> ->.
case: n => // n; apply: le_foldr_maxn; rewrite mem_cat mem_turned mem_iota /=.
by rewrite add1n ltnS leqnn.
Qed.

Lemma map_bags xs ks m : uniq ks -> 0 \notin ks -> size xs = size ks -> all is_token xs ->
  [seq bag D (xs ++ nseq m zero) (ks ++ nseq m 0) i | i <- ks] = xs.
Proof.
move=> uk k0 sz tx; apply: (@eq_from_nth _ zero); rewrite size_map // => i lt.
by rewrite (nth_map 0) // bag_of_token.
Qed.

Lemma bags_of_text xs m : all is_token xs ->
  bags D (xs ++ nseq m zero) (turned (iota 1 (size xs)) ++ nseq m 0) = turned xs.
Proof.
move=> tx; rewrite /bags largest_number -{2}(turnedK backwards (iota 1 _)) map_turned.
by rewrite map_bags ?uniq_turned ?iota_uniq ?mem_turned ?mem_iota ?size_turned ?size_iota.
Qed.

(* ---- what is written ---- *)

Lemma write_rows_text (Y xs : seq row) ks m : uniq ks -> 0 \notin ks -> size xs = size ks ->
  write_rows D Y (xs ++ nseq m zero) (ks ++ nseq m 0)
  = [seq nth zero Y k.-1 | k <- ks] ++ nseq m zero.
Proof.
move=> uk k0 sz; elim: ks xs uk k0 sz => [|k ks IH] [|x xs] //=.
  by move=> _ _ _; elim: m => //= m ->.
case/andP=> kn uk; rewrite inE => /norP[nk k0] [sz].
rewrite IH // eq_sym (negbTE nk) mem_cat (negbTE kn) /=; congr cons.
by case: nseqP => // -[E _]; rewrite E eqxx in nk.
Qed.

Lemma write_text (Y xs : seq row) m : size Y = size xs ->
  write_rows D Y (xs ++ nseq m zero) (turned (iota 1 (size xs)) ++ nseq m 0)
  = turned Y ++ nseq m zero.
Proof.
move=> sz; rewrite write_rows_text ?uniq_turned ?iota_uniq ?mem_turned ?mem_iota //; last first.
  by rewrite size_turned size_iota.
rewrite map_turned -[1]addn0 iotaDl -map_comp; congr (turned _ ++ _).
by rewrite -sz (eq_map (f2 := nth zero Y)) // -/(mkseq _ _) mkseq_nth.
Qed.
End Rows.

(* ---- the iteration reads one symbol after the other ---- *)

Section Iteration.
Variables (D W : nat) (G_K : row) (backwards : bool) (try : row -> nat -> seq bool).
Notation zero := (nseq D 0%Z).

(* what the layer is to do with the rows of a text, in the order in which they are read *)
Fixpoint reads (u : nat) (xs : seq row) : seq row :=
  if xs is x :: xs then
    given D W try x u :: reads (if u < W then next_of D W try x u else W) xs
  else [::].

(* a text, the tokens as they stand, and what is around it *)
Definition input_of (b : seq row * seq bool) : seq bool * seq row :=
  (nseq (size b.1) true ++ b.2, b.1 ++ nseq (size b.2) zero).
Definition read_of (b : seq row * seq bool) : seq row :=
  turned backwards (reads 0 (turned backwards b.1)) ++ nseq (size b.2) zero.

Lemma size_reads u xs : size (reads u xs) = size xs.
Proof. by elim: xs u => //= x xs IH u; rewrite IH. Qed.

Hypothesis sized : forall h q, q < W -> size (try h q) = D + W.

Lemma next_of_below h q : q < W -> next_of D W try h q <= W.
Proof.
move=> qW; rewrite /next_of /alone; case: eqP => //= one.
have : has id (drop D (try h q)) by rewrite has_count one.
by rewrite has_find size_drop sized // addKn => /ltnW.
Qed.

Lemma is_table_map_of h : is_table W.+1 (map_of D W try h).
Proof.
rewrite /is_table size_rcons size_map size_iota eqxx all_rcons ltnS leqnn all_map.
by apply/allP => q; rewrite mem_iota add0n /= ltnS => qW; apply: next_of_below.
Qed.

Lemma go_map_of h u : u <= W ->
  go u (map_of D W try h) = if u < W then next_of D W try h u else W.
Proof.
move=> uW; rewrite /go /entry nth_rcons size_map size_iota; case: ltnP => [lt|le].
  by rewrite (nth_map 0) ?size_iota // nth_iota.
by rewrite eqn_leq uW le.
Qed.

(* a state that is not known stays so, until a text starts *)
Lemma not_known_stays h : go W (map_of D W try h) = W.
Proof. by rewrite go_map_of // ltnn. Qed.

Lemma reads_one_by_one u xs : u <= W ->
  [seq given D W try p.1 p.2 | p <- zip xs (one_by_one u (map (map_of D W try) xs))] = reads u xs.
Proof.
elim: xs u => //= x xs IH u uW; rewrite -go_map_of //; congr cons; rewrite -IH //.
by rewrite go_map_of //; case: ifP => // lt; apply: next_of_below.
Qed.

Lemma reshape_map_zip (H : seq (seq row)) (u : seq (seq nat)) : map size H = map size u ->
  reshape (map size H) [seq given D W try p.1 p.2 | p <- zip (flatten H) (flatten u)]
  = [seq [seq given D W try p.1 p.2 | p <- zip q.1 q.2] | q <- zip H u].
Proof.
move=> sz; have {1}-> : map size H
    = map size [seq [seq given D W try p.1 p.2 | p <- zip q.1 q.2] | q <- zip H u].
  elim: H u sz => [|h H IH] [|v u] //= [s1 /IH ->]; congr cons.
  by rewrite size_map size_zip s1 minnn.
rewrite -[RHS]flattenK; congr reshape.
elim: H u sz => [|h H IH] [|v u] //= [s1 /IH <-].
by rewrite zip_cat // map_cat.
Qed.

Theorem layer_reads_texts step (batch : seq (seq row * seq bool)) :
  all (fun b => all (is_token D G_K) b.1) batch ->
  iterate_machine D W G_K backwards try step (map input_of batch) = map read_of batch.
Proof.
move=> tb; rewrite /iterate_machine.
have En : map (numbered G_K backwards) (map input_of batch)
    = [seq turned backwards (iota 1 (size b.1)) ++ nseq (size b.2) 0 | b <- batch].
  rewrite -map_comp; apply/eq_in_map => b /(allP tb) tx /=.
  by rewrite /input_of (numbered_text backwards tx).
rewrite En; have EH : [seq bags D p.1.2 p.2 | p <- zip (map input_of batch)
      [seq turned backwards (iota 1 (size b.1)) ++ nseq (size b.2) 0 | b <- batch]]
    = [seq turned backwards b.1 | b <- batch].
  rewrite zip_map -map_comp; apply/eq_in_map => b /(allP tb) tx /=.
  exact: (bags_of_text (G_K := G_K)) tx.
rewrite EH; set H := [seq turned backwards b.1 | b <- batch].
have EF : zip (flatten (map starts H)) (map (map_of D W try) (flatten H))
    = flatten (map starting [seq map (map_of D W try) h | h <- H]).
  elim: (H) => //= h l IH; rewrite map_cat zip_cat ?IH; last by rewrite !size_map size_iota.
  by rewrite /starting /starts size_map.
rewrite EF texts_do_not_mix; last first.
  rewrite all_map; apply/allP => h _ /=; rewrite all_map; apply/allP => x _.
  exact: is_table_map_of.
rewrite reshape_map_zip; last first.
  rewrite -!map_comp; apply: eq_map => b /=; by rewrite size_one_by_one size_map.
have -> : [seq [seq given D W try p.1 p.2 | p <- zip q.1 q.2] | q <- zip H
    [seq one_by_one 0 i | i <- [seq map (map_of D W try) h | h <- H]]] = map (reads 0) H.
  by rewrite -map_comp -{1}[H]map_id zip_map -map_comp; apply: eq_map => h /=;
    rewrite reads_one_by_one.
rewrite zip_map /H -!map_comp zip_map -map_comp; apply: eq_map => b /=.
by rewrite write_text // size_reads size_turned.
Qed.
End Iteration.
