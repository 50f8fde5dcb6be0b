(* The whole check of a model of a machine, as the extracted checker runs it, and what it implies:
   the layer gives the answer of the machine to every text of every length, in any batch and with
   any padding; in whole numbers, and on a device whose feedforward rounds in binary64. *)
From Coq Require Import Reals List ZArith Lia.
From mathcomp Require Import all_ssreflect.
From Exactformer Require Import Circuit Feedforward Margin Verdict MachineLayer Resets RowsOfTexts
  Machines Rounding RoutedSums PerceptronRounding RunningModel.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Local Open Scope nat_scope.

(* ---- the check ---- *)

Inductive machine_failure :=
  | Machine_size                        (* of the weights, for the machine *)
  | Machine_range                       (* a weight that is no float32 or nearly zero *)
  | Gate_of_key of nat                  (* is not 1 on this token *)
  | Row_fault of fault.

Definition one_hot_of (n t : nat) : row := [seq (if i == t then 1 else 0)%Z | i <- iota 0 n].

Section Check.
Variables (M : machine) (D W : nat) (G_K : row) (ff : feedforward).

Definition beside (h : row) (q : nat) : row := h ++ one_hot_of W q.

(* which of the D + W numbers for a bag beside a state are above the threshold, in whole numbers *)
Definition positive (h : row) (q : nat) : seq bool :=
  [seq (0 <? z)%Z | z <- compute ff (beside h q)].

Definition surely (h : row) (q : nat) : bool :=
  certain ff (D + W) 2 (beside h q) (compute ff (beside h q)).   (* a token and a state: two ones *)

(* both, with the bounds and the outputs computed once *)
Definition looked_at : row -> nat -> seq bool * bool :=
  let sure := certain ff (D + W) 2 in
  fun h q => let Z := compute ff (beside h q) in
             ([seq (0 <? z)%Z | z <- Z], sure (beside h q) Z).

Definition has_size : bool :=
  (0 < W) && match ff with
  | Network p => well_sized p (D + W) && (size (W_2 p) == D + W)
  | Table bags results => (0 < size results) && all (fun r => size r == D + W) results
  end.
Definition mark_fits : bool := if mark M is Some m then m < D else true.
Definition in_range : bool := if ff is Network p then weights_in_range p else true.

(* every token with every state *)
Definition tabulated : seq (seq (seq bool * bool)) :=
  let look := looked_at in
  [seq [seq look (one_hot_of D t) q | q <- iota 0 W] | t <- iota 0 D].
Definition row_in (table : seq (seq (seq bool * bool))) (t q : nat) : seq bool * bool :=
  nth ([::], false) (nth [::] table t) q.

Definition wrong_key : option nat :=
  ohead [seq t <- iota 0 D | ~~ (dot (one_hot_of D t) G_K =? 1)%Z].

(* None: exact. *)
Definition verdict_machine : option machine_failure :=
  if ~~ (has_size && mark_fits) then Some Machine_size
  else if ~~ in_range then Some Machine_range
  else if wrong_key is Some t then Some (Gate_of_key t)
  else
    let table := tabulated in
    omap Row_fault (check_product M D W (fun t q => (row_in table t q).1)
                                        (fun t q => (row_in table t q).2)).
End Check.

(* ---- what a text is to become ---- *)

Section Texts.
Variables (M : machine) (D : nat) (backwards : bool).
Notation turned := (turned backwards).
Notation token := (one_hot_of D).
Notation zero := (nseq D 0%Z).

(* a text as it stands, and what is around it; the mark comes behind the symbol that is read last *)
Definition with_mark (text : seq nat) : seq nat :=
  if mark M is Some m then turned (rcons (turned text) m) else text.
Definition machine_input (b : seq nat * seq bool) : seq bool * seq row :=
  input_of D (map token (with_mark b.1), b.2).

