"""Trains and evaluates the baselines once, and writes the records behind the comparison tables.

NAME.json         the recipe, and what every seed gets right, at its best epoch and its last
NAME.safetensors  the parameters of the seed with the best training accuracy, in half precision
NAME.deep.json    what those get right past the depths of the tables, as far as it was tried
TASK-ours.json    the same of the shipped models of this package, on the same problems

They are shipped beside this file and used as they are; `python -m
exactformer.paper.baseline_records NAME` makes a record in `runs/baselines`, where a killed run is
resumed, `--deep` and `--ours` the other two.
"""

import argparse
import json
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save

from exactformer.baselines.recipe import RECIPES, BaselineRecipe, network_for
from exactformer.domains.catalog import CATALOG
from exactformer.host.atomic import write_atomically
from exactformer.paper import published
from exactformer.paper.comparison import DEEP, DRAWINGS, TABLE_DEPTHS, asked_problems
from exactformer.paper.files import Record, find_record, write_record
from exactformer.problems.accuracy import commonest, count_right
from exactformer.protocol.loop import train_network
from exactformer.protocol.predictor import Predictor, answers
from exactformer.protocol.recipe import FITTED
from exactformer.protocol.state import NetworkState, Parameters
from exactformer.weights.file import pack_header, read_safetensors

SHIPPED = Path(__file__).parent / "records" / "baselines"
RUNS = Path("runs") / "baselines"
FORMAT = "exactformer baseline weights 1"
QUICK_PROBLEMS = 20


def record_of(name: str, quick: bool = False) -> Record:
    """The record of a baseline: as trained here, or as shipped. A quick one is trained now."""
    if quick:
        seeds, folder = published.BASELINE_SEEDS[:1], RUNS.with_name("baselines-quick")
        record = train_baseline(RECIPES[name].quick(), folder, seeds, problems=QUICK_PROBLEMS)
        return record | {"command": "exactformer reproduce --quick"}
    return find_record(RUNS / f"{name}.json") or json.loads((SHIPPED / f"{name}.json").read_text())


def train_baseline(
    recipe: BaselineRecipe,
    folder: Path,
    seeds: Sequence[int] = published.BASELINE_SEEDS,
    device: torch.device | None = None,
    problems: int | None = None,
    shared: bool = False,
) -> Record:
    """Train all seeds (or go on, or read what is finished), try them, write record and weights."""
    path = folder / f"{recipe.name}.json"
    record = find_record(path)
    asked = (asdict(recipe), [*seeds])
    if record and (record["recipe"], [seed["seed"] for seed in record["seeds"]]) == asked:
        return record
    device = device or torch.device("cuda" if torch.cuda.is_available() else "cpu")
    state = train_network(
        network_for(recipe),
        CATALOG[recipe.task](),
        recipe,
        seeds,
        folder / recipe.name,
        device,
        lambda line: _report(f"{recipe.name} {line}"),
    )
    kept = int(state.best_accuracy.sum(1).argmax())  # by training: no test problem has a say
    keep(folder / f"{recipe.name}.safetensors", recipe, seeds[kept], state.best, kept)
    record = {
        "name": recipe.name,
        "command": f"python -m exactformer.paper.baseline_records {recipe.name}",
        "device": device_name(device),
        "shared device": shared,
        "torch": torch.__version__,
        "parameters": sum(p[0].numel() for p in state.parameters.values()),
        "recipe": asdict(recipe),
        "seconds": round(state.seconds, 1),
        "kept": seeds[kept],
        "seeds": _seed_records(recipe, state, seeds, problems),
    }
    write_record(path, record)
    _report(f"{recipe.name}: {sum(s['fitted'] for s in record['seeds'])} of {len(seeds)} fitted")
    return record


