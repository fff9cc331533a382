"""`genrw rules check`: what is wrong with rules, told without a program of anybody's."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from genrw.authoring.rulesets import own_declarations, unchecked_library
from genrw.engine.library.library import Library
from genrw.engine.lint.check import MALFORMED, lint
from genrw.engine.lint.finding import Finding, finding
from genrw.engine.verify.monoids import try_monoid
from genrw.grammar.rw_tree import MonoidDecl
from genrw.terminal import write, write_diagnostics

_MONOID_INSTANCES = 1
"""A few dozen numbers of each type: they take some hundredths of a second."""


def check_folders(folders: Sequence[str | Path], shipped: bool, as_json: bool) -> int:
    """Print all findings; 1 if there are any. GenrwError for files that cannot be read as rules.

    Of what is not shipped the examples of rules are run, and the clauses of monoids on a few numbers.
    """
    library, problems = unchecked_library(folders, shipped=shipped)
    found = [Finding(MALFORMED, p.span.text if p.span is not None else "", p) for p in problems]
    found += lint(library, own_declarations(library))
    if not any(f.kind == MALFORMED for f in found):
        found += _wrong_monoids(library)
    found = _of_author(found, library)
    if as_json:
        write(json.dumps([_entry(f) for f in found], indent=2, ensure_ascii=False))
    elif found:
        write_diagnostics([f.diagnostic for f in found])
        write("1 finding" if len(found) == 1 else f"{len(found)} findings")
    else:
        write(f"{len(library.rules)} rules, nothing found")
    return int(bool(found))


def _wrong_monoids(library: Library) -> Iterator[Finding]:
    """Own monoids that do not keep what folds rely on. What takes many numbers to see `rules verify` tells."""
    for monoid in (d for d in own_declarations(library) if isinstance(d, MonoidDecl)):
        _, wrong = try_monoid(library, monoid, _MONOID_INSTANCES, monoid.name)
        if wrong is not None:
            message = f"the monoid `{monoid.name}` is wrong: {wrong.reason}"
            yield finding("monoid", monoid.name, message, wrong.span, wrong.remedy)


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
