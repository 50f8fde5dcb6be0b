"""Lists every possible span and what each of its positions receives, and checks the outputs."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.algebra import CLOSE, FIRST_VALUE, OPEN, Algebra
from exactformer.domains.expression import span_expression


@dataclass(frozen=True)
class Cases:
    """Every span: its tokens by slot, its operator's token and its value's."""

    bags: NDArray  # (cases, slots, D)
    operator: NDArray
    value: NDArray
    operands: list[tuple[int, ...]]  # as indices of values


@dataclass(frozen=True)
class Fault:
    """A fault in symbols, and the token ids of an expression that may show it, if any."""

    shown: str
    ids: tuple[int, ...] = ()

    def __str__(self) -> str:
        return self.shown


def every_case(algebra: Algebra, G_R: NDArray | None, slots: int) -> Cases:
    """The spans of an algebra, with the slots that the rank gate G_R gives their tokens."""
    D = len(algebra.vocabulary)
    every_order = algebra.ordered or G_R is not None
    bags, operators, values, shown = [], [], [], []
    for o, operands, results in algebra.case_arrays(every_order=every_order):
        n = len(operands)
        opened, operator, closed = (
            np.full(n, token) for token in (OPEN, algebra.first_operator + o, CLOSE)
        )
        written = algebra.notation.arrange(operator, [*(FIRST_VALUE + operands.T)])
        span = np.column_stack([opened, *written, closed])
        ranks = np.ones_like(span) if G_R is None else np.cumsum(G_R[span], axis=1)
        slot = np.clip(ranks - 1, 0, slots - 1)
        bag = np.zeros((n, slots, D), dtype=np.int16)
        for i in range(span.shape[1]):
            bag[np.arange(n), slot[:, i], span[:, i]] += 1
        bags.append(bag)
        operators.append(operator)
        values.append(FIRST_VALUE + results)
        shown += map(tuple, operands.tolist())
    joined = [np.concatenate(parts) for parts in (bags, operators, values)]
    return Cases(*joined, operands=shown)


@dataclass(frozen=True)
class Group:
    """The positions that hold one token: their cases, how many of them each case has, and the row
    that they receive, which is equal within a case.
    """

    token: int
    cases: NDArray
    positions: NDArray
    received: NDArray  # rows of all that is ever received


def every_receipt(cases: Cases, routes: NDArray) -> tuple[NDArray, list[Group]]:
    """All distinct rows that a position can receive, the zero row first, and which position of
    which case receives which.

    `routes[a, b]` is how often a position that holds token a receives each token b of its span.
    """
    slots, D = cases.bags.shape[1:]
    distinct = [np.zeros((1, slots * D), dtype=np.int64)]
    groups = []
    for token in range(D):
        positions = cases.bags[:, :, token].sum(axis=1)
        where = np.flatnonzero(positions)
        back = np.zeros(len(where), dtype=np.int64)
        if routes[token].any() and len(where):
            H = (cases.bags[where] * routes[token]).reshape(len(where), -1)
            found, back = np.unique(H, axis=0, return_inverse=True)
            back = back.reshape(-1) + sum(map(len, distinct))
            distinct.append(found)
        groups.append(Group(token, where, positions[where], back))
    return np.concatenate(distinct), groups


def wrong_rows(
    algebra: Algebra, cases: Cases, groups: list[Group], positive: NDArray
) -> tuple[Fault, ...]:
    """The rows that keep a span from becoming its value exactly once, with zeros elsewhere.
    `positive` has the outputs above the threshold for each received row.
    """
    D = positive.shape[1]
    tokens_left = np.zeros(len(cases.operator), dtype=np.int64)  # of each span, if they are right
    fault = np.zeros((len(groups), len(cases.operator)), dtype=bool)
    for group in groups:
        output = positive[group.received]
        is_value = (output == (np.arange(D) == cases.value[group.cases, None])).all(axis=1)
        tokens_left[group.cases] += is_value * group.positions
        fault[group.token, group.cases] = ~is_value & output.any(axis=1)
    # A span left with no value lacks it at its operator; one left with several has them there, too.
    unfinished = (tokens_left != 1) & ~fault.any(axis=0)
    fault[cases.operator, np.arange(len(cases.operator))] |= unfinished
    wrong = [Fault("the zero vector")] if positive[0].any() else []
    for case, token in np.argwhere(fault.T).tolist():
        operands, operator = cases.operands[case], int(cases.operator[case])
        shown = " ".join(algebra.values[i] for i in operands)
        label = f"{algebra.vocabulary[token]} in {algebra.vocabulary[operator]} of {shown}"
        shows = span_expression(algebra, operator, [FIRST_VALUE + i for i in operands])
        wrong.append(Fault(label, tuple(shows.ids.tolist())))
    return tuple(wrong)


def look_up(H: NDArray, bags: NDArray, outputs: NDArray) -> NDArray:
    """Whether each output of a table is positive for each row of H; none is for a row that the
    table lacks. Outputs are 1/2 or -1/2, so nothing rounds.
    """
    table = {bag.tobytes(): row for row, bag in enumerate(bags.astype(np.int64))}
    rows = np.array([table.get(row.tobytes(), -1) for row in np.ascontiguousarray(H)])
    return (outputs[rows] > 0) & (rows >= 0)[:, None]
