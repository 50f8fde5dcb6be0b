"""The engine on the CPU: text to value in one pass, O(n) in time, memory for the open spans only.

A long text is cut at a parenthesis near its middle and both parts are read at once. The second
reader does not know the spans around its part: what it finds at their level it keeps as tokens, the
residue, and the first one's state then reads those. Where much is left over (a comb), the second
reader gives up early and the first goes on alone.
"""

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.algebra import OPEN, Algebra
from exactformer.domains.syntax import (
    UNKNOWN,
    Expression,
    ExpressionError,
    decode,
    describe,
    grammar_of,
    parse,
)
from exactformer.engine.automaton import TOP, SpanAutomaton
from exactformer.engine.lexer import Lexer, lexer_of
from exactformer.engine.scan import (
    DEPTH,
    END,
    MIXED,
    PLACE,
    REASON,
    RESIDUE,
    RESIDUE_FULL,
    ROW,
    STACK_FULL,
    VALUE,
    Tables,
    feed,
    scan,
    scan_lines,
)
from exactformer.engine.tables import tables_of

Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]

FIRST_ROOM = 1 << 14  # open spans before the stack grows
WORTH_SHARING = 1 << 20  # bytes; below, starting a second reader costs more than it saves
PROBE = 1 << 15  # bytes of a second part that are read to see whether little is left over
RESIDUE_ROOM = PROBE // 16  # tokens; a second reader with more left over stops there
CONTEXT = 1 << 12  # bytes around an error that are looked at
TOO_WIDE = "a span has more operands than the fast engine has tables for: use --engine model"
NOTHING = np.empty(0, dtype=np.uint32)


class Reader:
    """The state of one pass: where it is, and the spans around it."""

    def __init__(self, tables: Tables, row: int) -> None:
        self.tables = tables
        self.state = np.array([row, 0, 0, END, 0, 0], dtype=np.uint64)
        self.stack = _stack(FIRST_ROOM, tables.step.dtype)
        self.closers = np.empty(FIRST_ROOM if tables.square else 0, dtype=np.uint8)

    @property
    def row(self) -> int:
        return int(self.state[ROW])

    @property
    def depth(self) -> int:
        return int(self.state[DEPTH])

    @property
    def place(self) -> int:
        return int(self.state[PLACE])

    @property
    def reason(self) -> int:
        return int(self.state[REASON])

    def read(self, text: Bytes, begin: int, end: int, residue: NDArray[np.uint32] = NOTHING) -> int:
        """Read text[begin:end]; returns why it stopped."""
        while True:
            scan(text, begin, end, self.tables, self.state, self.stack, self.closers, residue)
            if self.reason != STACK_FULL:
                return self.reason
            self.grow(4 * len(self.stack))
            begin = self.place

    def read_tokens(self, tokens: NDArray[np.uint32]) -> int:
        while True:
            feed(tokens, self.tables, self.state, self.stack, self.closers)
            if self.reason != STACK_FULL:
                return self.reason
            self.grow(4 * len(self.stack))
            tokens = tokens[self.place :]

    def enter(self, inner: "Reader") -> None:
        """Go on where a reader ended that began where this one stands."""
        depth = self.depth + inner.depth
        if depth > len(self.stack):
            self.grow(2 * depth)
        if inner.depth:
            self.stack[self.depth : depth] = inner.stack[: inner.depth]
            self.stack[self.depth] = self.row  # the inner one only knew that it did not know it
            if self.tables.square:
                self.closers[self.depth : depth] = inner.closers[: inner.depth]
            self.state[ROW] = inner.row
        self.state[DEPTH], self.state[PLACE] = depth, inner.place

    def grow(self, room: int) -> None:
        stack, closers = self.stack, self.closers
        self.stack = _stack(room, stack.dtype)
        self.stack[: len(stack)] = stack
        if self.tables.square:
            self.closers = np.empty(room, dtype=np.uint8)
            self.closers[: len(closers)] = closers


def _stack(room: int, dtype: np.dtype) -> NDArray:
    """With a place before its first: the quick way may look there before it sees that it must not
    close a span.
    """
    return np.empty(room + 1, dtype=dtype)[1:]


