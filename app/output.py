"""Writing files: whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from genrw.grammar.diagnostics import GenrwError, error

_NEW_FILE = 0o666


def write_file(path: str | Path, data: bytes) -> None:
    """Write one file; GenrwError if that cannot be. What is no regular file, such as a pipe, is kept."""
    path = Path(path)
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            path.write_bytes(data)
        else:
            _replace_all({Path(os.path.realpath(path)): data})
    except (OSError, ValueError) as problem:
        raise _unwritable(path, problem) from None


def check_writable(*paths: Path | None) -> None:
    """GenrwError for a file that cannot be written, before anything takes time whose result it is to hold."""
    for path in paths:
        if path is None:
            continue
        try:
            _check_place(path)
            if not path.parent.is_dir():
                raise FileNotFoundError(0, f"there is no folder {path.parent}")
        except (OSError, ValueError) as problem:
            raise _unwritable(path, problem) from None


def write_files(folder: str | Path, files: Mapping[str, bytes]) -> None:
    """Write files into a folder, made if there is none; all of them, or none and a GenrwError."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _replace_all({folder / name: data for name, data in files.items()})
    except (OSError, ValueError) as problem:
        raise _unwritable(folder, problem) from None


def _replace_all(files: Mapping[Path, bytes]) -> None:
    """Write all contents beside their places first, so that a full disk leaves what was there before."""
    written: dict[Path, str] = {}
    try:
        for path, data in files.items():
            _check_place(path)
            written[path] = _write_beside(path, data)
        for path, temporary in written.items():
            os.replace(temporary, path)
    except BaseException:
        for temporary in written.values():
            with suppress(OSError):
                os.unlink(temporary)
        raise


def _check_place(path: Path) -> None:
    """Replacing a file needs no right to write to it: ask for that right all the same."""
    if path.is_dir():
        raise IsADirectoryError(0, "it is a directory")
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(0, "Permission denied")


def _write_beside(path: Path, data: bytes) -> str:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:32]}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, _mode(path))
    except BaseException:
        os.unlink(temporary)
        raise
    return temporary


def _mode(path: Path) -> int:
    """The permissions of the file that is replaced, else those that any new file gets."""
    with suppress(OSError):
        return path.stat().st_mode & 0o777
    umask = os.umask(0)
    os.umask(umask)
    return _NEW_FILE & ~umask


def _unwritable(path: Path, problem: Exception) -> GenrwError:
    why = getattr(problem, "strerror", None) or str(problem)
    return error(f"{str(path)!r} cannot be written: {why}", remedy="name a place where files may be written")
