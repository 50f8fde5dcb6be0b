"""Random algebras with random symbols, and random texts in them, right and damaged."""

import re
from collections.abc import Sequence
from itertools import product
from random import Random

import numpy as np

from exactformer.domains.algebra import CLOSE, OPEN, Algebra, Operator
from exactformer.domains.notation import NOTATIONS
from exactformer.domains.precedence import Level
from exactformer.domains.rules import operand_keys
from tests.texts import SHAPES, spoil, tree

LETTERS = "abxyzATFNr"
DIGITS = "0123456789"
MARKS = "+-*/&|~!<>=?.:,;@#$%^`'\"{}\\"
OTHER_MARKS = "∧∨∼−×→§¬…🙂"
OTHER_LETTERS = "éßжλ真１²ªक"
MIXED = ("-1", "0.5", "a+", "x'", "C#", "e\u0301", "e\u0301t", "c\u0301", "क्ष", "1/2", "+_", "∧T")
LONG = ("a_word_of_17_chars", "the_very_longest", "<=================>", "<==============>")
# What values, operators and other spellings are made of: kinds of characters, each as likely. One
# that stands alone gives single characters only.
ASCII = (LETTERS, DIGITS, MARKS)
THEMES = {
    "packed": ((LETTERS + DIGITS,), (MARKS,), (LETTERS, LETTERS + "_")),
    "packed marks": ((MARKS,), (MARKS + OTHER_MARKS,), (LETTERS, DIGITS, LETTERS)),
    "words": ((LETTERS, DIGITS), (LETTERS, LETTERS), ASCII),
    "letters": ((LETTERS,), (LETTERS,), (LETTERS, MARKS)),
    "marks": ((MARKS, OTHER_MARKS), (MARKS, OTHER_MARKS), ASCII),
    "ascii": (ASCII, ASCII, ASCII),
    "anything": ((*ASCII, OTHER_MARKS, OTHER_LETTERS),) * 3,
}
MOST_CASES = 300  # of an operator, so that a model is made at once

SPACES = (
    " ",
    " ",
    " ",
    " ",
    "",
    "",
    "\t",
    "\r",
    "  ",
    "\x0b\x0c",
    "\x1c",
    "\x85",
    "\xa0",
    "\u2003",
)
SPACES += ("\u2028", "\u3000", " " * 20)
STRAY = (
    "x",
    "é",
    "\u0301",
    "\0",
    "\x7f",
    "\x1b",
    "\ud800",
    "\udcff",
    "\u200b",
    "\u200d",
    "１",
    "_",
)
STRAY += ("\ufffd", "(", ")", "[", "]", "§", "∧", "12", "&&", "\u0660", "\U0001f600", "−", "\u2060")
NO_TEXT = (b"\xff", b"\xc3", b"\xe2\x88", b"\x80", b"\xed\xa0\x80", b"\xf0\x9f", b"\xc0\xa8")


class Symbols:
    """Draws symbols that no two tokens share, often beginnings or continuations of others."""

    def __init__(self, rng: Random) -> None:
        self.rng, self.theme = rng, rng.choice(list(THEMES))
        self.used = {"(", ")", "[", "]"}

    def draw(self, role: int) -> str:
        """A symbol that is not used yet, for a value (0), an operator (1) or another spelling
        (2).
        """
        while True:
            symbol = self._draw(THEMES[self.theme][role])
            if symbol not in self.used:
                self.used.add(symbol)
                return symbol

    def _draw(self, kinds: tuple[str, ...]) -> str:
        rng, kind = self.rng, self.rng.choice(kinds)
        others = sorted(self.used - set("()[]"))
        if self.theme != "anything":  # no letters in marks
            others = [symbol for symbol in others if symbol[0].isalnum() == kind[0].isalnum()]
        if len(kinds) == 1 and len(self.used) < len(kind) // 2:
            return rng.choice(kind)
        if others and rng.random() < 0.4:  # related to others
            one, other = rng.choice(others), rng.choice(others)
            extra = rng.choice(kind)
            return rng.choice([one + extra, extra + one, one[:-1] or extra, one + other])
        if self.theme == "anything" and rng.random() < 0.25:
            return rng.choice(MIXED)
        if rng.random() < 0.03:
            return rng.choice(LONG)
        return "".join(rng.choice(kind) for _ in range(rng.choice([1, 1, 1, 2, 2, 3, 5])))


