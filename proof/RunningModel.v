(* The composition: what the running model computes. Attention runs in float32, float16 or bfloat16,
   the feedforward in binary64; every operation may round in any mode, sums may be taken in any
   order and fused with products, differently at every position and in every iteration. If the
   extracted checker accepts the weights, the run still ends with the value of the expression. *)
From Coq Require Import Reals Lra Lia List ZArith.
From Flocq Require Import Core.
From mathcomp Require Import all_ssreflect.
From Exactformer Require Import Circuit Ranks Forests GatedResidual Expressions PaddedExpressions.
From Exactformer Require Import NextState GlobalEvaluation TypedAttention Feedforward Checker
  Margin.
From Exactformer Require Import Verdict Rounding RoutedSums PerceptronRounding MarginSound.
From Exactformer Require Import DeviceAttention.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Local Open Scope nat_scope.

(* ---- the running model ---- *)

(* what the feedforward and the threshold may make of the bag H *)
Definition may_feed (ff : feedforward) (H Y : row) : Prop :=
  match ff with
  | Network p => exists z, may_output binary64 p H z
      /\ Y = [seq (if Rlt_dec 0 x then 1 else 0)%Z | x <- z]
  | Table bags results => Y = threshold (look_up bags results H)
  end.

(* what the check was certain of is what comes out *)
Lemma feed_keeps_signs q width most H Y : weights_in_range q ->
  outputs_certain q width most H (outputs q H) -> may_feed (Network q) H Y ->
  Y = threshold (outputs q H).
