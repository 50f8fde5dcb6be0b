"""Checks the gates of Polish notation: that each token counts the operands it takes, less one, and
that texts are read from the side on which their operators stand.

In Polish notation `op a b ...` no parenthesis is written, and spans are found by counting alone
(`model/polish.py`). With the gate g, a sequence that is read as x_1 ... x_n is taken for an
expression if and only if g(x_1) + ... + g(x_n) = -1 and each shorter beginning adds up to 0 or
more. A token opens a span if its g is 0 or more, and spans end where the sums say. Weights of an
algebra whose operators have the arities a are right about all of this if and only if

    g(v) = -1 for each value v,  g(o) = a(o) - 1 for each operator o,

and the side from which they read is the one on which operators come before their operands: the left
for Polish notation, the right for reverse Polish. Tokens that no text has, the parentheses, may
count anything.

Sufficient. Say that a sequence owes one operand more than its tokens add up to. By induction on its
tree, an expression e adds up to -1, and each shorter beginning of it, the empty one included, to 0
or more: a value does; and for `o e_1 ... e_a`, o adds a - 1, each finished operand takes 1 off, and
a beginning inside of e_k adds up to at least a - 1 - (k - 1) + 0, which is 0 or more. So an
expression is no beginning of another, and each expression is taken for one.
  Let h be the height of o, the sum before it. Its k-th operand starts at the height
h + (a - 1) - (k - 1) = h + a - k, and nothing in that operand lies lower. So between o and the
start of its last operand no token has the height h, and that start has it. In the order of heights,
and of places among equal ones, o is therefore followed by the start of its last operand, that one,
if it is an operator, by the start of its own, and so on, until a value. Such a chain has the last
token of all its spans in common, which is that value, and no two chains share a token. So the value
ends as many spans as operators stand between it and the value before it in that order: the
parentheses that are counted are those of the tree.
  From there on all is as in prefix notation. A span is the sequence `( op a b ... )` of the cases,
in reverse Polish notation with its operands turned around into the order of the text. A span that
is evaluated leaves one value at its operator, which counts -1, as the span did, so that all other
heights stay.

Necessary. Take an operator o with the arity a and a value v, and the shortest expression with them:
`o v ... v`. If it is not taken for an expression, nothing is ever written, and two tokens or more
are left: no value. So g(o) >= 0, as the first beginning adds up to g(o), and g(o) + a g(v) = -1, so
g(v) < 0. No gate is below -1, hence g(v) = -1 and g(o) = a - 1. That holds for each v, with any o,
and for each o. Read from the wrong side the first token is v, and the sum is -1 before the end. So
there is no harmless alternative: any other gate or side is wrong on one of these expressions.
"""

import numpy as np

from exactformer.domains.algebra import FIRST_VALUE, Algebra
from exactformer.domains.expression import span_expression
from exactformer.verify.rows import Fault
from exactformer.weights.tensors import Arrays


def check_arities(algebra: Algebra, arrays: Arrays) -> tuple[dict[str, bool], tuple[Fault, ...]]:
    """Both conditions, and for each token that is counted otherwise, or for the side, a fault with
    an expression that shows it.
    """
    declared = algebra.declared_gates
    G_A, wanted = arrays["G_A"].astype(np.int64), declared["G_A"]
    wrong = np.flatnonzero(G_A[FIRST_VALUE:] != wanted[FIRST_VALUE:]) + FIRST_VALUE
    other_side = int(arrays["side"][0]) != int(declared["side"][0])
    faults = [
        Fault(f"{algebra.vocabulary[t]} counts {G_A[t]} and not {wanted[t]}", _shortest(algebra, t))
        for t in wrong.tolist()
    ]
    if other_side:
        faults.append(Fault("texts are read from the other side", _shortest(algebra, FIRST_VALUE)))
    conditions = {
        "each token counts the number of its operands less one": not len(wrong),
        "texts are read from the side where operators come first": not other_side,
    }
    return conditions, tuple(faults)


def _shortest(algebra: Algebra, token: int) -> tuple[int, ...]:
    """The shortest expression with an operator and one value, which are this token and another."""
    value = token if token < algebra.first_operator else FIRST_VALUE
    arities = {algebra.first_operator + o: op.arities[0] for o, op in enumerate(algebra.operators)}
    operator = token if token in arities else min(arities, key=arities.__getitem__)
    span = span_expression(algebra, operator, [value] * arities[operator])
    return tuple(span.ids.tolist())
