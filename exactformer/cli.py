"""The command line: thin. Each command reads its arguments, calls the library and prints."""

import json
import os
import sys
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from itertools import count as count_from
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from exactformer import __version__
from exactformer.domains.algebra import Algebra
from exactformer.domains.catalog import (
    CATALOG,
    Median,
    algebra_sha256,
    find_algebra,
    is_built_in,
)
from exactformer.domains.definition import load_algebra
from exactformer.domains.formats import MOST_AT_ONCE, BadLines, Format, Kept
from exactformer.domains.nangia import format_nangia, parse_nangia
from exactformer.domains.plain import suggestion
from exactformer.domains.pythonic import parse_python
from exactformer.domains.syntax import Expression, ExpressionError, parse

if TYPE_CHECKING:
    from exactformer.progress import Tell

# Torch's threads would otherwise spin while they wait, which a busy machine pays for dearly.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

READERS = {"native": parse, "python": parse_python, "nangia": parse_nangia}

DRAWN_AT_ONCE = 100_000  # expressions of a sample
MOST_TRACED = 4_000_000  # positions of all iterations: all is kept, in half a gigabyte


class Commands(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            print("exactformer: interrupted", file=sys.stderr)
            raise typer.Exit(130) from None


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"exactformer {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """A tiny transformer that computes exactly, at any length, and can prove it."""


def _algebra(name: str) -> Algebra:
    if not name.endswith(".toml"):
        try:
            return find_algebra(name)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None
    try:
        return load_algebra(name)
    except ValueError as error:  # of which typer would tell nothing but that there was one
        _tell(error)
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
NoLimit = Annotated[
    bool,
    typer.Option(
        "--no-limit",
        help="Do what would take the transformer very long, too. It takes as many iterations as an "
        "expression is deep, over all its tokens; what costs too much is otherwise refused.",
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
    from exactformer.progress import bar

    rng = np.random.default_rng(seed)
    write = str

    def some_at_a_time(depth: int, tell: "Tell") -> Iterator[Expression]:
        for done in range(0, count, DRAWN_AT_ONCE):
            tell("expressions", done, count)
            yield from draw(domain, depth, min(DRAWN_AT_ONCE, count - done), rng)

    with bar(shown=not sys.stdout.isatty()) as tell:
        if format == "tsv":
            depth = 2 if depth is None else depth
            if balanced:
                expressions = draw_balanced(domain, depth, count, rng)
            else:
                expressions = some_at_a_time(depth, tell)
        elif domain != CATALOG["listops"]() or depth is not None or balanced:
            raise ValueError("the Long Range Arena's set is of listops and has depths of its own")
        else:
            expressions, write = draw_long_range(count, rng), format_nangia
        if as_json:
            _print_json(
                {"expression": write(e), "value": evaluate(e), "tokens": len(e)}
                for e in expressions
            )
            return
        if format == "lra":
            print(HEADER)
        for expression in expressions:
            print(f"{write(expression)}\t{evaluate(expression)}")


def _print_json(items: Iterable[Any]) -> None:
    """A list, item by item: it may be longer than the memory is large."""
    separator = "["
    for item in items:
        sys.stdout.write(separator + json.dumps(item, ensure_ascii=False))
        separator = ", "
    print("[]" if separator == "[" else "]")


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
            raise typer.BadParameter(_unknown(name, TABLES))
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
    no_limit: NoLimit = False,
    as_json: Json = False,
) -> None:
    """Print the value of an expression, or of each line of a file or pipe of any size."""
    if (expression is None) == (file is None):
        raise typer.BadParameter("expected an expression or --file, and not both")
    from exactformer.api import find
    from exactformer.model.predict import MOST_WORK
    from exactformer.values import line_values, value_of

    model, most_work = find(domain, weights).to(device), None if no_limit else MOST_WORK
    fast = model.fast if engine is None else model.engine if engine == "fast" else None
    read = READERS[syntax]
    if expression is not None:
        value = value_of(model, fast, read(domain, expression), most_work)
        print(json.dumps(value, ensure_ascii=False) if as_json else value)
        return
    values = line_values(model, fast, read, Path(str(file)), most_work)
    with Kept[str]() as kept:  # until all lines are known to be right
        kept.keep(iter(lambda: list(islice(values, MOST_AT_ONCE)), []))
        if as_json:
            _print_json(chain.from_iterable(kept))
            return
        for block in kept:
            print("\n".join(block))


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
    no_limit: NoLimit = False,
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
    from exactformer.model.predict import require_feasible
    from exactformer.progress import bar
    from exactformer.trace import trace as trace_expression

    model = find(domain, weights)
    require_feasible(parsed, None if no_limit else MOST_TRACED)
    iterations = count_from(1)
    with bar() as tell:
        steps = trace_expression(
            model.algebra,
            model.weights,
            parsed,
            lambda step: tell("iterations", next(iterations), parsed.depth),
        )
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

    try:
        findings = check_proof(proof, weights, algebra)
    except ProofRejected as rejection:
        shown = ascii(str(rejection))[1:-1]  # a file could hold what moves the cursor
        said = json.dumps({"accepted": False, "reason": shown})
        print(said if as_json else f"rejected: {shown}")
        raise typer.Exit(1) from None
    name, sha256 = findings.algebra.name, algebra_sha256(findings.algebra)
    built_in = is_built_in(findings.algebra)
    origin = "built in" if built_in else "as asked for" if algebra else "not built in"
    reason = f"{findings.rows} {findings.checked}, margin {float(findings.smallest_margin):.6g}"
    if as_json:
        facts = {"algebra": name, "algebra_sha256": sha256, "is": origin}
        print(json.dumps({"accepted": True, "reason": reason, **facts}))
        return
    print(f"accepted: {reason}\n  algebra  {name} ({origin}), sha256 {sha256}")
    if origin == "not built in":
        print("  what that name stands for is the file's own word: --algebra ties it to yours")


@app.command()
def score(
    domain: Domain,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="- reads standard input.")],
    format: Annotated[
        Format | None,
        typer.Option(
            help="tsv: an expression and its value, as sample writes them; nangia and lra: "
            "published ListOps; bowman: pairs of formulas. Unless given, by the first line.",
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
    no_limit: NoLimit = False,
    as_json: Json = False,
) -> None:
    """Count the rows of a labelled file of any size that certified weights get right, and tell the
    first ten others.
    """
    from exactformer.model.predict import MOST_WORK
    from exactformer.progress import bar, is_typed
    from exactformer.score import score as score_file

    most_work = None if no_limit else MOST_WORK
    with bar(shown=not is_typed(file)) as tell:
        result = score_file(domain, file, format, weights, median, engine, tell, most_work)
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
            raise typer.BadParameter(_unknown(name, CATALOG))
    from exactformer.bench import table
    from exactformer.paper.files import write

    found = table.bench([CATALOG[name]() for name in chosen], tokens)
    page = table.markdown(found, " ".join(["exactformer", *sys.argv[1:]]))
    if out is not None:
        write(out, page)
    print(json.dumps(table.rows_of(found), ensure_ascii=False) if as_json else page)


def _unknown(name: str, known: Iterable[str]) -> str:
    return f"expected some of {', '.join(known)}, found {name!r}{suggestion(name, known)}"


def _seeds(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(seed) for seed in text.split(","))
    except ValueError:
        raise typer.BadParameter(f"expected numbers separated by commas, found {text!r}") from None


def main() -> None:
    """Run the command line; a user's mistake is a message and exit status 2, not a traceback."""
    try:
        status = app(standalone_mode=not _as_json())  # typer would write its own errors as a box
        sys.exit(status or 0)
    except BrokenPipeError:  # the reader of our output has gone, as in `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (ValueError, OSError) as error:
        _tell(error)
    except Exception as error:
        message = getattr(error, "format_message", None)  # as typer's own errors have
        if message is None:
            raise
        _tell(ValueError(message()))
    sys.exit(2)


def _as_json() -> bool:
    """Also where the arguments are not understood."""
    return "--json" in sys.argv


def _tell(error: Exception) -> None:
    """A mistake on standard error: a line for people, or an object for programs."""
    message = str(error)
    if isinstance(error, OSError) and error.filename and error.strerror:
        message = f"{error.filename}: {error.strerror}"
    if not _as_json():
        print(f"exactformer: {message}", file=sys.stderr)
        return
    said: dict[str, Any] = {"error": message}
    if isinstance(error, ExpressionError):
        said = {"error": error.problem, **error.place}
    elif isinstance(error, BadLines):
        said |= error.place
    print(json.dumps(said, ensure_ascii=False), file=sys.stderr)
