(* T2, the checker: a finite check, which a machine can run, implies the right value at every depth
   and length. It enumerates every operator with every list of operands that it takes, and looks at
   what each position of that span becomes. *)
From mathcomp Require Import all_ssreflect.
From Coq Require Import ZArith.
From Exactformer Require Import Circuit Ranks GatedResidual Expressions PaddedExpressions NextState.
From Exactformer Require Import TypedAttention GlobalEvaluation.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

(* ---- an algebra as data ---- *)

(* Values are 0 ... n_values - 1. An operator has its arities and, for each of them, the results for
   all lists of operands in the order of `lists`. *)
Record algebra := Algebra {
  last_value : nat;                              (* there is at least one value *)
  operators : seq (seq (nat * seq nat));
  prefix : bool                                  (* else infix *)
}.

Section Algebra.
Variable a : algebra.
Definition n_values : nat := (last_value a).+1.
Definition n_operators : nat := size (operators a).
Definition vocabulary_size : nat := 2 + n_values + n_operators.

Definition arities (o : nat) : seq nat := map fst (nth [::] (operators a) o).
Definition operands_before (n : nat) : nat := if prefix a then 0 else infix_before n.
Definition closing_slot : nat := if prefix a then 1 else 0.

(* all lists of n operands, the last one changing fastest *)
Fixpoint lists (n : nat) : seq (seq nat) :=
  if n is n'.+1 then [seq x :: s | x <- iota 0 n_values, s <- lists n'] else [:: [::]].

Definition result (o : nat) (operands : seq nat) : nat :=
  let place := foldl (fun i x => i * n_values + x) 0 operands in
  if [seq t.2 | t <- nth [::] (operators a) o & t.1 == size operands] is t :: _
  then nth 0 t place else 0.

Definition language_of : language := {|
  value := 'I_n_values;
  operator := 'I_n_operators;
  takes := fun o n => n \in arities o;
  apply := fun o operands => inord (result o (map val operands));
  before := operands_before;
  tail := closing_slot
|}.

(* tokens in the order of the vocabulary: ( ) values operators *)
Definition one_hot (t : nat) : row :=
  [seq (if i == t then 1 else 0)%Z | i <- iota 0 vocabulary_size].
Definition zero_row : row := nseq vocabulary_size 0%Z.
Definition value_token (v : nat) : nat := 2 + v.
Definition operator_token (o : nat) : nat := 2 + n_values + o.

(* the tokens of a span of depth 1 *)
Definition span (o : nat) (operands : seq nat) : seq nat :=
  let k := operands_before (size operands) in
  0 :: map value_token (take k operands) ++ operator_token o
    :: map value_token (drop k operands) ++ [:: 1].
End Algebra.

(* ---- the check ---- *)

Inductive failure :=
  | Wrong_size                                   (* of the weights, for the algebra *)
  | Wide_routing                                 (* its sums may be more than every format holds *)
  | Out_of_range                                 (* a weight that is no float32 or nearly zero *)
  | Wrong_gate of nat                            (* the token *)
  | Spans_touch of nat & nat                     (* the operator, with so many operands *)
  | Wrong_empty                                  (* an empty position does not stay empty *)
  | Uncertain_empty
  | No_result of nat & seq nat                   (* the operator, its operands *)
  | Wrong_row of nat & seq nat & nat             (* and the token whose position goes wrong *)
  | Uncertain_row of nat & seq nat & nat.        (* right, but `certain` says no *)

Fixpoint first A B (g : A -> option B) (s : seq A) : option B :=
  if s is x :: s then if g x is Some y then Some y else first g s else None.

Definition unless (b : bool) (e : failure) : option failure := if b then None else Some e.
Definition orelse (x y : option failure) : option failure := if x is Some _ then x else y.

Section Check.
Variables (a : algebra) (w : weights).
(* a further condition on all that is ever received and what the feedforward makes of it: that
   rounding cannot change the outcome *)
Variable certain : row -> row -> bool.

Definition right_gate (t : nat) : Z := if t == 0 then 1%Z else if t == 1 then (-1)%Z else 0%Z.

