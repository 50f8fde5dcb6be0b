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
