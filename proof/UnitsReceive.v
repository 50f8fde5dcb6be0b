(* What units receive: with a rank gate that is 1 on values and the paper's routing, the operator of
   a span of any number of operands receives itself once, in slot 0, and its i-th operand once, in
   slot i, the last slot taking all that are left. So a unit's sum over what is received is `sum_of`
   of its operands, which the theorems of Units.v are about. *)
From mathcomp Require Import all_ssreflect.
From Coq Require Import ZArith Lia.
From Exactformer Require Import Circuit Ranks Expressions TypedAttention Checker Units.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section Receive.
Variables (a : algebra) (w : weights) (o : nat).
Hypotheses (o_in : o < n_operators a) (slots : 0 < S w).

Definition is_value (t : nat) : bool := (1 < t) && (t < 2 + n_values a).
Definition own : nat := operator_token a o.

(* the conditions that verify checks: the rank gate, and the rows of Q K^T *)
Hypothesis rank_right : forall t, t < vocabulary_size a ->
  dot (one_hot a t) (G_R w) = one_if (is_value t).
Hypothesis route_right : forall t, t < vocabulary_size a ->
  route w (one_hot a own) (one_hot a t) = one_if (is_value t || (t == own)).

(* what one token of rank r adds to slot s, token u *)
Definition adds (s u t : nat) (r : Z) : Z :=
  if slot (S w) r == s then one_if ((is_value t || (t == own)) && (u == t)) else 0%Z.

Fixpoint walk (s u : nat) (r : Z) (tokens : seq nat) : Z :=
  if tokens is t :: tokens then
    let r' := (r + one_if (is_value t))%Z in (adds s u t r' + walk s u r' tokens)%Z
  else 0%Z.

Lemma nth_one_hot u t : u < vocabulary_size a -> nth 0%Z (one_hot a t) u = one_if (u == t).
Proof. by move=> uv; rewrite (nth_map 0) ?size_iota // nth_iota. Qed.

Lemma bag_entry_walk s u tokens : u < vocabulary_size a ->
  all (fun t => t < vocabulary_size a) tokens ->
  bag_entry w (one_hot a own) (ranked (fun x => dot x (G_R w)) (map (one_hot a) tokens)) s u
  = walk s u 0 tokens.
Proof.
move=> uv; rewrite /bag_entry /ranked /cumsum.
move: (one_hot a) rank_right route_right (@nth_one_hot u) => hot rank route_ nth_hot ts.
suff H r : total [seq (route w (hot own) y.1 * nth 0 y.1 u)%Z
    | y <- zip (map hot tokens) (scanl Z.add r [seq dot x (G_R w) | x <- map hot tokens])
    & slot (S w) y.2 == s] = walk s u r tokens by apply: H.
elim: tokens ts r => //= t tokens IH /andP[tv ts] r; rewrite rank // /adds -IH //;
  case: ifP => //= _.
by congr Z.add; rewrite route_ // nth_hot // /one_if; case: (_ || _) => //=; case: (u == t).
Qed.

Lemma walk_cat s u r x y : walk s u r (x ++ y)
  = (walk s u r x + walk s u (r + Z.of_nat (count is_value x)) y)%Z.
Proof.
elim: x r => [|t x IH] r /=; first by rewrite Z.add_0_r.
rewrite IH Nat2Z.inj_add.
have -> : Z.of_nat (is_value t) = one_if (is_value t) by case: (is_value t).
by rewrite !Z.add_assoc.
Qed.

(* operands from the i-th on, by slot and place *)
Lemma walk_values s v i (l : seq nat) : v < n_values a -> all (fun x => x < n_values a) l ->
  walk s (value_token v) (Z.of_nat i) (map value_token l)
  = total [seq one_if ((minn q.1 (S w).-1 == s) && (v == q.2)) | q <- zip (iota i (size l)) l].
Proof.
move=> vn; elim: l i => //= x l IH i /andP[xn ln].
have vx : is_value (value_token x) by rewrite /is_value /value_token !ltn_add2l.
rewrite vx (_ : (Z.of_nat i + one_if true)%Z = Z.of_nat i.+1); last by rewrite /one_if; lia.
rewrite IH //; congr Z.add; rewrite /adds vx /= /value_token eqn_add2l.
have -> : slot (S w) (Z.of_nat i.+1) = minn i (S w).-1.
  rewrite /slot /minn; case: ltnP => /leP h; move/ltP: slots => h0; lia.
