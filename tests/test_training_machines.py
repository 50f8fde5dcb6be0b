"""Machines learned from texts and answers: by futures and by beliefs, judged by the certificate."""

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

import exactformer as ef
from exactformer.certify import certify
from exactformer.domains.expression import Expression
from exactformer.domains.machine_catalog import MACHINES
from exactformer.domains.machines import Machine
from exactformer.domains.reference import evaluate
from exactformer.model.machine import MachineWeights
from exactformer.training import run as training_run
from exactformer.training.beliefs import random_perceptron
from exactformer.training.futures import Discoverer
from exactformer.training.kinds import recipe_by_method
from exactformer.training.machine_recipes import futures_recipe
from exactformer.training.machine_texts import NONE, Learned, Oracle
from exactformer.training.machines import fitted
from exactformer.training.run import CHECKPOINT, train_seeds
from exactformer.verify import verify
from tests.in_process import run_here
from tests.machines import random_machine, split
from tests.runs import Enough, StopAtFirstLook, files

QUICK = {
    "attempts": 1,
    "checks": 2_000,
    "sample": 4_000,
    "looks": 2,
    "steps": 300,
    "polish_steps": 100,
}


def delayed(length: int, read: str = "left") -> Machine:
    """Answers 1 after at least so many symbols `a`, else 0: shorter texts all have one answer."""
    return Machine.from_rule(
        "delayed",
        "ab",
        0,
        lambda count, x: min(length, count + (x == "a")),
        end=lambda count: str(int(count == length)),
        read=read,  # type: ignore[arg-type]
    )


def alternating() -> Machine:
    """`a` and `b` by turns, beginning with `a` and ending with `b`; answers how often, modulo 2."""

    def step(state: tuple[int, str], x: str) -> tuple[int, str] | None:
        count, last = state
        return None if x == last else ((count + (x == "b")) % 2, x)

    return Machine.from_rule(
        "alternating", "ab", (0, "b"), step, end=lambda q: str(q[0]) if q[1] == "b" else None
    )


def fenced() -> Machine:
    """Partial, an answer a symbol, read from the right: only `b` may follow `c`."""
    return Machine.from_rule(
        "fenced",
        "abc",
        0,
        lambda q, x: None if q == 2 and x != "b" else 2 if x == "c" else q % 2 ^ (x == "b"),
        each=lambda q, x: "01"[q % 2 ^ (x == "b")] if x != "c" else ".",
        read="right",
    )


@pytest.fixture(params=[*MACHINES, alternating, fenced])
def machine(request: pytest.FixtureRequest) -> Machine:
    return (MACHINES.get(request.param) or request.param)()


def text_of(machine: Machine, tokens: np.ndarray) -> Expression:
    """The text of a row of tokens in the order in which they are read."""
    ids = [t for t in tokens.tolist() if t not in (NONE, machine.end)]
    order = 1 if machine.read == "left" else -1
    return Expression(machine, np.array(ids[::order], dtype=np.int16))


def test_the_oracle_answers_what_the_reference_does(machine):
    oracle, order = Oracle(machine, 5), 1 if machine.read == "left" else -1
    few = range(min(3, len(machine.symbols)))
    for length in range(1, 5):
        texts = np.array([*product(few, repeat=length)])
        for tokens, found in zip(texts, oracle.ask(texts).tolist(), strict=True):
            ids = tokens[::order].tolist()
            if machine.first_error(ids, [machine.vocabulary[i] for i in ids]):
                assert found == NONE
                continue
            answer = evaluate(text_of(machine, tokens))
            symbols = [*answer] if machine.packs else answer.split()
            assert machine.vocabulary[found] == symbols[::order][-1]


def test_drawn_texts_are_allowed_and_have_their_answers(machine):
    drawn = Oracle(machine, 5).draw(300, np.random.default_rng(0))
    lengths = set()
    for tokens, answers in zip(drawn.tokens, drawn.answers, strict=True):
        text = text_of(machine, tokens)
        words = [machine.vocabulary[i] for i in text.ids]
        assert machine.first_error(text.ids.tolist(), words) is None
        symbols = [machine.vocabulary[i] for i in answers if i != NONE]
        symbols = symbols if machine.read == "left" else symbols[::-1]
        assert ("" if machine.packs else " ").join(symbols) == evaluate(text)
        lengths.add(len(text.ids))
    assert len(lengths) > 1


