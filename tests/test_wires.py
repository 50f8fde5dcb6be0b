"""The transformer on programs: right values, and as many iterations as names and layers ask for."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import exactformer as ef
from exactformer.domains.formats.aiger import read_aiger
from exactformer.domains.program import WIRE, Program
from exactformer.domains.program_sampling import draw_program
from exactformer.domains.reference import evaluate_program
from exactformer.domains.strahler import strahler
from exactformer.domains.symbols import FIRST_VALUE
from exactformer.model import wires
from exactformer.model.iterations import Iterations
from exactformer.model.predict import values_of_rows
from exactformer.model.wires import run
from tests.netlists import as_aig, random_circuit
from tests.programs import ALGEBRAS, HALF_ADDER, copies, literally

BY: list[Iterations] = ["depth", "log"]
CASES = [pytest.param(algebra, by, id=f"{algebra.name}-{by}") for algebra in ALGEBRAS for by in BY]
models = {id(algebra): ef.construct(algebra) for algebra in ALGEBRAS}


def drawn(algebra: ef.Algebra, seed: int, most: int = 16) -> Program:
    rng = np.random.default_rng(seed)
    return draw_program(algebra, int(rng.integers(1, most)), rng, depth=3)


def values(program: Program, by: Iterations) -> list[str]:
    found = run(program, models[id(program.algebra)].weights, iterations=by).values[0]
    return [program.algebra.values[v] for v in found.tolist()]


@pytest.mark.parametrize(("algebra", "by"), CASES)
def test_every_value_is_that_of_the_oracle(algebra, by):
    for seed in range(4):
        program = drawn(algebra, seed)
        assert values(program, by) == list(evaluate_program(program).values())


@pytest.mark.parametrize(("algebra", "by"), CASES)
def test_values_and_iterations_are_those_of_a_literal_run(algebra, by):
    model, some = models[id(algebra)], 0
    for seed in range(3):
        program = drawn(algebra, seed + 100)
        ran = run(program, model.weights, iterations=by)
        assert (values(program, by), ran.iterations) == literally(program, model, by)
        some += copies(program)
    assert some


@pytest.mark.parametrize(("algebra", "by"), CASES)
def test_a_statement_begins_when_its_last_name_is_known_and_takes_what_its_layer_takes(algebra, by):
    program = drawn(algebra, 7, most=40)
    found, known = (
        run(program, models[id(algebra)].weights, iterations=by),
        evaluate_program(program),
    )
    tokens = [algebra.token_ids[known[name]] for name in program.names]
    for i in range(len(program)):
        uses = program.uses(i).tolist()
        expression = program.expression(i, [tokens[name] for name in uses])
        by_layer = algebra.layer(by) == "depth"
        own = expression.depth if by_layer else strahler(expression)
        assert found.start[i] == max((found.end[name] for name in uses), default=0)
        assert found.end[i] - found.start[i] == max(own, 1 if uses else 0)
    assert found.iterations == max(found.end)


@pytest.mark.parametrize("by", BY)
def test_many_assignments_run_side_by_side_like_each_alone(by, monkeypatch):
    algebra, rng = ef.boolean(), np.random.default_rng(3)
    program = with_inputs(draw_program(algebra, 16, rng), 6)
    model = ef.construct(algebra)
    inputs = torch.from_numpy(rng.integers(0, 2, (8, 6)))
    together = run(program, model.weights, inputs, iterations=by)
    for row, found in zip(inputs, together.values, strict=True):
        named = {n: algebra.values[v] for n, v in zip(program.names, row.tolist(), strict=False)}
        want = evaluate_program(program, named)
        assert [algebra.values[v] for v in found.tolist()] == list(want.values())
    monkeypatch.setattr(wires, "TABLE_AT_ONCE", 3 * len(program.names))
    monkeypatch.setitem(wires.AT_ONCE, "cpu", 20)  # also one row, one assignment at a time
    apart = run(program, model.weights, inputs, iterations=by)
    assert torch.equal(apart.values, together.values)
    assert apart.iterations == together.iterations
    kept = run(program, model.weights, inputs, np.array([9, 2]), iterations=by)
    assert torch.equal(kept.values, together.values[:, [9, 2]])


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("bits", [wires.WHOLE, 0])
def test_statements_that_have_become_the_same_expression_are_run_once(by, bits, monkeypatch):
    rows = []

    def seen(domain, weights, ids, lengths, iterations):
        some = [tuple(part.tolist()) for part in ids.split(lengths.tolist())]
        assert not bits or len(some) == len(set(some))
        rows.extend(some)
        return values_of_rows(domain, weights, ids, lengths, iterations)

    monkeypatch.setattr(wires, "values_of_rows", seen)
    monkeypatch.setattr(wires, "WHOLE", bits)  # 0: none is short enough to be told by a number
    rng = np.random.default_rng(3)
    program = with_inputs(draw_program(ef.arithmetic(), 40, rng, depth=1), 6)
    inputs = torch.from_numpy(rng.integers(0, 3, (20, 6)))
    found = run(program, ef.construct(ef.arithmetic()).weights, inputs, iterations=by).values
    wanted = [
        program.expression(i, (row[program.uses(i)] + FIRST_VALUE).tolist()).ids
        for row in found.numpy()
        for i in range(len(program))
    ]
    assert set(rows) == set(map(tuple, wanted))
    assert bits or len(rows) == len(wanted)


def with_inputs(program: Program, count: int) -> Program:
    """A program in which those of the first names that use no others are inputs."""
    order = np.argsort(program.levels, kind="stable")
    place = np.argsort(order)
    chosen = order[count:]
    return Program(
        program.domain,
        tuple(program.names[i] for i in order),
        count,
        np.concatenate([program.right_side(i) for i in chosen]),
        program.lengths[chosen],
        place[np.concatenate([program.uses(i) for i in chosen])],
        (len(program.names) - 1,),
    )


def test_a_value_goes_to_every_use_of_its_name_and_to_no_other():
    algebra = ef.arithmetic()
    text = "a=3;b=4;p=(a+(a*(a+a)));q=b;r=((a+b)*(b+a));z=(q+(q+(r+p)));"
    assert ef.construct(algebra).run_program(text).values == dict(
        zip("abpqrz", "341498", strict=True)
    )


def test_a_copy_takes_one_iteration_and_a_value_none():
    model = ef.construct(ef.boolean())
    assert model.run_program("a=1;").iterations == 0
    assert model.run_program("c=b;b=a;a=1;").iterations == 2
    assert model.run_program("a=1;b=0;y=((~a)&(~b));", iterations="log").iterations == 2


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 2**32), st.sampled_from(ALGEBRAS), st.sampled_from(BY))
def test_random_programs(seed, algebra, by):
    program = drawn(algebra, seed)
    assert values(program, by) == list(evaluate_program(program).values())


def test_weights_that_leave_no_value_name_the_statement():
    model = ef.construct(ef.boolean(), "table")
    weights = model.weights
    zero = replace(weights.f, outputs=weights.f.outputs * 0 - 1)
    broken = replace(weights, f=zero)
    with pytest.raises(ValueError, match=r"carry: no single value is left: the weights"):
        run(ef.parse_program(ef.boolean(), HALF_ADDER), broken)


def test_a_program_needs_values_for_its_inputs():
    program = with_inputs(draw_program(ef.boolean(), 5, np.random.default_rng(0)), 2)
    with pytest.raises(ValueError, match="expected values of 2 inputs, found 0 a row"):
        run(program, ef.construct(ef.boolean()).weights)
    assert WIRE < -2  # no id that means anything else


@pytest.mark.parametrize("seed", range(10))
def test_a_netlist_takes_an_iteration_a_level_by_the_logarithm_and_two_by_the_depth(seed):
    """Beside one for outputs that are inverted."""
    data = as_aig(random_circuit(Random(seed), 5, 6 * seed, 4))
    netlist, weights = read_aiger(data, "c.aig"), ef.construct(ef.boolean()).weights
    inputs = np.zeros((1, 5), dtype=np.int64)
    taken = [run(netlist.program, weights, inputs, iterations=by).iterations for by in BY]
    least, most = netlist.levels, 2 * netlist.levels + 1
    assert least <= taken[BY.index("log")] <= least + 1
    assert least <= taken[BY.index("depth")] <= most
