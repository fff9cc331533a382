"""What all tests share: the shipped rules, and golden files with one switch to update them."""

from __future__ import annotations

import gc
import os
import re
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hypothesis  # noqa: F401  it looks through all objects that there are when it is imported
import pytest

from genrw.authoring.rulesets import load_library
from genrw.engine.library.library import Library

# What was measured on this machine before chooses no schedules here.
os.environ["GENRW_TUNED"] = os.devnull + "/none"

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden files instead of comparing with them")
    parser.addoption("--fuzz", type=int, default=1, metavar="N", help="try N times as many damaged texts as usual")
    parser.addoption("--all-plans", action="store_true", help="check a thousand random plans of kernels, not a few")


def pytest_configure(config: pytest.Config) -> None:
    """All tests, of this run and of later ones, share one cache of rules and compiled kernels that is not the user's. Without
    pytest's own cache it lasts as long as the run."""
    kept = getattr(config, "cache", None)
    if kept is not None:
        _keep_in(kept.mkdir("genrw"))
        return
    folder = TemporaryDirectory(prefix="genrw")
    config.add_cleanup(folder.cleanup)
    _keep_in(Path(folder.name))


def _keep_in(folder: Path) -> None:
    """Have this process and those that tests start keep what they make in a folder. Where Python is told to write no compiled
    modules, each of hundreds of processes would compile all of them."""
    os.environ["GENRW_CACHE_DIR"] = str(folder)
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
        os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "modules")


_BATCH = re.compile(r"@(\w+)")
_LONGEST = (
    "rules/test_coverage.py",
    "contractions/test_tiles.py",
    "contractions/test_attention.py",
    "verify/test_extents.py",
    "pipeline/test_turned.py",
    "pipeline/test_split.py",
)
"""The files that take longest, with no batches."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give each worker whole batches of tests, or else whole files: the tests of one share rules, engines and programs. They
    come in the order of the tests."""
    from xdist.scheduler import LoadScopeScheduling

    config.option.loadscopereorder = False

    class Batches(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            path, _, name = nodeid.partition("::")
            batch = _BATCH.search(name)
            return f"{path}@{batch[1]}" if batch else path

    return Batches(config, log)


_met: Counter[str] = Counter()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Of a test that is quick on few of its instances the others are slow."""
    few = item.get_closest_marker("few")
    if few is not None:
        test = item.nodeid.partition("[")[0]
        _met[test] += 1
        if _met[test] > few.args[0]:
            item.add_marker("slow")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that take long come first, so that no worker has one left when the others are done."""
    items.sort(key=lambda item: (not item.path.as_posix().endswith(_LONGEST), item.get_closest_marker("slow") is None))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """What the tests left goes with the process: pytest would look through all of it for garbage, five times."""
    gc.freeze()


@pytest.fixture(scope="session")
def all_plans(request: pytest.FixtureRequest) -> bool:
    """Whether many random plans are asked for, or those that take seconds."""
    return bool(request.config.getoption("--all-plans"))


@pytest.fixture(scope="session")
def fuzz_factor(request: pytest.FixtureRequest) -> int:
    """How many times as many damaged texts are tried as usual."""
    return int(request.config.getoption("--fuzz"))


@pytest.fixture(scope="session")
def library() -> Library:
    """The shipped rules."""
    return load_library()


# Rules, engines and collected tests stay until the end: the garbage collector need not look through them again and again.
gc.set_threshold(50_000, 20, 100)


class Golden:
    """Compares texts with files under tests/golden, or writes these."""

    def __init__(self, update: bool) -> None:
        self.update = update

    def check(self, name: str, text: str) -> None:
        path = GOLDEN / name
        if self.update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.is_file(), f"{path} is missing: run pytest --update-golden"
        assert text == path.read_text(encoding="utf-8"), f"{name} differs: if that is right, run pytest --update-golden"


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(request.config.getoption("--update-golden"))
