"""Text that is the same at another place: trees of it with the spans of that place, and messages about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import is_dataclass, replace
from typing import Any, TypeVar

from genrw.grammar.diagnostics import Diagnostic, GenrwError
from genrw.grammar.rw_tree import RuleFile
from genrw.grammar.source import Source, Span

_Tree = TypeVar("_Tree")


def moved(tree: _Tree, source: Source, by: int) -> _Tree:
    """A copy of a tree of a declaration that stands in `source` now, `by` characters further down."""
    result: _Tree = _moved(tree, source, by)
    return result


def _moved(tree: Any, source: Source, by: int) -> Any:
    if isinstance(tree, Span):
        return Span(source, tree.start + by, tree.end + by)
    if isinstance(tree, tuple):
        return tuple(_moved(part, source, by) for part in tree) if tree else tree
    if not is_dataclass(tree):
        return tree
    copy: Any = object.__new__(type(tree))
    copy.__dict__.update((name, _moved(value, source, by)) for name, value in vars(tree).items())
    return copy


def told_again(problem: GenrwError, files: Iterable[RuleFile]) -> GenrwError:
    """A problem of declarations that were read earlier, told of the same text where it stands in files as read now: in the one
    of the same name, or in any if there is none, since a folder may have another name now."""
    now = {file.span.source.name: file for file in files}
    return GenrwError([_relocated(diagnostic, now) for diagnostic in problem.diagnostics])


def _relocated(diagnostic: Diagnostic, now: Mapping[str, RuleFile]) -> Diagnostic:
    span = diagnostic.span
    if span is None or any(span.source is file.span.source for file in now.values()):
        return diagnostic
    same = now.get(span.source.name)
    for file in now.values() if same is None else (same,):
        for declaration in file.declarations:
            text = declaration.span.text
            at = span.source.text.rfind(text, 0, span.start + len(text))
            if 0 <= at <= span.start and span.end <= at + len(text):
                by = declaration.span.start - at
                return replace(diagnostic, span=Span(file.span.source, span.start + by, span.end + by))
    return diagnostic
