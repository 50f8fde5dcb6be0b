"""Random algebras with random symbols, and random texts in them, right and damaged."""

from itertools import product
from random import Random

from exactformer.domains.algebra import Algebra, Operator
from exactformer.domains.rules import operand_keys
from tests.texts import SHAPES, spoil, tree

LETTERS = "abxyzATFNr_"
DIGITS = "0123456789"
MARKS = "+-*/&|~!<>=?.:,;@#$%^`'\"{}\\"
OTHER_MARKS = "∧∨∼−×→§¬…🙂"
OTHER_LETTERS = "éßжλ真１²ªक"
MIXED = ("-1", "0.5", "a+", "x'", "C#", "e\u0301", "e\u0301t", "c\u0301", "क्ष", "1/2", "+_", "∧T")
LONG = ("a_word_of_17_chars", "the_very_longest", "<=================>", "<==============>")
THEMES = {  # what symbols are made of, and how likely
    "single": (LETTERS + DIGITS + MARKS,),
    "words": (LETTERS, LETTERS, DIGITS),
    "marks": (MARKS, MARKS, OTHER_MARKS),
    "ascii": (LETTERS, DIGITS, MARKS),
    "brackets beside": (LETTERS, MARKS, OTHER_MARKS),
    "anything": (LETTERS, DIGITS, MARKS, OTHER_MARKS, OTHER_LETTERS),
}
MOST_CASES = 300  # of an operator, so that a model is made at once

SPACES = (" ", " ", " ", " ", "", "", "\t", "\r", "  ", "\x0b\x0c", "\x1c", "\x85", "\xa0", "\u2003")
SPACES += ("\u2028", "\u3000", " " * 20)
STRAY = ("x", "é", "\u0301", "\0", "\x7f", "\x1b", "\ud800", "\udcff", "\u200b", "\u200d", "１", "_")
STRAY += ("\ufffd", "(", ")", "[", "]", "§", "∧", "12", "&&", "\u0660", "\U0001f600", "−", "\u2060")
NO_TEXT = (b"\xff", b"\xc3", b"\xe2\x88", b"\x80", b"\xed\xa0\x80", b"\xf0\x9f", b"\xc0\xa8")


class Symbols:
    """Draws symbols that no two tokens share, often beginnings or continuations of others."""

    def __init__(self, rng: Random) -> None:
        self.rng, self.theme = rng, rng.choice(list(THEMES))
        self.used = {"(", ")", "[", "]"}

    def draw(self) -> str:
        while True:
            symbol = self._draw()
            if symbol not in self.used:
                self.used.add(symbol)
                return symbol

    def _draw(self) -> str:
        rng, kinds = self.rng, THEMES[self.theme]
        kind = rng.choice(kinds)
        if self.theme == "single":
            # One letter each, while there are some.
            return "".join(rng.choice(kind) for _ in range(1 if len(self.used) < 30 else 2))
        others = sorted(self.used - set("()[]"))
        if others and rng.random() < 0.35:  # related to another
            other = rng.choice(others)
            extra = rng.choice(other if rng.random() < 0.5 else kind)
            return rng.choice([other + extra, extra + other, other[:-1] or extra, other + other])
        if self.theme == "anything" and rng.random() < 0.25:
            return rng.choice(MIXED)
        if rng.random() < 0.03:
            return rng.choice(LONG)
        return "".join(rng.choice(kind) for _ in range(rng.choice([1, 1, 1, 2, 2, 3, 5])))


def random_algebra(rng: Random, name: str) -> Algebra:
    """One to twelve values, one to four operators of one to four operands."""
    return respelt(tables(rng, name), rng)


def tables(rng: Random, name: str) -> Algebra:
    """An algebra with symbols of no interest."""
    notation = rng.choice(["infix", "prefix"])
    values = tuple(f"v{i}" for i in range(rng.choice([1, 2, 2, 3, 4, 5, 7, 10, 12])))
    operators = []
    for number in range(rng.randint(1, 4)):
        ordered = rng.random() < 0.5
        most = 2 if notation == "infix" else 4
        while len(values) ** most > MOST_CASES:
            most -= 1
        arities = rng.sample(range(1, most + 1), rng.randint(1, most))
        if notation == "prefix" or rng.random() < 0.7:
            arities = sorted({*arities, min(2, most)})  # texts of one operand only are dull
        keys = operand_keys(len(values), arities, ordered)
        table = {key: rng.randrange(len(values)) for key in keys}
        operators.append(Operator(f"o{number}", tuple(arities), table, ordered))
    return Algebra(name, values, tuple(operators), notation)


def respelt(algebra: Algebra, rng: Random) -> Algebra:
    """The same values and operators under other symbols, some with several."""
    while True:
        try:
            return _respelt(algebra, rng)
        except ValueError:  # a symbol that no algebra may have, such as one that begins with an accent
            continue


def _respelt(algebra: Algebra, rng: Random) -> Algebra:
    symbols = Symbols(rng)
    values = tuple(symbols.draw() for _ in algebra.values)
    operators = tuple(
        Operator(symbols.draw(), op.arities, op.table, op.ordered) for op in algebra.operators
    )
    named = [*values, *(op.symbol for op in operators)]
    spellings = {symbols.draw(): rng.choice(named) for _ in range(rng.choice([0, 0, 1, 2, 4, 8]))}
    if rng.random() < 0.3:
        spellings |= {"[": "(", "]": ")"}
    return Algebra(algebra.name, values, operators, algebra.notation, spellings)


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
        if rng.random() < 0.15:
            ids = spoil(self.algebra, ids, rng)
        text = self._spelt(ids)
        for _ in range(rng.choice([0, 0, 0, 1, 1, 2])):
            place = rng.randrange(len(text) + 1)
            text = text[:place] + rng.choice([*self.pieces, ""]) + text[place + rng.randint(0, 2) :]
        return text

    def _spelt(self, ids: list[int]) -> str:
        """Any symbol of each token; brackets pair, mostly; packed, with spaces, or at random."""
        rng = self.rng
        squares: list[bool] = []
        may_mix = rng.random() < 0.5
        square = "[" in self.algebra.spellings and rng.random() < 0.5
        words = []
        for token in ids:
            word = rng.choice(self.spellings[token])
            if token < 2:
                square = may_mix and word in "[]" if may_mix else square
                if token == 0:
                    squares.append(square)
                elif squares and rng.random() < 0.98:
                    square = squares.pop()
                word = ("[" if square else "(") if token == 0 else "]" if square else ")"
            words.append(word)
        match rng.choice("single packed careful careful free".split()):
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
        """As bytes, some of which are no text."""
        data = text.encode("utf-8", "surrogatepass" if self.rng.random() < 0.5 else "ignore")
        if self.rng.random() < 0.2:
            place = self.rng.randrange(len(data) + 1)
            wrong = self.rng.choice(NO_TEXT)
            data = data[:place] + wrong + data[place + self.rng.randint(0, 1) :]
        return data
