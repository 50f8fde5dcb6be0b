"""Two numbers with their lowest digits first: texts, weights for them, runs and the certificate."""

import copy
import json
import os
import pickle
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import exactformer as ef
from exactformer.certify import findings
from exactformer.domains.catalog import find_domain
from exactformer.domains.integer_sampling import draw_little_endian
from exactformer.domains.integers import integers
from exactformer.domains.kinds import load_domain, read_domain
from exactformer.domains.little_endian import LITTLE_ENDIAN, LittleEndian
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import enumerate_length
from exactformer.domains.syntax import parse
from exactformer.verify import proof
from tests.in_process import run_here

COMPUTE: dict[str, Callable[[int, int], int]] = {
    "binary-addition": int.__add__,
    "binary-multiplication": int.__mul__,
}


def written(number: int, base: int = 2) -> str:
    """A number with its lowest digit first, by plain Python."""
    digits = "0123456789abcdef"[number % base]
    while number := number // base:
        digits += "0123456789abcdef"[number % base]
    return digits


@pytest.mark.parametrize("name", LITTLE_ENDIAN)
def test_all_pairs_of_small_numbers(name):
    model, compute = ef.construct(find_domain(name)), COMPUTE[name]
    pairs = [*product(range(40), repeat=2)]
    texts = [parse(model.domain, f"{written(a)}2{written(b)}") for a, b in pairs]
    assert model.predict(texts) == [f"{written(compute(a, b))}2" for a, b in pairs]


@pytest.mark.parametrize("name", LITTLE_ENDIAN)
@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 10**5), st.integers(0, 3)] * 2), min_size=1, max_size=3))
def test_random_numbers_with_zeros_on_top(name, drawn):
    model, compute = ef.construct(find_domain(name)), COMPUTE[name]
    words = [f"{written(a)}{'0' * i}2{written(b)}{'0' * j}" for a, i, b, j in drawn]
    expected = [f"{written(compute(a, b))}2" for a, _, b, _ in drawn]
    texts = [parse(model.domain, " ".join(text)) for text in words]
    assert [evaluate(text) for text in texts] == expected
    assert model.predict(texts) == expected  # as one batch, of different lengths


@pytest.mark.parametrize("base", [3, 10])
@pytest.mark.parametrize("operator", ["+", "*"])
def test_other_bases(base, operator):
    domain = LittleEndian("own", base, operator, between=operator)
    model = ef.construct(domain, "table")
    compute = int.__add__ if operator == "+" else int.__mul__
    for a, b in ((0, 0), (base - 1, base**5 - 1), (base**4, base**2 + 1), (987_654, 12_345)):
        text = f"{written(a, base)}00{operator}{written(b, base)}0"
        assert model(text) == written(compute(a, b), base) == evaluate(parse(domain, text))


@pytest.mark.parametrize("name", LITTLE_ENDIAN)
def test_every_short_text_is_right(name):
    model = ef.construct(find_domain(name))
    texts = [text for length in range(3, 9) for text in enumerate_length(model.domain, length)]
    assert len(texts) == len(set(texts)) == sum((n - 2) * 2 ** (n - 1) for n in range(3, 9))
    assert model.predict(texts) == [evaluate(text) for text in texts]


def test_a_long_sum_takes_one_iteration_and_a_product_one_a_digit_of_the_first_number():
    rng = np.random.default_rng(0)
    for name, most in (("binary-addition", 1), ("binary-multiplication", 7)):
        domain = find_domain(name)
        (text,) = draw_little_endian(domain, 20_001, 1, rng)  # type: ignore[arg-type]
        if most > 1:
            text = parse(domain, "1011010" + "2" + str(text).replace("2", "1"))
        (outcome,) = ef.construct(domain).outcomes([text])
        assert outcome.value == evaluate(text)
        assert outcome.iterations == most == domain.most_iterations(text.ids)  # type: ignore[attr-defined]


def test_weights_are_those_of_integers():
    for name in LITTLE_ENDIAN:
        mine, theirs = ef.construct(find_domain(name)), ef.construct(integers(2))
        assert mine.weights.gates.keys() == theirs.weights.gates.keys()
        for gate, tensor in mine.weights.gates.items():
            assert torch.equal(tensor, theirs.weights.gates[gate])
        assert ef.Model(mine.domain, theirs.weights).certify().exact


@pytest.mark.skipif("EXACTFORMER_DATA" not in os.environ, reason="needs the published rows")
@pytest.mark.parametrize("name", LITTLE_ENDIAN)
def test_all_published_rows_are_right(name):
    path = Path(os.environ["EXACTFORMER_DATA"]) / "chomsky" / f"{name.replace('-', '_')}.tsv"
    rows = [line.split("\t") for line in path.read_text().splitlines()]
    model = ef.construct(find_domain(name))
    found = model.predict([parse(model.domain, text) for text, _ in rows])
    assert len(rows) == 640
    assert found == [answer.replace(" ", "").rstrip(".") for _, answer in rows]


# Data, texts and files


