"""Graphs back to `.gen` text: every name given once, defaults left out, the kernel's schedule in the header."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from genrw.engine.ir.enode import ENode
from genrw.engine.ir.interner import Interner
from genrw.engine.ir.nodes import Main, Module, Node, Unit
from genrw.engine.ir.types import Type
from genrw.engine.library.library import Library, Operator
from genrw.engine.programs.build import NAME, complete
from genrw.grammar import gen_tree as tree
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.gen import print_gen, print_instruction


def unit_text(units: Iterable[Unit], library: Library, context: Callable[[Module], Mapping[str, Any]]) -> str:
    """The `.gen` text of programs: each its main module, if it has one, and its kernels."""
    trees = []
    for unit in units:
        if unit.main is not None:
            trees.append(main_tree(unit.main, library))
        trees += [module_tree(m, library, context(m)) for m in unit.kernels]
    return print_gen(tree.File(tuple(trees)))


def main_tree(main: Main, library: Library) -> tree.Module:
    """The syntax tree of a main module: parameters, calls, what it returns."""
    parameters = [
        tree.Instruction(
            (p.name or "",),
            "@param",
            param=p.attribute("name"),
            file=p.attribute("file") or None,
            type=type_node(p.type),
        )
        for p in main.parameters
    ]
    calls = [
        tree.Instruction(
            call.results,
            library.launch.name,
            (tree.Attribute("module", tree.Word(call.kernel)),),
            tuple(map(tree.Ref, call.operands)),
        )
        for call in main.calls
    ]
    last = tree.Instruction((), "@return", operands=tuple(map(tree.Ref, main.returned)))
    header = [tree.Attribute("stage", tree.Word(main.stage)), tree.Attribute("target", tree.Word(main.target))]
    if main.results != main.returned:
        header.append(tree.Attribute("results", tuple(map(tree.Word, main.results))))
    return tree.Module(main.name, tuple(header), (*parameters, *calls, last))


def module_tree(module: Module, library: Library, context: Mapping[str, Any]) -> tree.Module:
    """A module's syntax tree."""
    writer = _Writer(module, library, context)
    instructions = writer.instructions()
    shown = tuple(writer.names[id(o)] for o in module.root.operands)
    return tree.Module(module.name, tuple(_header(module, shown)), tuple(instructions))


def value_names(module: Module, library: Library, context: Mapping[str, Any]) -> dict[str, Node]:
    """A module's values by the names under which its text shows them."""
    writer = _Writer(module, library, context)
    return {writer.names[id(node)]: node for node in writer.name_all()}


def _header(module: Module, shown: tuple[str, ...]) -> list[tree.Attribute]:
    """The header of a stage's output; `shown` are the names in its `@return`."""
    named = {"results": tuple(map(tree.Word, module.results))} if module.results != shown else {}
    if not module.stage:
        return [tree.Attribute(k, v) for k, v in named.items() if module.results]
    values: dict[str, Any] = {"stage": tree.Word(module.stage), "target": tree.Word(module.target)}
    if module.schedule:
        values["schedule"] = tree.MapValue(tuple((k, written_value(v)) for k, v in module.schedule.items()))
    if module.space is not None:
        values["space"] = module.space
    if module.axes:
        values["axes"] = module.axes
    if not module.outputs:
        values |= named
    if module.outputs:
        values["outputs"] = tree.MapValue(tuple((k, tree.Word(v)) for k, v in module.outputs.items()))
    return [tree.Attribute(k, v) for k, v in values.items()]


def written_value(value: Any) -> tree.Value:
    """An attribute's value as syntax: strings that are names stand bare."""
    if isinstance(value, str):
        return tree.Word(value) if NAME.fullmatch(value) else value
    if isinstance(value, tuple):
        return tuple(written_value(v) for v in value)
    result: tree.Value = value
    return result


def operation_text(node: ENode, operands: Sequence[str], interner: Interner, library: Library) -> str:
    """A node of an e-graph over operands' names; attributes that have their default's value are left out."""
    if node.number is not None:
        return str(node.number)
    operator = library.operator(node.op)
    attributes = interner.attributes(node.attributes)
    env = {**interner.context(node.attributes), **dict(attributes)}
    shown = tuple(
        tree.Attribute(name, written_value(value))
        for name, value in attributes
        if not operator.has_default(name, value, env)
    )
    return print_instruction(tree.Instruction((), node.op, shown, tuple(map(tree.Ref, operands))))


