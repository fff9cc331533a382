"""Do the functions of operators compute what these mean? Tried on random numbers of all sizes and on special ones.

A function is evaluated in the type that kernels compute in, what the operator means in double. Where an operator of the
function says itself how near it is, as what processors have of their own does, its value is off by up to that much, and what is
smaller than the normal numbers may be 0: so the function holds on whichever machine keeps to that.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from genrw.engine.ir.dtypes import numpy_dtype
from genrw.engine.ir.nodes import Node, walk
from genrw.engine.language.arrays import Array, Values
from genrw.engine.library.library import Library, nearness
from genrw.engine.programs.function_bodies import FunctionBody, function_body
from genrw.engine.programs.typings import Typing, typings
from genrw.engine.verify.elements import POINTS, Elements, WrongElement, in_double
from genrw.grammar.rw_tree import OpDecl


def try_functions(library: Library, op: OpDecl, count: int, seed: str) -> tuple[int, WrongElement | None]:
    """How many numbers held, and the first that does not."""
    compared, tried = 0, set()
    for typing in typings(library, op):
        body = function_body(library, op.name, typing.attributes, typing.types, typing.context)
        if body is None or (known := (typing.types, typing.attributes, _text(body.result))) in tried:
            continue
        tried.add(known)
        trial = _Trial(library, op, typing, body, f"{seed}/{len(tried)}")
        with np.errstate(all="ignore"):
            held, wrong = trial.compare(count * POINTS)
        compared += held
        if wrong is not None:
            return compared, wrong
    return compared, None


def _text(root: Node) -> str:
    """What tells terms apart: the same one is tried once, though several targets have it."""
    places = {id(node): place for place, node in enumerate(walk(root))}
    return "; ".join(f"{n.op}{n.attributes}{[places[id(o)] for o in n.operands]}" for n in walk(root))


class _Trial(Elements):
    """A function for operands of given types."""

    def __init__(self, library: Library, op: OpDecl, typing: Typing, body: FunctionBody, seed: str) -> None:
        super().__init__(library, op, typing, seed)
        self.body = body

    def compare(self, count: int) -> tuple[int, WrongElement | None]:
        """How many numbers were compared, and what is wrong."""
        operands = self.operands(count)
        want = self.meant(operands)
        got = self.array(self._computed(operands), operands)
        return len(want), self.wrong("the function", operands, got, want, self.same(got, want))

    def _computed(self, operands: list[Values]) -> Any:
        """The function's value in its own type."""
        found: dict[int, Any] = {
            id(p): Array(v, t) for p, (v, t) in zip(self.body.parameters, self.typed(operands), strict=True)
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
            operands_of = [in_double(self._flushed(v, as_it_is)) for v in given]
            exact = self.array(self.precise.value(node, operands_of), operands)
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
