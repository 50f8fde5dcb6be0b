"""An algebra of one's own, from a TOML file.

    name = "mod3"
    notation = "infix"                    # or "prefix"
    values = ["0", "1", "2"]

    [spellings]                           # if any: other ways to write a token
    "−" = "-"

    [[operators]]
    symbol = "-"
    arity = 2                             # or [1, 2]; or, with a rule, "2+" for two or more
    ordered = true                        # the order of operands matters; false if not given
    table = '''
        0 -> 0 2 1
        1 -> 1 0 2
        2 -> 2 1 0
    '''

    [[operators]]
    symbol = "+"
    arity = 2
    rule = "sum"                          # one of domains/rules.py, instead of a table

A line of a table is `operands -> result`, or it leaves the last operand out and gives the results
for all values of it in their order: `1 -> 1 0 2` is `1 0 -> 1`, `1 1 -> 0` and `1 2 -> 2`. For an
operator of one operand that is the whole table: `-> 0 2 1`. An operator that is not ordered needs
one order of each choice of operands; if several are there, they must agree.

All mistakes in a file are reported together.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from exactformer.domains.algebra import BRACKETS, Algebra, Operator
from exactformer.domains.bounds import (
    LARGEST_ARITY,
    MOST_ENTRIES,
    MOST_OPERATORS,
    MOST_SPELLINGS,
    MOST_VALUES,
    shortened,
)
from exactformer.domains.catalog import is_reserved
from exactformer.domains.notation import Notation
from exactformer.domains.plain import read_bytes, show, suggestion
from exactformer.domains.rules import RULES, count_keys, operand_keys
from exactformer.domains.symbols import NAME_IN_WORDS, is_name, symbol_fault

ALGEBRA_KEYS = ("name", "notation", "values", "spellings", "operators")
OPERATOR_KEYS = ("symbol", "arity", "ordered", "table", "rule")
BOUNDS = {"values": MOST_VALUES, "operators": MOST_OPERATORS, "spellings": MOST_SPELLINGS}
SHOWN = 12  # of a long list of entries

Key = tuple[int, ...]  # operands, as indices of values


class DefinitionError(ValueError):
    """All that is wrong with a file."""

    def __init__(self, path: Path, problems: list[str]) -> None:
        self.problems = tuple(problems)
        count = f"{len(problems)} mistakes" if len(problems) > 1 else "1 mistake"
        super().__init__("\n  ".join([f"{path}: {count}", *problems]))


def load_algebra(path: str | Path) -> Algebra:
    """Read a file of the form above. Raises `DefinitionError`, with every mistake in it."""
    path = Path(path)
    try:
        data = tomllib.loads(read_bytes(path).decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise DefinitionError(path, [f"this is not TOML: {error}"]) from None
    problems: list[str] = []
    for name, most in BOUNDS.items():
        if isinstance(held := data.get(name), list | dict) and len(held) > most:
            problems.append(f"{name}: expected {most} at most, found {len(held)}")
    if problems:
        raise DefinitionError(path, problems)
    values = _values(data, problems)
    operators = list(_operators(data, values, problems))
    problems = [*_header_problems(data), *problems, *_symbol_problems(data, values)]
    if problems:
        raise DefinitionError(path, problems)
    try:
        return Algebra(
            data["name"], values, tuple(operators), data["notation"], data.get("spellings", {})
        )
    except ValueError as error:
        raise DefinitionError(path, [str(error)]) from None


def _header_problems(data: Mapping[str, Any]) -> Iterator[str]:
    yield from _unknown_keys(data, ALGEBRA_KEYS)
    name = data.get("name")
    if not isinstance(name, str) or not is_name(name):
        yield f"name: expected {NAME_IN_WORDS}, in quotes, {_found(data, 'name')}"
    elif is_reserved(name):
        yield f"name: expected a name of its own, found {name!r}, which is for one that is built in"
    if data.get("notation") not in tuple(Notation):
        yield f'notation: expected "infix" or "prefix", {_found(data, "notation")}'
    spellings = data.get("spellings", {})
    if not isinstance(spellings, dict) or not all(isinstance(s, str) for s in spellings.values()):
        yield f'spellings: expected lines such as "AND" = "&", {_found(data, "spellings")}'


def _values(data: Mapping[str, Any], problems: list[str]) -> tuple[str, ...]:
    values = data.get("values")
    if isinstance(values, list) and values and all(isinstance(value, str) for value in values):
        return tuple(dict.fromkeys(values))  # `_symbol_problems` reports duplicates
    problems.append(f'values: expected a list such as ["0", "1"], {_found(data, "values")}')
    return ()


def _symbol_problems(data: Mapping[str, Any], values: tuple[str, ...]) -> Iterator[str]:
    """Symbols that clash or cannot be read."""
    symbols = [entry.get("symbol") for entry in _entries(data)]
    spellings = data.get("spellings")
    spellings = spellings if isinstance(spellings, dict) else {}
    square = {s: t for s, t in spellings.items() if s in BRACKETS or t in BRACKETS}
    uses = [("a parenthesis", "("), ("a parenthesis", ")")]
    uses += [("a value", value) for value in (data["values"] if values else ())]
    uses += [("an operator", symbol) for symbol in symbols if isinstance(symbol, str)]
    known = {symbol for _, symbol in uses}
    uses += [("a spelling", spelling) for spelling in spellings]
    seen: dict[str, str] = {}
    for kind, symbol in uses:
        if symbol in seen:
            as_what = kind if kind == seen[symbol] else f"{seen[symbol]} and as {kind}"
            yield f"the symbol {symbol!r} is used twice, as {as_what}"
        elif fault := symbol_fault(symbol):
            yield f"the symbol {show(symbol)} of {kind} {fault}"
        elif symbol not in BRACKETS and any(bracket in symbol for bracket in BRACKETS):
            yield f"the symbol {symbol!r} of {kind} contains a bracket"
        seen.setdefault(symbol, kind)
    for spelling, symbol in spellings.items():
        if isinstance(symbol, str) and symbol not in known:
            yield f"spellings: {spelling!r} stands for {symbol!r}, which is no value or operator"
    if square and square != {"[": "(", "]": ")"}:
        yield "spellings: the only other brackets can be '[' for '(' and ']' for ')', both of them"


def _entries(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    entries = data.get("operators")
    return [e for e in entries if isinstance(e, dict)] if isinstance(entries, list) else []


def _operators(
    data: Mapping[str, Any], values: tuple[str, ...], problems: list[str]
) -> Iterator[Operator]:
    entries = _entries(data)
    if not entries or len(entries) != len(data["operators"]):
        problems.append(f"operators: expected [[operators]] sections, {_found(data, 'operators')}")
    for number, entry in enumerate(entries, start=1):
        symbol = entry.get("symbol")
        if isinstance(symbol, str):
            where = f"operator {symbol!r}: "
        else:
            where = f"operator number {number}: "
            problems.append(f"{where}symbol: expected text in quotes, {_found(entry, 'symbol')}")
        found = [*_unknown_keys(entry, OPERATOR_KEYS)]
        arities, unbounded = _arities(entry, data.get("notation"), found)
        if ("table" in entry) == ("rule" in entry):
            both = "both" if "table" in entry else "neither"
            found.append(f"expected a table or a rule, found {both}")
        if not isinstance(entry.get("ordered", False), bool):
            found.append(f"ordered: expected true or false, {_found(entry, 'ordered')}")
        operator = None
        if "rule" in entry:
            operator = _from_rule(entry, str(symbol), arities, unbounded, len(values), found)
        elif "table" in entry and arities and values:
            operator = _from_table(entry, str(symbol), arities, unbounded, values, found)
        problems += [where + problem for problem in found]
        if operator is not None and not found:
            yield operator


def _arities(
    entry: Mapping[str, Any], notation: object, problems: list[str]
) -> tuple[list[int], bool]:
    """The numbers of operands, and whether all larger ones are taken as well."""
    arity = entry.get("arity")
    unbounded = isinstance(arity, str) and re.fullmatch(r"[1-9][0-9]?\+", arity) is not None
    listed: list[Any] = arity if isinstance(arity, list) else [arity]
    if isinstance(arity, str) and unbounded:
        listed = [int(arity.removesuffix("+"))]
    if not listed or not all(type(number) is int and number >= 1 for number in listed):
        kinds = 'a number such as 2, a list such as [1, 2], or with a rule "2+" for 2 or more'
        problems.append(f"arity: expected {kinds}, {_found(entry, 'arity')}")
        return [], False
    if max(listed) > LARGEST_ARITY:
        problems.append(f"arity: expected {LARGEST_ARITY} at most, {_found(entry, 'arity')}")
        return [], False
    if len(set(listed)) < len(listed):
        problems.append(f"arity: a number is there twice in {listed}")
    known = notation in tuple(Notation)
    if known and (fault := Notation(notation).arity_fault(max(listed), unbounded)):
        problems.append(f"arity: {fault}, {_found(entry, 'arity')}")
    return sorted(set(listed)), unbounded


def _from_rule(
    entry: Mapping[str, Any],
    symbol: str,
    arities: list[int],
    unbounded: bool,
    n_values: int,
    problems: list[str],
) -> Operator | None:
    name = entry["rule"]
    if not isinstance(name, str) or name not in RULES:
        known = ", ".join(RULES)
        problems.append(f"rule: expected one of {known}, found {name!r}{suggestion(name, RULES)}")
        return None
    if entry.get("ordered", RULES[name].ordered) is not RULES[name].ordered:
        rule = "depends" if RULES[name].ordered else "does not depend"
        problems.append(f"ordered: the rule {name!r} {rule} on the order of its operands")
    if not arities or not n_values:  # reported already
        return None
    try:
        return Operator.named(symbol, name, arities, n_values, unbounded=unbounded)
    except ValueError as error:
        problems.append(str(error).removeprefix(f"operator {symbol!r}: "))
        return None


def _from_table(
    entry: Mapping[str, Any],
    symbol: str,
    arities: list[int],
    unbounded: bool,
    values: tuple[str, ...],
    problems: list[str],
) -> Operator | None:
    ordered, text = entry.get("ordered", False) is True, entry["table"]
    size = count_keys(len(values), arities, ordered)
    if unbounded:
        problems.append("arity: a table cannot hold any number of operands; use a rule")
    elif size > MOST_ENTRIES:
        problems.append(
            f"table: expected {MOST_ENTRIES} entries at most, found {shortened(size)} needed, "
            f"too many for a table; use a rule"
        )
    elif not isinstance(text, str):
        problems.append(f"table: expected lines of text, {_found(entry, 'table')}")
    else:
        given = _entries_of(text, arities, values, problems)
        return Operator(
            symbol,
            tuple(arities),
            _complete(given, arities, ordered, values, problems),
            ordered,
        )
    return None


def _entries_of(
    text: str, arities: list[int], values: tuple[str, ...], problems: list[str]
) -> dict[Key, int]:
    """What the lines of a table say, by operands in the order they are written in."""
    place = {value: i for i, value in enumerate(values)}
    given: dict[Key, int] = {}
    twice: list[Key] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        left, arrow, right = line.partition("->")
        words = [*left.split(), *right.split()]
        unknown = [repr(word) for word in dict.fromkeys(words) if word not in place]
        if not arrow:
            problems.append(f"table: expected 'operands -> result' in a line, found {line!r}")
        elif unknown:
            problems.append(f"table: {line!r}: no value is written {', '.join(unknown)}")
        else:
            operands = tuple(place[word] for word in left.split())
            results = [place[word] for word in right.split()]
            if len(results) == 1 and len(operands) in arities:
                row = {operands: results[0]}
            elif len(results) == len(values) and len(operands) + 1 in arities:
                row = {(*operands, last): result for last, result in enumerate(results)}
            else:
                counts = " or ".join(map(str, arities))
                problems.append(
                    f"table: {line!r}: expected {counts} operands and a result, or one operand "
                    f"less and {len(values)} results, found {len(operands)} and {len(results)}"
                )
                continue
            twice += row.keys() & given.keys()
            given |= row
    if twice:
        problems.append(f"table: two entries for {_list(sorted(set(twice)), values)}")
    return given


def _complete(
    given: Mapping[Key, int],
    arities: list[int],
    ordered: bool,
    values: tuple[str, ...],
    problems: list[str],
) -> dict[Key, int]:
    """The table by the keys that an Operator has, from entries in any order of the operands."""
    table: dict[Key, int] = {}
    written: dict[Key, Key] = {}  # the order in which a key was first seen
    conflicts: list[tuple[Key, Key]] = []
    for operands, result in given.items():
        key = operands if ordered else tuple(sorted(operands))
        if table.setdefault(key, result) != result:
            conflicts.append((written[key], operands))
        written.setdefault(key, operands)
    if missing := [k for k in operand_keys(len(values), arities, ordered) if k not in table]:
        problems.append(f"table: no entry for {_list(missing, values)}")
    for one, other in conflicts[:1]:
        results = [f"{_words(key, values)} -> {values[given[key]]}" for key in (one, other)]
        more = f" (and {len(conflicts) - 1} more such pairs)" if conflicts[1:] else ""
        problems.append(
            f"table: {results[0]}, but {results[1]}{more}: "
            f"if the order of operands matters, write ordered = true"
        )
    return table


def _words(key: Key, values: tuple[str, ...]) -> str:
    return " ".join(values[i] for i in key)


def _list(keys: list[Key], values: tuple[str, ...]) -> str:
    shown = ", ".join(f"'{_words(key, values)}'" for key in keys[:SHOWN])
    return shown + (f" and {len(keys) - SHOWN} more" if len(keys) > SHOWN else "")


def _unknown_keys(data: Mapping[str, Any], known: Iterable[str]) -> Iterator[str]:
    for key in data:
        if key not in known:
            yield f"unknown key {key!r}{suggestion(key, known)}"


def _found(data: Mapping[str, Any], key: str) -> str:
    if key not in data:
        return "found none"
    return f"found {show(data[key])}"
