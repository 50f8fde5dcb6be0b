"""The kinds of domains, by the name that files give them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from exactformer.domains.algebra import Algebra
from exactformer.domains.catalog import is_reserved
from exactformer.domains.data import Place
from exactformer.domains.definition import DefinitionError, algebra_of_data, read_toml
from exactformer.domains.domain import Domain
from exactformer.domains.integers import Integers
from exactformer.domains.little_endian import LittleEndian
from exactformer.domains.machines import Machine
from exactformer.domains.rearrangements import Rearrangement
from exactformer.domains.span_machines import SpanMachine
from exactformer.domains.square_roots import SquareRoot

KINDS: dict[str, type[Domain]] = {
    kind.kind: kind
    for kind in (Algebra, Machine, SpanMachine, Integers, LittleEndian, Rearrangement, SquareRoot)
}


def read_domain(data: Any) -> Domain:
    """Read a domain from the data of its `to_dict`, which may come from an untrusted file. Data
    without a kind is an algebra's: its files are older than kinds, and hashes cover them.
    """
    kind = Algebra.kind
    if isinstance(data, Mapping) and "kind" in data:
        kind = Place(data["kind"], "kind").one_of(KINDS)
    return KINDS[kind].from_dict(data)


def load_domain(path: str | Path) -> Domain:
    """Read a domain from a TOML file: an algebra as `definition.py` says or, if the file has a
    `kind`, the data of that kind's `to_dict`.
    """
    data = read_toml(path)
    if "kind" not in data:
        return algebra_of_data(Path(path), data)
    if data["kind"] == Algebra.kind:
        raise DefinitionError(Path(path), ["kind: expected no such line for an algebra, found one"])
    try:
        domain = read_domain(data)
        if is_reserved(domain.name, domain.kind):
            raise Place(domain.name, "name").fault(
                f"expected another name than the built-in {domain.name!r}"
            )
        return domain
    except ValueError as error:
        raise DefinitionError(Path(path), [str(error)]) from None
