"""Problems for language models: rows, files, folders, and the score of predictions."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path

import pytest

import exactformer as ef
from exactformer.domains.catalog import arithmetic, boolean, listops
from exactformer.domains.span_machines import SpanMachine
from exactformer.evaluation.score import Task, score
from exactformer.problems.accuracy import interval
from exactformer.problems.depths import format_depths, read_depths
from exactformer.problems.draw import Problem, problems
from exactformer.problems.files import COLUMNS, read_problems, write_problems
from exactformer.problems.folders import write_dataset, write_lm_eval
from exactformer.problems.gym import ProblemConfig, ProblemSet
from exactformer.problems.predictions import score_predictions
from exactformer.problems.prompts import prompt
from tests.algebras import KLEENE, MODULO_7


def exactformer(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "exactformer", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd)


def refused(*arguments: object, cwd: Path) -> str:
    """The message of a mistake, after which nothing is printed or written."""
    before = sorted(cwd.rglob("*"))
    result = exactformer(*arguments, cwd=cwd)
    assert (result.returncode, result.stdout) == (2, "")
    assert "Traceback" not in result.stderr
    assert sorted(cwd.rglob("*")) == before
    return result.stderr


# --- rows


def test_a_row_says_what_is_so(algebra):
    for row in problems(algebra, [0, 1, 3], 5, seed=7):
        expression = ef.parse(algebra, row.expression)
        assert (row.depth, row.tokens) == (expression.depth, len(expression))
        assert row.value == ef.oracle(expression)
        assert row.prompt.endswith(f"Expression: {row.expression} Answer:")
        assert "\n" not in row.prompt
        assert "\t" not in row.prompt


def test_an_id_names_one_problem_whatever_else_is_asked_for(task):
    few, many = list(problems(task, [4], 7)), list(problems(task, [2, 4, 5], 130))
    known = {row.id: row for row in many}
    assert len(known) == 390
    assert all(known[row.id] == row for row in few)
    other = list(problems(task, [4], 7, seed=1))
    assert not {row.id for row in other} & known.keys()
    assert [row.expression for row in other] != [row.expression for row in few]


@pytest.mark.parametrize("name", ["folds", "integers", "integers-2"])
def test_rows_of_spans_and_of_integers(name, tmp_path):
    domain = ef.find_domain(name)
    rows = list(problems(domain, [0, 2, 3], 20, seed=3))
    write_problems(rows, tmp_path / "rows", "jsonl")
    assert read_problems(tmp_path / "rows", domain) == rows
    for row in rows:
        assert row.value == ef.oracle(ef.parse(domain, row.expression))
        assert row.depth == max(accumulate((c == "(") - (c == ")") for c in row.expression))
    assert Counter(row.depth for row in rows) == {0: 20, 2: 20, 3: 20}


def test_balanced_ones_of_spans_and_none_of_integers():
    rows = list(problems(ef.find_domain("folds"), [3], 40, balanced=True))
    assert {*Counter(row.value for row in rows).values()} == {4}
    with pytest.raises(ValueError, match="'integers' are without end: they cannot be balanced"):
        list(problems(ef.find_domain("integers"), [3], 40, balanced=True))
    with pytest.raises(ValueError, match="its texts have a length and no depth"):
        list(problems(ef.find_domain("parity"), [3], 40))
    with pytest.raises(ValueError, match="of depth 900 have more than the 2e"):
        list(problems(ef.find_domain("folds"), [900], 40))


def test_balanced_ones_are_balanced_at_each_depth(task):
    rows = list(problems(task, [1, 4], 40, balanced=True))
    for depth in (1, 4):
        counts = Counter(row.value for row in rows if row.depth == depth)
        assert set(counts.values()) == {40 // len(task.values)}
    longer = problems(task, [1, 4], 41, balanced=True)
    assert not {row.id for row in rows} & {row.id for row in longer}


def test_a_prompt_says_what_the_operators_mean():
    assert "SM is the sum modulo 10" in prompt(listops(), "( SM 1 2 )")
    assert "MED is the median (of an even number, the floor of" in prompt(listops(10, "mean"), "1")
    assert "true and unknown = unknown" in prompt(KLEENE, "( true and true )")
    assert "2 - 5 = 4" in prompt(MODULO_7, "(1-2)")
    untold = ef.Algebra(
        "untold",
        tuple(f"v{i}" for i in range(30)),
        (
            ef.Operator.from_rule(
                "?", [2], lambda a, b: min(a, b), tuple(f"v{i}" for i in range(30))
            ),
        ),
        "infix",
    )
    with pytest.raises(ValueError, match="more than 200 cases and no rule"):
        prompt(untold, "v1")


def test_a_prompt_tells_a_machine_of_ones_own_by_its_transitions():
    def step(so_far: str, symbol: str) -> str | None:
        return symbol if so_far == "none" else min(so_far, symbol)

    end = {"none": None, "a": "a", "b": "b"}.get
    own = SpanMachine(ef.Machine.from_rule("least", "ab", "none", step, end))
    assert prompt(own, "(ab)") == (
        "Evaluate the expression, where what is in parentheses is read from the left, inner "
        "parentheses as what they are worth; reading begins in none; in none a leads to a; in none "
        "b leads to b; in a a leads to a; in a b leads to a; in b a leads to a; in b b leads to b; "
        "what ends in a is worth a; what ends in b is worth b. Answer with its value alone: a or b."
        " Expression: (ab) Answer:"
    )
    many = SpanMachine(
        ef.Machine.from_rule(
            "many", "0123456789", 0, lambda q, x: (q + int(x)) % 40, lambda q: str(q // 4)
        )
    )
    with pytest.raises(ValueError, match="'many' has more than 200 transitions"):
        prompt(many, "1")
    with pytest.raises(ValueError, match="digits of 'integers-16' are letters, too"):
        prompt(ef.find_domain("integers-16"), "1")


def test_plain_notation_has_rows_and_folders_too(tmp_path):
    rows = list(problems(ef.boolean_plain(), [1, 3], 20))
    assert {row.depth for row in rows} == {1, 3}
    write_problems(rows, tmp_path / "rows", "jsonl")
    assert read_problems(tmp_path / "rows", ef.boolean_plain()) == rows
    write_dataset(ef.boolean_plain(), tmp_path / "set", [3], 5)
    assert "Fully parenthesized" not in (tmp_path / "set" / "README.md").read_text()
    group, *_ = write_lm_eval(ef.boolean_plain(), tmp_path / "tasks", [3], 5)
    assert group == "exactformer_boolean_plain"


def test_depths_as_they_are_written():
    assert read_depths("1-3,5, 9-10") == [1, 2, 3, 5, 9, 10]
    assert format_depths(read_depths("1-3,5,9-10")) == "1-3,5,9-10"
    for wrong in ("", "1-", "x", "3-1", "1-999999"):
        with pytest.raises(ValueError, match="depths: expected"):
            read_depths(wrong)


# --- files


@pytest.mark.parametrize("format", ["jsonl", "tsv", "parquet"])
def test_what_is_written_is_read_back(format, tmp_path):
    if format == "parquet":
        pytest.importorskip("pyarrow", reason="`make test-lab` installs pyarrow")
    rows = list(problems(listops(), [1, 3], 8))
    path = tmp_path / "rows"
    assert write_problems(rows, path, format) == 16
    assert read_problems(path, listops()) == rows
    assert list(tmp_path.iterdir()) == [path]
    write_problems(problems(listops(), [1, 3], 8), tmp_path / "again", format)
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_parquet_without_pyarrow_says_what_to_install(tmp_path):
    hidden = "import sys; sys.modules['pyarrow'] = None; from exactformer.cli import main; main()"
    out = tmp_path / "rows.parquet"
    command = [sys.executable, "-c", hidden, "sample", "boolean", "--format", "parquet"]
    result = subprocess.run([*command, "--out", out], capture_output=True, text=True)
    assert result.returncode == 2
    assert "pip install 'exactformer[data]'" in result.stderr
    assert not list(tmp_path.iterdir())


def rows_file(folder: Path, changes: dict | None = None) -> Path:
    """Six problems; the third with these fields instead."""
    rows = [row.to_dict() for row in problems(boolean(), [1, 2], 3)]
    rows[2] |= changes or {}
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"value": "2"}, "value: expected '"),
        ({"depth": 5}, "depth: expected 1, found 5"),
        ({"expression": "(1&)"}, "found ')': & takes 2 operands"),
        ({"more": 1}, "unknown field 'more'"),
        ({"prompt": None}, "prompt: expected text, found null"),
    ],
)
def test_rows_that_are_not_so_are_refused_with_their_line(changes, said, tmp_path):
    with pytest.raises(ValueError, match="line 3, column") as caught:
        read_problems(rows_file(tmp_path, changes), boolean())
    assert said in str(caught.value)


def test_the_same_id_twice_is_refused(tmp_path):
    path = rows_file(tmp_path, next(problems(boolean(), [1], 1)).to_dict())
    with pytest.raises(ValueError, match="depth1-0' is there twice"):
        read_problems(path, boolean())


# --- predictions


def answers(rows: list[Problem], path: Path, answer) -> Path:
    lines = [json.dumps({"id": row.id, "prediction": answer(row)}) for row in rows]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_predictions_are_scored_by_depth(tmp_path):
    rows = list(problems(boolean(), [1, 2, 3], 40, balanced=True))
    file = tmp_path / "rows.jsonl"
    write_problems(rows, file, "jsonl")
    spelled = {"1": " TRUE\n", "0": "0"}
    given = {1: lambda row: spelled[row.value], 2: lambda row: "1", 3: lambda row: None}
    made = answers(rows, tmp_path / "made.jsonl", lambda row: given[row.depth](row))
    score = score_predictions(boolean(), file, made)
    assert [(d.depth, d.correct, d.total, d.majority, d.no_value) for d in score.depths] == [
        (1, 40, 40, 20, 0),
        (2, 20, 40, 20, 0),
        (3, 0, 40, 20, 40),
    ]
    shown = exactformer("score", "boolean", file, "--predictions", made, "--json")
    data = json.loads(shown.stdout)
    assert shown.returncode == 0
    assert (data["correct"], data["total"]) == (60, 120)
    assert data == json.loads(json.dumps(score.to_dict()))
    assert "60 of 120 predictions right" in str(score)


def test_the_command_reads_replies_by_either_rule(tmp_path):
    rows = list(problems(boolean(), [1, 2], 4))
    write_problems(rows, tmp_path / "rows", "jsonl")
    made = answers(rows, tmp_path / "made", lambda row: f"1 | 0 = 1\nThe answer is {row.value}.")
    arguments = ("score", "boolean", tmp_path / "rows", "--predictions", made, "--json")
    found = json.loads(exactformer(*arguments).stdout)
    assert (found["correct"], found["rule"]) == (8, "reasoned")
    found = json.loads(exactformer(*arguments, "--answers", "alone").stdout)
    assert (found["correct"], found["rule"]) == (0, "alone")


def test_intervals_against_their_equation():
    """Wilson's ends are where the count is 1.96 deviations from what they would give."""
    for correct, total in [(0, 10), (3, 10), (10, 10), (700, 1000)]:
        for end in interval(correct, total):
            deviation = (end * (1 - end) / total) ** 0.5
            assert abs(correct / total - end) == pytest.approx(1.959964 * deviation, abs=1e-9)
    assert interval(0, 0) == (0, 1)