class _Writer:
    def __init__(self, module: Module, library: Library, context: Mapping[str, Any]) -> None:
        self.module, self.library, self.context = module, library, context
        self.names: dict[int, str] = {}
        self.taken: set[str] = set()

    def instructions(self) -> list[tree.Instruction]:
        order = self.name_all()
        lines = [self._parameter(p) for p in self.module.parameters]
        inline = self._inline(order)
        for node in order:
            if id(node) not in inline and node not in self.module.parameters:
                lines.append(self._instruction(node, inline))
        root = self.module.root
        operands = tuple(tree.Ref(self.names[id(o)]) for o in root.operands)
        return [*lines, tree.Instruction((), "@return", operands=operands)]

    def name_all(self) -> list[Node]:
        """Name every node, those that have names first; gives the nodes in order."""
        order = self._order()
        for parameter in self.module.parameters:
            self._name(parameter, parameter.name or parameter.attribute("name"))
        for node in order:
            if node.name is not None:
                self._name(node, node.name)
        for node in order:
            self._name(node, node.op)
        return order

    def _order(self) -> list[Node]:
        return [n for n in self.module.nodes if n is not self.module.root]

    def _name(self, node: Node, wanted: str) -> None:
        if id(node) in self.names:
            return
        name, count = wanted, 0
        while name in self.taken:
            count += 1
            name = f"{wanted}.{count}"
        self.taken.add(name)
        self.names[id(node)] = name

    def _parameter(self, node: Node) -> tree.Instruction:
        name, file = node.attribute("name"), node.attribute("file") or None
        return tree.Instruction((self.names[id(node)],), "@param", param=name, file=file, type=type_node(node.type))

    def _inline(self, order: list[Node]) -> set[int]:
        """Constants that can be written as numbers where they are used."""
        parts = ("constant", "scalar", "number")
        ops = {self.library.boundary(part).name for part in parts}
        number = self.library.boundary("number").name
        small = {
            id(n) for n in order if n.op in ops and not isinstance(n.attribute("value"), tuple) and not n.type.lens
        }
        typed_elsewhere = {id(n) for n in order if n.op == number}
        for node in [*order, self.module.root]:
            for i, operand in enumerate(node.operands):
                if id(operand) in small and id(operand) not in typed_elsewhere and not self._typed(node, i, small):
                    small.discard(id(operand))
        return small

    def _typed(self, node: Node, position: int, small: set[int]) -> bool:
        """Would a number at this operand get its type from its neighbours?"""
        operator = self.library.operator(node.op)
        if operator.role == "boundary":
            return False
        dtype = operator.operand(position).dtype
        others = [o for i, o in enumerate(node.operands) if i != position and operator.operand(i).dtype == dtype]
        return any(id(o) not in small for o in others)

    def _instruction(self, node: Node, inline: set[int]) -> tree.Instruction:
        name = self.names[id(node)]
        names = (name,)
        parts = ("constant", "scalar")
        if node.op in {self.library.boundary(part).name for part in parts}:
            value = node.attribute("value")
            elements = value if isinstance(value, tuple) else (value,)
            return tree.Instruction(names, "@literal", literal=elements, type=type_node(node.type))
        operands = tuple(
            tree.NumberOperand(o.attribute("value")) if id(o) in inline else tree.Ref(self.names[id(o)])
            for o in node.operands
        )
        attributes = tuple(self._attributes(node))
        return tree.Instruction(names, node.op, attributes, operands, _shown_type(node.type))

    def _attributes(self, node: Node) -> Iterable[tree.Attribute]:
        """The attributes that differ from their defaults."""
        operator = self.library.operator(node.op)
        for i, (name, value) in enumerate(node.attributes):
            if not self._is_default(operator, node, i):
                yield tree.Attribute(name, written_value(value))

    def _is_default(self, operator: Operator, node: Node, position: int) -> bool:
        name, value = node.attributes[position]
        if name not in operator.defaults:
            return False
        given = {k: v for k, v in node.attributes if k != name}
        try:
            filled = dict(complete(operator, given, [o.type for o in node.operands], self.context))
        except GenrwError:
            return False
        return type(filled[name]) is type(value) and repr(filled[name]) == repr(value)


def type_node(type_: Type) -> tree.TypeNode:
    """A type as written."""
    if type_.sort in ("tensor", "buffer"):
        return tree.TypeNode("tensor", type_.dtype, type_.lens, type_.strides)
    if type_.sort == "array":
        return tree.TypeNode("array", type_.dtype, size=type_.size)
    if type_.sort == "index":
        return tree.TypeNode("index", size=type_.size or None)
    return tree.TypeNode(type_.sort, type_.dtype or None)


def _shown_type(type_: Type) -> tree.TypeNode | None:
    """The type that a line shows: none for effects and single indices."""
    if type_.sort == "effect" or (type_.sort == "index" and not type_.size):
        return None
    return type_node(type_)
