"""Figures: files of a sensible size with the expected words, the same each time."""

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import matplotlib.image
import numpy as np
import pytest

from exactformer.domains.catalog import CATALOG, arithmetic, boolean
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw
from exactformer.domains.syntax import parse
from exactformer.paper import depth_table, loss_curves, published
from exactformer.paper.depth_table import table5, try_depths
from exactformer.paper.figures import CIRCUITS, FIGURES
from exactformer.paper.loss_curves import Point
from exactformer.paper.plots import models
from exactformer.paper.tables import TABLES
from exactformer.trace.palette import CLUSTERS, KINDS, TASKS, kind_of
from exactformer.training.recipe import end_to_end_recipe
from exactformer.training.run import train_seeds

WORDS = {
    "fig1": ["|", "&", "~", "(((~0)&1)|(0&(~1)))", "((3*7)+(5*3))", "(1+5)", "iteration 3"],
    "fig2": ["(", ")", "1", "0", "&", "|", "~", "−1", "reduction mask", "| receives 1, 0 and |"],
    "fig3": ["(", ")", "&", "+½", "−½", "Iteration 2", "Theorem 1", "is the value, 1."],
    "fig4": ["arithmetic", "Boolean", "ListOps", "280", "924", "4,416", "depth", "mean tokens"],
    "accuracy": ["Boolean", "ListOps", "ours, certified", "RoPE", "CRvNN", "commonest answer"],
    "factors": ["Boolean", "maximum detached 1", "through residual 0", "certified"],
    "figA1": ["(", ")", "&", "raw logits", "discrete", "hidden unit", "constructed", "7520"],
}


def few_curves(path: Path) -> loss_curves.Curves:
    """A made-up curve for each seed, in place of minutes of training."""
    curves = {
        task: {
            seed: {step: Point(0.75 + i / 4, 0.25, i / 16) for step in (50, 100)}
            for i, seed in enumerate(published.SEEDS)
        }
        for task in CATALOG
    }
    loss_curves._write(path, curves)
    return curves


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("figures")
    few_curves(folder / "loss_curves.csv")
    return folder


@pytest.mark.parametrize("name", FIGURES)
def test_figure(name, folder):
    paths = TABLES[name](folder)
    png, svg = paths[:2]
    assert (png.name, svg.name) == (f"{name}.png", f"{name}.svg")
    height, width, _ = matplotlib.image.imread(png).shape
    assert 1200 <= width <= 2400
    assert 0.35 <= height / width <= 1.2
    assert np.std(matplotlib.image.imread(png)[..., :3]) > 0.02  # not a blank page
    root = ElementTree.parse(svg).getroot()
    assert root.tag.endswith("}svg")
    texts = ["".join(e.itertext()).strip() for e in root.iter() if e.tag.endswith("}text")]
    for word in WORDS[name]:
        assert any(word == text or (len(word) > 2 and word in text) for text in texts), word
    assert f"exactformer reproduce {name}" in svg.read_text()
    before = [drawn(path) for path in paths]
    assert [drawn(path) for path in FIGURES[name](folder)] == before


def drawn(path: Path) -> bytes:
    """All but the names of clip paths: hashes of numbers whose last digits the solver of layouts
    leaves one way or another.
    """
    data = path.read_bytes()
    return re.sub(rb'(id="|url\(#)p[0-9a-f]{10}\b', b"", data) if path.suffix == ".svg" else data


def test_without_matplotlib_the_error_says_what_to_install(tmp_path):
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from exactformer.cli import main\n"
        "sys.argv = ['exactformer', 'reproduce', 'fig2']\n"
        "main()"
    )
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert result.returncode == 2
    assert "pip install 'exactformer[figures]'" in result.stderr
    assert "Traceback" not in result.stderr
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_the_circuits_have_the_papers_values():
    values = {letter: evaluate(parse(make(), text)) for letter, (make, text) in CIRCUITS.items()}
    assert values == {"A": "1", "B": "6"}


