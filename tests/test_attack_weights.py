"""The attack on the certificate: a small run of it finds nothing, and it can find something."""

from attacks import weights as attacks
from exactformer import certify
from exactformer.verify import conditions


def test_a_small_attack_finds_nothing():
    report = attacks.attack(24, seed=1)
    assert not report.found
    assert sum(report.tried.values()) == 24
    assert {"exact", "inexact"} <= {kind.split(": ")[1] for kind in report.tried}


def test_a_certificate_that_believes_everything_is_found_out(monkeypatch):
    believing = conditions.Findings
    monkeypatch.setattr(believing, "exact", property(lambda self: True))
    assert any("called exact, and wrong" in found for found in attacks.attack(22, seed=1).found)


def test_a_counterexample_that_is_none_is_found_out(monkeypatch):
    right = certify._first_wrong

    def first_wrong(algebra, weights, expressions):
        example = right(algebra, weights, expressions)
        return example and certify.replace(example, found=example.expected)

    monkeypatch.setattr(certify, "_first_wrong", first_wrong)
    assert any("is no counterexample" in found for found in attacks.attack(22, seed=1).found)
