"""The command line: thin. Each command reads its arguments, calls the library and prints."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from exactformer.domains.algebra import Algebra
from exactformer.domains.catalog import CATALOG
from exactformer.domains.syntax import Expression, ExpressionError, parse

# Torch's threads would otherwise spin while they wait, which a busy machine pays for dearly.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

SHOWN_PROBLEMS = 10  # bad lines of a file that are told one by one

app = typer.Typer(
    help="A tiny transformer that computes exactly, at any length, and can prove it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _algebra(name: str) -> Algebra:
    if name not in CATALOG:
        raise typer.BadParameter(f"expected one of {', '.join(CATALOG)}, found {name!r}")
    return CATALOG[name]()


Domain = Annotated[
    Algebra,
    typer.Argument(parser=_algebra, metavar="DOMAIN", help=f"{', '.join(CATALOG)}."),
]
WeightsName = Annotated[
    str,
    typer.Option(
        "--weights",
        help="constructed, constructed/table, constructed/fitted, constructed/dense, the name of "
        "shipped weights, or a file.",
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
            for op in domain.operators
        ],
        "spellings": dict(domain.spellings),
        "D": shape.D,
        "d_h": shape.d_h,
        "hidden": shape.hidden,
        "activation": shape.activation,
        "parameters": shape.parameters,
    }
    if as_json:
        print(json.dumps(facts, ensure_ascii=False))
        return
    facts["vocabulary"] = " ".join(domain.vocabulary)
    facts["operators"] = ", ".join(
        f"{op.symbol} of {' or '.join(map(str, op.arities))}" for op in domain.operators
    )
    facts["spellings"] = (
        " ".join(f"{other}={own}" for other, own in domain.spellings.items()) or "none"
    )
    for key, value in facts.items():
        print(f"{key:<12}{value}")


@app.command()
def sample(
    domain: Domain,
    depth: Annotated[int, typer.Option(min=0, help="Exact depth of each expression.")] = 2,
    count: Annotated[int, typer.Option(min=0, help="How many.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the generator.")] = 0,
    balanced: Annotated[bool, typer.Option("--balanced", help="Each value equally often.")] = False,
    as_json: Json = False,
) -> None:
    """Random expressions of an exact depth, each with its value, separated by a tab."""
    import numpy as np

    from exactformer.domains.reference import evaluate
    from exactformer.domains.sampling import draw, draw_balanced

    expressions = (draw_balanced if balanced else draw)(
        domain, depth, count, np.random.default_rng(seed)
    )
    if as_json:
        rows = [{"expression": str(e), "value": evaluate(e), "tokens": len(e)} for e in expressions]
        print(json.dumps(rows, ensure_ascii=False))
        return
    for expression in expressions:
        print(f"{expression}\t{evaluate(expression)}")


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
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    as_json: Json = False,
) -> None:
    """Print the value of an expression, or of each line of a file."""
    if (expression is None) == (file is None):
        raise typer.BadParameter("expected an expression or --file, and not both")
    expressions = [parse(domain, expression)] if expression is not None else _read(domain, file)
    from exactformer.api import find

    values = find(domain, weights).to(device).predict(expressions)
    for number, (read, value) in enumerate(zip(expressions, values, strict=True), start=1):
        if value is None:
            raise ValueError(
                f"expression {number}, {read!r}: no single value is left: the weights are not exact"
            )
    if as_json:
        print(json.dumps(values[0] if file is None else values, ensure_ascii=False))
        return
    print("\n".join(str(value) for value in values))


def _read(domain: Algebra, file: Path | None) -> list[Expression]:
    """Every line of a file as an expression; one bad line is enough for nothing to be printed."""
    data = sys.stdin.buffer.read() if str(file) == "-" else Path(str(file)).read_bytes()
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if not lines[-1]:
        lines.pop()
    if not lines:
        raise ValueError(f"{file}: expected an expression on each line, found an empty file")
    expressions: list[Expression] = []
    problems: list[str] = []
    for number, line in enumerate(lines, start=1):
        try:
            expressions.append(parse(domain, line, first_line=number))
        except ExpressionError as error:
            problems.append(str(error))
    if problems:
        shown = "\n".join(problems[:SHOWN_PROBLEMS])
        more = len(problems) - SHOWN_PROBLEMS
        raise ValueError(f"{file}: {shown}" + (f"\nand {more} more bad lines" if more > 0 else ""))
    return expressions


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
) -> None:
    """Write weights made by hand (or shipped ones) to a file."""
    from exactformer.api import find

    find(domain, weights).save(out)
    print(out)


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
    as_json: Json = False,
) -> None:
    """Re-check a proof in exact arithmetic, without torch and without the model's code."""
    from exactformer.verify import ProofRejected
    from exactformer.verify import verify as check_proof

    try:
        findings = check_proof(proof, weights)
        margin = float(findings.smallest_margin)
        accepted, reason = True, f"{findings.algebra}, {findings.rows} rows, margin {margin:.6g}"
    except ProofRejected as rejection:
        accepted, reason = False, str(rejection)
    if as_json:
        print(json.dumps({"accepted": accepted, "reason": reason}, ensure_ascii=False))
    else:
        print(f"{'accepted' if accepted else 'rejected'}: {reason}")
    if not accepted:
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
