"""Both sides of a rule as terms: the left one is given with what its pattern's parts are, the right one is built."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from genrw.engine.egraph.guard_evaluation import require_list
from genrw.engine.ir.dtypes import DTYPES
from genrw.engine.ir.nodes import Attributes, Node
from genrw.engine.ir.types import Type
from genrw.engine.language.expr import Evaluator
from genrw.engine.library.infer import TypeProblem, infer
from genrw.engine.library.library import Library
from genrw.engine.library.rewriting import Names, alternatives, coerced, copied_from, operator_name, value_loops
from genrw.engine.library.sides import conditions
from genrw.engine.library.variants import Variant, nodes
from genrw.engine.programs.build import complete
from genrw.engine.verify.facts import Facts, View
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.expr_tree import Expr, Name
from genrw.grammar.rw_tree import Binding, NumberPattern, OpPattern, Pattern, VarPattern

_ALTERNATIVES = 24
"""How many alternatives of one match are tried."""


class Unbuildable(Exception):
    """The right side of a rule cannot be built here: what a template makes is not allowed."""


@dataclass
class TermMatch:
    """A term that a left side matches: what each operator of the pattern and each of its variables stands for."""

    variant: Variant
    left: Node
    operators: Mapping[int, Node]
    values: Mapping[str, Node]
    names: Mapping[str, Any]
    context: Mapping[str, Any]
    facts: Facts
    leaves: tuple[Node, ...] = ()


@dataclass(frozen=True)
class Alternative:
    """One choice of a rule's `for` variables, what its names stand for then, and which conditions do not hold."""

    names: Mapping[str, Any]
    refused: tuple[Expr, ...]


class Sides:
    """Guards and templates of one rule, compiled when first needed."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self._evaluators: dict[int, tuple[Expr, Evaluator]] = {}

    # ---- the guard

    def alternatives(self, match: TermMatch) -> Iterator[Alternative]:
        """The alternatives of a match, each with the conditions of the guard that do not hold in it."""
        env = self._environment(match)
        guard = list(conditions(match.variant.guard))
        for _, chosen in zip(range(_ALTERNATIVES), self._choices(match, env), strict=False):
            names = self._lazy(match, {**env, **chosen})
            try:
                refused = self._refused(guard, names)
                for binding in match.variant.with_ if not refused else ():
                    names[binding.name]
            except (GenrwError, KeyError):
                continue
            yield Alternative(names, refused)

    def _refused(self, guard: Sequence[Expr], names: Mapping[str, Any]) -> tuple[Expr, ...]:
        """The conditions that do not hold; one that cannot be asked behind another that does not hold is one of them."""
        refused: list[Expr] = []
        for condition in guard:
            try:
                holds = self._compiled(condition)(names) is True
            except (GenrwError, KeyError):
                if not refused:
                    raise
                holds = False
            if not holds:
                refused.append(condition)
        return tuple(refused)

    def _environment(self, match: TermMatch) -> dict[str, Any]:
        views = {name: match.facts.view(node) for name, node in match.values.items()}
        return {**match.context, **match.names, **views}

    def _lazy(self, match: TermMatch, env: Mapping[str, Any]) -> Names:
        computed: dict[str, Any] = {b.name: self._compiled(b.value) for b in match.variant.with_}
        for node in nodes(match.variant.right):
            if node.binds is not None and node.binds not in match.values:
                computed[node.binds] = partial(self._view, node, match)
        return Names(env, computed)

    def _view(self, pattern: OpPattern, match: TermMatch, env: Mapping[str, Any]) -> Any:
        """A part of the right side as expressions see it."""
        return match.facts.view(self._built(pattern, match, env, {}))

    def _compiled(self, expr: Expr) -> Evaluator:
        known = self._evaluators.get(id(expr))
        if known is None:
            # the expression is kept, so that no other one takes its place in memory
            known = self._evaluators[id(expr)] = (expr, self.library.scope.compile(expr))
        return known[1]

    def _choices(self, match: TermMatch, env: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Every combination of the `for` variables that run over lists; GenrwError for one that runs over none."""
        rule = match.variant.rule

        def values(binding: Binding, chosen: Mapping[str, Any]) -> Sequence[Any]:
            try:
                found = self._compiled(binding.value)(self._lazy(match, {**env, **chosen}))
            except (GenrwError, KeyError):
                return ()
            require_list(found, rule, binding)
            listed: Sequence[Any] = found
            return listed

        return alternatives(value_loops(rule, match.variant.left), values)

    # ---- the template

    def right(self, match: TermMatch, names: Mapping[str, Any]) -> Node:
        """The right side; Unbuildable if something in it is not allowed."""
        made: dict[Any, Node] = {}
        try:
            return self._built(match.variant.right, match, names, made)
        except (TypeProblem, GenrwError, KeyError) as problem:
            said = problem.diagnostics[0].message if isinstance(problem, GenrwError) else str(problem)
            raise Unbuildable(said) from None

    def _built(self, pattern: Pattern, match: TermMatch, env: Mapping[str, Any], made: dict[Any, Node]) -> Node:
        if isinstance(pattern, VarPattern):
            return match.values[pattern.name]
        if isinstance(pattern, NumberPattern):
            return shared(made, number_node(self.library, int(self._compiled(pattern.value)(env))))
        operands = tuple(self._built(o, match, env, made) for o in pattern.operands)
        name = self._operator_name(pattern, match)
        attributes = self._attributes(pattern, name, match, env, [o.type for o in operands])
        type_ = infer(self.library, name, attributes, [o.type for o in operands], match.context)
        return shared(made, Node(name, attributes, operands, type_))

    def _operator_name(self, pattern: OpPattern, match: TermMatch) -> str:
        for node in nodes(match.variant.left):
            if (node.op, node.family) == (pattern.op, pattern.family):
                return match.operators[id(node)].op
        return operator_name(pattern, self.library, match.names)

    def _attributes(
        self, pattern: OpPattern, name: str, match: TermMatch, env: Mapping[str, Any], operands: list[Type]
    ) -> Attributes:
        values: dict[str, Any] = {}
        left = list(nodes(match.variant.left))
        source = copied_from(left, pattern) if pattern.open_attributes else None
        if source is not None:
            values.update(match.operators[id(left[source])].attributes)
        operator = self.library.operator(name)
        for attribute in pattern.attributes:
            expr = attribute.value if attribute.value is not None else Name(attribute.name)
            values[attribute.name] = coerced(operator, attribute.name, _plain(self.value(expr, env)))
        return complete(operator, values, operands, match.context)

    def value(self, expr: Expr, env: Mapping[str, Any]) -> Any:
        """What an expression of the rule is; GenrwError or KeyError if it cannot be computed."""
        if isinstance(expr, Name) and expr.name not in env and expr.name in DTYPES:
            return expr.name
        return self._compiled(expr)(env)


def shared(made: dict[Any, Node], node: Node) -> Node:
    """The node, or an equal one that was made before: a term is a graph."""
    key = (node.op, repr(node.attributes), tuple(map(id, node.operands)))
    return made.setdefault(key, node)


def number_node(library: Library, value: int) -> Node:
    """An index constant."""
    return Node(library.boundary("number").name, (("value", value),), (), Type("index", "int64"))


def _plain(value: Any) -> Any:
    return value.node.type if isinstance(value, View) else value
