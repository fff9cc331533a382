"""`genrw watch`: each change of the program or of a rule shows as a difference."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from queue import Queue

RULE = "stage simplify\n\nrule mine\n  sqrt(exp(x))\n  => {}(x)\n"
PROGRAM = "x = @param:x -> float{{8}}\ne = exp(x)\ny = {}(e)\n@return(y)\n"


def put(path: Path, text: str) -> None:
    """Write a file whole: half of one is another program."""
    path.with_suffix(".new").write_text(text)
    path.with_suffix(".new").replace(path)


class Watched:
    """A process that watches, and the lines that it prints."""

    def __init__(self, folder: Path) -> None:
        command = [
            str(Path(sys.executable).with_name("genrw")),
            "watch",
            "a.gen",
            "--stage",
            "simplify",
            "--rules",
            "rules",
        ]
        self.process = subprocess.Popen(
            command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=dict(os.environ)
        )
        self.lines: Queue[str] = Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))

    def until(self, start: str) -> list[str]:
        """The lines up to one that begins so."""
        found = []
        while not found or not found[-1].startswith(start):
            found.append(self.lines.get(timeout=60))
        return found


def test_what_changes(tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    rule, program = tmp_path / "rules" / "mine.rw", tmp_path / "a.gen"
    rule.write_text(RULE.format("neg"))
    program.write_text(PROGRAM.format("sqrt"))
    watched = Watched(tmp_path)
    try:
        assert "y = neg(x) -> float{8}" in watched.until("@return")
        put(rule, RULE.format("abs"))
        told = watched.until("+y = ")
        assert told[0].startswith("# changed, ")
        assert told[-2:] == ["-y = neg(x) -> float{8}", "+y = abs(x) -> float{8}"]
        put(program, PROGRAM.format("nonesuch"))
        assert "unknown operator `nonesuch`" in watched.until("a.gen:3:5: error")[-1]
        put(program, PROGRAM.format("neg"))
        assert "-y = abs(x) -> float{8}" in watched.until("+y = neg(")
        assert watched.process.poll() is None
    finally:
        watched.process.kill()
        watched.process.wait()
