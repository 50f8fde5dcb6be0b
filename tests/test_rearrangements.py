"""Rearrangements: their data, their texts, weights for them, runs and the certificate."""

import copy
import json
import os
import pickle
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import exactformer as ef
from exactformer.domains.catalog import find_domain
from exactformer.domains.kinds import load_domain, read_domain
from exactformer.domains.rearrangement_catalog import REARRANGEMENTS
from exactformer.domains.rearrangement_sampling import draw_rearranged
from exactformer.domains.rearrangements import ORDERS, Rearrangement
from exactformer.domains.reference import ARRANGED, evaluate
from exactformer.domains.sampling import enumerate_length
from exactformer.domains.syntax import parse
from exactformer.model import rearrange
from exactformer.model.layers import LAYERS
from exactformer.verify import proof
from tests.in_process import run_here

BY_HAND = [
    ("reverse-string", "0111", "1110"),
    ("duplicate-string", "011", "011011"),
    ("duplicate-string", "1", "11"),
    ("odds-first", "001101", "011010"),
    ("odds-first", "0", "0"),
    ("bucket-sort", "4021310", "0011234"),
    ("stack-manipulation", "102342", "012"),
    ("stack-manipulation", "12222", "2"),
    ("stack-manipulation", "22214", "112"),
    ("missing-duplicate-string", "012011", "1"),
    ("missing-duplicate-string", "213", "1"),
    ("missing-duplicate-string", "20311032", "11"),
]


@pytest.mark.parametrize(("name", "text", "answer"), BY_HAND)
@pytest.mark.parametrize("feedforward", ["closed", "table"])
def test_built_in_rearrangements_give_the_answers_found_by_hand(name, text, answer, feedforward):
    domain = REARRANGEMENTS[name]()
    assert evaluate(parse(domain, text)) == answer
    assert ef.construct(domain, feedforward)(text) == answer


def test_every_order_has_a_layer_and_a_reference():
    assert ORDERS.keys() == rearrange.ORDERS.keys() == ARRANGED.keys()


# Texts against plain Python, which knows nothing of domains

letters = st.text("abcd", min_size=1, max_size=60)
OWN: dict[str, tuple[dict[str, Any], Callable[[str], str]]] = {
    "same": (
        {"writes": {"a": "a", "b": "x"}},
        lambda text: re.sub("[cd]", "", text).replace("b", "x"),
    ),
    "reversed": ({}, lambda text: text[::-1]),
    "twice": ({"writes": dict(zip("abc", "xyz", strict=True))}, lambda text: 2 * _moved(text)),
    "alternate": (
        {"writes": dict(zip("abc", "xyz", strict=True))},
        lambda text: _moved(text)[1::2] + _moved(text)[::2],
    ),
    "sorted": (
        {"classes": [["d"], ["a", "c"]], "writes": {"a": "a", "c": "c", "d": "d"}},
        lambda text: "d" * text.count("d") + re.sub("[^ac]", "", text),
    ),
    "stack": ({"writes": {"a": "a", "b": "b", "c": "B"}, "end": "."}, lambda text: _stacked(text)),
}


def _moved(text: str) -> str:
    return text.translate(str.maketrans("abc", "xyz", "d"))


def _stacked(text: str) -> str:
    while (shorter := re.sub("^d|[abc]d", "", text)) != text:
        text = shorter
    return text.replace("c", "B")[::-1] + "."


