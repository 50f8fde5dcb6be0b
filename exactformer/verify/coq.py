"""Ask the checker that is extracted from the machine-checked proof (`proof/`) about a weights file.

The checker enumerates the cases itself and shares no line with `verify`; it is built by
`make proof`. It reads whole numbers only: a float is one over a power of two.

It says from which sources of the proof it was built, and any other checker is refused. That is
against mistakes: whoever can put a program in its place can have it say anything.
"""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.algebra import Algebra
from exactformer.domains.capabilities import require_capability
from exactformer.domains.machines import Machine
from exactformer.weights.file import WeightFile
from exactformer.weights.tensors import FEEDFORWARDS, Arrays, feedforward_of

MOST_CASES = 50_000  # spans of depth 1 that the checker lists: seconds
MOST_PRODUCTS = 500_000_000  # of rows of a machine with weights of the feedforward: half a minute

BUILT = Path(__file__).resolve().parents[2] / "proof" / "checker"
# The proof that this version belongs to: a hash of its sources, as proof/Makefile takes it.
PROOF = "b6a0a9bdbc6bbd8be9d9f9f60e3a2157bf3accc9221833866d09136ecb05e0f4"
ANSWERS = re.compile("exact|not exact: .+|not covered: .+")


class NotCovered(ValueError):
    """The proof says nothing about weights of this kind, which may be exact all the same."""


def check_with_kernel(weights_path: Path) -> str:
    """`exact`, or `not exact: ` and the first thing that is wrong. Raises `NotCovered`."""
    (answer,) = check_dumps([dump(WeightFile.read(weights_path))])
    if answer.startswith("not covered: "):
        raise NotCovered(answer.removeprefix("not covered: "))
    return answer


