"""The server behind the page: what it answers, and that nothing it is sent does any harm."""

import http.client
import json
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event
from urllib.parse import urlsplit

import anyio
import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.exceptions import HTTPException

from exactformer.api import load
from exactformer.domains.catalog import CATALOG
from exactformer.domains.reference import evaluate
from exactformer.domains.syntax import parse
from exactformer.explorer import answers
from exactformer.explorer.choices import Choices
from exactformer.explorer.page import page
from exactformer.explorer.server import AT_ONCE, MOST_WAITING, Workers
from tests.cases import CASES
from tests.explorer import SECONDS, serving


@pytest.fixture(scope="module")
def address():
    with serving() as address:
        yield address


@pytest.fixture(scope="module")
def client(address):
    with httpx.Client(base_url=address, timeout=SECONDS) as client:
        yield client


def trace(client, expression, algebra="boolean", weights="constructed") -> httpx.Response:
    asked = {"algebra": algebra, "weights": weights, "expression": expression}
    return client.post("/api/trace", json=asked)


def refused(response: httpx.Response, *statuses: int) -> str:
    """The message of an error, which is JSON and neither empty nor a traceback."""
    assert response.status_code in statuses, response.text
    assert response.headers["content-type"] == "application/json"
    message = response.json()["error"]
    assert message
    assert "Traceback" not in message
    return message


def raw(address, path, method="GET", headers=(), body=None) -> tuple[int, bytes]:
    """A request with its path as given: a client that tidies paths would hide the tricks."""
    where = urlsplit(address)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=SECONDS)
    connection.putrequest(method, path, skip_host="Host" in dict(headers))
    for name, value in headers:
        connection.putheader(name, value)
    connection.endheaders(body)
    response = connection.getresponse()
    status, content = response.status, response.read()
    connection.close()
    return status, content


# What it answers


def test_the_page(client):
    response = client.get("/")
    assert response.status_code == 200
    assert response.text == page()
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert response.headers["x-content-type-options"] == "nosniff"


def test_models(client):
    offered = client.get("/api/models").json()
    assert offered["first"] == {"algebra": "boolean", "weights": "constructed"}
    for algebra in offered["algebras"]:
        expected = CATALOG[algebra["name"]]()
        assert algebra["vocabulary"] == list(expected.vocabulary)
        assert {"constructed", "constructed/table", "7520", "random/0"} <= set(algebra["weights"])
        assert trace(client, algebra["example"], algebra["name"]).status_code == 200


@pytest.mark.parametrize("case", CASES[::5], ids=lambda case: case.text)
def test_trace_is_what_the_command_prints(client, case):
    answer = trace(client, case.text, case.domain, "7520").json()
    printed = load(f"{case.domain}/7520").trace(case.text).to_dict()
    assert json.loads(json.dumps(printed)).items() <= answer.items()
    assert answer["value"] == answer["expected"] == case.value
    assert answer["depth"] == case.depth
    if answer["steps"]:
        assert answer["tokens"] == answer["steps"][0]["tokens"]


def test_weights(client):
    asked = {"algebra": "boolean", "weights": "7520"}
    answer = client.get("/api/weights", params=asked).json()
    certificate = load("boolean/7520").certify().to_dict()
    del certificate["algebra"]
    assert answer["certificate"] == json.loads(json.dumps(certificate))
    assert answer["parameters"] == 280
    assert answer["arrays"]["G_PE"]["numbers"] == [1, -1, 0, 0, 0, 0, 0]
    assert answer["arrays"]["W_Q"]["shape"] == answer["arrays"]["W_Q_logits"]["shape"] == [7, 4]
    for logits, bit in zip(
        answer["arrays"]["W_K_logits"]["numbers"], answer["arrays"]["W_K"]["numbers"], strict=True
    ):
        assert [int(logit > 0) for logit in logits] == bit


@pytest.mark.parametrize("domain", CATALOG)
def test_random_weights_fail(client, domain):
    asked = {"algebra": domain, "weights": "random/7"}
    first, again = (client.get("/api/weights", params=asked).json() for _ in range(2))
    assert first == again
    other = client.get("/api/weights", params=asked | {"weights": "random/8"}).json()
    assert first["arrays"] != other["arrays"]
    example = first["certificate"]["counterexample"]
    assert first["certificate"]["verdict"] == "inexact"
    answer = trace(client, example["expression"], domain, "random/7").json()
    assert answer["value"] == example["found"] != answer["expected"] == example["expected"]


