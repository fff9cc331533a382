"""Files to texts: whatever a path leads to, the caller gets a text or a diagnostic."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from genrw.grammar.diagnostics import error
from genrw.grammar.source import Source, Span

_LARGEST = 64 * 2**20


def read_text(path: str | os.PathLike[str]) -> Source:
    """The text of a file in UTF-8, named by its path. Raises GenrwError if there is none to be had."""
    name = os.fspath(path)
    try:
        with Path(name).open("rb") as file:
            return read_stream(file, name)
    except FileNotFoundError:
        raise error(f"there is no file {name}") from None
    except IsADirectoryError:
        raise error(f"{name} is a directory", remedy="name a file") from None
    except (OSError, ValueError) as problem:
        raise error(f"{name!r} cannot be read: {getattr(problem, 'strerror', None) or problem}") from None


def read_stream(stream: BinaryIO, name: str) -> Source:
    """The text of an open file in UTF-8. Raises GenrwError if it is none or too large."""
    data = stream.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise error(f"{name} is larger than {_LARGEST // 2**20} MiB")
    return Source(name, _decode(name, data))


def _decode(name: str, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        good = data[: problem.start].decode("utf-8-sig")
        shown = Source(name, data.decode("utf-8-sig", errors="replace"))
        span = Span(shown, len(good), len(good) + 1)
        message = f"the byte 0x{data[problem.start]:02x} is not UTF-8"
        raise error(message, span, "save the file as UTF-8 text") from None
