"""Looking inside the other layers: iterations by the logarithm, plain and Polish notation."""

import copy
import pickle

import numpy as np
import pytest
import torch

import exactformer as ef
from exactformer.domains.integers import integers
from exactformer.domains.little_endian import binary_addition
from exactformer.domains.machine_catalog import folds, parity
from exactformer.domains.rearrangement_catalog import bucket_sort
from exactformer.domains.square_roots import compute_sqrt
from exactformer.interp.intervene import Intervention, intervene
from exactformer.model.layers import LAYERS, layer_of
from exactformer.trace import PlainStep
from tests.algebras import MODULO_7
from tests.polish_algebras import CALCULATOR

CASES = [
    pytest.param(ef.load("boolean/7520"), "log", id="learned-log"),
    pytest.param(ef.load("listops/7520"), "log", id="prefix-log"),
    pytest.param(ef.construct(MODULO_7), "log", id="ordered-log"),
    pytest.param(ef.construct(ef.boolean(), dense=True), "log", id="dense-log"),
    pytest.param(ef.construct(ef.boolean_plain()), "depth", id="plain"),
    pytest.param(ef.load("arithmetic/7520", ef.arithmetic_plain()), "log", id="learned-plain"),
    pytest.param(ef.construct(ef.boolean_plain(), dense=True), "depth", id="dense-plain"),
    pytest.param(ef.load("arithmetic/7520", ef.arithmetic_polish()), "log", id="learned-polish"),
    pytest.param(ef.construct(CALCULATOR, dense=True), "depth", id="dense-reverse-polish"),
]


def problems(model: ef.Model) -> list[ef.Expression]:
    rng = np.random.default_rng(3)
    return [e for depth in range(5) for e in ef.draw(model.algebra, depth, 4, rng)]


@pytest.mark.parametrize(("model", "iterations"), CASES)
def test_a_run_gives_the_value_and_keeps_every_tap(model, iterations):
    layer = layer_of(model.algebra, iterations)
    for expression in problems(model):
        run = model.run(expression, iterations=iterations)
        assert run.value == ef.oracle(expression)
        assert run.iterations == model.outcomes([expression], iterations)[0].iterations
        n = len(expression.positions)
        for number in range(1, run.iterations + 1):
            assert {name for i, name in run.cache if i == number} <= set(layer.taps)
            assert run.cache[number, "P"].shape == (n,)
            assert run.cache[number, "X"].shape == (n, len(model.algebra.vocabulary))


@pytest.mark.parametrize(("model", "iterations"), CASES)
def test_a_module_runs_a_batch_and_hooks_hear_it(model, iterations):
    module, heard = model.module(iterations), []
    expressions = problems(model)
    handles = [
        tap.register_forward_hook(lambda tap, given, value, name=name: heard.append(name))
        for name, tap in module.taps.items()
    ]
    with torch.no_grad():
        last = module(*module.encode(expressions))
    for handle in handles:
        handle.remove()
    assert module.decode(last) == [ef.oracle(e) for e in expressions]
    assert heard.count("X") == module.iteration == heard.count("A")


@pytest.mark.parametrize(("model", "iterations"), CASES)
def test_a_patch_of_what_is_written_changes_the_answer(model, iterations):
    algebra = model.algebra
    for expression in problems(model)[8:]:
        taken = model.run(expression, iterations=iterations).iterations
        for value in algebra.values[:3]:
            row = torch.zeros(len(algebra.vocabulary))
            row[algebra.token_ids[value]] = 1

            def write(Y, row=row):
                return torch.where(Y.any(-1, keepdim=True), row, Y)

            patched = model.run(expression, {(taken, "Y"): write}, iterations)
            assert patched.value == value


def test_a_patch_of_the_values_of_spans_acts_in_plain_notation():
    model = ef.construct(ef.boolean_plain())
    zero, unknown = model.algebra.values.index("0"), len(model.algebra.values)

    def none_is_true(u):
        return torch.where(u < unknown, zero, u)

    assert model.run("1&1|0&1").value == "1"
    assert model.run("1&1|0&1", {(1, "u"): none_is_true}).value == "0"


def test_gradients_pass_the_thresholds_of_the_papers_layer_only():
    for model, iterations in [(ef.construct(ef.boolean()), "log"), (CASES[4].values[0], "depth")]:
        with pytest.raises(ValueError, match="gradients through thresholds: not for"):
            model.module(iterations, straight_through=True)
    module = ef.construct(ef.boolean(), "closed").module("log")
    X, inside = module.encode(["((1&0)|1)"])
    _, cache = module.run_with_cache(X, inside)
    cache[1, "Z"].sum().backward()
    assert all(p.grad is not None and p.grad.any() for p in module.f.parameters())


def test_weights_without_a_proof_are_refused_by_the_logarithm():
    model = ef.construct(ef.boolean())
    gate = model.weights.G_PE.clone()
    gate[3] = 1
    broken = ef.Model(
        model.algebra, type(model.weights)(**{**vars_of(model.weights), "G_PE": gate})
    )
    for ask in (broken.module, lambda way: broken.run("(1&0)", iterations=way)):
        with pytest.raises(ValueError, match="need weights that are certified exact"):
            ask("log")


def vars_of(weights):
    return {name: getattr(weights, name) for name in weights.__dataclass_fields__}


def test_the_attention_pattern_is_kept_on_demand_and_can_be_cut():
    model = ef.load("boolean/7520")
    run = model.run("((1|0)&(~0))", pattern=True)
    whole = run.cache[1, "pattern"]
    assert whole.shape == (12, 12)
    X, H = run.cache[0, "X"], run.cache[1, "H"]
    assert torch.equal(whole @ X, H)
    assert not whole[run.cache[1, "ids"] == 0].any()
    cut = model.run("((1|0)&(~0))", {(1, "pattern"): torch.zeros_like}, pattern=True)
    assert not cut.cache[1, "H"].any()
    with pytest.raises(ValueError, match=r"pattern.*it was not asked for"):
        model.run("((1|0)&(~0))", {(1, "pattern"): torch.zeros_like})


def test_a_pattern_is_refused_where_the_layer_has_none():
    model = ef.construct(ef.boolean_plain())
    for ask in (lambda: model.run("1|0&1", pattern=True), lambda: model.module(pattern=True)):
        with pytest.raises(ValueError, match="the attention pattern: not for 'boolean-plain'"):
            ask()


def test_depth_counts_in_plain_notation_are_of_the_text_with_its_implied_parentheses():
    model, text = ef.construct(ef.boolean_plain()), "~1|0&(1)"
    counts, step = model.run(text).cache[1, "A"], model.trace(text).steps[0]
    assert isinstance(step, PlainStep)
    assert len(counts) == 8 + sum(step.opened) + sum(step.closed) == 18
    assert counts.max() == 4


def test_every_layer_is_named_by_some_domain():
    others = (parity(), folds(), integers(), binary_addition(), bucket_sort(), compute_sqrt())
    domains = (ef.boolean(), ef.boolean_plain(), CALCULATOR, *others)
    named = {domain.layer(way) for domain in domains for way in ("depth", "log")}
    assert named == LAYERS.keys()


def test_copies_of_a_module_take_interventions():
    module = ef.construct(ef.boolean()).module()
    graph = ef.causal_graph(ef.parse(ef.boolean(), "(1&0)"))
    asked = [Intervention(graph, {(0, 3): "1"})]
    for copied in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert intervene(copied, asked) == intervene(module, asked) == ["1"]
