"""Scripts beside the package import only names that exist: they run too seldom to show it."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPTS = sorted(
    file for folder in ("attacks", "benchmarks", "proof") for file in (ROOT / folder).glob("*.py")
)


@pytest.mark.parametrize(
    "script", SCRIPTS, ids=lambda script: f"{script.parent.name}/{script.name}"
)
def test_what_a_script_imports_exists(script: Path) -> None:
    imports = [
        node
        for node in ast.walk(ast.parse(script.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "exactformer"
    ]
    for node in imports:
        module = import_module(str(node.module))
        for name in node.names:
            if not hasattr(module, name.name):
                import_module(f"{node.module}.{name.name}")
