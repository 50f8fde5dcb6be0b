"""Common parts of the benchmarks: a command line, the head of a report, separate processes."""

import argparse
import multiprocessing
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any


def parser(docstring: str | None) -> argparse.ArgumentParser:
    """Described by the first line of a script's docstring."""
    return argparse.ArgumentParser(description=(docstring or "").splitlines()[0])


def heading(title: str) -> str:
    """The title of a report, and the command that made it."""
    return f"# {title}\n\n`{' '.join(['python', *sys.argv])}`\n"


def log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def run_sweep(arguments: Sequence[str], limit: float | None) -> bool:
    """`exactformer sweep` for at most so many seconds: whether it has ended by itself. What has
    ended of one that was stopped is on the disk, and the same command goes on.
    """
    said = " ".join(["exactformer", "sweep", *arguments])
    log(said)
    command = [sys.executable, "-m", "exactformer", "sweep", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        if process.wait(timeout=limit):
            raise SystemExit(f"{said} failed")
    except subprocess.TimeoutExpired:
        log(f"stopped after {limit:.0f} s")
        return False
    finally:
        process.kill()
        process.wait()
    return True


def in_own_process(method: str, function: Callable[..., None], *arguments: object) -> Any:
    """Run a function in a new process, started by `method` (spawn or fork); returns what it sends
    to the connection that is its last argument, or None if it sends nothing.
    """
    context = multiprocessing.get_context(method)
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=function, args=(*arguments, sender))
    process.start()
    sender.close()
    try:
        return receiver.recv()
    except EOFError:
        return None
    finally:
        process.join()