@pytest.mark.parametrize("order", OWN)
@settings(max_examples=40, deadline=None)
@given(st.data())
def test_texts_of_every_order_are_what_plain_python_makes_of_them(order, data):
    given, plain = OWN[order]
    domain = Rearrangement("own", tuple("abcd"), order, **given)
    texts = [text for text in data.draw(st.lists(letters, min_size=1, max_size=4)) if plain(text)]
    model = ef.construct(domain, data.draw(st.sampled_from(["closed", "table"])))
    expressions = [parse(domain, text) for text in texts]
    expected = [plain(text) for text in texts]
    assert [evaluate(expression) for expression in expressions] == expected
    assert (model.predict(expressions) if texts else []) == expected


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), min_size=1, max_size=40), st.data()
)
def test_halves_are_taken_together_place_by_place(pairs, data):
    """Two halves agree but where one has a star; spaces stand anywhere."""
    writes = {f"{x} {x}": "" for x in "abc"} | {f"{x} *": x for x in "abc"}
    domain = Rearrangement("gaps", ("a", "b", "c", "*", "-"), "halves", writes)  # type: ignore[arg-type]
    left = ["*" if gap else x for x, gap in pairs]
    text = [*left, *(x for x, _ in pairs)]
    for place in data.draw(st.lists(st.integers(0, len(text)), max_size=5)):
        text.insert(place, "-")
    expected = "".join(x for x, gap in pairs if gap)
    if not expected:
        with pytest.raises(ef.ExpressionError, match="a pair for which a symbol is written"):
            parse(domain, "".join(text))
        return
    expression = parse(domain, "".join(text))
    assert evaluate(expression) == expected
    for feedforward in ("closed", "table"):
        assert ef.construct(domain, feedforward).predict([expression]) == [expected]


@pytest.mark.parametrize("name", REARRANGEMENTS)
def test_every_short_text_is_right(name):
    domain = REARRANGEMENTS[name]()
    model = ef.construct(domain)
    texts = [text for length in range(1, 7) for text in enumerate_length(domain, length)][:6_000]
    assert len(texts) > 50
    assert model.predict(texts) == [evaluate(text) for text in texts]


@pytest.mark.parametrize("name", REARRANGEMENTS)
def test_many_texts_of_different_lengths_do_not_mix(name):
    domain, rng = REARRANGEMENTS[name](), np.random.default_rng(0)
    lengths = [2 * int(n) for n in rng.integers(1, 30, size=60)]
    texts = [text for length in lengths for text in draw_rearranged(domain, length, 1, rng)]
    expected = [evaluate(text) for text in texts]
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        assert ef.construct(domain).predict(texts, dtype=dtype) == expected


def test_hundreds_of_classes_are_sorted_in_narrow_formats_too():
    symbols = [chr(0x4E00 + i) for i in range(300)]
    domain = Rearrangement("wide", tuple(symbols), "sorted")
    model, rng = ef.construct(domain), np.random.default_rng(0)
    texts = draw_rearranged(domain, 500, 2, rng)
    assert model.certify().exact
    for dtype in (torch.float32, torch.bfloat16):
        assert model.predict(texts, dtype=dtype) == ["".join(sorted(str(text))) for text in texts]


@pytest.mark.parametrize("name", REARRANGEMENTS)
def test_a_long_text_takes_one_iteration(name):
    domain = REARRANGEMENTS[name]()
    (text,) = draw_rearranged(domain, 30_000, 1, np.random.default_rng(1))
    (outcome,) = ef.construct(domain).outcomes([text])
    assert outcome.value == evaluate(text)
    assert outcome.iterations == 1


@pytest.mark.skipif("EXACTFORMER_DATA" not in os.environ, reason="needs the published rows")
@pytest.mark.parametrize("name", REARRANGEMENTS)
def test_all_published_rows_are_right(name):
    path = Path(os.environ["EXACTFORMER_DATA"]) / "chomsky" / f"{name.replace('-', '_')}.tsv"
    rows = [line.split("\t") for line in path.read_text().splitlines()]
    domain = REARRANGEMENTS[name]()
    found = ef.construct(domain).predict([parse(domain, text) for text, _ in rows])
    expected = [answer.replace(" ", "").rstrip(".") for _, answer in rows]
    assert len(rows) == 640
    assert found == expected


# Data and files


def test_rearrangements_are_plain_data_that_can_be_copied():
    for name, make in REARRANGEMENTS.items():
        domain = make()
        assert find_domain(name) == domain == read_domain(domain.to_dict())
        assert pickle.loads(pickle.dumps(domain)) == domain == copy.deepcopy(domain)
        assert hash(domain) == hash(read_domain(domain.to_dict()))


SORT = """
kind = "rearrangement"
name = "mine"
symbols = ["a", "A", "b", "-"]
order = "sorted"
classes = [["a", "A"], ["b"]]

[writes]
a = "a"
A = "A"
b = "b"
"""