def random_algebra(rng: Random, name: str) -> Algebra:
    """A random algebra of one to twelve values and one to four operators of one to four operands;
    in plain notation of up to three values, so that the engine has few states.
    """
    return respelt(tables(rng, name), rng)


def tables(rng: Random, name: str, notations: Sequence[str] = tuple(NOTATIONS)) -> Algebra:
    """An algebra with symbols of no interest."""
    notation = rng.choice(notations)
    plain = notation == "plain"
    sizes = [1, 2, 2, 3] if plain else [1, 2, 2, 3, 4, 5, 7, 10, 12]
    values = tuple(f"v{i}" for i in range(rng.choice(sizes)))
    operators = []
    for number in range(rng.randint(1, 4)):
        ordered = rng.random() < 0.5
        most = 2 if plain or notation == "infix" else 4
        while len(values) ** most > MOST_CASES:
            most -= 1
        arities = rng.sample(range(1, most + 1), rng.randint(1, most))
        if notation == "prefix" or rng.random() < 0.7:
            arities = sorted({*arities, min(2, most)})  # texts of one operand only are dull
        if notation.endswith("polish"):  # no bracket tells which arity it is
            arities = [rng.choice(arities)]
        keys = operand_keys(len(values), arities, ordered)
        table = {key: rng.randrange(len(values)) for key in keys}
        operators.append(Operator(f"o{number}", tuple(arities), table, ordered))
    levels = random_levels(operators, rng) if plain else ()
    return Algebra(name, values, tuple(operators), notation, precedence=levels)


def random_levels(operators: list[Operator], rng: Random) -> list[Level]:
    """Each use of an operator on a level, some of which it shares."""
    uses = [(op.symbol, arity) for op in operators for arity in op.arities]
    rng.shuffle(uses)
    levels: list[tuple[str, list[str]]] = []
    for symbol, arity in uses:
        direction = "prefix" if arity == 1 else rng.choice(["left", "right"])
        same_kind = levels and (levels[-1][0] == "prefix") == (arity == 1)
        if same_kind and rng.random() < 0.4:
            levels[-1][1].append(symbol)
        else:
            levels.append((direction, [symbol]))
    return [Level(direction, symbols) for direction, symbols in levels]


def respelt(algebra: Algebra, rng: Random) -> Algebra:
    """The algebra under other symbols, some with several spellings."""
    while True:
        try:
            return _respelt(algebra, rng)
        except (
            ValueError
        ):  # a symbol that no algebra may have, such as one that begins with an accent
            continue


def _respelt(algebra: Algebra, rng: Random) -> Algebra:
    symbols = Symbols(rng)
    values = tuple(symbols.draw(0) for _ in algebra.values)
    operators = tuple(
        Operator(symbols.draw(1), op.arities, op.table, op.ordered) for op in algebra.operators
    )
    named = [*values, *(op.symbol for op in operators)]
    spellings = {symbols.draw(2): rng.choice(named) for _ in range(rng.choice([0, 1, 2, 4, 8]))}
    if rng.random() < 0.25:
        spellings |= {"[": "(", "]": ")"}
    renamed = {op.symbol: new.symbol for op, new in zip(algebra.operators, operators, strict=True)}
    levels = [
        Level(level.direction, [renamed[symbol] for symbol in level.operators])
        for level in algebra.precedence
    ]
    return Algebra(algebra.name, values, operators, algebra.notation, spellings, levels)


