"""The kinds of files that are attacked: how each is damaged, read, and judged when accepted."""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch

import exactformer as ef
from attacks.mutants import (
    Tensors,
    as_bytes,
    content_sha256,
    mutate_bytes,
    mutate_plain,
    mutate_tensors,
    record_sha256,
    weights_sha256,
    write_json,
)
from exactformer.api import Model, load
from exactformer.baselines.state import State
from exactformer.certify import findings
from exactformer.domains.algebra import Algebra, Operator
from exactformer.domains.catalog import find_algebra
from exactformer.domains.definition import load_algebra
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import enumerate_depth
from exactformer.score import score
from exactformer.training import run
from exactformer.training.checkpoint import read_checkpoint, write_checkpoint
from exactformer.training.recipe import recipe_for
from exactformer.training.run import CHECKPOINT, Observer, train_seeds
from exactformer.training.state import begin
from exactformer.verify import proof_of, verify
from exactformer.weightfile import WeightFile

SEED = 7520  # of the run whose files are damaged
OFTENER = 8  # than those that take long
MOST_TRIED = 2_000  # expressions of each depth for weights that were accepted


@dataclass
class Target:
    """Files in a folder, one of which is damaged at a time."""

    name: str
    paths: list[Path]
    lists_mistakes: bool = False  # a refusal may have more than one line
    slow: bool = False  # to be read
    rehashed: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.originals = {path: path.read_bytes() for path in self.paths}

    def mutate(self, rng: Random) -> None:
        raise NotImplementedError

    def read(self, rng: Random) -> str | None:
        """Read it as a user would; what it broke, if it was accepted and should not have been."""
        raise NotImplementedError

    def command(self) -> list[str | Path]:
        """What reads the same on the command line; nothing if no command does."""
        return []

    def named(self) -> list[Path]:
        """What a refusal may name."""
        return self.paths

    def restore(self) -> None:
        for path, data in self.originals.items():
            path.write_bytes(data)

    def kept(self, folder: Path) -> list[Path]:
        return [Path(shutil.copy(path, folder)) for path in self.paths]

    def mutate_json(self, path: Path, rng: Random, hash_it: Callable[[Any], str] | None) -> None:
        data = mutate_plain(json.loads(self.originals[path]), rng)
        self.rehashed = hash_it is not None and rng.random() < 0.6 and isinstance(data, dict)
        if self.rehashed and hash_it:
            data["sha256"] = hash_it(data)
        path.write_bytes(as_bytes(write_json(data, rng)))

    def mutate_file(self, path: Path, rng: Random) -> None:
        self.rehashed = False
        path.write_bytes(mutate_bytes(self.originals[path], rng))


