(* Lemma 1 of the paper, reduction mask: with the gate +1 on `(`, -1 on `)` and 0 elsewhere, the
   larger of the two depth counts is the nesting depth, and the mask is exactly the deepest
   spans. *)
From mathcomp Require Import all_ssreflect.
From Coq Require Import ZArith Lia.
From Exactformer Require Import Circuit Forests.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section Mask.
Variables (cell : Type) (opening closing : cell) (gate : cell -> Z).
Hypotheses (gate_opening : gate opening = 1%Z) (gate_closing : gate closing = (-1)%Z).
Notation flat := (flat opening closing).
Implicit Types (X : seq cell) (g : forest cell).

(* no parenthesis among the cells, and no two spans touch *)
Definition is_span g := if g is Span _ _ then true else false.
Fixpoint apart g : bool :=
  match g with
  | Nil => true
  | Cell x g => (gate x =? 0)%Z && apart g
  | Span s g => [&& apart s, ~~ is_span g & apart g]
  end.

(* the larger of the two counts, position by position, when everything is closed *)
Fixpoint larger (a : Z) X : seq Z :=
  if X is x :: X then Z.max (a + gate x) a :: larger (a + gate x) X else [::].
Fixpoint sum_gate X : Z := if X is x :: X then (gate x + sum_gate X)%Z else 0%Z.

Lemma sum_gate_cat X X' : sum_gate (X ++ X') = (sum_gate X + sum_gate X')%Z.
Proof. by elim: X => //= x X ->; lia. Qed.

Lemma larger_cat a X X' : larger a (X ++ X') = larger a X ++ larger (a + sum_gate X) X'.
Proof. by elim: X a => [|x X IH] a /=; rewrite ?Z.add_0_r // IH Z.add_assoc. Qed.

Lemma sum_gate_flat g : apart g -> sum_gate (flat g) = 0%Z.
Proof.
elim: g => //= [x g IH /andP[/Z.eqb_eq -> /IH ->]//|s IHs g IH /and3P[/IHs hs _ /IH hg]].
by rewrite sum_gate_cat /= hs hg gate_opening gate_closing.
Qed.

Lemma larger_is_nesting k g : apart g -> larger (Z.of_nat k) (flat g) = map Z.of_nat (nesting k g).
Proof.
elim: g k => //= [x g IH k /andP[/Z.eqb_eq -> /(IH k) h]|s IHs g IH k /and3P[gs _ gg]].
  by rewrite Z.add_0_r Z.max_id h.
have -> : (Z.of_nat k + gate opening = Z.of_nat k.+1)%Z by rewrite gate_opening; lia.
rewrite larger_cat IHs // sum_gate_flat // map_cat /= Z.add_0_r.
have -> : (Z.of_nat k.+1 + gate closing = Z.of_nat k)%Z by rewrite gate_closing; lia.
rewrite IH //; congr (_ :: _ ++ _ :: _); lia.
Qed.

Lemma last_cumsum a X : last a (scanl Z.add a (map gate X)) = (a + sum_gate X)%Z.
Proof. by elim: X a => [|x X IH] a /=; rewrite ?IH; lia. Qed.

Let larger_of (a : Z * Z) := Z.max a.1 a.2.

Lemma counts_are_depths g : apart g ->
  map larger_of (depth_counts (map gate (flat g))) = map Z.of_nat (nesting 0 g).
Proof.
move=> ag; rewrite -larger_is_nesting //; move: (sum_gate_flat ag) => h.
rewrite /depth_counts /cumsum last_cumsum h -map_comp {h ag}; move: (flat g) => X.
suff H a : [seq (larger_of \o (fun p : Z * Z => (p.1, (p.1 - p.2 - (0 + 0))%Z))) i
   | i <- zip (scanl Z.add a [seq gate i | i <- X]) [seq gate i | i <- X]] = larger a X by apply: H.
elim: X a => //= x X IH a; rewrite IH; congr (_ :: _); rewrite /larger_of /=; lia.
Qed.

(* the run has ended exactly when no span is left *)
Lemma halted_iff_flat g : apart g -> halted (depth_counts (map gate (flat g))) = (levels g == 0).
Proof.
move=> ag; apply/idP/idP => [h|/eqP d0].
  apply/contraT; rewrite -lt0n => d0; have := nesting_attained 0 d0; rewrite add0n => h1.
  have : Z.of_nat (levels g) \in map larger_of (depth_counts (map gate (flat g))).
    by rewrite counts_are_depths // map_f.
  case/mapP => -[a1 a2] /(allP h) /= /andP[/Z.eqb_eq -> /Z.eqb_eq ->].
  by move/ltP: d0; rewrite /larger_of /=; lia.
