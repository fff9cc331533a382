"""Elements of a pointwise operator: numbers of all sizes and special ones for its operands, what it means of these, and whether
what was computed is that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any
from zlib import crc32

import numpy as np

from genrw.engine.interpret.evaluate import Evaluator
from genrw.engine.ir.dtypes import DTYPES, numpy_dtype
from genrw.engine.ir.nodes import Node
from genrw.engine.ir.types import Type
from genrw.engine.language.arrays import Array, Values
from genrw.engine.language.numeric import compile_numeric
from genrw.engine.library.library import Library, nearness
from genrw.engine.programs.build import input_node
from genrw.engine.programs.typings import Typing
from genrw.engine.verify.judge import shown
from genrw.grammar.diagnostics import error
from genrw.grammar.rw_tree import OpDecl

POINTS = 200
"""Numbers for each instance that is wanted: they are cheap."""
_ROUNDINGS = 2.0**-20
"""How near an element is of which nothing is said."""
_SPECIAL = (0.0, -0.0, 0.5, 1.0, -1.0, 2.0, -3.0, 20.0, -20.0, 88.0, -88.0, float("inf"), float("-inf"), float("nan"))


@dataclass(frozen=True)
class WrongElement:
    """Why what was computed is wrong, and the numbers that show it."""

    reason: str
    shown: str


class Elements:
    """Elements of an operator for operands of given types."""

    def __init__(self, library: Library, op: OpDecl, typing: Typing, seed: str) -> None:
        self.library, self.op, self.typing = library, op, typing
        self.rng = np.random.default_rng(crc32(seed.encode()))
        self.precise = Evaluator(library, typing.context, True)
        self.usual = Evaluator(library, typing.context, False)
        named = zip(op.operands, typing.types, strict=True)
        self.parameters = tuple(input_node(library, o.name, Type("scalar", dtype)) for o, dtype in named)
        self.node = Node(op.name, typing.attributes, self.parameters, Type("scalar", typing.result))

    # ---- numbers

    def operands(self, count: int) -> list[Values]:
        """Numbers for the operands that lie in the operator's domain: all special ones together, then random ones."""
        special = [self._special(dtype) for dtype in self.typing.types]
        grids = zip(*product(*special), strict=True) if special else ()
        columns = [np.array(column).astype(numpy_dtype(t)) for column, t in zip(grids, self.typing.types, strict=True)]
        found = [np.concatenate([c, self._random(count, t)]) for c, t in zip(columns, self.typing.types, strict=True)]
        if not found:
            return found
        names: dict[str, Any] = {**self.typing.context, **dict(self.typing.attributes)}
        operands = zip(self.op.operands, self.typed(found), strict=True)
        names |= {o.name: in_double(Array(v, t)) for o, (v, t) in operands}
        fine = np.ones(len(found[0]), np.bool_)
        for condition in self.op.domain:
            holds = compile_numeric(condition, self.library.scope.lets, precise=True, functions=self.precise.functions)
            fine &= np.asarray(_values(holds(names)), np.bool_)
        if not np.any(fine):
            raise error(f"no random numbers lie in the domain of `{self.op.name}`", self.op.name_span)
        return [values[fine] for values in found]

    def _special(self, dtype: str) -> list[float]:
        limits = DTYPES[dtype]
        if limits.kind == "bool":
            return [0, 1]
        if limits.is_integer:
            return [0, 1, 2, 7, int(limits.smallest), int(limits.largest)]
        normal = float(np.finfo(numpy_dtype(dtype)).tiny)
        edges = (normal / 8, normal, 8 * normal, 0.25 / normal, float(limits.largest))
        return [*_SPECIAL, *edges, *(-edge for edge in edges)]

    def _random(self, count: int, dtype: str) -> Values:
        """Numbers of all sizes, most of them of usual ones."""
        rng, limits, numpy_type = self.rng, DTYPES[dtype], numpy_dtype(dtype)
        if limits.kind == "bool":
            return rng.integers(0, 2, count).astype(numpy_type)
        if limits.is_integer:
            return rng.integers(max(-99, int(limits.smallest)), 100, count).astype(numpy_type)
        least, most = np.log2(np.finfo(numpy_type).tiny), np.log2(np.finfo(numpy_type).max)
        sizes = [rng.uniform(0, 2, count), rng.uniform(0, 100, count), np.exp2(rng.uniform(least, most, count))]
        values = np.choose(rng.choice(3, count, p=(0.5, 0.3, 0.2)), sizes) * rng.choice((-1.0, 1.0), count)
        return np.asarray(values.astype(numpy_type))

    def typed(self, operands: Sequence[Values]) -> Iterator[tuple[Values, str]]:
        """The operands, each with its type."""
        return zip(operands, self.typing.types, strict=True)

    # ---- values

    def meant(self, operands: Sequence[Values]) -> Values:
        """What the operator means, in double."""
        given = [in_double(Array(v, t)) for v, t in self.typed(operands)]
        with np.errstate(all="ignore"):
            return self.array(self.precise.value(self.node, given), operands)

    def computed(self, operands: Sequence[Values]) -> Values:
        """The same, in the types that kernels compute in."""
        with np.errstate(all="ignore"):
            return self.array(self.usual.value(self.node, [Array(v, t) for v, t in self.typed(operands)]), operands)

    def array(self, value: Any, operands: Sequence[Values]) -> Values:
        """A value for each of the operands' numbers."""
        if not isinstance(value, Array):
            raise error(f"`{self.op.name}` means no number", self.op.name_span)
        return np.broadcast_to(value.values, operands[0].shape)

    def same(self, got: Values, want: Values) -> Values:
        """Where what was computed is what is wanted, as nearly as the operator says."""
        dtype = self.typing.result
        if not DTYPES[dtype].is_float:
            return np.asarray(got == want)
        bound, type_ = nearness(self.op) or _ROUNDINGS, numpy_dtype(DTYPES[dtype].compute)
        largest, normal = float(np.finfo(type_).max), float(np.finfo(type_).tiny)
        got, want = got.astype(np.float64), want.astype(np.float64)
        close = np.abs(got - want) <= bound * np.abs(want) + 4 * normal
        beyond = (np.abs(want) >= largest * (1 - bound)) & (np.abs(got) >= largest * (1 - bound))
        beyond &= np.signbit(got) == np.signbit(want)
        return np.asarray((np.isnan(got) & np.isnan(want)) | (got == want) | close | beyond)

    def wrong(
        self, who: str, operands: Sequence[Values], got: Values, want: Values, right: Values
    ) -> WrongElement | None:
        """The first element that is not right; None if all are."""
        if np.all(right):
            return None
        place = int(np.argmin(right))
        numbers = [f"{p.name} = {shown(v[place])}" for p, v in zip(self.parameters, operands, strict=True)]
        said = f"{who} gives {shown(got[place])}, the operator means {shown(want[place])}"
        bound = nearness(self.op)
        far = "the two are further apart than by rounding" if bound is None else f"the two are not within {bound:g}"
        return WrongElement(far, "\n".join(["with:", *(f"  {number}" for number in numbers), said]))


def in_double(value: Any) -> Any:
    """A value as what operators mean is evaluated."""
    if isinstance(value, Array) and value.values.dtype.kind == "f":
        return Array(value.values.astype(np.float64), value.dtype)
    return value


def _values(value: Any) -> Any:
    return value.values if isinstance(value, Array) else value
