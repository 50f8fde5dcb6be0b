"""Groups items into blocks of bounded size, and stores blocks on disk when memory is short."""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager, suppress
from tempfile import SpooledTemporaryFile, gettempdir
from typing import Generic, TypeVar

MOST_AT_ONCE = 1 << 15  # items of a block, however small
KEPT_IN_MEMORY = 1 << 26  # bytes; blocks beyond that are kept on disk

T = TypeVar("T")
Block = TypeVar("Block", bound=Sized)


def in_blocks(items: Iterable[T], size: Callable[[T], int], most: int) -> Iterator[list[T]]:
    """Group items into lists, each of about `most` in total size."""
    block: list[T] = []
    room = most
    for item in items:
        block.append(item)
        room -= size(item)
        if room <= 0 or len(block) == MOST_AT_ONCE:
            yield block
            block, room = [], most
    if block:
        yield block


class Kept(Generic[Block]):
    """A store of blocks of plain data, most of it on disk, until a whole file has been read."""

    def __init__(self) -> None:
        self.file = SpooledTemporaryFile(KEPT_IN_MEMORY)  # noqa: SIM115 (closed at the exit)
        self.count = 0

    def __enter__(self) -> "Kept[Block]":
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # on a full disk it tries once more to write
            self.file.close()

    def keep(self, blocks: Iterable[Block]) -> None:
        for block in blocks:
            with _naming_the_folder():
                pickle.dump(block, self.file, pickle.HIGHEST_PROTOCOL)
            self.count += len(block)

    def __iter__(self) -> Iterator[Block]:
        with _naming_the_folder():  # the last of it is written
            end = self.file.tell()
            self.file.seek(0)
        while self.file.tell() < end:
            yield pickle.load(self.file)  # nobody else can open it: it has no name


@contextmanager
def _naming_the_folder() -> Iterator[None]:
    """Let an error say where blocks are kept: the file itself has no name."""
    try:
        yield
    except OSError as error:
        error.filename = f"{gettempdir()} (TMPDIR), where values are kept until all are known"
        raise
