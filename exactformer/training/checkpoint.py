"""Training state on disk: one safetensors file, its plain numbers as JSON in the header."""

from dataclasses import asdict
from pathlib import Path

import torch
from safetensors.torch import save

from exactformer.training.loop import Seed, State
from exactformer.weightfile import pack_header, read_safetensors, write_atomically

FORMAT = "exactformer checkpoint 2"
MEMORIES = ("memory", "rank_memory")  # of a seed's estimators


def write_checkpoint(path: Path, state: State) -> None:
    """Everything that training needs to go on with the same bits."""
    tensors = {f"state/{name}": tensor.detach().cpu() for name, tensor in state.tensors.items()}
    plain = []
    for row, seed in enumerate(state.seeds):
        fields = asdict(seed)
        for kind in MEMORIES:
            memory = fields.pop(kind)
            tensors |= {f"{kind}/{row}/{name}": tensor.cpu() for name, tensor in memory.items()}
        plain.append(fields)
    tensors = {name: tensor.contiguous() for name, tensor in tensors.items()}
    write_atomically(path, save(tensors, pack_header({"format": FORMAT, "seeds": plain})))


def read_checkpoint(path: Path) -> State:
    try:
        header, tensors = read_safetensors(path, "pt", FORMAT)
        seeds = [Seed(**fields) for fields in header["seeds"]]
        state: dict[str, torch.Tensor] = {}
        for name, tensor in tensors.items():
            kind, _, rest = name.partition("/")
            if kind in MEMORIES:
                row, _, key = rest.partition("/")
                getattr(seeds[int(row)], kind)[key] = tensor
            else:
                state[rest] = tensor
        if not seeds or any(len(tensor) != len(seeds) for tensor in state.values()):
            raise ValueError("its tensors do not fit its seeds")
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise ValueError(
            f"{error}\n{path} is no checkpoint that training can go on from; "
            f"remove it to train the unfinished seeds from their start"
        ) from None
    return State(seeds, state)
