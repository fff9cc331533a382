"""Which values compilers make branches for, as for a quotient whose divisor may be out of the common range.

A load that stands behind a branch waits until the branch is taken, and so for all that was loaded before.
"""

from __future__ import annotations

from collections.abc import Mapping

from genrw.codegen.kernel_ir.kernel import Function, FunctionKey, Monoid, applied, function_key, walk
from genrw.engine.ir.nodes import Node
from genrw.engine.language.cpp_expr import branches
from genrw.engine.library.library import Library


class Branching:
    """Tells nodes that compilers make branches for. `functions` are those that the kernel calls."""

    def __init__(self, library: Library, functions: Mapping[FunctionKey, Function]) -> None:
        self.library, self.functions = library, functions
        self._known: dict[FunctionKey, bool] = {}

    def folds(self, monoid: Monoid) -> bool:
        """Do they make branches where an element comes to an accumulator?"""
        decl = self.library.monoids[monoid.name]
        return any(branches(field.value) for field in (*decl.element, *decl.combine))

    def __contains__(self, node: Node) -> bool:
        decl = self.library.operator(node.op).decl
        if decl.role != "pointwise" or decl.means is None or (decl.emit is not None and not decl.functions):
            return False
        key = function_key(node)
        if key not in self._known:
            function = self.functions.get(key)
            self._known[key] = branches(decl.means) if function is None else self._calls_some(function)
        return self._known[key]

    def _calls_some(self, function: Function) -> bool:
        expressions = (e for statement in walk(function.body) for e in statement.expressions)
        return any(part in self for e in expressions for part in applied(e))
