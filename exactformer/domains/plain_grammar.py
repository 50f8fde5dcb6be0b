"""The grammar of plain notation: precedence groups operators; parentheses are optional.

With levels 1 to K-1 from the loosest on, a text is E_1, and

    E_K -> value | ( E_1 )
    E_l -> E_(l+1) | E_l op E_(l+1)       for a level that groups from the left
    E_l -> E_(l+1) | E_(l+1) op R_l       from the right
    E_l -> E_(l+1) | op R_l               of prefix operators
    R_l -> E_l | op R_l                   for a prefix op of a looser level than l, unless a binary
                                          level lies between the two

So `2 ** -1` may be written although `-` is looser than `**`, and Python's `2 * not x` may not. To
say whether a text is of this grammar it is enough to look at neighbours: a prefix operator is
refused directly behind a tighter operator that groups from the left, or behind any tighter one if a
binary level lies between the two. Everything else is only that operands and operators alternate.
So a state of an open group is whether an operand has just ended and, if not, the level of the
operator before. Groups have states of their own, for a text ends where none is open.
"""

from typing import TYPE_CHECKING

from exactformer.domains.grammar import CLOSED, DONE, START, TOP, Grammar
from exactformer.domains.symbols import CLOSE

if TYPE_CHECKING:
    from exactformer.domains.algebra import Algebra

LEFT, PREFIX, RIGHT = -1, 0, 1  # as in `Algebra.declared_directions`


def may_follow(algebra: "Algebra", level: int, before: int) -> bool:
    """Whether a prefix operator of `level` may directly follow an operator of level `before`, or no
    operator if that is 0.
    """
    directions = algebra.declared_directions
    if level >= before:
        return True
    return directions[before] != LEFT and not (directions[level + 1 : before] != PREFIX).any()


class PlainGrammar(Grammar):
    """The automaton of plain notation. It has states before an operand, by the level of the
    operator before it (0 if there is none), and a state after an operand; each for the whole text
    and for a group in parentheses.
    """

    def __init__(self, algebra: "Algebra") -> None:
        super().__init__(algebra)
        prefix, binary = (
            {token: int(level) for token, level in enumerate(row) if level}
            for row in algebra.declared_levels
        )
        size = len(algebra.precedence) + 1
        after = {TOP: START + 1, START: START + 1 + size}  # after an operand, by group

        def before(group: int, level: int) -> int:
            """The state before an operand and after an operator of this level."""
            return after[group] + level if level else group

        states: dict[int, tuple[int, dict[int, int]]] = {DONE: (CLOSED, {})}  # not used here
        for group in after:
            operators = {token: before(group, level) for token, level in binary.items()}
            states[after[group]] = (CLOSED, operators)
            for level in range(size):
                operators = {
                    token: before(group, own)
                    for token, own in prefix.items()
                    if may_follow(algebra, own, level)
                }
                states[before(group, level)] = (after[group], operators)
        for state, (operand, operators) in sorted(states.items()):
            self._add(operand, operators, complete=state == after[START], ends=state == after[TOP])

    def _operators(self, state: int) -> str:
        return "an operator" if self.after_operand[state] == CLOSED else "a prefix operator"

    def _reason(self, state: int, token: int | None) -> str | None:
        if token is None:
            return None
        symbol, first = self.algebra.vocabulary[token], self.algebra.first_operator
        if self.after_operand[state] == CLOSED:
            if token == CLOSE:
                return "no parenthesis is open"
            if token < first:
                return "no operator between two operands"
            return f"{symbol} stands before its operand"
        if token == CLOSE:
            at_start = {TOP: "no parenthesis is open", START: "empty parentheses"}
            return at_start.get(state, "the operator before it has no operand after it")
        if self.algebra.declared_levels[0, token]:
            return f"{symbol} binds more loosely than the operator before it: put it in parentheses"
        return f"{symbol} has no operand before it"
