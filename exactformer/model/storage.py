"""`Weights` to and from the arrays of a weights file."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from exactformer.domains.algebra import Algebra
from exactformer.model.circuit import Weights
from exactformer.model.feedforward import MLP, Table
from exactformer.weightfile import WeightFile


def to_file(algebra: Algebra, weights: Weights, origin: Mapping[str, Any]) -> WeightFile:
    tensors = {"G_PE": weights.G_PE, "W_Q": weights.W_Q, "W_K": weights.W_K}
    arrays = {
        name: tensor.detach().cpu().numpy().astype(np.int8) for name, tensor in tensors.items()
    }
    f, activation = weights.f, None
    if isinstance(f, MLP):
        activation = f.activation
        tensors = {"W_1": f.W_1, "b_1": f.b_1, "W_2": f.W_2, "b_2": f.b_2}
        arrays |= {name: t.detach().cpu().float().numpy() for name, t in tensors.items()}
    elif isinstance(f, Table):
        arrays |= {"bags": f.bags.cpu().numpy(), "outputs": f.outputs.cpu().numpy()}
    else:
        raise TypeError(f"expected an MLP or a Table, found {type(f).__name__}")
    if weights.E is not None:
        arrays["E"] = weights.E.cpu().numpy()
    return WeightFile(algebra, arrays, activation, origin)


def from_file(file: WeightFile) -> Weights:
    tensors = {name: torch.from_numpy(array.copy()) for name, array in file.arrays.items()}
    if "bags" in tensors:
        f = Table(tensors["bags"], tensors["outputs"])
    else:
        assert file.activation == "relu" or file.activation == "square"  # WeightFile checks it
        perceptron = [tensors[name] for name in ("W_1", "b_1", "W_2", "b_2")]
        f = MLP(*perceptron, activation=file.activation)
    gate, W_Q, W_K = (tensors[name].float() for name in ("G_PE", "W_Q", "W_K"))
    return Weights(gate, W_Q, W_K, f, tensors.get("E"))
