"""Every documented way to change a tensor in torch, by name.

Each takes a tensor that a model holds and a generator. Where a way does not exist for a type of
numbers (no optimizer takes whole ones), it raises `NotPossible`.
"""

import ctypes
import tempfile
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

Change = Callable[[Tensor, np.random.Generator], None]


class NotPossible(Exception):
    """There is no such change of such a tensor."""


def _other(tensor: Tensor, rng: np.random.Generator) -> Tensor:
    """Numbers of the same type and shape, of which one or all are others."""
    new = tensor.detach().clone()
    flat = new.view(-1)
    place = int(rng.integers(len(flat))) if rng.random() < 0.7 else slice(None)
    flat[place] += 1 if rng.random() < 0.5 else -1
    return new


def _floating(tensor: Tensor) -> None:
    if not tensor.is_floating_point():
        raise NotPossible("whole numbers have no gradient")


def _parameter(tensor: Tensor) -> nn.Parameter:
    _floating(tensor)
    parameter = nn.Parameter(tensor.detach())  # which shares the memory
    assert parameter.data_ptr() == tensor.data_ptr()
    parameter.grad = torch.ones_like(tensor)
    return parameter


def _put(tensor: Tensor, new: Tensor) -> None:
    with torch.no_grad():
        tensor.copy_(new)


def _in_inference_mode(tensor: Tensor, rng: np.random.Generator) -> None:
    with torch.inference_mode():
        tensor.copy_(_other(tensor, rng))


def _one_index(tensor: Tensor, rng: np.random.Generator) -> None:
    place = tuple(int(rng.integers(size)) for size in tensor.shape)
    tensor[place] = tensor[place] + 1


def _out(tensor: Tensor, rng: np.random.Generator) -> None:
    torch.add(_other(tensor, rng), 0, out=tensor)


def _view(tensor: Tensor, rng: np.random.Generator) -> None:
    _put(tensor.view(-1), _other(tensor, rng).view(-1))


def _as_strided(tensor: Tensor, rng: np.random.Generator) -> None:
    tensor.as_strided((1,), (1,)).add_(1)


def _set(tensor: Tensor, rng: np.random.Generator) -> None:
    tensor.set_(_other(tensor, rng))  # type: ignore[arg-type]


def _storage(tensor: Tensor, rng: np.random.Generator) -> None:
    new = _other(tensor, rng)
    tensor.untyped_storage().copy_(new.untyped_storage())


def _byte_of_storage(tensor: Tensor, rng: np.random.Generator) -> None:
    storage = tensor.untyped_storage()
    place = int(rng.integers(len(storage)))
    storage[place] = storage[place] ^ 1


def _memory(tensor: Tensor, rng: np.random.Generator) -> None:
    new = _other(tensor, rng)
    ctypes.memmove(tensor.data_ptr(), new.data_ptr(), new.nbytes)


def _numpy(tensor: Tensor, rng: np.random.Generator) -> None:
    tensor.numpy()[...] = _other(tensor, rng).numpy()


def _dlpack(tensor: Tensor, rng: np.random.Generator) -> None:
    torch.from_dlpack(tensor).copy_(_other(tensor, rng))


def _shared(tensor: Tensor, rng: np.random.Generator) -> None:
    """Moved to shared memory, and written to by whoever has that."""
    tensor.share_memory_()
    handle = tensor.untyped_storage()
    sharing = torch.empty(0, dtype=tensor.dtype).set_(handle, 0, tensor.shape, tensor.stride())
    sharing.copy_(_other(tensor, rng))


