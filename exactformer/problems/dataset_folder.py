"""A data set as Hugging Face's `datasets` reads it: a folder with three splits and a card."""

import json
from collections.abc import Sequence
from pathlib import Path

from exactformer.atomic import new_folder
from exactformer.domains.algebra import Algebra
from exactformer.problems.depths import format_depths
from exactformer.problems.draw import VERSION
from exactformer.problems.files import FileFormat, write_problems
from exactformer.problems.splits import splits


def write_dataset(
    algebra: Algebra,
    folder: Path,
    depths: Sequence[int],
    count: int,
    seed: int = 0,
    *,
    balanced: bool = False,
    format: FileFormat = "jsonl",
) -> dict[str, int]:
    """A folder that `datasets.load_dataset` reads: three splits and a card. Returns their sizes."""
    with new_folder(folder) as unfinished:
        parts = splits(algebra, depths, count, seed, balanced=balanced)
        sizes = {name: len(rows) for name, rows in parts.items()}
        for name, rows in parts.items():
            write_problems(rows, unfinished / f"{name}.{format}", format)
        card = CARD.format(
            name=algebra.name,
            files="".join(f"  - split: {name}\n    path: {name}.{format}\n" for name in sizes),
            vocabulary=" ".join(algebra.vocabulary),
            law=", each value equally often" if balanced else "",
            version=VERSION,
            seed=seed,
            count=count,
            depths=format_depths(depths),
            rows="".join(f"| {name} | {size:,} |\n" for name, size in sizes.items()),
            options=" --balanced" if balanced else "",
            format=format,
            example=json.dumps(parts["test"][0].to_dict(), ensure_ascii=False, indent=1),
        )
        (unfinished / "README.md").write_text(card, encoding="utf-8")
    return sizes


CARD = """---
license: mit
pretty_name: exactformer {name}
task_categories:
- text-generation
tags:
- length-generalization
- synthetic
configs:
- config_name: default
  data_files:
{files}---

# {name}: expressions and their values, by depth

Fully parenthesized random expressions over `{vocabulary}`{law}: {count} of each depth. They are
problems of exactformer, version {version}, with the seed {seed}. `train` has the depths 1 and 2;
`test` and `validation` have the depths {depths}, and no expression in common.

| split | rows |
| --- | ---: |
{rows}
Each row has `id`, `expression`, `depth`, `tokens`, `value` (the answer, which is exact) and
`prompt` (the question in words). Equal seeds give equal rows, so that results can be compared.
With DOMAIN for {name}, or for the file that defines it, this writes the split `test`, and scores
a model's answers:

```sh
exactformer sample DOMAIN --depths {depths} --count {count} --seed {seed}{options} \\
    --format {format} --out test.{format}
exactformer score DOMAIN test.{format} --predictions answers.jsonl
```

```json
{example}
```
"""
