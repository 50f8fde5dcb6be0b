"""The attack on the explorer's server, briefly; and that it would notice a fault."""

from attacks import requests
from attacks.requests import Case, attack, cases, request


def test_nothing_is_found():
    """All kinds but one, of which the server's patience makes ten seconds; that one is in
    test_explorer_connections.py.
    """
    report = attack(40, seed=391)
    assert report.found == []
    assert sum(report.tried.values()) == 40
    assert len(report.tried) == len({*requests.OFTEN, *requests.SELDOM}) - 1
    assert report.tried["good traces"] > 1


def test_the_same_seed_sends_the_same():
    once, again = cases(300, seed=1), cases(300, seed=1)
    assert [case.data for case in once] == [case.data for case in again]
    assert len({case.kind for case in once}) == len({*requests.OFTEN, *requests.SELDOM})


def test_wrong_answers_are_noticed(monkeypatch):
    """Good requests of which another status, another value and another kind of answer is asked."""
    wrong = [
        Case("a", request("GET", "/api/models"), 404),
        Case("b", request("GET", "/api/models"), 200, lambda answer: answer == {}),
        Case("c", request("GET", "/"), 200),
        Case("d", request("GET", "/api/models"), 200),
    ]
    monkeypatch.setattr(requests, "cases", lambda count, seed: wrong)
    found = attack(4, seed=0).found
    assert [fault[0] for fault in found] == ["a", "b", "c"]
