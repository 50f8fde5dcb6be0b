"""Export a model as a folder for Hugging Face's hub: weights, proof, configuration and model card.

`ef.load` reads the folder back; the hash of the weights is unchanged.
"""

import json
from pathlib import Path

from exactformer import __version__
from exactformer.api import Model
from exactformer.certify import require_exact
from exactformer.domains.catalog import describe
from exactformer.host.atomic import new_folder
from exactformer.model.remembered import fixed
from exactformer.verify import Findings, verify
from exactformer.weights.named import FOLDER_WEIGHTS

PROOF = "proof.json"


def export_folder(model: Model, folder: Path) -> None:
    """Write the model to a new folder. Raises ValueError unless its weights are certified exact:
    they are certified anew, and the proof is verified with the files before the folder is named.
    """
    model = fixed(model)
    certificate = require_exact(model.domain, model.weights)
    config = {
        "library_name": "exactformer",
        "exactformer_version": __version__,
        "algebra": describe(model.domain),
        "weights_sha256": certificate.weights_sha256,
        "origin": dict(model.origin),
    }
    with new_folder(Path(folder)) as unfinished:
        model.save(unfinished / FOLDER_WEIGHTS)
        certificate.save(unfinished / PROOF)
        verify(unfinished / PROOF, unfinished / FOLDER_WEIGHTS, model.domain)
        text = json.dumps(config, indent=1, ensure_ascii=False)
        (unfinished / "config.json").write_text(f"{text}\n", encoding="utf-8")
        card = model_card(model, certificate.findings)
        (unfinished / "README.md").write_text(card, encoding="utf-8")


def model_card(model: Model, findings: Findings) -> str:
    """The card in Markdown. What it claims is what `findings` says of this model's layer."""
    origin = [f"{name} {fact}" for name, fact in model.origin.items()]
    most = findings.most_operands or {}
    counted = [f"at most {count} operands in {format}" for format, count in most.items()]
    return CARD.format(
        name=model.domain.name,
        texts=TEXTS.get(model.domain.layer("depth"), OTHER_TEXTS),
        vocabulary=" ".join(model.domain.vocabulary),
        limit=f" A span may have {', '.join(counted)}; longer ones are refused." if most else "",
        origin=", ".join(origin) or "unknown",
        sha256=model.sha256,
        rows=findings.rows,
        checked=findings.checked,
        margin=float(findings.smallest_margin),
        rounding=float(findings.rounding_bound),
        weights=FOLDER_WEIGHTS,
        proof=PROOF,
    )


TEXTS = {  # by layer
    "depth": """fully parenthesized expressions, of any depth and length. It has one
weight-shared layer, which is applied until no parenthesis is left""",
    "plain": """expressions in plain notation, with precedence, of any length. It has one
weight-shared layer, which is applied until a single value is left""",
    "polish": """expressions in Polish notation, in which arities say what belongs together, of any
length. It has one weight-shared layer, which is applied until a single value is left""",
    "machine": """texts that a machine reads, of any length. It has one layer, which is applied once
and finds the state that arrives at each symbol""",
    "span-machine": """texts of spans that a machine reads, of any depth and length. It has one
weight-shared layer, which is applied until no parenthesis is left""",
    "integers": """sums, differences, products and comparisons of natural numbers in digits, of any
depth and length. It has one weight-shared layer, which is applied until no parenthesis is left""",
    "little-endian": """a sum or a product of two numbers with their lowest digits first, of any
length. It has one weight-shared layer, which is applied until one number is left""",
    "square-root": """binary numbers, whose root it finds, of any length. It has one weight-shared
layer, which is applied once for each bit of the root""",
    "rearrange": """texts whose symbols are written elsewhere, of any length. It has one layer,
which is applied once""",
}
OTHER_TEXTS = "texts of its own, of any length. It has one weight-shared layer"

CARD = """---
license: mit
library_name: exactformer
tags:
- exactformer
- looped-transformer
- formal-verification
---

# A transformer for {name}, proved exact

The model evaluates {texts}. Its
tokens are `{vocabulary}`.{limit}

`exactformer certify` proves that the value is right for *every* such text, by a finite check
of the weights: {rows} {checked}, all right; the smallest margin is {margin:.3g}, and rounding moves
an output by at most {rounding:.3g}.

- origin: {origin}
- sha256 of the weights: `{sha256}`
- `{weights}`: the weights
- `{proof}`: the proof, which `exactformer verify` checks again, without torch and without the model

```python
import exactformer as ef

model = ef.load("path/of/this/folder")
assert model.sha256 == "{sha256}"
assert model.certify().verdict == "exact"
```

```sh
exactformer verify {proof} {weights}
```
"""
