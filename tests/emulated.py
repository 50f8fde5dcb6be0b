"""The kernels of the GPU engine compiled by g++, their threads run one after another."""

import ctypes
import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import gettempdir

from exactformer.engine.gpu import Layout, source

SHIM = Path(__file__).with_name("emulate.h")
COMPILER = shutil.which("g++")
# With the checks of the C library that some systems switch on by default.
FORTIFIED = ["-O2", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=3"]
OPTIONS = ["-DEMULATED", "-std=c++17", "-w", "-fno-strict-aliasing", "-shared", "-fPIC", *FORTIFIED]


class Emulator:
    """A launcher for `GpuEngine` that needs no card."""

    def __init__(self, layout: Layout) -> None:
        self.library = ctypes.CDLL(str(_compiled(layout).resolve()))

    def __call__(
        self, kernel: str, blocks: int, threads: int, shared: int, arguments: Sequence[int]
    ) -> None:
        words = (ctypes.c_longlong * len(arguments))(*arguments)
        function = ctypes.cast(getattr(self.library, kernel), ctypes.c_void_p)
        self.library.launch(function, blocks, threads, words, len(arguments))


def _compiled(layout: Layout) -> Path:
    """The library, kept from one run to the next as long as nothing in it changes."""
    assert COMPILER, "g++ is missing"
    code = SHIM.read_text() + source()
    options = [*layout.options, *OPTIONS]
    key = hashlib.sha256(" ".join([code, *options]).encode()).hexdigest()[:16]
    library = Path(gettempdir()) / f"exactformer-kernels-{key}.so"
    if not library.exists():
        part = library.with_suffix(f".{os.getpid()}.part")
        command = [COMPILER, "-x", "c++", *options, "-", "-o", str(part)]
        subprocess.run(command, input=code, text=True, check=True)
        part.replace(library)
    return library
