"""Damaged and forged files of every kind: each is refused in one line that names it, or harmless.

    python -m attacks.files [--count N] [--seed S] [--only NUMBER]

Weights, proofs, records of runs and of seeds, checkpoints, baselines' states, algebras in TOML and
labelled rows are changed at random (`mutants.py`), often with their hashes made to fit again, and
read by the functions that the command line calls; some by the command itself. What breaks the
claim: an exception other than a refusal, a refusal that does not name the file, ten seconds or two
gigabytes for one file, weights that `verify` accepts and that compute a wrong value or another
algebra than the one they name, and a record or checkpoint that is believed and says something else.
"""

import argparse
import resource
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from attacks.report import Report, numbered, run_alone
from attacks.target import Target
from attacks.targets import targets
from exactformer.verify import ProofRejected

CLAIM = "A damaged or forged file is refused in one line that names it, or is harmless."
MEMORY = "/dev/shm"
SECONDS, BYTES = 10, 2 << 30  # for one file
COMMANDS_EVERY = 10_000  # mutants, of which the first of each kind go through the command too
REFUSALS = (ValueError, OSError, ProofRejected)


class TooSlow(BaseException):
    """Not an Exception, so that no reader takes it for a fault of the file."""


@dataclass
class Outcome:
    """The outcome of a mutant: why it was refused, or None; and what it broke, or None."""

    refusal: str | None
    fault: str | None


def attack(
    count: int, seed: int, only: int | None = None, commands_every: int = COMMANDS_EVERY
) -> Report:
    """Attack with `count` mutants, or with the mutant number `only`; `commands_every` as above, 0
    for none.
    """
    report = Report(CLAIM)
    in_memory = MEMORY if Path(MEMORY).is_dir() else None  # disks are slow
    with tempfile.TemporaryDirectory(dir=in_memory) as folder, limits():
        kinds = targets(Path(folder))
        for number in numbered(count) if only is None else [only]:
            target = kinds[number % len(kinds)]
            rng = Random(f"{seed}/{number}")
            target.mutate(rng)
            outcome = _read(target, lambda target=target, rng=rng: target.read(rng))
            by_command = commands_every and number % commands_every < len(set(map(id, kinds)))
            if outcome.fault is None and by_command and target.command():
                outcome.fault = _command_fault(target.command(), target.lists_mistakes, outcome)
                report.count("by the command")
            report.count(f"{target.name}, {'accepted' if outcome.refusal is None else 'refused'}")
            if outcome.fault is not None:
                report.found.append(
                    f"{target.name}, mutant {number} of seed {seed}: {outcome.fault}"
                )
                if only is not None:
                    print(target.kept(Path.cwd()), file=sys.stderr)
            target.restore()
    return report


def _read(target: Target, read: Callable[[], str | None]) -> Outcome:
    """Read a mutant as the command line would."""
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        fault = read()
        return Outcome(None, fault)
    except REFUSALS as refusal:
        signal.setitimer(signal.ITIMER_PROF, 0)
        return Outcome(str(refusal), _refusal_fault(target, refusal))
    except TooSlow:
        return Outcome(None, f"took more than {SECONDS} s: {_last_line()}")
    except BaseException as error:
        return Outcome(None, f"{type(error).__name__}: {str(error)[:200]} {_last_line()}")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _refusal_fault(target: Target, refusal: BaseException) -> str | None:
    message = str(refusal)
    if isinstance(refusal, OSError):
        return f"an error of the system: {message}"
    if not any(str(path) in message for path in target.named()):
        return f"the refusal names no file: {message[:200]!r}"
    if "\n" in message and not target.lists_mistakes:
        return f"the refusal has several lines: {message[:200]!r}"
    return None


def _last_line() -> str:
    frame = traceback.extract_tb(sys.exc_info()[2])[-1]
    return f"({Path(frame.filename).name}, line {frame.lineno})"


def _command_fault(
    arguments: list[str | Path], lists_mistakes: bool, outcome: Outcome
) -> str | None:
    """The fault of a command on a mutant: expected are exit status 2 and one message, or 0, or 1 if
    the answer is no.
    """
    command = [sys.executable, "-m", "exactformer", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, errors="replace")
    said = f"{' '.join(map(str, arguments))}: status {result.returncode}, {result.stderr!r}"
    if "Traceback" in result.stderr:
        return said
    if outcome.refusal is None:
        return None if result.returncode in (0, 1) else said
    if result.returncode == 1:  # the answer is no, which is said on stdout
        return None if result.stdout.startswith("rejected: ") else said
    one = result.stderr.startswith("exactformer: ")
    one = one and (lists_mistakes or result.stderr.count("\n") == 1)
    return None if result.returncode == 2 and one and not result.stdout else said


@contextmanager
def limits(most: int = BYTES) -> Iterator[None]:
    """So many more bytes than now, and a signal when the time is up."""

    def stop(*_: object) -> None:
        raise TooSlow

    before = resource.getrlimit(resource.RLIMIT_AS)
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + most, before[1]))
    handler = signal.signal(signal.SIGPROF, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGPROF, handler)
        resource.setrlimit(resource.RLIMIT_AS, before)


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--commands-every", type=int, default=COMMANDS_EVERY, metavar="MUTANTS")
    options.add_argument("--only", type=int, help="repeat this mutant and keep its files here")
    run_alone(attack, count=10_000, parser=options)
