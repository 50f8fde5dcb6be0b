"""Square roots of binary numbers: texts, weights for them, runs and the certificate."""

import copy
import os
import pickle
import re
from dataclasses import replace
from itertools import product
from math import isqrt
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import exactformer as ef
from exactformer.domains.catalog import find_domain
from exactformer.domains.kinds import load_domain, read_domain
from exactformer.domains.reference import evaluate
from exactformer.domains.square_roots import compute_sqrt
from exactformer.domains.syntax import parse
from exactformer.model import square_root
from exactformer.model.encode import initial_state
from exactformer.model.layers import LAYERS
from exactformer.verify import proof
from tests.in_process import run_here


@pytest.fixture(scope="module")
def model() -> ef.Model:
    return ef.construct(compute_sqrt())


@pytest.fixture(scope="module")
def table() -> ef.Model:
    return ef.construct(compute_sqrt(), "table")


def root(bits: str) -> str:
    """The root by plain Python, with half as many bits."""
    return f"{isqrt(int(bits, 2)):b}".rjust((len(bits) + 1) // 2, "0")


def every(most: int) -> list[str]:
    return ["".join(bits) for n in range(1, most + 1) for bits in product("01", repeat=n)]


def test_every_number_of_up_to_eleven_bits(model):
    texts = every(11)
    expressions = [parse(model.domain, text) for text in texts]
    expected = [root(text) for text in texts]
    assert [evaluate(expression) for expression in expressions] == expected
    assert model.predict(expressions) == expected


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text("01", min_size=1, max_size=70), min_size=1, max_size=5), st.booleans())
def test_numbers_of_different_lengths_do_not_mix(drawn, narrow):
    """They end after different numbers of iterations."""
    model = ef.construct(compute_sqrt())
    dtype = torch.bfloat16 if narrow else torch.float32
    expressions = [parse(model.domain, text) for text in drawn]
    assert model.predict(expressions, dtype=dtype) == [root(text) for text in drawn]


@pytest.mark.parametrize("near", [-1, 0, 1])
def test_squares_and_their_neighbours(model, near):
    numbers = [k * k + near for k in (1, 2, 3, 15, 16, 4095, 4096, 12345, 10**9, 2**40 - 1)]
    texts = [f"{number:b}" for number in numbers]
    expected = [
        f"{isqrt(number):b}".rjust((len(text) + 1) // 2, "0")
        for number, text in zip(numbers, texts, strict=True)
    ]
    assert model.predict([parse(model.domain, text) for text in texts]) == expected


def test_an_iteration_finds_a_bit(model):
    (outcome,) = model.outcomes([parse(model.domain, "1" * 301)])
    assert outcome.value == root("1" * 301)
    assert outcome.iterations == 151


@pytest.mark.skipif("EXACTFORMER_DATA" not in os.environ, reason="needs the published rows")
def test_all_published_rows_are_right(model):
    path = Path(os.environ["EXACTFORMER_DATA"]) / "chomsky" / "compute_sqrt.tsv"
    rows = [line.split("\t") for line in path.read_text().splitlines()]
    assert len(rows) == 640
    found = model.predict([parse(model.domain, text) for text, _ in rows])
    assert found == [answer.replace(" ", "") for _, answer in rows]


def test_it_is_plain_data_that_can_be_copied(tmp_path):
    domain = compute_sqrt()
    assert find_domain("compute-sqrt") == domain == read_domain(domain.to_dict())
    assert pickle.loads(pickle.dumps(domain)) == domain == copy.deepcopy(domain)
    path = tmp_path / "mine.toml"
    path.write_text('kind = "square-root"\nname = "mine"\n')
    assert ef.construct(load_domain(path))("1 1 0 1") == "11"
    for text, expected in (
        ('kind = "square-root"\n', "there is no 'name'"),
        ('kind = "square-root"\nname = "my root"\n', "name: expected 1 to 64 letters"),
        (
            'kind = "square-root"\nname = "compute-sqrt"\n',
            "expected another name than the built-in",
        ),
        ('kind = "square-root"\nname = "mine"\nbase = 3\n', "unknown field 'base'"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=expected):
            load_domain(path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "line 1, column 1: expected 0 or 1, found no text"),
        ("012", "line 1, column 3: expected 0 or 1, found '2', which is no token"),
        ("1^", "line 1, column 2: expected 0 or 1, found '^', which is no token"),
    ],
)
def test_bad_texts_are_refused_where_they_stand(text, expected):
    status, printed, errors = run_here(["eval", "compute-sqrt", text])
    assert (status, printed) == (2, "")
    assert expected in errors
    assert re.search(r"^ +\^$", errors, re.MULTILINE)


def test_samples_are_scored_right(tmp_path):
    status, printed, _ = run_here(["sample", "compute-sqrt", "--length", "13", "--count", "20"])
    assert status == 0
    (tmp_path / "rows.tsv").write_text(printed)
    status, printed, _ = run_here(["score", "compute-sqrt", str(tmp_path / "rows.tsv")])
    assert (status, printed.splitlines()[0]) == (0, "20 of 20 rows right")
    assert run_here(["info", "compute-sqrt"])[0] == 0


