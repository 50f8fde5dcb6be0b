"""The algebras in examples/: each is what it says, and its model is exact, to depth 30 at least.

Every operator is defined here once more, in Python and in other terms than in its file.
"""

from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import exactformer as ef

FOLDER = Path(__file__).resolve().parent.parent / "examples"

KLEENE = {"false": 0.0, "unknown": 0.5, "true": 1.0}

# A permutation of the letters 0, 1, 2 is the tuple of what they become.
TURN, SWAP = (1, 2, 0), (1, 0, 2)


def after(f: tuple[int, ...], g: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(f[g[i]] for i in range(3))


S3: dict[str, tuple[int, ...]] = {"e": (0, 1, 2), "r": TURN, "rr": after(TURN, TURN), "s": SWAP}
S3 |= {f"{power}s": after(S3[power], SWAP) for power in ("r", "rr")}


def among(names: dict, value) -> str:
    return next(name for name, own in names.items() if own == value)


RULES: dict[str, dict[str, Callable[..., str]]] = {
    "kleene": {
        "and": lambda a, b: among(KLEENE, min(KLEENE[a], KLEENE[b])),
        "or": lambda a, b: among(KLEENE, max(KLEENE[a], KLEENE[b])),
        "not": lambda a: among(KLEENE, 1 - KLEENE[a]),
    },
    "nand": {"|": lambda a, b: str(1 - int(a) * int(b))},
    "modulo7": {
        "+": lambda a, b: str((int(a) + int(b)) % 7),
        "-": lambda a, b=None: str((int(a) - int(b) if b else -int(a)) % 7),
        "*": lambda a, b: str(int(a) * int(b) % 7),
    },
    "s3": {".": lambda a, b: among(S3, after(S3[a], S3[b]))},
    "saturating": {"ADD": lambda *numbers: str(min(7, sum(map(int, numbers))))},
    "majority": {
        "XOR": lambda a, b: str(int(a != b)),
        "MAJ": lambda *bits: str(int(bits.count("1") >= 2)),
    },
}


@pytest.fixture(params=sorted(FOLDER.glob("*.toml")), ids=lambda path: path.stem)
def algebra(request) -> ef.Algebra:
    return ef.load_algebra(request.param)


def test_each_file_is_listed_here_under_its_own_name():
    assert {path.stem: ef.load_algebra(path).name for path in FOLDER.glob("*.toml")} == {
        name: name for name in RULES
    }


def test_every_table_is_what_the_rule_says(algebra):
    for operator in algebra.operators:
        for arity in (*operator.arities, *((3, 4) if operator.unbounded else ())):
            for operands in product(range(len(algebra.values)), repeat=arity):
                expected = RULES[algebra.name][operator.symbol](
                    *(algebra.values[i] for i in operands)
                )
                assert algebra.values[operator(operands)] == expected


def by_rule(expression: ef.Expression) -> str:
    """The value by the rules above and nothing of the package."""
    rules = RULES[expression.algebra.name]
    enclosing: list[list[str]] = [[]]
    for word in (expression.algebra.vocabulary[i] for i in expression.ids):
        if word == "(":
            enclosing.append([])
        elif word != ")":
            enclosing[-1].append(word)
        else:
            (symbol,) = (word for word in enclosing[-1] if word in rules)
            operands = [word for word in enclosing.pop() if word not in rules]
            enclosing[-1].append(rules[symbol](*operands))
    return enclosing[0][0]


def problems(algebra: ef.Algebra) -> list[ef.Expression]:
    """Ten expressions of each depth to 30; the deep ones lean, or they would never end."""
    rng = np.random.default_rng(0)
    return [
        problem
        for depth in range(31)
        for problem in ef.draw(algebra, depth, 10, rng, leaf=None if depth < 5 else 0.9)
    ]


def test_the_oracle_agrees_with_the_rules(algebra):
    for problem in problems(algebra):
        assert ef.oracle(problem) == by_rule(problem)


def test_the_constructed_model_is_certified_and_right_to_depth_30(algebra):
    model = ef.construct(algebra)
    assert model.certify().verdict == "exact"
    asked = problems(algebra)
    right = [by_rule(problem) for problem in asked]
    assert model.predict(asked) == right
    if algebra.max_fan_in is not None:  # the engine has tables for bounded operators
        assert model.evaluate([str(problem) for problem in asked], "fast") == right


@pytest.mark.parametrize("name", ["nand", "kleene", "majority", "s3", "modulo7"])
def test_the_model_can_be_learned_from_random_weights(name):
    """On depth 1 and 2 alone; two of these heed the order of operands."""
    algebra = ef.load_algebra(FOLDER / f"{name}.toml")
    (result,) = ef.train(algebra, seeds=[2])
    assert result.exact
    asked = problems(algebra)
    assert result.model.predict(asked) == [by_rule(problem) for problem in asked]


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("kleene", "((true ∧ unknown) or (¬ false))", "true"),
        ("nand", "((1|1)|(0|0))", "1"),
        ("modulo7", "((2-3)-(-4))", "3"),
        ("s3", "((r.s).(s.r))", "rr"),
        ("saturating", "[ADD 1 [ADD 2 0 2] 1 1]", "7"),
        ("majority", "(MAJ (XOR 1 0) 0 (MAJ 1 1 0))", "1"),
    ],
)
def test_a_line_of_each(name, text, value):
    algebra = ef.load_algebra(FOLDER / f"{name}.toml")
    assert ef.oracle(ef.parse(algebra, text)) == value
