"""Models elsewhere: graphs, ONNX, torch.export, Hugging Face folders."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch

import exactformer as ef
from exactformer.domains.catalog import boolean, listops
from exactformer.domains.machines import Machine, ReadByMachine
from exactformer.domains.sampling import DRAWN, draw
from exactformer.export.huggingface import export_folder
from exactformer.export.loop import LoopGraph, iteration_graph
from exactformer.export.onnx import export_onnx, position_ids
from exactformer.export.program import export_iteration, texts_to_compare
from exactformer.model.circuit import steps
from exactformer.model.encode import initial_state, read_answers
from exactformer.model.layers import layer_of
from exactformer.verify import verify
from tests.algebras import MODULO_7, S3
from tests.machines import random_machine, random_span_machine, random_texts
from tests.plain_algebras import MODULO7, powers

MODELS = {
    "learned": lambda: ef.load("boolean/7520"),
    "fitted": lambda: ef.load("listops/fitted"),
    "dense": lambda: ef.construct(ef.arithmetic(), dense=True),
    "units": lambda: ef.construct(listops(10)),
    "ordered": lambda: ef.construct(MODULO_7),
    "ordered units": lambda: ef.construct(MODULO_7, "units"),
    "ordered, dense": lambda: ef.construct(S3, dense=True),
}
BY_LOGARITHM = {  # the graphs of the two other layers, which take one number of iterations
    "log": lambda: ef.load("boolean/7520"),
    "log, units": lambda: ef.construct(listops(10)),
    "log, ordered, dense": lambda: ef.construct(S3, dense=True),
    "plain": lambda: ef.load("boolean/7520", ef.boolean_plain()),
    "plain, dense": lambda: ef.construct(ef.arithmetic_plain(), dense=True),
    "plain, units": lambda: ef.construct(MODULO7, "units"),  # `-` as prefix and between two
    "plain, from the right": lambda: ef.construct(powers()),
}
TEXTS = {  # chains, and what precedence and written parentheses do
    "log": ["1", "(~" * 60 + "1" + ")" * 60, "(" * 40 + "1" + "&0)" * 40, "((1&0)|((~1)&(0|1)))"],
    "plain": ["1", "((0))", "~" * 60 + "1", "|".join("01" * 30), "1|((0&(1|(0&~1))))|(~(1))&0"],
    "plain, from the right": ["2**-1**2*3", "2**3**2**1", "-" * 30 + "2**2", "-(2*-(3))*-4"],
}


LAB = pytest.mark.skipif(not find_spec("onnxruntime"), reason="`make test-lab` runs what is slow")


def some(model: ef.Model, depths: tuple[int, ...]) -> list[ef.Expression]:
    rng = np.random.default_rng(0)
    return [e for depth in depths for e in draw(model.algebra, depth, 5, rng)]


@pytest.mark.parametrize("kind", MODELS)
def test_the_graph_is_the_model_state_by_state(kind):
    model = MODELS[kind]()
    expressions = [
        e
        for depth in (0, 1, 3, 5)
        for e in draw(model.algebra, depth, 5, np.random.default_rng(depth))
    ]
    X, inside = initial_state(expressions, model.weights)
    graph = iteration_graph(model)
    for step in steps(X, model.weights, inside):
        acts = step.P.any(-1, keepdim=True)
        X = graph(X, inside & acts)
        assert torch.equal(X, step.X)


@pytest.mark.parametrize("kind", ["log", "plain, from the right"])
def test_the_program_of_another_layer_is_the_model_state_by_state(kind, tmp_path):
    model, path = BY_LOGARITHM[kind](), tmp_path / "iteration.pt2"
    export_iteration(model, path, "log")
    run = torch.export.load(path).module()
    expressions = some(model, (0, 1, 3, 5))
    expressions += [ef.parse(model.algebra, text) for text in TEXTS.get(kind, ())]
    X, inside = initial_state(expressions, model.weights)
    for step in layer_of(model.domain, "log").steps(X, inside, model.weights, model.domain):
        X = run(X, inside & step.P.any(-1, keepdim=True))
        assert torch.equal(X, step.X)
    assert read_answers(X, model.weights, model.domain) == [ef.oracle(e) for e in expressions]


def texts_of(domain: ReadByMachine, rng: np.random.Generator) -> list[ef.Expression]:
    if isinstance(domain, Machine):
        return random_texts(domain, rng, 8)
    return [text for depth in range(5) for text in DRAWN[domain.kind].draw(domain, depth, 3, rng)]


def test_the_graphs_of_random_machines_are_the_model_state_by_state():
    rng = np.random.default_rng(0)
    iterations = 0
    domains = [random_machine(rng) for _ in range(15)]
    for domain in [*domains, *(random_span_machine(rng) for _ in range(15))]:
        model = ef.construct(domain, "closed")
        graph, texts = iteration_graph(model), texts_of(domain, rng)
        X, inside = initial_state(texts, model.weights)
        for step in layer_of(domain, "depth").steps(X, inside, model.weights, domain):
            X = graph(X, inside & step.P.any(-1, keepdim=True))
            assert torch.equal(X, step.X)
            iterations += 1
        assert read_answers(X, model.weights, domain) == [ef.oracle(text) for text in texts]
    assert iterations > 40


@pytest.mark.parametrize(
    ("name", "text"),
    [("parity", "1" * 901), ("flip-flop", "0iir1ir"), ("folds", "(DIFF 9 (LAST 4 (SM 5 6)) 1)")],
)
def test_the_program_of_a_machine_takes_every_shape(name, text, tmp_path):
    """The graph has been made from other lengths, and takes batches with nothing in them."""
    model = ef.load("constructed", ef.find_domain(name))
    export_iteration(model, tmp_path / "iteration.pt2")
    run = torch.export.load(tmp_path / "iteration.pt2").module()
    X, inside = initial_state([ef.parse(model.domain, text)], model.weights)
    for step in layer_of(model.domain, "depth").steps(X, inside, model.weights, model.domain):
        X = run(X, inside & step.P.any(-1, keepdim=True))
        assert torch.equal(X, step.X)
    (found,) = read_answers(X, model.weights, model.domain)
    assert found == ef.oracle(ef.parse(model.domain, text))
    for B, n in ((0, 3), (2, 0), (0, 0)):
        empty = X.new_zeros(B, n, X.shape[-1])
        assert run(empty, torch.ones(B, n, dtype=torch.bool)).shape == empty.shape


def test_a_machine_that_allows_few_lengths_is_compared_on_those():
    """No text has 3 to 9 symbols."""
    domain = ef.Machine.from_rule(
        "tens", "a", 0, lambda q, x: (q + 1) % 10, lambda q: "a" if q == 0 else None
    )
    assert {len(text) for text in texts_to_compare(domain, 3, 4)} == {10}
    none = ef.Machine.from_rule("one", "a", 0, lambda q, x: 1 if q == 0 else None, lambda q: "a")
    with pytest.raises(ValueError, match="no text of 'one' to compare the program with"):
        texts_to_compare(none, 3, 4)


@LAB
@pytest.mark.parametrize("kind", ["learned", "ordered, dense"])
def test_the_loop_gives_values_and_iterations(kind):
    model = MODELS[kind]()
    expressions = [
        e for d in (0, 1, 4) for e in draw(model.algebra, d, 4, np.random.default_rng(d))
    ]
    values, taken = LoopGraph(model)(position_ids(expressions))
    symbols = model.algebra.values
    assert [symbols[i] for i in values.tolist()] == [ef.oracle(e) for e in expressions]
    assert taken.tolist() == [e.depth for e in expressions]


def test_what_cannot_be_expressed_is_refused_by_name():
    with pytest.raises(ValueError, match="a feedforward of the kind 'Table' cannot be expressed"):
        iteration_graph(ef.construct(boolean(), "table"))


def test_weights_that_are_not_exact_are_refused(short_search, tmp_path):
    model = ef.load("boolean/7520")
    module = model.module()
    module.get_parameter("f.b_2").data -= 1000
    broken = ef.Model(model.algebra, module.weights)
    for refuse in (
        lambda: iteration_graph(broken),
        lambda: iteration_graph(broken, "log"),
        lambda: export_folder(broken, tmp_path / "x"),
    ):
        with pytest.raises(ValueError, match="expected weights that are certified exact"):
            refuse()
    assert not list(tmp_path.iterdir())


@LAB
def test_one_iteration_by_torch_export(tmp_path):
    model, path = ef.load("boolean/7520"), tmp_path / "iteration.pt2"
    export_iteration(model, path)
    assert list(tmp_path.iterdir()) == [path]
    code = """if True:
        import sys, torch
        run = torch.export.load(sys.argv[1]).module()
        X = torch.zeros(2, 6, 7)
        X[0, range(5), [0, 2, 4, 3, 1]] = 1  # (1&0)
        X[1, range(4), [0, 6, 3, 1]] = 1  # (~0)
        print(run(X, X.any(-1)).nonzero().tolist(), "exactformer" in sys.modules)
    """
    command = [sys.executable, "-W", "ignore", "-c", code, path]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.stdout == "[[0, 2, 3], [1, 1, 2]] False\n", result.stderr


def test_a_folder_is_read_back_with_its_hash_and_its_proof(tmp_path):
    model, folder = ef.load("boolean/7520"), tmp_path / "model"
    command = [sys.executable, "-m", "exactformer", "export", "huggingface", "boolean"]
    command += ["--weights", "7520", "--out", str(folder), "--json"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert json.loads(result.stdout)["weights_sha256"] == model.sha256
    found = ef.load(folder)
    assert found == model
    assert found.origin == model.origin
    assert ef.load(str(folder), boolean()) == model
    assert verify(folder / "proof.json", folder / "model.safetensors") == model.certify().findings
    config = json.loads((folder / "config.json").read_text())
    assert config["weights_sha256"] == model.sha256
    card = (folder / "README.md").read_text()
    assert card.startswith("---\nlicense: mit\n")
    assert model.sha256 in card
    with pytest.raises(ValueError, match=r"which has no model\.safetensors"):
        ef.load(tmp_path)


@pytest.mark.parametrize(
    ("model", "said", "never"),
    [
        (ef.load("boolean/7520"), "fully parenthesized", "precedence"),
        (ef.construct(ef.boolean_plain()), "plain notation, with precedence", "parenthesized"),
    ],
    ids=["infix", "plain"],
)
def test_the_card_is_about_the_notation_of_the_model(model, said, never, tmp_path):
    export_folder(model, tmp_path / "model")
    card = (tmp_path / "model" / "README.md").read_text()
    assert said in card
    assert never not in card


def test_the_card_of_units_says_how_many_operands_are_counted_exactly(tmp_path):
    export_folder(ef.construct(listops(max_fan_in=None)), tmp_path / "model")
    assert "at most 16777216 operands in float32" in (tmp_path / "model" / "README.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["onnx", "boolean", "--out", "x", "--depths", "3"], "expected no options of problems"),
        (["dataset", "boolean", "--out", "x", "--weights", "7520"], "--weights is for a model"),
        (["huggingface", "boolean", "--out", "x", "--iterations", "log"], "is for a graph"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, list) else None,
)
def test_mistakes(arguments, said, tmp_path):
    command = [sys.executable, "-m", "exactformer", "export", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert said in result.stderr
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_written_is_said_at_once(tmp_path, monkeypatch):
    model = ef.load("boolean/7520")
    with pytest.raises(FileNotFoundError):
        export_iteration(model, tmp_path / "no" / "such")
    with pytest.raises(ValueError, match="expected the name of a file to write"):
        export_iteration(model, tmp_path)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ValueError, match=r"ONNX needs onnx: pip install 'exactformer\[onnx\]'"):
        export_onnx(model, tmp_path / "x.onnx")
    assert not list(tmp_path.iterdir())


ELSEWHERE = """if True:
    import json, sys
    import numpy, onnxruntime  # and nothing of ours
    session = onnxruntime.InferenceSession(sys.argv[1])
    facts = json.loads(session.get_modelmeta().custom_metadata_map["exactformer"])
    token = {symbol: i for i, symbol in enumerate(facts["vocabulary"])}
    ids = numpy.array([[token[symbol] for symbol in "((1|0)&(~0))"]])
    values, iterations = session.run(None, {"ids": ids})
    print(facts["values"][values[0]], iterations[0], "exactformer" in sys.modules)
