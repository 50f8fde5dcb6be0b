(* T4 for typed attention: in float32, float16 or bfloat16, every sum that attention takes over a
   span of depth 1 is exact, so what a position receives on a device is what it receives in whole
   numbers. *)
From Coq Require Import Reals Lra Lia List ZArith.
From Flocq Require Import Core.
From mathcomp Require Import all_ssreflect.
From Exactformer Require Import Circuit Rounding RoutedSums Verdict.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Local Open Scope nat_scope.

Section Attention.
Variables (w : weights) (emin p : Z).
Hypotheses (emin_le : (emin <= 0)%Z) (p_ge : (8 <= p)%Z).
Notation format := (rounds emin p).

(* Every sum starts from zero. *)
Definition device_dot (x k : row) (v : R) : Prop :=
  summed format (map IZR (0%Z :: [seq (q.1 * q.2)%Z | q <- zip x k])) v.

(* one number of K^T X *)
Definition device_sum (C : seq (row * Z)) (s : nat) (k : row) (t : nat) (v : R) : Prop :=
  let rows := [seq y.1 | y <- C & slot (S w) y.2 == s] in
  exists ks, Forall2 (fun y kv => device_dot y k kv) rows ks /\
  summed format (0%R :: [seq (q.1 * IZR (nth 0%Z q.2 t))%R | q <- zip ks rows]) v.

(* one number of Q (K^T X) *)
Definition device_number (x : row) (C : seq (row * Z)) (s t : nat) (h : R) : Prop :=
  exists qs ss, [/\ Forall2 (fun c q => device_dot x c.1 q) (zip (W_Q w) (W_K w)) qs,
      Forall2 (fun c v => device_sum C s c.2 t v) (zip (W_Q w) (W_K w)) ss
    & summed format (0%R :: [seq (q.1 * q.2)%R | q <- zip qs ss]) h].

Definition device_received (x : row) (C : seq (row * Z)) (H : seq R) : Prop :=
  Forall2 (fun st h => device_number x C st.1 st.2 h)
    (flatten [seq [seq (s, t) | t <- iota 0 (D w)] | s <- iota 0 (S w)]) H.

(* ---- the sums are small ---- *)

(* a token or an empty position *)
Definition unit_row (x : row) : bool := all (Z.leb 0) x && (total x <=? 1)%Z.
Definition zeros_and_ones (k : row) : bool := all (fun z => (z =? 0)%Z || (z =? 1)%Z) k.

Lemma whole_sum_total s : whole_sum s = total s.
Proof. by elim: s => //= x s ->. Qed.

Lemma whole_size_nonneg s : all (Z.leb 0) s -> whole_size s = total s.
Proof. by elim: s => //= x s IH /andP[/Z.leb_le x0 /IH ->]; lia. Qed.

Lemma sum_exact s v : all (Z.leb 0) s -> (total s <= exact_narrow)%Z ->
  summed format (map IZR s) v -> v = IZR (total s).
Proof.
move=> s0 le S; rewrite -whole_sum_total; apply: (whole_sums_are_exact _ _ _ _ _ _ S) => //; try lia.
rewrite whole_size_nonneg //; apply: Z.le_trans le _; rewrite /exact_narrow.
by apply: (Z.pow_le_mono_r 2 8 p).
Qed.

Lemma dot_total x k : total [seq (q.1 * q.2)%Z | q <- zip x k] = dot x k.
Proof. by elim: x k => [|a x IH] [|b k] //=; rewrite IH. Qed.

Lemma dot_unit x k : all (Z.leb 0) x -> zeros_and_ones k ->
  all (Z.leb 0) [seq (q.1 * q.2)%Z | q <- zip x k] /\ (0 <= dot x k <= total x)%Z.
Proof.
elim: x k => [|a x IH] [|b k] //= /andP[/Z.leb_le a0 xs].
  by split=> //; elim: (x) xs => /= [|c y IHy /andP[/Z.leb_le c0 /IHy]]; lia.
case/andP=> b01 /(IH _ xs)[-> [d0 d1]]; case/orP: b01 => /Z.eqb_eq ->; rewrite andbT; split; try lia.
  by apply/Z.leb_le; lia.