def test_whole_numbers_will_do(tmp_path):
    rows = list(problems(arithmetic(), [2], 5))
    write_problems(rows, tmp_path / "rows", "tsv")
    made = answers(rows, tmp_path / "made", lambda row: int(row.value))
    assert score_predictions(arithmetic(), tmp_path / "rows", made).correct == 5


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"id": "x", "prediction": "1"}', "there is no problem with the id 'x'"),
        ('{"id": "x"', "line 7, column"),
        ('{"id": "x", "prediction": ["1"]}', "line 7, column 1: prediction: expected text, found"),
        ('{"id": "x"}', "line 7, column 1: there is no 'prediction'"),
        ("[1]", "line 7, column 1: expected an object, found a list"),
    ],
)
def test_bad_predictions_are_refused(line, said, tmp_path):
    rows = rows_file(tmp_path)
    made = answers(list(problems(boolean(), [1, 2], 3)), tmp_path / "made", lambda row: "1")
    made.write_text(made.read_text() + line + "\n")
    with pytest.raises(ValueError, match=re.escape(said)) as caught:
        score_predictions(boolean(), rows, made)
    assert str(made) in str(caught.value)


def test_every_problem_needs_one_prediction(tmp_path):
    rows = rows_file(tmp_path)
    made = answers(list(problems(boolean(), [1, 2], 2)), tmp_path / "made", lambda row: "1")
    with pytest.raises(ValueError, match=r"no prediction for '.*depth1-2', and 1 more"):
        score_predictions(boolean(), rows, made)
    made.write_text(made.read_text() * 2)
    with pytest.raises(ValueError, match="is there twice"):
        score_predictions(boolean(), rows, made)


