"""`genrw fmt`: programs and rule files laid out as the house does."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from genrw.folders import PROGRAM, RULES, visible_files
from genrw.grammar.diagnostics import Diagnostic, GenrwError, error
from genrw.grammar.gen import parse_gen
from genrw.grammar.gen_format import format_gen
from genrw.grammar.read import read_regular
from genrw.grammar.rw import parse_rw
from genrw.grammar.rw_format import format_rw
from genrw.grammar.source import Source
from genrw.output import write_file
from genrw.terminal import write


def formatted(source: Source) -> str:
    """A text laid out as the language of its name's ending; GenrwError for one that cannot be read."""
    if source.name.endswith(RULES):
        return _same(source, format_rw(source.text, source.name), parse_rw)
    return _same(source, format_gen(source.text, source.name), parse_gen)


def _same(source: Source, text: str, parse: Callable[[str, str], object]) -> str:
    """The text, if it says what the source says: a layout never changes a program."""
    if parse(text, source.name) != parse(source.text, source.name):
        raise error(f"laying out {source.name} would change what it says", remedy="this is a fault of genrw: report it")
    return text


def format_files(paths: Sequence[Path], check: bool, diff: bool) -> int:
    """Lay out files and those of folders, or with `check` and `diff` only tell; 1 if `check` found any to change."""
    problems: list[Diagnostic] = []
    changed: list[str] = []
    for path in _files(paths):
        try:
            source = read_regular(path)
            text = formatted(source)
        except GenrwError as problem:
            problems += problem.diagnostics
            continue
        if text != source.text:
            changed.append(source.name)
            _tell(source, text, diff)
            if not check and not diff:
                write_file(path, text.encode())
    if problems:
        raise GenrwError(problems)
    return int(check and bool(changed))


def _tell(source: Source, text: str, diff: bool) -> None:
    if not diff:
        write(source.name)
        return
    before, after = source.text.splitlines(keepends=True), text.splitlines(keepends=True)
    write("".join(difflib.unified_diff(before, after, source.name, f"{source.name} (laid out)")))


def _no_file(path: Path) -> GenrwError:
    """What is said of a path that is neither a folder nor a file of one of the two languages."""
    if str(path) == "-":
        return error("`fmt` lays out files where they lie, and `-` is none", remedy="name files, or folders of them")
    if not path.exists():
        return error(f"there is no file {path}")
    return error(f"{path} is neither a {PROGRAM} nor a {RULES} file", remedy="the ending says which language it is")


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    """The files named, and in folders all that are written in one of the two languages."""
    for path in paths or (Path("."),):
        if path.is_dir():
            yield from sorted(visible_files(path, PROGRAM, RULES))
        elif path.suffix not in (RULES, PROGRAM):
            raise _no_file(path)
        else:
            yield path
