"""Every layer passes its intermediates through a tap, and goes on with what the tap returns."""

import numpy as np
import pytest
import torch
from torch import Tensor

import exactformer as ef
from exactformer.model import circuit, precedence, speculate
from exactformer.model.circuit import Tap
from exactformer.model.encode import initial_state, read_values

MODELS = [
    pytest.param(ef.load("boolean/7520"), id="learned"),
    pytest.param(ef.load("listops/7520"), id="learned-prefix"),
    pytest.param(ef.construct(ef.boolean(), dense=True), id="dense"),
    pytest.param(ef.construct(ef.listops()), id="units"),
]


def listening(pattern: bool = False) -> tuple[Tap, list[tuple[str, Tensor]]]:
    """A tap that changes nothing, and what passed it."""
    seen: list[tuple[str, Tensor]] = []

    def see(name: str, value: Tensor) -> Tensor:
        seen.append((name, value.clone()))
        return value

    return Tap(see, pattern), seen


def drawn(model: ef.Model, depth: int = 3) -> tuple[Tensor, Tensor]:
    return initial_state(
        ef.draw(model.algebra, depth, 6, np.random.default_rng(depth)), model.weights
    )


@pytest.mark.parametrize("model", MODELS)
def test_a_tap_sees_what_a_step_of_the_papers_layer_holds(model: ef.Model) -> None:
    X, inside = drawn(model)
    tap, seen = listening()
    for step in circuit.steps(X, model.weights, inside, tap):
        held = step._asdict()
        passed = {name: value for name, value in seen if name != "tokens"}
        assert passed.keys() == {name for name, value in held.items() if value is not None}
        assert all(torch.equal(value, held[name]) for name, value in passed.items())
        seen.clear()


@pytest.mark.parametrize("model", MODELS)
def test_attention_by_its_pattern_is_linear_attention(model: ef.Model) -> None:
    X, inside = drawn(model)
    linear, patterned = listening()[0], listening(pattern=True)
    steps = zip(
        circuit.steps(X, model.weights, inside, linear),
        circuit.steps(X, model.weights, inside, patterned[0]),
        strict=True,
    )
    for one, other in steps:
        assert torch.equal(one.H, other.H)
        assert torch.equal(one.X, other.X)
    patterns = [value for name, value in patterned[1] if name == "pattern"]
    assert patterns
    assert all(value.shape == (*inside.shape, inside.shape[-1]) for value in patterns)


def test_a_pattern_of_ordered_operands_keeps_their_slots() -> None:
    model = ef.construct(ef.load_algebra("examples/modulo7.toml"))
    X, inside = drawn(model)
    tap, _ = listening(pattern=True)
    last, _ = circuit.finish(X, circuit.steps(X, model.weights, inside, tap))
    assert torch.equal(last, circuit.run(X, model.weights, inside)[0])


def test_what_a_tap_returns_is_what_the_iteration_goes_on_with() -> None:
    model = ef.construct(ef.boolean())
    X, inside = initial_state([ef.parse(ef.boolean(), "((1&1)|(0&1))")], model.weights)
    nothing = Tap(lambda name, value: value * 0 if name == "pattern" else value, pattern=True)
    last, _ = circuit.finish(X, circuit.steps(X, model.weights, inside, nothing))
    assert read_values(last, model.weights, model.algebra).tolist() == [-1]


@pytest.mark.parametrize(
    ("algebra", "steps", "names"),
    [
        (ef.boolean(), speculate.steps, "A F u top P H Z Y X"),
        (ef.boolean_plain(), precedence.steps, "A c M u top P Y X"),
    ],
)
def test_a_tap_hears_the_other_layers_and_can_change_what_they_write(algebra, steps, names) -> None:
    model = ef.construct(algebra)
    V = len(algebra.values)
    X, _ = initial_state([ef.parse(algebra, "((1&1)|(0&(1|0)))")], model.weights)
    tap, seen = listening()
    answers = [*steps(X, model.weights, V, tap)]
    assert " ".join(dict.fromkeys(name for name, _ in seen)) == names
    read = read_values(answers[-1].X, model.weights, algebra)
    assert algebra.values[int(read)] == "1"

    zero, one = algebra.token_ids["0"], algebra.token_ids["1"]

    def swap(name: str, Y: Tensor) -> Tensor:
        """Write 0 for 1 and 1 for 0."""
        if name != "Y":
            return Y
        order = torch.arange(Y.shape[-1])
        order[[zero, one]] = order[[one, zero]]
        return Y[..., order]

    swapped = [*steps(X, model.weights, V, Tap(swap))]
    assert int(read_values(swapped[-1].X, model.weights, algebra)) != int(read)