BAD = [
    ('"sorted"', '"sort"', "order: expected 'same', 'reversed', 'twice', 'alternate'"),
    ('"sorted"', '"reversed"', "classes: expected none in the order reversed, found one"),
    ('["b"]]', '["c"]]', "classes[1][0]: 'c' is not among what is written"),
    ('["b"]]', '["b", "a"]]', "classes[1][1]: 'a' is there twice"),
    ('["b"]]', '["b", "-"]]', "classes[1][1]: '-' is not among what is written"),
    (', ["b"]', "", "classes: 'b' is in none"),
    ('["b"]', "[]", "classes[1]: expected a list with something in it"),
    ('"-"]', '"-", "a"]', "symbols[4]: 'a' is there twice"),
    ('"-"]', '"-", "x y"]', "symbols[4]: 'x y' is empty or has white space in it"),
    ('b = "b"', 'c = "b"', "writes.'c': there is no symbol 'c'"),
    ('b = "b"', '"a b" = "b"', "writes.'a b': expected one symbol, found 2"),
    ('b = "b"', 'b = ""', "writes.'b': expected a symbol, found ''; leave out what is skipped"),
    ('b = "b"', "b = 1", "writes.b: expected text, found 1"),
    ("[writes]", 'end = "."\n[writes]', "end: expected none in the order sorted, found one"),
    ("[writes]", "start = 1\n[writes]", "unknown field 'start'"),
    ('"mine"', '"bucket-sort"', "name: expected another name than the built-in 'bucket-sort'"),
    ('"mine"', '"my own"', "name: expected 1 to 64 letters"),
]
STACK = [
    ({"end": None}, "end: expected a symbol, found none"),
    ({"symbols": ("0", "$")}, "symbols[1]: '$' stands for the bottom of a stack"),
    ({"end": "$"}, "end: '$' stands for the bottom of a stack"),
    ({"order": "halves", "end": None}, "expected two symbols with a space between them, found 1"),
    ({"writes": (), "order": "halves", "end": None}, "writes: expected a symbol that is written"),
    (
        {"writes": (("0 1", "0"), ("1 0", "1")), "order": "halves", "end": None},
        "writes.'1 0': it is there twice",
    ),
    ({"classes": (("0",),)}, "classes: expected none in the order stack, found some"),
    ({"symbols": ()}, "symbols: expected some, found none"),
]


@pytest.mark.parametrize(("old", "new", "expected"), BAD)
def test_a_bad_file_is_refused_with_its_place(tmp_path, old, new, expected):
    path = tmp_path / "mine.toml"
    assert old in SORT
    path.write_text(SORT.replace(old, new, 1))
    with pytest.raises(ValueError, match=re.escape(expected)):
        load_domain(path)


@pytest.mark.parametrize(("fields", "expected"), STACK)
def test_bad_fields_are_refused_with_their_place(fields, expected):
    domain = Rearrangement("own", ("0", "1"), "stack", (("0", "0"),), end="2")
    with pytest.raises(ValueError, match=re.escape(expected)):
        replace(domain, **fields)


def test_a_file_defines_a_rearrangement(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(SORT)
    domain = load_domain(path)
    assert ef.construct(domain)("bA-aba") == "Aaabb"
    assert run_here(["eval", str(path), "b-A"])[1] == "Ab\n"
    assert run_here(["info", str(path)])[0] == 0


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("bucket-sort", "0125", "line 1, column 4: expected 0, 1, 2, 3 or 4, found '5'"),
        ("reverse-string", "", "line 1, column 1: expected 0 or 1, found no text"),
        ("stack-manipulation", "01$", "line 1, column 3: expected 0, 1, 2, 3 or 4, found '$'"),
        (
            "missing-duplicate-string",
            "012 101",
            "line 1, column 5: expected 0 or 2 to go with '0', found '1'",
        ),
        (
            "missing-duplicate-string",
            "012",
            "line 1, column 4: expected 0, 1 or 2: a second half as long, found the end",
        ),
        (
            "missing-duplicate-string",
            "33",
            "line 1, column 3: expected a pair for which a symbol is written, found the end",
        ),
    ],
)
def test_bad_texts_are_refused_where_they_stand(name, text, expected):
    status, printed, errors = run_here(["eval", name, text])
    assert (status, printed) == (2, "")
    assert expected in errors
    assert re.search(r"^ +\^$", errors, re.MULTILINE)


