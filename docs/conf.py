"""How Sphinx builds the pages: `make docs`."""

project = "exactformer"
copyright = "the authors of exactformer"
html_title = "exactformer"
html_theme = "furo"
extensions = ["myst_parser"]
myst_heading_anchors = 3  # headings can be linked to, as on a page of the repository
exclude_patterns = ["_build"]
