(* T3, concluded: the bounds that Margin.v computes in whole numbers are bounds on what binary64 can
   do to the outputs of a perceptron, so outputs that it accepts keep their signs. *)
From Coq Require Import Reals Lra Lia List ZArith.
From Flocq Require Import Core.
From mathcomp Require Import all_ssreflect.
From Exactformer Require Import Circuit Feedforward Margin Rounding RoutedSums Binary64.
From Exactformer Require Import PerceptronRounding ErrorBounds.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Open Scope R_scope.

Opaque u_inverse base.

Section Perceptron.
Variables (p : perceptron) (width : nat) (most : Z) (H : row).
Hypotheses (few_1 : few (count_1 width)) (few_2 : few (count_2 p)).
Hypotheses (sized : size H = width) (few_tokens : (total (absolute H) <= most)%Z).

Let B := bpow radix2 (Z.of_nat (shift_1 p)).
Let F := bpow radix2 (Z.of_nat (shift_1 p * degree (act p))).
Let M := IZR (activated_base (act p)).

Lemma M_pos : 0 < M.
Proof.
rewrite /M /activated_base; case: (act p); first exact: base_pos.
rewrite (mult_IZR (u_inverse * base)) (mult_IZR u_inverse).
apply: Rmult_lt_0_compat; last exact: base_pos.
apply: Rmult_lt_0_compat; [exact: u_inverse_pos|exact: base_pos].
Qed.

Lemma F_pos : 0 < F.
Proof. exact: bpow_gt_0. Qed.

Lemma scale_2_F : IZR (scale_2 p) = F.
Proof. by rewrite /scale_2 (IZR_Zpower radix2) //; lia. Qed.

Lemma scaled_activation x y :
  may_activate (near u64) (act p) x y -> may_activate (near u64) (act p) (B * x) (F * y).
Proof.
have B0 : 0 <= B by apply: bpow_ge_0.
rewrite /may_activate /F /degree; case: (act p) => [->|[d [du ->]]].
  by rewrite muln1 -{2}(Rmult_0_r B) RmaxRmult.
exists d; split=> //; have -> : bpow radix2 (Z.of_nat (shift_1 p * 2)) = B * B.
  by rewrite /B -bpow_plus -Nat2Z.inj_add plusE addnn -muln2.
by ring.
Qed.

(* one hidden unit *)
Lemma hidden_close (c : row) (b : Z) z :
  summed (near u64) (terms (map IZR H) (map (over (shift_1 p)) c) (over (shift_1 p) b)) z ->
  let s := (most * largest c + Z.abs b)%Z in
  Rabs (B * z - IZR (dot H c + b)) <= IZR (growth (count_1 width) * s) / IZR base
  /\ (Z.abs (dot H c + b) <= s)%Z.
Proof.
move=> /scaled_layer_1 S s; have E := sumR_error u64 u64_nonneg _ _ S.
rewrite sum_whole_terms size_whole_terms in E.
have le_s : (dot (absolute H) (absolute c) + Z.abs b <= s)%Z.
  by have := @dot_largest H c; have := @largest_nonneg c; rewrite /s; nia.
split; last first.
  by have := @dot_le_sizes H c; have := Z.abs_triangle (dot H c) b; lia.
apply: Rle_trans E _; rewrite mult_IZR /Rdiv (Rmult_comm (IZR (growth _))) Rmult_assoc Rmult_comm.
apply: Rmult_le_compat.
- by apply: IZR_le; have := @dot_le_sizes H c; lia.
- exact: gamma_nonneg u64_nonneg _.
- exact: IZR_le.
rewrite -[length _]/(size _) size_map; apply: gamma_growth => //.
by have /leP := count_whole_terms H c b; rewrite /count_1 sized; lia.
Qed.

Lemma layer_close h active :
  may_layer (near u64) (shift_1 p) (W_1 p) (b_1 p) (map IZR H) h ->
  Forall2 (may_activate (near u64) (act p)) h active ->
  close M (map (Rmult F) active) (map (activate (act p)) (hidden p H))
    (map (activate (act p)) (hidden_sizes p most)) (hidden_errors p width most)
  /\ (size active <= size (W_1 p))%N.
