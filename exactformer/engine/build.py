"""Builds the automaton of an algebra from the values of its spans, which the caller supplies.

The grammar says which tokens may stand where; a finished span has the value that `span_values`
gives. Certified weights give it by being run (`read_off.py`, which needs torch), the algebra by its
own tables. Both give the same automaton, array by array: the certificate proves that the weights
give every case of every operator the algebra's value, and nothing enters here but these values, the
grammar, the declared levels and whether the order of operands matters. So where weights are known
to be certified, the algebra is enough. There is no torch in here.
"""

from collections.abc import Callable
from functools import lru_cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.algebra import FIRST_VALUE, Algebra
from exactformer.domains.belonging import algebra_of
from exactformer.domains.bounds import MOST_CASES
from exactformer.domains.domain import Domain
from exactformer.domains.grammar import DONE
from exactformer.domains.grammar import START as SPAN_START
from exactformer.domains.grammar import TOP as GRAMMAR_TOP
from exactformer.domains.rules import count_keys, operand_keys
from exactformer.domains.span_grammar import OpenSpan, SpanGrammar
from exactformer.engine.automaton import REFUSED, TOP, Keys, SpanAutomaton, SpanValues
from exactformer.engine.plain import plain_automaton
from exactformer.engine.polish import PolishAutomaton

MOST_KEYS = MOST_CASES  # of one operator


def build_automaton(domain: Domain, span_values: SpanValues) -> SpanAutomaton:
    """The automaton of a domain whose spans have these values."""
    if not has_tables(domain):
        raise ValueError(f"the fast engine has no tables for {domain.name!r}: use --engine model")
    return AUTOMATA[domain.layer("depth")](algebra_of(domain), span_values)


def has_tables(domain: Domain) -> bool:
    return domain.layer("depth") in AUTOMATA


def algebra_values(algebra: Algebra) -> SpanValues:
    """The values of spans by the algebra's own tables, which are those of certified weights."""

    def span_values(operator: int, keys: Keys) -> NDArray[np.int32]:
        found = algebra.operators[operator - algebra.first_operator]
        rows = keys if found.ordered else np.sort(keys, axis=1)  # as its table is keyed
        return np.array([found.table[tuple(row)] for row in rows.tolist()], dtype=np.int32)

    return span_values


