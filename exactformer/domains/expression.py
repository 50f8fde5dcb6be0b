"""An expression: a flat array of token ids, so a nesting a million deep is an ordinary input.

Only the readers of text and the samplers make one; holding one means that it is well formed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.algebra import CLOSE, FIRST_VALUE, OPEN, Algebra
from exactformer.domains.belonging import OfDomain
from exactformer.domains.domain import Domain
from exactformer.domains.symbols import EMPTY as EMPTY


@dataclass(frozen=True, eq=False)
class Expression(OfDomain):
    """A well-formed text of a domain, as its token ids in the order of the text."""

    domain: Domain
    ids: NDArray[np.int16]

    def __post_init__(self) -> None:
        self.ids.setflags(write=False)

    def __len__(self) -> int:
        return len(self.ids)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Expression):
            return NotImplemented
        return self.domain == other.domain and np.array_equal(self.ids, other.ids)

    def __hash__(self) -> int:
        return hash((self.domain, self.ids.tobytes()))

    def __str__(self) -> str:
        """Canonical text: without spaces if that reads back unchanged, else with spaces."""
        between = "" if self.domain.packs else " "
        symbols = self.domain.vocabulary
        return between.join([symbols[i] for i in self.ids.tolist()])

    def __repr__(self) -> str:
        text = str(self)
        return f"Expression({self.domain.name}, {text if len(text) < 80 else text[:76] + ' ...'})"

    @cached_property
    def nesting(self) -> NDArray[np.int32]:
        """Number of open parentheses after each token."""
        step = (self.ids == OPEN).astype(np.int8) - (self.ids == CLOSE).astype(np.int8)
        return np.cumsum(step, dtype=np.int32)

    @cached_property
    def parenthesized(self) -> "Expression":
        """This expression with all parentheses that precedence or arities imply, and no others: in
        infix notation if this is plain, in prefix notation if it is Polish or reverse Polish, else
        the expression itself.
        """
        ids = self.algebra.notation.tree(self)
        return self if ids is self.ids else Expression(self.algebra.parenthesized, ids)

    @property
    def depth(self) -> int:
        """Depth of the nesting of spans; where not all parentheses are written, that of the fully
        parenthesized form. It is 0 where texts are not nested.
        """
        if self.domain.token_type(OPEN) != "parenthesis":
            return 0
        tree = self.parenthesized if self.domain.operator_counts else self
        return int(tree.nesting.max())

    @property
    def widest(self) -> int:
        """The largest number of operands of any span."""
        tree = self.parenthesized
        opens, closes = tree.ids == OPEN, tree.ids == CLOSE
        operands = opens | ((tree.ids >= FIRST_VALUE) & (tree.ids < self.algebra.first_operator))
        level = tree.nesting - opens + closes  # nesting of the span that a token belongs to
        operands &= level > 0  # the whole expression is no operand
        order = np.argsort(level, kind="stable")  # now spans come one after another, each with
        span = np.cumsum(closes[order]) - closes[order]  # its `)` as its last token
        return int(np.bincount(span, weights=operands[order]).max())

    @property
    def root(self) -> int:
        """Index in `positions` of the outermost operator, at which the value appears; 0 for a bare
        value.
        """
        place = self.algebra.notation.root(self)
        empty = self.algebra.empty_after_close and np.count_nonzero(self.ids[:place] == CLOSE)
        return place + int(empty)

    @property
    def positions(self) -> NDArray[np.int16]:
        """Token ids that the transformer reads: in prefix notation, EMPTY follows each `)`."""
        return self.domain.positions(self.ids, np.array([len(self)]))[0]


def span_tokens(algebra: Algebra, operator: int, operands: Sequence[int]) -> list[int]:
    """The tokens of a span of depth 1 with its parentheses, as weights are shown it."""
    return [OPEN, *algebra.notation.arrange(operator, operands), CLOSE]


def span_expression(algebra: Algebra, operator: int, operands: Sequence[int]) -> "Expression":
    """The expression that is one span of depth 1; in plain notation with its parentheses."""
    span = np.array(span_tokens(algebra, operator, operands), dtype=np.int16)
    return Expression(algebra, algebra.notation.write(algebra, span, lambda size: span == OPEN))
