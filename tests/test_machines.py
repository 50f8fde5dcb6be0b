"""Machines over a text: their data, their texts, weights for them and the certificate."""

import copy
import pickle
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import exactformer as ef
from exactformer.certify import findings
from exactformer.domains.kinds import load_domain, read_domain
from exactformer.domains.machine_catalog import MACHINES
from exactformer.domains.machines import Machine
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import enumerate_length
from exactformer.domains.syntax import parse
from exactformer.model.predict import predict
from exactformer.verify import proof
from tests.machines import mutated, random_machine, random_texts, split

BY_HAND = [
    ("parity", "0110100", "1"),
    ("even-pairs", "0", "1"),
    ("even-pairs", "0111", "0"),
    ("cycle-5", "---=+", "3"),
    ("compare", "55 07 91", "<"),
    ("compare", "00 00", "="),
    ("flip-flop", "rr1ir0r", "00..1.0"),
    ("s3", "231 231 231", "123"),
    ("s5", "21345 23451", "3"),
]


@pytest.mark.parametrize(("name", "text", "answer"), BY_HAND)
@pytest.mark.parametrize("feedforward", ["closed", "table"])
def test_built_in_machines_give_the_answers_found_by_hand(name, text, answer, feedforward):
    machine = MACHINES[name]()
    assert evaluate(parse(machine, text)) == answer
    assert ef.construct(machine, feedforward)(text) == answer


@pytest.mark.parametrize("name", MACHINES)
def test_constructed_weights_are_certified(name):
    assert ef.construct(MACHINES[name]()).certify().exact


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_random_machines_answer_random_texts(seed):
    rng = np.random.default_rng(seed)
    machine = random_machine(rng)
    model = ef.construct(machine)
    assert model.certify().exact
    texts = random_texts(machine, rng, 40)
    assert predict(machine, model.weights, texts) == [evaluate(text) for text in texts]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_weights_with_split_states_are_certified_and_those_of_other_machines_are_not(seed):
    """The certificate of a machine, asked about the weights of a changed one: it must accept them
    exactly if both answer alike on every text that is long enough to tell.
    """
    rng = np.random.default_rng(seed)
    machine = random_machine(rng, most_states=4)
    other = split(mutated(machine, rng), rng)
    if other is None:
        return
    weights = ef.construct(other).weights
    model = ef.Model(machine, weights)
    long_enough = len(machine.states) * len(other.states)
    alike = all(
        evaluate(text) == evaluate(replace(text, domain=other))
        for length in range(1, min(long_enough, 9) + 1)
        for text in enumerate_length(machine, length)
    )
    certificate = model.certify()
    if certificate.exact:
        assert alike
    else:
        assert certificate.verdict == "inexact"
        example = certificate.counterexample
        assert example is not None
        assert model.predict([example.expression]) == [example.found] != [example.expected]
        if long_enough <= 9:
            assert not alike


def test_a_counterexample_is_the_shortest_text_that_differs():
    """A counter of ten that goes wrong at the tenth one only."""
    right = Machine.from_rule("ten", "01", 0, lambda q, x: min(q + int(x), 10), end=lambda q: "0")
    outputs = (*right.outputs[:10], "1")
    model = ef.Model(
        replace(right, outputs=outputs),
        ef.construct(replace(right, outputs=(*outputs[:9], "1", "1"))).weights,
    )
    example = model.certify().counterexample
    assert example is not None
    assert str(example.expression) == "111111111"


def test_many_texts_of_different_lengths_do_not_mix():
    machine = MACHINES["cycle-5"]()
    rng = np.random.default_rng(0)
    texts = random_texts(machine, rng, 500)
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        found = predict(machine, ef.construct(machine).weights, texts, dtype)
        assert found == [evaluate(text) for text in texts]


@pytest.mark.parametrize("name", ["parity", "flip-flop", "compare"])
def test_a_long_text_is_read_in_one_iteration(name, monkeypatch):
    from exactformer.model import reading

    monkeypatch.setattr(reading, "NUMBERS_AT_ONCE", 10_000)  # so that maps are composed in parts
    machine = MACHINES[name]()
    rng = np.random.default_rng(1)
    ids = rng.integers(len(machine.symbols), size=30_001).astype(np.int16)
    text = ef.Expression(machine, ids)
    model = ef.construct(machine)
    (outcome,) = model.outcomes([text])
    assert outcome.value == evaluate(text)
    assert outcome.iterations == 1