class _Builder:
    """States are pairs of a grammar state and the operands read so far, merged where nothing that
    follows can tell them apart.
    """

    def __init__(self, algebra: Algebra, span_values: SpanValues) -> None:
        self.algebra, self.span_values = algebra, span_values
        self.grammar = SpanGrammar(algebra)

    def build(self) -> SpanAutomaton:
        n_values = len(self.algebra.values)
        first = 1 + n_values
        # Of each grammar state, by number of the key.
        self.states: dict[int, NDArray[np.int32]] = {}
        # Later grammar states come after earlier ones, so that those a state leads to are known.
        # START goes last: it has one state, which gets the number kept free for it.
        self.steps = [np.full((first + 1, len(self.algebra.vocabulary)), REFUSED, dtype=np.int32)]
        self.values = [np.full(first + 1, REFUSED, dtype=np.int32)]
        self.grammar_states = [GRAMMAR_TOP] * (first + 1)
        for g in reversed(range(SPAN_START, len(self.grammar.spans))):
            span = self._span(g)
            most = span.read
            if self.grammar.after_operand[g] == g:  # any number: as many as there is a table for
                while self._fits(span.operator, most + 1):
                    most += 1
            for read in range(most, span.read - 1, -1):
                self._merge(g, read)
        step, value = np.concatenate(self.steps), np.concatenate(self.values)
        grammar = np.array(self.grammar_states, dtype=np.int32)
        grammar[1:first] = DONE
        step[TOP, self.algebra.value_ids] = 1 + np.arange(n_values)
        last = len(step) - 1  # START, as it was merged last
        step[first], value[first], grammar[first] = step[last], value[last], SPAN_START
        assert (self.states[SPAN_START] == last).all()
        return SpanAutomaton(step[:last], value[:last], grammar[:last], n_values)

    def _span(self, g: int) -> OpenSpan:
        span = self.grammar.spans[g]
        assert span is not None
        return span

    def _fits(self, token: int | None, read: int) -> bool:
        """Whether a table for up to so many operands is not too large."""
        n_values = len(self.algebra.values)
        total = count_keys(n_values, range(read + 1), self._ordered(token))
        return total <= MOST_KEYS and n_values**read < 1 << 62

    def _merge(self, g: int, read: int) -> None:
        """Add the states of grammar state g with so many operands; those with one more exist
        already.
        """
        span = self._span(g)
        n_values, n_tokens = len(self.algebra.values), len(self.algebra.vocabulary)
        keys = self._keys(span.operator, read)
        rows = np.full((len(keys), n_tokens + 1), REFUSED, dtype=np.int32)  # the value comes last
        following = self.states.get(self.grammar.after_operand[g])
        if following is not None:
            for v in range(n_values):
                more = np.concatenate([keys, np.full((len(keys), 1), v)], axis=1)
                rows[:, FIRST_VALUE + v] = following[self._indices(span.operator, more)]
        for token, after in self.grammar.after_operator[g].items():
            rows[:, token] = self.states[after][self._indices(token, keys)]
        if self.grammar.complete[g]:
            assert span.operator is not None
            rows[:, -1] = self.span_values(span.operator, keys)
        merged, examples = _merge_rows(rows)
        first = len(self.grammar_states)
        self.steps.append(rows[examples, :-1])
        self.values.append(rows[examples, -1])
        self.grammar_states += [g] * len(examples)
        self.states[g] = (first + merged).astype(np.int32)

    def _ordered(self, token: int | None) -> bool:
        """Whether the order of operands must be remembered; before the operator is known, it
        must.
        """
        first = self.algebra.first_operator
        return token is None or self.algebra.operators[token - first].ordered

    def _keys(self, token: int | None, read: int) -> Keys:
        if token is not None and not self._fits(token, read):
            raise ValueError(
                f"{self.algebra.vocabulary[token]} on up to {read} operands has too many cases for "
                f"the tables of the fast engine ({MOST_KEYS} at most): use --engine model"
            )
        return every_key(len(self.algebra.values), read, self._ordered(token))

    def _indices(self, token: int | None, keys: Keys) -> NDArray[np.int64]:
        """The index of each key among all keys of its length."""
        n_values = len(self.algebra.values)
        if not self._ordered(token):
            keys = np.sort(keys, axis=1)
        every = self._keys(token, keys.shape[1])
        return np.searchsorted(_numbers(n_values, every), _numbers(n_values, keys))


@lru_cache(maxsize=32)
def every_key(n_values: int, count: int, ordered: bool) -> Keys:
    """All choices of so many operands, in ascending order; each sorted if order does not matter."""
    flat = np.fromiter(chain(*operand_keys(n_values, [count], ordered)), dtype=np.int64)
    return flat.reshape(-1, count) if count else np.zeros((1, 0), dtype=np.int64)


def _numbers(n_values: int, keys: Keys) -> NDArray[np.int64]:
    """Keys as numbers that have the operands as digits."""
    return keys @ n_values ** np.arange(keys.shape[1])[::-1]


def _merge_rows(rows: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Numbers for the rows, equal for equal rows, and an example of each number."""
    merged = np.zeros(len(rows), dtype=np.int64)
    for column in rows.T:  # a column at a time sorts numbers instead of rows
        pairs = merged * (int(column.max()) + 2) + column + 1
        merged = np.unique(pairs, return_inverse=True)[1].reshape(-1)
    return merged, np.unique(merged, return_index=True)[1]


def _polish_automaton(algebra: Algebra, span_values: SpanValues) -> PolishAutomaton:
    spans = _Builder(algebra, span_values).build()
    return PolishAutomaton(spans.step, spans.value, spans.grammar, spans.n_values, algebra)


# By the layer that reads the domain.
AUTOMATA: dict[str, Callable[[Algebra, SpanValues], SpanAutomaton]] = {
    "depth": lambda algebra, span_values: _Builder(algebra, span_values).build(),
    "plain": plain_automaton,
    "polish": _polish_automaton,
}
