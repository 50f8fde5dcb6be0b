"""What all tests share."""

import pytest
from hypothesis import settings

from exactformer.domains.algebra import Algebra
from tests.algebras import ALGEBRAS, TASKS

# The same examples on every run: a red test is red for everyone. Deadlines punish slow machines.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


@pytest.fixture(params=TASKS, ids=lambda algebra: algebra.name)
def task(request) -> Algebra:
    """Each of the paper's three."""
    return request.param


@pytest.fixture(params=ALGEBRAS, ids=lambda algebra: algebra.name)
def algebra(request) -> Algebra:
    """Those and some more."""
    return request.param
