"""The facts that `info` prints, by the kind of domain: plain data, with words for some of them."""

from collections.abc import Callable
from typing import Any

from exactformer.domains.algebra import Algebra
from exactformer.domains.chomsky import FOLDER, TASKS, task_of
from exactformer.domains.domain import Domain
from exactformer.domains.integers import OPERATORS, Integers
from exactformer.domains.little_endian import LittleEndian
from exactformer.domains.machines import Machine
from exactformer.domains.rearrangements import Rearrangement
from exactformer.domains.span_machines import SpanMachine
from exactformer.domains.square_roots import SquareRoot

Facts = tuple[dict[str, Any], dict[str, str]]


def _of_algebra(algebra: Algebra) -> Facts:
    from exactformer.model.architecture import paper_architecture

    shape, levels = paper_architecture(algebra), [level.to_dict() for level in algebra.precedence]
    data = {
        "name": algebra.name,
        "notation": algebra.notation,
        **({"precedence": levels} if levels else {}),
        "vocabulary": list(algebra.vocabulary),
        "operators": [
            {"symbol": op.symbol, "arities": list(op.arities), "ordered": op.ordered}
            | ({"rule": op.rule, "unbounded": op.unbounded} if op.rule else {})
            for op in algebra.operators
        ],
        "spellings": dict(algebra.spellings),
        **vars(shape),
        "parameters": shape.parameters,
    }
    precedence = ", then ".join(
        f"{' '.join(level.operators)} ({level.direction})" for level in algebra.precedence
    )
    spellings = " ".join(f"{other}={own}" for other, own in algebra.spellings.items())
    words = {
        "vocabulary": " ".join(algebra.vocabulary),
        "operators": ", ".join(f"{op.symbol} of {op.counts}" for op in algebra.operators),
        "spellings": spellings or "none",
    }
    return data, words | ({"precedence": precedence} if levels else {})


def _of_machine(machine: Machine) -> Facts:
    stored = machine.to_dict()
    shown = ("kind", "name", "symbols", "states", "start", "read", "partial")
    data = {name: stored[name] for name in shown}
    data["answers"] = "at the end" if machine.answers_at_end else "each symbol"
    words = {name: " ".join(data[name]) for name in ("symbols", "states")}
    return data, words


def _of_span_machine(domain: SpanMachine) -> Facts:
    data, words = _of_machine(domain.machine)
    return data | {"kind": domain.kind, "values": [*domain.values]}, words | {
        "values": " ".join(domain.values)
    }


def _of_integers(domain: Integers) -> Facts:
    data = domain.to_dict() | {
        "digits": [*domain.digits],
        "operators": [*OPERATORS],
        "vocabulary": [*domain.vocabulary],
    }
    return data, {name: " ".join(data[name]) for name in ("digits", "operators", "vocabulary")}


def _of_little_endian(domain: LittleEndian) -> Facts:
    data = domain.to_dict() | {"digits": [*domain.digits]}
    return data, {"digits": " ".join(domain.digits)}


def _of_rearrangement(domain: Rearrangement) -> Facts:
    data = domain.to_dict()
    writes = ", ".join(f"{symbol or 'nothing'} for {bag}" for bag, symbol in domain.writes)
    words = {"symbols": " ".join(domain.symbols), "writes": writes}
    classes = ", then ".join(" ".join(symbols) for symbols in domain.classes)
    return data, words | ({"classes": classes} if classes else {})


FACTS: dict[str, Callable[[Any], Facts]] = {
    Algebra.kind: _of_algebra,
    Machine.kind: _of_machine,
    SpanMachine.kind: _of_span_machine,
    Integers.kind: _of_integers,
    LittleEndian.kind: _of_little_endian,
    Rearrangement.kind: _of_rearrangement,
    SquareRoot.kind: lambda domain: (domain.to_dict(), {}),
}


def facts_of(domain: Domain) -> Facts:
    """The facts of a domain, and those of the task of a benchmark that it is, if it is one."""
    data, words = FACTS[domain.kind](domain)
    if (name := task_of(domain)) is not None:
        task = TASKS[name]
        data |= {"task": FOLDER + name, "learned": task.learned, "constructed": task.constructed}
        data |= {"proved": task.proved}
    return data, words
