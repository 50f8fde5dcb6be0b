"""An algebra of one's own, from a TOML file.

    name = "mod3"
    notation = "infix"                    # or "prefix", "plain", "polish" or "reverse-polish"
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

In plain notation the levels of precedence follow, the loosest first:

    [[precedence]]
    direction = "left"                    # or "right", or "prefix" for operators of one operand
    operators = ["+", "-"]

All mistakes in a file are reported together.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from exactformer.domains.algebra import BRACKETS, Algebra, Operator, parentheses_fault
from exactformer.domains.bounds import (
    LARGEST_ARITY,
    MOST_ENTRIES,
    MOST_OPERATORS,
    MOST_SPELLINGS,
    MOST_VALUES,
    shortened,
)
from exactformer.domains.catalog import BUILT_IN, is_reserved
from exactformer.domains.data import expect, listed, read_bytes, show, suggestion
from exactformer.domains.notation import NOTATIONS
from exactformer.domains.precedence import Direction, Level, precedence_faults
from exactformer.domains.rules import RULES, Key, count_keys, operand_keys
from exactformer.domains.symbols import NAME_IN_WORDS, is_name, symbol_fault

ALGEBRA_KEYS = ("name", "notation", "values", "spellings", "operators", "precedence")
OPERATOR_KEYS = ("symbol", "arity", "ordered", "table", "rule")
LEVEL_KEYS = ("direction", "operators")
BOUNDS = {
    "values": MOST_VALUES,
    "operators": MOST_OPERATORS,
    "spellings": MOST_SPELLINGS,
    "precedence": 2 * MOST_OPERATORS,  # levels: each operator may have two uses
}
SHOWN = 12  # entries of a long list that a message shows


class DefinitionError(ValueError):
    """A definition file with mistakes; `problems` lists all of them."""

    def __init__(self, path: Path, problems: list[str]) -> None:
        self.problems = tuple(problems)
        count = f"{len(problems)} mistakes" if len(problems) > 1 else "1 mistake"
        super().__init__("\n  ".join([f"{path}: {count}", *problems]))


def load_algebra(path: str | Path) -> Algebra:
    """Read an algebra from a TOML file of the form above. Raises `DefinitionError` with all
    mistakes.
    """
    data = read_toml(path)
    return algebra_of_data(Path(path), data)


def read_toml(path: str | Path) -> dict[str, Any]:
    """The data of a TOML file."""
    expect(path, (str, PathLike), "the path of a .toml file")
    path = Path(path)
    if path.suffix != ".toml" and not path.exists():
        built_in = BUILT_IN.get(str(path))
        hint = f"; ef.{built_in.__name__}() is the built-in algebra" if built_in else ""
        raise ValueError(f"expected the path of a .toml file, found {str(path)!r}{hint}")
    try:
        return tomllib.loads(read_bytes(path).decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise DefinitionError(path, [f"this is not TOML: {error}"]) from None


def algebra_of_data(path: Path, data: Mapping[str, Any]) -> Algebra:
    problems = [
        f"{name}: expected {most} at most, found {len(held)}"
        for name, most in BOUNDS.items()
        if isinstance(held := data.get(name), list | dict) and len(held) > most
    ]
    if problems:
        raise DefinitionError(path, problems)
    values = _values(data, problems)
    operators, arities = _operators(data, values, problems)
    levels = _levels(data, arities, problems)
    problems = [*_header_problems(data), *problems, *_symbol_problems(data, values)]
    if problems:
        raise DefinitionError(path, problems)
    spellings, levels = data.get("spellings", {}), filter(None, levels)
    try:
        return Algebra(data["name"], values, operators, data["notation"], spellings, levels)
    except ValueError as error:
        raise DefinitionError(path, [str(error)]) from None


def _header_problems(data: Mapping[str, Any]) -> Iterator[str]:
    yield from _unknown_keys(data, ALGEBRA_KEYS)
    name = data.get("name")
    if not isinstance(name, str) or not is_name(name):
        yield f"name: expected {NAME_IN_WORDS}, in quotes, {_found(data, 'name')}"
    elif is_reserved(name):
        yield f"name: expected a name of its own, found {name!r}, which is for one that is built in"
    if data.get("notation") not in tuple(NOTATIONS):
        notations = listed([f'"{notation}"' for notation in NOTATIONS])
        yield f"notation: expected {notations}, {_found(data, 'notation')}"
    spellings = data.get("spellings", {})
    if not isinstance(spellings, dict) or not all(isinstance(s, str) for s in spellings.values()):
        yield f'spellings: expected lines such as "AND" = "&", {_found(data, "spellings")}'


def _values(data: Mapping[str, Any], problems: list[str]) -> tuple[str, ...]:
    values = data.get("values")
    if isinstance(values, list) and values and all(isinstance(value, str) for value in values):
        return tuple(dict.fromkeys(values))  # `_symbol_problems` reports duplicates
    if isinstance(values, list) and values and all(type(v) in (str, int, float) for v in values):
        few = [f'"{value}"' for value in values[:SHOWN]] + ["..."][: len(values) - SHOWN]
        number = next(value for value in values if not isinstance(value, str))
        line = f"values = [{', '.join(few)}]"
        problems.append(f"values: expected text in quotes, {line}, found the number {number}")
        return tuple(dict.fromkeys(map(str, values)))  # so that mistakes elsewhere are found, too
    problems.append(f'values: expected a list such as ["0", "1"], {_found(data, "values")}')
    return ()


def _symbol_problems(data: Mapping[str, Any], values: tuple[str, ...]) -> Iterator[str]:
    """Symbols that are used twice or cannot be read."""
    symbols = [entry.get("symbol") for entry in _sections(data, "operators")]
    spellings = data.get("spellings")
    spellings = spellings if isinstance(spellings, dict) else {}
    uses = [("a parenthesis", "("), ("a parenthesis", ")")]
    uses += [("a value", str(value)) for value in (data["values"] if values else ())]
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
    if fault := parentheses_fault(spellings):
        yield f"spellings: {fault}"


def _sections(data: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    entries = data.get(key)
    return [e for e in entries if isinstance(e, dict)] if isinstance(entries, list) else []


def _operators(
    data: Mapping[str, Any], values: tuple[str, ...], problems: list[str]
) -> tuple[list[Operator], dict[str, list[int]]]:
    """The operators without a mistake, and for every symbol its numbers of operands, if known."""
    operators: list[Operator] = []
    arities: dict[str, list[int]] = {}
    entries = _sections(data, "operators")
    if not entries or len(entries) != len(data["operators"]):
        problems.append(f"operators: expected [[operators]] sections, {_found(data, 'operators')}")
    for number, entry in enumerate(entries, start=1):
        symbol = entry.get("symbol")
        if isinstance(symbol, str):
            where = f"operator {symbol!r}: "
        else:
            where = f"operator number {number}: "
            problems.append(f"{where}symbol: expected text in quotes, {_found(entry, 'symbol')}")
        section = _Section(entry, values, data.get("notation"))
        operator = section.operator()
        problems += [where + problem for problem in section.problems]
        if isinstance(symbol, str):
            arities[symbol] = section.arities
        if operator is not None:
            operators.append(operator)
    return operators, arities


def _levels(
    data: Mapping[str, Any], arities: Mapping[str, list[int]], problems: list[str]
) -> list[Level | None]:
    """The levels of plain notation; None for one that cannot be read."""
    levels: list[Level | None] = []
    sections = _sections(data, "precedence")
    notation = NOTATIONS.get(str(data.get("notation")))
    wanted = notation is not None and notation.groups_by == "precedence"
    if sections != data.get("precedence", []) or (wanted and not sections):
        problems.append(
            f"precedence: expected [[precedence]] sections, {_found(data, 'precedence')}"
        )
    directions = listed([f'"{direction}"' for direction in Direction])
    for number, entry in enumerate(sections, start=1):
        where, before = f"precedence, level {number}: ", len(problems)
        direction, operators = str(entry.get("direction")), entry.get("operators")
        problems += [where + problem for problem in _unknown_keys(entry, LEVEL_KEYS)]
        if direction not in tuple(Direction):
            found = _found(entry, "direction")
            problems.append(f"{where}direction: expected {directions}, {found}")
        if not isinstance(operators, list) or not all(isinstance(o, str) for o in operators):
            found = _found(entry, "operators")
            problems.append(f'{where}operators: expected a list such as ["+", "-"], {found}')
            operators = []
        levels.append(Level(direction, operators) if len(problems) == before else None)
    if wanted and sections:
        problems += precedence_faults(levels, arities)
    elif sections and notation is not None:
        problems.append(f"precedence: {notation} notation has no precedence")
    return levels


class _Section:
    """One [[operators]] section, and the mistakes found in it."""

    def __init__(self, entry: Mapping[str, Any], values: tuple[str, ...], notation: object) -> None:
        self.entry, self.values, self.symbol = entry, values, str(entry.get("symbol"))
        self.problems = [*_unknown_keys(entry, OPERATOR_KEYS)]
        self.arities, self.unbounded = self._arities(notation)
        self.ordered = entry.get("ordered", False) is True

    def operator(self) -> Operator | None:
        """The operator that the section defines; None if there is a mistake."""
        entry, operator = self.entry, None
        if ("table" in entry) == ("rule" in entry):
            both = "both" if "table" in entry else "neither"
            self.problems.append(f"expected a table or a rule, found {both}")
        if not isinstance(entry.get("ordered", False), bool):
            self.problems.append(f"ordered: expected true or false, {_found(entry, 'ordered')}")
        if "rule" in entry:
            operator = self._from_rule(entry["rule"])
        elif "table" in entry and self.arities and self.values:
            operator = self._from_table(entry["table"])
        return None if self.problems else operator

    def _arities(self, notation: object) -> tuple[list[int], bool]:
        """The numbers of operands, and whether every larger number is accepted as well."""
        arity, found = self.entry.get("arity"), _found(self.entry, "arity")
        unbounded = isinstance(arity, str) and re.fullmatch(r"[1-9][0-9]?\+", arity) is not None
        listed: list[Any] = arity if isinstance(arity, list) else [arity]
        if isinstance(arity, str) and unbounded:
            listed = [int(arity.removesuffix("+"))]
        if not listed or not all(type(number) is int and number >= 1 for number in listed):
            kinds = 'a number such as 2, a list such as [1, 2], or with a rule "2+" for 2 or more'
            self.problems.append(f"arity: expected {kinds}, {found}")
            return [], False
        if max(listed) > LARGEST_ARITY:
            self.problems.append(f"arity: expected {LARGEST_ARITY} at most, {found}")
            return [], False
        if len(set(listed)) < len(listed):
            self.problems.append(f"arity: a number is there twice in {listed}")
        known = NOTATIONS.get(str(notation))
        if known is not None and (fault := known.arity_fault(listed, unbounded)):
            self.problems.append(f"arity: {fault}, {found}")
        return sorted(set(listed)), unbounded

    def _from_rule(self, name: object) -> Operator | None:
        if not isinstance(name, str) or name not in RULES:
            hint = suggestion(name, RULES)
            self.problems.append(f"rule: expected one of {', '.join(RULES)}, found {name!r}{hint}")
            return None
        if self.entry.get("ordered", RULES[name].ordered) is not RULES[name].ordered:
            rule = "depends" if RULES[name].ordered else "does not depend"
            self.problems.append(f"ordered: the rule {name!r} {rule} on the order of its operands")
        if not self.arities or not self.values:  # reported already
            return None
        n_values, unbounded = len(self.values), self.unbounded
        try:
            return Operator.named(self.symbol, name, self.arities, n_values, unbounded=unbounded)
        except ValueError as error:
            self.problems.append(str(error).removeprefix(f"operator {self.symbol!r}: "))
            return None

    def _from_table(self, text: object) -> Operator | None:
        size = count_keys(len(self.values), self.arities, self.ordered)
        if self.unbounded:
            self.problems.append("arity: a table cannot hold any number of operands; use a rule")
        elif size > MOST_ENTRIES:
            self.problems.append(
                f"table: expected {MOST_ENTRIES} entries at most, found {shortened(size)} needed, "
                f"too many for a table; use a rule"
            )
        elif not isinstance(text, str):
            self.problems.append(f"table: expected lines of text, {_found(self.entry, 'table')}")
        else:
            table = self._complete(self._given(text))
            return Operator(self.symbol, tuple(self.arities), table, self.ordered)
        return None

    def _given(self, text: str) -> dict[Key, int]:
        """The entries of a table, by operands in the order in which they are written."""
        index = {value: i for i, value in enumerate(self.values)}
        given: dict[Key, int] = {}
        twice: list[Key] = []
        for line in filter(None, map(str.strip, text.splitlines())):
            left, arrow, right = line.partition("->")
            words = [*left.split(), *right.split()]
            unknown = [repr(word) for word in dict.fromkeys(words) if word not in index]
            if not arrow:
                self.problems.append(
                    f"table: expected 'operands -> result' in a line, found {line!r}"
                )
            elif unknown:
                self.problems.append(f"table: {line!r}: no value is written {', '.join(unknown)}")
            else:
                operands = tuple(index[word] for word in left.split())
                results = [index[word] for word in right.split()]
                row = self._row(line, operands, results)
                twice += row.keys() & given.keys()
                given |= row
        if twice:
            self.problems.append(f"table: two entries for {self._list(sorted(set(twice)))}")
        return given

    def _row(self, line: str, operands: Key, results: list[int]) -> dict[Key, int]:
        """The entries of one line: a single one, or one for every value of the last operand."""
        if len(results) == 1 and len(operands) in self.arities:
            return {operands: results[0]}
        if len(results) == len(self.values) and len(operands) + 1 in self.arities:
            return {(*operands, last): result for last, result in enumerate(results)}
        counts = " or ".join(map(str, self.arities))
        self.problems.append(
            f"table: {line!r}: expected {counts} operands and a result, or one operand "
            f"less and {len(self.values)} results, found {len(operands)} and {len(results)}"
        )
        return {}

    def _complete(self, given: Mapping[Key, int]) -> dict[Key, int]:
        """The table with an Operator's keys, from entries with their operands in any order."""
        written: dict[Key, Key] = {}  # by key, the order in which it was first seen
        conflicts: list[tuple[Key, Key]] = []
        for operands, result in given.items():
            key = operands if self.ordered else tuple(sorted(operands))
            if given[written.setdefault(key, operands)] != result:
                conflicts.append((written[key], operands))
        every = operand_keys(len(self.values), self.arities, self.ordered)
        if missing := [key for key in every if key not in written]:
            self.problems.append(f"table: no entry for {self._list(missing)}")
        for one, other in conflicts[:1]:
            results = [f"{self._words(key)} -> {self.values[given[key]]}" for key in (one, other)]
            more = f" (and {len(conflicts) - 1} more such pairs)" if conflicts[1:] else ""
            self.problems.append(
                f"table: {results[0]}, but {results[1]}{more}: "
                f"if the order of operands matters, write ordered = true"
            )
        return {key: given[operands] for key, operands in written.items()}

    def _words(self, key: Key) -> str:
        return " ".join(self.values[i] for i in key)

    def _list(self, keys: list[Key]) -> str:
        shown = ", ".join(f"'{self._words(key)}'" for key in keys[:SHOWN])
        return shown + (f" and {len(keys) - SHOWN} more" if len(keys) > SHOWN else "")


def _unknown_keys(data: Mapping[str, Any], known: Iterable[str]) -> Iterator[str]:
    for key in data:
        if key not in known:
            yield f"unknown key {key!r}{suggestion(key, known)}"


def _found(data: Mapping[str, Any], key: str) -> str:
    if key not in data:
        return "found none"
    return f"found {show(data[key])}"