"""


@LAB
@pytest.mark.parametrize("kind", [*MODELS, *BY_LOGARITHM])
def test_onnx_equals_the_model_on_shapes_it_never_saw(kind, tmp_path):
    """In a process of its own: the exporter warns of what is not installed."""
    model, file = (MODELS | BY_LOGARITHM)[kind](), tmp_path / "weights.safetensors"
    model.save(file)
    layer = "log" if kind in BY_LOGARITHM else "depth"
    texts = TEXTS.get(kind, [])
    path = tmp_path / "model.onnx"
    code = """if True:
        import json, sys
        from pathlib import Path
        import numpy as np, onnxruntime
        import exactformer as ef
        from exactformer.export.onnx import export_onnx, run_onnx
        model, by, texts = ef.load(sys.argv[1]), sys.argv[3], sys.argv[4:]
        export_onnx(model, Path(sys.argv[2]), by)
        session = onnxruntime.InferenceSession(sys.argv[2])
        facts = json.loads(session.get_modelmeta().custom_metadata_map["exactformer"])
        assert facts["layer"] == model.domain.layer(by)
        for depth in (0, 1, 2, 4, 7, 12):
            drawn = ef.draw(model.algebra, depth, 30, np.random.default_rng(depth + 99))
            drawn += [ef.parse(model.algebra, text) for text in texts]
            values, iterations = run_onnx(session, drawn)
            assert values == [ef.oracle(e) for e in drawn]
            assert list(zip(values, iterations)) == model.outcomes(drawn, by)
    """
    command = [sys.executable, "-W", "ignore", "-c", code, file, path, layer, *texts]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert path.stat().st_size < 300_000
    assert str(Path(ef.__file__).parent).encode() not in path.read_bytes()
    if kind == "learned":
        command = [sys.executable, "-c", ELSEWHERE, path]
        shown = subprocess.run(command, capture_output=True, text=True)
        assert shown.stdout == "1 2 False\n", shown.stderr