Proof.
rewrite /may_layer /hidden /affine /hidden_sizes /hidden_errors /hidden_sizes => L Ac; split;
  last first.
  have <- : size h = size active by elim: Ac => //= x y hs ys _ _ ->.
  have -> : size h = size (zip (W_1 p) (b_1 p)) by elim: L => //= x y hs ys _ _ ->.
  by rewrite size_zip geq_minl.
elim: L active Ac => [|[c b] z l hs Hz _ IH] active Ac; inversion_clear Ac => //=.
have /= [cl le] := hidden_close Hz; set s := (most * _ + _)%Z in cl le *.
have s0 : (0 <= s)%Z by lia.
have e0 : (0 <= growth (count_1 width) * s)%Z.
  have U0 : (0 < u_inverse)%Z by [].
  by rewrite /growth /count_1; apply: Z.mul_nonneg_nonneg; nia.
split; [|exact: activate_mono le|exact: activated_error_nonneg s0 e0 le|exact: IH].
exact: activated_close s0 e0 le cl (scaled_activation H0).
Qed.

(* one output *)
Lemma output_close active (c : row) (b : Z) z exact :
  close M (map (Rmult F) active) exact
    (map (activate (act p)) (hidden_sizes p most)) (hidden_errors p width most) ->
  (size active <= size (W_1 p))%N ->
  summed (near u64) (terms active (map (over (shift_2 p)) c) (over (shift_2 p) b)) z ->
  Rabs (bpow radix2 (Z.of_nat (shift_2 p)) * F * z - IZR (dot exact c + b * scale_2 p))
  <= IZR (output_bound p width most c b) / (M * IZR base).
Proof.
move=> cl sa; set U2 := bpow _ _; have M0 := M_pos; have B0 := base_pos.
have UI x : U2 * (x * bpow radix2 (- Z.of_nat (shift_2 p))) = x.
  by rewrite /U2 (Rmult_comm x) -Rmult_assoc -bpow_plus Z.add_opp_diag_r Rmult_1_l.
move/(summed_scaled u64 (U2 * F)).
set ps := [seq q.1 * q.2 | q <- zip (map (Rmult F) active) (map IZR c)].
have -> : List.map (Rmult (U2 * F)) (terms active (map (over (shift_2 p)) c) (over (shift_2 p) b))
    = (ps ++ [:: IZR (b * scale_2 p)])%list.
  rewrite /terms List.map_app /=; congr (_ ++ [:: _])%list; last first.
    by rewrite /over (Rmult_comm U2) Rmult_assoc UI mult_IZR scale_2_F Rmult_comm.
  rewrite /ps; elim: (active) (c) => [|x xs IH] [|w ws] //=; rewrite IH; congr cons.
  rewrite /over; have <- := UI (IZR w); rewrite UI; rewrite -{2}(UI (IZR w)); ring.
move/(sumR_error u64 u64_nonneg); rewrite sumR_app sizeR_app /= Rplus_0_r Rplus_0_r -abs_IZR.
have [P1 P2] := close_products c M0 cl; rewrite -/ps in P1 P2.
set spread := IZR (dot (hidden_errors p width most) (absolute c)) in P1 P2.
set sizes := dot _ (absolute c) in P2.
set n := length _ => E.
have G : gamma u64 n <= IZR (growth (count_2 p)) / IZR base.
  apply: gamma_growth => //; rewrite /n app_length /= -[length ps]/(size ps) /ps size_map size_zip.
  rewrite !size_map /count_2; have := geq_minl (size active) (size c) => /leP; move/leP: sa; lia.
have G0 := gamma_nonneg u64 u64_nonneg n.
have Z0 : 0 <= sizeR ps + IZR (Z.abs (b * scale_2 p)).
  by apply: Rplus_le_le_0_compat; [exact: sizeR_nonneg|rewrite abs_IZR; exact: Rabs_pos].