def test_sample(client):
    asked = {"algebra": "arithmetic", "depth": "4", "seed": "3"}
    first, again = (client.get("/api/sample", params=asked).json() for _ in range(2))
    assert first == again
    expression = parse(CATALOG["arithmetic"](), first["expression"])
    assert expression.depth == 4
    assert first["value"] == evaluate(expression)
    assert "depth" in refused(client.get("/api/sample", params=asked | {"depth": "2000"}), 400)
    assert "too many to draw" in refused(
        client.get("/api/sample", params=asked | {"depth": "900"}), 413
    )


def test_a_malformed_expression_is_located(client):
    answer = trace(client, "(1&0&1)")
    assert refused(answer, 400).startswith("line 1, column 5: expected ')', found '&'")
    assert answer.json()["offset"] == 4
    assert answer.json()["excerpt"] == "  (1&0&1)\n      ^"


# What it refuses


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"(1&0)"',
        b"NaN",
        b"\xff\xfe",
        b"{}",
        b'{"algebra": "boolean", "weights": "constructed"}',
        b'{"algebra": "boolean", "weights": "constructed", "expression": 1}',
        b'{"algebra": "boolean", "weights": "constructed", "expression": null}',
        b'{"algebra": "boolean", "weights": "constructed", "expression": ["(1&0)"]}',
        b'{"algebra": "boolean", "weights": {"": ""}, "expression": "1"}',
        b'{"algebra": [1], "weights": "constructed", "expression": "1"}',
        b'{"algebra": "bolean", "weights": "constructed", "expression": "1"}',
        b'{"algebra": "boolean", "weights": "random/-1", "expression": "1"}',
        b'{"algebra": "boolean", "weights": "random/1e9", "expression": "1"}',
        b'{"algebra": "boolean", "weights": "constructed", "expression": "1", "more": 1}',
        b'{"algebra": "boolean", "weights": "constructed", "expression": "\\ud800"}',
        b'{"algebra": "boolean", "weights": "constructed", "expression": "\\u0000"}',
        b'{"algebra": "\\udfff", "weights": "constructed", "expression": "1"}',
        b"[" * 50_000,
    ],
    ids=lambda body: body[:70],
)
def test_wrong_types(client, body):
    headers = {"content-type": "application/json"}
    refused(client.post("/api/trace", content=body, headers=headers), 400)
    assert trace(client, "(1&0)").json()["value"] == "0"


def test_other_kinds_of_body(client):
    for headers in ({}, {"content-type": "text/plain"}, {"content-type": "text/html"}):
        message = refused(client.post("/api/trace", content=b"{}", headers=headers), 415)
        assert "application/json" in message


@pytest.mark.parametrize(
    "query",
    [
        "",
        "algebra=boolean",
        "algebra=boolean&weights=constructed&weights=7520",
        "algebra=boolean&weights=constructed&more=1",
        "algebra=boolean&weights=9999",
        "algebra=listops/..&weights=constructed",
    ],
)
def test_wrong_questions(client, query):
    refused(client.get(f"/api/weights?{query}"), 400)


@pytest.mark.parametrize("depth", ["", "-1", "two", "1e3", "٣", "9" * 5000, "0x1"])
def test_wrong_numbers(client, depth):
    asked = {"algebra": "boolean", "depth": depth, "seed": "0"}
    assert "depth" in refused(client.get("/api/sample", params=asked), 400)


def test_too_large(client):
    assert "bytes" in refused(trace(client, "1" * 10_000_000), 413)
    assert "characters" in refused(trace(client, "(" * 30_000), 413)
    balanced = "1"
    for _ in range(10):
        balanced = f"({balanced}|{balanced})"
    message = refused(trace(client, balanced), 413)
    assert "4,093 tokens, too many to draw: the page takes 2,000" in message
    comb = "(" * 499 + "1" + "&1)" * 499  # few tokens, many iterations
    assert "too large to draw" in refused(trace(client, comb), 413)
    thousand = "(" * 250 + "1" + "&1)" * 250
    assert trace(client, thousand).json()["value"] == "1"


def test_a_trace_has_a_time_limit(monkeypatch):
    monkeypatch.setattr(answers, "MOST_SECONDS", 0)
    subject = Choices().subject("boolean", "constructed")
    with pytest.raises(answers.TooLarge, match="after 1 iterations"):
        answers.trace(subject, "((1|0)&(~0))")


TRICKS = [
    "/..",
    "/../../../../etc/passwd",
    "/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
    "/..%2f..%2f..%2fetc/passwd",
    "/..\\..\\etc\\passwd",
    "//etc/passwd",
    "/static/../server.py",
    "/static/main.js",
    "/index.html",
    "/server.py",
    "/%00",
    "/favicon.ico",
    "/api/",
    "/api/trace/..",
    "/api/weights/../../cli.py",
    "/" + "a" * 5_000,
]


