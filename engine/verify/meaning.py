"""What a term means: tensors as arrays, values of lanes for every lane, writes as the list of what is written where.

What a lane's value is at an element that does not exist is unspecified. It gets some number, another one for each
`poison`: whatever depends on it differs from poison to poison.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from genrw.engine.interpret.evaluate import Evaluator
from genrw.engine.interpret.lane_axes import ONE, SHARE
from genrw.engine.interpret.lanes import Lanes, lane_functions
from genrw.engine.interpret.memory import MISSING, Memory
from genrw.engine.ir.dtypes import DTYPES, numpy_dtype
from genrw.engine.ir.nodes import Node, walk
from genrw.engine.language.arrays import Array, Values, stored
from genrw.engine.language.functions import Misuse, Value
from genrw.engine.language.numeric import compile_numeric
from genrw.engine.library.library import Library
from genrw.engine.verify.values import LaunchExtents
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.expr_tree import Expr

_UNSPECIFIED = (72, -1)
"""What stands for an unspecified number: they differ in sign, in being odd, and in standing for an element at all."""
LANE_SORTS = ("scalar", "array", "index", "effect", "buffer")


class Meaningless(Exception):
    """A term that has no value: an operator without a meaning, or one that is misused."""


def ran_out_of_memory(problem: BaseException | None) -> bool:
    """Is an error one of too little memory, in other words?"""
    while problem is not None and not isinstance(problem, MemoryError):
        problem = problem.__cause__ or problem.__context__
    return problem is not None


@dataclass(frozen=True, eq=False)
class Read(Memory):
    """Memory that notes where it is read outside of itself, and gives something there. None: that is an error."""

    outside: list[Values] | None = None

    def read(self, offsets: Values, where: Values | None, count_from: Sequence[int]) -> Values:
        """The values at offsets."""
        if self.outside is None or not self.values.size:
            return super().read(offsets, where, count_from)
        bad = _beyond(self, offsets, where)
        self.outside.append(bad)
        return super().read(np.where(bad, self.origin, offsets), where, count_from)


@dataclass(frozen=True, eq=False)
class Written(Memory):
    """Memory that keeps a list of all writes: where, what, and by whom. Writes outside are noted, or an error."""

    outside: list[Values] | None = None
    log: list[tuple[Values, Values, Values]] = field(default_factory=list)

    def write(self, offsets: Values, values: Values, where: Values | None, count_from: Sequence[int]) -> None:
        """Note what is written."""
        everywhere = np.asarray(True)
        offsets, values, chosen = np.broadcast_arrays(offsets, values, everywhere if where is None else where)
        if self.outside is None:
            self._places(offsets, chosen, "writes", count_from)
        else:
            self.outside.append(_beyond(self, offsets, chosen))
        self.log.append((offsets, values, chosen))


def _beyond(memory: Memory, offsets: Values, where: Values | None) -> Values:
    """Which offsets are not in a memory."""
    places = offsets - memory.origin
    bad: Values = (places < 0) | (places >= memory.length)
    return bad if where is None else bad & where


class _PoisonedLanes(Lanes):
    """Lanes whose missing elements are unspecified."""

    poison = 0

    def unspecified(self) -> Array:
        return Array(np.full(ONE, _UNSPECIFIED[self.poison]), "int64")

    def _filled(self, memory: Memory, values: Values, where: Values | None, fill: Value) -> Array:
        if where is not None and fill is None:
            values = np.where(where, values, _poison(memory.type.dtype, self.poison).astype(values.dtype))
            return Array(values, memory.type.dtype)
        return super()._filled(memory, values, where, fill)


def _poison(dtype: str, poison: int) -> Values:
    if DTYPES[dtype].kind == "bool":
        return np.asarray(bool(poison % 2))
    return np.asarray(_UNSPECIFIED[poison]).astype(numpy_dtype(DTYPES[dtype].compute))


class TermInterpreter:
    """What operators mean, each compiled when first needed: in double precision if `precise`. An index of -1 stands for
    an element that does not exist if some may be `missing`."""

    def __init__(self, library: Library, *, precise: bool, missing: bool) -> None:
        self.library, self.precise, self.missing = library, precise, missing
        self.evaluator = Evaluator(library, {}, precise)
        self.lanes = _PoisonedLanes(self.evaluator.folds, missing)
        self.evaluator.functions.update(lane_functions(self.lanes))
        self._conditions: dict[int, Any] = {}

    def begin(self, context: Mapping[str, Any], launch: LaunchExtents, poison: int) -> None:
        """Go on to another launch."""
        self.evaluator.context = context
        self.lanes.poison = poison
        self.lanes.extents = [launch.groups, launch.lanes, launch.steps, 1]
        self.lanes.of_groups(0, launch.groups)

    def condition(self, expr: Expr) -> Any:
        """A condition on values, compiled."""
        if id(expr) not in self._conditions:
            lets, functions = self.library.scope.lets, self.evaluator.functions
            self._conditions[id(expr)] = compile_numeric(expr, lets, precise=self.precise, functions=functions)
        return self._conditions[id(expr)]


class TermValues:
    """The values of terms over the same leaves, on a machine that nothing else uses meanwhile.

    Indices are exact however large they get, or of 32 bits if that `wraps`, as in kernels.
    """

    def __init__(
        self,
        machine: TermInterpreter,
        context: Mapping[str, Any],
        leaves: Mapping[int, Values],
        launch: LaunchExtents,
        *,
        poison: int = 0,
        tolerant: bool = False,
        wraps: bool = False,
    ) -> None:
        self.library, self.leaves, self.poison = machine.library, leaves, poison
        self.precise, self.missing = machine.precise, machine.missing
        self.machine, self.evaluator, self.lanes = machine, machine.evaluator, machine.lanes
        machine.begin(context, launch, poison)
        self.largest = 0.0
        self._input = self.library.boundary("input").name
        self._lost: dict[int, Values] = {}
        self.outside: list[Values] | None = [] if tolerant else None
        self.wraps, self.wide = wraps, False

    def of(self, root: Node) -> Value:
        """The value of a term: an array, several of an accumulator, or what it writes. Meaningless if it has none, MemoryError
        if it is too large."""
        values: dict[int, Value] = {}
        try:
            with np.errstate(all="ignore"):
                for node in walk(root):
                    values[id(node)] = self._counted(node, self._value(node, values))
        except (GenrwError, Misuse, ValueError, IndexError) as problem:
            if ran_out_of_memory(problem):
                raise MemoryError from None
            said = problem.diagnostics[0].message if isinstance(problem, GenrwError) else str(problem)
            raise Meaningless(said) from None
        return values[id(root)]

    def _counted(self, node: Node, value: Value) -> Value:
        """An index, in 32 bits if it `wraps`; it is noted whether one is `wide`: needs more."""
        if node.type.sort != "index" or not isinstance(value, Array):
            return value
        words = value.values.astype(np.int32)
        self.wide = self.wide or bool(np.any(words != value.values))
        return Array(words.astype(value.values.dtype), value.dtype) if self.wraps else value

    def _value(self, node: Node, values: Mapping[int, Value]) -> Value:
        role = self.library.role(node.op)
        if role == "boundary":
            return self._boundary(node, values)
        if role == "alloc" or node.type.sort == "buffer":
            return self._buffer(node, values)
        if role == "element":
            memory = self._memory(node.operands[self.library.part(node.op, 0)], values)
            return self._shaped(
                node, self.lanes.element(memory, values[id(node.operands[self.library.part(node.op, 1)])])
            )
        if role == "made":
            return values[id(node.operands[self.library.part(node.op, 0)])]
        if role == "write":
            return self._writing(node, values)
        in_lanes = node.type.sort in LANE_SORTS
        operands = [
            self._memory(o, values) if in_lanes and o.type.sort == "tensor" else values[id(o)] for o in node.operands
        ]
        value = self.evaluator.value(node, operands)
        if not in_lanes:
            return self._tensor(node, value)
        if node.type.sort == "index" and self.missing:
            value = self._leaving_missing(node, value)
        if isinstance(value, Array) and any(o.type.sort == "index" for o in node.operands):
            value = self._within_domain(node, operands, value)
        return self._shaped(node, value)

    def _boundary(self, node: Node, values: Mapping[int, Value]) -> Value:
        boundary = self.library.boundary
        if node.op == self._input:
            return self._leaf(node)
        if node.op == boundary("constant").name:
            return self._tensor(node, self.evaluator.constant(node, node.type.lens))
        if node.op in (boundary("scalar").name, boundary("number").name):
            return self._noted(self.evaluator.constant(node, ONE))
        return tuple(values[id(o)] for o in node.operands)

    def _leaf(self, node: Node) -> Value:
        type_ = node.type
        if type_.sort == "buffer":
            return self._group_memory(node)
        if id(node) not in self.leaves:
            # memory that is written: what is in it before does not matter
            return stored(np.zeros(type_.lens), type_.dtype, self.precise)
        dtype = "int64" if type_.sort == "index" else type_.dtype
        array = stored(self.leaves[id(node)], dtype, self.precise)
        if type_.sort != "index":
            return self._noted(array)
        if self.missing:
            self._lost[id(node)] = array.values == MISSING
        return array

    def _group_memory(self, node: Node) -> Memory:
        """Workgroup memory that a term is given: what was left in it can be read."""
        memory = Memory.of_groups(node.op, node.type, numpy_dtype(node.type.dtype), self.lanes.groups)
        if id(node) not in self.leaves:
            return memory
        left = stored(self.leaves[id(node)], node.type.dtype, self.precise).values.reshape(-1)
        return replace(memory, values=left, written=np.ones(left.shape, np.bool_))

    def _buffer(self, node: Node, values: Mapping[int, Value]) -> Value:
        for operand in node.operands:
            if operand.type.sort == "buffer":
                return values[id(operand)]
        if node.type.dtype not in DTYPES:
            return node.type
        return Memory.of_groups(node.op, node.type, numpy_dtype(node.type.dtype), self.lanes.groups)

    def _memory(self, node: Node, values: Mapping[int, Value]) -> Value:
        """A tensor in memory: with its strides if it is an input, else packed."""
        value = values[id(node)]
        if not isinstance(value, Array):
            return value
        type_ = node.type
        if node.op == self._input and id(node) not in self.leaves:
            return _written(node, self._numpy_type(type_.dtype), self.outside)
        memory = Memory.holding(node.name or node.op, type_, value.finished(type_.dtype, self.precise))
        return Read(memory.name, memory.type, memory.values, memory.origin, outside=self.outside)

    def _writing(self, node: Node, values: Mapping[int, Value]) -> Value:
        """What a write writes; of a write of a whole tensor, the tensor."""
        buffer = node.operands[self.library.part(node.op, 0)]
        if buffer.type.sort != "tensor":
            raise Misuse("writes to workgroup memory, whose meaning is that of the kernel")
        if len(self.library.operator(node.op).decl.role_parts) == 2:
            value = values[id(node.operands[self.library.part(node.op, 1)])]
            return Array(value.values.reshape(buffer.type.lens), buffer.type.dtype)
        memory = _written(buffer, self._numpy_type(buffer.type.dtype), self.outside)
        operands = [memory if o is buffer else values[id(o)] for o in node.operands]
        self.evaluator.value(node, operands)
        return memory

    def _numpy_type(self, dtype: str) -> np.dtype[Any]:
        return np.dtype(np.float64) if self.precise and DTYPES[dtype].is_float else numpy_dtype(dtype)

    def _tensor(self, node: Node, value: Value) -> Value:
        """A tensor's elements, of accumulators those of all fields."""
        fields = value if isinstance(value, tuple) else (value,)
        for part in fields:
            if not isinstance(part, Array) or part.values.shape != node.type.lens:
                raise Misuse(f"`{node.op}` means another shape than its type says")
            self._noted(part)
        return value

    def _noted(self, value: Array) -> Array:
        """Remember how large values get: what is lost by rounding goes by that."""
        if value.values.dtype.kind == "f" and value.values.size:
            sizes = np.abs(value.values)
            self.largest = max(self.largest, float(np.max(sizes, initial=0.0, where=np.isfinite(sizes))))
        return value

    def _leaving_missing(self, node: Node, value: Array) -> Array:
        """An index made of one that does not exist does not exist; written numbers always do.

        Operators that stand in no program say themselves what they make of it, and what they make are numbers. Those
        of the last stage make no element disappear.
        """
        operator = self.library.operator(node.op)
        if "nowhere" in operator.decl.stages:
            return value
        lost = np.asarray(False)
        for operand in node.operands:
            lost = lost | self._lost.get(id(operand), lost)
        if np.any(lost):
            value = Array(np.where(lost, MISSING, value.values), value.dtype)
        if not operator.legal_at(self.library.stages[-1]):
            lost = lost | (value.values == MISSING)
        self._lost[id(node)] = lost
        return value

    def _within_domain(self, node: Node, operands: Sequence[Value], value: Array) -> Array:
        """The value, unspecified where indices are outside of the operator's domain."""
        decl = self.library.operator(node.op).decl
        env = {**self.evaluator.context, **dict(node.attributes)}
        env |= {d.name: v for d, v in zip(decl.operands, operands, strict=False)}
        for expr in decl.domain:
            try:
                holds = np.asarray(self.machine.condition(expr)(env))
            except GenrwError:
                # the condition is one on types, which the term has been drawn for
                continue
            if not np.all(holds):
                lost = np.asarray(False)
                for operand in node.operands:
                    lost = lost | self._lost.get(id(operand), lost)
                if self.outside is not None:
                    self.outside.append(~holds & ~lost)
                if node.type.sort == "index" and "nowhere" not in decl.stages:
                    # what does not exist stays so
                    holds = holds | lost
                poison = _poison(value.dtype, self.poison).astype(value.values.dtype)
                value = Array(np.where(holds, value.values, poison), value.dtype)
        return value

    def _shaped(self, node: Node, value: Value) -> Value:
        """The value, its share as long as the type says."""
        if isinstance(value, tuple):
            return tuple(self._shaped(node, part) for part in value)
        lens = value.values.shape or ONE
        size = node.type.size or 1
        if len(lens) != len(ONE) or lens[SHARE] not in (1, size):
            raise Misuse(f"`{node.op}` means values of another shape than its type says")
        return self._noted(Array(np.broadcast_to(value.values.reshape(lens), (*lens[:SHARE], size)), value.dtype))


def _written(buffer: Node, numpy_type: np.dtype[Any], outside: list[Values] | None) -> Written:
    empty = Memory.unwritten(buffer.name or buffer.op, buffer.type, numpy_type)
    return Written(empty.name, empty.type, empty.values, empty.origin, empty.written, outside=outside)
