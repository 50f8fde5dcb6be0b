"""Integers: their texts, the layer and its weights, and the certificate."""

import json
import pickle
import random
import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import exactformer as ef
from exactformer.domains.catalog import find_domain
from exactformer.domains.integers import BASES, Integers, integers
from exactformer.domains.kinds import load_domain, read_domain
from exactformer.domains.numerals import to_integer, to_numeral
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import enumerate_length
from exactformer.domains.syntax import parse
from exactformer.model.iterations import most_iterations
from exactformer.model.layers import LAYERS
from exactformer.model.predict import outcomes, predict
from exactformer.verify import proof
from exactformer.verify.integer_spans import wrong_spans
from exactformer.verify.integer_tables import Tables
from exactformer.verify.rows import look_up
from tests.in_process import run_here

SYMBOLS = ("+", "-", "*", "<", "=", ">")


@pytest.fixture(scope="module")
def decimal() -> ef.Model:
    return ef.construct(integers())


def value(symbol: str, a: int | None, b: int | None) -> int | None:
    """The value of an operator by Python, None for what is below zero."""
    if a is None or b is None:
        return None
    rules = {"+": a + b, "-": a - b, "*": a * b, "<": a < b, "=": a == b, ">": a > b}
    found = int(rules[symbol])
    return found if found >= 0 else None


def random_text(
    rng: random.Random, depth: int, digits: int, base: int = 10
) -> tuple[str, int | None]:
    """A random text of this depth, with its value."""
    if depth == 0:
        number = rng.randrange(base ** rng.randint(1, digits))
        return to_numeral(number, base), number
    depths = [depth - 1, rng.randrange(depth)]
    rng.shuffle(depths)
    (left, a), (right, b) = (random_text(rng, d, digits, base) for d in depths)
    symbol = rng.choice((*SYMBOLS, "+", "*", "+"))
    return f"({left}{symbol}{right})", value(symbol, a, b)


def shown(number: int | None, base: int = 10) -> str:
    return "?" if number is None else to_numeral(number, base)


BY_HAND = [
    ("(123+(45*678))", "30633"),
    ("0", "0"),
    ("907", "907"),
    ("( 1000 - 999 )", "1"),
    ("(0-0)", "0"),
    ("(3-5)", "?"),
    ("((3-5)+7)", "?"),
    ("((3-5)*(120*7))", "?"),
    ("((120*7)*(3-5))", "?"),
    ("((3-5)=(3-5))", "?"),
    ("(0*345)", "0"),
    ("(345*0)", "0"),
    ("((12<3)+(3<12))", "1"),
    ("((10*10)=100)", "1"),
    ("(100>99)", "1"),
    ("((100-99)+((0<0)-0))", "1"),
    ("(99999+((1+1)+1))", "100002"),
]


@pytest.mark.parametrize(("text", "expected"), BY_HAND)
def test_values_found_by_hand(decimal, text, expected):
    assert evaluate(parse(decimal.domain, text)) == expected
    assert decimal(text) == expected


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_all_pairs_of_small_numbers(decimal, symbol):
    pairs = [(a, b) for a in range(0, 112, 3) for b in range(0, 112, 2)]
    texts = [parse(decimal.domain, f"({a}{symbol}{b})") for a, b in pairs]
    assert decimal.predict(texts) == [shown(value(symbol, a, b)) for a, b in pairs]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(BASES))
def test_nested_texts_have_the_value_that_python_gives(seed, base):
    rng, domain = random.Random(seed), integers(base)
    drawn = [random_text(rng, rng.randint(1, 3), rng.choice((2, 9)), base) for _ in range(12)]
    texts = [parse(domain, text) for text, _ in drawn]
    expected = [shown(number, base) for _, number in drawn]
    assert [evaluate(text) for text in texts] == expected
    found = outcomes(domain, ef.construct(domain, "table").weights, texts)
    assert [outcome.value for outcome in found] == expected
    for text, outcome in zip(texts, found, strict=True):
        assert outcome.iterations <= most_iterations(text, "depth")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_texts_of_a_batch_do_not_mix(dtype):
    domain, rng = integers(2), random.Random(0)
    texts = [random_text(rng, rng.randint(0, 4), 5, 2)[0] for _ in range(300)]
    expressions = [parse(domain, text) for text in texts]
    found = predict(domain, ef.construct(domain).weights, expressions, dtype)
    assert found == [evaluate(expression) for expression in expressions]


