"""The automaton of plain notation: its state of a group determines all that can follow.

Of a group that is being read, what is left to do is one map of values for each level: `4 + 2 * _`
waits with x -> 4 + x on the level of `+`, and with x -> 2 * x on that of `*`. Nothing to do is the
identity. Operators from the right and prefix operators pile up on their level, as maps that are
composed. So a state is those maps, and after an operand its value; or, before one, how tightly the
operator before it binds. There are few of them: 38 for Boolean formulas, 422 modulo ten.

The levels are the declared ones. Certified weights group as these do, or otherwise without a
difference.
"""

from typing import NamedTuple

import numpy as np

from exactformer.domains.algebra import FIRST_VALUE, Algebra
from exactformer.domains.grammar import START, TOP
from exactformer.domains.plain_grammar import LEFT, PREFIX, PlainGrammar
from exactformer.engine.automaton import REFUSED, PlainAutomaton, SpanValues

MOST_STATES = 20_000  # the tables then take some megabytes

Map = tuple[int, ...]  # the index of a value for each


class GroupState(NamedTuple):
    """The work that is left in a group: the grammar's state, the map that waits on each level, and
    the last operand if one has just ended; else `level` is the effective level of the operator
    before.
    """

    grammar: int
    waiting: tuple[Map, ...]
    value: int | None = None
    level: int = 0


def plain_automaton(algebra: Algebra, span_values: SpanValues) -> PlainAutomaton:
    """All states that a text can come to, in the order in which they are found."""
    builder = _Builder(algebra, span_values)
    n_values = len(algebra.values)
    nothing = (builder.identity,) * len(algebra.precedence)
    top = GroupState(TOP, nothing)
    states = [
        top,
        *(builder.after_value(top, v) for v in range(n_values)),
        GroupState(START, nothing),
    ]
    numbers = {state: number for number, state in enumerate(states)}
    step: list[list[int]] = []
    for state in states:  # states are added while they are gone through
        row = [REFUSED] * len(algebra.vocabulary)
        for token, after in builder.steps(state):
            if after not in numbers:
                numbers[after] = len(states)
                states.append(after)
            row[token] = numbers[after]
        step.append(row)
        if len(states) > MOST_STATES:
            raise ValueError(
                f"plain notation of {algebra.name!r} takes more than the {MOST_STATES} states of "
                f"the fast engine: use --engine model"
            )
    results = [builder.result(state) for state in states]
    grammar = np.array([state.grammar for state in states], dtype=np.int32)
    complete, ends = np.array(builder.grammar.complete), np.array(builder.grammar.ends)
    return PlainAutomaton(
        np.array(step, dtype=np.int32),
        np.where(complete[grammar], results, REFUSED).astype(np.int32),
        grammar,
        n_values,
        np.where(ends[grammar], results, REFUSED).astype(np.int32),
    )


class _Builder:
    def __init__(self, algebra: Algebra, span_values: SpanValues) -> None:
        self.algebra, self.grammar = algebra, PlainGrammar(algebra)
        self.identity: Map = tuple(range(len(algebra.values)))
        self.prefix_level, self.binary_level = algebra.declared_levels.tolist()
        self.directions = algebra.declared_directions.tolist()
        n = len(algebra.values)
        one = np.arange(n)[:, None]
        two = np.indices((n, n)).reshape(2, -1).T
        self.prefix_map: dict[int, Map] = {}
        self.binary_maps: dict[int, list[Map]] = {}  # by the left operand
        for token in algebra.operator_ids:
            if self.prefix_level[token]:
                self.prefix_map[token] = tuple(span_values(token, one).tolist())
            if self.binary_level[token]:
                rows = span_values(token, two).reshape(n, n)
                self.binary_maps[token] = [tuple(row) for row in rows.tolist()]

    def steps(self, state: GroupState) -> list[tuple[int, GroupState]]:
        """Each token that may follow, other than parentheses, with the state after it."""
        operators = self.grammar.after_operator[state.grammar]
        if state.value is None:
            values = [(FIRST_VALUE + v, self.after_value(state, v)) for v in self.identity]
            return values + [(t, self.after_prefix(state, t, g)) for t, g in operators.items()]
        return [(t, self.after_binary(state, t, g)) for t, g in operators.items()]

    def after_value(self, state: GroupState, value: int) -> GroupState:
        """The state after a value. Maps that wait on the tightest levels are applied at once, as
        far as no operator can come between, so that there are fewer states.
        """
        waiting = list(state.waiting)
        for level in range(len(waiting), 0, -1):
            if self.directions[level] not in (LEFT, PREFIX):
                break
            value, waiting[level - 1] = waiting[level - 1][value], self.identity
            if self.directions[level] == LEFT:
                break
        return GroupState(self.grammar.after_operand[state.grammar], tuple(waiting), value)

    def after_prefix(self, state: GroupState, token: int, grammar: int) -> GroupState:
        """The state after a prefix operator; right behind a tighter one, it binds as that does."""
        level = max(self.prefix_level[token], state.level)
        waiting = self._then(state.waiting, level, self.prefix_map[token])
        return GroupState(grammar, waiting, level=level)

    def after_binary(self, state: GroupState, token: int, grammar: int) -> GroupState:
        """The state after a binary operator: all tighter maps are applied, and on a level that
        groups from the left the map that waits there.
        """
        level = self.binary_level[token]
        done = level - 1 if self.directions[level] == LEFT else level
        left = self._value(state, done)
        waiting = state.waiting[:done] + (self.identity,) * (len(state.waiting) - done)
        waiting = self._then(waiting, level, self.binary_maps[token][left])
        return GroupState(grammar, waiting, level=level)

    def result(self, state: GroupState) -> int:
        """The value of the group if it ends here, or REFUSED."""
        return REFUSED if state.value is None else self._value(state, 0)

    def _value(self, state: GroupState, done: int) -> int:
        """The last operand after the maps that wait on the levels above `done`."""
        value = state.value
        assert value is not None
        for waiting in reversed(state.waiting[done:]):
            value = waiting[value]
        return value

    def _then(self, waiting: tuple[Map, ...], level: int, inner: Map) -> tuple[Map, ...]:
        """Compose a map with the one that waits on a level; `inner` is applied first."""
        composed = tuple(waiting[level - 1][value] for value in inner)
        return (*waiting[: level - 1], composed, *waiting[level:])
