"""Files of labelled rows, as published and as `sample` writes them. Every error is located.

nangia   label <TAB> expression in Nangia and Bowman's notation, n-ary or binarised
lra      the Long Range Arena's: a header, then expression <TAB> label in the same notation
bowman   relation <TAB> formula <TAB> formula
tsv      expression <TAB> value in the native notation; the value may come first instead

Of a value that is a row of symbols, some places may be left out of account: `1 2 . .`.
"""

from collections.abc import Callable, Iterable
from itertools import zip_longest
from typing import Generic, Literal, NamedTuple, NoReturn, TypeVar

from exactformer.domains.domain import Domain
from exactformer.domains.errors import ExpressionError, decode, quote
from exactformer.domains.expression import Expression
from exactformer.domains.formats.bowman import RELATIONS, Formula, read_formula
from exactformer.domains.formats.lines import Lines
from exactformer.domains.formats.long_range import HEADER
from exactformer.domains.formats.nangia import DIGITS, Reading, read_nangia
from exactformer.domains.syntax import parse

Format = Literal["nangia", "lra", "bowman", "tsv"]

UNCOUNTED = "."  # in a place of a label: any symbol, or none, is right there

T = TypeVar("T")


class Row(NamedTuple, Generic[T]):
    """One line of a file: its number, its label, and the content that the label is for."""

    line: int
    label: str
    content: T


def guess_format(domain: Domain, header: bytes) -> Format:
    """Guess the format from the first line: the Long Range Arena's files have a header, pairs of
    formulas have three fields, Nangia's operators have a bracket, and native text in two fields is
    in the form that `sample` writes.
    """
    if header == HEADER.encode():
        return "lra"
    two_fields = header.count(b"\t") == 1
    if domain.name == "boolean":
        return "tsv" if two_fields else "bowman"
    native = two_fields and b"(" in header and b"[" not in header
    return "nangia" if domain.name.split("-")[0] == "listops" and not native else "tsv"


def read_nangia_row(line: bytes, number: int, format: Literal["nangia", "lra"]) -> Row[Reading]:
    fields = ("label", "expression") if format == "nangia" else ("expression", "label")
    row = _Fields(line, number, fields)
    label = row.one_of(fields.index("label"), DIGITS)
    return Row(number, label, row.read(fields.index("expression"), read_nangia))


def require_lra_header(file: Lines) -> None:
    if file.first_line == 1 and file.header != HEADER.encode():
        raise ValueError(
            f"{file.name}: expected {HEADER!r} as the first line, found {file.header[:40]!r}"
        )


def read_bowman_row(line: bytes, number: int) -> Row[tuple[Formula, Formula]]:
    row = _Fields(line, number, ("relation", "formula", "formula"))
    relation = row.one_of(0, RELATIONS)
    return Row(number, relation, (row.read(1, read_formula), row.read(2, read_formula)))


def read_tsv_row(domain: Domain, line: bytes, number: int) -> Row[Expression]:
    """Read a row of an expression and its value, in either order. A row of two bare values can be
    read either way, so it is correct only if they are equal.
    """
    row = _Fields(line, number, ("expression", "value"))
    first, second = (read_label(domain, field) for field in row.fields)
    place = 0 if first and not second else 1
    if place == 0 and domain.answers_in_places and not _is_text(domain, row.fields[1]):
        place = 1  # the first field is a text that looks like an answer, and the second one is bad
    label = (first, second)[place] or row.refuse_label(place, domain)
    return Row(number, label, row.read(1 - place, lambda text: parse(domain, text)))


def read_label(domain: Domain, text: str) -> str | None:
    """The answer that a text spells, in which places may be left out of account where a domain has
    several and no symbol like that mark; None for other text.
    """
    answer = domain.read_answer(text)
    if answer is not None or not _may_leave_out(domain):
        return answer
    symbols = domain.lexicon.scanner.findall(text)
    counted = [symbol for symbol in symbols if symbol != UNCOUNTED]
    if domain.read_answer(" ".join(counted)) is None:  # also where nothing counts
        return None
    return ("" if domain.packs else " ").join(symbols)


def _is_text(domain: Domain, text: str) -> bool:
    try:
        parse(domain, text)
    except ExpressionError:
        return False
    return True


def agrees(domain: Domain, answer: str | None, label: str) -> bool:
    """Whether an answer is what a label says in each place that counts, and has no more places."""
    if answer is None or answer == label or not _may_leave_out(domain):
        return answer == label
    cut = domain.lexicon.scanner.findall
    places = zip_longest(cut(answer), cut(label))
    return all(wanted in (UNCOUNTED, found) for found, wanted in places)


def _may_leave_out(domain: Domain) -> bool:
    return domain.answers_in_places and UNCOUNTED not in domain.answer_symbols


class _Fields:
    """The tab-separated fields of a line; an error in a field is located in the whole line."""

    def __init__(self, line: bytes, number: int, names: tuple[str, ...]) -> None:
        self.text, self.number = decode(line, number).rstrip("\r"), number
        self.fields = self.text.split("\t")
        if len(self.fields) != len(names):
            self._fail(
                len(self.text) if len(self.fields) < len(names) else self._start(len(names)) - 1,
                f"expected {' <TAB> '.join(names)}, found {len(self.fields)} "
                f"{'field' if len(self.fields) == 1 else 'fields'}",
            )

    def one_of(self, place: int, allowed: Iterable[str]) -> str:
        word = self.fields[place].strip()
        if word not in set(allowed):
            found = quote(word) if word else "nothing"
            self._fail(self._start(place), f"expected one of {' '.join(allowed)}, found {found}")
        return word

    def refuse_label(self, place: int, domain: Domain) -> NoReturn:
        """Report the first thing in a field that is no symbol of an answer."""
        text, start = self.fields[place], self._start(place)
        if not domain.answers_in_places:
            self.one_of(place, domain.answer_symbols)
        allowed = [*sorted(domain.answer_symbols), *([UNCOUNTED] * _may_leave_out(domain))]
        for match in domain.lexicon.scanner.finditer(text):
            if match[0] not in allowed:
                problem = f"expected one of {' '.join(allowed)}, found {quote(match[0])}"
                self._fail(start + match.start(), problem)
        found = quote(text.strip()) if text.strip() else "nothing"
        self._fail(start, f"expected an answer, found {found}")

    def read(self, place: int, read: Callable[[str], T]) -> T:
        try:
            return read(self.fields[place])
        except ExpressionError as error:
            self._fail(self._start(place) + error.offset, error.problem)

    def _start(self, place: int) -> int:
        return sum(len(field) + 1 for field in self.fields[:place])

    def _fail(self, offset: int, problem: str) -> NoReturn:
        raise ExpressionError(problem, self.text, offset, self.number) from None