def test_a_carry_through_many_digits_takes_one_iteration(decimal):
    n = 20_000
    (outcome,) = decimal.outcomes([parse(decimal.domain, f"({'9' * n}+1)")])
    assert outcome.value == "1" + "0" * n
    assert outcome.iterations == 1


def test_a_product_takes_an_iteration_for_each_digit_of_the_right_operand(decimal):
    (outcome,) = decimal.outcomes([parse(decimal.domain, "(98765432109876543210*98765)")])
    assert outcome.value == str(98765432109876543210 * 98765)
    assert outcome.iterations == 5


def test_a_product_of_a_product_may_take_more_iterations_than_its_text_has_digits(decimal):
    (outcome,) = decimal.outcomes([parse(decimal.domain, "(6*(77*84083346))")])
    assert (outcome.value, outcome.iterations) == (str(6 * 77 * 84083346), 18)


# Texts

BAD = [
    ("007", 2, "expected a number without leading zeros, found '0' behind a 0"),
    ("(12+01)", 6, "expected a number without leading zeros, found '1' behind a 0"),
    ("(1+)", 4, "expected a number or '(', found ')': an operand is missing"),
    ("(+1)", 2, "+ comes where an operand is missing"),
    ("(-3)", 2, "- comes where an operand is missing"),
    ("((1+2)(3+4))", 7, "expected an operator (+ - * < = >), found '(': no operator between"),
    ("(12)", 4, "these parentheses hold no operator"),
    ("()", 2, "empty parentheses"),
    ("(1+2+3)", 5, "a second operator in the same parentheses"),
    ("1+2", 2, "each operator needs its parentheses, as in (1+1)"),
    ("(1 2+3)", 3, "expected the digits of a number side by side, found ' '"),
    ("(1+2", 5, "expected a digit or ')', found the end of the text (1 parenthesis unclosed)"),
    ("(1+2))", 6, "no parenthesis is open"),
    ("(1+2)3", 6, "expected the end of the text, found '3'"),
    ("(1?2)", 3, "found '?', which is no token"),
    ("(a+1)", 2, "found 'a', which is no token"),
    ("", 1, "expected a number or '(', found no text"),
]


@pytest.mark.parametrize(("text", "column", "problem"), BAD)
def test_bad_texts_are_refused_where_they_are_bad(text, column, problem):
    status, printed, errors = run_here(["eval", "integers", "--", text])
    assert (status, printed) == (2, "")
    assert problem in errors
    assert f"line 1, column {column}: " in errors


def test_every_text_of_a_length_is_listed_once_and_reads_back():
    domain = integers(3)
    for length in range(1, 8):
        texts = [str(text) for text in enumerate_length(domain, length)]
        assert len(texts) == len(set(texts))
        assert all(parse(domain, text).ids.size == length for text in texts)
    of_five = [text for text in map("".join, _strings("012+*()", 5)) if _is_text(domain, text)]
    listed = {str(text) for text in enumerate_length(domain, 5)}
    assert {text for text in listed if not set(text) & set("-<=>")} == set(of_five)


def _strings(symbols: str, length: int) -> Sequence[Sequence[str]]:
    if not length:
        return [()]
    return [(symbol, *rest) for symbol in symbols for rest in _strings(symbols, length - 1)]


def _is_text(domain: Integers, text: str) -> bool:
    try:
        parse(domain, text)
    except ef.ExpressionError:
        return False
    return True


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**50), st.integers(0, 9_000), st.sampled_from(BASES))
def test_numerals_are_pythons_integers(number, zeros, base):
    number = number * base**zeros + zeros
    numeral = to_numeral(number, base)
    assert to_integer(numeral, base) == number
    assert numeral == "0" or numeral[0] != "0"
    if len(numeral) < 4_000:
        assert int(numeral, base) == number


def test_integers_are_plain_data_of_some_bases():
    for base in BASES:
        domain = integers(base)
        assert find_domain(domain.name) == domain == read_domain(domain.to_dict())
        assert pickle.loads(pickle.dumps(domain)) == domain
    assert str(parse(integers(16), "(Ff+10)")) == "(ff+10)"
    with pytest.raises(ValueError, match="base: expected 2 to 10, or 16, found 11"):
        read_domain(integers().to_dict() | {"base": 11})
    with pytest.raises(ValueError, match=r"expected one of .* integers"):
        find_domain("integers-17")


