"""The transformer as a `torch.nn.Module`, for the tools that know those.

Each layer of `model/layers.py` passes its intermediates through a tap, which hands them on: a
forward hook there sees each, and replaces it by what the hook returns. `run_with_cache` keeps what
passed, under the iteration (from 1) and the name: a cache by the name alone, as other tools have
it, would keep the last iteration only. `Model.run` does so for one expression.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from torch import Tensor, nn

from exactformer.domains.belonging import OfDomain
from exactformer.domains.capabilities import require_capability
from exactformer.domains.data import expect, show, suggestion
from exactformer.domains.domain import Domain
from exactformer.domains.expression import Expression
from exactformer.domains.syntax import parse
from exactformer.model.circuit import Feedforward, Tap
from exactformer.model.encode import initial_state, read_answers
from exactformer.model.exact import product
from exactformer.model.feedforward import MLP, Table, Units
from exactformer.model.gated import Gated
from exactformer.model.iterations import Iterations
from exactformer.model.layers import PATTERN, layer_of
from exactformer.weights.tensors import CONTENTS

Key = tuple[int, str]  # an iteration, from 1, and a name of a tap; (0, "X") is the start
Cache = dict[Key, Tensor]
Patch = Callable[[Tensor], Tensor] | Tensor  # a function of a tensor, or a tensor to replace it


class LayerModule(nn.Module, OfDomain):
    """A model's transformer: a state in, the state after the last iteration out.

    state_dict   `G_PE`, `W_Q`, `W_K`, with `G_R`, `E`, `G_L` and `directions` where there are any,
                 and the feedforward's under `f.`. A perceptron's are parameters, all others are
                 buffers.
    taps         an identity for each intermediate of its layer: A, P, ids, R, pattern, H, Z, Y and
                 X in the paper's. Each is passed once an iteration, R only where there is a rank
                 gate, and the attention pattern only if `pattern` asks for it.
    iteration    the number of the one that is running, from 1: what a hook may ask for.

    The threshold Y = (Z > 0) has no gradient. So gradients reach from Z to H, to the perceptron and
    to the tokens of the span, as far back as these were read, but not to what others were computed
    from. With `straight_through` the backward pass takes each threshold for the identity; the
    forward pass is the same to the bit.
    """

    def __init__(
        self,
        domain: Domain,
        weights: Gated,
        iterations: Iterations = "depth",
        *,
        straight_through: bool = False,
        pattern: bool = False,
    ) -> None:
        super().__init__()
        self.domain = domain
        self.kind: Callable[..., Any] = type(weights)  # of weights
        self.iterations: Iterations = iterations
        self.layer = layer_of(domain, iterations)
        self.pattern = pattern
        for name, asked in {"gradients": straight_through, "pattern": pattern}.items():
            if asked:
                require_capability(name, domain, iterations)
        self.straight_through = straight_through
        self.iteration = 0
        for name in CONTENTS[domain.kind].gates:
            gate = weights.gates.get(name)
            self.register_buffer(name, None if gate is None else gate.detach().clone())
        self.f = _FeedforwardModule(weights.f)
        self.taps = nn.ModuleDict({name: nn.Identity() for name in self.layer.taps})

    @property
    def weights(self) -> Any:
        """The weights as they are now, for `Model(module.domain, module.weights)`."""
        gates = {name: getattr(self, name) for name in CONTENTS[self.domain.kind].gates}
        return self.kind(**gates, f=self.f.feedforward)

    def encode(self, texts: Sequence[str | Expression]) -> tuple[Tensor, Tensor]:
        """The initial state of several expressions, and the mask of positions that are not
        padding.
        """
        if isinstance(texts, str | Expression):
            raise TypeError(f"expected a list of expressions, found {show(texts)}")
        expressions = [e if isinstance(e, Expression) else parse(self.domain, e) for e in texts]
        for expression in expressions:
            if expression.domain != self.domain:
                raise ValueError(
                    f"expected expressions of {self.domain.name!r}, "
                    f"found one of {expression.domain.name!r}"
                )
        return initial_state(expressions, self.weights)

    def decode(self, X: Tensor) -> list[str | None]:
        """The value left in each of several states; None unless there is exactly one token."""
        return read_answers(X.flatten(0, -3), self.weights, self.domain)

    def forward(self, X: Tensor, inside: Tensor) -> Tensor:
        """Iterate until every sequence has halted, and return the last state."""
        weights, passed = self.weights, {"X": X}

        def see(name: str, value: Tensor) -> Tensor:
            if self.straight_through and name == "tokens" and weights.E is not None:
                rows = product(passed["X"].flatten(0, -2), weights.E.mT)
                value = _with_gradient(value, rows.view(value.shape).to(value.dtype))
            elif self.straight_through and name == "Y":
                value = _with_gradient(value, passed["Z"])
            passed[name] = self.taps[name](value) if name in self.taps else value
            return passed[name]

        self.iteration = 1
        for step in self.layer.steps(X, inside, weights, self.domain, Tap(see, self.pattern)):
            X = step.X
            self.iteration += 1
        self.iteration -= 1  # nothing was left for the last one
        return X

    def run_with_cache(
        self,
        X: Tensor,
        inside: Tensor,
        patch: Mapping[Key, Patch] | None = None,
        *,
        alone: bool = False,
    ) -> tuple[Tensor, Cache]:
        """The last state, and everything that passed a tap, patched where `patch` says so.

        patch   what to do at (iteration, name): a function of the tensor there, or a tensor to put
                in its place; of the same shape and type. The run goes on with the result, which is
                also what the cache has. (0, "X") is the state before the first iteration.
        alone   whether X is a batch of one, whose axis of sequences patches and cache go without.
        """
        if patch is not None:
            expect(patch, Mapping, "a dictionary such as {(1, 'P'): function} for patch")
        waiting = dict(patch or {})
        for key in waiting:
            check_key(key, self.layer.taps)
        cache: Cache = {}

        def pass_by(name: str, value: Tensor) -> Tensor:
            key, strip = (self.iteration, name), alone and name not in self.layer.flat
            value = value[0] if strip else value
            if key in waiting:
                value = _patched(key, waiting.pop(key), value)
            cache[key] = value
            return value.unsqueeze(0) if strip else value

        def hook(name: str) -> Callable[[nn.Module, tuple[Tensor, ...], Tensor], Tensor]:
            return lambda tap, given, value: pass_by(name, value)

        self.iteration = 0
        X = pass_by("X", X)
        handles = [tap.register_forward_hook(hook(name)) for name, tap in self.taps.items()]
        try:
            X = self(X, inside)
        finally:
            for handle in handles:
                handle.remove()
        for key in waiting:
            ended = f"it ended after {self.iteration} iteration{'s' * (self.iteration != 1)}"
            why = self._absent(key[1]) or ended
            raise ValueError(f"patch {key}: the run did not come to this iteration and name: {why}")
        return X, cache

    def _absent(self, name: str) -> str | None:
        """Why these weights never pass a tap that their layer has."""
        if name == "R" and self.G_R is None:
            return "there is no rank gate"
        return "it was not asked for" if name == PATTERN and not self.pattern else None


@dataclass(frozen=True)
class Run:
    """The result of a run and all tensors that passed a tap: `cache[iteration, name]`, with
    iterations from 1.

    Tensors have no axis of a batch. In the paper's layer A is (n, 2); P, ids and R are (n,); the
    attention pattern, if it was asked for, is (n, n); H is (n, S*D); Z, Y and X are (n, D). In the
    other layers P and X are so, too, and the rest is span by span, as the glossaries of
    `speculate.py`, `precedence.py` and `polish.py` say; docs/interp.md has the shapes. In plain and
    Polish notation A has a row for each implied parenthesis, too. `cache[0, "X"]` is the state
    before the first iteration.
    """

    value: str | None  # None where it ends with anything but a single value
    iterations: int
    cache: Cache = field(repr=False)


class _FeedforwardModule(nn.Module):
    """The tensors of a feedforward; floats are parameters, whole numbers are buffers."""

    def __init__(self, f: Feedforward) -> None:
        super().__init__()
        if not isinstance(f, MLP | Table | Units):
            raise TypeError(f"expected an MLP, a Table or Units, found {type(f).__name__}")
        self.made_of = f
        for name, tensor in f.tensors.items():
            copied = tensor.detach().clone()
            if copied.is_floating_point():
                self.register_parameter(name, nn.Parameter(copied))
            else:
                self.register_buffer(name, copied)

    @property
    def feedforward(self) -> Feedforward:
        """The feedforward with the module's tensors as they are now."""
        tensors = {name: getattr(self, name) for name in self.made_of.tensors}
        return replace(self.made_of, **tensors)


