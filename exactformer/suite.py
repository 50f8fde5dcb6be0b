"""Exact models to try methods of interpretability on, and expressions to learn from and test on.

For every one of them the true circuit of any expression is known: `ef.causal_graph` has it.
"""

import hashlib
from collections.abc import Callable
from itertools import islice
from typing import Literal

from exactformer.api import Model, construct, load
from exactformer.domains.algebra import Algebra
from exactformer.domains.catalog import BUILT_IN, CATALOG, arithmetic, listops
from exactformer.domains.expression import Expression
from exactformer.problems.draw import expressions
from exactformer.training.run import train_seeds
from exactformer.weights.named import shipped_names

Split = Literal["train", "test"]
DEPTHS: dict[Split, tuple[int, ...]] = {"train": (2, 3), "test": (2, 3, 4, 5)}
SEEDS: dict[Split, int] = {"train": 0, "test": 1}
GRADED = (2, 3, 5, 7, 10, 13)  # moduli of arithmetic: 6 to 17 tokens
TRAINED = (3, 5, 7)  # moduli of algebras whose models are trained on request, in some seconds each
SEED = 7520  # seed of the models that are trained


def models() -> dict[str, Callable[[], Model]]:
    """The models of the suite: functions that make or load them, by name.

    `DOMAIN/SEED` are learned, by ten seeds a task, and `trained/ALGEBRA` for smaller algebras.
    `constructed/ALGEBRA` are written down, for algebras of graded size. `dense/ALGEBRA` are the
    same behind a random rotation of the state, in which no coordinate is a token.
    """
    algebras: list[Algebra] = [make() for make in BUILT_IN.values()]
    algebras += [listops(10), *map(arithmetic, GRADED)]
    found: dict[str, Callable[[], Model]] = {}
    for task in CATALOG:
        for name in shipped_names(task):
            found[f"{task}/{name}"] = lambda name=f"{task}/{name}": load(name)
    for modulus in TRAINED:
        task = arithmetic(modulus)
        found[f"trained/{task.name}"] = lambda task=task: train_seeds(task, [SEED])[0].model
    for algebra in algebras:
        found[f"constructed/{algebra.name}"] = lambda algebra=algebra: construct(algebra)
        found[f"dense/{algebra.name}"] = lambda algebra=algebra: construct(algebra, dense=True)
    return found


def split(algebra: Algebra, which: Split, count: int) -> list[Expression]:
    """`count` expressions of each depth of a split. A hash of its text assigns each expression to
    one split, so that none is in both.
    """
    found: list[Expression] = []
    for depth in DEPTHS[which]:
        drawn = expressions(algebra, depth, 100 * (count + 1), SEEDS[which])
        found += islice((e for e in drawn if _is_tested(e) == (which == "test")), count)
    return found


def _is_tested(expression: Expression) -> bool:
    return hashlib.sha256(str(expression).encode()).digest()[0] % 2 == 1
