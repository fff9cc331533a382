"""What Python answers for a rule: whether its guard holds, and the attributes, numbers and types it computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from genrw.engine.egraph.too_large import not_allowed
from genrw.engine.ir.dtypes import DTYPES, same_value
from genrw.engine.ir.interner import CONTEXT_SHIFT, Interner, attributes_key
from genrw.engine.ir.nodes import Attributes
from genrw.engine.ir.types import EFFECT, Type
from genrw.engine.language.expr import Evaluator, free_names
from genrw.engine.language.functions import describe
from genrw.engine.library.context import CONTEXT_NAMES
from genrw.engine.library.infer import TypeProblem, infer
from genrw.engine.library.library import Library
from genrw.engine.library.rewriting import Names, coerced, copied_from, member_of, operator_name
from genrw.engine.library.sides import conditions
from genrw.engine.library.variants import Variant, leaves, nodes
from genrw.engine.programs.build import complete
from genrw.grammar.diagnostics import GenrwError, error
from genrw.grammar.expr_tree import Expr, Name
from genrw.grammar.rw_tree import Binding, NumberPattern, OpPattern, Pattern, RuleDecl, VarPattern

_MOST_ALTERNATIVES = 1 << 14
"""How many combinations of its `for` variables a rule may have for one match."""


@dataclass
class RuleUse:
    """How often a rule's guard let a match, or an alternative of one, pass, and how often it refused."""

    taken: int = 0
    refused: int = 0

    def count(self, holds: bool) -> bool:
        """Note one decision of the guard."""
        self.taken += holds
        self.refused += not holds
        return holds


@dataclass(frozen=True)
class GuardQuery:
    """What one variant of a rule asks of Python.

    `inputs` are the numbers that a demand carries, by kind and name; `left` the nodes of the left side; `constraints`
    the attributes (of a node's place) that must have a value; `sources` the attribute that each variable stands for;
    `bound` the other variables that expressions may name; `outputs` what an answer holds, by kind.
    """

    library: Library
    variant: Variant
    inputs: tuple[tuple[str, str], ...]
    left: tuple[OpPattern, ...]
    loops: tuple[Binding, ...]
    constraints: tuple[tuple[int, str, Expr], ...]
    sources: Mapping[str, tuple[int, str]]
    bound: frozenset[str]
    outputs: tuple[tuple[str, Any], ...]


def require_list(values: Any, rule: RuleDecl, binding: Binding) -> None:
    """GenrwError if what a `for` runs over is no list."""
    if not isinstance(values, tuple):
        message = f"`for` of rule `{rule.name}` runs over {describe(values)}, not over a list"
        raise error(message, binding.value.span, "write brackets around what is one value")


