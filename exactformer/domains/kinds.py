"""The kinds of domains, by the name that files give them."""

from collections.abc import Mapping
from typing import Any

from exactformer.domains.algebra import Algebra
from exactformer.domains.data import Place
from exactformer.domains.domain import Domain

KINDS: dict[str, type[Domain]] = {Algebra.kind: Algebra}


def read_domain(data: Any) -> Domain:
    """Read a domain from the data of its `to_dict`, which may come from an untrusted file. Data
    without a kind is an algebra's: its files are older than kinds, and hashes cover them.
    """
    kind = Algebra.kind
    if isinstance(data, Mapping) and "kind" in data:
        kind = Place(data["kind"], "kind").one_of(KINDS)
    return KINDS[kind].from_dict(data)
