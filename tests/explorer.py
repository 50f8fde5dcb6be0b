"""The explorer as a user starts it, and a real browser to look at it: Debian's chromium."""

import http.client
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit

import httpx
import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CHROMIUM = shutil.which("chromium")
QUIET = [  # nothing is loaded but what the page itself asks for
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
REFUSED = re.compile(r"Failed to load resource: .* status of 4\d\d")  # chromium's own words
SECONDS = 60  # for anything at all: machines that test are busy
NO_BROWSER = pytest.mark.skipif(
    CHROMIUM is None,
    reason="the page was not tested in a browser: chromium is missing (apt-get install chromium)",
)


@dataclass
class Served:
    """A server that runs."""

    address: str
    process: subprocess.Popen[str]
    errors: Path

    @property
    def log(self) -> str:
        return self.errors.read_text()

    def connect(self) -> socket.socket:
        where = urlsplit(self.address)
        return socket.create_connection((where.hostname, where.port), timeout=SECONDS)


@contextmanager
def server(
    *arguments: str, limits: Mapping[str, float] | None = None, descriptors: int | None = None
) -> Iterator[Served]:
    """One that is started as a user starts it, and in the end stops without a complaint.

    `limits` are others than those in the modules of the explorer, by MODULE.NAME; `descriptors` is
    how many file descriptors it may have.
    """
    run = f"from tests.explorer import main; main({dict(limits or {})})"
    start = ["-c", run] if limits else ["-m", "exactformer"]
    command = [sys.executable, *start, "explore", "--no-browser", "--port", "0", "--json"]
    if descriptors:
        command = ["sh", "-c", f'ulimit -n {descriptors}; exec "$@"', "sh", *command]
    with tempfile.TemporaryDirectory() as folder:
        errors = Path(folder, "errors")
        with errors.open("w") as file:
            process = subprocess.Popen(
                [*command, *arguments], stdout=subprocess.PIPE, stderr=file, text=True
            )
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            yield Served(json.loads(line)["address"] if line else "", process, errors)
        finally:
            process.send_signal(signal.SIGINT)
            status = process.wait(SECONDS)
            process.stdout.close()
        said = errors.read_text()
    assert (status, "Traceback" in said) == (0, False), said


@contextmanager
def serving(*arguments: str) -> Iterator[str]:
    """The address of such a server."""
    with server(*arguments) as served:
        yield served.address


def trace(
    client: httpx.Client, expression, algebra="boolean", weights="constructed", **more
) -> httpx.Response:
    asked = {"algebra": algebra, "weights": weights, "expression": expression}
    return client.post("/api/trace", json=asked | more)


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


def main(limits: Mapping[str, float]) -> None:
    """The command line, with other limits."""
    from exactformer.cli import main

    for where, number in limits.items():
        module, _, name = where.partition(".")
        setattr(import_module(f"exactformer.explorer.{module}"), name, number)
    main()


@contextmanager
def chromium() -> Iterator["Browser"]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=QUIET, chromium_sandbox=False, timeout=1000 * SECONDS
        )
        yield browser
        browser.close()


class Visit:
    """A page and everything that it complained of or asked for."""

    def __init__(self, browser: "Browser", **options) -> None:
        self.page = browser.new_page(viewport={"width": 1400, "height": 900}, **options)
        self.page.set_default_timeout(1000 * SECONDS)
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", self._console)

    def _console(self, message) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def open(self, address: str, **view: object) -> None:
        self.page.goto(f"{address}#{urlencode(view)}")
        self.page.wait_for_selector("#value", state="attached")

    def link(self, *parts: str) -> str:
        """The address, once it holds these parts; it is rewritten when the page rests."""
        self.page.wait_for_function(
            "parts => parts.every(part => location.hash.includes(part))", arg=parts
        )
        return self.page.url

    def text(self, selector: str) -> str:
        return self.page.locator(selector).inner_text()

    def type(self, text: str, enter: str = "Enter") -> None:
        """Type into the field, and wait until what is shown is about it. In a program, Enter alone
        begins a line.
        """
        with self.page.expect_response("**/api/trace"):
            self.page.fill("#expression", text)
            self.page.press("#expression", enter)
        self.page.wait_for_selector("body[aria-busy=false]")  # answered, and drawn
        self.page.press("#expression", "Escape")

    def tokens(self, stage: str) -> list[str]:
        """The symbols in one row of the sheet, as far as it is drawn; nothing is an empty place."""
        return self.page.locator(f".stage-{stage} .token").evaluate_all(
            "tokens => tokens.map(token => token.textContent)"
        )
