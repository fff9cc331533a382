"""What all have in common that match left sides, ask guards and build right sides.

What patterns are matched against differs: the classes of an e-graph, terms of symbols, instances of a rule. What names
stand for, which alternatives a rule has and what its templates copy does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Self, TypeVar

from genrw.engine.ir.dtypes import same_value
from genrw.engine.library.library import Library, Operator
from genrw.engine.library.variants import nodes, pattern_operators
from genrw.grammar.rw_tree import Binding, NumberPattern, OpPattern, Pattern, RuleDecl, VarPattern

# ---- what names stand for


class Names(dict[str, Any]):
    """An environment in which some names are computed when first asked for."""

    __slots__ = ("_computed",)

    def __init__(self, env: Mapping[str, Any], computed: Mapping[str, Callable[[Any], Any]]) -> None:
        super().__init__(env)
        self._computed = computed

    def __missing__(self, name: str) -> Any:
        evaluate = self._computed.get(name)
        if evaluate is None:
            raise KeyError(name)
        self[name] = value = evaluate(self)
        return value

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self._computed


def value_loops(rule: RuleDecl, *sides: Pattern) -> list[Binding]:
    """The bindings of `for` that run over values, not over the operators of some sides."""
    used = {node.op for side in sides for node in nodes(side)}
    return [binding for binding in rule.for_ if binding.name not in used]


def alternatives(
    loops: Sequence[Binding], values: Callable[[Binding, Mapping[str, Any]], Iterable[Any]]
) -> Iterator[dict[str, Any]]:
    """All combinations of what loops run over; what a later one runs over may depend on an earlier one."""

    def choose(position: int, chosen: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if position == len(loops):
            yield chosen
            return
        binding = loops[position]
        for value in values(binding, chosen):
            yield from choose(position + 1, {**chosen, binding.name: value})

    return choose(0, {})


# ---- matching


@dataclass(frozen=True)
class Match:
    """What names stand for so far: variables for classes, other names for values; and the nodes that are matched."""

    classes: Mapping[str, int] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    operators: Mapping[str, str] = field(default_factory=dict)
    """The members of families and the operators of classes that are matched."""
    matched: tuple[Any, ...] = ()

    def with_class(self, name: str, number: int) -> Self | None:
        """With one more variable; None if it stands for another class already."""
        known = self.classes.get(name, number) == number
        return replace(self, classes={**self.classes, name: number}) if known else None

    def with_value(self, name: str, value: Any) -> Self | None:
        """With one more name; None if it is another value already."""
        known = name not in self.values or same_value(self.values[name], value)
        return replace(self, values={**self.values, name: value}) if known else None

    def with_operator(self, name: str, operator: str) -> Self | None:
        """With one more operator variable; None if it is another operator already."""
        known = self.operators.get(name, operator) == operator
        return replace(self, operators={**self.operators, name: operator}) if known else None


M = TypeVar("M", bound=Match)


class Matcher(Generic[M]):
    """Matches patterns against classes of equal nodes. An adapter says what classes hold, and how attributes compare."""

    def __init__(self, library: Library) -> None:
        self.library = library

    def members(self, number: int) -> Iterable[Any]:
        """The nodes of a class; each has an operator `op`, `attributes`, and the classes of its `operands`."""
        raise NotImplementedError

    def numbers(self, pattern: NumberPattern, number: int, match: M) -> Iterator[M]:
        """The matches of a number."""
        raise NotImplementedError

    def attributes(self, pattern: OpPattern, node: Any, match: M) -> M | None:
        """The match with a node's attributes; None if they are not what the pattern asks for."""
        raise NotImplementedError

    def another_value(self, pattern: VarPattern, match: M) -> None:
        """Called where a variable stands for another class already."""

    def no_operator(self, pattern: OpPattern, options: frozenset[str], number: int, match: M) -> None:
        """Called where a class has no operator that a pattern could be."""

    def matches(self, pattern: Pattern, number: int, match: M, rule: RuleDecl) -> Iterator[M]:
        """All ways in which a class matches a pattern of a rule."""
        if isinstance(pattern, NumberPattern):
            yield from self.numbers(pattern, number, match)
        elif isinstance(pattern, OpPattern):
            yield from self._nodes(pattern, number, match, rule)
        elif (found := match.with_class(pattern.name, number)) is not None:
            yield found
        else:
            self.another_value(pattern, match)

    def _nodes(self, pattern: OpPattern, number: int, match: M, rule: RuleDecl) -> Iterator[M]:
        options = pattern_operators(pattern, rule, self.library)
        is_open = len(options) > 1 or (pattern.family is not None and pattern.family not in self.library.monoids)
        fitting = 0
        for node in self.members(number):
            if node.op in options and len(node.operands) == len(pattern.operands):
                fitting += 1
                found = self._node(pattern, node, number, match, is_open)
                if found is not None:
                    yield from self._operands(pattern.operands, node.operands, found, rule)
        if not fitting:
            self.no_operator(pattern, options, number, match)

    def _node(self, pattern: OpPattern, node: Any, number: int, match: M, is_open: bool) -> M | None:
        found = self.attributes(pattern, node, self.with_node(pattern, node, number, match))
        if found is not None and pattern.binds is not None:
            found = found.with_class(pattern.binds, number)
        if found is not None and is_open:
            found = found.with_operator(pattern.family or pattern.op, member_of(self.library, pattern, node.op))
        return found

    def with_node(self, pattern: OpPattern, node: Any, number: int, match: M) -> M:  # noqa: ARG002
        """The match with one more node."""
        return replace(match, matched=(*match.matched, node))

    def _operands(self, patterns: Sequence[Pattern], numbers: Sequence[int], match: M, rule: RuleDecl) -> Iterator[M]:
        if not patterns:
            yield match
            return
        for found in self.matches(patterns[0], numbers[0], match, rule):
            yield from self._operands(patterns[1:], numbers[1:], found, rule)


def member_of(library: Library, pattern: OpPattern, name: str) -> str:
    """What a pattern's operator variable stands for where it matches: the member of a family, or an operator's name."""
    found = library.find(name) if pattern.family is not None else None
    return found[1] if found is not None and found[1] is not None else name


# ---- building


def copied_from(left: Sequence[OpPattern], pattern: OpPattern) -> int | None:
    """The place of the matched node whose attributes `..` in a template stands for."""
    return next((i for i, n in enumerate(left) if (n.op, n.family) == (pattern.op, pattern.family)), None)


def taken_over(left: Sequence[OpPattern], pattern: OpPattern) -> int | None:
    """The place of the matched node whose attributes a template takes over unchanged, if it says just that."""
    return copied_from(left, pattern) if pattern.open_attributes and not pattern.attributes else None


def operator_name(pattern: OpPattern, library: Library, names: Mapping[str, Any]) -> str:
    """The operator that a template makes: names have `operator x` for an operator variable, a family's member by its name."""
    if pattern.family is None:
        return str(names.get(f"operator {pattern.op}", pattern.op))
    member = pattern.family if pattern.family in library.monoids else names[pattern.family]
    return pattern.op.replace("{}", str(member))


def coerced(operator: Operator, name: str, value: Any) -> Any:
    """Numbers for float attributes as floats, so that equal attributes are equal text."""
    decl = operator.attributes.get(name)
    if decl is not None and decl.type == "float" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value
