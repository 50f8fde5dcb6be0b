(* The model: exactformer/model/circuit.py, definition by definition and with its names.

   A row of the state holds whole numbers: one 1 for a token, only zeros for an empty position. Any
   other row may occur too; the definitions say what happens to it. A matrix is the list of its
   columns. A state may hold dense vectors instead of rows: `read` gives the row of such a cell,
   `write` the cell of a row. Without dense vectors both are the identity.

   The check of these definitions against the Python is a test (tests/test_proof.py), which runs
   them, extracted, beside circuit.py. *)
From mathcomp Require Import all_ssreflect.
From Coq Require Import ZArith.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Lemma Z_eqP : Equality.axiom Z.eqb.
Proof. by move=> x y; apply: (iffP idP) => [/Z.eqb_eq|->]; last exact: Z.eqb_refl. Qed.
Canonical Z_eqType := EqType Z (EqMixin Z_eqP).
Arguments Z.of_nat : simpl never.
Arguments Z.add : simpl never.
Arguments Z.sub : simpl never.
Arguments Z.mul : simpl never.
Arguments Z.max : simpl never.

Notation row := (seq Z).

Definition total (s : seq Z) : Z := foldr Z.add 0%Z s.
Definition cumsum (s : seq Z) : seq Z := scanl Z.add 0%Z s.
Fixpoint dot (x y : row) : Z :=
  match x, y with a :: x, b :: y => (a * b + dot x y)%Z | _, _ => 0%Z end.

(* ---- what is learned or written down. Without a rank gate: S = 1 and G_R = [::]. ---- *)
Record weights := Weights {
  D : nat;
  S : nat;
  G_PE : row;
  G_R : row;
  W_Q : seq row;
  W_K : seq row;
  f : row -> row
}.

(* ---- depth counts and the reduction mask ---- *)

(* `gate` is what each position adds to the count: X G_PE, Eq. 2 *)
Definition depth_counts (gate : seq Z) : seq (Z * Z) :=
  let A_1 := cumsum gate in                                                     (* Eq. 3 *)
  let sum := last 0%Z A_1 in
  [seq (p.1, (p.1 - p.2 - sum)%Z) | p <- zip A_1 gate].                         (* Eq. 4 *)

Definition smallest : Z := (- 2 ^ 63)%Z.                     (* torch.iinfo(int64).min *)

Definition reduction_mask (A : seq (Z * Z)) (inside : seq bool) : seq bool :=
  let deepest := [seq if p.2 then Z.max p.1.1 p.1.2 else smallest | p <- zip A inside] in
  let top := foldr Z.max smallest deepest in
  [seq (p.1 =? top)%Z && p.2 | p <- zip deepest inside].                        (* Eq. 5 *)

(* No parenthesis is left: every count is zero. *)
Definition halted (A : seq (Z * Z)) : bool := all (fun a => (a.1 =? 0)%Z && (a.2 =? 0)%Z) A.

(* ---- clusters and ranks ---- *)

Definition clusters (P : seq bool) : seq nat :=
  let before := belast false P in
  let starts := [seq (p.1 && ~~ p.2 : nat) | p <- zip P before] in              (* Eq. 6 *)
  [seq p.1 * p.2 | p <- zip (map nat_of_bool P) (scanl addn 0 starts)].         (* Eq. 7 *)

(* A count as in Eq. 3, less what it was where the cluster starts; `gate` is X G_R. *)
Definition ranks (gate : seq Z) (ids : seq nat) : seq Z :=
  let count := cumsum gate in
  let starts := [seq (p.2 < p.1 : nat) | p <- zip ids (belast 0 ids)] in
  let start := scanl maxn 0 [seq p.1 * p.2 | p <- zip starts (iota 0 (size ids))] in
  let before := [seq (p.1 - p.2)%Z | p <- zip count gate] in
  [seq (p.1 - nth 0%Z before p.2)%Z | p <- zip count start].

(* The token of rank r goes to the r-th of S slots; what comes before the first joins it there,
   and what comes after the last, the last. *)
Definition slot (S : nat) (r : Z) : nat :=
  Z.to_nat (Z.min (Z.max (r - 1) 0) (Z.of_nat S - 1)).

(* ---- attention ---- *)

Section Attention.
Variable w : weights.

