"""The command that writes models and problems for other people's tools."""

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from exactformer.cli.app import Domain, Json, app
from exactformer.problems.depths import read_depths

Kind = Literal["dataset", "lm-eval"]


@app.command()
def export(
    kind: Annotated[
        Kind,
        typer.Argument(
            metavar="KIND",
            help="dataset: a folder for Hugging Face's datasets; lm-eval: tasks for "
            "lm-evaluation-harness.",
        ),
    ],
    domain: Domain,
    out: Annotated[Path, typer.Option(help="The new folder.")],
    depths: Annotated[
        str, typer.Option(help="To be tested on, such as 3-30 or 4,8; 1 and 2 are to learn from.")
    ] = "3-30",
    count: Annotated[int, typer.Option(min=1, help="Problems of each depth.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the problems.")] = 0,
    balanced: Annotated[bool, typer.Option("--balanced", help="Each value equally often.")] = False,
    format: Annotated[
        Literal["jsonl", "parquet"] | None,
        typer.Option(help="Of a dataset's files: jsonl or parquet.", show_default=False),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write the same problems for other people's models and tools."""
    from exactformer.problems.dataset_folder import write_dataset
    from exactformer.problems.lm_eval_folder import write_lm_eval

    asked = read_depths(depths)
    if kind == "dataset":
        sizes = write_dataset(
            domain, out, asked, count, seed, balanced=balanced, format=format or "jsonl"
        )
        words = ", ".join(f"{size:,} rows in {split}" for split, size in sizes.items())
        print(json.dumps({"out": str(out), "splits": sizes}) if as_json else f"{out}: {words}")
    else:
        if format is not None:
            raise ValueError("--format is for a dataset: the tasks have their problems as jsonl")
        group, *tasks = write_lm_eval(domain, out, asked, count, seed, balanced=balanced)
        said = {"out": str(out), "group": group, "tasks": tasks}
        print(json.dumps(said) if as_json else f"{out}: {group}, {len(tasks)} tasks")
