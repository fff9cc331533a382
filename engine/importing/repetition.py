"""What `repeat` says: templates built again and again, each time of what the last time gave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from genrw.engine.importing.scope import Scope, Unfit
from genrw.engine.ir.nodes import Node
from genrw.grammar.expr_tree import Expr
from genrw.grammar.rw_tree import Pattern, Repeat


def repeated(
    repeat: Repeat,
    scope: Scope,
    value: Callable[[Expr, Scope], Any],
    build: Callable[[Pattern, Scope, int | None], list[Node]],
    seen: Callable[[str, Any], Any],
) -> Scope:
    """The scope after all repetitions. Names that stood for something before stand for what was built last, new ones for
    what each repetition built. `build` makes so many results of a template, or all it has; `seen` is what expressions see
    of a name's new value."""
    values, nodes = dict(scope.values), dict(scope.nodes)
    gathered: dict[str, list[Any]] = {step.name: [] for step in repeat.steps if step.name not in nodes}
    for item in value(repeat.items, scope):
        here = Scope({**values, repeat.variable: item}, nodes)
        if repeat.condition is not None and not value(repeat.condition, here):
            break
        for name, built in _assigned(repeat, here, build):
            if name in gathered:
                gathered[name].append(built)
            else:
                nodes[name], values[name] = built, seen(name, built)
    for step in repeat.steps:
        if step.name in gathered:
            listed = gathered[step.name]
            nodes[step.name] = tuple(zip(*listed, strict=True)) if step.variadic else tuple(listed)
            values[step.name] = seen(step.name, nodes[step.name])
    return Scope(values, nodes)


def _assigned(
    repeat: Repeat, scope: Scope, build: Callable[[Pattern, Scope, int | None], list[Node]]
) -> list[tuple[str, Any]]:
    """The names with what one repetition gives them."""
    counts = [len(scope.nodes[s.name]) if s.name in scope.nodes else None for s in repeat.steps if s.variadic]  # type: ignore[arg-type]
    single = sum(not step.variadic for step in repeat.steps)
    fixed = single + sum(count or 0 for count in counts)
    results = build(repeat.body, scope, None if None in counts else fixed)
    if len(results) < fixed:
        raise Unfit(f"one repetition gives {len(results)} results, and {fixed} are named", 3)
    assigned: list[tuple[str, Any]] = []
    lengths = iter([len(results) - fixed if count is None else count for count in counts])
    at = 0
    for step in repeat.steps:
        length = next(lengths) if step.variadic else 1
        assigned.append((step.name, tuple(results[at : at + length]) if step.variadic else results[at]))
        at += length
    return assigned
