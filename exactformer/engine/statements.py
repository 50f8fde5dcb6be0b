"""Values of programs by the tables of certified weights, level by level."""

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.algebra import FIRST_VALUE
from exactformer.domains.program import WIRE, Program
from exactformer.engine.cpu import CpuEngine


def values_by_levels(
    engine: CpuEngine, program: Program, inputs: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The value index of each name of a program, for the value indices of its inputs.

    Statements of a level use names of lower levels only. So they are expressions once those have
    their values, which the engine reads in one pass.
    """
    values = np.zeros(len(program.names), dtype=np.int64)
    values[: program.inputs] = inputs
    of_level = program.levels[program.inputs :]
    order = np.argsort(of_level, kind="stable")
    lengths, uses = program.lengths[order], np.diff(program.first_uses)[order]
    # All that the program has, statement by statement in the order of levels.
    ids = program.ids[_ranges(program.starts[order], lengths)]
    wires = program.wires[_ranges(program.first_uses[order], uses)]
    bounds = np.searchsorted(of_level[order], np.arange(1, of_level.max(initial=0) + 2))
    tokens = np.concatenate([[0], np.cumsum(lengths)])
    names = np.concatenate([[0], np.cumsum(uses)])
    for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        text = ids[tokens[first] : tokens[last]].copy()
        text[text == WIRE] = FIRST_VALUE + values[wires[names[first] : names[last]]]
        ends = tokens[first + 1 : last + 1] - tokens[first]
        values[program.inputs + order[first:last]] = engine.token_numbers(text, ends)
    return values


def _ranges(begins: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers from each beginning on, as many as its count says, one range after another."""
    return np.arange(counts.sum()) + np.repeat(begins - np.cumsum(counts) + counts, counts)
