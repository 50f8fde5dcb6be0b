"""The extracted checker and machines: it agrees with `verify`, refuses what is wrong, and the layer
of the proof is that of machine.py. Runs where `make proof` has built it.
"""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

import exactformer as ef
from attacks.machines import with_a_changed_number
from exactformer.domains.expression import Expression
from exactformer.domains.machine_catalog import MACHINES
from exactformer.domains.machines import Machine
from exactformer.domains.reference import evaluate
from exactformer.model.encode import initial_state
from exactformer.model.feedforward import MLP, Table
from exactformer.model.machine import MachineWeights, iterate
from exactformer.model.storage import to_file
from exactformer.verify import Findings, check, coq
from exactformer.weights.file import WeightFile
from exactformer.weights.named import SHIPPED
from tests.machines import mutated, random_machine, split
from tests.test_kernel import verified
from tests.test_proof_speculate import ask, line

pytestmark = pytest.mark.usefixtures("checker")

GATE = "the gate of the key is 1 on every token"
PRODUCT = "in all states that a text leads to, answers and next states are the machine's"
MARGIN = "every output is farther from the threshold than rounding can move it"


def agree(findings: Findings, answer: str) -> str:
    """The kind of the answer, once it is seen to be what verify finds."""
    if answer == "exact":
        assert findings.exact, findings.failed
        return "exact"
    said, reason = answer.split(": ", 1)
    if reason.startswith("the gate"):
        assert not findings.conditions[GATE]
    elif said == "not exact":  # the first row that is wrong is the nearest one, as in `verify`
        assert not findings.conditions[PRODUCT]
    else:
        assert reason.startswith("within rounding")
        assert not findings.conditions[MARGIN]
    return reason.split(" ")[0]


def both(machine: Machine, pool: list[WeightFile]) -> Counter[str]:
    found = [check(machine, file.arrays, file.activation) for file in pool]
    answers = coq.check_dumps([coq.dump(file) for file in pool])
    return Counter(agree(*pair) for pair in zip(found, answers, strict=True))


def test_it_finds_every_shipped_machine_exact():
    files = [
        WeightFile.read(path) for name in MACHINES for path in SHIPPED.glob(f"{name}/*.safetensors")
    ]
    assert {file.domain.name for file in files} == {*MACHINES}
    assert coq.check_dumps([*map(coq.dump, files)]) == ["exact"] * len(files)


@pytest.mark.parametrize("name", sorted({*MACHINES} - {"s5"}))  # which takes seconds
def test_it_finds_constructed_machines_exact(name):
    machine = MACHINES[name]()
    pool = [
        to_file(machine, ef.construct(machine, kind).weights, {}) for kind in ("closed", "table")
    ]
    assert both(machine, pool) == {"exact": 2}


def test_it_agrees_on_random_machines_that_are_changed_or_split():
    """Machines answer at the end or each symbol, are read from either side, and have symbols that
    are not allowed; a third of the weights have a number changed.
    """
    rng = np.random.default_rng(36)
    tally: Counter[str] = Counter()
    for number in range(60):
        machine = random_machine(rng)
        other = split(mutated(machine, rng), rng) or machine
        weights = ef.construct(other, ("closed", "table")[number % 2]).weights
        pool = [weights, *(with_a_changed_number(weights, rng) for _ in range(number % 3))]
        tally += both(machine, [to_file(machine, part, {}) for part in pool])
    assert min(tally[kind] for kind in ("exact", "wrong", "no")) > 5, tally


