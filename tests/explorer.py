"""The explorer as a user starts it, and a real browser to look at it: Debian's chromium."""

import json
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlencode

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
SECONDS = 60  # for anything at all: machines that test are busy
NO_BROWSER = pytest.mark.skipif(
    CHROMIUM is None,
    reason="the page was not tested in a browser: chromium is missing (apt-get install chromium)",
)


@contextmanager
def serving(*arguments: str) -> Iterator[str]:
    """The address of a server that runs until the end, and then stops without a complaint."""
    command = [sys.executable, "-m", "exactformer", "explore", "--no-browser", "--port", "0"]
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [*command, "--json", *arguments], stdout=subprocess.PIPE, stderr=errors, text=True
        )
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            yield json.loads(line)["address"] if line else ""
        finally:
            process.send_signal(signal.SIGINT)
            status = process.wait(SECONDS)
            process.stdout.close()
        errors.seek(0)
        said = errors.read()
    assert (status, "Traceback" in said) == (0, False), said


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

    def type(self, expression: str) -> None:
        """Type into the field, and wait until what is shown is about it."""
        with self.page.expect_response("**/api/trace"):
            self.page.fill("#expression", expression)
            self.page.press("#expression", "Enter")
        self.page.press("#expression", "Escape")

    def tokens(self, stage: str) -> list[str]:
        """The symbols in one row of the sheet, as far as it is drawn; nothing is an empty place."""
        return self.page.locator(f".stage-{stage} .token").evaluate_all(
            "tokens => tokens.map(token => token.textContent)"
        )
