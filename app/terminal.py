"""What the command line prints: plain text into files and pipes, colour and tables on a terminal."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from genrw.grammar.diagnostics import Diagnostic

if TYPE_CHECKING:
    from rich.text import Text

_GAP = "  "


def prepare_streams() -> None:
    """Let no character stop the output where the terminal's encoding lacks it; what was closed at the start takes all."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def write(text: str) -> None:
    """Print a text, ended by one line end."""
    sys.stdout.write(text if text.endswith("\n") or not text else f"{text}\n")


def write_diff(lines: Sequence[str], stream: TextIO | None = None) -> None:
    """Print the lines of a difference, in colour on a terminal; on stdout if no other stream is given."""
    stream = stream or sys.stdout
    if not is_terminal(stream):
        stream.write("".join(f"{line}\n" for line in lines))
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(file=stream, soft_wrap=True, highlight=False)
    styles = {"+": "green", "-": "red", "@": "cyan"}
    for line in lines:
        console.print(Text(line, styles.get(line[:1], "")))


def write_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns; columns of numbers are set to the right."""
    if is_terminal(sys.stdout):
        _write_rich_table(headings, rows)
    else:
        write("\n".join(plain_table(headings, rows)))


def plain_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table of plain text."""
    lines = [headings, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(headings))]
    right = [_is_numeric([row[i] for row in rows]) for i in range(len(headings))]
    return [
        _GAP.join(
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    ]


@contextmanager
def progress(label: str, total: int) -> Iterator[Callable[[], None]]:
    """A bar on a terminal's stderr for work of so many steps: call what it gives after each."""
    if not is_terminal(sys.stderr):
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda: bar.advance(task)


def write_diagnostics(diagnostics: Sequence[Diagnostic]) -> None:
    """Print diagnostics on stderr, in colour on a terminal."""
    if not is_terminal(sys.stderr):
        sys.stderr.write("".join(f"{d.render()}\n" for d in diagnostics))
        return
    from rich.console import Console

    console = Console(stderr=True, soft_wrap=True, highlight=False)
    for diagnostic in diagnostics:
        console.print(_coloured(diagnostic))


def is_terminal(stream: TextIO) -> bool:
    """Does somebody read this stream on a terminal that shows colour?"""
    return stream.isatty() and os.environ.get("TERM") != "dumb" and "NO_COLOR" not in os.environ


def _coloured(diagnostic: Diagnostic) -> Text:
    from rich.text import Text

    first, *others = diagnostic.render().split("\n")
    where = f"{diagnostic.span}: " if diagnostic.span is not None else ""
    what = f"{diagnostic.severity}:"
    text = Text.assemble((where, "bold"), (what, "bold red"), (first[len(where) + len(what) :], "bold"))
    for line in others:
        style = "red" if set(line) <= set(" ^") else "cyan" if line.startswith("  help:") else ""
        text.append("\n")
        text.append(line, style)
    return text


def _write_rich_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for i, heading in enumerate(headings):
        justify = "right" if _is_numeric([row[i] for row in rows]) else "left"
        table.add_column(heading, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)


def _is_numeric(cells: Sequence[str]) -> bool:
    return bool(cells) and all(cell.replace(".", "", 1).lstrip("-").isdigit() for cell in cells)
