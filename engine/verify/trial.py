"""One rule tried on random instances: its two sides evaluated and compared, its guard asked what it keeps out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import sqrt
from random import Random
from typing import Any

import numpy as np

from genrw.engine.interpret.memory import read_as
from genrw.engine.ir.dtypes import DTYPES
from genrw.engine.ir.nodes import Node, walk
from genrw.engine.ir.types import Type
from genrw.engine.language.arrays import Array, Values
from genrw.engine.language.functions import Value
from genrw.engine.library.library import Library
from genrw.engine.library.variants import nodes, pattern_operators
from genrw.engine.verify.choices import Choices
from genrw.engine.verify.instances import Instance, Instances
from genrw.engine.verify.judge import Difference, Free, Tolerance, difference
from genrw.engine.verify.meaning import LANE_SORTS, Meaningless, TermInterpreter, TermValues
from genrw.engine.verify.nearing import Nearing
from genrw.engine.verify.sides import Alternative, Sides, Unbuildable
from genrw.engine.verify.values import Kind, LaunchExtents, launch_of, leaf_values
from genrw.grammar.expr_tree import Expr
from genrw.grammar.rw_tree import RuleDecl

_DRAWS_FOR_EACH = 40
"""Draws for each instance that is wanted. A guard that lets fewer pass gets fewer instances."""
_RARELY, _SEARCHES, _SEARCHED = 25, 1, 4
"""A guard that lets not one of so many draws pass is rare: then instances that it takes are searched from those that it
refuses, so many times for each that is wanted, until there is one for every fourth of these."""
_REFUSED_FOR_EACH = 2
_OF_LITTLE = 4
"""Instances of tensors, and of lanes that fold nothing, for each that is wanted: they cost little beside the others, and
beside what an operator's own requirements take to be met."""
_DRAWS_OUTSIDE = 20
_LEAST_DRAWS, _LEAST_SEARCHES = 2_000, 40
_ENLARGED = 16
"""So many instances are compared again with large indices and numbers."""
_POISONS = (0, 1)
_SETTLING = 4
_TINY = 2.0**-38
_SHORT = 16
"""Folds up to this length round by little more than one operation does."""
"""What double precision may lose, relative to the largest value met."""


@dataclass(frozen=True)
class Failure:
    """An instance of a rule whose sides differ, with the values of its leaves by their identity."""

    instance: Instance
    alternative: Alternative
    left: Node
    right: Node | None
    reason: str
    difference: Difference | None
    kind: Kind
    seed: str
    choices: Choices
    values: Mapping[int, Values] = field(default_factory=dict)


@dataclass
class Tried:
    """What came of the instances: how many were compared, the first failure, and what conditions kept out.

    `needed` are the conditions without which something went wrong; `held` counts, for each of the others, the instances
    that it alone kept out and that held nevertheless.
    """

    compared: int = 0
    failure: Failure | None = None
    needed: set[int] = field(default_factory=set)
    held: dict[int, int] = field(default_factory=dict)
    conditions: dict[int, Expr] = field(default_factory=dict)
    problems: dict[str, int] = field(default_factory=dict)


def _operators(library: Library, rule: RuleDecl) -> set[str]:
    """The operators of both sides of a rule."""
    sides = (rule.left, rule.right)
    return {name for side in sides for n in nodes(side) for name in pattern_operators(n, rule, library)}


def has_meaning(library: Library, rule: RuleDecl) -> bool:
    """Can both sides of a rule be evaluated by themselves?"""
    named = _operators(library, rule)
    return bool(named) and all(_means(library, name) for name in named)


def _means(library: Library, name: str) -> bool:
    operator = library.operator(name)
    if operator.role == "boundary":
        return operator.decl.role_parts[0] in ("input", "constant", "scalar", "number")
    if operator.role == "write":
        return operator.operand(library.part(name, 0)).sort != "buffer"
    return operator.decl.means is not None or operator.role in ("element", "alloc")


