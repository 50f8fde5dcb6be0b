"""A new notation is a class and a line in a table: here postfix, `( a b ... op )`."""

from pathlib import Path

import numpy as np
import pytest
import torch

import exactformer as ef
from exactformer.domains.algebra import Algebra
from exactformer.domains.definition import load_algebra
from exactformer.domains.notation import NOTATIONS, Notation
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import enumerate_depth, enumerate_length
from exactformer.model.iterations import Iterations
from tests.in_process import run_here

DEFINITION = """
name = "postfix"
notation = "postfix"
values = ["0", "1", "2"]

[[operators]]
symbol = "MAX"
arity = [1, 2, 3]
rule = "max"

[[operators]]
symbol = "SUM"
arity = [2]
rule = "sum"
"""


class Postfix(Notation):
    """`( a b ... op )`."""

    def operands_before(self, arity: int) -> int:
        return arity

    def operands_wanted(self, before: int) -> int | None:
        return before


@pytest.fixture
def path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setitem(NOTATIONS, "postfix", Postfix("postfix"))
    path = tmp_path / "postfix.toml"
    path.write_text(DEFINITION, encoding="utf-8")
    return path


@pytest.fixture
def algebra(path: Path) -> Algebra:
    return load_algebra(path)


def test_without_its_line_in_the_table_it_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "postfix.toml"
    path.write_text(DEFINITION, encoding="utf-8")
    with pytest.raises(ValueError, match='"plain", "polish" or "reverse-polish", found'):
        load_algebra(path)


def test_text_is_read_and_mistakes_are_told(algebra: Algebra) -> None:
    expression = ef.parse(algebra, "( 1 ( 2 2 SUM ) 0 MAX )")
    assert (str(expression), expression.depth, expression.widest) == (
        "( 1 ( 2 2 SUM ) 0 MAX )",
        2,
        3,
    )
    assert algebra.vocabulary[expression.positions[expression.root]] == "MAX"
    assert evaluate(expression) == "1"
    with pytest.raises(ef.ExpressionError, match="SUM"):
        ef.parse(algebra, "( SUM 1 2 )")
    with pytest.raises(ef.ExpressionError, match="MAX takes 2 operands here, not more"):
        ef.parse(algebra, "( 1 2 MAX 0 )")


def test_the_transformer_is_exact_in_both_ways_to_iterate(algebra: Algebra) -> None:
    model, rng = ef.construct(algebra), np.random.default_rng(0)
    assert model.certify().findings.exact
    drawn = [e for depth in range(6) for e in ef.draw(algebra, depth, 30, rng)]
    assert {e.depth for e in drawn} == set(range(6))
    drawn += [*enumerate_depth(algebra, 1), *enumerate_length(algebra, 7)]
    wanted = [evaluate(e) for e in drawn]
    assert model.predict(drawn) == wanted
    assert model.predict(drawn, iterations="log") == wanted
    assert model.evaluate([str(e) for e in drawn], engine="fast") == wanted


@pytest.mark.parametrize("iterations", ["depth", "log"])
def test_a_run_can_be_patched(algebra: Algebra, iterations: Iterations) -> None:
    model, text = ef.construct(algebra), "( ( 1 1 SUM ) 0 MAX )"
    found = model.run(text, iterations=iterations)
    assert found.value == "2"
    zero = torch.zeros(len(algebra.vocabulary))
    zero[algebra.token_ids["0"]] = 1

    def write(Y: torch.Tensor) -> torch.Tensor:
        return torch.where(Y.any(-1, keepdim=True), zero, Y)

    patch = {(found.iterations, "Y"): write}
    assert model.run(text, patch, iterations).value == "0"


def test_the_commands_take_it(path: Path, tmp_path: Path) -> None:
    text, domain = "( 1 ( 2 2 SUM ) 0 MAX )", str(path)
    assert run_here(["eval", domain, text])[:2] == (0, "1\n")
    status, said, _ = run_here(["trace", domain, text])
    assert status == 0
    assert "SUM at 5 receives operands 2×2 and operator SUM" in said
    status, said, _ = run_here(["certify", domain])
    assert status == 0
    assert said.startswith("exact")
    status, rows, _ = run_here(["sample", domain, "--depth", "3", "--count", "20"])
    assert status == 0
    assert len(rows.splitlines()) == 20
    (tmp_path / "rows.tsv").write_text(rows, encoding="utf-8")
    status, said, _ = run_here(["score", domain, str(tmp_path / "rows.tsv")])
    assert status == 0
    assert "20 of 20" in said
