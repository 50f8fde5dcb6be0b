"""A full temporary folder, in which values of a file are kept, is named."""

import os
import resource
import subprocess
import sys

import pytest

RUN = """
from exactformer.domains.formats import blocks
blocks.KEPT_IN_MEMORY = 10
from exactformer.cli import main
main()
"""


@pytest.mark.parametrize("lines", [600, 100_000], ids=["at the end", "at once"])
def test_a_full_temporary_folder_is_named(tmp_path, lines):
    """A limit on the size of files fails as a full disk does, with another reason."""
    file, folder = tmp_path / "lines", tmp_path / "temporary"
    file.write_text("(1&0)\n" * lines)
    folder.mkdir()
    result = subprocess.run(
        [sys.executable, "-c", RUN, "eval", "boolean", "--file", file],
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500)),
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(folder)},
    )
    assert (result.returncode, result.stdout) == (2, "")
    told = f"{folder} (TMPDIR), where values are kept until all are known: File too large"
    assert result.stderr.endswith(
        f"exactformer: {told}\n"
    )  # what is compiled cannot be kept either
