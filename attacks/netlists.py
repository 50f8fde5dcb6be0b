"""Damaged netlists and programs: each is refused with its place, or evaluated rightly.

    python -m attacks.netlists [--count N] [--seed S] [--only NUMBER]

Random circuits are written as AIGER, as BLIF and as programs, and changed: cut off, with bytes or
numbers changed, with counts that are too large or too small, with numbers that go on and on, with
lines moved, copied or taken away, with literals that lead forward or in circles. What breaks the
claim: an exception other than a ValueError that says the line or the byte, and of a netlist begins
with the file's name; outputs other than those of a simulator that shares no code with the package;
ten seconds or a gigabyte for one file. Some go through the command.
"""

import argparse
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from attacks.files import MEMORY, SECONDS, TooSlow, limits
from attacks.mutants import mutate_bytes
from attacks.report import Report, numbered, run_alone
from exactformer.domains.catalog import boolean
from exactformer.domains.formats.netlists import read_netlist
from exactformer.evaluation.circuits import Circuit, write_bits
from exactformer.evaluation.programs import read_program, run_program
from exactformer.evaluation.values import Evaluator
from tests import aiger_simulator, blif_simulator, program_reader
from tests.netlists import as_aag, as_aig, as_blif, as_program, random_circuit, random_covers

KINDS = ("aig", "aag", "aag in any order", "blif", "blif of covers", "program")
CLAIM = "A damaged circuit is refused with its place, or evaluated rightly, soon and in a gigabyte."
BYTES = 1 << 30
ASSIGNMENTS = 70
COMMANDS_EVERY = 500  # files, of which the first one goes through the command, too
COMMANDS = {"program": ("eval", "boolean", "--program")}  # others: circuit
PLACE = re.compile(r": (line|byte) \d+: expected .*, found |: expected AIGER, .*, found ", re.S)
HUGE = ("4294967295", "4294967296", "99999999999999999999", "2147483648", "1048577", "1" * 400)


def attack(
    count: int, seed: int, only: int | None = None, commands_every: int = COMMANDS_EVERY
) -> Report:
    """Attack with `count` files, or with the file number `only`; `commands_every` as above, 0 for
    none.
    """
    report = Report(CLAIM)
    in_memory = MEMORY if Path(MEMORY).is_dir() else None  # disks are slow
    evaluator = Evaluator(boolean())
    assert evaluator.fast, "constructed weights are certified"
    with tempfile.TemporaryDirectory(dir=in_memory) as folder, limits(BYTES):
        path = Path(folder, "circuit")
        for number in numbered(count) if only is None else [only]:
            rng = Random(f"{seed}/{number}")
            kind, data = _damaged(rng)
            path.write_bytes(data)
            bits = np.random.default_rng(number)
            outcome, fault, found = _outcome(path, kind, evaluator, bits)
            report.count(f"{kind}, {outcome}")
            if fault is None and commands_every and number % commands_every == 0:
                fault = _command_fault(path, kind, found)
                report.count("by the command")
            if fault is not None:
                report.found.append(f"{kind}, file {number} of seed {seed}: {fault}")
                if only is not None:
                    Path(f"circuit-{seed}-{number}").write_bytes(data)
    return report


def _damaged(rng: Random) -> tuple[str, bytes]:
    """A format and a file; a few are as they should be."""
    circuit = random_circuit(rng, rng.randrange(1, 7), rng.randrange(1, 40), rng.randrange(1, 5))
    kind = rng.choice(KINDS)
    behind = rng.choice((b"", b"i0 first input\n", b"o0 y\nc\nmade at random\n", b"c"))
    if kind == "aig":
        data = as_aig(circuit, behind)
    elif kind == "blif":
        data = as_blif(circuit, rng)
    elif kind == "blif of covers":
        data = random_covers(rng, rng.randrange(7), rng.randrange(1, 20), rng.randrange(1, 5))
    elif kind == "program":
        data = as_program(circuit, rng)
    else:
        data = as_aag(circuit, behind, rng if kind != "aag" else None)
    for _ in range(rng.choice((0, 1, 1, 1, 2, 4))):
        data = rng.choice(CHANGES)(data, rng)
    return kind, data


