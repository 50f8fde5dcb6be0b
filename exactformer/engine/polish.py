"""The automaton of Polish and reverse Polish notation: that of spans whose ends are counted.

The parser reads the text, and reports its errors; then the parentheses that arities stand for are
written out (`brackets.py`), and the tokens are read as those of any other notation.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from exactformer.domains.algebra import Algebra
from exactformer.domains.expression import Expression
from exactformer.engine.automaton import SpanAutomaton


@dataclass(frozen=True)
class PolishAutomaton(SpanAutomaton):
    """The automaton of an algebra's spans `( op a b ... )`, for texts without their parentheses."""

    algebra: Algebra
    reads_text = False

    def run(self, ids: Iterable[int]) -> int | None:
        tokens = [*ids]
        if self.algebra.grammar.first_error(tokens) is not None:
            return None
        text = Expression(self.algebra, np.array(tokens, dtype=np.int16))
        return super().run(text.parenthesized.ids.tolist())
