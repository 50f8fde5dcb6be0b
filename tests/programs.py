"""Programs to test on: the algebras that they are of, and how they run if one does it literally."""

from pathlib import Path

import numpy as np
import torch

import exactformer as ef
from exactformer.domains.program import WIRE, Program
from exactformer.domains.symbols import FIRST_VALUE
from exactformer.model.circuit import read_tokens
from exactformer.model.encode import encode, padded, read_values
from exactformer.model.iterations import Iterations
from exactformer.model.layers import layer_of

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
BUILT_IN = (ef.boolean(), ef.arithmetic(), ef.listops(), ef.boolean_plain(), ef.arithmetic_plain())
FILES = ("kleene", "majority", "modulo7", "nand", "s3", "plain/implication", "plain/modulo7")
ALGEBRAS = [*BUILT_IN, *(ef.load_algebra(EXAMPLES / f"{name}.toml") for name in FILES)]

HALF_ADDER = "sum = ((a|b)&(~carry)); carry = (a&b); a = 1; b = 0;"


def literally(program: Program, model: ef.Model, by: Iterations) -> tuple[list[str], int]:
    """The values of a program without inputs, and the iterations that it takes, by definition: in
    each, one-hot rows are sent by a table of sums keyed by the name, then one iteration of the
    layer runs on every statement that has no name left. It ends when nothing changes.
    """
    algebra, weights = model.algebra, model.weights
    D, n = weights.D, len(program)
    flat, lengths = algebra.positions(program.ids, program.lengths)
    key = torch.full((len(flat),), -1)
    key[torch.tensor(flat) == WIRE] = torch.tensor(program.wires)
    start, inside = padded(torch.tensor(flat), torch.tensor(lengths))
    keys, _ = padded(key, torch.tensor(lengths))
    X = encode(start, D)  # a name is a zero row for now
    named = inside & (start == WIRE)
    taken = 0
    while True:
        before = X.clone()
        ready = ~named.any(-1)
        values = read_values(X, weights, algebra)
        done = ready & (values >= 0)
        sums = torch.zeros(n, D).index_add_(
            0, done.nonzero().squeeze(-1), encode(FIRST_VALUE + values[done], D)
        )
        arrived = named & (sums.sum(-1)[keys.clamp(min=0)] > 0)
        X[arrived] = sums[keys[arrived]]
        named = named & ~arrived
        busy = (~named.any(-1) & ~done).nonzero().squeeze(-1)
        if len(busy):
            steps = layer_of(algebra, by).steps(X[busy], inside[busy], weights, algebra)
            if (step := next(steps, None)) is not None:
                X[busy] = read_tokens(step.X, weights)
        if torch.equal(before, X):
            return [algebra.values[v] for v in read_values(X, weights, algebra).tolist()], taken
        taken += 1


def copies(program: Program) -> int:
    """The number of statements that only copy a name."""
    return int(
        np.count_nonzero((program.lengths == 1) & (program.ids[program.starts[:-1]] == WIRE))
    )
