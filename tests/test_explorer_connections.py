"""The server and its clients: slow ones, silent ones, too many of them, and other sites' pages."""

import json
import select
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from http.client import HTTPResponse
from pathlib import Path
from threading import Thread

import httpx
import pytest
import torch

from exactformer.api import Model, construct
from exactformer.domains.catalog import boolean, listops
from exactformer.explorer.connections import Server
from exactformer.model.feedforward import MLP
from tests.explorer import SECONDS, Served, server

QUICK = {
    "connections.REQUEST_SECONDS": 1,
    "connections.IDLE_SECONDS": 1,
    "connections.ANSWER_SECONDS": 1,
    "connections.PARTING_SECONDS": 1,
    "server.BODY_SECONDS": 1,
}
HOST = b"Host: localhost\r\n"
JSON = b"Content-Type: application/json\r\n"
COMB = "(" * 250 + "1" + "&1)" * 250  # a trace of some megabytes
TRACE = {"algebra": "boolean", "weights": "constructed", "expression": "(1&0)"}


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with server() as served:
        yield served


@pytest.fixture(scope="module")
def impatient() -> Iterator[Served]:
    with server(limits=QUICK) as served:
        yield served


def everything(connection: socket.socket) -> bytes:
    """All bytes that the server sends until it hangs up."""
    parts = []
    while part := connection.recv(2**16):
        parts.append(part)
    return b"".join(parts)


def answered(connection: socket.socket) -> int:
    """The status of one answer, which is read to its end."""
    with closing(HTTPResponse(connection)) as response:
        response.begin()
        response.read()
        return response.status


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def still_answers(served: Served) -> None:
    answer = httpx.post(f"{served.address}api/trace", json=TRACE, timeout=SECONDS)
    assert answer.json()["value"] == "0"


# Other sites


@pytest.mark.parametrize("path", ["", "api/models"])
@pytest.mark.parametrize("site", ["cross-site", "same-site", "something-new"])
def test_another_sites_requests_are_refused(served, path, site):
    """An image, a script or a frame: no Origin is sent with these."""
    for mode, dest in [("no-cors", "image"), ("cors", "empty"), ("navigate", "iframe")]:
        headers = {"sec-fetch-site": site, "sec-fetch-mode": mode, "sec-fetch-dest": dest}
        answer = httpx.get(f"{served.address}{path}", headers=headers, timeout=SECONDS)
        assert answer.status_code == 403
        assert "another site" in answer.json()["error"]


@pytest.mark.parametrize("site", ["none", "same-origin", None])
def test_the_pages_own_requests_are_answered(served, site):
    """None: a program that is no browser, or an old one."""
    headers = {"sec-fetch-site": site} if site else {}
    for path in ("", "api/models"):
        answer = httpx.get(f"{served.address}{path}", headers=headers, timeout=SECONDS)
        assert answer.status_code == 200


def test_a_link_on_another_site_opens_the_page_but_no_answer(served):
    headers = {
        "sec-fetch-site": "cross-site",
        "sec-fetch-mode": "navigate",
        "sec-fetch-dest": "document",
    }
    link = httpx.get(served.address, headers=headers, timeout=SECONDS)
    assert (link.status_code, "html" in link.headers["content-type"]) == (200, True)
    answer = httpx.get(f"{served.address}api/models", headers=headers, timeout=SECONDS)
    assert answer.status_code == 403


def test_the_origin_counts_whatever_else_is_said(served):
    headers = {"sec-fetch-site": "same-origin", "origin": "https://evil.example"}
    assert httpx.get(served.address, headers=headers, timeout=SECONDS).status_code == 403


# Slow and silent clients


def test_nothing_waits_until_an_answer_is_confirmed():
    """Without TCP_NODELAY each answer on a kept connection takes 40 ms more."""

    async def app(scope, receive, send) -> None: ...

    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        running = Server(app, {}, stopping=lambda: None)
        thread = Thread(target=running.run, kwargs={"sockets": [listening]})
        thread.start()
        with socket.create_connection(listening.getsockname(), timeout=SECONDS):
            while not running.server_state.connections:
                assert thread.is_alive()
                time.sleep(0.01)
            (connection,) = running.server_state.connections
            accepted = connection.transport.get_extra_info("socket")
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            running.should_exit = True
            thread.join(SECONDS)
    assert not thread.is_alive()


