"""A file of two kilobytes does not take gigabytes."""

import subprocess
import sys

import pytest

FILE = """
name = "many"
notation = "infix"
values = {values}
[[operators]]
symbol = "+"
arity = 2
rule = "sum"
[[operators]]
symbol = "*"
arity = 2
rule = "product"
"""
PEAK = """if True:
    import resource, subprocess, sys
    subprocess.run([sys.executable, "-m", "exactformer", *sys.argv[1:]], check=True)
    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)
"""
MOST_MEGABYTES = 500  # of which torch takes half


@pytest.mark.parametrize("size", [100, 254])
def test_a_line_of_an_algebra_with_many_values(tmp_path, size):
    path = tmp_path / "many.toml"
    path.write_text(FILE.format(values=[str(i) for i in range(size)]))
    command = [sys.executable, "-c", PEAK, "eval", path, "((3*4)+98)"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    value, megabytes = result.stdout.split()
    assert value == str(110 % size)
    assert int(megabytes) < MOST_MEGABYTES
