"""Random and damaged expressions: does `parse` accept what it should, and nothing else?

The judge is written apart and uses none of the package: it rewrites innermost spans to their
values with a regular expression, until nothing changes; what is left must be one value.

    python -m tests.fuzz --count 1000000
"""

import argparse
import random
import re
import time
from collections.abc import Callable
from typing import NamedTuple

from exactformer.domains.algebra import Algebra
from exactformer.domains.catalog import CATALOG
from exactformer.domains.errors import ExpressionError
from exactformer.domains.reference import evaluate
from exactformer.domains.syntax import parse


def word(*spellings: str) -> str:
    """A pattern for whole words: `TRUE` in `TRUES` is none."""
    return rf"(?<!\w)(?:{'|'.join(spellings)})(?!\w)"


BIT = rf"({word('1', '0', 'TRUE', 'FALSE')})"
AND, OR, NOT = word("AND") + "|[&∧]", word("OR") + "|[|∨]", word("NOT") + "|[~∼]"
BOOLEAN = re.compile(rf"\(\s*{BIT}\s*(?:({AND})|(?:{OR}))\s*{BIT}\s*\)|\(\s*(?:{NOT})\s*{BIT}\s*\)")
ARITHMETIC = re.compile(r"\(\s*([0-9])\s*([+*])\s*([0-9])\s*\)")
LISTOPS = re.compile(
    r"\(\s*(MAX|MIN|MED|SM)((?:\s+[0-9]){2,3})\s*\)|\[\s*(MAX|MIN|MED|SM)((?:\s+[0-9]){2,3})\s*\]"
)


def boolean_span(match: re.Match[str]) -> int:
    left, conjunction, right, negated = match.groups()
    if negated:
        return negated in ("0", "FALSE")
    truths = [bit in ("1", "TRUE") for bit in (left, right)]
    return all(truths) if conjunction else any(truths)


def arithmetic_span(match: re.Match[str]) -> int:
    left, sign, right = match.groups()
    return (int(left) + int(right) if sign == "+" else int(left) * int(right)) % 10


def listops_span(match: re.Match[str]) -> int:
    operator = match[1] or match[3]
    digits = sorted(map(int, (match[2] or match[4]).split()))
    if operator == "SM":
        return sum(digits) % 10
    return {"MAX": digits[-1], "MIN": digits[0], "MED": digits[1 - (len(digits) == 2)]}[operator]


JUDGES: dict[str, tuple[re.Pattern[str], Callable[[re.Match[str]], int]]] = {
    "boolean": (BOOLEAN, boolean_span),
    "arithmetic": (ARITHMETIC, arithmetic_span),
    "listops": (LISTOPS, listops_span),
}
BARE = {"TRUE": "1", "FALSE": "0"}


def judge(domain: str, text: str) -> str | None:
    """The value of a text, or None where it is no expression."""
    pattern, span_value = JUDGES[domain]
    changed = 1
    while changed:
        text, changed = pattern.subn(lambda match: f" {int(span_value(match))} ", text)
    left = text.strip()
    if domain == "boolean":
        left = BARE.get(left, left)
        return left if left in ("0", "1") else None
    return left if re.fullmatch("[0-9]", left) else None


JUNK = ["2", "12", "x", "MAXI", "MA", "AN", "true", "-", "&&", "(", ")", "[", "]", "é", "\0", "１"]


class Fuzzer:
    """Draws texts over the vocabulary of an algebra, with every spelling and a little junk."""

    def __init__(self, algebra: Algebra, seed: int) -> None:
        self.rng = random.Random(seed)
        self.algebra = algebra
        self.words = list(algebra.token_ids)
        self.spellings = {symbol: [symbol] * 4 for symbol in algebra.vocabulary}
        for spelling, symbol in algebra.spellings.items():
            self.spellings[symbol].append(spelling)

    def text(self) -> str:
        if self.rng.random() < 0.5:
            return self.spaced([self.token() for _ in range(self.rng.randint(0, 12))])
        words = self.expression(self.rng.randint(0, 3))
        edits = self.rng.choice([0, 0, 1, 1, 1, 2, 3])
        if self.rng.random() < 0.5:
            return self.spaced(self.damaged(words, edits))
        return "".join(self.damaged(list(self.spaced(words)), edits))

    def token(self) -> str:
        return self.rng.choice(JUNK if self.rng.random() < 0.03 else self.words)

    def expression(self, depth: int) -> list[str]:
        """The words of a random expression, at most this deep."""
        if depth == 0 or self.rng.random() < 0.15:
            return [self.rng.choice(self.spellings[self.rng.choice(self.algebra.values)])]
        operator = self.rng.choice(self.algebra.operators)
        parts = [self.expression(depth - 1) for _ in range(self.rng.choice(operator.arities))]
        before = 1 if self.algebra.notation == "infix" and len(parts) == 2 else 0
        parts.insert(before, [self.rng.choice(self.spellings[operator.symbol])])
        square = "[" in self.algebra.spellings and self.rng.random() < 0.3
        opening, closing = "[]" if square else "()"
        return [opening, *(word for part in parts for word in part), closing]

    def damaged(self, pieces: list[str], edits: int) -> list[str]:
        """After this many deletions, insertions, replacements and swaps of pieces."""
        for _ in range(edits):
            place = self.rng.randrange(len(pieces) + 1)
            match self.rng.randrange(4):
                case 0:
                    pieces[place : place + 1] = []
                case 1:
                    pieces.insert(place, self.token())
                case 2:
                    pieces[place : place + 1] = [self.token()]
                case _:
                    pieces[place : place + 2] = reversed(pieces[place : place + 2])
        return pieces

    def spaced(self, words: list[str]) -> str:
        """Most words apart; now and then they touch, which may merge two into one."""
        if self.rng.random() < 0.5:
            return " ".join(words)
        return "".join(word + self.rng.choice(["", " ", " ", " ", "\n", "\t "]) for word in words)


class Tally(NamedTuple):
    valid: int
    invalid: int


def check(algebra: Algebra, text: str) -> bool:
    """Whether the text is an expression; ours and the judge must agree, on its value too."""
    value = refusal = None
    try:
        value = evaluate(parse(algebra, text))
    except ExpressionError as error:
        refusal = error
    expected = judge(algebra.name, text)
    assert value == expected, f"{text!r}: ours {value}, the judge {expected}"
    if refusal:
        before = text[: refusal.offset]
        line, column = before.count("\n") + 1, len(before.rpartition("\n")[2]) + 1
        assert 0 <= refusal.offset <= len(text), repr(text)
        assert (refusal.line, refusal.column) == (line, column), repr(text)
        assert str(refusal).startswith(f"line {line}, column {column}: expected "), repr(text)
    return refusal is None


def fuzz(algebra: Algebra, count: int, seed: int) -> Tally:
    """How many of `count` texts were expressions. Raises AssertionError on a disagreement."""
    fuzzer = Fuzzer(algebra, seed)
    valid = sum(check(algebra, fuzzer.text()) for _ in range(count))
    return Tally(valid, count - valid)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare parse and the oracle with a judge.")
    parser.add_argument("--count", type=int, default=1_000_000, help="texts for each vocabulary")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for name, make in CATALOG.items():
        start = time.perf_counter()
        tally = fuzz(make(), arguments.count, arguments.seed)
        seconds = time.perf_counter() - start
        print(
            f"{name}: {arguments.count:,} texts, {tally.valid:,} valid, {tally.invalid:,} not; "
            f"no disagreement; {seconds:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
