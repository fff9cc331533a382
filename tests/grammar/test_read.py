"""Reading files: a text, or one diagnostic."""

from __future__ import annotations

from pathlib import Path

import pytest

from genrw.grammar import read
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.read import read_text


def said(path: object) -> str:
    with pytest.raises(GenrwError) as raised:
        read_text(path)  # type: ignore[arg-type]
    return str(raised.value)


def test_text(tmp_path: Path) -> None:
    path = tmp_path / "a.gen"
    path.write_bytes("\ufeffx = f(y) # é\r\n".encode())
    source = read_text(path)
    assert (source.name, source.text) == (str(path), "x = f(y) # é\r\n")


def test_missing_file(tmp_path: Path) -> None:
    assert said(tmp_path / "a.gen") == f"error: there is no file {tmp_path}/a.gen"


def test_directory(tmp_path: Path) -> None:
    assert said(tmp_path) == f"error: {tmp_path} is a directory\n  help: name a file"


def test_name_that_is_none() -> None:
    assert said("a\0b") == "error: 'a\\x00b' cannot be read: embedded null byte"


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "a.gen"
    path.write_bytes("# é\nx = ".encode() + b"\xff\xfe(y)\n")
    assert said(path) == (
        f"{path}:2:5: error: the byte 0xff is not UTF-8\n"
        "  x = \ufffd\ufffd(y)\n"
        "      ^\n"
        "  help: save the file as UTF-8 text"
    )


def test_huge_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "_LARGEST", 2**20)
    path = tmp_path / "a.gen"
    path.write_bytes(b" " * (2**20 + 1))
    assert said(path) == f"error: {path} is larger than 1 MiB"