class GuardEvaluator:
    """Answers the demands of one variant: evaluates guard and computed parts for the numbers given."""

    def __init__(self, demand: GuardQuery) -> None:
        self.library = demand.library
        self.demand = demand
        self.variant = demand.variant
        early, late = self._split_guard()
        self.early = [self._compile(g) for g in early]
        self.guard = [self._compile(g) for g in late]
        self.computed = {b.name: self._compile(b.value) for b in self.variant.with_}
        built = [n for n in nodes(self.variant.right) if n.binds is not None]
        self.named = frozenset(str(n.binds) for n in built)
        self.loops = [(b, self._compile(b.value)) for b in demand.loops]
        self.constraints = [(index, name, self._compile(value)) for index, name, value in demand.constraints]
        self.values = {p.name for p in leaves(self.variant.left) if isinstance(p, VarPattern)} | {
            n.binds for n in demand.left if n.binds
        }
        self.computed |= {str(n.binds): self._viewer(n) for n in built}
        self.outputs = [self._output(kind, item) for kind, item in demand.outputs]

    def _compile(self, expr: Expr) -> Evaluator:
        return self.library.scope.compile(expr)

    def _split_guard(self) -> tuple[list[Expr], list[Expr]]:
        """The guard's conditions that no `for` variable reaches, to be asked once, and the others."""
        varying = {b.name for b in self.demand.loops}
        for binding in self.variant.with_:
            if free_names(binding.value) & varying:
                varying.add(binding.name)
        late = list(conditions(self.variant.guard))
        early: list[Expr] = []
        while late and not free_names(late[0]) & varying:
            early.append(late.pop(0))
        return early, late

    def _holds(self, conditions: Sequence[Evaluator], env: Mapping[str, Any]) -> bool:
        for condition in conditions:
            holds = condition(env)
            if holds is not True and holds is not False:
                guard = self.variant.guard
                raise error(
                    f"the guard of `{self.variant.rule.name}` is {holds!r}, not true or false",
                    guard.span if guard is not None else None,
                    "compare it: `… > 0`",
                )
            if not holds:
                return False
        return True

    def answer(self, numbers: tuple[int, ...], interner: Interner, use: RuleUse) -> list[tuple[int, ...]]:
        """All answers to one demand: one for each alternative whose guard holds, which `use` counts."""
        env = self._environment(numbers, interner)
        for index, name, value in self.constraints:
            if not same_value(env[f"a:{index}"].get(name, _MISSING), value(env)):
                return []
        if self.early and not self._holds(self.early, Names(env, self.computed)):
            use.count(False)
            return []
        answers = []
        for choice in self._choices(env):
            local = {**env, **choice}
            if not use.count(self._compute(local)):
                continue
            answers.append(tuple(output(local, interner) for output in self.outputs))
        return answers

    def _choices(self, env: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Every combination of the `for` variables; a later one may depend on an earlier."""
        choices: list[dict[str, Any]] = [{}]
        for binding, source in self.loops:
            found: list[dict[str, Any]] = []
            for choice in choices:
                values = source(Names({**env, **choice}, self.computed))
                require_list(values, self.variant.rule, binding)
                self._check_alternatives(values, len(found))
                found += [{**choice, binding.name: value} for value in values]
            choices = found
        return choices

    def _check_alternatives(self, values: Sequence[Any], others: int) -> None:
        """GenrwError if what a `for` runs over makes too many combinations with the others."""
        rule = self.variant.rule
        if others + len(values) > _MOST_ALTERNATIVES:
            raise error(
                f"the alternatives of rule `{rule.name}` are more than {_MOST_ALTERNATIVES}",
                rule.for_[0].value.span,
                "narrow what `for` runs over",
            )

    def _compute(self, env: dict[str, Any]) -> bool:
        """Evaluate guard and `with`; values computed are added to `env`. False if the guard refuses."""
        lazy = Names(env, self.computed)
        if not self._holds(self.guard, lazy):
            return False
        env.update((name, lazy[name]) for name in self.computed)
        return True

    def _environment(self, numbers: tuple[int, ...], interner: Interner) -> dict[str, Any]:
        env: dict[str, Any] = {"interner": interner}
        views: dict[str, dict[str, int]] = {}
        for (kind, name), number in zip(self.demand.inputs, numbers, strict=True):
            if kind == "attributes":
                env[f"a:{name}"] = dict(interner.attributes(number))
                if "target" not in env:
                    env.update(interner.context(number))
                    env["context number"] = number
            elif kind == "number":
                env[name] = number
            elif kind == "operator":
                env[name] = self._member(name, self.library.names[number])
                env[f"operator {name}"] = self.library.names[number]
            else:
                views.setdefault(name, {})[kind] = number
        for name, facts in views.items():
            env[name] = View(interner.types[facts["ty"]] if "ty" in facts else None, facts)
        for name, (index, attribute) in self.demand.sources.items():
            attributes = env.get(f"a:{index}")
            if attributes is not None and attribute in attributes:
                env[name] = attributes[attribute]
        return env

    def _member(self, variable: str, operator: str) -> str:
        """What an operator variable stands for in expressions."""
        pattern = next((n for n in self.demand.left if n.family == variable), None)
        return operator if pattern is None else member_of(self.library, pattern, operator)

    # ---- outputs

    def _output(self, kind: str, item: Any) -> Callable[[dict[str, Any], Interner], int]:
        if kind == "number":
            value = self._compile(item)
            return lambda env, interner: _index(value(env), item)  # noqa: ARG005
        if kind == "operator":
            return lambda env, interner: self.library.names.index(operator_name(item, self.library, env))  # noqa: ARG005
        if kind == "type":
            find = self._type_finder(item)
            return lambda env, interner: interner.type_id(find(env, interner))
        make = self._attributes_maker(item)
        return lambda env, interner: interner.attributes_id(interner.place(env["context number"]), make(env))

    def _attributes_maker(self, pattern: OpPattern) -> Callable[[Mapping[str, Any]], Attributes]:
        given = [(a.name, self._value(a.value if a.value is not None else Name(a.name))) for a in pattern.attributes]
        source = copied_from(self.demand.left, pattern) if pattern.open_attributes else None

        def make(env: Mapping[str, Any]) -> Attributes:
            values: dict[str, Any] = dict(env[f"a:{source}"]) if source is not None else {}
            values.update((name, _plain(value(env))) for name, value in given)
            operator = self.library.operator(operator_name(pattern, self.library, env))
            values = {k: coerced(operator, k, v) for k, v in values.items()}
            try:
                return complete(operator, values, (), env)
            except GenrwError as problem:
                raise error(problem.diagnostics[0].message, pattern.span, problem.diagnostics[0].remedy) from None

        return make

    def _value(self, expr: Expr) -> Evaluator:
        """An attribute's value in a template; a name must stand for something, a word is written in quotes."""
        unknown = sorted(name for name in free_names(expr) if not self._is_known(name))
        if unknown:
            raise error(f"unknown name `{unknown[0]}`", expr.span, f'a word is written in quotes: "{unknown[0]}"')
        return self._compile(expr)

    def _is_known(self, name: str) -> bool:
        return (
            name in self.demand.sources
            or name in self.demand.bound
            or name in CONTEXT_NAMES
            or name in self.computed
            or name in self.named
            or name in {b.name for b, _ in self.loops}
            or name in self.values
            or name in DTYPES
        )

    def _viewer(self, pattern: OpPattern) -> Evaluator:
        """What gives a part of the right side as expressions see it."""
        find = self._type_finder(pattern)
        return lambda env: View(find(env, env["interner"]), {})  # type: ignore[arg-type]

    def _type_finder(self, pattern: Pattern) -> Callable[[Mapping[str, Any], Interner], Type]:
        """What gives the type of a template's value."""
        if isinstance(pattern, VarPattern):
            return lambda env, interner: _type_of(env[pattern.name])  # noqa: ARG005
        if isinstance(pattern, NumberPattern):
            return lambda env, interner: _NUMBER  # noqa: ARG005
        if gives_effect(pattern, self.library):
            return lambda env, interner: EFFECT  # noqa: ARG005
        make, below = self._attributes_maker(pattern), [self._type_finder(o) for o in pattern.operands]

        def find(env: Mapping[str, Any], interner: Interner) -> Type:
            name, attributes = operator_name(pattern, self.library, env), make(env)
            operands = tuple([operand(env, interner) for operand in below])
            key = (env["context number"] >> CONTEXT_SHIFT, name, attributes_key(attributes), operands)
            if key not in interner.inferred:
                interner.inferred[key] = self._infer(name, attributes, operands, env, pattern)
            return interner.inferred[key]

        return find

    def _infer(
        self, name: str, attributes: Attributes, operands: Sequence[Type], env: Mapping[str, Any], pattern: OpPattern
    ) -> Type:
        try:
            return infer(self.library, name, attributes, operands, env)
        except TypeProblem as problem:
            raise not_allowed(self.variant.rule.name, name, problem, pattern.span, None) from None


def gives_effect(pattern: OpPattern, library: Library) -> bool:
    """Has a template's value no type but that of effects, whatever its operands are?"""
    found = library.find(pattern.op) if pattern.family is None else None
    return found is not None and found[0].result_sort == "effect"


_MISSING = object()
_NUMBER = Type("index", "int64")


class View:
    """A matched value as expressions see it: its type's members and its facts. KeyError for what it has not."""

    __slots__ = ("facts", "type")

    def __init__(self, type_: Type | None, facts: Mapping[str, int]) -> None:
        self.type, self.facts = type_, facts

    def member(self, name: str) -> object:
        if name in self.facts and name != "ty":
            return self.facts[name]
        if self.type is None:
            raise KeyError(name)
        return self.type.member(name)


def _type_of(value: Any) -> Type:
    """The type of a matched value, as far as it is known."""
    return value.type if isinstance(value, View) and value.type is not None else Type("tensor")


def _index(value: Any, expr: Expr) -> int:
    """A computed index constant, or fact of an index, as the e-graph holds it; truth values are 0 and 1."""
    if not isinstance(value, int):
        raise error(
            f"an index is an integer, not {value!r}", expr.span, "divide by `//`, and guard against other values"
        )
    if not -(1 << 63) <= value < 1 << 63:
        raise error(f"an index has 64 bits, too few for {value}", expr.span, "guard against such numbers")
    return int(value)


def _plain(value: Any) -> Any:
    return value.type if isinstance(value, View) else value
