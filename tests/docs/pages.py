"""The fenced blocks of README.md and docs/*.md, and what makes each of them true.

A block's first line says what it is:

    ```gen [file=NAME]      a program: it parses, and lowers if it has a `@return`
    ```gen added file=NAME  a program with operators of the page's own rules, which a command runs
    ```gen fails            a program that does not; the ```text block that follows is what genrw says
    ```rw [file=NAME]       declarations: the shipped ones word for word, or additions that load beside them
    ```rw slip file=NAME    declarations with a slip that a command of the page tells
    ```rw fails             declarations that are refused, followed by the ```text of the diagnostics
    ```console [first=N] [last=N]   commands after `$ ` and what they print, or its first and last lines around a …
    ```python               runs; where ```text output follows, prints that
    ```python gpu           is Python; a GPU is needed to run it
    ```text, ```bash        are read by people only

Blocks of a page run in order, in one folder with a copy of the examples; `file` writes a block into that folder.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from genrw.authoring.rulesets import load_library
from genrw.engine.library.gather import OF_EXAMPLES
from genrw.engine.library.library import Library
from genrw.engine.library.rows import rules_among
from genrw.engine.library.signs import with_operators
from genrw.engine.lint.examples import run_example
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.rw import parse_rw, print_declaration
from genrw.grammar.rw_tree import Declaration, RuleDecl, RuleFile
from genrw.grammar.source import Source
from genrw.main import execute
from genrw.program import Program

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

_FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LANGUAGES = frozenset({"gen", "rw", "console", "python", "text", "bash"})
# What differs from one run or machine to the next, and where rules stand in their files.
_VARYING = (
    re.compile(r"\b\d+(\.\d+)?(e-\d+)? (ms|s|us)\b"),
    re.compile(r"\b\d+(\.\d+)?e-\d+\b"),
    re.compile(r"(?<=\.rw):\d+(:\d+)?"),
)
# Columns of tables are as wide as what varies.
_GAP = re.compile(r"(?<=\S) {2,}")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the words behind it, its text, and its place in the page."""

    language: str
    words: tuple[str, ...]
    text: str
    line: int
    start: int
    end: int

    def option(self, name: str) -> str | None:
        """The value of `name=value` among the words."""
        return next((w.partition("=")[2] for w in self.words if w.startswith(f"{name}=")), None)


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    return [
        Block(m[1], tuple(m[2].split()), m[3], text.count("\n", 0, m.start()) + 1, m.start(3), m.end(3))
        for m in _FENCE.finditer(text)
    ]


@dataclass
class Page:
    """Runs a page's blocks. `problems` says what is not as the page has it, `repairs` what the blocks should hold."""

    name: str
    library: Library
    namespace: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    repairs: list[tuple[Block, str]] = field(default_factory=list)

    def run(self, text: str) -> None:
        """Run all blocks, in the present folder."""
        found = blocks(text)
        for block, after in zip_longest(found, found[1:]):
            try:
                self._run(block, after)
            except (GenrwError, AssertionError) as problem:
                self._wrong(block, str(problem))

    def _run(self, block: Block, after: Block | None) -> None:
        name = block.option("file")
        if name is not None:
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_text(block.text, encoding="utf-8")
        assert block.language in _LANGUAGES, f"nobody knows what `{block.language}` is"
        if "fails" in block.words:
            assert after is not None, "no ```text block with the diagnostics follows"
            assert after.language == "text", "no ```text block with the diagnostics follows"
            self._compare(after, self._refused(block))
        elif block.language == "gen" and "added" not in block.words:
            _lower(block.text, self.library)
        elif block.language == "rw" and "slip" not in block.words:
            self._declarations(block)
        elif block.language == "console":
            self._compare(block, "".join(_shown(block, command) for command in _commands(block.text)))
        elif block.language == "python" and "gpu" in block.words:
            compile(block.text, self.name, "exec")
        elif block.language == "python":
            self._python(block, after)

    def _wrong(self, block: Block, what: str) -> None:
        self.problems.append(f"{self.name}:{block.line}: ```{block.language}\n{what}")

    def _compare(self, block: Block, found: str) -> None:
        if _settled(found) != _settled(block.text):
            self._wrong(block, f"is\n{found}but the page has\n{block.text}")
            self.repairs.append((block, found))

    # ---- programs and rules

    def _refused(self, block: Block) -> str:
        try:
            if block.language == "gen":
                _lower(block.text, self.library)
            else:
                _added(block, Path(block.option("file") or "rules/mine.rw"))
        except GenrwError as problem:
            return f"{problem}\n"
        raise AssertionError("this does not fail")

    def _declarations(self, block: Block) -> None:
        read = parse_rw(block.text, f"{self.name}:{block.line}")
        (file,) = with_operators([read], self.library.signs, {})
        everything = [d for f in self.library.files for d in f.declarations]
        shipped = {(type(d), d.name): d for d in everything}
        shipped |= {(type(d), d.name): d for d in file.declarations if isinstance(d, OF_EXAMPLES) and d in everything}
        known = [d for d in file.declarations if (type(d), d.name) in shipped]
        if all(isinstance(d, OF_EXAMPLES) for d in known):
            self._additions(_added(block, Path(block.option("file") or "rules/mine.rw")), file)
            return
        assert len(known) == len(file.declarations), "some of this is shipped and some is not"
        quoted = [_like(shipped[type(d), d.name], d) for d in known]
        if known != quoted:
            self._wrong(block, "the shipped declarations are others")
            self.repairs.append((block, "\n".join(f"{print_declaration(d)}\n" for d in quoted)))

    def _additions(self, library: Library, file: RuleFile) -> None:
        names = {rule.name for rule in rules_among(file.declarations)}
        for rule in (one for one in library.rules if one.name in names):
            for example in rule.examples:
                failure = run_example(library, rule, example)
                assert failure is None, failure and failure.diagnostics[0].render()

    # ---- Python

    def _python(self, block: Block, after: Block | None) -> None:
        code = compile("\n" * block.line + block.text, self.name, "exec")
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(code, self.namespace)
        if after is not None and after.language == "text" and "output" in after.words:
            self._compare(after, out.getvalue())


