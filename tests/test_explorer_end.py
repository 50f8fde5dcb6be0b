"""The page's server ends soon after it is told to, and leaves nobody behind."""

import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest

DEEP = "(" * 300 + "1" + "&0)" * 300


def ask(address: str, number: int) -> None:
    """Something that takes a while: a trace of many iterations, or a certificate."""
    try:
        if number % 2:
            asked = {"algebra": "listops", "weights": "constructed"}
            httpx.get(f"{address}api/weights", params=asked, timeout=60)
        else:
            asked = {"algebra": "boolean", "weights": "constructed", "expression": DEEP}
            httpx.post(f"{address}api/trace", json=asked, timeout=60)
    except httpx.HTTPError:
        pass  # the server has gone


def children(process: int) -> list[Path]:
    threads = Path(f"/proc/{process}/task").glob("*/children")
    return [Path("/proc", child) for thread in threads for child in thread.read_text().split()]


def gone(path: Path) -> bool:
    return not path.exists() or "State:\tZ" in (path / "status").read_text()


def as_at_a_terminal() -> None:
    """A shell in the background and nohup have signals ignored, also by whom these tests start."""
    for sign in (signal.SIGINT, signal.SIGHUP):
        signal.signal(sign, signal.SIG_DFL)


@pytest.mark.parametrize(
    ("sign", "status"),
    [
        (signal.SIGINT, (0,)),
        (signal.SIGTERM, (-signal.SIGTERM, 128 + signal.SIGTERM)),
        (signal.SIGHUP, (-signal.SIGHUP, 128 + signal.SIGHUP)),
        (signal.SIGKILL, (-signal.SIGKILL,)),
    ],
)
def test_a_busy_server_ends_at_once(sign, status):
    command = [sys.executable, "-m", "exactformer", "explore", "--no-browser", "--port", "0"]
    server = subprocess.Popen(
        [*command, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=as_at_a_terminal,
    )
    assert server.stdout
    assert server.stderr
    with server.stdout as printed, server.stderr as errors:
        address = json.loads(printed.readline())["address"]
        assert "to stop" in errors.readline()
        asking = [threading.Thread(target=ask, args=(address, n), daemon=True) for n in range(20)]
        for thread in asking:
            thread.start()
        deadline = time.monotonic() + 60
        while not (workers := children(server.pid)) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert workers
        server.send_signal(sign)
        if sign != signal.SIGKILL:
            assert errors.readline() == "exactformer: stopping\n"
        assert server.wait(30) in status
        deadline = time.monotonic() + 10
        while not all(map(gone, workers)) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert all(map(gone, workers))
        assert errors.read() == ""
        for thread in asking:
            thread.join()
