"""The certificate of a level gate: as declared, harmless, or wrong with a text that shows it."""

import json
import random
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import exactformer as ef
from exactformer.api import Model
from exactformer.domains.algebra import Algebra, Operator
from exactformer.domains.precedence import Level
from exactformer.model.storage import to_file
from exactformer.verify import ProofRejected, verify
from exactformer.verify.coq import dump
from exactformer.verify.levels import LevelGate, check_levels, every_run
from exactformer.weights.file import WeightFile
from tests.in_process import run_here
from tests.plain_algebras import EXAMPLES, MODULO7, derivations, random_algebras, value


def with_levels(
    algebra: Algebra, prefix: dict[str, int], binary: dict[str, int], directions: list[int]
) -> Model:
    """A constructed model with other levels than declared."""
    G_L = torch.zeros(2, len(algebra.vocabulary), dtype=torch.int64)
    for row, levels in zip(G_L, (prefix, binary), strict=True):
        for symbol, level in levels.items():
            row[algebra.token_ids[symbol]] = level
    weights = ef.construct(algebra).weights
    return Model(algebra, replace(weights, G_L=G_L, directions=torch.tensor(directions)))


def test_the_declared_levels_are_exact_as_declared():
    for algebra in (ef.boolean_plain(), ef.arithmetic_plain(), MODULO7):
        certificate = ef.construct(algebra).certify()
        assert certificate.verdict == "exact"
        assert "operators group as declared" in str(certificate)


def test_other_numbers_of_the_same_order_are_as_declared():
    model = with_levels(ef.arithmetic_plain(), {}, {"+": 2, "*": 5}, [0, 1, -1, 0, 0, 1])
    certificate = model.certify()
    assert certificate.verdict == "exact"
    assert str(certificate.findings.grouping) == (
        "otherwise than declared, without a difference: `a * b * c`"  # from the right
    )
    left = with_levels(model.algebra, {}, {"+": 2, "*": 5}, [0, 1, -1, 0, 0, -1])
    assert "operators group as declared" in str(left.certify())


def test_a_harmless_gate_is_told_apart():
    """With `+` below `-`, 1+2-3 is 1+(2-3), modulo seven the same; and -2*3 is -(2*3)."""
    model = with_levels(MODULO7, {"-": 2}, {"+": 1, "-": 2, "*": 3}, [0, -1, -1, -1])
    certificate = model.certify()
    assert certificate.verdict == "exact"
    assert certificate.findings.grouping is not None
    assert certificate.findings.grouping.harmless == ("`a + b - c`", "`- a * b`")
    texts = [e for d in range(1, 6) for e in ef.draw(MODULO7, d, 20, np.random.default_rng(d))]
    assert model.predict(texts) == [ef.oracle(text) for text in texts]


def test_a_harmless_gate_has_iterations_of_its_own(tmp_path):
    """The declared levels have 1-2+3-4 as one run; with `+` below `-` it waits for two."""
    model = with_levels(MODULO7, {"-": 2}, {"+": 1, "-": 2, "*": 3}, [0, -1, -1, -1])
    text = ef.parse(MODULO7, "1-2+3-4")
    assert (ef.strahler(text), ef.construct(MODULO7).outcomes([text])[0].iterations) == (1, 1)
    assert model.outcomes([text]) == model.outcomes([text], "log") == [("5", 2)]
    assert len(model.trace(text).steps) == 2
    path = tmp_path / "harmless.safetensors"
    model.save(path)
    command = ["eval", str(EXAMPLES / "modulo7.toml"), str(text), "--weights", str(path)]
    _, printed, _ = run_here([*command, "--engine", "model", "--json"])
    assert json.loads(printed) == {"engine": "model", "value": "5", "iterations": 2}
    assert "levels are as declared" in (ef.strahler.__doc__ or "").replace("\n    ", " ")