def test_the_machine_is_found_by_futures(machine):
    recipe = futures_recipe(machine)
    found, right = Discoverer(Oracle(machine, recipe.longest, recipe.often), recipe).find(1)
    assert right == recipe.checks
    assert found.learned.states == len(machine.states)  # these machines are minimal
    longer = Oracle(machine, 40).draw(500, np.random.default_rng(1))
    assert found.learned.right(longer).all()


def test_random_machines_are_found_by_futures():
    rng, found = np.random.default_rng(5), 0
    for _ in range(100):
        machine = random_machine(rng)
        recipe = futures_recipe(machine, checks=1_000)
        hypothesis, right = Discoverer(Oracle(machine, recipe.longest), recipe).find(1)
        found += right == recipe.checks
        assert hypothesis.learned.right(Oracle(machine, 40).draw(100, rng)).all()
        assert hypothesis.learned.states <= len(machine.states)
    assert found == 100


@pytest.mark.parametrize("read", ["left", "right"])
def test_what_shows_beyond_the_texts_that_were_seen_is_refused_with_a_text(read):
    """All texts of up to five symbols have one answer, and so has the machine that is learned."""
    (result,) = train_seeds(delayed(9, read), [1], recipe=futures_recipe(delayed(9, read)))
    record = result.record
    assert record["fresh_texts_right"] == 20_000
    assert (record["verdict"], record["counterexample"]) == ("inexact", "aaaaaaaaa")
    seen = futures_recipe(delayed(9, read), longest=12, continuations=9)
    (result,) = train_seeds(delayed(9, read), [1], recipe=seen)
    assert (result.record["verdict"], result.record["states"]) == ("exact", 10)


def test_too_few_states_end_honestly(machine):
    few = len(machine.states) - 1
    recipe = futures_recipe(machine, states=few, attempts=1, polish_steps=100)
    (result,) = train_seeds(machine, [1], recipe=recipe)
    assert (result.record["verdict"], result.record["states"]) == ("inexact", few)
    assert result.record["fresh_texts_right"] < recipe.checks
    text = ef.parse(machine, result.record["counterexample"])
    assert result.model.predict([text]) != [evaluate(text)]


def test_beliefs_with_too_few_states_end_honestly():
    recipe = recipe_by_method("beliefs", MACHINES["cycle-5"](), QUICK | {"states": 4, "steps": 50})
    (result,) = train_seeds(MACHINES["cycle-5"](), [1], recipe=recipe)
    assert (result.record["verdict"], result.record["states"]) == ("inexact", 4)
    text = ef.parse(MACHINES["cycle-5"](), result.record["counterexample"])
    assert result.model.predict([text]) != [evaluate(text)]


@pytest.mark.parametrize("make", [*map(MACHINES.get, ("parity", "flip-flop")), alternating, fenced])
def test_beliefs_are_learned_and_proved(make):
    machine = make()
    recipe = recipe_by_method(
        "beliefs", machine, QUICK | {"attempts": 3, "longest": 8, "steps": 600}
    )
    for result in train_seeds(machine, [1, 2], recipe=recipe):
        assert result.exact
        assert result.record["margin"] >= 0.5
        texts = Oracle(machine, 60).draw(200, np.random.default_rng(2))
        texts = [text_of(machine, tokens) for tokens in texts.tokens]
        assert result.model.predict(texts) == [evaluate(text) for text in texts]


def test_the_certificate_steers_nothing(monkeypatch):
    """With another verdict, the same numbers at the same step: it is asked once a seed, at the end;
    and nobody but the oracle looks at the transitions.
    """
    asked = []

    def always(machine, weights):
        asked.append(weights)
        wrong = replace(weights, G_K=torch.zeros_like(weights.G_K))
        return certify(machine, wrong)

    for method, settings in (("futures", {}), ("beliefs", QUICK)):
        recipe = recipe_by_method(method, MACHINES["parity"](), settings)
        expected = train_seeds(MACHINES["parity"](), [1, 2], recipe=recipe)
        with monkeypatch.context() as patch:
            patch.setattr("exactformer.training.machines.certify", always)
            found = train_seeds(MACHINES["parity"](), [1, 2], recipe=recipe)
        assert len(asked) == 2
        asked.clear()
        for a, b in zip(expected, found, strict=True):
            assert (a.record["verdict"], b.record["verdict"]) == ("exact", "inexact")
            assert a.record["steps_in_all"] == b.record["steps_in_all"]
            assert a.model == b.model


