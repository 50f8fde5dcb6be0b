(* Theorem 2 of the paper, global circuit evaluation: if gates and local map are right, `run` leaves
   the value of the expression in one position of it and nothing elsewhere, after as many iterations
   as the expression is deep; for any expression, in any batch, with any padding. *)
From mathcomp Require Import all_ssreflect.
From Coq Require Import ZArith Lia.
From Exactformer Require Import Circuit Ranks Forests GatedResidual Expressions PaddedExpressions.
From Exactformer Require Import NextState Batch.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

(* ---- an expression is a padded expression without padding ---- *)

Section Embedding.
Variables (L : language) (cell : eqType) (A : alphabet L cell).

Fixpoint pad_none (e : expr L) : padded L :=
  match e with Leaf v => PLeaf 0 v 0 | Node o a => PNode o (map pad_none a) end.

Section Induction.
Variable Q : expr L -> Prop.
Hypotheses (leaf : forall v, Q (Leaf v))
           (node : forall o a, foldr (fun e => and (Q e)) True a -> Q (Node o a)).
Fixpoint expr_induction e : Q e :=
  match e with
  | Leaf v => leaf v
  | Node o a => node o ((fix F a : foldr (fun e => and (Q e)) True a :=
       match a with [::] => I | e :: a => conj (expr_induction e) (F a) end) a)
  end.
End Induction.

Let map_eq B (g h : expr L -> B) a : foldr (fun e => and (g e = h e)) True a -> map g a = map h a.
Proof. by elim: a => //= e a IH [-> /IH ->]. Qed.

Lemma layout_pad_none e : playout A (pad_none e) = layout A e.
Proof.
elim/expr_induction: e => //= o a IH.
rewrite /playout /= flat_joined /= flat_joined /= flat_cells !cats0 !size_map -catA map_take
  map_drop.
by rewrite -!map_comp (map_eq IH).
Qed.

Lemma wf_pad_none (e : expr L) : pwf (pad_none e) = wf e.
Proof.
elim/expr_induction: e => //= o a IH; rewrite size_map all_map; congr andb.
by elim: a IH => //= e a IHa [-> /IHa ->].
Qed.

Lemma eval_pad_none e : peval (pad_none e) = eval e.
Proof. by elim/expr_induction: e => //= o a IH; rewrite -map_comp (map_eq IH). Qed.

Lemma depth_pad_none e : pdepth (pad_none e) = depth e.
Proof. by elim/expr_induction: e => //= o a IH; rewrite -map_comp (map_eq IH). Qed.
End Embedding.

(* ---- the final state ---- *)

Section Final.
Variables (L : language) (cell : eqType) (A : alphabet L cell).

(* a single value in a sequence of n positions, all others empty *)
Definition only (n i : nat) (v : value L) : seq cell :=
  nseq i (empty A) ++ of_value A v :: nseq (n - i.+1) (empty A).

Lemma state_of_leaf l v r m :
  state_of A (PLeaf l v r) m = only (width A (PLeaf l v r) + m) l v.
Proof.
rewrite /state_of playout_leaf -catA width_leaf /only /= -nseqD.
by congr (_ ++ _ :: nseq _ _); rewrite -minusE -!plusE; lia.
Qed.
Lemma leaf_state k m l v r : exists2 i, i < width A (PLeaf l v r)
  & (state_of A (PLeaf l v r) m, k) = (only (width A (PLeaf l v r) + m) i v, k + 0).
Proof. by exists l; rewrite ?state_of_leaf ?addn0 // width_leaf -addSnnS leq_addr. Qed.
End Final.

(* ---- the theorem ---- *)

Section Evaluation.
Variables (L : language) (cell : eqType) (A : alphabet L cell).
Variables (read : cell -> row) (write : row -> cell) (w : weights).
Hypotheses (sep : separate L) (RG : right_gates A (model_gates read w))
           (RL : right_local A (model_gates read w) (model_local read write w))
           (opens : is_open read (opening A)).
Implicit Types (p : padded L) (e : expr L).

Lemma limit_state p m : pdepth p <= limit read (state_of A p m).
Proof. by rewrite -(levels_state A p m) -flat_state; apply: levels_le_opening. Qed.

