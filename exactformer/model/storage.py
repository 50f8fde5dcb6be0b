"""Converts weights to and from the arrays of a weights file."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from numpy.typing import NDArray

from exactformer.domains.algebra import Algebra
from exactformer.domains.domain import Domain
from exactformer.domains.integers import Integers
from exactformer.domains.little_endian import LittleEndian
from exactformer.domains.machines import Machine
from exactformer.domains.rearrangements import Rearrangement
from exactformer.domains.span_machines import SpanMachine
from exactformer.domains.square_roots import SquareRoot
from exactformer.model.circuit import Weights
from exactformer.model.feedforward import MLP, Table, Units
from exactformer.model.gated import Gated
from exactformer.model.integers import IntegerWeights
from exactformer.model.machine import MachineWeights
from exactformer.model.rearrange import RearrangeWeights
from exactformer.model.span_machine import SpanMachineWeights
from exactformer.model.square_root import SquareRootWeights
from exactformer.weights.file import WeightFile
from exactformer.weights.tensors import CONTENTS, FEEDFORWARDS, Arrays, TensorSpec, feedforward_of

WEIGHTS: dict[str, Callable[..., Any]] = {  # by the kind of domain
    Algebra.kind: Weights,
    Machine.kind: MachineWeights,
    SpanMachine.kind: SpanMachineWeights,
    Integers.kind: IntegerWeights,
    LittleEndian.kind: IntegerWeights,
    Rearrangement.kind: RearrangeWeights,
    SquareRoot.kind: SquareRootWeights,
}


def to_file(
    domain: Domain,
    weights: Gated,
    origin: Mapping[str, Any],
    logits: Mapping[str, torch.Tensor] | None = None,
) -> WeightFile:
    """The weights file of these weights. `logits` are those from which the discrete gates and
    routing were learned; they are stored for inspection.
    """
    f = weights.f
    if not isinstance(f, MLP | Table | Units):
        raise TypeError(f"expected an MLP, a Table or Units, found {type(f).__name__}")
    specs = CONTENTS[domain.kind].gates | FEEDFORWARDS[f.kind]
    tensors = weights.gates | dict(zip(FEEDFORWARDS[f.kind], f.tensors.values(), strict=True))
    arrays: Arrays = {name: _array(name, part, specs[name]) for name, part in tensors.items()}
    for name, tensor in (logits or {}).items():
        arrays[f"{name}_logits"] = tensor.detach().cpu().float().numpy()
    return WeightFile(domain, arrays, f.activation if isinstance(f, MLP) else None, origin)


def _array(name: str, tensor: torch.Tensor, spec: TensorSpec) -> NDArray:
    """A tensor in the type of the file. Gates and routing become whole numbers; a ValueError for
    others and for another precision, since a proof covers whole numbers and float32 only.
    """
    kind: torch.dtype = getattr(torch, spec.stored)
    stored = tensor.detach().to(kind)
    if spec.in_model and (stored != tensor).any():
        raise ValueError(f"tensor {name}: expected small whole numbers, found others")
    if not spec.in_model and tensor.dtype != kind:
        raise ValueError(f"tensor {name}: expected {spec.stored}, found {tensor.dtype}")
    return stored.cpu().numpy()


def from_file(file: WeightFile) -> Any:
    kind, tensors = feedforward_of(file.arrays), {}
    for name, spec in (file.contents.gates | FEEDFORWARDS[kind]).items():
        if name in file.arrays:
            array = file.arrays[name].astype(spec.in_model or spec.stored, order="C")
            tensors[name] = torch.from_numpy(array)
    parts = [tensors.pop(name) for name in FEEDFORWARDS[kind]]
    if kind == "perceptron":
        f = MLP(*parts, activation=file.activation)  # type: ignore[arg-type]  # the file checks it
    else:
        f = Table(*parts) if kind == "table" else Units(*parts, D=len(file.domain.vocabulary))
    return WEIGHTS[file.domain.kind](**tensors, f=f)
