"""Which engine is to run: what a user may say, and where its tables are soon made."""

from typing import Literal

from exactformer.domains.algebra import Algebra

EngineName = Literal["auto", "fast", "model"]
EngineUsed = Literal["fast", "model"]  # what gave values, as "engine" in JSON names it

# The tables then take about a second, and little memory:
SOON_MADE = 100_000  # cases of all operators together
SOON_NUMBERS = 1 << 22  # cases in all orders that are told apart, times the tokens after each


def soon_made(algebra: Algebra) -> bool:
    """Not for operators of any number of operands, of which tables cover only some."""
    told_apart = algebra.ordered or algebra.notation.operands_before(2) > 0
    try:
        numbers = algebra.count_cases(every_order=told_apart) * len(algebra.vocabulary)
        cases = algebra.count_cases(every_order=algebra.ordered)
        return cases <= SOON_MADE and numbers <= SOON_NUMBERS
    except ValueError:
        return False


def require_transformer(iterations: str | None, engine: EngineName) -> None:
    """The fast engine has no iterations, and "auto" may mean it."""
    if iterations is not None and engine != "model":
        raise ValueError(
            f"iterations ({iterations}) are the transformer's: expected the engine model, "
            f"found {engine}"
        )
