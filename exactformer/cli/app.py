"""What all commands share: the application, their common arguments, and what a mistake leads to."""

import json
import os
import sys
from typing import Annotated, Any

from typer import Argument, BadParameter, Exit, Option, Typer
from typer.core import TyperGroup

from exactformer import __version__
from exactformer.domains.algebra import Algebra
from exactformer.domains.catalog import BUILT_IN, find_algebra
from exactformer.domains.definition import load_algebra
from exactformer.domains.errors import ExpressionError
from exactformer.domains.formats.lines import BadLines
from exactformer.model.iterations import Iterations

# Torch's threads would otherwise spin while they wait, which a busy machine pays for dearly.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


class Commands(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            print("exactformer: interrupted", file=sys.stderr)
            raise Exit(130) from None


app = Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"exactformer {__version__}")
        raise Exit


@app.callback()
def common(
    version: Annotated[
        bool, Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """A tiny transformer that computes exactly, at any length, and can prove it."""


def read_algebra(name: str) -> Algebra:
    if not name.endswith(".toml"):
        try:
            return find_algebra(name)
        except ValueError as error:
            raise BadParameter(str(error)) from None
    try:
        return load_algebra(name)
    except ValueError as error:  # of which typer would tell nothing but that there was one
        _tell(error)
        raise Exit(2) from None


Domain = Annotated[
    Algebra,
    Argument(
        parser=read_algebra,
        metavar="DOMAIN",
        help=f"{', '.join(BUILT_IN)}, a variant such as listops-10-mean, or the path of a .toml "
        f"file that defines an algebra.",
    ),
]
WeightsName = Annotated[
    str,
    Option(
        help="constructed (or constructed/closed, /units, /table, /fitted, /dense), the name of "
        "shipped weights, or a file."
    ),
]
IterationsBy = Annotated[
    Iterations | None,
    Option(
        help="Of the transformer: depth, as many as an expression is deep (as in the paper); log, "
        "at most 1 + log2 of its values, for certified weights."
    ),
]
NoLimit = Annotated[
    bool,
    Option(
        "--no-limit",
        help="Do what would take the transformer very long, too. It takes as many iterations as an "
        "expression is deep, over all its tokens; what costs too much is otherwise refused.",
    ),
]
RayAddress = Annotated[
    str | None,
    Option(
        metavar="ADDRESS",
        help="Spread the work over the Ray cluster at HOST:PORT or ray://HOST:PORT; auto: the one "
        "that runs on this machine.",
    ),
]
Json = Annotated[bool, Option("--json", help="Machine-readable output.")]


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