def _cut(data: bytes, rng: Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _other_number(data: bytes, rng: Random) -> bytes:
    """A number of the text, often of the header, changed a little or very much."""
    header = data.find(b"\n") + 1
    end = header if rng.random() < 0.4 else len(data)
    places = [*re.finditer(rb"\d+", data[:end])]
    if not places:
        return data
    place = rng.choice(places)
    near = int(place[0][:12]) + rng.choice((-2, -1, 1, 2, 3, 10))
    other = rng.choice((str(near), rng.choice(HUGE), str(rng.randrange(100))))
    return data[: place.start()] + other.encode() + data[place.end() :]


def _other_count(data: bytes, rng: Random) -> bytes:
    """Other counts in the header of AIGER, with the number of variables that goes with them."""
    head, newline, rest = data.partition(b"\n")
    words = head.split()
    if len(words) < 6 or not all(word.isdigit() and len(word) < 20 for word in words[1:]):
        return _other_number(data, rng)
    numbers = [int(word) for word in words[1:]]
    i = rng.choice((1, 1, 3, 4))
    numbers[i] = max(0, rng.choice((numbers[i] - 1, numbers[i] + 1, 0, 1 << 20, 1 << 31)))
    numbers[0] = numbers[1] + numbers[4]
    return b" ".join([words[0], *(b"%d" % number for number in numbers)]) + newline + rest


def _longer_number(data: bytes, rng: Random) -> bytes:
    """Bytes after which a number goes on, in text or in AIGER's groups of seven bits."""
    at = rng.randrange(len(data) + 1)
    return (
        data[:at]
        + rng.choice((b"\x80", b"\xff", b"0", b"9")) * rng.choice((1, 4, 9, 40))
        + data[at:]
    )


def _other_lines(data: bytes, rng: Random) -> bytes:
    lines = data.split(b"\n")
    i, j = (rng.randrange(len(lines)) for _ in range(2))
    kind = rng.randrange(4)
    if kind == 0:
        lines[i], lines[j] = lines[j], lines[i]
    elif kind == 1:
        lines.insert(i, lines[j])
    elif kind == 2:
        del lines[i]
    else:
        more = (
            ".latch a b",
            ".names",
            ".end",
            ".exdc",
            "",
            ".inputs",
            "\\",
            "- 1",
            "i0 \x00",
            "c",
            "w1=w1;",
            ".subckt",
            ".model again",
            "\r",
        )
        lines.insert(i, rng.choice(more).encode())
    return b"\n".join(lines)


def _other_wire(data: bytes, rng: Random) -> bytes:
    """A wire in the place of another one: it may lead forward, to itself or around a circle."""
    places = [*re.finditer(rb"\bw?\d+\b", data)][6:]  # behind the header
    if len(places) < 2:
        return data
    place, other = rng.sample(places, 2)
    return data[: place.start()] + other[0] + data[place.end() :]


CHANGES = (mutate_bytes, _cut, _other_number, _other_count, _longer_number, _other_lines)
CHANGES += (_other_wire,) * 3


def _outcome(
    path: Path, kind: str, evaluator: Evaluator, rng: np.random.Generator
) -> tuple[str, str | None, str | None]:
    """Whether it was accepted or refused, what that broke, and what the command should print."""
    values = _program if kind == "program" else _netlist
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        found, independent = values(path, evaluator, rng)
    except ValueError as refusal:
        said = str(refusal)
        if kind == "program":
            whole = re.match(rf"{re.escape(str(path))}: line \d+, column \d+: ", said)
        else:
            whole = said.startswith(f"{path}: ") and PLACE.search(said) and "\n" not in said
        return "refused", None if whole else f"a refusal without a place: {said[:200]!r}", None
    except TooSlow:
        return "refused", f"took more than {SECONDS} s", None
    except BaseException as error:
        return "refused", f"{type(error).__name__}: {str(error)[:200]}", None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    try:
        wanted = independent()
    except Exception as error:
        return "accepted", f"what the simulator does not: {type(error).__name__}: {error}", None
    return "accepted", None if found == wanted else "wrong outputs", found


Values = tuple[str, Callable[[], str]]  # by the package, and by code that shares nothing with it


def _netlist(path: Path, evaluator: Evaluator, rng: np.random.Generator) -> Values:
    netlist = read_netlist(path)
    rows = ASSIGNMENTS if len(netlist.inputs) < 1000 else 1  # a million inputs take their time
    bits = rng.integers(0, 2, (rows, len(netlist.inputs)), dtype=np.uint8)
    path.with_suffix(".txt").write_text(write_bits(bits))
    simulator: Any = blif_simulator if netlist.format == "blif" else aiger_simulator

    def independent() -> str:
        outputs = simulator.simulate(simulator.read(path.read_bytes()), bits)
        return "".join("".join("01"[bit] for bit in row) + "\n" for row in outputs.astype(int))

    return write_bits(Circuit(netlist, evaluator).outputs(bits)), independent


def _program(path: Path, evaluator: Evaluator, _: np.random.Generator) -> Values:
    def text(outputs: dict[str, str]) -> str:
        return "".join(f"{name}={value}\n" for name, value in outputs.items())

    ran = run_program(evaluator, read_program(evaluator.domain, path))
    return text(ran.outputs), lambda: text(program_reader.results(path.read_bytes()))


def _command_fault(path: Path, kind: str, wanted: str | None) -> str | None:
    """The fault of the command: expected are these lines, or exit status 2 and one message."""
    command = [sys.executable, "-m", "exactformer"]
    command += [*COMMANDS.get(kind, ("circuit",)), str(path)]
    if wanted is not None and kind not in COMMANDS:
        command += ["--inputs", str(path.with_suffix(".txt"))]
    result = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if wanted is not None:
        right = result.returncode == 0 and result.stdout == wanted and not result.stderr
    else:
        lines = 3 if kind in COMMANDS else 1  # a program's has the text with a caret
        one = result.stderr.startswith("exactformer: ") and result.stderr.count("\n") == lines
        right = result.returncode == 2 and one and not result.stdout
    return None if right else f"status {result.returncode}, {result.stderr[-300:]!r}"


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--commands-every", type=int, default=COMMANDS_EVERY, metavar="FILES")
    options.add_argument("--only", type=int, help="repeat this file and keep it here")
    run_alone(attack, count=10_000, parser=options)
