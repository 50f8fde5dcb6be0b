"""The engine on the CPU: text to value in one pass, O(n) in time, memory for the open spans only.

Text that bytes do not tell apart into tokens, and what is no text, goes through the parser.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.algebra import Algebra
from exactformer.domains.errors import ExpressionError, decode
from exactformer.domains.expression import Expression
from exactformer.domains.formats.labelled import read_tsv_row
from exactformer.domains.grammar import CLOSED, UNKNOWN, Grammar
from exactformer.domains.syntax import describe, parse
from exactformer.engine.automaton import REFUSED, TOO_WIDE, TOP, SpanAutomaton
from exactformer.engine.brackets import with_brackets
from exactformer.engine.lexer import NO_LEXER, lexer_of
from exactformer.engine.readers import Bytes, Reader, read_shared
from exactformer.engine.rows import Numbers, Read, Rows, line_of, read_rows, read_tokens
from exactformer.engine.scan import END, MIXED
from exactformer.engine.tables import Tables, tables_of

CONTEXT = 1 << 12  # bytes around an error that are decoded
MOST_JOINED = 1 << 26  # characters of many texts that are read as rows of one
LONG = 1 << 20  # characters of a text that is worth two readers, or a GPU, of its own


class CpuEngine:
    """Evaluates text with the automaton of certified weights."""

    takes_whole_lines = False

    def __init__(self, automaton: SpanAutomaton, algebra: Algebra) -> None:
        self.automaton, self.algebra = automaton, algebra
        lexer = lexer_of(algebra) if automaton.reads_text else NO_LEXER
        self.reads_bytes, self.look_ahead = lexer is not NO_LEXER, lexer.look_ahead
        square = "[" in algebra.spellings
        packed = algebra.packs and not square and _knows_before_operand(algebra.grammar)
        self.tables = tables_of(automaton, lexer, packed=packed, square=square)
        self._symbols = np.array(algebra.values, dtype=object)

    def value(self, text: str | bytes, first_line: int = 1) -> str:
        """The value of one expression. Raises the parser's `ExpressionError`."""
        data = text if isinstance(text, bytes) else encode(text)
        if data is None or not self.reads_bytes:
            return self.values([parse(self.algebra, text, first_line=first_line)])[0]
        array = np.frombuffer(data, dtype=np.uint8)
        reader = self.reader()
        self.read(reader, array, 0, len(array))
        value = self.result(reader)
        if value is None:
            decode(data, first_line)  # a byte that is no text is reported first
            raise self.error(reader, array, first_line=first_line)
        return value

    def values(self, expressions: Sequence[Expression]) -> list[str]:
        """The values of expressions that have been parsed."""
        return self.symbols(self.numbers(expressions))

    def numbers(self, expressions: Sequence[Expression]) -> Numbers:
        """The value of each expression, as its index among the algebra's values."""
        ids = [expression.ids for expression in expressions]
        ends = np.cumsum(list(map(len, ids)), dtype=np.int64)
        return self.token_numbers(np.concatenate([np.empty(0, np.int16), *ids]), ends)

    def token_numbers(
        self,
        tokens: NDArray[np.integer],
        ends: NDArray[np.integer],
        ids: NDArray[np.int16] | None = None,
    ) -> Numbers:
        """The value index of each expression, from tokens, with the arguments of `read_tokens`."""
        if not self.automaton.reads_text:
            tokens, ends = with_brackets(self.algebra, tokens, ends)
        numbers = read_tokens(self.tables, tokens, ends, ids)
        if (numbers < 0).any():  # though an expression is well formed
            raise ValueError(TOO_WIDE)
        return numbers

    def symbols(self, numbers: Numbers) -> list[str]:
        return self._symbols[numbers].tolist()

    def texts(self, texts: Sequence[str | bytes]) -> list[str]:
        """The value of each of many texts. Raises the first error, with the number of its text."""
        return self.symbols(self._texts(texts, 0, len(texts)))

    def _texts(self, texts: Sequence[str | bytes], begin: int, end: int) -> Numbers:
        """The values of texts[begin:end], read as rows of one joined text; if they cannot be
        joined, they are halved.
        """
        if end - begin > 1:
            data = _joined(texts[begin:end]) if self.reads_bytes else b""
            numbers = self.read_rows(np.frombuffer(data, np.uint8), separator=0).values
            if len(numbers) != end - begin:
                middle = (begin + end) // 2
                halves = self._texts(texts, begin, middle), self._texts(texts, middle, end)
                return np.concatenate(halves)
        else:
            numbers = np.full(end - begin, REFUSED, dtype=np.int16)
        for i in np.flatnonzero(numbers < 0).tolist():
            try:
                numbers[i] = self.algebra.values.index(self.value(texts[begin + i]))
            except ExpressionError as error:
                if len(texts) > 1:
                    error.add_note(f"in text {begin + i + 1} of {len(texts)}")
                raise
        return numbers

    def rows(
        self,
        text: Bytes,
        first_line: int = 1,
        most_errors: int | None = None,
        *,
        labelled: bool = False,
    ) -> Rows:
        """The value of each line of a text: whole lines, of which the last one need not end. Of bad
        lines, the errors of the first `most_errors`. With labels, lines are an expression, a tab
        and a value, or the other way round.
        """
        values, labels, begins = self.read_rows(text, ord("\n"), labelled=labelled)
        errors: dict[int, ExpressionError] = {}
        for i in np.flatnonzero(values < 0).tolist():
            few = most_errors is None or len(errors) < most_errors
            if not few and self.reads_bytes:  # else the parser may still find a value
                break
            line = line_of(text, begins, i)
            try:
                if labelled:
                    _, label, expression = read_tsv_row(self.algebra, line, first_line + i)
                    labels[i] = self.algebra.values.index(label)
                    (values[i],) = self.numbers([expression])
                else:
                    values[i] = self.algebra.values.index(self.value(line, first_line + i))
            except ExpressionError as error:
                if few:
                    errors[i] = error
        return Rows(values, labels, errors)

    def read_rows(self, text: Bytes, separator: int, *, labelled: bool = False) -> Read:
        """Evaluate rows that end with a newline or with a zero byte."""
        tables = self.tables_of_lines if separator else self.tables
        tables = self.tables_of_labelled_lines if labelled else tables
        return read_rows(tables, text, separator, labelled=labelled)

    @cached_property
    def tables_of_lines(self) -> Tables:
        return self._with_separators("\n")

    @cached_property
    def tables_of_labelled_lines(self) -> Tables:
        return self._with_separators("\t\n")

    def _with_separators(self, separators: str) -> Tables:
        lexer = lexer_of(self.algebra, separators)
        return self.tables._replace(token=lexer.token, trie=lexer.trie, trie_token=lexer.trie_token)

    def read(
        self, reader: Reader, text: Bytes, begin: int, end: int, *, final: bool = True
    ) -> None:
        """Read text[begin:end]. If more is to come, tokens near the end are left to be read then:
        `reader.position` says from where on.
        """
        if final:
            read_shared(reader, text, begin, end)
            return
        stop = max(begin, end - self.look_ahead)
        near = max(begin, stop - CONTEXT)
        last = max(text[near:stop].tobytes().rfind(bracket) for bracket in (b"(", b")"))
        cut = near + last if last >= 0 else begin
        read_shared(reader, text, begin, cut)
        if reader.reason == END:
            reader.read(text, cut, stop, end=end)

    def reader(self) -> Reader:
        """A new reader, which has read nothing yet."""
        return Reader(self.tables, TOP)

    def result(self, reader: Reader) -> str | None:
        """The value if the whole text was an expression, else None."""
        value = int(self.tables.final[reader.row // self.tables.width])
        whole = reader.reason == END and reader.depth == 0 and value != REFUSED
        return self.algebra.values[value] if whole else None

    def error(
        self,
        reader: Reader,
        text: Bytes,
        first_line: int = 1,
        skipped: int | None = None,
        visible: int = 0,
    ) -> ExpressionError:
        """The parser's error for the position where a reader stopped. Within a stream, `skipped`
        bytes came before `text`, and the last visible character ended at byte `visible`.
        """
        grammar, algebra = self.algebra.grammar, self.algebra
        begin, row, depth = reader.position, reader.row, reader.depth
        state = int(self.automaton.grammar[row // self.tables.width])
        # In packed text a value is taken at once, even if a word goes on after it.
        while 0 < begin < len(text) and _within_word(text, begin):
            begin -= 1
        if begin < reader.position:
            state = grammar.after_operand.index(state)
        tail = bytes(text[begin : begin + CONTEXT]).decode("utf-8", "replace")
        scanner = self.algebra.lexicon.scanner
        matches = list(islice(scanner.finditer(tail), 3))  # it is one of the next
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
        which, problem = failure
        before = bytes(text[:begin]).decode("utf-8", "replace")
        whole = before + tail
        word, offset, byte = None, len(whole.rstrip()), visible
        if which < len(words):
            start = matches[which].start()
            word, offset = words[which], len(before) + start
            byte = (skipped or 0) + begin + len(tail[:start].encode())
        found = describe(algebra, word, empty=row == TOP and not depth)
        place = first_line, None if skipped is None else byte
        return ExpressionError(problem.replace("{found}", found), whole, offset, *place)


def _knows_before_operand(grammar: Grammar) -> bool:
    """Whether the state after an operand determines which operators were possible before it. Packed
    text takes a value before it sees that the value is the beginning of a word.
    """
    before: dict[int, set[int]] = {}
    return all(
        before.setdefault(after, set(operators)) == set(operators)
        for after, operators in zip(grammar.after_operand, grammar.after_operator, strict=True)
        if after != CLOSED
    )


def _joined(texts: Sequence[Any]) -> bytes:
    """The texts joined, each followed by a byte that is in no expression; nothing if they are too
    long, of several types, or not valid text.
    """
    if max(map(len, texts)) < LONG and sum(map(len, texts)) <= MOST_JOINED:
        with suppress(TypeError, UnicodeEncodeError):
            if isinstance(texts[0], bytes):
                return b"\0".join([*texts, b""])
            return "\0".join([*texts, ""]).encode()
    return b""


def encode(text: str) -> bytes | None:
    """The text in UTF-8; None for a string with half a surrogate pair, which is no text."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return None


def _within_word(text: Bytes, i: int) -> bool:
    """Whether a word has begun before text[i] and goes on there."""
    around = bytes(text[i - 1 : i + 4]).decode("utf-8", "replace")
    return re.match(r"\w\w", around) is not None
