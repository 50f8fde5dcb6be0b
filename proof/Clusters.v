(* Lemma 2 of the paper, parallel subexpression decomposition: the positions that share a cluster
   number are exactly a maximal run of the mask.

   The statement is `by_number_is_by_run`: replacing each masked position by some function of itself
   and of all positions with its number (`by_number`) is the same as cutting the sequence at its
   unmasked positions and treating each run by itself (`by_run`). *)
From mathcomp Require Import all_ssreflect.
From Exactformer Require Import Circuit.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

(* ---- the numbers, position by position ---- *)

(* `previous` is whether the position before is masked, `c` how many clusters have begun. *)
Fixpoint numbers (previous : bool) (c : nat) (P : seq bool) : seq nat :=
  if P is b :: P then
    let c' := c + (b && ~~ previous) in (if b then c' else 0) :: numbers b c' P
  else [::].

(* how many clusters begin in P *)
Fixpoint begun (previous : bool) (P : seq bool) : nat :=
  if P is b :: P then (b && ~~ previous) + begun b P else 0.

Lemma clusters_numbers P : clusters P = numbers false 0 P.
Proof.
rewrite /clusters; move: false 0; elim: P => [//|b P IH] p c /=.
by rewrite -IH; case: b; rewrite ?mul1n ?mul0n.
Qed.

Lemma numbers_cat p c A B :
  numbers p c (A ++ B) = numbers p c A ++ numbers (last p A) (c + begun p A) B.
Proof. by elim: A p c => [|b A IH] p c /=; rewrite ?addn0 // IH addnA. Qed.

Lemma size_numbers p c P : size (numbers p c P) = size P.
Proof. by elim: P p c => //= b P IH p c; rewrite IH. Qed.

Lemma size_clusters P : size (clusters P) = size P.
Proof. by rewrite clusters_numbers size_numbers. Qed.

(* no number exceeds how many clusters there are *)
Lemma numbers_le p c P : all (fun i => i <= c + begun p P) (numbers p c P).
Proof.
elim: P p c => //= b P IH p c; rewrite addnA IH andbT.
by case: b => //=; rewrite leq_addr.
Qed.

(* a masked position has a number, counted from 1 *)
Lemma numbers_pos (p : bool) c P :
  (p -> 0 < c) -> all (fun q => q.1 ==> (0 < q.2)) (zip P (numbers p c P)).
Proof.
elim: P p c => //= b P IH p c h; apply/andP; split.
  by case: b => //=; case: p h => [h|_]; rewrite ?addn1 ?addn0 // h.
by apply: IH => ->; case: p h => [h|_]; rewrite ?addn1 ?addn0 // h.
Qed.

(* after K more clusters, all numbers are K more *)
Definition shift K i := if i == 0 then 0 else K + i.

Lemma numbers_shift K (p : bool) c P :
  (p -> 0 < c) -> numbers p (K + c) P = map (shift K) (numbers p c P).
Proof.
elim: P p c => //= b P IH p c h; rewrite -addnA IH; last first.
  by move=> ->; case: p h => [h|_]; rewrite ?addn1 ?addn0 // h.
congr cons; case: b => //=; rewrite /shift.
by case: p h => [h|_]; rewrite ?addn0 ?addn1 ?addn_eq0 //=; case: c h => // /(_ isT).
Qed.

(* within one run all numbers are the same *)
Lemma numbers_run (p : bool) c n :
  (p -> 0 < c) -> numbers p c (nseq n true) = nseq n (c + ~~ p).
Proof.
elim: n p c => //= n IH p c h; rewrite IH; last by case: p h => [h|]; rewrite ?addn1 ?addn0.
by rewrite /= addn0.
Qed.

(* ---- by number, and by run ---- *)

Section Runs.
Variables (A : eqType) (B : Type) (keep : A -> B) (local : A -> seq A -> B).
Implicit Types (l : seq (bool * A)) (C : seq A).

Definition reduce C : seq B := [seq local x C | x <- C].

Fixpoint by_run C l : seq B :=
  match l with
  | [::] => reduce C
  | (true, x) :: l => by_run (rcons C x) l
  | (false, x) :: l => reduce C ++ keep x :: by_run [::] l
  end.

(* each position of l, numbered by ids, where `all_` are all positions with their numbers *)
Definition by_given_number l (ids : seq nat) (all_ : seq (A * nat)) : seq B :=
  [seq if p.1.1 then local p.1.2 [seq q.1 | q <- all_ & q.2 == p.2] else keep p.1.2
  | p <- zip l ids].

Definition by_number l : seq B :=
  let ids := clusters (unzip1 l) in by_given_number l ids (zip (unzip2 l) ids).

Lemma by_given_number_cat l1 l2 s1 s2 W : size l1 = size s1 ->
  by_given_number (l1 ++ l2) (s1 ++ s2) W = by_given_number l1 s1 W ++ by_given_number l2 s2 W.
Proof. by move=> E; rewrite /by_given_number zip_cat // map_cat. Qed.

(* a sequence that is masked throughout is one cluster *)
Lemma by_number_run C : by_number (map (pair true) C) = reduce C.
Proof.
rewrite /by_number clusters_numbers.
have -> : unzip1 (map (pair true) C) = nseq (size C) true by elim: C => //= x C ->.
have -> : unzip2 (map (pair true) C) = C by elim: C => //= x C ->.
rewrite numbers_run //= add0n /by_given_number /reduce.
set W := zip C _; have HW : [seq q.1 | q <- W & q.2 == 1] = C.
  by rewrite /W; elim: C {W} => //= x C ->.
suff H s : [seq if p.1.1 then local p.1.2 [seq q.1 | q <- W & q.2 == p.2] else keep p.1.2
  | p <- zip [seq (true, i) | i <- s] (nseq (size s) 1)] = [seq local x C | x <- s] by apply: H.
by elim: s => //= x s ->; rewrite HW.
Qed.

Let all_zip_unzip1 l (s : seq nat) (a : pred (bool * nat)) :
  all a (zip (unzip1 l) s) = all (fun p => a (p.1.1, p.2)) (zip l s).
Proof. by elim: l s => [|[b x] l IH] [|i s] //=; rewrite IH. Qed.

Let zip_map_r (T1 T2 T3 : Type) (g : T2 -> T3) (s : seq T1) t :
  zip s (map g t) = [seq (p.1, g p.2) | p <- zip s t].
Proof. by elim: s t => [|x s IH] [|y t] //=; rewrite IH. Qed.

Let filter_none (T : Type) (s : seq T) (t : seq nat) a : size s = size t -> all (predC a) t ->
  [seq q <- zip s t | a q.2] = [::].
Proof. by elim: s t => [|x s IH] [|y t] //= [E] /andP[/negbTE -> h]; rewrite IH. Qed.

(* an unmasked position separates what is before it from what is after it *)
Lemma by_number_cut l x l' : by_number (l ++ (false, x) :: l')
  = by_number l ++ keep x :: by_number l'.
