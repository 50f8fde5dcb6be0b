"""The paper's three tasks, as data."""

from collections.abc import Callable
from functools import cache
from typing import Literal

from exactformer.domains.algebra import Algebra, Operator


@cache
def boolean() -> Algebra:
    """Boolean formulas over `& | ~`, in the paper's order of tokens."""
    values = ("1", "0")
    return Algebra(
        name="boolean",
        values=values,
        operators=(
            Operator.from_rule("&", [2], min, values),
            Operator.from_rule("|", [2], max, values),
            Operator.from_rule("~", [1], lambda a: "0" if a == "1" else "1", values),
        ),
        notation="infix",
        spellings={
            **{"∧": "&", "AND": "&", "∨": "|", "OR": "|", "∼": "~", "NOT": "~"},
            **{"TRUE": "1", "FALSE": "0"},
        },
    )


@cache
def arithmetic(modulus: int = 10) -> Algebra:
    """Sums and products of whole numbers modulo `modulus`."""
    if modulus < 2:
        raise ValueError(f"expected a modulus of 2 or more, found {modulus}")
    values = tuple(str(i) for i in range(modulus))
    return Algebra(
        name="arithmetic" if modulus == 10 else f"arithmetic-mod-{modulus}",
        values=values,
        operators=(
            Operator.from_rule("+", [2], lambda a, b: str((int(a) + int(b)) % modulus), values),
            Operator.from_rule("*", [2], lambda a, b: str(int(a) * int(b) % modulus), values),
        ),
        notation="infix",
    )


@cache
def listops(max_fan_in: int = 3, median: Literal["lower", "mean"] = "lower") -> Algebra:
    """Nangia and Bowman's ListOps on 2 to `max_fan_in` digits.

    `median` is what MED gives for an even number of operands: the "lower" of the two middle ones,
    as in the paper, or the floor of their "mean", as in the published data sets.
    """
    if max_fan_in < 2:
        raise ValueError(f"expected a fan-in bound of 2 or more, found {max_fan_in}")
    if median not in ("lower", "mean"):
        raise ValueError(f"expected median 'lower' or 'mean', found {median!r}")

    def middle(*digits: str) -> str:
        ordered = sorted(map(int, digits))
        low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
        return str(low if median == "lower" else (low + high) // 2)

    rules: dict[str, Callable[..., str]] = {
        "MAX": max,
        "MIN": min,
        "MED": middle,
        "SM": lambda *digits: str(sum(map(int, digits)) % 10),
    }
    values = tuple("0123456789")
    arities = range(2, max_fan_in + 1)
    variant = ("" if max_fan_in == 3 else f"-{max_fan_in}") + ("" if median == "lower" else "-mean")
    return Algebra(
        name="listops" + variant,
        values=values,
        operators=tuple(Operator.from_rule(name, arities, rules[name], values) for name in rules),
        notation="prefix",
        spellings={"[": "(", "]": ")"},
    )


CATALOG: dict[str, Callable[[], Algebra]] = {
    "boolean": boolean,
    "arithmetic": arithmetic,
    "listops": listops,
}
