"""The Python interface: a model is a domain with weights, wherever these came from."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import torch

from exactformer.certify import Certificate
from exactformer.domains.algebra import AN_ALGEBRA
from exactformer.domains.belonging import OfDomain
from exactformer.domains.data import expect, require_device
from exactformer.domains.domain import Domain
from exactformer.domains.expression import Expression
from exactformer.engine.choice import EngineName
from exactformer.engine.loaded import Loaded, constructed, named
from exactformer.evaluation.programs import ProgramRun, Source, program_of, run_program
from exactformer.evaluation.values import Evaluator, Text, expression_of, expressions_of
from exactformer.interp.module import Key, LayerModule, Patch, Run
from exactformer.model.iterations import MOST_WORK, Iterations, require_feasible
from exactformer.model.predict import Outcome, predict
from exactformer.model.remembered import Remembering, fixed, remembered
from exactformer.model.storage import to_file
from exactformer.trace import Explained, ProgramTrace, Trace, TraceStep, trace, trace_program

if TYPE_CHECKING:
    from exactformer.engine.cpu import CpuEngine

UNBOUNDED = 'evaluate(text) may use certified tables, and evaluate(text, "model") has no bound'

FeedforwardKind = Literal["closed", "units", "table", "fitted"]


@dataclass(frozen=True, eq=False)
class Model(Remembering, OfDomain):
    """A transformer for an algebra, or for a domain of another kind. Calling it on a text runs it.

    Two are equal if they have the same domain and the same weights, wherever these came from.
    """

    domain: Domain
    weights: Any  # a `Gated`, such as the `Weights` of an algebra
    origin: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        expect(self.domain, Domain, AN_ALGEBRA)

    @property
    def sha256(self) -> str:
        """Hash of the model's weights file, which covers the domain and all that computes."""
        return self._loaded.sha256

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
        expression = expression_of(self.domain, text)
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
        evaluator = Evaluator(self.domain, self._loaded, engine, iterations, most_work)
        if isinstance(texts, Text):
            return evaluator.texts([texts], tell)[0]
        expect(texts, Iterable, "an expression or several, such as a list of texts")
        return evaluator.texts(list(texts), tell)

    @overload
    def fast_engine(self, engine: Literal["fast"]) -> "CpuEngine": ...

    @overload
    def fast_engine(self, engine: EngineName = "auto") -> "CpuEngine | None": ...

    def fast_engine(self, engine: EngineName = "auto") -> "CpuEngine | None":
        """The fast engine if `engine` asks for it; None if the transformer is to run."""
        return Evaluator(self.domain, self._loaded, engine).fast

    @remembered
    def _loaded(self) -> Loaded:
        """The weights as they are now, with what was found of them."""
        return Loaded(self.domain, self.weights)

    def predict(
        self,
        expressions: Sequence[Expression],
        dtype: torch.dtype = torch.float32,
        iterations: Iterations = "depth",
    ) -> list[str | None]:
        """The value that the transformer gives each expression; None if it does not end with a
        single value.
        """
        loaded, expressions = self._loaded, expressions_of(self.domain, expressions)
        loaded.require_exact(iterations)
        return predict(self.domain, loaded.weights, expressions, dtype, iterations)

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
        evaluator = Evaluator(self.domain, self._loaded, "model", iterations, most_work)
        return evaluator.outcomes(expressions_of(self.domain, expressions), places, tell)

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
        expression = expression_of(self.domain, text)
        self._loaded.require_exact(iterations)
        return trace(self.domain, self.weights, expression, iterations, observe)

    @torch.no_grad()
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
        expression = expression_of(self.domain, text)
        module = self.module(iterations, pattern=pattern)
        X, cache = module.run_with_cache(*module.encode([expression]), patch, alone=True)
        return Run(module.decode(X)[0], module.iteration, cache)

    def run_program(
        self,
        program: Source,
        inputs: Mapping[str, str] | None = None,
        iterations: Iterations | None = None,
        *,
        outputs: Sequence[str] | None = None,
        engine: EngineName = "model",
        tell: Callable[[float], None] = lambda share: None,
    ) -> ProgramRun:
        """The values of a program `name=expr;...`, by the transformer. Raises `ExpressionError`.

        inputs      the values of names without a statement, which netlists have.
        iterations  as for `evaluate`.
        outputs     the names that are its results; those that no statement uses if not given.
        engine      "model" is the transformer; "fast" and "auto" are as for `evaluate`.
        tell        is called with the fraction of the statements that is done.
        """
        found = program_of(self.domain, program, outputs)
        evaluator = Evaluator(self.domain, self._loaded, engine, iterations)
        return run_program(evaluator, found, inputs, tell)

    def trace_program(
        self,
        program: Source,
        iterations: Iterations = "depth",
        observe: Callable[[Explained], None] = lambda step: None,
    ) -> ProgramTrace:
        """When each statement of a small program runs, and what it is after each iteration;
        `observe` is shown each iteration of a statement as soon as it is there.
        """
        self._loaded.require_exact(iterations)
        return trace_program(program_of(self.domain, program), self.weights, iterations, observe)

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
        self._loaded.require_exact(iterations)
        return LayerModule(
            self.domain,
            self.weights,
            iterations,
            straight_through=straight_through,
            pattern=pattern,
        )

    def certify(self) -> Certificate:
        """The verdict on the weights as they are now: found once for the same bytes."""
        return self._loaded.certificate

    def to(self, device: torch.device | str) -> "Model":
        expect(device, (str, torch.device), "a device such as 'cpu' or 'cuda'")
        require_device(str(device))
        return super().to(device)

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
    return Model(*constructed(algebra, feedforward, dense))


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
    return Model(*named(name, algebra))
