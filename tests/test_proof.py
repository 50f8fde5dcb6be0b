"""The checker that is extracted from the proof agrees with `verify`, and the model of the proof
with circuit.py. Runs where `make proof` has built it.
"""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from exactformer.api import construct
from exactformer.domains.algebra import CLOSE, FIRST_VALUE
from exactformer.domains.catalog import arithmetic, boolean, listops
from exactformer.domains.definition import load_algebra
from exactformer.domains.sampling import draw
from exactformer.domains.units import UNITS
from exactformer.model import circuit
from exactformer.model.circuit import Weights
from exactformer.model.construct import dense
from exactformer.model.encode import initial_state
from exactformer.model.feedforward import MLP
from exactformer.model.storage import to_file
from exactformer.verify import Findings, check, coq
from exactformer.weights.file import WeightFile
from exactformer.weights.named import SHIPPED
from tests.algebras import ENDS, MINUS, S3
from tests.brute_force import NOT
from tests.test_mutants import mutants

ROOT = Path(__file__).resolve().parent.parent
GATE = "the gate is +1 on '(', -1 on ')', 0 elsewhere"
MARGIN = "every output is farther from the threshold than rounding can move it"
TINY = "no weight is so small that a device may take it for zero"


pytestmark = pytest.mark.usefixtures("checker")


# The checker beside verify


def agree(findings: Findings, answer: str) -> str:
    """The kind of the answer, once it is seen to be what verify finds."""
    right = findings.conditions[GATE] and not findings.wrong_rows
    if answer == "exact":
        assert set(findings.failed) <= {MARGIN, TINY}, answer  # bounds on rounding may differ
        return "exact"
    said, reason = answer.split(": ", 1)
    kind = reason.split(" ")[0]
    assert not findings.exact, answer
    assert said == ("not exact" if kind in ("wrong", "no") else "not covered"), answer
    if kind != "within":  # a row that rounding may change can come before one that is wrong
        assert (kind != "wrong") is right, answer
    return kind


def both(algebra, pool: list[WeightFile]) -> Counter[str]:
    found = [check(algebra, file.arrays, file.activation) for file in pool]
    answers = coq.check_dumps([coq.dump(file) for file in pool])
    return Counter(agree(*pair) for pair in zip(found, answers, strict=True))


@pytest.mark.parametrize("task", ["boolean", "arithmetic", "listops"])
def test_it_finds_every_shipped_model_exact(task):
    paths = sorted(SHIPPED.glob(f"{task}/*.safetensors"))
    assert len(paths) >= 10
    pool = [WeightFile.read(path) for path in paths]
    assert both(pool[0].algebra, pool) == {"exact": len(paths)}


@pytest.mark.parametrize("name", ["kleene", "majority", "modulo7", "nand", "s3"])
def test_it_finds_the_examples_exact(name):
    algebra = load_algebra(ROOT / "examples" / f"{name}.toml")
    pool = [
        to_file(algebra, construct(algebra, kind).weights, {"made": "constructed"})
        for kind in ("closed", "table")
    ]
    assert both(algebra, pool) == {"exact": 2}


MUTANTS = [
    (boolean(), "fitted", 100, 1),
    (boolean(), "closed", 30, 1),
    (arithmetic(), "closed", 5, 3),
    (listops(2), "closed", 2, 20),
    (MINUS, "closed", 10, 1),
    (ENDS, "closed", 10, 1),
    (S3, "closed", 10, 1),
]


@pytest.mark.parametrize(
    ("algebra", "kind", "count", "every"), MUTANTS, ids=[f"{a.name}-{k}" for a, k, *_ in MUTANTS]
)
def test_it_agrees_on_mutants(algebra, kind, count, every):
    """Flips of gates and routing, perturbed perceptrons, and outputs moved to the threshold."""
    pool = [
        to_file(algebra, weights, {"made": "mutant"})
        for weights in mutants(construct(algebra, kind), count, every)
    ]
    tally = both(algebra, pool)
    print(f"{algebra.name} {kind}: {len(pool)} mutants, {dict(tally)}")
    assert tally["exact"] > len(pool) / 10
    assert tally["wrong"] > len(pool) / 10