(* a text that the machine answers; no text is empty where the answer comes at the end *)
Definition is_text (b : seq nat * seq bool) : bool :=
  all (fun t => t < D) b.1 &&
  if mark M is Some m then (b.1 != [::]) && answered M (begins M) m (turned b.1)
  else transduced M (begins M) (turned b.1).

(* one answer for each symbol, where it was read; or one at the mark, and nothing elsewhere *)
Definition machine_answers (b : seq nat * seq bool) (X : seq row) : Prop :=
  if mark M is Some m then
    exists y, answered M (begins M) m (turned b.1) = Some y /\
      X = turned (rcons (nseq (size b.1) zero) (token y)) ++ nseq (size b.2) zero
  else
    exists ys, transduced M (begins M) (turned b.1) = Some ys /\
      X = map token (turned ys) ++ nseq (size b.2) zero.
End Texts.

(* ---- soundness ---- *)

Section Soundness.
Variables (M : machine) (D W : nat) (G_K : row) (ff : feedforward).
Hypothesis accepted : verdict_machine M D W G_K ff = None.
Variable backwards : bool.
Notation token := (one_hot_of D).
Notation zero := (nseq D 0%Z).

Lemma accepted_parts :
  [/\ has_size D W ff, mark_fits M D, in_range ff & wrong_key D G_K = None].
Proof.
move: accepted; rewrite /verdict_machine; case: ifP => // /negbFE/andP[-> ->].
by case: ifP => // /negbFE ->; case: wrong_key.
Qed.

Lemma W_pos : 0 < W.
Proof. by case: accepted_parts => /andP[]. Qed.

Let above t q := (row_in (tabulated D W ff) t q).1.
Let sure t q := (row_in (tabulated D W ff) t q).2.

Lemma tabulated_entry t q : t < D -> q < W ->
  above t q = positive W ff (token t) q /\ sure t q = surely D W ff (token t) q.
Proof.
move=> tD qW; rewrite /above /sure /row_in (nth_map 0) ?size_iota // nth_iota //.
by rewrite (nth_map 0) ?size_iota // nth_iota.
Qed.

Lemma product_accepted : check_product M D W above sure = None.
Proof.
move: accepted; rewrite /verdict_machine; case: ifP => // _; case: ifP => // _.
by case: wrong_key => //; rewrite -/above -/sure; case: check_product.
Qed.

Lemma total_one_hot n t : t < n -> total (one_hot_of n t) = 1%Z.
Proof.
have tot (l : seq nat) : total [seq (if i == t then 1 else 0)%Z | i <- l]
  = Z.of_nat (count_mem t l).
  by elim: l => //= i l ->; rewrite Nat2Z.inj_add; case: eqP.
by move=> tn; rewrite /one_hot_of tot count_uniq_mem ?iota_uniq // mem_iota add0n tn.
Qed.

Lemma token_is_token t : t < D -> is_token D G_K (token t).
Proof.
move=> tD; rewrite /is_token size_map size_iota eqxx total_one_hot //= andbT.
rewrite -[_ == _]/(dot _ _ =? 1)%Z.
case: accepted_parts => _ _ _; rewrite /wrong_key.
case: Z.eqb_spec => // wrong; have : t \in [seq t <- iota 0 D | ~~ (dot (token t) G_K =? 1)%Z].
  by rewrite mem_filter mem_iota add0n tD andbT; case: Z.eqb_spec.
by case: [seq _ <- _ | _].
Qed.

(* ---- the feedforward that runs ---- *)

Variable try : row -> nat -> seq bool.
Hypotheses (sized : forall h q, q < W -> size (try h q) = D + W)
           (tried : forall h q, q < W -> surely D W ff h q -> try h q = positive W ff h q).

Let seen t q := if t < D then try (token t) q else above t q.

Lemma seen_right t q : q < W -> sure t q -> seen t q = above t q.
Proof.
rewrite /seen => qW; case: ifP => // tD; have [-> ->] := tabulated_entry tD qW.
exact: tried.
Qed.

Definition as_row (bits : seq bool) : row := [seq (if b then 1 else 0)%Z | b <- bits].

