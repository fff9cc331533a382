"""Which operators a program can hold at each stage, rules that wait for others, and operators that nothing takes.

A stage begins with what the one before may leave, and with what the engine asks about. Its rules add what they build.
What people write stands in a program from the first stage on, or from the first stage at which it is legal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from genrw.engine.library.library import Library, Operator
from genrw.engine.library.sides import Direction
from genrw.engine.library.variants import nodes, pattern_operators
from genrw.engine.lint.finding import Finding, finding
from genrw.grammar.expr_tree import Const
from genrw.grammar.rw_tree import OpPattern

_ASKED_ROLES = ("made", "place", "kernel", "boundary")
"""Operators that the engine itself puts into programs."""


@dataclass(frozen=True)
class Reach:
    """The operators that may stand in a program while the rules of each stage run, and the directions that can match."""

    operators: Mapping[str, frozenset[str]]
    live: frozenset[int]


def reach(library: Library, directions: Sequence[Direction]) -> Reach:
    """Follow programs from stage to stage."""
    asked = {name for name in library.names if library.role(name) in _ASKED_ROLES}
    present = {name for name in library.names if _writable(library, name)}
    operators: dict[str, frozenset[str]] = {}
    live: set[int] = set()
    for stage in library.stages:
        found = present | asked
        live |= _close(found, [d for d in directions if stage in d.stages])
        operators[stage] = frozenset(found)
        present = {name for name in library.names if _later(library, name, stage, found)}
    return Reach(operators, frozenset(live))


def _close(found: set[str], waiting: Sequence[Direction]) -> set[int]:
    """Add to the operators all that the rules of a stage can build; gives the numbers of those that can match."""
    live: set[int] = set()
    while True:
        ready = [d for d in waiting if all(options & found for options in d.needs)]
        if not ready:
            return live
        live.update(d.number for d in ready)
        found |= frozenset().union(*(d.makes for d in ready))
        waiting = [d for d in waiting if d.number not in live]


def _writable(library: Library, name: str) -> bool:
    """May people write the operator into a program that no stage has seen?"""
    decl = library.operator(name).decl
    return not any(stage in library.stages for stage in decl.stages) or library.stages[0] in decl.stages


def _later(library: Library, name: str, stage: str, found: set[str]) -> bool:
    """Can a program hold the operator after a stage? Programs may also begin there, with what is first legal there."""
    operator = library.operator(name)
    if not operator.legal_at(stage):
        return False
    return name in found or next(s for s in library.stages if operator.legal_at(s)) == stage


# ---- findings


def unreachable(library: Library, directions: Sequence[Direction], reached: Reach) -> Iterator[Finding]:
    """Rules of which some operator is there at none of their stages."""
    for direction in directions:
        known = [reached.operators[stage] for stage in library.stages if stage in direction.stages]
        if direction.number in reached.live or not known:
            continue
        missing = min((_missing(direction, operators) for operators in known), key=lambda found: -found[0])[1]
        stages = " and ".join(f"`{stage}`" for stage in library.stages if stage in direction.stages)
        yield finding(
            "unreachable",
            direction.rule.name,
            f"nothing gives `{missing.op}` to the rules of {stages}",
            missing.op_span,
            _where(library, reached, direction, missing),
        )


def _missing(direction: Direction, operators: frozenset[str]) -> tuple[int, OpPattern]:
    """The first node of a left side whose operator is not there, and its place."""
    places = enumerate(zip(nodes(direction.left), direction.needs, strict=True))
    return next((i, node) for i, (node, options) in places if not options & operators)


def _where(library: Library, reached: Reach, direction: Direction, missing: OpPattern) -> str:
    """What to do about a missing operator: where it is there, if anywhere."""
    options = pattern_operators(missing, direction.rule, library)
    stages = [stage for stage in library.stages if options & reached.operators[stage]]
    move = f"it is there at {', '.join(stages)}: move the rule, or " if stages else ""
    return f"{move}write a rule that makes it"


def misplaced(library: Library, directions: Sequence[Direction]) -> Iterator[Finding]:
    """Operators that rules build and that may not leave the stage, though no rule of it takes them."""
    taken = {stage: _taken(directions, stage) for stage in library.stages}
    for direction in directions:
        for stage in (stage for stage in library.stages if stage in direction.stages):
            for node, built in direction.built:
                stuck = sorted(name for name in built - taken[stage] if not _may_stay(library, name, stage))
                if stuck:
                    yield _misplaced(library, direction, stage, node, stuck[0])


def _taken(directions: Iterable[Direction], stage: str) -> frozenset[str]:
    """The operators that left sides of a stage hold."""
    return frozenset(name for d in directions if stage in d.stages for options in d.needs for name in options)


def _may_stay(library: Library, name: str, stage: str) -> bool:
    return library.operator(name).legal_at(stage) or library.role(name) in _ASKED_ROLES


def _misplaced(library: Library, direction: Direction, stage: str, node: OpPattern, name: str) -> Finding:
    legal = [s for s in library.stages if library.operator(name).legal_at(s)]
    return finding(
        "stage",
        direction.rule.name,
        f"`{name}` may not be left by `{stage}`, and no rule of that stage takes it",
        node.op_span,
        f"it is legal at {', '.join(legal)}: move the rule there"
        if legal
        else f"write a rule of `{stage}` that takes it",
    )


def not_lowered(library: Library, directions: Sequence[Direction], reached: Reach) -> Iterator[Finding]:
    """Operators that cannot be printed and of which no rule makes others."""
    lowered = {name for d in directions if d.number in reached.live for name in _lowered(d)}
    for operator in (*library.operators.values(), *library.families):
        names = library.family_members(operator) if operator.decl.family is not None else (operator.name,)
        if operator.role in _ASKED_ROLES or _printable(library, operator) or lowered.intersection(names):
            continue
        if any(requirement.condition == Const(False) for requirement in operator.decl.requires):
            continue  # declared to be refused by name: no program holds it
        yield finding(
            "not lowered",
            operator.name,
            f"no rule makes other operators of `{operator.name}`, and it cannot be printed",
            operator.decl.name_span,
            "write a rule that lowers it, or give it an `emit` text",
        )


def _lowered(direction: Direction) -> Iterator[str]:
    """The operators in place of which a rule puts others. One for some cases of any operator of a class lowers none."""
    if isinstance(direction.right, OpPattern):
        any_of = {binding.name for binding in direction.rule.for_} if direction.rule.guard is not None else set()
        needed = zip(nodes(direction.left), direction.needs, strict=True)
        counts = Counter(name for node, options in needed if node.op not in any_of for name in options)
        yield from (name for name, count in counts.items() if count == 1 and name not in direction.makes)


def _printable(library: Library, operator: Operator) -> bool:
    """Has a kernel a text for the operator?"""
    decl = operator.decl
    pointwise = operator.result_sort is None and decl.means is not None
    texts = decl.emit is not None or operator.role == "alloc" or pointwise
    return texts and all(operator.legal_at(stage) for stage in library.stages[-1:])