def check_dumps(dumps: Sequence[str]) -> list[str]:
    """The checker's answers, in one run of it: those of `check_with_kernel`, or `not covered: ` and
    the first condition of the theorem that is not met.
    """
    checker = find_kernel()
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, str(number)) for number in range(len(dumps))]
        for path, text in zip(paths, dumps, strict=True):
            path.write_text(text, encoding="utf-8")
        done = subprocess.run([checker, *paths], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        reason = done.stderr.strip() or f"it ended with status {done.returncode}"
        raise RuntimeError(f"{checker}: {reason}")
    answers = done.stdout.splitlines()
    if len(answers) != len(dumps) or not all(map(ANSWERS.fullmatch, answers)):
        raise RuntimeError(
            f"{checker}: expected an answer to each file, found {done.stdout!r:.200}"
        )
    return answers


def find_kernel() -> Path:
    """The built checker, under proof/ or in PATH, if it was built from this version's proof."""
    found = BUILT if BUILT.exists() else shutil.which("exactformer-checker")
    if found is None:
        raise FileNotFoundError(
            f"the checker is not built: expected {BUILT} or exactformer-checker in PATH; "
            f"`make proof` builds it"
        )
    try:
        done = subprocess.run([found, "--proof"], capture_output=True, text=True, check=False)
    except (OSError, UnicodeDecodeError) as error:
        raise RuntimeError(f"{found}: the checker cannot be run: {error}") from None
    if done.returncode or done.stdout != f"{PROOF}\n":
        said = done.stdout.strip() or "a proof that it does not name"
        raise RuntimeError(
            f"{found}: expected a checker that was built from the proof {PROOF}, found one from "
            f"{said:.64}: `make proof` builds it anew"
        )
    return Path(found)


def dump(file: WeightFile) -> str:
    """The domain and the weights as words and whole numbers, matrices column by column. Raises
    `NotCovered` for weights that the checker does not read.
    """
    require_capability("kernel", file.domain, error=NotCovered)
    return "\n".join(DUMPS[file.domain.kind](file.domain, file)) + "\n"


def _algebra(algebra: Algebra, file: WeightFile) -> Iterator[str]:
    arrays = file.arrays
    if feedforward_of(arrays) == "units":
        raise NotCovered("the checker is for perceptrons and tables, found units")
    if "E" in arrays:
        raise NotCovered("the checker is for one-hot rows, found dense vectors")
    if (count := algebra.count_cases(every_order=True)) > MOST_CASES:
        raise NotCovered(f"the checker is for {MOST_CASES} spans at most, found {count}")
    yield f"notation {algebra.notation}"
    yield f"vocabulary {len(algebra.vocabulary)} {' '.join(algebra.vocabulary)}"
    yield f"values {len(algebra.values)}"
    yield f"operators {len(algebra.operators)}"
    for operator in algebra.operators:
        yield str(len(operator.arities))
        for arity in operator.arities:
            cases = product(range(len(algebra.values)), repeat=arity)
            yield f"{arity} {_row([operator(operands) for operands in cases])}"
    yield f"slots {len(_inputs(arrays)) // len(algebra.vocabulary)}"
    yield f"G_PE {_row(arrays['G_PE'])}"
    yield f"G_R {_row(arrays.get('G_R', ()))}"
    yield f"W_Q {_matrix(arrays['W_Q'].T)}"
    yield f"W_K {_matrix(arrays['W_K'].T)}"
    yield from _feedforward(file)


def _machine(machine: Machine, file: WeightFile) -> Iterator[str]:
    arrays = file.arrays
    D = len(machine.vocabulary)
    W = len(_inputs(arrays)) - D
    products = D * W * sum(arrays[name].size for name in FEEDFORWARDS[feedforward_of(arrays)])
    if products > MOST_PRODUCTS:
        raise NotCovered(f"the checker is for {MOST_PRODUCTS} products at most, found {products}")
    yield "machine"
    yield f"vocabulary {D} {' '.join(machine.vocabulary)}"
    yield f"start {machine.start}"
    yield f"transitions {_matrix(_perhaps(machine.next_states))}"
    yield f"answers {_matrix(_perhaps(machine.output_ids))}"
    yield f"mark {'-' if machine.end is None else machine.end}"
    yield f"states {W}"
    yield f"G_K {_row(arrays['G_K'])}"
    yield from _feedforward(file)


DUMPS: dict[str, Callable[[Any, WeightFile], Iterator[str]]] = {  # by kind of domain
    Algebra.kind: _algebra,
    Machine.kind: _machine,
}


def _inputs(arrays: Arrays) -> NDArray:
    """A tensor with a row for each input of the feedforward."""
    return arrays["bags"].T if "bags" in arrays else arrays["W_1"]


def _feedforward(file: WeightFile) -> Iterator[str]:
    arrays = file.arrays
    yield f"feedforward {file.activation or 'table'}"
    if "bags" in arrays:
        for name in FEEDFORWARDS["table"]:
            yield f"{name} {_matrix(arrays[name])}"
    else:
        for layer in "12":
            W, b = arrays[f"W_{layer}"], arrays[f"b_{layer}"]
            scale = max(x.as_integer_ratio()[1] for x in (*W.flat, *b.flat))
            yield f"shift_{layer} {scale.bit_length() - 1}"
            yield f"W_{layer} {_matrix(_over(W.T, scale))}"
            yield f"b_{layer} {_row(_over(b, scale))}"
    yield "end"


def _perhaps(numbers: NDArray[np.int64]) -> NDArray:
    """Numbers as words; a dash where there is none."""
    return np.where(numbers < 0, "-", numbers.astype(str))


def _over(array: NDArray[np.float32], scale: int) -> NDArray:
    """The numerators of floats over a common power of two."""
    ratios = (x.as_integer_ratio() for x in array.flat)
    whole = np.empty(array.size, dtype=object)
    whole[:] = [top * (scale // bottom) for top, bottom in ratios]
    return whole.reshape(array.shape)


def _row(numbers) -> str:
    return " ".join([str(len(numbers)), *map(str, numbers)])


def _matrix(rows: NDArray) -> str:
    return " ".join([str(len(rows)), *map(_row, rows)])
