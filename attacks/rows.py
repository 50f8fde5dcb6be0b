"""Damaged files against `score` and `eval --file`.

    python -m attacks.rows [--count N] [--seed S]

Each case draws a right file in one of the formats and damages it in one way, or not at all. Some
damages leave it right, some make certain rows wrong, some make a certain line bad; after others
anything may be left. What is accepted is compared with evaluators of a few lines each that share
nothing with the package; what is refused must say so in the agreed form.
"""

import contextlib
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Literal

import numpy as np

from attacks.report import Report, run_alone
from exactformer.cli import main as command_line
from exactformer.domains.algebra import Algebra
from exactformer.domains.catalog import arithmetic, boolean, listops
from exactformer.domains.expression import Expression
from exactformer.domains.formats.nangia import format_nangia
from exactformer.domains.sampling import draw

CLAIM = (
    "score and eval --file count what is right, and refuse any other file by name and line, with "
    "exit status 2 and nothing printed"
)
LONG = 17_000_000  # bytes of a field that is longer than any line may be
FORMULA = re.compile(r"\( (and|or)")
VARIABLES = "abcdef"

Worth = Callable[[str], str]


# What rows are worth


def of_boolean(text: str) -> str:
    return str(eval(text.replace("~", "1-")))


def of_arithmetic(text: str) -> str:
    return str(eval(text) % 10)


def of_listops(text: str) -> str:
    """Either notation: parentheses that do not begin a span add nothing."""
    words = re.sub(r"\( ?(?=[A-Z])", "[", text) if "[" not in text else text
    closing = ")" if "[" not in text else "]"
    spans: list[tuple[str, list[int]]] = [("", [])]
    for word in re.findall(r"\[\w+|\d|\]|\)", words):
        if word.startswith("["):
            spans.append((word[1:], []))
        elif word.isdigit():
            spans[-1][1].append(int(word))
        elif word == closing:
            name, operands = spans.pop()
            spans[-1][1].append(reduce_span(name, sorted(operands)))
    ((_, (value,)),) = spans
    return str(value)


def reduce_span(name: str, operands: list[int]) -> int:
    middle = (len(operands) - 1) // 2, len(operands) // 2
    values = {
        "MAX": operands[-1],
        "MIN": operands[0],
        "MED": (operands[middle[0]] + operands[middle[1]]) // 2,
        "SM": sum(operands) % 10,
    }
    return values[name]


def of_formulas(left: str, right: str) -> str:
    """The relation, from the four kinds of cases that there may be."""
    codes = [compile(FORMULA.sub(r"\1 (", text), "formula", "eval") for text in (left, right)]
    cases = set()
    for values in product((False, True), repeat=len(VARIABLES)):
        names = dict(zip(VARIABLES, values, strict=True))
        cases.add(tuple(bool(eval(code, {}, names)) for code in codes))
    neither, only_right, only_left, both = (
        case in cases for case in product((False, True), repeat=2)
    )
    if not only_left and not only_right:
        return "="
    if not both and not neither:
        return "^"
    if not only_left:
        return "<"
    if not only_right:
        return ">"
    if both and neither:
        return "#"
    return "v" if both else "|"


# Right files


@dataclass(frozen=True)
class Sheet:
    """A file as its lines, which may be damaged, and how it is to be read."""

    kind: str
    arguments: tuple[str, ...]
    lines: tuple[bytes, ...]
    worth: Callable[[list[str]], str]  # of the fields that are no label
    label: int | None = 0  # which field; None for eval
    labels: str = ""
    headed: bool = False

    def fields(self, line: bytes) -> list[str]:
        """Without labels a line is one field: a tab in it is a space like any other."""
        text = line.decode().rstrip("\r")
        return [text] if self.label is None else text.split("\t")

    def answer(self, line: bytes) -> str:
        rest = [field for i, field in enumerate(self.fields(line)) if i != self.label]
        return self.worth(rest)