class Texts:
    """Draws texts of an algebra."""

    def __init__(self, algebra: Algebra, rng: Random) -> None:
        self.algebra, self.rng = algebra, rng
        self.spellings: list[list[str]] = [[symbol] * 2 for symbol in algebra.vocabulary]
        for spelling, symbol in algebra.spellings.items():
            self.spellings[algebra.token_ids[symbol]].append(spelling)
        self.pieces = [*algebra.token_ids, *STRAY, *SPACES]
        self.pieces += [a + b for a, b in product(rng.sample([*algebra.token_ids], 2), repeat=2)]

    def draw(self, leaves: int) -> str:
        """A text of about so many values; about half of them are right."""
        rng = self.rng
        ids = tree(self.algebra, rng.choice(SHAPES), leaves, rng)
        if self.algebra.parenthesized is not self.algebra:
            ids = self._few_parentheses(ids)
        if rng.random() < 0.15:
            ids = spoil(self.algebra, ids, rng)
        text = self._spelt(ids)
        for _ in range(rng.choice([0, 0, 0, 1, 1, 2])):
            text = self._damaged(text)
        return text

    def _few_parentheses(self, ids: list[int]) -> list[int]:
        """The tokens in the algebra's notation: in plain, with the parentheses that are needed and
        some that are not; in Polish, with none.
        """
        share = self.rng.choice([0, 0.1, 0.5])

        def surplus(size: int) -> np.ndarray:
            return np.array([self.rng.random() < share for _ in range(size)])

        whole = np.array(ids, dtype=np.int16)
        return self.algebra.notation.write(self.algebra, whole, surplus).tolist()

    def _damaged(self, text: str) -> str:
        rng, place = self.rng, self.rng.randrange(len(text) + 1)
        match rng.randrange(6):
            case 0:  # words glued
                return re.sub(r"\s+", "", text[:place]) + text[place:]
            case 1:  # or one space less
                return text[:place] + re.sub(r"\s+", "", text[place:], count=1)
            case 2:  # an end too early, with nothing to be seen after it
                return text[:place] + rng.choice(SPACES) * rng.choice([0, 1, 300])
            case _:
                piece = rng.choice([*self.pieces, ""])
                return text[:place] + piece + text[place + rng.randint(0, 2) :]

    def _spelt(self, ids: list[int]) -> str:
        """Any symbol of each token; brackets pair, mostly; packed, with spaces, or at random."""
        rng = self.rng
        squares: list[bool] = []
        may_mix = rng.random() < 0.5
        square = "[" in self.algebra.spellings and rng.random() < 0.5
        words = []
        for token in ids:
            word = rng.choice(self.spellings[token])
            if token in (OPEN, CLOSE) and word in "()[]":
                square = may_mix and word in "[]" if may_mix else square
                if token == OPEN:
                    squares.append(square)
                elif squares and rng.random() < 0.98:
                    square = squares.pop()
                pair = "[]" if square else "()"
                word = pair[0] if token == OPEN else pair[1]
            words.append(word)
        match rng.choice(["single", "packed", "careful", "careful", "free"]):
            case "single":
                return " ".join(words)
            case "packed":
                return "".join(words)
            case "careful":  # spaces where words would touch, and hardly any others
                text = ""
                for word in words:
                    touch = text[-1:].isalnum() and word[0].isalnum()
                    text += (" " if touch or rng.random() < 0.05 else "") + word
                return text
            case _:
                spaces = rng.sample(SPACES, 3)
                return "".join(word + rng.choice(spaces) for word in words)

    def bytes(self, text: str) -> bytes:
        """The text as bytes, some of which are not valid UTF-8."""
        data = text.encode("utf-8", "surrogatepass" if self.rng.random() < 0.5 else "ignore")
        if self.rng.random() < 0.2:
            place = self.rng.randrange(len(data) + 1)
            wrong = self.rng.choice(NO_TEXT)
            data = data[:place] + wrong + data[place + self.rng.randint(0, 1) :]
        return data
