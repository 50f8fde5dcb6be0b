"""Ask the checker that is extracted from the machine-checked proof (`proof/`) about a weights file.

The checker enumerates the cases itself and shares no line with `verify`; it is built by
`make proof`. It reads whole numbers only: a float is one over a power of two.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.notation import Notation
from exactformer.weightfile import RANK, WeightFile

MOST_CASES = 50_000  # spans of depth 1 that the checker lists: seconds

BUILT = Path(__file__).resolve().parent.parent / "proof" / "checker"


def check_with_kernel(weights_path: Path) -> str:
    """`exact`, or `not exact: ` and the first thing that fails."""
    (answer,) = check_dumps([dump(WeightFile.read(weights_path))])
    return answer


def check_dumps(dumps: Sequence[str]) -> list[str]:
    """The checker's answers, in one run of it."""
    checker = find_kernel()
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, str(number)) for number in range(len(dumps))]
        for path, text in zip(paths, dumps, strict=True):
            path.write_text(text, encoding="utf-8")
        done = subprocess.run([checker, *paths], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        reason = done.stderr.strip() or f"it ended with status {done.returncode}"
        raise RuntimeError(f"{checker}: {reason}")
    return done.stdout.splitlines()


def find_kernel() -> Path:
    """The built checker, under proof/ or in PATH."""
    found = BUILT if BUILT.exists() else shutil.which("exactformer-checker")
    if found is None:
        raise FileNotFoundError(
            f"the checker is not built: expected {BUILT} or exactformer-checker in PATH; "
            f"`make proof` builds it"
        )
    return Path(found)


def dump(file: WeightFile) -> str:
    """The algebra and the weights as words and whole numbers, matrices column by column."""
    if file.algebra.notation is Notation.PLAIN:
        raise ValueError("the checker is for infix and prefix notation, found plain")
    if "U_in" in file.arrays:
        raise ValueError("the checker is for perceptrons and tables, found units")
    if "E" in file.arrays:
        raise ValueError("the checker is for one-hot rows, found dense vectors")
    if (count := file.algebra.count_cases(every_order=True)) > MOST_CASES:
        raise ValueError(f"the checker is for {MOST_CASES} spans at most, found {count}")
    return "\n".join(_lines(file)) + "\n"


def _lines(file: WeightFile) -> Iterator[str]:
    algebra, arrays = file.algebra, file.arrays
    yield f"notation {algebra.notation}"
    yield f"vocabulary {len(algebra.vocabulary)} {' '.join(algebra.vocabulary)}"
    yield f"values {len(algebra.values)}"
    yield f"operators {len(algebra.operators)}"
    for operator in algebra.operators:
        yield str(len(operator.arities))
        for arity in operator.arities:
            cases = product(range(len(algebra.values)), repeat=arity)
            yield f"{arity} {_row([operator(operands) for operands in cases])}"
    first = arrays["bags"].T if "bags" in arrays else arrays["W_1"]
    yield f"slots {len(first) // len(algebra.vocabulary)}"
    yield f"G_PE {_row(arrays['G_PE'])}"
    yield f"G_R {_row(arrays.get(RANK, ()))}"
    yield f"W_Q {_matrix(arrays['W_Q'].T)}"
    yield f"W_K {_matrix(arrays['W_K'].T)}"
    yield f"feedforward {file.activation or 'table'}"
    if "bags" in arrays:
        yield f"bags {_matrix(arrays['bags'])}"
        yield f"outputs {_matrix(arrays['outputs'])}"
    else:
        for layer in "12":
            W, b = arrays[f"W_{layer}"], arrays[f"b_{layer}"]
            scale = max(x.as_integer_ratio()[1] for x in (*W.flat, *b.flat))
            yield f"shift_{layer} {scale.bit_length() - 1}"
            yield f"W_{layer} {_matrix(_over(W.T, scale))}"
            yield f"b_{layer} {_row(_over(b, scale))}"
    yield "end"


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
