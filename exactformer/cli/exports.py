"""The command that writes models and problems for other people's tools."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Option

from exactformer.cli.app import Domain, IterationsBy, Json, app, one_of
from exactformer.problems.depths import read_depths

Kind = Literal["onnx", "torch", "huggingface", "dataset", "lm-eval"]
DatasetFormat = Literal["jsonl", "parquet"]


@app.command()
def export(
    kind: Annotated[
        Kind,
        Argument(
            **one_of(Kind, "KIND"),
            help="onnx: the whole model; torch: one iteration, by torch.export; huggingface: a "
            "folder with weights, proof and card; dataset: problems for Hugging Face's datasets; "
            "lm-eval: tasks for lm-evaluation-harness.",
        ),
    ],
    domain: Domain,
    out: Annotated[Path, Option(help="The file, or the new folder.")],
    weights: Annotated[
        str | None,
        Option(help="A model's weights: constructed (the default), a shipped name, or a file."),
    ] = None,
    iterations: IterationsBy = None,
    depths: Annotated[
        str | None,
        Option(
            help="Depths of the problems to test on, such as 3-30 (the default) or 4,8; depths 1 "
            "and 2 are for training."
        ),
    ] = None,
    count: Annotated[
        int | None, Option(min=1, help="Problems of each depth; 100 if not given.")
    ] = None,
    seed: Annotated[int | None, Option(min=0, help="Seed of the problems; 0 if not given.")] = None,
    balanced: Annotated[
        bool, Option("--balanced", help="Draw problems with each value equally often.")
    ] = False,
    format: Annotated[
        DatasetFormat | None,
        Option(
            **one_of(DatasetFormat), help="Of a dataset's files: jsonl (the default) or parquet."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a model, or the same problems, for other people's tools."""
    said: dict[str, Any] = {"written": str(out)}
    if iterations and kind not in ("onnx", "torch"):
        raise ValueError(f"--iterations is for a graph, onnx or torch: {kind} has none")
    if kind in ("dataset", "lm-eval"):
        if weights is not None:
            raise ValueError(f"--weights is for a model: {kind} has problems only")
        from exactformer.problems.folders import write_dataset, write_lm_eval

        asked = (domain, out, read_depths(depths or "3-30"), count or 100, seed or 0)
        if kind == "dataset":
            said["splits"] = write_dataset(*asked, balanced=balanced, format=format or "jsonl")
        elif format is not None:
            raise ValueError("--format is for a dataset: the tasks have their problems as jsonl")
        else:
            said["group"], *said["tasks"] = write_lm_eval(*asked, balanced=balanced)
    else:
        if (depths, count, seed, balanced, format) != (None, None, None, False, None):
            raise ValueError(f"expected no options of problems: {kind} is of a model")
        from exactformer.api import load
        from exactformer.export.huggingface import export_folder
        from exactformer.export.onnx import export_onnx
        from exactformer.export.program import export_iteration

        model = load(weights or "constructed", domain)
        if kind == "huggingface":
            export_folder(model, out)
        else:
            writer = export_onnx if kind == "onnx" else export_iteration
            writer(model, out, iterations or "depth")
        said["weights_sha256"] = model.sha256
    print(json.dumps(said, ensure_ascii=False) if as_json else out)
