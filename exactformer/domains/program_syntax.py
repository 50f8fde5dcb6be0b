"""Reads programs: statements `name=expr;` in any order, white space and line breaks free.

A name is a word that begins with a letter or an underscore and is no token of the domain; it may go
on with letters, digits, underscores and those of `.`, `[` and `]` that no symbol of the domain has
in it. `#` begins a comment that ends with the line, unless a symbol has one in it. A right side is
any expression of the domain, with names wherever values may stand.
"""

import re
from array import array
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NoReturn

import numpy as np

from exactformer.domains.algebra import AN_ALGEBRA, Algebra
from exactformer.domains.belonging import algebra_of
from exactformer.domains.bounds import LONGEST_STATEMENT, MOST_STATEMENTS, require
from exactformer.domains.capabilities import require_capability
from exactformer.domains.data import expect, suggestion
from exactformer.domains.domain import Domain
from exactformer.domains.errors import ExpressionError, decode, quote
from exactformer.domains.grammar import UNKNOWN
from exactformer.domains.program import WIRE, Program
from exactformer.domains.syntax import describe

A_STATEMENT = "a statement such as name=expr;"
MOST_IN_CYCLE = 8  # names of a cycle that a message shows
SHORT = 64  # words of a right side that is remembered as checked, with names put aside
MOST_CHECKED = 10_000  # right sides that are remembered
MOST_TO_SUGGEST = 1_000  # names of a program among which one that is misspelt is sought


def parse_program(
    domain: Domain,
    text: str | bytes,
    outputs: Sequence[str] | None = None,
    *,
    first_line: int = 1,
) -> Program:
    """Read a program. Raises `ExpressionError`, which says where.

    outputs      the names that are its results; without them, those that no statement uses.
    first_line   the line number of the text in the file it came from.
    """
    expect(domain, Domain, AN_ALGEBRA)
    expect(text, (str, bytes), "the text of a program")
    require_capability("programs", domain)
    return _Reader(algebra_of(domain), decode(text, first_line), first_line).program(outputs)


class Spelling:
    """How the programs of a domain are cut into words.

    comment   a comment; None where `#` is part of a symbol.
    name      a word that can be a name if it is no token.
    head      the beginning of a statement, up to its `=`.
    words     the words of a right side: those of expressions, and names.
    value     a value, which stands for any name where grammar is checked.
    """

    def __init__(self, domain: Algebra) -> None:
        used = set("".join(domain.token_ids))
        if ";" in used:
            raise ValueError(f"{domain.name!r} has ';' in a symbol, which ends a statement")
        self.value = domain.values[0]
        more = "".join(re.escape(char) for char in ".[]" if char not in used)
        name = rf"[^\W\d][\w{more}]*"
        self.comment = None if "#" in used else re.compile(r"#[^\n]*")
        self.name = re.compile(name)
        self.head = re.compile(rf"\s*({name})\s*=")
        self.words = re.compile("|".join([*domain.lexicon.mark_patterns, name, r"\w+", r"\S"]))


spelling_of = lru_cache(maxsize=64)(Spelling)


class _Codes(dict[str, int]):
    """The number of each word: a token's id, UNKNOWN, or a name's, which are those from `first`."""

    def __init__(self, domain: Domain, spelling: Spelling) -> None:
        super().__init__(domain.token_ids)
        self.first, self.spelling, self.names = len(domain.vocabulary), spelling, list[str]()

    def __missing__(self, word: str) -> int:
        if not self.spelling.name.fullmatch(word):
            return UNKNOWN
        self[word] = self.first + len(self.names)
        self.names.append(word)
        return self[word]


