"""Many short texts on a GPU: rows of one buffer, each with a code.

As in `test_engine_gpu.py`, the kernels' source is compiled by g++ where there is no GPU: with the
GPU's sizes, and with small ones, so that short rows already lie across pieces and blocks.
"""

import importlib.util
from functools import cache
from random import Random

import numpy as np
import pytest
import torch
from torch import Tensor

from exactformer.api import construct
from exactformer.domains.algebra import CLOSE, OPEN, Algebra, Operator
from exactformer.domains.catalog import arithmetic, boolean, listops
from exactformer.domains.errors import ExpressionError
from exactformer.domains.reference import evaluate
from exactformer.domains.syntax import parse
from exactformer.engine.automaton import SpanAutomaton
from exactformer.engine.gpu_rows import LONGEST, GpuRows, RowLayout
from exactformer.engine.read_off import read_off
from exactformer.engine.row_tables import LEFT, MALFORMED, RowTables
from tests.algebras import EVERY, TASKS
from tests.automata import automaton_of, run
from tests.cases import CASES
from tests.emulated import COMPILER, Emulator
from tests.fuzz import Fuzzer
from tests.texts import SHAPES, spoil, tree

GPU = torch.cuda.is_available() and importlib.util.find_spec("cupy") is not None
SIZES = {
    "emulated": {"spine": 64},
    "emulated small": {"piece": 16, "threads": 8, "height": 8, "spine": 4},
}
PLACES = [
    pytest.param(
        name,
        marks=pytest.mark.skipif(
            not (GPU if name == "GPU" else COMPILER),
            reason="no CUDA GPU with CuPy" if name == "GPU" else "no g++",
        ),
    )
    for name in (*SIZES, "GPU")
]


@pytest.fixture(scope="module", params=PLACES)
def place(request) -> str:
    return request.param


@cache
def automaton_for(algebra: Algebra) -> SpanAutomaton:
    return read_off(algebra, construct(algebra).weights)


@cache
def reader(place: str, algebra: Algebra) -> GpuRows:
    return reader_for(place, algebra, automaton_for(algebra))


def reader_for(place: str, algebra: Algebra, automaton: SpanAutomaton) -> GpuRows:
    if place == "GPU":
        return GpuRows(automaton, algebra)
    layout = RowLayout(RowTables(automaton, algebra), **SIZES[place])
    launch = Emulator(layout.options, layout.source)
    return GpuRows(automaton, algebra, device="cpu", launch=launch, layout=layout)


def as_bytes(text: str, place: str) -> Tensor:
    data = torch.tensor(list(text.encode()), dtype=torch.uint8)
    return data.cuda() if place == "GPU" else data


def codes(trial: GpuRows, place: str, rows: list[str], separator: str = "\n") -> list[int]:
    """Of rows with a separator after each, and of the same without the last one."""
    text = separator.join([*rows, ""])
    found = trial.values(as_bytes(text, place), ord(separator)).tolist()
    if rows and rows[-1]:
        data = as_bytes(" " + text[:-1], place)[1:]  # which does not lie as the kernels want it
        assert trial.values(data, ord(separator)).tolist() == found
    return found


def expected(trial: GpuRows, automaton: SpanAutomaton, ids: list[int]) -> int:
    """The code of a row whose tokens are symbols, by the automaton's definition."""
    rises = [(token == OPEN) - (token == CLOSE) for token in ids]
    heights = np.cumsum([0, *rises])
    if heights[-1] == 0 == heights.min() and heights.max() >= trial.layout.height:
        return LEFT
    value = run(automaton, ids)
    return MALFORMED if value is None else value


