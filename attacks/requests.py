"""Random requests, good and bad, to the explorer's server, over several connections at once.

    python -m attacks.requests --count 2000 --seed 0

The server is started as a user starts it. Each case says which answer is right before it is sent;
in the end the server must still answer, and its log must be empty.
"""

import json
import random
import select
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from typing import Any
from urllib.parse import urlencode

import numpy as np

from attacks.report import Report, run_alone
from exactformer.domains.catalog import CATALOG
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw
from exactformer.domains.syntax import parse
from exactformer.explorer.answers import MOST_CHARACTERS
from exactformer.explorer.server import MOST_BYTES
from tests.explorer import Served, server

CONNECTIONS = 8
ALGEBRAS = {name: make() for name, make in CATALOG.items()}
WEIGHTS = ["constructed", "constructed/table", "7520"]
KEYS = {"algebra", "weights", "expression"}
MARKUP = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{page}}", "${7*7}", "\0"]
PATHS = ["/..", "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/..%2fserver.py", "//etc/passwd"]
PATHS += ["/static/main.js", "/server.py", "/%00", "/api", "/api/", "/api/trace/..", "/favicon.ico"]
HOSTS = ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "evil", ""]
ELSEWHERE = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
]


@dataclass(frozen=True)
class Case:
    """Bytes to send, and the answer that is right: its status, and for 200 what it must hold.

    Status 0 is no answer: the client leaves before there is one. `alone`: on a connection of its
    own, since it does not end where a request ends.
    """

    kind: str
    data: bytes
    status: int
    holds: Callable[[Any], bool] = lambda answer: True
    alone: bool = False


def request(
    method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
) -> bytes:
    lines = {"Host": "localhost", "Content-Length": str(len(body))} | (headers or {})
    head = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in lines.items())]
    return "\r\n".join([*head, "", ""]).encode() + body


def post(body: bytes, **headers: str) -> bytes:
    return request("POST", "/api/trace", body, {"Content-Type": "application/json"} | headers)


# What a request for a trace deserves


def traced(kind: str, body: bytes) -> Case:
    value = value_asked_for(body)
    if value is None:
        return Case(kind, post(body), 400)
    return Case(
        kind, post(body), 200, lambda answer: answer["value"] == answer["expected"] == value
    )


def value_asked_for(body: bytes) -> str | None:
    """The value that a request asks for, by the oracle; None if the body is no request for a
    trace.
    """
    try:
        asked = json.loads(body)
    except ValueError:
        return None
    if not isinstance(asked, dict) or asked.keys() != KEYS:
        return None
    algebra, weights, text = (asked[key] for key in ("algebra", "weights", "expression"))
    if not all(isinstance(value, str) for value in (algebra, weights, text)):
        return None
    if algebra not in ALGEBRAS or weights not in WEIGHTS:
        return None
    try:
        return evaluate(parse(ALGEBRAS[algebra], text))
    except ValueError:
        return None


def expression(rng: random.Random) -> dict[str, str]:
    name = rng.choice(list(ALGEBRAS))
    generator = np.random.default_rng(rng.getrandbits(32))
    text = str(draw(ALGEBRAS[name], rng.randrange(5), 1, generator)[0])
    return {"algebra": name, "weights": rng.choice(WEIGHTS), "expression": text}


def damaged(text: bytes, rng: random.Random, alphabet: bytes) -> bytes:
    """The text with one to three bytes removed, inserted or replaced."""
    for _ in range(rng.randint(1, 3)):
        place = rng.randrange(len(text) + 1)
        with_one = bytes([rng.choice(alphabet)]) if rng.random() < 0.7 else b""
        text = text[:place] + with_one + text[place + rng.randrange(2) :]
    return text


# Cases, by kind


def good_trace(rng: random.Random) -> Case:
    return traced("good traces", json.dumps(expression(rng)).encode())