@pytest.mark.parametrize(
    ("prefix", "binary", "directions", "pattern"),
    [
        ({"-": 3}, {"+": 1, "-": 1, "*": 1}, [0, -1, -1, -1], "`a + b * c`"),
        ({"-": 3}, {"+": 1, "-": 1, "*": 2}, [0, 1, -1, 0], "`a - b + c`"),
        ({"-": 1}, {"+": 2, "-": 2, "*": 3}, [0, 0, -1, -1], "`- a + b`"),
        ({"-": 3}, {"+": 2, "-": 1, "*": 3}, [0, -1, -1, -1], "`a - b + c`"),
    ],
)
def test_a_wrong_gate_is_shown_by_a_text_that_comes_out_wrong(prefix, binary, directions, pattern):
    model = with_levels(MODULO7, prefix, binary, directions)
    certificate = model.certify()
    assert certificate.verdict == "inexact"
    assert f"with a difference: {pattern}" in str(certificate)
    example = certificate.counterexample
    assert example is not None
    assert example.shortest
    assert model.predict([example.expression]) == [example.found]
    assert ef.oracle(example.expression) == example.expected != example.found


def test_what_goes_along_with_a_tighter_operator_counts():
    """The docstring's example: `~` above `+` is harmless by itself, but takes `!` along."""
    bits = ("0", "1")
    algebra = Algebra(
        "along",
        bits,
        (
            Operator.from_rule("+", [2], lambda a, b: str(int(a) & int(b)), bits),
            Operator.from_rule("~", [1], lambda a: a, bits),
            Operator.from_rule("!", [1], lambda a: str(1 - int(a)), bits),
        ),
        "plain",
        precedence=(Level("prefix", ("!",)), Level("prefix", ("~",)), Level("left", ("+",))),
    )
    model = with_levels(algebra, {"!": 1, "~": 4}, {"+": 3}, [0, 0, 0, -1, 0])
    assert model.predict([ef.parse(algebra, text) for text in ("!0+0", "~1+0")]) == ["1", "0"]
    certificate = model.certify()
    assert certificate.verdict == "inexact"
    assert certificate.findings.grouping is not None
    assert {str(wrong) for wrong in certificate.findings.grouping.wrong} == {"`~ ! a + b`"}
    assert certificate.counterexample is not None
    assert str(certificate.counterexample.expression) == "~!0+0"


def gates(algebra: Algebra, rng: random.Random) -> dict[str, np.ndarray]:
    """Levels and directions at random."""
    K = rng.randint(2, 6)
    used = algebra.declared_levels > 0
    levels = np.array([[rng.randrange(1, K) for _ in row] for row in used]) * used
    return {"G_L": levels, "directions": np.array([0, *rng.choices([-1, 0, 1], k=K - 1)])}


@settings(max_examples=10)
@given(random_algebras(), st.randoms(use_true_random=False))
def test_no_gate_that_passes_is_wrong_on_any_short_text(algebra, rng):
    texts = derivations(algebra, 7)
    words = [text for text in texts if "(" not in text]
    expressions = [ef.parse(algebra, " ".join(text)) for text in words]
    expected = [algebra.values[value(algebra, texts[text])] for text in words]
    weights = ef.construct(algebra).weights
    for arrays in [gates(algebra, rng) for _ in range(3)]:
        found = check_levels(algebra, arrays)
        changed = {name: torch.from_numpy(array) for name, array in arrays.items()}
        predicted = Model(algebra, replace(weights, **changed)).predict(expressions)
        if not found.wrong:
            assert predicted == expected
        elif predicted == expected:  # then it takes a longer text
            assert any(len(wrong.ids) > 4 for wrong in found.wrong)


@settings(max_examples=25)
@given(random_algebras())
def test_every_run_of_operators_is_followed(algebra):
    """By hand: each prefix operator of each short text, with the level that the layer gives it."""
    gate = LevelGate(algebra.declared_levels, algebra.declared_directions)
    listed = {(run.prefix[-1], level) for run, level in every_run(algebra, gate, gate)}
    seen: set[tuple[int, int]] = set()
    for text in derivations(algebra, 6):
        before, ended = None, False
        for token in (algebra.token_ids[word] for word in text):
            if token < algebra.first_operator:
                before, ended = None, token != 0
            elif ended:
                before, ended = gate.binary(token) + gate.groups_left(token), False
            else:
                before = max(gate.prefix(token), before or 0)
                seen.add((token, before))
    assert seen <= listed
    runs = every_run(algebra, gate, gate)
    assert {(run.prefix[-1], level) for run, level in runs if not run.prefix[3:]} <= seen


