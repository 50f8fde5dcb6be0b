"""Weights for any machine, written down: a row of the feedforward for each state and symbol."""

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from exactformer.domains.bounds import MOST_HIDDEN, MOST_NUMBERS, require
from exactformer.domains.data import suggestion
from exactformer.domains.machines import NO_STATE, Machine, ReadByMachine
from exactformer.domains.span_machines import SpanMachine
from exactformer.domains.symbols import CLOSE, OPEN
from exactformer.model.feedforward import MLP, Table
from exactformer.model.machine import MachineWeights
from exactformer.model.span_machine import SpanMachineWeights

FEW_NUMBERS = 1 << 22  # of the perceptron in closed form up to which it is tried first


def for_texts(machine: Machine, kind: str | None, dense: bool) -> tuple[str, MachineWeights]:
    """Weights of a machine over a text, with the name of the feedforward."""
    made, f = _feedforward(machine, kind, dense)
    return made, MachineWeights(torch.ones(len(machine.vocabulary)), f)


def for_spans(domain: SpanMachine, kind: str | None, dense: bool) -> tuple[str, SpanMachineWeights]:
    """Weights of a machine over spans, with the name of the feedforward."""
    made, f = _feedforward(domain, kind, dense)
    G_PE = torch.zeros(len(domain.vocabulary))
    G_PE[OPEN], G_PE[CLOSE] = 1, -1  # Eq. 2
    return made, SpanMachineWeights(G_PE, f)


def _feedforward(machine: ReadByMachine, kind: str | None, dense: bool) -> tuple[str, MLP | Table]:
    """The feedforward of this kind, or of the first that is possible for None, with its name."""
    if dense:
        raise ValueError(f"{machine.name!r} is a machine: only one-hot vectors are for those")
    makers = {"closed": _closed_form, "table": _table}
    if kind is not None and kind not in makers:
        hint = suggestion(kind, makers)
        raise ValueError(
            f"expected feedforward closed or table for a machine, found {kind!r}{hint}"
        )
    H, Y = _rows(machine)
    kind = kind or ("closed" if H.numel() <= FEW_NUMBERS else "table")
    return kind, makers[kind](H, Y)


def _rows(machine: ReadByMachine) -> tuple[Tensor, Tensor]:
    """Inputs and outputs of the feedforward, for each symbol that is allowed in each state and for
    the end: a token beside a state, both one-hot.
    """
    D, W = len(machine.vocabulary), len(machine.states)
    # State 0 of the weights is the start: the two numbers are exchanged.
    order = torch.arange(W)
    order[[0, machine.start]] = order[[machine.start, 0]]
    following, answer = (torch.tensor(t)[order] for t in (machine.next_states, machine.output_ids))
    following = torch.where(following >= 0, order[following], NO_STATE)
    state, token = ((following >= 0) | (answer >= 0)).nonzero(as_tuple=True)
    require(f"rows of {machine.name!r}", len(state), MOST_HIDDEN)
    require(f"numbers of the rows of {machine.name!r}", len(state) * (D + W), MOST_NUMBERS)
    H = one_hot(token, D + W) + one_hot(D + state, D + W)
    Y = _one_hot(answer[state, token], D), _one_hot(following[state, token], W)
    return H, torch.cat(Y, 1)


def _one_hot(numbers: Tensor, count: int) -> Tensor:
    """One-hot rows; a zero row for -1."""
    return one_hot(numbers + 1, count + 1)[:, 1:]


def _table(H: Tensor, Y: Tensor) -> Table:
    return Table(H.to(torch.int16), Y.to(torch.int8))


def _closed_form(H: Tensor, Y: Tensor) -> MLP:
    """A hidden unit for each row, which is 1 for it and 0 for every other one."""
    hidden, width = H.shape
    return MLP(
        H.T.float().contiguous(),
        torch.full((hidden,), -1.0),
        Y.float(),
        torch.full((width,), -0.5),
        activation="relu",
    )
