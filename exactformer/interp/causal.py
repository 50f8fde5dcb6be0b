"""The exact causal graph of a computation: which position at which iteration determines which.

A node is a token in the state: (iteration, position) of where it is written, with iteration 0 for
the tokens that were read. Values and operators are nodes; so is the value of each span that is
written. An edge leads to that value from every operator and operand that it is computed from.
Parentheses are no nodes: they decide on the edges. What is written depends on the layer:

    depth    every span, in the iteration in which it is among the deepest, at its operator
    log      a span in the iteration that its Strahler number says, at its operator. The spans in it
             that have the same number are composed in that iteration, and never written
    plain    the same, at its first token. A run of operators of one level is one span, and so is
             all that has parentheses of its own
    polish   as by the logarithm

The graph is a tree, so all that an intervention does is known: `effect` says what the answer
becomes when one node is set to anything else. It is found from the algebra's tables alone; the
model is not asked, and tests compare the two.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from exactformer.domains.algebra import CLOSE, FIRST_VALUE, OPEN, Algebra
from exactformer.domains.capabilities import require_capability
from exactformer.domains.climbing import Applied, climb
from exactformer.domains.data import expect, listed
from exactformer.domains.expression import EMPTY, Expression
from exactformer.domains.polish import fold
from exactformer.domains.strahler import Segment, enclosed, joined
from exactformer.model.iterations import Iterations, check_iterations


class Node(NamedTuple):
    """A token as it was written: at this position, after this iteration; 0 for the input."""

    iteration: int
    position: int


class Edge(NamedTuple):
    """An edge of the causal graph: `source` determines `target`."""

    source: Node
    target: Node


class Subexpression(NamedTuple):
    """A part of an expression with one value: a value that is read, an operator with its operands,
    or a pair of parentheses around one part. Its place is that of the value, the operator or the
    `(`.

    operands   places of the parts in it.
    value      its index.
    node       where it is written, unless the part around has the same iteration.
    first      its first position.
    last       its last position.
    """

    operands: tuple[int, ...]
    value: int
    node: Node
    first: int
    last: int


Subexpressions = dict[int, Subexpression]  # by their places; each comes after those in it


@dataclass(frozen=True)
class CausalGraph:
    """The causal graph of one expression.

    layer     name of the layer that it is about.
    parts     of the expression, also those whose values are never written.
    tokens    what stands at each node: a value or an operator.
    causes    of the value of each span that is written: all that it is computed from; where nothing
              is composed, its operator, then its operands in order.
    answer    the node of the answer.
    """

    expression: Expression
    layer: str
    parts: Subexpressions = field(repr=False)
    tokens: dict[Node, str]
    causes: dict[Node, tuple[Node, ...]]
    answer: Node

    @cached_property
    def edges(self) -> frozenset[Edge]:
        return frozenset(Edge(u, v) for u, v in self.target.items())

    @cached_property
    def target(self) -> dict[Node, Node]:
        """The one node that each node determines directly; the answer determines none."""
        return {u: v for v, causes in self.causes.items() for u in causes}

    def lifetime(self, node: Node) -> range:
        """The iterations after which the state holds the token, so that `cache[i, "X"]` shows
        it.
        """
        last = self.target[node].iteration if node in self.target else self.answer.iteration + 1
        return range(node.iteration, last)

    def ancestors(self, node: Node) -> frozenset[Node]:
        """All nodes with a path to this one. Nothing else can change it."""
        return frozenset(with_ancestors(node, self.causes)) - {node}

    @cached_property
    def effects(self) -> dict[Node, dict[str, str]]:
        """The answer for each token that a node can be set to, with everything it does not
        determine unchanged. A value may become any other value, an operator any with the same
        number of operands; in plain notation one of its own level, since others group differently.
        """
        algebra, values = self.expression.algebra, self.expression.algebra.values
        operators = {op.symbol: op for op in algebra.operators}
        after = {next(reversed(self.parts)): {value: value for value in values}}
        found: dict[Node, dict[str, str]] = {}
        for place, part in reversed(self.parts.items()):  # so the outer ones come first
            if part.node in self.tokens:
                found.setdefault(part.node, after[place])
            held, node = [self.parts[operand].value for operand in part.operands], Node(0, place)
            if (own := operators.get(self.tokens.get(node, ""))) is None:  # a value, or parentheses
                after |= dict.fromkeys(part.operands, after[place])
                continue
            level = _level(algebra, own.symbol, len(held))
            found[node] = {
                op.symbol: after[place][values[op(held)]]
                for op in algebra.operators
                if op.takes(len(held)) and _level(algebra, op.symbol, len(held)) == level
            }
            for i, operand in enumerate(part.operands):
                after[operand] = {
                    value: after[place][values[own([*held[:i], index, *held[i + 1 :]])]]
                    for index, value in enumerate(values)
                }
        return found

    @cached_property
    def decisive(self) -> frozenset[Node]:
        """The nodes of which some change, with all others unchanged, changes the answer."""
        return frozenset(
            node for node, effect in self.effects.items() if len({*effect.values()}) > 1
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data; a node is the list of its iteration and its position."""
        return {
            "expression": str(self.expression),
            "answer": list(self.answer),
            "nodes": [
                {
                    "node": list(node),
                    "token": token,
                    "until": self.lifetime(node).stop,
                    "effect": dict(self.effects[node]),
                }
                for node, token in self.tokens.items()
            ],
            "edges": [[list(u), list(v)] for u, v in self.target.items()],
        }


