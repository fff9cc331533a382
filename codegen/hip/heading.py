"""What stands before a printed kernel: the texts that its operators bring, the structs of its monoids and instructions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from genrw.codegen.hip.expression_text import monoid_name
from genrw.codegen.hip.instruction_text import instruction_struct, multiplied
from genrw.codegen.hip.monoid_text import monoid_struct
from genrw.codegen.hip.trust import Vetting
from genrw.codegen.kernel_ir.expressions import monoid_of
from genrw.codegen.kernel_ir.kernel import Apply, Expression, Folded, Kernel, Monoid, Start, walk
from genrw.engine.ir.nodes import Node
from genrw.engine.library.library import Library


@dataclass
class Heading:
    """Texts by what they are of."""

    devices: dict[str, str] = field(default_factory=dict)
    monoids: dict[str, str] = field(default_factory=dict)
    instructions: dict[str, str] = field(default_factory=dict)


def heading_of(kernel: Kernel, library: Library, vetting: Vetting | None) -> Heading:
    """What a kernel needs before it, in the order in which its statements do; `vetting` looks at each text, if it is given."""
    writer = _Writer(library, vetting)
    for statement in walk(kernel.body):
        if isinstance(statement, Start):
            writer.monoid(statement.monoid)
        for expression in statement.expressions:
            for node in _computed(expression):
                writer.operator(node)
    return writer.heading


def _computed(expression: Expression) -> Iterator[Node]:
    """The nodes whose operators an expression applies."""
    if isinstance(expression, Apply | Folded):
        yield expression.node
    for operand in expression.operands:
        yield from _computed(operand)


class _Writer:
    def __init__(self, library: Library, vetting: Vetting | None) -> None:
        self.library, self.vetting = library, vetting
        self.heading = Heading()

    def operator(self, node: Node) -> None:
        operator = self.library.operator(node.op)
        if operator.decl.device is not None:
            if self.vetting is not None:
                self.vetting.device(operator.decl)
            self.heading.devices.setdefault(node.op, operator.decl.device.strip("\n"))
        if operator.decl.emit is None:
            return
        for name, value in node.attributes:
            kind = operator.attributes[name].type
            if kind == "monoid":
                self.monoid(monoid_of(node, self.library))
            elif kind == "instruction":
                self._instruction(value)

    def monoid(self, monoid: Monoid) -> None:
        name = monoid_name(monoid)
        if name not in self.heading.monoids:
            self.heading.monoids[name] = monoid_struct(self.library.monoids[monoid.name], monoid.dtype)

    def _instruction(self, name: str) -> None:
        if name not in self.heading.instructions:
            made = self.library.instructions[name]
            if self.vetting is not None:
                self.vetting.multiplied(made.decl, multiplied(made))
            self.heading.instructions[name] = instruction_struct(made)
