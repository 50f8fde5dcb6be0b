"""The exact causal graph of a computation: which position at which iteration determines which.

A node is a token in the state: (iteration, position) of where it is written, with iteration 0 for
the tokens that were read. Values and operators are nodes; so is the value of each span, which
replaces its operator at the iteration in which the span is among the deepest. An edge leads to that
value from the operator and from each operand. Parentheses are no nodes: they decide on the edges.

The graph is a tree, so all that an intervention does is known: `effect` says what the answer
becomes when one node is set to anything else. It is found from the algebra's tables alone; the
model is not asked, and tests compare the two.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from exactformer.domains.algebra import CLOSE, OPEN
from exactformer.domains.data import expect
from exactformer.domains.expression import EMPTY, Expression


class Node(NamedTuple):
    """A token as it was written: at this position, after this iteration; 0 for the input."""

    iteration: int
    position: int


class Edge(NamedTuple):
    """An edge of the causal graph: `source` determines `target`."""

    source: Node
    target: Node


@dataclass(frozen=True)
class CausalGraph:
    """The causal graph of one expression.

    tokens    what stands at each node: a value or an operator.
    causes    of the value of each span: its operator, then its operands in order.
    answer    the node of the answer.
    """

    expression: Expression
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
        number of operands.
        """
        values, operators = self.expression.algebra.values, self.expression.algebra.operators
        symbols = {op.symbol: op for op in operators}
        index = {value: i for i, value in enumerate(values)}
        found = {self.answer: {value: value for value in values}}
        for node in reversed(self.causes):  # a span comes after those in it
            operator, *operands = self.causes[node]
            held = [index[self.tokens[operand]] for operand in operands]
            after = found[node]
            fits = {symbol: op for symbol, op in symbols.items() if op.takes(len(held))}
            found[operator] = {symbol: after[values[op(held)]] for symbol, op in fits.items()}
            own = symbols[self.tokens[operator]]
            for i, operand in enumerate(operands):
                found[operand] = {
                    value: after[values[own([*held[:i], place, *held[i + 1 :]])]]
                    for value, place in index.items()
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


def causal_graph(expression: Expression) -> CausalGraph:
    """The causal graph of an expression, as the paper's layer evaluates it: deepest spans first."""
    expect(expression, Expression, "an Expression, which parse makes of text")
    expression.algebra.require_parentheses("a causal graph")
    algebra, depth = expression.algebra, expression.depth
    index = {value: i for i, value in enumerate(algebra.values)}
    tokens: dict[Node, str] = {}
    causes: dict[Node, tuple[Node, ...]] = {}
    enclosing: list[tuple[Node | None, list[Node]]] = []  # spans that are still open
    operator: Node | None = None
    operands: list[Node] = []
    for position, token in enumerate(expression.positions.tolist()):
        if token == EMPTY:
            continue
        if token == OPEN:
            enclosing.append((operator, operands))
            operator, operands = None, []
        elif token == CLOSE:
            assert operator is not None, "an Expression has an operator in each span"
            rule = algebra.operators[algebra.token_ids[tokens[operator]] - algebra.first_operator]
            node = Node(depth - len(enclosing) + 1, operator.position)
            tokens[node] = algebra.values[rule([index[tokens[operand]] for operand in operands])]
            causes[node] = (operator, *operands)
            operator, operands = enclosing.pop()
            operands.append(node)
        else:
            node = Node(0, position)
            tokens[node] = algebra.vocabulary[token]
            if token < algebra.first_operator:
                operands.append(node)
            else:
                operator = node
    return CausalGraph(expression, tokens, causes, operands[0])
