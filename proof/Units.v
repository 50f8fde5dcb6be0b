(* T5, units: a rule on any number of operands is condensed into one small whole number, unit by
   unit, and read out; here is why that gives the rule. UnitRules.v has the definitions. *)
From mathcomp Require Import all_ssreflect.
From Coq Require Import ZArith Lia.
From Exactformer Require Import Circuit.
From Exactformer Require Export UnitRules.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Implicit Types (a : seq nat) (n slots v m : nat).

(* ---- sums of units ---- *)

Lemma nth_nseq_last T (x0 x : T) slots i : 0 < slots ->
  nth x0 (nseq slots x) (minn i (size (nseq slots x)).-1) = x.
Proof. by move=> s0; rewrite nth_nseq size_nseq ifT // gtn_min prednK ?leqnn ?orbT. Qed.

Lemma nth_by_place n weight x : x < n -> nth 0%Z (by_place n weight) x = weight x.
Proof. by move=> xn; rewrite (nth_map 0) ?size_iota // nth_iota. Qed.

(* by place alone, the slots do not matter *)
Lemma sum_of_counts n slots weight a : 0 < slots -> all (fun x => x < n) a ->
  sum_of (nseq slots (by_place n weight)) a = total (map weight a).
Proof.
move=> s0; rewrite /sum_of; move: 0 => i; elim: a i => //= x a IH i /andP[xn /IH ->].
by rewrite nth_nseq_last // nth_by_place.
Qed.

(* a first slot for the first operand, and others that are all alike *)
Lemma sum_of_first first_row other x a slots : 1 < slots ->
  sum_of (first_row :: nseq slots.-1 other) (x :: a)
  = (nth 0 first_row x + total [seq nth 0 other y | y <- a])%Z.
