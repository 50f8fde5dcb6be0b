"""The automaton of Polish and reverse Polish notation: that of spans whose ends are counted.

The parser reads the text, and reports its errors; then the parentheses that arities stand for are
written out in one pass with a stack, and the tokens are read as those of any other notation.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.algebra import Algebra
from exactformer.domains.expression import Expression
from exactformer.domains.polish import arities_by_token
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

    def bracketed(
        self, tokens: NDArray[np.integer], ends: NDArray[np.integer]
    ) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
        from exactformer.engine.brackets import write_brackets  # numba takes a while to import

        arities = np.array(arities_by_token(self.algebra), dtype=np.int64)
        sizes = np.cumsum(1 + 2 * (arities[tokens] > 0))
        new_ends = np.append(0, sizes)[ends]
        written = np.empty(sizes[-1] if len(sizes) else 0, dtype=np.int16)
        longest = int(np.diff(ends, prepend=0).max(initial=0))
        space = np.empty(longest, dtype=np.int64), np.empty(longest, dtype=np.int16)
        write_brackets(
            tokens, ends, arities, self.algebra.notation.operators_first, written, new_ends, *space
        )
        return written, new_ends
