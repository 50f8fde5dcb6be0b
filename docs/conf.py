"""How Sphinx builds the pages: `make docs`."""

import re

project = "exactformer"
copyright = "the authors of exactformer"
html_title = "exactformer"
html_theme = "furo"
extensions = ["myst_parser"]
myst_heading_anchors = 3  # headings can be linked to, as on a page of the repository
exclude_patterns = ["_build"]


def setup(app):
    """Links to results are links to files, which come along, and not to pages."""

    def as_files(app, page: str, source: list[str]) -> None:
        source[0] = re.sub(r"\]\((\.\./[^)]*\.md)\)", r"](path:\1)", source[0])

    app.connect("source-read", as_files)
