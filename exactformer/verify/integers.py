"""Integers: whether weights give the value of every text, of any depth, numerals of any length.

The weights are a machine with states that nobody has named: a bag of tokens beside a state gives a
token and a next state. By induction over iterations it is enough that each iteration turns each of
the deepest spans into its value, or takes one more digit of a product. With the gates as declared,
bags and their order are what `model/integers.py` says, whatever stands around a span. So it is a
question about all sequences of bags that come up, of any length.

Read from the lowest place on, a reference in Python's integers and the weights are in a pair of
states. The pairs that come up are finitely many; so are the bags, and which of them may follow,
which depends on whether each numeral has begun, may end there (it has no leading zero) or has
ended. What the first reading writes may differ from the reference in what the second one removes,
such as zeros above the top digit. So for each state that the second reading may come with from
above, it is kept what it will leave of the places so far, and how that compares with the reference.
Those states, and all that the first reading may write, are found before, by following it alone.
It may come late, but not behind the `(`: a span has len a + len b + 3 positions, so there are four
of them or more, three in a product, behind the end of both numerals. There, and for ever after,
what is left for the start of the second reading must be the numeral of the value, or `?`.
Accumulators must be the reference's, but for zeros on top.

Numbers with their lowest digit first (`domains/little_endian.py`) are spans of one operator, read
from their end. There numerals may have zeros on top, so that each may end at any digit, and no
operand is a span, so that none is `?`.

More is asked for than must hold: an accumulator of any digits stands beside any left operand, where
only multiples of it do; and what is written may be late by one digit only. So weights that are
right might be refused, and the verdict on them is "undecided".
"""

from collections.abc import Sequence

import numpy as np

from exactformer.domains.bounds import MOST_CASES, MOST_NUMBERS, require
from exactformer.domains.integers import Integers
from exactformer.domains.symbols import CLOSE, FIRST_VALUE, OPEN
from exactformer.verify.findings import Findings
from exactformer.verify.integer_spans import wrong_spans
from exactformer.verify.integer_tables import Tables, bags_of
from exactformer.verify.machine import inputs, outputs_of
from exactformer.verify.rounding import SUBNORMAL
from exactformer.weights.tensors import FEEDFORWARDS, Arrays


def check(domain: Integers, weights: Sequence[tuple[Arrays, str | None]]) -> list[Findings]:
    return [_check(domain, arrays, str(activation)) for arrays, activation in weights]


def _check(domain: Integers, arrays: Arrays, activation: str) -> Findings:
    D = len(domain.vocabulary)
    W = len(inputs(arrays)) - 2 * D
    n = len(bags_of(domain)) * W
    require(f"rows of {domain.name!r} to be listed", n, MOST_CASES)
    require(f"numbers of {n} rows of {domain.name!r}", n * (2 * D + W), MOST_NUMBERS)
    tables = Tables(domain, W, lambda H: outputs_of(H, arrays, activation).positive)
    wrong = wrong_spans(domain, tables)
    outputs = outputs_of(tables.H[sorted(tables.reached)], arrays, activation)
    conditions = _gates(domain, arrays) | {
        "every span becomes its value, or a digit of its right operand is taken": not wrong,
        "every output is farther from the threshold than rounding can move it": outputs.smallest
        > outputs.error,
    }
    if "W_1" in arrays:
        numbers = (arrays[name] for name in FEEDFORWARDS["perceptron"])
        tiny = any((abs(part[part != 0]) < SUBNORMAL).any() for part in numbers)
        conditions["no weight is so small that a device may take it for zero"] = not tiny
    rows = len(tables.reached)
    return Findings(domain, conditions, rows, wrong, outputs.smallest, outputs.error)


def _gates(domain: Integers, arrays: Arrays) -> dict[str, bool]:
    """The conditions on the gates. But for that of the depth, they do not see the digits of
    accumulators.
    """
    G_PE, G_N, G_O, G_F = (arrays[name].astype(int) for name in ("G_PE", "G_N", "G_O", "G_F"))
    depth = np.zeros(len(domain.vocabulary), dtype=int)
    depth[OPEN], depth[CLOSE] = 1, -1
    brackets = [OPEN, CLOSE]
    operators = [*map(domain.operator_id, domain.operators)]
    digits = [*range(FIRST_VALUE, domain.first_operator), *([domain.none] if domain.nests else [])]
    folding = [domain.operator_id(symbol) for symbol in domain.operators if symbol == "*"]
    others = [token for token in operators if token not in folding]
    kept = range(domain.first_kept, len(domain.vocabulary)) if folding else ()
    seen = [*brackets, *digits, *operators, *kept]
    numerals = (G_N[digits] > 0).all() and (G_N[operators] < 0).all() and (G_N[brackets] <= 0).all()
    sent = (G_O[operators] > 0).all() and not G_O[[OPEN, *digits]].any() and G_O[CLOSE] <= 0
    folds = (G_F[folding] > 0).all() and (G_F[others] <= 0).all()
    folds = folds and not G_F[[*brackets, *digits]].any()
    return {
        "the gate of depth is +1 on '(', -1 on ')', 0 elsewhere": bool((depth == G_PE)[seen].all()),
        "that of numerals is positive on digits and '?' only, negative on operators": bool(
            numerals
        ),
        "that of operators is positive on them, 0 on digits, '?' and '('": bool(sent),
        "that of products is positive on '*' only, 0 on all but operators": bool(folds),
    }
