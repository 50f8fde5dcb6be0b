"""The names of the engines, and whether an algebra's tables build in about a second."""

from functools import lru_cache
from typing import Literal

from exactformer.domains.belonging import algebra_of
from exactformer.domains.domain import Domain
from exactformer.engine.build import has_tables

EngineName = Literal["auto", "fast", "model"]
EngineUsed = Literal["fast", "model"]  # what gave values, as "engine" in JSON names it

# The tables then take about a second, and little memory:
SOON_MADE = 100_000  # cases of all operators together
SOON_NUMBERS = 1 << 22  # cases in all orders that are told apart, times the tokens after each


@lru_cache(maxsize=64)
def soon_made(domain: Domain) -> bool:
    """Whether tables build in about a second. Those of operators of any number of operands do not:
    they cover some numbers only.
    """
    if not has_tables(domain):
        return False
    algebra = algebra_of(domain)
    told_apart = algebra.ordered or algebra.notation.operands_before(2) > 0
    try:
        numbers = algebra.count_cases(every_order=told_apart) * len(algebra.vocabulary)
        cases = algebra.count_cases(every_order=algebra.ordered)
        return cases <= SOON_MADE and numbers <= SOON_NUMBERS
    except ValueError:
        return False
