"""Tasks of the Chomsky-hierarchy benchmark: their texts, their answers, and how they are scored.

The benchmark's rows are checked where EXACTFORMER_DATA names the folder of the published files.
"""

import json
import os
import re
from itertools import product
from pathlib import Path
from random import Random

import pytest

import exactformer as ef
from exactformer.domains.bounds import MOST_CASES
from exactformer.domains.catalog import domain_sha256, find_domain, is_built_in, is_reserved
from exactformer.domains.chomsky import CHOMSKY, OWN, TASKS, own_name, solve_equation, task_of
from exactformer.domains.errors import ExpressionError
from exactformer.domains.formats.labelled import agrees, read_label
from exactformer.domains.kinds import read_domain
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import enumerate_length
from exactformer.domains.syntax import parse
from exactformer.training.kinds import recipe_by_method
from exactformer.training.run import train_seeds
from tests.chomsky_programs import PROGRAMS, Numbers
from tests.test_cli_model import exactformer, output, refused


def spelt(numbers: Numbers) -> str:
    return " ".join(map(str, numbers))


def symbols(answer: str | None) -> list[str]:
    """The symbols of an answer, which are single characters where no spaces are between them."""
    return [] if answer is None else answer.split() if " " in answer else [*answer]


def drawn(task: str, count: int, longest: int) -> list[Numbers]:
    rng = Random(task)
    return [PROGRAMS[task].draw(rng.randint(3, longest), rng) for _ in range(count)]


# Answers


def test_every_task_has_a_program():
    assert TASKS.keys() == PROGRAMS.keys()


@pytest.mark.parametrize("task", TASKS)
def test_answers_are_those_of_a_plain_program(task):
    domain, program = find_domain(f"chomsky/{task}"), PROGRAMS[task]
    texts = drawn(task, 300, 60)
    expected = [[*map(str, program.answer(text))] for text in texts]
    expressions = [parse(domain, spelt(text)) for text in texts]
    outcomes = ef.construct(domain).outcomes(expressions)
    assert [symbols(outcome.value) for outcome in outcomes] == expected
    assert [symbols(evaluate(expression)) for expression in expressions] == expected
    assert len({*map(tuple, expected)}) > 1


@pytest.mark.parametrize("task", TASKS)
def test_a_long_text(task):
    domain, program = find_domain(f"chomsky/{task}"), PROGRAMS[task]
    text = program.draw(400, Random(0))
    assert len(text) >= 399
    assert symbols(ef.construct(domain)(spelt(text))) == [*map(str, program.answer(text))]


@pytest.mark.parametrize("task", ["even_pairs", "parity_check", "cycle_navigation"])
def test_every_short_text(task):
    domain = find_domain(f"chomsky/{task}")
    texts = [text for length in range(1, 7) for text in enumerate_length(domain, length)]
    letters = len(domain.to_dict()["symbols"])
    assert len(texts) == sum(letters**length for length in range(1, 7))
    for text in texts:
        assert symbols(evaluate(text)) == [str(n) for n in PROGRAMS[task].answer(text.ids.tolist())]


def test_every_short_sum():
    """Sums of up to three digits are all texts that alternate, and no others."""
    domain = find_domain("chomsky/modular_arithmetic")
    texts = [text for length in range(1, 6) for text in enumerate_length(domain, length)]
    assert len(texts) == 5 + 5 * 3 * 5 + 5 * 3 * 5 * 3 * 5
    for text in texts:
        written = "".join("01234+-*"[number] for number in text.ids)
        assert evaluate(text) == str(eval(written) % 5)


def form(name: str) -> tuple[int, int]:
    """The factor of x and the number that the name of a linear form stands for."""
    found = re.fullmatch(r"(?:(\d?)(x))?(\d?)", name)
    assert found
    return int(found[1] or 1) if found[2] else 0, int(found[3] or 0)