def good_sample(rng: random.Random) -> Case:
    name, depth = rng.choice(list(ALGEBRAS)), rng.randrange(5)
    asked = {"algebra": name, "depth": depth, "seed": rng.randrange(10**9)}

    def holds(answer: Any) -> bool:
        drawn = parse(ALGEBRAS[name], answer["expression"])
        return drawn.depth == depth and answer["value"] == evaluate(drawn)

    return Case("good samples", request("GET", f"/api/sample?{urlencode(asked)}"), 200, holds)


def good_weights(rng: random.Random) -> Case:
    exact = rng.random() < 0.7
    weights = rng.choice(WEIGHTS) if exact else f"random/{rng.randrange(3)}"
    path = f"/api/weights?{urlencode({'algebra': rng.choice(list(ALGEBRAS)), 'weights': weights})}"
    verdict = "exact" if exact else "inexact"
    return Case(
        "good questions about weights",
        request("GET", path),
        200,
        lambda answer: answer["certificate"]["verdict"] == verdict,
    )


def damaged_expression(rng: random.Random) -> Case:
    asked = expression(rng)
    text = damaged(asked["expression"].encode(), rng, b"()[]01279&|~+*MAXINSED \n")
    return traced("damaged expressions", json.dumps(asked | {"expression": text.decode()}).encode())


def markup(rng: random.Random) -> Case:
    asked = expression(rng)
    asked[rng.choice(sorted(KEYS))] = rng.choice(MARKUP)
    return traced("markup", json.dumps(asked).encode())


def damaged_json(rng: random.Random) -> Case:
    body = json.dumps(expression(rng)).encode()
    return traced("damaged JSON", damaged(body, rng, b'{}[]",:\\\0\xff0nu '))


def wrong_types(rng: random.Random) -> Case:
    asked: dict[str, Any] = dict(expression(rng))
    key = rng.choice(sorted(KEYS))
    asked[key] = rng.choice([None, 1, 1.5, True, [asked[key]], {"": asked[key]}, "nothing offered"])
    if rng.random() < 0.3:
        del asked[rng.choice(sorted(KEYS))]
    return traced("wrong types", json.dumps(asked).encode())


def wrong_question(rng: random.Random) -> Case:
    depth = rng.choice(["-1", "1e3", "", "9" * 30])
    asked = {"algebra": rng.choice(["boolean", "x"]), "depth": depth, "seed": "0"}
    return Case("wrong questions", request("GET", f"/api/sample?{urlencode(asked)}"), 400)


def too_long(rng: random.Random) -> Case:
    if rng.random() < 0.3:
        text = "(" * rng.randint(MOST_CHARACTERS + 1, MOST_BYTES - 1_000)
        body = json.dumps(expression(rng) | {"expression": text}).encode()
    else:
        body = b" " * rng.randint(MOST_BYTES + 1, 3_000_000)
    close = rng.random() < 0.5
    headers = {"Connection": "close"} if close else {}
    return Case("too long", post(body, **headers), 413, alone=close)


def other_type(rng: random.Random) -> Case:
    body = json.dumps(expression(rng)).encode()
    headers = {"Content-Type": rng.choice(["text/plain", "text/html", "", "application/jsonx"])}
    return Case("other types of body", request("POST", "/api/trace", body, headers), 415)


def other_method(rng: random.Random) -> Case:
    method = rng.choice(["PUT", "DELETE", "PATCH", "OPTIONS", "BREW"])
    path = rng.choice(["/", "/api/models", "/api/trace", "/api/weights", "/api/sample"])
    return Case("other methods", request(method, path, b"x" * rng.randrange(100)), 405)


def path_trick(rng: random.Random) -> Case:
    return Case("path tricks", request(rng.choice(["GET", "POST"]), rng.choice(PATHS)), 404)


def other_host(rng: random.Random) -> Case:
    path = rng.choice(["/", "/api/models"])
    headers = {"Host": rng.choice(HOSTS)}
    return Case("other hosts", request("GET", path, headers=headers), 421)


def other_site(rng: random.Random) -> Case:
    headers = rng.choice(ELSEWHERE)
    return Case("other sites", request("GET", "/api/models", headers=headers), 403)


