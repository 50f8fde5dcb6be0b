(* The theorems about devices are about something. The device that rounds to the nearest number,
   ties to even, and fuses each product with a sum, is one of those that they speak of: with weights
   that the checker accepts it has a run for every expression (`may_run`), and a result for every
   row of a machine beside every state (`may_try`). *)
From Coq Require Import Reals List ZArith Lia.
From Flocq Require Import Core.
From mathcomp Require Import all_ssreflect.
From Exactformer Require Import Circuit Ranks GatedResidual Expressions PaddedExpressions NextState.
From Exactformer Require Import GlobalEvaluation Checker Feedforward Verdict Rounding RoutedSums.
From Exactformer Require Import PerceptronRounding DeviceAttention RunningModel.
From Exactformer Require Import MachineLayer MachineChecked.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Local Open Scope nat_scope.

(* ---- a result for each sum ---- *)

Section Format.
Variables (emin p : Z).

Definition nearest (e : R) : R := round radix2 (FLT_exp emin p) ZnearestE e.

Lemma rounds_nearest e : rounds emin p e (nearest e).
Proof. by exists ZnearestE; split=> //; apply: valid_rnd_N. Qed.

Fixpoint add_up (x : R) (s : seq R) : R :=
  if s is y :: s then nearest (add_up y s + x)%R else nearest x.

Lemma summed_add_up x s : summed (rounds emin p) (x :: s) (add_up x s).
Proof.
elim: s x => [|y s IH] x; first by apply: product; apply: rounds_nearest.
exact: fused (IH y) (rounds_nearest _).
Qed.

Lemma some_sum s : s <> [::] -> exists v, summed (rounds emin p) s v.
Proof. by case: s => // x s _; exists (add_up x s); apply: summed_add_up. Qed.
End Format.

Lemma some_each A B (P : A -> B -> Prop) (s : seq A) :
  (forall x, exists y, P x y) -> exists t, Forall2 P s t.
Proof.
move=> some; elim: s => [|x s [t IH]]; first by exists [::]; constructor.
by have [y Py] := some x; exists (y :: t); constructor.
Qed.

(* ---- the feedforward ---- *)

Notation nearest64 := (nearest (-1074) 53).

Definition layer64 (shift : nat) (W : seq row) (b : row) (x : seq R) : seq R :=
  let float := PerceptronRounding.over shift in
  [seq (if terms x (map float c.1) (float c.2) is t :: ts then add_up (-1074) 53 t ts else 0%R)
  | c <- zip W b].
Definition activate64 (a : activation) (h : R) : R :=
  if a is Square then nearest64 (h * h)%R else Rmax h 0.
Definition outputs64 (p : perceptron) (H : row) : seq R :=
  let hidden := layer64 (shift_1 p) (W_1 p) (b_1 p) (map IZR H) in
  layer64 (shift_2 p) (W_2 p) (b_2 p) (map (activate64 (act p)) hidden).
Definition feed64 (ff : feedforward) (H : row) : row :=
  match ff with
  | Network p => [seq (if Rlt_dec 0 z then 1 else 0)%Z | z <- outputs64 p H]
  | Table bags results => threshold (look_up bags results H)
  end.

Lemma may_layer64 shift W b x : may_layer binary64 shift W b x (layer64 shift W b x).
Proof.
rewrite /may_layer /layer64; elim: (zip W b) => [|c l IH] /=; constructor=> //.
case E: (terms _ _ _) => [|t ts]; last exact: summed_add_up.
by move: E; rewrite /terms; case: (map _ _).
Qed.

Theorem some_feed ff H : may_feed ff H (feed64 ff H).
Proof.
case: ff => [p|bags results] //=; exists (outputs64 p H); split=> //.
set hidden := layer64 (shift_1 p) (W_1 p) (b_1 p) (map IZR H).
exists hidden, (map (activate64 (act p)) hidden); split; try exact: may_layer64.
elim: hidden => [|h l IH] /=; constructor=> //.
by rewrite /activate64 /may_activate; case: (act p) => //; apply: rounds_nearest.
Qed.

(* ---- attention ---- *)

Theorem some_received (w : weights) emin p x C : exists H, device_received w emin p x C H.
Proof.
have dots y k : exists v, device_dot emin p y k v by apply: some_sum.
apply: some_each => -[s t] /=.
have [qs hq] := some_each (zip (W_Q w) (W_K w)) (fun c : row * row => dots x c.1).
have sums (c : row * row) : exists v, device_sum w emin p C s c.2 t v.
  rewrite /device_sum; set rows := [seq _ | _ <- _].
  have [ks hk] := some_each rows (fun y => dots y c.2).
  have [|v hv] := @some_sum emin p (0%R :: [seq (q.1 * IZR (nth 0%Z q.2 t))%R | q <- zip ks rows]).
    by [].
  by exists v, ks.
have [ss hs] := some_each (zip (W_Q w) (W_K w)) sums.
have [|h hh] := @some_sum emin p (0%R :: [seq (q.1 * q.2)%R | q <- zip qs ss]); first by [].
by exists h, qs, ss.
Qed.

