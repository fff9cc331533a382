"""Attributes of random operations: of the kinds that operators take for their operands, near what examples show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import prod
from random import Random
from typing import Any

from genrw.engine.ir.dtypes import DTYPES
from genrw.engine.ir.nodes import Attributes
from genrw.engine.ir.types import Type
from genrw.engine.language.expr_walk import walk
from genrw.engine.library.infer import environment
from genrw.engine.library.library import Library, Operator
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.expr_tree import Const
from genrw.grammar.rw_tree import AttributeDecl

NUMBERS = (0, 1, 2, 3, 4, 5, 6, 8, 12, 16, 32, 64)
_FLOATS = (0.0, 1.0, -1.0, 0.5, 2.0, 1e-5, -3.0, float("inf"), float("-inf"), float("nan"), -0.0)
_HINTED = 0.55
"""How often what an example has is taken, or what is close to it."""


class AttributeDraw:
    """Draws attributes. `lens` are the lengths around which all tensors of an instance lie, `dtype` their usual type."""

    def __init__(
        self, library: Library, random: Random, lens: tuple[int, ...], dtype: str, shrunk: Mapping[int, int]
    ) -> None:
        self.library, self.random, self.lens, self.dtype, self.shrunk = library, random, lens, dtype, shrunk

    def value(
        self,
        decl: AttributeDecl,
        operator: Operator,
        operands: Sequence[Type],
        known: Mapping[str, Any],
        hint: Any = None,
    ) -> Any:
        """A value for an attribute of an operation on such operands, whose attributes so far are `known`."""
        if hint is None:
            hint = self._usual(decl, operator, operands, known)
        if hint is not None and decl.type != "any" and self.random.random() < _HINTED:
            return self._near(hint, decl)
        lens = next((t.lens for t in operands if t.sort == "tensor"), self.lens)
        kind = decl.type
        if kind == "axis":
            return self.random.randrange(len(lens)) if lens else 0
        if kind == "axes":
            return tuple(d for d in range(len(lens)) if self.random.random() < 0.5)
        if kind == "ints":
            return self._integers(lens, known)
        if kind == "int":
            return self._integer(lens, known)
        if kind == "bool":
            return self.random.random() < 0.5
        if kind == "float":
            return self.random.choice(_FLOATS)
        if kind == "dtype":
            return self.random.choice((self.dtype, self.dtype, *DTYPES))
        if kind == "monoid":
            return self.random.choice([*self.library.monoids])
        if kind == "instruction":
            return self.random.choice([*self.library.instructions] or ["x"])
        if kind == "shape":
            return (self.dtype, self.random.choice((lens, (self.random.choice(NUMBERS[1:]),))))
        if kind in ("string", "name", "module"):
            return self.random.choice(words(operator) or ("x",))
        return self.constant(known.get("dtype", self.dtype), known.get("lens", ()))

    def constant(self, dtype: str, lens: tuple[int, ...]) -> Any:
        """The value of a constant: one number mostly, else one for each element."""
        if self.random.random() < 0.8 or not 0 < prod(lens) <= 64:
            return self.number(dtype)
        return tuple(self.number(dtype) for _ in range(prod(lens)))

    def number(self, dtype: str) -> Any:
        """A number that a type can hold, the neutral ones often."""
        found = DTYPES.get(dtype)
        if found is None or found.is_float:
            return self.random.choice(_FLOATS)
        if found.kind == "bool":
            return self.random.random() < 0.5
        return self.random.choice((0, 1, 1, 2, 3, 7, found.largest, found.smallest, max(found.smallest, -1)))

    # ---- whole numbers

    def _integer(self, lens: Sequence[int], known: Mapping[str, Any]) -> int:
        other = [v for v in known.values() if type(v) is int]
        options = [*NUMBERS, *lens, prod(lens), *other, *(2 * n for n in other), -1, self.random.randint(-9, 40)]
        return self.random.choice(options)

    def _integers(self, lens: tuple[int, ...], known: Mapping[str, Any]) -> tuple[int, ...]:
        """A list of integers of one of the kinds that operators on tensors take."""
        random = self.random
        lists = [v for v in known.values() if isinstance(v, tuple) and all(type(n) is int for n in v)]
        makers = (
            lambda: lens,
            lambda: self.lens,
            lambda: tuple(random.sample(range(len(lens)), len(lens))),
            lambda: self._regrouped(lens),
            lambda: self._spread(lens),
            lambda: tuple(random.choice((0, 0, 1, 2, -1)) for _ in range(2 * len(lens))),
            lambda: tuple(random.randint(-3, 9) for _ in range(len(random.choice(lists)) if lists else len(lens))),
            lambda: tuple(random.choice((1, 1, 2, 3, -1)) for _ in range(len(random.choice(lists)) if lists else 1)),
            lambda: tuple(random.sample(range(len(lens) + 1), random.randint(0, len(lens)))),
            lambda: self.strides(random.choice(lists) if lists else lens),
        )
        return tuple(random.choice(makers)())

    def _regrouped(self, lens: Sequence[int]) -> tuple[int, ...]:
        """Lengths of the same number of elements: neighbours joined, axes of length 1 put in, one left open."""
        found: list[int] = []
        for n in lens:
            if found and self.random.random() < 0.4:
                found[-1] *= n
            else:
                found.append(n)
            if self.random.random() < 0.2:
                found.append(1)
            for factor in (2, 3):
                if found[-1] % factor == 0 and self.random.random() < 0.3:
                    found[-1:] = [factor, found[-1] // factor]
        if found and self.random.random() < 0.15:
            found[self.random.randrange(len(found))] = self.random.choice((-1, 0))
        return tuple(found)

    def _spread(self, lens: Sequence[int]) -> tuple[int, ...]:
        """Lengths that a tensor repeats to."""
        wide = [self.random.randint(2, 4) if n == 1 and self.random.random() < 0.7 else n for n in lens]
        leading = [self.random.randint(1, 3) for _ in range(self.random.choice((0, 0, 0, 1)))]
        return (*leading, *wide)

    def strides(self, lens: Sequence[int]) -> tuple[int, ...]:
        """Strides over some lengths: packed, in another order, with gaps, repeated, backwards."""
        order = (
            self.random.sample(range(len(lens)), len(lens)) if self.random.random() < 0.5 else range(len(lens))[::-1]
        )
        strides, step = [0] * len(lens), 1
        for d in order:
            strides[d] = step * self.random.choice((1, 1, 1, 1, 0, -1))
            step *= max(1, lens[d]) + self.random.choice((0, 0, 0, 1))
        return tuple(strides)

    # ---- near an example

    def _usual(
        self, decl: AttributeDecl, operator: Operator, operands: Sequence[Type], known: Mapping[str, Any]
    ) -> Any:
        """The list that an attribute is where nobody gives it; None where there is none: lists have to fit operands."""
        default = operator.defaults.get(decl.name)
        if default is None or decl.type != "ints" or not operands:
            return None
        try:
            return default(environment(operator, None, tuple(known.items()), operands, {}, {}))
        except (GenrwError, KeyError):
            return None

    def _near(self, hint: Any, decl: AttributeDecl) -> Any:
        """What an example has, its long lengths shortened, now and then one number changed."""
        if isinstance(hint, tuple) and decl.type in ("ints", "axes"):
            values = [self.shrunk.get(n, n) if type(n) is int else n for n in hint]
            if values and self.random.random() < 0.3:
                place = self.random.randrange(len(values))
                values[place] += self.random.choice((-1, 1))
            return tuple(sorted(set(values))) if decl.type == "axes" else tuple(values)
        if type(hint) is int:
            value = self.shrunk.get(hint, hint)
            return value + self.random.choice((-1, 1, value)) if self.random.random() < 0.25 else value
        return hint


def near_lens(random: Random, lens: Sequence[int]) -> tuple[int, ...]:
    """Lengths of a tensor beside one of other lengths: the same axes, some of them shorter, or as long as another one."""
    if not lens:
        return ()
    return tuple(random.choice((n, n, min(n, random.randint(1, 4)), random.choice(lens))) for n in lens)


def within_domain(
    operator: Operator,
    member: str | None,
    attributes: Attributes,
    operands: Sequence[Type],
    context: Mapping[str, Any],
) -> bool:
    """Are an operation's attributes and types within its operator's domain? Conditions on values are not asked."""
    env = environment(operator, member, attributes, operands, {}, context)
    for condition in operator.domain:
        try:
            if condition(env) is False:
                return False
        except (GenrwError, KeyError, TypeError):
            # a condition on values
            continue
    return True


@lru_cache(maxsize=512)
def words(operator: Operator) -> tuple[str, ...]:
    """The texts that an operator's declaration compares its attributes with, and their defaults."""
    decl = operator.decl
    exprs = [r.condition for r in decl.requires] + [a.default for a in decl.attributes] + [decl.means]
    found: dict[str, None] = {}
    for expr in exprs:
        for node in walk(expr) if expr is not None else ():
            if isinstance(node, Const) and isinstance(node.value, str) and node.value not in DTYPES:
                found[node.value] = None
    return tuple(found)