Definition check_gate : option failure :=
  first (fun t => unless (dot (one_hot a t) (G_PE w) =? right_gate t)%Z (Wrong_gate t))
        (iota 0 (vocabulary_size a)).

Definition is_nothing (H : row) : bool := all2 Z.eqb H (nothing w).

(* The positions of a span, one after the other: each becomes empty, but one, which becomes the
   value. `seen` is whether that one has come already. What receives nothing was looked at once for
   all. *)
Fixpoint check_positions (o : nat) (operands : seq nat) (C : seq (row * Z)) (seen : bool)
    (tokens : seq nat) : option failure :=
  if tokens is t :: tokens then
    let H := received w (one_hot a t) C in
    if is_nothing H then check_positions o operands C seen tokens
    else
      let Z := f w H in
      let Y := threshold Z in
      if ~~ certain H Z then Some (Uncertain_row o operands t)
      else if all2 Z.eqb Y (zero_row a) then check_positions o operands C seen tokens
      else if ~~ seen && all2 Z.eqb Y (one_hot a (value_token (result a o operands)))
      then check_positions o operands C true tokens
      else Some (Wrong_row o operands t)
  else unless seen (Wrong_row o operands (operator_token a o)).

Definition check_case (o : nat) (operands : seq nat) : option failure :=
  let tokens := span a o operands in
  let C := ranked (fun x => dot x (G_R w)) (map (one_hot a) tokens) in
  if ~~ (result a o operands < n_values a) then Some (No_result o operands)
  else check_positions o operands C false tokens.

Definition check_empty : option failure :=
  let Z := f w (nothing w) in
  if ~~ all2 Z.eqb (threshold Z) (zero_row a) then Some Wrong_empty
  else unless (certain (nothing w) Z) Uncertain_empty.

Definition check_operator (o : nat) : option failure :=
  first (fun n =>
      if ~~ ((0 < closing_slot a) || (operands_before a n <= 1) && (n - operands_before a n <= 1))
      then Some (Spans_touch o n)
      else first (check_case o) (lists a n))
    (arities a o).

Definition check : option failure :=
  orelse (unless (D w == vocabulary_size a) Wrong_size)
    (orelse check_gate
      (orelse check_empty
        (first check_operator (iota 0 (n_operators a))))).
End Check.

(* ---- soundness ---- *)

Lemma all2_eq (x y : row) : all2 Z.eqb x y = (x == y).
Proof. by elim: x y => [|u x IH] [|v y] //=; rewrite IH. Qed.

Lemma firstP (A : eqType) B (g : A -> option B) s x : first g s = None -> x \in s -> g x = None.
Proof.
elim: s => //= y s IH; case E: (g y) => [//|] /IH h; rewrite inE => /orP[/eqP ->//|]; exact: h.
Qed.

Lemma unlessP b e : unless b e = None -> b.
Proof. by case: b. Qed.

Lemma orelseP x y : orelse x y = None -> x = None /\ y = None.
Proof. by case: x. Qed.

Lemma lists_complete a (s : seq nat) : all (fun x => x < n_values a) s -> s \in lists a (size s).
Proof.
elim: s => // x s IH /andP[xn /IH h]; apply/allpairsP; exists (x, s); split=> //.
by rewrite mem_iota.
Qed.

Section Soundness.
Variables (a : algebra) (w : weights) (certain : row -> row -> bool).
Variables (cell : eqType) (read : cell -> row) (write : row -> cell).
Notation L := (language_of a).

(* every token, and the zero row, reads back as what was written; trivial without dense vectors *)
Definition reads_back : Prop :=
  read (write (zero_row a)) = zero_row a /\
  forall t, t < vocabulary_size a -> read (write (one_hot a t)) = one_hot a t.

Definition alphabet_of : alphabet L cell := {|
  empty := write (zero_row a);
  opening := write (one_hot a 0);
  closing := write (one_hot a 1);
  of_value := fun v : value L => write (one_hot a (value_token v));
  of_operator := fun o : operator L => write (one_hot a (operator_token a o))
|}.

