"""A few kills and a full disk; `python -m attacks.kills --count 100` is the whole attack."""

from random import Random

from attacks.kills import _fill_disk, attack
from attacks.report import Report


def test_a_killed_run_ends_with_the_same_bytes():
    report = attack(2, seed=0)
    assert report.found == []
    assert sum(number for kind, number in report.tried.items() if kind.startswith("killed")) == 2
    assert report.tried["files compared"] >= 10


def test_a_full_disk_leaves_nothing_half_written(tmp_path):
    report = Report("")
    assert not _fill_disk(tmp_path / "run", Random(1), report)
    assert report.tried == {"found the disk full": 1}
    assert report.found == []
