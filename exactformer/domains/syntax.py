"""How expressions are written: tokens, infix and prefix notation, errors with a caret.

An `Expression` is a flat array of token ids, so a nesting a million deep is an ordinary input.
Only `parse`, the readers of other notations and the samplers make one; holding one means that the
text was well formed.

The grammar is a small automaton with one state for each open span: how many operands were read,
and which operator. (An operator that takes any number of operands is counted up to its fewest.)
An error is therefore found at the first token that no well-formed expression
could have there.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.algebra import AN_ALGEBRA, CLOSE, FIRST_VALUE, OPEN, Algebra
from exactformer.domains.lexicon import Lexicon
from exactformer.domains.plain import expect, suggestion

EMPTY = -1  # the id of a slot that holds the zero vector instead of a token
UNKNOWN = -2  # the id of text that spells no token
WINDOW = 72  # columns of a long line that an error shows around its place


class ExpressionError(ValueError):
    """Text that is not an expression: what was expected, what was found, and where.

    `byte` is the place in a stream of which `text` is only the part around it.
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
        excerpt = _window(text[line_start : line_end if line_end >= 0 else None], self.column - 1)
        self.place = {"line": self.line, "column": self.column} if byte is None else {"byte": byte}
        place = ", ".join(f"{name} {number}" for name, number in self.place.items())
        super().__init__(f"{place}: {problem}\n{excerpt}")


def _window(line: str, column: int) -> str:
    """The part of a line around a column, with a caret under it."""
    start = max(0, column - WINDOW // 2) if len(line) > WINDOW else 0
    shown = line[start : start + WINDOW]
    prefix = "…" if start else ""
    suffix = "…" if start + WINDOW < len(line) else ""
    shown = "".join(char if char.isprintable() else "�" for char in shown)
    width = sum(map(_columns, prefix + shown[: column - start]))
    return f"  {prefix}{shown}{suffix}\n  {' ' * width}^"


def _columns(char: str) -> int:
    """How wide a terminal shows a character: accents take no room, Chinese takes two columns."""
    if unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


@dataclass(frozen=True, eq=False)
class Expression:
    """A well-formed expression of an algebra, as its token ids in the order of the text."""

    algebra: Algebra
    ids: NDArray[np.int16]

    def __post_init__(self) -> None:
        self.ids.setflags(write=False)

    def __len__(self) -> int:
        return len(self.ids)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Expression):
            return NotImplemented
        return self.algebra == other.algebra and np.array_equal(self.ids, other.ids)

    def __hash__(self) -> int:
        return hash((self.algebra, self.ids.tobytes()))

    def __str__(self) -> str:
        return format_ids(self.algebra, self.ids)

    def __repr__(self) -> str:
        text = str(self)
        return f"Expression({self.algebra.name}, {text if len(text) < 80 else text[:76] + ' ...'})"

    @cached_property
    def nesting(self) -> NDArray[np.int32]:
        """How many parentheses are open after each token."""
        step = (self.ids == OPEN).astype(np.int8) - (self.ids == CLOSE).astype(np.int8)
        return np.cumsum(step, dtype=np.int32)

    @property
    def depth(self) -> int:
        return int(self.nesting.max())

    @property
    def widest(self) -> int:
        """The largest number of operands of any span."""
        opens, closes = self.ids == OPEN, self.ids == CLOSE
        operands = opens | ((self.ids >= FIRST_VALUE) & (self.ids < self.algebra.first_operator))
        level = self.nesting - opens + closes  # of the span that a token belongs to
        operands &= level > 0  # the whole expression is no operand
        order = np.argsort(level, kind="stable")  # now spans come one after another, each with
        span = np.cumsum(closes[order]) - closes[order]  # its `)` as its last token
        return int(np.bincount(span, weights=operands[order]).max())

    @property
    def root(self) -> int:
        """Position of the outermost operator, where the value appears; 0 for a bare value."""
        if len(self) == 1:
            return 0
        return int(np.argmax((self.nesting == 1) & (self.ids >= self.algebra.first_operator)))

    @property
    def slots(self) -> NDArray[np.int16]:
        """The ids the transformer reads: in prefix notation with EMPTY after each `)`.

        The root stands in the same place in both: no `)` comes before it.
        """
        if not self.algebra.closing_slot:
            return self.ids
        closing = np.flatnonzero(self.ids == CLOSE)
        return np.insert(self.ids, closing + 1, np.int16(EMPTY))


def operands_before(algebra: Algebra, arity: int) -> int:
    """How many operands are written before their operator."""
    return 1 if algebra.notation == "infix" and arity == 2 else 0


def span_tokens(algebra: Algebra, operator: int, operands: Sequence[int]) -> list[int]:
    """The tokens of a span of depth 1 in their order."""
    before = operands_before(algebra, len(operands))
    return [OPEN, *operands[:before], operator, *operands[before:], CLOSE]