@pytest.mark.parametrize("method", ["futures", "beliefs"])
def test_machines_that_answer_alike_are_learned_alike(method):
    """Nobody but the oracle looks at the states: another machine with the same answers, which has
    one of its states twice, leads to the same weights.
    """
    machine, rng = MACHINES["parity"](), np.random.default_rng(3)
    twice = split(machine, rng)
    assert twice is not None
    assert len(twice.states) == 3
    recipe = recipe_by_method(method, machine, QUICK if method == "beliefs" else {})
    found = [train_seeds(m, [1, 2], recipe=recipe) for m in (machine, replace(twice, name="twice"))]
    for one, other in zip(*found, strict=True):
        assert one.exact
        assert other.exact
        for a, b in zip(
            one.model.weights.f.tensors.values(),
            other.model.weights.f.tensors.values(),
            strict=True,
        ):
            assert torch.equal(a, b)


def test_a_seed_that_diverges_has_a_verdict():
    recipe = recipe_by_method("beliefs", MACHINES["parity"](), QUICK | {"rate": 1e30, "steps": 50})
    (result,) = train_seeds(MACHINES["parity"](), [1], recipe=recipe)
    assert result.record["verdict"] == "inexact"
    assert result.record["counterexample"]


def test_a_machine_of_many_symbols_has_as_many_states_as_can_be_checked():
    symbols = [f"s{i}" for i in range(900)]
    last = Machine.from_rule("last", symbols, 0, lambda q, x: int(x[1:]) % 3, end=str)
    recipe = futures_recipe(last)
    assert recipe.states == 16
    hypothesis, right = Discoverer(Oracle(last, 5), recipe).find(1)
    assert (hypothesis.learned.states, right) == (3, recipe.checks)
    with pytest.raises(
        ValueError, match=r"numbers of .* rows of 'last': expected 16777216 at most"
    ):
        train_seeds(last, [1], recipe=replace(recipe, states=64))


def test_a_seed_has_the_same_bits_alone_and_beside_others():
    machine = MACHINES["even-pairs"]()
    recipe = recipe_by_method("beliefs", machine, QUICK | {"batch": 37, "states": 7, "steps": 200})
    together = {result.seed: result for result in train_seeds(machine, range(5), recipe=recipe)}
    for seeds in ([3], [4, 1]):
        for result in train_seeds(machine, seeds, recipe=recipe):
            assert result.model == together[result.seed].model
            beside = together[result.seed].record
            assert result.record["steps_in_all"] == beside["steps_in_all"] > 25


@pytest.mark.parametrize("method", ["futures", "beliefs"])
def test_an_interrupted_run_goes_on_with_the_same_bytes(method, tmp_path, monkeypatch):
    monkeypatch.setattr(training_run, "CHECKPOINT_SECONDS", 0.0)
    machine = MACHINES["even-pairs"]()
    recipe = recipe_by_method(method, machine, QUICK if method == "beliefs" else {})
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    train_seeds(machine, [1, 2], recipe=recipe, out=whole)
    with pytest.raises(Enough):
        train_seeds(machine, [1, 2], recipe=recipe, out=broken, observers=[StopAtFirstLook()])
    assert (broken / CHECKPOINT).exists()
    train_seeds(machine, [1, 2], recipe=recipe, out=broken)
    expected, found = files(whole), files(broken)
    assert found.keys() == expected.keys()
    for name in found.keys() - {"1.json", "2.json"}:  # they have seconds
        assert found[name] == expected[name], name
    assert train_seeds(machine, [1, 2], recipe=recipe, out=whole)[0].exact


