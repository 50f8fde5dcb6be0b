"""Long texts go to the GPU, here to tensor operations, and many short ones to its kernels; errors
come from the CPU, as ever.
"""

from random import Random

import numpy as np
import pytest
from torch import Tensor

from exactformer.domains.catalog import arithmetic
from exactformer.domains.errors import ExpressionError
from exactformer.domains.syntax import parse
from exactformer.engine import device
from exactformer.engine.device import DeviceEngine
from tests.algebras import EVERY, TASKS
from tests.cases import CASES
from tests.fuzz import Fuzzer
from tests.rows import listed
from tests.test_engine import complaint, engine_for
from tests.test_gpu_rows import PLACES, reader
from tests.texts import tree


def device_engine(algebra) -> DeviceEngine:
    return DeviceEngine(engine_for(algebra).automaton, algebra, "cpu")


@pytest.fixture
def everything_is_long(monkeypatch):
    monkeypatch.setattr(device, "WORTH_A_LAUNCH", 1)


@pytest.mark.parametrize("algebra", EVERY, ids=lambda algebra: algebra.name)
@pytest.mark.usefixtures("everything_is_long")
def test_random_and_damaged_texts(algebra):
    engine, fuzzer = device_engine(algebra), Fuzzer(algebra, seed=7)
    for _ in range(300):
        text = fuzzer.text()
        wrong = complaint(lambda t: parse(algebra, t), text)
        assert complaint(engine.value, text) == wrong
        if wrong is None:
            assert engine.value(text) == engine_for(algebra).value(text)


@pytest.mark.usefixtures("everything_is_long")
def test_lines():
    engine = device_engine(arithmetic())
    texts = [case.text for case in CASES if case.domain == "arithmetic"]
    lines = [text for text in texts if "\n" not in text] + ["(1+"]
    text = np.frombuffer("\n".join(lines).encode(), dtype=np.uint8)
    results = listed(engine, [engine.rows(text)])
    assert results[:-1] == [engine_for(arithmetic()).value(line) for line in lines[:-1]]
    assert isinstance(results[-1], ExpressionError)
    assert results[-1].line == len(lines)


def test_the_gpu_is_asked(monkeypatch):
    """What it answers is the answer, if it has one."""
    engine = device_engine(arithmetic())
    text = "(" * 1_200_000 + "7" + "+1)" * 1_200_000
    assert len(text) > device.WORTH_A_LAUNCH
    monkeypatch.setattr(engine.parallel, "value", lambda text: 3)
    assert engine.value(text) == "3"
    monkeypatch.setattr(engine.parallel, "value", lambda text: None)
    assert engine.value(text) == "7"


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
@pytest.mark.parametrize("place", PLACES)
def test_files_and_lists(place, task, monkeypatch):
    """What an engine that has a GPU says of lines, and of a list, is what the CPU says."""
    monkeypatch.setattr(device, "WORTH_A_LAUNCH", 2000)
    cpu, trial = engine_for(task), reader(place, task)
    engine = DeviceEngine(cpu.automaton, task, trial.device)
    engine.many, values = trial, trial.values
    asked: list[int] = []

    def asked_for(text: Tensor, separator: int) -> Tensor:
        asked.append(separator)
        return values(text, separator)

    monkeypatch.setattr(trial, "values", asked_for)
    fuzzer, rng = Fuzzer(task, seed=3), Random(3)
    texts = [fuzzer.text().replace("\n", " ") for _ in range(300)]
    deep = [tree(task, "left", size, rng) for size in (20, 60, 3000)]
    texts += [" ".join(task.vocabulary[i] for i in ids) for ids in deep]
    lines = np.frombuffer("\n".join(texts).encode(), np.uint8)
    for most in (None, 5):
        found, known = engine.rows(lines, 7, most), cpu.rows(lines, 7, most)
        assert found.values.tolist() == known.values.tolist()
        assert {i: str(e) for i, e in found.errors.items()} == {
            i: str(e) for i, e in known.errors.items()
        }
    right = [text for text, value in zip(texts, known.values, strict=True) if value >= 0]
    assert engine.texts(right) == cpu.texts(right)
    with pytest.raises(ExpressionError) as refusal:
        engine.texts([*right, "("])
    assert refusal.value.__notes__ == [f"in text {len(right) + 1} of {len(right) + 1}"]
    assert set(asked) == {ord("\n"), 0}
