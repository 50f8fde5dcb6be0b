"""Certified models under every setting that changes what a matrix product gives.

    python -m attacks.settings [--device cuda] [--out results/settings.md]

Each row of the table is a setting of torch or an environment variable, with which a process starts
anew. The column *control* counts the spans that ListOps' closed form gets wrong if its layers are
float32 matrix products of the library, as an ordinary perceptron's are: where it is not zero, the
setting does reach such products on this machine. All other columns count wrong values of certified
models, and must be zero.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from attacks.report import Report

# What each does to torch, as Python, or to the environment.
SETTINGS: dict[str, tuple[str, dict[str, str]]] = {
    "defaults": ("", {}),
    "matmul precision high": ("torch.set_float32_matmul_precision('high')", {}),
    "matmul precision medium": ("torch.set_float32_matmul_precision('medium')", {}),
    "oneDNN matmul bf16": ("torch.backends.mkldnn.matmul.fp32_precision = 'bf16'", {}),
    "oneDNN matmul tf32": ("torch.backends.mkldnn.matmul.fp32_precision = 'tf32'", {}),
    "CUDA matmul tf32, new name": ("torch.backends.cuda.matmul.fp32_precision = 'tf32'", {}),
    "CUDA matmul tf32, old name": ("torch.backends.cuda.matmul.allow_tf32 = True", {}),
    "all backends tf32": ("torch.backends.fp32_precision = 'tf32'", {}),
    "subnormals flushed": ("torch.set_flush_denormal(True)", {}),
    "default dtype float64": ("torch.set_default_dtype(torch.float64)", {}),
    "default dtype bfloat16": ("torch.set_default_dtype(torch.bfloat16)", {}),
    "deterministic algorithms": (
        "torch.use_deterministic_algorithms(True)",
        {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"},
    ),
    "one thread": ("torch.set_num_threads(1)", {}),
    "autocast bfloat16": ("torch.autocast(device, dtype=torch.bfloat16).__enter__()", {}),
    "autocast float16": ("torch.autocast(device, dtype=torch.float16).__enter__()", {}),
    "NVIDIA_TF32_OVERRIDE=1": ("", {"NVIDIA_TF32_OVERRIDE": "1"}),
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1": ("", {"TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1"}),
    "ONEDNN_DEFAULT_FPMATH_MODE=ANY": ("", {"ONEDNN_DEFAULT_FPMATH_MODE": "ANY"}),
    "cuBLAS emulates float32": (
        "",
        {"CUBLAS_EMULATE_SINGLE_PRECISION": "1", "CUBLAS_EMULATION_STRATEGY": "eager"},
    ),
    "cuBLAS emulates float64 with 8 bits": (
        "",
        {
            "CUBLAS_EMULATE_DOUBLE_PRECISION": "1",
            "CUBLAS_EMULATION_STRATEGY": "eager",
            "CUBLAS_FIXEDPOINT_EMULATION_MANTISSA_BIT_COUNT": "8",
        },
    ),
    "MKL in float16 and bfloat16": ("", {"MKL_BLAS_COMPUTE_MODE": "FLOAT_TO_BF16"}),
}

PROBE = """
import sys, json
device, count, seed, setting = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
import torch
exec(setting)
from attacks.settings import wrong_values
print(json.dumps(wrong_values(device, count, seed)))
"""


def wrong_values(device: str, count: int, seed: int) -> dict[str, tuple[int, int]]:
    """Counts of wrong values and of all values by group of models, and of the control, in this
    process.
    """
    import numpy as np
    import torch

    from exactformer.api import Model, construct, load
    from exactformer.domains.catalog import CATALOG, listops
    from exactformer.domains.reference import evaluate
    from exactformer.domains.sampling import draw, enumerate_depth
    from exactformer.model.construct import bags
    from exactformer.weights.named import SHIPPED

    def models() -> Iterator[tuple[str, Model]]:
        for task in CATALOG:
            for path in sorted((SHIPPED / task).glob("[0-9]*.safetensors")):
                yield "learned", load(path)
        for algebra in (make() for make in CATALOG.values()):
            yield "closed", construct(algebra, "closed")
            yield "table", construct(algebra, "table")
            yield "dense", construct(algebra, dense=True)
        for algebra in (CATALOG["boolean"](), CATALOG["listops"]()):
            yield "fitted", construct(algebra, "fitted")
        yield "units", construct(listops(None))

    tally: dict[str, tuple[int, int]] = {}

    def add(group: str, wrong: int, tried: int) -> None:
        before = tally.get(group, (0, 0))
        tally[group] = before[0] + wrong, before[1] + tried

    rng = np.random.default_rng(seed)
    for group, model in models():
        algebra = model.algebra
        assert model.certify().verdict == "exact"
        problems = [e for depth in (2, 4, 6) for e in draw(algebra, depth, count, rng)]
        if algebra.max_fan_in is not None:
            spans = list(enumerate_depth(algebra, 1))
            problems += spans if len(spans) <= count else draw(algebra, 1, count, rng)
        truth = [evaluate(problem) for problem in problems]
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            found = model.to(device).predict(problems, dtype)
            wrong = sum(a != b for a, b in zip(found, truth, strict=True))
            add(group, wrong, len(problems))

    f = construct(listops(), "closed").weights.f.to(device)
    H, outputs = (tensor.to(device) for tensor in bags(listops()))
    Z = f.in_training(H)  # pyright: ignore[reportAttributeAccessIssue]
    add("control", int(((Z > 0) != (outputs > 0)).any(-1).sum()), len(H))
    return tally


def attack(count: int, seed: int, device: str = "cpu") -> Report:
    """`count` problems of each of a few depths for each model, under every setting."""
    report = Report("settings and processors change no value of a certified model")
    for name, row in rows(count, seed, device):
        if isinstance(row, str):
            report.found.append(f"{name}: {row}")
            continue
        for group, (wrong, tried) in row.items():
            if group != "control":
                report.count(f"{name}, values", tried)
                if wrong:
                    report.found.append(f"{name}: {wrong} of {tried} values of {group} are wrong")
    return report


def rows(count: int, seed: int, device: str) -> Iterator[tuple[str, dict | str]]:
    """The counts of `wrong_values` under each setting, or the last line of an error."""
    with ThreadPoolExecutor(max(1, (os.cpu_count() or 1) // 2)) as pool:
        found = pool.map(lambda name: _row(name, count, seed, device), SETTINGS)
        yield from zip(SETTINGS, found, strict=True)


def _row(name: str, count: int, seed: int, device: str) -> dict | str:
    code, environment = SETTINGS[name]
    arguments = [sys.executable, "-W", "ignore", "-c", PROBE, device, str(count), str(seed), code]
    environment = {"OMP_NUM_THREADS": "2"} | os.environ | environment
    done = subprocess.run(arguments, capture_output=True, text=True, env=environment)
    return done.stderr.strip().splitlines()[-1] if done.returncode else json.loads(done.stdout)


def table(count: int, seed: int, devices: list[str]) -> str:
    """A page with a row for each device and setting."""
    import torch

    lines = ["# Certified models under settings of torch and the environment", ""]
    command = f"python -m attacks.settings --device {' '.join(devices)} --count {count}"
    lines += [f"`{command} --seed {seed}`", "", *(__doc__ or "").split("\n\n")[2].splitlines(), ""]
    matrix_units = [flag for flag in ("amx_bf16", "amx_tile", "avx512_bf16") if flag in _flags()]
    lines.append(
        f"torch {torch.__version__}; matrix units of the CPU: {', '.join(matrix_units) or 'none'}."
    )
    if "cuda" in devices:
        lines.append(f"GPU: {torch.cuda.get_device_name()}.")
    heading: list[str] = []
    for device in devices:
        for name, row in rows(count, seed, device):
            if isinstance(row, str):
                lines.append(f"| {device} | {name} | {row} |")
                continue
            if not heading:
                heading = list(row)
                lines += ["", f"| device | setting | {' | '.join(heading)} |"]
                lines.append(f"| --- | --- |{' ---: |' * len(heading)}")
            cells = [f"{wrong} of {tried}" for wrong, tried in (row[group] for group in heading)]
            lines.append(f"| {device} | {name} | {' | '.join(cells)} |")
            print(lines[-1], file=sys.stderr)
    return "\n".join(lines) + "\n"


def _flags() -> str:
    path = Path("/proc/cpuinfo")
    return path.read_text() if path.exists() else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", nargs="+", default=["cpu"], choices=["cpu", "cuda"])
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    page = table(arguments.count, arguments.seed, arguments.device)
    if arguments.out:
        arguments.out.write_text(page)
    print(page)


if __name__ == "__main__":
    main()
