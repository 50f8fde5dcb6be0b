"""Prove, in exact arithmetic, that weights compute an algebra at every depth and length.

This is the folder for a sceptic to read: it uses neither torch nor the model's code, only numpy,
the algebra's own tables and the reader of weights files. Numbers are whole numbers or exact
fractions; nothing here rounds. `rows.py` lists and checks the cases, `rounding.py` bounds what the
running model's arithmetic can change, `units.py` is for any number of operands, `levels.py` for
plain notation, `arities.py` for Polish notation, `machine.py` for machines, `rearrangements.py` for
rearrangements, `integers.py` for integers, whose values are endlessly many, `square_roots.py` for
roots, `conditions.py` puts them together, and `proof.py` is about the files.

Why a finite check suffices. With the gate +1 on `(`, -1 on `)` and 0 elsewhere, the depth counts
pick exactly the deepest spans, and spans never touch (infix: an operator lies between them; prefix:
a zero vector follows each `)`). Such a span holds one operator, values, its two parentheses and
zero vectors left by earlier reductions. Attention adds up, so what a position of it receives
depends only on its own token and on the bag of tokens in the span, of which there are finitely
many. If for each bag exactly one position becomes a token, the right value, and every other
position becomes zero, one iteration evaluates all deepest spans and keeps the rest: the expression
keeps its value and loses one level, whatever its size (the paper's two theorems). Which position it
is does not matter, since all of a span lies between the same two neighbours; in the paper and in
all that is shipped it is the operator's.

Where order matters there is a second gate, G_R. A token's rank is the sum of this gate over the
tokens of its span up to itself, and its rank selects the slot in which it is added up. Without its
zero vectors, a span is a known sequence of tokens: `( a op b )`, `( op a )` or `( op a b ... )`.
Zero vectors add nothing to a rank, wherever they stand; and a span that was reduced earlier has
left exactly one value, within itself, so between the operands before it and those after it. So the
slots, and with them what each position receives, depend only on the operator and the tuple of its
operands, again one of finitely many: each tuple is a case, with the slots that this very gate gives
it.

Which arithmetic. Gates, ranks, routing and routed sums are whole numbers, small enough that every
partial sum is exact in float32, float16 and bfloat16 alike, in any order, and on any hardware that
multiplies such numbers. The feedforward is computed in IEEE binary64 from float32 weights by single
multiplications and additions. No such number underflows or overflows there (`rounding.py`), so each
operation errs by at most 2^-52 of its result, whatever the rounding mode, with fused operations or
not. Outputs stay farther from the threshold than this can move them, in any order of summation: so
the same holds on every device. It does not depend on torch's settings for matrix products, on
environment variables for them, on TF32 or bfloat16 hardware, nor on whether subnormal numbers are
flushed to zero. It is not said of hardware whose float64 is emulated with less precision than that,
nor of compilers told to ignore IEEE rules ("fast math").

Units (`domains/units.py`) take any number of operands, so their cases have no end. There the check
is structural. With a gate of the rank that is 1 on values and 0 elsewhere and the paper's routing,
an operator receives its own token once and each operand once, the i-th in slot i and the last slot
with all that are left; all other positions receive nothing. The units are then held against those
that each operator's rule needs, whole number by whole number; why they compute the rule, for any
number of operands, is said there rule by rule. Since one must not have to believe that, the units
of the file are also evaluated here, by code that knows nothing of how they were made, on thousands
of lists of operands, and compared with the rule. What they read out is gated by the operator's own
token: where that is missing, so at every other position, the output is zero, and no operator sees
another's units. What remains is that numbers are whole and exact: counts of operands, as far as the
number format goes (`most_operands`; the model refuses a longer span), and the units' sums in
float64.

Machines, over texts and over spans, integers, square roots and rearrangements are other kinds of
domains, with checks of their own: `machine.py`, `integers.py`, `square_roots.py` and
`rearrangements.py` have the arguments. That of machines over texts is in Coq, too.

In plain notation the layer counts the parentheses that precedence stands for, and shows the weights
each operator by itself, as a span of the infix notation: those are the cases then. What is left is
which operators belong together. `levels.py` has the conditions on levels and directions, and why
they suffice.

In Polish and reverse Polish notation the layer counts the parentheses that arities stand for, and
shows the weights spans of the prefix notation: those are the cases then. `arities.py` says which
gate and which side find the spans, and why these and no others do.

Which of this is a theorem. `proof/` has it in Coq, with nothing admitted: the mask, the clusters,
what is received, one iteration and the whole run (`ReductionMask.mask_is_deepest_spans`,
`Clusters.by_number_is_by_run`, `TypedAttention.received_is_a_bag`, `NextState.next_state`,
`GlobalEvaluation.global_evaluation`), that a finite check implies it (`Checker.v`), both roundings
(`RoutedSums.v`, `PerceptronRounding.v`) and all of it together for the running model
(`RunningModel.v`), the same values from the logarithmic layer (`LogarithmicChecked.v`), the
rules of the units (`Units.v`), and the answers of machines over texts (`MachineChecked.v`).
`proof/README.md` has the statements, and says what is not proved: plain and Polish notation, dense
vectors in narrow formats, the units' read-out inside the model, the rules `product` and `last`,
and all kinds of domain but algebras and machines over texts. `exactformer verify --kernel` asks the
checker extracted from it.

The trusted base. Whoever accepts a proof trusts these, and nothing else of this project:
  - this folder but for `coq.py`, and numpy's and Python's whole numbers under it;
  - the algebra: `domains/algebra.py`, `rules.py` and `units.py` for what the tables and rules are,
    `catalog.py` for what a built-in name stands for, or else one's own file (`--algebra`);
  - the readers of files: `weights/file.py` and `tensors.py`, `domains/kinds.py`, the safetensors
    library, and SHA-256;
  - that `model/circuit.py`, `exact.py`, `feedforward.py` and `encode.py` compute what the argument
    says, on a torch that adds, multiplies, compares and indexes correctly (`tests/` compare them
    with brute force and with other settings, `attacks/` on other machines); for iterations by the
    logarithm, the same of `model/speculate.py`, `scan.py` and `alike.py`, and for plain notation
    also of `model/levels.py` and `precedence.py`, for Polish notation also of `model/polish.py`;
    for machines of `model/reading.py`, `scan.py`, `machine.py` and `span_machine.py` instead, and
    for rearrangements of `reading.py` and `rearrange.py`, for integers and roots of `reading.py`,
    `integers.py` and `square_root.py`;
  - the parser, `domains/syntax.py` and `domains/grammar.py`, for what a text means, and in plain
    notation `domains/plain_grammar.py`, in Polish notation `polish_grammar.py` and `polish.py`; for
    machines `domains/machines.py` and `span_machines.py`, which also say what a definition means,
    and `machine_catalog.py` for built-in names; for rearrangements `domains/rearrangements.py` and
    `rearrangement_catalog.py`, for numbers `integers.py`, `little_endian.py` and `square_roots.py`
    there.
The engine adds `engine/`. Its tables are read off the weights by running them or, where the same
weights were certified before, built of the algebra's values, which are the same by the certificate;
tests and attacks compare it with the parser and the model. Training, the search for
counterexamples, the baselines and the page are not trusted: they can fail to find a proof, they
cannot make one.
"""

from exactformer.verify.conditions import check, check_all
from exactformer.verify.findings import Findings
from exactformer.verify.proof import ProofRejected, proof_of, verify
from exactformer.verify.rows import Fault

__all__ = ["Fault", "Findings", "ProofRejected", "check", "check_all", "proof_of", "verify"]
