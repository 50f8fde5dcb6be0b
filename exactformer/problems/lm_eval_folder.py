"""Tasks for lm-evaluation-harness: a folder that it reads with `--include_path`, offline."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

from exactformer.atomic import new_folder
from exactformer.domains.algebra import Algebra
from exactformer.problems.draw import VERSION
from exactformer.problems.files import write_problems
from exactformer.problems.splits import splits

LOADER = '''"""The problems of one depth, and those to show as examples: files beside this one."""

from pathlib import Path

import datasets


def load(depth, **about):
    files = {name: str(Path(__file__).parent / f"{name}.jsonl") for name in ("train", "test")}
    found = datasets.load_dataset("json", data_files=files)
    found["test"] = found["test"].filter(lambda row: row["depth"] == depth)
    return found
'''


def write_lm_eval(
    algebra: Algebra,
    folder: Path,
    depths: Sequence[int],
    count: int,
    seed: int = 0,
    *,
    balanced: bool = False,
) -> list[str]:
    """A folder for `lm_eval --include_path`: a task a depth, and their group, whose name is first.

    It runs offline: the problems are in it.
    """
    group = f"exactformer_{re.sub('[^a-z0-9]', '_', algebra.name)}"
    tasks = {f"{group}_depth{depth:02d}": depth for depth in depths}
    with new_folder(folder) as unfinished:
        parts = splits(algebra, depths, count, seed, balanced=balanced)

        def write(name: str, text: str) -> None:
            (unfinished / name).write_text(text, encoding="utf-8")

        for name in ("train", "test"):
            write_problems(parts[name], unfinished / f"{name}.jsonl", "jsonl")
        write("problems.py", LOADER)
        write("_base.yaml", _base(algebra))
        for task, depth in tasks.items():
            asked = f"include: _base.yaml\ntask: {task}\ndataset_kwargs:\n  depth: {depth}\n"
            write(f"{task}.yaml", asked)
        members = "".join(f"  - {task}\n" for task in tasks)
        write(f"{group}.yaml", GROUP.format(group=group, members=members, version=VERSION))
    return [group, *tasks]


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


def _base(algebra: Algebra) -> str:
    """What all tasks share. The answer is the first of the algebra's values that is generated."""
    words = sorted(algebra.values, key=len, reverse=True)
    pattern = rf"(?<!\w)({'|'.join(map(re.escape, words))})(?!\w)"
    return f"""custom_dataset: !function problems.load
output_type: generate_until
training_split: train
fewshot_split: train
test_split: test
doc_to_text: "{{{{prompt}}}}"
doc_to_target: "{{{{value}}}}"
generation_kwargs:
  until: ["\\n"]
  do_sample: false
filter_list:
  - name: value
    filter:
      - function: regex
        regex_pattern: {json.dumps(pattern, ensure_ascii=False)}
      - function: take_first
metric_list:
  - metric: exact_match
    aggregation: mean
    higher_is_better: true
metadata:
  version: {VERSION}
"""
