"""The server behind the page refuses bad requests, and none of them does any harm."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exactformer.domains.catalog import CATALOG
from exactformer.explorer import answers
from exactformer.explorer.choices import Choices
from tests.explorer import raw, refused, trace


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


@pytest.mark.parametrize("iterations", [1, None, ["log"], "", "Log", "l" * 5_000])
def test_wrong_iterations(client, iterations):
    message = refused(trace(client, "(1&0)", iterations=iterations), 400)
    assert message.startswith("iterations: expected ")
    assert len(message) < 200


def test_the_logarithm_is_for_weights_with_a_proof(client):
    answer = trace(client, "(1&0)", weights="random/3", iterations="log")
    assert "need weights that are certified exact" in refused(answer, 400)


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


def test_so_are_values_limited_that_are_tried(monkeypatch):
    monkeypatch.setattr(answers, "MOST_TRIED", 12 * 2**2 - 1)
    subject = Choices().subject("boolean", "constructed")
    assert answers.trace(subject, "((1|0)&(~0))")["value"] == "1"
    with pytest.raises(answers.TooLarge, match="2 values would be tried in each of 12 positions"):
        answers.trace(subject, "((1|0)&(~0))", "log")


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