class CpuEngine:
    """Evaluates text with an automaton that was read off certified weights."""

    def __init__(self, automaton: SpanAutomaton, algebra: Algebra) -> None:
        self.automaton, self.algebra = automaton, algebra
        lexer = lexer_of(algebra)
        self.reads_bytes = lexer is not None
        self.tables = tables_of(automaton, lexer or NO_LEXER, "[" in algebra.spellings)

    def value(self, text: str | bytes, first_line: int = 1) -> str:
        """The value of one expression. Raises the parser's `ExpressionError`."""
        data = text if isinstance(text, bytes) else _encode(text)
        if data is None or not self.reads_bytes:
            return self.values([parse(self.algebra, text, first_line=first_line)])[0]
        array = np.frombuffer(data, dtype=np.uint8)
        reader = self.reader()
        self.read(reader, array, 0, len(array))
        value = self.result(reader)
        if value is None:
            decode(data, first_line)  # a byte that is no text is the first thing to tell
            raise self.error(reader, array, first_line=first_line)
        return value

    def values(self, expressions: Sequence[Expression]) -> list[str]:
        """The values of expressions that have been parsed."""
        results: list[str] = []
        for expression in expressions:
            reader = self.reader()
            reader.read_tokens(expression.ids.astype(np.uint32))
            value = self.result(reader)
            if value is None:  # an Expression is well formed
                raise ValueError(TOO_WIDE)
            results.append(value)
        return results

    def lines(
        self, text: Bytes, first_line: int = 1, told: int | None = None
    ) -> list[str | ExpressionError | None]:
        """The value of each line of a text, or what is wrong with it; None for a bad line after
        as many as are `told`.
        """
        ends = np.append(np.flatnonzero(text == ord("\n")), len(text))
        begins = np.append(0, ends[:-1] + 1)
        numbers = self._numbers(text, begins, ends)
        results: list[str | ExpressionError | None] = [
            self.algebra.values[v] if v >= 0 else None for v in numbers.tolist()
        ]
        for i in np.flatnonzero(numbers < 0)[:told].tolist():
            results[i] = self._wrong(text[begins[i] : ends[i]], first_line + i)
        return results

    def _wrong(self, line: Bytes, number: int) -> ExpressionError:
        try:
            self.value(line.tobytes(), number)
        except ExpressionError as error:
            return error
        raise AssertionError("a line is worth the same alone and among others")

    def _numbers(self, text: Bytes, begins: Places, ends: Places) -> Places:
        """The number of the value of each text[begin:end], or -1; by two readers if long."""
        values = np.empty(len(begins), dtype=np.int64)
        half = int(np.searchsorted(begins, len(text) // 2)) if len(text) > WORTH_SHARING else 0
        parts = [
            (begins[part], ends[part], values[part]) for part in (slice(half), slice(half, None))
        ]
        ahead = _second_core().submit(self._lines, text, *parts[0]) if half else None
        self._lines(text, *parts[1])
        if ahead:
            ahead.result()
        return values

    def _lines(self, text: Bytes, begins: Places, ends: Places, values: Places) -> None:
        reader, done = self.reader(), 0
        while True:
            done = scan_lines(
                text, begins, ends, self.tables, values, done, reader.stack, reader.closers
            )
            if done == len(begins):
                return
            reader.grow(4 * len(reader.stack))

    def read(self, reader: Reader, text: Bytes, begin: int, end: int) -> None:
        """Read with two readers where that pays."""
        if end - begin < WORTH_SHARING:
            reader.read(text, begin, end)
            return
        middle = _bracket_near(text, (begin + end) // 2, end)
        probed = _bracket_near(text, middle + PROBE, end)
        second = Reader(self.tables, self.tables.unknown)
        residue = np.empty(RESIDUE_ROOM, dtype=np.uint32)
        if probed == end or second.read(text, middle, probed, residue) != END:
            reader.read(text, begin, end)
            return
        ahead = _second_core().submit(second.read, text, second.place, end, residue)
        reader.read(text, begin, middle)
        ahead.result()
        if reader.reason != END:
            return
        before = reader.state.copy()
        value = second.state[VALUE : VALUE + 1] if second.state[VALUE] else NOTHING
        tokens = np.concatenate([residue[: int(second.state[RESIDUE])], value]).astype(np.uint32)
        left = reader.read_tokens(tokens)
        # A span that is still open in the second part must be allowed to begin here.
        fits = second.depth == 0 or self.tables.step[reader.row + OPEN] != self.tables.no
        if left == END and fits and second.reason in (END, RESIDUE_FULL):
            reader.enter(second)
            reader.read(text, second.place, end)
        else:  # something is wrong: read it again to find the place
            reader.state[:] = before  # the stack still is: a residue begins no span
            reader.read(text, middle, end)

    def reader(self) -> Reader:
        """One that has read nothing yet."""
        return Reader(self.tables, TOP)

    def result(self, reader: Reader) -> str | None:
        """The value, if the whole text was an expression."""
        state = reader.row // self.tables.width
        if reader.reason == END and reader.depth == 0 and 1 <= state <= self.automaton.n_values:
            return self.algebra.values[state - 1]
        return None

    def error(
        self, reader: Reader, text: Bytes, first_line: int = 1, skipped: int | None = None
    ) -> ExpressionError:
        """What the parser would say of the place where a reader stopped."""
        grammar, algebra = grammar_of(self.algebra), self.algebra
        begin, row, depth = reader.place, reader.row, reader.depth
        state = int(self.automaton.grammar[row // self.tables.width])
        # Where operators are marks, a value is taken at once, even if a word goes on after it.
        while 0 < begin < len(text) and _within_word(text, begin):
            begin -= 1
        if begin < reader.place:
            state = grammar.after_operand.index(state)
        tail = bytes(text[begin : begin + CONTEXT]).decode("utf-8", "replace")
        matches = list(islice(grammar.scanner.finditer(tail), 3))  # it is one of the next
        words = [match[0] for match in matches]
        if reader.reason == MIXED:
            failure = 0, f"expected {chr(reader.closers[depth - 1])!r}, {{found}}"
        else:
            known = min(depth, len(words) + 1)
            around = self.automaton.grammar[
                reader.stack[depth - known : depth] // self.tables.width
            ]
            ids = [algebra.token_ids.get(word, UNKNOWN) for word in words]
            failure = grammar.first_error(ids, state, around.tolist(), depth - known)
        if failure is None or (words and failure[0] == len(words)):
            # The grammar refuses all that the pass does, but for this.
            raise ValueError(TOO_WIDE)
        place, problem = failure
        before = bytes(text[:begin]).decode("utf-8", "replace")
        whole = before + tail
        if place < len(words):
            offset = len(before) + matches[place].start()
            found = describe(algebra, words[place], empty=False)
        else:
            offset = len(whole.rstrip())
            found = describe(algebra, None, empty=not offset and not skipped)
        # Counted from where the reader stopped: the window may begin within a character.
        moved = offset - len(before)
        steps = len(tail[:moved].encode()) if moved >= 0 else -len(before[moved:].encode())
        byte = None if skipped is None else skipped + begin + steps
        return ExpressionError(problem.replace("{found}", found), whole, offset, first_line, byte)


# For symbols that bytes do not tell apart: only tokens are read, never text.
NO_LEXER = Lexer(
    np.zeros(256, np.uint8),
    np.zeros(256, np.uint8),
    np.zeros(256, np.uint16),
    np.zeros(1, np.uint8),
    {},
    True,
)


@cache
def _second_core() -> ThreadPoolExecutor:
    """Compiled passes release the interpreter's lock, so a thread is a core."""
    return ThreadPoolExecutor(1, thread_name_prefix="exactformer")


def _encode(text: str) -> bytes | None:
    """None for a string with half a surrogate pair, which is no text."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return None


def _within_word(text: Bytes, place: int) -> bool:
    """Whether a word goes on over this place."""
    around = bytes(text[place - 1 : place + 4]).decode("utf-8", "replace")
    return re.match(r"\w\w", around) is not None


def _bracket_near(text: Bytes, place: int, end: int) -> int:
    """The first parenthesis from a place on; `end` where none is near."""
    near = text[place : min(end, place + CONTEXT)]
    found = np.flatnonzero(np.isin(near, np.frombuffer(b"()[]", np.uint8)))
    return place + int(found[0]) if len(found) else end