def test_saved_and_loaded_weights_are_the_same_model(tmp_path):
    model = ef.construct(MACHINES["s3"]())
    model.save(tmp_path / "s3.safetensors")
    loaded = ef.load(tmp_path / "s3.safetensors")
    assert loaded == model
    loaded.certify().save(tmp_path / "proof.json")
    assert proof.verify(tmp_path / "proof.json", tmp_path / "s3.safetensors").exact


def test_machines_are_plain_data_that_can_be_copied():
    for make in MACHINES.values():
        machine = make()
        assert read_domain(machine.to_dict()) == machine
        assert pickle.loads(pickle.dumps(machine)) == machine == copy.deepcopy(machine)


PARITY = """
kind = "machine"
name = "mine"
symbols = ["0", "1"]
states = ["even", "odd"]
start = "even"
[transitions]
even = { 0 = "even", 1 = "odd" }
odd = { 0 = "odd", 1 = "even" }
[outputs]
even = "0"
odd = "1"
"""

BAD = [
    ('start = "even"', 'start = "evn"', "start: there is no state 'evn'; did you mean 'even'?"),
    ('odd = { 0 = "odd", 1', "odd = { 1", "transitions.odd: there is no '0'"),
    ('1 = "odd" }', '1 = "odd", 2 = "odd" }', "transitions.even: unknown field '2'"),
    ('even = "0"\n', "", "outputs: there is no 'even'"),
    (
        'states = ["even", "odd"]',
        'states = ["even", "odd", "far"]',
        "transitions: there is no 'far'",
    ),
    ('1 = "odd" }', '1 = "even" }', "states[1]: 'odd' cannot be reached from the start"),
    ('["0", "1"]', '["0", "1", "0"]', "symbols[2]: '0' is there twice"),
    ('["0", "1"]', '["0", "1", "$"]', "transitions.even: there is no '$'"),
    ('"mine"', '"parity"', "name: expected another name than the built-in 'parity'"),
    ('"mine"', '"my machine"', "name: expected 1 to 64 letters"),
    ("[outputs]", 'read = "up"\n[outputs]', "transitions: unknown field 'read'"),
    (
        'start = "even"',
        'start = "even"\nread = "up"',
        "read: expected 'left' or 'right', found 'up'",
    ),
]


@pytest.mark.parametrize(("old", "new", "expected"), BAD)
def test_a_bad_machine_is_refused_with_its_place(tmp_path, old, new, expected):
    path = tmp_path / "mine.toml"
    assert old in PARITY
    path.write_text(PARITY.replace(old, new, 1))
    with pytest.raises(ValueError, match=re.escape(expected)):
        load_domain(path)


def test_a_million_states_are_refused_before_they_are_made(tmp_path):
    data = MACHINES["parity"]().to_dict() | {"states": [f"q{i}" for i in range(10**6)]}
    with pytest.raises(ValueError, match="states: expected 1000 at most, found 1000000"):
        read_domain(data)
    with pytest.raises(ValueError, match="states: expected 1000 at most"):
        Machine.from_rule("big", "01", 0, lambda q, x: q + 1, end=str)


