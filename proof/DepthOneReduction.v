(* Theorem 1 of the paper, depth-1 circuit reduction, on sequences with matching parentheses: one
   iteration replaces each deepest span by its reduction, and keeps all else. *)
From mathcomp Require Import all_ssreflect.
From Coq Require Import ZArith Lia.
From Exactformer Require Import Circuit Clusters Ranks Forests ReductionMask GatedResidual.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section Reduction.
Variables (cell : eqType) (opening closing : cell) (G : gates cell).
Hypotheses (gate_opening : gate G opening = 1%Z) (gate_closing : gate G closing = (-1)%Z).
Notation flat := (flat opening closing).
Notation apart := (apart (gate G)).
Implicit Types g : forest cell.

Section Outcomes.
Variables (B : Type) (keep : cell -> B) (local : cell -> seq (cell * Z) -> B).
Notation runs := (runs (rank_gate G) keep local).
Notation reduced := (reduced (rank_gate G) local).

(* what comes of a forest with j levels or fewer: spans at level j are reduced, all else is kept *)
Fixpoint outcome (j : nat) g : seq B :=
  match g with
  | Nil => [::]
  | Cell x g => keep x :: outcome j g
  | Span s g =>
      if j <= 1 then reduced (opening :: flat s ++ [:: closing]) ++ outcome j g
      else keep opening :: outcome j.-1 s ++ keep closing :: outcome j g
  end.

(* run by run, with k spans around g and d levels in all *)
Lemma runs_forest d k g t : k < d -> k + levels g <= d -> apart g -> ends t ->
  runs [::] (zip [seq i == d | i <- nesting k g] (flat g) ++ t) = outcome (d - k) g ++ runs [::] t.
Proof.
elim: g k t => //= [x g IH|s IHs g IH] k t kd dg ag et.
  by rewrite (ltn_eqF kd) /= reduced_nil IH //; case/andP: ag.
case/and3P: ag => as_ ng ag.
have ds : k.+1 + levels s <= d by apply: leq_trans dg; rewrite addSnnS leq_add2l leq_maxl.
have {}dg : k + levels g <= d by apply: leq_trans dg; rewrite leq_add2l leq_maxr.
rewrite map_cat /= zip_cat ?size_map ?(size_nesting opening closing) //=.
case: (ltnP k.+1 d) => kd1.
  rewrite (ltn_eqF kd1) /= -catA /= reduced_nil IHs //= reduced_nil IH // ifF; last first.
    by apply/negbTE; rewrite -ltnNge ltn_subRL addn1.
  by rewrite /= -catA /= subnS.
have E : d = k.+1 by apply/eqP; rewrite eqn_leq kd1 kd.
have s0 : levels s = 0.
  by move: ds; rewrite E -[X in _ <= X]addn0 leq_add2l leqn0 => /eqP.
rewrite E eqxx subSnn /= (nesting_flat opening closing _ s0).
have -> : zip [seq i == k.+1 | i <- nseq (size (flat s)) k.+1] (flat s) = map (pair true) (flat s).
  by elim: (flat s) => //= x l ->; rewrite eqxx.
rewrite -E -catA /=; set u := zip _ (flat g); have eu : ends (u ++ t).
  rewrite /u; case: (g) ng => //= x g' _; by rewrite (ltn_eqF kd).
have := @runs_run _ (rank_gate G) _ keep local [::] (opening :: flat s ++ [:: closing]) (u ++ t) eu.
rewrite /= map_cat /= -catA /= => ->.
by rewrite /u IH // -catA E subSnn.
Qed.

Theorem outcomes_forest g inside :
  apart g -> 0 < levels g -> size inside = size (flat g) ->
  all (fun p => (p.1 == levels g) ==> p.2) (zip (nesting 0 g) inside) ->
  outcomes G keep local inside (flat g) = outcome (levels g) g.
Proof.
move=> ag d0 sz hin; rewrite outcomes_by_runs // /layer_mask mask_is_deepest_spans //.
have := @runs_forest (levels g) 0 g [::] d0 (leqnn _) ag isT.
by rewrite cats0 subn0 => ->; rewrite /= reduced_nil cats0.
Qed.
End Outcomes.

(* ---- the next state is again a forest ---- *)

Variable local : cell -> seq (cell * Z) -> cell.
Notation reduced := (reduced (rank_gate G) local).

Fixpoint collapse (j : nat) g : forest cell :=
  match g with
  | Nil => Nil
  | Cell x g => Cell x (collapse j g)
  | Span s g => if j <= 1 then cells (reduced (opening :: flat s ++ [:: closing])) (collapse j g)
                else Span (collapse j.-1 s) (collapse j g)
  end.

Lemma outcome_collapse j g : outcome id local j g = flat (collapse j g).
Proof.
elim: g j => //= [x g IH j|s IHs g IH j]; first by rewrite IH.
case: ifP => _ /=; first by rewrite flat_cells IH.
by rewrite IHs IH.
Qed.

Lemma collapse_join j g h : collapse j (join g h) = join (collapse j g) (collapse j h).
Proof. by elim: g => //= [x g ->//|s _ g ->]; case: ifP => //= _; rewrite join_cells. Qed.
Lemma collapse_joined j gs h : collapse j (joined gs h)
  = joined (map (collapse j) gs) (collapse j h).
Proof. by elim: gs => //= g gs IH; rewrite collapse_join IH. Qed.
Lemma collapse_cells j s g : collapse j (cells s g) = cells s (collapse j g).
Proof. by elim: s => //= x s ->. Qed.

(* ---- when joined forests keep their spans apart ---- *)

Fixpoint ends_in_span g : bool :=
  match g with
  | Nil => false
  | Cell _ g => ends_in_span g
  | Span _ g => if g is Nil then true else ends_in_span g
  end.

Lemma apart_join g h : apart g -> apart h -> ~~ ends_in_span g || ~~ is_span h -> apart (join g h).
Proof.
elim: g => //= [x g IH /andP[-> ag] ah e|s _ g IH /and3P[-> ng ag] ah e /=]; first exact: IH.
rewrite IH //; last by case: (g) e ng.
by rewrite andbT; case: (g) ng e.
Qed.
Lemma apart_cells s g : all (fun x => (gate G x =? 0)%Z) s -> apart g -> apart (cells s g).
Proof. by elim: s => //= x s IH /andP[-> h] /IH ->. Qed.
Lemma ends_in_span_cells s g : ends_in_span (cells s g) = ends_in_span g.
Proof. by elim: s. Qed.
End Reduction.
