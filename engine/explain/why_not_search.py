"""Why a rule does not apply in a program: the deepest match of its left side that there is, and what it fails at.

The left side is tried on every class of the saturated e-graph, node by node; what could be matched last before it failed
tells most. Where all of it matches, the guard's conditions are asked one by one, with the values that they see.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, Self

from genrw.engine.egraph.encode import TYPE, Spans, encode
from genrw.engine.egraph.guard_evaluation import View
from genrw.engine.egraph.stage import EGraphSnapshot
from genrw.engine.ir.dtypes import same_value
from genrw.engine.ir.enode import ENode
from genrw.engine.ir.nodes import Module
from genrw.engine.ir.types import Type
from genrw.engine.language.expr import free_names, member_uses
from genrw.engine.language.members import Members
from genrw.engine.library.arities import Arities, rest_counts
from genrw.engine.library.context import Record
from genrw.engine.library.infer import TypeProblem, infer
from genrw.engine.library.library import Library, Target
from genrw.engine.library.rewriting import Match, Matcher, alternatives, value_loops
from genrw.engine.library.sides import conditions
from genrw.engine.library.variants import Variant, leaves, nodes, pattern_operators, variants
from genrw.grammar.diagnostics import Diagnostic, GenrwError
from genrw.grammar.expr_tree import Call, Const, Expr, Name
from genrw.grammar.rw_tree import AttributePattern, Binding, NumberPattern, OpPattern, Pattern, RuleDecl, VarPattern
from genrw.grammar.source import Span

_STEPS = 200_000
"""How many nodes are tried at most."""
_CHOICES = 256
_WIDEST = 4
_ALL_OF_IT = 1 << 30
"""The depth of a match of all of a left side, guard included."""


@dataclass
class Failure:
    """Where matching ended: after how many steps, at which part of the rule, and why."""

    depth: int
    span: Span
    why: str


@dataclass(frozen=True)
class _Match(Match):
    """With the surroundings of what is matched, how many nodes are, and the first that is of those that rules replaced."""

    context: int | None = None
    depth: int = 0
    gone: tuple[OpPattern, int] | None = None

    def with_operator(self, name: str, operator: str) -> Self | None:
        """An operator variable is a name like others in guards and attributes."""
        return self.with_value(name, operator)


def why_not(library: Library, rule: RuleDecl, graph: EGraphSnapshot, module: Module) -> Diagnostic | None:
    """What keeps a rule from applying to a module, alone in a graph of watched rules; None if it applied.

    Whether it did is what the e-graph says, as everywhere. The search after a match only says why it did not.
    """
    if any(key.split("/")[0] == rule.name for key in graph.fired):
        return None
    search = _Search(library, rule, graph, module)
    operators = frozenset(
        name for side in (rule.left, rule.right) for n in nodes(side) for name in pattern_operators(n, rule, library)
    )
    counts = rest_counts(rule, library, Arities.up_to(_WIDEST), operators)
    for variant in variants(rule, library, counts):
        search.look(variant)
    best = search.best
    assert best is not None, "a left side has a root, at which it fails at the latest"
    return Diagnostic(best.why, best.span, severity="note")


class _Search(Matcher[_Match]):
    def __init__(self, library: Library, rule: RuleDecl, graph: EGraphSnapshot, module: Module) -> None:
        super().__init__(library)
        self.rule, self.graph = rule, graph
        self.types: dict[int, Type | None] = {
            graph.class_of[graph.ids[id(node)]]: node.type for node in module.nodes if id(node) in graph.ids
        }
        self.best: Failure | None = None
        self.steps = _STEPS

    def look(self, variant: Variant) -> None:
        """Look everywhere for what a variant matches, and note what the best match fails at."""
        for number in self.graph.classes:
            for match in self.matches(variant.left, number, _Match(), self.rule):
                if self._guard(variant, match):
                    self._too_late(variant, match)

    def _too_late(self, variant: Variant, match: _Match) -> None:
        """All matches and the guard holds, and still the rule did nothing."""
        if match.gone is None:
            return self._nothing_new(variant, match)
        pattern, number = match.gone
        keys = {self.graph.rules[rule].split("/")[0] for rule in self.graph.why.get(number, ())}
        by = [f"`{rule.name}`" for rule in self.library.rules if rule.name in keys and rule.replaces]
        why = f"this `{pattern.op}` is replaced{' by ' + ', '.join(by) if by else ''} before all of the rest is there"
        return self._fail(_ALL_OF_IT, pattern.op_span, why)

    def _nothing_new(self, variant: Variant, match: _Match) -> None:
        """All that is matched is there, and nothing came of it."""
        known = self.graph.facts.get(TYPE, {})
        asked = encode(variant, 0, 0, self.library, Spans(), "").typed
        names = (v for v in leaves(variant.left) if isinstance(v, VarPattern) and v.name in asked)
        untold = next((v for v in names if match.classes[v.name] not in known), None)
        if untold is None:
            why = "all of it matches, but the right side is what is there already"
            return self._fail(_ALL_OF_IT, variant.left.span, why)
        why = f"all of it matches, but the type of `{untold.name}` is asked, which no rule told that made it"
        return self._fail(_ALL_OF_IT, untold.span, why)

    def _fail(self, depth: int, span: Span, why: str) -> None:
        if self.best is None or depth > self.best.depth:
            self.best = Failure(depth, span, why)

    # ---- the left side

    def matches(self, pattern: Pattern, number: int, match: _Match, rule: RuleDecl) -> Iterator[_Match]:
        self.steps -= 1
        if self.steps >= 0:
            yield from super().matches(pattern, number, match, rule)

    def another_value(self, pattern: VarPattern, match: _Match) -> None:
        self._fail(match.depth, pattern.span, f"`{pattern.name}` stands for another value already")

    def no_operator(self, pattern: OpPattern, options: frozenset[str], number: int, match: _Match) -> None:
        wanted = f"`{pattern.op}`" if len(options) == 1 else f"operator of `{pattern.op}`"
        none = self._other_counts(pattern, options, wanted) or (
            f"there is no {wanted} anywhere in the program at this stage"
        )
        here = f"no {wanted} is here: there is {self._shown(number)}"
        self._fail(match.depth, pattern.op_span, here if match.depth else none)

    def _other_counts(self, pattern: OpPattern, options: frozenset[str], wanted: str) -> str | None:
        """What is said where the operator is there, but with other numbers of operands."""
        members = (node for found in self.graph.classes.values() for node in found)
        counts = sorted({len(node.operands) for node in members if node.op in options})
        if not counts:
            return None
        own = len(pattern.operands)
        return (
            f"there is no {wanted} of {own} operand{'' if own == 1 else 's'} in the program at this stage, "
            f"but of {' and '.join(map(str, counts))}"
        )

    def with_node(self, pattern: OpPattern, node: ENode, number: int, match: _Match) -> _Match:
        gone = match.gone or (None if node in self.graph.classes.get(number, ()) else (pattern, number))
        return replace(match, depth=match.depth + 1, context=node.attributes, gone=gone)

    def numbers(self, pattern: NumberPattern, number: int, match: _Match) -> Iterator[_Match]:
        constant = next((n.number for n in self.members(number) if n.number is not None), None)
        wanted = pattern.value
        if constant is None:
            self._fail(match.depth, pattern.span, f"a number is wanted here, and there is {self._shown(number)}")
        elif isinstance(wanted, Name):
            found = match.with_value(wanted.name, constant)
            yield from [found] if found is not None else []
        elif isinstance(wanted, Const) and wanted.value == constant:
            yield match
        else:
            self._fail(match.depth, pattern.span, f"another number is here: {constant}")

    def attributes(self, pattern: OpPattern, node: ENode, match: _Match) -> _Match | None:
        given = dict(self.graph.interner.attributes(node.attributes))
        asked = {a.name for a in pattern.attributes}
        found: _Match | None = match
        for attribute in pattern.attributes:
            if found is None:
                return None
            found = self._attribute(attribute, given.get(attribute.name), found)
        if found is None or pattern.open_attributes:
            return found
        operator = self.library.operator(node.op)
        context = self.graph.interner.context(node.attributes)
        for name, value in given.items():
            known = name in asked or name not in operator.defaults
            if not known and operator.has_default(name, value, context) is False:
                why = f"`{name}` is {_text(value)}, not its default: write `..` for any"
                self._fail(match.depth, pattern.op_span, why)
                return None
        return found

    def _attribute(self, attribute: AttributePattern, value: Any, match: _Match) -> _Match | None:
        wanted = attribute.value
        if wanted is None or isinstance(wanted, Name):
            name = attribute.name if wanted is None else wanted.name
            found = match.with_value(name, value)
            if found is None:
                self._fail(
                    match.depth, attribute.span, f"`{name}` is {_text(match.values[name])} already, here {_text(value)}"
                )
            return found
        try:
            env = {**self._context(match), **match.values}
            fits = same_value(self.library.scope.compile(wanted)(env), value)
        except (GenrwError, KeyError):
            return match
        if not fits:
            self._fail(match.depth, attribute.span, f"`{attribute.name}` is {_text(value)} here")
        return match if fits else None

    # ---- the guard

    def _guard(self, variant: Variant, match: _Match) -> bool:
        """Do all conditions hold, for some choice of the alternatives?"""
        env = self._environment(match)
        total = len(list(nodes(variant.left)))
        return any(self._holds(variant, {**env, **choice}, total) for choice in self._choices(variant, env))

    def _environment(self, match: _Match) -> dict[str, Any]:
        context = self._context(match)
        values = {name: self._value(number) for name, number in match.classes.items()}
        return {**context, **values, **match.values}

    def _context(self, match: _Match) -> Mapping[str, Any]:
        """What rules may ask about the surroundings of what was matched."""
        interner = self.graph.interner
        return interner.context(interner.attributes_id(0, ()) if match.context is None else match.context)

    def _value(self, number: int) -> View:
        """A class as guards see it."""
        facts = {name: known[number] for name, known in self.graph.facts.items() if number in known and name != TYPE}
        return View(self._type(number), facts)

    def _choices(self, variant: Variant, env: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        loops = value_loops(self.rule, variant.left)
        yield from islice(alternatives(loops, partial(self._loop, variant, env)), _CHOICES)

    def _loop(
        self, variant: Variant, env: Mapping[str, Any], binding: Binding, chosen: Mapping[str, Any]
    ) -> Sequence[Any]:
        """What a loop runs over, where others are at what was chosen."""
        depth, whole = len(list(nodes(variant.left))), {**env, **chosen}
        try:
            values: Sequence[Any] = self.library.scope.compile(binding.value)(
                {**whole, **self._computed(variant, whole)}
            )
        except (GenrwError, KeyError) as problem:
            self._fail(depth, binding.value.span, f"this cannot be told here: {_said(problem)}")
            return ()
        if not values:
            self._fail(depth, binding.value.span, f"there is nothing that `{binding.name}` could be")
        return values

    def _computed(self, variant: Variant, env: Mapping[str, Any]) -> dict[str, Any]:
        """The values of `with` that can be computed."""
        values: dict[str, Any] = {}
        for binding in variant.with_:
            try:
                values[binding.name] = self.library.scope.compile(binding.value)({**env, **values})
            except (GenrwError, KeyError):
                continue
        return values

    def _holds(self, variant: Variant, env: Mapping[str, Any], depth: int) -> bool:
        whole = {**env, **self._computed(variant, env)}
        for place, condition in enumerate(conditions(variant.guard), 1):
            seen = _seen(condition, whole)
            try:
                holds = self.library.scope.compile(condition)(whole)
            except (GenrwError, KeyError) as problem:
                self._fail(depth + place, condition.span, f"this cannot be told here: {_said(problem)}{seen}")
                return False
            if holds is not True and isinstance(condition, Call) and condition.function == "is_constant":
                found = _text(self.library.scope.compile(condition.args[0])(whole))
                self._fail(depth + place, condition.span, f"another number is here: {found}")
                return False
            if holds is not True:
                self._fail(depth + place, condition.span, f"this does not hold{seen}")
                return False
        return True

    # ---- classes

    def members(self, number: int) -> list[ENode]:
        return [*self.graph.classes.get(number, ()), *self.graph.replaced.get(number, ())]

    def _shown(self, number: int) -> str:
        """What a class holds, in words."""
        names = dict.fromkeys(f"`{n.op}`" if n.number is None else str(n.number) for n in self.members(number))
        return ", ".join(names) or "nothing"

    def _type(self, number: int) -> Type | None:
        if number not in self.types:
            self.types[number] = None
            told = self.graph.facts.get(TYPE, {}).get(number)
            if told is not None:
                self.types[number] = self.graph.interner.types[told]
                return self.types[number]
            known = (self._inferred(node) for node in self.members(number))
            self.types[number] = next((type_ for type_ in known if type_ is not None), None)
        return self.types[number]

    def _inferred(self, node: ENode) -> Type | None:
        if node.number is not None:
            return Type("index", "int64")
        operands = [self._type(o) for o in node.operands]
        if any(type_ is None for type_ in operands):
            return None
        interner = self.graph.interner
        given = interner.attributes(node.attributes)
        try:
            return infer(
                self.library, node.op, given, [t for t in operands if t is not None], interner.context(node.attributes)
            )
        except (TypeProblem, GenrwError):
            return None


def _said(problem: GenrwError | KeyError) -> str:
    return problem.diagnostics[0].message if isinstance(problem, GenrwError) else "it asks for what is not known"


def _seen(condition: Expr, env: Mapping[str, Any]) -> str:
    """The values that a condition sees."""
    members = sorted(member_uses(condition))
    told = [f"{name}.{member} is {_text(_member_of(env.get(name), member))}" for name, member in members]
    bare = [name for name in sorted(free_names(condition) - {name for name, _ in members}) if name in env]
    told += [f"{name} is {_text(env[name])}" for name in bare if not isinstance(env[name], View | Record | Members)]
    return f": {', '.join(told)}" if told else ""


def _member_of(value: Any, member: str) -> Any:
    try:
        return value.member(member)
    except (AttributeError, KeyError, GenrwError):
        return "unknown"


def _text(value: Any) -> str:
    if isinstance(value, Target):
        return value.name
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_text, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)
