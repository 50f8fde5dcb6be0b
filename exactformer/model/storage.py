"""Converts `Weights` to and from the arrays of a weights file."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from exactformer.domains.algebra import Algebra
from exactformer.model.circuit import Weights
from exactformer.model.feedforward import MLP, Table, Units
from exactformer.weightfile import LEVELS, RANK, UNITS, Arrays, WeightFile


def to_file(
    algebra: Algebra,
    weights: Weights,
    origin: Mapping[str, Any],
    logits: Mapping[str, torch.Tensor] | None = None,
) -> WeightFile:
    """The weights file of these weights. `logits` are those from which the discrete gates and
    routing were learned; they are stored for inspection.
    """
    arrays: Arrays = {}
    for name in ("G_PE", "W_Q", "W_K", RANK, *LEVELS):
        if (tensor := getattr(weights, name)) is not None:
            arrays[name] = _whole(name, tensor, torch.int16 if name in LEVELS else torch.int8)
    f, activation = weights.f, None
    if isinstance(f, MLP):
        activation = f.activation
        arrays |= {name: _float32(name, tensor) for name, tensor in f.tensors.items()}
    elif isinstance(f, Table):
        arrays |= {name: tensor.cpu().numpy() for name, tensor in f.tensors.items()}
    elif isinstance(f, Units):
        parts = zip(UNITS, f.tensors.values(), strict=True)
        arrays |= {name: tensor.cpu().numpy() for name, tensor in parts}
    else:
        raise TypeError(f"expected an MLP, a Table or Units, found {type(f).__name__}")
    if weights.E is not None:
        arrays["E"] = _float32("E", weights.E)
    for name, tensor in (logits or {}).items():
        arrays[f"{name}_logits"] = tensor.detach().cpu().float().numpy()
    return WeightFile(algebra, arrays, activation, origin)


def _whole(name: str, tensor: torch.Tensor, kind: torch.dtype) -> NDArray[np.integer]:
    """Gates and routing as whole numbers; a ValueError for others, since the proof covers whole
    ones.
    """
    whole = tensor.detach().to(kind)
    if (whole != tensor).any():
        raise ValueError(f"tensor {name}: expected small whole numbers, found others")
    return whole.cpu().numpy()


def _float32(name: str, tensor: torch.Tensor) -> NDArray[np.float32]:
    """A tensor as float32; a ValueError for another precision, since the proof covers float32
    weights only.
    """
    if tensor.dtype != torch.float32:
        raise ValueError(f"tensor {name}: expected float32, found {tensor.dtype}")
    return tensor.detach().cpu().numpy()


def from_file(file: WeightFile) -> Weights:
    tensors = {name: torch.from_numpy(array.copy()) for name, array in file.arrays.items()}
    if "bags" in tensors:
        f = Table(tensors["bags"], tensors["outputs"])
    elif "U_in" in tensors:
        f = Units(*(tensors[name] for name in UNITS), D=len(file.algebra.vocabulary))
    else:
        assert file.activation == "relu" or file.activation == "square"  # WeightFile checks it
        perceptron = [tensors[name] for name in ("W_1", "b_1", "W_2", "b_2")]
        f = MLP(*perceptron, activation=file.activation)
    gate, W_Q, W_K = (tensors[name].float() for name in ("G_PE", "W_Q", "W_K"))
    G_R = tensors["G_R"].float() if "G_R" in tensors else None
    levels = (tensors[name].long() if name in tensors else None for name in LEVELS)
    return Weights(gate, W_Q, W_K, f, tensors.get("E"), G_R, *levels)
