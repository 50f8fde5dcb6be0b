"""The Python interface: a model is a domain with weights, wherever these came from."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args, overload

import torch

from exactformer.certify import Certificate, certify, findings
from exactformer.domains.algebra import AN_ALGEBRA, Algebra, algebra_of
from exactformer.domains.data import expect, require_device, show, suggestion
from exactformer.domains.domain import Domain
from exactformer.domains.errors import ExpressionError
from exactformer.domains.expression import Expression
from exactformer.domains.syntax import parse
from exactformer.engine.choice import EngineName, require_transformer, soon_made
from exactformer.interp.module import Key, LayerModule, Patch, Run, run
from exactformer.model.construct import MAKERS
from exactformer.model.iterations import (
    MOST_WORK,
    Iterations,
    check_iterations,
    require_feasible,
)
from exactformer.model.layers import layer_of
from exactformer.model.predict import Outcome, predict, require_outcomes
from exactformer.model.remembered import Remembering, fixed, remembered
from exactformer.model.storage import from_file, to_file
from exactformer.trace import Explained, Trace, TraceStep, trace
from exactformer.verify import Findings
from exactformer.weights.named import is_constructed, read_weights

if TYPE_CHECKING:
    from exactformer.engine.cpu import CpuEngine

MANY = 1 << 16  # characters of texts; more are not parsed before there is an engine to read them
UNBOUNDED = 'evaluate(text) may use certified tables, and evaluate(text, "model") has no bound'

Text = str | bytes | Expression
FeedforwardKind = Literal["closed", "units", "table", "fitted"]


@dataclass(frozen=True, eq=False)
class Model(Remembering):
    """A transformer for an algebra, or for a domain of another kind. Calling it on a text runs it.

    Two are equal if they have the same domain and the same weights, wherever these came from.
    """

    domain: Domain
    weights: Any  # a `Gated`, such as the `Weights` of an algebra
    origin: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        expect(self.domain, Domain, AN_ALGEBRA)

    @property
    def algebra(self) -> Algebra:
        """The domain, which must be an algebra."""
        return algebra_of(self.domain)

    @remembered
    def sha256(self) -> str:
        """Hash of the model's weights file, which covers the domain and all that computes."""
        return to_file(self.domain, self.weights, {}).sha256

    def __eq__(self, other: object) -> bool:
        return self.sha256 == other.sha256 if isinstance(other, Model) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.sha256)

    def __repr__(self) -> str:
        facts = [str(self.origin.get("made", "of unknown origin"))]
        facts += [f"{name} {fact}" for name, fact in self.origin.items() if name != "made"]
        device = self.weights.device.type
        facts += [] if device == "cpu" else [f"on {device}"]
        return f"Model({self.domain.name}: {', '.join(facts)[:80]})"

    def __call__(self, text: Text) -> str:
        """The value that the transformer itself gives one expression, one iteration for each level.

        Raises `ExpressionError` for text that is no expression, and ValueError where the weights
        are not exact and leave no single value, or where the run would take more than `MOST_WORK`
        positions times iterations: `evaluate` has no such bound, and tables for deep text.
        """
        expect(text, (str, bytes, Expression), "the text of an expression")
        expression = self._expression(text)
        require_feasible(expression, MOST_WORK, instead=UNBOUNDED)
        return self.evaluate(expression, "model")

    @overload
    def evaluate(
        self,
        texts: Text,
        engine: EngineName = "auto",
        *,
        iterations: Iterations | None = None,
        most_work: int | None = None,
        tell: Callable[[float], None] = ...,
    ) -> str: ...

    @overload
    def evaluate(
        self,
        texts: Iterable[Text],
        engine: EngineName = "auto",
        *,
        iterations: Iterations | None = None,
        most_work: int | None = None,
        tell: Callable[[float], None] = ...,
    ) -> list[str]: ...

    def evaluate(
        self,
        texts: Text | Iterable[Text],
        engine: EngineName = "auto",
        *,
        iterations: Iterations | None = None,
        most_work: int | None = None,
        tell: Callable[[float], None] = lambda share: None,
    ) -> str | list[str]:
        """The value of an expression or of each of several. Raises `ExpressionError`.

        engine      "fast": tables that were read off certified weights, in one pass over the text,
                    without the transformer; weights that are not certified, and operators with too
                    many cases, are a ValueError. "model": the transformer, level by level. "auto":
                    "fast" if the weights are certified and the tables build in about a second, else
                    "model". Both give the same values for certified weights; `fast_engine` tells
                    which one runs.
        iterations  of the transformer, so with engine "model" only: "depth", as many as an
                    expression is deep, or "log", as many as its Strahler number.
        most_work   what the transformer may spend on one expression.
        tell        is called with the fraction of the transformer's work that is done.
        """
        require_transformer(iterations, engine)
        if isinstance(texts, Text):
            several = self.evaluate(
                [texts], engine, iterations=iterations, most_work=most_work, tell=tell
            )
            return several[0]
        self = fixed(self)  # all of it by the weights as they are now
        expect(texts, Iterable, "an expression or several, such as a list of texts")
        texts = list(texts)
        expressions: list[Expression] | None = None
        plain = all(issubclass(kind, str | bytes) for kind in set(map(type, texts)))
        made = Model._engine.is_found(self)
        if not plain or (not made and sum(map(len, texts)) <= MANY):
            expressions = self._expressions(texts)  # mistakes first: tables take a while
        fast = self.fast_engine(engine)
        if fast and expressions is None:
            return fast.texts(cast(list[str | bytes], texts))
        expressions = self._expressions(texts) if expressions is None else expressions
        if fast:
            return fast.values(expressions)
        found = self.outcomes(expressions, iterations or "depth", most_work=most_work, tell=tell)
        return [str(outcome.value) for outcome in found]

    @overload
    def fast_engine(self, engine: Literal["fast"]) -> "CpuEngine": ...

    @overload
    def fast_engine(self, engine: EngineName = "auto") -> "CpuEngine | None": ...

    def fast_engine(self, engine: EngineName = "auto") -> "CpuEngine | None":
        """The fast engine if `engine` asks for it; None if the transformer is to run."""
        if engine == "fast":
            return self._engine
        if engine == "auto":
            return self._engine_soon_made
        if engine == "model":
            return None
        hint = suggestion(engine, get_args(EngineName))
        raise ValueError(f"engine: expected auto, fast or model, found {engine!r}{hint}")

    @remembered
    def _engine_soon_made(self) -> "CpuEngine | None":
        try:
            return self._engine if soon_made(self.domain) else None
        except ValueError:
            return None

    @remembered
    def _engine(self) -> "CpuEngine":
        from exactformer.engine.cpu import CpuEngine  # numba takes a while to import
        from exactformer.engine.device import DeviceEngine
        from exactformer.engine.read_off import read_off

        automaton = read_off(self.domain, self.weights, self._findings)
        device = self.weights.device
        if device.type == "cpu":
            return CpuEngine(automaton, self.algebra)
        return DeviceEngine(automaton, self.algebra, device)

    def predict(
        self,
        expressions: Sequence[Expression],
        dtype: torch.dtype = torch.float32,
        iterations: Iterations = "depth",
    ) -> list[str | None]:
        """The value that the transformer gives each expression; None if it does not end with a
        single value.
        """
        expressions = self._prepare(expressions, iterations)
        return predict(self.domain, self.weights, expressions, dtype, iterations)

    def outcomes(
        self,
        expressions: Sequence[Expression],
        iterations: Iterations = "depth",
        *,
        places: Sequence[str] | None = None,
        most_work: int | None = None,
        tell: Callable[[float], None] = lambda share: None,
    ) -> list[Outcome]:
        """The value that the transformer gives each expression, and its number of iterations. A
        ValueError names the place of an expression that ends without a value.
        """
        expressions = self._prepare(expressions, iterations)
        return require_outcomes(
            self.domain, self.weights, expressions, places, most_work, tell, iterations
        )

    def _prepare(
        self, expressions: Sequence[Expression], iterations: Iterations
    ) -> list[Expression]:
        """Parse expressions of this domain; a ValueError if the iterations need exact weights and
        these are not.
        """
        if isinstance(expressions, str | bytes | Expression):
            raise TypeError(f"expected a list of expressions, found {show(expressions)}")
        self._require_exact(iterations)
        return [self._expression(expression) for expression in expressions]

    def _require_exact(self, iterations: Iterations) -> None:
        """Raise a ValueError for weights that are not exact: their spans may become anything, and
        cannot be composed.
        """
        check_iterations(iterations)
        if layer_of(self.domain, iterations).proved and not self._findings.exact:
            raise ValueError(
                f"iterations by the logarithm need weights that are certified exact; not so here: "
                f"{'; '.join(self._findings.failed)}. "
                f"`exactformer certify` tells more, and iterations by the depth run them"
            )

    @overload
    def trace(
        self,
        text: Text,
        iterations: Literal["depth"] = "depth",
        observe: Callable[[Any], None] = ...,
    ) -> Trace[TraceStep]: ...

    @overload
    def trace(
        self, text: Text, iterations: Iterations, observe: Callable[[Any], None] = ...
    ) -> Trace[Explained]: ...

    def trace(
        self,
        text: Text,
        iterations: Iterations = "depth",
        observe: Callable[[Any], None] = lambda step: None,
    ) -> Trace[Any]:
        """Every intermediate of every iteration; `observe` is shown each as soon as it is there."""
        expression = self._expression(text)
        self._require_exact(iterations)
        return trace(self.domain, self.weights, expression, iterations, observe)

    def run(
        self,
        text: Text,
        patch: Mapping[Key, Patch] | None = None,
        iterations: Iterations = "depth",
        *,
        pattern: bool = False,
    ) -> Run:
        """The transformer on one expression, with every intermediate kept and any of them patched.

        patch   what to do at (iteration, name), such as (1, "P"): a function of the tensor there,
                or a tensor to put in its place. The run goes on with the result.
        pattern keep the attention pattern, too, which takes n times n numbers.
        """
        expression = self._expression(text)
        self._require_exact(iterations)
        return run(self.domain, self.weights, expression, patch, iterations, pattern=pattern)

    def module(
        self,
        iterations: Iterations = "depth",
        *,
        straight_through: bool = False,
        pattern: bool = False,
    ) -> LayerModule:
        """The transformer as a `torch.nn.Module` with copies of the weights and a tap for each
        intermediate. With `straight_through`, gradients pass the thresholds; with `pattern`, the
        attention pattern passes a tap, too.
        """
        self._require_exact(iterations)
        return LayerModule(
            self.domain,
            self.weights,
            iterations,
            straight_through=straight_through,
            pattern=pattern,
        )

    def _expression(self, text: Text) -> Expression:
        expression = text if isinstance(text, Expression) else parse(self.domain, text)
        if expression.domain is not self.domain and expression.domain != self.domain:
            raise ValueError(
                f"expected an expression of {self.domain.name!r}, "
                f"found one of {expression.domain.name!r}"
            )
        return expression

    def _expressions(self, texts: Sequence[Text]) -> list[Expression]:
        """Parse several texts; an error says which one it is in."""
        expressions: list[Expression] = []
        for number, text in enumerate(texts, start=1):
            try:
                expressions.append(self._expression(text))
            except ExpressionError as error:
                if len(texts) > 1:
                    error.add_note(f"in text {number} of {len(texts)}")
                raise
        return expressions

    def certify(self) -> Certificate:
        """The verdict on the weights as they are now: found once for the same bytes."""
        return self._certificate

    @remembered
    def _certificate(self) -> Certificate:
        return certify(self.domain, self.weights, self._findings)

    @remembered
    def _findings(self) -> Findings:
        """The findings of the finite check alone, which is all that the fast engine needs."""
        return findings(self.domain, self.weights)

    def to(self, device: torch.device | str) -> "Model":
        expect(device, (str, torch.device), "a device such as 'cpu' or 'cuda'")
        require_device(str(device))
        try:
            weights = self.weights.to(device)
        except (RuntimeError, AssertionError) as error:  # what torch raises where there is none
            reason = str(error).splitlines()[0]
            raise ValueError(f"the device {str(device)!r} cannot be used: {reason}") from None
        return Model(self.domain, weights, self.origin)

    def save(self, path: str | Path) -> None:
        """Write a safetensors file, under a temporary name that is renamed at the end."""
        expect(path, (str, PathLike), "the path of a file to write")
        to_file(self.domain, fixed(self.weights), self.origin).write(Path(path))