def with_ancestors(node: Node, causes: Mapping[Node, Iterable[Node]]) -> set[Node]:
    """The node, and all with a path to it."""
    found, waiting = {node}, [node]
    while waiting:
        new = [cause for cause in causes.get(waiting.pop(), ()) if cause not in found]
        found.update(new)
        waiting += new
    return found


def causal_graph(expression: Expression, iterations: Iterations = "depth") -> CausalGraph:
    """The causal graph of an expression, as the layer for these iterations evaluates it; in plain
    notation with the levels that are declared, and the same for both.
    """
    expect(expression, Expression, "an Expression, which parse makes of text")
    check_iterations(iterations)
    require_capability("causes", expression.domain, iterations)
    algebra, layer = expression.algebra, expression.domain.layer(iterations)
    if layer not in PARTS:
        raise ValueError(f"expected a layer with causal graphs, {listed([*PARTS])}, found {layer}")
    ids, parts = expression.positions.tolist(), PARTS[layer](expression)
    operators = {
        at: algebra.vocabulary[i] for at, i in enumerate(ids) if i >= algebra.first_operator
    }
    tokens = [(at, Node(0, at), symbol) for at, symbol in operators.items()]
    root = next(reversed(parts))
    within = {root: root}  # the part that is written and has each part in it, or is it
    causes: dict[int, list[Node]] = {}
    for place, part in reversed(parts.items()):
        own = within[place]
        if own == place:
            tokens.append((part.last, part.node, algebra.values[part.value]))
            causes[own] = []
        causes[own] += [Node(0, place)] if place in operators else []
        for operand in part.operands:
            composed = parts[operand].node.iteration == part.node.iteration
            within[operand] = own if composed else operand
            causes[own] += [] if composed else [parts[operand].node]
    return CausalGraph(
        expression,
        layer,
        parts,
        {node: token for _, node, token in sorted(tokens)},  # in the order in which they end
        {part.node: tuple(causes[at]) for at, part in parts.items() if causes.get(at)},
        parts[root].node,
    )


def _level(algebra: Algebra, symbol: str, operands: int) -> int:
    """The level of precedence of an operator's use; 0 if there are no levels."""
    return int(algebra.declared_levels[int(operands > 1), algebra.token_ids[symbol]])