@pytest.mark.parametrize("path", TRICKS, ids=lambda path: path[:40])
def test_path_tricks(address, path):
    status, content = raw(address, path)
    assert status == 404
    assert json.loads(content) == {"error": "there is nothing here"}


@pytest.mark.parametrize(
    "name",
    [
        "../boolean/7520",
        "../../../pyproject.toml",
        "/etc/passwd",
        "file//etc/passwd",
        "file/../../x",
        "boolean/7520",
        "constructed/../7520",
        "fitted",
        "7520.safetensors",
        "7520\0",
        "*",
        "",
    ],
)
def test_weights_are_no_paths(client, name):
    assert "expected as weights" in refused(trace(client, "1", weights=name), 400)
    asked = {"algebra": "boolean", "weights": name}
    assert "expected as weights" in refused(client.get("/api/weights", params=asked), 400)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "POST"])
def test_other_methods(client, method):
    assert "not allowed" in refused(client.request(method, "/api/models"), 405)
    if method != "POST":
        assert "not allowed" in refused(client.request(method, "/api/trace"), 405)


@pytest.mark.parametrize(
    "markup",
    [
        "<script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
        "</script><script>alert(1)</script>",
        "{{script}}",
        "__import__('os').system('true')",
        "'; DROP TABLE weights; --",
        "${7*7}",
    ],
)
def test_markup_and_code_are_only_text(client, markup):
    for algebra in CATALOG:
        answer = trace(client, markup, algebra)
        assert "line 1, column 1: expected" in refused(answer, 400)
        assert answer.headers["x-content-type-options"] == "nosniff"


@settings(max_examples=150)
@given(expression=st.text(max_size=60), weights=st.sampled_from(["constructed", "random/1", "x"]))
def test_any_text_gets_an_answer(client, expression, weights):
    response = trace(client, expression, weights=weights)
    assert response.status_code in (200, 400)
    assert ("error" in response.json()) == (response.status_code == 400)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_another_host_is_refused(address, host):
    """A name that its owner points to this machine: DNS rebinding."""
    for path in ("/", "/api/models"):
        status, content = raw(address, path, headers=[("Host", host)])
        assert status == 421
        assert "expected the host localhost" in json.loads(content)["error"]


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:9", "[::1]:9", "[::1]"])
def test_this_machine_under_its_names(address, host):
    assert raw(address, "/api/models", headers=[("Host", host)])[0] == 200


def test_another_sites_page_is_refused(client, address):
    origin = {"origin": "https://evil.example"}
    assert "another site" in refused(client.get("/api/models", headers=origin), 403)
    assert "another site" in refused(client.get("/api/models", headers={"origin": "null"}), 403)
    assert client.get("/api/models", headers={"origin": address.rstrip("/")}).status_code == 200


# That it stays up


def test_many_at_once(client):
    """Two are computed at a time, some wait, the rest, if any, are told to come back."""
    comb = "(" * 60 + "1" + "&1)" * 60
    with ThreadPoolExecutor(80) as pool:
        responses = list(pool.map(lambda _: trace(client, comb), range(80)))
    answered = [response for response in responses if response.status_code == 200]
    assert len(answered) >= MOST_WAITING
    assert {response.json()["value"] for response in answered} == {"1"}
    for response in responses:
        if response not in answered:
            assert "too many requests" in refused(response, 429)
    assert trace(client, "(1&0)").json()["value"] == "0"


def test_too_many_are_turned_away():
    go_on = Event()

    async def crowd() -> None:
        workers = Workers(AT_ONCE)

        def answer() -> bytes:
            go_on.wait(SECONDS)
            return b"done"

        async with anyio.create_task_group() as tasks:
            for _ in range(MOST_WAITING):
                tasks.start_soon(workers, answer)
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(HTTPException, match="429: too many requests"):
                await workers(answer)
            go_on.set()
        assert await workers(answer) == b"done"

    anyio.run(crowd)


@pytest.mark.parametrize(
    "data",
    [
        b"\0\xff" * 5_000,
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"POST /api/trace HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"POST /api/trace HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: 500\r\n\r\n{",
        b"GET /" + b"a" * 200_000,
    ],
    ids=range(6),
)
def test_broken_connections(address, client, data):
    where = urlsplit(address)
    answer = b""
    connection = socket.create_connection((where.hostname, where.port), timeout=SECONDS)
    with connection, suppress(OSError):  # it may hang up before we are through
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        answer = connection.recv(100)
    assert answer[9:10] in (b"", b"4")
    assert client.get("/api/models").status_code == 200
