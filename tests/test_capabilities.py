"""The table of what can be done in which notation: its page, and each of its cells, tried."""

import json
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch

import exactformer as ef
from benchmarks.capabilities import page
from exactformer import protocol
from exactformer.domains.capabilities import CAPABILITIES, Refusal, refusal
from exactformer.domains.notation import Plain
from exactformer.domains.sampling import DRAWN
from exactformer.interp.intervene import Intervention, intervene
from exactformer.interp.methods import METHODS
from exactformer.model.iterations import Iterations
from exactformer.model.layers import LAYERS
from exactformer.problems.gym import ProblemSet
from tests.in_process import run_here
from tests.own_modules import Recurrent
from tests.runs import Enough

PAGE = Path(__file__).parent.parent / "docs" / "capabilities.md"
DOMAINS = {
    "infix": "boolean",
    "prefix": "listops",
    "plain": "boolean-plain",
    "polish": "boolean-polish",
}
OTHERS = ("parity", "folds", "integers-2", "binary-addition", "compute-sqrt", "stack-manipulation")
OF_ALGEBRAS = ("bench", "protocol")  # take names of algebras, or algebras by their type


class Case(SimpleNamespace):
    """A domain by its name, its way to iterate, and an empty folder."""

    domain: str
    by: Iterations
    folder: Path

    @property
    def algebra(self) -> Any:
        return ef.find_domain(self.domain)

    @property
    def model(self) -> ef.Model:
        return ef.construct(self.algebra)

    @property
    def expression(self) -> ef.Expression:
        drawn = DRAWN[self.algebra.kind].draw
        return drawn(self.algebra, 3, 1, np.random.default_rng(0))[0]

    def command(self, *words: object) -> str:
        """The output of a command; a ValueError with its message if it ends with status 2."""
        status, printed, errors = run_here([str(word) for word in words])
        if status == 2:
            raise ValueError(errors.removeprefix("exactformer: "))
        return printed


def values(case: Case) -> None:
    text, by = case.expression, ("--engine", "model", "--iterations", case.by)
    assert case.command("eval", case.domain, text, *by) == f"{ef.oracle(text)}\n"


def programs(case: Case) -> None:
    ran = case.model.run_program(f"x={case.expression};y=x;", iterations=case.by, engine="model")
    assert ran.outputs == {"y": ef.oracle(case.expression)}


def trace(case: Case) -> None:
    assert case.model.trace(case.expression, case.by).value == ef.oracle(case.expression)


def the_page(case: Case) -> None:
    path = case.folder / "page.html"
    case.command("trace", case.domain, case.expression, "--iterations", case.by, "--html", path)
    assert case.domain in path.read_text()


def taps(case: Case) -> None:
    model, seen = case.model, []
    run = model.run(case.expression, {(0, "X"): lambda X: seen.append(X) or X}, case.by)
    module = model.module(case.by)
    X, inside = module.encode([case.expression])
    assert module.decode(module(X, inside)) == [run.value] == [ef.oracle(case.expression)]
    assert torch.equal(seen[0], X[0])


def pattern(case: Case) -> None:
    cache = case.model.run(case.expression, None, case.by, pattern=True).cache
    assert torch.equal(cache[1, "pattern"], cache[1, "pattern"].round())


def gradients(case: Case) -> None:
    module = case.model.module(case.by, straight_through=True)
    X, inside = module.encode([case.expression])
    _, cache = module.run_with_cache(X.requires_grad_(), inside)
    cache[module.iteration, "Z"].max().backward()
    assert X.grad is not None
    assert X.grad.any()


def causes(case: Case) -> None:
    graph = ef.causal_graph(case.expression, case.by)
    wanted = graph.effects[graph.answer]
    asked = [Intervention(graph, {graph.answer: value}) for value in wanted]
    assert intervene(case.model.module(case.by), asked) == list(wanted.values())
    assert ef.score_circuit(graph.edges, graph, case.model.module(case.by)).faithfulness == 1


