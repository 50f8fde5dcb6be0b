"""A program: statements `name=expr;` whose names may be used any number of times.

A circuit with shared wires is one. Each wire has a name; what stands on the right of its one
definition is an expression of the domain, in which names may stand wherever values may.

Only the readers of text and of netlists and the sampler make one. Holding one means that every
right side is an expression of the domain with values for its names, that every name used is one of
`names`, each of which has one definition or is an input, and that none depends on itself.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.belonging import OfDomain
from exactformer.domains.data import show
from exactformer.domains.domain import Domain, Ids
from exactformer.domains.expression import Expression

Ints = NDArray[np.int64]

WIRE = -3  # the id of a name in a right side; EMPTY and UNKNOWN are -1 and -2


@dataclass(frozen=True, eq=False)
class Program(OfDomain):
    """Statements as arrays, so that a million of them are an ordinary input.

    names     all wires. The first `inputs` of them have no statement: each run gives their values.
    inputs    how many those are; 0 in programs from text.
    ids       token ids of the right sides of all statements, one after another; WIRE for a name.
    lengths   number of tokens of each statement; statement i defines names[inputs + i].
    wires     for each WIRE in `ids`, in order, the index of its name.
    outputs   indices of the names that are the program's results.
    """

    domain: Domain
    names: tuple[str, ...]
    inputs: int
    ids: Ids
    lengths: Ints
    wires: Ints
    outputs: tuple[int, ...]

    def __post_init__(self) -> None:
        for part in (self.ids, self.lengths, self.wires):
            part.setflags(write=False)

    def __len__(self) -> int:
        """The number of statements."""
        return len(self.lengths)

    def __repr__(self) -> str:
        return (
            f"Program({self.domain.name}: {len(self)} statements, {self.inputs} inputs, "
            f"{len(self.outputs)} outputs)"
        )

    def __str__(self) -> str:
        """Its text, a statement a line; it reads back if there are no inputs."""
        return "".join(f"{name}={text};\n" for name, text in self.statements())

    def statements(self) -> Iterator[tuple[str, str]]:
        """The name that each statement defines, with the text of its right side."""
        between = "" if self.domain.packs else " "
        for i, name in enumerate(self.names[self.inputs :]):
            words = iter(self.names[wire] for wire in self.uses(i).tolist())
            ids = self.right_side(i).tolist()
            symbols = [next(words) if t == WIRE else self.domain.vocabulary[t] for t in ids]
            yield name, between.join(symbols)

    def with_outputs(self, names: Sequence[str] | None) -> "Program":
        """This program with other results: those names, or all that no statement uses."""
        if names is None:
            unused = np.bincount(self.wires, minlength=len(self.names)) == 0
            return replace(self, outputs=tuple(np.flatnonzero(unused).tolist()))
        known = set(self.names)
        for name in names:
            if name not in known:
                raise ValueError(f"outputs: expected names of the program, found {show(name)}")
        wanted = set(names)
        place = {name: i for i, name in enumerate(self.names) if name in wanted}
        return replace(self, outputs=tuple(place[name] for name in names))

    @cached_property
    def starts(self) -> Ints:
        """Index in `ids` of the first token of each statement, and the end of the last one."""
        return np.concatenate([[0], np.cumsum(self.lengths)])

    @cached_property
    def first_uses(self) -> Ints:
        """Index in `wires` of the first name in each statement, and the end of the last one's."""
        before = np.concatenate([[0], np.cumsum(self.ids == WIRE)])
        return before[self.starts]

    @cached_property
    def users(self) -> Ints:
        """For each WIRE, the statement that it stands in."""
        return np.repeat(np.arange(len(self)), np.diff(self.first_uses))

    def right_side(self, statement: int) -> Ids:
        return self.ids[self.starts[statement] : self.starts[statement + 1]]

    def uses(self, statement: int) -> Ints:
        """The names that a statement uses, as often as it does."""
        return self.wires[self.first_uses[statement] : self.first_uses[statement + 1]]

    def expression(self, statement: int, tokens: Sequence[int]) -> Expression:
        """A right side with these value tokens in place of its names, in their order."""
        ids = self.right_side(statement).copy()
        ids[ids == WIRE] = tokens
        return Expression(self.domain, ids)

    @cached_property
    def used_by(self) -> tuple[Ints, Ints]:
        """The statements that use each name, name by name, as often as they do; and where those of
        each name begin, with the end of the last one's.
        """
        order = np.argsort(self.wires, kind="stable")
        first = np.searchsorted(self.wires[order], np.arange(len(self.names) + 1))
        return self.users[order], first

    @cached_property
    def levels(self) -> Ints:
        """Level of each name: 0 for inputs, else 1 more than the largest among the names that its
        statement uses, or 1 if there are none; 0, too, for names that depend on themselves.
        """
        levels, _ = self._levels
        return levels

    @property
    def cycle(self) -> list[int]:
        """Names that depend on each other in a circle, each on the next one and the last one on
        the first; none in a program that a reader lets through.
        """
        levels, waiting = self._levels
        stuck = np.flatnonzero(waiting)
        if not len(stuck):
            return []
        name, path, place = self.inputs + int(stuck[0]), [], {}
        while name not in place:  # each of those that wait uses another one that does
            place[name] = len(path)
            path.append(name)
            uses = self.uses(name - self.inputs)
            name = int(uses[(uses >= self.inputs) & (levels[uses] == 0)][0])
        return path[place[name] :]

    @cached_property
    def _levels(self) -> tuple[Ints, Ints]:
        """The levels, and how many uses each statement still waits for: Kahn's algorithm."""
        users, first = (part.tolist() for part in self.used_by)
        waiting = np.diff(self.first_uses).tolist()
        levels = [0] * len(self.names)
        ready = [*range(self.inputs)]
        for i, count in enumerate(waiting):
            if not count:
                levels[self.inputs + i] = 1
                ready.append(self.inputs + i)
        for name in ready:  # it grows
            above = levels[name] + 1
            for statement in users[first[name] : first[name + 1]]:
                waiting[statement] -= 1
                if not waiting[statement]:
                    levels[self.inputs + statement] = above  # names come by ascending level
                    ready.append(self.inputs + statement)
        return np.array(levels, dtype=np.int64), np.array(waiting, dtype=np.int64)