have E2 : gamma u64 n * (sizeR ps + IZR (Z.abs (b * scale_2 p)))
    <= IZR (growth (count_2 p)) / IZR base * (IZR sizes + spread / M + IZR (Z.abs (b * scale_2 p))).
  by apply: Rmult_le_compat => //; lra.
have sc0 : (0 <= scale_2 p)%Z by apply: Z.pow_nonneg.
have -> : IZR (output_bound p width most c b) / (M * IZR base)
    = spread / M + IZR (growth (count_2 p)) / IZR base
      * (IZR sizes + spread / M + IZR (Z.abs (b * scale_2 p))).
  rewrite /output_bound Z.abs_mul (Z.abs_eq (scale_2 p)) //.
  rewrite -/sizes plus_IZR (mult_IZR _ base) (mult_IZR (growth _)) plus_IZR (mult_IZR
    (activated_base _)).
  by rewrite plus_IZR -/spread -/M; field; lra.
rewrite plus_IZR.
have -> : U2 * F * z - (IZR (dot exact c) + IZR (b * scale_2 p))
    = (U2 * F * z - (sumR ps + IZR (b * scale_2 p))) + (sumR ps - IZR (dot exact c)) by ring.
by apply: Rle_trans (Rabs_triang _ _) _; lra.
Qed.

Theorem signs_are_kept y : outputs_certain p width most H (outputs p H) ->
  may_output (near u64) p H y -> Forall2 (fun z' z => 0 < z' <-> (0 < z)%Z) y (outputs p H).
Proof.
case/and4P=> _ _ _; rewrite /outputs /affine /output_bounds => far [h [active [L1 Ac L2]]].
have [cl sa] := layer_close L1 Ac; set exact := map _ (hidden p H) in cl far *.
move: L2 far; rewrite /may_layer; elim: (W_2 p) (b_2 p) y => [|c W IH] [|b bs] y L2 far;
  inversion_clear L2; constructor=> //=; case/andP: far => /Z.ltb_lt /= far fars; last exact: IH.
have close_z := output_close cl sa H0.
set z := (dot exact c + b * scale_2 p)%Z in far close_z *.
have MB : 0 < M * IZR base by apply: Rmult_lt_0_compat; [exact: M_pos|exact: base_pos].
have far' : IZR (output_bound p width most c b) / (M * IZR base) < Rabs (IZR z).
  apply: (Rmult_lt_reg_r (M * IZR base)) => //; rewrite /Rdiv Rmult_assoc Rinv_l ?Rmult_1_r;
    last lra.
  by rewrite -abs_IZR /M -(mult_IZR _ base) -mult_IZR; apply: IZR_lt; exact: far.
have [k1 k2] := sign_kept _ _ _ close_z far'.
have K0 : 0 < bpow radix2 (Z.of_nat (shift_2 p)) * F.
  by apply: Rmult_lt_0_compat; [exact: bpow_gt_0|exact: F_pos].
split=> [pos|pos].
  by apply: lt_IZR; apply: k1; apply: Rmult_lt_0_compat.
apply: (Rmult_lt_reg_l _ _ _ K0); rewrite Rmult_0_r; apply: k2; exact: (IZR_lt 0).
Qed.
End Perceptron.

(* T3: binary64, whatever the order of its sums, its rounding mode and its fusing of operations *)
Theorem rounding_keeps_signs p width most H y :
  (shift_1 p <= 149)%N -> (shift_2 p <= 149)%N -> outputs_certain p width most H (outputs p H) ->
  may_output binary64 p H y -> Forall2 (fun z' z => 0 < z' <-> (0 < z)%Z) y (outputs p H).
Proof.
move=> u1 u2 sure /(output_near u1 u2) out;
  case/and4P: (sure) => /andP[f1 f2] /eqP sz /Z.leb_le le _.
exact: signs_are_kept f1 f2 sz le _ sure out.
Qed.
