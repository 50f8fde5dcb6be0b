"""The command that trains thousands of seeds."""

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from exactformer.cli.app import Domain, Json, RayAddress, app, read_constants, read_seeds


@app.command()
def sweep(
    domain: Domain,
    seeds: Annotated[str, typer.Option(help="Such as 0-9999, or 8739,7520.")],
    out: Annotated[
        Path, typer.Option(help="Folder for weights and tables; an interrupted sweep goes on.")
    ],
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE,VALUE",
            help="Values of a constant of the recipe (or of method) to train every seed with; with "
            "several of these, every combination.",
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes; one for each core, up to 8 on cuda.")
    ] = None,
    block: Annotated[
        int | None, typer.Option(min=1, help="Seeds trained together; 20, or 125 on cuda.")
    ] = None,
    ray: RayAddress = None,
    as_json: Json = False,
) -> None:
    """Train and certify many seeds under many settings: success, steps and margins by setting."""
    if ray is not None and workers is not None:
        raise ValueError("expected --workers or --ray: a cluster has as many as it has CPUs")
    grid = {name: words.split(",") for name, words in read_constants(settings or []).items()}
    chosen = read_seeds(seeds)

    from exactformer.sweep import read_rows, write_results
    from exactformer.sweep import sweep as run

    try:
        shards = run(
            domain, chosen, out, settings=grid, device=device, block=block, workers=workers, ray=ray
        )
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here", file=sys.stderr)
        raise typer.Exit(130) from None
    rows = read_rows(out, shards)
    written = write_results(out, rows)
    if find_spec("matplotlib"):  # an extra: the table is there without it
        from exactformer.sweep.plots import plot

        written += plot(out, rows)
    for path in written:
        print(f"written: {path}", file=sys.stderr)
    if as_json:
        print(json.dumps([{"setting": dict(row.setting), "seeds": row.records} for row in rows]))
    else:
        print((out / "sweep.md").read_text())
