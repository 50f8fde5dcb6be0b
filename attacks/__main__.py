"""Run every attack and write what was tried and found.

    python -m attacks [NAME ...] [--scale 1.0] [--seed 0] [--out results]

A scale of 1 is the full size; a tenth of it takes about a tenth of the time. Each attack's report
is kept in OUT/attack.json as soon as it ends, so that an interrupted run goes on after the last one
that ended; --again tries them anew. The exit status is 1 if anything was found.
"""

import argparse
import importlib
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path

from attacks.report import Report
from exactformer.host.atomic import write_atomically
from exactformer.training.run import versions

# The full size of each, and what it counts.
SIZES: dict[str, tuple[int, str]] = {
    "spellings": (10_000, "random algebras"),
    "files": (100_000, "damaged files"),
    "netlists": (10_000, "damaged circuits"),
    "weights": (5_000, "changed models"),
    "machines": (40_000, "pairs of machines"),
    "integers": (1_000, "changed weights"),
    "remembered": (4_000, "changed tensors"),
    "packed": (10_000, "batches"),
    "rows": (1_000, "files of rows"),
    "requests": (2_000, "requests to the server"),
    "kills": (100, "kills"),
    "settings": (100, "problems a depth, model and setting"),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(SIZES)}")
    parser.add_argument("--scale", type=float, default=1.0, help="fraction of the full size")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--again", action="store_true", help="also those that have ended before")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)  # before anything is tried
    names = arguments.names or list(SIZES)
    if unknown := [name for name in names if name not in SIZES]:
        parser.error(f"expected some of {', '.join(SIZES)}, found {', '.join(unknown)}")
    kept = arguments.out / "attack.json"
    reports: dict[str, dict] = json.loads(kept.read_text()) if kept.exists() else {}
    for name in names:
        size, counted = SIZES[name]
        count = max(1, round(size * arguments.scale))
        run = {"count": count, "unit": counted, "seed": arguments.seed}
        before = reports.get(name, {})
        if not arguments.again and {key: before.get(key) for key in run} == run:
            print(f"{name}: ended before, {len(before['found'])} found", file=sys.stderr)
            continue
        print(f"{name}: {count} {counted}", file=sys.stderr, flush=True)
        start = time.monotonic()
        report: Report = importlib.import_module(f"attacks.{name}").attack(count, arguments.seed)
        spent = round(time.monotonic() - start)
        reports[name] = run | asdict(report) | {"seconds": spent, "versions": versions()}
        write_atomically(kept, json.dumps(reports, indent=1, ensure_ascii=False) + "\n")
        write_atomically(arguments.out / "attack.md", page(reports))
        print(f"{name}: {len(report.found)} found in {spent} s", file=sys.stderr, flush=True)
    print(page(reports))
    return int(any(reports[name]["found"] for name in names))


def page(reports: dict[str, dict]) -> str:
    lines = ["# Attacks", "", "What was tried against each claim, how often, and what was found."]
    lines += [
        "`make attack` runs all of them; `python -m attacks NAME --scale S --seed N` one.",
        "",
    ]
    lines += ["| attack | claim | size | seed | found | minutes |"]
    lines += ["| --- | --- | ---: | ---: | ---: | ---: |"]
    for name, report in reports.items():
        lines.append(
            f"| {name} | {report['claim']} | {report['count']:,} {report['unit']} "
            f"| {report['seed']} | {len(report['found'])} | {report['seconds'] / 60:.1f} |"
        )
    for name, report in reports.items():
        made = ", ".join(f"{key} {value}" for key, value in report["versions"].items())
        lines += ["", f"## {name}", "", f"{made}.", "", "| tried | count |", "| --- | ---: |"]
        lines += [f"| {kind} | {count:,} |" for kind, count in report["tried"].items()]
        lines += ["", *(f"- found: `{found}`" for found in report["found"][:50])]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    sys.exit(main())