def test_equations_are_solved_as_their_definition_says():
    """Forms are compared by what they are at every x."""
    domain = solve_equation()
    plus, minus, equals = domain.operators
    *names, none = domain.values
    at = {name: [(c * x + a) % 5 for x in range(5)] for name in names for c, a in [form(name)]}
    assert len({*map(tuple, at.values())}) == len(names) == 25
    number = {name: i for i, name in enumerate(domain.values)}

    def result(operator, *operands: str) -> str:
        return domain.values[operator([number[operand] for operand in operands])]

    for a, b in product(names, repeat=2):
        assert at[result(plus, a, b)] == [(p + q) % 5 for p, q in zip(at[a], at[b], strict=True)]
        assert at[result(minus, a, b)] == [(p - q) % 5 for p, q in zip(at[a], at[b], strict=True)]
        solutions = [str(x) for x in range(5) if at[a][x] == at[b][x]]
        assert result(equals, a, b) == (solutions[0] if len(solutions) == 1 else none)
    for a in names:
        assert at[result(minus, a)] == [-p % 5 for p in at[a]]
    for operator, a in product((plus, minus, equals), domain.values):
        assert result(operator, a, none) == result(operator, none, a) == none
    assert result(minus, none) == none


@pytest.mark.parametrize(
    ("task", "numbers", "usual", "answer"),
    [
        ("modular_arithmetic_brackets", "8 6 2 5 3 7 8 1 6 4 9 9", "(-2+3*(1-4))", "4"),
        ("modular_arithmetic_brackets", "6 3", "-3", "2"),
        ("modular_arithmetic_brackets", "8 1 )", "(1)", "1"),
        ("solve_equation", "7 9 5 2 8 10 0", "(x+2)=0", "3"),
        ("solve_equation", "9 5 9 10 4", "x+x=4", "2"),
        ("solve_equation", "3 10 9", "3=x", "3"),
        ("solve_equation", "9 10 9", "x=x", "?"),
        ("solve_equation", "1 10 2", "1=2", "?"),
        ("solve_equation", "9 5 1", "x+1", "x1"),
        ("solve_equation", "6 7 9 6 2 8", "-(x-2)", "4x2"),
    ],
)
def test_numbers_are_spellings(task, numbers, usual, answer):
    domain = find_domain(f"chomsky/{task}")
    assert parse(domain, numbers) == parse(domain, usual)
    assert parse(domain, str(parse(domain, numbers))) == parse(domain, usual)
    assert ef.construct(domain)(numbers) == evaluate(parse(domain, usual)) == answer


@pytest.mark.parametrize(
    ("task", "text", "column", "problem"),
    [
        ("parity_check", "0 1 2 1", 5, "expected 0 or 1, found '2', which is no token"),
        ("parity_check", "", 1, "expected 0 or 1, found no text"),
        ("cycle_navigation", "0 3", 3, "expected 0, 1 or 2, found '3'"),
        ("modular_arithmetic", "1 5", 4, "found the end of the text"),
        ("modular_arithmetic", "5 1", 1, "expected 0, 1, 2, 3 or 4, found '5'"),
        ("modular_arithmetic", "1 2", 3, "expected 5, 6 or 7, found '2'"),
        ("modular_arithmetic_brackets", "8 1 5 9", 7, "the operator before it has no operand"),
        ("modular_arithmetic_brackets", "8 1", 4, "1 parenthesis unclosed"),
        ("modular_arithmetic_brackets", "1 9", 3, "found '9': no parenthesis is open"),
        ("modular_arithmetic_brackets", "81 9", 1, "found '81', which is no token"),
        ("solve_equation", "9 10", 5, "found the end of the text"),
        ("solve_equation", "9 2 10 3", 3, "found '2': no operator between two operands"),
        ("solve_equation", "1 * 2", 3, "found '*', which is no token"),
    ],
)
def test_errors_have_their_place_in_the_text_that_was_given(task, text, column, problem):
    with pytest.raises(ExpressionError, match=re.escape(problem)) as caught:
        parse(find_domain(f"chomsky/{task}"), text)
    assert caught.value.place["column"] == column


# Names, and what each task says of itself


@pytest.mark.parametrize("task", TASKS)
def test_both_names_of_a_task(task):
    domain = find_domain(f"chomsky/{task}")
    assert find_domain(domain.name) == domain == read_domain(domain.to_dict())
    assert domain_sha256(read_domain(domain.to_dict())) == domain_sha256(domain)
    assert task_of(domain) == task
    assert is_built_in(domain)
    assert is_reserved(domain.name.upper(), domain.kind)


def test_other_domains_are_no_tasks():
    assert task_of(ef.boolean()) is None
    assert task_of(find_domain("parity")) is None
    assert len(TASKS) == 15
    assert {name for name in CHOMSKY if "/" not in name} == {own_name(d.__name__) for d in OWN}


