"""Standard input, output and errors, also where they are closed, full, or read by nobody any more.

Python leaves a closed one out: `print` then succeeds without printing, messages for standard error
go to standard output, and the next file that is opened takes its number. Here a closed one fails
when it is used (messages alone are dropped), and an error says which it was.
"""

import io
import os
import signal
import sys

INPUT, OUTPUT, ERRORS = "standard input", "standard output", "standard error"


class Unread(BaseException):
    """Nobody reads our output any more, as in `| head`. Not an error that anyone else handles:
    typer would end with the status 1, which means "no" here.
    """


class Stream(io.FileIO):
    """A stream of the system whose errors have its name."""

    def __init__(self, descriptor: int, mode: str, called: str) -> None:
        super().__init__(descriptor, mode, closefd=False)
        self.called = called

    def write(self, data):  # pyright: ignore[reportIncompatibleMethodOverride]
        try:
            return super().write(data)
        except BrokenPipeError:
            if self.called == OUTPUT:
                raise Unread from None
            raise
        except OSError as error:
            error.filename = self.called
            raise

    def readinto(self, buffer):  # pyright: ignore[reportIncompatibleMethodOverride]
        try:
            return super().readinto(buffer)
        except OSError as error:
            error.filename = self.called
            raise


def open_streams() -> None:
    """Let none of the three be missing, and errors of standard output name it."""
    # A closed one is opened in such a way that using it fails as if it were closed.
    for descriptor, way in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, way)  # takes the first number that is free, which is this one
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(Stream(0, "r", INPUT)))
    if sys.stderr is None:
        sys.stderr = io.TextIOWrapper(io.BufferedWriter(Stream(2, "w", ERRORS)))
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(Stream(1, "w", OUTPUT)))
    elif sys.stdout is sys.__stdout__:  # not where somebody listens
        before = sys.stdout
        before.flush()
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(Stream(1, "w", OUTPUT)),
            encoding=before.encoding,
            errors=before.errors,
            line_buffering=bool(before.line_buffering),
        )


def drop_output() -> None:
    """Let nothing more be printed: Python would try at its end, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def end_unread() -> None:
    """End as `cat` and `grep` do, by the signal that they get: a shell sees the status 141."""
    drop_output()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGPIPE)