def _seed_records(
    recipe: BaselineRecipe, state: NetworkState, seeds: Sequence[int], problems: int | None
) -> list[Record]:
    accuracies = state.best_accuracy.tolist()
    thin = state.curve[:: max(1, len(state.curve) // 50)]
    records: list[Record] = [
        {
            "seed": seed,
            "training accuracy": [round(one, 4), round(two, 4)],
            "best epoch": int(state.best_epoch[i]),
            "fitted": min(one, two) >= FITTED,
            "best": {},
            "last": {},
            "curve": [[point["epoch"], point["loss"][i], point["depth 2"][i]] for point in thin],
        }
        for i, (seed, (one, two)) in enumerate(zip(seeds, accuracies, strict=True))
    ]
    network, symbols = network_for(recipe), CATALOG[recipe.task]().values
    for epoch, parameters in (("best", state.best), ("last", state.parameters)):
        for drawing in DRAWINGS:
            for depth in TABLE_DEPTHS:
                expressions, values = asked_problems(recipe.task, drawing, depth, problems)
                expected = np.array([symbols.index(value) for value in values])
                right = (answers(network, parameters, expressions) == expected).sum(1)
                for record, count in zip(records, right.tolist(), strict=True):
                    record[epoch].setdefault(drawing, {})[str(depth)] = [count, len(values)]
            _report(f"{recipe.name}, {epoch} epoch, {drawing}: {records[0][epoch][drawing]} ...")
    return records


def keep(path: Path, recipe: BaselineRecipe, seed: int, parameters: Parameters, row: int) -> None:
    """Write one seed's parameters, in half precision: small, and enough for its answers."""
    header = {"format": FORMAT, "recipe": asdict(recipe), "seed": seed}
    tensors = {n: p[row].detach().half().cpu().contiguous() for n, p in parameters.items()}
    write_atomically(path, save(tensors, pack_header(header)))


def load_baseline(name: str, folder: Path = SHIPPED, device: str = "cpu") -> Predictor:
    """A trained baseline, from the parameters that were kept of it."""
    path = folder / f"{name}.safetensors"
    header, tensors = read_safetensors(path, "pt", FORMAT)
    recipe = BaselineRecipe(**header["recipe"])
    network, algebra = network_for(recipe), CATALOG[recipe.task]()
    own = network.initial(torch.Generator())
    if {n: t.shape for n, t in own.items()} != {n: t.shape for n, t in tensors.items()}:
        raise ValueError(f"{path}: expected the parameters of {name}, found others")
    parameters = {n: tensor.float()[None].to(device) for n, tensor in tensors.items()}
    return Predictor(network, algebra, parameters)


def try_deep(name: str, folder: Path, device: torch.device) -> Record:
    """Counts of right answers of the kept seed beyond the tables' depths, on natural problems.

    A depth is written as soon as it is done. A run that was stopped goes on after the last.
    """
    weights = folder if (folder / f"{name}.safetensors").exists() else SHIPPED
    predictor = replace(load_baseline(name, weights, str(device)), memory=1)  # one at a time
    path = folder / f"{name}.deep.json"
    start: Record = {
        "name": name,
        "command": f"python -m exactformer.paper.baseline_records {name} --deep",
        "device": device_name(device),
        "weights": sha256((weights / f"{name}.safetensors").read_bytes()).hexdigest(),
    }
    found = find_record(path)
    record = found if found and start.items() <= found.items() else start | {"right": {}}
    for depth in DEEP:
        if str(depth) in record["right"]:
            continue
        expressions, values = asked_problems(RECIPES[name].task, "natural", depth)
        right = count_right([predictor], expressions, values)
        record["right"][str(depth)] = [right, len(values)]
        write_record(path, record)
        _report(f"{name}, depth {depth}: {right} of {len(values)}")
    return record


def try_ours(task: str, folder: Path) -> Record:
    """Counts of right answers of the shipped models on the same problems, which they share, by the
    transformer itself; and the count of the commonest answer.
    """
    from exactformer.paper.depth_table import proved

    models = proved(task)
    record: Record = {
        "name": f"{task}-ours",
        "command": f"python -m exactformer.paper.baseline_records {task} --ours",
        "right": {},
        "majority": {},
    }
    for drawing in DRAWINGS:
        depths = [*TABLE_DEPTHS, *(DEEP if drawing == "natural" else [])]
        right, common = [], []
        for depth in depths:
            expressions, values = asked_problems(task, drawing, depth)
            right.append(count_right(models, expressions, values))
            common.append(commonest(values))
            _report(f"{task}, ours, {drawing}, depth {depth}: {right[-1]} of {len(values)}")
        record["right"][drawing], record["majority"][drawing] = right, common
    write_record(folder / f"{task}-ours.json", record)
    return record


def device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name() if device.type == "cuda" else f"CPU {platform.machine()}"


def _report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Train baselines and write their records.")
    names = [*RECIPES, *CATALOG]
    parser.add_argument("names", nargs="+", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--out", type=Path, default=RUNS)
    parser.add_argument("--deep", action="store_true", help="try kept parameters at large depths")
    parser.add_argument("--ours", action="store_true", help="try the shipped models of a task")
    parser.add_argument(
        "--shared", action="store_true", help="say that other runs share the device"
    )
    arguments = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    for name in arguments.names:
        if (name in CATALOG) != arguments.ours:
            parser.error(f"{name}: --ours is for a task, all else for a baseline")
        if arguments.ours:
            try_ours(name, arguments.out)
        elif arguments.deep:
            try:
                try_deep(name, arguments.out, device)
            except (OSError, ValueError) as error:  # no parameters were kept, or others
                parser.error(f"{name}: {error}")
        else:
            train_baseline(RECIPES[name], arguments.out, shared=arguments.shared)


if __name__ == "__main__":
    main()