def check_key(key: Any, taps: Sequence[str]) -> None:
    """A key of a patch names an iteration and a tap."""
    pair = isinstance(key, tuple) and len(key) == 2
    known = pair and type(key[0]) is int and key[1] in taps
    if not known or key[0] < (0 if key[1] == "X" else 1):
        named = pair and isinstance(key[1], str)
        hint = suggestion(key[1], taps) or suggestion(key[1].upper(), taps) if named else ""
        raise ValueError(
            f"patch: expected an iteration from 1 and one of {', '.join(taps)}, such as (1, 'Y'), "
            f"or (0, 'X') for the start, found {key!r}{'' if known else hint}"
        )


def _with_gradient(hard: Tensor, soft: Tensor) -> Tensor:
    """The output of a threshold, with the gradient of its input."""
    return hard + (soft - soft.detach())


def _patched(key: Key, patch: Patch, value: Tensor) -> Tensor:
    """The tensor that a patch gives: the patch itself, or its result if it is a function."""
    given = value.clone()  # a function that writes into it must not change what was before
    new = patch(given) if callable(patch) and not isinstance(patch, Tensor) else patch
    if new is None and callable(patch):
        raise TypeError(
            f"patch {key}: expected a function that returns a tensor, found one that returns "
            f"nothing: end it with `return`, also where it changes its argument in place"
        )
    if not isinstance(new, Tensor):
        raise TypeError(f"patch {key}: expected a tensor or a function to one, found {show(new)}")
    if (new.dtype, new.shape) != (value.dtype, value.shape):
        raise ValueError(
            f"patch {key}: expected {value.dtype} of {tuple(value.shape)}, "
            f"found {new.dtype} of {tuple(new.shape)}"
        )
    return new.to(value.device)
