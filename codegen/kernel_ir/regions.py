"""A kernel's body cut where lanes meet, for machines that run the lanes one after the other.

What lies between two meetings is a region. A variable that outlives its region has to be kept for each lane. Lanes meet in
straight lines and in loops that all of them walk alike, never in a branch: such a loop goes around regions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from genrw.codegen.kernel_ir.kernel import Allocate, Let, Loop, Meeting, Statement, Variable, walk


@dataclass(frozen=True)
class Region:
    """Statements between two meetings."""

    statements: tuple[Statement, ...]

    @cached_property
    def declared(self) -> dict[Variable, Statement]:
        """The variables that its lanes declare, outside of loops over their shares, and where."""
        own = (s for s in walk(self.statements) if not (isinstance(s, Let) and s.element))
        return {s.declared: s for s in own if s.declared is not None}

    @cached_property
    def variables(self) -> frozenset[Variable]:
        """All variables in it."""
        return frozenset(v for s in walk(self.statements) for v in named(s))


@dataclass(frozen=True)
class Around:
    """A loop in which lanes meet."""

    loop: Loop
    parts: tuple[Part, ...]


Part = Region | Statement | Around
"""A region, a meeting, a loop around both."""


def named(statement: Statement) -> Iterator[Variable]:
    """The variables that a statement names, but for those of statements inside."""
    if statement.declared is not None:
        yield statement.declared
    yield from used(statement)


def used(statement: Statement) -> Iterator[Variable]:
    """The variables that a statement names and others declare, but for those of statements inside."""
    if statement.changed is not None:
        yield statement.changed
    for expression in statement.expressions:
        yield from expression.variables


def needed(before: Sequence[Statement], users: Sequence[Statement]) -> tuple[Statement, ...]:
    """Of the statements before, those that declare what others use."""
    wanted: set[Variable] = {v for s in walk(tuple(users)) for v in named(s)}
    found: list[Statement] = []
    for statement in reversed(before):
        if statement.declared in wanted:
            wanted |= {v for s in walk((statement,)) for v in named(s)}
            found.insert(0, statement)
    return tuple(found)


def given(meeting: Statement) -> Variable | None:
    """The variable that a meeting gives a value."""
    return meeting.declared or meeting.changed


def parts_of(body: Sequence[Statement]) -> tuple[Part, ...]:
    """A body cut where lanes meet. Workgroup memory is for all lanes, and in no part. What a lane waits for before it meets
    others is done in its region."""
    parts: list[Part] = []
    region: list[Statement] = []
    for statement in body:
        if isinstance(statement, Allocate):
            continue
        if all(s.meeting is Meeting.NOBODY for s in walk((statement,))):
            region.append(statement)
            continue
        if statement.meeting in (Meeting.WAITING_BLOCK, Meeting.WAITING_WAVE):
            region.append(statement)
        parts += [Region(tuple(region))] if region else []
        parts.append(Around(statement, parts_of(statement.body)) if isinstance(statement, Loop) else statement)
        region = []
    return (*parts, Region(tuple(region))) if region else tuple(parts)


def kept(parts: Sequence[Part]) -> dict[Variable, Statement]:
    """The variables that outlive the region which declares them, and where they are declared: results of meetings, and those
    used elsewhere, be it by a loop around regions."""
    regions, meetings = list(_regions(parts)), [m for m in _meetings(parts) if given(m) is not None]
    found: dict[Variable, Statement] = {}
    for meeting in meetings:
        variable = given(meeting)
        assert variable is not None
        found[variable] = meeting
    around = [*meetings, *_loops(parts)]
    elsewhere = {v for statement in around for e in statement.expressions for v in e.variables}
    for i, region in enumerate(regions):
        others = elsewhere.union(*(r.variables for r in (*regions[:i], *regions[i + 1 :])))
        found |= {v: s for v, s in region.declared.items() if v in others}
    return found


def _regions(parts: Sequence[Part]) -> Iterator[Region]:
    for part in parts:
        if isinstance(part, Region):
            yield part
        elif isinstance(part, Around):
            yield from _regions(part.parts)


def _loops(parts: Sequence[Part]) -> Iterator[Loop]:
    for part in parts:
        if isinstance(part, Around):
            yield part.loop
            yield from _loops(part.parts)


def _meetings(parts: Sequence[Part]) -> Iterator[Statement]:
    for part in parts:
        if isinstance(part, Statement):
            yield part
        elif isinstance(part, Around):
            yield from _meetings(part.parts)
