"""The conditions under which a proof about expressions carries over to a program.

The theorem. Let weights be exact on every expression of an algebra. If in a program each name has
one definition or is an input, each name that is used is one of these, no name depends on itself,
and each right side is an expression of the algebra once values stand in place of its names, then
the model gives each name the value of its definition, for all values of the inputs, in whatever
order the statements stand. `docs/circuits.md` has the proof, by induction on levels.

Here the conditions are checked on the arrays of the program itself, whoever made them, by code that
is no part of the readers, but for the grammar of expressions, which both ask. For the absence of
cycles, the levels are only a witness. That a reader made the right arrays of a text is not checked.
"""

import numpy as np

from exactformer.domains.program import WIRE, Program

ONCE = "each name is defined once"
DEFINED = "each name that is used is defined"
ACYCLIC = "no name depends on itself"
GRAMMAR = "each right side is an expression, with values where names stand"


def program_conditions(program: Program) -> dict[str, bool]:
    """Each condition on a program, with whether it holds. Where its arrays do not fit together, so
    that nothing can be said of the statements, none holds.
    """
    statements, wires = len(program.lengths), program.wires
    whole = (
        program.inputs + statements == len(program.names)
        and bool((program.lengths > 0).all())
        and int(program.lengths.sum()) == len(program.ids)
        and np.count_nonzero(program.ids == WIRE) == len(wires)
    )
    if not whole:
        return dict.fromkeys((ONCE, DEFINED, ACYCLIC, GRAMMAR), False)
    defined = bool(((wires >= 0) & (wires < len(program.names))).all())
    return {
        ONCE: len(set(program.names)) == len(program.names),
        DEFINED: defined,
        ACYCLIC: defined and _in_order(program),
        GRAMMAR: _all_expressions(program),
    }


def _in_order(program: Program) -> bool:
    """Whether each statement has a higher level than all names that it uses."""
    levels = program.levels
    of_token = np.repeat(np.arange(len(program.lengths)), program.lengths)
    user = program.inputs + of_token[program.ids == WIRE]
    return bool((levels[user] > levels[program.wires]).all())


def _all_expressions(program: Program) -> bool:
    """Whether each right side is an expression, with one value for all names: the grammar of an
    algebra does not distinguish values.
    """
    domain = program.domain
    value = next(t for t in range(len(domain.vocabulary)) if domain.token_type(t) == "value")
    ids = np.where(program.ids == WIRE, value, program.ids).tolist()
    begin = 0
    for length in program.lengths.tolist():
        tokens = ids[begin : begin + length]
        begin += length
        if not all(0 <= token < len(domain.vocabulary) for token in tokens):
            return False
        if domain.first_error(tokens, [domain.vocabulary[token] for token in tokens]) is not None:
            return False
    return True