def method(name: str, case: Case) -> None:
    straight_through = LAYERS[case.algebra.layer(case.by)] == LAYERS["depth"]
    module = case.model.module(case.by, straight_through=straight_through)
    found = METHODS[name](module, case.expression, 16, np.random.default_rng(0))
    truth = ef.causal_graph(case.expression, case.by)
    assert {source for source, _ in found} | {target for _, target in found} <= truth.tokens.keys()
    assert max(found.values()) > 0
    if name == "activation patching":
        assert {edge for edge, weight in found.items() if weight} <= truth.edges


def certificates(case: Case) -> None:
    proof, weights = case.folder / "proof.json", case.folder / "weights.safetensors"
    case.command("construct", case.domain, "--out", weights)
    case.command("certify", case.domain, "--weights", weights, "--out", proof)
    assert "accepted" in case.command("verify", proof, weights, "--algebra", case.domain)


def kernel(case: Case) -> None:
    from exactformer.verify.coq import dump
    from exactformer.weights.file import WeightFile

    case.model.save(case.folder / "weights.safetensors")
    kind = "machine" if case.algebra.kind == "machine" else "notation"
    assert dump(WeightFile.read(case.folder / "weights.safetensors")).startswith(kind)


def samples(case: Case) -> None:
    rows = case.folder / "rows.tsv"
    rows.write_text(case.command("sample", case.domain, "--count", 5))
    assert case.command("score", case.domain, rows).startswith("5 of 5 rows right")


def engine(case: Case) -> None:
    text = case.expression
    assert case.command("eval", case.domain, text, "--engine", "fast") == f"{ef.oracle(text)}\n"


def gpu(case: Case) -> None:
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    found = case.model.to("cuda").evaluate(str(case.expression), "fast")
    assert found == ef.oracle(case.expression)


def train(method: str, case: Case) -> None:
    short = {"staged": ["steps=1", "attempts=1"], "end-to-end": ["epochs=1", "batch=100000"]}
    short["futures"] = ["checks=100"]
    constants = [f"--set={constant}" for constant in short[method]]
    case.command(
        "train", case.domain, "--method", method, "--seeds", 1, "--out", case.folder, *constants
    )
    assert (case.folder / "1.json").exists()


def problems(case: Case) -> None:
    rows, replies = case.folder / "rows.jsonl", case.folder / "replies.jsonl"
    few = ("--count", 2, "--format", "jsonl")
    case.command("sample", case.domain, "--depths", "1-3", *few, "--out", rows)
    drawn = [json.loads(line) for line in rows.read_text().splitlines()]
    said = [json.dumps({"id": row["id"], "prediction": row["value"]}) for row in drawn]
    replies.write_text("\n".join(said) + "\n")
    scored = case.command("score", case.domain, rows, "--predictions", replies)
    assert scored.startswith("6 of 6 predictions right")
    for kind in ("dataset", "lm-eval"):
        out = case.folder / kind
        case.command("export", kind, case.domain, "--depths", 3, "--count", 2, "--out", out)
        assert (out / "test.jsonl").exists()
    asked = ProblemSet(case.algebra)[0]
    assert ProblemSet(case.algebra).score_answer(asked["answer"], asked) == 1


def parentheses(case: Case) -> None:
    share = ("--parentheses", 1, "--count", 3)
    drawn = case.command("sample", case.domain, *share)
    assert all(line.startswith("(") for line in drawn.splitlines())
    rows = case.command("sample", case.domain, *share, "--depths", 2, "--json")
    assert "-parentheses1.0-depth2-0" in rows


def other_networks(case: Case) -> None:
    recipe = protocol.Recipe(epochs=1, share=0.001, measured=20, sampled=20)
    (trained,) = protocol.train(partial(Recurrent, case.algebra), case.algebra, [0], recipe=recipe)
    table = protocol.depth_table({"mine": trained}, case.algebra, [2], 10)
    assert table.rows["mine"][2].problems == 10


