"""Instances that a rare guard lets pass: searched from ones that it refuses, by changing what they were drawn from.

A step is kept if no more parts of the guard refuse what comes of it, and comparisons fail by no more. Attributes and
numbers that such a part names are set to what it speaks of; else some of the choices are made anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from genrw.engine.language.expr_walk import free_names, walk
from genrw.engine.library.library import Library
from genrw.engine.library.sides import opened
from genrw.engine.verify.choices import Choices
from genrw.engine.verify.instances import Instance, Instances, NoInstance
from genrw.engine.verify.sides import Sides
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.expr_tree import Compare, Expr

_STEPS = 400
_LARGE = 1 << 20
_CHANGED = (1, 1, 2, 4, 8)
_OTHERS = 4
"""How many values are tried for names of a part, before choices are made anew."""


@dataclass
class _Standing:
    """An instance, the choices that led to it, which parts of the guard refuse it, under which names, and how far it is
    from what they ask."""

    instance: Instance
    choices: Choices
    refusing: list[Expr]
    names: Mapping[str, Any]
    distance: float


@dataclass
class Nearing:
    """Steps towards instances that a rule's guard takes, in so many searches."""

    library: Library
    instances: Instances
    sides: Sides
    searches: int
    _parts: dict[int, tuple[Expr, list[Expr]]] = field(default_factory=dict)

    def nearer(self, instance: Instance, choices: Choices, seed: str) -> tuple[Instance, Choices]:
        """The instance that steps from one lead to, and its choices: if one was found, one that the guard takes."""
        at = self._standing(instance, choices)
        if at is None or not at.refusing or not self.searches:
            return instance, choices
        self.searches -= 1
        random, step = Choices(seed), 0
        while at.refusing and step < _STEPS:
            for tape, wanted in self._changes(at, random):
                step += 1
                found = self._drawn(choices, f"{seed}/{step}", tape, wanted)
                if found is not None and found.distance <= at.distance:
                    at = found
                    break
        return at.instance, at.choices

    def _drawn(self, at: Choices, seed: str, tape: list[float], wanted: Mapping[str, Any]) -> _Standing | None:
        choices = at.again(seed, tape, wanted)
        try:
            return self._standing(self.instances.draw(choices), choices)
        except NoInstance:
            return None

    def _standing(self, instance: Instance, choices: Choices) -> _Standing | None:
        """How an instance stands in the alternative that fewest parts refuse; None if none can be judged."""
        found: _Standing | None = None
        for alternative in self.sides.alternatives(instance.match):
            names = alternative.names
            parts = [part for condition in alternative.refused for part in self._parts_of(condition)]
            refusing = [part for part in parts if self._value(part, names) is not True]
            distance = sum(1 + self._missed_by(part, names) for part in refusing)
            if found is None or distance < found.distance:
                found = _Standing(instance, choices, refusing, names, distance)
        return found

    def _missed_by(self, part: Expr, names: Mapping[str, Any]) -> float:
        """By how much a comparison of two numbers fails, from 0 to 1; of other conditions, 0."""
        if not isinstance(part, Compare) or len(part.operands) != 2:
            return 0.0
        a, b = (self._value(o, names) for o in part.operands)
        if not all(type(v) in (int, float) and isfinite(v) for v in (a, b)):
            return 0.0
        return float(abs(a - b) / (abs(a) + abs(b) + 1))

    def _parts_of(self, condition: Expr) -> list[Expr]:
        """The parts of a condition, those of the functions that it calls too."""
        known = self._parts.get(id(condition))
        if known is None:
            # the condition is kept, so that no other one takes its place in memory
            known = self._parts[id(condition)] = (condition, list(opened(condition, self.library.scope.lets)))
        return known[1]

    def _value(self, expr: Expr, names: Mapping[str, Any]) -> Any:
        """What an expression is; None if it cannot be computed."""
        try:
            return self.sides.value(expr, names)
        except (GenrwError, KeyError):
            return None

    # ---- steps

    def _changes(self, at: _Standing, random: Choices) -> Iterator[tuple[list[float], Mapping[str, Any]]]:
        """Choices and wanted numbers to try in place of those that there are."""
        others = list(self._others(at, at.refusing[random.randrange(len(at.refusing))]))
        for name, value in random.sample(others, min(_OTHERS, len(others))):
            yield at.choices.taken, {**at.choices.wanted, name: value}
        tape = list(at.choices.taken)
        for _ in range(random.choice(_CHANGED)):
            tape[random.randrange(len(tape))] = random.random()
        yield tape, at.choices.wanted

    def _others(self, at: _Standing, part: Expr) -> Iterator[tuple[str, Any]]:
        """Values for names of a part: others that occur in it, and what makes a number a multiple or a fraction of one."""
        known = at.instance.match.names
        values = [self._value(e, at.names) for e in walk(part)]
        spoken = [v for v in values if type(v) in (int, float)]
        for name in sorted(free_names(part) & known.keys()):
            present = known[name]
            if type(present) not in (int, float):
                yield from ((name, v) for v in values if type(v) is type(present) and v != present)
                continue
            found = {0.0: 0}
            for v in spoken:
                near = [v, v + 1, v - 1, present * v]
                near += [present // v * v, present + present % v, 1 / v] if v and abs(v) < _LARGE else []
                found.update((float(n), n) for n in near if abs(n) < _LARGE)
            for number in found.values():
                if type(present) is float or number == int(number):
                    yield name, type(present)(number)
