"""Workgroups that take the work of several in turn, so that waves which bring what others use go on from one to the next."""

from __future__ import annotations

from genrw.codegen.kernel_ir.kernel import (
    Allocate,
    Apart,
    Apply,
    Effect,
    Let,
    Meeting,
    Statement,
    Turns,
    walk,
)
from genrw.codegen.kernel_ir.regions import needed
from genrw.engine.library.library import Library


def taking_turns(body: tuple[Statement, ...], library: Library, groups: int, launched: int) -> tuple[Statement, ...]:
    """The body of a kernel of which fewer workgroups are `launched` than there are `groups`: what these would do is done in
    turns, by waves apart and by all others. Memory is reserved, and lanes meet for it, once before. The body itself where no
    waves are apart, or lanes have to meet at the end of a turn."""
    place = next((i for i, s in enumerate(body) if isinstance(s, Apart)), None)
    starts = {part: s for s in body if isinstance(s, Let) for part in _part_of_turn(s, library)}
    if place is None or not 0 < launched < groups or "group" not in starts:
        return body
    apart, after = body[place], body[place + 1 :]
    assert isinstance(apart, Apart)
    if any(isinstance(s, Allocate) or s.meeting in (Meeting.BLOCK, Meeting.WAITING_BLOCK) for s in walk(after)):
        return body
    once = tuple(s for s in body[:place] if isinstance(s, Allocate) or _meets(s))
    own = tuple(s for s in body[:place] if s not in once and s not in starts.values())

    def turns(statements: tuple[Statement, ...]) -> tuple[Statement, ...]:
        return (Turns(starts["group"], starts.get("number"), groups, launched, statements),)

    by_waves = turns((*needed(own, apart.by_waves), *apart.by_waves))
    by_lanes = turns((*own, *apart.by_lanes, *after))
    in_turns = (*starts.values(), *own, *apart.in_turns, *after)
    return (*once, Apart(apart.lanes, apart.waves, by_waves, by_lanes, in_turns))


def _part_of_turn(let: Let, library: Library) -> tuple[str, ...]:
    """What a value says of a turn: whose it is, or its number."""
    if not isinstance(let.value, Apply):
        return ()
    operator = library.operator(let.value.node.op)
    return operator.decl.role_parts[:1] if operator.role == "turn" else ()


def _meets(statement: Statement) -> bool:
    return isinstance(statement, Effect) and statement.meeting is not Meeting.NOBODY
