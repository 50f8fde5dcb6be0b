"""The kernels of the GPU engine compiled by g++, their threads run one after another."""

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from exactformer.engine.layout import source

SHIM = Path(__file__).with_name("emulate.h")
COMPILER = shutil.which("g++")
# With the checks of the C library that some systems switch on by default.
FORTIFIED = ["-O2", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=3"]
OPTIONS = [
    "-DEMULATED",
    "-std=c++17",
    "-w",
    "-fno-strict-aliasing",
    "-shared",
    "-fPIC",
    "-pthread",
    *FORTIFIED,
]


class Emulator:
    """A launcher for `GpuEngine` and `GpuRows` that needs no GPU."""

    def __init__(self, options: tuple[str, ...], code: str | None = None) -> None:
        self.library = _library(options, code or source())

    def __call__(
        self, kernel: str, blocks: int, threads: int, shared: int, arguments: Sequence[int]
    ) -> None:
        words = (ctypes.c_longlong * len(arguments))(*arguments)
        function = ctypes.cast(getattr(self.library, kernel), ctypes.c_void_p)
        self.library.launch(function, blocks, threads, words, len(arguments))


@cache
def _library(options: tuple[str, ...], code: str) -> ctypes.CDLL:
    """Compiled once in a process. No file is left behind: a loaded library needs none."""
    assert COMPILER, "g++ is missing"
    with TemporaryDirectory() as folder:
        library = Path(folder, "kernels.so")
        command = [COMPILER, "-x", "c++", *options, *OPTIONS, "-", "-o", str(library)]
        subprocess.run(command, input=SHIM.read_text() + code, text=True, check=True)
        return ctypes.CDLL(str(library))