class Weights(Target):
    """A weights file and its proof."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.weights, self.proof = self.paths
        self.right = {WeightFile.read(self.weights).sha256}

    def mutate(self, rng: Random) -> None:
        path, self.rehashed = rng.choice(self.paths), False
        if rng.random() < 0.2:
            self.mutate_file(path, rng)
        elif path == self.proof:
            self.mutate_json(path, rng, None)
        else:
            self._mutate_weights(rng)

    def _mutate_weights(self, rng: Random) -> None:
        file = Tensors.of(self.originals[self.weights])
        for _ in range(rng.choice((1, 1, 2))):
            if rng.random() < 0.6:
                file = mutate_tensors(file, rng)
            else:
                header = mutate_plain(file.header, rng)
                file.header = header if isinstance(header, dict) else {"format": header}
        if rng.random() < 0.8:
            try:
                file.header["sha256"] = weights_sha256(file)
            except (KeyError, TypeError, ValueError):
                pass  # there is no hash of such a thing
            else:
                self.rehashed = True
        self.weights.write_bytes(file.write(rng))
        if self.rehashed:
            proof = json.loads(self.originals[self.proof])
            proof["weights_sha256"] = file.header["sha256"]
            self.proof.write_bytes(as_bytes(json.dumps(proof)))

    def read(self, rng: Random) -> str | None:
        if self.rehashed:
            self._prove()
        verify(self.proof, self.weights)
        file = WeightFile.read(self.weights)
        return None if file.sha256 in self.right else _wrong_value(load(self.weights))

    def _prove(self) -> None:
        """The best proof there can be of forged weights that can be read at all."""
        model = load(self.weights)
        try:
            found = findings(model.algebra, model.weights)
        except ValueError:
            return  # too large to be checked: verify is to say so
        forged = proof_of(model.algebra, WeightFile.read(self.weights).sha256, found)
        forged["conditions"] = dict.fromkeys(forged["conditions"], True)
        self.proof.write_text(json.dumps(forged))

    def command(self) -> list[str | Path]:
        return ["verify", self.proof, self.weights]


def _wrong_value(model: Model) -> str | None:
    """Every expression of depth 0 to 2, or the first of them; None if all come out right."""
    algebra = model.algebra
    try:
        known = find_algebra(algebra.name)
    except ValueError:
        known = algebra
    if known != algebra:
        return f"accepted as {algebra.name}, which it is not"
    for depth in range(3):
        if algebra.max_fan_in is None or algebra.count_cases(every_order=True) > MOST_TRIED:
            expressions = ef.draw(algebra, depth, MOST_TRIED // 10, np.random.default_rng(0))
        else:
            expressions = list(islice(enumerate_depth(algebra, depth), MOST_TRIED))
        for expression, value in zip(expressions, model.predict(expressions), strict=True):
            if value != evaluate(expression):
                return f"accepted, but {expression} came out as {value}"
    return None


class Stop(Observer):
    """Nothing is to be trained: all seeds have ended."""

    def evaluated(self, state: Any) -> None:
        raise AssertionError("a seed that has ended is trained again")


class Record(Target):
    """A file of a run that has ended: run.json, the record of a seed or its proof."""

    def mutate(self, rng: Random) -> None:
        if rng.random() < 0.2:
            self.mutate_file(self.paths[0], rng)
        else:
            hash_it = None if self.paths[0].name.endswith(".proof.json") else record_sha256
            self.mutate_json(self.paths[0], rng, hash_it)

    def read(self, rng: Random) -> str | None:
        folder = self.paths[0].parent
        weights = (folder / f"{SEED}.safetensors").read_bytes()
        (result,) = train_seeds(ef.boolean(), [SEED], out=folder, observers=[Stop()])
        if (folder / f"{SEED}.safetensors").read_bytes() != weights or not result.exact:
            return "believed, and the run ends otherwise"
        return None

    def named(self) -> list[Path]:
        return [*self.paths, self.paths[0].parent]  # the folder, if it holds another run

    def command(self) -> list[str | Path]:
        return ["train", "boolean", "--seeds", str(SEED), "--out", self.paths[0].parent]


class Enough(Exception):
    pass


class AtFirstLook(Observer):
    def evaluated(self, state: Any) -> None:
        raise Enough


class Checkpoint(Target):
    """A checkpoint of two seeds."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.path = self.paths[0]
        self.recipe = recipe_for(ef.boolean())
        self.start = begin(ef.boolean(), self.recipe, [SEED, 8739])
        self.run = Tensors.of(self.originals[self.path]).header["run"]

    def mutate(self, rng: Random) -> None:
        self.rehashed = False
        if rng.random() < 0.2:
            self.mutate_file(self.path, rng)
            return
        file = Tensors.of(self.originals[self.path])
        if rng.random() < 0.5:
            file = mutate_tensors(file, rng)
        else:
            header = mutate_plain(file.header, rng)
            file.header = header if isinstance(header, dict) else {"format": header}
        if rng.random() < 0.7:
            try:
                file.header["sha256"] = content_sha256(file)
            except (KeyError, TypeError, ValueError):
                pass
            else:
                self.rehashed = True
        self.path.write_bytes(file.write(rng))

    def read(self, rng: Random) -> str | None:
        state = read_checkpoint(self.path, self.run, self.start)
        if self.rehashed:
            return self._go_on(rng)
        write_checkpoint(self.path, state, self.run)
        same = self.path.read_bytes() == self.originals[self.path]
        return None if same else "believed, and not what was written"

    def _go_on(self, rng: Random) -> str | None:
        """A forged state is another state, but training on it must not fall over."""
        if rng.random() > 0.02:
            return None

        try:
            train_seeds(ef.boolean(), [SEED, 8739], out=self.path.parent, observers=[AtFirstLook()])
        except Enough:
            pass
        finally:
            for path in self.path.parent.iterdir():
                if path not in self.paths and path.name != "run.json":
                    path.unlink()
        return None

    def command(self) -> list[str | Path]:
        return ["train", "boolean", "--seeds", f"{SEED},8739", "--out", self.path.parent]


