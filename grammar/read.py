"""Files to texts: whatever a path leads to, the caller gets a text or a diagnostic."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from typing import BinaryIO

from genrw.grammar.diagnostics import error
from genrw.grammar.source import Source, Span

_LARGEST = 64 * 2**20


def read_text(path: str | os.PathLike[str]) -> Source:
    """The text of a file in UTF-8, named by its path. Raises GenrwError if there is none to be had."""
    return _read(path, os.open, _LARGEST)


def read_regular(path: str | os.PathLike[str], largest: int = _LARGEST) -> Source:
    """The same of a file that somebody else put there: one that is no plain file, or larger, is refused, and none is
    waited for."""
    return _read(path, _open_regular, largest)


def _open_regular(name: str, flags: int) -> int:
    """Open a plain file. Of others, opening a pipe would wait for a writer, and a device may have no end."""
    handle = os.open(name, flags | getattr(os, "O_NONBLOCK", 0))
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):  # what is said of a directory, `open` knows
        return handle
    os.close(handle)
    raise OSError("it is no plain file")


def _read(path: str | os.PathLike[str], opener: Callable[[str, int], int], largest: int) -> Source:
    name = os.fspath(path)
    try:
        with open(name, "rb", opener=opener) as file:
            return read_stream(file, name, largest)
    except FileNotFoundError:
        raise error(f"there is no file {name}") from None
    except IsADirectoryError:
        raise error(f"{name} is a directory", remedy="name a file") from None
    except (OSError, ValueError) as problem:
        raise error(f"{name!r} cannot be read: {getattr(problem, 'strerror', None) or problem}") from None


def read_stream(stream: BinaryIO, name: str, largest: int = _LARGEST) -> Source:
    """The text of an open file in UTF-8. Raises GenrwError if it is none or too large."""
    data = stream.read(largest + 1) or b""
    if len(data) > largest:
        raise error(f"{name} is larger than {largest // 2**20} MiB")
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
