"""`genrw rules check`: what is wrong with rules, told without a program of anybody's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from genrw.authoring.rulesets import own_declarations, unchecked_library
from genrw.engine.library.library import Library
from genrw.engine.lint.check import MALFORMED, lint
from genrw.engine.lint.finding import Finding
from genrw.terminal import write, write_diagnostics


def check_folders(folders: Sequence[str | Path], shipped: bool, as_json: bool) -> int:
    """Print all findings; 1 if there are any. GenrwError for files that cannot be read as rules.

    The examples of rules that are not shipped are run.
    """
    library, problems = unchecked_library(folders, shipped=shipped)
    declared = (Finding(MALFORMED, p.span.text if p.span is not None else "", p) for p in problems)
    found = _of_author([*declared, *lint(library, own_declarations(library))], library)
    if as_json:
        write(json.dumps([_entry(f) for f in found], indent=2, ensure_ascii=False))
    elif found:
        write_diagnostics([f.diagnostic for f in found])
        write("1 finding" if len(found) == 1 else f"{len(found)} findings")
    else:
        write(f"{len(library.rules)} rules, nothing found")
    return int(bool(found))


def _entry(found: Finding) -> dict[str, Any]:
    diagnostic, span = found.diagnostic, found.diagnostic.span
    entry: dict[str, Any] = {"kind": found.kind, "name": found.subject, "severity": diagnostic.severity}
    if span is not None:
        end_line, end_column = span.source.position(span.end)
        entry |= {"file": span.source.name, "line": span.line, "column": span.column}
        entry |= {"end_line": end_line, "end_column": end_column}
    return entry | {"message": diagnostic.message, "help": diagnostic.remedy}


def _of_author(found: list[Finding], library: Library) -> list[Finding]:
    """What stands in the author's files; what a declaration of these does to rules that come with genrw is told only where
    there is nothing else."""
    files = {declaration.span.source.name for declaration in own_declarations(library)}
    own = [f for f in found if f.diagnostic.span is None or f.diagnostic.span.source.name in files]
    return own or found