def test_a_machine_of_the_proof_answers_as_one_of_the_package(checker):
    """Random texts, allowed or not; and the states that those begin with, with the mark's place."""
    rng = np.random.default_rng(1)
    allowed: Counter[bool] = Counter()
    for _ in range(60):
        machine = random_machine(rng)
        weights = ef.construct(machine, "table").weights
        lines = coq.dump(to_file(machine, weights, {})).splitlines()
        lines = lines[lines.index(f"start {machine.start}") : -6]
        text = "\n".join([f"D {weights.D}", machine.read, *lines]) + "\n"
        expected: list[str] = []
        for _ in range(20):
            length = int(rng.integers(1, 8))
            ids = rng.integers(len(machine.symbols), size=length).astype(np.int16)
            text += f"text {length} {line(ids)}\n"
            drawn = Expression(machine, ids)
            X, _ = initial_state([drawn], weights)
            fine = machine.first_error(ids.tolist(), [*map(str, ids)]) is None
            allowed[fine] += 1
            answer = machine.lexicon.scanner.findall(str(evaluate(drawn))) if fine else []
            numbers = line(machine.token_ids[symbol] for symbol in answer)
            expected += ["answers", numbers if fine else "-", "X", *map(line, X[0])]
        assert ask(checker, "--texts", text) == expected
    assert min(allowed.values()) > 100, allowed


# What is wrong is refused