def test_every_tap_is_reported_and_can_be_patched(model):
    run = model.run("1101")
    assert run.value == "11"
    assert {name for _, name in run.cache} >= set(LAYERS["square-root"].taps)
    assert run.cache[1, "rank"].tolist() == [0, 1, 2, 3, 4, 4]
    borrowed = model.run("1101", {(2, "u"): torch.zeros_like})
    assert borrowed.value == "10"  # the last difference seems to be below zero


def test_a_trace_has_differences_and_the_root_so_far(model):
    first, last = model.trace("1101").steps
    assert first.rows()["written"] == [">", "·", "·", "·", "1-", "0-"]
    assert first.rows()["after"] == ["^", "·", "·", "0", "1+1'", "0'+1\"+$"]
    assert [*last.events(model.domain)] == [
        "the difference is not below zero: the root is 11 so far"
    ]


def test_saved_and_loaded_weights_are_the_same_model(model, tmp_path):
    model.save(tmp_path / "w.safetensors")
    loaded = ef.load(tmp_path / "w.safetensors")
    assert loaded == model
    loaded.certify().save(tmp_path / "proof.json")
    assert proof.verify(tmp_path / "proof.json", tmp_path / "w.safetensors").exact
    with pytest.raises(ValueError, match="expected feedforward closed or table"):
        ef.construct(compute_sqrt(), "units")


# The certificate


def test_constructed_weights_are_certified(model, table):
    for certificate in (model.certify(), table.certify()):
        assert certificate.exact
        assert certificate.findings.smallest_margin == 0.5


def test_the_rows_that_are_checked_are_those_that_come_up(table):
    """Each row comes up in the runs of numbers of up to eight bits, and no other in longer ones."""
    texts = [*every(8), *(f"{k * 0x9E3779B97F4A7C15:0150b}" for k in range(40))]
    X, inside = initial_state([parse(table.domain, text) for text in texts], table.weights)
    seen = set()
    for step in square_root.steps(X, inside, table.weights, compute_sqrt()):
        for H, u in ((step.H, step.u), (step.H_2, step.u_2)):
            rows = torch.cat([(H > 0).long(), u.unsqueeze(-1)], dim=1).unique(dim=0)
            seen |= set(map(tuple, rows.tolist()))
    assert len(seen) == table.certify().findings.rows == 112


def wrong_on(model: ef.Model, texts: list[str]) -> bool:
    return model.predict([parse(model.domain, text) for text in texts]) != [*map(root, texts)]


def test_changed_tables_are_certified_only_if_they_are_right(table, monkeypatch):
    monkeypatch.setattr("exactformer.certify.LONGEST", 7)
    rng, f, D, W = np.random.default_rng(0), table.weights.f, table.weights.D, table.weights.W
    texts, verdicts = every(7), {"exact": 0, "inexact": 0, "undecided": 0}
    for _ in range(28):
        outputs, row = f.outputs.clone(), int(rng.integers(len(f.outputs)))
        first, count = (0, D) if rng.random() < 0.5 else (D, W)
        outputs[row, first : first + count] = 0
        if (chosen := int(rng.integers(-1, count))) >= 0:
            outputs[row, first + chosen] = 1
        mutant = ef.Model(table.domain, replace(table.weights, f=replace(f, outputs=outputs)))
        certificate = mutant.certify()
        verdicts[certificate.verdict] += 1
        assert wrong_on(mutant, texts) == (certificate.verdict == "inexact")
        assert certificate.exact or certificate.findings.suspects
        if certificate.verdict == "inexact":
            example = certificate.counterexample
            assert example is not None
            assert example.shortest
            found = mutant.predict([example.expression])
            assert found == [example.found] != [root(str(example.expression))]
    assert verdicts["undecided"] < 8  # such as zeros in front of a remainder, which do no harm
    assert verdicts["exact"] > 5 < verdicts["inexact"]


def test_changed_gates_are_refused(table, monkeypatch):
    monkeypatch.setattr("exactformer.certify.LONGEST", 7)
    texts, wrong = every(7), 0
    for gate, tensor in table.weights.gates.items():
        for token in range(table.weights.D):
            changed = tensor.clone()
            changed[token] = 0 if changed[token] else 1
            mutant = ef.Model(table.domain, replace(table.weights, **{gate: changed}))
            found = wrong_on(mutant, texts)
            certificate = mutant.certify()
            assert certificate.verdict in (("inexact",) if found else ("exact", "undecided"))
            wrong += found
    assert wrong > 15


def test_states_need_no_names_and_may_be_more_than_are_needed(table):
    """Weights with states in another order, and each of them twice, are certified."""
    rng, f, D, W = np.random.default_rng(1), table.weights.f, table.weights.D, table.weights.W
    names = [0, *(1 + rng.permutation(2 * W - 1))]  # the start remains the first
    bags, outputs = [], []
    for bag, output in zip(f.bags.numpy(), f.outputs.numpy(), strict=True):
        for twin in range(2):
            state = names[int(bag[D:].argmax()) + twin * W]
            following = names[int(output[D:].argmax()) + int(rng.integers(2)) * W]
            bags.append([*bag[:D], *np.eye(2 * W, dtype=int)[state]])
            outputs.append([*output[:D], *np.eye(2 * W, dtype=int)[following]])
    made = [torch.tensor(np.array(bags)).short(), torch.tensor(np.array(outputs)).to(torch.int8)]
    split = ef.Model(table.domain, replace(table.weights, f=type(f)(*made)))
    assert split.certify().exact
    assert not wrong_on(split, every(8))
