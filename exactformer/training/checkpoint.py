"""Training state on disk: one safetensors file, its plain numbers as JSON in the header.

The header also has a hash of the run that the state belongs to.
"""

from dataclasses import asdict
from math import nan
from pathlib import Path
from typing import Any

import torch

from exactformer.domains.data import Place
from exactformer.protocol.state import read_hashed, write_hashed
from exactformer.training.record import finite
from exactformer.training.state import Seed, State

FORMAT = "exactformer checkpoint 3"
MEMORIES = ("memory", "rank_memory")  # of a seed's estimators
SHAPELESS = ("t", "wrong")  # counters in a memory; all other tensors have the gate's shape
GATES = ("gate", "rank")
MOST_SEEDS = 1 << 20


def write_checkpoint(path: Path, state: State, run: str) -> None:
    """Write everything needed to resume with the same bits; `run` is a hash of the run's
    description.
    """
    tensors = {f"state/{name}": tensor for name, tensor in state.tensors.items()}
    plain = []
    for row, seed in enumerate(state.seeds):
        fields = asdict(seed)
        for kind in MEMORIES:
            memory = fields.pop(kind)
            tensors |= {f"{kind}/{row}/{name}": tensor for name, tensor in memory.items()}
        plain.append(fields | {"loss": finite(seed.loss)})
    write_hashed(path, {"format": FORMAT, "run": run, "seeds": plain}, tensors)


def read_checkpoint(path: Path, run: str, start: State) -> State:
    """The state in a file. `start` is the initial state of this run: a checkpoint has some of its
    seeds, and tensors of the same names, shapes and types.
    """
    try:
        fields, tensors = read_hashed(path, FORMAT, ("run", "seeds"))
        if fields["run"].value != run:
            raise ValueError(f"{path}: it belongs to another run than {path.parent / 'run.json'}")
        seeds = [_seed(place) for place in fields["seeds"].items(MOST_SEEDS)]
        known = {seed.seed for seed in start.seeds}
        if len({seed.seed for seed in seeds} & known) < len(seeds):
            raise ValueError(f"{path}: its seeds are not those of the run")
        return State(seeds, _tensors(tensors, seeds, start))
    except ValueError as error:
        reason = str(error) if str(path) in str(error) else f"{path}: {error}"
        raise ValueError(
            f"{reason}; training cannot go on from this checkpoint: "
            f"remove it to train the unfinished seeds from their start"
        ) from None


def _seed(place: Place) -> Seed:
    fields = place.fields([name for name in Seed.__dataclass_fields__ if name not in MEMORIES])
    names = ("seed", "attempt", "step", "spent", "depth_one", "gate_looks", "clean_looks")
    counts: dict[str, Any] = {name: fields[name].whole() for name in names}
    loss, depth_two = fields["loss"], fields["depth_two"]
    return Seed(
        **counts,
        loss=nan if loss.value is None else loss.number(),
        depth_two=None if depth_two.value is None else depth_two.whole(),
    )


def _tensors(
    tensors: dict[str, torch.Tensor], seeds: list[Seed], start: State
) -> dict[str, torch.Tensor]:
    """The tensors of the state by name; those of a memory are put into that memory."""
    state: dict[str, torch.Tensor] = {}
    rows = {f"{kind}/{row}": row for kind in MEMORIES for row in range(len(seeds))}
    for name, tensor in tensors.items():
        before, _, key = name.rpartition("/")
        if before == "state" and key in start.tensors:
            expected = (len(seeds), *start.tensors[key].shape[1:])
            state[key] = tensor
        elif before in rows and key in ("m", "v", *SHAPELESS):
            expected = (1,) if key in SHAPELESS else tuple(start.tensors["gate"].shape[1:])
            getattr(seeds[rows[before]], before.partition("/")[0])[key] = tensor
        else:
            raise ValueError(f"tensor {name}: there is no such one in this run")
        if tensor.dtype != torch.float32 or tensor.shape != expected:
            raise ValueError(
                f"tensor {name}: expected float32 of the shape {expected}, "
                f"found {tensor.dtype} of {tuple(tensor.shape)}"
            )
        # Parameters learned by gradient may diverge; gates and their estimators' states do not.
        if (before != "state" or key in GATES) and not tensor.isfinite().all():
            raise ValueError(f"tensor {name}: expected finite numbers, found others")
        if key in SHAPELESS and before != "state" and float(tensor) < 0:
            raise ValueError(f"tensor {name}: expected a count, found {float(tensor)}")
    if missing := start.tensors.keys() - state.keys():
        raise ValueError(f"tensor state/{min(missing)}: there is none")
    return state
