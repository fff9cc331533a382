"""What stands before a printed kernel: the texts that its operators bring, the structs of its monoids and instructions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from genrw.codegen.hip.expression_text import monoid_name
from genrw.codegen.hip.instruction_text import instruction_struct
from genrw.codegen.hip.monoid_text import monoid_struct
from genrw.codegen.hip.own_text import OwnTexts
from genrw.codegen.hip.trust import Vetting
from genrw.codegen.kernel_ir.expressions import monoid_of
from genrw.codegen.kernel_ir.kernel import (
    Function,
    FunctionKey,
    Kernel,
    Monoid,
    Start,
    Statement,
    applied,
    function_key,
    walk,
)
from genrw.engine.ir.nodes import Node
from genrw.engine.library.library import Library


@dataclass
class Heading:
    """Texts by what they are of."""

    devices: dict[str, str] = field(default_factory=dict)
    monoids: dict[str, str] = field(default_factory=dict)
    instructions: dict[str, str] = field(default_factory=dict)


def heading_of(
    kernel: Kernel, library: Library, vetting: Vetting | None, own: OwnTexts, text_of: Callable[[Function], str]
) -> Heading:
    """What a kernel needs before it, in the order in which its statements do; `vetting` looks at each text, if it is given,
    `own` collects those of own rules, `text_of` prints a function."""
    writer = _Writer(kernel, library, vetting, own, text_of)
    writer.statements(kernel.body)
    return writer.heading


class _Writer:
    def __init__(
        self,
        kernel: Kernel,
        library: Library,
        vetting: Vetting | None,
        own: OwnTexts,
        text_of: Callable[[Function], str],
    ) -> None:
        self.kernel, self.library, self.vetting, self.own, self.text_of = kernel, library, vetting, own, text_of
        self.heading = Heading()
        self.functions: set[FunctionKey] = set()

    def statements(self, body: tuple[Statement, ...]) -> None:
        for statement in walk(body):
            if isinstance(statement, Start):
                self.monoid(statement.monoid)
            for expression in statement.expressions:
                for node in applied(expression):
                    self.operator(node)

    def operator(self, node: Node) -> None:
        function = self.kernel.function_of(node)
        if function is not None:
            self._function(function, function_key(node))
            return
        operator = self.library.operator(node.op)
        if operator.decl.device is not None:
            if self.vetting is not None:
                self.vetting.device(operator.decl)
            self.own.as_written(operator.decl, "device", operator.decl.device)
            self.heading.devices.setdefault(node.op, operator.decl.device.strip("\n"))
        if operator.decl.emit is None:
            return
        for name, value in node.attributes:
            kind = operator.attributes[name].type
            if kind == "monoid":
                self.monoid(monoid_of(node, self.library))
            elif kind == "instruction":
                self._instruction(value)

    def _function(self, function: Function, key: FunctionKey) -> None:
        """A function, behind what it needs itself."""
        if key not in self.functions:
            self.functions.add(key)
            self.statements(function.body)
            text = self.text_of(function)
            self.heading.devices.setdefault(text, text)

    def monoid(self, monoid: Monoid) -> None:
        name = monoid_name(monoid)
        if name not in self.heading.monoids:
            self.heading.monoids[name] = monoid_struct(self.library.monoids[monoid.name], monoid.dtype)

    def _instruction(self, name: str) -> None:
        if name not in self.heading.instructions:
            made = self.library.instructions[name]
            if self.vetting is not None:
                self.vetting.multiplied(made.decl, made.multiplied())
            self.own.as_written(made.decl, "multiply", made.multiplied())
            self.heading.instructions[name] = instruction_struct(made)
