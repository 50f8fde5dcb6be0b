"""The pictures of the page in the README: python -m tests.screenshots FOLDER"""

import sys
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

from exactformer.explorer.answers import EXAMPLES, PROGRAMS
from tests.explorer import CHROMIUM, chromium, serving


class Picture(NamedTuple):
    name: str
    theme: str
    width: int
    height: int
    view: dict[str, object]


PICTURES = [
    Picture(
        "explore-light",
        "light",
        1360,
        890,
        {"algebra": "arithmetic", "expression": EXAMPLES["arithmetic"]},
    ),
    Picture(
        "explore-dark",
        "dark",
        1360,
        890,
        {"algebra": "listops", "weights": "7520", "expression": EXAMPLES["listops"]},
    ),
    Picture(
        "explore-weights",
        "light",
        1360,
        920,
        {"algebra": "boolean", "weights": "7520", "view": "weights"},
    ),
    Picture(
        "explore-plain",
        "light",
        1360,
        890,
        {"algebra": "arithmetic-plain", "expression": EXAMPLES["arithmetic-plain"], "position": 7},
    ),
    Picture(
        "explore-program",
        "light",
        1360,
        890,
        {"algebra": "boolean", "program": PROGRAMS["boolean"], "iteration": 2},
    ),
    Picture("explore-narrow", "dark", 390, 800, {"algebra": "boolean", "iteration": 2}),
]


def take(folder: Path) -> list[Path]:
    paths = []
    with serving() as address, chromium() as browser:
        for name, theme, width, height, view in PICTURES:
            page = browser.new_page(
                viewport={"width": width, "height": height},
                color_scheme="dark" if theme == "dark" else "light",
                reduced_motion="reduce",
            )
            page.goto(f"{address}#{urlencode(view)}")
            page.wait_for_selector("#verdict.exact")
            page.wait_for_selector("#value", state="attached")
            page.evaluate("document.fonts.ready")
            paths.append(folder / f"{name}.png")
            page.screenshot(path=paths[-1])
            page.close()
    return paths


if __name__ == "__main__":
    if CHROMIUM is None:
        sys.exit("chromium is missing: apt-get install chromium")
    for path in take(Path(sys.argv[1])):
        print(path)