@pytest.mark.parametrize(
    "beginning",
    [b"", b"GET / HT", b"GET / HTTP/1.1\r\n" + HOST + b"X: "],
    ids=["nothing", "line", "headers"],
)
def test_a_request_that_never_ends(impatient, beginning):
    with impatient.connect() as connection:
        connection.sendall(beginning)
        answer = everything(connection)
    assert answer == b"" if not beginning else status(answer) == 408
    if beginning:
        assert "took over 1 s" in json.loads(answer.partition(b"\r\n\r\n")[2])["error"]


@pytest.mark.parametrize(
    ("beginning", "expected"),
    [
        (b"GET / HTTP/1.1\r\n" + HOST, [408]),
        (b"POST /api/trace HTTP/1.1\r\n" + HOST + JSON + b"Content-Length: 50000\r\n\r\n", [408]),
        (b"GET /api/models HTTP/1.1\r\n" + HOST + b"Content-Length: 50000\r\n\r\n", [200]),
    ],
    ids=["headers", "body", "body of an answered request"],
)
def test_a_request_that_comes_in_drops(impatient, beginning, expected):
    """A byte now and then does not keep the connection."""
    answer = b""
    with impatient.connect() as connection:
        connection.sendall(beginning)
        for _ in range(10 * SECONDS):
            connection.send(b"x")
            if select.select([connection], [], [], 0.1)[0]:
                part = connection.recv(2**16)
                if not part:
                    break
                answer += part
        else:
            pytest.fail("the server goes on waiting")
    assert status(answer) in expected


def test_a_connection_that_is_kept_and_not_used(impatient):
    with impatient.connect() as connection:
        connection.sendall(b"GET /api/models HTTP/1.1\r\n" + HOST + b"\r\n")
        assert status(everything(connection)) == 200


def test_a_client_that_does_not_take_its_answer(impatient):
    body = json.dumps(TRACE | {"expression": COMB}).encode()
    head = b"POST /api/trace HTTP/1.1\r\n" + HOST + JSON + b"Content-Length: %d\r\n\r\n"
    descriptors = Path(f"/proc/{impatient.process.pid}/fd")
    with impatient.connect() as connection:
        connection.sendall(head % len(body) + body)
        connection.recv(1)
        held = set(descriptors.iterdir())
        for _ in range(10 * SECONDS):
            if set(descriptors.iterdir()) < held:
                break
            time.sleep(0.1)
        else:
            pytest.fail("the server goes on waiting")
    still_answers(impatient)


def test_a_body_that_breaks_after_the_answer(served):
    """The log must say nothing of it: `server` looks at its end."""
    with served.connect() as connection:
        connection.sendall(
            b"POST /nowhere HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
        )
        assert answered(connection) == 404
        connection.sendall(b"no length\r\n")
        assert everything(connection) == b""


def test_a_body_that_breaks(served):
    with served.connect() as connection:
        connection.sendall(
            b"POST /api/trace HTTP/1.1\r\n" + HOST + JSON + b"Transfer-Encoding: chunked\r\n\r\n"
            b"no length\r\n"
        )
        answer = everything(connection)
    assert status(answer) == 400
    assert "HTTP" in json.loads(answer.partition(b"\r\n\r\n")[2])["error"]


# Too many of them


def test_more_connections_than_there_may_be():
    with server(limits={"connections.MOST_CONNECTIONS": 4}) as served, ExitStack() as stack:
        held = [stack.enter_context(served.connect()) for _ in range(4)]
        for connection in held:
            connection.sendall(b"GET /api/models HTTP/1.1\r\n" + HOST + b"\r\n")
            assert answered(connection) == 200
            connection.sendall(b"GET ")
        with served.connect() as another:
            another.sendall(b"GET /api/models HTTP/1.1\r\n" + HOST + b"\r\n")
            assert select.select([another], [], [], 0.5)[0] == []
            held[0].close()
            assert answered(another) == 200


def test_a_crowd_that_never_ends_a_request(impatient):
    with ExitStack() as stack:
        for _ in range(300):
            stack.enter_context(impatient.connect()).sendall(b"GET / HTTP/1.1\r\n")
        still_answers(impatient)


