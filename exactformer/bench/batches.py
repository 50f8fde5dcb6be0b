"""The transformer on many expressions at once, beside a looped transformer of the same width."""

import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from exactformer.api import construct
from exactformer.baselines.looped import Looped
from exactformer.domains.algebra import Algebra
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw
from exactformer.model.architecture import paper_architecture
from exactformer.protocol.predictor import Predictor

TRANSFORMER, LOOPED = "transformer", "looped transformer"
DEPTH = 5
PROBLEMS = 10_000
TOKENS = 50  # of a problem, roughly: so many fewer are drawn where few tokens are asked for
ROUNDS = 5
SEED = 0


@dataclass(frozen=True)
class Batch:
    """Best seconds of each program on the same problems."""

    task: str
    problems: int
    tokens: int
    seconds: Mapping[str, float]


def looped(algebra: Algebra) -> Predictor:
    """A looped transformer with the width and hidden units of the paper's transformer, one head, no
    positions. Its weights are random: speed does not depend on them.
    """
    shape = paper_architecture(algebra)
    network = Looped(shape.D, len(algebra.values), width=shape.D, heads=1, hidden=shape.hidden)
    parameters = network.initial(torch.Generator().manual_seed(SEED))
    one_seed = {name: tensor.unsqueeze(0) for name, tensor in parameters.items()}
    return Predictor(network, algebra, one_seed)


def time_batch(algebra: Algebra, most_tokens: int) -> Batch:
    """Time the programs on the same problems, in turns, each with its own batches."""
    count = max(1, min(PROBLEMS, most_tokens // TOKENS))
    problems = draw(algebra, DEPTH, count, np.random.default_rng(SEED))
    predict, rival = construct(algebra).predict, looped(algebra)
    if predict(problems) != [evaluate(problem) for problem in problems]:
        raise RuntimeError(f"the transformer and the oracle disagree on {algebra.name}")
    programs = {
        TRANSFORMER: lambda: predict(problems),
        LOOPED: lambda: rival.predict(problems),
    }
    found: dict[str, float] = {}
    for _ in range(ROUNDS):
        for name, program in programs.items():
            start = time.perf_counter()
            program()
            found[name] = min(found.get(name, np.inf), time.perf_counter() - start)
    return Batch(algebra.name, count, sum(map(len, problems)), found)
