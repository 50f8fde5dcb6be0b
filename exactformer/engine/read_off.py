"""The local map of certified weights, read off by running them, as an automaton.

The grammar says which tokens may stand where; what a finished span is worth is what the model makes
of it. No value is read off the algebra's tables. The order of operands is forgotten only where the
certificate proves that the weights ignore it.
"""

from functools import lru_cache
from itertools import chain

import numpy as np
import torch
from numpy.typing import NDArray

from exactformer.certify import findings
from exactformer.domains.algebra import CLOSE, FIRST_VALUE, OPEN, Algebra
from exactformer.domains.bounds import MOST_CASES
from exactformer.domains.expression import EMPTY
from exactformer.domains.grammar import DONE
from exactformer.domains.grammar import START as SPAN_START
from exactformer.domains.grammar import TOP as GRAMMAR_TOP
from exactformer.domains.notation import Notation
from exactformer.domains.rules import count_keys, operand_keys
from exactformer.domains.span_grammar import Span, SpanGrammar
from exactformer.engine.automaton import REFUSED, TOP, SpanAutomaton
from exactformer.engine.plain import plain_automaton
from exactformer.model.circuit import Weights, iterate, write_tokens
from exactformer.model.encode import encode, read_values
from exactformer.verify import Findings

MOST_KEYS = MOST_CASES  # of one operator
NUMBERS_AT_ONCE = 1 << 21  # of the states of spans that run together; a few tensors have as many

Keys = NDArray[np.int64]  # (keys, operands): operands as indices of values


def read_off(algebra: Algebra, weights: Weights, found: Findings | None = None) -> SpanAutomaton:
    """The automaton of weights that are proved exact; a ValueError for others. `found` are the
    findings of the check, if it was made already.
    """
    found = found or findings(algebra, weights)
    if not found.exact:
        raise ValueError(
            f"the fast engine needs weights that are certified exact; not so here: "
            f"{'; '.join(found.failed)}. "
            f"`exactformer certify` tells more, and --engine model runs them"
        )
    if algebra.notation is Notation.PLAIN:
        return plain_automaton(algebra, lambda op, keys: span_values(algebra, weights, op, keys))
    return _Builder(algebra, weights).build()


class _Builder:
    """States are pairs of a grammar state and the operands read so far, merged where nothing that
    follows can tell them apart.
    """

    def __init__(self, algebra: Algebra, weights: Weights) -> None:
        self.algebra, self.weights = algebra, weights
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

    def _span(self, g: int) -> Span:
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
            rows[:, -1] = span_values(self.algebra, self.weights, span.operator, keys)
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


@torch.no_grad()
def span_values(algebra: Algebra, weights: Weights, operator: int, keys: Keys) -> NDArray[np.int32]:
    """The values of spans with these operands, computed by one iteration of the model's layer."""
    ids = span_ids(algebra, operator, keys)
    values: list[NDArray[np.int32]] = []
    of_a_span = ids.shape[1] * len(algebra.vocabulary) * len(algebra.operators)
    for part in torch.from_numpy(ids).split(max(1, NUMBERS_AT_ONCE // of_a_span)):
        X = encode(part.to(weights.G_PE.device), len(algebra.vocabulary))
        inside = torch.ones_like(part, dtype=torch.bool).to(X.device)
        step = iterate(write_tokens(X, weights), weights, inside)
        left = read_values(step.X, weights, algebra)
        values.append(left.cpu().numpy().astype(np.int32))
    found = np.concatenate(values)
    assert (found >= 0).all(), "certified weights leave a single value of every span"
    return found


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


def span_ids(algebra: Algebra, operator: int, keys: Keys) -> NDArray[np.int16]:
    """The span of an operator on each row of operands, as the transformer reads it."""
    written = algebra.notation.arrange(operator, [*(FIRST_VALUE + keys.T)])
    ends = (CLOSE, EMPTY) if algebra.empty_after_close else (CLOSE,)
    return np.column_stack(np.broadcast_arrays(OPEN, *written, *ends)).astype(np.int16)
