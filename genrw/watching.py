"""`genrw watch`: a program at a stage, and the difference that each change of the program or of its rules makes."""

from __future__ import annotations

import difflib
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from genrw.api import load_source
from genrw.formatting import RULES
from genrw.grammar.diagnostics import GenrwError, error
from genrw.grammar.read import read_text
from genrw.program import DEFAULT_TARGET
from genrw.rulesets import shipped_folder
from genrw.settings import Settings
from genrw.terminal import write, write_diagnostics

_PAUSE = 0.03
"""Seconds between two looks at the files: with the time to lower, a small program's change shows within 0.1 s."""

_Stamps = dict[Path, tuple[int, int]]


def watch_file(path: Path, stage: str | None, settings: Settings) -> int:
    """Show the program and its changes until interrupted; GenrwError if there is no such file to begin with."""
    read_text(path)
    folders = [*map(Path, settings.rules), *([shipped_folder()] if settings.shipped else [])]
    for folder in folders:
        if not folder.is_dir():
            raise error(f"there is no folder `{folder}`", remedy="name a folder of .rw files")
    shown = ""
    before: _Stamps = {}
    while True:
        now = _stamps(path, folders)
        if now != before:
            before, shown = now, _show(path, stage, settings, shown)
        time.sleep(_PAUSE)


def _stamps(path: Path, folders: Iterable[Path]) -> _Stamps:
    """When each file was last written, and its size."""
    stamps: _Stamps = {}
    for found in (path, *(p for folder in folders for p in folder.rglob(f"*{RULES}"))):
        try:
            status = found.stat()
        except OSError:
            continue
        stamps[found] = status.st_mtime_ns, status.st_size
    return stamps


def _show(path: Path, stage: str | None, settings: Settings, before: str) -> str:
    """Print what is new; gives the text that is shown now, the last one that there was if the program is wrong."""
    started = time.perf_counter()
    try:
        text = _lowered(path, stage, settings)
    except GenrwError as problem:
        write_diagnostics(problem.diagnostics)
        return before
    spent = f"{(time.perf_counter() - started) * 1000:.0f} ms"
    if not before:
        write(text)
    elif text == before:
        write(f"# no difference, {spent}")
    else:
        lines = difflib.unified_diff(before.splitlines(), text.splitlines(), "before", "now", lineterm="", n=2)
        write("\n".join([f"# changed, {spent}", *list(lines)[2:]]))
    sys.stdout.flush()
    return text


def _lowered(path: Path, stage: str | None, settings: Settings) -> str:
    options = settings.options()
    source = read_text(path)
    program = load_source(
        source, options, rules=settings.rules, shipped=settings.shipped, default_target=DEFAULT_TARGET
    )
    return str(program.lower(stage or program.stages[-1]))