@pytest.mark.parametrize("task", TASKS)
def test_what_is_proved(task):
    """The certificate has as many cases as the table says."""
    certificate = ef.construct(find_domain(f"chomsky/{task}")).certify()
    cases = int(re.findall(r"[\d,]+(?= cases$)", TASKS[task].proved)[0].replace(",", ""))
    assert (certificate.verdict, certificate.findings.rows) == ("exact", cases)
    assert cases < MOST_CASES


@pytest.mark.parametrize("task", ["even_pairs", "modular_arithmetic"])
def test_what_is_learned(task, tmp_path):
    """One seed of tasks that are learned soon; benchmarks/chomsky.py has ten of all."""
    domain = find_domain(f"chomsky/{task}")
    recipe = recipe_by_method(None, domain, {})
    (result,) = train_seeds(domain, [7520], recipe=recipe, out=tmp_path, device="cpu", observers=[])
    assert result.exact


@pytest.mark.parametrize("task", TASKS)
def test_the_page_has_every_task(task):
    page = (Path(__file__).resolve().parent.parent / "docs" / "chomsky.md").read_text()
    tasks = page.partition("## The tasks")[2].partition("\n## ")[0]
    (row,) = re.findall(rf"^\| `{task}` \|.* \| (.*) \| (.*) \| (.*) \|$", tasks, re.M)
    assert row == TASKS[task][1:]


def test_what_info_says():
    said = json.loads(output("info", "chomsky/parity_check", "--json"))
    task = TASKS["parity_check"]
    assert said["task"] == "chomsky/parity_check"
    assert [said[key] for key in ("learned", "constructed", "proved")] == [*task[1:]]
    assert "task" not in json.loads(output("info", "parity", "--json"))


def test_an_unknown_task():
    said = refused("eval", "chomsky/parity_chek", "1 1")
    assert "expected a task of the benchmark, even_pairs" in said
    assert "did you mean 'parity_check'?" in said


def test_a_file_cannot_take_the_name_of_a_task(tmp_path):
    path = tmp_path / "own.toml"
    example = Path(__file__).resolve().parent.parent / "examples" / "machines" / "thirds.toml"
    path.write_text(example.read_text().replace('"thirds"', '"chomsky-odds-first"'))
    assert "expected another name than the built-in" in refused("eval", path, "1 0")


@pytest.mark.parametrize("task", ["parity_check", "modular_arithmetic_brackets"])
def test_a_proof_of_a_task(task, tmp_path):
    weights, proof = tmp_path / "weights.safetensors", tmp_path / "proof.json"
    output("construct", f"chomsky/{task}", "--out", weights)
    output("certify", f"chomsky/{task}", "--weights", weights, "--out", proof)
    said = output("verify", proof, weights, "--algebra", f"chomsky/{task}")
    assert said.startswith("accepted")
    assert "another" not in said
    assert "(built in)" in said or "as asked for" in said
    other = "chomsky/even_pairs" if task == "parity_check" else "chomsky/solve_equation"
    status, _, _ = exactformer("verify", str(proof), str(weights), "--algebra", other)
    assert status != 0


def test_a_trace():
    shown = output("trace", "chomsky/modular_arithmetic_brackets", "8 1 5 2 9 7 3")
    assert shown.startswith("(1+2)*3\n")
    assert "value 4" in shown


# Scores


def score(domain: str | Path, path: Path, *options: str) -> dict:
    status, printed, errors = exactformer("score", str(domain), str(path), *options, "--json")
    assert errors == ""
    result = json.loads(printed)
    assert status == (0 if result["correct"] == result["total"] else 1)
    return result


@pytest.mark.parametrize(
    ("task", "engine"), [*product(TASKS, ["model"]), ("modular_arithmetic_brackets", "fast")]
)
def test_score(task, engine, tmp_path):
    path, program = tmp_path / "rows.tsv", PROGRAMS[task]
    texts = drawn(task, 20, 30)
    lines = [f"{spelt(text)}\t{spelt(program.answer(text))}" for text in texts]
    path.write_text("\n".join(lines) + "\n")
    result = score(f"chomsky/{task}", path, "--format", "tsv", "--engine", engine)
    assert (result["correct"], result["total"], result["wrong"]) == (20, 20, [])


def test_score_of_a_wrong_row(tmp_path):
    path = tmp_path / "rows.tsv"
    path.write_text("1 1 0\t0\n1 1 1\t0\n")
    result = score("chomsky/parity_check", path)
    assert (result["correct"], result["total"]) == (1, 2)
    assert result["wrong"] == [{"line": 2, "expected": "0", "found": "1"}]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("engine", ["auto", "model"])
