"""Machines over spans: their texts, their layer and the certificate."""

import re
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import exactformer as ef
from exactformer.certify import findings
from exactformer.domains.kinds import read_domain
from exactformer.domains.machine_catalog import MACHINES, folds
from exactformer.domains.machine_sampling import draw_spans
from exactformer.domains.machines import Machine
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import enumerate_length
from exactformer.domains.span_machines import SpanMachine
from exactformer.domains.syntax import parse
from exactformer.model.predict import outcomes, predict
from exactformer.verify import proof
from tests.in_process import run_here
from tests.machines import mutated, random_span_machine, split

Tree = Any  # a symbol, or a list of trees


def tree_of(text: ef.Expression) -> Tree:
    """The text as lists in lists, made in another way than any of the project's readers."""
    words = [text.domain.vocabulary[i] for i in text.ids.tolist()]
    written = "".join("[" if w == "(" else "]," if w == ")" else f"'{w}'," for w in words)
    (tree,) = eval(f"[{written}]")
    return tree


def value_of(domain: SpanMachine, tree: Tree) -> str:
    """The value by recursion over the tree."""
    if isinstance(tree, str):
        return tree
    machine = domain.machine
    read = (machine.symbols.index(value_of(domain, part)) for part in tree)
    state = reduce(lambda q, x: machine.transitions[q][x], read, machine.start)
    return str(machine.outputs[state])


def strahler_of(tree: Tree) -> int:
    if isinstance(tree, str):
        return 0
    numbers = sorted([0, 0, *map(strahler_of, tree)])
    return max(1, numbers[-1] + (numbers[-1] == numbers[-2]) * (numbers[-1] > 0))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_random_machines_on_random_trees(seed):
    rng = np.random.default_rng(seed)
    domain = random_span_machine(rng)
    model = ef.construct(domain)
    assert model.certify().exact
    texts = [text for depth in range(5) for text in draw_spans(domain, depth, 5, rng)]
    trees = [*map(tree_of, texts)]
    values = [value_of(domain, tree) for tree in trees]
    assert [*map(evaluate, texts)] == values
    ran = outcomes(domain, model.weights, texts)
    assert [outcome.value for outcome in ran] == values
    assert [outcome.iterations for outcome in ran] == [*map(strahler_of, trees)]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_weights_of_changed_machines_are_certified_only_if_they_answer_alike(seed):
    rng = np.random.default_rng(seed)
    domain = random_span_machine(rng)
    try:
        other = split(mutated(domain.machine, rng), rng)
        changed = None if other is None else SpanMachine(other)
    except ValueError:  # the changed machine has a value that is no symbol of it
        return
    if changed is None:
        return
    model = ef.Model(domain, ef.construct(changed).weights)
    certificate = model.certify()
    texts = [text for depth in range(4) for text in draw_spans(domain, depth, 20, rng)]
    found = [value_of(changed, tree_of(text)) for text in texts]
    if certificate.exact:
        assert found == [*map(evaluate, texts)]
    else:
        example = certificate.counterexample
        assert certificate.verdict == "inexact"
        assert example is not None
        value = value_of(changed, tree_of(example.expression))  # which may be no value of the other
        assert example.found == (value if value in domain.values else None) != example.expected


def test_folds_of_any_number_of_operands():
    domain, rng = folds(), np.random.default_rng(0)
    model = ef.construct(domain)
    digits = rng.integers(10, size=5_000)
    first, rest = int(digits[0]), digits[1:]
    expected = {
        "FIRST": first,
        "LAST": int(digits[-1]),
        "MAX": int(digits.max()),
        "MIN": int(digits.min()),
        "SM": int(digits.sum() % 10),
        "DIFF": int((first - rest.sum()) % 10),
    }
    for operator, value in expected.items():
        (outcome,) = model.outcomes([parse(domain, f"({operator} {' '.join(map(str, digits))})")])
        assert (outcome.value, outcome.iterations) == (str(value), 1)


def test_a_deep_chain_with_operands_on_both_sides_takes_one_iteration():
    domain, rng = folds(), np.random.default_rng(1)
    depth = 3_000
    operators = rng.choice(["DIFF", "SM", "LAST", "FIRST"], size=depth)
    left, right = rng.integers(10, size=(2, depth)).astype(str)
    opened = " ".join(f"({o} {a}" for o, a in zip(operators, left, strict=True))
    text = parse(domain, opened + " (MAX 3)" + " ".join(f" {b})" for b in right))
    (outcome,) = ef.construct(domain).outcomes([text])
    assert (outcome.value, outcome.iterations) == (evaluate(text), 1)


