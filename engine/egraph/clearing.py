"""Emptying an e-graph: rules that delete the rows of its tables.

Going back to a copy that was made before takes time for all rules that the e-graph has. Deleting takes time for the rows
that are there, few as a rule. Rows that a rule replaced cannot be matched, so they cannot be deleted: they stay, and are
never met again, because no later run has terms in the same contexts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from genrw.engine.egraph.bindings import egg

CLEAR = "clear"
"""The ruleset that empties an e-graph."""


def clearing(functions: Mapping[str, int], relations: Mapping[str, int], sp: Any) -> list[Any]:
    """The commands that declare it, for tables by name with the numbers of their columns; a function's value is none."""
    tables = [*((name, count, True) for name, count in functions.items())]
    tables += ((name, count, False) for name, count in relations.items())
    return [egg.AddRuleset(sp, CLEAR), *(_deletion(*table, sp) for table in tables)]


def _deletion(name: str, columns: int, is_function: bool, sp: Any) -> Any:
    key = [egg.Var(sp, f"x{i}") for i in range(columns)]
    row = egg.Call(sp, name, key)
    body = egg.Eq(sp, egg.Var(sp, "v"), row) if is_function else egg.Fact(row)
    return egg.RuleCommand(egg.Rule(sp, [egg.Change(sp, egg.Delete(), name, key)], [body], f"{CLEAR} {name}", CLEAR))
