"""What stands where a masked load reads nothing.

Where a row ends within a lane's share, each fold wants its own identity behind the end, and whoever stores an element wants
nothing in particular. The row is loaded once: with what the first fold wants, if that is a value of the memory's type. A fold
that wants another value chooses it element by element.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import copysign

from genrw.codegen.kernel_ir.expressions import monoid_of
from genrw.engine.ir.dtypes import DTYPES, converted
from genrw.engine.ir.nodes import Module, Node
from genrw.engine.ir.types import Type
from genrw.engine.library.library import Library
from genrw.engine.library.monoids import identity_value

_MASK, _OTHER = 2, 3
"""The parts of a load's role that say what is loaded, and what stands elsewhere."""


@dataclass(frozen=True)
class _Choice:
    """A node that gives a loaded value where the load's mask holds, elsewhere another one. `number`: what the load has to give
    there for the choice to give the same; None for an accumulator, or where no element of the memory's type is that."""

    node: Node
    loaded: Node
    other: Node
    number: float | None


def with_values_behind_masks(module: Module, library: Library) -> tuple[Module, dict[int, Node]]:
    """The module without the choices that masked loads make needless; and by the identity of each node that is another one there,
    the module's own."""
    if not any(library.role(node.op) == "unspecified" for node in module.nodes):
        return module, {}
    return _Loads(module, library).settled()


class _Loads:
    """The masked loads of a module, and what is chosen in their place."""

    def __init__(self, module: Module, library: Library) -> None:
        self.module, self.library = module, library
        self.users: dict[int, list[Node]] = {}
        for node in module.nodes:
            for operand in dict.fromkeys(node.operands):
                self.users.setdefault(id(operand), []).append(node)

    def settled(self) -> tuple[Module, dict[int, Node]]:
        """The module in which each load has a value for what it does not read, and what its new nodes stand for."""
        found: dict[int, Node] = {}
        stands_for: dict[int, Node] = {}
        needless: dict[int, Node] = {}
        for node in self.module.nodes:
            if id(node) in needless:
                found[id(node)] = found[id(needless[id(node)])]
            else:
                operands = [found[id(o)] for o in node.operands]
                if self._is_open(node):
                    choices = self._first_wanted(node)
                    needless |= {id(c.node): c.loaded for c in choices}
                    if choices:
                        operands[self._part(node, _OTHER)] = self._other(node, choices[0])
                found[id(node)] = node
                if any(a is not b for a, b in zip(operands, node.operands, strict=True)):
                    found[id(node)] = replace(node, operands=tuple(operands))
                    stands_for[id(found[id(node)])] = node
        return replace(self.module, root=found[id(self.module.root)]), stands_for

    def _part(self, node: Node, part: int) -> int:
        return self.library.part(node.op, part)

    def _is_open(self, node: Node) -> bool:
        """Is the node a masked load, and what stands where it reads nothing unspecified?"""
        decl = self.library.operator(node.op).decl
        names = {operand.name for operand in decl.operands}
        if decl.role != "read" or len(decl.role_parts) <= _OTHER or not names.issuperset(decl.role_parts[: _OTHER + 1]):
            return False
        return self.library.role(node.operands[self._part(node, _OTHER)].op) == "unspecified"

    def _other(self, load: Node, choice: _Choice) -> Node:
        """What a load gives where it reads nothing, for a choice of that to be needless."""
        return choice.other if choice.loaded is load else self._constant(choice.number, load.type.dtype)

    def _first_wanted(self, load: Node) -> list[_Choice]:
        """The choices that become needless if the load gives what the first of them wants."""
        choices = [c for c in self._choices(load) if c.number is not None]
        return [c for c in choices if repr(c.number) == repr(choices[0].number)]

    def _choices(self, load: Node) -> Iterator[_Choice]:
        """Where another value is chosen in place of what is not loaded, in the program's order."""
        mask = load.operands[self._part(load, _MASK)]
        loaded = [load, *(user for user in self.users[id(load)] if self._converts(user))]
        users = {id(user): value for value in loaded for user in self.users.get(id(value), ())}
        for node in self.module.nodes:
            chosen = self.library.operator(node.op).chosen if id(node) in users else None
            if chosen is None:
                continue
            value = users[id(node)]
            condition, then, otherwise = (node.operands[i] for i in chosen)
            if condition is mask and then is value and otherwise is not value:
                number = self._before(self._number(otherwise), otherwise.type.dtype, load.type.dtype)
                yield _Choice(node, value, otherwise, number)

    def _converts(self, node: Node) -> bool:
        return self.library.operator(node.op).keeps_number and node.type.dtype in DTYPES

    def _number(self, node: Node) -> float | None:
        """The number that a node without operands stands for."""
        if node.op == self.library.boundary("scalar").name:
            value: float = node.attribute("value")
            return value
        if self.library.role(node.op) == "identity" and node.type.dtype in DTYPES:
            return identity_value(self.library.monoids[monoid_of(node, self.library).name], node.type.dtype)
        return None

    def _before(self, value: float | None, dtype: str, source: str) -> float | None:
        """The number of which a conversion makes another one; None if there is none."""
        if value is None:
            return None
        before = converted(value, dtype, source)
        after = converted(before, source, dtype)
        return before if after == value and copysign(1, after) == copysign(1, value) else None

    def _constant(self, number: float | None, dtype: str) -> Node:
        value = bool(number) if dtype == "bool" else number
        operator = self.library.boundary("scalar")
        return Node(operator.name, (("value", value), ("dtype", dtype)), (), Type("scalar", dtype))