def test_they_are_plain_data_that_can_be_copied():
    for name, make in LITTLE_ENDIAN.items():
        domain = make()
        assert find_domain(name) == domain == read_domain(domain.to_dict())
        assert pickle.loads(pickle.dumps(domain)) == domain == copy.deepcopy(domain)
        assert domain != integers(2)


MINE = """
kind = "little-endian"
name = "mine"
base = 10
operator = "+"
between = "+"
"""

BAD = [
    ("base = 10", "base = 11", "base: expected 2 to 10, or 16, found 11"),
    ('operator = "+"', 'operator = "-"', "operator: expected '+' or '*', found '-'"),
    ('between = "+"', "", "there is no 'between'"),
    ('between = "+"', 'between = "7"', "between: '7' is a digit"),
    ('between = "+"', 'between = "and"', "between: expected one character, found 'and'"),
    ('between = "+"', 'between = "*"', "between: '*' stands for something else"),
    ('between = "+"', 'between = "+"\nend = "1"', "end: '1' is a digit"),
    ('between = "+"', 'between = "+"\nlast = "1"', "unknown field 'last'"),
    ('"mine"', '"binary-addition"', "name: expected another name than the built-in"),
]


@pytest.mark.parametrize(("old", "new", "expected"), BAD)
def test_a_bad_file_is_refused_with_its_place(tmp_path, old, new, expected):
    path = tmp_path / "mine.toml"
    assert old in MINE
    path.write_text(MINE.replace(old, new, 1))
    with pytest.raises(ValueError, match=re.escape(expected)):
        load_domain(path)


def test_a_file_defines_one(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(MINE)
    assert run_here(["eval", str(path), "999+1"])[1] == "0001\n"
    assert run_here(["eval", str(path), "321 + 654"])[1] == "975\n"
    assert run_here(["info", str(path)])[0] == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "line 1, column 1: expected a digit (0 1), found no text"),
        ("211", "line 1, column 1: expected a digit (0 1), found '2'"),
        ("11", "line 1, column 3: expected a digit (0 1) or '2', found the end of the text"),
        ("112", "line 1, column 4: expected a digit (0 1), found the end of the text"),
        ("11 2 2", "line 1, column 6: expected a digit (0 1), found '2'"),
        ("11212", "line 1, column 5: expected a digit (0 1) or the end of the text, found '2'"),
        ("112+", "line 1, column 4: expected a digit (0 1), found '+', which is no token"),
    ],
)
def test_bad_texts_are_refused_where_they_stand(text, expected):
    status, printed, errors = run_here(["eval", "binary-addition", text])
    assert (status, printed) == (2, "")
    assert expected in errors
    assert re.search(r"^ +\^$", errors, re.MULTILINE)


def test_answers_have_no_zeros_on_top_and_end_as_they_must():
    domain = find_domain("binary-addition")
    assert [domain.read_answer(text) for text in ("0 1 2", "02", "112")] == ["012", "02", "112"]
    assert [domain.read_answer(text) for text in ("01", "102", "2", "", "?2", "1x2")] == [None] * 6
    assert not domain.positions(*[np.zeros(0, np.int16), np.zeros(0, np.int64)])[0].size


# Runs, samples and files of weights


@pytest.mark.parametrize("name", LITTLE_ENDIAN)
def test_samples_are_scored_right(name, tmp_path):
    status, printed, _ = run_here(["sample", name, "--length", "12", "--count", "30"])
    assert status == 0
    (tmp_path / "rows.tsv").write_text(printed)
    status, printed, _ = run_here(["score", name, str(tmp_path / "rows.tsv")])
    assert (status, printed.splitlines()[0]) == (0, "30 of 30 rows right")


def test_a_trace_shows_the_span_that_the_transformer_reads():
    (step,) = ef.construct(find_domain("binary-addition")).trace("1102101").steps
    assert "".join(step.rows()["tokens"]) == "(1012011)"
    assert step.rows()["state"] == [0, 0, 0, 0, 0, 1, 1, 1, 0]  # carries; 0 at both ends


def test_carries_can_be_patched():
    model = ef.construct(find_domain("binary-addition"))
    assert model("1121") == "0012"
    assert model.run("1121", {(1, "u"): torch.zeros_like}).value == "012"


@pytest.mark.parametrize("name", LITTLE_ENDIAN)
def test_saved_and_loaded_weights_are_the_same_model(name, tmp_path):
    model = ef.construct(find_domain(name))
    model.save(tmp_path / "w.safetensors")
    loaded = ef.load(tmp_path / "w.safetensors")
    assert loaded == model
    loaded.certify().save(tmp_path / "proof.json")
    assert proof.verify(tmp_path / "proof.json", tmp_path / "w.safetensors").exact


def test_info_says_what_it_is():
    status, printed, _ = run_here(["info", "binary-multiplication", "--json"])
    assert status == 0
    facts = json.loads(printed)
    assert (facts["kind"], facts["operator"], facts["between"]) == ("little-endian", "*", "2")


# The certificate


