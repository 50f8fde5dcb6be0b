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
the tokens of the program and the assignments, not to tokens times iterations. Statements that have
become the same expression, as most do where there are many assignments, are run once, as kinds of
spans are (`kinds.py`).
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
WHOLE = 62  # bits of a whole number that tells statements apart
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
            using = users[_ranges(first[names], first[names + 1] - first[names])]
            ready, sent = np.unique(using, return_counts=True)
            waiting[ready] -= sent
            ready = ready[waiting[ready] == 0]
            if not len(ready) and not due[now]:
                del due[now]
                heapq.heappop(times)
        return M[self._there(kept)].T.long()

    def _evaluate(
        self, statements: Ints, M: Int[Tensor, "names a"], now: int
    ) -> Iterator[tuple[int, Ints]]:
        """Run statements that have all their names, and write their values into M; the names that
        are due at each later time.
        """
        own = np.zeros(len(statements), dtype=np.int64)
        number = np.cumsum(self.lengths[statements]) * M.shape[1] // AT_ONCE[M.device.type]
        for part in np.split(np.arange(len(statements)), np.flatnonzero(np.diff(number)) + 1):
            if len(part):
                some = statements[part]
                values, own[part] = self._rows(some, M)
                self._require_values(some, values)
                M[self._there(self.program.inputs + some)] = values.to(M.dtype)
        own = np.maximum(own, self.uses[statements] > 0)
        names = self.program.inputs + statements
        self.start[names], self.end[names] = now, now + own
        for taken in np.unique(own).tolist():
            yield now + taken, names[own == taken]

    def _rows(self, statements: Ints, M: Int[Tensor, "names a"]) -> tuple[Tensor, Ints]:
        """The values of some statements, for all assignments, and the iterations of each."""
        lengths = self.lengths[statements]
        at = self._there(_ranges(self.starts[statements], lengths))
        ids, key = self.ids[at].unsqueeze(-1), self.key[at]
        values, taken = [], []
        for columns in M.split(max(1, AT_ONCE[M.device.type] // len(at)), dim=1):
            sent = columns[key.clamp(min=0)] + FIRST_VALUE  # the wires' reading
            rows = torch.where((key >= 0).unsqueeze(-1), sent, ids)
            found, own = self._run(rows, lengths)
            values.append(found)
            taken.append(own.amax(1))
        return torch.cat(values, dim=1), torch.stack(taken).amax(0).numpy(force=True)

    def _run(
        self, rows: Int[Tensor, "t a"], lengths: Ints
    ) -> tuple[Int[Tensor, "k a"], Int[Tensor, "k a"]]:
        """Values and iterations of `k` statements, one after another in each column of `rows`. Of
        those that are the same expression, one is run.
        """
        kind, chosen = self._kinds(rows, lengths)
        statement, column = np.divmod(chosen, rows.shape[1])
        begins, own = (np.cumsum(lengths) - lengths)[statement], lengths[statement]
        ids = rows[self._there(_ranges(begins, own)), self._there(np.repeat(column, own))]
        starts = np.cumsum(own) - own
        values, taken = torch.empty((2, len(own)), dtype=torch.int64, device=rows.device)
        for batch in self._batches(own):
            some, at = self._there(own[batch]), self._there(_ranges(starts[batch], own[batch]))
            found = values_of_rows(self.domain, self.weights, ids[at], some, self.iterations)
            values[batch], taken[batch] = found
        return values[kind], taken[kind]

    def _kinds(self, rows: Int[Tensor, "t a"], lengths: Ints) -> tuple[Int[Tensor, "k a"], Ints]:
        """The index of each statement's kind, and the index of one statement of each kind. Equal
        kinds have equal tokens; where a statement is too long to be told by a whole number, each is
        a kind of its own.
        """
        k, a = len(lengths), rows.shape[1]
        every = torch.arange(k * a, device=rows.device)
        base = self.weights.D + 2  # EMPTY and OUTSIDE become the digits 1 and 0
        if int(lengths.max()) * base.bit_length() > WHOLE:
            return every.view(k, a), every.numpy(force=True)
        place = self._there(base ** _ranges(np.zeros_like(lengths), lengths))
        statement = self._there(np.repeat(np.arange(k), lengths))
        numbers = torch.zeros(k, a, dtype=torch.int64, device=rows.device)
        numbers.index_add_(0, statement, (rows + 2) * place.unsqueeze(-1))
        kinds, kind = torch.unique(numbers, return_inverse=True)
        chosen = torch.empty_like(kinds).scatter_(0, kind.flatten(), every)
        return kind, chosen.numpy(force=True)

    def _batches(self, lengths: Ints) -> Iterator[Ints]:
        """Indices of the sequences of each batch, the shortest first, with at most about `at_once`
        positions; where they are padded, with none much longer than others.
        """
        order = np.argsort(lengths, kind="stable")
        sorted_, begin = lengths[order], 0
        while begin < len(order):
            longest = 2 * max(SHORT, int(sorted_[begin])) if self.padded else int(sorted_[-1])
            end = int(np.searchsorted(sorted_, longest, side="right"))
            end = min(end, begin + max(1, self.at_once // longest))
            yield order[begin:end]
            begin = end

    def _there(self, indices: Ints) -> Int[Tensor, " i"]:
        """An array on the device of the weights."""
        return torch.from_numpy(indices).to(self.weights.device)

    def _require_values(self, statements: Ints, values: Int[Tensor, "k a"]) -> None:
        """Refuse a statement that does not end with a single value in some assignment."""
        if (values < 0).any():
            worst = int((values < 0).any(-1).nonzero()[0])
            name = self.program.names[self.program.inputs + int(statements[worst])]
            raise ValueError(f"{name}: no single value is left: the weights are not exact")


def _ranges(begins: Ints, counts: Ints) -> Ints:
    """`counts` whole numbers from each beginning on, one range after another."""
    before = np.cumsum(counts) - counts
    return np.arange(counts.sum()) + np.repeat(begins - before, counts)
