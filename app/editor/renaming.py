"""Other names for what a text names: what changes, and why it may not be called so.

The changed texts are looked at as if they were open. So a name is refused that stands for something else, whatever that is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from genrw.editor.about import declaration_of
from genrw.editor.occurrence import FUNCTION, LET, LOCAL, MODULE, OPERATOR, RENAMED, VALUE, Occurrence
from genrw.editor.project import Analysis, Project
from genrw.engine.library.library import Library
from genrw.engine.programs.build import NAME


class Refused(Exception):
    """A name stays as it is, for a reason that can be told in a sentence."""


def shared_key(name: Occurrence, library: Library) -> tuple[str, str, str]:
    """What all places of one thing share: members of a family are the family, calls of a `let` the `let`."""
    if name.kind == OPERATOR:
        found = library.find(name.name)
        return OPERATOR, found[0].name if found is not None else name.name, ""
    if name.kind == FUNCTION and name.name in library.scope.lets:
        return LET, name.name, ""
    return name.key


def require_renamed(name: Occurrence | None, analysis: Analysis, project: Project, own: Collection[Path]) -> Occurrence:
    """The name, whose places can all be changed; Refused if they cannot. Those of the shipped rules are not the editor's, unless
    open."""
    if name is None:
        raise Refused(_nothing(analysis))
    library = analysis.library
    kind, shared, _ = shared_key(name, library)
    if name.is_sign:
        raise Refused(f"the sign stays what it is when `{name.name}` is called otherwise: rename that")
    if kind == FUNCTION:
        raise Refused(f"`{name.name}` is a function of the language")
    if kind not in RENAMED or "{" in shared:
        raise Refused(f"`{shared}` is not renamed: names of this kind are parts of others, or stand in other texts")
    if kind not in LOCAL:
        declared = declaration_of(name, library)
        if declared is None:
            raise Refused(f"nothing declares `{name.name}`")
        if project.path_of(declared.name_span.source.name) not in own:
            raise Refused(
                f"`{name.name}` is declared in {declared.name_span.source.name}, which is not among your files"
            )
    return name


def _nothing(analysis: Analysis) -> str:
    """Why there is no name at a place."""
    unread = not analysis.names and analysis.diagnostics
    return f"the text cannot be read: {analysis.diagnostics[0].message}" if unread else "no name stands here"


def require_free(name: Occurrence, new: str, analysis: Analysis) -> None:
    """Refused if a new name is none of the language, or that of something else of its kind."""
    dots_may_be = name.kind in (VALUE, MODULE)
    if NAME.fullmatch(new) is None or ("." in new and not dots_may_be):
        dots = ", dots" if dots_may_be else ""
        raise Refused(f"`{new}` is no name: names are letters, digits{dots} and underscores, and begin with no digit")
    called = replace(name, name=new)
    in_sight = name.kind in LOCAL and any(o.key == called.key for o in analysis.names)
    if in_sight or (name.kind not in LOCAL and declaration_of(called, analysis.library) is not None):
        raise Refused(f"`{new}` is the name of something else")


def renamed(text: str, found: Iterable[Occurrence], new: str) -> str:
    """A text in which names stand for others."""
    for name in sorted(found, key=lambda o: o.span.start, reverse=True):
        text = text[: name.span.start] + name.prefix + new + text[name.span.end :]
    return text


def require_right(project: Project, texts: Mapping[Path, str], changed: Mapping[Path, str]) -> None:
    """Refused if texts have more faults once they are changed: the first of those that they did not have."""
    before, after = (Project(project.folders, project.shipped) for _ in range(2))
    before.open, after.open = {**texts, **project.open}, {**project.open, **changed}
    for path in changed:
        known = [fault.message for fault in before.analysis(path).diagnostics]
        faults = [fault.message for fault in after.analysis(path).diagnostics]
        if len(faults) > len(known):
            raise Refused(next((fault for fault in faults if fault not in known), faults[0]))