def test_a_proof_is_verified_and_tied_to_the_levels(tmp_path):
    model = with_levels(MODULO7, {"-": 2}, {"+": 1, "-": 2, "*": 3}, [0, -1, -1, -1])
    model.save(tmp_path / "weights.safetensors")
    model.certify().save(tmp_path / "proof.json")
    assert verify(tmp_path / "proof.json", tmp_path / "weights.safetensors", MODULO7).exact
    proof = json.loads((tmp_path / "proof.json").read_text())
    assert proof["grouping"].startswith("otherwise than declared, without a difference")
    proof["grouping"] = "as declared"
    (tmp_path / "proof.json").write_text(json.dumps(proof))
    with pytest.raises(ProofRejected, match="grouping"):
        verify(tmp_path / "proof.json", tmp_path / "weights.safetensors")
    ef.construct(MODULO7).save(tmp_path / "weights.safetensors")
    with pytest.raises(ProofRejected, match="other weights"):
        verify(tmp_path / "proof.json", tmp_path / "weights.safetensors")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"G_L": None}, "tensor G_L: plain notation, and there is none"),
        ({"directions": None}, "tensor directions: plain notation, and there is none"),
        ({"G_L": np.zeros((2, 12), np.int16)}, "tensor G_L: expected levels from 1 to 3 where"),
        ({"G_L": np.full((2, 12), 3, np.int16)}, "tensor G_L: expected levels from 1 to 3 where"),
        ({"G_L": np.zeros((2, 3), np.int16)}, r"tensor G_L: expected the shape \(2, 12\)"),
        ({"G_L": np.zeros((2, 12), np.int8)}, "tensor G_L: expected int16"),
        ({"directions": np.array([0, 2, 0, 0], np.int16)}, "directions: expected -1, 0 and 1"),
        ({"directions": np.zeros(1, np.int16)}, "tensor G_L: expected levels from 1 to 0"),
        ({"directions": np.zeros(1_000, np.int16)}, "levels: expected 501 at most, found 1000"),
    ],
)
def test_files_with_other_tensors_are_refused(change, message):
    model = ef.construct(MODULO7)
    file = to_file(MODULO7, model.weights, {})
    arrays = {n: a for n, a in (file.arrays | change).items() if a is not None}
    with pytest.raises(ValueError, match=message):
        WeightFile(MODULO7, arrays, file.activation)


def test_levels_in_any_other_notation_are_refused():
    file = to_file(ef.boolean(), ef.construct(ef.boolean()).weights, {})
    plain = to_file(ef.boolean_plain(), ef.construct(ef.boolean_plain()).weights, {})
    with pytest.raises(ValueError, match="tensor G_L: infix notation, and there is one"):
        WeightFile(ef.boolean(), plain.arrays, file.activation)


def test_the_extracted_checker_says_that_it_is_for_other_notations():
    file = to_file(MODULO7, ef.construct(MODULO7).weights, {})
    with pytest.raises(ValueError, match="since the theorems in Coq are about infix and prefix"):
        dump(file)


def test_every_rotation_is_compared():
    """All 16 x 16 pairs of operators on two values, grouped from the wrong side."""
    bits = ("0", "1")
    tables = list(product((0, 1), repeat=4))
    for first, second in product(tables[::7], tables):
        ops = [
            Operator(symbol, (2,), dict(zip(product((0, 1), repeat=2), table, strict=True)), True)
            for symbol, table in (("+", first), ("*", second))
        ]
        algebra = Algebra("pair", bits, ops, "plain", precedence=(Level("left", ("+", "*")),))
        model = with_levels(algebra, {}, {"+": 1, "*": 1}, [0, 1])
        texts = [
            ef.parse(algebra, f"{a}{o}{b}{p}{c}")
            for a, b, c in product("01", repeat=3)
            for o, p in product("+*", repeat=2)
        ]
        right = model.predict(texts) == [ef.oracle(text) for text in texts]
        assert (model.certify().verdict == "exact") == right