def test_the_rows_of_the_benchmark(task, engine):
    folder = os.environ.get("EXACTFORMER_DATA")
    if not folder:
        pytest.skip("EXACTFORMER_DATA does not name the folder of the published files")
    path = Path(folder) / "chomsky" / f"{task}.tsv"
    result = score(f"chomsky/{task}", path, "--format", "tsv", "--engine", engine)
    assert (result["correct"], result["total"], result["wrong"]) == (640, 640, [])


# Answers of which some places do not count

LAST_TWO = ef.Machine.from_rule(  # each symbol is answered with the one two before it, or 2
    "last-two", "01", "22", lambda kept, x: kept[1] + x, each=lambda kept, x: kept[0]
)


@pytest.fixture
def last_two(tmp_path) -> Path:
    """The machine as a file."""
    path = tmp_path / "last_two.toml"

    def toml(value: object) -> str:
        if isinstance(value, dict):
            pairs = (f"{json.dumps(key)} = {toml(part)}" for key, part in value.items())
            return "{ " + ", ".join(pairs) + " }"
        return json.dumps(value)

    data = LAST_TWO.to_dict().items()
    path.write_text("".join(f"{key} = {toml(value)}\n" for key, value in data))
    return path


@pytest.mark.parametrize(
    ("label", "right"),
    [
        ("2 2 0 1", True),
        ("220 1", True),
        (". . 0 1", True),
        ("2 . . 1", True),
        ("2 2 0 . ", True),
        ("2 2 0 1 .", True),
        ("2 2 0 1 . . .", True),
        ("2 2 1 .", False),
        (". 1 . .", False),
        ("2 2 0", False),
        ("2 . .", False),
        ("2 2 0 1 1", False),
        ("2 2 0 1 . 1", False),
    ],
)
def test_places_that_do_not_count(label, right, last_two, tmp_path):
    """The answer is 2 2 0 1."""
    path = tmp_path / "rows.tsv"
    path.write_text(f"0 1 1 0\t{label}\n")
    result = score(last_two, path)
    assert (result["correct"], result["total"]) == (int(right), 1)
    assert [row["found"] for row in result["wrong"]] == [] if right else ["2201"]


@pytest.mark.parametrize(
    ("line", "column", "problem"),
    [
        ("0 1\t2 5", 7, "expected one of 0 1 2 ., found '5'"),
        ("0 1\t", 5, "expected an answer, found nothing"),
        ("0 1\t. .", 5, "expected an answer, found '. .'"),
        ("0 . 1\t2 2 .", 3, "expected 0 or 1, found '.', which is no token"),
    ],
)
def test_a_label_that_is_none_is_located(line, column, problem, last_two, tmp_path):
    path = tmp_path / "rows.tsv"
    path.write_text(f"{line}\n")
    assert f"line 1, column {column}: {problem}" in refused("score", last_two, path)


def test_the_mark_is_a_symbol_where_a_domain_has_such_a_symbol(tmp_path):
    """Every place counts in answers of `flip-flop`, which have dots themselves."""
    path = tmp_path / "rows.tsv"
    path.write_text("1irr\t..11\n1irr\t..1.\n")
    result = score("flip-flop", path)
    assert (result["correct"], result["total"]) == (1, 2)
    assert result["wrong"] == [{"line": 2, "expected": "..1.", "found": "..11"}]


def test_an_answer_of_one_symbol_always_counts(tmp_path):
    path = tmp_path / "rows.tsv"
    path.write_text("0 1\t.\n")
    assert "expected one of" in refused("score", "chomsky/parity_check", path)
    assert "expected one of" in refused("score", "arithmetic", path)
    assert read_label(ef.arithmetic(), ".") is None
    assert read_label(find_domain("integers"), "1 . 2") is None


def test_labels_and_answers_with_words_for_symbols():
    machine = ef.Machine.from_rule(
        "swap", ["on", "off"], 0, lambda q, x: q, each=lambda q, x: "off" if x == "on" else "on"
    )
    assert read_label(machine, " on  .  off ") == "on . off"
    assert read_label(machine, "on x") is None
    assert agrees(machine, "on off off", "on . off")
    assert agrees(machine, "on off", "on off .")
    assert not agrees(machine, "on off off", "off . off")
    assert not agrees(machine, None, "on . off")