@pytest.mark.parametrize("base", [2, 3, 10])
@pytest.mark.parametrize("operator", ["+", "*"])
def test_constructed_weights_are_certified(base, operator):
    domain = LittleEndian("own", base, operator, between=operator)
    assert ef.construct(domain, "table").certify().exact


def changed(model: ef.Model, rng: np.random.Generator) -> ef.Model:
    """The model with what is written, or the next state, of one row of its table changed. The row
    is one that its texts lead to: with the operator, or of the second reading.
    """
    f, D, W = model.weights.f, model.weights.D, model.weights.W
    used = f.bags[:, model.domain.first_operator : model.domain.none].any(1)  # type: ignore[attr-defined]
    own = D + model.domain.operator_id(model.domain.operator)  # type: ignore[attr-defined]
    of_others = f.bags[:, D + model.domain.first_operator : D + model.domain.none].any(1)  # type: ignore[attr-defined]
    rows = (~used & (~of_others | (f.bags[:, own] > 0))).nonzero().flatten()
    outputs, row = f.outputs.clone(), int(rng.choice(rows.numpy()))
    first, count = (0, D) if rng.random() < 0.5 else (D, W)
    outputs[row, first : first + count] = 0
    if (chosen := int(rng.integers(-1, count))) >= 0:
        outputs[row, first + chosen] = 1
    return ef.Model(model.domain, replace(model.weights, f=replace(f, outputs=outputs)))


@pytest.mark.parametrize("name", LITTLE_ENDIAN)
def test_changed_tables_are_certified_only_if_they_are_right(name, monkeypatch):
    """Certified weights are right on all short texts; others have a counterexample."""
    monkeypatch.setattr("exactformer.certify.LONGEST", 8)
    rng, model = np.random.default_rng(0), ef.construct(find_domain(name), "table")
    texts = [text for length in range(3, 9) for text in enumerate_length(model.domain, length)]
    texts += draw_little_endian(model.domain, 17, 200, rng)  # type: ignore[arg-type]
    expected = [evaluate(text) for text in texts]
    verdicts = {"exact": 0, "inexact": 0, "undecided": 0}
    for _ in range(14):
        mutant = changed(model, rng)
        certificate = mutant.certify()
        verdicts[certificate.verdict] += 1
        if certificate.exact:
            assert mutant.predict(texts) == expected
        elif (example := certificate.counterexample) is not None:
            found = mutant.predict([example.expression])
            assert found == [example.found] != [evaluate(example.expression)]
    assert verdicts["undecided"] == 0
    assert verdicts["exact"] > 2 < verdicts["inexact"]


@pytest.mark.parametrize("name", LITTLE_ENDIAN)
def test_changed_gates_are_certified_only_if_they_are_right(name):
    model = ef.construct(find_domain(name), "table")
    texts = [text for length in range(3, 7) for text in enumerate_length(model.domain, length)]
    expected = [evaluate(text) for text in texts]
    refused = 0
    for gate in ("G_PE", "G_N", "G_O", "G_F"):
        for token in range(model.weights.D):
            tensor = getattr(model.weights, gate).clone()
            tensor[token] = 0 if tensor[token] else 1
            mutant = ef.Model(model.domain, replace(model.weights, **{gate: tensor}))
            right = mutant.predict(texts) == expected
            exact = findings(mutant.domain, mutant.weights).exact
            assert right or not exact
            refused += not exact
    assert refused > 15


def test_a_counterexample_is_a_text_with_the_lowest_digit_first():
    """Weights that lose the carry where a digit meets none: it shows where one number is longer."""
    model = ef.construct(find_domain("binary-addition"), "table")
    f, D, domain = model.weights.f, model.weights.D, model.domain
    wanted = torch.zeros_like(f.bags[0])
    wanted[[domain.token_ids["1"], D + domain.token_ids["2"], 2 * D + 1]] = 1
    (row,) = (f.bags == wanted).all(1).nonzero().flatten().tolist()
    outputs = f.outputs.clone()
    outputs[row, D:] = torch.eye(model.weights.W)[0]
    mutant = ef.Model(domain, replace(model.weights, f=replace(f, outputs=outputs)))
    example = mutant.certify().counterexample
    assert example is not None
    assert (str(example.expression), example.expected, example.found) == ("1211", "0012", "02")
    assert example.shortest


def test_zeros_on_top_that_stay_are_found():
    """Weights that would be right for sums of numerals without any, as `(1+10)`."""
    model = ef.construct(find_domain("binary-addition"), "table")
    f, D, zero = model.weights.f, model.weights.D, model.domain.token_ids["0"]
    wanted = torch.zeros_like(f.bags[0])
    wanted[[zero, 2 * D]] = 1  # from the top, before any other digit
    (row,) = (f.bags == wanted).all(1).nonzero().flatten().tolist()
    outputs = f.outputs.clone()
    outputs[row, zero] = 1
    mutant = ef.Model(model.domain, replace(model.weights, f=replace(f, outputs=outputs)))
    assert mutant("1201") == "112"
    certificate = mutant.certify()
    assert certificate.verdict == "inexact"
    assert str(certificate.counterexample and certificate.counterexample.expression) == "0020"
