"""Looking inside: taps, the cache, patches, gradients."""

import copy

import numpy as np
import pytest
import torch

import exactformer as ef
from exactformer.domains.catalog import CATALOG
from exactformer.domains.sampling import draw
from exactformer.interp.causal import causal_graph
from exactformer.interp.intervene import Intervention, intervene
from exactformer.model import circuit
from exactformer.weights.named import shipped_names
from tests.algebras import ALGEBRAS, MODULO_7
from tests.interventions import alternatives, drawn, expected

NAMES = [f"{task}/{name}" for task in CATALOG for name in shipped_names(task)]
FORMULA = "(~((1&1)|(~1)))"
EACH = 8  # interventions a model; benchmarks/interventions.py does a thousand


def kinds(algebra: ef.Algebra) -> list[ef.Model]:
    plain = [ef.construct(algebra, "table"), ef.construct(algebra)]
    return [*plain, ef.construct(algebra, dense=True)]


def test_the_module_is_the_model_to_the_bit(algebra):
    """The states and intermediates of the module are those of `circuit.steps`."""
    expressions = [e for d in (0, 1, 4) for e in draw(algebra, d, 6, np.random.default_rng(d))]
    for model in kinds(algebra):
        for straight_through in (False, True):
            module = model.module(straight_through=straight_through)
            X, inside = module.encode(expressions)
            last, cache = module.run_with_cache(X, inside)
            steps = list(circuit.steps(X, model.weights, inside))
            assert module.iteration == len(steps) == 4
            assert torch.equal(last, steps[-1].X)
            for number, step in enumerate(steps, start=1):
                for name in circuit.Step._fields:
                    of_step = getattr(step, name)
                    assert ((number, name) in cache) == (of_step is not None)
                    assert of_step is None or torch.equal(cache[number, name], of_step)
            assert module.decode(last) == [ef.oracle(e) for e in expressions]


@pytest.mark.parametrize("name", NAMES)
def test_a_swapped_value_gives_the_oracles_answer_to_the_changed_expression(name):
    model, rng = ef.load(name), np.random.default_rng(0)
    interventions = drawn(model.algebra, range(1, 6), EACH, rng, spans=True)
    interventions += drawn(model.algebra, range(1, 6), EACH, rng)
    wanted = [expected(each) for each in interventions]
    assert intervene(model.module(), interventions) == wanted
    plain = [ef.oracle(each.graph.expression) for each in interventions]
    assert wanted != plain  # so that a patch without effect would be seen


@pytest.mark.parametrize("algebra", ALGEBRAS, ids=lambda algebra: algebra.name)
def test_the_same_for_dense_vectors_and_other_algebras(algebra):
    for model in kinds(algebra):
        interventions = drawn(algebra, range(1, 6), EACH, np.random.default_rng(1))
        assert intervene(model.module(), interventions) == list(map(expected, interventions))


def test_it_may_be_swapped_at_any_iteration_at_which_it_stands():
    model = ef.load("arithmetic/7520")
    graph = causal_graph(ef.parse(model.algebra, "((3+4)*((1+2)*(3+(4+5))))"))
    assert {len(graph.lifetime(node)) for node in graph.tokens} == {1, 2, 3, 4}
    for node in graph.tokens:
        for token in alternatives(graph, node)[:2]:
            wanted = expected(Intervention(graph, {node: token}))
            for i in graph.lifetime(node):

                def put(X, node=node, token=token):
                    X[node.position] = 0
                    X[node.position, model.algebra.token_ids[token]] = 1
                    return X

                assert model.run(str(graph.expression), {(i, "X"): put}).value == wanted


def test_a_mask_that_leaves_a_span_out_delays_it():
    model = ef.construct(ef.boolean())
    plain = model.run(FORMULA)
    assert (plain.value, plain.iterations) == ("0", 3)

    def without_the_second(P):
        P[9:13] = False
        return P

    late = model.run(FORMULA, patch={(1, "P"): without_the_second})
    assert late.iterations == 4
    assert late.value == "0"
    assert late.cache[1, "ids"].tolist() == [0, 0, 0, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0]


def test_a_tensor_of_another_run_goes_in_its_place():
    model = ef.load("boolean/7520")
    one, other = model.run("((1&1)|(0&0))"), model.run("((0&1)|(0&0))")
    assert (one.value, other.value) == ("1", "0")
    assert model.run("((1&1)|(0&0))", {(1, "Y"): other.cache[1, "Y"]}).value == "0"
    assert one.cache[1, "Y"][3].argmax() == model.algebra.token_ids["1"]  # and is left as it was


def test_what_a_patch_returns_may_be_anything_of_the_same_shape():
    run = ef.construct(ef.boolean()).run("(1&0)", {(1, "Y"): torch.zeros_like})
    assert run.value is None


