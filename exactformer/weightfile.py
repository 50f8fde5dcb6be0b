"""Weights on disk: a safetensors file with the algebra, the origin and a hash in its header.

No torch in here, so that a proof can be verified without it.
"""

import hashlib
import json
import os
import tempfile
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

Arrays = dict[str, NDArray]  # tensors by name

FORMAT = "exactformer weights 1"
ROUTING = {"G_PE", "W_Q", "W_K"}
PERCEPTRON = {"W_1", "b_1", "W_2", "b_2"}
TABLE = {"bags", "outputs"}


@dataclass(frozen=True)
class WeightFile:
    """What a weights file holds. `origin` says where the weights come from, in plain data."""

    algebra: Algebra
    arrays: Arrays
    activation: str | None  # of the perceptron; None for a table
    origin: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._check()

    @cached_property
    def sha256(self) -> str:
        """A hash of the tensors' names, types, shapes and bytes, and of the activation."""
        digest = hashlib.sha256(f"{self.activation} ".encode())
        for name in sorted(self.arrays):
            array = np.ascontiguousarray(self.arrays[name])
            digest.update(f"{name} {array.dtype.str} {array.shape} ".encode())
            digest.update(array.tobytes())
        return digest.hexdigest()

    def write(self, path: Path) -> None:
        header = {
            "format": FORMAT,
            "algebra": json.dumps(self.algebra.to_dict(), ensure_ascii=False),
            "activation": self.activation or "",
            "origin": json.dumps(self.origin, ensure_ascii=False),
            "sha256": self.sha256,
        }
        arrays = {name: np.ascontiguousarray(array) for name, array in self.arrays.items()}
        write_atomically(path, save(arrays, header))

    @classmethod
    def read(cls, path: Path) -> "WeightFile":
        try:
            with safetensors.safe_open(path, framework="np") as file:
                header = file.metadata() or {}
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except OSError:
            raise
        except Exception as error:  # safetensors raises its own errors and bare TypeErrors
            raise ValueError(f"{path}: expected a safetensors file: {error}") from None
        if header.get("format") != FORMAT:
            found = header.get("format", "no such header")
            raise ValueError(f"{path}: expected a file of {FORMAT!r}, found {found!r}")
        try:
            algebra = Algebra.from_dict(json.loads(header["algebra"]))
            origin = json.loads(header["origin"])
            read = cls(algebra, arrays, header["activation"] or None, origin)
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path}: {error}") from None
        if header.get("sha256") != read.sha256:
            raise ValueError(f"{path}: the tensors are not those whose hash its header gives")
        return read

    def _check(self) -> None:
        """Names, shapes and finiteness, so that whoever uses the arrays can rely on them."""
        names = set(self.arrays) - {"E"}
        if names not in (ROUTING | PERCEPTRON, ROUTING | TABLE):
            raise ValueError(f"unexpected set of tensors: {' '.join(sorted(self.arrays))}")
        if ("W_1" in names) != (self.activation in ("relu", "square")):
            raise ValueError(f"unexpected activation {self.activation!r}")
        D = len(self.algebra.vocabulary)
        d_h = self.arrays["W_Q"].shape[-1]
        expected: dict[str, tuple[int, ...]] = {"G_PE": (D,), "W_Q": (D, d_h), "W_K": (D, d_h)}
        if "W_1" in names:
            m = self.arrays["W_1"].shape[-1]
            expected |= {"W_1": (D, m), "b_1": (m,), "W_2": (m, D), "b_2": (D,)}
        else:
            rows = len(self.arrays["bags"])
            expected |= {"bags": (rows, D), "outputs": (rows, D)}
        if "E" in self.arrays:
            expected["E"] = (D, D)
        for name, shape in expected.items():
            array = self.arrays[name]
            if array.shape != shape:
                raise ValueError(f"tensor {name}: expected the shape {shape}, found {array.shape}")
            if not np.isfinite(array).all():
                raise ValueError(f"tensor {name}: expected finite numbers, found others")
        bags = self.arrays.get("bags")
        if bags is not None and len(np.unique(bags, axis=0)) < len(bags):
            raise ValueError("tensor bags: the same bag is there twice")


def write_atomically(path: Path, data: bytes | str) -> None:
    """Write to a temporary name, then rename: a reader sees the old file or the new, never half."""
    path = Path(path)
    content = data.encode() if isinstance(data, str) else data
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)  # mkstemp's files are private
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