def test_every_text_up_to_a_length_is_allowed_and_no_other_is():
    domain = SpanMachine(
        Machine.from_rule(
            "one-or-two",
            "!01",
            "begin",
            lambda q, x: {("begin", "!"): "op", ("op", "0"): "0", ("op", "1"): "1"}.get((q, x)),
            lambda q: q if q in "01" else None,
        )
    )
    for length in range(1, 8):
        texts = [*enumerate_length(domain, length)]
        assert len({text.ids.tobytes() for text in texts}) == len(texts)
        listed = {tuple(text.ids.tolist()) for text in texts}
        tokens = range(len(domain.vocabulary))
        every = np.array(np.meshgrid(*[tokens] * length)).reshape(length, -1).T.tolist()
        allowed = {tuple(ids) for ids in every if domain.first_error(ids, []) is None}
        assert listed == allowed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(LAST)", "column 6: expected a value or '(', found ')'"),
        ("(LAST 1", "column 8: expected a value, '(' or ')', found the end of the text"),
        ("(1 LAST)", "column 2: expected FIRST, LAST, MAX, MIN, SM or DIFF, found '1'"),
        ("()", "column 2: expected FIRST, LAST, MAX, MIN, SM or DIFF, found ')'"),
        ("((LAST 1))", "column 2: expected FIRST, LAST, MAX, MIN, SM or DIFF, found '('"),
        ("(LAST 1) 2", "column 10: expected the end of the text, found '2'"),
        ("3 4", "column 3: expected the end of the text, found '4'"),
        ("LAST", "column 1: expected a value or '(', found 'LAST'"),
        ("(LAST 12)", "column 7: expected a value or '(', found '12', which is no token"),
        ("", "column 1: expected a value or '(', found no text"),
    ],
)
def test_a_mistake_is_found_where_it_stands(text, expected):
    status, printed, errors = run_here(["eval", "folds", text])
    assert (status, printed) == (2, "")
    assert f"line 1, {expected}" in errors


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"symbols": ["0", "1", "("]}, "symbols[2]: '(' stands around every span"),
        ({"read": "right"}, "read: expected left"),
    ],
)
def test_a_machine_that_cannot_read_spans_is_refused(change, expected):
    data = MACHINES["parity"]().to_dict() | {"kind": "span-machine"} | change
    if "symbols" in change:
        data["transitions"] = {q: row | {"(": q} for q, row in data["transitions"].items()}
    with pytest.raises(ValueError, match=re.escape(expected)):
        read_domain(data)


def test_what_may_follow_must_not_depend_on_a_value():
    """After a 1 another symbol is allowed, after a 0 none is: an inner span might be either."""
    steps = {("begin", "0"): "zero", ("begin", "1"): "one", ("one", "1"): "one"}
    machine = Machine.from_rule(
        "depends",
        "01",
        "begin",
        lambda q, x: steps.get((q, x)),
        lambda q: {"zero": "0", "one": "1"}.get(q),
    )
    with pytest.raises(ValueError, match="whether 1 may follow depends on the value of an inner"):
        SpanMachine(machine)
    with pytest.raises(ValueError, match="outputs: expected one for each state"):
        SpanMachine(MACHINES["flip-flop"]())
    with pytest.raises(ValueError, match=r"outputs\.0: '0' is none of the symbols"):
        SpanMachine(MACHINES["cycle-5"]())


def test_a_value_by_itself_takes_no_iteration():
    model = ef.construct(folds())
    (outcome,) = model.outcomes([parse(folds(), "7")])
    assert outcome == ("7", 0)


def test_another_gate_is_refused_and_does_not_hang():
    domain, text = folds(), parse(folds(), "(SM 1 (MAX 2 3))")
    weights = ef.construct(domain).weights
    for token in range(len(domain.vocabulary)):
        for value in (-1, 0, 1):
            G_PE = weights.G_PE.clone()
            if G_PE[token] == value:
                continue
            G_PE[token] = value
            changed = ef.Model(domain, replace(weights, G_PE=G_PE))
            assert not findings(domain, changed.weights).exact
            predict(domain, changed.weights, [text])


def test_saved_traced_sampled_and_scored(tmp_path):
    model = ef.construct(folds())
    model.save(tmp_path / "folds.safetensors")
    loaded = ef.load(tmp_path / "folds.safetensors")
    loaded.certify().save(tmp_path / "proof.json")
    assert proof.verify(tmp_path / "proof.json", tmp_path / "folds.safetensors").exact
    steps = loaded.trace("(SM 1 (MAX 2 3) (MIN 4 5))", iterations="log").steps
    first, second = (step.to_dict()["spans"] for step in steps)
    assert [span["value"] for span in first] == ["3", "4"]
    assert [span["value"] for span in second] == ["8"]
    run = loaded.run("(SM 1 (MAX 2 3) (MIN 4 5))")
    assert run.value == "8"
    assert run.cache[1, "A"][0].tolist() == [1, 0]
    status, printed, _ = run_here(["sample", "folds", "--depth", "3", "--count", "20"])
    assert status == 0
    (tmp_path / "rows.tsv").write_text(printed)
    status, printed, _ = run_here(["score", "folds", str(tmp_path / "rows.tsv")])
    assert (status, printed.splitlines()[0]) == (0, "20 of 20 rows right")