def test_other_weights_than_are_possible_are_refused():
    domain = REARRANGEMENTS["bucket-sort"]()
    with pytest.raises(ValueError, match="expected feedforward closed or table"):
        ef.construct(domain, "units")
    pairs = {f"{chr(97 + i)} {chr(98 + i)}": "x" for i in range(15)}
    wide = Rearrangement("wide", tuple("abcdefghijklmnop"), "halves", pairs)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="use the table instead"):
        ef.construct(wide, "closed")
    assert ef.construct(wide).certify().exact


# Runs, samples and files of weights


@pytest.mark.parametrize("name", REARRANGEMENTS)
def test_samples_are_scored_right(name, tmp_path):
    status, printed, _ = run_here(["sample", name, "--length", "12", "--count", "50"])
    assert status == 0
    (tmp_path / "rows.tsv").write_text(printed)
    status, printed, _ = run_here(["score", name, str(tmp_path / "rows.tsv")])
    assert (status, printed.splitlines()[0]) == (0, "50 of 50 rows right")


def test_every_tap_is_reported_and_can_be_patched():
    model = ef.construct(REARRANGEMENTS["stack-manipulation"]())
    run = model.run("0142")
    assert run.value == "102"
    assert {name for _, name in run.cache} >= set(LAYERS["rearrange"].taps)
    assert run.cache[1, "A"].tolist() == [0, 1, 2, 3, 2]
    empty_again = model.run("0142", {(1, "A"): lambda A: torch.zeros_like(A)})
    assert empty_again.value == "1102"  # nothing was ever taken off
    far = model.run("0142", {(1, "key"): lambda key: key + 100})
    assert far.value is None


def test_a_trace_has_counts_and_keys():
    (step,) = ef.construct(REARRANGEMENTS["duplicate-string"]()).trace("01").steps
    assert step.rows() == {
        "tokens": ["0", "1", "·", "·"],
        "count": [1, 2, 2, 2],
        "key": ["0,2", "1,3", "·", "·"],
        "mask": [1, 1, 1, 1],
        "after": ["0", "1", "0", "1"],
    }
    assert [*step.events(find_domain("duplicate-string"))] == [
        f"in the order twice: {ORDERS['twice']}"
    ]


@pytest.mark.parametrize("name", REARRANGEMENTS)
def test_saved_and_loaded_weights_are_the_same_model(name, tmp_path):
    model = ef.construct(find_domain(name))
    model.save(tmp_path / "w.safetensors")
    loaded = ef.load(tmp_path / "w.safetensors")
    assert loaded == model
    loaded.certify().save(tmp_path / "proof.json")
    assert proof.verify(tmp_path / "proof.json", tmp_path / "w.safetensors").exact


def test_the_gate_of_an_order_is_there_if_it_is_needed(tmp_path):
    sort, turn = find_domain("bucket-sort"), find_domain("reverse-string")
    without = ef.Model(sort, replace(ef.construct(sort).weights, G_C=None))
    surplus = ef.Model(turn, replace(ef.construct(turn).weights, G_C=torch.zeros(2).long()))
    for model, expected in ((without, "sorted, and there is none"), (surplus, "there is one")):
        with pytest.raises(ValueError, match=f"tensor G_C: the order .*{expected}"):
            model.certify()


def test_info_says_what_it_is():
    status, printed, _ = run_here(["info", "missing-duplicate-string", "--json"])
    assert status == 0
    facts = json.loads(printed)
    assert (facts["kind"], facts["order"], facts["writes"]["0 2"]) == (
        "rearrangement",
        "halves",
        "0",
    )


# The certificate


@pytest.mark.parametrize("name", REARRANGEMENTS)
@pytest.mark.parametrize("feedforward", ["closed", "table"])
def test_constructed_weights_are_certified(name, feedforward):
    certificate = ef.construct(find_domain(name), feedforward).certify()
    assert certificate.exact
    assert certificate.findings.smallest_margin == 0.5


def is_wrong(model: ef.Model, texts: Sequence[ef.Expression]) -> bool:
    return model.predict(texts) != [evaluate(text) for text in texts]