class Definition(Target):
    """An algebra in TOML."""

    def mutate(self, rng: Random) -> None:
        self.source = rng.choice(list(EXAMPLES.glob("*.toml"))).read_bytes()
        if rng.random() < 0.4:
            self.paths[0].write_bytes(mutate_bytes(self.source, rng))
            return
        lines = self.source.decode().splitlines()
        for _ in range(rng.choice((1, 1, 3))):
            at = rng.randrange(len(lines))
            key = lines[at].partition("=")[0]
            edits = [lines[rng.randrange(len(lines))], "", f"{key}= {rng.choice(TOML_VALUES)}"]
            edits += [f"{rng.choice(TOML_KEYS)} = {rng.choice(TOML_VALUES)}", lines[at] * 2]
            lines[at : at + rng.choice((0, 1))] = [rng.choice(edits)]
        self.paths[0].write_bytes(as_bytes("\n".join(lines)))

    def read(self, rng: Random) -> str | None:
        algebra = load_algebra(self.paths[0])
        if Algebra.from_dict(json.loads(json.dumps(algebra.to_dict()))) != algebra:
            return "its data say something else"
        for expression in ef.draw(algebra, 1, 2, np.random.default_rng(0)):
            if ef.parse(algebra, str(expression)) != expression:
                return f"{expression} is read as something else"
            evaluate(expression)
        return None

    def command(self) -> list[str | Path]:
        return ["info", self.paths[0]]


EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
TOML_KEYS = ("name", "notation", "values", "symbol", "arity", "ordered", "table", "rule", "x.y")
TOML_VALUES = (
    *('"sum"', '"max"', '"last"', '"2+"', '"99+"', "2", "60", "256", "257", "10000000000", "1e400"),
    *(
        "[1, 2]",
        "[1, 256]",
        "[]",
        "[[]]",
        "true",
        "nan",
        "inf",
        "-1",
        "0",
        "1" * 5_000,
        "'''",
        "{}",
    ),
    *('"\\u200b"', '"\\u0301"', '"\\u0000"', '"b\\u043eolean"', '"arithmetic-mod-999"', '"prefix"'),
    *("1979-05-27", "[" * 3_000, "{a=" * 3_000, '"' + "x" * 10_000 + '"', '["0"]', '["0", "1"]'),
    *(str([str(i) for i in range(1_001)]), str([str(i) for i in range(1_000)]), '"infix"'),
)


class Rows(Target):
    """Labelled rows for `score`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.mutate_rows = [b"(1&0)\t0", b"\t", b"(1&", b"0\t1\t2", b"\xff\t1", b"(~1)\t0\r", b"\0"]
        self.mutate_rows += [b"(" * 5_000 + b"\t1", b"1\t" + b"9" * 5_000, "∧\t1".encode(), b"[1]"]

    def mutate(self, rng: Random) -> None:
        data = self.originals[self.paths[0]]
        if rng.random() < 0.5:
            self.paths[0].write_bytes(mutate_bytes(data, rng))
        else:
            rows = data.split(b"\n")
            at = rng.randrange(len(rows))
            rows[at : at + rng.choice((0, 1))] = [rng.choice(self.mutate_rows)]
            self.paths[0].write_bytes(b"\n".join(rows))

    def read(self, rng: Random) -> str | None:
        score(ef.boolean(), self.paths[0], "tsv")
        return None

    def command(self) -> list[str | Path]:
        return ["score", "boolean", self.paths[0], "--format", "tsv"]


class SmallNetwork:
    """As little as a baseline's state can hold."""

    def initial(self, generator: torch.Generator) -> dict[str, torch.Tensor]:
        return {"in": torch.randn(3, 4, generator=generator), "out": torch.zeros(4)}

    def forward(self, p, tokens, depths, steps, training=False):
        raise NotImplementedError


