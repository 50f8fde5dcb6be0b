(* A token's rank is the count of gated tokens of its cluster up to itself: `ranks`, which works on
   the whole sequence with running sums and maxima, restarts the count at each cluster. *)
From mathcomp Require Import all_ssreflect.
From Coq Require Import ZArith Lia.
From Exactformer Require Import Circuit Clusters.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section Ranks.
Variables (cell : eqType) (rank_gate : cell -> Z).
Implicit Types (l : seq (bool * cell)) (C : seq cell).

(* the cells of one cluster with their ranks *)
Definition ranked C : seq (cell * Z) := zip C (cumsum (map rank_gate C)).

(* Ranks, position by position: `count` is the running sum, `base` what it was where the cluster
   began. *)
Fixpoint ranks_from (previous : bool) (base count : Z) l : seq Z :=
  if l is (b, x) :: l then
    let base' := if b && ~~ previous then count else base in
    let count' := (count + rank_gate x)%Z in (count' - base')%Z :: ranks_from b base' count' l
  else [::].

Lemma size_ranks_from p u v l : size (ranks_from p u v l) = size l.
Proof. by elim: l p u v => //= -[b x] l IH p u v /=; rewrite IH. Qed.

Lemma ranks_position_by_position l :
  ranks (map rank_gate (unzip2 l)) (clusters (unzip1 l)) = ranks_from false 0 0 l.
Proof.
rewrite clusters_numbers /ranks /cumsum.
set before := [seq (p.1 - p.2)%Z | p <- _].
suff H (prev : bool) c m pre (base cnt : Z) i : (prev -> 0 < c) -> m <= i -> size pre = i ->
    before = pre ++ [seq (p.1 - p.2)%Z
      | p <- zip (scanl Z.add cnt (map rank_gate (unzip2 l))) (map rank_gate (unzip2 l))] ->
    (l <> [::] -> nth 0%Z before m = base) ->
    [seq (p.1 - nth 0%Z before p.2)%Z | p <- zip (scanl Z.add cnt (map rank_gate (unzip2 l)))
       (scanl maxn m [seq p.1 * p.2
         | p <- zip [seq (p.2 < p.1 : nat) | p <- zip (numbers prev c (unzip1 l))
                       (belast (if prev then c else 0) (numbers prev c (unzip1 l)))]
                    (iota i (size (numbers prev c (unzip1 l))))])]
    = ranks_from prev base cnt l.
  apply: (H false 0 0 [::] 0%Z 0%Z 0) => //.
  rewrite /before; case: (l) => // -[b x] l' _ /=; lia.
move: before => before.
elim: l prev c m pre base cnt i => //= -[b x] l IH prev c m pre base cnt i hp mi sp Ee hb /=.
have e_i : nth 0%Z before i = cnt by rewrite Ee nth_cat -sp ltnn subnn /=; lia.
have -> : ((if prev then c else 0) < (if b then c + (b && ~~ prev) else 0)) = b && ~~ prev.
  by case: (b); case: (prev) hp => //= h; rewrite ?addn0 ?addn1 ?ltnn.
have -> : maxn m ((b && ~~ prev) * i) = if b && ~~ prev then i else m.
  by case: (b && _); rewrite ?mul1n ?mul0n ?maxn0 //; apply/maxn_idPr.
congr cons.
  congr (_ - _)%Z; case: ifP => _ //; exact: hb.
apply: (IH b _ _ (rcons pre (cnt + rank_gate x - rank_gate x)%Z)).
- by move=> ->; case: (prev) hp => h; rewrite ?addn1 ?addn0 // h.
- by case: ifP => _; rewrite ?leqnSn // (leq_trans mi).
- by rewrite size_rcons sp.
- by rewrite cat_rcons Ee.
by move=> _; case: ifP => _ //; apply: hb.
Qed.

Definition rank_sum C : Z := foldl Z.add 0%Z (map rank_gate C).

Lemma rank_sum_rcons C x : rank_sum (rcons C x) = (rank_sum C + rank_gate x)%Z.
Proof. by rewrite /rank_sum map_rcons -cats1 foldl_cat. Qed.

Lemma ranked_rcons C x : ranked (rcons C x) = rcons (ranked C) (x, (rank_sum C + rank_gate x)%Z).
Proof.
rewrite /ranked /cumsum map_rcons -[rcons (map _ _) _]cats1 scanl_cat cats1 zip_rcons //.
by rewrite size_scanl size_map.
Qed.

(* Run by run: with ranks taken over the whole sequence, or over each cluster by itself. *)
Variables (B : Type) (keep : cell -> B) (local : cell -> seq (cell * Z) -> B).

Definition reduced C : seq B := locked [seq local x (ranked C) | x <- C].

Lemma reducedE C : reduced C = [seq local x (ranked C) | x <- C].
Proof. by rewrite /reduced -lock. Qed.
Lemma reduced_nil : reduced [::] = [::].
Proof. exact: reducedE. Qed.

Fixpoint runs C l : seq B :=
  match l with
  | [::] => reduced C
  | (true, x) :: l => runs (rcons C x) l
  | (false, x) :: l => reduced C ++ keep x :: runs [::] l
  end.

Let keep_ranked (x : cell * Z) := keep x.1.
Let local_ranked (x : cell * Z) (C : seq (cell * Z)) := local x.1 C.

Lemma reduce_ranked C : reduce local_ranked (ranked C) = reduced C.
Proof.
rewrite reducedE /reduce /local_ranked (map_comp (fun x => local x (ranked C)) fst).
by rewrite -/(unzip1 _) unzip1_zip // size_scanl size_map.
Qed.

Lemma runs_ranked l :
  by_run keep_ranked local_ranked [::] (zip (unzip1 l) (zip (unzip2 l) (ranks_from false 0 0 l)))
  = runs [::] l.
Proof.
suff H C base cnt : (C != [::] -> cnt = (base + rank_sum C)%Z) ->
  by_run keep_ranked local_ranked (ranked C)
    (zip (unzip1 l) (zip (unzip2 l) (ranks_from (C != [::]) base cnt l))) = runs C l.
  exact: (H [::] 0%Z 0%Z).
elim: l C base cnt => [|[b x] l IH] C base cnt h /=; first exact: reduce_ranked.
case: b => /=; last first.
  by congr (_ ++ _ :: _); [exact: reduce_ranked|apply: (IH [::])].
set base' := if _ then _ else _.
have E : cnt = (base' + rank_sum C)%Z.
  by rewrite /base'; case: (C) h => [_|y s /(_ isT)] /=; rewrite ?/rank_sum /= ?Z.add_0_r.
have := IH (rcons C x) base' (cnt + rank_gate x)%Z.
have -> : (rcons C x != [::]) = true by case: (C).
rewrite ranked_rcons rank_sum_rcons => <- //; last by move=> _; rewrite E; lia.
by congr (by_run _ _ (rcons _ (_, _))); rewrite E; lia.
Qed.

(* a run ends at an unmasked position or at the end *)
Definition ends l := if l is (true, _) :: _ then false else true.

Lemma runs_run C C' l : ends l ->
  runs C (map (pair true) C' ++ l) = reduced (C ++ C') ++ runs [::] l.
Proof.
elim: C' C => [|x C' IH] C h /=; last by rewrite IH // cat_rcons.
by rewrite cats0; case: l h => [|[[] x] l] //= _; rewrite reduced_nil ?cats0.
Qed.
End Ranks.
