"""Counts what an attack tried and what it found.

Every attack is a module with one function, `attack(count, seed) -> Report`: `count` is how many
cases to try, and the same count and seed try the same cases.
"""

import argparse
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import track


@dataclass
class Report:
    """`tried` counts cases by kind; `found` describes each one that broke a claim, with all that is
    needed to repeat it. An attack that finds nothing has an empty `found`.
    """

    claim: str  # what the attack tries to refute, in one sentence
    tried: dict[str, int] = field(default_factory=dict)
    found: list[str] = field(default_factory=list)

    def count(self, kind: str, by: int = 1) -> None:
        self.tried[kind] = self.tried.get(kind, 0) + by


def numbered(count: int) -> Iterable[int]:
    """The numbers of the cases, with a bar where somebody looks on."""
    console = Console(stderr=True)
    return track(range(count), "", console=console, disable=not console.is_terminal, transient=True)


def run_alone(
    attack: Callable[..., Report],
    count: int,
    parser: argparse.ArgumentParser | None = None,
) -> None:
    """Run one attack as its module's command: `parser` has options besides --count and --seed, and
    `count` is the default. The exit status is 1 if anything was found.
    """
    parser = parser or argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=count, help="cases to try")
    parser.add_argument("--seed", type=int, default=0)
    report = attack(**vars(parser.parse_args()))
    print(report.claim)
    for kind, number in sorted(report.tried.items()):
        print(f"{number:>8,}  {kind}")
    print(f"{len(report.found):>8,}  broke the claim")
    for found in report.found:
        print(f"  {found}")
    sys.exit(1 if report.found else 0)
