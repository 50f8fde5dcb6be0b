"""One table of replies, through everything that finds an answer in one."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactformer.domains.catalog import arithmetic, boolean
from exactformer.domains.domain import Domain
from exactformer.domains.integers import integers
from exactformer.domains.machine_catalog import folds
from exactformer.problems.answers import RULES, alone, reasoned
from exactformer.problems.draw import problems
from exactformer.problems.files import write_problems
from exactformer.problems.folders import write_lm_eval
from exactformer.problems.gym import ProblemSet
from exactformer.problems.predictions import Rule, read_predictions, score_predictions
from exactformer.problems.prompts import has_numerals, spellings
from tests import replies
from tests.algebras import KLEENE
from tests.replies import Reply

TABLE = [
    (algebra, reply)
    for algebra, some in (
        (arithmetic(), replies.ARITHMETIC),
        (boolean(), replies.BOOLEAN),
        (KLEENE, replies.KLEENE),
        (folds(), replies.FOLDS),
        (integers(), replies.INTEGERS),
    )
    for reply in some
]
ALGEBRAS = [
    pytest.param(a, id=a.name) for a in (arithmetic(), boolean(), KLEENE, folds(), integers())
]


def of(algebra: Domain) -> list[Reply]:
    return [reply for own, reply in TABLE if own == algebra]


@pytest.mark.parametrize(("algebra", "reply"), TABLE, ids=lambda part: repr(part)[:40])
def test_the_rule(algebra, reply):
    asked = spellings(algebra), has_numerals(algebra)
    assert reasoned(reply.text, *asked) == reply.reasoned
    assert alone(reply.text, *asked) == reply.alone


@given(st.text(), st.sampled_from("0123456789"))
def test_any_text_before_the_answer_is_thinking(thought, value):
    said = f"{thought.replace('Evaluate', '')}\nThe answer is {value}"
    assert reasoned(said, spellings(arithmetic())) == value
    assert reasoned(thought, spellings(arithmetic())) in {None, *"0123456789"}


@pytest.mark.parametrize("algebra", ALGEBRAS)
@pytest.mark.parametrize("rule", RULES)
def test_predictions_are_scored_by_it(algebra, rule: Rule, tmp_path):
    said = of(algebra)
    rows = list(problems(algebra, [2], len(said)))
    write_problems(rows, tmp_path / "rows", "jsonl")
    lines = [
        json.dumps({"id": row.id, "prediction": reply.text})
        for row, reply in zip(rows, said, strict=True)
    ]
    (tmp_path / "said").write_text("\n".join(lines))
    found = [getattr(reply, rule) for reply in said]
    (score,) = score_predictions(algebra, tmp_path / "rows", tmp_path / "said", rule).depths
    right = [value == row.value for value, row in zip(found, rows, strict=True)]
    assert (score.correct, score.no_value) == (sum(right), found.count(None))


@pytest.mark.parametrize("algebra", ALGEBRAS)
def test_the_data_set_for_reasoning_gym_scores_by_it(algebra):
    made = ProblemSet(algebra)
    for reply in of(algebra):
        for value in {*algebra.answer_symbols, reply.reasoned} - {None}:
            score = made.score_answer(reply.text, {"answer": value})
            assert score == (reply.reasoned == value)


@pytest.mark.parametrize("algebra", ALGEBRAS)
def test_exported_tasks_have_it_without_this_package(algebra, tmp_path):
    write_lm_eval(algebra, tmp_path / "tasks", [3], 2)
    spec = spec_from_file_location("exported_problems", tmp_path / "tasks" / "problems.py")
    assert spec is not None
    assert spec.loader is not None
    assert "exactformer." not in (tmp_path / "tasks" / "problems.py").read_text()
    exported = module_from_spec(spec)
    spec.loader.exec_module(exported)
    said, no = of(algebra), exported.NO_VALUE
    given = [[reply.text] for reply in said]
    assert exported.find_reasoned(given, []) == [[reply.reasoned or no] for reply in said]
    assert exported.find_alone(given, []) == [[reply.alone or no] for reply in said]
    row = next(problems(algebra, [3], 1)).to_dict()
    asked = exported.ask_to_reason(row)
    assert asked.endswith(f" Expression: {row['expression']}")
    assert "alone" not in asked
    assert '"The answer is" and its value: ' in asked


# --- samples that the harness has logged


def sample(id: str, said: str, **more: object) -> str:
    """A line of `lm_eval --log_samples`, without what is not read."""
    return json.dumps(
        {"doc_id": 0, "doc": {"id": id}, "resps": [[said]], "filter": "value", **more}
    )


def test_logs_of_the_harness_are_read(tmp_path):
    rows = list(problems(arithmetic(), [3, 4], 5))
    write_problems(rows, tmp_path / "rows", "jsonl")
    folder = tmp_path / "out" / "some__model"
    folder.mkdir(parents=True)
    (folder / "results_now.json").write_text("{}")
    for depth in (3, 4):
        lines = [
            sample(row.id, f"I think.\nThe answer is {row.value}.", filter=name)
            for name in ("value", "another")
            for row in rows
            if row.depth == depth
        ]
        (folder / f"samples_depth{depth}_now.jsonl").write_text("\n".join(lines) + "\n")
    score = score_predictions(arithmetic(), tmp_path / "rows", tmp_path / "out")
    assert (score.correct, score.total) == (10, 10)
    strict = score_predictions(arithmetic(), tmp_path / "rows", tmp_path / "out", "alone")
    assert (strict.correct, [depth.no_value for depth in strict.depths]) == (0, [5, 5])


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([sample("a", "1"), sample("a", "0")], "the id 'a' is there twice"),
        ([sample("a", "1", resps=[["1", "0"]])], "resps[0]"),
        ([sample("a", "1", resps=[])], "resps: expected a list with something in it"),
        ([sample("a", "1", doc={})], "doc: there is no 'id'"),
        ([sample("a", "1", doc=3)], "doc: expected an object"),
        ([sample("a", "1", resps=[[[0.5, True]]])], "expected text"),
    ],
)
def test_other_logs_are_refused(lines, said, tmp_path):
    (tmp_path / "samples_x.jsonl").write_text("\n".join(lines))
    with pytest.raises(ValueError, match=r"samples_x\.jsonl") as caught:
        read_predictions(tmp_path)
    assert said in str(caught.value)


def test_a_folder_without_logs_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"expected a folder with samples_\*.jsonl"):
        read_predictions(tmp_path)


HARNESS = """
import json, sys
import lm_eval
from lm_eval.api.model import LM
from lm_eval.loggers import EvaluationTracker
from lm_eval.tasks import TaskManager

