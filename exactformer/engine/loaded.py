"""Models in memory: by the name of their weights, with facts about them, each computed once."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exactformer.certify import Certificate, certify, findings
from exactformer.domains.belonging import algebra_of
from exactformer.domains.capabilities import require_capability
from exactformer.domains.domain import Domain
from exactformer.model.construct import MAKERS
from exactformer.model.iterations import Iterations, check_iterations
from exactformer.model.layers import layer_of
from exactformer.model.storage import from_file, to_file
from exactformer.verify import Findings
from exactformer.weights.named import is_constructed, read_weights

if TYPE_CHECKING:
    from exactformer.engine.cpu import CpuEngine

Parts = tuple[Domain, Any, Mapping[str, Any]]  # of a model: a domain, weights and their origin


def constructed(domain: Domain, feedforward: str | None, dense: bool) -> Parts:
    """Weights that are written down, with the arguments of `api.construct`."""
    made, weights = MAKERS[domain.kind](domain, feedforward, dense)
    return domain, weights, {"made": "constructed", "feedforward": made}


def named(name: str | Path, domain: Domain | None) -> Parts:
    """Weights by the name a user gives them, which must be for the domain. Without one, a file says
    what its weights are for.
    """
    if is_constructed(name):
        if domain is None:
            file = f"; a file of this name is './{name}'" if Path(name).is_file() else ""
            raise ValueError(
                f"{name}: expected an algebra, too, for weights that are written down{file}"
            )
        kind = str(name).partition("/")[2]
        return constructed(domain, None if kind in ("", "dense") else kind, kind == "dense")
    file = read_weights(name, domain)
    return file.domain, from_file(file), file.origin


@dataclass(frozen=True, eq=False)
class Loaded:
    """Weights that nobody changes any more."""

    domain: Domain
    weights: Any  # a `Gated`

    @cached_property
    def sha256(self) -> str:
        """Hash of the weights file, which covers the domain and all that computes."""
        return to_file(self.domain, self.weights, {}).sha256

    @cached_property
    def findings(self) -> Findings:
        """The findings of the finite check alone, which is all that the fast engine needs."""
        return findings(self.domain, self.weights)

    @cached_property
    def certificate(self) -> Certificate:
        return certify(self.domain, self.weights, self.findings)

    @cached_property
    def engine(self) -> "CpuEngine | str":
        """The fast engine, with tables that are read off the weights, or why there is none."""
        from exactformer.engine.cpu import CpuEngine  # numba takes a while to import
        from exactformer.engine.device import DeviceEngine
        from exactformer.engine.read_off import read_off

        try:
            automaton = read_off(self.domain, self.weights, self.findings)
            algebra, device = algebra_of(self.domain), self.weights.device
            if device.type == "cpu":
                return CpuEngine(automaton, algebra)
            require_capability("gpu", self.domain)
            return DeviceEngine(automaton, algebra, device)
        except ValueError as error:
            return str(error)

    def require_exact(self, iterations: Iterations) -> None:
        """Raise a ValueError for weights that are not exact, if the iterations need exact ones:
        spans may else become anything, and cannot be composed.
        """
        check_iterations(iterations)
        if layer_of(self.domain, iterations).proved and not self.findings.exact:
            raise ValueError(
                f"iterations by the logarithm need weights that are certified exact; not so here: "
                f"{'; '.join(self.findings.failed)}. "
                f"`exactformer certify` tells more, and iterations by the depth run them"
            )
