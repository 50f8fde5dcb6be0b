"""Every constant of training: the paper's beside ours, by task."""

from dataclasses import fields
from pathlib import Path

from exactformer.domains.catalog import CATALOG
from exactformer.paper.files import heading, table, write_both
from exactformer.training.recipe import end_to_end_recipe, recipe_for

# What the paper's Appendix B.2 and its command say, by the names of our constants.
PAPER: dict[str, str] = {
    "epochs": "1000 / 50 / 300",
    "batch": "500, or all of depth 1",
    "balanced": "True",
    "rate": "0.01",
    "feedforward_factor": "1",
    "attention_factor": "1",
    "gate_factor": "1",
    "optimizer": "adamw",
    "weight_decay": "0",
    "clip": "1",
    "warmup": "0.1",
    "warmup_from": "0.3",
    "floor": "0.05",
    "attempts": "1",
    "depth_two_batch": "as many of the 500 as the mix has",
    "depth_two_pool": "all; ListOps 8,800 new ones an epoch",
    "estimator": "straight-through",
    "feedforward_rate": "0.01",
    "attention_rate": "0.01",
    "polish_steps": "0",
    "width": "twice the vocabulary; ListOps 8 times",
}
NOT_SAID = ("surrogate", "through_residual", "through_attention", "maximum_detached")
NOT_SAID += ("betas", "spread", "open_bits")
PAPER |= dict.fromkeys(NOT_SAID, "not said")


def constants(results: Path, quick: bool = False) -> list[Path]:
    """The table of all constants of training; `quick` changes nothing, as nothing is computed."""
    text = heading("Constants", "constants")
    csv = ["method,constant,paper,boolean,arithmetic,listops"]
    recipes = {
        "end to end": {task: end_to_end_recipe(make()) for task, make in CATALOG.items()},
        "staged": {task: recipe_for(make()) for task, make in CATALOG.items()},
    }
    for method, by_task in recipes.items():
        rows = []
        for field in fields(by_task["boolean"]):
            ours = [_shown(getattr(recipe, field.name)) for recipe in by_task.values()]
            rows.append([f"`{field.name}`", PAPER.get(field.name, ""), *ours])
            csv.append(f'{method},{field.name},"{PAPER.get(field.name, "")}",' + ",".join(ours))
        header = ["constant", "the paper's", *by_task]
        text += [f"## {method.capitalize()}", "", *table(header, rows, words=2), ""]
    return write_both(results, "constants", csv, [*text, NOTE])


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return " ".join(map(_shown, value))
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


NOTE = """\
`training/recipe.py` says what each is for. An empty cell has no counterpart in the paper. Of the
paper's three numbers of epochs the first is Boolean's, then arithmetic and ListOps. Our loss is its
binary cross entropy over all tokens, of a state whose probabilities are squeezed (`margin`) with a
temperature, beside the same of depth 1's outputs; its text names no such thing."""
