"""A plan as modules: one for each kernel that differs, and a main module that calls them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from genrw.engine.fusion.body import Kernel
from genrw.engine.fusion.search import Plan
from genrw.engine.ir.nodes import MAIN_MODULE, Call, Main, Module, Node, Unit, rebuilt
from genrw.engine.ir.structure import nameless_key
from genrw.engine.ir.types import EFFECT
from genrw.engine.library.library import Library
from genrw.engine.programs.build import input_node


def unit_of(plan: Plan, library: Library, taken: Iterable[str]) -> Unit:
    """The kernels of a plan and the main module, named apart from the modules `taken`; a lone kernel stays one module."""
    order = plan.order()
    if len(order) < 2:
        return Unit((plan.graph.module,))
    return _Cutter(plan, library, set(taken)).unit(order)


def kernel_modules(plan: Plan, library: Library) -> list[tuple[Module, list[int]]]:
    """The module of each kernel of a plan, in order, without a name, and the values that it is given."""
    cutter = _Cutter(plan, library, set())
    return [cutter.module_of(plan.kernel(k)) for k in plan.order()]


class _Cutter:
    def __init__(self, plan: Plan, library: Library, taken: set[str]) -> None:
        self.module, self.plan, self.graph = plan.graph.module, plan, plan.graph
        self.library, self.taken = library, taken
        self.input = library.boundary("input").name
        self.names = self._value_names()
        self.known: dict[Any, Module] = {}

    def unit(self, order: Sequence[int]) -> Unit:
        calls = []
        for k in order:
            kernel, given = self._kernel(self.plan.kernel(k))
            operands = tuple(self.names[i] for i in given)
            calls.append(Call(kernel.name, operands, tuple(map(self._made, self.plan.kernel(k).outputs))))
        module, graph = self.module, self.graph
        number = {id(node): i for i, node in enumerate(graph.nodes)}
        returned = tuple(self._made(number[id(o)]) for o in module.root.operands)
        main = Main(
            module.name,
            module.parameters,
            tuple(calls),
            returned,
            module.results,
            module.stage,
            module.target,
            module.span,
        )
        return Unit(tuple(self.known.values()), main)

    def _value_names(self) -> dict[int, str]:
        """Names for parameters and stored values, the authors' first; a stored parameter has another for its copy."""
        names: dict[int, str] = {}
        self.copies: dict[int, str] = {}
        taken: set[str] = set()

        def name(wanted: str) -> str:
            found, count = wanted, 0
            while found in taken:
                count += 1
                found = f"{wanted}.{count}"
            taken.add(found)
            return found

        numbers = {id(node): i for i, node in enumerate(self.graph.nodes)}
        for parameter in self.module.parameters:
            shown = name(parameter.name or str(parameter.attribute("name")))
            if id(parameter) in numbers:
                names[numbers[id(parameter)]] = shown
        stored = sorted(self.plan.owner)
        for i in sorted(stored, key=lambda i: (self.graph.nodes[i].name is None, i)):
            shown = name(self.graph.name(i))
            if i in names:
                self.copies[i] = shown
            else:
                names[i] = shown
        return names

    def _made(self, i: int) -> str:
        """The name of a stored value."""
        return self.copies.get(i, self.names[i])

    def _kernel(self, kernel: Kernel) -> tuple[Module, list[int]]:
        """The module of a kernel, one that is known if their structure is the same, and the values it is given."""
        module, given = self.module_of(kernel)
        key = nameless_key(module)
        if key not in self.known:
            self.known[key] = replace(module, name=self._free_name())
        return self.known[key], given

    def _free_name(self) -> str:
        """k0, k1 …, those of another module than the main one with its name before."""
        count = len(self.known)
        before = "" if self.module.name == MAIN_MODULE else f"{self.module.name}_"
        while f"{before}k{count}" in self.taken:
            count += 1
        self.taken.add(f"{before}k{count}")
        return f"{before}k{count}"

    def module_of(self, kernel: Kernel) -> tuple[Module, list[int]]:
        nodes, inside = self.graph.nodes, self._inside(kernel)
        given = [i for i in inside if nodes[i].op == self.input or self._is_loaded(i, kernel)]
        parameters = tuple(map(self._parameter, given))
        made = rebuilt((nodes[i] for i in inside), {id(nodes[i]): p for i, p in zip(given, parameters, strict=True)})
        root = Node(self.module.root.op, (), tuple(made[id(nodes[i])] for i in kernel.outputs), EFFECT)
        names = tuple(map(self._made, kernel.outputs))
        module = Module("", root, parameters, stage=self.module.stage, target=self.module.target, results=names)
        return replace(module, span=self.module.span), given

    def _is_loaded(self, i: int, kernel: Kernel) -> bool:
        """Is a value one that another kernel stores?"""
        return i in self.plan.owner and i not in kernel.outputs and not self.graph.given[i]

    def _inside(self, kernel: Kernel) -> list[int]:
        """The values that a kernel makes or loads, operands before users."""
        seen: set[int] = set()
        found: list[int] = []
        stack = [(i, False) for i in reversed(kernel.outputs)]
        while stack:
            i, ready = stack.pop()
            if ready:
                found.append(i)
            elif i not in seen:
                seen.add(i)
                stack.append((i, True))
                if i in kernel.outputs or i not in self.plan.owner:
                    stack.extend((o, False) for o in reversed(self.graph.operands[i]) if o not in seen)
        return found

    def _parameter(self, i: int) -> Node:
        """The parameter through which a kernel reads a value: strides and all for one of the program's."""
        node, name = self.graph.nodes[i], self.names[i]
        type_ = node.type if node.op == self.input else replace(node.type, strides=None)
        return replace(input_node(self.library, name, type_), span=node.span)