def _mapped(tensor: Tensor, rng: np.random.Generator) -> None:
    """Put into a file that is mapped into memory, which is written to as a file then."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tensor"
        path.write_bytes(tensor.numpy().tobytes())
        mapped = torch.from_file(str(path), True, tensor.numel(), dtype=tensor.dtype)
        tensor.data = mapped.view(tensor.shape)
        new = _other(tensor, rng)
        with path.open("r+b") as file:
            file.write(new.numpy().tobytes())


def _data(tensor: Tensor, rng: np.random.Generator) -> None:
    tensor.data.copy_(_other(tensor, rng))


def _data_anew(tensor: Tensor, rng: np.random.Generator) -> None:
    tensor.data = _other(tensor, rng)


def _sign_of_zero(tensor: Tensor, rng: np.random.Generator) -> None:
    _floating(tensor)
    tensor.data.copy_(torch.where(tensor == 0, -tensor, tensor))


def _vector(tensor: Tensor, rng: np.random.Generator) -> None:
    parameter = _parameter(tensor)
    nn.utils.vector_to_parameters(_other(tensor, rng).view(-1), [parameter])
    tensor.data = parameter.data


def _state_dict(tensor: Tensor, rng: np.random.Generator) -> None:
    module = nn.Module()
    module.register_parameter("p", nn.Parameter(tensor, requires_grad=False))
    module.load_state_dict({"p": _other(tensor, rng)})


def _assigned(tensor: Tensor, rng: np.random.Generator) -> None:
    _floating(tensor)
    module = nn.Module()
    module.register_parameter("p", nn.Parameter(tensor))
    module.load_state_dict({"p": _other(tensor, rng)}, assign=True)
    tensor.data = module.get_parameter("p").data


def _functional(tensor: Tensor, rng: np.random.Generator) -> None:
    """A step by a gradient of torch.func, written back in place."""
    _floating(tensor)
    gradient = torch.func.grad(lambda t: (t * _other(tensor, rng)).sum() + t.sum())(tensor)
    with torch.no_grad():
        torch._foreach_sub_([tensor], [gradient + 1])


def _swapped(tensor: Tensor, rng: np.random.Generator) -> None:
    torch.utils.swap_tensors(tensor, _other(tensor, rng))


def _with_a_gradient(tensor: Tensor, rng: np.random.Generator) -> None:
    _floating(tensor)
    tensor.requires_grad_()
    tensor.data.copy_(_other(tensor, rng))


def _unnoticed(tensor: Tensor, rng: np.random.Generator) -> None:
    with torch.autograd._unsafe_preserve_version_counter(tensor):
        tensor.copy_(_other(tensor, rng))


def void(result: object) -> None:
    """The change is all that is wanted."""


CHANGES: dict[str, Change] = {
    "add_": lambda t, rng: void(t.add_(1)),
    "copy_": lambda t, rng: _put(t, _other(t, rng)),
    "mul_ and add_": lambda t, rng: void(t.mul_(2).add_(1)),
    "zero_": lambda t, rng: void(t.zero_()),
    "fill_": lambda t, rng: void(t.fill_(1)),
    "random_": lambda t, rng: void(t.random_(0, 2)),
    "masked_fill_": lambda t, rng: void(t.masked_fill_(t == t.flatten()[0], 3)),
    "index_fill_": lambda t, rng: void(t.index_fill_(0, torch.tensor([0]), 3)),
    "index": _one_index,
    "clamp_": lambda t, rng: void(t.clamp_(max=0)),
    "out=": _out,
    "view": _view,
    "as_strided": _as_strided,
    "inference mode": _in_inference_mode,
    ".data": _data,
    ".data =": _data_anew,
    ".data with a gradient": _with_a_gradient,
    "the sign of zeros": _sign_of_zero,
    "set_": _set,
    "swap_tensors": _swapped,
    "untyped_storage": _storage,
    "a bit of untyped_storage": _byte_of_storage,
    "memory": _memory,
    "NumPy": _numpy,
    "DLPack": _dlpack,
    "shared memory": _shared,
    "mapped file": _mapped,
    "counter kept": _unnoticed,
    "vector_to_parameters": _vector,
    "load_state_dict": _state_dict,
    "load_state_dict, assign": _assigned,
    "torch.func": _functional,
    "_foreach_add_": lambda t, rng: torch._foreach_add_([t], 1),
    "_foreach_copy_": lambda t, rng: torch._foreach_copy_([t], [_other(t, rng)]),
}


def _initialized(init: Callable[[Tensor], Tensor]) -> Change:
    def change(tensor: Tensor, rng: np.random.Generator) -> None:
        _floating(tensor)
        init(tensor)

    return change


CHANGES |= {
    f"init.{name}": _initialized(getattr(nn.init, name))
    for name in ("normal_", "uniform_", "ones_", "zeros_")
}


def _stepped(kind: type[torch.optim.Optimizer], settings: dict[str, bool]) -> Change:
    def change(tensor: Tensor, rng: np.random.Generator) -> None:
        parameter = _parameter(tensor)
        try:
            made: Any = kind
            optimizer = made([parameter], lr=float(rng.choice([0.01, 1.0])), **settings)
        except (RuntimeError, ValueError):  # of matrices only, say
            raise NotPossible("the optimizer does not take such a tensor") from None
        optimizer.step(lambda: float(torch.ones_like(parameter).sum()))

    return change


def _optimizers() -> dict[str, Change]:
    """Each of torch's, in each of its versions."""
    found: dict[str, Change] = {}
    for name, kind in vars(torch.optim).items():
        if not (isinstance(kind, type) and issubclass(kind, torch.optim.Optimizer)):
            continue
        if name in ("Optimizer", "SparseAdam"):  # the latter takes sparse gradients only
            continue
        found[f"{name}, plain"] = _stepped(kind, {})
        for version in ("foreach", "fused"):
            if version in signature(kind).parameters:
                found[f"{name}, {version}"] = _stepped(kind, {version: True})
    return found


CHANGES |= _optimizers()
