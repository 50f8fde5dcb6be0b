"""The command line: thin. Each command reads its arguments, calls the library and prints."""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from exactformer.domains.algebra import Algebra
from exactformer.domains.catalog import CATALOG, Median, find_algebra
from exactformer.domains.definition import load_algebra
from exactformer.domains.formats import Format, Lines, all_right
from exactformer.domains.nangia import format_nangia, parse_nangia
from exactformer.domains.pythonic import parse_python
from exactformer.domains.syntax import Expression, parse

if TYPE_CHECKING:
    from exactformer.api import Model

# Torch's threads would otherwise spin while they wait, which a busy machine pays for dearly.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

READERS = {"native": parse, "python": parse_python, "nangia": parse_nangia}

app = typer.Typer(
    help="A tiny transformer that computes exactly, at any length, and can prove it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _algebra(name: str) -> Algebra:
    if not name.endswith(".toml"):
        try:
            return find_algebra(name)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None
    try:
        return load_algebra(name)
    except ValueError as error:  # of which typer would tell nothing but that there was one
        print(f"exactformer: {error}", file=sys.stderr)
        raise typer.Exit(2) from None


Domain = Annotated[
    Algebra,
    typer.Argument(
        parser=_algebra,
        metavar="DOMAIN",
        help=f"{', '.join(CATALOG)}, a variant such as listops-10-mean, or the path of a .toml "
        f"file that defines an algebra.",
    ),
]
WeightsName = Annotated[
    str,
    typer.Option(
        "--weights",
        help="constructed (or constructed/closed, /units, /table, /fitted, /dense), the name of "
        "shipped weights, or a file.",
    ),
]
EngineName = Annotated[
    Literal["fast", "model"] | None,
    typer.Option(
        "--engine",
        help="fast: what is read off certified weights, in one pass; model: the transformer, level "
        "by level. Unless given, fast where that can be.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]


@app.command()
def info(domain: Domain, as_json: Json = False) -> None:
    """Vocabulary, operators and the size of the paper's model."""
    from exactformer.model.architecture import paper_architecture

    shape = paper_architecture(domain)
    facts = {
        "name": domain.name,
        "notation": domain.notation,
        "vocabulary": list(domain.vocabulary),
        "operators": [
            {"symbol": op.symbol, "arities": list(op.arities), "ordered": op.ordered}
            | ({"rule": op.rule, "unbounded": op.unbounded} if op.rule else {})
            for op in domain.operators
        ],
        "spellings": dict(domain.spellings),
        "D": shape.D,
        "d_h": shape.d_h,
        "hidden": shape.hidden,
        "activation": shape.activation,
        "slots": shape.slots,
        "parameters": shape.parameters,
    }
    if as_json:
        print(json.dumps(facts, ensure_ascii=False))
        return
    facts["vocabulary"] = " ".join(domain.vocabulary)
    facts["operators"] = ", ".join(f"{op.symbol} of {op.counts}" for op in domain.operators)
    facts["spellings"] = (
        " ".join(f"{other}={own}" for other, own in domain.spellings.items()) or "none"
    )
    for key, value in facts.items():
        print(f"{key:<12}{value}")


@app.command()
def sample(
    domain: Domain,
    depth: Annotated[
        int | None, typer.Option(min=0, help="Exact depth of each expression; 2 if not given.")
    ] = None,
    count: Annotated[int, typer.Option(min=0, help="How many.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the generator.")] = 0,
    balanced: Annotated[bool, typer.Option("--balanced", help="Each value equally often.")] = False,
    format: Annotated[
        Literal["tsv", "lra"],
        typer.Option(help="lra: the ListOps set of the Long Range Arena, drawn anew, as its file."),
    ] = "tsv",
    as_json: Json = False,
) -> None:
    """Random expressions of an exact depth, each with its value, separated by a tab."""
    import numpy as np

    from exactformer.domains.long_range import HEADER, draw_long_range
    from exactformer.domains.reference import evaluate
    from exactformer.domains.sampling import draw, draw_balanced

    rng = np.random.default_rng(seed)
    write = str
    if format == "tsv":
        depth = 2 if depth is None else depth
        expressions = (draw_balanced if balanced else draw)(domain, depth, count, rng)
    elif domain != CATALOG["listops"]() or depth is not None or balanced:
        raise ValueError("the Long Range Arena's set is of listops and has depths of its own")
    else:
        expressions, write = draw_long_range(count, rng), format_nangia
    if as_json:
        rows = [
            {"expression": write(e), "value": evaluate(e), "tokens": len(e)} for e in expressions
        ]
        print(json.dumps(rows, ensure_ascii=False))
        return
    if format == "lra":
        print(HEADER)
    for expression in expressions:
        print(f"{write(expression)}\t{evaluate(expression)}")


@app.command()
def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="table1 (if none is given) to table5, fig1 to fig4, figA1, tokens, "
            "estimators; or all.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the files; default results, or results/quick.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A small version: fewer seeds, problems and epochs.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Tables and figures of the paper beside ours: writes files and prints the tables."""
    from exactformer.paper.tables import TABLES

    chosen = list(TABLES) if names == ["all"] else names or ["table1"]
    for name in chosen:
        if name not in TABLES:
            raise typer.BadParameter(f"expected some of {', '.join(TABLES)}, found {name!r}")
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


@app.command("eval")
def evaluate_expressions(
    domain: Domain,
    expression: Annotated[str | None, typer.Argument(metavar="EXPR", show_default=False)] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            help="One expression a line in, one value a line out; - reads standard input."
        ),
    ] = None,
    weights: WeightsName = "constructed",
    engine: EngineName = None,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    syntax: Annotated[
        Literal["native", "python", "nangia"],
        typer.Option(
            help="How the text is written: native; python, with its precedence; nangia, as the "
            "published ListOps files are."
        ),
    ] = "native",
    as_json: Json = False,
) -> None:
    """Print the value of an expression, or of each line of a file or pipe of any size."""
    if (expression is None) == (file is None):
        raise typer.BadParameter("expected an expression or --file, and not both")
    from exactformer.api import find

    model = find(domain, weights).to(device)
    fast = model.fast if engine is None else model.engine if engine == "fast" else None
    read = READERS[syntax]
    if expression is not None:
        expressions = [read(domain, expression)]
    elif fast and syntax == "native":
        from exactformer.engine.stream import file_values

        _print_values(all_right(str(file), file_values(fast, str(file))), as_json)
        return
    else:
        expressions = Lines.of(Path(str(file))).read(
            lambda line, number: read(domain, line, first_line=number)
        )
    values = fast.values(expressions) if fast else _model_values(model, expressions)
    _print_values(values if file else values[0], as_json)


def _model_values(model: "Model", expressions: list[Expression]) -> list[str]:
    values = model.predict(expressions)
    for number, (read, value) in enumerate(zip(expressions, values, strict=True), start=1):
        if value is None:
            raise ValueError(
                f"expression {number}, {read!r}: no single value is left: the weights are not exact"
            )
    return [str(value) for value in values]


def _print_values(values: list[str] | str, as_json: bool) -> None:
    if as_json:
        print(json.dumps(values, ensure_ascii=False))
    else:
        print(values if isinstance(values, str) else "\n".join(values))


@app.command()
def trace(
    domain: Domain,
    expression: Annotated[str, typer.Argument(metavar="EXPR")],
    weights: WeightsName = "constructed",
    html: Annotated[
        Path | None,
        typer.Option(
            help="Write the page of `explore` with this trace, as one file for a browser."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Each iteration: tokens, depth counts, mask, clusters, routed bags, outputs."""
    parsed = parse(domain, expression)
    if html is not None:
        from exactformer.explorer.choices import Choices
        from exactformer.explorer.page import write_trace

        write_trace(html, Choices(domain, weights), expression)
        print(json.dumps({"written": str(html)}, ensure_ascii=False) if as_json else html)
        return
    from exactformer.api import find

    steps = find(domain, weights).trace(parsed)
    print(json.dumps(steps.to_dict(), ensure_ascii=False) if as_json else steps)


@app.command()
def explore(
    domain: Annotated[
        Algebra | None,
        typer.Argument(parser=_algebra, metavar="DOMAIN", help="The algebra to start with."),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(help="The weights to start with: as elsewhere; a file is then offered too."),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Where to listen; 127.0.0.1 is this machine only.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free one.")] = 8765,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
    as_json: Json = False,
) -> None:
    """Watch the transformer reduce an expression, on a page served on this machine only."""
    import webbrowser
    from threading import Thread

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


@app.command()
def construct(
    domain: Domain,
    out: Annotated[Path, typer.Option(help="The safetensors file to write.")],
    weights: WeightsName = "constructed",
    as_json: Json = False,
) -> None:
    """Write weights made by hand (or shipped ones) to a file."""
    from exactformer.api import find

    find(domain, weights).save(out)
    print(json.dumps({"written": str(out)}, ensure_ascii=False) if as_json else out)


@app.command()
def certify(
    domain: Domain,
    weights: WeightsName = "constructed",
    out: Annotated[
        Path | None, typer.Option(help="Write the proof, or the fault, to a file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Decide whether weights are exact at every depth and length."""
    from exactformer.api import find

    certificate = find(domain, weights).certify()
    if out is not None:
        certificate.save(out)
    print(json.dumps(certificate.to_dict(), ensure_ascii=False) if as_json else certificate)
    if certificate.verdict != "exact":
        raise typer.Exit(1)


@app.command()
def verify(
    proof: Annotated[Path, typer.Argument(metavar="PROOF", help="A file that certify wrote.")],
    weights: Annotated[Path, typer.Argument(metavar="WEIGHTS", help="The weights it is about.")],
    algebra: Annotated[
        Algebra | None,
        typer.Option(
            parser=_algebra,
            metavar="DOMAIN",
            help="The algebra that both must be about. Without it they are about what they say "
            "themselves, which is sure only where that is built in.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Re-check a proof in exact arithmetic, without torch and without the model's code."""
    from exactformer.verify import ProofRejected
    from exactformer.verify import verify as check_proof
    from exactformer.verify.proof import algebra_sha256, is_built_in

    facts: dict[str, object] = {}
    try:
        findings = check_proof(proof, weights, algebra)
        about = findings.algebra
        origin = "built in" if is_built_in(about) else "as asked for" if algebra else "not built in"
        margin = float(findings.smallest_margin)
        facts = {"algebra": about.name, "algebra_sha256": algebra_sha256(about), "is": origin}
        kind = findings.checked
        accepted, reason = True, f"{findings.rows} {kind}, margin {margin:.6g}"
    except ProofRejected as rejection:
        accepted, reason = False, str(rejection)
    if as_json:
        print(json.dumps({"accepted": accepted, "reason": reason, **facts}))
    else:
        shown = ascii(reason)[1:-1]  # a file could hold what moves the cursor
        print(f"{'accepted' if accepted else 'rejected'}: {shown}")
        if facts:
            print(f"  algebra  {about.name} ({origin}), sha256 {facts['algebra_sha256']}")
        if facts and origin == "not built in":
            print("  what that name stands for is the file's own word: --algebra ties it to yours")
    if not accepted:
        raise typer.Exit(1)


@app.command()
def score(
    domain: Domain,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="- reads standard input.")],
    format: Annotated[
        Format | None,
        typer.Option(
            help="nangia (the default for listops), lra (known by its header), bowman (the "
            "default for boolean), or tsv: an expression and its value.",
            show_default=False,
        ),
    ] = None,
    weights: WeightsName = "constructed",
    median: Annotated[
        Median | None,
        typer.Option(
            help="MED of an even number in published ListOps files: the floor of the mean of the "
            "middle two, as published (the default), or the lower one, as in the paper.",
            show_default=False,
        ),
    ] = None,
    engine: EngineName = None,
    as_json: Json = False,
) -> None:
    """Count the rows of a labelled file that certified weights get right."""
    from rich.console import Console
    from rich.progress import Progress

    from exactformer.score import score as score_file

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("evaluated", total=None)
        result = score_file(
            domain,
            file,
            format,
            weights,
            median,
            engine,
            lambda done, total: bar.update(task, completed=done, total=total),
        )
    print(json.dumps(result.to_dict(), ensure_ascii=False) if as_json else result)
    if result.wrong:
        raise typer.Exit(1)


@app.command()
def train(
    domain: Domain,
    out: Annotated[Path, typer.Option(help="Folder for the weights; an interrupted run goes on.")],
    seeds: Annotated[
        str | None, typer.Option(help="Numbers separated by commas; the paper's ten if not given.")
    ] = None,
    estimator: Annotated[
        str | None,
        typer.Option(help="How the gate learns: search, score, straight-through or gumbel."),
    ] = None,
    attempts: Annotated[
        int | None, typer.Option(min=1, help="Starts that an uncertified seed gets in all.")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    tensorboard: Annotated[Path | None, typer.Option(help="Folder for TensorBoard's logs.")] = None,
    as_json: Json = False,
) -> None:
    """Train from random weights on depth 1 and 2, and certify every seed."""
    from rich.console import Console

    from exactformer.training.display import TensorBoard, Terminal
    from exactformer.training.recipe import PAPER_SEEDS, change, recipe_for
    from exactformer.training.run import Observer, summary, train_seeds

    chosen = PAPER_SEEDS if seeds is None else _seeds(seeds)
    recipe = change(recipe_for(domain), estimator=estimator, attempts=attempts)
    observers: list[Observer] = [TensorBoard(tensorboard)] if tensorboard else []
    with Terminal(domain, recipe, chosen, Console(stderr=True)) as terminal:
        observers.append(terminal)
        try:
            results = train_seeds(
                domain, chosen, recipe=recipe, out=out, device=device, observers=observers
            )
        except KeyboardInterrupt:
            print("interrupted; the same command goes on from here", file=sys.stderr)
            raise typer.Exit(130) from None
    print(json.dumps([r.record for r in results]) if as_json else summary(results))
    if not all(result.exact for result in results):
        raise typer.Exit(1)


@app.command()
def bench(
    domains: Annotated[
        list[str] | None,
        typer.Argument(metavar="DOMAIN", help=f"{', '.join(CATALOG)}; all if none is given."),
    ] = None,
    tokens: Annotated[int, typer.Option(min=5, help="Length of the longest texts.")] = 2**24,
    out: Annotated[Path | None, typer.Option(help="Also write the page to a file.")] = None,
    as_json: Json = False,
) -> None:
    """Speed and memory of the engine beside its rivals: one table, measured in one run."""
    chosen = list(dict.fromkeys(domains or CATALOG))
    for name in chosen:
        if name not in CATALOG:
            raise typer.BadParameter(f"expected some of {', '.join(CATALOG)}, found {name!r}")
    from exactformer.bench import table
    from exactformer.paper.files import write

    found = table.bench([CATALOG[name]() for name in chosen], tokens)
    page = table.markdown(found, " ".join(["exactformer", *sys.argv[1:]]))
    if out is not None:
        write(out, page)
    print(json.dumps(table.rows_of(found), ensure_ascii=False) if as_json else page)


def _seeds(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(seed) for seed in text.split(","))
    except ValueError:
        raise typer.BadParameter(f"expected numbers separated by commas, found {text!r}") from None


def main() -> None:
    """Run the command line; a user's mistake is a message and exit status 2, not a traceback."""
    try:
        app()
    except BrokenPipeError:  # the reader of our output has gone, as in `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (ValueError, OSError) as error:
        print(f"exactformer: {error}", file=sys.stderr)
        sys.exit(2)
