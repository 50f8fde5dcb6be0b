"""The ONNX file of a model beside the model itself, on lengths that the export never saw.

    python benchmarks/onnx_equal.py > results/onnx.md

Models are exported with each layer, and onnxruntime evaluates 1,000 expressions of depths 0 to 12:
values and iterations are compared with the model's, and values with the oracle's. `--count N`
chooses how many. Needs the extra `onnx`. Exit status 1 if anything differs.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime  # pyright: ignore[reportMissingImports]
from reports import heading, log, parser

from exactformer.api import load
from exactformer.domains.catalog import CATALOG, arithmetic_plain, boolean_plain
from exactformer.domains.definition import load_algebra
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw
from exactformer.export.onnx import export_onnx, run_onnx
from exactformer.paper.files import table

DEPTHS = range(13)
AT_ONCE = 10  # expressions of one batch: the other layers have each value in each position at once
PLAIN = Path(__file__).parent.parent / "examples" / "plain"

MODELS = {  # each with its weights, its domain if that is another one, and its iterations
    **{f"{task}/7520": (f"{task}/7520", None, "depth") for task in CATALOG},
    **{f"{task}/fitted": (f"{task}/fitted", None, "depth") for task in ("boolean", "listops")},
    **{f"{task}/7520, log": (f"{task}/7520", None, "log") for task in CATALOG},
    "boolean/7520, boolean-plain": ("boolean/7520", boolean_plain(), "log"),
    "arithmetic/7520, arithmetic-plain": ("arithmetic/7520", arithmetic_plain(), "log"),
    "examples/plain/modulo7.toml": ("constructed", load_algebra(PLAIN / "modulo7.toml"), "log"),
}


def main() -> int:
    arguments = parser(__doc__)
    arguments.add_argument("--count", type=int, default=1000)
    count = arguments.parse_args().count
    rows, wrong = [], 0
    for name, (weights, domain, by) in MODELS.items():
        model = load(weights, domain)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            export_onnx(model, path, by)
            size = path.stat().st_size
            session = onnxruntime.InferenceSession(str(path))
        right = tokens = asked = 0
        for depth in DEPTHS:
            each = count // len(DEPTHS) + (depth < count % len(DEPTHS))
            expressions = draw(model.algebra, depth, each, np.random.default_rng(depth))
            outcomes = model.outcomes(expressions, by)
            found = []
            for i in range(0, len(expressions), AT_ONCE):
                found += zip(*run_onnx(session, expressions[i : i + AT_ONCE]), strict=True)
            for expression, outcome, pair in zip(expressions, outcomes, found, strict=True):
                right += tuple(outcome) == pair and pair[0] == evaluate(expression)
                tokens = max(tokens, len(expression))
                asked += 1
        wrong += asked - right
        rows.append([name, f"{right:,} of {asked:,}", f"{tokens:,}", f"{size:,}"])
        log(" | ".join(rows[-1]))
    print(heading("ONNX beside the model"))
    print(f"Depths 0 to {DEPTHS[-1]}; onnxruntime {onnxruntime.__version__}, on the CPU.\n")
    header = ["weights", "values and iterations equal", "most tokens", "bytes of the file"]
    print("\n".join(table(header, rows)))
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
