"""A kill just before a file gets its name, and a full disk; the whole attack is
`python -m attacks.kills --count 100`.
"""

from random import Random

from attacks.kills import _fill_disk, attack
from attacks.report import Report


def test_a_killed_run_ends_with_the_same_bytes():
    report = attack(1, seed=5)
    assert report.found == []
    assert report.tried["killed before a rename"] == 1
    assert report.tried["files compared"] >= 10


def test_a_full_disk_leaves_nothing_half_written(tmp_path):
    report = Report("")
    assert not _fill_disk(tmp_path / "run", Random(1), report)
    assert report.tried == {"found the disk full": 1}
    assert report.found == []
