"""Steps that are repeated: as often as asked, from a recording where there is a GPU."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import exactformer as ef
from exactformer.training.loop import Trainer
from exactformer.training.recipe import recipe_for
from exactformer.training.repeat import repeat
from exactformer.training.state import begin

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
# What makes the host wait for a GPU, or gives it something that is not there yet.
OF_THE_HOST = {"_local_scalar_dense", "nonzero", "_unique2", "lift_fresh", "_to_copy"}


class Operations(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.add(function.overloadpacket.__name__)
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("algebra", [ef.boolean(), ef.listops()], ids=lambda a: a.name)
def test_a_training_step_asks_nothing_of_the_host(algebra):
    recipe = recipe_for(algebra)
    steps = Trainer(algebra, recipe)._steps(begin(algebra, recipe, [1, 2]))
    with torch.no_grad(), Operations() as operations:
        steps.step()
    assert "bmm" in operations.names
    assert not operations.names & OF_THE_HOST


@pytest.mark.parametrize("times", [0, 1, 2, 3, 10])
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_gpu)])
def test_as_often_as_asked(times, device):
    count = torch.zeros(1, device=device)
    repeat(lambda: count.add_(1), times, count.device)
    assert count.item() == times


@needs_gpu
def test_what_cannot_be_recorded_is_done_one_by_one():
    count = torch.zeros(1, device="cuda")

    def step() -> None:
        assert count.item() >= 0  # waits for the GPU, which no recording can
        count.add_(1)

    repeat(step, 10, count.device)
    assert count.item() == 10
