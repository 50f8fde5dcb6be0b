"""The files that are attacked, and how those of weights, algebras and rows are damaged, read, and
judged when accepted.
"""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random

import numpy as np

import exactformer as ef
from attacks.mutants import Tensors, as_bytes, mutate_bytes, weights_sha256
from attacks.target import Target
from attacks.training_files import SEED, baseline_files, run_files
from exactformer.api import Model, load
from exactformer.certify import findings
from exactformer.domains.algebra import Algebra, Operator
from exactformer.domains.catalog import find_algebra
from exactformer.domains.definition import load_algebra
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import enumerate_depth
from exactformer.evaluation.score import Task, score
from exactformer.verify import proof_of, verify
from exactformer.weights.file import WeightFile

OFTENER = 8  # than those that take long
MOST_TRIED = 2_000  # expressions of each depth for weights that were accepted
EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
TOML_KEYS = ("name", "notation", "values", "symbol", "arity", "ordered", "table", "rule", "x.y")
TOML_KEYS += ("precedence", "direction", "operators")
TOML_VALUES = (
    *('"sum"', '"max"', '"last"', '"2+"', '"99+"', "2", "60", "256", "257", "10000000000", "1e400"),
    *("[1, 2]", "[1, 256]", "[]", "[[]]", "true", "nan", "inf", "-1", "0", "1" * 5_000),
    *("'''", "{}", '"plain"', '"left"', '["-"]'),
    *('"\\u200b"', '"\\u0301"', '"\\u0000"', '"b\\u043eolean"', '"arithmetic-mod-999"', '"prefix"'),
    *("1979-05-27", "[" * 3_000, "{a=" * 3_000, '"' + "x" * 10_000 + '"', '["0"]', '["0", "1"]'),
    *(str([str(i) for i in range(1_001)]), str([str(i) for i in range(1_000)]), '"infix"'),
)


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
            file = self.mutate_part(file, rng, 0.6)
        self.rehash(file, rng, 0.8, weights_sha256)
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


class Definition(Target):
    """An algebra in TOML."""

    def mutate(self, rng: Random) -> None:
        self.source = rng.choice(sorted(EXAMPLES.rglob("*.toml"))).read_bytes()
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
        score(Task(ef.boolean(), self.paths[0], "tsv"))
        return None

    def command(self) -> list[str | Path]:
        return ["score", "boolean", self.paths[0], "--format", "tsv"]


def targets(folder: Path) -> list[Target]:
    """One target of each kind; those that are read quickly are repeated."""
    every = [*_weights(folder), *run_files(folder), *_others(folder), *baseline_files(folder)]
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


def _others(folder: Path) -> Iterator[Target]:
    toml, rows = folder / "mine.toml", folder / "rows.tsv"
    toml.write_bytes((EXAMPLES / "modulo7.toml").read_bytes())
    yield Definition("definition", [toml], lists_mistakes=True)
    drawn = ef.draw(ef.boolean(), 3, 20, np.random.default_rng(0))
    rows.write_text("".join(f"{e}\t{evaluate(e)}\n" for e in drawn))
    yield Rows("rows", [rows], lists_mistakes=True, slow=True)
