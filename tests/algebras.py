"""Small algebras beside the paper's three: what holds for those should hold for any.

Each rule is given as a plain function, so that tests can compute a value without our tables.
"""

from collections.abc import Callable
from itertools import permutations

from exactformer.domains.algebra import Algebra, Operator
from exactformer.domains.catalog import arithmetic, boolean, listops

Rule = Callable[..., str]

DIGITS = tuple("0123456789")
TRUTH = ("true", "unknown", "false")  # Kleene's three values
PERMUTATIONS: list[tuple[int, ...]] = list(permutations(range(3)))
LETTERS_OF_S3 = ("e", "r", "s", "t", "u", "v")  # each by where it sends 0, 1 and 2


def _minus(first: str, second: str | None = None) -> str:
    return str((int(first) - int(second) if second else -int(first)) % 7)


def _lower_middle(*digits: str) -> str:
    return sorted(digits)[(len(digits) - 1) // 2]


def _both(a: str, b: str) -> str:
    return TRUTH[max(TRUTH.index(a), TRUTH.index(b))]


def _either(a: str, b: str) -> str:
    return TRUTH[min(TRUTH.index(a), TRUTH.index(b))]


def _negate(a: str) -> str:
    return TRUTH[2 - TRUTH.index(a)]


def _compose(a: str, b: str) -> str:
    """The right one acts first."""
    left, right = (PERMUTATIONS[LETTERS_OF_S3.index(x)] for x in (a, b))
    return LETTERS_OF_S3[PERMUTATIONS.index(tuple(left[right[i]] for i in range(3)))]


RULES: dict[str, dict[str, Rule]] = {
    "boolean": {
        "&": lambda a, b: str(int(a) & int(b)),
        "|": lambda a, b: str(int(a) | int(b)),
        "~": lambda a: str(1 - int(a)),
    },
    "arithmetic": {
        "+": lambda a, b: str((int(a) + int(b)) % 10),
        "*": lambda a, b: str((int(a) * int(b)) % 10),
    },
    "listops": {
        "MAX": max,
        "MIN": min,
        "MED": _lower_middle,
        "SM": lambda *digits: str(sum(map(int, digits)) % 10),
    },
    "minus": {"-": _minus},
    "ends": {"FIRST": lambda *digits: digits[0], "LAST": lambda *digits: digits[-1]},
    "kleene": {"and": _both, "or": _either, "not": _negate},
    "modulo-7": {
        "+": lambda a, b: str((int(a) + int(b)) % 7),
        "-": lambda a, b: str((int(a) - int(b)) % 7),
        "*": lambda a, b: str((int(a) * int(b)) % 7),
    },
    "s3": {"*": _compose},
    "letters": {"A": min, "N": lambda a: "T" if a == "F" else "F"},
}


def _operator(name: str, symbol: str, arities: tuple[int, ...], values, ordered=False) -> Operator:
    return Operator.from_rule(symbol, arities, RULES[name][symbol], values, ordered=ordered)


# One symbol for two arities, and the order of operands matters.
MINUS = Algebra(
    "minus",
    DIGITS[:7],
    (_operator("minus", "-", (1, 2), DIGITS[:7], ordered=True),),
    "infix",
    {"−": "-"},
)

# Prefix and ordered, with a hole in the arities.
ENDS = Algebra(
    "ends",
    DIGITS[:3],
    (
        _operator("ends", "FIRST", (1, 3), DIGITS[:3], ordered=True),
        _operator("ends", "LAST", (2,), DIGITS[:3], ordered=True),
    ),
    "prefix",
    {"[": "(", "]": ")"},
)

# Infix, with words for values and operators.
KLEENE = Algebra(
    "kleene",
    TRUTH,
    (
        _operator("kleene", "and", (2,), TRUTH),
        _operator("kleene", "or", (2,), TRUTH),
        _operator("kleene", "not", (1,), TRUTH),
    ),
    "infix",
)

# Every symbol one letter: `(TAF)` would read as one word, so this must not be packed.
LETTERS = Algebra(
    "letters",
    ("T", "F"),
    (_operator("letters", "A", (2,), ("T", "F")), _operator("letters", "N", (1,), ("T", "F"))),
    "infix",
)

# Arithmetic with subtraction: two operators that ignore order beside one that does not.
MODULO_7 = Algebra(
    "modulo-7",
    DIGITS[:7],
    (
        Operator.named("+", "sum", [2], 7),
        Operator.named("-", "difference", [2], 7),
        Operator.named("*", "product", [2], 7),
    ),
    "infix",
)

# The group of the permutations of three things.
S3 = Algebra(
    "s3", LETTERS_OF_S3, (_operator("s3", "*", (2,), LETTERS_OF_S3, ordered=True),), "infix"
)

TASKS = [boolean(), arithmetic(), listops()]
ALGEBRAS = [*TASKS, MINUS, ENDS, KLEENE, LETTERS, MODULO_7, S3]

# Of any number of operands.
SUMS = Algebra(
    "sums", ("0", "1", "2"), (Operator.named("SUM", "sum", [2], 3, unbounded=True),), "prefix"
)

# Symbols that begin like others.
PREFIXES = Algebra(
    "prefixes",
    ("r", "rr", "rrs", "1"),
    (
        Operator.named("-", "difference", [1, 2], 4),
        Operator.named("->", "first", [2], 4),
        Operator.named("-->", "max", [2], 4),
    ),
    "infix",
    {"one": "1", "or": "-->"},
)

EVERY = [*ALGEBRAS, SUMS, PREFIXES]
