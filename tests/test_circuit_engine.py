"""The engine on words of assignments, the transformer and a simulator say the same of circuits."""

import os
from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch

from exactformer.domains.algebra import Algebra, Operator
from exactformer.domains.catalog import arithmetic, boolean, boolean_plain
from exactformer.domains.formats.netlists import read_netlist
from exactformer.domains.program_syntax import parse_program
from exactformer.domains.reference import evaluate
from exactformer.domains.syntax import parse
from exactformer.engine.build import algebra_values, build_automaton
from exactformer.engine.circuit_gates import operator_tables
from exactformer.engine.circuits import WAYS, CircuitEngine, pack, unpack
from exactformer.engine.circuits_gpu import OPTIONS, GpuCircuitEngine
from exactformer.engine.layout import source
from exactformer.evaluation.circuits import Circuit
from exactformer.evaluation.values import Evaluator
from tests import aiger_simulator, blif_simulator
from tests.emulated import COMPILER, Emulator
from tests.netlists import as_aag, as_aig, as_blif, random_circuit, random_covers


def engine_of(program, algebra, kind: Any = CircuitEngine, *more) -> Any:
    return kind(program, build_automaton(algebra, algebra_values(algebra)), algebra, *more)


def outputs(program, algebra) -> list[list[int]]:
    """The value indices of the outputs for every assignment, by the engine."""
    every = np.array([*product((0, 1), repeat=program.inputs)], dtype=np.uint8)
    every = every.reshape(1 << program.inputs, program.inputs)
    return unpack(engine_of(program, algebra).run(pack(every)), len(every)).tolist()


@pytest.mark.parametrize("engine", ["fast", "depth", "log"])
@pytest.mark.parametrize("weights", ["constructed", "boolean/7520"])
def test_random_netlists(tmp_path, engine, weights):
    rng, numbers = Random(0), np.random.default_rng(0)
    evaluator = Evaluator(boolean(), weights)
    if engine != "fast":
        evaluator = Evaluator(boolean(), weights, "model", engine)
    for number in range(6):
        circuit = random_circuit(rng, rng.randrange(1, 9), rng.randrange(40), 5)
        writers = [as_aig, as_aag, lambda c: as_aag(c, rng=rng), lambda c: as_blif(c, rng)]
        path = tmp_path / "circuit"
        path.write_bytes(writers[number % len(writers)](circuit))
        bits = numbers.integers(0, 2, (70, len(circuit.inputs)), dtype=np.uint8)
        found = Circuit(read_netlist(path), evaluator).outputs(bits)
        np.testing.assert_array_equal(found, aiger_simulator.simulate(circuit, bits))


def test_random_covers(tmp_path):
    rng, path = Random(1), tmp_path / "circuit"
    for _ in range(100):
        path.write_bytes(random_covers(rng, rng.randrange(7), rng.randrange(1, 20), 4))
        netlist = read_netlist(path)
        every = np.array([*product((0, 1), repeat=len(netlist.inputs))], dtype=np.uint8)
        wanted = blif_simulator.simulate(blif_simulator.read(path.read_bytes()), every)
        found = Circuit(netlist, Evaluator(boolean())).outputs(every)
        np.testing.assert_array_equal(found, wanted)


def test_the_published_circuits():
    folder = os.environ.get("EXACTFORMER_DATA")
    if not folder:
        pytest.skip("EXACTFORMER_DATA does not name the folder of the published files")
    files = sorted(Path(folder, "epfl").glob("*.aig"))
    assert len(files) == 10
    for path in files:
        netlist, circuit = read_netlist(path), aiger_simulator.read(path.read_bytes())
        rng = np.random.default_rng(0)
        bits = rng.integers(0, 2, (200, len(circuit.inputs)), dtype=np.uint8)
        found = Circuit(netlist, Evaluator(boolean())).outputs(bits)
        np.testing.assert_array_equal(found, aiger_simulator.simulate(circuit, bits))


def test_every_table_has_a_way():
    """A gate of two wires depends on both; one that depends on fewer has one wire twice."""
    tables = np.arange(16, dtype=np.uint8)
    both = [t for t in tables.tolist() if {t & 3 ^ t >> 2, t & 5 ^ t >> 1 & 5} & {0} == set()]
    assert len(both) == 10
    assert all(WAYS[t] < 16 for t in [*both, 0, 15, 5, 10])
    assert (WAYS[[3, 12]] == 255).all()


STATEMENTS = [
    "y=(a&(b|(c&(d|(~(a&(c|e)))))));",
    "y=((a&b)|((c&d)|(a&d)));",
    "y=(((~a)&b)|(a&(~b)));",
    "y=(a|(~a));",
    "y=((a&0)|(b&1));",
    "y=a;",
    "y=(1&(~0));z=(y&y);w=z;",
    "y=(x|a);x=(~z);z=(a&b);",
]


@pytest.mark.parametrize("text", STATEMENTS)
@pytest.mark.parametrize("plain", [False, True])
def test_statements_of_any_number_of_wires(text, plain):
    algebra = boolean_plain() if plain else boolean()
    if plain:
        text = text.replace("(b|(c&(d|(~(a&(c|e))))))", "(b|c&(d|~(a&(c|e))))")
    compare_with_the_oracle(algebra, text)


