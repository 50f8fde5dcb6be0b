"""Weights on disk: a safetensors file with the domain, the origin and a hash in its header.

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

from exactformer.domains.belonging import OfDomain
from exactformer.domains.bounds import LONGEST_TENSORS, MOST_NUMBERS, require
from exactformer.domains.data import Place, read_json, show
from exactformer.domains.domain import Domain
from exactformer.domains.kinds import read_domain
from exactformer.host.atomic import write_atomically
from exactformer.weights.tensors import (
    CONTENTS,
    FEEDFORWARDS,
    MOST,
    Arrays,
    Contents,
    Sizes,
    TensorSpec,
    feedforward_of,
)

FORMAT = "exactformer weights 1"
# The domain is called "algebra" in a header, which is older than other kinds of domains.
HEADER = ("format", "algebra", "activation", "origin", "sha256")


@dataclass(frozen=True)
class WeightFile(OfDomain):
    """The content of a weights file. `origin` says where the weights come from, in plain data."""

    domain: Domain
    arrays: Arrays
    activation: str | None  # of the perceptron; None for a table and for units
    origin: Mapping[str, Any] = field(default_factory=dict)

    @property
    def contents(self) -> Contents:
        return CONTENTS[self.domain.kind]

    @cached_property
    def sha256(self) -> str:
        """A hash of the domain and of all that computes: the activation and the tensors."""
        domain = json.dumps(self.domain.to_dict(), sort_keys=True)
        logits = self.contents.logits
        computing = {name: array for name, array in self.arrays.items() if name not in logits}
        return tensors_sha256(f"{domain} {self.activation} ", computing)

    def write(self, path: Path) -> None:
        header = {
            "format": FORMAT,
            "algebra": self.domain.to_dict(),
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
            domain = read_domain(fields["algebra"].value)
            read = cls(domain, arrays, fields["activation"].value, fields["origin"].value)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        if header["sha256"] != read.sha256:
            raise ValueError(f"{path}: the tensors are not those whose hash its header gives")
        return read

    def __post_init__(self) -> None:
        """Check names, shapes and finiteness, so that callers can rely on the arrays."""
        if not isinstance(self.origin, Mapping):
            raise ValueError(f"origin: expected an object, found {show(self.origin)}")
        gates, logits = self.contents.gates, self.contents.logits
        needed = {name for name, spec in gates.items() if not spec.optional}
        names = self.arrays.keys() - (gates.keys() - needed) - logits.keys()
        if names not in [needed | parts.keys() for parts in FEEDFORWARDS.values()]:
            raise ValueError(f"unexpected set of tensors: {' '.join(sorted(self.arrays))}")
        kind = feedforward_of(self.arrays)
        if self.activation not in (("relu", "square") if kind == "perceptron" else (None,)):
            raise ValueError(f"activation: found {show(self.activation)}, unexpected here")
        sizes = self.contents.sizes(self.domain, self.arrays)
        for name, spec in (gates | FEEDFORWARDS[kind] | logits).items():
            if name in self.arrays:
                self._check(name, spec, sizes)
        self.contents.check(self.domain, self.arrays)
        self._check_feedforward(len(self.domain.vocabulary))

    def _check(self, name: str, spec: TensorSpec, sizes: Sizes) -> None:
        """Check one tensor. The sizes that it has first are added to those that are known."""
        array, names = self.arrays[name], spec.shape.split()
        gate = name.removesuffix("_logits")
        if name in self.contents.logits and gate not in self.arrays:
            raise ValueError(f"tensor {name}: there is no {gate}")
        for size, found in zip(names, array.shape, strict=True) if array.ndim == len(names) else ():
            if size in MOST and size not in sizes:
                what, most = MOST[size]
                require(what, found, most)
            sizes.setdefault(size, found)
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

    def _check_feedforward(self, D: int) -> None:
        readout = self.arrays.get("U_readout")
        if readout is not None and ((readout < -1) | (readout >= D)).any():
            raise ValueError(f"tensor U_readout: expected tokens from 0 to {D - 1}, or -1 for none")
        outputs = self.arrays.get("outputs")
        if outputs is not None and not np.isin(outputs, (0, 1)).all():
            raise ValueError("tensor outputs: expected 0 and 1 only")
        bags = self.arrays.get("bags")
        if bags is not None and len(np.unique(bags, axis=0)) < len(bags):
            raise ValueError("tensor bags: the same bag is there twice")


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


def tensors_sha256(header: str, arrays: Mapping[str, NDArray]) -> str:
    """A hash of the content of a file of tensors: a text, such as its header, and every number."""
    digest = hashlib.sha256(header.encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