def test_routing_may_hold_other_whole_numbers():
    """Values are received twice, with a minus in both places, and count for half as much."""
    weights = construct(boolean(), "closed").weights
    f = weights.f
    assert isinstance(f, MLP)
    W_Q, W_K, W_1 = weights.W_Q.clone(), weights.W_K.clone(), f.W_1.clone()
    values = slice(FIRST_VALUE, boolean().first_operator)
    (dimension,) = {int(k) for k in W_K[values].argmax(1)}
    W_Q[:, dimension] *= -1
    W_K[values] *= -2
    W_1[values] /= 2
    other = Weights(weights.G_PE, W_Q, W_K, MLP(W_1, f.b_1, f.W_2, f.b_2, f.activation))
    assert both(boolean(), [to_file(boolean(), other, {})]) == {"exact": 1}
    W_Q[:, dimension] *= 4
    W_K[values] *= 32
    W_1[values] /= 128
    wide = Weights(weights.G_PE, W_Q, W_K, MLP(W_1, f.b_1, f.W_2, f.b_2, f.activation))
    assert both(boolean(), [to_file(boolean(), wide, {})]) == {"routed": 1}


def test_the_value_may_be_left_in_any_one_position():
    """At `)` instead of the operator: what the operator asked for is asked for there."""
    weights = construct(NOT, "table").weights
    W_Q = weights.W_Q.clone()
    W_Q[CLOSE], W_Q[-1] = weights.W_Q[-1], 0
    moved = Weights(weights.G_PE, W_Q, weights.W_K, weights.f)
    assert both(NOT, [to_file(NOT, moved, {})]) == {"exact": 1}
    W_Q[-1] = weights.W_Q[-1]  # and now in both
    assert both(NOT, [to_file(NOT, moved, {})]) == {"wrong": 1}


def test_the_first_row_that_fails_is_named():
    model = construct(boolean(), "fitted")
    gate, W_Q = model.weights.G_PE.clone(), model.weights.W_Q.clone()
    gate[3], W_Q[4] = 1, 0
    answers = coq.check_dumps(
        [
            coq.dump(to_file(boolean(), Weights(G, W, model.weights.W_K, model.weights.f), {}))
            for G, W in ((gate, model.weights.W_Q), (model.weights.G_PE, W_Q))
        ]
    )
    assert answers == ["not exact: wrong gate of 0", "not exact: wrong row: & in & of 1 1"]


def test_a_tampered_file_never_reaches_the_checker(tmp_path):
    path = tmp_path / "tampered.safetensors"
    data = bytearray((SHIPPED / "boolean" / "7520.safetensors").read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match="not those whose hash"):
        coq.check_with_kernel(path)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text.replace("W_1", "W_9"), 'expected W_1, found "W_9"'),
        (lambda text: text.replace("values 2", "values x"), 'expected a count, found "x"'),
        (lambda text: text[: len(text) // 2], "expected"),
        (lambda text: text.replace("infix", "postfix"), 'unexpected "postfix"'),
    ],
)
def test_a_damaged_dump_is_an_error(damage, message):
    text = coq.dump(to_file(boolean(), construct(boolean()).weights, {}))
    with pytest.raises(RuntimeError, match=message):
        coq.check_dumps([damage(text)])


def test_what_the_checker_is_not_for_is_an_error(monkeypatch):
    units = construct(listops(None), "units").weights
    with pytest.raises(ValueError, match="found units"):
        coq.dump(to_file(listops(None), units, {}))
    weights = construct(boolean()).weights
    vectors = dense(weights, torch.Generator().manual_seed(0))
    with pytest.raises(ValueError, match="found dense vectors"):
        coq.dump(to_file(boolean(), vectors, {}))
    monkeypatch.setattr(coq, "MOST_CASES", 9)
    with pytest.raises(ValueError, match="for 9 spans at most, found 10"):
        coq.dump(to_file(boolean(), weights, {}))


