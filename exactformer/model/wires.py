"""Programs: the wires between statements, read by names as keys.

A statement `name=expr;` is a sequence of its own. Names stand in it where values will: as soon as
all of them are known, it is an ordinary expression, and the layer of the domain evaluates it. So a
gate's value can be used any number of times, with the same weights, and a circuit need not be
written as a tree.

Glossary, beyond that of `circuit.py`
    names, uses     wires of the program; places in statements where one of them stands
    a               assignments of the inputs, which run side by side
    key             (uses,)     index of the name at each use
    M               (names, a)  table of sums: the value that was sent to each name, as its number;
                    UNKNOWN where none was
    start, end      (names,)    the iterations after which a statement has its names, and its value

One iteration
    wires : each statement that has become a single value sends it to its name, and every use takes
            what its name was sent. That is typed attention keyed by the name, where Eqs. 10 to 12
            key by the cluster: values add up in a table by key, and are looked up by key.
    layer : one iteration of the domain's own layer, by the depth or by the logarithm or in plain
            notation, on the statements that have all of their names and are not finished.

Why that is exact. (a) A name has one definition, so one sender: the sum in its row of M is the
one-hot row that was sent, and no other. A use looks up the row of its own name alone. So each use
takes exactly the value of its name's definition, wherever both stand. (A one-hot row is kept as
its number, and as nothing is ever added to it, it is written.) (b) Statements are sequences of
one batch, and sequences of a batch do not depend on each other. (c) A statement with values in
place of its names is an expression, and the certificate of the weights is about every expression,
whichever layer reads it. By induction on the levels of a program without cycles, all its values are
right; `docs/circuits.md` has the theorem with its conditions.

How many iterations. start is the largest `end` of a statement's names, 0 if there are none; end is
0 for inputs, and for others start plus the statement's own iterations: at least 1 if it has a name,
as a copy `y=x;` takes the wires' reading. A program takes as many as its largest end.

What it costs. A statement waits until its last name is known, and runs once. So only iterations at
which some statement becomes ready do any work, and all of them together take time in proportion to
the tokens of the program and the assignments, not to tokens times iterations.
"""

import heapq
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from exactformer.domains.belonging import algebra_of
from exactformer.domains.program import WIRE, Program
from exactformer.domains.symbols import FIRST_VALUE
from exactformer.model.encode import MOST_OPERANDS, require_countable
from exactformer.model.gated import Gated
from exactformer.model.iterations import Iterations
from exactformer.model.layers import layer_of
from exactformer.model.predict import AT_ONCE, values_of_rows
from exactformer.model.remembered import fixed

UNKNOWN = -1  # instead of a value's index, which starts at 0
SHORT = 8  # tokens of statements that are padded to twice as many
TABLE_AT_ONCE = 1 << 28  # entries of M for the assignments that run together

Ints = NDArray[np.int64]


class Ran(NamedTuple):
    """The values of the names that were asked for, and when each statement of the program ran."""

    values: Int[Tensor, "a kept"]  # indices of values of the algebra
    start: Ints  # (names,)
    end: Ints  # (names,)

    @property
    def iterations(self) -> int:
        return int(self.end.max(initial=0))