TEN = Machine.from_rule(
    "ten", "01", 0, lambda ones, bit: min(ones + int(bit), 10), end=lambda ones: str(ones // 10)
)
NINE = replace(TEN, outputs=(*["0"] * 9, "1", "1"))
BACK = replace(TEN, transitions=(*TEN.transitions[:10], (10, 9)))


def asked(model: ef.Model) -> str:
    (answer,) = coq.check_dumps([coq.dump(to_file(model.domain, model.weights, {}))])
    return answer


@pytest.mark.parametrize(("other", "ones"), [(NINE, 9), (BACK, 11)], ids=["answer", "transition"])
def test_a_wrong_answer_or_transition_is_shown_by_its_shortest_text(other, ones):
    model = ef.Model(TEN, ef.construct(other).weights)
    assert asked(model) == f"not exact: wrong answer: $ after {' '.join('1' * ones)}"
    example = model.certify().counterexample
    assert example is not None
    assert str(example.expression) == "1" * ones


@pytest.mark.parametrize("read", ["left", "right"])
def test_a_wrong_answer_to_a_symbol_is_found(read):
    right = Machine.from_rule(
        "run", "01", 0, lambda q, x: int(x), each=lambda q, x: str(q & int(x)), read=read
    )
    wrong = replace(right, outputs=(right.outputs[0], ("0", "0")))
    answer = asked(ef.Model(right, ef.construct(wrong).weights))
    assert answer == "not exact: wrong answer: 1 after 1"
    assert asked(ef.construct(right)) == "exact"


@pytest.mark.parametrize("token", range(3))
@pytest.mark.parametrize("gate", [0, -1])
def test_a_wrong_gate_is_refused(token, gate):
    model = ef.construct(MACHINES["parity"]())
    G_K = model.weights.G_K.clone()
    G_K[token] = gate
    answer = asked(ef.Model(model.domain, replace(model.weights, G_K=G_K)))
    assert answer == f"not covered: the gate of the key is not 1 on {'01$'[token]}"


def cancelling(f: MLP, size: float) -> MLP:
    """A perceptron gets two more hidden units, which are always 1 and cancel each other."""
    last = torch.full((1, f.width), size)
    return MLP(
        torch.cat([f.W_1, torch.zeros(len(f.W_1), 2)], 1),
        torch.cat([f.b_1, torch.ones(2)]),
        torch.cat([f.W_2, last, -last]),
        f.b_2,
        f.activation,
    )


def test_a_margin_that_is_missing_is_refused():
    model = ef.construct(MACHINES["parity"]())
    for size, expected in [(2.0**20, "exact"), (2.0**60, "not covered: within rounding of")]:
        f = cancelling(model.weights.f, size)
        held = ef.Model(model.domain, replace(model.weights, f=f))
        assert asked(held).startswith(expected)
        assert held.certify().exact == (expected == "exact")


def test_two_next_states_are_none():
    model = ef.construct(MACHINES["parity"](), "table")
    outputs = model.weights.f.outputs.clone()
    outputs[:, -2:] = 1
    f = Table(model.weights.f.bags, outputs)
    answer = asked(ef.Model(model.domain, replace(model.weights, f=f)))
    assert answer == "not exact: no next state: 0 at the beginning"


def test_a_damaged_file_is_an_error():
    text = coq.dump(to_file(TEN, ef.construct(TEN).weights, {}))
    for damaged in (text.replace("mark", "marks"), text[: len(text) // 2], "machine\nend\n"):
        with pytest.raises(RuntimeError):
            coq.check_dumps([damaged])


# On the command line


def test_verify_names_the_checker_of_a_machine(checker, tmp_path):
    status, printed, _ = verified(ef.load("flip-flop/7520"), tmp_path)
    assert status == 0
    assert "exact by the extracted checker" in printed
    assert f"  checker  {checker}" in printed


def test_weights_that_would_take_too_long_are_not_covered(tmp_path, monkeypatch):
    monkeypatch.setattr(coq, "MOST_PRODUCTS", 100)
    status, printed, errors = verified(ef.construct(MACHINES["parity"]()), tmp_path)
    assert (status, printed) == (2, "")
    assert "the checker is for 100 products at most" in errors


@pytest.mark.parametrize("name", ["folds", "integers"])
def test_other_domains_are_not_covered(name):
    model = ef.construct(ef.find_domain(name))
    with pytest.raises(coq.NotCovered, match=name):
        coq.dump(to_file(model.domain, model.weights, {}))


# The layer of the proof beside that of the model


def words(rows: Tensor) -> str:
    return f"{len(rows)} " + " ".join(f"{len(row)} {line(row)}" for row in rows)


def layer_text(weights: MachineWeights, read: str) -> str:
    f = weights.f
    parts = [f"D {weights.D}", f"W {weights.W}", read, f"G_K {weights.D} {line(weights.G_K)}"]
    if isinstance(f, Table):
        parts += ["feedforward table", f"bags {words(f.bags)}", f"outputs {words(f.outputs)}"]
    else:
        parts.append("feedforward " + f.activation)
        for layer, (W, b) in {"1": (f.W_1, f.b_1), "2": (f.W_2, f.b_2)}.items():
            parts += [
                f"shift_{layer} 0",
                f"W_{layer} {words(W.T)}",
                f"b_{layer} {len(b)} {line(b)}",
            ]
    return "\n".join(parts) + "\n"


def random_weights(rng: np.random.Generator) -> MachineWeights:
    """Weights that mean nothing, in whole numbers."""
    D, W, m = (int(x) for x in rng.integers(1, 6, 3))

    def whole(*shape: int) -> Tensor:
        return torch.from_numpy(rng.integers(-3, 4, shape)).float()

    f = MLP(whole(D + W, m), whole(m), whole(m, D + W), whole(D + W), "relu")
    G_K = torch.from_numpy(rng.integers(-1, 2, D) if rng.random() < 0.6 else np.ones(D)).float()
    return MachineWeights(G_K, f)


def weights_of_a_machine(rng: np.random.Generator) -> MachineWeights:
    weights = ef.construct(random_machine(rng), "table").weights
    assert isinstance(weights, MachineWeights)
    return weights


@pytest.mark.parametrize("draw", [random_weights, weights_of_a_machine])
def test_the_layer_is_that_of_the_model(checker: Path, draw):
    """Batches of states with empty positions, with several tokens in one position, with rows that
    are joined by the gate, and with tokens outside; some rows at a time.
    """
    rng = np.random.default_rng(0)
    for number in range(80):
        weights, read = draw(rng), ("left", "right")[number % 2]
        B, n = (int(x) for x in rng.integers(1, 7, 2))
        token = rng.integers(weights.D, size=(B, n))
        X = np.eye(weights.D)[token] * (rng.random((B, n, 1)) < 0.8)
        if number % 4 == 3:
            X += rng.random(X.shape) < 0.1
        inside = rng.random((B, n)) < 0.9
        state = torch.from_numpy(X).float()
        step = iterate(state, torch.from_numpy(inside), weights, read == "right")
        text = layer_text(weights, read) + f"batch {int(rng.integers(1, 9))} {B}\n"
        for i in range(B):
            text += f"{n} {line(inside[i])} {words(state[i])}\n"
        expected = [part for x in step.X for part in ("X", *map(line, x))]
        assert ask(checker, "--machine", text) == expected, text
