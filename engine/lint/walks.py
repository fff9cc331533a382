"""All expressions of a declaration."""

from __future__ import annotations

from collections.abc import Iterator

from genrw.grammar.expr_tree import Expr, Name
from genrw.grammar.expr_tree import Node as ExprNode
from genrw.grammar.rw_tree import (
    AttributePattern,
    Declaration,
    Example,
    Given,
    VarPattern,
)
from genrw.grammar.source import Span


def expressions(declaration: Declaration) -> Iterator[Expr]:
    """Every expression that stands in a declaration, whole; an attribute `axes` alone stands for the name."""
    todo: list[object] = list(vars(declaration).values())
    while todo:
        item = todo.pop()
        if isinstance(item, ExprNode):
            yield item  # type: ignore[misc]
        elif isinstance(item, AttributePattern):
            yield item.value if item.value is not None else Name(item.name, span=item.span)
        elif isinstance(item, tuple | list):
            todo += item
        elif hasattr(item, "__dataclass_fields__") and not isinstance(item, Example | Given | VarPattern | Span):
            todo += vars(item).values()
