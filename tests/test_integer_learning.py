"""Integers learned from short spans and their values, judged by the certificate."""

import random
from dataclasses import replace

import numpy as np
import pytest

import exactformer as ef
from exactformer.certify import certify
from exactformer.domains.integers import OPERATORS, integers
from exactformer.domains.numerals import to_numeral
from exactformer.domains.reference import evaluate
from exactformer.model.construct_integers import gates, rows_of
from exactformer.model.feedforward import Table
from exactformer.model.integers import IntegerWeights
from exactformer.training.integer_futures import Discoverer
from exactformer.training.integer_recipes import integer_recipe
from exactformer.training.integer_texts import ASKED, Operation, Oracle, operations
from exactformer.training.integers import cases_of
from exactformer.training.kinds import recipe_by_method
from exactformer.training.machine_texts import NONE
from exactformer.training.run import Result, train_seeds
from exactformer.verify import verify
from tests.in_process import run_here

BASES = (2, 3, 10)


@pytest.fixture(scope="module")
def learned() -> list[Result]:
    return train_seeds(integers(2), [1, 2])


def numeral(number: int | None, base: int) -> list[int]:
    """Digits, the lowest first; of None, `?`."""
    if number is None:
        return [ASKED]
    return [int(digit, 16) for digit in reversed(to_numeral(number, base))]


def columns(a: list[int], b: list[int]) -> np.ndarray:
    places = max(len(a), len(b))
    return np.array([[*zip(*(x + [NONE] * (places - len(x)) for x in (a, b)), strict=True)]])


def shown(value: int, base: int) -> str:
    return "?" if value == ASKED else to_numeral(value, base)


def written(number: int | None, base: int) -> str:
    return "(0-1)" if number is None else to_numeral(number, base)


def pairs(base: int) -> list[tuple[int | None, int | None]]:
    rng = random.Random(base)
    numbers = [None, *range(base + 1), *(rng.randrange(base**4) for _ in range(6))]
    return [(a, b) for a in numbers for b in numbers]


@pytest.mark.parametrize("base", BASES)
def test_the_oracle_answers_what_the_reference_does(base):
    domain, oracle = integers(base), Oracle(integers(base))
    for symbol in set(OPERATORS) - {"*"}:
        for a, b in pairs(base):
            text = ef.parse(domain, f"({written(a, base)}{symbol}{written(b, base)})")
            span = columns(numeral(a, base), numeral(b, base))
            (value,) = oracle.ask(Operation(symbol), span).tolist()
            assert shown(value, base) == evaluate(text)


@pytest.mark.parametrize("base", BASES)
def test_steps_of_a_product_end_with_its_value(base):
    domain, oracle = integers(base), Oracle(integers(base))
    for a, b in pairs(base):
        text = ef.parse(domain, f"({written(a, base)}*{written(b, base)})")
        value, kept = NONE, list[int]()
        for digit in reversed(numeral(b, base)):
            span = columns(numeral(a, base), [NONE, *kept])
            (value,) = oracle.ask(Operation("*", digit), span).tolist()
            kept = numeral(value, base) if value != ASKED else []
        assert shown(value, base) == evaluate(text)


def test_what_is_no_span_has_no_value():
    oracle, plus = Oracle(integers(10)), Operation("+")
    bad = [([5, 0], [1]), ([5, NONE, 1], [1]), ([NONE], [1]), ([ASKED, 1], [1]), ([1, ASKED], [1])]
    for a, b in bad:
        assert oracle.ask(plus, columns(a, b)) == oracle.ask(plus, columns(b, a)) == NONE
    assert oracle.ask(plus, columns([0], [0, 0, 1])) == 100
    times = Operation("*", 3)
    assert oracle.ask(times, columns([2], [NONE, 4, 0])) == 46  # an accumulator may be 04
    for a, kept in [([2], [4]), ([2, 1], [NONE, NONE, 4]), ([ASKED], [NONE, 4])]:
        assert oracle.ask(times, columns(a, kept)) == NONE


@pytest.mark.parametrize("base", BASES)
def test_drawn_spans_are_some(base):
    oracle, rng = Oracle(integers(base), 5, 0.5), np.random.default_rng(0)
    for operation in operations(integers(base)):
        drawn = oracle.draw(operation, 300, rng)
        lengths = (drawn != NONE).any(2).sum(1)
        assert len({*lengths.tolist()}) >= 4
        for span, length in zip(drawn, lengths, strict=True):
            assert oracle.ask(operation, span[None, :length]) != NONE


@pytest.mark.parametrize("base", [2, 3, 5])
def test_as_many_states_are_found_as_there_are_carries(base):
    """And one more, in which the value is `?`. Nobody has said how many there are."""
    recipe = integer_recipe(integers(base))
    found, right = Discoverer(Oracle(integers(base), 5, 0.5), recipe).find(1)
    assert right == recipe.checks * len(found)
    longer = Oracle(integers(base), 8, 0.5)
    for operation, hypothesis in found.items():
        machine, (symbol, taken) = hypothesis.learned, operation
        of_product = 1 if taken == ASKED else taken + 2
        assert machine.states == (of_product if symbol == "*" else 3)
        for span in longer.draw(operation, 200, np.random.default_rng(1)):
            span = span[None, (span != NONE).any(1)]
            assert machine.values(span, base) == longer.ask(operation, span)


