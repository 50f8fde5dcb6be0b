"""The transformer as a `torch.nn.Module`, for the tools that know those.

The layer is that of `model/circuit.py`, put together from the same functions. Between them, every
intermediate passes through a tap, which hands it on: a forward hook there sees it, and replaces it
by what the hook returns. `run_with_cache` keeps what passed, under the iteration (from 1) and the
name: a cache by the name alone, as other tools have it, would keep the last iteration only. `run`
is that of one expression.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from exactformer.domains.algebra import OPEN, Algebra
from exactformer.domains.expression import Expression
from exactformer.domains.plain import expect, show, suggestion
from exactformer.domains.syntax import parse
from exactformer.model import circuit
from exactformer.model.circuit import Feedforward, Weights
from exactformer.model.encode import NO_VALUE, initial_state, read_values
from exactformer.model.exact import product
from exactformer.model.feedforward import MLP, Table, Units

Key = tuple[int, str]  # an iteration, from 1, and a name of TAPS; (0, "X") is the start
Cache = dict[Key, Tensor]
Patch = Callable[[Tensor], Tensor] | Tensor  # what to make of a tensor, or what to put in its place

BUFFERS = ("G_PE", "W_Q", "W_K", "G_R", "E")
TAPS = ("A", "P", "ids", "R", "H", "Z", "Y", "X")  # as in the glossary of model/circuit.py


class CircuitModule(nn.Module):
    """A model's transformer: a state in, the state after the last iteration out.

    state_dict   `G_PE`, `W_Q`, `W_K`, with `G_R` and `E` where there are any, and the feedforward's
                 under `f.`. A perceptron's are parameters, all others are buffers.
    taps         an identity for each of A, P, ids, R, H, Z, Y and X; each is passed once an
                 iteration, R only where there is a rank gate.
    iteration    the number of the one that is running, from 1: what a hook may ask for.

    The threshold Y = (Z > 0) has no gradient. So gradients reach from Z to H, to the perceptron and
    to the tokens of the span, as far back as these were read, but not to what others were computed
    from. With `straight_through` the backward pass takes each threshold for the identity; the
    forward pass is the same to the bit.
    """

    def __init__(
        self, algebra: Algebra, weights: Weights, *, straight_through: bool = False
    ) -> None:
        super().__init__()
        algebra.require_parentheses("a module with taps")
        self.algebra = algebra
        self.straight_through = straight_through
        self.iteration = 0
        for name in BUFFERS:
            tensor = getattr(weights, name)
            self.register_buffer(name, None if tensor is None else tensor.detach().clone())
        self.f = _FeedforwardModule(weights.f)
        self.taps = nn.ModuleDict({name: nn.Identity() for name in TAPS})

    @property
    def weights(self) -> Weights:
        """The weights as they are now, for `Model(module.algebra, module.weights)`."""
        return Weights(**{name: getattr(self, name) for name in BUFFERS}, f=self.f.feedforward)

    def encode(self, texts: Sequence[str | Expression]) -> tuple[Tensor, Tensor]:
        """The state that several expressions start from, and where it is not padding."""
        if isinstance(texts, str | Expression):
            raise TypeError(f"expected a list of expressions, found {show(texts)}")
        expressions = [e if isinstance(e, Expression) else parse(self.algebra, e) for e in texts]
        for expression in expressions:
            if expression.algebra != self.algebra:
                raise ValueError(
                    f"expected expressions of {self.algebra.name!r}, "
                    f"found one of {expression.algebra.name!r}"
                )
        return initial_state(expressions, self.weights)

    def decode(self, X: Tensor) -> list[str | None]:
        """The value that is left in each of several states; None where there is not just one."""
        found = read_values(X, self.weights, self.algebra).flatten().tolist()
        return [None if value == NO_VALUE else self.algebra.values[value] for value in found]

    def forward(self, X: Tensor, inside: Tensor) -> Tensor:
        """Iterate until no parenthesis is left, as `circuit.steps` does."""
        weights = self.weights
        tokens = self._read_tokens(X, weights)
        limit = (tokens[..., OPEN] > 0).sum(-1)
        self.iteration = 0
        while True:
            A = circuit.depth_counts(tokens, weights.G_PE)
            running = ~circuit.halted(A) & (self.iteration < limit)
            if not running.any():
                return X
            self.iteration += 1
            X = self._iterate(X, tokens, A, inside & running.unsqueeze(-1), weights)
            tokens = self._read_tokens(X, weights)

    def _iterate(
        self, X: Tensor, tokens: Tensor, A: Tensor, inside: Tensor, weights: Weights
    ) -> Tensor:
        taps = self.taps
        A = taps["A"](A)
        P = taps["P"](circuit.reduction_mask(A, inside))
        ids = taps["ids"](circuit.clusters(P))
        R = None if weights.G_R is None else taps["R"](circuit.ranks(tokens, ids, weights.G_R))
        S = weights.f.slots
        H = taps["H"](circuit.typed_attention(tokens, ids, weights.W_Q, weights.W_K, R, S))
        Z = taps["Z"](weights.f(H))
        Y = taps["Y"](self._above((Z > 0).to(X.dtype), Z))
        return taps["X"](circuit.gated_residual(X, P, circuit.write_tokens(Y, weights)))

    def _read_tokens(self, X: Tensor, weights: Weights) -> Tensor:
        tokens = circuit.read_tokens(X, weights)
        if weights.E is None or not self.straight_through:
            return tokens
        rows = product(X.flatten(0, -2), weights.E.mT).view(tokens.shape).to(X.dtype)
        return self._above(tokens, rows)

    def _above(self, hard: Tensor, soft: Tensor) -> Tensor:
        """What a threshold gives, with the gradient of what it was given, if that is wanted."""
        return hard + (soft - soft.detach()) if self.straight_through else hard

    def run_with_cache(
        self, X: Tensor, inside: Tensor, patch: Mapping[Key, Patch] | None = None
    ) -> tuple[Tensor, Cache]:
        """The last state, and everything that passed a tap, patched where `patch` says so.

        patch   what to do at (iteration, name): a function of the tensor there, or a tensor to put
                in its place; of the same shape and type. The run goes on with the result, which is
                also what the cache has. (0, "X") is the state before the first iteration.
        """
        if patch is not None:
            expect(patch, Mapping, "a dictionary such as {(1, 'P'): function} for patch")
        waiting = dict(patch or {})
        for key in waiting:
            check_key(key)
        cache: Cache = {}

        def pass_by(name: str, value: Tensor) -> Tensor:
            key = (self.iteration, name)
            if key in waiting:
                value = _patched(key, waiting.pop(key), value)
            cache[key] = value
            return value

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
            why = "there is no rank gate" if key[1] == "R" else ended
            raise ValueError(f"patch {key}: the run did not come to this iteration and name: {why}")
        return X, cache


@dataclass(frozen=True)
class Run:
    """What came out, and what passed each tap: `cache[iteration, name]`, with iterations from 1.

    Tensors have no axis of a batch: A is (n, 2); P, ids and R are (n,); H is (n, S*D); Z, Y and X
    are (n, D). `cache[0, "X"]` is the state before the first iteration.
    """

    value: str | None  # None where it ends with anything but a single value
    iterations: int
    cache: Cache = field(repr=False)


@torch.no_grad()
def run(
    algebra: Algebra,
    weights: Weights,
    expression: Expression,
    patch: Mapping[Key, Patch] | None = None,
) -> Run:
    """One expression, with everything kept and with whatever patches are asked for."""
    module = CircuitModule(algebra, weights)
    X, inside = initial_state([expression], weights)
    X, cache = module.run_with_cache(X[0], inside[0], patch)
    return Run(module.decode(X)[0], module.iteration, cache)


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
        """With the tensors as they are now."""
        tensors = {name: getattr(self, name) for name in self.made_of.tensors}
        return replace(self.made_of, **tensors)


def check_key(key: Any) -> None:
    """A key of a patch names an iteration and a tap."""
    pair = isinstance(key, tuple) and len(key) == 2
    known = pair and type(key[0]) is int and key[1] in TAPS
    if not known or key[0] < (0 if key[1] == "X" else 1):
        named = pair and isinstance(key[1], str)
        hint = suggestion(key[1], TAPS) or suggestion(key[1].upper(), TAPS) if named else ""
        raise ValueError(
            f"patch: expected an iteration from 1 and one of {', '.join(TAPS)}, such as (1, 'Y'), "
            f"or (0, 'X') for the start, found {key!r}{'' if known else hint}"
        )


def _patched(key: Key, patch: Patch, value: Tensor) -> Tensor:
    """What a patch makes of a tensor, or puts in its place."""
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
