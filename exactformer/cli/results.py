"""Commands that measure: the paper's tables and figures, and the engine beside its rivals."""

import json
import sys
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Annotated

from typer import Argument, BadParameter, Option

from exactformer.cli.app import Json, app
from exactformer.domains.capabilities import require_capability
from exactformer.domains.catalog import BUILT_IN, CATALOG
from exactformer.domains.data import suggestion


@app.command()
def reproduce(
    names: Annotated[
        list[str] | None,
        Argument(
            metavar="NAME",
            help="table1 (if none is given) to table5, fig1 to fig4, figA1, tokens, "
            "end-to-end, controls, constants, estimators, factors, accuracy; or all.",
        ),
    ] = None,
    out: Annotated[
        Path | None, Option(help="Folder for the files; default results, or results/quick.")
    ] = None,
    quick: Annotated[
        bool, Option("--quick", help="A small version: fewer seeds, problems and epochs.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write tables and figures of the paper beside ours, and print the tables."""
    from exactformer.paper.tables import TABLES

    chosen = list(TABLES) if names == ["all"] else names or ["table1"]
    _require_known(chosen, TABLES)
    folder = out or Path("results/quick" if quick else "results")
    folder.mkdir(parents=True, exist_ok=True)
    written = {name: [str(path) for path in TABLES[name](folder, quick)] for name in chosen}
    if as_json:
        print(json.dumps(written, ensure_ascii=False))
        return
    for path in (path for paths in written.values() for path in paths):
        print(f"written: {path}", file=sys.stderr)
        if path.endswith(".md"):
            print(Path(path).read_text())


@app.command()
def bench(
    domains: Annotated[
        list[str] | None,
        Argument(metavar="DOMAIN", help=f"{', '.join(CATALOG)}; all if none is given."),
    ] = None,
    tokens: Annotated[int, Option(min=5, help="Length of the longest texts.")] = 2**24,
    out: Annotated[Path | None, Option(help="Also write the page to a file.")] = None,
    as_json: Json = False,
) -> None:
    """Measure speed and memory of the engine beside its rivals, in one table."""
    chosen = list(dict.fromkeys(domains or CATALOG))
    for name in BUILT_IN.keys() & chosen:
        require_capability("bench", BUILT_IN[name]())
    _require_known(chosen, CATALOG)
    from exactformer.bench import table
    from exactformer.paper.files import write

    found = table.bench([CATALOG[name]() for name in chosen], tokens)
    page = table.markdown(found, " ".join(["exactformer", *sys.argv[1:]]))
    if out is not None:
        write(out, page)
    print(json.dumps(table.rows_of(found), ensure_ascii=False) if as_json else page)


def _require_known(names: Iterable[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            hint = suggestion(name, known)
            raise BadParameter(f"expected some of {', '.join(known)}, found {name!r}{hint}")