def test_a_file_defines_integers_of_another_name(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('kind = "integers"\nname = "mine"\nbase = 7\n')
    assert ef.construct(load_domain(path))("(6+6)") == "15"
    path.write_text('kind = "integers"\nname = "integers-7"\nbase = 7\n')
    with pytest.raises(ValueError, match="expected another name than the built-in 'integers-7'"):
        load_domain(path)


# The command line, runs and traces


def test_commands_give_values_one_by_one(tmp_path):
    path = tmp_path / "lines"
    path.write_text("(1+2)\n7\n(1-2)\n")
    assert run_here(["eval", "integers", "--file", str(path)])[1] == "3\n7\n?\n"
    status, printed, _ = run_here(["eval", "integers-2", "(101*11)", "--json"])
    assert status == 0
    assert json.loads(printed) == {"engine": "model", "value": "1111", "iterations": 2}


def test_every_tap_is_reported_and_can_be_patched(decimal):
    run = decimal.run("(347+58)")
    assert run.value == "405"
    assert {name for _, name in run.cache} >= set(LAYERS["integers"].taps)
    no_carry = decimal.run("(347+58)", {(1, "u"): torch.zeros_like})
    assert no_carry.value == "395"
    unknown = decimal.run("(347+58)", {(1, "F"): lambda F: torch.full_like(F, F.shape[1] - 1)})
    assert unknown.value == "5"  # that of the lowest place, at which the state is the start


def test_a_trace_has_places_carries_and_accumulators(decimal):
    first, last = decimal.trace("(95*12)").steps
    assert first.rows()["place"] == ["·", 1, 0, "·", 1, 0, "·"]
    assert first.rows()["after"] == ["(", "9", "5", "*", "·", "2+9'", ")+5'"]
    assert [*last.events(decimal.domain)] == ["cluster 1: (95*2+9')+5' becomes 1140"]


def test_saved_and_loaded_weights_are_the_same_model(tmp_path):
    model = ef.construct(integers(3))
    model.save(tmp_path / "three.safetensors")
    loaded = ef.load(tmp_path / "three.safetensors")
    assert loaded == model
    loaded.certify().save(tmp_path / "proof.json")
    assert proof.verify(tmp_path / "proof.json", tmp_path / "three.safetensors").exact


# The certificate


@pytest.mark.parametrize("name", ["integers-2", "integers-3", "integers"])
@pytest.mark.parametrize("feedforward", ["closed", "table"])
def test_constructed_weights_are_certified(name, feedforward):
    if (name, feedforward) != ("integers", "closed"):  # 14,000 hidden units: a minute
        assert ef.construct(find_domain(name), feedforward).certify().exact


def changed(model: ef.Model, rng: np.random.Generator) -> ef.Model:
    """The model with what is written, or the next state, of one row of its table changed."""
    f, D, W = model.weights.f, model.weights.D, model.weights.W
    outputs, row = f.outputs.clone(), int(rng.integers(len(f.outputs)))
    first, count = (0, D) if rng.random() < 0.5 else (D, W)
    outputs[row, first : first + count] = 0
    if (chosen := int(rng.integers(-1, count))) >= 0:
        outputs[row, first + chosen] = 1
    return ef.Model(model.domain, replace(model.weights, f=replace(f, outputs=outputs)))


def test_changed_tables_are_certified_only_if_they_are_right():
    """Certified weights are right on texts of many kinds; others have a counterexample."""
    rng, drawn = np.random.default_rng(0), random.Random(0)
    model = ef.construct(integers(2), "table")
    texts = {f"({a:b}{s}{b:b})" for s in SYMBOLS for a in range(9) for b in range(9)}
    texts |= {random_text(drawn, drawn.randint(1, 3), 5, 2)[0] for _ in range(300)}
    expressions = [parse(model.domain, text) for text in sorted(texts)]
    expected = [evaluate(expression) for expression in expressions]
    verdicts = {"exact": 0, "inexact": 0, "undecided": 0}
    for _ in range(40):
        mutant = changed(model, rng)
        certificate = mutant.certify()
        verdicts[certificate.verdict] += 1
        if certificate.exact:
            assert mutant.predict(expressions) == expected
        elif (example := certificate.counterexample) is not None:
            found = mutant.predict([example.expression])
            assert found == [example.found] != [evaluate(example.expression)]
    assert verdicts["undecided"] == 0
    assert verdicts["exact"] > 5 < verdicts["inexact"]


def test_what_no_text_leads_to_may_be_anything():
    """Perceptrons that are learned write several tokens at once in rows that do not come up."""
    domain, rng = integers(2), np.random.default_rng(2)
    model = ef.construct(domain, "table")
    f, W = model.weights.f, model.weights.W
    rows = f.bags.numpy(), f.outputs.numpy()
    tables = Tables(domain, W, lambda H: look_up(H, *rows))
    assert wrong_spans(domain, tables) == ()
    outputs = look_up(tables.H, *rows)
    out = np.setdiff1d(np.arange(len(outputs)), [*tables.reached])
    outputs[out] = rng.random((len(out), f.width)) < 0.3
    made = torch.from_numpy(tables.H).short(), torch.from_numpy(outputs).to(torch.int8)
    other = ef.Model(domain, replace(model.weights, f=type(f)(*made)))
    certificate = other.certify()
    assert certificate.exact
    assert certificate.findings.rows == model.certify().findings.rows == len(tables.reached)
    assert len(out) > 100


def test_states_need_no_names_and_may_be_more_than_are_needed():
    """Weights with states in another order, and each of them twice, are certified."""
    model, rng = ef.construct(integers(2), "table"), np.random.default_rng(1)
    f, D, W = model.weights.f, model.weights.D, model.weights.W
    names = [0, *(1 + rng.permutation(2 * W - 1))]  # the start remains the first
    bags, outputs = [], []
    for bag, output in zip(f.bags.numpy(), f.outputs.numpy(), strict=True):
        for copy in range(2):
            state = names[int(bag[2 * D :].argmax()) + copy * W]
            following = names[int(output[D:].argmax()) + int(rng.integers(2)) * W]
            bags.append([*bag[: 2 * D], *np.eye(2 * W, dtype=int)[state]])
            outputs.append([*output[:D], *np.eye(2 * W, dtype=int)[following]])
    made = [torch.tensor(np.array(bags)).short(), torch.tensor(np.array(outputs)).to(torch.int8)]
    split = ef.Model(model.domain, replace(model.weights, f=type(f)(*made)))
    assert split.weights.W == 2 * W
    assert split.certify().exact
    assert split("((11*101)-(1+1))") == "1101"


@pytest.mark.parametrize("name", ["G_PE", "G_N", "G_O", "G_F"])
def test_changed_gates_are_certified_only_if_they_are_right(name):
    model = ef.construct(integers(2), "table")
    texts = ["(1+1)", "(11-1)", "(10*11)", "(101<11)", "((1*11)=(1+10))", "(1>0)", "((0-1)+1)"]
    expressions = [parse(model.domain, text) for text in texts]
    expected = [evaluate(expression) for expression in expressions]
    for token in range(model.weights.D):
        for number in (-1, 0, 1):
            gate = getattr(model.weights, name).clone()
            gate[token] = number
            mutant = ef.Model(model.domain, replace(model.weights, **{name: gate}))
            right = mutant.predict(expressions) == expected  # wrong weights must not fail, either
            assert right or not mutant.certify().findings.exact


def test_a_counterexample_is_replayed_and_the_shortest():
    """Weights whose carry is lost where 1 and 1 meet with a carry."""
    model = ef.construct(integers(2), "table")
    f, D, tokens = model.weights.f, model.weights.D, model.domain.token_ids
    wanted = torch.zeros_like(f.bags[0])
    wanted[[tokens["1"], D + tokens["1"], D + tokens["+"], 2 * D + 1]] = 1
    (row,) = (f.bags == wanted).all(1).nonzero().flatten().tolist()
    outputs = f.outputs.clone()
    outputs[row, D:] = torch.eye(model.weights.W)[0]
    mutant = ef.Model(model.domain, replace(model.weights, f=replace(f, outputs=outputs)))
    certificate = mutant.certify()
    assert certificate.verdict == "inexact"
    example = certificate.counterexample
    assert example is not None
    assert (str(example.expression), example.expected, example.found) == ("(11+11)", "110", "10")
    assert re.search(r"shortest counterexample: \(11\+11\) is 110, not 10", str(certificate))


def test_info_and_samples(tmp_path):
    status, printed, _ = run_here(["info", "integers-2", "--json"])
    assert status == 0
    assert json.loads(printed)["digits"] == ["0", "1"]
    rows = tmp_path / "rows.tsv"
    rows.write_text(run_here(["sample", "integers", "--count", "20", "--depth", "3"])[1])
    assert run_here(["score", "integers", str(rows)])[1].startswith("20 of 20 rows right")


def test_a_check_that_would_not_end_is_refused(monkeypatch):
    """Crafted weights can have a number of pairs that grows exponentially."""
    monkeypatch.setattr("exactformer.verify.integer_spans.MOST_SPAN_PAIRS", 100)
    with pytest.raises(ValueError, match="pairs of states to go through: expected 100 at most"):
        ef.construct(integers(2)).certify()
