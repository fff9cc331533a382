"""How a kernel runs, whatever its algorithm, and which way it takes a rule's branches: what a rule over schedules has to be
seen with, each for itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from genrw.engine.library.context import CONTEXT_NAMES
from genrw.engine.library.library import Library
from genrw.engine.verify.branches import branches_of
from genrw.grammar.rw_tree import RuleDecl

Kind = tuple[tuple[str, Any], ...]
"""What kernels have in common: entries of their schedules as words, the rules that may go on; or a monoid's clauses."""
SEVERAL = 2
"""A number that is told as several."""


class Facets:
    """The facets of kernels under schedules that one rule has to be seen with; none if it does not `read` schedules."""

    def __init__(self, library: Library, rule: RuleDecl, *, read: bool) -> None:
        self._library, self._read = library, read
        self._branches = branches_of(library, rule)

    @property
    def decide(self) -> bool:
        """Does the rule decide anything by the schedule or the space?"""
        return bool(self._branches)

    def demanded(self) -> Iterator[Kind]:
        """Both ways of what the rule itself decides by its surroundings alone."""
        for branch in self._branches:
            if branch.own and branch.names <= {*CONTEXT_NAMES}:
                yield from (((branch.told, way),) for way in (True, False))

    def of(self, schedule: Mapping[str, Any], names: Mapping[str, Any]) -> list[Kind]:
        """The facets of a kernel with a schedule, where names stand for its surroundings."""
        found = [*self._running(schedule, names)] if self._read and schedule else []
        for branch in self._branches:
            way = branch.taken(names)
            found += [((branch.told, way),)] if way is not None else []
        return found

    def _running(self, schedule: Mapping[str, Any], names: Mapping[str, Any]) -> Iterator[Kind]:
        """How many steps, workgroups and waves there are, and whether the lanes have equally many elements."""
        lanes, groups, steps = (self._library.launch_entry(schedule, part, 1) for part in ("block", "grid", "steps"))
        wave = int(names["target"].values.get("wave_size", 1))
        yield (("steps", min(steps, SEVERAL)),)
        yield (("workgroups", min(groups, SEVERAL)),)
        yield (("waves", 1 if lanes <= wave else SEVERAL),)
        tail = names["space"]["elements"] % max(1, lanes * groups * steps) != 0
        yield (("lanes", "with a tail" if tail else "without a tail"),)
