"""Prompts: the meaning of the operators, the expression, and what to answer, on one line."""

from functools import lru_cache

from exactformer.domains.algebra import FIRST_VALUE, Algebra, Operator
from exactformer.domains.catalog import LISTOPS_RULES, is_built_in
from exactformer.domains.data import listed
from exactformer.domains.expression import span_expression
from exactformer.problems.answers import QUESTION

MOST_LISTED = 200  # cases of an operator that a prompt can spell out

BOOLEAN = {"&": "& is AND", "|": "| is OR", "~": "~ is NOT"}
ARITHMETIC = {"+": "+ is addition modulo {n}", "*": "* is multiplication modulo {n}"}
RULES = {  # of operators that follow one by name
    "max": "{op} is the largest of its operands",
    "min": "{op} is the smallest of its operands",
    "median": "{op} is the median (of an even number, the lower of the middle two)",
    "median-mean": "{op} is the median (of an even number, the floor of the middle two's mean)",
    "saturating-sum": "{op} is the sum, or {top} where that is less",
    "sum": "{op} is the sum modulo {n}",
    "product": "{op} is the product modulo {n}",
    "first": "{op} is its first operand",
    "last": "{op} is its last operand",
}


def prompt(algebra: Algebra, expression: str) -> str:
    """The prompt for a language model; the answer is one of the algebra's values."""
    return f"{instruction(algebra)} Expression: {expression} Answer:"


def spellings(algebra: Algebra) -> dict[str, str]:
    """Every way to write a value, and the value: what an answer is looked up in."""
    ids = algebra.token_ids.items()
    return {text: algebra.vocabulary[i] for text, i in ids if i in algebra.value_ids}


@lru_cache(maxsize=64)
def instruction(algebra: Algebra) -> str:
    """The part of a prompt that says what operators mean and what counts as an answer."""
    # Which of the built-in algebras this is, or a variant of; empty for one of a user's.
    family = algebra.name.split("-")[0] if is_built_in(algebra) else ""
    meanings = ["1 is true and 0 is false"] if family == "boolean" else []
    meanings += [_meaning(algebra, family, operator) for operator in algebra.operators]
    if levels := _levels(algebra):
        meanings.append(
            f"operators bind in this order, the tightest first: {', then '.join(levels)}"
        )
    return (
        f"{QUESTION} {'; '.join(meanings)}. Answer with its value alone: {listed(algebra.values)}."
    )


def _levels(algebra: Algebra) -> list[str]:
    """How operators group where parentheses are left out: each level in words, the tightest
    first.
    """
    grouped = {"left": "grouping from the left", "right": "grouping from the right"}
    return [
        f"{', '.join(level.operators)} ({grouped.get(level.direction, 'before one operand')})"
        for level in reversed(algebra.precedence)
    ]


def _meaning(algebra: Algebra, family: str, operator: Operator) -> str:
    n = len(algebra.values)
    if family == "boolean":
        return BOOLEAN[operator.symbol]
    if family == "arithmetic":
        return ARITHMETIC[operator.symbol].format(n=n)
    rule = operator.rule
    if family == "listops":
        mean = operator.symbol == "MED" and "-mean" in algebra.name
        rule = "median-mean" if mean else LISTOPS_RULES[operator.symbol]
    counted = all(value == str(i) for i, value in enumerate(algebra.values))
    if rule in RULES and counted:  # else the order and the sums of values would want telling
        return RULES[rule].format(op=operator.symbol, n=n, top=n - 1)
    return _spelled_out(algebra, operator)


def _spelled_out(algebra: Algebra, operator: Operator) -> str:
    """The table of an operator in words, every case as an equation."""
    cases = []
    if not operator.unbounded:
        for operands, result in operator.cases(len(algebra.values), every_order=operator.ordered):
            token = algebra.token_ids[operator.symbol]
            span = span_expression(algebra, token, [FIRST_VALUE + i for i in operands])
            words = [algebra.vocabulary[i] for i in span.ids.tolist() if i >= FIRST_VALUE]
            cases.append(f"{' '.join(words)} = {algebra.values[result]}")
            if len(cases) > MOST_LISTED:
                break
    if not 0 < len(cases) <= MOST_LISTED:
        raise ValueError(
            f"operator {operator.symbol!r} of {algebra.name!r} has more than {MOST_LISTED} cases "
            f"and no rule that can be told in words: there is no prompt for it"
        )
    order = "" if operator.ordered or operator.arities == (1,) else " in any order"
    return f"{operator.symbol} gives {', '.join(cases)}{order}"
