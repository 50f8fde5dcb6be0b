"""The GPU engine's kernels, against the oracle, the automaton's definition and the tensor engine.

Where there is no GPU, the kernels' source is compiled by g++ and its threads run one after another
(`emulated.py`): with the sizes of the GPU, and with small ones, so that short texts already take
many blocks and rounds. On a GPU the same tests run there as well.
"""

import importlib.util
from functools import cache
from random import Random

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from torch import Tensor

from exactformer.api import construct
from exactformer.domains.algebra import CLOSE, OPEN, Algebra, Operator
from exactformer.domains.catalog import arithmetic, boolean, listops
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw
from exactformer.domains.syntax import parse
from exactformer.engine import composed, gpu
from exactformer.engine.automaton import SpanAutomaton
from exactformer.engine.device import DeviceEngine
from exactformer.engine.gpu import GpuEngine
from exactformer.engine.layout import Layout
from exactformer.engine.read_off import read_off
from exactformer.engine.tensor import TensorEngine
from tests.algebras import ALGEBRAS, TASKS
from tests.automata import automaton_of, run
from tests.cases import CASES
from tests.emulated import COMPILER, Emulator
from tests.test_engine_tensor import any_number_of_operands
from tests.texts import SHAPES, spoil, tree
from tests.trees import algebras_with_trees, symbols, value

