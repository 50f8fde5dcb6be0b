"""Problems as arrays: whole training sets, fresh depth-2 samples, and the batches of an epoch, each
value equally often.

Tokens are padded with -1; values are indices into the algebra's values.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from operator import add

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from exactformer.domains.algebra import CLOSE, FIRST_VALUE, OPEN, Algebra
from exactformer.domains.expression import Expression
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import default_leaf, draw_balanced, enumerate_depth
from exactformer.protocol.recipe import Recipe
from exactformer.protocol.state import Inputs, Network, Parameters

PADDING = -1


@dataclass(frozen=True)
class Problems:
    tokens: NDArray[np.int16]  # (N, n)
    values: NDArray[np.int64]  # (N,)
    depths: NDArray[np.int64]  # (N,)

    def __len__(self) -> int:
        return len(self.values)

    def __add__(self, other: "Problems") -> "Problems":
        width = max(self.tokens.shape[1], other.tokens.shape[1])
        tokens = [widened(problems.tokens, width) for problems in (self, other)]
        return Problems(
            np.concatenate(tokens),
            np.concatenate([self.values, other.values]),
            np.concatenate([self.depths, other.depths]),
        )

    def __getitem__(self, rows: NDArray[np.int64]) -> "Problems":
        return Problems(self.tokens[rows], self.values[rows], self.depths[rows])

    @cached_property
    def members(self) -> list[NDArray[np.int64]]:
        """Indices of the problems of each value that occurs."""
        return [np.flatnonzero(self.values == value) for value in np.unique(self.values)]


def widened(tokens: NDArray[np.int16], width: int) -> NDArray[np.int16]:
    return np.pad(tokens, [(0, 0), (0, width - tokens.shape[1])], constant_values=PADDING)


def padded(expressions: Sequence[Expression]) -> NDArray[np.int16]:
    tokens = np.full((len(expressions), max(map(len, expressions))), PADDING, dtype=np.int16)
    for row, expression in zip(tokens, expressions, strict=True):
        row[: len(expression)] = expression.ids
    return tokens


@lru_cache(maxsize=8)
def every(algebra: Algebra, depth: int) -> Problems:
    """All problems of a depth."""
    return of_expressions(algebra, list(enumerate_depth(algebra, depth)))


def of_expressions(algebra: Algebra, expressions: Sequence[Expression]) -> Problems:
    """Expressions as arrays, with their values by the oracle."""
    index = {value: i for i, value in enumerate(algebra.values)}
    values = np.array([index[evaluate(expression)] for expression in expressions])
    depths = np.array([expression.depth for expression in expressions])
    return Problems(padded(expressions), values, depths)


@lru_cache(maxsize=8)
def depths_one_and_two(algebra: Algebra) -> Problems:
    """All problems of depth 1, then all of depth 2 in a random but fixed order."""
    two = every(algebra, 2)
    return every(algebra, 1) + two[np.random.default_rng(0).permutation(len(two))]


def balanced_order(problems: Problems, rng: np.random.Generator) -> NDArray[np.int64]:
    """One index for each problem, in random order, such that each value occurs equally often (to
    within one).

    Of a value with too many problems some are drawn, anew at each call; those of a value with too
    few are repeated.
    """
    classes = problems.members
    chosen = []
    for members, count in zip(classes, _quota(len(problems), len(classes), rng), strict=True):
        rounds = -(-count // len(members))
        chosen.append(np.concatenate([rng.permutation(members) for _ in range(rounds)])[:count])
    return rng.permutation(np.concatenate(chosen))


def _quota(count: int, classes: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Number of problems of each class, `count` in all; chance decides which have one more."""
    quota = np.full(classes, count // classes)
    quota[rng.permutation(classes)[: count % classes]] += 1
    return quota


def draw_depth_two(algebra: Algebra, count: int, rng: np.random.Generator) -> Problems:
    """Fresh problems of depth 2 by the law of `sampling.draw`, each value equally often.

    Written with arrays for prefix notation, since an epoch of ListOps needs thousands for a seed.
    """
    if algebra.notation.operands_before(2):
        return of_expressions(algebra, draw_balanced(algebra, 2, count, rng))
    quota = _quota(count, len(algebra.values), rng)
    kept: list[Problems] = []
    while quota.any():
        drawn = _draw_depth_two(algebra, 2 * count, rng)
        take = []
        for value in np.flatnonzero(quota):
            found = np.flatnonzero(drawn.values == value)[: quota[value]]
            quota[value] -= len(found)
            take.append(found)
        kept.append(drawn[np.concatenate(take)])
    return reduce(add, kept)[rng.permutation(count)]


def _draw_depth_two(algebra: Algebra, count: int, rng: np.random.Generator) -> Problems:
    m = algebra.require_fan_in()
    tables = _tables(algebra)
    operator, arity = _draw_operators(algebra, count, rng)
    inner = rng.random((count, m)) < (1 - default_leaf(algebra)) / 2  # depth 1, not 0
    inner[np.arange(count), (rng.random(count) * arity).astype(np.int64)] = True
    digits = rng.integers(len(algebra.values), size=(count, m, m))
    inner_operator, inner_arity = (
        drawn.reshape(count, m) for drawn in _draw_operators(algebra, count * m, rng)
    )
    absent = np.arange(m) >= inner_arity[..., None]
    operands = np.where(absent, 0, digits)
    inner_value = tables[(inner_operator, inner_arity, *np.moveaxis(operands, -1, 0))]
    value = np.where(inner, inner_value, digits[..., 0])
    value = np.where(np.arange(m) >= arity[:, None], 0, value)
    values = tables[(operator, arity, *value.T)]

    # Every token that could be, in order, with PADDING for those that are not; then closed up.
    first = algebra.first_operator
    operand = np.full((count, m, m + 3), PADDING, dtype=np.int16)
    operand[..., 0] = OPEN
    operand[..., 1] = first + inner_operator
    operand[..., 2 : m + 2] = np.where(absent, PADDING, FIRST_VALUE + digits)
    operand[..., m + 2] = CLOSE
    operand[~inner] = PADDING
    operand[..., 2] = FIRST_VALUE + digits[..., 0]
    operand[np.arange(m) >= arity[:, None]] = PADDING
    ends = np.full((count, 1), CLOSE, dtype=np.int16)
    head = np.stack([np.full(count, OPEN), first + operator], axis=1).astype(np.int16)
    tokens = np.concatenate([head, operand.reshape(count, -1), ends], axis=1)
    order = np.argsort(tokens == PADDING, axis=1, kind="stable")
    tokens = np.take_along_axis(tokens, order, axis=1)
    return Problems(tokens, values, np.full(count, 2))


def _draw_operators(
    algebra: Algebra, count: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Uniform operators, then uniform among each one's arities."""
    operator = rng.integers(len(algebra.operators), size=count)
    arity = np.zeros(count, dtype=np.int64)
    for o, op in enumerate(algebra.operators):
        of_operator = operator == o
        arity[of_operator] = rng.choice(np.array(op.arities), size=int(of_operator.sum()))
    return operator, arity


@lru_cache(maxsize=8)
def _tables(algebra: Algebra) -> NDArray[np.int64]:
    """Value by operator, arity and operands; operands beyond the arity are written as 0."""
    m, values = algebra.require_fan_in(), len(algebra.values)
    tables = np.zeros((len(algebra.operators), m + 1, *[values] * m), dtype=np.int64)
    for o, operator in enumerate(algebra.operators):
        for arity in operator.arities:
            for operands in np.ndindex(*[values] * arity):
                tables[(o, arity, *operands, *[0] * (m - arity))] = operator(operands)
    return tables


class Batches:
    """A set of problems for each seed, and their order in the epoch. The buffers stay the same, as
    a recorded CUDA graph needs them to.
    """

    def __init__(self, sets: Sequence[Problems], recipe: Recipe, device: torch.device) -> None:
        self.count = len(sets[0])
        self.size = min(recipe.batch, self.count)
        self.batches = -(-self.count // self.size)
        self.used = max(1, round(recipe.share * self.batches))  # of an epoch's batches
        self.steps = int(sets[0].depths.max())
        S = len(sets)
        width = sets[0].tokens.shape[1]
        self.tokens = torch.empty(S, self.count, width, dtype=torch.int16, device=device)
        self.values = torch.empty(S, self.count, dtype=torch.int64, device=device)
        self.depths = torch.empty(S, self.count, dtype=torch.int64, device=device)
        self.order = torch.empty(S, self.batches, self.size, dtype=torch.int64, device=device)
        self.seed_rows = torch.arange(S, device=device)[:, None]
        self.cursor = torch.zeros(1, dtype=torch.int64, device=device)
        self.loss = torch.zeros(S, device=device)  # summed over the batches of an epoch
        self.load(sets)

    def load(self, sets: Sequence[Problems]) -> None:
        width = self.tokens.shape[2]
        tokens = np.stack([widened(problems.tokens, width) for problems in sets])
        self.tokens.copy_(torch.from_numpy(tokens))
        self.values.copy_(torch.from_numpy(np.stack([problems.values for problems in sets])))
        self.depths.copy_(torch.from_numpy(np.stack([problems.depths for problems in sets])))

    def arrange(self, orders: Sequence[np.ndarray]) -> None:
        """Set the order of an epoch's problems; the last batch is filled with -1, of weight 0."""
        missing = self.batches * self.size - self.count
        filled = [np.pad(order, (0, missing), constant_values=-1) for order in orders]
        self.order.copy_(torch.from_numpy(np.stack(filled)).view_as(self.order))

    def next(self) -> tuple[Inputs, Tensor, Tensor]:
        """The next batch: its problems, their values, and 1 or 0 as the weight of each."""
        row = self.order.index_select(1, self.cursor).squeeze(1)
        self.cursor += 1
        index = (self.seed_rows, row.clamp(min=0))
        weights = (row >= 0).float()
        inputs = Inputs(self.tokens[index], self.depths[index], self.steps)
        return inputs, self.values[index], weights

    @torch.no_grad()
    def accuracy(self, network: Network, p: Parameters, span: slice, chunk: int = 2500) -> Tensor:
        """The fraction of these problems that each seed gets right: (S,)."""
        right = torch.zeros(len(self.tokens), device=self.tokens.device)
        start, stop, _ = span.indices(self.count)
        for begin in range(start, stop, chunk):
            rows = slice(begin, min(begin + chunk, stop))
            inputs = Inputs(self.tokens[:, rows], self.depths[:, rows], self.steps)
            logits, _ = network.forward(p, inputs)
            right += (logits.argmax(-1) == self.values[:, rows]).sum(1)
        return right / (stop - start)
