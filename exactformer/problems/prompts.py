"""Prompts: the meaning of the operators, the expression, and what to answer, on one line."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from exactformer.domains.algebra import FIRST_VALUE, Algebra, Operator
from exactformer.domains.catalog import LISTOPS_RULES, is_built_in
from exactformer.domains.data import listed
from exactformer.domains.domain import Domain
from exactformer.domains.expression import span_expression
from exactformer.domains.integers import NONE, Integers
from exactformer.domains.machines import NO_STATE
from exactformer.domains.span_machines import SpanMachine
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


FOLDS = (  # of the built-in `folds`
    "FIRST is its first operand, LAST its last one, MAX the largest, MIN the smallest, "
    "SM the sum modulo 10, DIFF the first operand less all others, modulo 10"
)


def prompt(domain: Domain, expression: str) -> str:
    """The prompt for a language model; the answer is one of the domain's values."""
    return f"{instruction(domain)} Expression: {expression} Answer:"


def spellings(domain: Domain) -> dict[str, str]:
    """Every way to write a symbol of answers, and the symbol: what an answer is looked up in."""
    found = {text: domain.vocabulary[i] for text, i in domain.token_ids.items()}
    found |= {symbol: symbol for symbol in domain.answer_symbols if symbol not in found}
    return {text: symbol for text, symbol in found.items() if symbol in domain.answer_symbols}


def has_numerals(domain: Domain) -> bool:
    """Whether digits make up the numbers that are answers."""
    return ASKED[domain.kind].numerals


@lru_cache(maxsize=64)
def instruction(domain: Domain) -> str:
    """The part of a prompt that says what symbols mean and what counts as an answer."""
    if (asked := ASKED.get(domain.kind)) is None:
        raise ValueError(f"{domain.name!r} is of the kind {domain.kind}: there is no prompt for it")
    meaning, answers = asked.words(domain)
    return f"{QUESTION} {meaning}. Answer with its value alone: {answers}."


def _of_integers(domain: Integers) -> tuple[str, str]:
    if not domain.digits.isdecimal():
        raise ValueError(
            f"digits of {domain.name!r} are letters, too, of which words are made: there is no "
            f"prompt for it"
        )
    base = "" if domain.base == 10 else f" in base {domain.base}"
    meanings = [
        f"numbers are whole{base}",
        "+ is addition, - is subtraction and * is multiplication",
        "<, = and > give 1 if the comparison holds, else 0",
        f"what is below zero is {NONE}, and so is all that it is a part of",
    ]
    return "; ".join(meanings), f"a number{base}, or {NONE}"


def _of_spans(domain: SpanMachine) -> tuple[str, str]:
    answers = listed([symbol for symbol in domain.vocabulary if symbol in domain.answer_symbols])
    if is_built_in(domain):
        return FOLDS, answers
    machine = domain.machine
    rows = [
        f"in {state} {symbol} leads to {machine.states[following]}"
        for state, row in zip(machine.states, machine.transitions, strict=True)
        for symbol, following in zip(machine.symbols, row, strict=True)
        if following != NO_STATE
    ]
    if len(rows) > MOST_LISTED:
        raise ValueError(
            f"the machine {domain.name!r} has more than {MOST_LISTED} transitions and no rule that "
            f"can be told in words: there is no prompt for it"
        )
    ends = zip(machine.states, machine.outputs, strict=True)
    meanings = [
        "what is in parentheses is read from the left, inner parentheses as what they are worth",
        f"reading begins in {machine.states[machine.start]}",
        *rows,
        *(f"what ends in {state} is worth {symbol}" for state, symbol in ends if symbol),
    ]
    return "; ".join(meanings), answers


def _of_algebra(algebra: Algebra) -> tuple[str, str]:
    # Which of the built-in algebras this is, or a variant of; empty for one of a user's.
    family = algebra.name.split("-")[0] if is_built_in(algebra) else ""
    meanings = ["1 is true and 0 is false"] if family == "boolean" else []
    meanings += [_meaning(algebra, family, operator) for operator in algebra.operators]
    if levels := _levels(algebra):
        meanings.append(
            f"operators bind in this order, the tightest first: {', then '.join(levels)}"
        )
    return "; ".join(meanings), listed(algebra.values)


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


class Asked(NamedTuple):
    """How a kind of domain is asked about.

    words      what its symbols mean, and what its answers are.
    numerals   whether digits make up the numbers that are answers.
    """

    words: Callable[[Any], tuple[str, str]]
    numerals: bool = False


ASKED: dict[str, Asked] = {  # by the kind of domain
    Algebra.kind: Asked(_of_algebra),
    SpanMachine.kind: Asked(_of_spans),
    Integers.kind: Asked(_of_integers, numerals=True),
}