Proof.
move=> s1; rewrite /sum_of /= size_nseq min0n /=; congr Z.add.
have : 0 < 1 by []; move: {2 3}1 => i; elim: a i => //= y a IH i i0; rewrite IH //; congr Z.add.
have -> : nth [::] (first_row :: nseq slots.-1 other) (minn i slots.-1) = other.
  have : 0 < minn i slots.-1 by rewrite leq_min i0 -ltnS prednK // ltnW.
  case E: (minn i slots.-1) => [//|j] _ /=; rewrite nth_nseq ifT //.
  by rewrite -E geq_minr.
by [].
Qed.

Lemma total_ones (P : pred nat) a : total [seq one_if (P x) | x <- a] = Z.of_nat (count P a).
Proof. by elim: a => //= x a ->; rewrite /one_if; case: (P x); rewrite ?add1n ?add0n; lia. Qed.

Lemma total_signs (P : pred nat) a :
  total [seq (if P x then 1 else -1)%Z | x <- a] = (2 * Z.of_nat (count P a) - Z.of_nat (size a))%Z.
Proof. by elim: a => //= x a ->; case: (P x); rewrite ?add1n ?add0n; lia. Qed.

Lemma total_places a : total (map Z.of_nat a) = Z.of_nat (sumn a).
Proof. by elim: a => //= x a ->; rewrite Nat2Z.inj_add. Qed.

Lemma total_cat s t : total (s ++ t) = (total s + total t)%Z.
Proof. by elim: s => //= x s ->; lia. Qed.

(* a unit with the cap 1 is a step: has the sum reached 1? *)
Lemma step_unit s : Z.min (Z.max s 0) 1 = one_if (0 <? s)%Z.
Proof. by rewrite /one_if; case: Z.ltb_spec0; lia. Qed.

(* how many steps v = 1 ... k are up to m, and above m *)
Lemma steps_up m k : m <= k -> total [seq one_if (v <= m) | v <- iota 1 k] = Z.of_nat m.
Proof.
rewrite total_ones => mk; congr Z.of_nat.
by rewrite -{1}(subnKC mk) iotaD count_cat (eq_in_count (a2 := predT)) ?count_predT ?size_iota;
   [rewrite (eq_in_count (a2 := pred0)) ?count_pred0 ?addn0 // => v|move=> v];
   rewrite mem_iota => /andP[h1 h2] /=; [rewrite leqNgt h1|rewrite -ltnS].
Qed.

Lemma steps_down m k : m <= k -> total [seq one_if (m < v) | v <- iota 1 k] = Z.of_nat (k - m).
Proof.
move=> mk; have := steps_up mk; rewrite !total_ones => /Nat2Z.inj up; congr Z.of_nat.
have E : m + count (fun v => m < v) (iota 1 k) = k.
  rewrite -{1}up -[RHS](size_iota 1 k) -(count_predC (fun v => v <= m)); congr addn.
  by apply: eq_count => v /=; rewrite ltnNge.
by rewrite -{2}E addKn.
Qed.

Lemma nth_rev_iota n m : m < n -> nth 0 (rev (iota 0 n)) (n.-1 - m) = m.
Proof.
move=> mn; have n0 : 0 < n by apply: leq_ltn_trans mn.
have mp : m <= n.-1 by rewrite -ltnS prednK.
rewrite nth_rev size_iota; last by rewrite -{2}(prednK n0) ltnS leq_subr.
by rewrite nth_iota -{1}(prednK n0) subSS subKn // -ltnS ?prednK.
Qed.

(* ---- the rules, for any number of operands ---- *)

Section Rules.
Variables (n slots : nat) (a : seq nat).
Hypotheses (s0 : 0 < slots) (some : 0 < size a) (places : all (fun x => x < n) a).

Let n0 : 0 < n.
Proof. by case: a some places => //= x b _ /andP[xn _]; apply: leq_ltn_trans xn. Qed.
Let below_n m : m < n -> m <= n.-1.
Proof. by rewrite -{1}(prednK n0). Qed.

Lemma condensed_counts weight b c p :
  condensed (counts n slots weight b c p) a
  = if (p =? 0)%Z then Z.min (Z.max (total (map weight a) + b) 0) c
    else ((total (map weight a) + b) mod p)%Z.
Proof. by rewrite /condensed /= sum_of_counts. Qed.

(* one unit for each step v; `P v` is what its operands are counted by *)
Lemma code_of_steps (weight : nat -> nat -> Z) b (up : nat -> bool) :
  (forall v, (0 <? total (map (weight v) a) + b)%Z = up v) ->
  total [seq (condensed u a * code u)%Z | u <-
    [seq counts n slots (weight v) b 1 0 | v <- iota 1 n.-1]]
  = total [seq one_if (up v) | v <- iota 1 n.-1].
Proof.
move=> E; congr total; rewrite -map_comp; apply: eq_map => v /=.
by rewrite condensed_counts /= step_unit E Z.mul_1_r.
Qed.

(* max >= v where some operand is >= v *)
Lemma has_largest v : 0 < v -> has (fun x => v <= x) a = (v <= largest a).
Proof.
move=> v0; rewrite /largest; elim: (a) => /= [|x b ->]; first by case: v v0.
by rewrite leq_max.
Qed.

Lemma largest_lt : largest a < n.
Proof. by move: places; elim: (a) => //= x b IH /andP[xn /IH]; rewrite gtn_max xn. Qed.

Lemma max_code : code_of (max_units n slots) a = Z.of_nat (largest a).
Proof.
rewrite /code_of /= (@code_of_steps (fun v x => one_if (v <= x)) 0
  (fun v => has (fun x => v <= x) a)).
  rewrite -(steps_up (below_n largest_lt)); congr total; apply/eq_in_map => v.
  by rewrite mem_iota => /andP[v0 _]; rewrite has_largest.
move=> v; rewrite total_ones Z.add_0_r has_count.
by case: (count _ _).
Qed.

Theorem max_right : result_of (max_units n slots) a = largest a.
Proof. by rewrite /result_of max_code Nat2Z.id nth_iota ?largest_lt. Qed.

(* min < v where some operand is < v *)
Lemma has_smallest v : has (fun x => x < v) a = (smallest a < v).
Proof.
rewrite /smallest; case: a some => //= x b _; rewrite gtn_min; case xv: (x < v) => //=.
by elim: b => /= [|y b ->]; rewrite ?xv // gtn_min.
Qed.

Lemma smallest_lt : smallest a < n.
Proof. by rewrite -has_smallest; case: a some places => //= x b _ /andP[-> _]. Qed.

Lemma min_code : code_of (min_units n slots) a = Z.of_nat (n.-1 - smallest a).
Proof.
rewrite /code_of /= (@code_of_steps (fun v x => one_if (x < v)) 0 (fun v => smallest a < v)).
  exact: steps_down (below_n smallest_lt).
move=> v; rewrite total_ones Z.add_0_r -has_smallest has_count.
by case: (count _ _).
Qed.

Theorem min_right : result_of (min_units n slots) a = smallest a.
Proof. by rewrite /result_of min_code Nat2Z.id nth_rev_iota ?smallest_lt. Qed.

Theorem nor_right : result_of (complement_of n (max_units n slots)) a = n.-1 - largest a.
Proof.
rewrite /result_of [code_of _ _]max_code Nat2Z.id /= (nth_map 0) ?size_iota ?largest_lt //.
by rewrite nth_iota ?largest_lt.
Qed.

Theorem nand_right : result_of (complement_of n (min_units n slots)) a = n.-1 - smallest a.
Proof.
rewrite /result_of [code_of _ _]min_code Nat2Z.id /= (nth_map 0) ?size_rev ?size_iota.
  by rewrite nth_rev_iota ?smallest_lt.
by rewrite -{2}(prednK n0) ltnS leq_subr.
Qed.

(* of one operand, the complement *)
Theorem complement_right x : a = [:: x] ->
  result_of (complement_of n (max_units n slots)) a = n.-1 - x.
Proof. by move=> E; rewrite nor_right /largest E /= maxn0. Qed.

(* The i-th smallest is < v where more than i operands are. *)
Lemma nth_sorted_lt i v : i < size a -> (nth 0 (sort leq a) i < v) = (i < count (fun x => x < v) a).
Proof.
rewrite -(seq.permP (permEl (perm_sort leq a))) -(size_sort leq); have := sort_sorted leq_total a.
elim: (sort leq a) i => //= x b IH i; rewrite (path_sortedE leq_trans) => /andP[/allP xb sb].
case: i => [|i] /= ib; last first.
  rewrite IH //; case xv: (x < v); first by rewrite add1n ltnS.
  have : count (fun y => y < v) b = 0.
    apply/eqP; rewrite -leqn0 leqNgt -has_count; apply/hasPn => y /xb xy.
    by rewrite -leqNgt; apply: leq_trans xy; rewrite leqNgt xv.
  by move=> ->; rewrite addn0 !ltn0.
case xv: (x < v) => //; rewrite add0n; symmetry; apply/negbTE.
rewrite -leqNgt leqn0 -leqn0 leqNgt -has_count; apply/hasPn => y /xb xy.
by rewrite -leqNgt; apply: leq_trans xy; rewrite leqNgt xv.
Qed.

Lemma median_lt i : i < size a -> nth 0 (sort leq a) i < n.
Proof. by move=> ia; rewrite nth_sorted_lt // (eqP (_ : count _ a == size a)) // -all_count. Qed.

Lemma below_code b i : i < size a ->
  (forall c, c <= size a -> (0 <? 2 * Z.of_nat c - Z.of_nat (size a) + b)%Z = (i < c)) ->
  total [seq (condensed u a * code u)%Z | u <- below n slots b]
  = Z.of_nat (n.-1 - nth 0 (sort leq a) i).
Proof.
move=> ia E; rewrite (@code_of_steps (fun v x => if x < v then 1%Z else (-1)%Z) b
  (fun v => nth 0 (sort leq a) i < v)); first exact: steps_down (below_n (median_lt ia)).
by move=> v; rewrite total_signs nth_sorted_lt // E ?count_size.
Qed.

Let half_spec m : (m./2 + m./2 <= m)%coq_nat /\ (m <= (m./2 + m./2).+1)%coq_nat.
Proof. by have := odd_double_half m; rewrite -addnn -!plusE; case: (odd m) => /=; lia. Qed.
Let half_lt m : 0 < m -> m.-1./2 < m.
Proof. by move/ltP=> m0; apply/ltP; have := half_spec m.-1; rewrite -!plusE; lia. Qed.
Let half_lt' m : 0 < m -> m./2 < m.
Proof. by move/ltP=> m0; apply/ltP; have := half_spec m; rewrite -!plusE; lia. Qed.

Lemma lower_code : total [seq (condensed u a * code u)%Z | u <- below n slots 1]
  = Z.of_nat (n.-1 - lower_median a).
Proof.
apply: below_code => [|c ca]; first exact: half_lt.
have := half_spec (size a).-1; rewrite -!plusE; move/ltP: some => s1 h.
by apply/Z.ltb_spec0/ltP => ?; lia.
Qed.

Lemma upper_code : total [seq (condensed u a * code u)%Z | u <- below n slots 0]
  = Z.of_nat (n.-1 - upper_median a).
Proof.
apply: below_code => [|c ca]; first exact: half_lt'.
have := half_spec (size a); rewrite -!plusE; move/ltP: some => s1 h.
by apply/Z.ltb_spec0/ltP => ?; lia.
Qed.

Theorem median_right : result_of (median_units n slots) a = lower_median a.
Proof.
rewrite /result_of /code_of /= lower_code Nat2Z.id nth_rev_iota //.
by apply: median_lt; exact: half_lt.
Qed.

Theorem median_mean_right :
  result_of (median_mean_units n slots) a = (lower_median a + upper_median a)./2.
Proof.
have lo : lower_median a < n by apply: median_lt; exact: half_lt.
have hi : upper_median a < n.
  by apply: median_lt; exact: half_lt'.
rewrite /result_of /code_of /= map_cat total_cat lower_code upper_code -Nat2Z.inj_add Nat2Z.id.
move: (lower_median a) (upper_median a) lo hi => l h lo hi.
have small : (n.-1 - l) + (n.-1 - h) < 2 * n - 1.
  by apply/ltP; move/ltP: lo; move/ltP: hi; rewrite mul2n -addnn -!plusE -!minusE -!subn1 -!minusE;
    lia.
rewrite nth_rev size_map size_iota // (nth_map 0) ?size_iota; last first.
  by apply/ltP; move/ltP: small; rewrite -!minusE; lia.
rewrite nth_iota; last by apply/ltP; move/ltP: small; rewrite -!minusE; lia.
congr half; apply/eqP/eqP; move/ltP: lo; move/ltP: hi.
by rewrite mul2n -addnn -!plusE -!subn1 -!minusE; lia.
Qed.

(* ---- sums ---- *)

Theorem sum_right : result_of (sum_units n slots) a = sumn a %% n.
Proof.
have nz : (Z.of_nat n =? 0)%Z = false by apply/Z.eqb_spec; move/ltP: n0; lia.
rewrite /result_of /code_of /= condensed_counts nz total_places Z.add_0_r Z.mul_1_r Z.add_0_r.
have E : (Z.of_nat (sumn a) mod Z.of_nat n = Z.of_nat (sumn a %% n))%Z.
  rewrite [in LHS](divn_eq (sumn a) n) Nat2Z.inj_add Nat2Z.inj_mul Z.add_comm Z.mod_add; last first.
    by move/ltP: n0; lia.
  by rewrite Z.mod_small //; split; [lia|apply: inj_lt; apply/ltP; rewrite ltn_mod].
by rewrite E Nat2Z.id nth_iota // ltn_mod.
Qed.

Theorem saturating_right : result_of (saturating_units n slots) a = minn (sumn a) n.-1.
Proof.
rewrite /result_of /code_of /= condensed_counts total_places Z.add_0_r Z.mul_1_r Z.add_0_r.
have -> : Z.min (Z.max (Z.of_nat (sumn a)) 0) (Z.of_nat n.-1) = Z.of_nat (minn (sumn a) n.-1).
  by case: (leqP (sumn a) n.-1) => /leP h; lia.
by rewrite Nat2Z.id nth_iota // -(prednK n0) ltnS geq_minr.
Qed.
End Rules.

(* ---- rules that look at the order: two slots or more, or one operand ---- *)

Section Ordered.
Variables (n slots x : nat) (a : seq nat).
Hypotheses (s1 : 1 < slots) (xn : x < n) (places : all (fun y => y < n) a).

Theorem first_right : result_of (first_units n slots) (x :: a) = x.
Proof.
rewrite /result_of /code_of /= /condensed sum_of_first // nth_by_place // Z.mul_1_r Z.add_0_r.
have -> : total [seq nth 0%Z (nseq n 0%Z) y | y <- a] = 0%Z.
  by elim: (a) => //= y b ->; rewrite nth_nseq if_same.
rewrite !Z.add_0_r /=; have -> : Z.min (Z.max (Z.of_nat x) 0) (Z.of_nat n.-1) = Z.of_nat x.
  by move/ltP: xn; rewrite -subn1 -minusE; lia.
by rewrite Nat2Z.id nth_iota.
Qed.

(* the first operand minus all others modulo n; of one, its negative *)
Theorem difference_right :
  result_of (difference_units n slots) (x :: a)
  = Z.to_nat ((if a is [::] then - Z.of_nat x else Z.of_nat x - Z.of_nat (sumn a)) mod Z.of_nat n).
Proof.
have npos : (0 < Z.of_nat n)%Z by move/ltP: xn; lia.
have nz : (Z.of_nat n =? 0)%Z = false by apply/Z.eqb_spec; lia.
rewrite /result_of /code_of /= /condensed /= nz !sum_of_first // nth_by_place // nth_nseq xn
  !Z.add_0_r.
have -> : total [seq nth 0%Z (by_place n (fun y =>
  - Z.of_nat y)%Z) y | y <- a] = (- Z.of_nat (sumn a))%Z.
  by elim: (a) places => //= y b IH /andP[yn /IH ->]; rewrite nth_by_place // Nat2Z.inj_add; lia.
have -> : total [seq nth 0%Z (nseq n 1%Z) y | y <- a] = Z.of_nat (size a).
  by elim: (a) places => //= y b IH /andP[yn /IH ->]; rewrite nth_nseq yn; lia.
rewrite Z.add_opp_r step_unit Z.mul_1_r.
set d := ((Z.of_nat x - Z.of_nat (sumn a)) mod Z.of_nat n)%Z.
have [d0 dn] : (0 <= d < Z.of_nat n)%Z by apply: Z.mod_pos_bound.
case: (a) @d d0 dn => [|y b] d d0 dn.
  have Ed : d = Z.of_nat x by rewrite /d /= Z.sub_0_r Z.mod_small //; move/ltP: xn; lia.
  rewrite /= Z.add_0_r Ed Nat2Z.id nth_cat size_map size_iota xn (nth_map 0) ?size_iota // nth_iota
    //.
  rewrite add0n; case: (posnP x) => [->|xpos];
    first by rewrite subn0 modnn [(- _)%Z](_ : _ = 0%Z) // Z.mod_0_l //; lia.
  rewrite modn_small; last by rewrite ltn_subrL xpos (leq_ltn_trans _ xn).
  rewrite (Z.mod_opp_l_nz (Z.of_nat x)) ?Z.mod_small; try by [move/ltP: xn; lia|move/ltP: xpos;
    lia].
  by rewrite -minusE; lia.
have -> : Z.to_nat (d + one_if (0 <? Z.of_nat (size (y :: b)))%Z * Z.of_nat n)%Z = n + Z.to_nat d.
  by rewrite [one_if _](_ : _ = 1%Z) // -plusE; lia.
rewrite nth_cat size_map size_iota ltnNge leq_addr /= addKn nth_iota //.
by apply/ltP; lia.
Qed.
End Ordered.

(* of two operands, the larger of the first one's complement and the second: it is >= v where one of
   them is *)
Theorem implies_right n slots x y : 1 < slots -> x < n -> y < n ->
  result_of (implies_units n slots) [:: x; y] = maxn (n.-1 - x) y.
Proof.
move=> s1 xn yn; have n0 : 0 < n by apply: leq_ltn_trans xn.
have small : maxn (n.-1 - x) y < n by rewrite gtn_max yn -{2}(prednK n0) ltnS leq_subr.
suff E : code_of (implies_units n slots) [:: x; y] = Z.of_nat (maxn (n.-1 - x) y).
  by rewrite /result_of E Nat2Z.id nth_iota.
rewrite -(@steps_up _ n.-1); last by rewrite -ltnS prednK.
rewrite /code_of /= -map_comp; congr total; apply: eq_map => v /=.
rewrite /condensed /sum_of /= size_nseq (minn_idPl (isT : 1 <= (slots - 2).+1)) !nth_by_place //.
rewrite step_unit Z.mul_1_r.
by rewrite leq_max /one_if; case: (v <= n.-1 - x); case: (v <= y).
Qed.
