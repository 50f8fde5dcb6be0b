(* Spans one after the other, as `try_values` of speculate.py lays them out: clusters that are
   numbered 1, 2, 3, ... with nothing between them. Ranks and attention over the whole list are
   those of each span by itself. *)
From mathcomp Require Import all_ssreflect.
From Coq Require Import ZArith Lia.
From Exactformer Require Import Circuit Clusters Ranks.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

(* ---- ranks, position by position, for any numbers ---- *)

Fixpoint ranks_by_number (previous : nat) (base count : Z) (l : seq (nat * Z)) : seq Z :=
  if l is (id, g) :: l then
    let base' := if previous < id then count else base in
    (count + g - base')%Z :: ranks_by_number id base' (count + g) l
  else [::].

Lemma ranks_are_by_number (l : seq (nat * Z)) :
  ranks (unzip2 l) (unzip1 l) = ranks_by_number 0 0 0 l.
Proof.
rewrite /ranks /cumsum; set before := [seq (p.1 - p.2)%Z | p <- _].
suff H prev m pre (base cnt : Z) i : m <= i -> size pre = i ->
    before = pre ++ [seq (p.1 - p.2)%Z | p <- zip (scanl Z.add cnt (unzip2 l)) (unzip2 l)] ->
    (l <> [::] -> nth 0%Z before m = base) ->
    [seq (p.1 - nth 0%Z before p.2)%Z | p <- zip (scanl Z.add cnt (unzip2 l))
       (scanl maxn m [seq p.1 * p.2
         | p <- zip [seq (p.2 < p.1 : nat) | p <- zip (unzip1 l) (belast prev (unzip1 l))]
                    (iota i (size (unzip1 l)))])]
    = ranks_by_number prev base cnt l.
  apply: (H 0 0 [::] 0%Z 0%Z 0) => //.
  by rewrite /before; case: (l) => // -[b x] l' _ /=; lia.
move: before => before.
elim: l prev m pre base cnt i => //= -[id g] l IH prev m pre base cnt i mi sp Ee hb /=.
have e_i : nth 0%Z before i = cnt by rewrite Ee nth_cat -sp ltnn subnn /=; lia.
have -> : maxn m ((prev < id) * i) = if prev < id then i else m.
  by case: (prev < id); rewrite ?mul1n ?mul0n ?maxn0 //; apply/maxn_idPr.
congr cons.
  congr (_ - _)%Z; case: ifP => _ //; exact: hb.
apply: (IH _ _ (rcons pre (cnt + g - g)%Z)).
- by case: ifP => _; rewrite ?leqnSn // (leq_trans mi).
- by rewrite size_rcons sp.
- by rewrite cat_rcons Ee.
by move=> _; case: ifP => _ //; apply: hb.
Qed.

Section Touching.
Variables (cell : eqType) (rank_gate : cell -> Z).
Implicit Types (C : seq cell) (Cs : seq (seq cell)).

(* the numbers of clusters c + 1, c + 2, ... that touch *)
Fixpoint touching (c : nat) Cs : seq nat :=
  if Cs is C :: Cs then nseq (size C) c.+1 ++ touching c.+1 Cs else [::].

Lemma size_touching c Cs : size (touching c Cs) = size (flatten Cs).
Proof. by elim: Cs c => //= C Cs IH c; rewrite !size_cat size_nseq IH. Qed.

Lemma touching_above c Cs : all (fun i => c < i) (touching c Cs).
Proof.
elim: Cs c => //= C Cs IH c; rewrite all_cat all_nseq ltnSn orbT /=.
by apply: sub_all (IH c.+1) => i /ltnW.
Qed.

(* ranks begin anew with each cluster *)
Lemma ranks_touching Cs : all (fun C => C != [::]) Cs ->
  ranks (map rank_gate (flatten Cs)) (touching 0 Cs)
  = flatten [seq cumsum (map rank_gate C) | C <- Cs].
Proof.
move=> full; have sz : size (touching 0 Cs) = size (map rank_gate (flatten Cs)).
  by rewrite size_touching size_map.
rewrite -{1}(unzip2_zip (s := touching 0 Cs) (t := map rank_gate (flatten Cs))) ?sz //.
rewrite -{2}(unzip1_zip (s := touching 0 Cs) (t := map rank_gate (flatten Cs))) ?sz //.
rewrite ranks_are_by_number {sz}.
suff H c prev base cnt : prev <= c ->
    ranks_by_number prev base cnt (zip (touching c Cs) (map rank_gate (flatten Cs)))
    = flatten [seq cumsum (map rank_gate C) | C <- Cs] by apply: H.
have same id b n C l l' : ranks_by_number id b n
    (zip (nseq (size C) id ++ l) (map rank_gate C ++ l'))
    = [seq (z - b)%Z | z <- scanl Z.add n (map rank_gate C)]
      ++ ranks_by_number id b (foldl Z.add n (map rank_gate C)) (zip l l').
  by elim: C n => //= x C IH n; rewrite ltnn IH.
elim: Cs c prev base cnt full => //= -[|x C] Cs IH c prev base cnt //= full pc.
rewrite map_cat ltnS pc same IH // /cumsum /=; congr cons; first lia.
congr cat; elim: C (rank_gate x) {IH} => //= y C IH z.
by have := IH (z + rank_gate y)%Z; rewrite Z.add_assoc => <-; congr cons; lia.
Qed.

(* what each position sees of its cluster is its own span, ranked by itself *)
Theorem touching_clusters B (local : cell -> seq (cell * Z) -> B) Cs :
  all (fun C => C != [::]) Cs ->
  let X := flatten Cs in let ids := touching 0 Cs in let R := ranks (map rank_gate X) ids in
  [seq local p.1 (cluster X R ids p.2) | p <- zip X ids]
  = flatten [seq reduced rank_gate local C | C <- Cs].
Proof.
move=> full X ids R; rewrite {}/R ranks_touching // {}/X {}/ids.
pose XR Cs (ids : seq nat) :=
  zip (zip (flatten Cs) (flatten [seq cumsum (map rank_gate C) | C <- Cs])) ids.
have split_ C Cs' c : XR (C :: Cs') (touching c (C :: Cs'))
    = zip (ranked rank_gate C) (nseq (size C) c.+1) ++ XR Cs' (touching c.+1 Cs').
  by rewrite /XR /= !zip_cat // ?size_zip /cumsum ?size_scanl ?size_map ?minnn ?size_nseq.
have mine C c : [seq q.1 | q <- zip (ranked rank_gate C) (nseq (size C) c) & q.2 == c]
    = ranked rank_gate C.
  have : size (ranked rank_gate C) = size C by rewrite size_zip size_scanl size_map minnn.
  by move: (ranked _ _) => r; elim: r C => [|y r IH] [|x C] //= [/IH E]; rewrite eqxx /= E.
have others r n c i : i != c ->
    [seq q.1 | q <- zip r (nseq n c) & q.2 == i] = [::] :> seq (cell * Z).
  by rewrite eq_sym => /negbTE ne; elim: r n => [|y r IH] [|n] //=; rewrite ne.
have above Cs' c i : i <= c -> [seq q.1 | q <- XR Cs' (touching c Cs') & q.2 == i] = [::].
  elim: Cs' c => [|C Cs' IH] c le; first by [].
  by rewrite split_ filter_cat map_cat others ?IH ?(leqW le) // neq_ltn ltnS le.
rewrite {1}/cluster -/(XR Cs (touching 0 Cs)).
suff H pre c : (forall i, c < i -> [seq q.1 | q <- pre & q.2 == i] = [::]) ->
    [seq local p.1 [seq q.1 | q <- pre ++ XR Cs (touching c Cs) & q.2 == p.2]
      | p <- zip (flatten Cs) (touching c Cs)] = flatten [seq reduced rank_gate local C | C <- Cs].
  by apply: (H [::] 0).
elim: Cs pre c {full} => // C Cs IH pre c none.
move E: (pre ++ XR (C :: Cs) _) => W; rewrite split_ catA in E.
have -> : zip (flatten (C :: Cs)) (touching c (C :: Cs))
    = zip C (nseq (size C) c.+1) ++ zip (flatten Cs) (touching c.+1 Cs).
  by rewrite /= zip_cat ?size_nseq.
rewrite map_cat [RHS]/=; congr cat.
  have own : [seq q.1 | q <- W & q.2 == c.+1] = ranked rank_gate C.
    by rewrite -E !filter_cat !map_cat none // mine above // cats0.
  rewrite reducedE; move: (ranked _ C) own => r own.
  by elim: C {E} => //= x C ->; rewrite own.
rewrite -E; apply: IH => i ci.
by rewrite filter_cat map_cat none ?(ltnW ci) // others // gtn_eqF.
Qed.
End Touching.
