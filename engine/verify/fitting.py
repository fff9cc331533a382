"""Operands and attributes that fit together: changed bit by bit until an operator's requirements hold.

Few of all shapes and attributes drawn one by one make a convolution. So what a requirement asks is read from it: lengths
and attributes are set to what it compares them with, and what it leaves open is changed at random. A change stays if
requirements that stand before those it breaks are met by it: the first ones are what the others are about.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

from genrw.engine.ir.dtypes import DTYPES, in_class
from genrw.engine.ir.types import Type
from genrw.engine.language.expr import Evaluator
from genrw.engine.language.expr_walk import free_names, substitute
from genrw.engine.language.operators import MIRRORED
from genrw.engine.library.infer import environment, is_variable
from genrw.engine.library.library import Operator
from genrw.engine.library.sides import opened
from genrw.engine.programs.build import complete
from genrw.engine.verify.attributes import AttributeDraw
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.expr_tree import Binary, Call, Compare, Comprehension, Const, Expr, Index, Member, Name, Slice

_PATIENCE = 30
"""Changes in a row that bring no part of a requirement about, until none is made any more."""
_MOST_ITEMS = 8
"""Items of a list for each of which a condition is looked at alone."""
_ITEMS_KEPT = 4096
"""Conditions on items of lists that are kept of an operator."""
_MOST_AXES, _LONGEST = 5, 5000
_LONGEST_LIST = 64
_SMALL = (1, 1, 2, 2, 3, 4, 5, 7, 8)
_NEAR = {"==": (0,), ">=": (0, 0, 1), ">": (1, 1, 2), "<=": (0, 0, -1), "<": (-1, -1, -2)}
"""How far from the other side of a comparison its own may lie."""
_FAILS = (GenrwError, KeyError, IndexError, TypeError, ValueError, ZeroDivisionError, OverflowError)


@dataclass(frozen=True)
class Taken:
    """What an operation takes: the operands' types, and its attributes but for those left at their defaults."""

    types: tuple[Type, ...]
    attributes: Mapping[str, Any]