@pytest.mark.parametrize("algebra", EVERY, ids=lambda algebra: algebra.name)
def test_shapes_and_slips(place, algebra):
    """Every row, right or not, among others: by the automaton's definition."""
    if place == "emulated" and algebra not in TASKS:
        pytest.skip("the small sizes do, for other algebras")
    trial, rng = reader(place, algebra), Random(algebra.name)
    right = [tree(algebra, s, n, rng) for s in SHAPES for n in (1, 1, 2, 3, 4, 7, 9, 25, 60)]
    rows = [ids for row in right for ids in (row, spoil(algebra, row, rng))]
    rng.shuffle(rows)
    spelt = [
        "".join(algebra.vocabulary[i] + rng.choice([" ", " ", "\t ", "\r"]) for i in ids)
        for ids in rows
    ]
    found = codes(trial, place, spelt)
    assert found == [expected(trial, automaton_for(algebra), ids) for ids in rows]
    assert LEFT in found
    assert found.count(MALFORMED) > 20


def has_reason(trial: GpuRows, text: str) -> bool:
    """To be left to others: brackets of both kinds, a mark that breaks off, white space that is
    more than one byte.
    """
    mixed = set("()") & set(text) and set("[]") & set(text)
    without_lexer = not trial.layout.tables.has_lexer and not text.isascii()
    return bool(mixed) or without_lexer or "--" in text.replace("-->", "")


@pytest.mark.parametrize("algebra", EVERY, ids=lambda algebra: algebra.name)
def test_random_and_damaged_texts(place, algebra):
    """As the parser and the oracle read them; what is left to these has a reason."""
    if place == "emulated" and algebra not in TASKS:
        pytest.skip("the small sizes do, for other algebras")
    trial, fuzzer = reader(place, algebra), Fuzzer(algebra, seed=9)
    texts = [text for text in (fuzzer.text() for _ in range(500)) if "\0" not in text]
    found = codes(trial, place, texts, "\0")
    lines = [text.replace("\n", " ") for text in texts]
    assert codes(trial, place, lines) == found
    for text, code in zip(texts, found, strict=True):
        if code == LEFT:
            assert has_reason(trial, text), text
            continue
        try:
            value = algebra.values.index(evaluate(parse(algebra, text)))
        except ExpressionError:
            value = MALFORMED
        assert code == value, text
    assert {*found, LEFT} == {*range(len(algebra.values)), MALFORMED, LEFT}


def test_every_case(place):
    for task in TASKS:
        cases = [case for case in CASES if case.domain == task.name]
        found = codes(reader(place, task), place, [case.text for case in cases], "\0")
        for case, code in zip(cases, found, strict=True):
            undecided = has_reason(reader(place, task), case.text)
            assert code == (LEFT if undecided else task.values.index(case.value)), case


def test_blank_rows(place):
    for algebra in (arithmetic(), boolean(), listops()):
        trial = reader(place, algebra)
        for rows in (
            [""],
            [" "],
            ["", "\r", " \t", "1", "", "\r"],
            [""] * 20_000,
            ["1", " " * 300],
        ):
            wanted = [algebra.values.index("1") if row == "1" else MALFORMED for row in rows]
            assert codes(trial, place, rows) == wanted
        assert trial.values(as_bytes("", place)).tolist() == []


def test_rows_end_where_files_end_them(place):
    trial = reader(place, arithmetic())
    assert codes(trial, place, ["(1+2)\r", "(3*3)\r", "4"]) == [3, 9, 4]
    assert codes(trial, place, ["(1\n+2)", "(3*3)\n"], "\0") == [3, 9]
    assert codes(trial, place, ["(1", "+2)", "(3*3)"]) == [MALFORMED, MALFORMED, 9]


COMBS = {"arithmetic": [("(1+", ")"), ("(", "+1)")], "listops": [("(SM 1 ", ")"), ("[SM ", " 1]")]}


