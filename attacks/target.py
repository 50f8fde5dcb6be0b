"""A file that is attacked: how it is damaged and restored, whatever its kind."""

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from attacks.mutants import (
    Tensors,
    as_bytes,
    mutate_bytes,
    mutate_plain,
    mutate_tensors,
    write_json,
)


@dataclass
class Target:
    """Files in a folder, one of which is damaged at a time."""

    name: str
    paths: list[Path]
    lists_mistakes: bool = False  # a refusal may have more than one line
    slow: bool = False  # to be read
    rehashed: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.originals = {path: path.read_bytes() for path in self.paths}

    def mutate(self, rng: Random) -> None:
        raise NotImplementedError

    def read(self, rng: Random) -> str | None:
        """Read it as a user would; what it broke, if it was accepted and should not have been."""
        raise NotImplementedError

    def command(self) -> list[str | Path]:
        """The command that reads the same file; empty if there is none."""
        return []

    def named(self) -> list[Path]:
        """The paths that a message of refusal may name."""
        return self.paths

    def restore(self) -> None:
        for path, data in self.originals.items():
            path.write_bytes(data)

    def kept(self, folder: Path) -> list[Path]:
        return [Path(shutil.copy(path, folder)) for path in self.paths]

    def mutate_json(self, path: Path, rng: Random, hash_it: Callable[[Any], str] | None) -> None:
        data = mutate_plain(json.loads(self.originals[path]), rng)
        self.rehashed = hash_it is not None and rng.random() < 0.6 and isinstance(data, dict)
        if self.rehashed and hash_it:
            data["sha256"] = hash_it(data)
        path.write_bytes(as_bytes(write_json(data, rng)))

    def mutate_file(self, path: Path, rng: Random) -> None:
        self.rehashed = False
        path.write_bytes(mutate_bytes(self.originals[path], rng))

    def mutate_part(self, file: Tensors, rng: Random, chance: float) -> Tensors:
        """Change the tensors of a file, at this chance, or else its header."""
        if rng.random() < chance:
            return mutate_tensors(file, rng)
        header = mutate_plain(file.header, rng)
        file.header = header if isinstance(header, dict) else {"format": header}
        return file

    def rehash(
        self, file: Tensors, rng: Random, chance: float, hash_it: Callable[[Tensors], str]
    ) -> None:
        """Make the hash in the header fit again, at this chance."""
        self.rehashed = False
        if rng.random() < chance:
            with suppress(KeyError, TypeError, ValueError):  # there is no hash of such a thing
                file.header["sha256"] = hash_it(file)
                self.rehashed = True
