"""Operands of a lane program as expressions over variables."""

from __future__ import annotations

from collections.abc import Set

from genrw.codegen.kernel_ir.keeping import is_kept
from genrw.codegen.kernel_ir.kernel import Apply, Constant, Expression, Folded, Made, Monoid, Use, Variable
from genrw.codegen.kernel_ir.placement import IN_PLACE, Placed
from genrw.codegen.kernel_ir.variables import Variables
from genrw.engine.ir.nodes import Node
from genrw.engine.library.library import Library
from genrw.engine.library.monoids import element_type


def adds_itself(fold: Node, library: Library) -> bool:
    """Does the fold's operator say what its accumulator is after a step?"""
    return IN_PLACE in library.operator(fold.op).decl.role_parts


def monoid_of(node: Node, library: Library) -> Monoid:
    """The monoid by which a node combines, and the type of the elements."""
    operator = library.operator(node.op)
    name = next(node.attribute(a.name) for a in operator.decl.attributes if a.type == "monoid")
    types = [node.type.dtype, *(o.type.dtype for o in node.operands)]
    carried = [t for t in types if t.startswith(f"{name}.")]
    inner = node.operands and not adds_itself(node, library)
    dtype = element_type(carried[0]) if carried else node.operands[0].type.dtype if inner else types[0]
    return Monoid(name, dtype)


def taken(item: Placed, library: Library) -> list[Placed]:
    """The operands of which a value is made: one that only stands for each element is made of one, for which the others say
    how many these are."""
    if library.role(item.node.op) == "spread":
        return [item.operands[library.part(item.node.op, 0)]]
    return item.operands


class Expressions:
    """Makes the expressions of a kernel. `handed_on` are values that have a variable beyond the loop which makes them: they wait for
    a later step, or another array is mostly what they are."""

    def __init__(self, library: Library, variables: Variables) -> None:
        self.library, self.variables = library, variables
        self.handed_on: Set[int] = frozenset()
        self._constants = {library.boundary(part).name for part in ("scalar", "number")}

    def apply(self, item: Placed, inside: bool = False, result: Variable | None = None) -> Apply:
        """An item's operator over its operands; `inside` a loop over the elements of a share."""
        inside = inside or item.wide
        needed = {id(o) for o in taken(item, self.library)}
        operands = (
            self.operand(o, inside and i != item.gathered) if id(o) in needed else Made(o.node)
            for i, o in enumerate(item.operands)
        )
        return Apply(item.node, tuple(operands), result)

    def operand(self, item: Placed, inside: bool) -> Expression:
        """A value as a user names it."""
        node = item.node
        if node.type.sort == "effect":
            return Made(node)
        if node.op in self._constants:
            return Constant(node)
        element = inside and bool(node.type.size) and (not item.wide or is_kept(item, self.handed_on))
        return Use(self.variables.of(node), node, element)

    def folded(self, fold: Placed, accumulator: Variable) -> Expression:
        """A fold's result after its loop: what was accumulated, where an element has its own, folded."""
        if not fold.operands[0].node.type.size:
            return Folded(fold.node, accumulator)
        made = self.apply(fold, result=self.variables.of(fold.node))
        return made.with_operands((Use(accumulator, fold.operands[0].node), *made.arguments[1:]))
