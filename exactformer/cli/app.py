"""What all commands share: the application, their common arguments, and what a mistake leads to."""

import json
import os
import sys
from collections.abc import Iterable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from exactformer.domains.algebra import Algebra
from exactformer.domains.catalog import CATALOG, find_algebra
from exactformer.domains.definition import load_algebra
from exactformer.engine import choice

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
    help="A tiny transformer that computes exactly, at any length, and can prove it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def read_algebra(name: str) -> Algebra:
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
        parser=read_algebra,
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
    choice.EngineName,
    typer.Option(
        "--engine",
        help="fast: what is read off certified weights, in one pass; model: the transformer, level "
        "by level; auto: fast where that can be and its tables are soon made.",
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


def print_json(items: Iterable[Any]) -> None:
    """A list, item by item: it may be longer than the memory is large."""
    separator = "["
    for item in items:
        sys.stdout.write(separator + json.dumps(item, ensure_ascii=False))
        separator = ", "
    print("[]" if separator == "[" else "]")


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
