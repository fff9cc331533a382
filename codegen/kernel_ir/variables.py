"""The variables of a kernel: one for each value of the program, and those that loops need besides."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from genrw.codegen.kernel_ir.kernel import Scope, ValueType, Variable
from genrw.codegen.kernel_ir.placement import Placed
from genrw.codegen.kernel_ir.ranges import index_dtype
from genrw.engine.ir.nodes import Node
from genrw.engine.library.library import Library

_OF_64_BITS = {"lo": -(2**62), "hi": 2**62}


class Variables:
    """The variables of a kernel's nodes, in the order in which they were asked for."""

    def __init__(self, library: Library, ranges: Mapping[int, Mapping[str, int]]) -> None:
        self.library, self.ranges = library, ranges
        self.all: list[Variable] = []
        self._of: dict[int, Variable] = {}
        self._constants = {library.boundary(part).name for part in ("scalar", "number")}
        self._table = library.boundary("constant").name

    def of(self, node: Node) -> Variable:
        """The variable that stands for a node's value."""
        return self._of[id(node)]

    def new(self, variable: Variable) -> Variable:
        """A variable of no node, or one that stands beside a node's."""
        self.all.append(variable)
        return variable

    def type_of(self, node: Node) -> ValueType:
        """What holds a node's value."""
        type_ = node.type
        dtype = index_dtype(self.ranges.get(id(node), _OF_64_BITS)) if type_.sort == "index" else type_.dtype
        return ValueType(dtype, type_.size, type_.sort)

    def add_parameter(self, node: Node) -> Variable:
        """The variable of a parameter, which has the program's name."""
        self._of[id(node)] = Variable(self.type_of(node), node.attribute("name"), scope=Scope.ARGUMENT)
        return self.new(self._of[id(node)])

    def add_description(self, node: Node, parameter: Node) -> Variable:
        """The variable of a parameter's description, which is called after it."""
        called = self.library.operator(node.op).decl.called or node.op
        self._of[id(node)] = Variable(self.type_of(node), None, self.of(parameter), called, Scope.ARGUMENT)
        return self.new(self._of[id(node)])

    def add_values(self, nodes: Sequence[Placed], is_kept: Callable[[Placed], bool]) -> None:
        """A variable for each value. Memory in a later state is that of before, and what is computed again where it is used
        that of the first time."""
        for item in nodes:
            node = item.node
            if id(node) in self._of or node.type.sort == "effect" or node.op in self._constants:
                continue
            if self.is_state(node):
                self._of[id(node)] = self.of(node.operands[0])
            elif item.repeats is not None and not is_kept(item.repeats):
                self._of[id(node)] = self.of(item.repeats.node)
            else:
                self._of[id(node)] = self.new(self._named(node))

    def is_state(self, node: Node) -> bool:
        """Is the node memory in a later state?"""
        return node.type.sort == "buffer" and self.library.role(node.op) != "alloc"

    def _named(self, node: Node) -> Variable:
        """A variable with the program's own name, else one that says what the value is."""
        type_ = self.type_of(node)
        if self.library.role(node.op) == "read":
            source = self._of.get(id(node.operands[0]))
            return Variable(type_, node.name, source, "in") if source else Variable(type_, node.name or "value_in")
        scope = Scope.FILE if node.op == self._table else Scope.LANE
        if node.name is not None:
            return Variable(type_, node.name, scope=scope)
        called = self.library.operator(node.op).decl.called or node.op
        for name, value in node.attributes:
            called = called.replace(f"{{{name}}}", str(value))
        return Variable(type_, called, scope=scope)

    @contextmanager
    def at_step(self, counted: Node, counter: Variable, items: Collection[Placed], suffix: str) -> Iterator[None]:
        """The values of another step, in variables of their own."""
        before = dict(self._of)
        self._of[id(counted)] = counter
        for item in items:
            found = before.get(id(item.node))
            if found is not None and item.node.type.sort not in ("buffer", "effect") and item.node is not counted:
                self._of[id(item.node)] = self.new(Variable(found.type, None, found, suffix))
        yield
        self._of = before
