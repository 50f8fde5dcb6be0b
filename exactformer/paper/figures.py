"""The paper's figures, one function for each, drawn from what the model does and is.

Their captions are in the docstrings. `FIGURES` names them for the command line.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from exactformer.api import construct
from exactformer.domains.algebra import Algebra
from exactformer.domains.catalog import arithmetic, boolean
from exactformer.domains.data import listed
from exactformer.domains.syntax import parse
from exactformer.interp.causal import CausalGraph, Node, causal_graph
from exactformer.paper.drawing import LARGE, MONO, SMALL, Sheet, writes
from exactformer.paper.plots import fig4, figA1
from exactformer.paper.study_plots import accuracy, factors
from exactformer.trace import EMPTY_POSITION, Trace, TraceStep
from exactformer.trace.palette import KINDS, MARKED, PLAIN, cluster_ink, kind_of

EXAMPLE = "((1|0)&(~0))"
CIRCUITS = {"A": (boolean, "(((~0)&1)|(0&(~1)))"), "B": (arithmetic, "(((1+2)*(3+4))+(5*(6+7)))")}
QUIET = PLAIN._replace(fill="#fafafa", edge="#e3e3e3")
LEAF = 1.3  # cells from one operand to the next
LEVEL = 1.7  # cells from one gate to its inputs


@writes
def fig1() -> Figure:
    """Expressions as circuits, and their reduction: at each iteration the deepest gates, in fields
    of one colour each, become their values.
    """
    traces = {
        letter: (make(), construct(make()).trace(text)) for letter, (make, text) in CIRCUITS.items()
    }
    states = 1 + max(len(trace.steps) for _, trace in traces.values())
    columns = [
        max(_tree_width(algebra, trace, t) for algebra, trace in traces.values())
        for t in range(states)
    ]
    gap = 2.6
    sheet = Sheet(1.5 + sum(columns) + gap * (states - 1) + 0.5, 2 * 9.0 + 0.9)
    for row, (letter, (algebra, trace)) in enumerate(traces.items()):
        top, left = 0.4 + 9.0 * row, 1.0
        name = {"boolean": "Boolean", "arithmetic": "Arithmetic modulo 10"}[algebra.name]
        sheet.text(0.4, top + 0.4, letter, LARGE, "left", weight="bold")
        sheet.text(1.2, top + 0.4, f"{name}: {trace.expression} = {trace.value}", align="left")
        graph = causal_graph(parse(algebra, trace.expression))
        for t, width in enumerate(columns):
            step = trace.steps[t] if t < len(trace.steps) else None
            before = trace.steps[t - 1] if t else None
            state = step.tokens if step else trace.steps[-1].state
            _draw_tree(sheet, graph, state, step, before, left + width / 2, top + 2.1)
            shown = "".join(symbol for symbol in state if symbol != EMPTY_POSITION)
            sheet.text(left + width / 2, top + 8.2, shown, SMALL, family=MONO)
            left += width
            if step:
                sheet.arrow(left + 0.4, top + 4.4, left + gap - 0.4, top + 4.4)
                sheet.text(left + gap / 2, top + 3.8, f"iteration {t + 1}", SMALL)
                left += gap
    sheet.legend(sheet.ax.get_xlim()[1] - 0.5, 0.8, ("value", "operator"))
    return sheet.figure


def _tree_width(algebra: Algebra, trace: Trace, t: int) -> float:
    state = trace.steps[t].tokens if t < len(trace.steps) else trace.steps[-1].state
    values = sum(kind_of(algebra, symbol) == "value" for symbol in state)
    return max(LEAF * values, 0.25 * sum(symbol != EMPTY_POSITION for symbol in state))


def _draw_tree(
    sheet: Sheet,
    graph: CausalGraph,
    state: list[str],
    step: TraceStep | None,
    before: TraceStep | None,
    middle: float,
    top: float,
) -> None:
    """Draw what is left of the circuit. `step` reduces it next, `before` has just reduced it."""
    algebra = graph.expression.algebra
    leaves = sum(kind_of(algebra, symbol) == "value" for symbol in state)
    next_leaf = iter(np.arange(leaves) - (leaves - 1) / 2)

    def draw(gate: Node, level: int) -> float:
        """Draw a gate and all below it; returns its x."""
        kind = kind_of(algebra, state[gate.position])
        operands = graph.causes[gate][1:] if kind == "operator" else ()
        inputs = [draw(operand, level + 1) for operand in operands]
        x = float(np.mean(inputs)) if inputs else middle + LEAF * next(next_leaf)
        y = top + LEVEL * level
        cluster = step.clusters[gate.position] if step else 0
        for below in inputs:
            if cluster:
                field = cluster_ink(cluster)
                sheet.glow(x, y, field)
                sheet.glow(below, y + LEVEL, field)
                sheet.line([x, below], [y, y + LEVEL], color=field.fill, lw=16, zorder=1)
            sheet.line([x, below], [y, y + LEVEL])
        if before and before.clusters[gate.position]:
            sheet.node(x, y, "", cluster_ink(before.clusters[gate.position]), 0.56)
        sheet.node(x, y, state[gate.position], KINDS[kind])
        return x

    draw(graph.answer, 0)


@writes
def fig2() -> Figure:
    """A: depth counts, mask and clusters of ((1|0)&(~0)), token by token.
    B: the routing matrices, and the attention and routed bags of each cluster.
    """
    algebra, model = boolean(), construct(boolean())
    step = model.trace(EXAMPLE).steps[0]
    sheet = Sheet(33.0, 31.0)
    _mask(sheet, algebra, step, model.weights.G_PE.numpy())
    W_Q, W_K = model.weights.W_Q.numpy(), model.weights.W_K.numpy()
    _attention(sheet, algebra, step, W_Q, W_K)
    return sheet.figure


def _mask(sheet: Sheet, algebra: Algebra, step: TraceStep, gate: np.ndarray) -> None:
    signs = [int(gate[algebra.vocabulary.index(symbol)]) for symbol in step.tokens]
    deepest = [max(pair) for pair in zip(step.forward, step.backward, strict=True)]
    rows = [
        ("tokens", "$X^{(t)}$", step.tokens, "Eq. 1"),
        ("gate of each token", "$X^{(t)} G_{PE}\\mathbf{1}$", signs, "Eq. 2: +1 on (, −1 on )"),
        ("sum from the left", "$A_1$", step.forward, "Eq. 3"),
        ("minus the sum to the right end", "$A_2$", step.backward, "Eq. 3"),
        ("larger of the two", "$\\max(A_1, A_2)$", deepest, "2 is the largest anywhere"),
        ("reduction mask", "$P^{(t)}$", step.mask, "Eq. 5: where it is reached"),
        ("cluster", "$\\mathrm{id}^{(t)}$", step.clusters, "Eqs. 6–9: runs of ones"),
    ]
    left, top, pitch = 13.4, 2.0, 1.3
    sheet.text(0.5, 0.8, "A", LARGE, "left", weight="bold")
    sheet.text(1.5, 0.8, f"Depth counts, mask and clusters of {EXAMPLE}", align="left")
    sheet.legend(32.4, 0.8, ("parenthesis", "value", "operator"))
    for number in sorted(set(step.clusters) - {0}):
        first, ink = step.clusters.index(number), cluster_ink(number)
        width = step.clusters.count(number)
        sheet.span(left + first, top, width, pitch * (len(rows) - 1) + 1, ink)
        under = top + pitch * len(rows) + 0.3
        sheet.text(left + first + width / 2, under, f"$C_{number}^{{(t)}}$", color=ink.text)
    for i, (words, symbol, cells, note) in enumerate(rows):
        y = top + pitch * i
        sheet.text(left - 4.1, y + 0.5, words, align="right")
        sheet.text(left - 0.4, y + 0.5, symbol, align="right")
        sheet.text(left + len(cells) + 0.4, y + 0.5, note, SMALL + 0.5, "left", color="#555555")
        for j, cell in enumerate(cells):
            if isinstance(cell, str):
                sheet.token(algebra, left + j, y, cell)
                continue
            ink = PLAIN
            if symbol.startswith("$P") and cell:
                ink = MARKED
            elif "id" in symbol and cell:
                ink = cluster_ink(cell)
            sheet.box(left + j, y, str(cell).replace("-", "−"), ink)


def _attention(
    sheet: Sheet, algebra: Algebra, step: TraceStep, W_Q: np.ndarray, W_K: np.ndarray
) -> None:
    top, vocabulary = 13.6, algebra.vocabulary
    operators = [op.symbol for op in algebra.operators]
    sheet.text(0.5, top - 0.4, "B", LARGE, "left", weight="bold")
    sheet.text(1.5, top - 0.4, "Attention within each cluster", align="left")
    for x, name, matrix in ((1.8, "$W_Q$", W_Q), (7.8, "$W_K$", W_K)):
        sheet.text(x + 2, top + 1.4, name, LARGE)
        sheet.labels(algebra, x + 1, top + 3, operators, down=False)
        sheet.text(x + 0.5, top + 2.6, "val", SMALL, color=KINDS["value"].text)
        sheet.labels(algebra, x, top + 3, vocabulary)
        sheet.matrix(x, top + 3, matrix)
    notes = [
        "Columns are the four attention dimensions:",
        "one carries values to operators,",
        "one for each operator carries it to itself.",
    ]
    for i, note in enumerate(notes):
        sheet.text(0.8, top + 10.9 + 0.9 * i, note, SMALL + 0.5, "left", color="#555555")
    y = top + 3.0
    for number in sorted(set(step.clusters) - {0}):
        ink = cluster_ink(number)
        inside = [i for i, cluster in enumerate(step.clusters) if cluster == number]
        tokens = [step.tokens[i] for i in inside]
        X = np.array([[int(symbol == word) for word in vocabulary] for symbol in tokens])
        attention = (X @ W_Q @ W_K.T @ X.T).astype(int)
        a, h, size = 15.6, 24.2, len(tokens)
        sheet.span(a, y, size, size, ink)
        sheet.matrix(a, y, attention)
        sheet.labels(algebra, a - 0.1, y, tokens)
        sheet.labels(algebra, a, y - 0.15, tokens, down=False)
        sheet.span(h, y, len(vocabulary), size, ink)
        sheet.matrix(h, y, attention @ X)
        sheet.labels(algebra, h, y - 0.15, vocabulary, down=False)
        sheet.labels(algebra, h - 0.1, y, tokens)
        sheet.arrow(a + size + 0.5, y + size / 2, h - 1.2, y + size / 2)
        middle = (a + size + 0.5 + h - 1.2) / 2
        sheet.text(middle, y + size / 2 - 0.6, f"$\\cdot\\, X_{number}$", SMALL + 0.5)
        name = f"$Q_{number} K_{number}^{{\\!\\top}}$"
        sheet.text(a + size / 2, y - 1.6, name, color=ink.text)
        name = f"routed bags  $H_{number}$"
        sheet.text(h + len(vocabulary) / 2, y - 1.6, name, color=ink.text)
        position = next(i for i in inside if step.routed.get(i))
        bag = listed([*step.routed[position]], "and")
        note = f"{step.tokens[position]} receives {bag}; all others receive nothing"
        sheet.text(h + len(vocabulary), y + size + 0.7, note, SMALL + 0.5, "right", color=ink.text)
        y += size + 3.6


@writes
def fig3() -> Figure:
    """The reduction of ((1|0)&(~0)): every position of every state, and the vectors between."""
    algebra = boolean()
    trace = construct(algebra).trace(EXAMPLE)
    n = len(trace.steps[0].tokens)
    sheet = Sheet(2.0 + len(trace.steps) * (n + 2.6) - 0.2, 29.8)
    for t, step in enumerate(trace.steps):
        _iteration(sheet, algebra, step, t, 2.2 + t * (n + 2.6))
    sheet.legend(sheet.ax.get_xlim()[1] - 1.0, 29.0, tuple(KINDS))
    depth = len(trace.steps)
    notes = {
        2.2: (
            "Theorem 1: one iteration evaluates every deepest",
            f"span, keeps all else, and lowers the depth: {depth} to {depth - 1}.",
        ),
        2.2 + n + 2.6: (
            f"Theorem 2: after {depth} iterations no parenthesis is left.",
            f"The model halts, and the one token is the value, {trace.value}.",
        ),
    }
    for x, lines in notes.items():
        for i, line in enumerate(lines):
            sheet.text(x, 26.2 + i, line, align="left")
    return sheet.figure


def _iteration(sheet: Sheet, algebra: Algebra, step: TraceStep, t: int, left: float) -> None:
    """A column: the state, the routed bags, the feedforward's outputs, the next state."""
    vocabulary, n = algebra.vocabulary, len(step.tokens)
    D = len(vocabulary)
    sheet.text(left, 0.8, f"Iteration {t + 1}", LARGE, "left", weight="bold")

    def name(y: float, text: str) -> None:
        sheet.text(left - 0.3, y, text, align="right")

    def down(y: float, text: str) -> None:
        sheet.arrow(left + 0.5, y + 0.3, left + 0.5, y + 1.6)
        sheet.text(left + 1.1, y + 0.95, text, SMALL + 0.5, "left", color="#555555")

    state, bags = 2.0, 5.2
    outputs = bags + D + 2.2
    after = outputs + D + 2.0
    for j in (j for j in range(n) if not step.mask[j]):
        sheet.token(algebra, left + j, state, step.tokens[j])
        for i in range(D):
            sheet.box(left + j, bags + i, "", QUIET)
            sheet.box(left + j, outputs + i, "", QUIET)
    for number in sorted(set(step.clusters) - {0}):
        first, width = step.clusters.index(number), step.clusters.count(number)
        for y, height in ((state, 1), (bags, D), (outputs, D)):
            sheet.span(left + first, y, width, height, cluster_ink(number))
    name(state + 0.5, f"$X^{{({t})}}$")
    name(after + 0.5, f"$X^{{({t + 1})}}$")
    for j, symbol in enumerate(step.state):
        sheet.token(algebra, left + j, after, symbol)
    down(state + 1.1, "attention: bags of tokens at the operators, $H$")
    down(bags + D + 0.1, "feedforward: outputs $Z$; positive ones become 1")
    down(outputs + D + 0.1, "gated residual: outside the clusters, as before")
    for y in (bags, outputs):
        sheet.labels(algebra, left, y, vocabulary)
    for j in (j for j in range(n) if step.mask[j]):
        sheet.token(algebra, left + j, state, step.tokens[j])
        bag, output = step.routed.get(j, {}), step.outputs.get(j)
        for i, word in enumerate(vocabulary):
            if output is None:  # nothing was routed here, and the output is the zero vector
                sheet.box(left + j, bags + i, "", KINDS["empty"])
                sheet.box(left + j, outputs + i, "", KINDS["empty"])
                continue
            ink = KINDS[kind_of(algebra, word)]
            count, out = bag.get(word, 0), output[word]
            half = f"{'+' if out > 0 else '−'}{'½' if abs(out) == 0.5 else abs(out)}"
            sheet.box(left + j, bags + i, str(count), ink if count else PLAIN)
            sheet.box(left + j, outputs + i, half, ink if out > 0 else PLAIN, SMALL)


FIGURES: dict[str, Callable[[Path], list[Path]]] = {
    figure.__name__: figure for figure in (fig1, fig2, fig3, fig4, figA1, accuracy, factors)
}
