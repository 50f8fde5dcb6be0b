"""The files of a release agree with the package."""

import re
import tomllib
from pathlib import Path

import exactformer as ef

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOW = (ROOT / ".github" / "workflows" / "ci.yml").read_text()


def test_the_version_is_the_same_everywhere():
    assert f"\nversion: {ef.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert newest is not None
    assert newest[1] == ef.__version__


def test_the_workflow_runs_what_the_project_says_it_supports():
    versions = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    assert re.findall(r'"(3\.\d+)"', WORKFLOW) == versions
    assert PROJECT["requires-python"] == f">={versions[0]}"
    assert "- run: .ci/run\n" in WORKFLOW


def test_lower_bounds_are_the_versions_that_are_tested():
    extras = PROJECT["optional-dependencies"]
    required = PROJECT["dependencies"] + [
        word for name in ("explore", "figures", "tensorboard") for word in extras[name]
    ]
    lines = (ROOT / "constraints-lowest.txt").read_text().splitlines()
    tested = dict(line.split("==") for line in lines if "==" in line)
    bounds = dict(word.split(">=") for word in required)
    torch = bounds.pop("torch")  # the lowest was tested on a GPU, the tests run with a CPU build
    assert float(torch) <= float(tested["torch"].rpartition(".")[0])
    assert {name: tested[name] for name in bounds} == bounds
    assert "- run: make test-lowest\n" in WORKFLOW


def test_the_guide_names_what_is_there():
    """Every name in it that looks like a file, a folder or a table of the package is one."""
    guide = (ROOT / "CONTRIBUTING.md").read_text()
    names = re.findall(r"`((?:[a-z_]+/)*[a-z_]+(?:\.py|\.toml|\.md|/))`", guide)
    assert len(names) > 15
    for name in names:
        assert any((root / name).exists() for root in (ROOT, ROOT / "exactformer")), name
    source = "".join(path.read_text() for path in ROOT.glob("exactformer/**/*.py"))
    source += (ROOT / "attacks" / "__main__.py").read_text()
    source += (ROOT / "exactformer" / "explorer" / "static" / "pictures.js").read_text()
    for table in re.findall(r"`([A-Z_]{4,})`", guide):
        assert re.search(rf"^(const )?{table}\b", source, re.M) or table == "EXACTFORMER_DATA", (
            table
        )


def test_kernels_for_both_versions_of_cuda():
    extras = PROJECT["optional-dependencies"]
    assert (extras["gpu"], extras["gpu12"]) == (["cupy-cuda13x"], ["cupy-cuda12x"])
