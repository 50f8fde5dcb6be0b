"""Plain notation on a GPU: long texts by kernels and by tensor operations, and rows.

The judge is the automaton's definition, and for spelt texts the parser and the oracle. Texts are
walks through the automaton: it says which tokens may stand where, and a shape how many are
parentheses. As in `test_engine_gpu.py`, the kernels are emulated where there is no GPU.
"""

from functools import cache
from itertools import product
from random import Random

import numpy as np
import pytest
import torch
from hypothesis import given, settings

import exactformer as ef
from exactformer.domains.algebra import CLOSE, FIRST_VALUE, OPEN
from exactformer.engine import composed, device
from exactformer.engine.automaton import REFUSED, TOP
from exactformer.engine.build import algebra_values
from exactformer.engine.device import DeviceEngine
from exactformer.engine.gpu_rows import GpuRows, RowLayout
from exactformer.engine.plain import plain_automaton
from exactformer.engine.row_tables import LEFT, MALFORMED, RowTables
from exactformer.engine.tensor import LONGEST, TensorEngine
from tests.emulated import Emulator
from tests.plain_algebras import random_algebras
from tests.test_engine import complaint
from tests.test_engine_gpu import GPU, GpuEngine, as_ids, engine_for, place, value_of  # noqa: F401
from tests.test_gpu_rows import SIZES as SIZES_OF_ROWS
from tests.test_gpu_rows import codes
from tests.test_plain_engine import EVERY
from tests.texts import spoil

SHAPES = {  # chances of `(` for an operand, of `)` after one, and of one prefix operator more
    "a run": (0, 0, 0.2),
    "prefix operators": (0, 0, 0.98),
    "nested": (0.95, 0.02, 0.1),
    "comb": (0.5, 0.05, 0.2),
    "pairs": (0.8, 0.9, 0.1),
    "bushy": (0.4, 0.4, 0.2),
    "groups": (0.1, 0.2, 0.3),
}
automaton_for = cache(lambda algebra: plain_automaton(algebra, algebra_values(algebra)))


@cache
def engine(where: str, algebra: ef.Algebra) -> GpuEngine:
    return engine_for(where, algebra, automaton_for(algebra))


def walk(algebra: ef.Algebra, shape: str, size: int, rng: Random) -> list[int]:
    """A text of about this many tokens, and of what closes its parentheses."""
    step = automaton_for(algebra).step
    opens, closes, prefixes = SHAPES[shape]
    ids: list[int] = []
    around: list[int] = []
    state = TOP
    while True:
        operators = [token for token in algebra.operator_ids if step[state, token] != REFUSED]
        if step[state, FIRST_VALUE] != REFUSED:
            if len(ids) < size and rng.random() < opens:
                ids.append(OPEN)
                around.append(state)
                state = automaton_for(algebra).start
                continue
            is_prefix = operators and len(ids) < size and rng.random() < prefixes
            token = rng.choice(operators if is_prefix else algebra.value_ids)
        elif len(ids) >= size and not around:
            return ids
        elif around and rng.random() < (0.5 if len(ids) >= size else closes):
            token = FIRST_VALUE + int(automaton_for(algebra).value[state])
            ids.append(CLOSE)
            state = step[around.pop(), token]
            continue
        else:
            token = rng.choice(operators)
        ids.append(token)
        state = step[state, token]


@pytest.mark.parametrize("algebra", EVERY, ids=lambda a: a.name)
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_and_slips(place, algebra, shape):  # noqa: F811
    rng, automaton = Random(f"{algebra.name} {shape}"), automaton_for(algebra)
    by_tensors, spoilt = TensorEngine(automaton, algebra), 0
    for size in (1, 3, 40, 900) if place == "emulated" else (1, 2, 5, 20, 70, 300, 900):
        ids = walk(algebra, shape, size, rng)
        for text in (ids, *(spoil(algebra, ids, rng) for _ in range(3))):
            expected = automaton.run(text)
            assert engine(place, algebra).value_of_ids(as_ids(text, place)) == expected
            assert by_tensors.value_of_ids(as_ids(text, "cpu")) == expected or size >= LONGEST / 2
            spoilt += expected is None
    assert spoilt > 3