GPU = torch.cuda.is_available() and importlib.util.find_spec("cupy") is not None
SIZES = {  # of chunks, and of the tree of least depths
    "emulated": {},
    "emulated small": {"team": 16, "first_chunk": 32, "fan": 4},
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
automaton_for = cache(automaton_of)


@pytest.fixture(scope="module", params=PLACES)
def place(request) -> str:
    return request.param


@cache
def engine(place: str, algebra: Algebra) -> GpuEngine:
    return engine_for(place, algebra, automaton_for(algebra))


def engine_for(place: str, algebra: Algebra, automaton: SpanAutomaton) -> GpuEngine:
    if place == "GPU":
        return GpuEngine(automaton, algebra)
    layout = Layout(automaton, **SIZES[place], pairing=1)
    layout.teams_at_once = lambda shared: 3  # so that blocks take several tiles
    found = GpuEngine(
        automaton, algebra, device="cpu", launch=Emulator(layout.options), layout=layout
    )
    found.processors = 1 + (place != "emulated")  # so that blocks wait for each other
    return found


def as_bytes(text: str, place: str) -> Tensor:
    data = torch.from_numpy(np.frombuffer(text.encode(), np.uint8).copy())
    return data.cuda() if place == "GPU" else data


def value_of(trial: GpuEngine, text: str, place: str) -> int | None:
    """Where it lies, and overwritten."""
    found = trial.value(as_bytes(text, place))
    assert trial.value_of_bytes(np.frombuffer(text.encode(), np.uint8)) == found
    return found


def as_ids(ids: list[int], place: str) -> Tensor:
    return torch.tensor(ids, dtype=torch.uint8, device="cuda" if place == "GPU" else "cpu")


def test_every_case(place):
    for case in CASES:
        algebra = next(task for task in TASKS if task.name == case.domain)
        found = value_of(engine(place, algebra), case.text, place)
        undecided = "\u00a0" in case.text or ("[" in case.text and "(" in case.text)
        assert found == (None if undecided else algebra.values.index(case.value)), case


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(drawn=algebras_with_trees())
def test_every_tree(place, drawn):
    algebra, expression = drawn
    text = " ".join(symbols(algebra, expression))
    found = value_of(engine(place, algebra), text, place)
    assert found == algebra.values.index(value(algebra, expression))


@pytest.mark.parametrize("algebra", ALGEBRAS, ids=lambda algebra: algebra.name)
def test_shapes_and_slips(place, algebra):
    """Malformed text is never given a value, and right text the right one."""
    automaton = automaton_for(algebra)
    by_tensors = TensorEngine(automaton, algebra)
    spoilt = 0
    for shape in SHAPES:
        rng = Random(f"{algebra.name} {shape}")
        for size in (1, 2, 20, 300) if place == "emulated" else (1, 2, 3, 7, 20, 60, 200, 700):
            ids = tree(algebra, shape, size, rng)
            for text in (ids, *(spoil(algebra, ids, rng) for _ in range(3))):
                expected = run(automaton, text)
                assert engine(place, algebra).value_of_ids(as_ids(text, place)) == expected
                assert by_tensors.value_of_ids(as_ids(text, "cpu")) == expected
                spoilt += expected is None
    assert spoilt > 20


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_automata_read_off_weights(place, task):
    trial = engine_for(place, task, read_off(task, construct(task).weights))
    for depth in (1, 4, 9, 14):
        for expression in draw(task, depth, 5, np.random.default_rng(depth)):
            found = value_of(trial, str(expression), place)
            assert found == task.values.index(evaluate(expression))


@pytest.mark.parametrize("shape", SHAPES)
def test_many_rounds(place, shape):
    """Enough tokens for several rounds of several blocks, with words and without."""
    rng = Random(shape)
    for algebra in (arithmetic(), listops()):
        ids = tree(algebra, shape, 100_000 if place == "GPU" else 12_000, rng)
        text = " ".join(algebra.vocabulary[i] for i in ids)
        expected = run(automaton_for(algebra), ids)
        assert value_of(engine(place, algebra), text, place) == expected
    assert engine(place, arithmetic()).rounds >= 2 + (place == "emulated small")


@pytest.mark.parametrize("shape", ["left", "right", "zigzag"])
def test_combs_within_tiles(place, shape):
    """Chains that begin and end in a tile: short ones, and some that joins leave to maps."""
    algebra, rng = arithmetic(), Random(shape)
    for size in (40, 150, 600, 2000):
        texts = [tree(algebra, shape, size, rng) for _ in range(8)]
        while len(texts) > 1:
            pairs = zip(texts[::2], texts[1::2], strict=True)
            texts = [[OPEN, *a, algebra.first_operator, *b, CLOSE] for a, b in pairs]
        expected = run(automaton_for(algebra), texts[0])
        assert engine(place, algebra).value_of_ids(as_ids(texts[0], place)) == expected is not None


def test_spaces_and_words_anywhere(place):
    """Runs of blanks longer than a chunk, and words over the ends of chunks and pieces."""
    rng = Random(5)
    for algebra, spellings in (
        (boolean(), {"1": ["1", "TRUE"], "0": ["0", "FALSE"], "&": ["AND", "&", "∧"]}),
        (listops(), {}),
    ):
        for _ in range(5):
            ids = tree(algebra, "mixed", 80, rng)
            spelt = [algebra.vocabulary[i] for i in ids]
            words = [rng.choice(spellings.get(s, [s])) for s in spelt]
            text = "".join(w + rng.choice([" ", "\n", "\t ", " " * 200]) for w in words)
            expected = algebra.values.index(evaluate(parse(algebra, text)))
            assert value_of(engine(place, algebra), text, place) == expected
            assert engine(place, algebra).value(as_bytes(" " + text, place)[1:]) == expected


def test_nothing_is_written_behind_an_array(place, monkeypatch):
    """Where a text ends near the end of a tile, for one tile, or a few."""
    behind, mark, made = 64, 0xAB, []

    class Marked:
        """torch, but that each new array has marks behind it."""

        def __getattr__(self, name):
            return getattr(torch, name)

        def empty(self, count, *, dtype, device):
            size = count * dtype.itemsize
            room = torch.full(
                (-(-size // 16) * 16 + behind,), mark, dtype=torch.uint8, device=device
            )
            made.append(room[size:])
            return room[:size].view(dtype)

    monkeypatch.setattr(gpu, "torch", Marked())
    for algebra in (arithmetic(), listops()):
        trial = engine(place, algebra)
        tile = trial.layout.tile
        for length in (1, tile - 13, tile - 1, tile, tile + 1, 2 * tile, 3 * tile - 1, 5 * tile):
            text = algebra.values[3].ljust(length)
            assert value_of(trial, text, place) == 3
        assert made
        assert all(bool((marks == mark).all()) for marks in made)
        made.clear()


def test_many_spellings(place):
    """Long ones and look-alikes, in a lexicon too large for shared memory."""
    values = tuple(f"a{'b' * (i % 14)}{i}"[-16:] for i in range(230))
    first = Operator.from_rule("first", [2], lambda a, b: a, values, ordered=True)
    algebra = Algebra("many", values, (first,), "prefix", {"the_very_longest": "first"})
    automaton, rng = automaton_of(algebra), Random(2)
    trial = engine_for(place, algebra, automaton)
    assert trial.words.readable
    for _ in range(5):
        ids = tree(algebra, "mixed", 60, rng)
        spelt = [algebra.vocabulary[i] for i in ids]
        text = " ".join(
            rng.choice(["first", "the_very_longest"]) if s == "first" else s for s in spelt
        )
        assert value_of(trial, text, place) == run(automaton, ids) is not None
        for wrong in (text.replace("first", "firs"), text.replace("very", "vary"), text + "1"):
            if wrong != text:
                assert value_of(trial, wrong, place) is None


def test_more_spellings_than_nodes_can_be_numbered(place):
    """Then no text by words is decided here; with somewhat fewer, it is."""
    rng = Random(3)
    values = ("v0", "v1", "v2")
    for count, decided in ((500, True), (900, False)):
        words = ["".join(rng.choices("abcdefgh", k=15)) for _ in range(count)]
        names = {word: rng.choice(values) for word in words}
        first = Operator.from_rule("first", [2], lambda a, b: a, values, ordered=True)
        algebra = Algebra("named", values, (first,), "prefix", names)
        trial = engine_for(place, algebra, automaton_of(algebra))
        assert trial.words.readable
        for name in rng.sample(sorted(names), 10):
            found = value_of(trial, f"(first {name} v0)", place)
            assert found == (values.index(names[name]) if decided else None)


@pytest.mark.parametrize("count", [2, 14, 240, 300])
def test_sizes_are_found_for_any_number_of_values(count):
    """Of the kernels that an engine chooses by itself; with 300 it reads no words."""
    values = tuple(f"v{i}" for i in range(count))
    same = Operator.from_rule("same", [1], lambda a: a, values)
    algebra = Algebra("many", values, (same,), "prefix")
    made = GpuEngine(automaton_of(algebra), algebra, device="cpu", launch=lambda *_: None)
    assert made.words.readable == (count < 254)
    assert made.layout.values == count


def test_sizes_of_the_tasks():
    """As many blocks as a processor had room for when they were measured."""
    for task, blocks in ((arithmetic(), 7), (boolean(), 8), (listops(), 6)):
        automaton = read_off(task, construct(task).weights)
        made = GpuEngine(automaton, task, device="cpu", launch=lambda *_: None)
        assert made.layout.teams_at_once(made.layout.tile_bytes + made._reader_bytes) == blocks


def test_no_text(place):
    for text in ("", " ", " " * 1000, "(", ")", "()", "((((", "))))", ")(", "(1", "1)", "x" * 300):
        for algebra in (boolean(), listops()):
            assert value_of(engine(place, algebra), text, place) is None, text


def test_many_values(place):
    """Maps of several words, made by running the automaton for each value."""
    values = tuple(f"v{i}" for i in range(40))
    rule = lambda a, b: f"v{(3 * int(a[1:]) + int(b[1:])) % 40}"  # noqa: E731
    operators = [Operator.from_rule(s, [2], rule, values, ordered=True) for s in ("f", "g")]
    algebra = Algebra("forty", values, tuple(operators), "infix")
    automaton, rng = automaton_of(algebra), Random(1)
    trial = engine_for(place, algebra, automaton)
    assert not trial.layout.holes
    for shape in SHAPES:
        ids = tree(algebra, shape, 1500, rng)
        assert trial.value_of_ids(as_ids(ids, place)) == run(automaton, ids) is not None


@pytest.mark.parametrize(("spare", "cell_bytes"), [(0, 2), (70_000, 4)])
def test_many_states(place, spare, cell_bytes):
    """Tables too large for shared memory; states that take two and four bytes."""
    algebra, rng = listops(4), Random(1)
    automaton = automaton_for(algebra)
    padded = SpanAutomaton(  # with states that nothing leads to
        np.pad(automaton.step, ((0, spare), (0, 0)), constant_values=-1),
        np.pad(automaton.value, (0, spare), constant_values=-1),
        np.zeros(len(automaton.step) + spare, dtype=np.int32),
        automaton.n_values,
    )
    trial = engine_for(place, algebra, padded)
    assert not trial.layout.table_shared
    assert trial.layout.cell.itemsize == cell_bytes
    for shape in SHAPES:
        ids = tree(algebra, shape, 1500, rng)
        assert trial.value_of_ids(as_ids(ids, place)) == run(automaton, ids) is not None


@pytest.mark.parametrize("shortens", [True, False])
def test_spans_of_any_length(place, monkeypatch, shortens):
    """A text may only get shorter where operands in a row do; else there is no value, but no wrong
    one.
    """
    if not shortens:
        monkeypatch.setattr(composed, "MOST_RUNS", 0)
    automaton = any_number_of_operands()
    trial = engine_for(place, boolean(), automaton)
    assert trial.value_of_ids(as_ids([0, 4, 2, 3, 3, 3, 1], place)) == 1
    assert trial.value_of_ids(as_ids([0, 4, *([2, 3] * 200), 1], place)) == 0  # within a tile
    for count in (20_000, 20_001):
        ids = as_ids([0, 4, *([2, 3] * count), 1], place)
        assert trial.value_of_ids(ids) == (count % 2 if shortens else None)


def test_falls_back_to_tensors_without_a_gpu():
    found = DeviceEngine(automaton_for(boolean()), boolean(), "cpu").parallel
    assert isinstance(found, TensorEngine)
    assert found.value(as_bytes("(1&(~0))", "cpu")) == 0
