"""Rules about places: where an operation's operands have to be made for a kernel to make it somewhere.

A lane has the operands that are made at its own element; together the lanes of a row have all elements of the row; what is
made elsewhere any lane has. So an operation is made where it is if nothing changes there when the other elements of its
operands do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from genrw.engine.fusion.compute_locations import ELEMENT, ELSEWHERE, HELD, PLACES, ROW, TURNED
from genrw.engine.ir.nodes import Node, walk
from genrw.engine.language.arrays import Array, Values
from genrw.engine.library.library import Library
from genrw.engine.verify.instances import Instance, Instances
from genrw.engine.verify.meaning import Meaningless, TermInterpreter, TermValues
from genrw.engine.verify.report import indented, term_text
from genrw.engine.verify.sides import Sides, Unbuildable
from genrw.engine.verify.values import Kind, LaunchExtents, leaf_values
from genrw.grammar.rw_tree import RuleDecl

_DRAWS = 150
_OF_LITTLE = 4
"""Instances for each that is wanted: they cost little, and few have a space in which a wrong rule shows."""
_ONE = LaunchExtents(1, 1, 1)
_PLAIN = Kind(special=False, extreme=False, distinct=False)


@dataclass(frozen=True)
class WrongPlace:
    """An operation that is not made where a rule says, and why."""

    reason: str
    shown: str


def try_places(library: Library, rule: RuleDecl, count: int, seed: str) -> tuple[int, WrongPlace | None]:
    """How many instances held, more than `count` of them, and the first that does not."""
    instances, sides, compared = Instances(library, rule), Sides(library), 0
    count *= _OF_LITTLE
    for number, choices, instance in instances.drawn(seed, count * _DRAWS):
        if compared >= count:
            break
        for alternative in sides.alternatives(instance.match):
            if alternative.refused:
                continue
            try:
                right = sides.right(instance.match, alternative.names)
            except Unbuildable as problem:
                return compared, WrongPlace(
                    f"the right side cannot be built: {problem}", _shown(instance, None, library)
                )
            question = _Question(library, instance, right, choices.choice((ELEMENT, ROW, ELSEWHERE)))
            wrong = question.wrong(number)
            if wrong is None:
                continue
            if wrong:
                return compared, WrongPlace(wrong, _shown(instance, right, library))
            compared += 1
    return compared, None


def _shown(instance: Instance, right: Node | None, library: Library) -> str:
    """Both sides, and the space that they are made in."""
    lines = ["left side:", *indented(term_text(instance.match.left, instance, library))]
    if right is not None:
        lines += ["right side:", *indented(term_text(right, instance, library))]
    return "\n".join((*lines, f"space = {instance.surroundings.space}, axes = {instance.surroundings.axes}"))


ANYWHERE = (ELSEWHERE, HELD)
"""Places where lanes have all elements of an operand that they need."""


class _Question:
    """One operation, made at a place; where the rule leaves the place open, at `any_place`."""

    def __init__(self, library: Library, instance: Instance, right: Node, any_place: int) -> None:
        self.library, self.instance, self.right, self.any_place = library, instance, right, any_place
        left = instance.match.left
        self.asked, self.index = left.operands
        self.space, self.axes = instance.surroundings.space, instance.surroundings.axes
        elements = np.arange(int(np.prod(self.space)), dtype=np.int64).reshape(self.space)
        kept = [1 if d in self.axes else n for d, n in enumerate(self.space)]
        self.rows = np.broadcast_to(np.arange(int(np.prod(kept))).reshape(kept), self.space).reshape(-1)
        self.elements = elements.reshape(-1)

    def _place(self, index: Node) -> int:
        operator = self.library.operator(index.op)
        return PLACES.index(operator.decl.role_parts[0]) if operator.role == "place" else self.any_place

    def wrong(self, seed: int) -> str | None:
        """What is wrong, empty if nothing is; None if the question makes no sense."""
        place = self._place(self.index)
        if not self.elements.size or not self._fits(self.asked, place):
            return None
        made = [n for n in walk(self.right) if self.library.role(n.op) == "made"]
        for node in made:
            if not self._fits(node.operands[0], self._place(node.operands[1])):
                return "an operand is made at a place that has another number of elements than the operand"
        needs = [(n.operands[0], self._place(n.operands[1])) for n in made]
        rng = np.random.default_rng(seed)
        for element in rng.choice(self.elements, min(4, self.elements.size), replace=False):
            changed = self._changed(int(element), place, needs, seed)
            if changed is None:
                return None
            if changed:
                return "its value depends on elements of an operand that are not made at that place"
        return ""

    def _fits(self, tensor: Node, place: int) -> bool:
        """Has a place as many elements as a tensor?"""
        elements = self.elements.size
        wanted = {ELEMENT: elements, TURNED: elements, ROW: int(self.rows.max()) + 1 if self.rows.size else 0}
        return place in ANYWHERE or tensor.type.elements == wanted[place]

    def _changed(self, element: int, place: int, needs: list[tuple[Node, int]], seed: int) -> bool | None:
        """Does the value at a lane's place change when operands' elements that it has not do? None if it has no value."""
        leaves = self.instance.match.leaves
        first = leaf_values(leaves, self.asked, self.library, _ONE, self.instance.ranges, _PLAIN, seed)
        other = leaf_values(leaves, self.asked, self.library, _ONE, self.instance.ranges, _PLAIN, seed + 1)
        second = dict(first)
        for leaf in leaves:
            if leaf.type.sort == "tensor":
                second[id(leaf)] = self._mixed(leaf, element, place, needs, first[id(leaf)], other[id(leaf)])
        try:
            a, b = (self._value(values) for values in (first, second))
        except Meaningless:
            return None
        if place == TURNED:  # which of the elements is the lane's, the order says: one of them has to stay
            return not np.any(a == b)
        mine = self._mine(place, element, a.size)
        return not np.array_equal(a.reshape(-1)[mine], b.reshape(-1)[mine], equal_nan=a.dtype.kind == "f")

    def _mixed(
        self, leaf: Node, element: int, place: int, needs: list[tuple[Node, int]], kept: Values, other: Values
    ) -> Values:
        """An operand's values, those that the lane has not replaced by others."""
        places = [p for node, p in needs if node is leaf]
        if any(p in ANYWHERE for p in places):
            return kept
        has = np.zeros(kept.size, np.bool_)
        row = self.rows[element]
        for p in places:
            if p == ROW:
                has[row] = True
            elif place == ROW:
                has |= self.rows == row
            else:
                has[element] = True
        return np.where(has.reshape(kept.shape), kept, other)

    def _mine(self, place: int, element: int, size: int) -> Any:
        if place in ANYWHERE:
            return np.arange(size)
        return np.array([self.rows[element] if place == ROW else element])

    def _value(self, leaves: dict[int, Values]) -> Values:
        machine = TermInterpreter(self.library, precise=False, missing=False)
        meaning = TermValues(machine, self.instance.match.context, leaves, _ONE)
        value = meaning.of(self.asked)
        if not isinstance(value, Array):
            raise Meaningless("no tensor")
        values = value.values
        return values.astype(np.float64) if values.dtype.kind not in "biuf" else values
