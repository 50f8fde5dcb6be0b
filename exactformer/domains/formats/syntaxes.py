"""The syntaxes that text can be written in, each with its reader."""

from collections.abc import Callable
from typing import Literal

from exactformer.domains import syntax as native
from exactformer.domains.data import suggestion
from exactformer.domains.domain import Domain
from exactformer.domains.expression import Expression
from exactformer.domains.formats.nangia import parse_nangia
from exactformer.domains.formats.python import parse_python

Syntax = Literal["native", "python", "nangia"]


# (domain, text, *, first_line) -> Expression, or an ExpressionError
READERS: dict[Syntax, Callable[..., Expression]] = {
    "native": native.parse,
    "python": parse_python,
    "nangia": parse_nangia,
}


def parse(
    domain: Domain, text: str | bytes, syntax: Syntax = "native", *, first_line: int = 1
) -> Expression:
    """Read one expression. Raises `ExpressionError`, which says where.

    syntax       "native": as expressions are printed, white space is free; "python": with its
                 precedence; "nangia": as the published ListOps files are.
    first_line   the line number of the text in the file it came from.
    """
    if syntax not in READERS:
        hint = suggestion(syntax, READERS)
        raise ValueError(f"syntax: expected one of {', '.join(READERS)}, found {syntax!r}{hint}")
    return READERS[syntax](domain, text, first_line=first_line)
