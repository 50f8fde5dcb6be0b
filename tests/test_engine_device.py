"""Long texts go to the GPU, here to tensor operations; errors come from the CPU, as ever."""

import numpy as np
import pytest

from exactformer.domains.catalog import arithmetic
from exactformer.domains.errors import ExpressionError
from exactformer.domains.syntax import parse
from exactformer.engine import device, gpu
from exactformer.engine.device import DeviceEngine
from exactformer.engine.gpu import GpuEngine
from exactformer.engine.tensor import TensorEngine
from tests.algebras import EVERY
from tests.cases import CASES
from tests.fuzz import Fuzzer
from tests.rows import listed
from tests.test_engine import complaint, engine_for


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
    monkeypatch.setattr(engine.parallel, "value_of_bytes", lambda text: 3)
    assert engine.value(text) == "3"
    monkeypatch.setattr(engine.parallel, "value_of_bytes", lambda text: None)
    assert engine.value(text) == "7"


def test_kernels_that_ask_for_too_much_are_not_used(monkeypatch):
    """On a GPU whose blocks have little shared memory."""
    for room, engine in ((1 << 10, TensorEngine), (1 << 20, GpuEngine)):
        monkeypatch.setattr(gpu, "_most_shared", lambda _, room=room: room)
        monkeypatch.setattr(device.importlib.util, "find_spec", lambda _: True)
        monkeypatch.setattr(device, "GpuEngine", emulated)
        monkeypatch.setattr(device, "GpuRows", lambda *_, **__: None)
        monkeypatch.setattr(device, "TensorEngine", lambda *a, **_: TensorEngine(*a))
        found = DeviceEngine(engine_for(arithmetic()).automaton, arithmetic(), "cuda")
        assert type(found.parallel) is engine


def emulated(automaton, algebra, device):
    return GpuEngine(automaton, algebra, device="cpu", launch=lambda *_: None)
