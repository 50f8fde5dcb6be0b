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

from exactformer.atomic import write_atomically
from exactformer.domains.algebra import Algebra
from exactformer.domains.bounds import (
    LONGEST_TENSORS,
    MOST_HIDDEN,
    MOST_NUMBERS,
    MOST_OPERATORS,
    require,
)
from exactformer.domains.notation import Notation
from exactformer.domains.plain import Place, read_json, show
from exactformer.domains.units import slots_of

Arrays = dict[str, NDArray]  # tensors by name

FORMAT = "exactformer weights 1"
HEADER = ("format", "algebra", "activation", "origin", "sha256")
ROUTING = {"G_PE", "W_Q", "W_K"}
PERCEPTRON = ("W_1", "b_1", "W_2", "b_2")
TABLE = {"bags", "outputs"}
UNITS = ("U_in", "U_bias", "U_cap", "U_period", "U_code", "U_readout")
RANK = "G_R"  # where the order of operands matters
LEVELS = ("G_L", "directions")  # in plain notation
# Logits from which the discrete tensors were learned.
LOGITS = {f"{name}_logits" for name in (*ROUTING, RANK, *LEVELS)}
OPTIONAL = {"E", RANK, *LEVELS} | LOGITS
# One type for each tensor: the hash covers it, and a proof is about float32.
TYPES = {
    **dict.fromkeys([*ROUTING, RANK, "outputs"], np.int8),
    **dict.fromkeys(["bags", *LEVELS], np.int16),
    **dict.fromkeys(UNITS, np.int32),
    **dict.fromkeys([*PERCEPTRON, *LOGITS, "E"], np.float32),
}


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
        computing = {name: self.arrays[name] for name in self.arrays.keys() - LOGITS}
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
        names = set(self.arrays) - OPTIONAL
        if names not in [ROUTING.union(kind) for kind in (PERCEPTRON, TABLE, UNITS)]:
            raise ValueError(f"unexpected set of tensors: {' '.join(sorted(self.arrays))}")
        if self.activation not in (("relu", "square") if "W_1" in names else (None,)):
            raise ValueError(f"activation: found {show(self.activation)}, unexpected here")
        D = len(self.algebra.vocabulary)
        d_h = self._size("W_Q", -1)
        expected: dict[str, tuple[int, ...]] = {"G_PE": (D,), "W_Q": (D, d_h), "W_K": (D, d_h)}
        if "bags" in names:
            rows, width = self._size("bags", 0), self._width(self._size("bags", -1), D)
            expected |= {"bags": (rows, width), "outputs": (rows, D)}
        else:
            first = "W_1" if "W_1" in names else "U_in"
            m = self._size(first, -1)
            require("hidden units", m, MOST_HIDDEN)
            width = self._width(self._size(first, 0), D)
            if first == "W_1":
                shapes = ((width, m), (m,), (m, D), (D,))
                expected |= dict(zip(PERCEPTRON, shapes, strict=True))
            else:
                operators, codes = len(self.algebra.operators), self._size("U_readout", -1)
                shapes = ((width, m), (m,), (m,), (m,), (m, operators), (operators, codes))
                expected |= dict(zip(UNITS, shapes, strict=True))
        optional = {"E": (D, D), RANK: (D,), f"{RANK}_logits": (D,)}
        levels = self._levels()
        optional |= {"G_L": (2, D), "directions": (levels,), "directions_logits": (levels,)}
        if "G_L_logits" in self.arrays:  # a level has several digits
            optional["G_L_logits"] = (2, D, self._size("G_L_logits", -1))
        optional |= {f"{name}_logits": expected[name] for name in ROUTING}
        expected |= {name: optional[name] for name in OPTIONAL & self.arrays.keys()}
        for name, shape in expected.items():
            array = self.arrays[name]
            if array.shape != shape:
                raise ValueError(f"tensor {name}: expected the shape {shape}, found {array.shape}")
            if not array.size:
                raise ValueError(f"tensor {name}: expected numbers, found none")
            kind = TYPES[name]
            if array.dtype != kind:
                raise ValueError(f"tensor {name}: expected {kind.__name__}, found {array.dtype}")
            if not np.isfinite(array).all():
                raise ValueError(f"tensor {name}: expected finite numbers, found others")
            require(f"tensor {name}, numbers", array.size, MOST_NUMBERS)
            # The least of a type has no positive counterpart, so its size would be negative.
            if kind is not np.float32 and (array == np.iinfo(kind).min).any():
                raise ValueError(f"tensor {name}: expected numbers above {np.iinfo(kind).min}")
        for name in (RANK, *LEVELS):
            if f"{name}_logits" in self.arrays and name not in self.arrays:
                raise ValueError(f"tensor {name}_logits: there is no {name}")
        if self.algebra.notation is Notation.PLAIN:
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

    def _levels(self) -> int:
        """Number of levels, including level 0 for tokens that are no operators; 0 without plain
        notation.
        """
        is_plain = self.algebra.notation is Notation.PLAIN
        for name in LEVELS:
            if is_plain != (name in self.arrays):
                there = "there is none" if is_plain else "there is one"
                raise ValueError(f"tensor {name}: {self.algebra.notation} notation, and {there}")
        found = self._size("directions", 0) if is_plain else 0
        require("levels", found, 2 * MOST_OPERATORS + 1)
        return found

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

    def _size(self, name: str, axis: int) -> int:
        return (self.arrays[name].shape or (0,))[axis]

    def _width(self, found: int, D: int) -> int:
        """Width of a routed bag: two or more slots of D numbers with a rank gate, one slot
        without.
        """
        if RANK not in self.arrays:
            return D
        require("slots of the feedforward", found // D, max(2, slots_of(self.algebra)))
        return max(2, found // D) * D


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