have E : all (fun x => (gate x =? 0)%Z) (flat g).
  by elim: g ag d0 => //= [x g IH /andP[-> h] d|s _ g _ _ /levels_span //]; apply: IH.
rewrite /halted /depth_counts /cumsum last_cumsum sum_gate_flat // {ag d0}.
by elim: (flat g) E => //= x X IH /andP[/Z.eqb_eq -> /IH]; rewrite Z.add_0_r => ->.
Qed.

Lemma foldr_max m t (s : seq Z) :
  (m <= t)%Z -> t \in s -> all (fun x => (x <=? t)%Z) s -> foldr Z.max m s = t.
Proof.
move=> mt; elim: s => // x s IH /=; rewrite inE => h /andP[/Z.leb_le xt all_s].
have le : (foldr Z.max m s <= t)%Z.
  by elim: s all_s {IH h} => //= y s IHs /andP[/Z.leb_le yt /IHs]; lia.
by case/orP: h => [/eqP tx|/IH ->//]; lia.
Qed.

(* `inside` may be anything where the state is not at its deepest *)
Theorem mask_is_deepest_spans g inside :
  apart g -> 0 < levels g -> size inside = size (flat g) ->
  all (fun p => (p.1 == levels g) ==> p.2) (zip (nesting 0 g) inside) ->
  reduction_mask (depth_counts (map gate (flat g))) inside = [seq i == levels g | i <- nesting 0 g].
Proof.
move=> ag d0 sz hin; rewrite /reduction_mask.
set A := depth_counts _; set deepest := [seq (if p.2 then _ else _) | p <- zip A _].
have le := nesting_le 0 g; have att := nesting_attained 0 d0; rewrite add0n in att.
have sN : size (nesting 0 g) = size inside by rewrite (size_nesting opening closing).
have ED : deepest = [seq if p.2 then Z.of_nat p.1 else smallest | p <- zip (nesting 0 g) inside].
  have := counts_are_depths ag; rewrite -/A /deepest.
  elim: (nesting 0 g) (A) (inside) => [|i s IH] [|a A'] [|b t] //= [<- h].
  by rewrite (IH A' t h).
have att' : (levels g, true) \in zip (nesting 0 g) inside.
  elim: (nesting 0 g) (inside) sN att hin {deepest ED sz} => [|i s IH] [|b t] //= [e].
  rewrite inE => /orP[/eqP <-|/IH h] /andP[]; first by rewrite eqxx /= => -> _; rewrite inE eqxx.
  by move=> _ /(h _ e); rewrite inE => ->; rewrite orbT.
have in_le p : p \in zip (nesting 0 g) inside -> p.1 <= levels g.
  case: p => i b /(map_f fst) /=; rewrite -/(unzip1 _) unzip1_zip ?sN //.
  by move/(allP le) => /andP[].
have -> : foldr Z.max smallest deepest = Z.of_nat (levels g).
  apply: foldr_max; first exact: Z.le_trans (Nat2Z.is_nonneg _).
    by rewrite ED; apply/mapP; exists (levels g, true).
  rewrite ED; apply/allP => d /mapP[p /in_le /leP pl ->]; apply/Z.leb_le.
  case: ifP => _; [exact/inj_le|exact: Z.le_trans (Nat2Z.is_nonneg _)].
rewrite ED -[in RHS](@unzip1_zip _ _ (nesting 0 g) inside) ?sN // -map_comp.
have -> : zip [seq if p.2 then Z.of_nat p.1 else smallest | p <- zip (nesting 0 g) inside] inside
  = [seq (if p.2 then Z.of_nat p.1 else smallest, p.2) | p <- zip (nesting 0 g) inside].
  by elim: (nesting 0 g) (inside) sN => [|i s IH] [|b t] //= [e]; rewrite IH.
rewrite -map_comp; apply/eq_in_map => -[i b] /= pin.
have := allP hin _ pin; rewrite /=.
case: b pin => _ /=; last by rewrite implybF => /negbTE ->; rewrite andbF.
move=> _; rewrite andbT; apply/idP/eqP => [/Z.eqb_eq/Nat2Z.inj //|->]; exact: Z.eqb_refl.
Qed.
End Mask.
