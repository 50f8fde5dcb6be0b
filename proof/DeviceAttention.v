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
(* entries of at most this size *)
Definition within (m : Z) (k : row) : bool := all (fun z => (Z.abs z <=? m)%Z) k.

Lemma whole_sum_total s : whole_sum s = total s.
Proof. by elim: s => //= x s ->. Qed.

Lemma sum_exact s v : (whole_size s <= exact_narrow)%Z ->
  summed format (map IZR s) v -> v = IZR (total s).
Proof.
move=> le S; rewrite -whole_sum_total; apply: (whole_sums_are_exact _ _ _ _ _ _ S) => //; try lia.
apply: Z.le_trans le _; rewrite /exact_narrow; by apply: (Z.pow_le_mono_r 2 8 p).
Qed.

Lemma dot_total x k : total [seq (q.1 * q.2)%Z | q <- zip x k] = dot x k.
Proof. by elim: x k => [|a x IH] [|b k] //=; rewrite IH. Qed.

Lemma dot_size m x k : (0 <= m)%Z -> all (Z.leb 0) x -> within m k ->
  (whole_size [seq (q.1 * q.2)%Z | q <- zip x k] <= m * total x)%Z.
Proof.
move=> m0; have T (s : row) : all (Z.leb 0) s -> (0 <= total s)%Z.
  by elim: s => //= y s IH /andP[/Z.leb_le y0 /IH]; lia.
elim: x k => [|a x IH] [|b k] //= => [||/andP[/Z.leb_le a0 /T t0]|/andP[/Z.leb_le a0 xs]]; try lia;
  try nia.
by case/andP=> /Z.leb_le bm /(IH k xs) le; rewrite Z.abs_mul (Z.abs_eq a) //; nia.
Qed.

Lemma device_dot_exact m x k v : (0 <= m <= exact_narrow)%Z -> unit_row x -> within m k ->
  device_dot x k v -> v = IZR (dot x k) /\ (Z.abs (dot x k) <= m)%Z.
Proof.
move=> [m0 m1] /andP[xs /Z.leb_le x1] km dv; have le := dot_size m0 xs km.
have tx : (0 <= total x)%Z by elim: (x) xs => //= y s IH /andP[/Z.leb_le y0 /IH]; lia.
have le' : (whole_size [seq (q.1 * q.2)%Z | q <- zip x k] <= m)%Z by nia.
split; first by have := sum_exact _ dv; rewrite /= dot_total => -> //; lia.
by rewrite -dot_total -whole_sum_total; apply: Z.le_trans le'; apply: whole_sum_le.
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

(* ---- what is received ---- *)

Section Received.
Variables (x : row) (C : seq (row * Z)) (q_most k_most tokens : Z).
Hypotheses (ux : unit_row x) (uC : all (fun y => unit_row y.1) C)
  (few : (Z.of_nat (count (fun y => busy y.1) C) <= tokens)%Z)
  (q_small : all (within q_most) (W_Q w)) (k_small : all (within k_most) (W_K w))
  (q1 : (1 <= q_most)%Z) (k1 : (1 <= k_most)%Z) (t1 : (1 <= tokens)%Z)
  (fits : (q_most * k_most * (Z.of_nat (size (W_Q w)) + 1) * tokens <= exact_narrow)%Z).

Let h1 : (1 <= Z.of_nat (size (W_Q w)) + 1)%Z. Proof. lia. Qed.
Let kt : (k_most * tokens <= exact_narrow)%Z.
Proof. by apply: Z.le_trans fits; nia. Qed.
Let q_fits : (0 <= q_most <= exact_narrow)%Z.
Proof. split; first lia; apply: Z.le_trans fits; nia. Qed.
Let k_fits : (0 <= k_most <= exact_narrow)%Z.
Proof. split; first lia; apply: Z.le_trans kt; nia. Qed.

Lemma device_sum_exact s k t v : t < D w -> within k_most k -> device_sum C s k t v ->
  v = IZR (nth 0%Z (sums w C s k) t) /\ (Z.abs (nth 0%Z (sums w C s k) t) <= k_most * tokens)%Z.
Proof.
move=> tD ks [kv [Fk Sv]]; rewrite /sums.
set rows := [seq y.1 | y <- C & slot (S w) y.2 == s] in Fk Sv.
have -> : [seq (dot y.1 k, y.1) | y <- C & slot (S w) y.2 == s] = [seq (dot y k, y) | y <- rows].
  by rewrite /rows -map_comp.
rewrite weighted_nth // -map_comp /=.
have uR : all unit_row rows.
  by rewrite /rows all_map; elim: (C) uC => //= y C' IH /andP[uy /IH uC']; case: ifP => //= _;
    rewrite uy.
have fR : (Z.of_nat (count busy rows) <= tokens)%Z.
  apply: Z.le_trans few; apply: inj_le; apply/leP; rewrite /rows count_map.
  by rewrite count_filter; apply: sub_count => y /= /andP[].