def test_deep_and_long_rows_are_left_to_others(place):
    for algebra in (arithmetic(), listops()):
        trial = reader(place, algebra)
        height, reach = trial.layout.height, LONGEST + trial.layout.piece
        for left, right in COMBS[algebra.name]:
            combs = [
                left * n + "1" + right * n for n in (height - 1, height, height + 1, 3 * height)
            ]
            found = codes(trial, place, ["1", *combs, "2"])
            assert found == [1, height % 10, LEFT, LEFT, LEFT, 2]
            spoilt = [comb[:-1] for comb in combs] + [comb + comb[-1] for comb in combs]
            assert codes(trial, place, spoilt) == [MALFORMED] * len(spoilt)
        rows = [" " * n + "3" for n in (LONGEST - 40, reach + 40, 3 * reach)]
        found = codes(trial, place, ["1", rows[0], "2", rows[1], rows[2], "4", rows[2], "5"])
        assert found == [1, 3, 2, LEFT, LEFT, 4, LEFT, 5]


def test_many_spellings(place):
    """Long ones and look-alikes, with a lexer too large for shared memory."""
    values = tuple(f"a{i}{'b' * (i % 24)}" for i in range(40))
    first = Operator.from_rule("first", [2], lambda a, b: a, values, ordered=True)
    spellings = {s: "first" for s in ("the_very_longest_of_all", "<<", "<-", "<<==")}
    algebra = Algebra("many", values, (first,), "prefix", spellings)
    automaton, rng = automaton_of(algebra), Random(2)
    trial = reader_for(place, algebra, automaton)
    assert not trial.layout.tables.constants["LEXER_SHARED"]
    ids = [tree(algebra, "mixed", size, rng) for size in (1, 2, 4, 6) * 5]
    texts = [
        " ".join(rng.choice(["first", *spellings]) if s == "first" else s for s in row)
        for row in ([algebra.vocabulary[i] for i in some] for some in ids)
    ]
    assert codes(trial, place, texts) == [run(automaton, row) for row in ids]
    wrong = [text.replace("first", "firs").replace("very", "vary") + "1" for text in texts]
    assert codes(trial, place, wrong) == [MALFORMED] * len(texts)
    marks = ["(<<a0 a0)", "(<-a0 a0)", "(<-<-a0 a0)", "(< a0 a0)", "(<<- a0 a0)", "(<<= a0 a0)"]
    assert codes(trial, place, marks) == [0, 0, *[MALFORMED] * 3, LEFT]
    spaced = ["(<<\u3000a0\u2009\u00a0a0\u2028)", "(<< a0\u200b a0)", "(<< a0 a0)é"]
    assert codes(trial, place, spaced) == [0, MALFORMED, MALFORMED]


@pytest.mark.parametrize(("spare", "cell_bytes"), [(0, 2), (70_000, 4)])
def test_many_states(place, spare, cell_bytes):
    """Tables too large for shared memory; states that take two and four bytes."""
    algebra, rng = listops(4), Random(1)
    automaton = automaton_of(algebra)
    padded = SpanAutomaton(  # with states that nothing leads to
        np.pad(automaton.step, ((0, spare), (0, 0)), constant_values=-1),
        np.pad(automaton.value, (0, spare), constant_values=-1),
        np.zeros(len(automaton.step) + spare, dtype=np.int32),
        automaton.n_values,
    )
    trial = reader_for(place, algebra, padded)
    assert trial.layout.tables.table.itemsize == cell_bytes
    assert not trial.layout.tables.constants["TABLE_SHARED"]
    rows = [tree(algebra, shape, size, rng) for shape in SHAPES for size in (2, 5, 12)]
    texts = [" ".join(algebra.vocabulary[i] for i in row) for row in rows]
    assert codes(trial, place, texts) == [expected(trial, automaton, row) for row in rows]


def test_symbols_that_bytes_do_not_tell_apart_are_left_to_others(place):
    values = ("é", "f")
    swap = Operator.from_rule("not", [1], lambda a: values[a == "é"], values)
    algebra = Algebra("accents", values, (swap,), "prefix")
    trial = reader_for(place, algebra, automaton_of(algebra))
    assert codes(trial, place, ["(not é)", "f", ""]) == [LEFT] * 3