def no_http(rng: random.Random) -> Case:
    noise = b"\0" + rng.randbytes(rng.randrange(2_000)) + b"\r\n\r\n"
    bad = [noise, b"GET / HTTP/1.1\r\nHost : x\r\n\r\n", b"GET /" + b"a" * 100_000]
    return Case("no HTTP", rng.choice(bad), 400, alone=True)


def half_sent(rng: random.Random) -> Case:
    whole = post(json.dumps(expression(rng)).encode())
    return Case("half sent", whole[: rng.randrange(len(whole))], 0, alone=True)


def never_ends(rng: random.Random) -> Case:
    whole = post(json.dumps(expression(rng)).encode())
    return Case("never ending", whole[: rng.randrange(1, len(whole))], 408, alone=True)


OFTEN = [good_trace, good_trace, good_sample, damaged_expression, markup, damaged_json, wrong_types]
OFTEN += [wrong_question, other_type, other_method, path_trick, other_host, other_site, no_http]
OFTEN += [half_sent, too_long]
SELDOM = [good_weights, never_ends]  # the latter takes ten seconds


def cases(count: int, seed: int) -> list[Case]:
    rng = random.Random(seed)
    return [rng.choice(SELDOM if rng.random() < 0.03 else OFTEN)(rng) for _ in range(count)]


# Sending them


class Client:
    """Sends one case after another and keeps its connection where it can."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.kept: socket.socket | None = None

    def fault(self, case: Case) -> str | None:
        """The fault in the server's answer to a case; None if there is none."""
        try:
            if case.alone:
                with self.served.connect() as connection:
                    return self._fault(connection, case)
            return self._fault(self._connection(), case)
        except (OSError, HTTPException) as error:
            self.close()
            return f"expected {case.status}, found no answer: {error!r}"

    def _connection(self) -> socket.socket:
        if self.kept is None or select.select([self.kept], [], [], 0)[0]:  # it was closed as idle
            self.close()
            self.kept = self.served.connect()
        return self.kept

    def _fault(self, connection: socket.socket, case: Case) -> str | None:
        with suppress(ConnectionError):  # it need not hear us out, but must have answered
            connection.sendall(case.data)
        if case.status == 0:
            return None
        with closing(HTTPResponse(connection)) as response:
            response.begin()
            content = response.read()
        if response.status != case.status:
            return f"expected {case.status}, found {response.status}: {content[:300]!r}"
        if response.headers.get_content_type() != "application/json":
            return f"expected JSON, found {response.headers['content-type']}"
        if response.headers["x-content-type-options"] != "nosniff":
            return "expected the headers that keep a page safe"
        answer = json.loads(content)
        if case.status != 200:
            return None if answer["error"] else "expected a message"
        return None if case.holds(answer) else f"a wrong answer: {content[:300]!r}"

    def close(self) -> None:
        if self.kept:
            self.kept.close()
        self.kept = None


def attack(count: int, seed: int) -> Report:
    report = Report("Whatever the explorer's server is sent, it answers rightly and stays up.")
    to_send = cases(count, seed)

    def send(first: int) -> list[str]:
        with closing(Client(served)) as client:
            faults = [(case, client.fault(case)) for case in to_send[first::CONNECTIONS]]
        return [f"{case.kind}: {case.data[:500]!r}: {fault}" for case, fault in faults if fault]

    try:
        with server() as served:
            with ThreadPoolExecutor(CONNECTIONS) as pool:
                for faults in pool.map(send, range(CONNECTIONS)):
                    report.found += faults
            with closing(Client(served)) as client:
                last = client.fault(Case("the end", request("GET", "/api/models"), 200))
            if last:
                report.found.append(f"after all that: {last}")
            if served.log != "interrupt (Ctrl-C) to stop\n":
                report.found.append(f"the log: {served.log[:2_000]}")
    except AssertionError as error:  # it ended badly
        report.found.append(f"the end of the server: {error}")
    for case in to_send:
        report.count(case.kind)
    return report


if __name__ == "__main__":
    run_alone(attack, count=2_000)