Hypotheses (RB : reads_back) (ok : check a w certain = None).
Notation A := alphabet_of.
Notation G := (model_gates read w).

Let value_in (v : 'I_(n_values a)) : value_token v < vocabulary_size a.
Proof. by rewrite /vocabulary_size -addnA ltn_add2l; apply: leq_trans (leq_addr _ _). Qed.
Let operator_in (o : 'I_(n_operators a)) : operator_token a o < vocabulary_size a.
Proof. by rewrite ltn_add2l. Qed.

Lemma size_ok : D w = vocabulary_size a.
Proof. by case/orelseP: ok => /unlessP/eqP. Qed.

Lemma gate_ok t : t < vocabulary_size a -> dot (one_hot a t) (G_PE w) = right_gate t.
Proof.
move=> tv; case/orelseP: ok => _ /orelseP[/firstP h _].
by apply/Z.eqb_eq; apply: unlessP (h t _); rewrite mem_iota.
Qed.

Lemma empty_ok : threshold (f w (nothing w)) = zero_row a /\ certain (nothing w) (f w (nothing w)).
Proof.
case/orelseP: ok => _ /orelseP[_ /orelseP[]]; rewrite /check_empty all2_eq.
by case: eqP => //= -> /unlessP ->.
Qed.

Theorem language_separate : separate L.
Proof.
move=> o n no; case/orelseP: ok => _ /orelseP[_ /orelseP[_ /firstP h]].
have /firstP/(_ no) := h o (ltac:(by rewrite mem_iota /= ltn_ord)).
by case: ifP => // /negbFE.
Qed.

Lemma case_ok (o : operator L) (s : seq (value L)) :
  takes o (size s) -> check_case a w certain o (map val s) = None.
Proof.
move=> tk; case/orelseP: ok => _ /orelseP[_ /orelseP[_ /firstP h]].
have /firstP/(_ tk) := h o (ltac:(by rewrite mem_iota /= ltn_ord)).
case: ifP => // _ /firstP; apply; rewrite -(size_map val); apply: lists_complete.
by rewrite all_map; apply/allP => v _ /=; apply: ltn_ord.
Qed.

Theorem gates_right : right_gates A G.
Proof.
have [r0 rt] := RB; have e0 : read (empty A) = nseq (D w) 0%Z by rewrite size_ok.
have [e1 e2] := model_gate_empty e0.
have ne t : t < vocabulary_size a -> write (one_hot a t) != write (zero_row a).
  move=> tv; apply/eqP => E; have := rt t tv; rewrite E r0 => /(congr1 (fun x => nth 0%Z x t)).
  by rewrite nth_nseq if_same (nth_map 0) ?size_iota // nth_iota // eqxx.
split=> //= [||v|o|v|o]; [| | | |exact: ne (value_in v)|exact: ne (operator_in o)].
all: by rewrite /gate_of rt ?gate_ok.
Qed.

(* the rows that a span of depth 1 gives, with their ranks, are those that were checked *)
Lemma tokens_ranked (C : seq cell) :
  tokens read (ranked (rank_gate G) C) = ranked (fun x => dot x (G_R w)) (map read C).
Proof. by rewrite /tokens /ranked /cumsum; move: 0%Z; elim: C => //= x C IH r; rewrite IH. Qed.

Lemma read_word (o : operator L) (s : seq (value L)) :
  map read (word A o s) = map (one_hot a) (span a o (map val s)).
Proof.
have [_ rt] := RB; have rv (l : seq (value L)) :
    map read (map (of_value A) l) = map (one_hot a) (map (@value_token) (map val l)).
  by rewrite -!map_comp; apply: eq_map => v /=; rewrite rt.
rewrite /word /span size_map /= !map_cat /= !map_cat /= !rv !rt //.
by rewrite -!map_take -!map_drop.
Qed.

(* what a position with token t receives in a span *)
Definition case_received (o : operator L) (s : seq (value L)) (x : cell) : row :=
  received w (read x) (tokens read (ranked (rank_gate G) (word A o s))).

(* the checked positions: all but one become empty, that one the value, and all certainly so *)
Lemma positions_ok o operands C seen tokens :
  check_positions a w certain o operands C seen tokens = None ->
  let H t := received w (one_hot a t) C in
  let out t := threshold (f w (H t)) in
  let zeros n := nseq n (zero_row a) in
  all (fun t => certain (H t) (f w (H t))) tokens /\
  if seen then map out tokens = zeros (size tokens)
  else exists l r, map out tokens
         = zeros l ++ one_hot a (value_token (result a o operands)) :: zeros r.
Proof.
have [Y0 c0] := empty_ok; elim: tokens seen => [|t tokens IH] seen /=; first by case: seen.
rewrite /is_nothing !all2_eq; case: eqP => [HN|_].
  case/IH=> -> E; rewrite HN Y0 c0; split=> //; case: (seen) E => [->//|[l [r ->]]].
  by exists l.+1, r.
case: ifP => // /negbFE ->; case: eqP => [->|_].
  case/IH=> -> E; split=> //; case: (seen) E => [->//|[l [r ->]]].
  by exists l.+1, r.
case: ifP => // /andP[/negbTE -> /eqP ->] /IH[-> E]; split=> //.
by exists 0, (size tokens); rewrite E.
Qed.

Theorem case_outcome (o : operator L) (s : seq (value L)) : takes o (size s) ->
  (forall x, x \in word A o s -> certain (case_received o s x) (f w (case_received o s x))) /\
  exists l r, [seq threshold (f w (case_received o s x)) | x <- word A o s]
    = nseq l (zero_row a) ++ one_hot a (value_token (apply o s)) :: nseq r (zero_row a).
Proof.
move=> /case_ok; rewrite /check_case; case: ifP => // /negbFE small /positions_ok[sure one].
have E x : case_received o s x = received w (read x)
    (ranked (fun y => dot y (G_R w)) (map (one_hot a) (span a o (map val s)))).
  by rewrite /case_received tokens_ranked read_word.
have -> : value_token (apply o s) = value_token (result a o (map val s)) by rewrite /= inordK.
split.
  move=> x xin; rewrite E; have : read x \in map read (word A o s) by apply: map_f.
  by rewrite read_word => /mapP[t tin ->]; apply: (allP sure).
rewrite (eq_map (f2 := (fun y => threshold (f w (received w y (ranked (fun y => dot y (G_R w))
  (map (one_hot a) (span a o (map val s))))))) \o read)) => [|x]; last by rewrite /= E.
by rewrite map_comp read_word -map_comp.
Qed.

Theorem local_right : right_local A G (model_local read write w).
Proof.
apply: model_right_local => /= [||o s /case_outcome[_ [l [r E]]]].
- by rewrite (proj1 RB) /zero_row size_ok.
- by have [-> _] := empty_ok.
exists l, r; have mE := congr1 (map write) E; move: mE;
  rewrite -map_comp map_cat /= !map_nseq => <-.
by rewrite reducedE.
Qed.

Lemma opens : is_open read (opening A).
Proof. by rewrite /is_open /= (proj2 RB). Qed.

(* The whole theorem: what was checked computes every expression of the algebra, at every depth and
   length, in any batch and with any padding, in as many iterations as it is deep. *)
Theorem checked_weights_are_exact (batch : seq (expr L * seq bool)) : all (fun b => wf b.1) batch ->
  List.Forall2 (answers A) batch (run read write w (map (input A) batch)).
Proof. exact: global_evaluation language_separate gates_right local_right opens batch. Qed.
End Soundness.

(* without dense vectors *)
Corollary checked_rows_are_exact a w certain (batch : seq (expr (language_of a) * seq bool)) :
  check a w certain = None -> all (fun b => wf b.1) batch ->
  let A := alphabet_of a id in
  List.Forall2 (answers A) batch (run id id w (map (input A) batch)).
Proof. by move=> ok wb A; apply: (checked_weights_are_exact _ ok). Qed.
