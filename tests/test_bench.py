"""`exactformer bench`: its shapes, its rivals and its page. Nothing here depends on the clock."""

import json
import subprocess
import sys

import numpy as np
import pytest

import exactformer as ef
from exactformer.bench.batches import LOOPED, TRANSFORMER
from exactformer.bench.measure import Case, Timing, growth, sizes_up_to, time_in_turns
from exactformer.bench.rivals import ENGINE, EVAL, FLOORS, PROGRAMS, TooDeep, programs
from exactformer.bench.shapes import MIXES, SHAPES, make_ids, text_of
from exactformer.bench.short import FLOOR, LENGTHS, SHORT_PROGRAMS, short_programs
from exactformer.domains.catalog import CATALOG
from exactformer.domains.expression import Expression
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw
from exactformer.domains.syntax import parse
from tests.test_cli_model import output

DOMAINS = sorted(CATALOG)
COMMAND = [sys.executable, "-m", "exactformer", "bench"]


@pytest.fixture(scope="module")
def rivals():
    return {domain: programs(ef.construct(CATALOG[domain]())) for domain in DOMAINS}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("domain", DOMAINS)
def test_shapes_are_expressions_of_the_wanted_length(domain, shape):
    algebra = CATALOG[domain]()
    one_leaf_more = MIXES[domain].tokens(8) - MIXES[domain].tokens(7)
    for tokens in (5, 6, 9, 33, 200, 5_000):
        ids = make_ids(algebra, shape, tokens, np.random.default_rng(tokens))
        text = text_of(algebra, ids)
        parsed = parse(algebra, text)
        assert np.array_equal(parsed.ids, ids)
        assert str(parsed).encode() == text
        assert tokens - one_leaf_more < len(ids) <= tokens


@pytest.mark.parametrize("domain", DOMAINS)
def test_shapes_have_their_depth(domain):
    algebra, mix = CATALOG[domain](), MIXES[domain]
    n_leaves = mix.leaves(5_000)
    depth = {
        shape: Expression(algebra, make_ids(algebra, shape, 5_000, np.random.default_rng(1))).depth
        for shape in SHAPES
    }
    inner = mix.small_spans(n_leaves) > 0  # the innermost leaf may be a span
    assert depth["balanced"] <= int(np.ceil(np.log2(n_leaves))) + inner
    assert depth["balanced"] < depth["random"] < 60
    for comb in ("comb", "right comb"):
        assert n_leaves - 1 <= depth[comb] <= n_leaves - 1 + inner
    left, right = (
        make_ids(algebra, shape, 5_000, np.random.default_rng(1))
        for shape in ("comb", "right comb")
    )
    assert (left == 0).nonzero()[0].mean() < (right == 0).nonzero()[0].mean()


def test_random_shapes_differ_by_seed():
    texts = {
        make_ids(CATALOG["boolean"](), "random", 400, np.random.default_rng(seed)).tobytes()
        for seed in range(5)
    }
    assert len(texts) == 5


def test_too_few_tokens_are_refused():
    with pytest.raises(ValueError, match="expected 5 tokens or more, found 4"):
        make_ids(CATALOG["boolean"](), "comb", 4, np.random.default_rng(0))


def test_an_unknown_shape_is_refused():
    with pytest.raises(ValueError, match=r"expected one of balanced, .* found 'bush'"):
        make_ids(CATALOG["boolean"](), "bush", 40, np.random.default_rng(0))


@pytest.mark.parametrize("domain", DOMAINS)
def test_every_program_agrees_with_the_oracle(domain, rivals):
    algebra, rng = CATALOG[domain](), np.random.default_rng(3)
    expressions = [e for depth in (1, 2, 4, 6) for e in draw(algebra, depth, 40, rng)]
    expressions += [
        Expression(algebra, make_ids(algebra, shape, tokens, rng))
        for shape in SHAPES
        for tokens in (5, 9, 60, 200)
    ]
    assert rivals[domain].keys() == set(PROGRAMS) - ({EVAL} if domain == "listops" else set())
    for expression in expressions:
        for name, program in rivals[domain].items():
            assert program(str(expression).encode()) == evaluate(expression), (name, expression)


@pytest.mark.parametrize("domain", DOMAINS)
def test_the_engine_beats_no_one_by_being_wrong_on_long_texts(domain, rivals):
    """Long enough for two cores, which the shorter texts above are not."""
    algebra, rng = CATALOG[domain](), np.random.default_rng(4)
    for shape in SHAPES:
        text = text_of(algebra, make_ids(algebra, shape, 2**21, rng))
        values = {name: rivals[domain][name](text) for name in (ENGINE, *FLOORS)}
        assert len(set(values.values())) == 1, values