class RuleTrial:
    """A rule with what it is tried with."""

    def __init__(self, library: Library, rule: RuleDecl, waves: Sequence[int]) -> None:
        self.library, self.rule = library, rule
        self.sides = Sides(library)
        self.folds = self._folds()
        self.missing = self._has_missing()
        self.instances = Instances(library, rule, waves, self.missing, narrow=self.folds)
        self.machines = {p: TermInterpreter(library, precise=p, missing=self.missing) for p in (False, True)}

    def _folds(self) -> bool:
        """Is something folded, whose order is nobody's?"""
        found = [self.library.operator(name).decl for name in _operators(self.library, self.rule)]
        return any(
            d.family is not None or any(a.type == "monoid" for a in d.attributes) or d.role == "fold" for d in found
        )

    def _has_missing(self) -> bool:
        """Does an index of -1 stand for an element that does not exist? In the last stage it is a number as others are, and
        all that workgroup memory is asked for exists."""
        last = self.library.stages[-1:]
        operators = [self.library.operator(name) for name in _operators(self.library, self.rule)]
        if any(operand.sort == "buffer" for op in operators for operand in op.decl.operands):
            return False
        return not last or self.rule.stages != tuple(last) or any(not op.legal_at(last[0]) for op in operators)

    def run(self, count: int, seed: str) -> Tried:
        """Compare so many instances, more of tensors; ends with the first that fails."""
        tried = Tried()
        costly = (self.instances.in_kernel and self.folds) or self.rule.defines is not None
        rare, count = count, count if costly else count * _OF_LITTLE
        outside, wanted = 0, count * _REFUSED_FOR_EACH if self.rule.guard is not None else 0
        nearing = Nearing(self.library, self.instances, self.sides, max(rare * _SEARCHES, _LEAST_SEARCHES))
        for number, choices, instance in self.instances.drawn(seed, max(count * _DRAWS_FOR_EACH, _LEAST_DRAWS)):
            enough = tried.compared >= count
            if enough and (outside >= wanted or number >= count * _DRAWS_OUTSIDE):
                break
            # What remains to be found are instances that the guard refuses: any will do, so no time is spent on them.
            self.instances.as_drawn = enough
            here = f"{seed}/{number}"
            if number >= (tried.compared + 1) * _RARELY and tried.compared < rare / _SEARCHED:
                shown = self.instances.shown(here) if number % 2 else None
                instance, choices = nearing.nearer(*(shown or (instance, choices)), here)
            kind = kind_of(choices)
            for alternative in self.sides.alternatives(instance.match):
                if alternative.refused:
                    outside += self._outside(instance, alternative, kind, here, tried)
                elif not enough:
                    found = self._compared(instance, alternative, choices, kind, here, tried)
                    if found is not None:
                        tried.failure = found
                        return tried
        return tried

    def _compared(
        self, instance: Instance, alternative: Alternative, choices: Choices, kind: Kind, seed: str, tried: Tried
    ) -> Failure | None:
        """Compare the two sides of an instance, and of what becomes of it if something of it is large."""
        found = self.compare(instance, alternative, kind, seed, tried)
        if found is not None:
            return replace(found, choices=choices)
        if tried.compared > _ENLARGED:
            return None
        for larger, taken in self.instances.enlarged(instance, choices):
            kind = kind_of(taken)
            for other in self.sides.alternatives(larger.match):
                found = None if other.refused else self.compare(larger, other, kind, seed, Tried())
                if found is not None:
                    return replace(found, choices=taken)
        return None

    # ---- one instance

    def compare(
        self, instance: Instance, alternative: Alternative, kind: Kind, seed: str, tried: Tried
    ) -> Failure | None:
        """Compare the two sides of one instance; None if they agree or the left one cannot be evaluated."""
        left = instance.match.left

        def failure(reason: str, right: Node | None, found: Difference | None = None) -> Failure:
            launch, leaves = self._leaves(instance, kind, seed)
            if _is_of_lanes(left):
                self._settled(left, instance.match.context, leaves, launch, Tried())
            return Failure(instance, alternative, left, right, reason, found, kind, seed, Choices(seed), leaves)

        try:
            right = self.sides.right(instance.match, alternative.names)
        except Unbuildable as problem:
            if self._differ(instance, left, left, kind, seed, False, Tolerance(), tried) is None:
                return None
            tried.compared += 1
            return failure(f"the right side cannot be built: {problem}", None)
        if not self._stands_for(right.type, left):
            tried.compared += 1
            return failure(f"the right side is a {type_text(right.type)}, the left one a {type_text(left.type)}", right)
        for tolerance, precise in self._judgements(left):
            found = self._differ(instance, left, right, kind, seed, precise, tolerance, tried)
            if found is None:
                return None
            if isinstance(found, str):
                return failure(found, right)
            if isinstance(found, Difference):
                return failure("the two sides differ", right, found)
        tried.compared += 1
        return None

    def _judgements(self, left: Node) -> list[tuple[Tolerance, bool]]:
        """How the contract is judged: with which tolerance, and whether in double precision."""
        contract, bound = self.rule.contract, self.rule.bound or 0.0
        if self.rule.defines is not None:
            # an operator rounds once; what it is made of rounds its numbers, too
            return [(Tolerance(scale=2.0**-20), True)]
        if contract == "exact" and not self.folds:
            return [(Tolerance(), False)]
        if contract == "exact" and self._is_name_of_others(left):
            return [(Tolerance(scale=_TINY), True)]
        if contract == "exact":
            return [(Tolerance(scale=_TINY), True), (Tolerance(scale=_rounded(left), units=1.01), False)]
        if contract == "approximate":
            return [(Tolerance(relative=bound, scale=_TINY), True), (Tolerance(relative=bound, units=2.01), False)]
        return [(Tolerance(scale=_TINY), True)]

    def _is_name_of_others(self, left: Node) -> bool:
        """Is the left side an operation on narrow numbers that only stands for others, each of which rounds?"""
        narrow = left.type.dtype in DTYPES and DTYPES[left.type.dtype].compute != left.type.dtype
        return narrow and self.library.operator(left.op).decl.stages == ("nowhere",)

    def _differ(
        self,
        instance: Instance,
        left: Node,
        right: Node,
        kind: Kind,
        seed: str,
        precise: bool,
        tolerance: Tolerance,
        tried: Tried,
    ) -> Difference | str | bool | None:
        """The first difference; in words that the right side cannot be evaluated; False for none; None if the left side
        cannot be evaluated."""
        launch, leaves = self._leaves(instance, kind, seed)
        leaves |= self._read_otherwise(right, instance.match.leaves, leaves)
        context = instance.match.context
        if _is_of_lanes(left) and not self._settled(left, context, leaves, launch, tried):
            return None
        lefts: list[Value] = []
        rights: list[Value] = []
        largest = 0.0
        for poison in _POISONS if _is_of_lanes(left) else _POISONS[:1]:
            machine = self.machines[precise]
            meaning = TermValues(machine, context, leaves, launch, poison=poison)
            try:
                lefts.append(meaning.of(left))
            except Meaningless as problem:
                tried.problems[str(problem)] = tried.problems.get(str(problem), 0) + 1
                return None
            wraps = self.instances.is_last and not meaning.wide
            largest = max(largest, meaning.largest)
            meaning = TermValues(machine, context, leaves, launch, poison=poison, wraps=wraps)
            try:
                rights.append(meaning.of(right))
            except Meaningless as problem:
                return f"the right side cannot be evaluated: {problem}"
            largest = max(largest, meaning.largest)
        scaled = replace(tolerance, largest=largest)
        free = _unspecified(lefts)
        if free is not None and not isinstance(free, tuple) and np.all(free):
            return None
        for a, b in zip(lefts, rights, strict=True):
            found = difference(a, b, free, scaled)
            if found is not None:
                return found
        return False

    def _settled(
        self, left: Node, context: Mapping[str, Any], leaves: dict[int, Values], launch: LaunchExtents, tried: Tried
    ) -> bool:
        """Give lanes in which the left side is outside of what its operators are for the values of other lanes; False if
        there are none."""
        for _ in range(_SETTLING):
            meaning = TermValues(self.machines[False], context, leaves, launch, tolerant=True)
            try:
                meaning.of(left)
            except Meaningless as problem:
                tried.problems[str(problem)] = tried.problems.get(str(problem), 0) + 1
                return False
            bad = _lanes(meaning.outside or [], launch)
            if not np.any(bad):
                return True
            good = np.argwhere(~bad)
            if not len(good):
                return False
            place = tuple(good[len(good) // 2])
            for key, values in leaves.items():
                if values.shape[:3] == bad.shape:
                    leaves[key] = np.where(bad[..., None], values[place], values)
        return False

    def _leaves(self, instance: Instance, kind: Kind, seed: str) -> tuple[LaunchExtents, dict[int, Values]]:
        match = instance.match
        wave = int(instance.surroundings.target.values.get("wave_size", 1))
        launch = launch_of(self.library, instance.surroundings.schedule, wave)
        if self.rule.contract == "approximate" or self.folds:
            kind = Kind(kind.special, False, kind.distinct)
        leaves = leaf_values(
            match.leaves, match.left, self.library, launch, instance.ranges, kind, Random(seed).getrandbits(32)
        )
        return launch, leaves

    def _read_otherwise(self, right: Node, given: Sequence[Node], values: Mapping[int, Values]) -> dict[int, Values]:
        """The values of parameters that the right side reads with strides of its own."""
        known = {leaf.attribute("name"): leaf for leaf in given if leaf.type.sort == "tensor"}
        inputs = [n for n in walk(right) if n.op == self.library.boundary("input").name and id(n) not in values]
        pairs = [(node, known[node.attribute("name")]) for node in inputs if node.attribute("name") in known]
        return {id(node): read_as(values[id(leaf)], leaf.type, node.type) for node, leaf in pairs}

    def _stands_for(self, right: Type, left: Node) -> bool:
        """May a value of a type stand for another one? A single one stands for a share of one, which stands for it, and for a
        share of equal ones: of truth values, and of a tensor's elements."""
        type_ = left.type
        if (right.sort, right.dtype, right.lens, right.size) == (type_.sort, type_.dtype, type_.lens, type_.size):
            return True
        if (right.sort, right.dtype, right.size) == ("array", type_.dtype, 1) and type_.sort == "scalar":
            return True
        single = right.size == 0 and right.dtype == type_.dtype and right.sort in ("scalar", "index")
        same_sort = (right.sort == "index") == (type_.sort == "index") and not type_.lens and type_.sort in LANE_SORTS
        equal = type_.dtype == "bool" or self.library.role(left.op) == "element"
        return single and same_sort and (type_.size <= 1 or equal)

    # ---- outside of the guard

    def _outside(self, instance: Instance, alternative: Alternative, kind: Kind, seed: str, tried: Tried) -> bool:
        """Apply the rule where one condition alone forbids it; says whether that told something."""
        condition = alternative.refused[0]
        key = condition.span.start
        tried.conditions[key] = condition
        if len(alternative.refused) > 1 or key in tried.needed:
            return False
        probe = Tried()
        if self.compare(instance, alternative, kind, seed, probe) is not None:
            tried.needed.add(key)
            return True
        if probe.compared:
            tried.held[key] = tried.held.get(key, 0) + 1
        return bool(probe.compared)


def kind_of(random: Random) -> Kind:
    """What numbers the leaves of an instance get."""
    return Kind(random.random() < 0.5, random.random() < 0.3, random.random() < 0.4)


def _is_of_lanes(root: Node) -> bool:
    return any(node.type.sort in LANE_SORTS for node in walk(root))


def _unspecified(values: Sequence[Value]) -> Free:
    """Where a value depends on what is unspecified; of an accumulator, for each field."""
    if len(values) < 2:
        return None
    first, second = values
    if isinstance(first, tuple):
        return tuple(_unspecified(pair) for pair in zip(first, second, strict=True))
    if not isinstance(first, Array):
        return None
    a, b = first.values, second.values
    free: Values = ~((a == b) | ((a != a) & (b != b)))
    return free if np.any(free) else None


def _rounded(term: Node) -> float:
    """How much of the largest value roundings may make of a fold: as in a random walk, they grow with the square root of
    its length, here at most what the term's tensors have for each element of its result."""
    if term.type.sort != "tensor":
        return 2.0**-20
    longest = max(node.type.elements for node in walk(term) if node.type.sort == "tensor")
    return 2.0**-20 * sqrt(max(1.0, longest / max(1, term.type.elements) / _SHORT))


def _lanes(masks: Sequence[Values], launch: LaunchExtents) -> Values:
    """In which lanes a condition of some elements of the share holds."""
    bad = np.zeros((launch.groups, launch.lanes, launch.steps), np.bool_)
    for mask in masks:
        bad = bad | (np.any(mask, axis=-1) if mask.ndim else mask)
    return bad


def type_text(type_: Type) -> str:
    """A type in words of messages."""
    if type_.sort in ("tensor", "buffer"):
        return f"{type_.sort} {type_.dtype}{{{', '.join(map(str, type_.lens))}}}"
    if type_.sort == "effect":
        return "effect"
    dtype = "index" if type_.sort == "index" else type_.dtype
    return f"value {dtype}" + (f"[{type_.size}]" if type_.size else "")
