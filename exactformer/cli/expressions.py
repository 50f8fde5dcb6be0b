"""Commands about an algebra and its expressions: facts, random ones, and their values."""

import json
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, BadParameter, Exit, Option

from exactformer.cli.app import (
    Device,
    Domain,
    IterationsBy,
    Json,
    NoLimit,
    ProgramFile,
    RayAddress,
    WeightsName,
    app,
    one_of,
)
from exactformer.cli.facts import facts_of
from exactformer.cli.values import BAD_LINE, print_json, print_outcomes, print_values
from exactformer.domains.capabilities import require_capability
from exactformer.domains.catalog import CATALOG, Median
from exactformer.domains.expression import Expression
from exactformer.domains.formats.blocks import Kept
from exactformer.domains.formats.labelled import Format
from exactformer.domains.formats.lines import BadLines
from exactformer.domains.formats.nangia import format_nangia
from exactformer.domains.formats.syntaxes import Syntax, parse
from exactformer.engine.choice import EngineName
from exactformer.model.iterations import MOST_WORK
from exactformer.problems.depths import read_depths

if TYPE_CHECKING:
    from exactformer.evaluation.values import Evaluator
    from exactformer.host.progress import Tell
    from exactformer.problems.draw import Problem
    from exactformer.problems.files import FileFormat

Engine = Annotated[
    EngineName,
    Option(
        **one_of(EngineName),
        help="fast: look up the tables of certified weights, in one pass, without the "
        "transformer; model: run the transformer itself, level by level; auto: fast if the weights "
        "are certified and the tables build in about a second, else model. --json says which ran.",
    ),
]

SampleFormat = Literal["tsv", "lra", "jsonl", "parquet"]

DRAWN_AT_ONCE = 100_000  # expressions of a sample


@app.command()
def info(domain: Domain, as_json: Json = False) -> None:
    """Print the vocabulary, the operators and the size of the paper's model; facts of a machine."""
    data, words = facts_of(domain)
    if as_json:
        print(json.dumps(data, ensure_ascii=False))
        return
    for key, value in (data | words).items():
        print(f"{key:<12}{value}")


@app.command()
def sample(
    domain: Domain,
    depth: Annotated[
        int | None, Option(min=0, help="Exact depth of each expression; 2 if not given.")
    ] = None,
    length: Annotated[
        int | None,
        Option(min=1, help="Of a domain without depth: symbols of each text; 20 if not given."),
    ] = None,
    depths: Annotated[
        str | None, Option(help="Several depths, such as 1-30 or 2,4,8; rows of all columns.")
    ] = None,
    count: Annotated[int, Option(min=0, help="How many, of each depth.")] = 10,
    seed: Annotated[int, Option(min=0, help="Seed of the generator.")] = 0,
    balanced: Annotated[bool, Option("--balanced", help="Each value equally often.")] = False,
    parentheses: Annotated[
        float | None,
        Option(
            min=0,
            max=1,
            help="In plain notation: the share of operands with parentheses that they do not need; "
            "0.2 if not given.",
        ),
    ] = None,
    format: Annotated[
        SampleFormat,
        Option(
            **one_of(SampleFormat),
            help="jsonl, parquet: rows of all columns; lra: the ListOps set of the Long Range "
            "Arena, drawn anew, as its file.",
        ),
    ] = "tsv",
    out: Annotated[Path | None, Option(help="A file for rows of all columns.")] = None,
    as_json: Json = False,
) -> None:
    """Print random expressions of an exact depth, or texts of an exact length, with their values.

    An expression and its value are separated by a tab; with --depths, --out, or --format jsonl or
    parquet, there are rows with id, expression, depth, tokens, value and prompt.
    """
    import numpy as np

    from exactformer.domains.formats.long_range import HEADER, draw_long_range
    from exactformer.domains.reference import evaluate
    from exactformer.domains.sampling import DRAWN, draw_balanced
    from exactformer.host.progress import bar
    from exactformer.problems.draw import problems

    if depth is not None and depths is not None:
        raise ValueError("expected --depth or --depths, not both")
    drawn, given = DRAWN[domain.kind], {"depth": depth, "length": length}
    if balanced or depths is not None or out is not None or format != "tsv":
        require_capability("problems", domain)
    if parentheses is not None:
        require_capability("parentheses", domain)
    for by, number in given.items():
        if number is not None and by != drawn.by:
            raise ValueError(
                f"texts of {domain.name!r} are drawn by their {drawn.by}: expected --{drawn.by}, "
                f"not --{by}"
            )
    asked = given[drawn.by]
    exact = drawn.usual if asked is None else asked
    share = {} if parentheses is None else {"parentheses": parentheses}
    rng = np.random.default_rng(seed)
    write = str

    def some_at_a_time(tell: "Tell") -> Iterator[Expression]:
        for done in range(0, count, DRAWN_AT_ONCE):
            tell("expressions", done, count)
            at_once = min(DRAWN_AT_ONCE, count - done)
            yield from drawn.draw(domain, exact, at_once, rng, **share)

    with bar(shown=out is not None or not sys.stdout.isatty()) as tell:
        if format == "lra":
            chosen = balanced or any(o is not None for o in (depth, depths, parentheses, out))
            if domain != CATALOG["listops"]() or chosen:
                raise ValueError(
                    "the Long Range Arena's set is of listops, has depths of its own and goes to "
                    "standard output"
                )
            expressions, write = draw_long_range(count, rng), format_nangia
        elif format != "tsv" or depths is not None or out is not None:
            several = [exact] if depths is None else read_depths(depths)
            rows = problems(domain, several, count, seed, balanced=balanced, **share)
            _write_rows(_told(rows, tell, count * len(several)), format, out, as_json)
            return
        elif balanced:
            expressions = draw_balanced(domain, exact, count, rng, **share)
        else:
            expressions = some_at_a_time(tell)
        if as_json:
            print_json(
                {"expression": write(e), "value": evaluate(e), "tokens": len(e)}
                for e in expressions
            )
            return
        if format == "lra":
            print(HEADER)
        for expression in expressions:
            print(f"{write(expression)}\t{evaluate(expression)}")


