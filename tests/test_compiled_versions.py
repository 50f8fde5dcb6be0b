"""Machine code of one version of numba stays where another version is used in between."""

import os
import subprocess
import sys

PROGRAM = """if True:
    import sys
    import numba
    from numba.core import caching
    numba.__version__ = sys.argv[1]
    caching.numba.__version__ = sys.argv[1]
    from exactformer.engine import compiled
    sys.path.insert(0, sys.argv[2])
    import function
    one_more = compiled.compiled(function.one_more)
    assert one_more(1) == 2
    print(sum(one_more.stats.cache_hits.values()))
"""


def test_two_versions_do_not_evict_each_other(tmp_path):
    (tmp_path / "function.py").write_text("def one_more(n):\n    return n + 1\n")
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def hits(version: str) -> int:
        command = [sys.executable, "-c", PROGRAM, version, tmp_path]
        return int(subprocess.check_output(command, env=environment, timeout=120))

    assert [hits(version) for version in ("0.1", "0.2", "0.1", "0.2")] == [0, 0, 1, 1]