@dataclass(frozen=True)
class Fitting:
    """Makes what an operator takes fit. `member` is what the placeholder of its family stands for; `free` are the places of
    operands whose types may change, and the names of attributes that may; `context` is what requirements may name besides."""

    operator: Operator
    member: str | None
    draw: AttributeDraw
    free: Set[int | str]
    context: Mapping[str, Any]

    def fitted(self, taken: Taken) -> Taken | None:
        """What all requirements allow, near to what was drawn; None if no steps lead there."""
        random = self.draw.random
        if not (self._conditions.required or self._conditions.domain):
            return taken
        names = self._names(taken)
        unmet, futile = list(self._unmet(names)), 0
        while any(unmet) and futile < _PATIENCE:
            futile += 1
            broken = [parts for parts in unmet if parts]
            try:
                changed = self._changed(taken, names, random.choice(random.choice((broken[0], broken[0], *broken))))
            except _FAILS:
                continue
            known = self._names(changed)
            left = self._no_worse(known, unmet)
            if left is not None:
                futile = 0 if any(len(a) != len(b) for a, b in zip(left, unmet, strict=True)) else futile
                taken, names, unmet = changed, known, left
        return None if any(unmet) else taken

    def _no_worse(self, names: Mapping[str, Any], before: Sequence[Sequence[Expr]]) -> list[list[Expr]] | None:
        """What is unmet under names, requirement by requirement; None as soon as one is met by less than before and none that
        stands before it by more."""
        left, better = [], False
        for now, then in zip(self._unmet(names), before, strict=True):
            if not better and len(now) > len(then):
                return None
            better = better or len(now) < len(then)
            left.append(now)
        return left

    @cached_property
    def _conditions(self) -> _Conditions:
        """What the operator asks."""
        return _conditions(self.operator)

    @cached_property
    def _places(self) -> dict[str, int]:
        """The operands' places by name."""
        return {decl.name: i for i, decl in enumerate(self.operator.fixed)}

    def _names(self, taken: Taken) -> dict[str, Any]:
        """What requirements may name."""
        try:
            attributes = complete(self.operator, taken.attributes, taken.types, self.context)
        except _FAILS:
            attributes = tuple(taken.attributes.items())
        return environment(self.operator, self.member, attributes, taken.types, {}, self.context)

    def _unmet(self, names: Mapping[str, Any]) -> Iterator[list[Expr]]:
        """Of each requirement the parts that do not hold or cannot be computed yet; of the domain those that do not hold."""
        asked = self._conditions
        for whole in asked.required:
            yield [p for p in self._items(whole, names) if self._truth(p, names) is not True]
        for whole in asked.domain:
            yield [p for p in self._items(whole, names) if self._truth(p, names) is False]

    def _items(self, part: Expr, names: Mapping[str, Any]) -> Iterable[Expr]:
        """The conditions on each item of a list that all are to meet; of others, the condition."""
        match part:
            case Call("all", (Comprehension(body, variable, source, None),)):
                try:
                    items = self._value(source, names)
                except _FAILS:
                    items = None
                if isinstance(items, (tuple, list, range)) and len(items) <= _MOST_ITEMS:
                    return [p for item in items for p in self._conditions.of_item(body, variable, item)]
        return (part,)

    def _truth(self, part: Expr, names: Mapping[str, Any]) -> bool | None:
        """Whether a part holds; None if it cannot be computed."""
        try:
            return bool(self._value(part, names))
        except _FAILS:
            return None

    def _value(self, expr: Expr, names: Mapping[str, Any]) -> Any:
        return self._conditions.compiled(expr)(names)

    # ---- changes

    def _changed(self, taken: Taken, names: Mapping[str, Any], part: Expr) -> Taken:
        """What a part of a requirement asks, or something else of what it names; IndexError where nothing is free."""
        random = self.draw.random
        ways = list(self._ways(part, names))
        if ways and random.random() < 0.75:
            found = self._set(taken, *random.choice(ways), names)
            if found is not None:
                return found
        options = [self._places.get(n, n) for n in sorted(free_names(part))]
        place = random.choice([o for o in options if o in self.free])
        if isinstance(place, str):
            return self._with_attribute(taken, place, self._other_value(taken, place, names))
        if (self.operator.operand(place).name, "type") in part.members:
            return self._with_type(taken, place)
        return self._with_lens(taken, place, self._other_lens(taken, place))

    def _ways(self, part: Expr, names: Mapping[str, Any]) -> Iterator[tuple[Expr, Any]]:
        """What to set, and to what, such that a comparison holds."""
        if not isinstance(part, Compare) or len(part.ops) != 1:
            return
        (left, right), op = part.operands, part.ops[0]
        sides = [(left, op, right), (right, MIRRORED.get(op, ""), left)]
        for target, relation, other in sides:
            try:
                value = self._value(other, names)
            except _FAILS:
                continue
            if relation == "in" and value:
                yield target, self.draw.random.choice(tuple(value))
            elif relation in _NEAR and type(value) is int:
                yield target, value + self.draw.random.choice(_NEAR[relation])
            elif relation == "==":
                yield target, value

    def _set(self, taken: Taken, target: Expr, value: Any, names: Mapping[str, Any]) -> Taken | None:
        """With an expression's value made another one; None where that cannot be, or is not free."""
        match target:
            case Member(Name(name), "lens") if name in self._places:
                return self._with_lens(taken, self._places[name], tuple(value))
            case Member(Name(name), "rank") if name in self._places:
                lens = taken.types[self._places[name]].lens
                return self._with_lens(taken, self._places[name], (*self._few(value), *lens)[-value:] if value else ())
            case Name(name):
                return self._with_attribute(taken, name, tuple(value) if isinstance(value, list) else value)
            case Call("len", (Name(name),)):
                return self._with_attribute(taken, name, (*names.get(name, ()), *self._few(value))[:value])
            case Index(whole, index):
                place = self._value(index, names)
                return self._set(taken, whole, _replaced(self._value(whole, names), place, value), names)
            case Slice(whole, start, stop):
                ends = slice(*(None if end is None else self._value(end, names) for end in (start, stop)))
                return self._set(taken, whole, _replaced(self._value(whole, names), ends, value), names)
            case Binary("*", left, right):
                factor = self._value(right, names)
                return self._set(taken, left, value // factor, names) if value % factor == 0 else None
            case Binary("%", left, right) if value == 0:
                factor = self._value(right, names)
                return self._set(taken, left, factor * self.draw.random.randint(1, 3), names)
        return None

    def _few(self, count: int) -> tuple[int, ...]:
        """So many small numbers; ValueError for more than a list of a program has."""
        if count > _LONGEST_LIST:
            raise ValueError(f"a list of {count} numbers")
        return tuple(self.draw.random.choice(_SMALL) for _ in range(count))

    def _other_lens(self, taken: Taken, place: int) -> tuple[int, ...]:
        """Lengths of an operand with one changed, or with an axis more or less."""
        random, lens = self.draw.random, list(taken.types[place].lens)
        others = [n for t in taken.types for n in t.lens]
        chance, d = random.random(), random.randrange(len(lens)) if lens else 0
        if not lens or chance < 0.1:
            lens.insert(d, random.choice(_SMALL))
        elif chance < 0.2:
            del lens[d]
        else:
            lens[d] = random.choice((*_SMALL, *others, lens[d] + 1, 2 * lens[d], lens[d] // 2))
        return tuple(lens)

    def _other_value(self, taken: Taken, name: str, names: Mapping[str, Any]) -> Any:
        """Another value of an attribute: drawn anew, or a list with one item changed."""
        random, present = self.draw.random, names.get(name)
        if isinstance(present, tuple) and present and all(type(n) is int for n in present) and random.random() < 0.7:
            d = random.randrange(len(present))
            return (*present[:d], random.choice((0, 1, 1, 2, 3, present[d] - 1, present[d] + 1)), *present[d + 1 :])
        return self.draw.value(self.operator.attributes[name], self.operator, taken.types, taken.attributes)

    def _with_lens(self, taken: Taken, place: int, lens: tuple[int, ...]) -> Taken:
        """With an operand of other lengths, packed; ValueError for what are none, or not free. Tensors that have elements keep
        some: without them most requirements hold."""
        least = 1 if taken.types[place].elements else 0
        fine = len(lens) <= _MOST_AXES and all(type(n) is int and least <= n <= _LONGEST for n in lens)
        if not fine or place not in self.free:
            raise ValueError("no lengths")
        changed = replace(taken.types[place], lens=lens, strides=None)
        return replace(taken, types=(*taken.types[:place], changed, *taken.types[place + 1 :]))

    def _with_type(self, taken: Taken, place: int) -> Taken:
        """With another element type of an operand, and of all that have the same; IndexError if these are not free."""
        declared = self.operator.operand(place).dtype or "any"
        bound = dict(self.operator.decl.where).get(declared, declared)
        options = [d for d in DTYPES if in_class(d, "any" if is_variable(bound) else bound)]
        alike = {i for i in range(len(taken.types)) if self.operator.operand(i).dtype == declared}
        same = alike if is_variable(declared) else {place}
        dtype = self.draw.random.choice(options if self.free >= same else [])
        types = (replace(t, dtype=dtype) if i in same else t for i, t in enumerate(taken.types))
        return replace(taken, types=tuple(types))

    def _with_attribute(self, taken: Taken, name: str, value: Any) -> Taken:
        """With an attribute of another value; ValueError for one that is not free."""
        if name not in self.free:
            raise ValueError("not free")
        return replace(taken, attributes={**taken.attributes, name: value})


def _replaced(items: Sequence[Any], place: Any, value: Any) -> tuple[Any, ...]:
    """A list with an item, or those of a slice, replaced."""
    found = list(items)
    found[place] = value
    return tuple(found)


class _Conditions:
    """What an operator asks: the parts of its requirements, and of its domain, taken apart and compiled once. They are known
    by their identity: to hash an expression takes longer than to compute it."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator
        self.required = self._opened(r.condition for r in operator.decl.requires)
        self.domain = self._opened(operator.decl.domain)
        # with what is known of an expression stands the expression, so that no other one takes its place in memory
        self._compiled: dict[int, tuple[Expr, Evaluator]] = {}
        self._of_items: dict[tuple[int, str, Any], tuple[Expr, tuple[Expr, ...]]] = {}

    def _opened(self, conditions: Iterable[Expr]) -> tuple[Expr, ...]:
        return tuple(part for condition in conditions for part in opened(condition, self.operator.scope.lets))

    def compiled(self, expr: Expr) -> Evaluator:
        """What computes an expression."""
        known = self._compiled.get(id(expr))
        if known is None:
            known = self._compiled[id(expr)] = (expr, self.operator.scope.compile(expr))
        return known[1]

    def of_item(self, body: Expr, variable: str, item: Any) -> tuple[Expr, ...]:
        """The parts of a condition on one item of a list."""
        key = id(body), variable, item
        known = self._of_items.get(key)
        if known is None:
            if len(self._of_items) >= _ITEMS_KEPT:
                self._of_items.clear()
                self._compiled.clear()
            known = self._of_items[key] = (body, self._opened([substitute(body, {variable: Const(item)})]))
        return known[1]


@lru_cache(maxsize=512)
def _conditions(operator: Operator) -> _Conditions:
    return _Conditions(operator)
