"""Fixtures and settings that all tests share.

Nothing that needs torch is imported up here: shapes are checked in modules imported later only.
"""

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from exactformer.domains.algebra import Algebra
from exactformer.domains.sampling import DRAWN
from exactformer.verify import coq
from tests.algebras import ALGEBRAS, TASKS

# Started in the background, tests would ignore Ctrl-C, and so would the commands they interrupt.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests run side by side, a process on each core.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# The same examples on every run: a red test is red for everyone. Deadlines punish slow machines.
# Many more: pytest --hypothesis-profile thorough.
settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=40)
settings.register_profile("thorough", deadline=None, max_examples=2_000)
settings.load_profile("repeatable")


# A file's tests stay together, so the longest come first: no core is left with one at the end.
LONGEST = (
    "test_pages",
    "test_explorer_page",
    "test_explorer_connections",
    "test_engine_gpu",
    "test_notebooks",
    "test_units",
    "test_score",
    "test_training",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def place(item: pytest.Item) -> int:
        return LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST)

    items.sort(key=place)


@pytest.fixture(scope="session", autouse=True)
def cache_folder(tmp_path_factory) -> Path:
    """Tests keep nothing in the user's folder of caches."""
    folder = tmp_path_factory.mktemp("caches")
    os.environ["EXACTFORMER_CACHE_DIR"] = str(folder)
    return folder


@pytest.fixture(params=TASKS, ids=lambda algebra: algebra.name)
def task(request) -> Algebra:
    """Each of the paper's three tasks."""
    return request.param


@pytest.fixture(params=ALGEBRAS, ids=lambda algebra: algebra.name)
def algebra(request) -> Algebra:
    """Each of the paper's tasks, and some more algebras."""
    return request.param


@pytest.fixture
def short_search(monkeypatch):
    """Searching long for an error that does not exist takes minutes; a short search has the same
    duty to be right about what it finds.
    """
    monkeypatch.setattr("exactformer.certify.LONGEST", 9)
    monkeypatch.setattr("exactformer.certify.AT_MOST", 500)
    few = DRAWN["algebra"]._replace(larger=range(3, 4))
    monkeypatch.setitem(DRAWN, "algebra", few)


@pytest.fixture(scope="session")
def paper_run(tmp_path_factory) -> Path:
    """Boolean on the paper's ten seeds, by the command."""
    from tests.runs import ARGUMENTS, exactformer

    folder = tmp_path_factory.mktemp("paper") / "new" / "run"
    result = exactformer(*ARGUMENTS, folder)
    assert result.returncode == 0, result.stderr
    assert "certified 10 of 10" in result.stdout
    return folder


@pytest.fixture
def old_run(paper_run, tmp_path) -> Path:
    """A copy, to be spoiled."""
    return shutil.copytree(paper_run, tmp_path / "old")


@pytest.fixture
def interrupted(tmp_path, monkeypatch) -> Path:
    """A run of two of the paper's seeds with a checkpoint."""
    from exactformer.domains.catalog import boolean
    from exactformer.training.recipe import PAPER_SEEDS
    from exactformer.training.run import CHECKPOINT, train_seeds
    from tests.runs import Enough, StopAtFirstLook, files

    monkeypatch.setattr("exactformer.training.run.CHECKPOINT_SECONDS", 0.0)
    folder = tmp_path / "interrupted"
    with pytest.raises(Enough):
        train_seeds(boolean(), PAPER_SEEDS[:2], out=folder, observers=[StopAtFirstLook()])
    assert set(files(folder)) == {"run.json", CHECKPOINT}
    return folder


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Address of the explorer's server, started as a user starts it."""
    from tests.explorer import serving

    with serving() as address:
        yield address


@pytest.fixture(scope="module")
def client(address):
    """A client of the explorer's server."""
    import httpx

    from tests.explorer import SECONDS

    with httpx.Client(base_url=address, timeout=SECONDS) as client:
        yield client


@pytest.fixture(scope="module")
def browser():
    from tests.explorer import chromium

    with chromium() as browser:
        yield browser


@pytest.fixture
def visit(browser):
    """One to the page, without a complaint of the browser's."""
    from tests.explorer import Visit

    visit = Visit(browser)
    yield visit
    visit.page.close()
    assert visit.complaints == []


@pytest.fixture
def mistaken_visit(browser):
    """One that makes mistakes: the browser notes that a request was refused, and nothing else."""
    from tests.explorer import REFUSED, Visit

    visit = Visit(browser)
    yield visit
    visit.page.close()
    assert [text for text in visit.complaints if not REFUSED.match(text)] == []


@pytest.fixture(scope="session")
def checker() -> Path:
    """The native program that is extracted from the proof, as `make proof` has built it."""

    try:
        return coq.find_kernel()
    except (FileNotFoundError, RuntimeError) as error:
        pytest.skip(str(error))
