"""Work on a Ray cluster, as a user meets it: two nodes on this machine, one of which is lost."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import exactformer as ef
from exactformer.domains.catalog import listops
from exactformer.domains.formats.nangia import format_nangia
from exactformer.domains.sampling import draw
from exactformer.training.run import CHECKPOINT
from tests.nodes import Nodes, nodes
from tests.runs import COMMAND, exactformer, refused
from tests.test_cli_model import refused as refused_here
from tests.test_pages import commands

needs_ray = pytest.mark.skipif(not find_spec("ray"), reason="`make test-lab` installs Ray")
SMALL_PARTS = "import exactformer.domains.formats.lines as lines; lines.PART = 1 << 14"


@pytest.fixture(scope="module")
def cluster():
    with nodes() as started:
        yield started


def test_without_ray(tmp_path, monkeypatch):
    """It is an extra, and not missed before it is asked for."""
    file = tmp_path / "expressions.txt"
    file.write_text("(1&0)\n")
    command = ("eval", "boolean", "--file", file)
    no_ray = "import sys; sys.modules['ray'] = None"
    assert exactformer(*command, before=no_ray).stdout == "0\n"
    monkeypatch.setitem(sys.modules, "ray", None)
    said = refused_here(*command, "--ray", "auto")
    assert said == "exactformer: a cluster needs Ray: pip install 'exactformer[ray]'"


# What is no cluster


@needs_ray
@pytest.mark.parametrize("address", ["", "here", ":1", "host:", "host:x", "ray://", "host:99999"])
def test_what_is_no_address(address, tmp_path):
    said = refused("sweep", "boolean", "--seeds", "1", "--out", tmp_path / "s", "--ray", address)
    assert said.endswith(f"expected auto, HOST:PORT or ray://HOST:PORT, found {address!r}")


@needs_ray
@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_nobody_answers(scheme):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"{scheme}127.0.0.1:{unused.getsockname()[1]}"
        said = refused("eval", "boolean", "--file", "-", "--ray", address, input="1")
    assert said == f"exactformer: expected a Ray cluster at '{address}': Connection refused"


@needs_ray
def test_somebody_else_answers():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        said = refused("eval", "boolean", "--file", "-", "--ray", address, input="1")
    assert f"exactformer: expected a Ray cluster at '{address}': Failed to connect" in said


@needs_ray
def test_a_node_with_other_versions(cluster):
    other = "import exactformer.host.cluster as c; v = c.versions(); v['torch'] = '1.0'"
    said = refused(
        "eval", "boolean", "--file", "-", "--ray", cluster.address, input="1", before=other
    )
    assert "expected torch 1.0, as here, found 2" in said


@needs_ray
def test_a_node_without_exactformer():
    """What Ray sends it says so: here, to a Python that finds Ray and its needs only."""
    send = (
        "import sys; from ray import cloudpickle; from exactformer.host.cluster import _on_node; "
        "sys.stdout.buffer.write(cloudpickle.dumps(_on_node()))"
    )
    sent = subprocess.run([sys.executable, "-c", send], capture_output=True, check=True).stdout
    found = [find_spec(name) for name in ("ray", "click")]
    folders = [str(Path(str(spec and spec.origin)).parent.parent) for spec in found]
    run = (
        f"import sys; sys.path += {folders}; from ray import cloudpickle; "
        "print(cloudpickle.load(sys.stdin.buffer)({}, b'', b''))"
    )
    alone = subprocess.run([sys.executable, "-I", "-S", "-c", run], input=sent, capture_output=True)
    assert b"expected exactformer there as here: No module named" in alone.stdout, alone.stderr


# Shards


def run_with(cluster: Nodes, program: str) -> str:
    """The standard error of a program that is connected to the cluster."""
    start = "import os, sys\nfrom exactformer.host.cluster import connected\n"
    start += "def say(text): print(text, file=sys.stderr)\n"
    command = [sys.executable, "-c", start + program, cluster.address]
    return subprocess.run(command, capture_output=True, text=True, check=True).stderr


@needs_ray
def test_a_shard_that_ends_every_process(cluster):
    """As one does that takes all memory. It is not tried for ever."""
    program = """
with connected(sys.argv[1]) as cluster:
    try:
        list(cluster.as_they_come(os._exit, [1]))
    except ValueError as error:
        say(error)
"""
    said = run_with(cluster, program)
    assert said.startswith(f"the cluster at {cluster.address} did not finish a shard: ")
    assert said.count("\n") == 1


@needs_ray
def test_few_shards_are_taken_before_they_are_needed(cluster):
    """There may be more than the memory holds. Two CPUs have three each."""
    program = """
taken = lead = 0
def shards():
    global taken
    for taken in range(100):
        yield -taken
with connected(sys.argv[1]) as cluster:
    for number, result in enumerate(cluster.in_order(abs, shards())):
        assert result == number
        lead = max(lead, taken - number)
    say((number, lead))
