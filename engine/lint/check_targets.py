"""Targets compared with one another: what rules read of one has to be of the same kind, sign and name in all.

Nothing here knows what a machine has. What the other targets say is the measure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from genrw.engine.language.expr_walk import did_you_mean, free_names, member_uses
from genrw.engine.library.infer import holes
from genrw.engine.library.library import Library
from genrw.engine.library.targets import MARKS, base_chain, shown_value
from genrw.engine.lint.walks import expressions
from genrw.grammar.diagnostics import Diagnostic
from genrw.grammar.rw_tree import InstructionDecl, TargetDecl
from genrw.grammar.source import Span

_COMPILED_FOR = "arch"
"""What compilers ask of a target that is called otherwise than they call it, else its name; no rule reads it."""


def check_targets(library: Library, declarations: Iterable[object]) -> list[Diagnostic]:
    """All findings on those declarations that are targets; the library's other targets are the measure."""
    targets = [d for d in declarations if isinstance(d, TargetDecl)]
    return [finding for decl in targets for finding in _target(library, decl)]


def _target(library: Library, decl: TargetDecl) -> Iterator[Diagnostic]:
    target = library.targets.get(decl.name)
    others = [t for t in library.targets.values() if t.name != decl.name]
    if target is None or not others:
        return
    yield from _requirements(decl, {"name", *(name for t in library.targets.values() for name in t.values)})
    places = {name: value.span for name, value in _inherited(library, decl)}
    own = dict(decl.values)  # What a base has that is unknown is told of there.
    known = {_COMPILED_FOR, *(name for t in others for name in t.values)}
    for name, span in places.items():
        if name in own and name not in known and name not in _read(library):
            remedy = did_you_mean(name, known) or "nothing reads it: remove it"
            yield Diagnostic(f"no other target has a `{name}`, and no rule reads it", span, remedy)
        elif name in target.values:
            theirs = [t.values.get(name, t.name) for t in others if name in t.values or name == _COMPILED_FOR]
            yield from _value(name, target.values[name], theirs, span)
            yield from _instructions(library, target.values[name], theirs, span)
    if not _is_based(library, decl):
        return  # That is told, and what it lacks would stand in its base.
    missing = set.intersection(*(_bases(library, t.name) for t in others)) - _bases(library, decl.name)
    for base in sorted(missing):
        remedy = f"write target {decl.name} : {base}" if decl.base is None else f"base `{decl.base}` on it"
        yield Diagnostic(
            f"every other target is based on `{base}`, which says what their values keep", decl.name_span, remedy
        )
    for name in sorted(set.intersection(*(set(t.values) for t in others)) - set(target.values) - set(places)):
        shown = ", ".join(dict.fromkeys(shown_value(t.values[name]) for t in others))
        message = f"`{decl.name}` has no `{name}`, which every other target has"
        yield Diagnostic(message, decl.name_span, f"write {name} …; others have {shown}")


def _requirements(decl: TargetDecl, known: Collection[str]) -> Iterator[Diagnostic]:
    """What is asked for that no target has: nothing would be required of any."""
    for requirement in decl.requires:
        for name in sorted(free_names(requirement.condition) - set(known)):
            remedy = did_you_mean(name, known) or "remove the line"
            yield Diagnostic(f"no target has a `{name}`", requirement.condition.span, remedy)
        for hole in holes(requirement.message):
            if hole not in known:
                remedy = did_you_mean(hole, known) or "braces hold the name of a value"
                yield Diagnostic(f"the message names `{hole}`, which no target has", requirement.span, remedy)


def _bases(library: Library, name: str) -> set[str]:
    """A target and all that it is based on."""
    decls = _declared(library)
    return {d.name for d in base_chain(decls[name], decls)}


def _is_based(library: Library, decl: TargetDecl) -> bool:
    """Does the chain of a target's bases end?"""
    decls = _declared(library)
    return base_chain(decl, decls)[-1].base is None


def _declared(library: Library) -> dict[str, TargetDecl]:
    return {d.name: d for file in library.files for d in file.declarations if isinstance(d, TargetDecl)}


def _inherited(library: Library, decl: TargetDecl) -> list[tuple[str, Any]]:
    """The values of a target and of its bases, its own last."""
    chain = base_chain(decl, _declared(library))
    return [(name, value) for d in reversed(chain) for name, value in d.values if name not in MARKS]


def _read(library: Library) -> set[str]:
    """What expressions read of the target."""
    lets = library.scope.lets
    uses = {use for f in library.files for d in f.declarations for e in expressions(d) for use in member_uses(e, lets)}
    return {member for name, member in uses if name == "target"}


def _value(name: str, value: Any, others: Sequence[Any], span: Span) -> Iterator[Diagnostic]:
    if not others:
        return
    remedy = f"other targets have {', '.join(dict.fromkeys(map(shown_value, others)))}"
    kinds = dict.fromkeys(map(_kind, others))
    if not _fits(_kind(value), kinds):
        yield Diagnostic(f"`{name}` is {' or '.join(kinds)}, not {_kind(value)}", span, remedy)
        return
    parts = dict.fromkeys(_kind(part) for other in others if isinstance(other, tuple) for part in other)
    odd = [k for k in map(_kind, value if isinstance(value, tuple) else ()) if not _fits(k, parts)]
    if parts and odd:
        yield Diagnostic(f"`{name}` has {' or '.join(parts)} in it, not {odd[0]}", span, remedy)
        return
    mine, theirs = _numbers(value), [n for other in others for n in _numbers(other)]
    if not theirs:
        return
    if isinstance(value, tuple) and not value:
        yield Diagnostic(f"`{name}` has no elements", span, remedy)
    elif min(theirs) > 0 >= min(mine, default=1):
        yield Diagnostic(f"`{name}` is above 0", span, remedy)
    elif min(theirs) >= 0 > min(mine, default=0):
        yield Diagnostic(f"`{name}` is not below 0", span, remedy)
    elif any(not abs(n) < float("inf") for n in mine):
        yield Diagnostic(f"`{name}` is a finite number", span, remedy)


def _instructions(library: Library, value: Any, others: Sequence[Any], span: Span) -> Iterator[Diagnostic]:
    """Texts that name no instruction, where those of all other targets do. One that is declared wrongly is told of there."""
    known = library.instructions
    declared = {d.name for f in library.files for d in f.declarations if isinstance(d, InstructionDecl)}
    theirs = [text for other in others for text in _texts(other)]
    if theirs and all(text in known for text in theirs):
        for text in _texts(value):
            if text not in declared:
                yield Diagnostic(f"there is no instruction `{text}`", span, did_you_mean(text, known))


def _kind(value: Any) -> str:
    if isinstance(value, tuple):
        return "a list"
    if isinstance(value, bool):
        return "true or false"
    return "a whole number" if isinstance(value, int) else "a number" if isinstance(value, float) else "a text"


def _fits(kind: str, kinds: Collection[str]) -> bool:
    """Is a kind one of those there are? A whole number is a number, too."""
    return kind in kinds or (kind == "a whole number" and "a number" in kinds)


def _numbers(value: Any) -> list[float]:
    """The numbers of a value, none for one that has others."""
    parts = value if isinstance(value, tuple) else (value,)
    return [n for n in parts if isinstance(n, int | float) and not isinstance(n, bool)]


def _texts(value: Any) -> list[str]:
    return [part for part in (value if isinstance(value, tuple) else (value,)) if isinstance(part, str)]
