"""Commands that show what the transformer does, step by step."""

import json
import os
import sys
from contextlib import suppress
from itertools import count as count_from
from pathlib import Path
from typing import Annotated

from typer import Argument, BadParameter, Option

from exactformer.cli.app import (
    Domain,
    IterationsBy,
    Json,
    NoLimit,
    ProgramFile,
    WeightsName,
    app,
    read_domain,
)
from exactformer.domains.domain import Domain as AnyDomain
from exactformer.domains.program import Program
from exactformer.domains.syntax import parse
from exactformer.model.iterations import Iterations, most_iterations, require_feasible

MOST_TRACED = 4_000_000  # positions of all iterations: all is kept, in half a gigabyte


@app.command()
def trace(
    domain: Domain,
    expression: Annotated[str | None, Argument(metavar="EXPR")] = None,
    program: ProgramFile = None,
    weights: WeightsName = "constructed",
    html: Annotated[
        Path | None,
        Option(help="Write the page of `explore` with this trace, as one file for a browser."),
    ] = None,
    iterations: IterationsBy = None,
    no_limit: NoLimit = False,
    as_json: Json = False,
) -> None:
    """Show each iteration of the transformer on an expression, or on a program.

    By the depth: tokens, depth counts, mask, clusters, routed bags and outputs. By the logarithm
    and in plain notation: the map or the value of each span.
    """
    by = iterations or "depth"
    if (expression is None) == (program is None):
        given = "neither" if program is None else "both"
        raise BadParameter(f"expected an expression or --program FILE, found {given}")
    if program is not None:
        from exactformer.evaluation.programs import read_program

        read = read_program(domain, program)
    else:
        read = parse(domain, str(expression))
    if html is not None:
        from exactformer.explorer.choices import Choices
        from exactformer.explorer.page import write_trace

        kind = "expression" if program is None else "program"
        text = expression or str(read).rstrip()
        write_trace(html, Choices(domain, weights), text, by, kind)
        print(json.dumps({"written": str(html)}, ensure_ascii=False) if as_json else html)
        return
    if isinstance(read, Program):
        _trace_program(domain, read, weights, by, None if no_limit else MOST_TRACED, as_json)
        return
    from exactformer.api import load
    from exactformer.host.progress import bar

    require_feasible(read, None if no_limit else MOST_TRACED, iterations=by)
    model, most = load(weights, domain), most_iterations(read, by)
    number = count_from(1)
    with bar() as tell:
        steps = model.trace(read, by, lambda step: tell("iterations", next(number), most))
    print(json.dumps(steps.to_dict(), ensure_ascii=False) if as_json else steps)


def _trace_program(
    domain: AnyDomain,
    program: Program,
    weights: str,
    by: Iterations,
    most: int | None,
    as_json: bool,
) -> None:
    """Show when each statement of a program runs, and what it is after each iteration."""
    from exactformer.api import load
    from exactformer.evaluation.programs import require_feasible_program

    require_feasible_program(program, most, by)
    shown = load(weights, domain).trace_program(program, by)
    print(json.dumps(shown.to_dict(), ensure_ascii=False) if as_json else shown)


@app.command()
def explore(
    domain: Annotated[
        AnyDomain | None,
        Argument(
            parser=read_domain,
            metavar="DOMAIN",
            help="What to start with: a name such as boolean, or the path of a .toml file.",
        ),
    ] = None,
    weights: Annotated[
        str | None,
        Option(help="The weights to start with: as elsewhere; a file is then offered too."),
    ] = None,
    host: Annotated[
        str, Option(help="Where to listen; 127.0.0.1 is this machine only.")
    ] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65535, help="0 takes any free one.")] = 8765,
    browser: Annotated[
        bool, Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
    as_json: Json = False,
) -> None:
    """Watch the transformer reduce an expression, on a page served on this machine only."""
    import signal
    import webbrowser
    from threading import Thread

    signal.signal(signal.SIGINT, _give_up)  # until the server heeds it
    from exactformer.explorer.choices import Choices

    try:
        from exactformer.explorer.server import serve
    except ModuleNotFoundError as missing:
        raise ValueError(
            f"the page's server needs {missing.name}: pip install 'exactformer[explore]'"
        ) from None

    def ready(address: str) -> None:
        print(json.dumps({"address": address}) if as_json else address, flush=True)
        print("interrupt (Ctrl-C) to stop", file=sys.stderr)
        if browser:  # one in the terminal would keep us waiting
            Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    serve(Choices(domain, weights), host, port, ready)


def _give_up(*_: object) -> None:
    """End at once, without an exception: importing torch may swallow it."""
    with suppress(OSError):  # the terminal has gone
        os.write(2, b"exactformer: interrupted\n")
    os._exit(130)