def _parenthesized(
    expression: Expression, iteration: Callable[[list[int], int], int]
) -> Subexpressions:
    """The parts of an expression with parentheses around each span, whose iteration is found from
    those of its operands and from how many spans are around it.
    """
    algebra, parts = expression.algebra, {}
    enclosing: list[tuple[int, list[int], int]] = []  # spans that are still open
    ids = expression.positions.tolist()
    operator, operands, opened = -1, [], 0
    for position, token in enumerate(ids):
        if token == OPEN:
            enclosing.append((operator, operands, opened))
            operator, operands, opened = -1, [], position
        elif token == CLOSE:
            rule = algebra.operators[ids[operator] - algebra.first_operator]
            value = rule([parts[operand].value for operand in operands])
            numbers = [parts[operand].node.iteration for operand in operands]
            node = Node(iteration(numbers, len(enclosing)), operator)
            parts[operator] = Subexpression(tuple(operands), value, node, opened, position)
            place = operator
            operator, operands, opened = enclosing.pop()
            operands.append(place)
        elif token >= algebra.first_operator:
            operator = position
        elif token != EMPTY:
            parts[position] = _read(position, token)
            operands.append(position)
    return parts


def _read(place: int, token: int) -> Subexpression:
    return Subexpression((), token - FIRST_VALUE, Node(0, place), place, place)


def _by_depth(expression: Expression) -> Subexpressions:
    depth = expression.depth
    return _parenthesized(expression, lambda numbers, nesting: depth - nesting + 1)


def _by_logarithm(expression: Expression) -> Subexpressions:
    return _parenthesized(expression, lambda numbers, nesting: _number(numbers))


def _number(numbers: list[int]) -> int:
    """The Horton-Strahler number of a span, by those of its operands."""
    return max(1, max(numbers) + (numbers.count(max(numbers)) > 1))


def _by_precedence(expression: Expression) -> Subexpressions:
    algebra, ids = expression.algebra, expression.ids
    parts: Subexpressions = {}
    groups: dict[int, Segment] = {}
    in_run: set[int] = set()  # places of parts that belong to the run around
    values = iter(np.flatnonzero((ids >= FIRST_VALUE) & (ids < algebra.first_operator)).tolist())

    def read(token: int) -> int:
        place = next(values)
        parts[place], groups[place] = _read(place, token), Segment(0)
        return place

    def apply(applied: Applied, operands: list[int]) -> int:
        place, held = applied.place, [parts[operand] for operand in operands]
        in_run.update(o for o in operands if groups[o].level == applied.level)
        groups[place] = joined(applied, [groups[operand] for operand in operands])
        value = algebra.operators[applied.token - algebra.first_operator]([p.value for p in held])
        first = min(place, held[0].first)
        node = Node(groups[place].number, first)
        parts[place] = Subexpression(tuple(operands), value, node, first, held[-1].last)
        return place

    def enclose(inner: int) -> int:
        part = parts[inner]
        place = part.first - 1
        groups[place] = enclosed(groups[inner])
        node = Node(groups[place].number, place)
        parts[place] = Subexpression((inner,), part.value, node, place, part.last + 1)
        return place

    climb(algebra, ids.tolist(), read, apply, enclose)
    for part in reversed(parts.values()):
        for operand in in_run.intersection(part.operands):
            inner = parts[operand]
            parts[operand] = inner._replace(node=inner.node._replace(iteration=part.node.iteration))
    return parts


def _by_arity(expression: Expression) -> Subexpressions:
    algebra, ids, parts = expression.algebra, expression.ids.tolist(), {}

    def read(place: int) -> int:
        parts[place] = _read(place, ids[place])
        return place

    def apply(place: int, operands: list[int]) -> int:
        held = [parts[operand] for operand in operands]
        value = algebra.operators[ids[place] - algebra.first_operator]([p.value for p in held])
        node = Node(_number([part.node.iteration for part in held]), place)
        first, last = min(place, held[0].first), max(place, held[-1].last)
        parts[place] = Subexpression(tuple(operands), value, node, first, last)
        return place

    fold(algebra, ids, read, apply)
    return parts


PARTS: dict[str, Callable[[Expression], Subexpressions]] = {  # by layer
    "depth": _by_depth,
    "log": _by_logarithm,
    "plain": _by_precedence,
    "polish": _by_arity,
}
