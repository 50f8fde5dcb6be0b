"""What a network must offer to be trained, and the state of its training, on disk too."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

import torch
from safetensors.torch import save
from torch import Tensor

from exactformer.baselines.positions import Parameters
from exactformer.weightfile import pack_header, read_safetensors, write_atomically

FORMAT = "exactformer baseline 1"


class Network(Protocol):
    """An architecture of one's own joins the protocol by having these two."""

    def initial(self, generator: torch.Generator) -> Parameters: ...

    def forward(
        self,
        p: Mapping[str, Tensor],
        tokens: Tensor,
        depths: Tensor,
        steps: int,
        training: bool = False,
    ) -> tuple[Tensor, Tensor]: ...


@dataclass
class State:
    """Everything that training needs to go on; the seeds' axis comes first in every tensor."""

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
    def start(cls, network: Network, seeds: Sequence[int], device: torch.device) -> "State":
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

    def write(self, path: Path, header: dict[str, Any]) -> None:
        tensors = {f"{g}/{k}": v for g in self.GROUPS for k, v in getattr(self, g).items()}
        tensors |= {name: getattr(self, name) for name in self.SINGLES}
        plain = {"epoch": self.epoch, "seconds": self.seconds, "curve": self.curve}
        header = {"format": FORMAT, **header, **plain}
        tensors = {k: v.detach().cpu().contiguous() for k, v in tensors.items()}
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, save(tensors, pack_header(header)))

    @classmethod
    def read(cls, path: Path, header: dict[str, Any], device: torch.device) -> "State":
        found, tensors = read_safetensors(path, "pt", FORMAT)
        for key, value in header.items():
            if found.get(key) != value:
                raise ValueError(
                    f"{path}: expected a run with {key} {value}, found {found.get(key)}; "
                    f"remove the file, or train into another folder"
                )
        groups: dict[str, Parameters] = {group: {} for group in cls.GROUPS}
        for name, tensor in tensors.items():
            group, _, rest = name.partition("/")
            if rest:
                groups[group][rest] = tensor.to(device)
        singles = {name: tensors[name].to(device) for name in cls.SINGLES}
        plain = {key: found[key] for key in ("epoch", "seconds", "curve")}
        return cls(**groups, **singles, **plain)
