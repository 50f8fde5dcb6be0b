"""Exports without noise."""

import subprocess
import sys


def test_the_export_of_an_iteration_says_nothing_else(tmp_path):
    command = [sys.executable, "-m", "exactformer", "export", "torch", "boolean", "--out"]
    result = subprocess.run([*command, tmp_path / "name"], capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (0, f"{tmp_path / 'name'}\n")
    assert result.stderr == ""