class Baseline(Checkpoint):
    """The state of a baseline in training."""

    HEADER: dict[str, Any] = {"recipe": {"task": "boolean", "epochs": 3}, "seeds": [1, 2]}  # noqa: RUF012

    def __post_init__(self) -> None:
        Target.__post_init__(self)
        self.path = self.paths[0]

    def read(self, rng: Random) -> str | None:
        start = State.start(SmallNetwork(), [1, 2], torch.device("cpu"))
        state = State.read(self.path, self.HEADER, start)
        if self.rehashed:
            return None
        state.write(self.path, self.HEADER)
        same = self.path.read_bytes() == self.originals[self.path]
        return None if same else "believed, and not what was written"

    def command(self) -> list[str | Path]:
        return []


def targets(folder: Path) -> list[Target]:
    """One of each kind; those that are read quickly come again and again."""
    every = [*_weights(folder), *_run(folder), *_others(folder)]
    return every + [target for target in every if not target.slow] * (OFTENER - 1)


def _weights(folder: Path) -> Iterator[Target]:
    values = ("0", "1", "2")
    difference = Operator.named("-", "difference", [1, 2], 3)
    minus = Algebra("minus", values, (difference,), "infix", {"−": "-"})
    first = Operator.named("first", "first", [2], 3, unbounded=True)
    models = {
        "table": ef.construct(ef.boolean(), "table"),
        "learned": load(f"boolean/{SEED}"),
        "dense": ef.construct(ef.boolean(), dense=True),
        "ordered": ef.construct(minus, "closed"),
        "units": ef.construct(Algebra("firsts", values, (first,), "prefix"), "units"),
    }
    for name, model in models.items():
        weights, proof = folder / f"{name}.safetensors", folder / f"{name}.proof.json"
        model.save(weights)
        model.certify().save(proof)
        yield Weights(f"weights and proof ({name})", [weights, proof], slow=name == "units")


def _run(folder: Path) -> Iterator[Target]:
    ended = folder / "ended"
    train_seeds(ef.boolean(), [SEED], out=ended)
    for name in ("run.json", f"{SEED}.json", f"{SEED}.proof.json"):
        yield Record(f"run ({name})", [ended / name])

    stopped, seconds = folder / "stopped", run.CHECKPOINT_SECONDS
    run.CHECKPOINT_SECONDS = 0.0
    try:
        train_seeds(ef.boolean(), [SEED, 8739], out=stopped, observers=[AtFirstLook()])
    except Enough:
        pass
    finally:
        run.CHECKPOINT_SECONDS = seconds
    yield Checkpoint("checkpoint", [stopped / CHECKPOINT])


def _others(folder: Path) -> Iterator[Target]:
    toml, rows, state = folder / "mine.toml", folder / "rows.tsv", folder / "state.safetensors"
    toml.write_bytes((EXAMPLES / "modulo7.toml").read_bytes())
    yield Definition("definition", [toml], lists_mistakes=True)
    drawn = ef.draw(ef.boolean(), 3, 20, np.random.default_rng(0))
    rows.write_text("".join(f"{e}\t{evaluate(e)}\n" for e in drawn))
    yield Rows("rows", [rows], lists_mistakes=True, slow=True)
    start = State.start(SmallNetwork(), [1, 2], torch.device("cpu"))
    start.curve = [{"epoch": 1, "loss": [0.5, None], "depth 1": [0.5, 1.0], "depth 2": [0.1, 0.2]}]
    start.write(state, Baseline.HEADER)
    yield Baseline("baseline", [state])