"""
    number, lead = eval(run_with(cluster, program))
    assert number == 99
    assert 1 < lead <= 6


# Files


@pytest.fixture(scope="module")
def rows(tmp_path_factory) -> Path:
    """A few parts of some lines, one of them wrong."""
    expressions = draw(listops(2, "mean"), 3, 2000, np.random.default_rng(0))
    lines = [f"{ef.oracle(e)}\t{format_nangia(e)}\n" for e in expressions]
    path = tmp_path_factory.mktemp("rows") / "rows.tsv"
    path.write_text("".join([*lines, "1\t[MAX 1 2 ]\n"]))
    assert path.stat().st_size > 4 << 14
    return path


def same(cluster: Nodes, *arguments: str | Path, **options) -> subprocess.CompletedProcess:
    """Exit status and output with and without the cluster."""
    whole = exactformer(*arguments, **options)
    spread = exactformer(*arguments, "--ray", cluster.address, before=SMALL_PARTS, **options)
    assert (spread.returncode, spread.stdout) == (whole.returncode, whole.stdout)
    assert spread.stderr == whole.stderr
    return whole


@needs_ray
def test_score(cluster, rows, tmp_path):
    assert same(cluster, "score", "listops", rows, "--json").returncode == 1
    bad = tmp_path / "rows.tsv"
    bad.write_bytes(rows.read_bytes() + b"nonsense\n" + rows.read_bytes() + b"1\t[MAX 1\n" * 12)
    assert "line 2002, column 9" in same(cluster, "score", "listops", bad).stderr


@needs_ray
def test_eval(cluster, rows, tmp_path):
    weights = tmp_path / "mine.safetensors"
    ef.construct(listops(2, "mean")).save(weights)
    text = "".join(line.partition("\t")[2] + "\n" for line in rows.read_text().splitlines())
    how = ("eval", "listops-2-mean", "--file", "-", "--syntax", "nangia", "--weights", weights)
    assert len(same(cluster, *how, input=text).stdout.splitlines()) == 2001
    assert "line 2002, column" in same(cluster, *how, input=text + "nonsense\n").stderr


@needs_ray
def test_the_page(cluster, tmp_path):
    """The commands of docs/cluster.md, with our cluster for that of the machine."""
    marked = [found for found in commands("docs/cluster.md") if found[0][1:] == ["lab", "ray"]]
    assert len(marked) == 2
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = os.environ | {"RAY_ADDRESS": cluster.address, "PATH": path}
    for _, command, output in marked:
        printed = subprocess.check_output(command, shell=True, cwd=tmp_path, env=env, text=True)
        assert printed.strip() == output.strip()


# Sweeps

SWEEP = ("sweep", "boolean", "--seeds", "0-3", "--block", "1", "--set", "spread=0.1,0.2", "--out")
RECORDS = "*/*/[0-9].json"  # a seed that has one is finished


def bytes_of(folder: Path) -> dict[str, bytes]:
    """Content of all files by name; records without the time that was taken."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            name = path.relative_to(folder).as_posix()
            found[name] = path.read_bytes()
            if path.suffix == ".json" and path.stem.isdecimal():
                record = json.loads(found[name])
                del record["seconds"], record["sha256"]
                found[name] = json.dumps(record).encode()
    return found


@pytest.fixture(scope="module")
def swept(tmp_path_factory) -> Path:
    """On one machine."""
    folder = tmp_path_factory.mktemp("swept") / "here"
    result = exactformer(*SWEEP, folder)
    assert result.returncode == 0, result.stderr
    return folder


@needs_ray
def test_a_sweep_that_was_begun_here_goes_on_there(cluster, swept, tmp_path):
    folder = shutil.copytree(swept, tmp_path / "begun")
    records = sorted(folder.glob(RECORDS))
    for record in records[:3]:
        record.unlink()
        record.with_suffix(".safetensors").unlink()
        (record.parent / CHECKPOINT).write_bytes(b"of a run that was killed")
    before = {path: path.stat().st_mtime_ns for path in records[3:]}
    result = exactformer(*SWEEP, folder, "--ray", cluster.address)
    assert result.returncode == 0, result.stderr
    assert bytes_of(folder) == bytes_of(swept)
    assert {path: path.stat().st_mtime_ns for path in before} == before


@needs_ray
def test_a_sweep_that_is_interrupted_there_goes_on_here(cluster, swept, tmp_path):
    folder = tmp_path / "there"
    command = [*COMMAND, *SWEEP, folder, "--ray", cluster.address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while not list(folder.glob(RECORDS)):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        printed, errors = process.communicate()
    assert (process.returncode, printed) == (130, b"")
    assert errors.splitlines()[-1] == b"interrupted; the same command goes on from here"
    assert b"Traceback" not in errors
    before = {path: path.stat().st_mtime_ns for path in folder.glob(RECORDS)}
    assert 0 < len(before) < 8
    result = exactformer(*SWEEP, folder)
    assert result.returncode == 0, result.stderr
    assert bytes_of(folder) == bytes_of(swept)
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_device_that_is_none(tmp_path):
    for where in ([], ["--ray", "auto"]):
        said = refused_here(*SWEEP, tmp_path / "s", "--device", "gpu", *where)
        assert "'--device': expected cpu or cuda, found 'gpu'; did you mean 'cuda'?" in said


@needs_ray
def test_no_gpu_to_run_on(cluster, tmp_path):
    said = refused(*SWEEP, tmp_path / "s", "--device", "cuda", "--ray", cluster.address)
    assert "expected a cluster with a GPU at" in said


@needs_ray
def test_a_node_is_lost(cluster, swept, tmp_path):
    """In mid-run: every shard finishes, with the same bytes. The last test: one node is left."""
    folder = tmp_path / "there"
    command = [*COMMAND, *SWEEP, folder, "--ray", cluster.address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        cluster.lose_the_second()
        finished = len(list(folder.glob(RECORDS)))
        printed, errors = process.communicate()
    assert process.returncode == 0, errors
    assert finished < 8
    assert bytes_of(folder) == bytes_of(swept)
    assert printed.decode().strip() == (folder / "sweep.md").read_text().strip()
