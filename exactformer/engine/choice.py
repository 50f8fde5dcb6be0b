"""Which engine is to run: what a user may say, and where its tables are soon made."""

from typing import Literal

from exactformer.domains.algebra import Algebra

EngineName = Literal["auto", "fast", "model"]
EngineUsed = Literal["fast", "model"]  # what gave values, as "engine" in JSON names it

SOON_MADE = 100_000  # cases of all operators together: the tables then take about a second


def soon_made(algebra: Algebra) -> bool:
    """Not for operators of any number of operands, of which tables cover only some."""
    try:
        return algebra.count_cases(every_order=algebra.ordered) <= SOON_MADE
    except ValueError:
        return False


def require_transformer(iterations: str | None, engine: EngineName) -> None:
    """The fast engine has no iterations, and "auto" may mean it."""
    if iterations is not None and engine != "model":
        raise ValueError(
            f"iterations ({iterations}) are the transformer's: expected the engine model, "
            f"found {engine}"
        )
