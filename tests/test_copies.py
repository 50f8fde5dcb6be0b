"""Models that were used are copied, pickled, saved and sent to other processes like new ones."""

import copy
import dataclasses
import io
import multiprocessing
import pickle

import numpy as np
import pytest
import torch

import exactformer as ef
from exactformer.api import Model

TEXTS = ["((1&0)|(~0))", "(1&0)"]


def used(model: Model) -> Model:
    """After everything that remembers something."""
    expressions = ef.draw(model.algebra, 2, 3, np.random.default_rng(0))
    model.predict(expressions)
    model.predict(expressions, iterations="log")
    model.evaluate(expressions)
    model.trace(expressions[0])
    model.certify()
    hash(model)
    return model


def through_torch(model: Model) -> Model:
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "torch.save": through_torch,
    "replace": dataclasses.replace,
}
MODELS = {
    "closed": lambda: ef.construct(ef.boolean(), "closed"),
    "table": lambda: ef.construct(ef.boolean(), "table"),
    "dense": lambda: ef.construct(ef.boolean(), dense=True),
    "units": lambda: ef.construct(ef.listops(None)),
    "plain": lambda: ef.construct(ef.boolean_plain()),
    "learned": lambda: ef.load("boolean/7520"),
}


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("name", MODELS)
def test_a_copy_of_a_used_model_is_equal_and_remembers_nothing(name, way):
    model = used(MODELS[name]())
    copied = COPIES[way](model)
    held = {field.name for field in dataclasses.fields(Model)}
    assert set(vars(copied)) == held
    assert copied == model
    assert copied.certify().verdict == "exact"


@pytest.mark.parametrize("name", MODELS)
def test_a_pickle_is_as_small_after_use_as_before(name):
    new, model = MODELS[name](), used(MODELS[name]())
    assert len(pickle.dumps(model.weights)) == len(pickle.dumps(new.weights))


@pytest.mark.parametrize("way", COPIES)
def test_a_change_before_and_after_a_copy_is_seen(way):
    """Counts of changes would start anew with a copy, and could meet the old ones again."""
    model = used(ef.construct(ef.boolean()))
    model.weights.f.b_2[0] += 0  # type: ignore[attr-defined]
    copied = COPIES[way](used(model))
    copied.weights.f.b_2[2:4] = copied.weights.f.b_2[2:4] + 100
    assert copied.certify().verdict == "inexact"
    assert copied.predict([ef.parse(ef.boolean(), "(1&0)")]) == [None]


def answers(model: Model, way: str) -> tuple[list[str], str, str]:
    """In a process of its own."""
    return model.evaluate(TEXTS, way), model.certify().verdict, model.sha256  # type: ignore[call-overload]


def test_a_used_model_is_sent_to_spawned_workers():
    model = used(ef.construct(ef.boolean()))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.starmap(answers, [(model, "fast"), (model, "model")])
    assert found == [(["1", "0"], "exact", model.sha256)] * 2


def test_modules_are_pickled_too():
    model = used(ef.construct(ef.boolean()))
    module = model.module()
    X, inside = module.encode(TEXTS)
    module(X, inside)
    again = pickle.loads(pickle.dumps(module))
    assert again.decode(again(X, inside)) == ["1", "0"]