by apply/Z.leb_le; lia.
Qed.

Lemma device_dot_exact x k v : unit_row x -> zeros_and_ones k -> device_dot x k v ->
  v = IZR (dot x k) /\ (0 <= dot x k <= 1)%Z.
Proof.
case/andP=> xs /Z.leb_le x1 ks dv; have [d0 [d1 d2]] := dot_unit xs ks; split; last lia.
by have := sum_exact _ _ dv; rewrite /= dot_total => -> //; rewrite /exact_narrow; lia.
Qed.

Lemma nth_unit x t : unit_row x -> (0 <= nth 0%Z x t <= 1)%Z.
Proof.
case/andP=> xs /Z.leb_le x1; suff : (0 <= nth 0%Z x t <= total x)%Z by lia.
elim: x t xs {x1} => [|a x IH] [|t] //= /andP[/Z.leb_le a0 xs]; last by have := IH t xs; lia.
by elim: (x) xs {IH} => /= [|c y IHy /andP[/Z.leb_le c0 /IHy]]; lia.
Qed.

(* rows that are not all zero *)
Definition busy (x : row) : bool := ~~ all (fun z => (z =? 0)%Z) x.

Lemma idle_nth x t : ~~ busy x -> nth 0%Z x t = 0%Z.
Proof. by rewrite negbK; elim: x t => [|a x IH] [|t] //= /andP[/Z.eqb_eq E /IH]. Qed.

Lemma weighted_total (l : seq (Z * row)) :
  weighted w l = [seq total [seq (q.1 * nth 0 q.2 t)%Z | q <- l] | t <- iota 0 (D w)].
Proof.
apply: eq_map => t; elim: l => //= q l IH; case: (q.1 =P 0%Z) => [E|/eqP E] /=.
  by rewrite E /= IH; lia.
by rewrite (introF (Z.eqb_spec _ _) (elimN eqP E)) /= IH.
Qed.

Lemma weighted_nth (l : seq (Z * row)) t : t < D w ->
  nth 0%Z (weighted w l) t = total [seq (q.1 * nth 0 q.2 t)%Z | q <- l].
Proof. by move=> tD; rewrite weighted_total (nth_map 0) ?size_iota // nth_iota. Qed.

Lemma device_sum_exact C s k t v : t < D w -> all (fun y => unit_row y.1) C ->
  (Z.of_nat (count (fun y => busy y.1) C) <= exact_narrow)%Z -> zeros_and_ones k ->
  device_sum C s k t v ->
  v = IZR (nth 0%Z (sums w C s k) t) /\ (0 <= nth 0%Z (sums w C s k) t)%Z.
Proof.
move=> tD uC few ks [kv [Fk Sv]]; rewrite /sums.
set rows := [seq y.1 | y <- C & slot (S w) y.2 == s] in Fk Sv.
have -> : [seq (dot y.1 k, y.1) | y <- C & slot (S w) y.2 == s] = [seq (dot y k, y) | y <- rows].
  by rewrite /rows -map_comp.
rewrite weighted_nth // -map_comp /=.
have uR : all unit_row rows.
  by rewrite /rows all_map; elim: (C) uC => //= y C' IH /andP[uy /IH uC']; case: ifP => //= _; rewrite uy.
have fR : (Z.of_nat (count busy rows) <= exact_narrow)%Z.
  apply: Z.le_trans few; apply: inj_le; apply/leP; rewrite /rows count_map.
  by rewrite count_filter; apply: sub_count => y /= /andP[].
have [a0 le] : all (Z.leb 0) [seq (dot y k * nth 0 y t)%Z | y <- rows]
    /\ (0 <= total [seq (dot y k * nth 0 y t)%Z | y <- rows] <= Z.of_nat (count busy rows))%Z.
  elim: rows uR {Fk Sv fR} => //= y rows IH /andP[uy /IH[-> le]].
  have [xs _] := andP uy; have [_ d] := dot_unit xs ks; have n := nth_unit t uy.
  have y1 : (total y <= 1)%Z by case/andP: uy => _ /Z.leb_le.
  rewrite andbT; split; first by apply/Z.leb_le; nia.
  case E: (busy y); last by rewrite (idle_nth t (negbT E)) Z.mul_0_r add0n; lia.
  by rewrite add1n Nat2Z.inj_succ; nia.