def sheets(rng: np.random.Generator) -> Iterator[Sheet]:
    """A file of each kind; the labels are of evaluators above."""
    count, depth = int(rng.integers(1, 30)), int(rng.integers(0, 4))

    def texts(algebra: Algebra, write: Callable[[Expression], str] = str) -> list[str]:
        return [write(expression) for expression in draw(algebra, depth, count, rng)]

    def scored(
        kind: str, domain: str, made: list[str], worth: Worth, last: bool, *more: str
    ) -> Sheet:
        rows = [f"{t}\t{worth(t)}" if last else f"{worth(t)}\t{t}" for t in made]
        arguments = ("score", domain, "{}", *more, "--json")
        labels = "01" if domain == "boolean" else "0123456789"
        lines = tuple(row.encode() for row in rows)
        return Sheet(kind, arguments, lines, lambda f: worth(f[0]), int(last), labels)

    def evaluated(kind: str, domain: str, made: list[str], worth: Worth, *more: str) -> Sheet:
        arguments = ("eval", domain, "--file", "{}", *more, "--json")
        lines = tuple(text.encode() for text in made)
        return Sheet(kind, arguments, lines, lambda f: worth(f[0]), None)

    native = texts(listops(median="mean"))
    published = texts(listops(4, "mean"), format_nangia)
    tsv = ("--format", "tsv")
    yield scored("nangia", "listops", published, of_listops, False)
    lra = scored("lra", "listops", published, of_listops, True)
    yield replace(lra, lines=(b"Source\tTarget", *lra.lines), headed=True)
    yield scored("tsv", "boolean", texts(boolean()), of_boolean, True, *tsv)
    yield scored("tsv", "arithmetic", texts(arithmetic()), of_arithmetic, True, *tsv)
    yield scored("tsv", "listops-mean", native, of_listops, True, *tsv)
    pairs = list(zip(formulas(rng, count), formulas(rng, count), strict=True))
    rows = tuple(f"{of_formulas(*pair)}\t{pair[0]}\t{pair[1]}".encode() for pair in pairs)
    bowman = ("score", "boolean", "{}", "--json")
    yield Sheet("bowman", bowman, rows, lambda f: of_formulas(*f), 0, "#<>=^v|")
    yield evaluated("eval", "boolean", texts(boolean()), of_boolean)
    yield evaluated("eval", "arithmetic", texts(arithmetic()), of_arithmetic)
    yield evaluated("eval by model", "boolean", texts(boolean()), of_boolean, "--engine", "model")
    syntax = ("--syntax", "nangia")
    binarised = texts(listops(median="mean"), format_nangia)
    yield evaluated("eval nangia", "listops-mean", binarised, of_listops, *syntax)


def formulas(rng: np.random.Generator, count: int) -> list[str]:
    def formula(depth: int) -> str:
        if depth == 0 or rng.random() < 0.2:
            return str(rng.choice(list(VARIABLES[:3])))
        if rng.random() < 0.3:
            return f"( not {formula(depth - 1)} )"
        return f"( {formula(depth - 1)} ( {rng.choice(['and', 'or'])} {formula(depth - 1)} ) )"

    return [formula(3) for _ in range(count)]


# Damages


@dataclass(frozen=True)
class Damaged:
    """The content of a damaged file, and the outcome that is expected."""

    data: bytes
    outcome: Literal["accepted", "refused", "either"]
    line: int | None = None  # the bad one, where it is refused
    wrong: tuple[int, ...] = ()  # lines with another label, where it is accepted


