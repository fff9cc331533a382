"""What a rule decides by the schedule or the space: the conditions of its branches, and the alternatives of its guard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from genrw.engine.language.expr import Evaluator
from genrw.engine.language.expr_walk import free_names, substitute, walk
from genrw.engine.library.definitions import term_expressions
from genrw.engine.library.library import Library
from genrw.engine.library.sides import conditions
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.expr import print_expr
from genrw.grammar.expr_tree import Binary, Call, Expr, IfElse
from genrw.grammar.rw_tree import RuleDecl

DECIDING = frozenset({"schedule", "space"})
"""The names by which schedules are told apart."""
_MOST_WRITTEN_OUT = 200
"""Helpers that are written out at most: one that calls another twice would double the work."""


@dataclass(frozen=True)
class Branch:
    """A condition that a rule decides by: as text, as it is evaluated, the names that it asks, and whether the rule itself says
    it, and not a helper that it calls."""

    told: str
    condition: Evaluator
    names: frozenset[str]
    own: bool

    def taken(self, names: Mapping[str, Any]) -> bool | None:
        """Does the condition hold? None if it cannot be asked."""
        try:
            return self.condition(names) is True
        except (GenrwError, KeyError):
            return None


def branches_of(library: Library, rule: RuleDecl) -> list[Branch]:
    """What a rule decides by the schedule or the space, once each, what `with` calls them written out."""
    found: dict[Expr, bool] = {}
    for condition, own in _Written(library).of(rule):
        if not DECIDING.isdisjoint(free_names(condition)):
            found[condition] = found.get(condition, False) or own
    scope = library.scope
    return [Branch(print_expr(c), scope.compile(c), frozenset(free_names(c)), own) for c, own in found.items()]


@dataclass
class _Written:
    """The conditions in expressions, helpers written out."""

    library: Library
    seen: set[Call] = field(default_factory=set)

    def of(self, rule: RuleDecl) -> Iterator[tuple[Expr, bool]]:
        """The conditions of a rule, and whether it says them itself."""
        bound = {b.name: b.value for b in rule.with_}
        for expr in (*conditions(rule.guard), *term_expressions(rule.right)):
            yield from self._within(substitute(substitute(expr, bound), bound), True)
        for condition in conditions(rule.guard):
            written = substitute(substitute(condition, bound), bound)
            yield from ((part, True) for part in _alternatives(written) if part is not written)

    def _within(self, expr: Expr, own: bool) -> Iterator[tuple[Expr, bool]]:
        for part in walk(expr):
            if isinstance(part, IfElse):
                yield part.condition, own
            elif isinstance(part, Call) and part.function in self.library.scope.lets:
                yield from self._of_helper(part)

    def _of_helper(self, call: Call) -> Iterator[tuple[Expr, bool]]:
        asked = not DECIDING.isdisjoint(free_names(call))
        if not asked or call in self.seen or len(self.seen) >= _MOST_WRITTEN_OUT:
            return
        self.seen.add(call)
        let = self.library.scope.lets[call.function]
        try:
            body = substitute(let.body, dict(zip(let.parameters, call.args, strict=False)))
        except GenrwError:
            # nested too deeply to be looked into
            return
        yield from self._within(body, False)


def _alternatives(condition: Expr) -> Iterator[Expr]:
    """The parts of a disjunction, left to right."""
    if isinstance(condition, Binary) and condition.op == "or":
        yield from _alternatives(condition.left)
        yield from _alternatives(condition.right)
    else:
        yield condition
