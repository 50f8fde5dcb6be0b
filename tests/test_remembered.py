"""Weights that are changed in whatever way: nothing that was found before is used again."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import exactformer as ef
from exactformer.api import Model
from exactformer.model.circuit import Weights
from exactformer.model.remembered import fixed

TEXT = "((1&0)|(~0))"
EXPRESSIONS = ef.draw(ef.boolean(), 3, 50, np.random.default_rng(0))


def local(model: Model) -> Any:
    """Its feedforward, with whatever tensors that has."""
    return model.weights.f


def changed(model: Model) -> None:
    """Its feedforward answers the other way round."""
    for parameter in (local(model).W_2, local(model).b_2):
        parameter[..., 2:4] = parameter[..., 2:4].flip(-1)


def fresh(model: Model) -> Model:
    """What a model is that was made of the same numbers just now."""
    weights, f = model.weights, local(model)
    tensors = {name: tensor.detach().clone() for name, tensor in f.tensors.items()}
    parts = {name: getattr(weights, name) for name in ("G_PE", "W_Q", "W_K", "E", "G_R")}
    there = {name: part.detach().clone() for name, part in parts.items() if part is not None}
    return Model(model.algebra, Weights(**there, f=replace(f, **tensors)))


@pytest.mark.parametrize("dense", [False, True])
def test_values_and_verdict_follow_the_weights(dense):
    model = ef.construct(ef.boolean(), dense=dense)
    before, sha256 = model.predict(EXPRESSIONS), model.sha256
    assert (model(TEXT), model.certify().verdict) == ("1", "exact")
    changed(model)
    assert model.predict(EXPRESSIONS) == fresh(model).predict(EXPRESSIONS) != before
    assert (model.certify().verdict, fresh(model).certify().verdict) == ("inexact", "inexact")
    assert model.sha256 != sha256
    assert model.fast_engine() is None
    changed(model)
    assert model.predict(EXPRESSIONS) == before
    assert (model(TEXT), model.certify().verdict, model.sha256) == ("1", "exact", sha256)


def by_data(bias):
    bias.data.add_(100)


def by_other_data(bias):
    bias.data = bias.data + 100


def by_numpy(bias):
    bias.numpy()[:] += 100


def by_fused_optimizer(bias):
    parameter = torch.nn.Parameter(bias)
    parameter.grad = torch.ones_like(bias)
    torch.optim.AdamW([parameter], lr=100.0, maximize=True, fused=True).step()


def by_vector(bias):
    parameter = torch.nn.Parameter(bias)
    torch.nn.utils.vector_to_parameters(bias + 100, [parameter])
    assert bias.data_ptr() != parameter.data_ptr()  # it gives the parameter other memory,
    bias.data = parameter.data  # as one who trains does


def in_inference_mode(bias):
    with torch.inference_mode():
        bias.add_(100)


CHANGES = [by_data, by_other_data, by_numpy, by_fused_optimizer, by_vector, in_inference_mode]


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_torch_does_not_count_is_seen(change):
    model = ef.construct(ef.boolean())
    sha256, before = model.sha256, model.predict(EXPRESSIONS)
    assert (model(TEXT), model.certify().verdict) == ("1", "exact")
    change(local(model).b_2)
    assert model.sha256 == fresh(model).sha256 != sha256
    assert model.certify().verdict == fresh(model).certify().verdict == "inexact"
    assert model.predict(EXPRESSIONS) == fresh(model).predict(EXPRESSIONS) != before
    assert model != ef.construct(ef.boolean())
    assert model.fast_engine() is None


def test_a_zero_that_changes_its_sign_is_another_weight():
    model = ef.construct(ef.boolean())
    zero = (local(model).W_2 == 0).nonzero()[0]
    before = model.sha256
    local(model).W_2.data[tuple(zero)] = -0.0
    assert model.sha256 == fresh(model).sha256 != before


def test_a_table_is_searched_as_it_is_now():
    model = ef.construct(ef.boolean(), "table")
    table = local(model)
    assert model.evaluate("(1&0)", "model") == "0"
    table.outputs.data[:, 2:4] = table.outputs[:, 2:4].flip(-1)
    assert model.evaluate("(1&0)", "model") == "1"
    bags = table.bags.numpy()
    bags[:] = bags[::-1].copy()
    assert model.predict(EXPRESSIONS) == fresh(model).predict(EXPRESSIONS)


def test_a_feedforward_that_is_called_alone_follows_its_tensors():
    f = local(ef.construct(ef.boolean()))
    H = torch.eye(f.W_1.shape[0])
    before = f(H)
    f.b_2.data.add_(1)
    assert torch.equal(f(H), before + 1)


def test_every_tensor_counts():
    weights = ef.construct(ef.boolean(), dense=True).weights
    f: Any = weights.f
    tensors = [weights.G_PE, weights.W_Q, weights.W_K, weights.E]
    tensors += [f.W_1, f.b_1, f.W_2, f.b_2]
    for tensor in tensors:
        before = fixed(weights)
        assert fixed(weights) is before
        tensor.data[(-1,) * tensor.dim()] += 1
        assert fixed(weights) is not before


def test_what_is_remembered_shares_no_memory_with_what_others_hold():
    model = ef.construct(ef.boolean())
    tensors = [model.weights.G_PE, *local(model).tensors.values()]
    inner = fixed(model)
    private = [inner.weights.G_PE, *local(inner).tensors.values()]
    pointers = {tensor.untyped_storage().data_ptr() for tensor in tensors}
    assert not pointers & {tensor.untyped_storage().data_ptr() for tensor in private}


def test_a_change_in_the_middle_of_a_run_is_seen_by_the_next_one():
    model = ef.construct(ef.boolean())
    expressions = ef.draw(ef.boolean(), 6, 20, np.random.default_rng(1))
    right = model.predict(expressions)
    model = fresh(model)

    def tell(share: float) -> None:
        local(model).b_2.data.fill_(-100)

    assert model.evaluate(expressions, "model", tell=tell) == right  # as they were at its start
    assert model.predict(expressions) == fresh(model).predict(expressions) != right


def test_somebody_elses_feedforward_is_asked_again():
    class Own:
        """One that changes in a way that nobody can see."""

        slots, shift = 1, 0.0

        def __init__(self, f) -> None:
            self.f = f

        def __call__(self, H):
            return self.f(H) + self.shift

        def to(self, device):
            return self

    made = ef.construct(ef.boolean()).weights
    own = Own(made.f)
    model = Model(ef.boolean(), Weights(made.G_PE, made.W_Q, made.W_K, own))
    right = model.predict(EXPRESSIONS)
    own.shift = -100.0
    assert model.predict(EXPRESSIONS) != right


def test_a_gradient_reaches_weights_that_were_used_before():
    f = local(ef.construct(ef.boolean()))
    H = torch.eye(f.W_1.shape[0])
    with torch.no_grad():
        before = f(H)
    f.b_2.requires_grad_()
    after = f(H)
    assert torch.equal(after, before)
    after.sum().backward()
    assert f.b_2.grad.abs().sum() > 0


def test_weights_made_in_inference_mode():
    with torch.inference_mode():
        model = ef.construct(ef.boolean())
        assert model.evaluate(TEXT, "model") == "1"
    assert (model(TEXT), model.evaluate(TEXT, "model")) == ("1", "1")
    before = model.sha256
    with torch.inference_mode():
        local(model).b_2.add_(1)
    assert model.sha256 == fresh(model).sha256 != before
