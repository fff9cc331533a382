"""The files of folders: found in order, and read so that none of them can hold the reader up."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from genrw.grammar.diagnostics import Diagnostic, GenrwError, error
from genrw.grammar.read import read_regular
from genrw.grammar.source import Source

RULES, PROGRAM = ".rw", ".gen"

_LARGEST = 1 << 20
"""Bytes of a rule file, thirty times the largest shipped one."""
_LARGEST_TOGETHER = 1 << 22


def require_folder(folder: Path) -> None:
    """GenrwError if there is no such folder."""
    if not folder.is_dir():
        raise error(f"there is no folder `{folder}`", remedy=f"name a folder of {RULES} files")


def visible_files(folder: Path, *endings: str) -> Iterator[Path]:
    """The files with these endings in a folder and in those below it, but for hidden ones."""
    found = (path for ending in endings for path in folder.rglob(f"*{ending}"))
    return (p for p in found if not any(part.startswith(".") for part in p.relative_to(folder).parts))


def rule_files(folders: Sequence[Path]) -> Iterator[tuple[Path, Source]]:
    """The rule files of folders, each with its folder, and once if several folders have it; GenrwError for a folder without
    any, for what is no text, and for more of it than anybody writes."""
    size, read = 0, set[Path]()
    for folder in folders:
        require_folder(folder)
        found = sorted(folder.rglob(f"*{RULES}"))
        if not found:
            raise GenrwError(Diagnostic(f"the folder `{folder}` has no {RULES} files"))
        for path in found:
            if len(folders) > 1:
                itself = path.resolve()
                if itself in read:
                    continue
                read.add(itself)
            source = _text_of(path)
            size += len(source.text)
            if size > _LARGEST_TOGETHER:
                raise error(f"the rule files are larger than {_LARGEST_TOGETHER >> 20} MiB together, with {path}")
            yield folder, source


# ---- texts, remembered


def _text_of(path: Path) -> Source:
    """What a file holds; read again only if it may have been written since it was read last."""
    try:
        status = path.stat()
    except OSError:
        return read_regular(path, _LARGEST)
    written = max(status.st_mtime_ns, status.st_ctime_ns)
    stamp = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    known = _texts.pop(path, None)
    # Of a file written just before it was read, a later write could leave the same stamp.
    fresh = known is not None and known.stamp == stamp and known.read > written + _CLOCK_STEP
    text = known if known is not None and fresh else _Text(stamp, time.time_ns(), read_regular(path, _LARGEST))
    _texts[path] = text
    while len(_texts) > _FILES_KEPT:
        _texts.pop(next(iter(_texts)), None)
    return text.source


@dataclass(frozen=True)
class _Text:
    """A file's text, its stamp before it was read, and when that was, in nanoseconds."""

    stamp: tuple[int, ...]
    read: int
    source: Source


_CLOCK_STEP = 2 * 10**9
"""Nanoseconds, as many as file systems count together."""

_FILES_KEPT = 1024
_texts: dict[Path, _Text] = {}
"""The files read last."""