by case: ifP.
Qed.

Lemma walk_other s u r t : ~~ is_value t -> t != own ->
  forall l, walk s u r (t :: l) = walk s u r l.
Proof.
move=> nv no l /=; rewrite (negbTE nv) /= Z.add_0_r /adds (negbTE nv) (negbTE no) /=.
by case: ifP.
Qed.

Lemma own_no_value : is_value own = false.
Proof. by rewrite /is_value /own /operator_token [_ < 2 + _]ltnNge leq_addr andbF. Qed.

Lemma span_tokens operands : all (fun x => x < n_values a) operands ->
  all (fun t => t < vocabulary_size a) (span a o operands).
Proof.
have values l : all (fun x => x < n_values a) l ->
  all (fun t => t < vocabulary_size a) (map value_token l).
  elim: l => //= x l IH /andP[xn /IH ->];
    rewrite andbT /value_token /vocabulary_size -addnA ltn_add2l.
  exact: leq_trans xn (leq_addr _ _).
move=> ok; rewrite /span /= all_cat /= all_cat /= !andbT; move: ok.
rewrite -{1}(cat_take_drop (operands_before a (size operands)) operands) all_cat => /andP[h1 h2].
by rewrite !values //= /operator_token ltn_add2l o_in.
Qed.

Lemma count_values l : all (fun x => x < n_values a) l ->
  count is_value (map value_token l) = size l.
Proof.
elim: l => //= x l IH /andP[xn /IH ->]; by rewrite (_ : is_value _ = true).
Qed.

Section Span.
Variables (operands : seq nat).
Hypothesis ok : all (fun x => x < n_values a) operands.
Let C := ranked (fun x => dot x (G_R w)) (map (one_hot a) (span a o operands)).
Let k := operands_before a (size operands).
Let ok_take : all (fun x => x < n_values a) (take k operands).
Proof. by move: ok; rewrite -{1}(cat_take_drop k operands) all_cat => /andP[]. Qed.
Let ok_drop : all (fun x => x < n_values a) (drop k operands).
Proof. by move: ok; rewrite -{1}(cat_take_drop k operands) all_cat => /andP[]. Qed.

Definition operand_in (s v : nat) (q : nat * nat) : Z := one_if ((minn q.1 (S w).-1 == s) && (v ==
  q.2)).

(* value v in slot s: once for each operand that is v and belongs there *)
Theorem operand_received s v : v < n_values a ->
  bag_entry w (one_hot a own) C s (value_token v)
  = total [seq operand_in s v q | q <- zip (iota 0 (size operands)) operands].
Proof.
move=> vn; have vv : value_token v < vocabulary_size a.
  by rewrite /value_token /vocabulary_size -addnA ltn_add2l; apply: leq_trans vn (leq_addr _ _).
rewrite bag_entry_walk ?span_tokens // /span walk_other // walk_cat [walk _ _ _ (_ :: _)]/=.
rewrite -/own own_no_value /= Z.add_0_r walk_cat (count_values ok_take).
have -> : adds s (value_token v) own (0 + Z.of_nat (size (take k operands))) = 0%Z.
  rewrite /adds (_ : value_token v == own = false) ?andbF ?if_same //.
  by apply/eqP => E; move: own_no_value; rewrite -E /is_value /value_token !ltn_add2l vn.
rewrite [walk _ _ _ [:: 1]](@walk_other _ _ _ 1) // [walk _ _ _ [::]]/= Z.add_0_r !Z.add_0_l.
rewrite (walk_values s 0) // (walk_values s (size (take k operands))) //.
have -> : zip (iota 0 (size operands)) operands
    = zip (iota 0 (size (take k operands))) (take k operands)
      ++ zip (iota (size (take k operands)) (size (drop k operands))) (drop k operands).
  rewrite -zip_cat ?size_iota // -{2}[size (take k operands)]add0n -iotaD -size_cat.
  by rewrite cat_take_drop.
rewrite map_cat; elim: (zip _ (take _ _)) => //= q l; rewrite /operand_in => <-; lia.
Qed.

(* its own token, in slot 0 *)
Theorem operator_received : bag_entry w (one_hot a own) C 0 own = 1%Z.
Proof.
have ov : own < vocabulary_size a by rewrite /own /operator_token ltn_add2l.
have none r l : all (fun x => x < n_values a) l -> walk 0 own r (map value_token l) = 0%Z.
  elim: l r => //= x l IH r /andP[xn /IH ->];
    rewrite /adds (_ : own == value_token x = false) ?andbF ?if_same //.
  by apply/eqP => E; move: own_no_value; rewrite E /is_value /value_token !ltn_add2l xn.