def test_a_colour_means_one_thing():
    inks = [ink.edge for ink in (*KINDS.values(), *CLUSTERS)] + [
        color for color, _ in TASKS.values()
    ]
    assert len(set(inks)) == len(inks)
    kinds = [kind_of(arithmetic(), symbol) for symbol in ("(", ")", "0", "9", "*", "·")]
    assert kinds == ["parenthesis"] * 2 + ["value"] * 2 + ["operator", "empty"]


def test_figA1_shows_the_start_and_the_end_of_the_same_run():
    constructed, random, learned = models(boolean(), 7520).values()
    assert "W_Q_logits" not in constructed
    assert constructed["W_1"].shape == random["W_1"].shape == learned["W_1"].shape == (7, 14)
    assert not random["G_PE"].any()
    assert learned["G_PE"].tolist() == constructed["G_PE"].tolist() == [1, -1, 0, 0, 0, 0, 0]
    for arrays in (random, learned):
        assert ((arrays["W_Q_logits"] > 0) == arrays["W_Q"]).all()
        assert ((arrays["W_K_logits"] > 0) == arrays["W_K"]).all()


def test_seeds_are_recorded_while_they_train():
    algebra, recipe = boolean(), end_to_end_recipe(boolean(), epochs=100)
    recorder = loss_curves.Recorder(18, recipe)
    train_seeds(algebra, [7520], recipe=recipe, observers=[recorder])
    points = list(recorder.curves[7520].values())
    assert [*recorder.curves[7520]] == [50, 100, 150]
    assert points[0].loss > points[-1].loss > 0.32
    assert points[0].one > points[-1].one
    assert all(0 <= point.two <= 1 and (point.two * 64).is_integer() for point in points)


def test_finished_curves_are_not_trained_again(tmp_path, monkeypatch):
    curves = few_curves(tmp_path / "curves.csv")
    monkeypatch.setattr(loss_curves, "train_seeds", None)
    assert loss_curves.loss_curves(tmp_path / "curves.csv") == curves


@pytest.mark.parametrize("text", ["", "task,seed,step,loss\n", "{header}\n{columns}\nboolean,x\n"])
def test_a_damaged_file_of_curves(text, tmp_path):
    path = tmp_path / "curves.csv"
    path.write_text(text.format(header=loss_curves.HEADER, columns=loss_curves.COLUMNS))
    with pytest.raises(ValueError, match=r"curves\.csv: .*; remove it to train again"):
        loss_curves.loss_curves(path)


class Wrong:
    """A model that is right on the shallow ones alone."""

    def predict(self, problems):
        return [evaluate(problem) if problem.depth < 3 else None for problem in problems]


def test_problems_that_come_out_right_are_counted():
    scores = try_depths({"boolean": [Wrong(), Wrong()]}, 2, 3, 100)["boolean"]  # type: ignore[list-item]
    assert [scores[2].correct, scores[3].correct] == [100, 0]
    rng = np.random.default_rng(0)
    draw(boolean(), 1, 100, rng)  # a depth has the same problems whichever is the first
    for depth in (2, 3):
        drawn = [len(problem) for problem in draw(boolean(), depth, 100, rng)]
        assert scores[depth].lengths == drawn


def test_table5(tmp_path, monkeypatch):
    summaries = {t: s._replace(last_depth=3) for t, s in published.MODEL_SUMMARY.items()}
    monkeypatch.setattr(published, "MODEL_SUMMARY", summaries)
    csv, markdown = table5(tmp_path)
    first, header, *rows = csv.read_text().splitlines()
    assert first == "# exactformer reproduce table5"
    assert header.startswith("task,depth,right,problems")
    assert len(rows) == 3 * 3
    assert all(row.split(",")[2:4] == ["100", "100"] for row in rows)
    assert "boolean,3,100,100," in csv.read_text()
    text = markdown.read_text()
    assert "**900 of 900**" in text
    assert "14.29" in text  # the paper's
    assert "8739, 7520" in text


def test_a_shipped_model_without_its_proof_is_no_model(tmp_path, monkeypatch):
    monkeypatch.setattr(depth_table, "SHIPPED", tmp_path)
    with pytest.raises(OSError, match=r"proof\.json"):
        depth_table.proved("boolean")
