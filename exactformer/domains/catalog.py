"""The paper's three tasks, their variants, and some in plain and Polish notation, as data."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from types import NoneType
from typing import Any, Literal

from exactformer.domains.algebra import Algebra, Operator
from exactformer.domains.chomsky import CHOMSKY, FOLDER, PREFIX, TASKS
from exactformer.domains.data import expect, suggestion
from exactformer.domains.domain import Domain
from exactformer.domains.integers import INTEGERS, Integers
from exactformer.domains.little_endian import LITTLE_ENDIAN, LittleEndian
from exactformer.domains.machine_catalog import MACHINES, SPAN_MACHINES
from exactformer.domains.machines import Machine
from exactformer.domains.precedence import Level
from exactformer.domains.rearrangement_catalog import REARRANGEMENTS
from exactformer.domains.rearrangements import Rearrangement
from exactformer.domains.span_machines import SpanMachine
from exactformer.domains.square_roots import SQUARE_ROOTS, SquareRoot


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


def _plain(algebra: Algebra, words: Mapping[str, str], *levels: Level) -> Algebra:
    """An algebra in plain notation, with these levels of precedence and more spellings."""
    spellings = {**algebra.spellings, **words}
    name = f"{algebra.name}-plain"
    return Algebra(name, algebra.values, algebra.operators, "plain", spellings, levels)


@cache
def boolean_plain() -> Algebra:
    """`boolean` in plain notation; from the loosest to the tightest: `|`, `&`, `~`."""
    words = {"and": "&", "or": "|", "not": "~", "True": "1", "False": "0"}
    return _plain(
        boolean(), words, Level("left", ["|"]), Level("left", ["&"]), Level("prefix", ["~"])
    )


def _polish(algebra: Algebra) -> Algebra:
    """An algebra in Polish notation."""
    name = f"{algebra.name}-polish"
    return Algebra(name, algebra.values, algebra.operators, "polish", algebra.spellings)


@cache
def boolean_polish() -> Algebra:
    """`boolean` in Polish notation: `& 1 ~ 0`."""
    return _polish(boolean())


@cache
def arithmetic(modulus: int = 10) -> Algebra:
    """Sums and products of whole numbers modulo `modulus`."""
    expect(modulus, int, "a whole number as modulus")
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
def arithmetic_plain() -> Algebra:
    """`arithmetic` in plain notation; `*` binds more tightly than `+`, both group from the left."""
    return _plain(arithmetic(), {}, Level("left", ["+"]), Level("left", ["*"]))


@cache
def arithmetic_polish() -> Algebra:
    """`arithmetic` in Polish notation: `+ 1 * 2 3`."""
    return _polish(arithmetic())


Median = Literal["lower", "mean"]
LISTOPS_OPERATORS = ("MAX", "MIN", "MED", "SM")  # the operators of the paper
LISTOPS_RULES = {
    "MAX": "max",
    "MIN": "min",
    "MED": "median",
    "SM": "sum",
    "PM": "product",
    "FIRST": "first",
    "LAST": "last",
}
WRITTEN_OUT = 3  # operands up to which ListOps has its tables written out, as in the paper


@cache
def listops(
    max_fan_in: int | None = 3,
    median: Median = "lower",
    operators: tuple[str, ...] = LISTOPS_OPERATORS,
) -> Algebra:
    """Nangia and Bowman's ListOps on 2 to `max_fan_in` digits, or on 2 or more where that is None.

    `median` is what MED gives for an even number of operands: the "lower" of the two middle ones,
    as in the paper, or the floor of their "mean", as in the published data sets.
    `operators` are some of MAX, MIN, MED, SM (the sum modulo 10), PM (the product), FIRST and LAST.
    """
    expect(max_fan_in, (int, NoneType), "a whole number or None as max_fan_in")
    expect(operators, tuple, "operators such as ('MAX', 'MIN')")
    if max_fan_in is not None and max_fan_in < 2:
        raise ValueError(f"expected a fan-in bound of 2 or more, found {max_fan_in}")
    if median not in ("lower", "mean"):
        raise ValueError(f"expected median 'lower' or 'mean', found {median!r}")
    for name in operators:
        if name not in LISTOPS_RULES:
            hint = suggestion(name.upper(), LISTOPS_RULES)
            raise ValueError(
                f"expected operators among {', '.join(LISTOPS_RULES)}, found {name!r}{hint}"
            )
    rules = LISTOPS_RULES | ({"MED": "median-mean"} if median == "mean" else {})
    values = tuple("0123456789")

    def operator(name: str) -> Operator:
        arities = range(2, (max_fan_in or 2) + 1)
        made = Operator.named(name, rules[name], arities, 10, unbounded=max_fan_in is None)
        if max_fan_in is None or max_fan_in > WRITTEN_OUT:
            return made
        return Operator(name, made.arities, dict(made.table), made.ordered)

    variant = [] if max_fan_in == 3 else ["any" if max_fan_in is None else str(max_fan_in)]
    variant += ["mean"] if median == "mean" else []
    variant += [] if operators == LISTOPS_OPERATORS else [op.lower() for op in operators]
    return Algebra(
        name="-".join(["listops", *variant]),
        values=values,
        operators=tuple(operator(name) for name in operators),
        notation="prefix",
        spellings={"[": "(", "]": ")"},
    )


CATALOG: dict[str, Callable[[], Algebra]] = {  # the paper's tasks
    "boolean": boolean,
    "arithmetic": arithmetic,
    "listops": listops,
}
BUILT_IN: dict[str, Callable[[], Algebra]] = {
    **CATALOG,
    "boolean-plain": boolean_plain,
    "arithmetic-plain": arithmetic_plain,
    "boolean-polish": boolean_polish,
    "arithmetic-polish": arithmetic_polish,
}


BUILT_IN_OTHERS: Mapping[str, Callable[[], Domain]] = {
    **MACHINES,
    **SPAN_MACHINES,
    **INTEGERS,
    **LITTLE_ENDIAN,
    **SQUARE_ROOTS,
    **REARRANGEMENTS,
}


# Whether a name, in small letters, is that of something built in or of a variant, by the kind.
RESERVED: dict[str, Callable[[str], bool]] = {
    Algebra.kind: lambda name: name.split("-")[0] in CATALOG,
    Machine.kind: lambda name: name in MACHINES,
    SpanMachine.kind: lambda name: name in SPAN_MACHINES,
    Rearrangement.kind: lambda name: name in REARRANGEMENTS,
    LittleEndian.kind: lambda name: name in LITTLE_ENDIAN,
    SquareRoot.kind: lambda name: name in SQUARE_ROOTS,
    Integers.kind: lambda name: name.split("-")[0] == Integers.kind,
}


def is_reserved(name: str, kind: str = Algebra.kind) -> bool:
    """Whether a name is reserved for what is built in, or a variant of it, existing or not."""
    name = name.lower()
    return name.startswith(PREFIX) or (kind in RESERVED and RESERVED[kind](name))


def find_domain(name: str) -> Domain:
    """Find what is built in, or a variant of an algebra, by its name."""
    if name.startswith(FOLDER) and name not in CHOMSKY:
        task = name.removeprefix(FOLDER)
        raise ValueError(
            f"expected a task of the benchmark, {', '.join(TASKS)}, "
            f"found {task!r}{suggestion(task, TASKS)}"
        )
    others = {**BUILT_IN_OTHERS, **CHOMSKY}
    return others[name]() if name in others else find_algebra(name)


def find_algebra(name: str) -> Algebra:
    """Find a built-in algebra, or a variant of one, by its name."""
    if name in BUILT_IN:
        return BUILT_IN[name]()
    kind, *parts = name.split("-")
    if kind == "arithmetic" and re.fullmatch(r"mod-[0-9]{1,3}", "-".join(parts)):
        return arithmetic(int(parts[1]))
    if kind == "listops":
        fan_in = 3
        if parts and re.fullmatch(r"any|[0-9]{1,3}", parts[0]):
            fan_in = None if parts[0] == "any" else int(parts[0])
            parts = parts[1:]
        median, parts = ("mean", parts[1:]) if parts[:1] == ["mean"] else ("lower", parts)
        operators = tuple(part.upper() for part in parts) or LISTOPS_OPERATORS
        return listops(fan_in, median, operators)
    known = [
        *BUILT_IN,
        *MACHINES,
        *SPAN_MACHINES,
        Integers.kind,
        *LITTLE_ENDIAN,
        *REARRANGEMENTS,
        *SQUARE_ROOTS,
        f"{FOLDER}TASK",
    ]
    hint = suggestion(name, [*known, *INTEGERS, *CHOMSKY]) or (
        "; variants are named like arithmetic-mod-7, listops-10-mean or "
        "listops-any-max-min-first-last"
    )
    raise ValueError(
        f"expected one of {', '.join(known)}, or the path of a .toml file that defines one "
        f"(docs/own-algebras.md shows how), found {name!r}{hint}"
    )


def plain_counterpart(algebra: Algebra) -> str | None:
    """The name of the built-in algebra with the same operators in plain notation, or None."""
    name = f"{algebra.name}-plain"
    same = name in BUILT_IN and BUILT_IN[name]().operators == algebra.operators
    return name if same else None


def _is_named(domain: Domain) -> bool:
    """Whether this domain equals the built-in one, or the variant, that has its name."""
    try:
        return domain == find_domain(domain.name)
    except ValueError:
        return False


def is_built_in(domain: Domain) -> bool:
    """Whether this domain is built in. Raises a ValueError if it has the name of a built-in
    algebra but differs from it.
    """
    reserved = is_reserved(domain.name, domain.kind)
    if reserved and not _is_named(domain):
        raise ValueError(
            f"this is another {domain.kind} than the built-in {domain.name!r} it names"
        )
    return reserved


def domain_sha256(domain: Domain) -> str:
    return hashlib.sha256(json.dumps(domain.to_dict(), sort_keys=True).encode()).hexdigest()


def describe(domain: Domain) -> dict[str, Any]:
    """A domain as a proof or a record stores it: by name and hash if built in, else in full."""
    known = {"name": domain.name, "sha256": domain_sha256(domain)}
    return known | ({} if _is_named(domain) else {"definition": domain.to_dict()})