def test_without_a_checker_the_error_says_how_to_build_it(monkeypatch):
    monkeypatch.setattr(coq, "BUILT", Path("nowhere"))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(FileNotFoundError, match="make proof"):
        coq.check_with_kernel(SHIPPED / "boolean" / "7520.safetensors")


# The definitions beside circuit.py


def words(tensor: torch.Tensor) -> str:
    """A row or a matrix (row by row) with its lengths, as the checker reads it."""
    rows = [
        f"{len(row)} {' '.join(str(int(x)) for x in row)}"
        for row in tensor.reshape(-1, tensor.shape[-1])
    ]
    return rows[0] if tensor.dim() == 1 else f"{len(rows)} {' '.join(rows)}"


def describe(weights: Weights) -> str:
    f = weights.f
    assert isinstance(f, MLP)
    G_R = torch.zeros(0) if weights.G_R is None else weights.G_R
    return "\n".join(
        [
            f"D {len(weights.G_PE)} slots {f.slots}",
            f"G_PE {words(weights.G_PE)} G_R {words(G_R) if len(G_R) else 0}",
            f"W_Q {words(weights.W_Q.T)} W_K {words(weights.W_K.T)}",
            f"feedforward {f.activation}",
            f"shift_1 0 W_1 {words(f.W_1.T)} b_1 {words(f.b_1)}",
            f"shift_2 0 W_2 {words(f.W_2.T)} b_2 {words(f.b_2)}\n",
        ]
    )


def random_weights(rng: np.random.Generator, D: int, S: int) -> Weights:
    """Gates right or random; whole-number perceptrons, so that torch does not round them."""

    def whole(low: int, high: int, *shape: int) -> torch.Tensor:
        return torch.from_numpy(rng.integers(low, high, shape)).float()

    right = torch.tensor([1.0, -1.0] + [0.0] * (D - 2))
    gate = right if rng.random() < 0.5 else whole(-1, 2, D)
    m = int(rng.integers(1, 6))
    perceptron = MLP(
        whole(-3, 4, S * D, m),
        whole(-3, 4, m),
        whole(-3, 4, m, D),
        whole(-3, 4, D),
        "square" if rng.random() < 0.5 else "relu",
    )
    h = int(rng.integers(1, 4))
    W_Q, W_K = whole(0, 2, D, h), whole(0, 2, D, h)
    return Weights(gate, W_Q, W_K, perceptron, G_R=whole(-1, 2, D) if S > 1 else None)


def random_state(rng: np.random.Generator, D: int, n: int) -> torch.Tensor:
    """Tokens and empty positions, mostly parentheses; now and then a row with two ones."""
    ids = torch.from_numpy(
        np.where(rng.random(n) < 0.4, rng.integers(0, 2, n), rng.integers(0, D + 2, n))
    )
    X = (ids[:, None] == torch.arange(D)).float()
    X[torch.from_numpy(rng.random((n, D)) < 0.02)] = 1
    return X