class _Reader:
    """One text while it is read."""

    def __init__(self, domain: Algebra, text: str, first_line: int) -> None:
        self.domain, self.text, self.first_line = domain, text, first_line
        self.spelling = spelling_of(domain)
        self.codes = _Codes(domain, self.spelling)
        self.heads: dict[str, int] = {}  # where the definition of each name begins
        self.begins = array("q")  # where the right side of each statement begins
        self.checked: set[tuple[str, ...]] = set()  # right sides without an error, names aside
        comment = self.spelling.comment
        self.bare = comment.sub(lambda found: " " * len(found[0]), text) if comment else text
        require("statements of a program", self.bare.count(";"), MOST_STATEMENTS)

    def program(self, outputs: Sequence[str] | None) -> Program:
        """The whole program; all that is wrong within a statement is found before what is not."""
        codes, lengths, begin, last = array("i"), array("q"), 0, False
        while not last:
            end = self.bare.find(";", begin)
            last = end < 0
            piece = self.bare[begin:] if last else self.bare[begin:end]
            if not last or piece.strip():
                found = self._statement(piece, begin, last)
                codes.extend(found)
                lengths.append(len(found))
            begin += len(piece) + 1
        if not lengths:
            self._fail(f"expected {A_STATEMENT}, found no text", len(self.text.rstrip()))
        first, words = self.codes.first, self.codes.names
        ids = np.array(codes, dtype=np.int64)
        place = {name: i for i, name in enumerate(self.heads)}
        number = np.array([place.get(word, -1) for word in words], dtype=np.int64)
        wires = number[ids[ids >= first] - first]
        program = Program(
            self.domain,
            tuple(self.heads),
            0,
            np.where(ids < first, ids, WIRE).astype(np.int16),
            np.array(lengths, dtype=np.int64),
            wires,
            (),
        )
        if (wires < 0).any():
            self._undefined(program, int(np.argmax(wires < 0)))
        if cycle := program.cycle:
            self._cycle(program, cycle)
        return program.with_outputs(outputs)

    def _statement(self, piece: str, begin: int, last: bool) -> list[int]:
        """The numbers of the words on the right side of a statement that begins at `begin`."""
        if len(piece) > LONGEST_STATEMENT and len(piece.strip()) > LONGEST_STATEMENT:
            blanks = len(piece) - len(piece.lstrip())
            problem = f"expected a statement of {LONGEST_STATEMENT:,} characters at most"
            self._fail(f"{problem}, found {len(piece.strip()):,}", begin + blanks)
        head = self.spelling.head.match(piece)
        if head is None or (name := head[1]) in self.domain.token_ids:
            self._no_head(piece, begin, last)
        at = begin + head.start(1)
        if name in self.heads:
            earlier = ExpressionError("", self.text, self.heads[name], self.first_line)
            where = f"in line {earlier.line}, column {earlier.column}"
            self._fail(f"{quote(name)} is defined twice, first {where}", at)
        number = self.codes[name]
        self.heads[self.codes.names[number - self.codes.first]] = at
        self.begins.append(begin + head.end())
        words = self.spelling.words.findall(piece, head.end())
        codes = [self.codes[word] for word in words]
        first, put = self.codes.first, self.spelling.value
        pairs = zip(words, codes, strict=True)
        shown = tuple([word if code < first else put for word, code in pairs])
        if shown not in self.checked:
            ids = [self.codes[word] for word in shown]
            if failure := self.domain.first_error(ids, [*shown]):
                self._refuse(piece, begin, head.end(), last, *failure)
            if len(shown) <= SHORT and len(self.checked) < MOST_CHECKED:
                self.checked.add(shown)
        if last:
            end = len(self.text.rstrip())
            self._fail("expected ';' after the statement, found the end of the text", end)
        return codes

    def _refuse(
        self, piece: str, begin: int, head: int, last: bool, place: int, problem: str
    ) -> NoReturn:
        """Refuse a right side, which begins at `head` of a piece, for the word at a place in it."""
        # The words are those of a text of its own: here `;` ends it, and names may stand in it.
        problem = problem.replace("the end of the text", "';'")
        problem = problem.replace("expected a value", "expected a name, a value")
        matches = enumerate(self.spelling.words.finditer(piece, head))
        match = next((match for i, match in matches if i == place), None)
        if match is None and last:
            found, offset = "found the end of the text", len(self.text.rstrip())
        elif match is None:
            found, offset = "found ';'", begin + len(piece)
        else:
            found, offset = describe(self.domain, match[0], empty=False), begin + match.start()
            if self.codes[match[0]] >= self.codes.first:
                found = f"found the name {quote(match[0])}"
        self._fail(problem.replace("{found}", found), offset)

    def _no_head(self, piece: str, begin: int, last: bool) -> NoReturn:
        """Refuse a statement that does not begin with a name and `=`."""
        matches = self.spelling.words.finditer(piece)
        ahead = [*_first(matches, 2)]
        words = [match[0] for match in ahead]
        offsets = [begin + match.start() for match in ahead]
        over = "the end of the text" if last else "';'"
        end = len(self.text.rstrip()) if last else begin + len(piece)
        if not words:
            self._fail(f"expected {A_STATEMENT}, found {over}", end)
        if (word := words[0]) in self.domain.token_ids:
            why = f"a token of {self.domain.name}, which cannot be a name"
            self._fail(f"expected {A_STATEMENT}, found {quote(word)}: {why}", offsets[0])
        if not self.spelling.name.fullmatch(word):
            self._fail(f"expected {A_STATEMENT}, found {quote(word)}, which is no name", offsets[0])
        found, offset = (quote(words[1]), offsets[1]) if words[1:] else (over, end)
        self._fail(f"expected '=' after the name {quote(word)}, found {found}", offset)

    def _undefined(self, program: Program, use: int) -> NoReturn:
        """Refuse a name without a definition, where it is used first."""
        statement = int(program.users[use])
        nth = use - int(program.first_uses[statement])
        matches = self.spelling.words.finditer(self.text, self.begins[statement])
        names = (m for m in matches if self.codes.get(m[0], 0) >= self.codes.first)
        match = next(m for i, m in enumerate(names) if i == nth)
        name, known = match[0], [s for s in self.domain.token_ids if s.isalpha()]
        few = [*program.names] if len(program.names) <= MOST_TO_SUGGEST else []
        hint = suggestion(name, few) or suggestion(name.upper(), known)
        self._fail(f"{quote(name)} is used, but never defined{hint}", match.start())

    def _cycle(self, program: Program, cycle: list[int]) -> NoReturn:
        """Refuse names that depend on themselves, at the first one's definition."""
        turn = cycle.index(min(cycle))
        names = [program.names[name] for name in cycle[turn:] + cycle[:turn]]
        shown = names[:MOST_IN_CYCLE]
        more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
        way = " -> ".join([*map(quote, shown), *(["..."] if more else []), quote(names[0])])
        problem = f"{quote(names[0])} depends on itself: {way}{more and f' ({len(names)} names)'}"
        self._fail(problem, self.heads[names[0]])

    def _fail(self, problem: str, offset: int) -> NoReturn:
        raise ExpressionError(problem, self.text, offset, self.first_line)


def _first(matches: Iterable[re.Match[str]], count: int) -> Iterable[re.Match[str]]:
    for _, match in zip(range(count), matches, strict=False):
        yield match
