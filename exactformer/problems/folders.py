"""Folders of problems for other people's tools, with splits to learn from and to be tested on.

`write_dataset` makes a data set as Hugging Face's `datasets` reads it; `write_lm_eval` makes tasks
that lm-evaluation-harness reads with `--include_path`, offline.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path

from exactformer.domains.data import listed
from exactformer.domains.domain import Domain
from exactformer.host.atomic import new_folder
from exactformer.problems import answers
from exactformer.problems.depths import format_depths
from exactformer.problems.draw import VERSION, Problem, problems
from exactformer.problems.files import FileFormat, write_problems
from exactformer.problems.prompts import has_numerals, spellings

TRAINING = (1, 2)  # the depths to learn from
MOST_TOKENS = 4096  # that a model may generate before its answer


def splits(
    domain: Domain, depths: Sequence[int], count: int, seed: int, *, balanced: bool
) -> dict[str, list[Problem]]:
    """The splits: `test` is drawn by `problems`; `validation` has other expressions of the same
    depths.
    """
    if shallow := [depth for depth in depths if depth <= TRAINING[-1]]:
        raise ValueError(
            f"expected depths of {TRAINING[-1] + 1} or more, found {shallow[0]}: "
            f"those of depth {listed([str(d) for d in TRAINING], 'and')} are to learn from"
        )
    train, test, other = (
        list(problems(domain, each, count, each_seed, balanced=balanced))
        for each, each_seed in ((TRAINING, seed), (depths, seed), (depths, seed + 1))
    )
    tested = {problem.expression for problem in test}
    validation = [problem for problem in other if problem.expression not in tested]
    return {"train": train, "validation": validation, "test": test}


def write_dataset(
    domain: Domain,
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
        parts = splits(domain, depths, count, seed, balanced=balanced)
        sizes = {name: len(rows) for name, rows in parts.items()}
        for name, rows in parts.items():
            write_problems(rows, unfinished / f"{name}.{format}", format)
        card = CARD.format(
            name=domain.name,
            files="".join(f"  - split: {name}\n    path: {name}.{format}\n" for name in sizes),
            vocabulary=" ".join(domain.vocabulary),
            written=WRITTEN.get(domain.layer("depth"), "Random"),
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


WRITTEN = {  # by layer
    "depth": "Fully parenthesized random",
    "plain": "Random plain",
    "polish": "Random bracketless",
    "span-machine": "Random nested",
    "integers": "Fully parenthesized random",
}

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

{written} expressions over `{vocabulary}`{law}: {count} of each depth. They are
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


TASKS = '''"""Problems, and the answers in a model's replies, for the tasks beside this file."""

from pathlib import Path

# Every way to write a value, and the value.
VALUES = {values}
NUMERALS = {numerals}  # whether digits make up numbers
NO_VALUE = "(none)"  # no value has a parenthesis


def load(depth, **about):
    """The problems of one depth, and those to show as examples."""
    import datasets

    files = {{name: str(Path(__file__).parent / f"{{name}}.jsonl") for name in ("train", "test")}}
    found = datasets.load_dataset("json", data_files=files)
    found["test"] = found["test"].filter(lambda row: row["depth"] == depth)
    return found


def ask_to_reason(row):
    """The prompt of a problem, with leave to think before the answer."""
    question, _, expression = row["prompt"].removesuffix(" Answer:").rpartition(" Expression: ")
    think = 'Think step by step, then end with the words "The answer is" and its value:'
    return question.replace("Answer with its value alone:", think) + " Expression: " + expression


def find_reasoned(replies, docs):
    return [[reasoned(reply, VALUES, NUMERALS) or NO_VALUE for reply in some] for some in replies]


def find_alone(replies, docs):
    return [[alone(reply, VALUES, NUMERALS) or NO_VALUE for reply in some] for some in replies]


def compare(row, found):
    return {{"exact_match": float(found[0] == row["value"])}}


# What follows is exactformer/problems/answers.py, which also scores `score --predictions`.

'''


def write_lm_eval(
    domain: Domain,
    folder: Path,
    depths: Sequence[int],
    count: int,
    seed: int = 0,
    *,
    balanced: bool = False,
) -> list[str]:
    """A folder for `lm_eval --include_path`: a task a depth, and their group, whose name is first.

    Beside them are the same tasks for an answer that stands alone, whose names end in `_alone`. It
    runs offline and without this package: the problems and the rule for answers are in it.
    """
    group = f"exactformer_{re.sub('[^a-z0-9]', '_', domain.name)}"
    with new_folder(folder) as unfinished:
        parts = splits(domain, depths, count, seed, balanced=balanced)

        def write(name: str, text: str) -> None:
            (unfinished / name).write_text(text, encoding="utf-8")

        for name in ("train", "test"):
            write_problems(parts[name], unfinished / f"{name}.jsonl", "jsonl")
        rule = Path(answers.__file__).read_text(encoding="utf-8")
        values = json.dumps(spellings(domain), ensure_ascii=False)
        write("problems.py", TASKS.format(values=values, numerals=has_numerals(domain)) + rule)
        for ending, base in BASES.items():
            write(f"_base{ending}.yaml", base.format(version=VERSION))
            tasks = {f"{group}{ending}_depth{depth:02d}": depth for depth in depths}
            for task, depth in tasks.items():
                include = f"include: _base{ending}.yaml\ntask: {task}\n"
                write(f"{task}.yaml", f"{include}dataset_kwargs:\n  depth: {depth}\n")
            members = "".join(f"  - {task}\n" for task in tasks)
            named = GROUP.format(group=group + ending, members=members, version=VERSION)
            write(f"{group}{ending}.yaml", named)
    return [group, *(f"{group}_depth{depth:02d}" for depth in depths)]


GROUP = """group: {group}
task:
{members}aggregate_metric_list:
  - metric: exact_match
    aggregation: mean
    weight_by_size: true
    filter_list: value
metadata:
  version: {version}
"""

BASE = """custom_dataset: !function problems.load
output_type: generate_until
training_split: train
fewshot_split: train
test_split: test
{asked}  do_sample: false
filter_list:
  - name: value
    filter:
      - function: custom
        filter_fn: !function problems.{rule}
      - function: take_first
process_results: !function problems.compare
metric_list:
  - metric: exact_match
    aggregation: mean
    higher_is_better: true
metadata:
  version: {{version}}
"""

REASONED = f"""doc_to_text: !function problems.ask_to_reason
doc_to_target: "The answer is {{{{{{{{value}}}}}}}}."
generation_kwargs:
  until: ["\\n\\n{answers.QUESTION}"]
  max_gen_toks: {MOST_TOKENS}
"""

ALONE = """doc_to_text: "{{{{prompt}}}}"
doc_to_target: "{{{{value}}}}"
generation_kwargs:
  until: ["\\n"]
"""

# By how the names of the tasks end: what all of them share.
BASES = {
    "": BASE.format(asked=REASONED, rule="find_reasoned"),
    "_alone": BASE.format(asked=ALONE, rule="find_alone"),
}