have Sv' : summed format (map IZR (0%Z :: [seq (dot y k * nth 0 y t)%Z | y <- rows])) v.
  move: Sv; rewrite /=; congr (summed _ (_ :: _) _).
  elim: Fk uR {fR a0 le} => //= y kv' rs kvs Hy _ IH /andP[uy uR].
  by have [-> _] := device_dot_exact uy ks Hy; rewrite IH // mult_IZR.
split; last by case: le.
by have := sum_exact _ _ Sv'; rewrite /= => -> //; lia.
Qed.

(* ---- what is received ---- *)

Section Received.
Variables (x : row) (C : seq (row * Z)).
Hypotheses (ux : unit_row x) (uC : all (fun y => unit_row y.1) C)
  (few : (Z.of_nat (count (fun y => busy y.1) C) <= exact_narrow)%Z)
  (bQ : binary (W_Q w)) (bK : binary (W_K w)).

Definition entry (s t : nat) : Z :=
  total [seq (dot x c.1 * nth 0 (sums w C s c.2) t)%Z | c <- zip (W_Q w) (W_K w)].

Lemma received_entries : received w x C
  = [seq entry st.1 st.2 | st <- flatten [seq [seq (s, t) | t <- iota 0 (D w)] | s <- iota 0 (S w)]].
Proof.
rewrite /received map_flatten -map_comp; congr flatten; apply: eq_map => s /=.
by rewrite weighted_total -map_comp; apply: eq_map => t /=; rewrite /entry -map_comp.
Qed.

Lemma device_number_exact s t h : t < D w -> (0 <= entry s t <= exact_narrow)%Z ->
  device_number x C s t h -> h = IZR (entry s t).
Proof.
move=> tD small [qs [ss [Fq Fs Sh]]].
set terms := [seq (dot x c.1 * nth 0 (sums w C s c.2) t)%Z | c <- zip (W_Q w) (W_K w)].
have [E pos] : [seq (q.1 * q.2)%R | q <- zip qs ss] = map IZR terms /\ all (Z.leb 0) terms.
  have bz : all (fun c => zeros_and_ones c.1 && zeros_and_ones c.2) (zip (W_Q w) (W_K w)).
    move: bQ bK; rewrite /binary; elim: (W_Q w) (W_K w) => [|q Q IH] [|k K] //=.
    move=> /andP[zq bq] /andP[zk bk].
    by rewrite /zeros_and_ones zq zk /= IH.
  rewrite /terms; elim: Fq ss Fs bz {Sh terms small} => [|c q l qs' Hq _ IH] ss Fs; inversion_clear Fs => //=.
  case/andP=> /andP[zq zk] bl; have [-> d] := device_dot_exact ux zq Hq.
  have [-> n0] := device_sum_exact tD uC few zk H.
  have [-> ->] := IH _ H0 bl; rewrite mult_IZR andbT; split=> //.
  by apply/Z.leb_le; nia.
have {}Sh : summed format (map IZR (0%Z :: terms)) h by rewrite /= -E.
by have := sum_exact _ _ Sh; rewrite /= -/(entry s t) => -> //; lia.
Qed.

Theorem device_received_exact H : narrow (received w x C) -> device_received x C H ->
  H = map IZR (received w x C).
Proof.
rewrite received_entries /device_received; set pairs := flatten _.
have : all (fun st => st.2 < D w) pairs.
  rewrite /pairs; elim: (iota 0 (S w)) => //= s l IH; rewrite all_cat IH andbT all_map.
  by apply/allP => t; rewrite mem_iota.
move=> lt nr F; elim: F lt nr => //= st h l hs Hh _ IH /andP[tD lt] /andP[/andP[/Z.leb_le h0 /Z.leb_le h1] nr].
by rewrite IH // (device_number_exact tD _ Hh).
Qed.
End Received.
End Attention.