def ask(text: str) -> list[str]:
    done = subprocess.run(
        [coq.find_kernel(), "--circuit"],
        input=text + "end\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def line(row: torch.Tensor) -> str:
    return " ".join(str(int(x)) for x in row)


def show(rows: torch.Tensor) -> list[str]:
    return [line(row) for row in rows]


def test_an_iteration_is_that_of_the_circuit():
    rng = np.random.default_rng(0)
    states = 0
    for _ in range(60):
        D, S = int(rng.integers(3, 7)), int(rng.choice([1, 1, 2, 3]))
        weights = random_weights(rng, D, S)
        text, expected = describe(weights), []
        for _ in range(50):
            n = int(rng.integers(1, 25))
            X, inside = random_state(rng, D, n), torch.from_numpy(rng.random(n) < 0.9)
            text += f"iterate {words(inside)} {words(X)}\n"
            step = circuit.iterate(X, weights, inside)
            expected += ["A", *show(step.A), "P", line(step.P), "ids", line(step.ids), "R"]
            expected += [None if step.R is None else line(step.R)]
            expected += ["H", *show(step.H), "X", *show(step.X)]
            states += 1
        found = ask(text)
        assert len(found) == len(expected)
        for answer, right in zip(found, expected, strict=True):
            assert right is None or answer == right
    assert states == 3000


def test_a_run_in_a_batch_is_that_of_the_circuit():
    """Random states with random weights, and expressions with weights that compute them."""
    rng = np.random.default_rng(1)
    batches = []
    for _ in range(200):
        D, S, n = int(rng.integers(3, 7)), int(rng.choice([1, 2])), int(rng.integers(1, 20))
        X = torch.stack([random_state(rng, D, n) for _ in range(3)])
        inside = torch.arange(n) < torch.from_numpy(rng.integers(1, n + 1, 3))[:, None]
        batches.append((random_weights(rng, D, S), X, inside))
    for algebra in (boolean(), MINUS, ENDS):
        weights = construct(algebra, "closed").weights
        f = weights.f
        assert isinstance(f, MLP)
        # the threshold between 0 and 1 is at 1/2: all outputs twice are whole numbers
        twice = MLP(f.W_1, f.b_1, 2 * f.W_2, 2 * f.b_2, f.activation)
        weights = Weights(weights.G_PE, weights.W_Q, weights.W_K, twice, G_R=weights.G_R)
        drawn = [e for depth in range(5) for e in draw(algebra, depth, 2, rng)]
        batches.append((weights, *initial_state(drawn, weights)))
    longest = 0
    for weights, X, inside in batches:
        text = describe(weights) + f"run {len(X)}\n"
        text += "\n".join(f"{words(i)} {words(x)}" for x, i in zip(X, inside, strict=True)) + "\n"
        final, iterations = circuit.run(X, weights, inside)
        expected = []
        for x, count in zip(final, iterations.tolist(), strict=True):
            expected += [f"run {count}", *show(x)]
            longest = max(longest, count)
        assert ask(text) == expected
    assert longest >= 4


# The units beside units.py


RULES = [
    *("max", "min", "median", "majority", "median-mean", "sum", "saturating-sum"),
    *("first", "difference", "implies", "complement", "nor", "nand"),
]


def test_the_units_are_those_that_the_proof_is_about():
    asked = [(rule, n, slots) for rule in RULES for n in range(2, 12) for slots in range(2, 5)]
    expected = []
    for rule, n, slots in asked:
        units = UNITS[rule](n, slots)
        for unit in units.units:
            rows = [*unit.weights, (unit.bias, unit.cap, unit.period, unit.code)]
            expected.append(" | ".join(" ".join(map(str, row)) for row in rows))
        expected.append(f"read {' '.join(map(str, units.readout))}")
    text = "\n".join(" ".join(map(str, question)) for question in asked)
    done = subprocess.run(
        [coq.find_kernel(), "--units"],
        input=f"{text}\nend\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == expected


def test_verify_asks_the_kernel(tmp_path):
    """The command, with weights that its own check accepts and the extracted one must, too."""
    proof, weights = SHIPPED / "boolean/7520.proof.json", SHIPPED / "boolean/7520.safetensors"
    command = [sys.executable, "-m", "exactformer", "verify", str(proof), str(weights), "--kernel"]
    said = subprocess.run(command, capture_output=True, text=True)
    assert (said.returncode, said.stderr) == (0, "")
    assert "and exact by the extracted checker" in said.stdout
    construct(listops(5), "units").save(tmp_path / "units")
    construct(listops(5), "units").certify().save(tmp_path / "proof")
    command[4:6] = [str(tmp_path / "proof"), str(tmp_path / "units")]
    said = subprocess.run(command, capture_output=True, text=True)
    assert (said.returncode, said.stdout) == (2, "")
    assert "the checker is for perceptrons and tables, found units" in said.stderr
