"""What is for fully parenthesized expressions alone says so."""

from exactformer.domains.algebra import Algebra

PARENTHESIZED = ("infix", "prefix")


def require_parentheses(algebra: Algebra, what: str) -> None:
    """A notation that leaves parentheses out has a layer of its own."""
    if algebra.notation not in PARENTHESIZED:
        raise ValueError(
            f"{what} is for fully parenthesized expressions, in infix or prefix notation: "
            f"{algebra.name!r} is in {algebra.notation.value} notation"
        )
