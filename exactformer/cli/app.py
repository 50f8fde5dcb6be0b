"""Common parts of all commands: the application, shared arguments, and the handling of mistakes."""

import json
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, get_args

from typer import Argument, BadParameter, Exit, Option, Typer
from typer.core import TyperGroup

from exactformer import __version__
from exactformer.cli.streams import OUTPUT, Unread, drop_output, end_unread, open_streams
from exactformer.domains.catalog import BUILT_IN, find_domain
from exactformer.domains.chomsky import FOLDER, TASKS
from exactformer.domains.data import listed, require_device, suggestion
from exactformer.domains.domain import Domain as AnyDomain
from exactformer.domains.errors import ExpressionError
from exactformer.domains.formats.lines import BadLines
from exactformer.domains.kinds import load_domain
from exactformer.domains.little_endian import LITTLE_ENDIAN
from exactformer.domains.machine_catalog import MACHINES, SPAN_MACHINES
from exactformer.domains.rearrangement_catalog import REARRANGEMENTS
from exactformer.domains.square_roots import SQUARE_ROOTS
from exactformer.model.iterations import Iterations

# Torch's threads would otherwise spin while they wait, which a busy machine pays for dearly.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


# The commands in the order in which a newcomer needs them, under the headings of --help.
GROUPS = {
    "Evaluate expressions": ("eval", "trace", "explore", "info", "sample", "circuit"),
    "Make models and prove them exact": ("construct", "train", "certify", "verify", "sweep"),
    "Score, export, reproduce": ("score", "export", "reproduce", "bench"),
}
REST = "Other commands"  # those that no heading names
HEADING = {command: heading for heading, commands in GROUPS.items() for command in commands}


class Commands(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        place = {command: number for number, command in enumerate(HEADING)}
        return sorted(super().list_commands(ctx), key=lambda name: place.get(name, len(place)))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command: Any = super().get_command(ctx, cmd_name)
        if command is not None:
            command.rich_help_panel = HEADING.get(cmd_name, REST)
        return command

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as error:
            _explain_dashes(error)
            raise
        except KeyboardInterrupt:
            print("exactformer: interrupted", file=sys.stderr)
            raise Exit(130) from None


def _explain_dashes(error: Any) -> None:
    """An option that is unknown may be text that begins with a minus sign: then say how to write
    it. (Such an error has a name that depends on the version of typer.)
    """
    option = getattr(error, "option_name", None)
    if isinstance(option, str) and re.match(r"-+[^-\w]|-+\d", option):
        text = next((word for word in sys.argv if word.startswith(option)), option)
        error.message += f". Text that begins with - goes behind --, as in -- '{text}'"


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
    """A tiny transformer that computes exactly, at any length, and can prove it.

    For example: exactformer eval arithmetic "((1+2)*(3+4))"
    """


def one_of(choices: Any, metavar: str | None = None) -> dict[str, Any]:
    """The reader of an option or argument that takes one of a Literal's words, and its name in
    --help. Any other word is refused with what may have been meant.
    """
    known: Sequence[str] = get_args(choices)

    def read(word: str) -> str:
        if word not in known:
            hint = suggestion(word, known)
            raise BadParameter(f"expected {listed(known)}, found {word!r}{hint}")
        return word

    return {"parser": read, "metavar": metavar or "|".join(known)}


def read_domain(name: str) -> AnyDomain:
    if not name.endswith(".toml"):
        try:
            return find_domain(name)
        except ValueError as error:
            hint = ""
            if Path(f"{name}.toml").is_file():
                hint = f"; did you mean the file '{name}.toml'?"
            elif "(" in name:
                hint = "; that looks like an expression, which comes after the DOMAIN"
            raise BadParameter(f"{error}{hint}") from None
    try:
        return load_domain(name)
    except ValueError as error:
        _tell(error)
        raise Exit(2) from None


def read_device(name: str) -> str:
    """A device's name; whether the machine has such a one is found out when it is used."""
    try:
        require_device(name)
    except ValueError as error:
        raise BadParameter(str(error)) from None
    return name


_DOMAIN: dict[str, Any] = {
    "metavar": "DOMAIN",
    "help": f"An algebra, {', '.join(BUILT_IN)}, or a variant such as listops-10-mean; a machine, "
    f"{', '.join(MACHINES)}, or one over spans, {', '.join(SPAN_MACHINES)}; integers, or such as "
    f"integers-2 in another base; {', '.join([*LITTLE_ENDIAN, *SQUARE_ROOTS])}; a rearrangement, "
    f"{', '.join(REARRANGEMENTS)}; chomsky/TASK, a task of the Chomsky-hierarchy benchmark, such "
    f"as {FOLDER}{next(iter(TASKS))}; or the path of a .toml file that defines one of them.",
}
Domain = Annotated[AnyDomain, Argument(parser=read_domain, **_DOMAIN)]
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
        **one_of(Iterations),
        help="Of the transformer: depth, as many as an expression is deep (as in the paper); log, "
        "at most 1 + log2 of its values, for certified weights.",
    ),
]
NoLimit = Annotated[
    bool,
    Option(
        "--no-limit",
        help="Run the transformer on expressions that take it very long, which are refused "
        "otherwise. It takes as many iterations as an expression is deep, over all its tokens.",
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
ProgramFile = Annotated[
    Path | None,
    Option(help="A program: statements name=expr; in any order; - reads standard input."),
]
Device = Annotated[str, Option(parser=read_device, metavar="cpu|cuda", help="cpu or cuda.")]
Json = Annotated[bool, Option("--json", help="Machine-readable output.")]


def main() -> None:
    """Run the command line; a user's mistake is a message and exit status 2, not a traceback."""
    open_streams()
    try:
        sys.exit(_run())
    except Unread:
        end_unread()
    except (ValueError, OSError) as error:
        if getattr(error, "filename", None) == OUTPUT:
            drop_output()
        _tell(error)
    except Exception as error:
        message = getattr(error, "format_message", None)  # as typer's own errors have
        if message is None:
            raise
        _tell(ValueError(message()))
    sys.exit(2)


def _run() -> int:
    """The exit status of the command, once all that it printed is out."""
    try:
        status = app(standalone_mode=not _as_json())  # typer would write its own errors as a box
    except SystemExit as end:
        status = end.code
    sys.stdout.flush()
    return status if isinstance(status, int) else 0


def _as_json() -> bool:
    """Whether the output is JSON, found without parsing, as arguments may be invalid."""
    return "--json" in sys.argv


def _tell(error: Exception) -> None:
    """Report a mistake on standard error: a line for people, or an object for programs."""
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
