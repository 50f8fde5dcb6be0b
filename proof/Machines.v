(* The product of two machines as an invariant: the one that was declared, and the one that weights
   are. Both read the same text at once, so they are in a pair of states. If in each pair of a set
   that no symbol leads out of the weights give what the machine gives, every text of every length
   has the right answer. `find_fault` finds such a set, and looks at each of its pairs. *)
From mathcomp Require Import all_ssreflect.
From Coq Require Import ZArith.
From Exactformer Require Import Circuit MachineLayer RowsOfTexts.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

(* ---- a machine as data ---- *)

(* exactformer/domains/machines.py: next states and answers by state and token; None where a symbol,
   or the end, is not allowed. A machine that answers at the end has a token that marks it. *)
Record machine := Machine {
  begins : nat;
  next_states : seq (seq (option nat));
  answer_ids : seq (seq (option nat));
  mark : option nat
}.

Section Machine.
Variable M : machine.

Definition entry_at (table : seq (seq (option nat))) (r t : nat) : option nat :=
  nth None (nth [::] table r) t.
Definition leads (r t : nat) : option nat := entry_at (next_states M) r t.
Definition answers_with (r t : nat) : option nat := entry_at (answer_ids M) r t.

(* the answer to a text, symbols in the order in which they are read: one for each symbol, ... *)
Fixpoint transduced (r : nat) (text : seq nat) : option (seq nat) :=
  if text is t :: text then
    if (answers_with r t, leads r t) is (Some y, Some r') then
      if transduced r' text is Some ys then Some (y :: ys) else None
    else None
  else Some [::].

(* ... or one at the end, where the mark is *)
Fixpoint answered (r m : nat) (text : seq nat) : option nat :=
  if text is t :: text then
    if leads r t is Some r' then answered r' m text else None
  else answers_with r m.
End Machine.

(* ---- the check ---- *)

(* where something is wrong: at a token, after a text that leads there *)
Inductive fault :=
  | Wrong_answer of seq nat & nat
  | No_next_state of seq nat & nat
  | Uncertain of seq nat & nat  (* right, but within rounding of the threshold *)
  | Not_closed.                 (* the set of pairs is not complete: the search is at fault *)

Section Check.
Variables (M : machine) (D W : nat).
(* what is above the threshold for a token beside a state of the weights; whether it is certain *)
Variables (above : nat -> nat -> seq bool) (certain : nat -> nat -> bool).

(* the answer y and no other, or no answer *)
Definition shows (y : option nat) : seq bool := [seq Some t == y | t <- iota 0 D].
Definition same_bits (x y : seq bool) : bool := all2 eqb x y.
Definition ahead (t q : nat) : option nat := alone (drop D (above t q)).

(* states in which something may still follow that ends a text *)
Variable living : seq bool.
Definition alive (r : nat) : bool := if mark M is Some _ then nth false living r else true.
Definition may_end (r : nat) : bool :=
  if mark M is Some m then answers_with M r m : bool else false.
Definition symbols_at (r : nat) : seq nat :=
  [seq t <- iota 0 D | if leads M r t is Some r' then alive r' else false].
Definition goes_on (r : nat) : bool := may_end r || (0 < size (symbols_at r)).

(* a state of the weights and one of the machine *)
Notation pair := (nat * nat)%type.
Definition same_pair (p p' : pair) : bool := (p.1 == p'.1) && (p.2 == p'.2).
Definition among (p : pair) (pairs : seq pair) : bool := has (same_pair p) pairs.

(* the pair that a symbol leads to *)
Definition follows (p : pair) (t : nat) : option pair :=
  if (ahead t p.1, leads M p.2 t) is (Some q', Some r') then Some (q', r') else None.

(* the weights give the answer y at this token *)
Definition row_fault (text : seq nat) (p : pair) (t : nat) (y : option nat) : option fault :=
  if ~~ same_bits (take D (above t p.1)) (shows y) then Some (Wrong_answer text t)
  else if certain t p.1 then None else Some (Uncertain text t).

(* and lead to a pair of the set, if anything follows there *)
Definition answer_on_the_way (r t : nat) : option nat :=
  if mark M is Some _ then None else answers_with M r t.
Definition symbol_fault (pairs : seq pair) (text : seq nat) (p : pair) (t : nat) : option fault :=
  if row_fault text p t (answer_on_the_way p.2 t) is Some e then Some e
  else if leads M p.2 t is Some r' then
    if ~~ goes_on r' then None
    else if ahead t p.1 is Some q' then
      if (q' < W) && among (q', r') pairs then None else Some Not_closed
    else Some (No_next_state text t)
  else None.

Fixpoint first_fault A (g : A -> option fault) (s : seq A) : option fault :=
  if s is x :: s then if g x is Some e then Some e else first_fault g s else None.

Definition symbols_fault (pairs : seq pair) (text : seq nat) (p : pair) : option fault :=
  first_fault (symbol_fault pairs text p) (symbols_at p.2).

Definition end_fault (text : seq nat) (p : pair) : option fault :=
  if mark M is Some m then
    if answers_with M p.2 m is Some y then row_fault text p m (Some y) else None
  else None.

(* each pair is here with a text that leads to it *)
Definition pairs_fault (found : seq (pair * seq nat)) : option fault :=
  let pairs := map fst found in
  let beginning := (0, begins M) in
  if symbols_fault pairs [::] beginning is Some e then Some e
  else first_fault (fun f =>
         if symbols_fault pairs f.2 f.1 is Some e then Some e else end_fault f.2 f.1) found.

(* the pairs that texts lead to, the nearest first; `fuel` only ends the recursion *)
Definition new_ones (found : seq (pair * seq nat)) (f : pair * seq nat) : seq (pair * seq nat) :=
  foldl (fun new t =>
      if follows f.1 t is Some p then
        if has (fun g => same_pair p g.1) new || has (fun g => same_pair p g.1) found then new
        else rcons new (p, rcons f.2 t)
      else new) [::] (symbols_at f.1.2).

Fixpoint explore (fuel : nat) (waiting found : seq (pair * seq nat)) : seq (pair * seq nat) :=
  if (fuel, waiting) is (n.+1, f :: waiting) then
    let new := new_ones found f in explore n (waiting ++ new) (found ++ new)
  else found.

Definition reached : seq (pair * seq nat) :=
  let new := new_ones [::] ((0, begins M), [::]) in
  explore (W * size (next_states M)) new new.

Definition find_fault : option fault := pairs_fault reached.

(* nothing is left out of the living states: an end is one of them, and what leads to one *)
Definition living_closed : bool :=
  all (fun r => (may_end r ==> nth false living r)
      && all (fun t => if leads M r t is Some r' then alive r' ==> nth false living r else true)
             (iota 0 D))
    (iota 0 (maxn (size (next_states M)) (size (answer_ids M)))).
End Check.

(* the living states, by going backwards from the ends *)
Section Living.
Variables (M : machine) (D : nat).
Definition one_step_back (living : seq bool) : seq bool :=
  [seq nth false living r || (0 < size (symbols_at M D living r)) | r <- iota 0 (size living)].
Fixpoint steps_back (n : nat) (living : seq bool) : seq bool :=
  if n is n'.+1 then
    let more := one_step_back living in
    if same_bits more living then living else steps_back n' more
  else living.
Definition living_states : seq bool :=
  let Q := maxn (size (next_states M)) (size (answer_ids M)) in
  steps_back Q [seq may_end M r | r <- iota 0 Q].
End Living.

(* None: the weights give the answers of the machine *)
Definition check_product (M : machine) (D W : nat) above certain : option fault :=
  let living := living_states M D in
  if ~~ living_closed M D living then Some Not_closed
  else find_fault M D W above certain living.

(* ---- the invariant ---- *)

Lemma same_bitsP x y : reflect (x = y) (same_bits x y).
Proof.
apply: (iffP idP) => [|->]; last by elim: y => //= b y ->; case: b.
by elim: x y => [|b x IH] [|c y] //= /andP[/eqP -> /IH ->].
Qed.

Lemma first_faultP (A : eqType) (g : A -> option fault) s x :
  first_fault g s = None -> x \in s -> g x = None.
Proof.
elim: s => //= y s IH; case E: (g y) => [//|] /IH h; rewrite inE => /orP[/eqP ->//|]; exact: h.
Qed.

Section Invariant.
Variables (M : machine) (D W : nat).
Variables (above : nat -> nat -> seq bool) (certain : nat -> nat -> bool).
Hypothesis accepted : check_product M D W above certain = None.
Let living := living_states M D.
Notation alive := (alive M living).
Notation ahead := (ahead D above).
Notation found := (reached M D W above living).
Notation pair := (nat * nat)%type.

(* a row on which the weights give the answer y, and certainly so *)
Definition right_row (q t : nat) (y : option nat) : Prop :=
  certain t q /\ take D (above t q) = shows D y.

Lemma row_faultP text p t y :
  row_fault D above certain text p t y = None -> right_row p.1 t y.
Proof. by rewrite /row_fault; case: same_bitsP => //= E; case: ifP. Qed.

Lemma closed_ok : living_closed M D living.
Proof. by move: accepted; rewrite /check_product; case: ifP => // /negbFE. Qed.
Lemma pairs_ok : pairs_fault M D W above certain living found = None.
Proof. by move: accepted; rewrite /check_product; case: ifP. Qed.

Lemma has_row table r t y : entry_at table r t = Some y -> r < size table.
Proof.
rewrite /entry_at; case: (ltnP r (size table)) => // le.
by rewrite (nth_default [::] le) nth_nil.
Qed.

(* ---- what is left to read is among the living ---- *)

Lemma alive_end r m y : mark M = Some m -> answers_with M r m = Some y -> alive r.
Proof.
move=> Em Ey; rewrite /Machines.alive Em; have /allP/(_ r) := closed_ok.
rewrite mem_iota /= add0n leq_max (has_row Ey) orbT => /(_ isT)/andP[/implyP h _].
by apply: h; rewrite /may_end Em Ey.
Qed.

Lemma alive_back r t r' : t < D -> leads M r t = Some r' -> alive r' -> alive r.
Proof.
rewrite /Machines.alive; case Em: (mark M) => [m|] // tD El a'; have /allP/(_ r) := closed_ok.
rewrite mem_iota /= add0n leq_max (has_row El) => /(_ isT)/andP[_ /allP/(_ t)].
by rewrite mem_iota add0n tD El /Machines.alive Em a' => /(_ isT).
Qed.

Lemma alive_text r m text y : mark M = Some m -> all (fun t => t < D) text ->
  answered M r m text = Some y -> alive r.
Proof.
move=> Em; elim: text r => [|t text IH] r /=; first by move=> _; apply: alive_end.
by case/andP=> tD /IH {}IH; case El: leads => [r'|//] /IH; apply: alive_back El.
Qed.

Lemma symbol_follows r t r' : t < D -> leads M r t = Some r' -> alive r' -> goes_on M D living r.
Proof.
move=> tD El a'; rewrite /goes_on; have : t \in symbols_at M D living r.
  by rewrite mem_filter El a' mem_iota.
by case: (symbols_at M D living r) => [|s l] // _; rewrite orbT.
Qed.

(* ---- in which pairs the weights and the machine may be ---- *)

Definition found_pair (p : pair) : bool := among p (map fst found).
Definition related (p : pair) : Prop := p = (0, begins M) \/ found_pair p.

Lemma found_pairP p : found_pair p -> exists text, (p, text) \in found.
Proof.
rewrite /found_pair /among => /hasP[p' /mapP[[p2 text] fin ->]] /andP[/eqP E1 /eqP E2].
by exists text; case: p E1 E2 => a b /= -> ->; case: p2 fin.
Qed.

Lemma symbols_ok p : related p ->
  exists text, symbols_fault M D W above certain living (map fst found) text p = None.
Proof.
have := pairs_ok; rewrite /pairs_fault; case E: symbols_fault => [//|] ok.
case=> [->|/found_pairP[text fin]].
  by exists [::].
by exists text; move: (first_faultP ok fin) => /=; case: symbols_fault.
Qed.

Lemma symbol_ok q r t r' : related (q, r) -> t < D -> leads M r t = Some r' -> alive r' ->
  right_row q t (answer_on_the_way M r t) /\
  (goes_on M D living r' -> exists q', [/\ ahead t q = Some q', q' < W & found_pair (q', r')]).
Proof.
move=> /symbols_ok[text /first_faultP h] tD El a'.
have := h t; rewrite mem_filter El a' mem_iota add0n tD => /(_ isT).
rewrite /symbol_fault; case E: row_fault => [//|]; have R := row_faultP E.
rewrite El; case: ifP => [/negbTE no _|_]; first by split; rewrite ?no.
case Ea: (Machines.ahead _ _ _ _) => [q'|//]; case: ifP => // /andP[qW am] _.
by split=> // _; exists q'.
Qed.

Lemma end_ok q r m y : found_pair (q, r) -> mark M = Some m -> answers_with M r m = Some y ->
  right_row q m (Some y).
Proof.
case/found_pairP=> text fin Em Ey; have := pairs_ok; rewrite /pairs_fault.
case: symbols_fault => // /first_faultP/(_ fin) /=; case: symbols_fault => //.
by rewrite /end_fault Em Ey => /row_faultP.
Qed.

(* ---- what is written, one symbol after the other ---- *)

(* what is above the threshold on a device: right where the check was certain *)
Variable seen : nat -> nat -> seq bool.
Hypothesis seen_right : forall t q, q < W -> certain t q -> seen t q = above t q.

Definition shown (u t : nat) : seq bool := if u < W then take D (seen t u) else nseq D false.
Definition onward (u t : nat) : nat :=
  if u < W then odflt W (alone (drop D (seen t u))) else W.
Fixpoint writes (u : nat) (text : seq nat) : seq (seq bool) :=
  if text is t :: text then shown u t :: writes (onward u t) text else [::].

Lemma shown_right q t y : q < W -> right_row q t y -> shown q t = shows D y.
Proof. by move=> qW [c <-]; rewrite /shown qW seen_right. Qed.

Lemma onward_right q t y q' : q < W -> right_row q t y -> ahead t q = Some q' -> onward q t = q'.
Proof. by move=> qW [c _]; rewrite /onward qW seen_right // /Machines.ahead => ->. Qed.

Theorem product_answers_each q r text ys : mark M = None -> all (fun t => t < D) text ->
  related (q, r) -> q < W -> transduced M r text = Some ys ->
  writes q text = [seq shows D (Some y) | y <- ys].
Proof.
move=> Em; have living_all r' : alive r' by rewrite /Machines.alive Em.
elim: text q r ys => [|t text IH] q r ys /=; first by move=> _ _ _ [<-].
case/andP=> tD aD rel qW; case Ey: answers_with => [y|//]; case El: leads => [r'|//].
case Et: transduced => [ys'|//] [<-] /=.
have [R go] := symbol_ok rel tD El (living_all r').
rewrite (shown_right qW R) /answer_on_the_way Em Ey; congr cons.
case: text aD Et IH => [_ [<-] //|t' text aD Et IH].
have [|q' [Ea q'W f]] := go.
  move: Et aD => /=; case: answers_with => // y'; case El': leads => [r2|//] _ /andP[t'D _].
  exact: symbol_follows t'D El' (living_all r2).
by rewrite (onward_right qW R Ea); apply: IH Et => //; right.
Qed.

Theorem product_answers_at_the_end q r m text y : mark M = Some m -> all (fun t => t < D) text ->
  (if text is [::] then found_pair (q, r) : Prop else related (q, r)) -> q < W ->
  answered M r m text = Some y ->
  writes q (rcons text m) = rcons (nseq (size text) (shows D None)) (shows D (Some y)).
Proof.
move=> Em; elim: text q r => [|t text IH] q r /=.
  by move=> _ f qW Ey; rewrite (shown_right qW (end_ok f Em Ey)).
case/andP=> tD aD rel qW; case El: leads => [r'|//] Ey.
have [R go] := symbol_ok rel tD El (alive_text Em aD Ey).
rewrite (shown_right qW R) /answer_on_the_way Em; congr cons.
have [|q' [Ea q'W f]] := go.
  case: text aD Ey {IH} => [_ /= Ey|t' text /= /andP[t'D aD]].
    by rewrite /goes_on /may_end Em Ey.
  case El': leads => [r2|//] Ey; exact: symbol_follows t'D El' (alive_text Em aD Ey).
rewrite (onward_right qW R Ea); apply: IH Ey => //.
by case: (text) => [|t' text']; [exact: f|right].
Qed.
End Invariant.
