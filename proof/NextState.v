(* Theorem 1 of the paper, depth-1 circuit reduction, on expressions: if the local map is right on
   every span of depth 1, one iteration evaluates the deepest operators of the expression and keeps
   its value and its width. Also: what each position sees when that happens. *)
From mathcomp Require Import all_ssreflect.
From Coq Require Import ZArith Lia.
From Exactformer Require Import Circuit Ranks Forests ReductionMask GatedResidual.
From Exactformer Require Import DepthOneReduction Expressions PaddedExpressions.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section NextState.
Variables (L : language) (cell : eqType) (A : alphabet L cell) (G : gates cell).
Notation empties n := (nseq n (empty A)).
Notation flat := (flat (opening A) (closing A)).
Notation full := (full A).
Implicit Types (p : padded L).

(* A span of depth 1 becomes its value in one position and empty elsewhere; empty positions stay
   empty and are not seen by others. *)
Record right_local (local : cell -> seq (cell * Z) -> cell) : Prop := RightLocal {
  local_empty : forall C, local (empty A) C = empty A;
  local_neutral : forall x C, local x C = local x [seq y <- C | y.1 != empty A];
  local_case : forall (o : operator L) a, takes o (size a) -> exists l r,
    reduced (rank_gate G) local (word A o a) = empties l ++ of_value A (apply o a) :: empties r
}.

Hypotheses (sep : separate L) (RG : right_gates A G).

Definition state_of p m : seq cell := playout A p ++ empties m.
Definition forest_of_state p m := join (forest_of A p) (cells (empties m) Nil).

Lemma flat_state p m : flat (forest_of_state p m) = state_of p m.
Proof. by rewrite flat_join flat_cells cats0. Qed.

Lemma levels_state p m : levels (forest_of_state p m) = pdepth p.
Proof. by rewrite levels_join levels_cells maxn0 levels_forest_of. Qed.

Lemma apart_state p m : pwf p -> apart (gate G) (forest_of_state p m).
Proof.
move=> wp; apply: apart_join; first exact: (apart_forest_of sep RG).
  exact: apart_cells (gate_empties RG _) _.
by apply/orP; right; case: m.
Qed.

Lemma halted_state p m : pwf p ->
  halted (depth_counts (map (gate G) (state_of p m))) = (pdepth p == 0).
Proof.
move=> wp; rewrite -flat_state halted_iff_flat ?levels_state ?apart_state //.
  exact: gate_opening RG.
exact: gate_closing RG.
Qed.

(* `pad` says which of the empty positions at the end count as inside: any choice will do. *)
Definition inside_of p pad := nseq (width A p) true ++ pad.

Lemma size_inside_of p pad : size (inside_of p pad) = size (state_of p (size pad)).
Proof. by rewrite !size_cat !size_nseq. Qed.

Lemma deepest_are_inside p pad : 0 < pdepth p ->
  all (fun q => (q.1 == pdepth p) ==> q.2)
      (zip (nesting 0 (forest_of_state p (size pad))) (inside_of p pad)).
Proof.
move=> dp; rewrite nesting_join zip_cat; last first.
  by rewrite (size_nesting (opening A) (closing A)) size_nseq.
rewrite all_cat; apply/andP; split.
  rewrite /width /playout -(size_nesting _ _ 0); elim: (nesting 0 (forest_of A p)) => //= i s ->.
  by rewrite implybT.
elim: (pad) => //= b s ->; by rewrite eq_sym (negbTE (lt0n_neq0 dp)).
Qed.

Lemma outcomes_state B keep (local : cell -> seq (cell * Z) -> B) p pad : pwf p -> 0 < pdepth p ->
  outcomes G keep local (inside_of p pad) (state_of p (size pad))
  = outcome (opening A) (closing A) G keep local (pdepth p) (forest_of_state p (size pad)).
Proof.
move=> wp dp; rewrite -(levels_state p (size pad)) -flat_state.
apply: outcomes_forest; rewrite ?levels_state ?apart_state ?deepest_are_inside //.
- exact: gate_opening RG.
- exact: gate_closing RG.
by rewrite flat_state size_inside_of.
Qed.

(* an iteration of a state that has not halted reduces something *)
Lemma mask_state p pad : pwf p -> 0 < pdepth p ->
  has id (layer_mask G (inside_of p pad) (state_of p (size pad))).
Proof.
move=> wp dp; rewrite -flat_state /layer_mask mask_is_deepest_spans ?levels_state ?apart_state //.
- rewrite has_map; apply/hasP; exists (pdepth p); last exact: eqxx.
  by rewrite -{1}(levels_state p (size pad)) -[levels _]add0n nesting_attained // levels_state.
- exact: gate_opening RG.
- exact: gate_closing RG.
- by rewrite flat_state size_inside_of.
exact: deepest_are_inside.
Qed.

(* ---- the next state ---- *)

Section Local.
Variable local : cell -> seq (cell * Z) -> cell.
Hypothesis RL : right_local local.
Notation reduced := (reduced (rank_gate G) local).