def compare_with_the_oracle(algebra, text):
    """Every assignment of the names a to e, as inputs; the oracle gets them as constants."""
    names = [name for name in "abcde" if name in text]
    program = with_inputs(algebra, text, names)
    values = algebra.values
    rows = product(range(2), repeat=len(names))
    for row, found in zip(rows, outputs(program, algebra), strict=True):
        known: dict[str, Any] = dict(zip(names, (values[i] for i in row), strict=True))
        waiting = dict(line.split("=") for line in text.split(";")[:-1])
        while waiting:
            for name, side in [*waiting.items()]:
                words = [known.get(w, w) for w in (side.split() if " " in side else side)]
                if not any(word in waiting for word in words):
                    known[name] = evaluate(parse(algebra, " ".join(words)))
                    del waiting[name]
        wanted = [known[program.names[i]] for i in program.outputs]
        assert [values[i] for i in found] == wanted, row


def with_inputs(algebra, text, names) -> Any:
    """The program of a text in which these names are inputs."""
    constants = "".join(f"{name}={algebra.values[0]};" for name in names)
    program = parse_program(algebra, constants + text)
    count = len(names)
    return replace(
        program,
        inputs=program.inputs + count,
        ids=program.ids[count:].copy(),
        lengths=program.lengths[count:].copy(),
    ).with_outputs([line.split("=")[0] for line in text.split(";")[:-1]])


@pytest.mark.parametrize("seed", range(5))
def test_operators_of_several_operands_and_any_tables(seed):
    rng = Random(seed)
    symbols = ("f", "t")

    def random_operator(arity: int) -> Operator:
        table = rng.getrandbits(1 << arity)

        def value(*operands: str) -> str:
            return symbols[table >> sum((v == "t") << i for i, v in enumerate(operands)) & 1]

        return Operator.from_rule(f"op{arity}", [arity], value, symbols, ordered=True)

    operators = tuple(random_operator(arity) for arity in (1, 2, 3, 4))
    algebra = Algebra("tables", symbols, operators, "prefix")
    three = "( op3 a b c )"
    texts = [
        f"y= {three} ;",
        "y= ( op4 a b c d ) ;",
        "y= ( op4 ( op1 a ) ( op2 b c ) d ( op3 a f ( op2 a b ) ) ) ;",
        f"y= ( op2 {three} ( op4 t ( op3 a a b ) c c ) ) ;",
    ]
    for text in texts:
        compare_with_the_oracle(algebra, text)


def test_tables_are_those_of_the_weights():
    """An automaton of other weights is believed, so nothing here knows what an operator means."""
    algebra = boolean()
    truth = operator_tables(build_automaton(algebra, algebra_values(algebra)), algebra)

    first = algebra.first_operator
    other = {first: first + 1, first + 1: first, first + 2: first + 2}  # & and | exchanged

    def swapped(operator, keys):
        return algebra_values(algebra)(other[operator], keys)

    found = operator_tables(build_automaton(algebra, swapped), algebra)
    assert found[0, 2] == truth[1, 2] != truth[0, 2] == found[1, 2]


def test_other_algebras_are_refused():
    algebra = arithmetic(3)
    with pytest.raises(ValueError, match="two values, and 'arithmetic-mod-3' has 3"):
        engine_of(parse_program(algebra, "y=(1+2);"), algebra)


def test_weights_that_are_not_certified_are_refused(tmp_path):
    import exactformer as ef

    model = ef.load("boolean/7520")
    weights = model.weights
    weights = weights.__class__(**{**vars(weights), "W_Q": -weights.W_Q})
    path = tmp_path / "wrong.safetensors"
    ef.Model(boolean(), weights).save(path)
    file = tmp_path / "circuit"
    file.write_bytes(b"aag 3 2 0 1 1\n2\n4\n6\n6 2 4\n")
    circuit = Circuit(read_netlist(file), Evaluator(boolean(), path, "fast"))
    with pytest.raises(ValueError, match="needs weights that are certified exact"):
        circuit.outputs(np.zeros((1, 2), np.uint8))


def test_words_of_many_blocks(tmp_path):
    """Rows are used again, in blocks on several threads, and words end within a block."""
    circuit = random_circuit(Random(3), 20, 3000, 40, reach=60)
    path = tmp_path / "circuit"
    path.write_bytes(as_aig(circuit))
    program = read_netlist(path).program
    engine = engine_of(program, boolean())
    assert engine.schedule.count < 250
    bits = np.random.default_rng(0).integers(0, 2, (64 * 300 + 5, 20), dtype=np.uint8)
    found = 1 - unpack(engine.run(pack(1 - bits)), len(bits))
    np.testing.assert_array_equal(found, aiger_simulator.simulate(circuit, bits))


@pytest.mark.skipif(COMPILER is None, reason="no g++ on this machine")
def test_the_kernel_of_the_gpu(tmp_path):
    if torch.cuda.is_available():
        device, launch = "cuda", None
    else:
        device, launch = "cpu", Emulator(OPTIONS, source("circuits.cu"))
    circuit = random_circuit(Random(4), 10, 300, 10)
    path = tmp_path / "circuit"
    path.write_bytes(as_aig(circuit))
    program = read_netlist(path).program
    engine = engine_of(program, boolean(), GpuCircuitEngine, device, launch)
    engine.at_once = 300
    words = np.random.default_rng(0).integers(0, 2**64, (10, 700), dtype=np.uint64)
    np.testing.assert_array_equal(engine.run(words), engine_of(program, boolean()).run(words))