rewrite bag_entry_walk ?span_tokens // /span walk_other // walk_cat [walk _ _ _ (_ :: _)]/=.
rewrite -/own own_no_value /= Z.add_0_r walk_cat !none // (count_values ok_take).
rewrite [walk _ _ _ [:: 1]](@walk_other _ _ _ 1) // [walk _ _ _ [::]]/= /adds own_no_value /= eqxx.
have -> : slot (S w) (0 + Z.of_nat (size (take k operands))) == 0; last by [].
have : size (take k operands) <= 1.
  rewrite size_take; have : k <= 1 by rewrite /k /operands_before /infix_before;
    case: prefix => //; case: eqP.
  by move=> k1; case: ifP => // /negbT; rewrite -leqNgt => h; apply: leq_trans h k1.
by move=> /leP le; rewrite /slot; apply/eqP; move/ltP: slots; lia.
Qed.

(* ---- a unit's sum ---- *)

Lemma total_at (N t : nat) (g : nat -> Z) : t < N ->
  total [seq (one_if (t == u) * g u)%Z | u <- iota 0 N] = g t.
Proof.
have out (l : seq nat) : t \notin l -> total [seq (one_if (t == u) * g u)%Z | u <- l] = 0%Z.
  by elim: l => //= u l IH; rewrite inE negb_or => /andP[/negbTE -> /IH ->].
move=> tN; have : t \in iota 0 N by rewrite mem_iota.
elim: (iota 0 N) (iota_uniq 0 N) => //= u l IH /andP[ul /IH {}IH]; rewrite inE.
case: eqP => [E _|_ /= /IH ->]; last by rewrite Z.mul_0_l Z.add_0_l.
by rewrite out E //= Z.mul_1_l Z.add_0_r.
Qed.

Theorem unit_sum_received (W : seq (seq Z)) : size W = S w ->
  total [seq total [seq (bag_entry w (one_hot a own) C s (value_token v) * nth 0 (nth [::] W s) v)%Z
                   | v <- iota 0 (n_values a)] | s <- iota 0 (S w)]
  = sum_of W operands.
Proof.
move=> sW; rewrite /sum_of sW.
have add (T : Type) (g h : T -> Z) (l : seq T) :
    total [seq (g x + h x)%Z | x <- l] = (total (map g l) + total (map h l))%Z.
  by elim: l => //= x l ->; lia.
have zero (T : Type) (l : seq T) : total [seq 0%Z | _ <- l] = 0%Z by elim: l.
pose entry l s v := total [seq operand_in s v q | q <- l].
rewrite (_ : [seq total _ | s <- _]
  = [seq total [seq (entry (zip (iota 0 (size operands)) operands) s v
    * nth 0 (nth [::] W s) v)%Z | v <- iota 0 (n_values a)] | s <- iota 0 (S w)]); last first.
  apply: eq_map => s; congr total; apply/eq_in_map => v; rewrite mem_iota => /andP[_ vn].
  by rewrite operand_received.
have : all (fun q => q.2 < n_values a) (zip (iota 0 (size operands)) operands).
  by move: ok; move: 0; elim: (operands) => //= x l IH i /andP[-> /IH ->].
move: (zip (iota 0 (size operands)) operands) => qs.
elim: qs => [_|q l IH].
  by rewrite (eq_map (f2 := fun=> 0%Z)) ?zero // => s; elim: (iota 0 (n_values a)).
rewrite [all _ _]/= => /andP[qn ln]; rewrite [RHS]/=.
rewrite -IH // -[X in (X + _)%Z](total_at (fun s =>
  nth 0%Z (nth [::] W s) q.2) (t := minn q.1 (S w).-1) (N := S w)).
  rewrite -add; congr total; apply: eq_map => s.
  rewrite -(@total_at (n_values a) q.2 (fun v =>
    (one_if (minn q.1 (S w).-1 == s) * nth 0 (nth [::] W s) v)%Z)) //.
  rewrite -add; congr total; apply: eq_map => v; rewrite /entry /= /operand_in [v == _]eq_sym.
  by rewrite /one_if; case: (_ == s); case: (q.2 == v) => /=; lia.
by rewrite -[X in _ < X](prednK slots) ltnS geq_minr.
Qed.
End Span.
End Receive.