def huggingface(case: Case) -> None:
    case.command("export", "huggingface", case.domain, "--out", case.folder / "model")
    assert ef.load(case.folder / "model").certify().verdict == "exact"


def graph(case: Case) -> None:
    written = case.folder / "iteration.pt2"
    case.command("export", "torch", case.domain, "--iterations", case.by, "--out", written)
    assert written.exists()


def whole_graph(case: Case) -> None:
    written = case.folder / "model.onnx"
    by = ("--iterations", case.by)
    with patch("exactformer.export.onnx._packages", side_effect=Enough), suppress(Enough):
        case.command("export", "onnx", case.domain, *by, "--out", written)


def bench(case: Case) -> None:
    measured = patch("exactformer.bench.table.bench", side_effect=Enough)  # of half a minute
    with measured as measures, suppress(Enough):
        case.command("bench", case.domain)
    measures.assert_called_once()


TRIED: dict[str, Callable[[Case], None]] = {
    "values": values,
    "programs": programs,
    "trace": trace,
    "page": the_page,
    "taps": taps,
    "pattern": pattern,
    "gradients": gradients,
    "causes": causes,
    **{name: partial(method, name) for name in METHODS},
    "certificates": certificates,
    "kernel": kernel,
    "samples": samples,
    "engine": engine,
    "gpu": gpu,
    "stages": partial(train, "staged"),
    "end to end": partial(train, "end-to-end"),
    "short texts": partial(train, "futures"),
    "problems": problems,
    "parentheses": parentheses,
    "protocol": other_networks,
    "huggingface": huggingface,
    "graph": graph,
    "whole graph": whole_graph,
    "bench": bench,
}


def test_every_capability_is_tried():
    assert TRIED.keys() == CAPABILITIES.keys()
    assert all(capability.refused.keys() <= LAYERS.keys() for capability in CAPABILITIES.values())


ITERATED = [*list(TRIED)[: list(TRIED).index("certificates")], "graph", "whole graph"]
CELLS = [(name, domain, "depth") for name in TRIED for domain in DOMAINS.values()]
CELLS += [(name, domain, "depth") for name in TRIED if name not in OF_ALGEBRAS for domain in OTHERS]
CELLS += [(name, domain, "log") for name in ITERATED for domain in DOMAINS.values()]


@pytest.mark.parametrize(("name", "domain", "by"), CELLS)
def test_what_the_table_says_is_so(name, domain, by, tmp_path):
    case = Case(domain=domain, by=by, folder=tmp_path)
    reason = refusal(name, case.algebra, by)
    if reason is None:
        TRIED[name](case)
    else:
        with pytest.raises(ValueError, match=case.algebra.name) as raised:
            TRIED[name](case)
        assert name in ("engine", "gpu") or reason in str(raised.value)  # use the model instead


def test_the_page_has_what_the_table_says():
    assert PAGE.read_text(encoding="utf-8") == page(), "python benchmarks/capabilities.py makes it"


def test_a_layer_of_ones_own_is_refused_by_its_name(monkeypatch):
    refused = {"own": Refusal("it has no words", "read its source")}
    monkeypatch.setitem(CAPABILITIES, "trace", CAPABILITIES["trace"]._replace(refused=refused))
    monkeypatch.setattr(Plain, "layer", "own")
    assert refusal("trace", ef.boolean_plain()) == (
        "traces: not for 'boolean-plain' in the layer 'own', since it has no words; read its source"
    )
    assert refusal("trace", ef.boolean()) is None


def test_a_refusal_says_what_of_which_notation_why_and_what_instead():
    with pytest.raises(ValueError, match="gradients") as raised:
        ef.construct(ef.boolean()).module("log", straight_through=True)
    assert str(raised.value) == (
        "gradients through thresholds: not for 'boolean' by the logarithm, since values are "
        "composed by look-up, which has no gradient; use iterations by the depth, in infix or "
        "prefix notation"
    )
