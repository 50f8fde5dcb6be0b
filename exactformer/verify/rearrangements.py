"""Rearrangements: whether weights write every text as its order says, whatever its length.

Nothing is repeated here that could go wrong at some length only, so there is no induction. The
layer has one iteration. Its keys are made of counts, which are whole numbers and exact: running
sums and minima of two gates over the tokens of a text. What the counts come to depends on the
weights through these gates alone. So if the gates are as declared (of the gate of the key it counts
where it is positive, of the classes their order), each token of each text has the key that
`model/rearrange.py` says, and by the identities below that is the place at which it is due:

    rank, backward rank     tokens with a place are numbered from their end, without gaps
    by class                counting sort: all tokens of lower classes are before a token, and
                            those of its own class that come before it
    height of a stack       a running sum less its running minimum, where that is below zero, is
                            the height of a stack from which nothing is taken where it is empty; a
                            symbol is left at the end exactly if the stack is never lower
                            afterwards than it was with that symbol on it; and of those that are
                            left, later ones lie higher
    modulo half             the two tokens whose ranks are half of all tokens apart

So a row is the bag of one token, of two in the order halves, or of none. These are finitely many,
and they are listed: every symbol that has a place comes up in some text, every pair that is allowed
does, and the empty bag does where some positions have no row. The check looks at the feedforward's
output for each of them. As an output depends on the bag alone (`model/rearrange.py` applies the
feedforward to each row by itself), a text is right if its bags are, at any length.

More is asked for than must hold: a symbol that is skipped may have no key, though in some orders it
would do no harm as long as nothing is written for it. So weights that are right might be refused,
and the verdict on them is "undecided".
"""

from collections.abc import Iterator, Sequence

import numpy as np

from exactformer.domains.bounds import MOST_CASES, MOST_NUMBERS, require
from exactformer.domains.rearrangements import NOTHING, Bag, Rearrangement
from exactformer.verify.findings import Findings
from exactformer.verify.machine import outputs_of
from exactformer.verify.rounding import SUBNORMAL
from exactformer.verify.rows import Fault
from exactformer.weights.tensors import FEEDFORWARDS, Arrays


def check(domain: Rearrangement, weights: Sequence[tuple[Arrays, str | None]]) -> list[Findings]:
    """The conditions for a rearrangement, for many weights."""
    return [_check(domain, arrays, str(activation)) for arrays, activation in weights]


def _check(domain: Rearrangement, arrays: Arrays, activation: str) -> Findings:
    D = len(domain.vocabulary)
    rows = {bag: domain.bags.get(bag, NOTHING) for bag in (*domain.bags, *_empty(domain))}
    require(f"bags of {domain.name!r} to be listed", len(rows), MOST_CASES)
    require(f"numbers of {len(rows)} bags of {domain.name!r}", len(rows) * D, MOST_NUMBERS)
    H = np.zeros((len(rows), D), dtype=np.int64)
    for row, bag in enumerate(rows):
        np.add.at(H[row], [*bag], 1)
    outputs = outputs_of(H, arrays, activation)
    due = np.array([*rows.values()])
    right = (outputs.positive == (np.arange(D) == due[:, None])).all(1)
    bags = [*rows]
    wrong = tuple(_fault(domain, bags[row]) for row in np.flatnonzero(~right).tolist())
    conditions = _gates(domain, arrays) | {
        "for every bag that comes up its symbol is written, or nothing": not wrong,
        "every output is farther from the threshold than rounding can move it": outputs.smallest
        > outputs.error,
    }
    if "W_1" in arrays:
        numbers = (arrays[name] for name in FEEDFORWARDS["perceptron"])
        tiny = any((abs(part[part != 0]) < SUBNORMAL).any() for part in numbers)
        conditions["no weight is so small that a device may take it for zero"] = not tiny
    return Findings(domain, conditions, len(rows), wrong, outputs.smallest, outputs.error)


def _empty(domain: Rearrangement) -> Iterator[Bag]:
    """The empty bag, if some text has a position without a row."""
    skipped = not domain.has_place[: len(domain.symbols)].all()
    if skipped or domain.max_fan_in > 1:
        yield ()


def _gates(domain: Rearrangement, arrays: Arrays) -> dict[str, bool]:
    """The conditions on the gates, for the tokens that texts have."""
    has_place, counted = domain.has_place, domain.counted
    in_texts = np.arange(len(domain.vocabulary)) < len(domain.symbols)
    in_texts |= has_place
    as_declared = ((arrays["G_K"] > 0) == has_place)[in_texts].all()
    conditions = {
        "the gate of the key is positive on what has a place, and on nothing else": bool(
            as_declared
        )
    }
    if domain.order == "sorted":
        assert counted is not None
        found, due = arrays["G_C"][has_place], counted[has_place]
        name = "the gate of classes has them in the order declared"
        ranks = np.unique(found, return_inverse=True)[1]
        conditions[name] = bool((ranks.reshape(-1) == due).all())
    elif counted is not None:
        name = "the gate of the stack is +1 on what is put there, -1 on what takes off"
        conditions[name] = bool((arrays["G_C"] == counted)[in_texts].all())
    return conditions


def _fault(domain: Rearrangement, bag: Bag) -> Fault:
    """A bag that goes wrong, with a short text in which it comes up."""
    words = " and ".join(domain.vocabulary[token] for token in bag)
    with_place = np.flatnonzero(domain.has_place[: len(domain.symbols)]).tolist()
    if domain.max_fan_in > 1:
        pair = next(other for other, token in domain.bags.items() if token != NOTHING)
        bags = [bag, pair] if domain.bags.get(bag, NOTHING) == NOTHING else [bag]
        ids = [part[0] for part in bags if part] + [part[1] for part in bags if part]
    elif not bag:
        skipped = np.flatnonzero(~domain.has_place[: len(domain.symbols)]).tolist()
        ids = [*with_place[:1], skipped[0]]
    else:
        ids = [token for token in bag if token < len(domain.symbols)] or [0]
    return Fault(words or "the empty bag", tuple(ids))