def format_ids(algebra: Algebra, ids: NDArray[np.integer]) -> str:
    """Canonical text: packed where that reads back the same, else with spaces."""
    symbols = algebra.vocabulary
    return ("" if packs(algebra) else " ").join([symbols[i] for i in ids.tolist()])


def packs(algebra: Algebra) -> bool:
    """Whether symbols are told apart without spaces: single characters, operators no words.

    Infix text never has two values side by side, so values may be letters or digits.
    """
    lexicon = grammar_of(algebra).lexicon
    return (
        algebra.notation == "infix"
        and all(len(symbol) == 1 for symbol in (*algebra.vocabulary, *lexicon.marks))
        and not any(op.symbol in lexicon.words for op in algebra.operators)
    )


def parse(algebra: Algebra, text: str | bytes, *, first_line: int = 1) -> Expression:
    """Read one expression; white space is free. Raises `ExpressionError`.

    `first_line` is the line number of the text in the file it came from.
    """
    expect(algebra, Algebra, AN_ALGEBRA)
    expect(text, (str, bytes), "the text of an expression")
    text = decode(text, first_line)
    grammar = grammar_of(algebra)
    words = grammar.lexicon.scanner.findall(text)
    lookup = algebra.token_ids
    ids = [lookup.get(word, UNKNOWN) for word in words]
    failure = grammar.first_error(ids)
    failure = grammar.first_mixed_brackets(words[: failure[0]] if failure else words) or failure
    if failure:
        place, problem = failure
        matches = grammar.lexicon.scanner.finditer(text)  # words carry no offsets, to be quick
        match = next((match for i, match in enumerate(matches) if i == place), None)
        found = describe(algebra, match[0] if match else None, empty=not words)
        offset = match.start() if match else len(text.rstrip())
        raise ExpressionError(problem.replace("{found}", found), text, offset, first_line)
    return Expression(algebra, np.array(ids, dtype=np.int16))


def decode(data: str | bytes, first_line: int = 1) -> str:
    """Text as it is; bytes as UTF-8, or a located error."""
    if isinstance(data, str):
        return data
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise no_text(data[: error.start], data[error.start :], first_line) from None


def no_text(
    before: bytes, after: bytes, first_line: int = 1, byte: int | None = None
) -> ExpressionError:
    """The error of bytes that are UTF-8 up to the first one of `after`."""
    text = before.decode("utf-8", "replace")
    problem = f"expected UTF-8 text, found the byte 0x{after[0]:02x}"
    return ExpressionError(
        problem, text + after.decode("utf-8", "replace"), len(text), first_line, byte
    )


def describe(algebra: Algebra, word: str | None, *, empty: bool) -> str:
    """What was found in a place: a word, or the end of a text, which may be empty."""
    if word is None:
        return "found no text" if empty else "found the end of the text"
    if word in algebra.token_ids:
        return f"found {_quote(word)}"
    names = [symbol for symbol in algebra.token_ids if symbol.isalpha()]
    return f"found {_quote(word)}, which is no token{suggestion(word.upper(), names)}"


def _quote(word: str) -> str:
    return repr(word if len(word) <= 20 else word[:17] + "...")


TOP, DONE, START = 0, 1, 2  # states: before any token, after the whole expression, after `(`
CLOSED = -1  # no state: the token is not allowed here


@dataclass(frozen=True)
class Span:
    """What was read of one span: an automaton state. `wanted` operands are known in infix only."""

    operator: int | None  # its token id
    read: int
    wanted: int | None


