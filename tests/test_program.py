"""Programs from text: what they are, their levels, their results, and their values by tables."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import exactformer as ef
from exactformer.domains.program import WIRE, Program
from exactformer.domains.program_sampling import draw_program
from exactformer.domains.reference import evaluate_program
from tests.algebras import EVERY, LETTERS
from tests.programs import ALGEBRAS, HALF_ADDER


def test_statements_are_arrays():
    program = ef.parse_program(ef.boolean(), HALF_ADDER)
    assert program.names == ("sum", "carry", "a", "b")
    assert program.lengths.tolist() == [12, 5, 1, 1]
    assert program.wires.tolist() == [2, 3, 1, 2, 3]
    assert np.count_nonzero(program.ids == WIRE) == 5
    assert (program.inputs, program.outputs) == (0, (0,))
    assert program.levels.tolist() == [3, 2, 1, 1]
    assert str(program) == "sum=((a|b)&(~carry));\ncarry=(a&b);\na=1;\nb=0;\n"


def test_white_space_line_breaks_and_comments_mean_nothing():
    text = "\n# a; b=1;\n a\n=\t1 ;b= ( a\n& # and\n 0);;"[:-1] + "# the end"
    program = ef.parse_program(ef.boolean(), text)
    assert str(program) == "a=1;\nb=(a&0);\n"


def test_names_may_have_dots_and_brackets_where_no_symbol_has():
    program = ef.parse_program(ef.boolean(), "n.a[0]=1;_é2=(n.a[0]&1);")
    assert program.names == ("n.a[0]", "_é2")
    with pytest.raises(ef.ExpressionError):
        ef.parse_program(ef.listops(), "a[0]=1;")  # where `[` is a parenthesis


def test_a_comment_only_where_no_symbol_has_the_sign():
    sharp = ef.Algebra("sharp", ("0", "1"), [ef.Operator.from_rule("#", [2], max, "01")], "infix")
    assert str(ef.parse_program(sharp, "a=(0#1);b=(a#a);")) == "a=(0#1);\nb=(a#a);\n"
    semicolon = ef.Algebra("s", ("0", "1"), [ef.Operator.from_rule(";", [2], max, "01")], "infix")
    with pytest.raises(ValueError, match="has ';' in a symbol"):
        ef.parse_program(semicolon, "a=1;")


def test_an_equals_sign_may_be_an_operator():
    equal = ef.Algebra("e", ("0", "1"), [ef.Operator.from_rule("=", [2], max, "01")], "infix")
    assert evaluate_program(ef.parse_program(equal, "a=(0=1);b=(a=0);")) == {"a": "1", "b": "1"}


def test_results_are_the_names_that_none_uses_or_those_asked_for():
    program = ef.parse_program(ef.boolean(), "z=x;x=1;y=(x|x);")
    assert [program.names[i] for i in program.outputs] == ["z", "y"]
    chosen = ef.parse_program(ef.boolean(), "z=x;x=1;y=(x|x);", ["y", "x", "y"])
    assert [chosen.names[i] for i in chosen.outputs] == ["y", "x", "y"]
    with pytest.raises(ValueError, match="expected names of the program, found 'w'"):
        program.with_outputs(["w"])


@pytest.mark.parametrize("algebra", [*EVERY, *ALGEBRAS[3:]], ids=repr)
def test_text_reads_back(algebra):
    program = draw_program(algebra, 30, np.random.default_rng(1), depth=3)
    again = ef.parse_program(algebra, str(program))
    for part in ("ids", "lengths", "wires"):
        assert np.array_equal(getattr(program, part), getattr(again, part))
    assert (again.names, again.outputs) == (program.names, program.outputs)


def test_letters_that_are_symbols_are_no_names():
    values = evaluate_program(ef.parse_program(LETTERS, "TAF=(T A F);x=(N TAF);"))
    assert values == {"TAF": "F", "x": "T"}


@pytest.mark.parametrize("algebra", ALGEBRAS, ids=lambda algebra: algebra.name)
def test_tables_give_the_values_of_the_oracle(algebra):
    model = ef.construct(algebra)
    for seed in range(20):
        program = draw_program(algebra, 1 + seed, np.random.default_rng(seed))
        ran = model.run_program(program, engine="fast")
        assert (ran.engine, ran.iterations) == ("fast", None)
        assert ran.values == evaluate_program(program)
        names = [program.names[i] for i in program.outputs]
        assert ran.outputs == {name: ran.values[name] for name in names}


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 60))
def test_levels_are_those_of_the_longest_chain(seed, statements):
    program = draw_program(ef.boolean(), statements, np.random.default_rng(seed))
    for i in range(len(program)):
        below = program.levels[program.uses(i)]
        assert program.levels[i] == 1 + max(below, default=0)
    assert program.cycle == []


def test_inputs_come_by_name():
    both = Program(
        ef.boolean(),
        ("a", "b", "c"),
        2,
        np.array([0, WIRE, 4, WIRE, 1], dtype=np.int16),
        np.array([5]),
        np.array([0, 1]),
        (2,),
    )
    model = ef.construct(ef.boolean())
    for engine in ("model", "fast"):
        for a in "01":
            ran = model.run_program(both, {"a": a, "b": "1"}, engine=engine)
            assert ran.outputs == {"c": a}
    for wrong in ({}, {"a": "1"}, {"a": "1", "b": "1", "x": "1"}, {"a": "1", "b": "2"}):
        with pytest.raises(ValueError, match="inputs: expected a value"):
            model.run_program(both, wrong)


def test_a_program_of_another_domain_is_refused():
    program = ef.parse_program(ef.arithmetic(), "a=1;")
    with pytest.raises(ValueError, match="expected a program of 'boolean', found one of"):
        ef.construct(ef.boolean()).run_program(program)


def test_many_statements_take_seconds():
    count = 100_000
    text = "x0=1;" + "".join(f"x{i}=(x{i - 1}&(~x{i // 2}));" for i in range(1, count))
    begun = time.perf_counter()
    program = ef.parse_program(ef.boolean(), text)
    assert program.levels.max() == count
    assert time.perf_counter() - begun < 60  # 2 s on a machine of its own