(* the sum of rows, each times a number *)
Definition weighted (s : seq (Z * row)) : row :=
  let s := [seq p <- s | ~~ (p.1 =? 0)%Z] in
  [seq total [seq (p.1 * nth 0 p.2 t)%Z | p <- s] | t <- iota 0 (D w)].

(* one dimension of K^T X: of the rows of a cluster, with their ranks, that go to slot s *)
Definition sums (C : seq (row * Z)) (s : nat) (k : row) : row :=
  weighted [seq (dot y.1 k, y.1) | y <- C & slot (S w) y.2 == s].

(* Q (K^T X): what a position that holds x receives from its cluster, slot by slot; Eqs. 10 to 12 *)
Definition received (x : row) (C : seq (row * Z)) : row :=
  flatten [seq weighted [seq (dot x qk.1, sums C s qk.2) | qk <- zip (W_Q w) (W_K w)]
          | s <- iota 0 (S w)].

Definition nothing : row := nseq (S w * D w) 0%Z.

(* those of X, with their ranks R, that have the cluster number i *)
Definition cluster A (X : seq A) (R : seq Z) (ids : seq nat) (i : nat) : seq (A * Z) :=
  [seq q.1 | q <- zip (zip X R) ids & q.2 == i].

Definition typed_attention (X : seq row) (ids : seq nat) (R : seq Z) : seq row :=
  [seq if p.2 == 0 then nothing else received p.1 (cluster X R ids p.2) | p <- zip X ids].

(* Above the threshold, output by output: Y of Z *)
Definition threshold (Z : row) : row := [seq (if 0 <? z then 1 else 0)%Z | z <- Z].
End Attention.

Definition gated_residual A (X : seq A) (P : seq bool) (Y : seq A) : seq A :=
  [seq if p.1.2 then p.2 else p.1.1 | p <- zip (zip X P) Y].                    (* Eq. 13 *)

(* ---- one iteration, and the run ---- *)

Section Model.
Variables (cell : Type) (read : cell -> row) (write : row -> cell) (w : weights).

Definition gate_of (x : cell) : Z := dot (read x) (G_PE w).
Definition rank_gate_of (x : cell) : Z := dot (read x) (G_R w).
Definition is_open (x : cell) : bool := (0 <? nth 0 (read x) 0)%Z. (* `(` is token 0 *)

(* which positions this iteration reduces *)
Definition mask (inside : seq bool) (X : seq cell) : seq bool :=
  reduction_mask (depth_counts (map gate_of X)) inside.

Definition iterate (inside : seq bool) (X : seq cell) : seq cell :=
  let P := mask inside X in
  let ids := clusters P in
  let R := ranks (map rank_gate_of X) ids in
  let H := typed_attention w (map read X) ids R in
  let Y := [seq write (threshold (f w h)) | h <- H] in
  gated_residual X P Y.

(* A sequence of a batch: how many iterations are left, what is inside, the state, and how many
   iterations reduced something. It is left as it is once it has halted or nothing is left. *)
Record sequence := Sequence { left : nat; inside : seq bool; state : seq cell; iterations : nat }.

Definition limit (X : seq cell) : nat := count is_open X. (* at most as many levels as `(` *)
Definition begin (inside : seq bool) (X : seq cell) : sequence := Sequence (limit X) inside X 0.
Definition running (s : sequence) : bool :=
  ~~ halted (depth_counts (map gate_of (state s))) && (0 < left s).

Definition advance (s : sequence) : sequence :=
  let now := [seq b && running s | b <- inside s] in
  Sequence (left s).-1 (inside s) (iterate now (state s))
           (iterations s + has id (mask now (state s))).

(* `fuel` only ends the recursion: no sequence runs longer than the largest of the limits *)
Fixpoint run_batch (fuel : nat) (batch : seq sequence) : seq sequence :=
  if fuel is n.+1 then
    if has running batch then run_batch n (map advance batch) else batch
  else batch.

(* the states of a batch at the end, and the iterations of each *)
Definition run (batch : seq (seq bool * seq cell)) : seq (seq cell * nat) :=
  let start := [seq begin p.1 p.2 | p <- batch] in
  [seq (state s, iterations s) | s <- run_batch (foldr maxn 0 (map left start)) start].
End Model.