Notation evaluated := (evaluated A (where_value A (model_gates read w) (model_local read write w))).

Lemma width_next j p : width A (evaluated j p) = width A p.
Proof. by apply: width_evaluated => o a; apply: where_within. Qed.

Lemma alone_state n left_ k p pad : pwf p -> pdepth p <= n -> pdepth p <= left_ ->
  exists2 i, i < width A p & result (alone read write w n
      (Sequence left_ (inside_of A p pad) (state_of A p (size pad)) k))
    = (only A (width A p + size pad) i (peval p), k + pdepth p).
Proof.
elim: n left_ k p => [|n IH] left_ k p wp dn dl.
  by case: p wp dn {dl} => // l v r _ _; apply: leaf_state.
have rE : running read w (Sequence left_ (inside_of A p pad) (state_of A p (size pad)) k)
    = (0 < pdepth p).
  rewrite /running /= -[map _ _]/(map (gate (model_gates read w)) _) (halted_state sep RG) // -lt0n.
  by case: (pdepth p) dl => //= d /(leq_trans _) ->.
rewrite [alone _ _ _ _ _]/= rE; case: (posnP (pdepth p)) => dp.
  by case: p wp dn dp {dl rE} => // l v r _ _ _; apply: leaf_state.
rewrite /advance rE dp /=.
have -> : [seq b && true | b <- inside_of A p pad] = inside_of A p pad.
  by rewrite (eq_map (f2 := id)) ?map_id // => b; rewrite andbT.
rewrite iterate_outcomes ?size_inside_of // (next_state sep RG RL) //.
rewrite -[mask _ _ _ _]/(layer_mask (model_gates read w) _ _) (mask_state sep RG) //.
have d' : pdepth (evaluated (pdepth p) p) = (pdepth p).-1.
  by rewrite pdepth_evaluated // (minn_idPr (leq_pred _)).
rewrite -[inside_of A p pad]/(nseq (width A p) true ++ pad) -(width_next (pdepth p)).
have [|||i il ->] := IH left_.-1 (k + 1) (evaluated (pdepth p) p); rewrite ?pwf_evaluated ?d' //.
- by rewrite -ltnS prednK.
- by case: (pdepth p) dp dl => //= d _; case: (left_).
by exists i => //; rewrite peval_evaluated -addnA add1n prednK.
Qed.

(* an expression with padding after it: which of the padding counts as inside, any choice *)
Definition input (b : expr L * seq bool) : seq bool * seq cell :=
  let: (e, pad) := b in
  (nseq (size (layout A e)) true ++ pad, layout A e ++ nseq (size pad) (empty A)).

(* the value in one position of the expression, nothing elsewhere; as many iterations as levels *)
Definition answers (b : expr L * seq bool) (r : seq cell * nat) : Prop :=
  let: (e, pad) := b in let n := size (layout A e) in
  exists2 i, i < n & r = (only A (n + size pad) i (eval e), depth e).

Theorem global_evaluation (batch : seq (expr L * seq bool)) : all (fun b => wf b.1) batch ->
  List.Forall2 answers batch (run read write w (map input batch)).
Proof.
move=> wb; have [|fuel [le ->]] := @run_is_alone _ read write w (map input batch).
  by rewrite all_map; elim: batch {wb} => //= -[e pad] batch ->; rewrite !size_cat !size_nseq eqxx.
move: le wb; rewrite all_map -map_comp.
elim: batch => //= -[e pad] batch IH /andP[le les] /andP[we ws]; constructor; last exact: IH.
have E : state_of A (pad_none e) (size pad) = layout A e ++ nseq (size pad) (empty A).
  by rewrite /state_of layout_pad_none.
have := @alone_state fuel (limit read (state_of A (pad_none e) (size pad))) 0 (pad_none e) pad.
rewrite wf_pad_none depth_pad_none /inside_of /width layout_pad_none eval_pad_none E.
apply=> //; last by rewrite -E -depth_pad_none limit_state.
by apply: leq_trans le; rewrite /input /= -E -depth_pad_none limit_state.
Qed.
End Evaluation.
