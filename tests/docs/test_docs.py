"""README.md and docs/ say what is so: every block of theirs is run, every link leads somewhere."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from generated import filled
from pages import PAGES, ROOT, Page, repaired

from genrw.engine.library.library import Library

_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#\s]*)(#[^)\s]*)?\)")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder like a clone of the project, to run commands in."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.stem)
@pytest.mark.usefixtures("folder")
def test_blocks(path: Path, library: Library, pytestconfig: pytest.Config) -> None:
    text = path.read_text(encoding="utf-8")
    page = Page(path.name, library)
    page.run(text)
    assert "genrw failed" not in repaired(text, page.repairs), "no page shows a fault of genrw, updated or not"
    if pytestconfig.getoption("--update-golden"):
        path.write_text(repaired(text, page.repairs), encoding="utf-8")
        return
    assert not page.problems, "\n\n".join(page.problems)


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.stem)
def test_generated_tables(path: Path, library: Library, pytestconfig: pytest.Config) -> None:
    text = path.read_text(encoding="utf-8")
    wanted = filled(text, library)
    if pytestconfig.getoption("--update-golden"):
        path.write_text(wanted, encoding="utf-8")
        return
    assert text == wanted, f"tables of {path.name} are out of date: if they are right, run pytest --update-golden"


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.stem)
def test_links(path: Path) -> None:
    text = _CODE.sub("", path.read_text(encoding="utf-8"))
    for target, anchor in _LINK.findall(text):
        if target.startswith("http"):
            continue
        place = (path.parent / target).resolve() if target else path
        assert place.exists(), f"{path.name} links to {target}, which is not there"
        if anchor and place.suffix == ".md":
            assert anchor[1:] in _anchors(place), f"{path.name} links to {target}{anchor}, a heading that is not there"


def _anchors(path: Path) -> set[str]:
    """The headings of a page as anchors."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}