def _settled(text: str) -> str:
    """A text without what varies."""
    for pattern in _VARYING:
        text = pattern.sub("~", text)
    return _GAP.sub("  ", text)


def _lower(text: str, library: Library) -> None:
    if "@return" not in text:
        from genrw.grammar.gen import parse_gen

        parse_gen(text, "program.gen")
        return
    program = Program.parse(Source("program.gen", text), library)
    program.lower(program.stages[-1])


def _added(block: Block, path: Path) -> Library:
    """The shipped rules and those of a block, and of those beside its file."""
    folder = path.parent
    folder.mkdir(parents=True, exist_ok=True)
    (folder / path.name).write_text(block.text, encoding="utf-8")
    try:
        return load_library([folder])
    finally:
        if block.option("file") is None:
            (folder / path.name).unlink()


def _like(shipped: Declaration, quoted: Declaration) -> Declaration:
    """A shipped declaration with as much around it as a quoted one has: its stage, documentation and examples."""
    changes: dict[str, Any] = {} if quoted.doc else {"doc": ""}
    if isinstance(quoted, RuleDecl):
        changes |= {} if quoted.stage else {"stage": None}
        changes |= {} if quoted.examples else {"given": (), "examples": ()}
    return replace(shipped, **changes)


# ---- commands


def _commands(text: str) -> Iterator[str]:
    """The commands of a console block; a line that ends in a backslash goes on in the next."""
    for match in re.finditer(r"^\$ ((?:.*\\\n)*.*)$", text, re.MULTILINE):
        yield match[1]


def _shown(block: Block, command: str) -> str:
    """A command and what it prints."""
    return f"$ {command}\n{_elided(_output(command), block)}"


def _elided(output: str, block: Block) -> str:
    """The first and last lines of an output, as many as a block wants."""
    first, last = block.option("first"), block.option("last")
    lines = output.splitlines(keepends=True)
    if first is None and last is None:
        return output
    head, tail = int(first or 0), int(last or 0)
    if len(lines) <= head + tail + 1:
        return output
    return "".join([*lines[:head], "…\n", *lines[len(lines) - tail :]])


def _output(command: str) -> str:
    """What a command prints. `genrw` runs in this process, which has loaded the rules."""
    one_line = command.replace("\\\n", " ")
    first, pipe, rest = one_line.partition(" | ")
    words = shlex.split(first)
    if words[0] != "genrw" or {">", "<", "&&"} & set(words):
        return _shell(one_line, "")
    output = _genrw(words[1:])
    return _shell(rest, output) if pipe else output


def _genrw(arguments: Sequence[str]) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        execute(arguments)
    return out.getvalue()


def _shell(command: str, given: str) -> str:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONUTF8": "1"}
    done = subprocess.run(
        ["bash", "-c", command],
        input=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        env=environment,
        check=False,
    )
    return done.stdout


def repaired(text: str, repairs: Sequence[tuple[Block, str]]) -> str:
    """A page's text with what its blocks should hold."""
    for block, found in sorted(repairs, key=lambda r: -r[0].start):
        text = text[: block.start] + found + text[block.end :]
    return text
