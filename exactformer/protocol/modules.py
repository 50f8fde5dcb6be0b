"""A module of torch as a network of many seeds, by `torch.func`.

A module is called with the ids of tokens, (b, n), and with a mask, (b, n), that is true where there
is a token; behind the end of a shorter expression the id is 0 and the mask false. It returns logits
of the algebra's values, (b, values).
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from exactformer.domains.algebra import Algebra
from exactformer.domains.data import show
from exactformer.protocol.state import Inputs, Parameters

MakeModule = Callable[[], nn.Module]


class ModuleNetwork:
    """Adapts a function that makes a module to the interface of a network in training.

    `batched` says whether all seeds run as one; a module with an operation that cannot, such as a
    recurrent one of torch, runs seed by seed.
    """

    recordable: ClassVar[bool] = False  # nobody knows what a module asks for

    def __init__(self, make: MakeModule, algebra: Algebra) -> None:
        if not callable(make) or isinstance(make, nn.Module):
            raise TypeError(
                f"expected a function that makes a module, such as lambda: Mine(), "
                f"found {show(type(make).__name__)}"
            )
        self.make, self.values = make, len(algebra.values)
        self.module = _made(make, torch.Generator().manual_seed(0))
        self._try_out()
        self.batched = self._can_batch()

    def initial(self, generator: torch.Generator) -> Parameters:
        module = _made(self.make, generator)
        return {name: parameter.detach() for name, parameter in module.named_parameters()}

    def forward(
        self, p: Mapping[str, Tensor], inputs: Inputs, training: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Logits of the values; there is no penalty, and the module is not given depths."""
        mask = inputs.tokens >= 0
        tokens = inputs.tokens.long() * mask
        self.module.train(training).to(tokens.device)
        if self.batched:
            logits = self._all_seeds(p, tokens, mask)
        else:
            parts = ({name: each[i] for name, each in p.items()} for i in range(len(tokens)))
            logits = torch.stack(list(map(self._one_seed, parts, tokens, mask)))
        return logits, logits.new_zeros(logits.shape[:2])

    def _one_seed(self, p: Mapping[str, Tensor], tokens: Tensor, mask: Tensor) -> Tensor:
        return functional_call(self.module, dict(p), (tokens, mask))

    def _all_seeds(self, p: Mapping[str, Tensor], tokens: Tensor, mask: Tensor) -> Tensor:
        """Run all seeds as one. Attention then cannot use its kernels for a single model."""
        with sdpa_kernel(SDPBackend.MATH), _without_fast_path():
            return vmap(self._one_seed, randomness="different")(dict(p), tokens, mask)

    def _try_out(self) -> None:
        """Raise an error for a module with the wrong interface, before anything is trained."""
        tokens, mask = torch.zeros(2, 3, dtype=torch.int64), torch.ones(2, 3, dtype=torch.bool)
        before = {name: buffer.clone() for name, buffer in self.module.named_buffers()}
        with torch.no_grad():
            logits = self.module.train()(tokens, mask)
        expected = (2, self.values)
        if not isinstance(logits, Tensor) or tuple(logits.shape) != expected:
            found = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
            raise ValueError(
                f"expected a module from tokens (b, n) and a mask (b, n) to logits (b, "
                f"{self.values}), so {expected} for 2 problems, found {found}"
            )
        for name, buffer in self.module.named_buffers():
            if not torch.equal(buffer, before[name]):
                raise ValueError(
                    f"the module's buffer {name!r} changes as it runs, which seeds would share: "
                    f"expected a module without running statistics"
                )
        if not any(parameter.requires_grad for parameter in self.module.parameters()):
            raise ValueError("expected a module with parameters to train, found none")

    def _can_batch(self) -> bool:
        """Whether there is a rule for every operation of the module; without one, torch raises an
        error, or warns and runs seed by seed itself.
        """
        p = {
            name: each.detach().repeat(2, *[1] * each.dim()).requires_grad_()
            for name, each in self.module.named_parameters()
        }
        tokens, mask = torch.zeros(2, 1, 2, dtype=torch.int64), torch.ones(2, 1, 2).bool()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                for training in (True, False):
                    self.module.train(training)
                    logits = self._all_seeds(p, tokens, mask)
                    torch.autograd.grad(logits.sum(), list(p.values()), allow_unused=True)
            except (RuntimeError, NotImplementedError, UserWarning):
                return False
        return True


@contextmanager
def _without_fast_path() -> Iterator[None]:
    """Turn off the fast path of torch's encoder layers, which cannot run several seeds as one."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


def _made(make: MakeModule, generator: torch.Generator) -> nn.Module:
    """Make a module with random parameters that depend on the generator's seed only; torch's global
    generator is not changed.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(generator.initial_seed())
        module = make()
    if not isinstance(module, nn.Module):
        raise TypeError(f"expected a function that makes a torch.nn.Module, found {show(module)}")
    return module