Lemma as_row_shows y : as_row (shows D y) = if y is Some t then token t else zero.
Proof.
rewrite /as_row -map_comp; case: y => [y|].
  by apply: eq_map => t /=; rewrite (inj_eq (@Some_inj _)).
by rewrite -[X in nseq X](size_iota 0); elim: (iota 0 D) => //= i l ->.
Qed.

Lemma reads_writes u text : all (fun t => t < D) text ->
  reads D W try u (map token text) = map as_row (writes D W seen u text).
Proof.
elim: text u => //= t text IH u /andP[tD /IH <-]; rewrite /onward /shown /seen tD.
congr cons; rewrite /given; case: ifP => // _.
by rewrite /as_row map_nseq.
Qed.

Lemma reads_text b : is_text M D backwards b ->
  exists ys, [/\ reads D W try 0 (map token (turned backwards (with_mark M backwards b.1)))
                 = ys, all (is_token D G_K) (map token (with_mark M backwards b.1))
              & machine_answers M D backwards b (turned backwards ys ++ nseq (size b.2) zero)].
Proof.
case: b => text pad; rewrite /is_text /machine_answers /with_mark /=.
have [_ m_below _ _] := accepted_parts; rewrite /mark_fits in m_below; have W0 := W_pos.
have start : related M D W above (0, begins M) by left.
case Em: (mark M) m_below => [m|] mD /andP[tD].
- case/andP=> ne; case Ey: answered => [y|//] _.
  have tD' : all (fun t => t < D) (turned backwards text).
    by apply/allP => t; rewrite mem_turned => /(allP tD).
  have tm : all (fun t => t < D) (rcons (turned backwards text) m) by rewrite all_rcons mD.
  rewrite turnedK reads_writes //; eexists; split=> //.
    rewrite all_map; apply/allP => t; rewrite mem_turned => /(allP tm) /=.
    exact: token_is_token.
  exists y; split=> //; congr (turned _ _ ++ _).
  rewrite (product_answers_at_the_end product_accepted seen_right Em tD' _ W0 Ey).
    by rewrite map_rcons map_nseq !as_row_shows size_turned.
  by case E: (turned _ _) => [|? ?] //; move: ne; rewrite -size_eq0 -(size_turned backwards) E.
case Ey: transduced => [ys|//] _.
have tD' : all (fun t => t < D) (turned backwards text).
  by apply/allP => t; rewrite mem_turned => /(allP tD).
rewrite reads_writes //; eexists; split=> //.
  by rewrite all_map; apply/allP => t /(allP tD); apply: token_is_token.
exists ys; split=> //; congr (_ ++ _).
rewrite (product_answers_each product_accepted seen_right Em tD' start W0 Ey) -map_comp.
by rewrite map_turned; congr (turned _ _); apply: eq_map => y /=; rewrite as_row_shows.
Qed.

Lemma layer_answers step batch : all (is_text M D backwards) batch ->
  Forall2 (machine_answers M D backwards) batch
    (iterate_machine D W G_K backwards try step (map (machine_input M D backwards) batch)).
Proof.
move=> tb; rewrite /machine_input (map_comp (input_of D)
  (fun b => (map token (with_mark M backwards b.1), b.2))).
rewrite (layer_reads_texts backwards sized); last first.
  rewrite all_map; apply: sub_all tb => b /reads_text[ys [_ ok _]] //.
rewrite -map_comp; elim: batch tb => //= b batch IH /andP[/reads_text[ys [E _ ans]] /IH].
by constructor=> //; rewrite /read_of /= -map_turned E.
Qed.
End Soundness.

(* ---- in whole numbers ---- *)

Lemma size_look_up n bags results H : 0 < size results ->
  all (fun r : row => size r == n) results -> size (look_up bags results H) = n.
Proof.
rewrite /look_up => nonempty sn; case E: [seq _ | _ <- _ & _] => [|r l].
  by rewrite size_map; case: results nonempty sn {E} => //= r results _ /andP[/eqP].
rewrite size_map; apply/eqP; have : all (fun r : row => size r == n) (r :: l); last by case/andP.
rewrite -{}E; elim: results bags sn {nonempty} => [|r' results IH] [|b bags] //= /andP[sr /IH sn].
by case: all2; rewrite /= ?sr sn.
Qed.

Lemma size_compute D W ff H : has_size D W ff -> size (compute ff H) = D + W.
Proof.
case/andP=> _; case: ff => [p|bags results] /=; last by case/andP; apply: size_look_up.
case/andP=> /and4P[_ /eqP sb _ _] /eqP s2.
by rewrite /outputs /affine size_map size_zip size_map -sb s2 minnn.
Qed.

Section Whole.
Variables (M : machine) (D W : nat) (G_K : row) (ff : feedforward) (backwards : bool).
Hypothesis accepted : verdict_machine M D W G_K ff = None.

(* What was checked gives the answer of the machine, for every text of every length, in any batch,
   with any padding, and however many rows are composed at a time. *)
Theorem checked_machine_is_exact step batch : all (is_text M D backwards) batch ->
  Forall2 (machine_answers M D backwards) batch
    (iterate_machine D W G_K backwards (positive W ff) step
      (map (machine_input M D backwards) batch)).
Proof.
apply: (layer_answers accepted) => // h q _.
by have [sz _ _ _] := accepted_parts accepted; rewrite size_map (size_compute _ sz).
Qed.

(* ---- on a device ---- *)

(* what may be above the threshold for a bag beside a state, where the feedforward rounds *)
Definition may_try (h : row) (q : nat) (bits : seq bool) : Prop :=
  exists Y, may_feed ff (beside W h q) Y /\ bits = [seq (0 <? z)%Z | z <- Y].

Lemma may_try_size h q bits : may_try h q bits -> size bits = D + W.
Proof.
have [sz _ _ _] := accepted_parts accepted.
case=> Y [fed ->]; rewrite size_map; case/andP: (sz) => _.
move: fed sz; rewrite /may_feed; case: ff => [p|bags results]; last first.
  by move=> -> sz _; rewrite size_map; apply: (size_compute _ sz).
case=> z [[x [active [_ _ out]]] ->] _ /andP[/and4P[_ /eqP sb _ _] /eqP s2].
have : size z = size (zip (W_2 p) (b_2 p)) by elim: out => //= q' y l l' _ _ ->.
by rewrite size_map size_zip -sb minnn s2.
Qed.

Lemma may_try_right h q bits : surely D W ff h q -> may_try h q bits -> bits = positive W ff h q.
Proof.
have [_ _ range _] := accepted_parts accepted.
have thresholdK z : [seq (0 <? z)%Z | z <- threshold z] = [seq (0 <? z)%Z | z <- z].
  by rewrite /threshold -map_comp; apply: eq_map => x /=; case: ifP.
rewrite /surely /positive => ok [Y [fed ->]]; move: ok fed range.
rewrite /certain /compute /in_range; case: ff => [p|bags results] ok fed range.
  by rewrite (feed_keeps_signs range ok fed) thresholdK.
by rewrite fed thresholdK.
Qed.

(* And so it is with the perceptron in binary64, in any rounding mode, with sums in any order.
   Rows to which no text leads may be within rounding of the threshold: what they give does not
   matter. *)
Theorem running_machine_is_exact (try : row -> nat -> seq bool) step batch :
  (forall h q, q < W -> may_try h q (try h q)) -> all (is_text M D backwards) batch ->
  Forall2 (machine_answers M D backwards) batch
    (iterate_machine D W G_K backwards try step (map (machine_input M D backwards) batch)).
Proof.
move=> may; apply: (layer_answers accepted) => h q qW; first exact: may_try_size (may h q qW).
by move=> ok; apply: may_try_right ok (may h q qW).
Qed.
End Whole.
