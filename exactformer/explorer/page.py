"""The page as one file: markup, style, script and, where there is no server, the data.

Everything is inlined, so what the server sends and what `exactformer trace --html` writes is the
same page, and neither loads anything. The Content-Security-Policy names the hashes of the one style
and the one script: a browser runs nothing else, whatever the data says.
"""

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

from exactformer.explorer import answers
from exactformer.explorer.certifier import certificate_of
from exactformer.explorer.choices import Choices
from exactformer.host.atomic import write_atomically
from exactformer.model.iterations import Iterations
from exactformer.trace import palette

STATIC = Path(__file__).parent / "static"
# In this order: each file uses only what those before it define.
SCRIPTS = (
    "elements.js",
    "source.js",
    "address.js",
    "frames.js",
    "spans.js",
    "sheet.js",
    "rows.js",
    "span-rows.js",
    "stages.js",
    "circuit.js",
    "tree.js",
    "details.js",
    "span-details.js",
    "said.js",
    "pictures.js",
    "program.js",
    "wires.js",
    "matrices.js",
    "player.js",
    "theme.js",
    "choices.js",
    "view.js",
    "main.js",
)


def page(data: dict[str, Any] | None = None) -> str:
    """The whole page. `data` holds the answers `models`, `trace` and `weights` of `answers.py`;
    without it the page asks the server that it came from.
    """
    icon = base64.b64encode((STATIC / "icon.svg").read_bytes()).decode()
    parts = {
        "policy": policy(connect="'none'" if data else "'self'"),
        "style": _style(),
        "script": _script(),
        "data": embed(data),
        "icon": f"data:image/svg+xml;base64,{icon}",
    }
    # In one pass, so that a {{name}} within what is inserted stays as it is.
    return re.sub(r"{{(\w+)}}", lambda name: parts[name[1]], (STATIC / "index.html").read_text())


def write_trace(
    path: Path,
    choices: Choices,
    text: str,
    iterations: Iterations = "depth",
    kind: str = "expression",
) -> None:
    """The page with the trace of one text under the weights that were chosen, in one file. `kind`
    is what the text is: one of `answers.TRACED`.
    """
    subject = choices.subject(*choices.first)
    data = {
        "models": answers.models(choices, only=subject),
        "trace": answers.TRACED[kind](subject, text, iterations),
        "weights": answers.weights(subject, certificate_of),
    }
    write_atomically(path, page(data))


def policy(connect: str) -> str:
    """The page's content security policy; `connect` is the source that it may send requests to."""
    return (
        f"default-src 'none'; script-src '{_hash(_script())}'; style-src '{_hash(_style())}'; "
        f"img-src data:; connect-src {connect}; base-uri 'none'; form-action 'none'"
    )


def embed(data: Any) -> str:
    """JSON for a script element: without `<` it cannot end the element or begin another."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def _script() -> str:
    files = [f"// {name}\n\n{(STATIC / name).read_text()}" for name in SCRIPTS]
    return '"use strict";\n\n' + "\n".join(files)


def _style() -> str:
    return f"{colours()}\n{(STATIC / 'style.css').read_text()}"


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def colours() -> str:
    """The figures' colours as CSS variables, each for light and for dark."""
    clusters = {f"cluster-{number}": ink for number, ink in enumerate(palette.CLUSTERS, start=1)}
    inks = {name: (ink, palette.at_night(ink)) for name, ink in (palette.KINDS | clusters).items()}
    inks["empty"] = (palette.KINDS["empty"], palette.Ink("#22262d", "#3b414b", "#7c838f"))
    inks["plain"] = (palette.PLAIN, palette.Ink(palette.NIGHT, "#4a515c", "#e6e8ec"))
    inks["marked"] = (palette.MARKED, palette.Ink("#c9ced6", "#e2e5ea", palette.NIGHT))
    variables = {
        f"{name}-{part}": (day, night)
        for name, pair in inks.items()
        for part, day, night in zip(palette.Ink._fields, *pair, strict=True)
    }
    negative, positive = palette.DIVERGING_ENDS
    variables["negative"] = (negative, palette.mix(negative, "#ffffff", 0.25))
    variables["positive"] = (positive, palette.mix(positive, "#ffffff", 0.4))
    variables["page"] = ("#ffffff", palette.NIGHT)
    lines = [f"  --{name}: light-dark({day}, {night});" for name, (day, night) in variables.items()]
    classes = [
        f".ink-{name} {{ "
        + " ".join(f"--{part}: var(--{name}-{part});" for part in palette.Ink._fields)
        + " }"
        for name in inks
    ]
    return "\n".join([":root {", f"  --clusters: {len(palette.CLUSTERS)};", *lines, "}", *classes])