@pytest.mark.parametrize("domain", DOMAINS)
def test_programs_for_short_texts_agree_with_the_oracle(domain):
    algebra, rng = CATALOG[domain](), np.random.default_rng(5)
    ready = short_programs(ef.construct(algebra))
    assert ready.keys() == set(SHORT_PROGRAMS) - ({EVAL} if domain == "listops" else set())
    every = [Expression(algebra, make_ids(algebra, "random", 5 + i, rng)) for i in range(200)]
    text = "".join(f"{expression}\n" for expression in every).encode()
    values = "".join(map(evaluate, every))
    assert {name: program(text) for name, program in ready.items()} == dict.fromkeys(ready, values)


def test_eval_says_that_a_comb_is_too_deep(rivals):
    algebra = CATALOG["boolean"]()
    text = text_of(algebra, make_ids(algebra, "comb", 4_000, np.random.default_rng(0)))
    with pytest.raises(TooDeep):
        rivals["boolean"][EVAL](text)
    ready = {name: rivals["boolean"][name] for name in (ENGINE, EVAL)}
    value, timings = time_in_turns(ready, text)
    assert value == ready[ENGINE](text)
    assert timings[EVAL] == Timing(None, "too deep")


def test_programs_that_disagree_are_an_error():
    with pytest.raises(RuntimeError, match="disagree"):
        time_in_turns({ENGINE: lambda text: "1", EVAL: lambda text: "0"}, b"(1&0)")


def test_growth_is_the_exponent_over_the_largest_sizes():
    def case(tokens: int, seconds: float) -> Case:
        return Case("boolean", "comb", tokens, tokens, "1", {ENGINE: Timing(seconds)})

    cases = [case(10, 5.0), case(100, 1.0), case(1_000, 100.0), case(10_000, 10_000.0)]
    assert growth(ENGINE, cases) == pytest.approx(2)
    assert growth(ENGINE, cases[:1]) is None
    assert growth(EVAL, cases) is None


def test_sizes_end_with_the_one_asked_for():
    assert sizes_up_to(50) == [50]
    assert sizes_up_to(10_000) == [1_000, 10_000]
    assert sizes_up_to(2**24)[-2:] == [2**22, 2**24]


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=300)


def test_json():
    found = json.loads(output("bench", "arithmetic", "--tokens", "300", "--json"))
    rows = found["rows"]
    assert {(row["shape"], row["program"]) for row in rows} == {
        (shape, program) for shape in SHAPES for program in PROGRAMS
    }
    for row in rows:
        assert row["tokens"] == row["bytes"] == 297
        assert row["note"] == ""  # 74 levels of a comb are not yet too deep for eval
        assert row["seconds"] * row["tokens_a_second"] == pytest.approx(297)
        assert row["growth"] is None  # of one size
    assert max(row["ratio"] for row in rows if row["program"] in FLOORS) == 1
    assert found["headline"] == []
    (batch,) = found["batches"]
    assert (batch["task"], batch["problems"]) == ("arithmetic", 6)
    assert set(batch["seconds"]) == {TRANSFORMER, LOOPED}
    short = found["short"]
    assert {(row["each"], row["program"]) for row in short} == {
        (f"{length} tokens", program) for length in LENGTHS for program in SHORT_PROGRAMS
    }
    assert {row["texts"] for row in short} == {300 // length for length in LENGTHS}
    assert all(row["ratio"] == 1 for row in short if row["program"] == FLOOR)


def test_page(tmp_path):
    page = tmp_path / "new" / "bench.md"
    printed = output("bench", "listops", "--tokens", "100", "--out", page)
    assert page.read_text().startswith(printed.rstrip())
    lines = printed.splitlines()
    for shape in SHAPES:
        speeds = [line for line in lines if line.startswith(f"| listops | {shape} | ")]
        assert len(speeds) >= 2  # speed and growth; memory of some shapes
    for length in LENGTHS:
        assert any(line.startswith(f"| listops | {length} tokens | ") for line in lines)
    assert not any("arithmetic" in line for line in lines)
    assert [path.name for path in page.parent.iterdir()] == ["bench.md"]


@pytest.mark.parametrize("arguments", [("bolean",), ("boolean", "--tokens", "4")])
def test_bad_arguments(arguments):
    result = bench(*arguments)
    assert result.returncode == 2
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
