(* The sequences of a batch run as each would alone: one that has halted, or has used up its limit,
   is left as it is while the others go on. *)
From mathcomp Require Import all_ssreflect.
From Exactformer Require Import Circuit GatedResidual.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section Batch.
Variables (cell : eqType) (read : cell -> row) (write : row -> cell) (w : weights).
Notation running := (running read w).
Notation advance := (advance read write w).
Implicit Types s : sequence cell.

Definition result s := (state s, iterations s).
Definition sized s : bool := size (inside s) == size (state s).

(* a sequence by itself *)
Fixpoint alone (fuel : nat) s : sequence cell :=
  if fuel is n.+1 then if running s then alone n (advance s) else s else s.

Lemma size_iterate inside (X : seq cell) :
  size inside = size X -> size (iterate read write w inside X) = size X.
Proof.
move=> E; rewrite iterate_outcomes // /outcomes size_map !size_zip Clusters.size_clusters.
by rewrite size_layer_mask // !minnn.
Qed.

Lemma sized_advance s : sized s -> sized (advance s).
Proof. by rewrite /sized /= => /eqP E; rewrite size_iterate ?size_map ?E. Qed.

Lemma advance_idle s : sized s -> ~~ running s ->
  [/\ result (advance s) = result s, ~~ running (advance s) & sized (advance s)].
Proof.
move=> /eqP E nr; have outside : [seq b && running s | b <- inside s] = nseq (size (state s)) false.
  by rewrite (negbTE nr) -E; elim: (inside s) => //= b t ->; rewrite andbF.
have same : iterate read write w (nseq (size (state s)) false) (state s) = state s.
  by rewrite iterate_outcomes ?size_nseq // outcomes_outside map_id.
split; last by apply: sized_advance; apply/eqP.
  rewrite /result /= outside same; congr pair.
  rewrite -[mask _ _ _ _]/(layer_mask (model_gates read w) _ _) mask_outside.
  by rewrite (_ : has _ _ = false) ?addn0 //; elim: (size _).
rewrite /Circuit.running /= outside same; move: nr; rewrite /Circuit.running !negb_and -!leqNgt.
by case/orP=> [->//|l0]; apply/orP; right; rewrite leqn0 in l0; rewrite (eqP l0).
Qed.

Lemma alone_idle n s : ~~ running s -> alone n s = s.
Proof. by case: n => //= n /negbTE ->. Qed.

Lemma run_batch_alone n (batch : seq (sequence cell)) : all sized batch ->
  map result (run_batch read write w n batch) = [seq result (alone n s) | s <- batch].
Proof.
elim: n batch => [|n IH] batch sz //=; case: ifP => [_|/negbT none].
  rewrite IH; last by rewrite all_map; apply: sub_all sz => s /sized_advance.
  rewrite -map_comp {IH}; elim: batch sz => //= s batch IH /andP[ss /IH ->]; congr cons.
  by case: ifP => // /negbT nr; have [r nr' _] := advance_idle ss nr; rewrite alone_idle.
by elim: batch none {IH sz} => //= s batch IH; rewrite negb_or => /andP[/negbTE -> /IH ->].
Qed.

Theorem run_is_alone (batch : seq (seq bool * seq cell)) :
  all (fun p => size p.1 == size p.2) batch ->
  exists fuel, all (fun p => limit read p.2 <= fuel) batch /\
  run read write w batch = [seq result (alone fuel (begin read p.1 p.2)) | p <- batch].
Proof.
move=> sz; exists (foldr maxn 0 [seq left s | s <- [seq begin read p.1 p.2 | p <- batch]]); split.
  have le (t : seq nat) : all (fun i => i <= foldr maxn 0 t) t.
    elim: t => //= i t IH; rewrite leq_maxl; apply: sub_all IH => j /leq_trans; apply.
    exact: leq_maxr.
  rewrite -map_comp; move: (le [seq limit read p.2 | p <- batch]); rewrite all_map.
  exact: sub_all.
by rewrite /run [LHS]run_batch_alone ?all_map // -map_comp.
Qed.
End Batch.
