"""What the proof says of the logarithmic layer is about the code: the scan is that of scan.py, the
Strahler number that of strahler.py, and holes, maps, values, outermost spans and states are those
of speculate.py, iteration by iteration. Runs where Coq and OCaml are installed (`make proof`).
"""

import subprocess
from itertools import product
from pathlib import Path

import numpy as np
import torch

import exactformer as ef
from exactformer.domains.algebra import CLOSE, OPEN, Algebra
from exactformer.domains.sampling import draw
from exactformer.domains.strahler import strahler
from exactformer.model.circuit import Weights
from exactformer.model.encode import initial_state
from exactformer.model.feedforward import MLP
from exactformer.model.scan import scan_from_right
from exactformer.model.speculate import steps
from tests import test_proof as proof
from tests.algebras import ENDS, MINUS, S3


def ask(checker: Path, option: str, text: str) -> list[str]:
    done = subprocess.run(
        [checker, option], input=text + "end\n", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def line(numbers) -> str:
    return " ".join(str(int(number)) for number in numbers)


def test_the_scan_is_that_of_the_model(checker):
    rng = np.random.default_rng(0)
    text, expected = "", []
    for m in [*range(1, 40), 100, 127, 128, 129]:
        W = int(rng.integers(1, 6))
        F, last = torch.from_numpy(rng.integers(0, W, (m, W))), int(rng.integers(W))
        text += f"maps {W} {m} {line(F.flatten())} {last}\n"
        expected.append(line(scan_from_right(F, last)))
    assert ask(checker, "--scan", text) == expected


def describe(algebra: Algebra) -> str:
    lines = [f"values {len(algebra.values)} operators {len(algebra.operators)}"]
    for operator in algebra.operators:
        lines.append(str(len(operator.arities)))
        for arity in operator.arities:
            cases = [*product(range(len(algebra.values)), repeat=arity)]
            lines.append(f"{arity} {len(cases)} {line(map(operator, cases))}")
    return "\n".join(lines) + "\n"


def tree(expression: ef.Expression) -> str:
    """The expression as the checker reads it: an operator first, then its operands."""
    algebra = expression.algebra
    open_spans: list[list] = [[]]  # the operands of each, its operator among them as a number
    for token in expression.ids.tolist():
        if token == OPEN:
            open_spans.append([])
        elif token == CLOSE:
            parts = open_spans.pop()
            (operator,) = (part for part in parts if isinstance(part, int))
            operands = [part for part in parts if isinstance(part, str)]
            open_spans[-1].append(f"span {operator} {len(operands)} {' '.join(operands)}")
        elif token >= algebra.first_operator:
            open_spans[-1].append(token - algebra.first_operator)
        elif token in algebra.value_ids:
            open_spans[-1].append(f"value {token - algebra.value_ids[0]}")
    ((text,),) = open_spans
    return text


def test_the_iterations_are_those_of_the_layer(checker):
    """Batches of expressions of all depths, to the end."""
    rng = np.random.default_rng(1)
    most = 0
    for algebra in (ef.boolean(), ef.arithmetic(), ef.listops(3), MINUS, ENDS, S3):
        model, text, expected = ef.construct(algebra), describe(algebra), []
        V = len(algebra.values)
        for _ in range(15):
            batch = [e for depth in range(6) for e in draw(algebra, depth, 2, rng)]
            rng.shuffle(batch)
            text += f"batch {len(batch)} {' '.join(map(tree, batch))}\n"
            numbers = [strahler(e) for e in batch]
            most = max(most, *numbers)
            expected += ["strahler", line(numbers)]
            X, _ = initial_state(batch, model.weights)
            for step in steps(X, model.weights, V):
                expected += ["holes", line(step.holes), "F", *map(line, step.F)]
                expected += ["u", line(step.u), "top", line(step.top)]
            values = [algebra.values.index(ef.oracle(e)) for e in batch]
            expected += ["values", line(values)]
        assert ask(checker, "--speculate", text) == expected
    assert most >= 3


def test_the_states_are_those_of_the_layer(checker):
    """Row by row, with zero rows strewn in."""
    rng = np.random.default_rng(2)
    iterations = 0
    for algebra in (ef.boolean(), MINUS, ENDS, S3):
        weights = ef.construct(algebra, "closed").weights
        f = weights.f
        assert isinstance(f, MLP)
        # the threshold between 0 and 1 is at 1/2: all outputs twice are whole numbers
        twice = MLP(f.W_1, f.b_1, 2 * f.W_2, 2 * f.b_2, f.activation)
        weights = Weights(weights.G_PE, weights.W_Q, weights.W_K, twice, G_R=weights.G_R)
        text, expected = proof.describe(weights), []
        for _ in range(6):
            batch = [e for depth in range(4) for e in draw(algebra, depth, 1, rng)]
            X, _ = initial_state(batch, weights)
            n = X.shape[1] * 3 // 2  # a third of the positions are zero
            places = np.sort(rng.choice(n, X.shape[1], replace=False))
            X = torch.zeros(len(X), n, X.shape[2]).index_copy_(1, torch.from_numpy(places), X)
            for step in steps(X, weights, len(algebra.values)):
                text += f"log {len(algebra.values)} {len(X)} {' '.join(map(proof.words, X))}\n"
                expected += [row for x in step.X for row in ("log", *proof.show(x))]
                X, iterations = step.X, iterations + 1
        assert ask(checker, "--circuit", text) == expected
    assert iterations > 30