def _told(rows: Iterator["Problem"], tell: "Tell", total: int) -> Iterator["Problem"]:
    for done, row in enumerate(rows):
        tell("rows", done, total)
        yield row


def _write_rows(
    rows: Iterator["Problem"], format: "FileFormat", out: Path | None, as_json: bool
) -> None:
    """Write rows with all columns to a file or to standard output."""
    from exactformer.problems.files import write_lines, write_problems

    if out is not None:
        written = write_problems(rows, out, format)
        if as_json:
            print(json.dumps({"out": str(out), "rows": written}))
    elif as_json:
        print_json(row.to_dict() for row in rows)
    else:
        write_lines(rows, sys.stdout, format)


@app.command("eval")
def evaluate_expressions(
    domain: Domain,
    expression: Annotated[str | None, Argument(metavar="EXPR")] = None,
    file: Annotated[
        Path | None,
        Option(
            help="One expression a line in, one value a line out; - reads standard input. Values "
            "come when the last line has been read and all are right, not line by line."
        ),
    ] = None,
    program: ProgramFile = None,
    outputs: Annotated[
        str | None,
        Option(
            metavar="NAME,...",
            help="With --program: the names whose values are printed. Unless given, those that no "
            "statement uses.",
        ),
    ] = None,
    weights: WeightsName = "constructed",
    engine: Engine = "auto",
    device: Device = "cpu",
    syntax: Annotated[
        Syntax,
        Option(
            **one_of(Syntax),
            help="How the text is written: native; python, with its precedence; nangia, as the "
            "published ListOps files are.",
        ),
    ] = "native",
    iterations: IterationsBy = None,
    no_limit: NoLimit = False,
    keep_going: Annotated[
        bool,
        Option(
            "--keep-going",
            help=f"With --file: evaluate the lines behind a bad one, too. A bad line is {BAD_LINE} "
            "in the output, or null in JSON; the exit status is still 2. A bad line of over "
            "256 MiB is the last one read.",
        ),
    ] = False,
    ray: RayAddress = None,
    as_json: Json = False,
) -> None:
    """Print the value of an expression, or of each line of a file or pipe of any size.

    With --program, print the results of a program, each as name=value. Values come from the tables
    of certified weights or from the transformer: see --engine.
    """
    given = [part for part in (expression, file, program) if part is not None]
    if len(given) != 1 or expression == "-":
        found = "neither" if not given else "both" if given[1:] else "-"
        raise BadParameter(
            f"expected an expression or --file FILE, found {found}; --file - reads standard input, "
            f"and --program FILE is for statements with names"
        )
    from exactformer.evaluation.values import Evaluator

    if outputs is not None and program is None:
        raise BadParameter("--outputs is for --program")
    if program is not None and (syntax != "native" or ray is not None):
        raise BadParameter("--program is native text, read on this machine: no --syntax, no --ray")
    if keep_going and (file is None or ray is not None):
        raise BadParameter("--keep-going is for --file on this machine: not for EXPR or --ray")
    most_work = None if no_limit else MOST_WORK
    evaluator = Evaluator(domain, weights, engine, iterations, most_work, device, keep_going)
    if program is not None:
        _print_program(evaluator, program, outputs, as_json)
        return
    if expression is not None:
        if ray is not None:
            raise BadParameter("expected --file with --ray, found an expression")
        found = evaluator.answer(parse(domain, expression, syntax))
        print(json.dumps(found, ensure_ascii=False) if as_json else found["value"])
        return
    path = Path(str(file))
    lines = evaluator
    if ray is not None:
        from exactformer.evaluation.sharded import OnCluster

        lines = OnCluster(evaluator, ray)
    run = lines.runs == "model"
    bad: BadLines | None = None
    with Kept[Any]() as kept:  # until all lines are known to be right, or which ones are bad
        try:
            kept.keep((lines.line_outcomes if run else lines.line_values)(path, syntax))
        except BadLines as error:
            if not keep_going:
                raise
            bad = error
        if run:
            print_outcomes(kept, as_json)
        else:
            print_values(kept, evaluator.algebra, as_json)
    if bad:
        sys.stdout.flush()  # values first: their reader knows then which lines are told of
        raise bad


