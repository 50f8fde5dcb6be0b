"""Weights on disk: a safetensors file with the algebra, the origin and a hash in its header.

No torch in here, so that a proof can be verified without it.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
from numpy.typing import NDArray
from safetensors.numpy import save

from exactformer.domains.algebra import Algebra
from exactformer.domains.bounds import (
    LONGEST_TENSORS,
    MOST_HIDDEN,
    MOST_NUMBERS,
    MOST_OPERATORS,
    require,
)
from exactformer.domains.data import Place, read_json, show
from exactformer.domains.units import slots_of
from exactformer.host.atomic import write_atomically

Arrays = dict[str, NDArray]  # tensors by name

FORMAT = "exactformer weights 1"
HEADER = ("format", "algebra", "activation", "origin", "sha256")


@dataclass(frozen=True)
class TensorSpec:
    """The description of a tensor, for all that store, read, check and show tensors.

    shape      its sizes by name: D tokens, S slots, d_h dimensions of queries and keys, m hidden
               units, and others. What the algebra leaves open, the first tensor with it decides.
    stored     its type in the file; the hash covers it, and a proof is about float32.
    in_model   its type in the model, where that is another one.
    logits     the shape of the logits from which it is learned, where it is. A file may have them
               as NAME_logits, for inspection; the hash does not cover them.
    optional   whether there may be weights without it.
    levels     whether weights have it if and only if the algebra declares levels of precedence.
    """

    shape: str
    stored: str
    in_model: str | None = None
    logits: str | None = None
    optional: bool = False
    levels: bool = False


GATES = {  # the tensors of `Weights` in `model/circuit.py`
    "G_PE": TensorSpec("D", "int8", "float32", logits="D"),
    "W_Q": TensorSpec("D d_h", "int8", "float32", logits="D d_h"),
    "W_K": TensorSpec("D d_h", "int8", "float32", logits="D d_h"),
    "G_R": TensorSpec("D", "int8", "float32", logits="D", optional=True),
    "E": TensorSpec("D D", "float32", optional=True),
    "G_L": TensorSpec("2 D", "int16", "int64", logits="2 D digits", levels=True),
    "directions": TensorSpec("levels", "int16", "int64", logits="levels", levels=True),
}
FEEDFORWARDS = {  # by kind, in the order of the fields in `model/feedforward.py`
    "perceptron": {
        "W_1": TensorSpec("S*D m", "float32"),
        "b_1": TensorSpec("m", "float32"),
        "W_2": TensorSpec("m D", "float32"),
        "b_2": TensorSpec("D", "float32"),
    },
    "table": {
        "bags": TensorSpec("rows S*D", "int16"),
        "outputs": TensorSpec("rows D", "int8"),
    },
    "units": {
        "U_in": TensorSpec("S*D m", "int32"),
        "U_bias": TensorSpec("m", "int32"),
        "U_cap": TensorSpec("m", "int32"),
        "U_period": TensorSpec("m", "int32"),
        "U_code": TensorSpec("m operators", "int32"),
        "U_readout": TensorSpec("operators codes", "int32"),
    },
}
LOGITS = {
    f"{name}_logits": TensorSpec(spec.logits, "float32")
    for name, spec in GATES.items()
    if spec.logits
}
MOST = {"m": ("hidden units", MOST_HIDDEN), "levels": ("levels", 2 * MOST_OPERATORS + 1)}


@dataclass(frozen=True)
class WeightFile:
    """The content of a weights file. `origin` says where the weights come from, in plain data."""

    algebra: Algebra
    arrays: Arrays
    activation: str | None  # of the perceptron; None for a table and for units
    origin: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def sha256(self) -> str:
        """A hash of the algebra and of all that computes: the activation and the tensors."""
        algebra = json.dumps(self.algebra.to_dict(), sort_keys=True)
        computing = {name: self.arrays[name] for name in self.arrays.keys() - LOGITS.keys()}
        return _sha256(f"{algebra} {self.activation} ", computing)

    def write(self, path: Path) -> None:
        header = {
            "format": FORMAT,
            "algebra": self.algebra.to_dict(),
            "activation": self.activation,
            "origin": dict(self.origin),
            "sha256": self.sha256,
        }
        arrays = {name: np.ascontiguousarray(array) for name, array in self.arrays.items()}
        write_atomically(path, save(arrays, pack_header(header)))

    @classmethod
    def read(cls, path: Path) -> "WeightFile":
        header, arrays = read_safetensors(path, "np", FORMAT)
        try:
            fields = Place(header).fields(HEADER)
            algebra = Algebra.from_dict(fields["algebra"].value)
            read = cls(algebra, arrays, fields["activation"].value, fields["origin"].value)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        if header["sha256"] != read.sha256:
            raise ValueError(f"{path}: the tensors are not those whose hash its header gives")
        return read

    def __post_init__(self) -> None:
        """Check names, shapes and finiteness, so that callers can rely on the arrays."""
        if not isinstance(self.origin, Mapping):
            raise ValueError(f"origin: expected an object, found {show(self.origin)}")
        needed = {name for name, spec in GATES.items() if not (spec.optional or spec.levels)}
        names = self.arrays.keys() - (GATES.keys() - needed) - LOGITS.keys()
        if names not in [needed | parts.keys() for parts in FEEDFORWARDS.values()]:
            raise ValueError(f"unexpected set of tensors: {' '.join(sorted(self.arrays))}")
        kind = feedforward_of(self.arrays)
        if self.activation not in (("relu", "square") if kind == "perceptron" else (None,)):
            raise ValueError(f"activation: found {show(self.activation)}, unexpected here")
        for name, spec in GATES.items():
            found = name in self.arrays
            if spec.levels and found != bool(self.algebra.precedence):
                there = "there is one" if found else "there is none"
                raise ValueError(f"tensor {name}: {self.algebra.notation} notation, and {there}")
        D = len(self.algebra.vocabulary)
        sizes = {"2": 2, "D": D, "operators": len(self.algebra.operators)}
        if "G_R" not in self.arrays:
            sizes["S*D"] = D
        for name, spec in (GATES | FEEDFORWARDS[kind] | LOGITS).items():
            if name in self.arrays:
                self._check(name, spec, sizes)
        if "G_L" in self.arrays:
            self._check_levels(self.arrays["G_L"], self.arrays["directions"])
        readout = self.arrays.get("U_readout")
        if readout is not None and ((readout < -1) | (readout >= D)).any():
            raise ValueError(f"tensor U_readout: expected tokens from 0 to {D - 1}, or -1 for none")
        outputs = self.arrays.get("outputs")
        if outputs is not None and not np.isin(outputs, (0, 1)).all():
            raise ValueError("tensor outputs: expected 0 and 1 only")
        bags = self.arrays.get("bags")
        if bags is not None and len(np.unique(bags, axis=0)) < len(bags):
            raise ValueError("tensor bags: the same bag is there twice")

    def _check(self, name: str, spec: TensorSpec, sizes: dict[str, int]) -> None:
        """Check one tensor. The sizes that it has first are added to those that are known."""
        array, names = self.arrays[name], spec.shape.split()
        if name in LOGITS and (gate := name.removesuffix("_logits")) not in self.arrays:
            raise ValueError(f"tensor {name}: there is no {gate}")
        for size, found in zip(names, array.shape, strict=True) if array.ndim == len(names) else ():
            if size not in sizes:
                sizes[size] = self._size(size, found)
        expected = tuple(sizes.get(size, size) for size in names)
        if array.shape != expected:
            shown = str(expected).replace("'", "")  # a size that is not known goes by its name
            raise ValueError(f"tensor {name}: expected the shape {shown}, found {array.shape}")
        if not array.size:
            raise ValueError(f"tensor {name}: expected numbers, found none")
        if array.dtype != spec.stored:
            raise ValueError(f"tensor {name}: expected {spec.stored}, found {array.dtype}")
        if not np.isfinite(array).all():
            raise ValueError(f"tensor {name}: expected finite numbers, found others")
        require(f"tensor {name}, numbers", array.size, MOST_NUMBERS)
        # The least of a type has no positive counterpart, so its size would be negative.
        if array.dtype.kind == "i" and (array == (least := np.iinfo(array.dtype).min)).any():
            raise ValueError(f"tensor {name}: expected numbers above {least}")

    def _check_levels(self, G_L: NDArray, directions: NDArray) -> None:
        """Check that there is a level for each use of an operator, and a direction for each
        level.
        """
        highest = len(directions) - 1
        has_level = np.clip(G_L, 1, highest) == G_L
        if not np.where(self.algebra.declared_levels > 0, has_level, G_L == 0).all():
            raise ValueError(
                f"tensor G_L: expected levels from 1 to {highest} where an operator has such a "
                f"use, and 0 elsewhere"
            )
        if not np.isin(directions, (-1, 0, 1)).all():
            raise ValueError("tensor directions: expected -1, 0 and 1 only")

    def _size(self, name: str, found: int) -> int:
        """A size that a tensor determines, within its bound."""
        if name == "S*D":  # two or more slots, since there is a rank gate
            D = len(self.algebra.vocabulary)
            require("slots of the feedforward", found // D, max(2, slots_of(self.algebra)))
            return max(2, found // D) * D
        if name in MOST:
            what, most = MOST[name]
            require(what, found, most)
        return found


def feedforward_of(arrays: Arrays) -> str:
    """The kind of feedforward that these tensors have."""
    return next(kind for kind, parts in FEEDFORWARDS.items() if parts.keys() <= arrays.keys())


def stored(**gates: NDArray) -> Arrays:
    """Gates in their types in the file."""
    return {name: gate.astype(GATES[name].stored) for name, gate in gates.items()}


def pack_header(header: Mapping[str, Any]) -> dict[str, str]:
    """Pack plain data into the header of a safetensors file. It is one entry: several would come in
    a random order, and equal weights would not give equal bytes.
    """
    return {"exactformer": json.dumps(header, ensure_ascii=False)}


def read_safetensors(path: Path, framework: str, format: str) -> tuple[dict[str, Any], dict]:
    """Header and tensors of a file in this format; a ValueError for any other file."""
    require(f"{path}: bytes", os.stat(path).st_size, LONGEST_TENSORS)
    try:
        with safetensors.safe_open(path, framework=framework) as file:
            packed = (file.metadata() or {}).get("exactformer", "{}")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        header = read_json(packed)
    except OSError:
        raise
    except Exception as error:  # safetensors raises errors of its own, and bare TypeErrors
        raise ValueError(f"{path}: expected a safetensors file: {error}") from None
    found = header.get("format", "none of ours") if isinstance(header, dict) else header
    if found != format:
        raise ValueError(f"{path}: expected {format!r}, found {show(found)}")
    return header, tensors


def content_sha256(header: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> str:
    """A hash of the whole content of a file of tensors: its header and every number."""
    return _sha256(json.dumps(header, sort_keys=True), arrays)


def _sha256(header: str, arrays: Mapping[str, NDArray]) -> str:
    digest = hashlib.sha256(header.encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
