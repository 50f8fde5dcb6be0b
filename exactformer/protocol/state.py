"""The interface of a network in training, and the state of its training, in memory and on disk."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

import torch
from safetensors.torch import save
from torch import Tensor

from exactformer.domains.data import Place
from exactformer.host.atomic import write_atomically
from exactformer.weights.file import pack_header, read_safetensors, tensors_sha256

Parameters = dict[str, Tensor]

FORMAT = "exactformer baseline 2"
MOST_EPOCHS = 1 << 20


class Inputs(NamedTuple):
    """A batch of b problems for each of S seeds."""

    tokens: Tensor  # (S, b, n): ids, padded with -1
    depths: Tensor  # (S, b)
    steps: int  # at least the largest depth


class Network(Protocol):
    """The interface of a network in training. `modules.py` makes one of any module of torch, and
    `exactformer.baselines` has some that are written for many seeds.
    """

    # Whether a CUDA graph may be made of `forward`: it never asks the device for a number.
    recordable: ClassVar[bool]

    def initial(self, generator: torch.Generator) -> Parameters:
        """Random parameters of one seed, without the seeds' axis."""
        ...

    def forward(
        self, p: Mapping[str, Tensor], inputs: Inputs, training: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Logits of the values, (S, b, values), and a penalty to be added to the loss, (S, b)."""
        ...


@dataclass
class NetworkState:
    """The state needed to resume training; the seeds' axis comes first in every tensor."""

    parameters: Parameters
    mean: Parameters  # Adam's moments
    square: Parameters
    best: Parameters
    best_epoch: Tensor  # (S,)
    best_accuracy: Tensor  # (S, 2): at depth 1 and 2
    step: Tensor  # of the optimizer
    epoch: int = 0
    seconds: float = 0.0
    curve: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def start(cls, network: Network, seeds: Sequence[int], device: torch.device) -> "NetworkState":
        each = [network.initial(torch.Generator().manual_seed(seed)) for seed in seeds]
        stacked = {name: torch.stack([one[name] for one in each]).to(device) for name in each[0]}
        return cls(
            parameters=stacked,
            mean={name: torch.zeros_like(tensor) for name, tensor in stacked.items()},
            square={name: torch.zeros_like(tensor) for name, tensor in stacked.items()},
            best={name: tensor.clone() for name, tensor in stacked.items()},
            best_epoch=torch.zeros(len(seeds), dtype=torch.int64, device=device),
            best_accuracy=torch.zeros(len(seeds), 2, device=device),
            step=torch.zeros((), device=device),
        )

    GROUPS: ClassVar = ("parameters", "mean", "square", "best")
    SINGLES: ClassVar = ("best_epoch", "best_accuracy", "step")
    PLAIN: ClassVar = ("epoch", "seconds", "curve")

    def write(self, path: Path, header: dict[str, Any]) -> None:
        header = {"format": FORMAT, **header, **{name: getattr(self, name) for name in self.PLAIN}}
        path.parent.mkdir(parents=True, exist_ok=True)
        write_hashed(path, header, self._tensors())

    @classmethod
    def read(cls, path: Path, header: dict[str, Any], start: "NetworkState") -> "NetworkState":
        """The state in a file. Its tensors must have the shapes of those of `start`."""
        try:
            fields, tensors = read_hashed(path, FORMAT, (*header, *cls.PLAIN))
            for key, value in header.items():
                if (found := fields[key].value) != value:
                    raise ValueError(f"expected a run with {key} {value}, found {found}")
            start._fill(tensors)
            start.epoch = fields["epoch"].whole()
            start.seconds = fields["seconds"].number()
            start.curve = [_epoch(place) for place in fields["curve"].items(MOST_EPOCHS, least=0)]
        except ValueError as error:
            reason = str(error) if str(path) in str(error) else f"{path}: {error}"
            raise ValueError(f"{reason}; remove the file, or train into another folder") from None
        return start

    def _tensors(self) -> dict[str, Tensor]:
        tensors = {f"{g}/{k}": v for g in self.GROUPS for k, v in getattr(self, g).items()}
        return tensors | {name: getattr(self, name) for name in self.SINGLES}

    def _fill(self, tensors: dict[str, Tensor]) -> None:
        """Copy these tensors into its own; they have the same names, shapes and types."""
        own = self._tensors()
        if other := own.keys() ^ tensors.keys():
            there = "is none of these" if min(other) in tensors else "is missing"
            raise ValueError(f"tensor {min(other)} {there}")
        for name, tensor in tensors.items():
            if (tensor.dtype, tensor.shape) != (own[name].dtype, own[name].shape):
                raise ValueError(
                    f"tensor {name}: expected {own[name].dtype} of {tuple(own[name].shape)}, "
                    f"found {tensor.dtype} of {tuple(tensor.shape)}"
                )
        for name, tensor in tensors.items():
            own[name].copy_(tensor)


def write_hashed(path: Path, header: dict[str, Any], tensors: Parameters) -> None:
    """Write a safetensors file with a hash of all its content in the header, so that a flipped bit
    does not become other numbers unnoticed.
    """
    held = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    header = header | {"sha256": _content(header, held)}
    write_atomically(path, save(held, pack_header(header)))


def read_hashed(
    path: Path, format: str, names: Iterable[str]
) -> tuple[dict[str, Place], Parameters]:
    """The fields of these names in the header of such a file, and its tensors; a ValueError if it
    has others, or if its hash is wrong.
    """
    header, tensors = read_safetensors(path, "pt", format)
    fields = Place(header).fields(("format", *names, "sha256"))
    if header.pop("sha256") != _content(header, tensors):
        raise ValueError("its content does not match its sha256")
    return fields, tensors


def _content(header: dict[str, Any], tensors: Parameters) -> str:
    arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
    return tensors_sha256(json.dumps(header, sort_keys=True), arrays)


def _epoch(place: Place) -> dict[str, Any]:
    """A point of the curve: its epoch, and a number for each seed in every other field."""
    for name, field_ in place.fields(("epoch", "loss", "depth 1", "depth 2")).items():
        if name == "epoch":
            field_.whole()
        else:
            for number in field_.items(MOST_EPOCHS):
                if number.value is not None:
                    number.number()
    return place.value