def test_hooks_see_and_replace_every_iteration():
    module = ef.construct(ef.boolean()).module()
    seen = []
    handle = module.taps["ids"].register_forward_hook(
        lambda tap, given, ids: seen.append((module.iteration, int(ids.max())))
    )
    X, inside = module.encode([FORMULA])
    assert module.decode(module(X, inside)) == ["0"]
    assert seen == [(1, 2), (2, 1), (3, 1)]
    handle.remove()
    module.taps["Y"].register_forward_hook(
        lambda tap, given, Y: Y[..., [0, 1, 3, 2, 4, 5, 6]] if module.iteration == 3 else None
    )
    assert module.decode(module(X, inside)) == ["1"]
    last, cache = module.run_with_cache(X, inside)  # it sees what the hook returned
    assert torch.equal(cache[3, "X"], last)
    assert module.decode(last) == ["1"]
    assert len(module.taps["Y"]._forward_hooks) == 1  # and leaves no hook of its own


def test_the_state_dict_holds_all_that_computes():
    model = ef.load("boolean/7520")
    module, other = model.module(), ef.load("boolean/8739").module()
    state = module.state_dict()
    assert list(state) == ["G_PE", "W_Q", "W_K", "f.W_1", "f.b_1", "f.W_2", "f.b_2"]
    assert ef.Model(model.algebra, module.weights) == model
    other.load_state_dict(state)
    assert ef.Model(model.algebra, other.weights).certify().verdict == "exact"
    assert ef.Model(model.algebra, other.weights) == model
    with torch.no_grad():
        module.get_parameter("f.b_2").sub_(100)
    X, inside = module.encode(["(1&0)"])
    assert module.decode(module(X, inside)) == [None]
    assert model("(1&0)") == "0"  # the model keeps its own weights
    assert module.decode(copy.deepcopy(other)(X, inside)) == ["0"]
    ordered = ef.construct(MODULO_7, dense=True).module()
    assert {*ordered.state_dict()} > {"G_R", "E"}


def test_gradients_reach_from_the_outputs_to_the_tokens_that_an_iteration_reads():
    module = ef.load("boolean/7520").module()
    X, inside = module.encode([FORMULA])
    X.requires_grad_()
    last, cache = module.run_with_cache(X, inside)
    (behind,) = torch.autograd.grad(last.sum(), X, retain_graph=True)
    assert not behind.any()  # a threshold has none
    Z, H = cache[1, "Z"], cache[1, "H"]
    one = module.algebra.token_ids["1"]
    from_H, from_X = torch.autograd.grad(Z[0, 5, one], (H, X), retain_graph=True)
    assert from_H[0].any(-1).nonzero().flatten().tolist() == [5]
    assert set(from_X[0].any(-1).nonzero().flatten().tolist()) == {3, 4, 5, 6, 7}  # (1&1)
    Z.sum().backward(retain_graph=True)
    assert module.get_parameter("f.W_1").grad is not None
    (waited,) = torch.autograd.grad(cache[2, "Z"][0, 8, one], X)
    assert set(waited[0].any(-1).nonzero().flatten().tolist()) == {2, 8, 13}  # not its operands


@pytest.mark.parametrize("dense", [False, True])
def test_gradients_pass_the_thresholds_where_that_is_asked_for(dense):
    model = ef.construct(ef.boolean(), "fitted", dense=dense)
    module = model.module(straight_through=True)
    X, inside = module.encode([FORMULA])
    X.requires_grad_()
    last, cache = module.run_with_cache(X, inside)
    assert module.decode(last) == ["0"]
    weight = torch.arange(1.0, 1 + last.shape[-1])
    (gradient,) = torch.autograd.grad((cache[3, "Z"] * weight).sum(), X)
    assert gradient[0, [4, 6, 11]].any(-1).all()  # the values that were read


def refused(patch, kind: type[Exception] = ValueError) -> str:
    with pytest.raises(kind) as caught:
        ef.construct(ef.boolean()).run("(1&0)", patch)
    return str(caught.value)


def test_what_is_wrong_with_a_patch_is_said():
    assert "expected an iteration from 1 and one of A, P, ids" in refused({(1, "Q"): torch.neg})
    assert "found 'P'" in refused({"P": torch.neg})
    assert "found (0, 'P')" in refused({(0, "P"): torch.neg})
    assert "found ('P', 1)" in refused({("P", 1): torch.neg})
    assert "it ended after 1" in refused({(2, "P"): torch.logical_not})
    assert "there is no rank gate" in refused({(1, "R"): torch.neg})
    wrong = "patch (1, 'P'): expected torch.bool of (5,), found torch.float32 of (5,)"
    assert refused({(1, "P"): lambda P: P.float()}) == wrong
    assert "found torch.bool of (4,)" in refused({(1, "P"): torch.zeros(4, dtype=torch.bool)})
    assert "expected a function that returns a tensor, found one" in refused(
        {(1, "P"): lambda P: None}, TypeError
    )


def test_what_is_no_expression_of_the_model_is_refused():
    model = ef.construct(ef.boolean())
    with pytest.raises(ef.ExpressionError, match="expected"):
        model.run("(1&)")
    with pytest.raises(ValueError, match="found one of 'arithmetic'"):
        model.module().encode([ef.parse(ef.arithmetic(), "(1+2)")])
    with pytest.raises(TypeError, match="expected a list of expressions"):
        model.module().encode("(1&0)")
