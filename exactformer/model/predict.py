"""The values of many expressions, in batches of similar length."""

from collections.abc import Callable, Sequence

import torch

from exactformer.domains.algebra import Algebra
from exactformer.domains.expression import Expression
from exactformer.model.circuit import Weights, steps
from exactformer.model.encode import NO_VALUE, initial_state, read_values

POSITIONS_AT_ONCE = 1 << 18  # of one batch, padding included; a longer expression goes alone
MUCH_LONGER = 1.3  # than the shortest of a batch: padding would cost more than another batch,
SHORT = 1_000  # unless all are short anyway

MOST_WORK = 10**9  # of one expression that nobody has asked twice for: a minute or two


def work(expression: Expression) -> int:
    """Positions of all iterations together: what an expression costs the transformer."""
    return expression.depth * len(expression.positions)


def require_feasible(expression: Expression, most: int | None, where: str = "") -> None:
    """Refuse what would take hours, unless there is no bound."""
    if most is not None and work(expression) > most:
        raise ValueError(
            f"{where}the transformer would take {expression.depth:,} iterations of "
            f"{len(expression.positions):,} positions each, more than {most:,} in all: "
            f"--no-limit does it all the same"
        )


@torch.no_grad()
def predict(
    algebra: Algebra,
    weights: Weights,
    expressions: Sequence[Expression],
    dtype: torch.dtype = torch.float32,
    observe: Callable[[int], None] = lambda positions: None,
) -> list[str | None]:
    """The value the model gives each expression; None where it ends with anything else.

    `observe` is called after each iteration with the number of its positions.
    """
    answers: list[str | None] = [None] * len(expressions)
    for batch in _batches(expressions):
        X, inside = initial_state([expressions[i] for i in batch], weights, dtype)
        for step in steps(X, weights, inside):
            X = step.X
            observe(inside.numel())
        for i, value in zip(batch, read_values(X, weights, algebra).tolist(), strict=True):
            answers[i] = None if value == NO_VALUE else algebra.values[value]
    return answers


def require_values(
    algebra: Algebra,
    weights: Weights,
    expressions: Sequence[Expression],
    places: Sequence[str] | None = None,
    most_work: int | None = None,
    tell: Callable[[float], None] = lambda share: None,
) -> list[str]:
    """The value of each expression: all must have one, and none may cost more than `most_work`.
    `places` begin the error about each; `tell` is called with the fraction that is done.
    """
    places = places or [""] * len(expressions)
    for expression, place in zip(expressions, places, strict=True):
        require_feasible(expression, most_work, place)
    total, done = sum(map(work, expressions)), 0

    def observe(positions: int) -> None:
        nonlocal done
        done += positions
        tell(min(1.0, done / total))  # padding counts, so there may be more than was thought

    values = predict(algebra, weights, expressions, observe=observe)
    for expression, place, value in zip(expressions, places, values, strict=True):
        if value is None:
            raise ValueError(
                f"{place}{expression!r}: no single value is left: the weights are not exact"
            )
    return [str(value) for value in values]


def _batches(expressions: Sequence[Expression]) -> list[list[int]]:
    """Places of expressions that run together: of similar length, so that little is padded."""
    batches: list[list[int]] = []
    shortest = 0
    for i in sorted(range(len(expressions)), key=lambda i: len(expressions[i])):
        length = len(expressions[i])
        full = batches and (len(batches[-1]) + 1) * length > POSITIONS_AT_ONCE
        if not batches or full or (length > MUCH_LONGER * shortest and length > SHORT):
            batches.append([])
            shortest = length
        batches[-1].append(i)
    return batches