(* one value among empty positions, with more empty positions in between *)
Lemma spread (g : cell -> cell) v C : g (empty A) = empty A ->
  (exists l r, map g (full C) = empties l ++ v :: empties r) ->
  exists l r, map g C = empties l ++ v :: empties r.
Proof.
move=> g0; elim: C => [|x C IH] /=; first by case=> -[|l] [r].
case: (x =P empty A) => [->|_] /=; first by move/IH=> [l [r ->]]; exists l.+1, r; rewrite g0.
case=> -[|l] [r] /= [-> E]; last by have [|l' [r' ->]] := IH; [exists l, r|exists l'.+1, r'].
exists 0, (size C) => /=; congr cons; elim: C r E {IH} => //= y C IH r.
case: (y =P empty A) => [->|_] /=; first by move/IH=> ->; rewrite g0.
by case: r => //= r [-> /IH ->].
Qed.

Lemma reduced_span o a C : takes o (size a) -> full C = full (word A o a) ->
  exists l r, reduced C = empties l ++ of_value A (apply o a) :: empties r.
Proof.
move=> tk EC; rewrite reducedE.
apply: spread (local_empty RL _) _; rewrite EC (full_word RG).
have [l [r E]] := local_case RL tk; exists l, r; rewrite -E reducedE; apply: eq_map => x.
by rewrite (local_neutral RL) (full_ranked RG) EC -(full_ranked RG) -(local_neutral RL).
Qed.

(* the cells of a node from `(` to `)` *)
Definition span_cells o (a : seq (padded L)) : seq cell :=
  let k := before L (size a) in let gs := map (forest_of A) a in
  opening A :: (flatten (map flat (take k gs)) ++ of_operator A o :: flatten (map flat (drop k gs)))
  ++ [:: closing A].

Lemma size_span_cells o a : size (span_cells o a) = span_width A a.
Proof.
rewrite /span_cells /span_width /= -[in RHS](cat_take_drop (before L (size a)) (map (forest_of A)
  a)).
by rewrite map_cat flatten_cat !size_cat /= -!plusE; lia.
Qed.

(* where the value of a node will be *)
Definition where_value o (a : seq (padded L)) : nat :=
  minn (find (predC1 (empty A)) (reduced (span_cells o a))) (span_width A a).-1.

Lemma where_within o a : where_value o a < span_width A a.
Proof. by rewrite /where_value /span_width ltnS geq_minr. Qed.

Notation evaluated := (evaluated A where_value).

Lemma reduced_node o a : takes o (size a) -> foldr maxn 0 (map (@pdepth L) a) = 0 ->
  reduced (span_cells o a) = empties (where_value o a) ++ of_value A (peval (PNode o a))
    :: empties (span_width A a - (where_value o a).+1).
Proof.
move=> tk d0; have [||l [r E]] := @reduced_span o (map (@peval L) a) (span_cells o a).
- by rewrite size_map.
- exact: full_span.
have sz : span_width A a = l + r.+1.
  by rewrite -(size_span_cells o) -[LHS](size_map (fun x =>
    local x (ranked (rank_gate G) (span_cells o a))));
     rewrite -reducedE E size_cat /= !size_nseq.
have -> : where_value o a = l.
  rewrite /where_value E sz find_cat ifF; last by apply/negbTE; rewrite has_nseq /= eqxx andbF.
  rewrite /= (value_not_empty RG) addn0 size_nseq addnS; apply/minn_idPl; exact: leq_addr.
by rewrite E sz addnS subSS addKn.
Qed.

Lemma collapse_forest_of j p : pwf p -> 0 < j -> pdepth p <= j ->
  collapse (opening A) (closing A) G local j (forest_of A p) = forest_of A (evaluated j p).
Proof.
elim/padded_induction: p j => [l v r|o a IH] j /=; first by rewrite collapse_cells.
case/andP=> tk wa j0 dj; rewrite collapse_cells /=; case: ifP => j1.
  have E : foldr maxn 0 (map (@pdepth L) a) = 0.
    by apply/eqP; rewrite -leqn0 -ltnS; apply: leq_trans dj j1.
  rewrite flat_joined /= flat_joined /= cats0 -/(span_cells o a) reduced_node //.
  by rewrite cells_cat -catA /= -nseqD.
have H : map (collapse (opening A) (closing A) G local j.-1) (map (forest_of A) a)
    = map (forest_of A) (map (evaluated j.-1) a).
  have {}j1 : 0 < j.-1 by case: (j) j1 => [|[|n]].
  have {}dj : foldr maxn 0 (map (@pdepth L) a) <= j.-1 by case: (j) dj.
  elim: a IH wa dj {tk} => //= p a IHa [hp ha] /andP[wp wa]; rewrite geq_max => /andP[dp da].
  by rewrite hp // IHa.
rewrite [forest_of A (PNode _ _)]/= size_map collapse_joined /= collapse_joined /=.
by rewrite map_take map_drop H.
Qed.

Theorem next_state p pad : pwf p -> 0 < pdepth p ->
  outcomes G id local (inside_of p pad) (state_of p (size pad))
  = state_of (evaluated (pdepth p) p) (size pad).
