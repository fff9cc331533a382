"""What egglog says when it fails, as a diagnostic at the rule's text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePath

from genrw.engine.egraph.bindings import egg
from genrw.grammar.diagnostics import GenrwError, error
from genrw.grammar.rw_tree import OpDecl, RuleDecl
from genrw.grammar.source import Span

# "In 3:6-12 of file.rw: text of the span: call of primitive % failed"
_PLACE = re.compile(r"In (\d+):(\d+)-(?:(\d+):)?(\d+) of ([^\n]*?): ")
_ARITHMETIC = re.compile(r"call of primitive \S+ failed")


def is_fault(problem: BaseException) -> bool:
    """Does an exception come from egglog? Its panics are no `Exception`."""
    return isinstance(problem, egg.EggSmolError) or type(problem).__module__ == "pyo3_runtime"


def fault(problem: BaseException, stage: str, declared: Iterable[RuleDecl | OpDecl]) -> GenrwError:
    """The diagnostic for a failure of the e-graph, at what it failed for among the rules and operators declared."""
    said = str(problem).strip()
    decl, span = _place(said, declared)
    if decl is None or not _ARITHMETIC.search(said):
        first = said.partition("\n")[0]
        return error(f"the e-graph of stage `{stage}` failed: {first}", span)
    why = "cannot compute this: it divides by 0 or leaves 64 bits"
    if isinstance(decl, RuleDecl):
        return error(f"rule `{decl.name}` {why}", span, "guard against such numbers")
    remedy = "write numbers of fewer digits in the program, or facts that hold for large ones, too"
    return error(f"operator `{decl.name}` {why}", span, remedy)


def _place(said: str, declared: Iterable[RuleDecl | OpDecl]) -> tuple[RuleDecl | OpDecl | None, Span | None]:
    """The declaration that a message of egglog is about, and where in it; egglog knows files by their last name."""
    found = _PLACE.search(said)
    if found is None:
        return None, None
    line, column, last = int(found[1]), int(found[2]), int(found[3] or found[1])
    for decl in declared:
        source = decl.span.source
        if PurePath(source.name).name != found[5] or last > len(source.line_starts):
            continue
        start = source.line_starts[line - 1] + column - 1
        end = source.line_starts[last - 1] + int(found[4])
        if decl.span.start <= start < decl.span.end and said.startswith(source.text[start:end], found.end()):
            return decl, Span(source, start, end)
    return None, None