def damage(sheet: Sheet, rng: np.random.Generator, name: str | None = None) -> tuple[str, Damaged]:
    """The sheet with a damage of this name, or with any."""
    first = 1 if sheet.headed else 0
    place = int(rng.integers(first, len(sheet.lines)))
    line = sheet.lines[place]
    whole = b"\n".join(sheet.lines) + b"\n"
    offset = int(rng.integers(len(line) + 1))

    def changed(new: bytes) -> bytes:
        lines = list(sheet.lines)
        lines[place] = new
        return b"\n".join(lines) + b"\n"

    def bad(new: bytes) -> Damaged:
        return Damaged(changed(new), "refused", place + 1)

    def insert(piece: bytes) -> bytes:
        return line[:offset] + piece + line[offset:]

    def anywhere() -> Damaged:
        at = int(rng.integers(len(whole)))
        after = at + int(rng.integers(3))
        piece = rng.choice([b"", b"(", b")", b"\t", b"0", b"9", b"\r", b"\n", b"]", b"a", b" "])
        return Damaged(whole[:at] + bytes(piece) + whole[after:], "either")

    def relabelled() -> Damaged:
        chosen = rng.permutation(np.arange(first, len(sheet.lines)))[: int(rng.integers(1, 15))]
        lines = list(sheet.lines)
        for i in chosen.tolist():
            fields = sheet.fields(lines[i])
            others = [label for label in sheet.labels if label != fields[sheet.label or 0]]
            fields[sheet.label or 0] = str(rng.choice(others))
            lines[i] = "\t".join(fields).encode()
        wrong = tuple(sorted(int(i) + 1 for i in chosen))
        return Damaged(b"\n".join(lines) + b"\n", "accepted", wrong=wrong)

    damages: dict[str, Callable[[], Damaged]] = {
        "none": lambda: Damaged(whole, "accepted"),
        "CRLF": lambda: Damaged(whole.replace(b"\n", b"\r\n"), "accepted"),
        "byte order mark": lambda: Damaged(b"\xef\xbb\xbf" + whole, "accepted"),
        "no last newline": lambda: Damaged(whole[:-1], "accepted"),
        "another label": relabelled,
        "a tab less": lambda: bad(line.replace(b"\t", b" ", 1)),
        "a column more": lambda: bad(line + b"\tx"),
        "an empty line": lambda: bad(b""),
        "NUL": lambda: bad(insert(b"\0")),
        "no UTF-8": lambda: bad(insert(b"\xff")),
        "a word": lambda: bad(insert(b" x ")),
        "UTF-16": lambda: Damaged(whole.decode().encode("utf-16"), "refused", 1),
        "a long field": lambda: bad(line + b"\t" + b"7" * int(rng.choice([100_000, LONG]))),
        "cut": lambda: Damaged(whole[: int(rng.integers(1, len(whole)))], "either"),
        "anywhere": anywhere,
        "bytes": lambda: Damaged(rng.bytes(int(rng.integers(1, 300))), "either"),
        "empty": lambda: Damaged(rng.choice([b"", b"\xef\xbb\xbf"]), "refused"),
    }
    if sheet.label is None:
        del damages["another label"], damages["a tab less"]
    names = list(damages)
    weight = np.array([0.2 if name in ("a long field", "empty") else 1.0 for name in names])
    name = name or str(rng.choice(names, p=weight / weight.sum()))
    return name, damages[name]()


# The command


def run(arguments: tuple[str, ...], stdin: bytes = b"") -> tuple[int, str, str]:
    """Exit status, output and errors, in this process; any exception comes through."""
    saved = sys.argv, sys.stdin
    sys.argv, sys.stdin = ["exactformer", *arguments], io.TextIOWrapper(io.BytesIO(stdin))
    printed, errors, status = io.StringIO(), io.StringIO(), 0
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(errors):
            command_line()
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else 0
    finally:
        sys.argv, sys.stdin = saved
    return status, printed.getvalue(), errors.getvalue()