def _print_program(evaluator: "Evaluator", path: Path, outputs: str | None, as_json: bool) -> None:
    """Print the results of the program in a file."""
    from exactformer.evaluation.programs import read_program, run_program
    from exactformer.host.progress import bar, is_typed

    names = None if outputs is None else [name.strip() for name in outputs.split(",")]
    program = read_program(evaluator.domain, path, names)
    with bar(shown=not is_typed(str(path))) as tell:
        total = len(program)
        done = run_program(evaluator, program, None, lambda s: tell("statements", s * total, total))
    if as_json:
        print(json.dumps(done.to_dict(), ensure_ascii=False))
    else:
        print("".join(f"{name}={value}\n" for name, value in done.outputs.items()), end="")


@app.command()
def score(
    domain: Domain,
    file: Annotated[Path, Argument(metavar="FILE", help="- reads standard input.")],
    format: Annotated[
        Format | None,
        Option(
            **one_of(Format),
            help="tsv: an expression and its value, as sample writes them; nangia and lra: "
            "published ListOps; bowman: pairs of formulas. Unless given, by the first line.",
        ),
    ] = None,
    weights: WeightsName = "constructed",
    median: Annotated[
        Median | None,
        Option(
            **one_of(Median),
            help="MED of an even number in published ListOps files: the floor of the mean of the "
            "middle two, as published (the default), or the lower one, as in the paper.",
        ),
    ] = None,
    engine: Engine = "auto",
    no_limit: NoLimit = False,
    predictions: Annotated[
        Path | None,
        Option(
            help="Score these instead, by depth, for a FILE of rows as sample --out writes them: "
            "JSON lines with id and prediction, samples that lm_eval --log_samples has logged, or "
            "the folder of such logs."
        ),
    ] = None,
    answers: Annotated[
        Literal["reasoned", "alone"] | None,
        Option(
            help="How a prediction is read. reasoned (the default): the last value after a marker "
            "such as 'answer is', else the last value; alone: its first line must be the value."
        ),
    ] = None,
    ray: RayAddress = None,
    as_json: Json = False,
) -> None:
    """Count the rows of a labelled file of any size that are right, and show the first ten others.

    Values come from the tables of certified weights or from the transformer: see --engine. With
    --predictions, those of another model are scored instead.
    """
    if predictions is not None:
        unless_given = (None, "constructed", None, "auto", False, None)
        if (format, weights, median, engine, no_limit, ray) != unless_given:
            raise ValueError(
                "--predictions are scored as they are: expected no option but --answers and --json"
            )
        from exactformer.problems.predictions import score_predictions

        require_capability("problems", domain)
        scored = score_predictions(domain, file, predictions, answers or "reasoned")
        print(json.dumps(scored.to_dict(), ensure_ascii=False) if as_json else scored)
        return
    if answers is not None:
        raise ValueError("--answers is for --predictions: a certified model gives values alone")
    from exactformer.evaluation.score import Task
    from exactformer.evaluation.score import score as score_file
    from exactformer.host.progress import bar, is_typed

    most_work = None if no_limit else MOST_WORK
    task = Task(domain, file, format, weights, median, engine, most_work)
    if ray is not None:
        from exactformer.evaluation import sharded

        score_file = partial(sharded.score, ray)
    with bar(shown=not is_typed(file)) as tell:
        result = score_file(task, tell)
    print(json.dumps(result.to_dict(), ensure_ascii=False) if as_json else result)
    if result.wrong:
        raise Exit(1)