def test_the_commands_train_prove_and_sweep_machines(tmp_path):
    run = tmp_path / "run"
    status, said, shown = run_here(["train", "parity", "--seeds", "1,2", "--out", str(run)])
    assert (status, "certified 2 of 2" in said) == (0, True)
    assert "parity 1: exact" in shown
    described = json.loads((run / "run.json").read_text())
    assert described["algebra"]["name"] == "parity"
    assert described["recipe"]["continuations"] == 5
    weights, proof = run / "1.safetensors", run / "1.proof.json"
    assert verify(proof, weights, MACHINES["parity"]()).exact
    assert run_here(["verify", str(proof), str(weights), "--algebra", "parity"])[0] == 0
    assert run_here(["certify", "parity", "--weights", str(weights)])[0] == 0
    assert ef.load(weights)("0110100") == "1"
    settings = ["--set", "method=futures,beliefs", "--set", "checks=999", "--workers", "1"]
    sweep = ["sweep", "parity", "--seeds", "5-6", "--out", str(tmp_path / "sweep"), *settings]
    status, said, _ = run_here(sweep)
    assert (status, said.count(" 2 | 2 | ")) == (0, 2)


def test_the_command_says_what_failed(tmp_path):
    settings = ["--set", "states=1", "--set", "attempts=1"]
    arguments = ["train", "parity", "--seeds", "1", "--out", str(tmp_path / "run"), *settings]
    status, said, _ = run_here(arguments)
    assert (status, "certified 0 of 1" in said, "\n1 fails on " in said) == (1, True, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "future"], "expected the method futures or beliefs, found 'future'"),
        (["--method", "staged"], "use --method futures or beliefs, over short texts"),
        (["--set", "sample=9"], "the method futures has no 'sample'"),
        (["--set", "states=0"], "expected states of 1 or more, found 0"),
        (["--set", "states=1001"], "states: expected 1000 at most, found 1001"),
        (["--set", "often=2"], "expected symbols of 'parity' as often, found '2'"),
        (
            ["--set", "longest=9999999999"],
            "symbols of the texts of one draw: expected 16777216 at most",
        ),
        (["--method", "beliefs", "--set", "width=99999"], "expected 65536 at most, found 99999"),
        (["--estimator", "score"], "the method futures has no 'estimator'"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(arguments, message, tmp_path):
    out = tmp_path / "run"
    status, said, error = run_here(
        ["train", "parity", "--seeds", "1", "--out", str(out), *arguments]
    )
    assert (status, said, out.exists()) == (2, "", False)
    assert message in error


def test_a_machine_without_short_texts_is_refused():
    only = Machine.from_rule(
        "only", "a", 0, lambda q, x: min(q + 1, 9), end=lambda q: "a" * (q > 8) or None
    )
    with pytest.raises(ValueError, match="'only' has no text of up to 5 symbols"):
        train_seeds(only, [1])


def test_a_recipe_of_another_kind_is_refused():
    with pytest.raises(ValueError, match="expected a recipe for 'parity', found one of the type"):
        train_seeds(MACHINES["parity"](), [1], recipe=recipe_by_method(None, ef.boolean(), {}))


def test_a_perceptron_too_small_for_its_rows_has_no_proof():
    machine = MACHINES["s3"]()
    (result,) = train_seeds(machine, [1], recipe=futures_recipe(machine, width=1, attempts=1))
    assert result.record["verdict"] == "inexact"
    assert result.record["counterexample"]


def test_a_mutated_row_is_refused():
    """The certificate never passes a learned machine with one wrong row."""
    machine, rng = MACHINES["cycle-5"](), np.random.default_rng(0)
    recipe = futures_recipe(machine)
    learned = Discoverer(Oracle(machine, 6), recipe).find(1)[0].learned
    for _ in range(5):
        following = learned.following.copy()
        state, symbol = rng.integers(5), rng.integers(3)
        following[state, symbol] = (following[state, symbol] + 1) % 5
        wrong = Learned(learned.answer, following)
        f, _ = fitted(random_perceptron(9 + 5, 9 + 5, 64, rng), wrong, recipe)
        assert certify(machine, MachineWeights(torch.ones(9), f)).verdict == "inexact"
