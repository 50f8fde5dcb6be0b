"""The Python interface: a model is an algebra with weights, wherever these came from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import torch

from exactformer.certify import Certificate, certify
from exactformer.domains.algebra import AN_ALGEBRA, Algebra
from exactformer.domains.plain import expect, show, suggestion
from exactformer.domains.syntax import Expression, parse
from exactformer.model import construct as by_hand
from exactformer.model.circuit import Weights
from exactformer.model.predict import predict
from exactformer.model.storage import from_file, to_file
from exactformer.trace import Trace, trace
from exactformer.weightfile import WeightFile

if TYPE_CHECKING:
    from exactformer.engine.cpu import CpuEngine

SHIPPED = Path(__file__).parent / "weights"  # DOMAIN/NAME.safetensors

SOON_MADE = 100_000  # cases of all operators together, for which the engine takes about a second

FeedforwardKind = Literal["closed", "units", "table", "fitted"]


@dataclass(frozen=True, eq=False)
class Model:
    """A transformer for an algebra. Call it on the text of an expression.

    Two are equal if they have the same algebra and the same weights, wherever these came from.
    """

    algebra: Algebra
    weights: Weights
    origin: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        expect(self.algebra, Algebra, AN_ALGEBRA)

    @cached_property
    def sha256(self) -> str:
        """The hash of its weights file, which covers the algebra and all that computes."""
        return to_file(self.algebra, self.weights, {}).sha256

    def __eq__(self, other: object) -> bool:
        return self.sha256 == other.sha256 if isinstance(other, Model) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.sha256)

    def __repr__(self) -> str:
        facts = [str(self.origin.get("made", "of unknown origin"))]
        facts += [f"{name} {fact}" for name, fact in self.origin.items() if name != "made"]
        device = self.weights.G_PE.device.type
        facts += [] if device == "cpu" else [f"on {device}"]
        return f"Model({self.algebra.name}: {', '.join(facts)[:80]})"

    def __call__(self, text: str | bytes | Expression) -> str:
        """The value of an expression: by the engine if the weights are exact, which is all the
        same then and much faster; else by running the transformer.
        """
        if self.fast and isinstance(text, str | bytes):
            return self.fast.value(text)
        expression = self._expression(text)
        if self.fast:
            return self.fast.values([expression])[0]
        value = self.predict([expression])[0]
        if value is None:
            raise ValueError(
                f"the model leaves no single value for {expression!r}: "
                f"its weights are not exact (certify says where)"
            )
        return value

    @cached_property
    def fast(self) -> "CpuEngine | None":
        """The engine, if there is one for these weights and its tables are soon made; not for
        operators of any number of operands, of which tables cover only some.
        """
        try:
            cases = self.algebra.count_cases(every_order=self.algebra.ordered)
            return self.engine if cases <= SOON_MADE else None
        except ValueError:
            return None

    @cached_property
    def engine(self) -> "CpuEngine":
        """The fast evaluator. Raises ValueError for weights that are not certified exact, and for
        operators with too many cases for tables.
        """
        from exactformer.engine.automaton import read_off  # numba takes a while to import
        from exactformer.engine.card import CardEngine
        from exactformer.engine.cpu import CpuEngine

        automaton, device = read_off(self.algebra, self.weights), self.weights.G_PE.device
        if device.type == "cpu":
            return CpuEngine(automaton, self.algebra)
        return CardEngine(automaton, self.algebra, device)

    def predict(
        self, expressions: Sequence[Expression], dtype: torch.dtype = torch.float32
    ) -> list[str | None]:
        """The value the transformer gives each; None where it ends with anything else."""
        if isinstance(expressions, str | bytes | Expression):
            raise TypeError(f"expected a list of expressions, found {show(expressions)}")
        expressions = [self._expression(expression) for expression in expressions]
        return predict(self.algebra, self.weights, expressions, dtype)

    def trace(self, text: str | bytes | Expression) -> Trace:
        return trace(self.algebra, self.weights, self._expression(text))

    def _expression(self, text: str | bytes | Expression) -> Expression:
        expression = text if isinstance(text, Expression) else parse(self.algebra, text)
        if expression.algebra != self.algebra:
            raise ValueError(
                f"expected an expression of {self.algebra.name!r}, "
                f"found one of {expression.algebra.name!r}"
            )
        return expression

    def certify(self) -> Certificate:
        return certify(self.algebra, self.weights)

    def to(self, device: torch.device | str) -> "Model":
        try:
            if torch.device(device).type not in ("cpu", "cuda"):
                raise RuntimeError("expected cpu or cuda")
            weights = self.weights.to(device)
        except (RuntimeError, AssertionError) as error:  # what torch raises where there is none
            reason = str(error).splitlines()[0]
            raise ValueError(f"the device {str(device)!r} cannot be used: {reason}") from None
        return Model(self.algebra, weights, self.origin)

    def save(self, path: str | Path) -> None:
        """Write a safetensors file, under a temporary name that is renamed at the end."""
        to_file(self.algebra, self.weights, self.origin).write(Path(path))


def construct(
    algebra: Algebra, feedforward: FeedforwardKind | None = None, *, dense: bool = False
) -> Model:
    """A model written down without training.

    feedforward   "closed": a perceptron in closed form; "units": gated units for named rules, which
                  take any number of operands; "table": a look-up table; "fitted": the paper's
                  perceptron, fitted to the table and shipped. Without it, the first of closed,
                  units and table that can be had; `origin` says which.
    dense         act on dense token vectors through an orthogonal map instead of one-hot ones.
    """
    expect(algebra, Algebra, AN_ALGEBRA)
    if feedforward == "fitted":
        if not (SHIPPED / algebra.name / "fitted.safetensors").is_file():
            raise ValueError(
                f"no fitted perceptron is shipped for {algebra.name!r}; with the paper's routing "
                f"none can exist for arithmetic (the README says why): use closed or table"
            )
        model = load(f"{algebra.name}/fitted")
        if model.algebra != algebra:
            raise ValueError(f"the fitted perceptron is for another algebra named {algebra.name!r}")
        weights = model.weights
    else:
        feedforward, f = by_hand.feedforward(algebra, feedforward)
        weights = by_hand.assemble(algebra, f)
    if dense:
        weights = by_hand.dense(weights, torch.Generator().manual_seed(0))
    return Model(algebra, weights, {"made": "constructed", "feedforward": feedforward})


def find(algebra: Algebra, name: str) -> Model:
    """Weights for an algebra by the name a user gives them on the command line: `constructed`,
    `constructed/closed`, `constructed/units`, `constructed/table`, `constructed/fitted`,
    `constructed/dense`, a shipped name, or a file.
    """
    if name.split("/")[0] == "constructed":
        kind = name.partition("/")[2] or None
        if kind == "dense":
            return construct(algebra, dense=True)
        return construct(algebra, cast(FeedforwardKind | None, kind))
    model = look_up(algebra.name, name)
    if model.algebra != algebra:
        raise ValueError(
            f"{name} holds weights for {model.algebra.name!r}, not for this {algebra.name!r}"
        )
    return model


def look_up(domain: str, name: str) -> Model:
    """Weights that are shipped for a domain, or in a file, whatever their algebra."""
    shipped = f"{domain}/{name}"
    if (SHIPPED / f"{shipped}.safetensors").is_file():
        return load(shipped)
    if not Path(name).is_file() and "/" not in name:
        here = [path.stem for path in sorted((SHIPPED / domain).glob("*.safetensors"))]
        raise _missing(name, f"constructed, {', '.join([*here, 'or a file'])}", here)
    return load(name)


def load(name: str | Path) -> Model:
    """A shipped model such as "boolean/7520", or any weights file."""
    expect(name, (str, Path), "the name of shipped weights or a path")
    path = Path(name)
    shipped = SHIPPED / f"{name}.safetensors"
    if shipped.resolve().is_relative_to(SHIPPED.resolve()) and shipped.is_file():
        path = shipped
    if not path.is_file():
        shipped = sorted(SHIPPED.glob("*/*.safetensors"))
        names = [path.relative_to(SHIPPED).with_suffix("").as_posix() for path in shipped]
        raise _missing(str(name), "a file, or shipped weights such as boolean/7520", names)
    file = WeightFile.read(path)
    return Model(file.algebra, from_file(file), file.origin)


def _missing(name: str, expected: str, known: Sequence[str]) -> ValueError:
    """The error of a name that is neither a file nor shipped."""
    if Path(name).is_dir():
        return ValueError(f"expected {expected}, found the folder {name!r}")
    if Path(name).suffix:
        return ValueError(f"no such file: {name!r}")
    words = ["constructed", *known]
    return ValueError(f"expected {expected}, found {name!r}{suggestion(name, words)}")
