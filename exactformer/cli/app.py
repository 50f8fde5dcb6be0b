"""What all commands share: the application, their common arguments, and what a mistake leads to."""

import json
import os
import sys
from collections.abc import Collection, Iterable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from exactformer import __version__
from exactformer.domains.algebra import Algebra
from exactformer.domains.bounds import MOST_SEEDS, require
from exactformer.domains.catalog import BUILT_IN, find_algebra
from exactformer.domains.definition import load_algebra
from exactformer.domains.errors import ExpressionError
from exactformer.domains.formats.lines import BadLines
from exactformer.domains.plain import suggestion
from exactformer.engine import choice
from exactformer.model.iterations import Iterations

# Torch's threads would otherwise spin while they wait, which a busy machine pays for dearly.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


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


def read_algebra(name: str) -> Algebra:
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
        parser=read_algebra,
        metavar="DOMAIN",
        help=f"{', '.join(BUILT_IN)}, a variant such as listops-10-mean, or the path of a .toml "
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
    choice.EngineName,
    typer.Option(
        "--engine",
        help="fast: what is read off certified weights, in one pass; model: the transformer, level "
        "by level; auto: fast where that can be and its tables are soon made.",
    ),
]
IterationsName = Annotated[
    Iterations | None,
    typer.Option(
        "--iterations",
        help="Of the transformer: depth, as many as an expression is deep (as in the paper); log, "
        "at most 1 + log2 of its values, for certified weights.",
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
RayAddress = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="ADDRESS",
        help="Spread the work over the Ray cluster at HOST:PORT or ray://HOST:PORT; auto: the one "
        "that runs on this machine.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]


def print_json(items: Iterable[Any]) -> None:
    """A list, item by item: it may be longer than the memory is large."""
    separator = "["
    for item in items:
        sys.stdout.write(separator + json.dumps(item, ensure_ascii=False))
        separator = ", "
    print("[]" if separator == "[" else "]")


def read_constants(assignments: list[str]) -> dict[str, str]:
    pairs = [assignment.partition("=") for assignment in assignments]
    for name, equals, value in pairs:
        if not (name and equals and value):
            raise typer.BadParameter(f"expected NAME=VALUE, found {name + equals + value!r}")
    return {name: value for name, _, value in pairs}


def read_seeds(text: str) -> tuple[int, ...]:
    """Numbers and ranges of numbers, both ends included."""
    seeds: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not (first.isdecimal() and (last.isdecimal() if dash else not last)):
            raise typer.BadParameter(
                f"expected numbers separated by commas, or ranges such as 0-99, found {text!r}"
            )
        require("seeds", int(last or first) - int(first), MOST_SEEDS)
        seeds += range(int(first), int(last or first) + 1)
    return tuple(seeds)


def require_known(names: Iterable[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            hint = suggestion(name, known)
            raise typer.BadParameter(f"expected some of {', '.join(known)}, found {name!r}{hint}")


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