have Sv' : summed format (map IZR (0%Z :: [seq (dot y k * nth 0 y t)%Z | y <- rows])) v
    /\ (whole_size [seq (dot y k * nth 0 y t)%Z | y <- rows]
        <= k_most * Z.of_nat (count busy rows))%Z.
  move: Sv; rewrite /= => Sv; suff [E le] : [seq (q.1 * IZR (nth 0%Z q.2 t))%R | q <- zip kv rows]
      = map IZR [seq (dot y k * nth 0 y t)%Z | y <- rows]
      /\ (whole_size [seq (dot y k * nth 0 y t)%Z | y <- rows]
          <= k_most * Z.of_nat (count busy rows))%Z.
    by rewrite -E.
  elim: Fk uR {fR Sv} => [_|y kv' rs kvs Hy _ IH /= /andP[uy uR]]; first by split=> //=; lia.
  have [-> d] := device_dot_exact k_fits uy ks Hy; have [-> le] := IH uR; rewrite mult_IZR;
    split=> //.
  have n := nth_unit t uy; rewrite Z.abs_mul (Z.abs_eq (nth _ _ _)); last lia.
  case E: (busy y); first by rewrite add1n Nat2Z.inj_succ; nia.
  by rewrite (idle_nth t (negbT E)) Z.mul_0_r add0n; lia.
case: Sv' => Sv' le; have le' : (k_most * Z.of_nat (count busy rows) <= k_most * tokens)%Z by nia.
split; first by have := sum_exact _ Sv'; rewrite /= => -> //; lia.
rewrite -whole_sum_total; apply: Z.le_trans (whole_sum_le _) _; exact: Z.le_trans le le'.
Qed.

Definition entry (s t : nat) : Z :=
  total [seq (dot x c.1 * nth 0 (sums w C s c.2) t)%Z | c <- zip (W_Q w) (W_K w)].

Lemma received_entries : received w x C
  = [seq entry st.1 st.2
    | st <- flatten [seq [seq (s, t) | t <- iota 0 (D w)] | s <- iota 0 (S w)]].
Proof.
rewrite /received map_flatten -map_comp; congr flatten; apply: eq_map => s /=.
by rewrite weighted_total -map_comp; apply: eq_map => t /=; rewrite /entry -map_comp.
Qed.

Lemma device_number_exact s t h : t < D w -> device_number x C s t h -> h = IZR (entry s t).
Proof.
move=> tD [qs [ss [Fq Fs Sh]]].
set terms := [seq (dot x c.1 * nth 0 (sums w C s c.2) t)%Z | c <- zip (W_Q w) (W_K w)].
have bz : all (fun c => within q_most c.1 && within k_most c.2) (zip (W_Q w) (W_K w)).
  elim: (W_Q w) (W_K w) q_small k_small => [|q Q IH] [|k K] //= /andP[zq bq] /andP[zk bk].
  by rewrite zq zk /= IH.
have [E le] : [seq (q.1 * q.2)%R | q <- zip qs ss] = map IZR terms
    /\ (whole_size terms <= q_most * (k_most * tokens) * Z.of_nat (size (zip (W_Q w) (W_K w))))%Z.
  rewrite /terms; elim: Fq ss Fs bz {Sh terms} => [|c q l qs' Hq _ IH] ss Fs;
    inversion_clear Fs => //=.
    by move=> _; split=> //; lia.
  case/andP=> /andP[zq zk] bl; have [-> d] := device_dot_exact q_fits ux zq Hq.
  have [-> n0] := device_sum_exact tD zk H.
  have [-> le] := IH _ H0 bl; rewrite mult_IZR; split=> //.
  by rewrite Z.abs_mul Nat2Z.inj_succ; nia.
have le' : (Z.of_nat (size (zip (W_Q w) (W_K w))) <= Z.of_nat (size (W_Q w)))%Z.
  by apply: inj_le; apply/leP; rewrite size_zip geq_minl.
have {}Sh : summed format (map IZR (0%Z :: terms)) h by rewrite /= -E.
have := sum_exact _ Sh; rewrite /= -/(entry s t) => -> //.
apply: Z.le_trans fits; apply: Z.le_trans le _.
have : (0 <= q_most * (k_most * tokens))%Z by nia.
by move: (Z.of_nat _) (Z.of_nat _) le' => u v uv; nia.
Qed.

Theorem device_received_exact H : device_received x C H -> H = map IZR (received w x C).
Proof.
rewrite received_entries /device_received; set pairs := flatten _.
have : all (fun st => st.2 < D w) pairs.
  rewrite /pairs; elim: (iota 0 (S w)) => //= s l IH; rewrite all_cat IH andbT all_map.
  by apply/allP => t; rewrite mem_iota.
move=> lt F; elim: F lt => //= st h l hs Hh _ IH /andP[tD lt].
by rewrite IH // (device_number_exact tD Hh).
Qed.
End Received.
End Attention.