def run(
    program: Program,
    weights: Gated,
    inputs: Int[Tensor, "a inputs"] | Ints | None = None,
    kept: Ints | None = None,
    iterations: Iterations = "depth",
    tell: Callable[[float], None] = lambda share: None,
) -> Ran:
    """Run a program on many assignments of its inputs.

    inputs   indices of values, a row an assignment; none for a program without inputs.
    kept     the names whose values are returned; all if not given.
    tell     is called with the fraction of the statements that is done.

    A statement that is left without a single value is a ValueError: the weights are not exact.
    """
    inputs = torch.as_tensor(np.zeros((1, 0), dtype=np.int64) if inputs is None else inputs)
    if inputs.shape[-1] != program.inputs:
        raise ValueError(
            f"expected values of {program.inputs} inputs, found {inputs.shape[-1]} a row"
        )
    kept = np.arange(len(program.names)) if kept is None else kept
    wiring = Wiring(program, fixed(weights), iterations)
    at_once = max(1, TABLE_AT_ONCE // max(1, len(program.names)))
    done, found = 0, list[Tensor]()
    for part in inputs.split(at_once):

        def share(fraction: float, part: Tensor = part, done: int = done) -> None:
            tell((done + len(part) * fraction) / len(inputs))

        found.append(wiring.run(part, kept, share))
        done += len(part)
    values = torch.cat(found) if found else inputs.new_zeros(0, len(kept))
    return Ran(values, wiring.start, wiring.end)


class Wiring:
    """A program on the device of the weights, with what is known of its times."""

    def __init__(self, program: Program, weights: Gated, iterations: Iterations) -> None:
        self.program, self.weights = program, weights
        self.iterations: Iterations = iterations
        self.domain = algebra_of(program.domain)
        self.padded = not layer_of(self.domain, iterations).packed
        self.at_once = AT_ONCE[weights.device.type]
        # Whatever the transformer reads between the tokens of a statement, names are where they
        # are: `positions` puts nothing in the place of a token.
        ids, lengths = self.domain.positions(program.ids, program.lengths)
        if self.padded:
            tried = 1 + len(self.domain.values)  # values in every hole
            self.at_once = max(1, self.at_once // tried)
        for i in np.flatnonzero(program.lengths > MOST_OPERANDS[torch.float32]).tolist():
            some = program.expression(i, [FIRST_VALUE] * int(np.diff(program.first_uses)[i]))
            require_countable([some], torch.float32)
        self.ids = torch.from_numpy(ids.astype(np.int16)).to(weights.device)
        self.lengths, self.starts = lengths, np.cumsum(lengths) - lengths
        key = np.full(len(ids), UNKNOWN)
        key[ids == WIRE] = program.wires
        self.key = torch.from_numpy(key).to(weights.device)
        self.uses = np.diff(program.first_uses)
        self.start, self.end = (np.zeros(len(program.names), dtype=np.int64) for _ in range(2))

    @torch.no_grad()
    def run(
        self, inputs: Int[Tensor, "a inputs"], kept: Ints, tell: Callable[[float], None]
    ) -> Int[Tensor, "a kept"]:
        """One run for all of these assignments; the values of the names `kept`."""
        program, device = self.program, self.weights.device
        M = torch.full((len(program.names), len(inputs)), UNKNOWN, dtype=torch.int16, device=device)
        M[: program.inputs] = inputs.T.to(device, torch.int16)
        waiting, users, first = self.uses.copy(), *program.used_by
        due = {0: [np.arange(program.inputs)]}  # names that have their values then
        times, done, ready = [0], 0, np.flatnonzero(waiting == 0)
        while times:
            now = times[0]
            for end, names in self._evaluate(ready, M, now):
                if end not in due:
                    due[end] = []
                    heapq.heappush(times, end)
                due[end].append(names)
            done += len(ready)
            tell(done / max(1, len(program)))
            names = np.concatenate(due[now]) if due[now] else np.empty(0, dtype=np.int64)
            due[now] = []
            using = users[_ranges(first[names], first[names + 1])]
            ready, sent = np.unique(using, return_counts=True)
            waiting[ready] -= sent
            ready = ready[waiting[ready] == 0]
            if not len(ready) and not due[now]:
                del due[now]
                heapq.heappop(times)
        return M[torch.from_numpy(kept).to(device)].T.long()

    def _evaluate(
        self, statements: Ints, M: Int[Tensor, "names a"], now: int
    ) -> Iterator[tuple[int, Ints]]:
        """Run statements that have all their names, and write their values into M; the names that
        are due at each later time.
        """
        own = np.zeros(len(statements), dtype=np.int64)
        for batch in self._batches(self.lengths[statements], M.shape[1]):
            some = statements[batch]
            values, taken = self._rows(some, M)
            self._require_values(some, values)
            M[torch.from_numpy(self.program.inputs + some).to(M.device)] = values.to(M.dtype)
            own[batch] = taken
        own = np.maximum(own, self.uses[statements] > 0)
        names = self.program.inputs + statements
        self.start[names], self.end[names] = now, now + own
        for taken in np.unique(own).tolist():
            yield now + taken, names[own == taken]

    def _rows(self, statements: Ints, M: Int[Tensor, "names a"]) -> tuple[Tensor, Ints]:
        """The values of a batch of statements, for all assignments, and the iterations of each."""
        lengths = self.lengths[statements]
        at = torch.from_numpy(_ranges(self.starts[statements], self.starts[statements] + lengths))
        at = at.to(M.device)
        ids, key = self.ids[at].unsqueeze(-1), self.key[at]
        values, taken = [], np.zeros(len(statements), dtype=np.int64)
        for columns in M.split(max(1, self.at_once // max(1, len(at))), dim=1):
            sent = columns[key.clamp(min=0)] + FIRST_VALUE  # the wires' reading
            rows = torch.where((key >= 0).unsqueeze(-1), sent, ids)
            a = rows.shape[-1]
            found, own = values_of_rows(
                self.domain,
                self.weights,
                rows.T.flatten(),
                torch.from_numpy(lengths).to(M.device).repeat(a),
                self.iterations,
            )
            values.append(found.view(a, -1).T)
            taken = np.maximum(taken, own.view(a, -1).amax(0).cpu().numpy())
        return torch.cat(values, dim=1), taken

    def _batches(self, lengths: Ints, a: int) -> Iterator[Ints]:
        """Indices of the statements of each batch, with at most about `at_once` positions for all
        assignments: in order, or where rows are padded, those of similar lengths together.
        """
        order = np.argsort(lengths, kind="stable") if self.padded else np.arange(len(lengths))
        longest = lengths[order]
        if not self.padded and len(order):
            number = np.cumsum(lengths) * a // self.at_once
            yield from np.split(order, np.flatnonzero(np.diff(number)) + 1)
            return
        begin = 0
        while begin < len(order):
            most = 2 * max(SHORT, int(longest[begin]))
            end = int(np.searchsorted(longest, most, side="right"))
            end = min(end, begin + max(1, self.at_once // (most * a)))
            yield order[begin:end]
            begin = end

    def _require_values(self, statements: Ints, values: Int[Tensor, "k a"]) -> None:
        """Refuse a statement that does not end with a single value in some assignment."""
        if (values < 0).any():
            worst = int((values < 0).any(-1).nonzero()[0])
            name = self.program.names[self.program.inputs + int(statements[worst])]
            raise ValueError(f"{name}: no single value is left: the weights are not exact")


def _ranges(begins: Ints, ends: Ints) -> Ints:
    """The numbers from each beginning up to its end, one range after another."""
    counts = ends - begins
    before = np.cumsum(counts) - counts
    return np.arange(counts.sum()) + np.repeat(begins - before, counts)