class Grammar:
    """The automaton of an algebra: where each token may stand, and what is expected instead."""

    def __init__(self, algebra: Algebra) -> None:
        self.algebra = algebra
        self.lexicon = Lexicon(algebra.token_ids)
        self.spans: list[Span | None] = [None, None, Span(None, 0, None)]
        self.after_operand: list[int] = [DONE, CLOSED]
        self.after_operator: list[dict[int, int]] = [{}, {}]  # operator's token id to next state
        self.complete: list[bool] = [False, False]
        numbers: dict[Span, int] = {Span(None, 0, None): START}

        def number(span: Span) -> int:
            if span not in numbers:
                numbers[span] = len(self.spans)
                self.spans.append(span)
            return numbers[span]

        state = START
        while state < len(self.spans):  # `number` adds the states that are still to visit
            span = self.spans[state]
            assert span is not None
            operand, operators, complete = self._steps(span)
            self.after_operand.append(number(operand) if operand else CLOSED)
            self.after_operator.append({token: number(next) for token, next in operators.items()})
            self.complete.append(complete)
            state += 1

    def _steps(self, span: Span) -> tuple[Span | None, dict[int, Span], bool]:
        """The span after one more operand, after each operator, and whether `)` may follow."""
        first = self.algebra.first_operator
        if span.operator is not None:
            operator = self.algebra.operators[span.operator - first]
            limit = span.wanted or operator.arities[-1]
            operand = Span(span.operator, span.read + 1, span.wanted) if span.read < limit else None
            if operator.unbounded and span.read == limit:
                operand = span  # from here on it takes any number: no need to count further
            complete = span.read == span.wanted if span.wanted else span.read in operator.arities
            return operand, {}, complete
        infix = self.algebra.notation == "infix"
        wanted = span.read + 1 if infix else None
        operators = {
            first + i: Span(first + i, span.read, wanted)
            for i, op in enumerate(self.algebra.operators)
            if not infix or wanted in op.arities
        }
        has_binary = any(2 in op.arities for op in self.algebra.operators)
        operand = Span(None, 1, None) if infix and span.read == 0 and has_binary else None
        return operand, operators, False

    def first_error(
        self, ids: list[int], state: int = TOP, enclosing: Sequence[int] = (), outside: int = 0
    ) -> tuple[int, str] | None:
        """Number of the first token that cannot stand where it does, and the problem with it.

        To go on within a text: the state there, those of the spans around it (at least the last
        `len(ids)`), and the number of spans around those.
        """
        first_operator = self.algebra.first_operator
        after_operand, after_operator, complete = (
            self.after_operand,
            self.after_operator,
            self.complete,
        )
        enclosing, following = list(enclosing), CLOSED
        for place, token in enumerate(ids):
            if token == OPEN:
                following = START if after_operand[state] != CLOSED else CLOSED
                if following != CLOSED:
                    enclosing.append(state)
            elif token == CLOSE:
                following = after_operand[enclosing.pop()] if complete[state] else CLOSED
            elif token >= first_operator:
                following = after_operator[state].get(token, CLOSED)
            elif token >= 0:
                following = after_operand[state]
            else:
                following = CLOSED
            if following == CLOSED:
                return place, self._problem(state, token)
            state = following
        if state != DONE:
            unclosed = outside + len(enclosing)
            parentheses = "parenthesis" if unclosed == 1 else "parentheses"
            note = f" ({unclosed} {parentheses} unclosed)" if unclosed else ""
            return len(ids), self._problem(state, None) + note
        return None

    def first_mixed_brackets(self, words: list[str]) -> tuple[int, str] | None:
        """A span opened with `[` that does not end with `]`, or the reverse."""
        if "[" not in words:
            return None if "]" not in words else (words.index("]"), "expected ')', {found}")
        open_spans: list[str] = []
        for place, word in enumerate(words):
            if word in "([":
                open_spans.append(")" if word == "(" else "]")
            elif word in ")]" and word != (expected := open_spans.pop()):
                return place, f"expected {expected!r}, {{found}}"
        return None

    def _problem(self, state: int, token: int | None) -> str:
        """A sentence with the place of the found text left open."""
        if state == DONE:
            return "expected the end of the text after a whole expression, {found}"
        span = self.spans[state]
        expected: list[str] = []
        if self.after_operand[state] != CLOSED:
            values = self.algebra.values
            shown = " ".join(values if len(values) <= 12 else (*values[:3], "...", values[-1]))
            expected.append(f"a value ({shown})")
            expected.append("'('")
        if self.after_operator[state]:
            symbols = [self.algebra.vocabulary[t] for t in self.after_operator[state]]
            expected.append(f"an operator ({' '.join(symbols)})")
        if self.complete[state]:
            expected.append("')'")
        wanted = " or ".join([", ".join(expected[:-1]), expected[-1]] if expected[1:] else expected)
        reason = self._reason(span, token) if token != UNKNOWN else None
        return f"expected {wanted}, {{found}}" + (f": {reason}" if reason else "")

    def _reason(self, span: Span | None, token: int | None) -> str | None:
        """What is wrong in the user's terms, where the expectation alone does not tell."""
        if span is None:
            return "no parenthesis is open" if token == CLOSE else None
        if span.operator is None:
            if token == CLOSE:
                return "these parentheses hold no operator" if span.read else "empty parentheses"
            if token is None or not span.read:
                return None
            if token < self.algebra.first_operator:
                return "no operator between two operands"
            return f"{self.algebra.vocabulary[token]} comes before its operand"
        operator = self.algebra.operators[span.operator - self.algebra.first_operator]
        if token is not None and token >= self.algebra.first_operator:
            return "a second operator in the same parentheses"
        counts = str(span.wanted) if span.wanted else operator.counts
        takes = counts + (" operand" if counts == "1" else " operands")
        if token == CLOSE:
            return f"{operator.symbol} takes {takes}, not {span.read}"
        return None if token is None else f"{operator.symbol} takes {takes} here, not more"


grammar_of = lru_cache(maxsize=64)(Grammar)
