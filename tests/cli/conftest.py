"""The command line, called in this process."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from commands import SOFTMAX, Command, Result

from genrw.main import execute


@pytest.fixture
def genrw(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs `genrw ARGUMENTS`; `stdin` is what it reads there."""

    def run(*arguments: object, stdin: str = "") -> Result:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        status = execute([str(a) for a in arguments])
        captured = capsys.readouterr()
        return Result(status, captured.out, captured.err)

    return run


@pytest.fixture
def softmax(tmp_path: Path) -> Path:
    """A small softmax in a file."""
    path = tmp_path / "softmax.gen"
    path.write_text(SOFTMAX)
    return path
