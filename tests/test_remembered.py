"""Weights that are changed in place: nothing that was found before is used again."""

import numpy as np
import pytest
import torch

import exactformer as ef
from exactformer.api import Model
from exactformer.model.remembered import changes

TEXT = "((1&0)|(~0))"


def changed(model: Model) -> None:
    """Its feedforward answers the other way round."""
    for parameter in (model.weights.f.W_2, model.weights.f.b_2):  # type: ignore[attr-defined]
        parameter[..., 2:4] = parameter[..., 2:4].flip(-1)


@pytest.mark.parametrize("dense", [False, True])
def test_values_and_verdict_follow_the_weights(dense):
    model = ef.construct(ef.boolean(), dense=dense)
    expressions = ef.draw(ef.boolean(), 3, 50, np.random.default_rng(0))
    before, sha256 = model.predict(expressions), model.sha256
    assert (model(TEXT), model.certify().verdict) == ("1", "exact")
    changed(model)
    fresh = Model(model.algebra, model.weights.to("cpu"))
    assert model.predict(expressions) == fresh.predict(expressions) != before
    assert (model.certify().verdict, fresh.certify().verdict) == ("inexact", "inexact")
    assert model.sha256 != sha256
    assert model.fast_engine() is None
    changed(model)
    assert model.predict(expressions) == before
    assert (model(TEXT), model.certify().verdict, model.sha256) == ("1", "exact", sha256)


def test_a_table_is_searched_as_it_is_now():
    model = ef.construct(ef.boolean(), "table")
    table = model.weights.f
    assert model.evaluate("(1&0)", "model") == "0"
    table.outputs[:, 2:4] = table.outputs[:, 2:4].flip(-1)  # type: ignore[attr-defined]
    assert model.evaluate("(1&0)", "model") == "1"


def test_every_tensor_counts():
    weights = ef.construct(ef.boolean(), dense=True).weights
    f = weights.f
    tensors = [weights.G_PE, weights.W_Q, weights.W_K, weights.E]
    tensors += [f.W_1, f.b_1, f.W_2, f.b_2]  # type: ignore[attr-defined]
    for tensor in tensors:
        before = changes(weights)
        tensor.mul_(1)
        assert changes(weights) != before


def test_weights_made_in_inference_mode():
    with torch.inference_mode():
        model = ef.construct(ef.boolean())
    assert (model(TEXT), model.evaluate(TEXT, "model")) == ("1", "1")
