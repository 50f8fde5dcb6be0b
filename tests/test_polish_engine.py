"""The engine in Polish notation: the values and the errors of the parser and the oracle."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import exactformer as ef
from exactformer.domains.algebra import Algebra
from exactformer.domains.expression import Expression
from exactformer.domains.reference import evaluate_program
from exactformer.domains.sampling import enumerate_length
from exactformer.engine.brackets import with_brackets
from exactformer.engine.build import algebra_values, build_automaton
from exactformer.engine.cpu import CpuEngine
from exactformer.engine.polish import PolishAutomaton
from tests.in_process import run_here
from tests.polish_algebras import (
    ALPHABETS,
    CALCULATOR,
    LISTOPS,
    SIDES,
    ordered_algebra,
    random_text,
    stack_value,
    value,
)

REVERSE = Algebra("bits", "10", ef.boolean().operators, "reverse-polish")


def engine_of(algebra):
    return CpuEngine(build_automaton(algebra, algebra_values(algebra)), algebra)


@pytest.mark.parametrize("notation", SIDES)
@pytest.mark.parametrize(("n_values", "arities"), ALPHABETS)
def test_every_short_text(n_values, arities, notation):
    algebra = ordered_algebra(n_values, arities, notation)
    every = [e for length in range(1, 8) for e in enumerate_length(algebra, length)]
    engine = engine_of(algebra)
    assert engine.values(every) == [value(algebra, e.ids.tolist()) for e in every]
    tree = [e.parenthesized.ids for e in every]
    ends = np.cumsum([len(e) for e in every])
    tokens, ends = with_brackets(algebra, np.concatenate([e.ids for e in every]), ends)
    assert np.array_equal(tokens, np.concatenate(tree))
    assert ends.tolist() == np.cumsum([len(ids) for ids in tree]).tolist()


@given(st.integers(0, 2**32), st.lists(st.integers(0, 300), max_size=5), st.booleans())
def test_rows_of_any_texts(seed, sizes, reverse):
    rng = np.random.default_rng(seed)
    algebra = ordered_algebra(3, (1, 2, 3), SIDES[reverse], seed % 3)
    texts = [random_text(algebra, size, rng) for size in sizes]
    expressions = [Expression(algebra, np.array(ids, dtype=np.int16)) for ids in texts]
    assert engine_of(algebra).values(expressions) == [stack_value(algebra, ids) for ids in texts]


def test_tables_are_read_off_the_weights_that_serve():
    model = ef.load("listops/7520", LISTOPS)
    ids = random_text(LISTOPS, 40_000, np.random.default_rng(0))
    text = " ".join(LISTOPS.vocabulary[token] for token in ids)
    assert model.evaluate(text, engine="fast") == stack_value(LISTOPS, ids)
    assert model.evaluate("SM 1 MAX 2 3") == "4"


def test_one_expression_needs_no_compiled_pass():
    automaton = build_automaton(REVERSE, algebra_values(REVERSE))
    assert isinstance(automaton, PolishAutomaton)
    assert automaton.run(ef.parse(REVERSE, "1 0 ~ &").ids.tolist()) == 0
    assert automaton.run([4, 2, 2]) is None
    assert automaton.run([]) is None


def test_errors_are_the_parsers():
    for engine in ("fast", "model"):
        status, _, said = run_here(["eval", "boolean-polish", "& 1 | 0", "--engine", engine])
        assert status == 2
        assert "line 1, column 8: expected a value (1 0) or an operator (& | ~)" in said
        assert "| takes 2 operands, 1 found" in said


def test_lines_are_scored_with_their_errors(tmp_path):
    rows = tmp_path / "rows.tsv"
    rows.write_text("& 1 0\t0\n~ ~ 1\t1\n| 0 0\t1\n")
    status, said, _ = run_here(["score", "boolean-polish", str(rows)])
    assert "2 of 3 rows right" in said
    assert status in (0, 1)
    rows.write_text("& 1 0\t0\n~ ~\t1\n")
    status, _, said = run_here(["score", "boolean-polish", str(rows)])
    assert status == 2
    assert "line 2, column 4" in said


@pytest.mark.parametrize("algebra", [ef.boolean_polish(), REVERSE, CALCULATOR], ids=str)
def test_programs_have_the_values_of_their_definition(algebra):
    model, rng = ef.construct(algebra), np.random.default_rng(0)
    lines = []
    for i in range(30):
        ids = random_text(algebra, int(rng.integers(0, 5)), rng)
        words = [algebra.vocabulary[token] for token in ids]
        for k, token in enumerate(ids):
            if i and token in algebra.value_ids and rng.random() < 0.6:
                words[k] = f"x{rng.integers(i)}"
        lines.append(f"x{i} = {' '.join(words)};")
    text = "\n".join(lines)
    program = ef.parse_program(algebra, text)
    wanted = evaluate_program(program)
    for engine in ("fast", "model"):
        assert dict(model.run_program(text, engine=engine).values) == wanted
