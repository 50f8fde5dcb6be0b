"""Algebras in plain notation, and what their grammar and their meaning are by definition.

`derivations` lists texts by the productions of docs/plain.md, each with its tree: it knows neither
the parser's automaton nor precedence climbing.
"""

from functools import cache
from itertools import product
from pathlib import Path

from hypothesis import strategies as st

import exactformer as ef
from exactformer.domains.algebra import Algebra, Operator
from exactformer.domains.precedence import Direction, Level

EXAMPLES = Path(__file__).resolve().parent.parent / "examples" / "plain"
MODULO7 = ef.load_algebra(EXAMPLES / "modulo7.toml")
IMPLICATION = ef.load_algebra(EXAMPLES / "implication.toml")

Tree = str | tuple  # a value, (prefix operator, tree) or (operator, tree, tree)
Words = tuple[str, ...]


def powers(modulus: int = 5) -> Algebra:
    """Python's levels: `-` between `*` and `**`, which groups from the right."""
    values = tuple(map(str, range(modulus)))

    def power(a: str, b: str) -> str:
        return str(int(a) ** int(b) % modulus)

    return Algebra(
        "powers",
        values,
        (
            Operator.from_rule("*", [2], lambda a, b: str(int(a) * int(b) % modulus), values),
            Operator.from_rule("-", [1], lambda a: str(-int(a) % modulus), values),
            Operator.from_rule("**", [2], power, values, ordered=True),
        ),
        "plain",
        precedence=(Level("left", ("*",)), Level("prefix", ("-",)), Level("right", ("**",))),
    )


ALGEBRAS = [ef.boolean_plain(), ef.arithmetic_plain(), MODULO7, IMPLICATION, powers()]


@st.composite
def random_algebras(draw, n_values: int = 2) -> Algebra:
    """Up to three binary and two prefix uses on random levels, with random tables."""
    values = tuple("01")[:n_values]
    binary = tuple("+*^")[: draw(st.integers(0, 3))]
    prefix = tuple("~-")[: draw(st.integers(0 if binary else 1, 2))]

    def operator(symbol: str, arity: int) -> Operator:
        keys = list(product(range(n_values), repeat=arity))
        results = draw(st.lists(st.sampled_from(range(n_values)), min_size=len(keys), max_size=8))
        return Operator(symbol, (arity,), dict(zip(keys, results, strict=False)), ordered=True)

    levels: list[tuple[Direction, list[str]]] = []
    for symbol in draw(st.permutations([*binary, *prefix])):
        is_prefix = symbol in prefix
        last = levels[-1] if levels else None
        if last and (last[0] is Direction.PREFIX) == is_prefix and draw(st.booleans()):
            last[1].append(symbol)
        elif is_prefix:
            levels.append((Direction.PREFIX, [symbol]))
        else:
            levels.append((draw(st.sampled_from([Direction.LEFT, Direction.RIGHT])), [symbol]))
    return Algebra(
        "random",
        values,
        (*(operator(symbol, 2) for symbol in binary), *(operator(symbol, 1) for symbol in prefix)),
        "plain",
        precedence=[Level(direction, tuple(symbols)) for direction, symbols in levels],
    )


@cache
def derivations(algebra: Algebra, longest: int) -> dict[Words, Tree]:
    """Every text of up to so many tokens and its tree. No text has two."""
    levels, tightest = algebra.precedence, len(algebra.precedence) + 1
    directions = {number: level.direction for number, level in enumerate(levels, start=1)}
    prefix = {
        symbol: number
        for number, level in enumerate(levels, start=1)
        for symbol in level.operators
        if level.direction is Direction.PREFIX
    }

    @cache
    def E(level: int, n: int) -> dict[Words, Tree]:
        """Texts of exactly n tokens."""
        found: dict[Words, Tree] = {}

        def add(words: Words, tree: Tree) -> None:
            assert words not in found, f"{words} can be read in two ways"
            found[words] = tree

        if n < 1:
            return found
        if level == tightest:
            for value in algebra.values if n == 1 else ():
                add((value,), value)
            for words, tree in E(1, n - 2).items():
                add(("(", *words, ")"), tree)
            return found
        for words, tree in E(level + 1, n).items():
            add(words, tree)
        for op in levels[level - 1].operators:
            if directions[level] is Direction.PREFIX:
                for words, tree in R(level, n - 1).items():
                    add((op, *words), (op, tree))
                continue
            left = directions[level] is Direction.LEFT
            for k in range(1, n - 1):
                firsts = (E(level, k) if left else E(level + 1, k)).items()
                seconds = (E(level + 1, n - k - 1) if left else R(level, n - k - 1)).items()
                for (w, x), (v, y) in product(firsts, seconds):
                    add((*w, op, *v), (op, x, y))
        return found

    @cache
    def R(level: int, n: int) -> dict[Words, Tree]:
        found = dict(E(level, n))
        for op, own in prefix.items():
            between = [directions[k] for k in range(own + 1, level)]
            if own < level and all(direction is Direction.PREFIX for direction in between):
                for words, tree in R(level, n - 1).items() if n > 1 else ():
                    assert (op, *words) not in found, f"{op} {words} can be read in two ways"
                    found[(op, *words)] = (op, tree)
        return found

    return {words: tree for n in range(1, longest + 1) for words, tree in E(1, n).items()}


def value(algebra: Algebra, tree: Tree) -> int:
    """By the tables, as an index."""
    if isinstance(tree, str):
        return algebra.values.index(tree)
    operator = next(op for op in algebra.operators if op.symbol == tree[0])
    return operator([value(algebra, operand) for operand in tree[1:]])


def infix(tree: Tree) -> list[str]:
    """With all its parentheses."""
    if isinstance(tree, str):
        return [tree]
    operator, *operands = tree
    parts = [infix(operand) for operand in operands]
    parts.insert(len(operands) - 1, [operator])
    return ["(", *(word for part in parts for word in part), ")"]
