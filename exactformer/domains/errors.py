"""Errors in text: what was expected, what was found and where, with a caret."""

import unicodedata

WINDOW = 72  # columns of a long line that an error shows


class ExpressionError(ValueError):
    """Text that is not an expression: what was expected, what was found, and where.

    `byte` is the offset of the error in a stream, where `text` is only an excerpt of that.
    """

    def __init__(
        self, problem: str, text: str, offset: int, first_line: int = 1, byte: int | None = None
    ) -> None:
        before = text[:offset]
        line_start = before.rfind("\n") + 1
        line_end = text.find("\n", offset)
        self.problem = problem
        self.offset = offset
        self.line = first_line + before.count("\n")
        self.column = offset - line_start + 1
        line = text[line_start : line_end if line_end >= 0 else None].removesuffix("\r")
        excerpt = _window(line, self.column - 1)
        self.place = {"line": self.line, "column": self.column} if byte is None else {"byte": byte}
        place = ", ".join(f"{name} {number}" for name, number in self.place.items())
        super().__init__(f"{place}: {problem}\n{excerpt}")


def _window(line: str, column: int) -> str:
    """An excerpt of a line around a column, with a caret under it."""
    start = max(0, column - WINDOW // 2) if len(line) > WINDOW else 0
    shown = line[start : start + WINDOW]
    prefix = "…" if start else ""
    suffix = "…" if start + WINDOW < len(line) else ""
    shown = "".join(char if char.isprintable() else "�" for char in shown)
    width = sum(map(_columns, prefix + shown[: column - start]))
    return f"  {prefix}{shown}{suffix}\n  {' ' * width}^"


def _columns(char: str) -> int:
    """Columns that a terminal uses for a character: 0 for accents, 2 for Chinese, else 1."""
    if unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def decode(data: str | bytes, first_line: int = 1) -> str:
    """Decode bytes as UTF-8, or raise a located error; text is returned unchanged."""
    if isinstance(data, str):
        return data
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise no_text(data[: error.start], data[error.start :], first_line) from None


def no_text(
    before: bytes, after: bytes, first_line: int = 1, byte: int | None = None
) -> ExpressionError:
    """The error for bytes that are valid UTF-8 up to the first byte of `after`."""
    text = before.decode("utf-8", "replace")
    problem = f"expected UTF-8 text, found the byte 0x{after[0]:02x}"
    return ExpressionError(
        problem, text + after.decode("utf-8", "replace"), len(text), first_line, byte
    )


def quote(word: str, longest: int = 20) -> str:
    """A word of a text in quotes, shortened if it is long."""
    return repr(word if len(word) <= longest else word[: longest - 3] + "...")
