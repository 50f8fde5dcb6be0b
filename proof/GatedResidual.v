(* Lemma 5 of the paper, gated residual connection: an iteration keeps every position outside the
   mask, and replaces each run of masked positions by what its own cells alone determine.

   From here on a position is a cell of any kind, and attention, feedforward and threshold are one
   local map: what a cell becomes, given the cells of its cluster with their ranks. *)
From mathcomp Require Import all_ssreflect.
From Coq Require Import ZArith Lia.
From Exactformer Require Import Circuit Clusters Ranks.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Record gates (cell : eqType) := Gates { gate : cell -> Z; rank_gate : cell -> Z }.

Section Outcomes.
Variables (cell : eqType) (G : gates cell).
Implicit Types (X : seq cell) (l : seq (bool * cell)).

Definition layer_mask (inside : seq bool) X : seq bool :=
  reduction_mask (depth_counts (map (gate G) X)) inside.

(* What comes of each position: of type B, so that the same lemmas serve for the next state and for
   the list of what each position sees. *)
Definition outcomes B (keep : cell -> B) (local : cell -> seq (cell * Z) -> B) inside X : seq B :=
  let P := layer_mask inside X in
  let ids := clusters P in
  let R := ranks (map (rank_gate G) X) ids in
  [seq if p.1.2 then local p.1.1 (cluster X R ids p.2) else keep p.1.1 | p <- zip (zip X P) ids].

Lemma size_depth_counts s : size (depth_counts s) = size s.
Proof. by rewrite size_map size_zip size_scanl minnn. Qed.

Lemma size_layer_mask inside X : size inside = size X -> size (layer_mask inside X) = size X.
Proof.
move=> E; rewrite /layer_mask /reduction_mask size_map size_zip size_map size_zip.
by rewrite size_depth_counts size_map E !minnn.
Qed.

Theorem outcomes_by_runs B keep (local : cell -> seq (cell * Z) -> B) inside X :
  size inside = size X ->
  outcomes keep local inside X
  = runs (rank_gate G) keep local [::] (zip (layer_mask inside X) X).
Proof.
move=> sz; rewrite /outcomes; set P := layer_mask _ _.
have sP : size P = size X by apply: size_layer_mask.
set l := zip P X.
have <- : unzip1 l = P by rewrite unzip1_zip ?sP.
have <- : unzip2 l = X by rewrite unzip2_zip ?sP.
move: {P sP sz} l => l; rewrite -runs_ranked -by_number_is_by_run ranks_position_by_position.
set R := ranks_from _ _ _ _ _; have sR : size R = size l by rewrite size_ranks_from.
rewrite /by_number.
have sz2 : size (unzip1 l) = size (zip (unzip2 l) R) by rewrite size_zip !size_map sR minnn.
rewrite unzip1_zip ?sz2 // unzip2_zip ?sz2 // {sz2}.
set ids := clusters _; have si : size ids = size l by rewrite size_clusters size_map.
rewrite /cluster; move: (zip (zip _ R) ids) => W.
elim: l R ids sR si => [|[b x] l IH] [|r R] [|i ids] //= [sR] [si].
by congr (_ :: _); apply: IH.
Qed.

(* a sequence of which nothing is inside stays as it is: it has halted, in a batch that goes on *)
Lemma mask_outside X : layer_mask (nseq (size X) false) X = nseq (size X) false.
Proof.
rewrite /layer_mask /reduction_mask; move: (foldr _ _ _) => top.
have : size (depth_counts (map (gate G) X)) = size X by rewrite size_depth_counts size_map.
elim: (depth_counts _) (size X) => [|a A IH] [|n] //= [/IH ->].
by rewrite andbF.
Qed.

Lemma outcomes_outside B (keep : cell -> B) local X :
  outcomes keep local (nseq (size X) false) X = map keep X.
Proof.
rewrite outcomes_by_runs ?size_nseq // mask_outside.
by elim: X => /= [|x X ->]; rewrite reduced_nil.
Qed.
End Outcomes.

(* ---- the model's iteration is of this kind ---- *)

Section Iterate.
Variables (cell : eqType) (read : cell -> row) (write : row -> cell) (w : weights).

Definition tokens (C : seq (cell * Z)) : seq (row * Z) := [seq (read y.1, y.2) | y <- C].

Definition model_gates : gates cell := Gates (gate_of read w) (rank_gate_of read w).
Definition model_local (x : cell) (C : seq (cell * Z)) : cell :=
  write (threshold (f w (received w (read x) (tokens C)))).

Lemma cluster_tokens (X : seq cell) R ids i :
  cluster (map read X) R ids i = tokens (cluster X R ids i).
Proof.
rewrite /cluster /tokens; elim: X R ids => [|x X IH] [|r R] [|j ids] //=.
by case: ifP => //= _; rewrite IH.
Qed.

Lemma iterate_outcomes inside X : size inside = size X ->
  iterate read write w inside X = outcomes model_gates id model_local inside X.
Proof.
move=> sz; rewrite /iterate /outcomes -/(layer_mask model_gates inside X).
rewrite [mask _ _ _ _](_ : _ = layer_mask model_gates inside X) //.
rewrite [rank_gate _]/=; set P := layer_mask _ _ _; set ids := clusters P; set R := ranks _ _.
have sP : size P = size X by apply: size_layer_mask.
have pos : all (fun q => q.1 ==> (0 < q.2)) (zip P ids).
  by rewrite /ids clusters_numbers; apply: numbers_pos.
have si : size ids = size P by rewrite /ids size_clusters.
have E : typed_attention w (map read X) ids R
  = [seq if p.2 == 0 then nothing w else received w (read p.1) (tokens (cluster X R ids p.2))
    | p <- zip X ids].
  rewrite /typed_attention; under eq_map do rewrite cluster_tokens.
  move: (cluster X R ids) => C; elim: (X) (ids) => [|x X' IH] [|i ids'] //=.
  by rewrite IH.
rewrite E; move: {E} (cluster X R ids) => C.
rewrite /gated_residual -map_comp.
elim: X P ids sP si pos {sz R} => [|x X IH] [|b P] [|i ids] //= [sP] [si] /andP[h pos].
rewrite IH //; congr cons; case: b h => //= h.
by rewrite (negbTE (lt0n_neq0 h)).
Qed.
End Iterate.