Proof.
move=> /and5P[u1 u2 _ _ _] sure [z [out ->]].
have := rounding_keeps_signs u1 u2 sure out; elim=> //= z' z0 zs z0s [h1 h2] _ ->.
congr cons; case: Rlt_dec => [/h1 /Z.ltb_lt -> //|no].
by case: Z.ltb_spec0 => // /h2.
Qed.

Section Running.
Variables (emin p : Z) (w : weights) (ff : feedforward).

(* what a position that holds x may become, given its cluster *)
Definition may_local (x : row) (C : seq (row * Z)) (y : row) : Prop :=
  exists H, device_received w emin p x C (map IZR H) /\ may_feed ff H y.

Definition may_become (s : sight [eqType of row]) (y : row) : Prop :=
  match s with Kept x => y = x | Sees x C => may_local x C y end.

(* one iteration: depth counts, clusters and ranks are whole numbers *)
Definition may_iterate (inside : seq bool) (X X' : seq row) : Prop :=
  Forall2 may_become (outcomes (model_gates id w) (@Kept _) (@Sees _) inside X) X'.

(* n more iterations at most *)
Inductive may_run (inside : seq bool) : nat -> seq row -> seq row -> nat -> Prop :=
  | over n X : halted (depth_counts (map (gate_of id w) X)) || (n == 0) ->
      may_run inside n X X 0
  | more n X X' Y k : ~~ halted (depth_counts (map (gate_of id w) X)) ->
      may_iterate inside X X' -> may_run inside n X' Y k -> may_run inside n.+1 X Y k.+1.
End Running.

(* ---- rows of tokens ---- *)

Lemma unit_row_one_hot a t : unit_row (one_hot a t).
Proof.
have ge0 (l : seq nat) : all (Z.leb 0) [seq (if i == t then 1 else 0)%Z | i <- l].
  by elim: l => //= i l ->; case: eqP.
have tot (l : seq nat) : total [seq (if i == t then 1 else 0)%Z | i <- l]
  = Z.of_nat (count_mem t l).
  elim: l => //= i l ->; rewrite Nat2Z.inj_add; congr Z.add; by case: eqP.
rewrite /unit_row /one_hot ge0 tot count_uniq_mem ?iota_uniq //; apply/Z.leb_le.
by case: (_ \in _).
Qed.

Lemma zero_row_nonneg n : all (Z.leb 0) (nseq n 0%Z) /\ total (nseq n 0%Z) = 0%Z.
Proof. by elim: n => //= n [-> ->]. Qed.

Lemma unit_row_zero a : unit_row (zero_row a).
Proof. by rewrite /unit_row /zero_row; have [-> ->] := zero_row_nonneg (vocabulary_size a). Qed.

(* ---- accepted weights ---- *)

Lemma within_largest (W : seq row) : all (within (largest_entry W)) W /\ (1 <= largest_entry W)%Z.
Proof.
have row_within c : within (largest c) c.
  rewrite /within /largest; elim: c => //= z c IH; apply/andP; split; first by apply/Z.leb_le; lia.
  by apply: sub_all IH => y /Z.leb_le h; apply/Z.leb_le; lia.
rewrite /largest_entry; elim: W => //= c W [IH le]; split; last lia.
apply/andP; split.
  by apply: sub_all (row_within c) => y /Z.leb_le h; apply/Z.leb_le; lia.
by apply: sub_all IH => r; apply: sub_all => y /Z.leb_le h; apply/Z.leb_le; lia.
Qed.

Lemma fan_in_le a o n : n \in arities a o -> n <= fan_in a.
Proof.
rewrite /arities /fan_in; elim: (operators a) o => [|t ts IH] [|o] //=; rewrite ?in_nil //.
  move=> nt; rewrite foldr_cat; move: (foldr maxn 0 _) => m.
  elim: (map _ t) nt => //= x l IHl; rewrite inE => /orP[/eqP ->|/IHl le]; first exact: leq_maxl.
  exact: leq_trans le (leq_maxr _ _).
move/IH=> le; rewrite foldr_cat; apply: leq_trans le _; move: (foldr maxn 0 _) => m.
by elim: (map _ t) => //= x l le; apply: leq_trans le (leq_maxr _ _).
Qed.

Section Accepted.
Variables (a : algebra) (slots : nat) (G_PE G_R : row) (W_Q W_K : seq row) (ff : feedforward).
Hypothesis accepted : verdict a slots G_PE G_R W_Q W_K ff = None.
Variables (emin p : Z).
Hypotheses (emin_le : (emin <= 0)%Z) (p_ge : (8 <= p)%Z).

Let w := Weights (vocabulary_size a) slots G_PE G_R W_Q W_K (compute ff).
Notation width := (slots * vocabulary_size a).
Notation most := (reach a w).
Notation L := (language_of a).
Notation A := (alphabet_of a id).
Notation G := (model_gates id w).
Notation local := (model_local id id w).

Lemma cases_accepted : check a w (certain ff width most) = None.
Proof. by have [_ ->] := orelseP accepted. Qed.
Let checked := cases_accepted.

Lemma routing_fits : (reach a w <= exact_narrow)%Z.
Proof. by case/orelseP: accepted => /orelseP[/unlessP/Z.leb_le]. Qed.

Let back : reads_back a (@id row) id. Proof. by []. Qed.

(* everything that is received in a span has passed the check *)
Lemma received_certain x C : is_case A G x C ->
  certain ff width most (received w x C) (compute ff (received w x C)).
Proof.
case=> o [s [tk xin EC]]; have [_ c0] := empty_ok checked.
have neutral : received w x C = received w x [seq y <- C | y.1 != empty A].
  by rewrite received_from_zero.
case: xin => [->|xin]; first by rewrite [received _ _ _](received_by_zero w); exact: c0.
have RG := gates_right back checked.
have -> : received w x C = case_received w id id o s x.
  rewrite neutral EC -(full_ranked RG) /case_received /tokens.
  by rewrite -received_from_zero; congr received; elim: (ranked _ _) => //= -[u v] l <-.
by have [sure _] := case_outcome back checked tk; apply: sure.
Qed.

(* every row of the cluster is a token or empty, and few are tokens *)
Lemma case_units x C : is_case A G x C ->
  [/\ unit_row x, all (fun y => unit_row y.1) C
    & (Z.of_nat (count (fun y => busy y.1) C) <= Z.of_nat (3 + fan_in a))%Z].
Proof.
case=> o [s [tk xin EC]].
have word_unit y : y \in word A o s -> unit_row y.
  rewrite /word inE mem_cat inE mem_cat inE.
  case/or3P=> [/eqP ->|/mapP[v _ ->]|/or3P[/eqP ->|/mapP[v _ ->]|/eqP ->]]; exact: unit_row_one_hot.
have member y : y \in C -> y.1 != empty A -> y.1 \in word A o s.
  move=> yC yn; have : y \in [seq y <- C | y.1 != empty A] by rewrite mem_filter yn.
  rewrite EC => /(map_f fst); rewrite -/(unzip1 _) unzip1_zip ?size_scanl ?size_map //.
  by rewrite mem_filter => /andP[].
split.
- by case: xin => [->|/word_unit //]; exact: unit_row_zero.
- apply/allP => y yC; case: (y.1 =P empty A) => [->|/eqP yn]; first exact: unit_row_zero.
  exact: word_unit (member y yC yn).
have le3 : size s <= fan_in a by apply: fan_in_le tk.
have le1 : count (fun y : row * Z => busy y.1) C <= size [seq y <- C | y.1 != empty A].
  rewrite size_filter; apply: sub_count => y /=; rewrite /busy; apply: contraNneq => ->.
  by apply/allP => z /nseqP[->].
have le2 : size [seq y <- C | y.1 != empty A] <= size s + 3.
  rewrite EC /ranked size_zip size_scanl size_map minnn.
  apply: leq_trans (size_subseq (filter_subseq _ _)) _.
  have : size (take (before L (size s)) s) + size (drop (before L (size s)) s) = size s.
    by rewrite -size_cat cat_take_drop.
  by rewrite /word /= size_cat /= size_cat /= !size_map => E; apply/leP; rewrite -!plusE in E *;
    lia.
by move/leP: le1; move/leP: le2; move/leP: le3; rewrite -!plusE; lia.
Qed.

Lemma feed_exact H Y : certain ff width most H (compute ff H) -> may_feed ff H Y ->
  Y = threshold (compute ff H).
Proof.
case/orelseP: accepted => /orelseP[_ ok] _; move: ok.
rewrite /certain /compute; case: ff => [q|bags results] //.
by move=> /orelseP[_ /unlessP ok] sure; apply: feed_keeps_signs ok sure.
Qed.

Lemma local_exact x C y : is_case A G x C -> may_local emin p w ff x C y -> y = local x C.
Proof.
move=> xC [H [recv feed]]; have sure := received_certain xC.
have [ux uC few] := case_units xC.
have [qs q1] := within_largest W_Q; have [ks k1] := within_largest W_K.
have t1 : (1 <= Z.of_nat (3 + fan_in a))%Z by rewrite -plusE; lia.
have := @device_received_exact w _ _ emin_le p_ge _ _ _ _ _ ux uC few qs ks q1 k1 t1 routing_fits _
  recv.
have inj : injective (map IZR) by apply: inj_map; exact: eq_IZR.
move/inj=> E; rewrite E in feed; rewrite (feed_exact sure feed) /model_local /tokens.
by congr (threshold (compute ff (received w x _))); elim: (C) => //= -[u v] l <-.
Qed.

(* ---- an iteration, and a run ---- *)

Notation next q := (evaluated A (where_value A G local) (pdepth q) q).

Lemma iteration_exact (q : padded L) pad X' : pwf q -> 0 < pdepth q ->
  may_iterate emin p w ff (inside_of A q pad) (state_of A q (size pad)) X' ->
  X' = state_of A (next q) (size pad).
Proof.
move=> wq dq; have sep := language_separate checked; have RG := gates_right back checked.
rewrite -(next_state sep RG (local_right back checked) pad wq dq) /may_iterate.
have := every_sight_is_a_case sep RG pad wq dq.
set sights := outcomes _ (@Kept _) (@Sees _) _ _.
have -> : outcomes G id local (inside_of A q pad) (state_of A q (size pad))
    = [seq (match s with Kept x => x | Sees x C => local x C end) | s <- sights].
  by rewrite /sights /outcomes -map_comp; apply: eq_map => s /=; case: ifP.
move=> cases F; elim: F cases => //= s y ss ys Hs _ IH [cs /IH ->]; congr cons.
by case: s Hs cs => [x ->|x C Hs cs] //; exact: local_exact cs Hs.
Qed.


Theorem running_model_is_exact (e : expr L) pad X k : wf e ->
  let: (inside, start) := input A (e, pad) in
  may_run emin p w ff inside (limit id start) start X k -> answers A (e, pad) (X, k).
Proof.
move=> we; have sep := language_separate checked; have RG := gates_right back checked.
have opened := opens back.
suff H n q X0 k0 : pwf q -> pdepth q <= n ->
    may_run emin p w ff (inside_of A q pad) n (state_of A q (size pad)) X0 k0 ->
    exists2 i, i < PaddedExpressions.width A q
      & (X0, k0) = (only A (PaddedExpressions.width A q + size pad) i (peval q), pdepth q).
  rewrite /input /answers; have := H (limit id (state_of A (pad_none e) (size pad))) (pad_none e) X
    k.
  rewrite wf_pad_none depth_pad_none /inside_of /PaddedExpressions.width /state_of !layout_pad_none.
  rewrite eval_pad_none; apply=> //; rewrite -depth_pad_none -layout_pad_none.
  exact: (limit_state (read := id) opened (pad_none e) (size pad)).
move=> wq dn; move E: (inside_of A q pad) => inside; move EX: (state_of A q (size pad)) => X1 R.
elim: R q wq dn E EX => [n' X2 stop|n' X2 X' Y k' go it _ IH] q wq dn E EX.
  have d0 : pdepth q = 0.
    case/orP: stop => [|/eqP n0]; last by move: dn; rewrite n0 leqn0 => /eqP.
    by rewrite -EX -[map _ _]/(map (gate G) _) (halted_state sep RG) // => /eqP.
  rewrite -EX d0; case: q wq dn E EX d0 => // l v r _ _ _ _ _.
  exact: leaf_state.
have dq : 0 < pdepth q.
  by move: go; rewrite -EX -[map _ _]/(map (gate G) _) (halted_state sep RG) // -lt0n.
have d' : pdepth (next q) = (pdepth q).-1.
  by rewrite pdepth_evaluated // (minn_idPr (leq_pred _)).
have wide : PaddedExpressions.width A (next q) = PaddedExpressions.width A q.
  by apply: width_evaluated => o s; apply: where_within.
rewrite -E -EX in it; have EX' := iteration_exact wq dq it.
have less : pdepth (next q) <= n' by rewrite d' -ltnS prednK.
have same : inside_of A (next q) pad = inside by rewrite -E /inside_of wide.
have [i il [-> ->]] := IH _ (pwf_evaluated _ _ _ wq) less same (esym EX').
by exists i; rewrite -?wide // peval_evaluated d' prednK.
Qed.
End Accepted.

(* in the formats that the model runs in *)
Corollary running_model_is_exact_in_every_format a slots G_PE G_R W_Q W_K ff emin p :
  verdict a slots G_PE G_R W_Q W_K ff = None ->
  List.In (emin, p) [:: (-149, 24); (-24, 11); (-133, 8)]%Z ->
  forall (e : expr (language_of a)) pad X k, wf e ->
  let A := alphabet_of a id in
  let w := Weights (vocabulary_size a) slots G_PE G_R W_Q W_K (compute ff) in
  let: (inside, start) := input A (e, pad) in
  may_run emin p w ff inside (limit id start) start X k -> answers A (e, pad) (X, k).
Proof.
move=> ok fmt e pad X k we A w; apply: (running_model_is_exact ok) we.
all: by case: fmt => [[e1 e2]|[[e1 e2]|[[e1 e2]|[]]]]; lia.
Qed.
