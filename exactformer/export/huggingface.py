"""A folder as on Hugging Face's hub: our weights file, its proof, a configuration and a card.

`ef.load` reads it back, and the hash of the weights is the same.
"""

import json
from pathlib import Path

from exactformer import __version__
from exactformer.api import Model
from exactformer.atomic import new_folder
from exactformer.certify import require_exact
from exactformer.domains.catalog import describe
from exactformer.model.remembered import fixed
from exactformer.named import FOLDER_WEIGHTS
from exactformer.verify import verify

PROOF = "proof.json"


def export_folder(model: Model, folder: Path) -> None:
    """Write a new folder. Weights are certified anew, since the card says that they are; the proof
    is verified with the files before the folder gets its name.
    """
    model = fixed(model)
    certificate = require_exact(model.algebra, model.weights)
    config = {
        "library_name": "exactformer",
        "exactformer_version": __version__,
        "algebra": describe(model.algebra),
        "weights_sha256": certificate.weights_sha256,
        "origin": dict(model.origin),
    }
    with new_folder(Path(folder)) as unfinished:
        model.save(unfinished / FOLDER_WEIGHTS)
        certificate.save(unfinished / PROOF)
        verify(unfinished / PROOF, unfinished / FOLDER_WEIGHTS, model.algebra)
        text = json.dumps(config, indent=1, ensure_ascii=False)
        (unfinished / "config.json").write_text(f"{text}\n", encoding="utf-8")
        findings = certificate.findings
        card = CARD.format(
            name=model.algebra.name,
            vocabulary=" ".join(model.algebra.vocabulary),
            origin=", ".join(f"{name} {fact}" for name, fact in model.origin.items()) or "unknown",
            sha256=certificate.weights_sha256,
            rows=findings.rows,
            checked=findings.checked,
            margin=float(findings.smallest_margin),
            rounding=float(findings.rounding_bound),
            weights=FOLDER_WEIGHTS,
            proof=PROOF,
        )
        (unfinished / "README.md").write_text(card, encoding="utf-8")


CARD = """---
license: mit
library_name: exactformer
tags:
- exactformer
- looped-transformer
- formal-verification
---

# A transformer for {name}, proved exact

It evaluates fully parenthesized expressions over `{vocabulary}` of any depth and length, with one
weight-shared layer that is applied until no parenthesis is left. That its value is right for
*every* expression is proved by a finite check of the weights: {rows} {checked}, all right, the
smallest margin {margin:.3g} against a rounding of at most {rounding:.3g}.

- origin: {origin}
- sha256 of the weights: `{sha256}`
- `{weights}`: the weights
- `{proof}`: the proof, which `exactformer verify` checks again without torch

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
