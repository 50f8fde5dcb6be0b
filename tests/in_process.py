"""The command in this process, for tests of what it says: loading torch takes longer than the rest.

That it is the same in a process of its own is seen in test_cli.py, in test_pages.py on README.md,
and wherever signals, terminals, pipes or what was imported matter.
"""

import contextlib
import io
import sys
from collections.abc import Sequence

from exactformer.cli import main


def run_here(arguments: Sequence[str], stdin: bytes = b"") -> tuple[int, str, str]:
    """Exit status, output and errors. An exception that is no user's mistake comes through."""
    saved = sys.argv, sys.stdin
    sys.argv = ["exactformer", *arguments]
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin))
    printed, errors, status = io.StringIO(), io.StringIO(), 0
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(errors):
            main()
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else 0
    finally:
        sys.argv, sys.stdin = saved
    return status, printed.getvalue(), errors.getvalue()