@pytest.mark.parametrize("shape", SHAPES)
def test_many_tiles_and_rounds(place, shape):  # noqa: F811
    """Runs and chains over several tiles, and parentheses of different tiles."""
    rng = Random(shape)
    for algebra in EVERY[:2]:
        for size in (3_000, 60_000):
            ids = walk(algebra, shape, size, rng)
            trial = engine(place, algebra)
            assert trial.value_of_ids(as_ids(ids, place)) == automaton_for(algebra).run(ids)
            ids.insert(len(ids) // 2, OPEN)
            assert trial.value_of_ids(as_ids(ids, place)) is None


@pytest.mark.parametrize("algebra", EVERY, ids=lambda a: a.name)
def test_spelt_and_damaged_texts(place, algebra):  # noqa: F811
    """Every spelling, with spaces and without: the parser's value, and nothing for its errors."""
    rng, decided = Random(algebra.name), 0
    spellings: dict[int, list[str]] = {}
    for spelling, token in algebra.token_ids.items():
        spellings.setdefault(token, []).append(spelling)
    for shape in SHAPES:
        for blanks in ([""], [" "], ["", " ", "\n", "\t  ", " " * 40]):
            ids = walk(algebra, shape, rng.choice((5, 40, 200)), rng)
            words = [rng.choice(spellings[token]) for token in ids]
            if rng.random() < 0.3:
                words[rng.randrange(len(words))] = rng.choice(["x", "é", "(", "1 1", "~", ""])
            text = "".join(word + rng.choice(blanks) for word in words)
            found = value_of(engine(place, algebra), text, place)
            try:
                expected = algebra.values.index(ef.oracle(ef.parse(algebra, text)))
            except ef.ExpressionError:
                expected = None
            marks_touch = blanks != [" "]  # of which the parser finds the longest
            assert found == expected or (found is None and marks_touch)
            decided += found == expected
    assert decided >= 16


def test_groups_without_end_and_without_need(place):  # noqa: F811
    deep = 700
    for text, value in (
        ("(" * deep + "7" + ")" * deep, 7),
        ("(" * deep + "1+2*3" + ")" * deep + "*(((3)))", 1),
        ("(" * deep + "1" + "+1)" * deep, (1 + deep) % 10),
        ("(1+" * deep + "1" + ")" * deep, (1 + deep) % 10),
        ("1+2*(" * deep + "1" + ")" * deep + "+3", (pow(2, deep + 1, 10) - 1 + 3) % 10),
        ("+".join(["((1)*(2+1))"] * deep), 3 * deep % 10),
        ("*".join(["3"] * 4001), 3),
        (" ", None),
        ("()", None),
        ("1+", None),
        ("1)+(2", None),
        ("+".join(["1"] * 5000) + ")", None),
    ):
        trial = engine(place, EVERY[1])
        assert value_of(trial, text, place) == value, text[:50]


@given(random_algebras())
@settings(max_examples=20)
def test_runs_are_as_good_as_their_shortest(algebra):
    spans = automaton_for(algebra).spans
    tokens = len(algebra.vocabulary)
    table = spans.total(tokens, tokens + 1)
    runs = composed.runs(table, tokens, tokens)
    assert runs
    assert not runs.before[:, [OPEN, CLOSE]].min(initial=0)
    for words in product(range(FIRST_VALUE, tokens), repeat=4):
        run = 0
        for token in reversed(words):
            run = int(runs.before[run, token])
        shortest = runs.shortest[run, : runs.shortest[run, -1]].tolist()
        assert len(shortest) <= len(words)
        for state in range(len(table)):
            ends = []
            for some in (words, shortest):
                after = state
                for token in some:
                    after = table[after, token] if token < tokens else len(table) - 1
                ends.append(after)
            assert ends[0] == ends[1]
        assert spans.run([OPEN, *words, CLOSE]) == automaton_for(algebra).run(words)


def test_where_runs_are_too_many_long_ones_are_left_to_others(place, monkeypatch):  # noqa: F811
    algebra = EVERY[0]
    monkeypatch.setattr(composed, "MOST_RUNS", 10)
    trial = engine_for(place, algebra, automaton_for(algebra))
    assert trial.layout.runs is None
    for size, decided in ((12, True), (30_000, False)):
        ids = [FIRST_VALUE, *[algebra.first_operator, FIRST_VALUE] * (size // 2)]
        assert (trial.value_of_ids(as_ids(ids, place)) == FIRST_VALUE - 2) == decided


@pytest.mark.parametrize("algebra", EVERY, ids=lambda a: a.name)
def test_errors_are_those_of_the_parser(algebra, monkeypatch):
    monkeypatch.setattr(device, "WORTH_A_LAUNCH", 1)
    found, rng = DeviceEngine(automaton_for(algebra), algebra, "cpu"), Random(4)
    if GPU:
        found = DeviceEngine(automaton_for(algebra), algebra, "cuda")
    words = [*algebra.token_ids, "", " ", "\t", "x", "é", "12", "∧"]
    for expression in ef.draw(algebra, 5, 30, np.random.default_rng(8)):
        text = str(expression)
        for _ in range(3):
            wrong = complaint(lambda t: ef.parse(algebra, t), text)
            assert complaint(found.value, text) == wrong
            if wrong is None:
                assert found.value(text) == ef.oracle(ef.parse(algebra, text))
            at = rng.randrange(len(text) + 1)
            text = text[:at] + rng.choice(words) + text[at + rng.choice([0, 1, 2]) :]


@pytest.mark.parametrize("algebra", EVERY, ids=lambda a: a.name)
def test_rows(place, algebra):  # noqa: F811
    automaton, rng = automaton_for(algebra), Random(algebra.name)
    if place == "GPU":
        trial = GpuRows(automaton, algebra)
    else:
        layout = RowLayout(RowTables(automaton, algebra), **SIZES_OF_ROWS[place])
        launch = Emulator(layout.options, layout.source)
        trial = GpuRows(automaton, algebra, device="cpu", launch=launch, layout=layout)
    sizes = (1, 2, 3, 5, 9, 20, 60)
    right = [walk(algebra, shape, size, rng) for shape in SHAPES for size in sizes]
    rows = [ids for row in right for ids in (row, spoil(algebra, row, rng))]
    rng.shuffle(rows)
    texts = [
        "".join(algebra.vocabulary[i] + rng.choice([" ", " ", "\t "]) for i in ids) for ids in rows
    ]
    for ids, code in zip(rows, codes(trial, place, texts), strict=True):
        heights = np.cumsum([0, *((i == OPEN) - (i == CLOSE) for i in ids)])
        value = automaton.run(ids)
        if heights.max() >= trial.layout.height and heights[-1] == 0 <= heights.min():
            assert code == LEFT
        else:
            assert code == (MALFORMED if value is None else value)


@pytest.mark.skipif(not GPU, reason="no CUDA GPU with CuPy")
def test_models_on_a_gpu(monkeypatch):
    model = ef.construct(ef.arithmetic_plain()).to("cuda")
    text = "+".join(["1*3", "(1+1)"] * 1_500_000)
    asked: list[int] = []
    fast = model.fast_engine("fast")
    assert isinstance(fast, DeviceEngine)
    parallel = fast.parallel
    original = parallel.value_of_bytes
    monkeypatch.setattr(
        parallel, "value_of_bytes", lambda data: asked.append(len(data)) or original(data)
    )
    assert model.evaluate(text, "fast") == "0"
    assert asked == [len(text)]
    assert torch.cuda.max_memory_allocated() > len(text)
    assert model.evaluate(["1+2*3", "(1+2)*3", "((4))"] * 600_000)[:3] == ["7", "9", "4"]