# --- the command line


def test_sample_writes_rows(tmp_path):
    arguments = ("sample", "listops", "--depths", "1-3", "--count", 2, "--seed", 4)
    shown = exactformer(*arguments, "--format", "jsonl")
    rows = list(problems(listops(), [1, 2, 3], 2, seed=4))
    assert [json.loads(line) for line in shown.stdout.splitlines()] == [r.to_dict() for r in rows]
    assert exactformer(*arguments, "--out", "rows.tsv", cwd=tmp_path).returncode == 0
    assert read_problems(tmp_path / "rows.tsv", listops()) == rows


def test_problems_are_no_labels(tmp_path):
    for format in ("tsv", "jsonl"):
        write_problems(problems(boolean(), [1], 3), tmp_path / format, format)
        with pytest.raises(ValueError, match="--predictions FILE scores a model's answers"):
            score(Task(boolean(), tmp_path / format))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sample", "boolean", "--depths", "2", "--depth", "2"], "--depth or --depths, not both"),
        (["sample", "boolean", "--format", "parquet"], "Parquet is no text"),
        (["sample", "boolean", "--out", "no/such"], "No such file"),
        (["sample", "listops", "--format", "lra", "--out", "x"], "goes to standard output"),
        (["export", "dataset", "boolean", "--out", "full"], "expected the name of a new folder"),
        (["export", "lm-eval", "boolean", "--out", "x", "--depths", "2-4"], "3 or more, found 2"),
        (["score", "boolean", "-", "--predictions", "x", "--engine", "fast"], "no option but"),
        (["score", "boolean", "-", "--answers", "alone"], "--answers is for --predictions"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, list) else None,
)
def test_mistakes(arguments, said, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    assert said in refused(*arguments, cwd=tmp_path)


# --- folders


def test_a_dataset_folder_has_splits_without_overlap(tmp_path):
    folder = tmp_path / "set"
    result = exactformer(
        "export", "dataset", "boolean", "--out", folder, "--depths", "3-4", "--json"
    )
    sizes = json.loads(result.stdout)["splits"]
    parts = {name: read_problems(folder / f"{name}.jsonl", boolean()) for name in sizes}
    assert {name: len(rows) for name, rows in parts.items()} == sizes
    assert {row.depth for row in parts["train"]} == {1, 2}
    assert (
        {row.depth for row in parts["test"]} == {row.depth for row in parts["validation"]} == {3, 4}
    )
    assert parts["test"] == list(problems(boolean(), [3, 4], 100))
    expressions = [{row.expression for row in parts[name]} for name in ("test", "validation")]
    assert not expressions[0] & expressions[1]
    card = (folder / "README.md").read_text()
    assert "version 1, with the seed 0" in card
    assert re.findall(r"split: (\w+)\n    path: (\S+)", card) == [
        (name, f"{name}.jsonl") for name in ("train", "validation", "test")
    ]


@pytest.mark.skipif(not find_spec("datasets"), reason="`make test-lab` installs datasets")
@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_datasets_reads_it(format, tmp_path):
    write_dataset(listops(), tmp_path / "set", range(3, 6), 20, format=format)
    code = f"""if True:
        import datasets, json
        found = datasets.load_dataset({str(tmp_path / "set")!r})
        print(json.dumps({{name: list(rows) for name, rows in found.items()}}))
    """
    found = json.loads(offline(code, tmp_path))
    for name, rows in found.items():
        path = tmp_path / "set" / f"{name}.{format}"
        assert [Problem(**row) for row in rows] == read_problems(path, listops())
        assert list(rows[0]) == list(COLUMNS)


def offline(code: str, folder: Path) -> str:
    """A program without a network, in a process of its own: these packages warn a lot."""
    env = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "home")}
    command = [sys.executable, "-W", "ignore", "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, env=env)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()[-1]


HARNESS = """if True:
    import json, random, sys
    import lm_eval
    from lm_eval.api.model import LM
    from lm_eval.tasks import TaskManager

    class Answers(LM):  # out of a file, by the id
        def __init__(self, answers):
            super().__init__()
            self.answers = answers
        def generate_until(self, requests):
            return [self.answers[request.doc["id"]] for request in requests]
        def loglikelihood(self, requests):
            raise NotImplementedError
        loglikelihood_rolling = loglikelihood

    folder, group = sys.argv[1:] or {arguments}
    rows = [json.loads(line) for line in open(folder + "/test.jsonl")]
    rng = random.Random(0)
    scores = []
    for answer in (lambda row: " " + row["value"], lambda row: "It is " + rng.choice("0123456789")):
        model = Answers({{row["id"]: answer(row) for row in rows}})
        tasks = TaskManager(include_path=folder, include_defaults=False)
        for shots in (0, 2):
            found = lm_eval.simple_evaluate(
                model=model, tasks=[group], task_manager=tasks, num_fewshot=shots, bootstrap_iters=0
            )
            scores.append(found["groups"][group]["exact_match,value"])
    depths = {{task: found["n-samples"][task]["original"] for task in found["n-samples"]}}
    print(json.dumps([scores, depths]))
"""


@pytest.mark.skipif(not find_spec("lm_eval"), reason="`make test-lab` installs lm_eval")
def test_the_harness_scores_perfect_and_random_answers(tmp_path):
    group, *tasks = write_lm_eval(listops(), tmp_path / "tasks", range(3, 6), 200, balanced=True)
    code = HARNESS.format(arguments=[str(tmp_path / "tasks"), group])
    (perfect, with_examples, chance, again), sizes = json.loads(offline(code, tmp_path))
    assert (perfect, with_examples) == (1, 1)
    assert all(0.05 < score < 0.15 for score in (chance, again))  # a tenth of 600, five deviations
    assert sizes == dict.fromkeys(tasks, 200)


# --- reasoning-gym


def test_a_set_of_problems_scores_answers():
    made, again = (ProblemSet(arithmetic(), 1, 3, size=30, seed=5) for _ in range(2))
    entries = list(made)
    assert entries == list(again)
    assert len(made) == len(entries) == 30
    assert {entry["metadata"]["depth"] for entry in entries} == {1, 2, 3}
    for entry in entries:
        assert entry["answer"] == ef.oracle(ef.parse(arithmetic(), entry["metadata"]["expression"]))
        assert made.score_answer(f" {entry['answer']}\n", entry) == 1
        wrong = str((int(entry["answer"]) + 1) % 10)
        for answer in (wrong, "", "?", None, f"{entry['answer']}{wrong}"):
            assert made.score_answer(answer, entry) == 0
    with pytest.raises(IndexError):
        made[30]
    with pytest.raises(ValueError, match="expected depths from 0 on, the smaller first"):
        ProblemSet(arithmetic(), 3, 1)


def test_a_set_of_problems_takes_every_algebra_that_has_a_prompt(tmp_path):
    examples = Path("examples")
    for path in sorted([*examples.glob("*.toml"), *examples.glob("plain/*.toml")]):
        algebra = ef.load_algebra(path)
        ProblemConfig(str(path)).validate()
        assert ProblemConfig(str(path)).find() == ProblemConfig(algebra).find() == algebra
        entry = ProblemSet(algebra, 2, 3, size=5)[4]
        expression = ef.parse(algebra, entry["metadata"]["expression"])
        assert entry["answer"] == ef.oracle(expression)
    asked = ProblemSet(ef.boolean_plain())[0]["question"]
    assert "the tightest first: ~ (before one operand), then & (grouping from the left)" in asked
    with pytest.raises(ValueError, match="expected one of"):
        ProblemConfig("bolean").validate()


@pytest.mark.skipif(not find_spec("reasoning_gym"), reason="`make test-lab` installs it")
def test_reasoning_gym_has_a_curriculum_and_algebras_of_ones_own(tmp_path):
    path = Path("examples/kleene.toml").resolve()
    code = f"""if True:
        import json, reasoning_gym
        from exactformer.problems.gym import register
        from reasoning_gym.factory import create_curriculum
        curriculum, depths = create_curriculum(register()), []
        more = True
        while more:
            about = curriculum.generate_configuration(dict(algebra={str(path)!r}, size=40, seed=1))
            made = reasoning_gym.create_dataset("exactformer", **vars(about))
            depths.append(max(entry["metadata"]["depth"] for entry in made))
            right = [made.score_answer("So the answer is " + e["answer"] + ".", e) for e in made]
            assert sum(right) == 40
            more = curriculum.increment_attr_level("depth") and len(depths) < 5
        print(json.dumps(depths))
    """
    assert json.loads(offline(code, tmp_path)) == [1, 2, 3, 4, 6]


@pytest.mark.skipif(not find_spec("reasoning_gym"), reason="`make test-lab` installs it")
def test_reasoning_gym_creates_it(tmp_path):
    code = """if True:
        import json, reasoning_gym
        from exactformer.problems.gym import register
        made = reasoning_gym.create_dataset(register(), size=20, seed=42, algebra="arithmetic")
        scores = [[made.score_answer(said, e) for said in (e["answer"], "?")] for e in made]
        print(json.dumps([list(made), scores]))
    """
    entries, scores = json.loads(offline(code, tmp_path))
    assert entries == list(ProblemSet(arithmetic(), size=20, seed=42))
    assert scores == [[1, 0]] * 20
