"""The server behind the page answers requests, and stays up."""

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event
from typing import Any
from urllib.parse import urlsplit

import anyio
import pytest
from starlette.exceptions import HTTPException

from exactformer.api import load
from exactformer.domains.catalog import BUILT_IN, BUILT_IN_OTHERS, CATALOG, find_domain
from exactformer.domains.reference import evaluate
from exactformer.domains.syntax import parse
from exactformer.explorer.page import page
from exactformer.explorer.server import AT_ONCE, MOST_WAITING, Workers
from tests.cases import CASES
from tests.explorer import SECONDS, refused, trace


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
    assert {algebra["name"] for algebra in offered["algebras"]} == {*BUILT_IN, *BUILT_IN_OTHERS}
    for algebra in offered["algebras"]:
        name, _, plain = algebra["name"].partition("-")
        expected = find_domain(algebra["name"])
        assert algebra["vocabulary"] == list(expected.vocabulary)
        assert {"constructed", "constructed/table"} <= set(algebra["weights"])
        if algebra["name"] in BUILT_IN:
            learned = f"{name}/7520" if plain else "7520"
            assert {learned, "random/0"} <= set(algebra["weights"])
        for kind, text in algebra["examples"].items():
            asked = {"algebra": algebra["name"], "weights": "constructed", kind: text}
            answer = client.post("/api/trace", json=asked)
            assert answer.status_code == 200
            assert answer.json()["value"] == answer.json()["expected"]


def says(answer: dict[str, Any]) -> list[tuple[dict[str, list[Any]], list[str]]]:
    """The rows and events of each step."""
    return [(step["rows"], step["events"]) for step in answer["said"]]


@pytest.mark.parametrize("case", CASES[::5], ids=lambda case: case.text)
def test_trace_is_what_the_command_prints(client, case):
    answer = trace(client, case.text, case.domain, "7520").json()
    traced = load(f"{case.domain}/7520").trace(case.text)
    assert json.loads(json.dumps(traced.to_dict())).items() <= answer.items()
    assert all(f"\n  {event}\n" in str(traced) for _, events in says(answer) for event in events)
    assert answer["value"] == answer["expected"] == case.value
    assert answer["depth"] == case.depth
    if answer["steps"]:
        assert answer["tokens"] == answer["steps"][0]["tokens"]


@pytest.mark.parametrize(
    ("domain", "text", "weights"),
    [
        ("boolean", "((1|(~(1&0)))&(~0))", "boolean/7520"),
        ("listops", "( MAX ( MIN 8 3 ) ( SM 4 7 6 ) )", "listops/7520"),
        ("boolean-plain", "not ( True ) and ( True )", "boolean/7520"),
        ("arithmetic-plain", "1+2*3+4*(5+6)*7", "constructed"),
    ],
)
def test_spans_are_what_the_command_prints(client, domain, text, weights):
    offered = weights.removeprefix(f"{domain}/")  # its own have no folder on the page
    answer = trace(client, text, domain, offered, iterations="log").json()
    traced = load(weights, BUILT_IN[domain]()).trace(text, "log")
    assert json.loads(json.dumps(traced.to_dict())).items() <= answer.items()
    assert says(answer) == [(step.rows(), [*step.events(traced.domain)]) for step in traced.steps]
    assert answer["steps"][0]["spans"]
    assert answer["value"] == answer["expected"]
    assert answer["iterations"] == "log"


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


def test_random_levels_are_seen_to_fail(client):
    asked = {"algebra": "boolean-plain", "weights": "random/3"}
    example = client.get("/api/weights", params=asked).json()["certificate"]["counterexample"]
    answer = trace(client, example["expression"], **asked).json()
    assert answer["value"] == example["found"] != answer["expected"]


def test_sample(client):
    asked = {"algebra": "arithmetic", "depth": "4", "seed": "3"}
    first, again = (client.get("/api/sample", params=asked).json() for _ in range(2))
    assert first == again
    expression = parse(CATALOG["arithmetic"](), first["expression"])
    assert expression.depth == 4
    assert first["value"] == evaluate(expression)
    plain = client.get("/api/sample", params=asked | {"algebra": "arithmetic-plain"}).json()
    assert parse(BUILT_IN["arithmetic-plain"](), plain["expression"]).depth == 4
    assert "depth" in refused(client.get("/api/sample", params=asked | {"depth": "2000"}), 400)
    assert "too many to draw" in refused(
        client.get("/api/sample", params=asked | {"depth": "900"}), 413
    )


@pytest.mark.parametrize(
    ("domain", "by", "size"), [("compare", "length", 9), ("folds", "depth", 4)]
)
def test_a_sample_of_a_machine(client, domain, by, size):
    asked = {"algebra": domain, by: size, "seed": 3}
    drawn = client.get("/api/sample", params=asked).json()
    answer = trace(client, drawn["expression"], domain, "constructed").json()
    assert answer["value"] == answer["expected"] == drawn["value"]
    other = {"depth": "length", "length": "depth"}[by]
    wrong = client.get("/api/sample", params={"algebra": domain, other: size, "seed": 3})
    assert f"drawn by their {by}" in refused(wrong, 400)
    most = client.get("/api/sample", params=asked | {by: 1_000})
    assert most.status_code == 200 if by == "length" else "too many to draw" in refused(most, 413)
    programs = client.get("/api/sample", params={"algebra": domain, "statements": 2, "seed": 3})
    assert "expected an algebra" in refused(programs, 400)


def test_a_machine_has_no_random_weights(client):
    found = refused(trace(client, "0110", "parity", "random/3"), 400)
    assert found == (
        "expected as weights for parity one of constructed, constructed/table, or 7520; "
        "found 'random/3'"
    )


def test_a_malformed_expression_is_located(client):
    answer = trace(client, "(1&0&1)")
    assert refused(answer, 400).startswith("line 1, column 5: expected ')', found '&'")
    assert answer.json()["offset"] == 4
    assert answer.json()["excerpt"] == "  (1&0&1)\n      ^"
    answer = trace(client, "1 and or 0", "boolean-plain")
    assert "| has no operand before it" in refused(answer, 400)
    assert answer.json()["excerpt"] == "  1 and or 0\n        ^"


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

        def answer() -> str:
            go_on.wait(SECONDS)
            return "done"

        async with anyio.create_task_group() as tasks:
            for _ in range(MOST_WAITING):
                tasks.start_soon(workers, answer)
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(HTTPException, match="429: too many requests"):
                await workers(answer)
            go_on.set()
        assert (await workers(answer)).body == b'"done"'

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