def test_a_file_defines_a_machine(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(PARITY)
    machine = load_domain(path)
    assert isinstance(machine, Machine)
    assert ef.construct(machine)("0111") == "1"


def phases() -> Machine:
    """Texts of a, then b: symbols of the second phase may not be followed by those of the first."""
    steps: dict[Any, Any] = {("a", "a"): "a", ("a", "b"): "b", ("b", "b"): "b"}
    return Machine.from_rule(
        "phases", "ab", "a", lambda q, x: steps.get((q, x)), end=lambda q: "1" if q == "b" else None
    )


def test_symbols_that_are_not_allowed_are_found_where_they_stand():
    machine = phases()
    assert read_domain(machine.to_dict()) == machine
    with pytest.raises(ef.ExpressionError, match="column 3: expected b, found 'a'"):
        parse(machine, "aba")
    with pytest.raises(ef.ExpressionError, match="column 3: expected a or b, found the end"):
        parse(machine, "aa")
    assert [str(text) for text in enumerate_length(machine, 3)] == ["aab", "abb", "bbb"]
    assert ef.construct(machine).certify().exact


def test_what_is_not_allowed_needs_no_weights():
    """Rows that no text leads to may be anything; those that some text leads to may not."""
    machine = phases()
    weights = ef.construct(machine, "table").weights
    b_then_a = (weights.f.bags[:, 0] == 1) & (weights.f.bags[:, len(machine.vocabulary) + 1] == 1)
    assert not b_then_a.any()
    for row in range(len(weights.f.bags)):
        outputs = weights.f.outputs.clone()
        outputs[row] = 1 - outputs[row]
        changed = replace(weights, f=replace(weights.f, outputs=outputs))
        assert ef.Model(machine, changed).certify().verdict == "inexact"


def test_a_machine_that_reads_from_the_right():
    """The carry of adding one to a binary number is known from its last digit on."""
    add_one = Machine.from_rule(
        "add-one",
        "01",
        1,
        lambda carry, x: carry & int(x),
        each=lambda carry, x: str(int(x) ^ carry),
        read="right",
    )
    model = ef.construct(add_one)
    for n in range(64):
        assert model(f"0{n:06b}") == f"{n + 1:07b}"
    assert model.certify().exact
    ends = replace(MACHINES["compare"](), name="compare-right", read="right")
    text = parse(ends, "30 17")
    assert ef.construct(ends)(text) == evaluate(text) == "<"


def test_a_gate_that_skips_a_token_is_refused():
    machine = MACHINES["parity"]()
    weights = ef.construct(machine).weights
    for token in range(3):
        for value in (0, -1):
            G_K = weights.G_K.clone()
            G_K[token] = value
            model = ef.Model(machine, replace(weights, G_K=G_K))
            assert not model.certify().exact
            model.predict([parse(machine, "0110")])  # it need not be right, but must not fail


def test_lists_do_for_tuples():
    rows: Any = [[0, 1], [1, 0]]
    made = Machine("parity", ["0", "1"], ["0", "1"], rows, ["0", "1"])  # type: ignore[arg-type]
    assert made == MACHINES["parity"]()
    assert hash(made) == hash(MACHINES["parity"]())


def test_the_start_need_not_be_the_first_state():
    parity = MACHINES["parity"]()
    turned = Machine(
        "turned", parity.symbols, ("odd", "even"), ((1 - 1, 1 - 0), (1, 0)), ("1", "0"), start=1
    )
    assert [evaluate(parse(turned, text)) for text in ("0", "1", "11")] == ["0", "1", "0"]
    for feedforward in ("closed", "table"):
        model = ef.construct(turned, feedforward)
        assert model.certify().exact
        assert [model(text) for text in ("0", "1", "11")] == ["0", "1", "0"]


def test_the_mark_of_the_end_is_a_symbol_where_no_text_has_one():
    echo = Machine.from_rule("echo", "$a", 0, lambda q, x: q, each=lambda q, x: "a$"[x == "a"])
    model = ef.construct(echo)
    assert model("$a$") == evaluate(parse(echo, "$a$")) == "a$a"
    assert model.certify().exact


def test_many_faults_end_the_check_soon():
    """`a` counts modulo 400 in the machine, modulo 399 in the weights; `b` shows zero."""
    machines = [
        Machine.from_rule(
            "count", "ab", 0, lambda q, x, p=p: (q + (x == "a")) % p, end=lambda q: str(int(q == 0))
        )
        for p in (400, 399)
    ]
    found = findings(machines[0], ef.construct(machines[1]).weights)
    assert not found.exact
    assert 0 < len(found.wrong_rows) < 1_000
    assert found.suspects[0] == (0,) * 399


def test_more_rows_than_a_check_lists_are_refused_when_weights_are_read():
    data = MACHINES["parity"]().to_dict()
    names = [chr(0x4E00 + i) for i in range(500)]
    rows = {f"q{i}": dict.fromkeys(names, f"q{(i + 1) % 500}") for i in range(500)}
    large = data | {"name": "large", "symbols": names, "states": [*rows], "start": "q0"}
    machine = read_domain(large | {"transitions": rows, "outputs": dict.fromkeys(rows, names[0])})
    with pytest.raises(ValueError, match=r"expected \d+ at most"):
        ef.construct(machine).certify()
