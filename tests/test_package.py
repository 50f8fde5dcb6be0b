"""The wheel, installed away from the checkout, is whole; and light commands stay light."""

import json
import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from exactformer.domains.catalog import CATALOG
from tests.in_process import run_here

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = ROOT / "exactformer" / "weights"


def run(*command: str | Path, **options) -> str:
    result = subprocess.run(command, capture_output=True, text=True, **options)
    assert result.returncode == 0, f"{command}\n{result.stdout}{result.stderr}"
    return result.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    target = tmp_path_factory.mktemp("installed")
    run(
        *(sys.executable, "-m", "pip", "--disable-pip-version-check", "install"),
        *("--no-deps", "--no-index", "--target", target, wheel),
    )
    return target


@pytest.fixture
def elsewhere(installed, tmp_path) -> dict:
    """Folder and environment of a process that sees the installed package before the checkout."""
    return {"cwd": tmp_path, "env": os.environ | {"PYTHONPATH": str(installed)}}


def test_the_wheel_has_every_file_of_the_package(wheel):
    files = [path for path in (ROOT / "exactformer").rglob("*") if path.is_file()]
    sources = [path for path in files if path.parent.name != "__pycache__"]
    expected = {path.relative_to(ROOT).as_posix() for path in sources}
    names = ZipFile(wheel).namelist()
    assert {name for name in names if name.startswith("exactformer/")} == expected
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_installed_package_is_the_one_that_runs(installed, elsewhere):
    code = "import exactformer; print(exactformer.__file__)"
    where = run(sys.executable, "-c", code, **elsewhere)
    assert Path(where.strip()).is_relative_to(installed)


def test_both_ways_to_start_it_work(installed, elsewhere):
    for start in ([sys.executable, "-m", "exactformer"], [installed / "bin" / "exactformer"]):
        assert "info" in run(*start, "--help", **elsewhere)
        info = json.loads(run(*start, "info", "boolean", "--json", **elsewhere))
        assert info["parameters"] == 280


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["info", "boolean", "--json"],
        ["eval", "boolean", "(1&0)"],
        ["eval", "listops", "[MAX 1 2 ]", "--syntax", "nangia", "--weights", "7520"],
        ["eval", "arithmetic-plain", "1+2*3"],
        ["eval", "boolean-plain", "~1|0", "--weights", "boolean/7520"],
    ],
    ids=" ".join,
)
def test_what_needs_no_torch_does_not_load_it(arguments):
    assert status_without("torch", "numba", arguments=arguments) == 0


def test_a_file_is_evaluated_without_torch(tmp_path):
    lines = tmp_path / "lines"
    lines.write_text("(1&0)\n1\n")
    assert status_without("torch", arguments=["eval", "boolean", "--file", lines]) == 0


@pytest.mark.parametrize(
    ("domain", "rows"),
    [
        ("boolean", "(1&0)\t0\n1\t1\n"),
        ("boolean", "=\ta\ta\n#\ta\tb\n"),
        ("listops", "2\t[MAX 1 2 ]\n"),
    ],
    ids=["tsv", "bowman", "nangia"],
)
@pytest.mark.parametrize("weights", ["constructed", "7520"])
def test_a_labelled_file_is_scored_without_torch(domain, rows, weights, tmp_path, monkeypatch):
    """Once its weights are known to be certified: which ones a file needs, its operators decide."""
    monkeypatch.setenv("EXACTFORMER_CACHE_DIR", str(tmp_path / "caches"))
    file = tmp_path / "rows"
    file.write_text(rows)
    assert run_here(["score", domain, str(file), "--weights", weights])[0] == 0
    assert status_without("torch", arguments=["score", domain, file, "--weights", weights]) == 0


def test_evaluation_itself_is_imported_without_torch_and_numba():
    names = ", ".join(f"exactformer.evaluation.{name}" for name in ("values", "score", "sharded"))
    assert run(sys.executable, "-c", without("torch", "numba", then=f"import {names}")) == ""


def test_a_typo_costs_no_torch():
    for typo in (["( MAX 1 "], ["1", "--weights", "constructd"]):
        assert status_without("torch", "numba", arguments=["eval", "listops", *typo]) == 2


def status_without(*heavy: str, arguments: list) -> int:
    """The exit status of the command, which must not have loaded these."""
    code = f"""if True:
        import sys
        from exactformer.cli import main
        try:
            status = main() or 0
        except SystemExit as stop:
            status = stop.code
        loaded = {set(heavy)} & set(sys.modules)
        sys.exit(f"loaded {{loaded}}" if loaded else status)
    """
    return subprocess.run([sys.executable, "-c", code, *arguments]).returncode


def without(*names: str, then: str) -> str:
    """A program for Python in which importing these is an error, as if they were not installed."""
    return f"import sys; sys.modules.update(dict.fromkeys({names})); {then}"


@pytest.mark.parametrize("domain", CATALOG)
def test_a_proof_is_verified_without_torch_and_numba(domain, tmp_path):
    proof, weights = (SHIPPED / domain / f"7520.{kind}" for kind in ("proof.json", "safetensors"))
    code = without("torch", "numba", then="from exactformer.cli import main; main()")
    assert run(sys.executable, "-c", code, "verify", proof, weights).startswith("accepted: ")
    damaged = tmp_path / "damaged.json"
    damaged.write_text(proof.read_text().replace('"rows": ', '"rows": 1'))
    command = [sys.executable, "-c", code, "verify", damaged, weights]
    rejected = subprocess.run(command, capture_output=True, text=True)
    assert (rejected.returncode, rejected.stderr) == (1, "")
    assert rejected.stdout.startswith("rejected: ")
    # In Python it needs nothing but numpy and safetensors.
    check = "from pathlib import Path; from exactformer.verify import verify; "
    check += "print(verify(*map(Path, sys.argv[1:])).algebra.name)"
    others = ("torch", "numba", "typer", "rich", "jaxtyping", "scipy", "starlette", "uvicorn")
    printed = run(sys.executable, "-c", without(*others, then=check), proof, weights)
    assert printed == f"{domain}\n"


def test_what_needs_torch_fails_without_it():
    """So that the test above can fail."""
    code = without("torch", "numba", then="import exactformer.certify")
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "ModuleNotFoundError" in result.stderr
