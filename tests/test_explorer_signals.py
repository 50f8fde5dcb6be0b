"""The page's server and signals: at its start, without a terminal, while somebody connects."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager

import httpx
import pytest

from exactformer.explorer.connections import Server

EXPLORE = ["explore", "--no-browser", "--port", "0", "--json"]
SECONDS = 30  # for anything at all


def test_somebody_who_connects_at_the_last_moment_is_no_error():
    """asyncio's `sock_accept` is cancelled while its callback waits for its turn."""
    complaints = []

    async def app(scope, receive, send) -> None: ...

    async def end_while_somebody_connects(listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: complaints.append(context))
        server = Server(app, {}, stopping=lambda: None)
        server.config.load()
        server.lifespan = server.config.lifespan_class(server.config)
        await server.startup([listening])
        await asyncio.sleep(0.01)  # it waits for connections now
        with socket.create_connection(listening.getsockname(), timeout=SECONDS):
            await asyncio.sleep(0)  # the loop hears of it after this task has its turn
            await server.shutdown([listening])

    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        asyncio.run(end_while_somebody_connects(listening))
    assert complaints == []


SWALLOWS = """
import os, signal, sys, time

class Swallow:
    def find_spec(self, name, *more):
        if name == "torch":
            sys.meta_path.remove(self)
            try:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(1)
            except KeyboardInterrupt:
                pass

sys.meta_path.insert(0, Swallow())
from exactformer.cli import main
main()
"""


def test_an_interrupt_is_heard_while_torch_is_imported():
    """Torch's import now and then swallows the KeyboardInterrupt (seen in one of 40 attempts)."""
    command = [sys.executable, "-c", SWALLOWS, *EXPLORE]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert (ended.stdout, ended.stderr) == ("", "exactformer: interrupted\n")
    assert ended.returncode == 130


@contextmanager
def started(*before: str, stderr: int) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [*before, sys.executable, "-m", "exactformer", *EXPLORE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True) as server:
        try:
            assert server.stdout
            yield server, json.loads(server.stdout.readline())["address"]
        finally:
            server.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_terminal_that_has_gone_is_no_error(number):
    """The word that it stops cannot be written then."""
    reads, writes = socket.socketpair()
    with started(stderr=writes.fileno()) as (server, address):
        writes.close()
        assert httpx.get(address, timeout=SECONDS).status_code == 200  # all is said by now
        assert reads.recv(100) == b"interrupt (Ctrl-C) to stop\n"
        reads.close()  # from here on writing fails
        server.send_signal(number)
        expected = (0,) if number == signal.SIGINT else (-number, 128 + number)
        assert server.wait(SECONDS) in expected


def test_nohup_lets_it_live_on():
    with started("nohup", stderr=subprocess.DEVNULL) as (server, address):
        assert httpx.get(address, timeout=SECONDS).status_code == 200
        server.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            server.wait(3)
        assert httpx.get(address, timeout=SECONDS).status_code == 200
        server.send_signal(signal.SIGINT)
        assert server.wait(SECONDS) == 0