def problem(sheet: Sheet, case: Damaged, name: str, result: tuple[int, str, str]) -> str | None:
    """The fault in what a command did; None if there is none."""
    status, printed, errors = result
    if status == 2:
        if case.outcome == "accepted":
            return f"refused: {errors}"
        return bad_refusal(case, name, printed, errors)
    if case.outcome == "refused":
        return f"exit status {status}, printed {printed[:200]!r}"
    if errors:
        return f"exit status {status} with errors {errors[:200]!r}"
    lines = case.data.removeprefix(b"\xef\xbb\xbf").removesuffix(b"\n").split(b"\n")
    lines = lines[sheet.headed :]
    worth = [sheet.answer(line) for line in lines]
    found = json.loads(printed)
    if sheet.label is None:
        values = found["values"]
        return None if (status, values) == (0, worth) else f"found {values}, expected {worth}"
    labels = [sheet.fields(line)[sheet.label].strip() for line in lines]
    wrong = [
        {"line": i, "expected": label, "found": value}
        for i, (label, value) in enumerate(zip(labels, worth, strict=True), 1 + sheet.headed)
        if label != value
    ]
    if case.outcome == "accepted" and tuple(row["line"] for row in wrong) != case.wrong:
        return f"the attack is wrong about itself: {wrong}"
    expected = (int(bool(wrong)), len(lines) - len(wrong), len(lines), wrong[:10])
    seen = (status, found["correct"], found["total"], found["wrong"])
    return None if seen == expected else f"found {seen}, expected {expected}"


def bad_refusal(case: Damaged, name: str, printed: str, errors: str) -> str | None:
    if printed:
        return f"refused, but printed {printed[:200]!r}"
    said = json.loads(errors)
    errors = said["error"]
    if not errors.startswith(f"{name}: "):
        return f"refused without the file's name: {errors[:200]!r}"
    places = re.findall(r"^(?:\S+: )?(?:line (\d+)|byte \d+)", errors, re.M)
    if "line" in said and str(said["line"]) != places[0]:
        return f"refused with another line than the message's: {said}"
    if case.line is not None and str(case.line) not in places:
        return f"line {case.line} is bad, refused was {errors[:200]!r}"
    if len(places) > 10 or len(errors) > 10_000:
        return f"refused with {len(places)} errors in {len(errors)} characters"
    return None


def trial(sheet: Sheet, case: Damaged, file: Path, piped: bool = False) -> str | None:
    """The fault in what a command does on a damaged sheet; None if there is none."""
    file.write_bytes(case.data)
    name = "-" if piped else str(file)
    arguments = tuple(argument.format(name) for argument in sheet.arguments)
    try:
        said = problem(sheet, case, name, run(arguments, case.data if piped else b""))
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
    shown = case.data if len(case.data) < 3_000 else case.data[:100]
    return said and f"{' '.join(arguments)} on {shown!r}: {said}"


def no_files(folder: Path) -> Iterator[tuple[str, str]]:
    """Names of what is no file of rows, and a word that each refusal must have."""
    yield str(folder), "directory"
    yield str(folder / "missing"), "No such file"
    yield "/dev/zero", "expected"
    locked = folder / "locked"
    locked.write_text("1\t1\n")
    locked.chmod(0)
    if not os.access(locked, os.R_OK):  # root may read all
        yield str(locked), "Permission denied"


def attack(count: int, seed: int) -> Report:
    report = Report(CLAIM)
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        cases = 0
        while cases < count:
            for sheet in sheets(rng):
                damaged, case = damage(sheet, rng)
                piped = bool(rng.random() < 0.3)
                report.count(f"{sheet.kind}: {damaged}")
                if said := trial(sheet, case, folder / "rows", piped):
                    report.found.append(f"seed {seed}, case {cases}, {damaged}: {said}")
                cases += 1
                if cases == count:
                    break
        for name, word in no_files(folder):
            for arguments in (("score", "listops", name), ("eval", "boolean", "--file", name)):
                status, printed, errors = run(arguments)
                report.count("no file")
                if (status, printed) != (2, "") or word not in errors or name not in errors:
                    report.found.append(f"{' '.join(arguments)}: {status}, {errors[:200]!r}")
    return report


if __name__ == "__main__":
    run_alone(attack, count=500)
