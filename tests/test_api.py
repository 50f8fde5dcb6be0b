"""`Model.evaluate` and `parse`: one way to evaluate, and one to read any notation."""

import pytest

import exactformer as ef
from exactformer import certify
from exactformer.api import Model, construct
from exactformer.domains.reference import evaluate
from exactformer.engine import cpu, loaded, read_off
from exactformer.evaluation import values
from exactformer.model import predict

TEXT = "(1&(~0))"


@pytest.mark.parametrize("engine", ["auto", "fast", "model"])
def test_one_or_several_of_every_kind(engine):
    model = construct(ef.boolean())
    expression = ef.parse(model.algebra, TEXT)
    for one in (TEXT, TEXT.encode(), expression, f" {TEXT} "):
        for _ in range(2):  # before and after the engine is made
            assert model.evaluate(one, engine) == "1"
    assert model.evaluate([TEXT, b"0", expression], engine) == ["1", "0", "1"]
    assert model.evaluate((), engine) == []
    assert model(TEXT) == "1"


@pytest.mark.parametrize("engine", ["auto", "fast", "model"])
def test_bad_text_is_located_before_anything_is_made(engine, monkeypatch):
    def must_not(*arguments):
        raise AssertionError("the text was to be looked at first")

    monkeypatch.setattr(loaded, "findings", must_not)
    monkeypatch.setattr(read_off, "read_off", must_not)
    monkeypatch.setattr(predict, "require_outcomes", must_not)
    for texts, notes in (("(1&", []), (["1", "(1&"], ["in text 2 of 2"])):
        with pytest.raises(ef.ExpressionError) as raised:
            construct(ef.boolean()).evaluate(texts, engine)
        assert (raised.value.line, raised.value.column) == (1, 4)
        assert getattr(raised.value, "__notes__", []) == notes


def test_nothing_is_parsed_where_the_engine_is_made(monkeypatch):
    model = construct(ef.boolean())
    assert model.evaluate("(1&0)") == "0"
    monkeypatch.setattr(values, "parse", lambda *given: pytest.fail("it was parsed"))
    assert model.evaluate("(1|0)") == "1"
    assert model.evaluate(["(1|0)", b"(~1)"]) == ["1", "0"]


def test_long_texts_are_left_to_the_engine():
    model = construct(ef.boolean())
    long = "(~" * values.MANY + "0" + ")" * values.MANY
    assert model.evaluate(long) == "0"
    with pytest.raises(ef.ExpressionError) as raised:
        construct(ef.boolean()).evaluate(long[:-1])
    assert raised.value.column == len(long)


def test_engines_that_are_asked_for():
    model = construct(ef.listops(None))
    assert model.fast_engine() is None  # tables cover only some
    wide = f"( MAX {'1 ' * 300}7 )"
    assert model.evaluate(wide) == model.evaluate(wide, "model") == "7"
    with pytest.raises(ValueError, match="engine: expected auto, fast or model, found 'quick'"):
        model.evaluate("1", "quick")  # pyright: ignore
    with pytest.raises(ValueError, match="expected an expression of 'boolean', found one of"):
        construct(ef.boolean()).evaluate(ef.parse(ef.arithmetic(), "1"))


def inexact() -> Model:
    model = construct(ef.boolean(), "table")
    outputs = model.weights.f.outputs  # pyright: ignore
    outputs[0] = 1 - outputs[0]
    return model


def test_weights_that_are_not_exact():
    model = inexact()
    with pytest.raises(ValueError, match="needs weights that are certified exact"):
        model.evaluate("1", "fast")
    assert model.fast_engine() is None
    assert model.evaluate("1") == "1"


def test_too_much_work_is_refused():
    model = construct(ef.boolean())
    with pytest.raises(ValueError, match="--no-limit"):
        model.evaluate(TEXT, "model", most_work=3)
    shares: list[float] = []
    model.evaluate([TEXT, "(1&0)"], "model", tell=shares.append)
    assert shares[-1] == 1.0


def test_the_weights_are_checked_once(monkeypatch):
    """By evaluating, certifying and scoring together."""
    checks = []
    real = certify.check_all

    def counted(*arguments):
        checks.append(arguments)
        return real(*arguments)

    monkeypatch.setattr(certify, "check_all", counted)
    model = construct(ef.boolean())
    assert model.evaluate(TEXT) == "1"
    assert model.certify() is model.certify()
    assert model.certify().verdict == "exact"
    assert isinstance(model.fast_engine("fast"), cpu.CpuEngine)
    assert len(checks) == 1


@pytest.mark.parametrize(
    ("algebra", "text", "syntax", "native"),
    [
        (ef.boolean(), "not True or 1", "python", "((~1)|1)"),
        (ef.listops(), "[MAX 1 [MIN 2 3 ] ]", "nangia", "( MAX 1 ( MIN 2 3 ) )"),
        (ef.boolean(), "( 1 & 0 )", "native", "(1&0)"),
    ],
)
def test_notations(algebra, text, syntax, native):
    expression = ef.parse(algebra, text, syntax)
    assert str(expression) == native
    assert construct(algebra).evaluate(expression) == evaluate(expression)
    with pytest.raises(ef.ExpressionError, match=r"line 3, column 1"):
        ef.parse(algebra, "?", syntax, first_line=3)


def test_unknown_notation():
    with pytest.raises(ValueError, match="syntax: expected one of native, python, nangia"):
        ef.parse(ef.boolean(), "1", "latin")  # pyright: ignore
