"""Cases of bad input with all that is said about it, kept in text files.

A case is a line `=== what is wrong`, the input, a line `---`, and the messages. With BLESS=1 in the
environment the messages are written anew instead of compared.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from genrw.grammar.diagnostics import GenrwError

_DATA = Path(__file__).parent / "data"


def cases(file: str) -> list[tuple[str, str, str]]:
    """The cases of a file: name, input, messages."""
    found = []
    for case in (_DATA / file).read_text(encoding="utf-8").split("=== ")[1:]:
        name, rest = case.split("\n", 1)
        text, _, said = rest.partition("---\n")
        found.append((name, text.removesuffix("\n"), said.strip("\n")))
    return found


def check(file: str, name: str, parse: Callable[[str, str], object]) -> None:
    """Compares what is said about a case's input with the file, or updates the file."""
    text, said = next((text, said) for case, text, said in cases(file) if case == name)
    with pytest.raises(GenrwError) as raised:
        parse(text, "bad")
    if os.environ.get("BLESS"):
        _bless(file, name, str(raised.value))
    else:
        assert str(raised.value) == said


def _bless(file: str, name: str, said: str) -> None:
    blocks = [f"=== {case}\n{text}\n---\n{said if case == name else old}\n" for case, text, old in cases(file)]
    (_DATA / file).write_text("\n".join(blocks), encoding="utf-8")