def test_integers_are_learned_and_proved(learned):
    rng, domain = random.Random(0), integers(2)

    def nested(depth: int) -> str:
        if not depth:
            return to_numeral(rng.randrange(2 ** rng.randint(1, 20)), 2)
        return f"({nested(depth - 1)}{rng.choice('++-*<')}{nested(rng.randrange(depth))})"

    texts = [ef.parse(domain, nested(rng.randint(1, 3))) for _ in range(30)]
    texts += [ef.parse(domain, f"({'1' * 3_000}+1)"), ef.parse(domain, "((11-100)+1)")]
    for result in learned:
        assert result.exact
        assert result.record["margin"] >= 0.5
        assert result.record["fresh_texts_right"] == 2_000 * len(operations(domain))
        assert result.model.predict(texts) == [evaluate(text) for text in texts]
    assert learned[0].model != learned[1].model


def test_the_certificate_steers_nothing(learned, monkeypatch):
    """With another verdict, the same numbers at the same step: it is asked once, at the end."""
    asked = []

    def always(domain, weights):
        asked.append(weights)
        return certify(domain, replace(weights, G_O=0 * weights.G_O))

    monkeypatch.setattr("exactformer.training.integers.certify", always)
    (found,) = train_seeds(integers(2), [1])
    assert len(asked) == 1
    assert found.record["verdict"] == "inexact"
    assert found.record["steps_in_all"] == learned[0].record["steps_in_all"]
    assert found.model == learned[0].model


def test_too_few_states_end_honestly():
    recipe = integer_recipe(integers(2), states=1, attempts=1, checks=500, continuations=2)
    (result,) = train_seeds(integers(2), [1], recipe=recipe)
    assert result.record["verdict"] == "inexact"
    assert result.record["fresh_texts_right"] < 500 * len(operations(integers(2)))
    text = ef.parse(integers(2), result.record["counterexample"])
    assert result.model.predict([text]) != [evaluate(text)]


def test_a_carry_that_is_lost_is_refused():
    """The certificate never passes learned rows of which one is wrong."""
    domain = integers(3)
    recipe = integer_recipe(domain, checks=100)
    found, _ = Discoverer(Oracle(domain, 5, 0.5), recipe).find(1)
    machines = {operation: hypothesis.learned for operation, hypothesis in found.items()}
    plus = machines[Operation("+")]
    both = (plus.letters == 2).all(1).nonzero()[0]
    following = plus.following.copy()
    assert (following[:, both] != 0).any()
    following[:, both] = 0
    cases, W = cases_of(domain, machines | {Operation("+"): replace(plus, following=following)})
    lost = ef.Model(domain, IntegerWeights(*gates(domain), f=Table(*rows_of(domain, cases, W))))
    example = lost.certify().counterexample
    assert example is not None
    assert str(example.expression) == "(2+2)"
    cases, W = cases_of(domain, machines)
    right = ef.Model(domain, IntegerWeights(*gates(domain), f=Table(*rows_of(domain, cases, W))))
    assert right.certify().exact


def test_the_commands_train_and_prove_integers(tmp_path):
    run = tmp_path / "run"
    arguments = ["train", "integers-2", "--seeds", "1", "--out", str(run), "--method", "futures"]
    status, said, _ = run_here(arguments)
    assert (status, "certified 1 of 1" in said) == (0, True)
    weights, proof = run / "1.safetensors", run / "1.proof.json"
    assert verify(proof, weights, integers(2)).exact
    assert run_here(["certify", "integers-2", "--weights", str(weights)])[0] == 0
    assert ef.load(weights)("((101*11)-(1<10))") == "1110"
    assert run_here(arguments)[0] == 0  # it has ended


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "beliefs"], "expected the method futures, found 'beliefs'"),
        (["--method", "staged"], "training in stages: not for 'integers-2' (integers), since"),
        (["--set", "longest=10"], "digits of a short operand: expected 9 at most, found 10"),
        (["--set", "alike=2"], "expected alike of 0 to 1, found 2"),
        (["--set", "states=0"], "expected states of 1 or more, found 0"),
        (["--set", "often=1"], "the method futures has no 'often'"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(arguments, message, tmp_path):
    out = tmp_path / "run"
    arguments = ["train", "integers-2", "--seeds", "1", "--out", str(out), *arguments]
    status, said, error = run_here(arguments)
    assert (status, said, out.exists()) == (2, "", False)
    assert message in error


def test_every_constant_is_in_the_recipe():
    recipe = recipe_by_method("futures", integers(), {"checks": "99"})
    assert recipe == integer_recipe(integers(), checks=99)
    assert integer_recipe(integers()).width > integer_recipe(integers(2)).width