def construct(
    algebra: Domain, feedforward: FeedforwardKind | None = None, *, dense: bool = False
) -> Model:
    """A model of an algebra, or of another domain, written down without training.

    feedforward   "closed": a perceptron in closed form; "units": gated units for named rules, which
                  take any number of operands; "table": a look-up table; "fitted": the paper's
                  perceptron, fitted to the table and shipped. Without it, the first of closed,
                  units and table that is possible; `origin` says which.
    dense         act on dense token vectors through an orthogonal map instead of one-hot ones.
    """
    expect(algebra, Domain, AN_ALGEBRA)
    made, weights = MAKERS[algebra.kind](algebra, feedforward, dense)
    return Model(algebra, weights, {"made": "constructed", "feedforward": made})


def load(name: str | Path, algebra: Domain | None = None) -> Model:
    """A model by the name of its weights.

    name      of shipped weights, such as "boolean/7520", or of a weights file. With an algebra,
              "7520" will do for those shipped for it; and "constructed" or "constructed/KIND" is
              what `construct` makes of it: closed, units, table, fitted or dense. These texts are
              never files; a `Path` always is one.
    algebra   what the weights must be for; without it, they say so themselves.
    """
    expect(name, (str, Path), "the name of shipped weights or a path")
    if algebra is not None:
        expect(algebra, Domain, AN_ALGEBRA)
    if is_constructed(name):
        if algebra is None:
            file = f"; a file of this name is './{name}'" if Path(name).is_file() else ""
            raise ValueError(
                f"{name}: expected an algebra, too, for weights that are written down{file}"
            )
        kind = str(name).partition("/")[2] or None
        if kind == "dense":
            return construct(algebra, dense=True)
        return construct(algebra, cast(FeedforwardKind | None, kind))
    file = read_weights(name, algebra)
    return Model(file.domain, from_file(file), file.origin)
