"""Expressions to train and test on: all of a depth, or random ones of an exact depth.

The distribution of `draw`. An expression of depth 0 is a uniformly drawn value. For depth d the
operator is uniform, then its number of operands is uniform among its arities; one operand, in a
uniformly drawn place, has depth d-1; every other one is a value outright with probability `leaf`,
and otherwise has a depth uniform in 0..d-1. With no `leaf` given it is max(0.2, 1 - 1/s), where s
is the mean number of other operands (an operator that takes any number of operands is drawn with
up to WIDEST): that comes close to the paper's mean token counts by depth
(within about a tenth on average for Boolean and arithmetic), and keeps wide operators from
exploding. `exactformer reproduce tokens` prints ours beside the paper's.

In plain notation the same trees are written without the parentheses that precedence makes
unnecessary, but for some: each operand, and the whole, that needs none has a pair with probability
`parentheses`.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.algebra import AN_ALGEBRA, CLOSE, FIRST_VALUE, OPEN, Algebra
from exactformer.domains.capabilities import require_capability
from exactformer.domains.data import expect
from exactformer.domains.domain import Domain
from exactformer.domains.expression import Expression
from exactformer.domains.growth import Growth
from exactformer.domains.integer_sampling import (
    draw_integers,
    draw_little_endian,
    draw_square_roots,
    tokens_of_integers,
)
from exactformer.domains.integers import Integers
from exactformer.domains.little_endian import LittleEndian
from exactformer.domains.machine_sampling import draw_spans, draw_texts, tokens_of_spans
from exactformer.domains.machines import Machine
from exactformer.domains.rearrangement_sampling import draw_rearranged
from exactformer.domains.rearrangements import Rearrangement
from exactformer.domains.reference import evaluate
from exactformer.domains.span_machines import SpanMachine
from exactformer.domains.span_sampling import arities_of, span
from exactformer.domains.square_roots import SquareRoot

Ints = NDArray[np.int64]

MOST_EXPRESSIONS = 5_000_000  # expressions of one draw: each is an object of its own
DEEPEST = 100_000  # depth of one draw: each depth takes array operations of its own
MOST_TOKENS = 2e8  # tokens of one draw; trees grow fast with depth, and these fill a few gigabytes
PARENTHESES = 0.2  # share of the operands that have a pair without need, in plain notation


def enumerate_depth(algebra: Algebra, depth: int) -> Iterator[Expression]:
    """Every expression of exactly this depth, once each, in a fixed order, lazily; in plain
    notation, without unnecessary parentheses.
    """
    expect(algebra, Algebra, AN_ALGEBRA)
    _check(depth)
    for operator in algebra.operators:
        if depth and operator.unbounded:
            raise ValueError(
                f"operator {operator.symbol!r} takes {operator.counts} operands: "
                f"there is no end of expressions of depth {depth}"
            )
    write = partial(algebra.notation.write, algebra, surplus=partial(np.zeros, dtype=bool))
    for tokens in _token_tuples(algebra, depth):
        yield Expression(algebra, write(np.array(tokens, dtype=np.int16)))


def _token_tuples(algebra: Algebra, depth: int) -> Iterator[tuple[int, ...]]:
    if depth == 0:
        yield from ((token,) for token in algebra.value_ids)
        return
    shallower = [tokens for d in range(depth - 1) for tokens in _token_tuples(algebra, d)]
    deepest = list(_token_tuples(algebra, depth - 1))
    n_shallower = len(shallower)
    pool = shallower + deepest
    for token, operator in enumerate(algebra.operators, start=algebra.first_operator):
        for arity in operator.arities:
            for choice in product(range(len(pool)), repeat=arity):
                if max(choice) >= n_shallower:
                    yield span(algebra, token, [pool[i] for i in choice])


def problems_of_depth(algebra: Algebra, depth: int) -> int:
    """Number of expressions of exactly this depth."""
    shallower, up_to = 0, len(algebra.values)
    for _ in range(depth):
        arities = [arity for operator in algebra.operators for arity in operator.arities]
        deeper = sum(up_to**arity - shallower**arity for arity in arities)
        shallower, up_to = up_to, up_to + deeper
    return up_to - shallower


def enumerate_length(domain: Domain, length: int) -> Iterator[Expression]:
    """Every text of exactly this many tokens, once each, in a fixed order, lazily."""
    for tokens in domain.every(length):
        yield Expression(domain, np.array(tokens, dtype=np.int16))


def draw(
    algebra: Algebra,
    depth: int,
    count: int,
    rng: np.random.Generator,
    leaf: float | None = None,
    parentheses: float | None = None,
) -> list[Expression]:
    """Draw `count` random expressions of exactly this depth; the module's docstring has the law.

    leaf          the probability that an operand is a value outright; without it, one that comes
                  close to the paper's lengths.
    parentheses   in plain notation, the probability of a pair where none is needed; without it,
                  PARENTHESES.

    All of them grow at once: the trees from the root down, one array operation for each depth,
    then their sizes from the leaves up, then the tokens' positions from the root down again.
    """
    _expect(algebra, rng)
    leaf = default_leaf(algebra) if leaf is None else leaf
    _check(depth, count, leaf, parentheses)
    if parentheses is not None:
        require_capability("parentheses", algebra)
    if count == 0:
        return []
    _require_feasible(algebra, depth, count, leaf)

    # From the root down. Nodes are numbered as they are drawn: the roots are 0 to count-1.
    waiting: list[list[Ints]] = [[] for _ in range(depth + 1)]
    waiting[depth].append(np.arange(count))
    n_nodes = count
    # Nodes of one depth, operator and arity: the operator's id, the nodes, a row of operands each.
    groups: list[tuple[int, Ints, Ints]] = []
    for level in range(depth, 0, -1):
        nodes = np.concatenate(waiting[level])
        operators = rng.integers(len(algebra.operators), size=len(nodes))
        for o, operator in enumerate(algebra.operators):
            of_operator = nodes[operators == o]
            arities = arities_of(operator)
            which = rng.integers(len(arities), size=len(of_operator))
            for a, arity in enumerate(arities):
                members = of_operator[which == a]
                depths = rng.integers(level, size=(len(members), arity))
                depths[rng.random(depths.shape) < leaf] = 0
                depths[np.arange(len(members)), rng.integers(arity, size=len(members))] = level - 1
                operands = n_nodes + np.arange(depths.size).reshape(depths.shape)
                n_nodes += depths.size
                groups.append((algebra.first_operator + o, members, operands))
                for shallower in np.unique(depths):
                    waiting[shallower].append(operands[depths == shallower])
    leaves = np.concatenate(waiting[0])

    # From the leaves up: how many tokens each node is written with.
    size = np.ones(n_nodes, dtype=np.int64)
    for _, nodes, operands in reversed(groups):
        size[nodes] = 3 + size[operands].sum(axis=1)

    # From the root down: where each node's tokens start.
    bounds = np.concatenate([[0], np.cumsum(size[:count])])
    start = np.zeros(n_nodes, dtype=np.int64)
    start[:count] = bounds[:-1]
    tokens = np.empty(bounds[-1], dtype=np.int16)
    for operator, nodes, operands in groups:
        place = start[nodes]
        tokens[place] = OPEN
        tokens[place + size[nodes] - 1] = CLOSE
        place = place + 1
        for part in algebra.notation.arrange(None, list(operands.T)):
            if part is None:
                tokens[place] = operator
                place = place + 1
            else:
                start[part] = place
                place = place + size[part]
    tokens[start[leaves]] = rng.integers(FIRST_VALUE, algebra.first_operator, size=len(leaves))

    def surplus(size: int) -> NDArray[np.bool_]:
        return rng.random(size) < (PARENTHESES if parentheses is None else parentheses)

    trees = [part.copy() for part in np.split(tokens, bounds[1:-1])]
    return [Expression(algebra, algebra.notation.write(algebra, ids, surplus)) for ids in trees]


def draw_balanced(
    algebra: Domain,
    depth: int,
    count: int,
    rng: np.random.Generator,
    leaf: float | None = None,
    parentheses: float | None = None,
) -> list[Expression]:
    """Like the draw of the domain's kind, but each value is the answer equally often, to within
    one.

    Draws are rejected once their value's share is full, so within a class the law is unchanged.
    """
    expect(algebra, Domain, AN_ALGEBRA)
    _expect_generator(rng)
    _check(depth, count, leaf, parentheses)
    law = DRAWN[algebra.kind]
    if not law.finite:
        raise ValueError(f"answers of {algebra.name!r} are without end: they cannot be balanced")
    given = {"leaf": leaf, "parentheses": parentheses}
    given = {name: share for name, share in given.items() if share is not None}
    values = [symbol for symbol in algebra.vocabulary if symbol in algebra.answer_symbols]
    quota = dict.fromkeys(values, count // len(values))
    for value in rng.permutation(values)[: count % len(values)]:
        quota[str(value)] += 1
    kept: list[Expression] = []
    barren = 0
    while len(kept) < count:
        before = len(kept)
        for expression in law.draw(algebra, depth, max(count, 64), rng, **given):
            value = evaluate(expression)
            if quota[value]:
                quota[value] -= 1
                kept.append(expression)
        barren = 0 if len(kept) > before else barren + 1
        if barren == 50:
            missing = " ".join(value for value, need in quota.items() if need)
            raise ValueError(f"no expression of depth {depth} drawn with the value {missing}")
    order = rng.permutation(count)
    return [kept[i] for i in order]


def default_leaf(algebra: Algebra) -> float:
    others = _others(algebra)
    return max(0.2, 1 - 1 / others) if others else 0.2


def mean_tokens(algebra: Algebra, depth: int, leaf: float | None = None) -> list[float]:
    """Expected number of tokens of a drawn expression, for each depth from 0 to `depth`."""
    leaf = default_leaf(algebra) if leaf is None else leaf
    _check(depth, leaf=leaf)
    return Growth(1, 3, _others(algebra), leaf).tokens(depth)


def _others(algebra: Algebra) -> float:
    """The mean number of operands besides the one that decides the depth."""
    return float(np.mean([np.mean(arities_of(op)) - 1 for op in algebra.operators]))


def _require_feasible(algebra: Algebra, depth: int, count: int, leaf: float) -> None:
    """Raise a ValueError if a draw would fill the memory or take hours."""
    if count > MOST_EXPRESSIONS or depth > DEEPEST:
        raise ValueError(
            f"{count} expressions of depth {depth} are more than can be drawn at once: "
            f"expected at most {MOST_EXPRESSIONS:,}, of depth {DEEPEST:,} at most"
        )
    if count * mean_tokens(algebra, depth, leaf)[depth] > MOST_TOKENS:
        raise ValueError(
            f"{count} expressions of depth {depth} have more than the {MOST_TOKENS:.0e} "
            f"tokens in all that can be drawn at once"
        )


def _expect(algebra: Algebra, rng: np.random.Generator) -> None:
    expect(algebra, Algebra, AN_ALGEBRA)
    _expect_generator(rng)


def _expect_generator(rng: np.random.Generator) -> None:
    expect(rng, np.random.Generator, "a generator, such as numpy.random.default_rng(0), as rng")


def _check(
    depth: int, count: int = 0, leaf: float | None = None, parentheses: float | None = None
) -> None:
    for name, number in {"depth": depth, "count": count}.items():
        expect(number, (int, np.integer), f"a whole number for the {name}")
        if number < 0:
            raise ValueError(f"expected a {name} of 0 or more, found {number}")
    for name, share in {"leaf": leaf, "parentheses": parentheses}.items():
        if share is not None and not 0 <= share <= 1:
            raise ValueError(f"expected a probability `{name}` from 0 to 1, found {share}")


def require_drawable(domain: Domain, size: int, count: int) -> None:
    """Raise a ValueError if texts of this depth or length have too many tokens to be drawn."""
    law = DRAWN[domain.kind]
    if count * law.tokens(domain, size) > MOST_TOKENS:
        raise ValueError(
            f"{count} expressions of {law.by} {size} have more than the {MOST_TOKENS:.0e} "
            f"tokens in all that can be drawn at once"
        )


class Drawn(NamedTuple):
    """How random texts of a kind of domain are drawn.

    by       what is given of a text: its depth or its length.
    usual    that of a sample, unless it is given.
    larger   those that are tried where no short text is a counterexample.
    draw     from the domain, that number, a count and a generator.
    tokens   how many tokens a text has on average, from the domain and that number.
    finite   whether there is an end of answers.
    """

    by: Literal["depth", "length"]
    usual: int
    larger: Sequence[int]
    draw: Callable[..., list[Expression]]
    tokens: Callable[[Any, int], float]
    finite: bool = True


def _by_length(domain: Domain, length: int) -> float:
    return length


DRAWN: dict[str, Drawn] = {  # by the kind of domain
    Algebra.kind: Drawn("depth", 2, range(3, 9), draw, lambda *asked: mean_tokens(*asked)[-1]),
    # The check of machines names texts that are wrong.
    Machine.kind: Drawn("length", 20, (), draw_texts, _by_length, False),
    SpanMachine.kind: Drawn("depth", 2, (), draw_spans, tokens_of_spans),
    Integers.kind: Drawn("depth", 2, (2, 3), draw_integers, tokens_of_integers, False),
    LittleEndian.kind: Drawn("length", 20, (), draw_little_endian, _by_length, False),
    Rearrangement.kind: Drawn("length", 20, (), draw_rearranged, _by_length, False),
    SquareRoot.kind: Drawn("length", 20, (), draw_square_roots, _by_length, False),
}