(* ---- an iteration, and a run ---- *)

Section Accepted.
Variables (a : algebra) (slots : nat) (G_PE G_R : row) (W_Q W_K : seq row) (ff : feedforward).
Hypothesis accepted : verdict a slots G_PE G_R W_Q W_K ff = None.
Variables (emin p : Z).
Hypotheses (emin_le : (emin <= 0)%Z) (p_ge : (8 <= p)%Z).
Let w := Weights (vocabulary_size a) slots G_PE G_R W_Q W_K (compute ff).
Notation L := (language_of a).
Notation A := (alphabet_of a id).
Notation G := (model_gates id w).
Notation local := (model_local id id w).
Let checked := cases_accepted accepted.
Let back : reads_back a (@id row) id. Proof. by []. Qed.

Lemma some_local x C : is_case A G x C -> exists y, may_local emin p w ff x C y.
Proof.
move=> xC; have [H recv] := some_received w emin p x C.
have [ux uC few] := case_units xC.
have [qs q1] := within_largest W_Q; have [ks k1] := within_largest W_K.
have t1 : (1 <= Z.of_nat (3 + fan_in a))%Z by rewrite -plusE; lia.
have E := @device_received_exact w _ _ emin_le p_ge _ _ _ _ _ ux uC few qs ks q1 k1 t1
  (routing_fits accepted) _ recv.
exists (feed64 ff (received w x C)), (received w x C); split; last exact: some_feed.
by rewrite -E.
Qed.

Lemma some_iteration (q : padded L) pad : pwf q -> 0 < pdepth q ->
  exists X', may_iterate emin p w ff (inside_of A q pad) (state_of A q (size pad)) X'.
Proof.
move=> wq dq; have sep := language_separate checked; have RG := gates_right back checked.
rewrite /may_iterate; have := every_sight_is_a_case sep RG pad wq dq.
elim: (outcomes _ (@Kept _) (@Sees _) _ _) => [|s ss IH]; first by exists [::]; constructor.
case=> cs /IH[ys F]; suff [y Hy] : exists y, may_become emin p w ff s y.
  by exists (y :: ys); constructor.
by case: s cs => [x _|x C cs] /=; [exists x|exact: some_local].
Qed.

(* every expression has a run: with `running_model_is_exact`, all runs end with its value, and there
   is one *)
Theorem some_run (e : expr L) pad : wf e ->
  let: (inside, start) := input A (e, pad) in
  exists X k, may_run emin p w ff inside (limit id start) start X k /\ answers A (e, pad) (X, k).
Proof.
move=> we; have sep := language_separate checked; have RG := gates_right back checked.
have H n q : pwf q -> exists X k,
    may_run emin p w ff (inside_of A q pad) n (state_of A q (size pad)) X k.
  elim: n q => [|n IH] q wq; first by do 2!eexists; apply: over; rewrite orbT.
  case stop : (halted (depth_counts (map (gate_of id w) (state_of A q (size pad))))).
    by do 2!eexists; apply: over; rewrite stop.
  have dq : 0 < pdepth q.
    by move: stop; rewrite -[map _ _]/(map (gate G) _) (halted_state sep RG) // lt0n => ->.
  have [X' it] := some_iteration pad wq dq.
  have EX' := iteration_exact accepted emin_le p_ge wq dq it.
  set next := evaluated _ _ _ _ in EX'.
  have wide : PaddedExpressions.width A next = PaddedExpressions.width A q.
    by apply: width_evaluated => o s; apply: where_within.
  have [X [k R]] := IH next (pwf_evaluated _ _ _ wq).
  exists X, k.+1; apply: more it _; first by rewrite stop.
  by move: R; rewrite EX' /inside_of wide.
have exact_ X k := @running_model_is_exact _ _ _ _ _ _ _ accepted _ _ emin_le p_ge e pad X k we.
rewrite /input in exact_ *.
have := H (limit id (state_of A (pad_none e) (size pad))) (pad_none e).
rewrite wf_pad_none /inside_of /PaddedExpressions.width /state_of !layout_pad_none.
by case/(_ we) => X [k R]; exists X, k; split=> //; apply: exact_ R.
Qed.
End Accepted.

(* ---- machines ---- *)

(* ---- machines ---- *)

(* every row beside every state, tried on that device *)
Definition try64 (W : nat) (ff : feedforward) (h : row) (q : nat) : seq bool :=
  [seq (0 <? z)%Z | z <- feed64 ff (beside W h q)].

Theorem some_try W ff h q : may_try W ff h q (try64 W ff h q).
Proof. by exists (feed64 ff (beside W h q)); split=> //; apply: some_feed. Qed.

Corollary nearest_machine_is_exact M D W G_K ff backwards step batch :
  verdict_machine M D W G_K ff = None -> all (is_text M D backwards) batch ->
  Forall2 (machine_answers M D backwards) batch
    (iterate_machine D W G_K backwards (try64 W ff) step (map (machine_input M D backwards) batch)).
Proof. by move=> ok; apply: (running_machine_is_exact ok) => h q _; apply: some_try. Qed.