Proof.
move=> wp dp; rewrite outcomes_state // outcome_collapse -flat_state.
by rewrite collapse_join collapse_cells collapse_forest_of.
Qed.
End Local.

(* ---- what each position sees ---- *)

Inductive sight := Kept of cell | Sees of cell & seq (cell * Z).

(* It is empty or a token of a span of depth 1, and sees the tokens of that span, and empty ones. *)
Definition is_case (x : cell) (C : seq (cell * Z)) : Prop :=
  exists (o : operator L) a, [/\ takes o (size a), x = empty A \/ x \in word A o a
    & [seq y <- C | y.1 != empty A] = ranked (rank_gate G) (full (word A o a))].

Definition sees_case (s : sight) : Prop := if s is Sees x C then is_case x C else True.

Definition All B (Q : B -> Prop) (s : seq B) : Prop := foldr (fun x => and (Q x)) True s.

Lemma All_cat B (Q : B -> Prop) s t : All Q (s ++ t) <-> All Q s /\ All Q t.
Proof. by elim: s => //= [|x s ->]; tauto. Qed.

Lemma reduced_sees o a C : takes o (size a) -> full C = full (word A o a) ->
  All sees_case (reduced (rank_gate G) Sees C).
Proof.
move=> tk E; rewrite reducedE.
have sub : {subset full C <= word A o a} by move=> x; rewrite E mem_filter => /andP[].
have {}E : [seq y <- ranked (rank_gate G) C | y.1 != empty A]
    = ranked (rank_gate G) (full (word A o a)) by rewrite (full_ranked RG) E.
move: (ranked _ C) E sub => R E; elim: C => //= x C IH sub; split; last first.
  by apply: IH => y yin; apply: sub; case: ifP => // _; rewrite inE yin orbT.
exists o, a; split=> //; case: (x =P empty A) sub => [->|_] sub; [by left|right].
by apply: sub; rewrite inE eqxx.
Qed.

Let in_take k (s : seq (padded L)) q : List.In q (take k s) -> List.In q s.
Proof. by elim: s k => [|x s IH] [|k] //= [->|/IH]; [left|right]. Qed.
Let in_drop k (s : seq (padded L)) q : List.In q (drop k s) -> List.In q s.
Proof. by elim: s k => [|x s IH] [|k] //= /IH; right. Qed.

Lemma outcome_sees j p h : pwf p -> pdepth p <= j ->
  All sees_case (outcome (opening A) (closing A) G Kept Sees j h) ->
  All sees_case (outcome (opening A) (closing A) G Kept Sees j (join (forest_of A p) h)).
Proof.
have cells_sees s g i : All sees_case (outcome (opening A) (closing A) G Kept Sees i g) ->
    All sees_case (outcome (opening A) (closing A) G Kept Sees i (cells s g)).
  by elim: s => //= x s IH /IH H; split.
elim/padded_induction: p j h => [l v r|o a IH] j h.
  by move=> _ _ H; rewrite [forest_of _ _]/= join_cells; apply: cells_sees.
case/andP=> tk wa dj H; rewrite [forest_of _ _]/= [join _ _]/= join_cells [join Nil _]/=.
rewrite [outcome _ _ _ _ _ _ _]/=; case: ifP => j1; last first.
  split=> //; apply/All_cat; split; last by split=> //; apply: cells_sees.
  have {}dj : foldr maxn 0 (map (@pdepth L) a) <= j.-1 by case: (j) dj.
  have join_sees s g : (forall q, List.In q s -> List.In q a) ->
      All sees_case (outcome (opening A) (closing A) G Kept Sees j.-1 g) ->
      All sees_case (outcome (opening A) (closing A) G Kept Sees j.-1 (joined (map (forest_of A) s)
        g)).
    move=> sub H0; elim: s sub => //= q s IHs sub.
    have qa : List.In q a by apply: sub; left.
    have {}IHs := IHs (fun r i => sub r (or_intror i)).
    elim: (a) IH wa dj qa => //= q' a' IHa [hq ha] /andP[wq wa']; rewrite geq_max => /andP[dq da].
    by case=> [<-|/IHa]; [apply: hq|apply].
  rewrite -map_take -map_drop; apply: (join_sees) => [q|/=]; first exact: in_take.
  by split=> //; apply: join_sees => // q; apply: in_drop.
have E : foldr maxn 0 (map (@pdepth L) a) = 0.
  by apply/eqP; rewrite -leqn0 -ltnS; apply: leq_trans dj j1.
apply/All_cat; split; last exact: cells_sees.
apply: (@reduced_sees o (map (@peval L) a)); first by rewrite size_map.
by rewrite flat_joined /= flat_joined /= cats0; apply: full_span.
Qed.

Theorem every_sight_is_a_case p pad : pwf p -> 0 < pdepth p ->
  All sees_case (outcomes G Kept Sees (inside_of p pad) (state_of p (size pad))).
Proof.
move=> wp dp; rewrite outcomes_state //; apply: outcome_sees => //.
by elim: (size pad).
Qed.
End NextState.