Proof.
rewrite /by_number !clusters_numbers /unzip1 /unzip2 !map_cat numbers_cat /= !addn0 add0n.
rewrite -/(unzip1 l) -/(unzip1 l') -/(unzip2 l) -/(unzip2 l').
set K := begun false _; set ia := numbers false 0 (unzip1 l).
rewrite -(addn0 K) numbers_shift //; set ib := numbers false 0 (unzip1 l').
have sA : size l = size ia by rewrite size_numbers size_map.
have sB : size l' = size ib by rewrite size_numbers size_map.
have sA2 : size (unzip2 l) = size ia by rewrite size_map.
have sB2 : size (unzip2 l') = size ib by rewrite size_map.
rewrite by_given_number_cat // zip_cat //=.
set WA := zip (unzip2 l) ia; rewrite zip_map_r; set WB := zip (unzip2 l') ib.
set W := WA ++ _.
have leA : all (fun i => i <= K) ia by have := numbers_le false 0 (unzip1 l).
have posA : all (fun p => p.1.1 ==> (0 < p.2)) (zip l ia).
  by have := @numbers_pos false 0 (unzip1 l); rewrite all_zip_unzip1; apply.
have posB : all (fun p => p.1.1 ==> (0 < p.2)) (zip l' ib).
  by have := @numbers_pos false 0 (unzip1 l'); rewrite all_zip_unzip1; apply.
congr (_ ++ _).
  apply/eq_in_map => p pin; case Eq: p.1.1 => //; congr (local _ _).
  have := allP posA _ pin; rewrite Eq /= => p0.
  have : p.2 \in ia.
    by move: pin; case: (p) => p1 p2 /(map_f snd) /=; rewrite -/(unzip2 _) unzip2_zip // sA.
  move/(allP leA) => /= pK.
  rewrite /W filter_cat map_cat /= [0 == _]eq_sym (negbTE (lt0n_neq0 p0)) filter_map.
  rewrite -[RHS]cats0; congr (_ ++ _).
  rewrite (eq_filter (a2 := pred0)) ?filter_pred0 // => q /=.
  rewrite /shift; case: ifP => [_|/negbT]; first by rewrite eq_sym (negbTE (lt0n_neq0 p0)).
  rewrite -lt0n => q0; apply/negbTE; rewrite neq_ltn; apply/orP; right.
  by apply: leq_ltn_trans pK _; rewrite -addn1 leq_add2l.
rewrite /by_given_number /=; congr (_ :: _); rewrite zip_map_r -map_comp.
apply/eq_in_map => p pin /=; case Eq: p.1.1 => //; congr (local _ _).
have := allP posB _ pin; rewrite Eq /= => p0.
rewrite /W filter_cat map_cat /= {1 2}/shift (negbTE (lt0n_neq0 p0)).
rewrite (@filter_none _ _ _ (eq_op^~ (K + p.2))) //; last first.
  apply: sub_all leA => i /= iK; rewrite neq_ltn; apply/orP; left.
  by apply: leq_ltn_trans iK _; rewrite -addn1 leq_add2l.
rewrite ifF /=; last by apply/negbTE; rewrite eq_sym -lt0n addn_gt0 p0 orbT.
rewrite filter_map -map_comp; congr map; apply: eq_filter => q /=.
rewrite /shift (negbTE (lt0n_neq0 p0)); case: ifP => [/eqP->|_]; last by rewrite eqn_add2l.
by rewrite ![0 == _]eq_sym addn_eq0 (negbTE (lt0n_neq0 p0)) andbF.
Qed.

Theorem by_number_is_by_run l : by_number l = by_run [::] l.
Proof.
suff H C : by_number (map (pair true) C ++ l) = by_run C l by apply: (H [::]).
elim: l C => [|[[] x] l IH] C /=; first by rewrite cats0 by_number_run.
  by rewrite -IH map_rcons cat_rcons.
by rewrite by_number_cut by_number_run (IH [::]).
Qed.
End Runs.