def test_no_file_descriptor_is_left():
    """The log gets a line, not thousands, and when there are descriptors again all goes on."""
    with server(descriptors=40) as served:
        with ExitStack() as stack:
            first = stack.enter_context(served.connect())
            first.sendall(b"GET /api/models HTTP/1.1\r\n" + HOST + b"\r\n")
            assert answered(first) == 200
            for _ in range(100):
                stack.enter_context(served.connect())
            for _ in range(10 * SECONDS):
                if "accept" in served.log:
                    break
                time.sleep(0.1)
            body = json.dumps(TRACE | {"weights": "7520"}).encode()
            first.sendall(
                b"POST /api/trace HTTP/1.1\r\n"
                + (HOST + JSON + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            )
            assert answered(first) == 503  # it cannot open the file with the weights
            time.sleep(2)  # for the log to fill
            assert served.log.count("\n") == len(["how to stop it", "what is the matter"])
            assert "cannot accept connections: Too many open files" in served.log
        still_answers(served)


# Certificates


def undecided(algebra) -> Model:
    """Right, but at the threshold: a search finds no error, and takes its time."""
    weights = construct(algebra).weights
    assert isinstance(weights.f, MLP)
    f = replace(weights.f, b_2=torch.zeros_like(weights.f.b_2))
    return Model(algebra, replace(weights, f=f))


def test_a_slow_certificate_holds_up_nobody(tmp_path):
    """Neither traces nor other certificates nor the end of the server."""
    undecided(listops()).save(tmp_path / "slow.safetensors")
    slow = {"algebra": "listops", "weights": "file/slow.safetensors"}
    with ThreadPoolExecutor() as pool:
        with server("--weights", str(tmp_path / "slow.safetensors")) as served:

            def weights(asked) -> httpx.Response:
                return httpx.get(f"{served.address}api/weights", params=asked, timeout=SECONDS)

            pending = [pool.submit(weights, slow) for _ in range(4)]
            still_answers(served)
            other = weights({"algebra": "boolean", "weights": "7520"}).json()
            assert other["certificate"]["verdict"] == "exact"
            assert not any(answer.done() for answer in pending)
        for answer in pending:
            assert answer.result().status_code == 503
            assert "was ended" in answer.result().json()["error"]


def test_a_certificate_has_a_time_limit(tmp_path):
    undecided(boolean()).save(tmp_path / "slow.safetensors")
    limits = {"certifier.MOST_SECONDS": 0.05}  # less than it takes to start a process
    with (
        server("--weights", str(tmp_path / "slow.safetensors"), limits=limits) as served,
        httpx.Client(base_url=served.address, timeout=SECONDS) as client,
    ):
        slow = {"algebra": "boolean", "weights": "file/slow.safetensors"}
        for _ in range(2):
            answer = client.get("/api/weights", params=slow).json()
            assert answer["certificate"] == {"verdict": "unfinished", "seconds": 0.05}
            assert answer["arrays"]["b_2"]["numbers"] == [0] * 7


# Too long


def upload(size: int, *, length: bool) -> bytes:
    """A request of which everything is sent before the answer is looked at."""
    how = b"Content-Length: %d" % size if length else b"Transfer-Encoding: chunked"
    body = b"x" * size if length else b"%x\r\n%s\r\n0\r\n\r\n" % (size, b"x" * size)
    head = b"POST /api/trace HTTP/1.1\r\n" + HOST + JSON + b"Connection: close\r\n"
    return head + how + b"\r\n\r\n" + body


@pytest.mark.parametrize("size", [10**5, 10**6, 10**7, 5 * 10**7])
@pytest.mark.parametrize("length", [True, False])
def test_what_is_too_long_gets_an_answer(served, size, length):
    with served.connect() as connection:
        connection.sendall(upload(size, length=length))
        answer = everything(connection)
    assert status(answer) == 413
    assert "expected at most 81,000 bytes" in json.loads(answer.partition(b"\r\n\r\n")[2])["error"]


def test_what_is_too_long_by_other_clients(served):
    address, headers = f"{served.address}api/trace", {"content-type": "application/json"}
    content = b"x" * 10**7
    for more in ({}, {"connection": "close"}):
        answer = httpx.post(address, content=content, headers=headers | more, timeout=SECONDS)
        assert answer.status_code == 413
    with pytest.raises(urllib.error.HTTPError, match="413") as refused:
        urllib.request.urlopen(urllib.request.Request(address, content, headers), timeout=SECONDS)
    refused.value.close()


def test_a_client_that_asks_first_is_told_at_once(served):
    with served.connect() as connection:
        connection.sendall(
            b"POST /api/trace HTTP/1.1\r\n" + HOST + JSON + b"Expect: 100-continue\r\n"
            b"Content-Length: 10000000\r\n\r\n"
        )
        assert answered(connection) == 413


def test_a_client_that_never_stops_sending(impatient):
    """The server hears it out only so long."""
    with impatient.connect() as connection:
        connection.sendall(upload(0, length=False).replace(b"0\r\n\r\n", b"") + b"fffffff\r\n")
        with pytest.raises(OSError, match=r"reset|pipe"):
            send_for_ever(connection)
    still_answers(impatient)


def send_for_ever(connection: socket.socket) -> None:
    for _ in range(10**6):
        connection.sendall(b"x" * 2**16)
