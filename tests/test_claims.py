"""A claim that is written with weights is about the bytes that are written."""

import json

import pytest
import torch

import exactformer as ef
from exactformer.api import Model
from exactformer.export.huggingface import export_folder
from exactformer.export.loop import LoopGraph, iteration_graph
from exactformer.export.program import export_iteration
from exactformer.model.feedforward import MLP
from exactformer.model.remembered import fixed
from exactformer.verify import ProofRejected, verify
from exactformer.weights.named import FOLDER_WEIGHTS

EXPORTS = {
    "folder": export_folder,
    "torch.export": export_iteration,
    "iteration": lambda model, path: iteration_graph(model),
    "loop": lambda model, path: LoopGraph(model),
}
REFUSED = "expected weights that are certified exact"


def f_of(model: Model) -> MLP:
    """Its feedforward, which is a perceptron here."""
    assert isinstance(model.weights.f, MLP)
    return model.weights.f


def certified() -> Model:
    model = ef.construct(ef.boolean())
    assert (model.certify().verdict, model("(1&0)")) == ("exact", "0")
    return model


@pytest.mark.parametrize("name", EXPORTS)
def test_weights_that_were_broken_after_their_verdict_are_not_exported(name, tmp_path):
    model = certified()
    f_of(model).b_2.data.add_(100)
    with pytest.raises(ValueError, match=REFUSED):
        EXPORTS[name](model, tmp_path / "out")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", EXPORTS)
def test_a_verdict_that_is_remembered_wrongly_is_not_exported(name, tmp_path):
    """Even if memory were forged: an export has the weights certified anew."""
    right, model = certified(), certified()
    f_of(model).b_2.data.add_(100)
    vars(fixed(model))["_loaded, remembered"] = right._loaded
    assert model.certify().verdict == "exact"
    with pytest.raises(ValueError, match=REFUSED):
        EXPORTS[name](model, tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_a_folder_says_what_its_own_files_are(tmp_path):
    model = certified()
    old = model.sha256
    f_of(model).b_2.data.mul_(2)
    f_of(model).W_2.data.mul_(2)  # other weights, and exact as well
    export_folder(model, tmp_path / "out")
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    again = ef.load(tmp_path / "out")
    assert config["weights_sha256"] == again.sha256 == model.sha256 != old
    verify(tmp_path / "out" / "proof.json", tmp_path / "out" / FOLDER_WEIGHTS)


def test_a_proof_that_was_held_across_a_change_is_told_apart(tmp_path):
    model = certified()
    certificate = model.certify()
    proof, before, after = (tmp_path / name for name in ("proof.json", "before", "after"))
    model.save(before)
    f_of(model).b_2.data.add_(100)
    model.save(after)
    certificate.save(proof)
    verify(proof, before)  # it is about these, and says so
    with pytest.raises(ProofRejected):
        verify(proof, after)
    assert ef.load(after).sha256 == model.sha256 != certificate.weights_sha256


def test_a_graph_keeps_its_numbers_to_itself():
    model = certified()
    graph = iteration_graph(model)
    with torch.no_grad():
        for buffer in graph.buffers():
            buffer.fill_(0)
    assert model.certify().verdict == "exact"
    assert model == ef.construct(ef.boolean())
    assert model.evaluate("(1|0)", "model") == "1"
