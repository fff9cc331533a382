"""`genrw watch`: a program at a stage, and the difference that each change of the program or of its rules makes."""

from __future__ import annotations

import difflib
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from genrw.api import load_source
from genrw.authoring.rulesets import shipped_folder
from genrw.folders import RULES, require_folder
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.read import read_text
from genrw.settings import Settings
from genrw.terminal import write, write_diagnostics

_PAUSE = 0.01
"""Seconds between two looks at the files."""

_Stamps = dict[Path, tuple[int, int]]


def watch_file(path: Path, stage: str | None, settings: Settings) -> int:
    """Show the program and its changes until interrupted; GenrwError if there is no such file to begin with."""
    read_text(path)
    folders = [*map(Path, settings.rules), *([shipped_folder()] if settings.shipped else [])]
    for folder in folders:
        require_folder(folder)
    files = _Files(path, folders)
    view = View(path, stage, settings)
    while True:
        view.show()
        files.wait()


@dataclass
class _Files:
    """A program and folders of rules, and when each was last written."""

    program: Path
    folders: Sequence[Path]
    _before: _Stamps = field(default_factory=dict)
    _inside: _Stamps = field(default_factory=dict)
    _rules: list[Path] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._before = self._look()

    def wait(self) -> None:
        """Return when something has been written, and nothing is being written any more."""
        while (now := self._look()) == self._before:
            time.sleep(_PAUSE)
        before: _Stamps = {}
        while now != before:
            time.sleep(_PAUSE / 2)
            before, now = now, self._look()
        self._before = now

    def _look(self) -> _Stamps:
        """The stamps of all files; which there are is looked up when a folder has changed."""
        if _stamps(self._inside) != self._inside or not self._inside:
            found = [p for folder in self.folders for p in (folder, *folder.rglob("*"))]
            self._inside = _stamps(p for p in found if p.is_dir())
            self._rules = [p for p in found if p.suffix == RULES]
        return _stamps((self.program, *self._rules))


def _stamps(paths: Iterable[Path]) -> _Stamps:
    """When each of the paths that exist was last written, and its size."""
    stamps: _Stamps = {}
    for path in paths:
        try:
            status = path.stat()
        except OSError:
            continue
        stamps[path] = status.st_mtime_ns, status.st_size
    return stamps


@dataclass
class View:
    """A program at a stage, as it was shown last: the last one that there was if the program is wrong now."""

    path: Path
    stage: str | None
    settings: Settings
    shown: str = ""

    def show(self) -> None:
        """Print what is new."""
        started = time.perf_counter()
        try:
            program = load_source(
                read_text(self.path),
                self.settings.options(),
                rules=self.settings.rules,
                shipped=self.settings.shipped,
            )
            text = str(program.lower(self.stage or program.stages[-1]))
        except GenrwError as problem:
            write_diagnostics(problem.diagnostics)
            return
        self._tell(text, f"{(time.perf_counter() - started) * 1000:.0f} ms")
        self.shown = text
        program.make_ready()

    def _tell(self, text: str, spent: str) -> None:
        if not self.shown:
            write(text)
        elif text == self.shown:
            write(f"# no difference, {spent}")
        else:
            lines = difflib.unified_diff(self.shown.splitlines(), text.splitlines(), "before", "now", lineterm="", n=2)
            write("\n".join([f"# changed, {spent}", *list(lines)[2:]]))
        sys.stdout.flush()
