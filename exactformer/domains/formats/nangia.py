"""Nangia and Bowman's notation for ListOps, as their files and the Long Range Arena's are written.

`[MAX 1 7 2 ]`: the bracket is part of the operator's token. Published files hold it binarised, as a
tree of pairs: `( ( ( ( [MAX 1 ) 7 ) 2 ) ] )`. There, k operands have k + 1 parentheses before their
operator; one closes after each operand and the last after the `]`. So the parentheses add nothing,
and reading drops them; but text in which they do not stand like that is an error.

Which operators take how many operands is known only when a whole file was read: a `Reading` is
text that was read, waiting for the algebra that covers it.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.algebra import CLOSE, OPEN, Algebra
from exactformer.domains.belonging import algebra_of
from exactformer.domains.bounds import LARGEST_ARITY
from exactformer.domains.catalog import LISTOPS_OPERATORS, LISTOPS_RULES, Median, listops
from exactformer.domains.data import listed, suggestion
from exactformer.domains.domain import Domain
from exactformer.domains.errors import ExpressionError, decode, quote
from exactformer.domains.expression import Expression
from exactformer.domains.rules import count_keys, operand_keys

DIGITS = tuple("0123456789")
SYMBOLS = ("(", ")", *DIGITS, *LISTOPS_RULES)  # symbols of a native expression, by their code
DIGIT_CODES = {digit: code for code, digit in enumerate(SYMBOLS) if digit in DIGITS}
OPERATOR_CODES = {f"[{name}": SYMBOLS.index(name) for name in LISTOPS_RULES}
FEWEST = 2  # operands of every operator
MOST_COMPARED = 100_000  # cases of one operator with one number of operands
SCANNER = re.compile(r"\[\w*|\w+|\S")

Use = tuple[str, int]  # an operator with a number of operands


@dataclass(frozen=True)
class Reading:
    """An expression as codes, which are indices into SYMBOLS, with the operators and arities it
    uses.
    """

    codes: bytes
    uses: dict[Use, int]  # index of the word `]` at which each use first occurs

    def expression(self, algebra: Algebra) -> Expression:
        """The expression in an algebra that covers `uses`."""
        return Expression(algebra, token_ids(algebra)[np.frombuffer(self.codes, dtype=np.uint8)])


def token_ids(algebra: Algebra) -> NDArray[np.int16]:
    """Token id in an algebra for each code. An operator that the algebra lacks gets the id of `(`,
    which makes the expression invalid: in prefix notation no span begins with a span.
    """
    ids = {symbol: i for i, symbol in enumerate(algebra.vocabulary)}
    return np.array([ids.get(symbol, OPEN) for symbol in SYMBOLS], dtype=np.int16)


def parse_nangia(domain: Domain, text: str | bytes, *, first_line: int = 1) -> Expression:
    """Read one expression, n-ary or binarised; what the algebra lacks is a located error."""
    algebra = algebra_of(domain)
    require_digits(algebra)
    text = decode(text, first_line)
    reading = read_nangia(text, first_line)
    for use in uncovered(algebra, reading.uses):
        problem = f"{describe(use)} is outside {algebra.name!r}"
        _fail(text, reading.uses[use], problem, first_line)
    return reading.expression(algebra)


def read_nangia(text: str, first_line: int = 1) -> Reading:
    """Read one expression in either form, n-ary or binarised. Raises `ExpressionError`."""
    words = SCANNER.findall(text)
    binarised = words[:1] == ["("]
    codes = bytearray()
    uses: dict[Use, int] = {}
    enclosing: list[_Span] = []
    span, opened = _Span(), 0  # innermost open span; parentheses open before its operator
    for place, word in enumerate(words):
        if word in DIGIT_CODES and span.takes_operand(binarised) and not opened:
            codes.append(DIGIT_CODES[word])
            span.add_operand(binarised)
        elif word == "(" and binarised and span.takes_operand(binarised):
            opened += 1
        elif word == ")" and span.due:
            span.due = False
            span.left -= 1
            if not span.left:  # the last one closes after the `]`
                span = enclosing.pop()
                span.add_operand(binarised)
        elif word in OPERATOR_CODES and span.takes_operand(binarised) and bool(opened) == binarised:
            codes += bytes((OPEN, OPERATOR_CODES[word]))
            enclosing.append(span)
            span, opened = _Span(word[1:], left=opened), 0
        elif word == "]" and span.may_close(binarised) and not opened:
            codes.append(CLOSE)
            uses.setdefault((span.operator, span.operands), place)
            if binarised:
                span.due = True
            else:
                span = enclosing.pop()
                span.add_operand(binarised)
        else:
            _fail(text, place, _problem(span, opened, binarised, word), first_line)
    if enclosing or not span.operands:
        problem = _problem(span, opened, binarised, None)
        _fail(text, len(words), problem, first_line)
    return Reading(bytes(codes), uses)


@dataclass(slots=True)
class _Span:
    """State of a span while it is read; the outermost one has no operator and takes one operand."""

    operator: str = ""
    operands: int = 0
    left: int = 0  # number of its parentheses that are still open
    due: bool = False  # whether one of them must close next

    def takes_operand(self, binarised: bool) -> bool:
        if not self.operator:
            return not self.operands
        return not self.due and (self.left > 1 or not binarised)

    def may_close(self, binarised: bool) -> bool:
        enough = self.operands >= FEWEST and not self.due
        return bool(self.operator) and enough and (self.left == 1 or not binarised)

    def add_operand(self, binarised: bool) -> None:
        self.operands += 1
        self.due = binarised and bool(self.operator)


def _problem(span: _Span, opened: int, binarised: bool, word: str | None) -> str:
    """The error message: what was expected, what was found, and why."""
    operators = " ".join(OPERATOR_CODES)
    expected: list[str] = []
    reason = ""
    if span.due:
        expected.append("')'")
        reason = "in the binarised form a parenthesis closes after each operand and after ']'"
    elif not span.operator and span.operands:
        expected.append("the end of the text after a whole expression")
    elif span.takes_operand(binarised):
        expected += ["a digit"] if not opened else []
        expected += ["'('"] if binarised or (word is None and not span.operator) else []
        expected += [f"an operator ({operators})"] if bool(opened) == binarised else []
        expected += ["']'"] if span.may_close(binarised) and not opened else []
        if word == "]" and span.operator and not opened:
            reason = f"{span.operator} takes {FEWEST} or more operands, not {span.operands}"
            if binarised and span.operands >= FEWEST:
                reason = f"{span.left} parentheses of {span.operator} are still open"
        elif word == "(" and not binarised:
            reason = "this expression began without parentheses"
    elif span.operands < FEWEST:
        expected.append(f"{FEWEST + 1} or more parentheses before [{span.operator}")
        reason = f"it has {span.operands + span.left}"
    else:
        expected.append("']'")
        reason = f"{span.operator} has parentheses for {span.operands} operands only"
    return f"expected {listed(expected)}, {_found(word)}" + (f": {reason}" if reason else "")


def _found(word: str | None) -> str:
    if word is None:
        return "found the end of the text"
    known = word in OPERATOR_CODES or word in DIGIT_CODES or word in ("(", ")", "]")
    hint = suggestion(word.upper(), OPERATOR_CODES)
    return f"found {quote(word)}" + ("" if known else f", which is no token{hint}")


def _fail(text: str, place: int, problem: str, first_line: int) -> NoReturn:
    """Raise an error at the word of index `place`; its offset is computed only here, for speed."""
    matches = (match.start() for i, match in enumerate(SCANNER.finditer(text)) if i == place)
    raise ExpressionError(problem, text, next(matches, len(text.rstrip())), first_line)


def format_nangia(expression: Expression) -> str:
    """The text of an expression in the binarised form of the published files."""
    vocabulary, first_operator = expression.algebra.vocabulary, expression.algebra.first_operator
    words: list[str] = []
    enclosing: list[int] = []  # where in `words` the parentheses of each open span stand
    for token in expression.ids.tolist():
        if token == OPEN:
            enclosing.append(len(words))
            words.append("(")
        elif token >= first_operator:
            words.append(f"[{vocabulary[token]}")
        else:
            words.append(vocabulary[token])
            if token == CLOSE:
                words[-1] = "] )"
                enclosing.pop()
            if enclosing:
                words.append(")")
                words[enclosing[-1]] += " ("
    return " ".join(words)


def covering(uses: Iterable[Use], median: Median) -> Algebra:
    """The smallest ListOps algebra that covers these uses, with at least the paper's fan-in of
    three; it has the paper's operators if those suffice.
    """
    uses = list(uses)
    found = {operator for operator, _ in uses}
    paper = found <= set(LISTOPS_OPERATORS)
    names = LISTOPS_OPERATORS if paper else tuple(op for op in LISTOPS_RULES if op in found)
    median = median if "MED" in names else "lower"  # one algebra, not two that compute the same
    fan_in = max([3, *(count for _, count in uses)])
    return listops(fan_in if fan_in <= LARGEST_ARITY else None, median, names)


def require_digits(algebra: Algebra) -> None:
    """Raise a ValueError unless this is a prefix algebra on the ten digits."""
    if set(algebra.values) != set(DIGITS) or algebra.notation != "prefix":
        raise ValueError(
            f"the notation of ListOps is for prefix algebras on the ten digits, "
            f"not for {algebra.name!r}"
        )


def uncovered(algebra: Algebra, uses: Iterable[Use]) -> list[Use]:
    """The uses that are not in the algebra."""
    operators = {op.symbol: op for op in algebra.operators}
    return [
        (symbol, count)
        for symbol, count in sorted(uses)
        if symbol not in operators or not operators[symbol].takes(count)
    ]


def difference(algebra: Algebra, use: Use, median: Median) -> str | None:
    """An example on which the algebra differs from ListOps in a use that both have; None if there
    is none.

    Values are compared by their symbols, since an algebra may have them in any order.
    """
    (published,) = listops(None, median, (use[0],)).operators
    (operator,) = (op for op in algebra.operators if op.symbol == use[0])
    if algebra.values == DIGITS and operator.rule == published.rule:
        return None
    ordered = operator.ordered or published.ordered
    if count_keys(len(DIGITS), use[1:], ordered) > MOST_COMPARED:
        return "too many cases to compare, and not the same rule on the digits in their order"
    digits = [int(value) for value in algebra.values]
    for places in operand_keys(len(DIGITS), use[1:], ordered):
        operands = [digits[place] for place in places]
        found, expected = digits[operator(places)], published(operands)
        if found != expected:
            return f"{use[0]} {' '.join(map(str, operands))} is {found}, not {expected}"
    return None


def describe(use: Use) -> str:
    return f"{use[0]} of {use[1]} operands"