folder, group, shots, out = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
said = json.load(open(folder + "/said.json"))

class Replies(LM):  # one for each problem, by its expression
    def generate_until(self, requests):
        for request in requests:
            assert request.args[1]["until"], request.args
        return [said[request.doc["id"]] for request in requests]
    def loglikelihood(self, requests):
        raise NotImplementedError
    loglikelihood_rolling = loglikelihood

found = lm_eval.simple_evaluate(
    model=Replies(), tasks=[group], num_fewshot=shots, bootstrap_iters=0, log_samples=True,
    task_manager=TaskManager(include_path=folder, include_defaults=False),
)
tracker = EvaluationTracker(output_path=out)
tracker.general_config_tracker.model_name_sanitized = "replies"
logged = found.pop("samples")
tracker.save_results_aggregated(results=found, samples=logged)
for task, samples in logged.items():
    tracker.save_results_samples(task_name=task, samples=samples)
print(json.dumps([found["groups"][group]["exact_match,value"], samples[0]["arguments"]]))
"""


@pytest.mark.skipif(not find_spec("lm_eval"), reason="`make test-lab` installs lm_eval")
@pytest.mark.parametrize("ending", ["", "_alone"])
@pytest.mark.parametrize("shots", [0, 2])
def test_the_harness_counts_as_predictions_are_counted(ending, shots, tmp_path):
    """Every reply of the table, as the harness scores it and as its logs are scored."""
    said, tasks = of(arithmetic()), tmp_path / "tasks"
    group, *_ = write_lm_eval(arithmetic(), tasks, [3, 4], len(said))
    rows = [json.loads(line) for line in (tasks / "test.jsonl").read_text().splitlines()]
    both = [reply.text for reply in said] + [
        f"Let me think.\n\nIt is {row['value']}: the answer is {row['value']}." for row in rows
    ][: len(said)]
    (tasks / "said.json").write_text(
        json.dumps({row["id"]: text for row, text in zip(rows, both, strict=True)})
    )
    out = tmp_path / "out"
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-c",
        HARNESS,
        tasks,
        group + ending,
        str(shots),
        out,
    ]
    env = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "home")}
    result = subprocess.run(command, capture_output=True, text=True, env=env, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    accuracy, asked = json.loads(result.stdout.splitlines()[-1])
    rule: Rule = "alone" if ending else "reasoned"
    score = score_predictions(arithmetic(), tasks / "test.jsonl", out, rule)
    assert score.total == 2 * len(said)
    assert accuracy == pytest.approx(score.correct / score.total)
    prompt = asked["gen_args_0"]["arg_0"]
    assert prompt.count("Evaluate the expression, where") == 1 + shots
    assert prompt.count("The answer is ") == (0 if ending else shots)  # of the examples
    assert prompt.endswith(" Answer:") == bool(ending)
