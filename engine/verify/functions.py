"""Do the functions of operators compute what these mean? Tried on random numbers of all sizes and on special ones.

A function is evaluated in the type that kernels compute in, what the operator means in double. Where an operator of the
function says itself how near it is, as what processors have of their own does, its value is off by up to that much, and what is
smaller than the normal numbers may be 0: so the function holds on whichever machine keeps to that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any
from zlib import crc32

import numpy as np

from genrw.engine.interpret.evaluate import Evaluator
from genrw.engine.ir.dtypes import DTYPES, numpy_dtype
from genrw.engine.ir.nodes import Node, walk
from genrw.engine.ir.types import Type
from genrw.engine.language.arrays import Array, Values
from genrw.engine.language.numeric import compile_numeric
from genrw.engine.library.library import Library, nearness
from genrw.engine.programs.function_bodies import FunctionBody, function_body
from genrw.engine.programs.typings import Typing, typings
from genrw.engine.verify.judge import shown
from genrw.grammar.diagnostics import error
from genrw.grammar.rw_tree import OpDecl

_POINTS = 200
"""Numbers for each instance that is wanted: they are cheap."""
_ROUNDINGS = 2.0**-20
"""How near a function is that does not say it."""
_SPECIAL = (0.0, -0.0, 0.5, 1.0, -1.0, 2.0, -3.0, 20.0, -20.0, 88.0, -88.0, float("inf"), float("-inf"), float("nan"))


@dataclass(frozen=True)
class WrongFunction:
    """Why a function is wrong, and the numbers that show it."""

    reason: str
    shown: str


def try_functions(library: Library, op: OpDecl, count: int, seed: str) -> tuple[int, WrongFunction | None]:
    """How many numbers held, and the first that does not."""
    compared, tried = 0, set()
    for typing in typings(library, op):
        body = function_body(library, op.name, typing.attributes, typing.types, typing.context)
        if body is None or (known := (typing.types, typing.attributes, _text(body.result))) in tried:
            continue
        tried.add(known)
        trial = _Trial(library, op, typing, body, f"{seed}/{len(tried)}")
        with np.errstate(all="ignore"):
            held, wrong = trial.compare(count * _POINTS)
        compared += held
        if wrong is not None:
            return compared, wrong
    return compared, None


def _text(root: Node) -> str:
    """What tells terms apart: the same one is tried once, though several targets have it."""
    places = {id(node): place for place, node in enumerate(walk(root))}
    return "; ".join(f"{n.op}{n.attributes}{[places[id(o)] for o in n.operands]}" for n in walk(root))


class _Trial:
    """A function for operands of given types."""

    def __init__(self, library: Library, op: OpDecl, typing: Typing, body: FunctionBody, seed: str) -> None:
        self.library, self.op, self.typing, self.body = library, op, typing, body
        self.rng = np.random.default_rng(crc32(seed.encode()))
        self.precise = Evaluator(library, typing.context, True)
        self.usual = Evaluator(library, typing.context, False)

    def compare(self, count: int) -> tuple[int, WrongFunction | None]:
        """How many numbers were compared, and what is wrong."""
        operands = self._operands(count)
        root = Node(self.op.name, self.typing.attributes, self.body.parameters, Type("scalar", self.typing.result))
        given = [_in_double(Array(v, t)) for v, t in self._typed(operands)]
        want = self._array(self.precise.value(root, given), len(operands[0]))
        got = self._array(self._computed(operands), len(operands[0]))
        wrong = ~self._same(got, want)
        if not np.any(wrong):
            return len(want), None
        place = int(np.argmax(wrong))
        numbers = [f"{p.name} = {shown(v[place])}" for p, v in zip(self.body.parameters, operands, strict=True)]
        said = f"the function gives {shown(got[place])}, the operator means {shown(want[place])}"
        bound = nearness(self.op)
        far = "the two are further apart than by rounding" if bound is None else f"the two are not within {bound:g}"
        return place, WrongFunction(far, "\n".join(["with:", *(f"  {number}" for number in numbers), said]))

    def _typed(self, operands: list[Values]) -> Iterator[tuple[Values, str]]:
        return zip(operands, self.typing.types, strict=True)

    def _array(self, value: Any, count: int) -> Values:
        if not isinstance(value, Array):
            raise error(f"`{self.op.name}` means no number", self.op.name_span)
        return np.broadcast_to(value.values, (count,))

    # ---- numbers

    def _operands(self, count: int) -> list[Values]:
        """Numbers for the operands that lie in the operator's domain: all special ones together, then random ones."""
        special = [self._special(dtype) for dtype in self.typing.types]
        grids = zip(*product(*special), strict=True) if special else ()
        columns = [np.array(column).astype(numpy_dtype(t)) for column, t in zip(grids, self.typing.types, strict=True)]
        found = [np.concatenate([c, self._random(count, t)]) for c, t in zip(columns, self.typing.types, strict=True)]
        if not found:
            return found
        names: dict[str, Any] = {**self.typing.context, **dict(self.typing.attributes)}
        operands = zip(self.op.operands, self._typed(found), strict=True)
        names |= {o.name: _in_double(Array(v, t)) for o, (v, t) in operands}
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

    # ---- values

    def _computed(self, operands: list[Values]) -> Any:
        """The function's value in its own type."""
        found: dict[int, Any] = {
            id(p): Array(v, t) for p, (v, t) in zip(self.body.parameters, self._typed(operands), strict=True)
        }
        constant = self.library.boundary("scalar").name
        as_it_is = self.rng.random(len(operands[0])) < 0.25
        for node in walk(self.body.result):
            if id(node) in found:
                continue
            if node.op == constant:
                found[id(node)] = self.usual.constant(node, ())
                continue
            near = nearness(self.library.operator(node.op).decl)
            given = [found[id(o)] for o in node.operands]
            if near is None:
                found[id(node)] = self.usual.value(node, given)
                continue
            operands_of = [_in_double(self._flushed(v, as_it_is)) for v in given]
            exact = self._array(self.precise.value(node, operands_of), len(as_it_is))
            type_ = numpy_dtype(node.type.dtype)
            spread = max(0.0, near - float(np.finfo(type_).eps) / 2)  # rounding it takes the rest
            off = np.where(as_it_is, 0.0, self.rng.uniform(-spread, spread, len(exact)))
            moved = (exact * (1 + off)).astype(type_)
            found[id(node)] = self._flushed(Array(moved, node.type.dtype), as_it_is)
        return found[id(self.body.result)]

    def _flushed(self, value: Any, as_it_is: Values) -> Any:
        """A value with 0 for what is smaller than the normal numbers."""
        if not isinstance(value, Array) or value.values.dtype.kind != "f":
            return value
        small = np.abs(value.values) < np.finfo(value.values.dtype).tiny
        zero = np.copysign(np.zeros((), value.values.dtype), value.values)
        return Array(np.where(small & ~as_it_is, zero, value.values), value.dtype)

    def _same(self, got: Values, want: Values) -> Values:
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


def _in_double(value: Any) -> Any:
    """A value as what operators mean is evaluated."""
    if isinstance(value, Array) and value.values.dtype.kind == "f":
        return Array(value.values.astype(np.float64), value.dtype)
    return value


def _values(value: Any) -> Any:
    return value.values if isinstance(value, Array) else value