@pytest.mark.parametrize("name", REARRANGEMENTS)
def test_changed_gates_are_refused_with_a_counterexample(name, monkeypatch):
    """Each entry of each gate is changed; weights that are still right are never called wrong."""
    monkeypatch.setattr("exactformer.certify.LONGEST", 4)
    domain = REARRANGEMENTS[name]()
    model = ef.construct(domain)
    texts = [text for length in range(1, 5) for text in enumerate_length(domain, length)]
    wrong = 0
    for gate, tensor in model.weights.gates.items():
        for token in range(model.weights.D):
            for number in {-1, 0, 1} - {int(tensor[token])}:
                changed = tensor.clone()
                changed[token] = number
                mutant = ef.Model(domain, replace(model.weights, **{gate: changed}))
                certificate = mutant.certify()
                found = is_wrong(mutant, texts)
                assert certificate.verdict in (("inexact",) if found else ("exact", "undecided"))
                wrong += found
                if (example := certificate.counterexample) is not None:
                    replayed = mutant.predict([example.expression])
                    assert replayed == [example.found] != [evaluate(example.expression)]
                    assert example.shortest
    assert wrong >= len(domain.symbols)


@pytest.mark.parametrize("name", REARRANGEMENTS)
@pytest.mark.parametrize("feedforward", ["closed", "table"])
def test_changed_rows_are_refused_with_a_counterexample(name, feedforward, monkeypatch):
    monkeypatch.setattr("exactformer.certify.LONGEST", 5)
    domain = find_domain(name)
    model, wrong = ef.construct(domain, feedforward), 0
    texts = [text for length in range(1, 6) for text in enumerate_length(domain, length)]
    outputs = "outputs" if feedforward == "table" else "W_2"
    tensor = getattr(model.weights.f, outputs)
    for row in range(len(tensor)):
        changed = tensor.clone()
        changed[row] = changed[row].roll(1)
        f = replace(model.weights.f, **{outputs: changed})
        mutant = ef.Model(domain, replace(model.weights, f=f))
        certificate = mutant.certify()
        if not is_wrong(mutant, texts):  # as where the largest sum has one unit less
            assert certificate.exact
            continue
        assert certificate.verdict == "inexact"
        assert certificate.findings.wrong_rows
        example = certificate.counterexample
        assert example is not None
        assert mutant.predict([example.expression]) == [example.found] != [example.expected]
        wrong += 1
    assert wrong >= len(tensor) / 2


def test_what_is_written_without_a_bag_is_found():
    domain = find_domain("missing-duplicate-string")
    model = ef.construct(domain)
    f = model.weights.f
    always = replace(f, b_2=f.b_2 + torch.eye(5)[0][:4])  # 0 everywhere
    certificate = ef.Model(domain, replace(model.weights, f=always)).certify()
    assert certificate.verdict == "inexact"
    assert "the empty bag" in [str(fault) for fault in certificate.findings.wrong_rows]
    assert str(certificate.counterexample and certificate.counterexample.expression) in ("02", "12")


def test_classes_count_by_their_order_alone():
    domain = find_domain("bucket-sort")
    weights = ef.construct(domain).weights
    far = torch.tensor([-300, -2, 5, 6, 32_000])
    model = ef.Model(domain, replace(weights, G_C=far))
    assert model.certify().exact
    assert model("4021310") == "0011234"
    exchanged = ef.Model(domain, replace(weights, G_C=far[[0, 2, 1, 3, 4]]))
    example = exchanged.certify().counterexample
    assert example is not None
    assert (str(example.expression), example.expected, example.found) == ("12", "12", "21")


def test_an_output_at_the_threshold_is_refused(monkeypatch):
    monkeypatch.setattr("exactformer.certify.LONGEST", 5)
    domain = find_domain("reverse-string")
    model = ef.construct(domain)
    near = replace(model.weights.f, b_2=torch.tensor([-1.0, -0.5]))
    certificate = ef.Model(domain, replace(model.weights, f=near)).certify()
    assert not certificate.exact
    tiny = replace(model.weights.f, b_1=torch.tensor([1e-40, 0.0]))
    assert not ef.Model(domain, replace(model.weights, f=tiny)).certify().exact
