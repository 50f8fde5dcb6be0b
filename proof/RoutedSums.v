(* T4, routed sums: whole numbers add up without rounding as long as the sum of their sizes is at
   most 2^p, in any order, fused or not, in every format of precision p: float32 (24), float16 (11),
   bfloat16 (8), binary64 (53). The same holds for multiples of any one number. *)
From Coq Require Import Reals Lra Lia List Permutation ZArith.
From Flocq Require Import Core.
From Exactformer Require Import Rounding.
Import ListNotations.
Open Scope R_scope.

(* what a device may return for the exact result e: e rounded, in whatever mode *)
Definition rounds (emin p : Z) (e y : R) : Prop :=
  exists rnd, Valid_rnd rnd /\ y = round radix2 (FLT_exp emin p) rnd e.

Definition float32 := rounds (-149) 24.
Definition float16 := rounds (-24) 11.
Definition bfloat16 := rounds (-133) 8.
Definition binary64 := rounds (-1074) 53.

Fixpoint whole_size (zs : list Z) : Z :=
  match zs with [] => 0 | z :: zs => Z.abs z + whole_size zs end%Z.
Fixpoint whole_sum (zs : list Z) : Z := match zs with [] => 0 | z :: zs => z + whole_sum zs end%Z.

Section Format.
Variables (emin p : Z).
Hypotheses (p_pos : (0 < p)%Z) (emin_le : (emin <= 0)%Z).

Instance p_prec : Prec_gt_0 p := p_pos.

(* whole numbers up to 2^p are in the format *)
Lemma whole_in_format z : (Z.abs z <= 2 ^ p)%Z -> generic_format radix2 (FLT_exp emin p) (IZR z).
Proof.
  intros h. destruct (Z.eq_dec (Z.abs z) (2 ^ p)) as [E|E].
  - assert (F : generic_format radix2 (FLT_exp emin p) (bpow radix2 p)).
    { apply generic_format_bpow. unfold FLT_exp. lia. }
    assert (B : bpow radix2 p = IZR (2 ^ p)) by (rewrite <- IZR_Zpower; [reflexivity|lia]).
    rewrite B in F. destruct (Z.abs_eq_or_opp z) as [A|A]; rewrite A in E.
    + now rewrite E.
    + replace z with (- (2 ^ p))%Z by lia. rewrite opp_IZR. now apply generic_format_opp.
  - apply generic_format_FLT. exists (Float radix2 z 0).
    + unfold F2R. simpl. ring.
    + simpl. change (Z.abs z < 2 ^ p)%Z. lia.
    + simpl. lia.
Qed.

Lemma whole_is_exact z y : (Z.abs z <= 2 ^ p)%Z -> rounds emin p (IZR z) y -> y = IZR z.
Proof.
  intros h (rnd & V & ->). apply round_generic; [exact V|]. now apply whole_in_format.
Qed.

Lemma whole_sum_le zs : (Z.abs (whole_sum zs) <= whole_size zs)%Z.
Proof. induction zs; simpl; lia. Qed.
Lemma whole_sum_app s t : whole_sum (s ++ t) = (whole_sum s + whole_sum t)%Z.
Proof. induction s; simpl; lia. Qed.
Lemma whole_size_app s t : whole_size (s ++ t) = (whole_size s + whole_size t)%Z.
Proof. induction s; simpl; lia. Qed.
Lemma whole_size_nonneg s : (0 <= whole_size s)%Z.
Proof. induction s; simpl; lia. Qed.
Lemma whole_sum_permutation s t : Permutation s t -> whole_sum s = whole_sum t.
Proof. induction 1; simpl; lia. Qed.
Lemma whole_size_permutation s t : Permutation s t -> whole_size s = whole_size t.
Proof. induction 1; simpl; lia. Qed.

Theorem whole_sums_are_exact ps x : summed (rounds emin p) ps x -> forall zs, ps = map IZR zs ->
  (whole_size zs <= 2 ^ p)%Z -> x = IZR (whole_sum zs).
Proof.
  induction 1 as [q y Hy|q s x y Hx IH Hy|s t x y z Hx IHx Hy IHy Hz|s t x P Hx IH];
    intros zs E le.
  - destruct zs as [|z [|? ?]]; try discriminate. injection E as ->. simpl in *.
    rewrite Z.add_0_r. apply whole_is_exact; [lia|exact Hy].
  - destruct zs as [|z zs]; [discriminate|]. injection E as -> E. simpl in *.
    rewrite (IH zs E) in Hy by lia. rewrite <- plus_IZR in Hy. rewrite Z.add_comm.
    apply whole_is_exact; [|exact Hy]. pose proof (whole_sum_le zs). lia.
  - symmetry in E. apply map_eq_app in E. destruct E as (zs1 & zs2 & -> & E1 & E2).
    rewrite whole_size_app in le. rewrite whole_sum_app.
    pose proof (whole_size_nonneg zs1). pose proof (whole_size_nonneg zs2).
    rewrite (IHx zs1), (IHy zs2) in Hz by (auto; lia). rewrite <- plus_IZR in Hz.
    apply whole_is_exact; [|exact Hz]. pose proof (whole_sum_le zs1).
    pose proof (whole_sum_le zs2). lia.
  - subst t. apply Permutation_map_inv in P. destruct P as (zs' & E & P).
    rewrite (whole_sum_permutation _ _ P). apply IH; [exact E|].
    now rewrite <- (whole_size_permutation _ _ P).
Qed.
End Format.

Corollary routed_sums_in_float32 zs x :
  summed float32 (map IZR zs) x -> (whole_size zs <= 2 ^ 24)%Z -> x = IZR (whole_sum zs).
Proof. intros h le. now apply (whole_sums_are_exact (-149) 24 ltac:(lia) ltac:(lia) _ _ h). Qed.
Corollary routed_sums_in_float16 zs x :
  summed float16 (map IZR zs) x -> (whole_size zs <= 2 ^ 11)%Z -> x = IZR (whole_sum zs).
Proof. intros h le. now apply (whole_sums_are_exact (-24) 11 ltac:(lia) ltac:(lia) _ _ h). Qed.
Corollary routed_sums_in_bfloat16 zs x :
  summed bfloat16 (map IZR zs) x -> (whole_size zs <= 2 ^ 8)%Z -> x = IZR (whole_sum zs).
Proof. intros h le. now apply (whole_sums_are_exact (-133) 8 ltac:(lia) ltac:(lia) _ _ h). Qed.
