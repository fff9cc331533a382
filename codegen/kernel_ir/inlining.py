"""Values written where they are used: those that say where a lane stands, and those of one user that fit into its line.

Which values may be so says the builder. How long a value is depends on the language, so the printer measures it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from genrw.codegen.kernel_ir.kernel import (
    Apart,
    Apply,
    Expression,
    Function,
    IfStep,
    IfWithin,
    Inline,
    Kernel,
    Let,
    Loop,
    Statement,
    Turns,
    Use,
    Variable,
)


def inlined(kernel: Kernel, fits: Callable[[Expression], bool]) -> Kernel:
    """The kernel without the variables whose values may stand in their users, and fit."""
    return replace(kernel, body=_Inlining(fits).body(kernel.body))


def inlined_body(function: Function, fits: Callable[[Expression], bool]) -> tuple[Statement, ...]:
    """The same of a function's statements."""
    return _Inlining(fits).body(function.body)


class _Inlining:
    """`values` are those to write in place of their variables; `short` says of a node whether its value fits, also where it
    is computed for another step or in another loop."""

    def __init__(self, fits: Callable[[Expression], bool]) -> None:
        self.fits = fits
        self.values: dict[Variable, Apply] = {}
        self.short: dict[int, bool] = {}

    def body(self, statements: tuple[Statement, ...]) -> tuple[Statement, ...]:
        made = (self._statement(statement) for statement in statements)
        return tuple(statement for statement in made if statement is not None)

    def _statement(self, statement: Statement) -> Statement | None:
        before = statement.expressions
        after = tuple(map(self._expression, before))
        if any(a is not b for a, b in zip(after, before, strict=True)):
            statement = statement.with_expressions(after)
        if isinstance(statement, Let) and isinstance(statement.value, Apply) and self._goes(statement, statement.value):
            self.values[statement.variable] = statement.value
            return None
        if isinstance(statement, Apart):
            parts = map(self.body, (statement.by_waves, statement.by_lanes, statement.in_turns))
            return Apart(statement.lanes, statement.waves, *parts)
        if isinstance(statement, Loop | IfStep | IfWithin | Turns):
            return replace(statement, body=self.body(statement.body))
        return statement

    def _goes(self, let: Let, value: Apply) -> bool:
        if let.inline is not Inline.SHORT:
            return let.inline is Inline.ALWAYS
        key = id(value.node)
        if key not in self.short:
            self.short[key] = self.fits(value)
        return self.short[key]

    def _expression(self, expression: Expression) -> Expression:
        if isinstance(expression, Use) and not expression.element and expression.variable in self.values:
            return self.values[expression.variable]
        before = expression.operands
        after = tuple(map(self._expression, before))
        changed = any(a is not b for a, b in zip(after, before, strict=True))
        return expression.with_operands(after) if changed else expression
