"""Lane programs evaluated: all lanes of many workgroups at once, memory watched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from genrw.engine.interpret.evaluate import Evaluator, at_node
from genrw.engine.interpret.lane_axes import ONE, SHARE, STEPS
from genrw.engine.interpret.lanes import Lanes, lane_functions
from genrw.engine.interpret.memory import MISSING, Memory
from genrw.engine.ir.dtypes import DTYPES, numpy_dtype
from genrw.engine.ir.nodes import Module, Node
from genrw.engine.ir.types import Type
from genrw.engine.language.arrays import Array, Values, storage
from genrw.engine.language.functions import Misuse, Value

CHUNK = 1 << 18
"""How many values a node may have at a time: larger launches are evaluated some workgroups at a time."""


class LaneProgram:
    """A lane program with its memory."""

    def __init__(
        self, module: Module, evaluator: Evaluator, inputs: Mapping[str, Array], written: Mapping[str, Node]
    ) -> None:
        self.module, self.evaluator, self.written = module, evaluator, written
        self.library = evaluator.library
        self.nodes = [node for node in module.nodes if node is not module.root]
        # in the last stage an index is split in a number and a condition: there -1 is a number as others are
        self.missing = module.stage != self.library.stages[-1]
        self.lanes = Lanes(evaluator.folds, self.missing)
        evaluator.functions.update(lane_functions(self.lanes))
        self.filled_in_loops: set[int] = set()
        self.memories = {name: self._input(name, array) for name, array in inputs.items()}
        self.memories.update((name, self._output(name, node)) for name, node in written.items())

    def _input(self, name: str, array: Array) -> Memory:
        type_ = next(p.type for p in self.module.parameters if p.attribute("name") == name)
        return Memory.holding(name, type_, array.finished(array.dtype, self.evaluator.precise))

    def _output(self, name: str, node: Node) -> Memory:
        return Memory.unwritten(name, node.type, self._numpy_type(node.type.dtype))

    def _numpy_type(self, dtype: str) -> np.dtype[Any]:
        """The numpy type of elements in memory."""
        return storage(dtype, True) if self.evaluator.precise else numpy_dtype(dtype)

    def _workgroup_memory(self, node: Node) -> Memory | Type:
        """Memory of the workgroups at hand; of accumulators with several fields none but the type."""
        if node.type.dtype not in DTYPES:
            return node.type
        name = node.name or node.op
        steps = self.lanes.extents[STEPS] if id(node) in self.filled_in_loops else 1
        return Memory.of_groups(name, node.type, self._numpy_type(node.type.dtype), self.lanes.groups, steps)

    def outputs(self) -> dict[str, Values]:
        """Run all lanes; what the output parameters hold then."""
        self._check_loops()
        groups, at_a_time = self._launch()
        for first in range(0, groups, at_a_time):
            self.lanes.of_groups(first, at_a_time)
            self._run()
        return {name: self._contents(name) for name in self.written}

    def _contents(self, name: str) -> Values:
        try:
            return self.memories[name].elements()
        except Misuse as problem:
            raise at_node(self.module.root, str(problem)) from None

    def _launch(self) -> tuple[int, int]:
        """How many workgroups there are, and how many to evaluate at a time."""
        for node in self.nodes:
            if self.library.role(node.op) in ("index_leaf", "turn") and not node.operands:
                self.evaluator.value(node, ())
        groups, *rest = self.lanes.extents
        groups = self.library.launch_entry(self.module.schedule, "grid", groups)
        share = max([node.type.size for node in self.nodes], default=0)
        return groups, max(1, CHUNK // max(1, int(np.prod(rest)) * max(1, share)))

    def _check_loops(self) -> None:
        """A value may live in one loop over a row only; a fold leads out of it. Notes what memory loops fill."""
        loops: dict[int, frozenset[int]] = {}
        reserved: dict[int, int] = {}
        for node in self.nodes:
            operator = self.library.operator(node.op)
            if node.type.sort == "buffer":
                earlier = (reserved[id(o)] for o in node.operands if o.type.sort == "buffer")
                reserved[id(node)] = id(node) if operator.role == "alloc" else next(earlier)
            if node.op in self.library.loop_counters:
                loops[id(node)] = frozenset({node.attribute(operator.decl.role_parts[0])})
                continue
            inside = frozenset[int]().union(*(loops[id(o)] for o in node.operands))
            if len(inside) > 1:
                raise at_node(node, f"mixes the steps of loops {' and '.join(map(str, sorted(inside)))}")
            loops[id(node)] = frozenset() if operator.role == "fold" else inside
            if inside:
                self.filled_in_loops.update(reserved[id(o)] for o in node.operands if o.type.sort == "buffer")

    def _run(self) -> None:
        """Evaluate all nodes for the workgroups at hand."""
        values: dict[int, Value] = {}
        for node in self.nodes:
            values[id(node)] = self._value(node, [values[id(o)] for o in node.operands])

    def _value(self, node: Node, operands: list[Value]) -> Value:
        boundary = self.library.boundary
        if node.op == boundary("input").name:
            return self.memories[node.attribute("name")]
        if node.op == boundary("constant").name:
            return self._table(node)
        if node.op in (boundary("scalar").name, boundary("number").name):
            return self.evaluator.constant(node, ONE)
        if self.library.role(node.op) == "alloc":
            return self._workgroup_memory(node)
        if self.library.role(node.op) == "argument":
            return self._described(node, operands)
        if node.type.sort == "buffer":
            # workgroup memory at a later time
            return next(v for o, v in zip(node.operands, operands, strict=True) if o.type.sort == "buffer")
        value = self.evaluator.value(node, operands)
        if node.type.sort == "effect":
            return value
        if node.type.sort == "index" and self.missing:
            value = self._leaving_missing(node, operands, value)
        return self._shaped(node, value)

    def _described(self, node: Node, operands: list[Value]) -> Memory:
        """A tensor's memory as its description says that it lies."""
        memory = operands[self.library.part(node.op, 0)]
        assert isinstance(memory, Memory)
        return memory.seen_as(node.type, self.library.description(node)["begin"])

    def _table(self, node: Node) -> Memory:
        elements = self.evaluator.constant(node, node.type.lens)
        return Memory.holding("a table", node.type, elements.finished(elements.dtype, self.evaluator.precise))

    def _leaving_missing(self, node: Node, operands: list[Value], value: Array) -> Array:
        """An index made of one that does not exist does not exist; written numbers always do."""
        number = self.library.boundary("number").name
        for operand, given in zip(node.operands, operands, strict=True):
            if operand.type.sort == "index" and operand.op != number:
                missing = given.values == MISSING
                if np.any(missing):
                    value = Array(np.where(missing, MISSING, value.values), value.dtype)
        return value

    def _shaped(self, node: Node, value: Value) -> Value:
        """The value, its share as long as the type says."""
        if isinstance(value, tuple):
            return tuple(self._shaped(node, part) for part in value)
        lens = value.values.shape or ONE
        size = node.type.size or 1
        if len(lens) != len(ONE) or lens[SHARE] not in (1, size):
            raise at_node(
                node,
                f"means values of shape {list(lens)}, but its type says {size} a lane",
                self.evaluator.meaning(node),
            )
        return Array(np.broadcast_to(value.values, (*lens[:SHARE], size)), value.dtype)
