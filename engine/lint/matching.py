"""Does one left side match all that another one matches? Patterns matched against patterns.

The variables of the special pattern stand for themselves; those of the general one come to stand for parts of it.
Work is counted, since operands of commutative operators may match in either order: past a limit nothing matches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from genrw.engine.library.library import Library
from genrw.engine.library.sides import Direction
from genrw.engine.library.variants import pattern_operators
from genrw.grammar.expr_tree import Expr, Name
from genrw.grammar.rw_tree import AttributePattern, NumberPattern, OpPattern, Pattern, VarPattern

_STEPS = 2000


@dataclass(frozen=True)
class PatternMatch:
    """What the general pattern's variables stand for: operands, several operands, and what expressions call them."""

    operands: Mapping[str, Pattern]
    rests: Mapping[str, tuple[Pattern, ...]]
    names: Mapping[str, Expr]
    operators: Mapping[str, str]

    def with_operand(self, name: str, pattern: Pattern) -> PatternMatch | None:
        """With one more variable; None if it stands for something else already."""
        if name in self.operands:
            return self if self.operands[name] == pattern else None
        called = _called(pattern)
        names = {**self.names, name: called} if called is not None else self.names
        return PatternMatch({**self.operands, name: pattern}, self.rests, names, self.operators)

    def with_name(self, name: str, value: Expr) -> PatternMatch | None:
        """With one more name in expressions; None if it means something else already."""
        if name in self.names:
            return self if self.names[name] == value else None
        return PatternMatch(self.operands, self.rests, {**self.names, name: value}, self.operators)

    def with_rest(self, name: str, patterns: tuple[Pattern, ...]) -> PatternMatch:
        """With what all operands that are left stand for."""
        alone = patterns[0] if len(patterns) == 1 else None
        names = {**self.names, name: Name(alone.name)} if isinstance(alone, VarPattern) and alone.rest else self.names
        return PatternMatch(self.operands, {**self.rests, name: patterns}, names, self.operators)

    def with_operator(self, name: str, operator: str) -> PatternMatch | None:
        """With one more operator variable or member of a family; None if it is another one already."""
        if self.operators.get(name, operator) != operator:
            return None
        return PatternMatch(
            self.operands, self.rests, {**self.names, name: Name(operator)}, {**self.operators, name: operator}
        )


def _called(pattern: Pattern) -> Expr | None:
    """What expressions call a value of the special rule; None if it has no name there."""
    if isinstance(pattern, VarPattern):
        return Name(pattern.name)
    if isinstance(pattern, NumberPattern):
        return pattern.value
    return Name(pattern.binds) if pattern.binds is not None else None


class PatternMatcher:
    """Matches the left side of one direction against that of another."""

    def __init__(self, library: Library, general: Direction, special: Direction) -> None:
        self.library, self.general, self.special = library, general, special
        self.steps = _STEPS

    def matches(self) -> Iterator[PatternMatch]:
        """All ways in which the general left side matches the special one."""
        yield from self._pattern(self.general.left, self.special.left, PatternMatch({}, {}, {}, {}))

    def _pattern(self, general: Pattern, special: Pattern, so_far: PatternMatch) -> Iterator[PatternMatch]:
        self.steps -= 1
        if self.steps < 0 or (isinstance(special, VarPattern) and special.rest):
            return
        match general:
            case VarPattern(name):
                found = so_far.with_operand(name, special)
                yield from [found] if found is not None else []
            case NumberPattern(Name(name)) if isinstance(special, NumberPattern):
                found = so_far.with_name(name, special.value)
                yield from [found] if found is not None else []
            case NumberPattern():
                yield from [so_far] if general == special else []
            case OpPattern() if isinstance(special, OpPattern):
                yield from self._node(general, special, so_far)

    def _node(self, general: OpPattern, special: OpPattern, so_far: PatternMatch) -> Iterator[PatternMatch]:
        found = self._operator(general, special, so_far)
        if found is not None and general.binds is not None:
            found = found.with_operand(general.binds, special)
        if found is not None:
            found = self._attributes(general, special, found)
        if found is not None:
            for operands in self._orders(special):
                # Under an operator variable there is at least one operand.
                least = 1 if general.family is None and self.library.find(general.op) is None else 0
                if len(operands) >= least:
                    yield from self._operands(general.operands, operands, found)

    def _operator(self, general: OpPattern, special: OpPattern, so_far: PatternMatch) -> PatternMatch | None:
        mine = pattern_operators(general, self.general.rule, self.library)
        if not pattern_operators(special, self.special.rule, self.library) <= mine:
            return None
        if general.family is not None:
            member = special.family if special.family is not None else self._member(special.op)
            return (
                so_far
                if member is None or general.family in self.library.monoids
                else so_far.with_operator(general.family, member)
            )
        return so_far if general.op in mine and len(mine) == 1 else so_far.with_operator(general.op, special.op)

    def _member(self, name: str) -> str | None:
        found = self.library.find(name)
        return found[1] if found is not None else None

    def _attributes(self, general: OpPattern, special: OpPattern, so_far: PatternMatch) -> PatternMatch | None:
        """The match with the general node's attributes; None if it asks for more than the special one has."""
        given = {a.name: a for a in special.attributes}
        asked = {a.name for a in general.attributes}
        if not general.open_attributes and (special.open_attributes or not given.keys() <= asked):
            return None
        found: PatternMatch | None = so_far
        for attribute in general.attributes:
            found = self._attribute(attribute, given.get(attribute.name), found) if found is not None else None
        return found

    def _attribute(
        self, general: AttributePattern, special: AttributePattern | None, so_far: PatternMatch
    ) -> PatternMatch | None:
        value = None if special is None else special.value or Name(special.name)
        if general.value is not None and not isinstance(general.value, Name):
            return so_far if general.value == value else None
        name = general.value.name if isinstance(general.value, Name) else general.name
        # What the special rule does not name can be compared with nothing that it says.
        return so_far.with_name(name, value if value is not None else Name(f"{general.name} of {id(general)}"))

    def _orders(self, node: OpPattern) -> Sequence[tuple[Pattern, ...]]:
        found = self.library.find(node.op) if node.family is None else None
        swapped = found is not None and found[0].decl.commutative and len(node.operands) == 2
        return [node.operands, node.operands[::-1]] if swapped else [node.operands]

    def _operands(
        self, general: tuple[Pattern, ...], special: tuple[Pattern, ...], so_far: PatternMatch
    ) -> Iterator[PatternMatch]:
        if not general:
            yield from [so_far] if not special else []
            return
        first, *others = general
        if isinstance(first, VarPattern) and first.rest:
            yield so_far.with_rest(first.name, special)
        elif special:
            for found in self._pattern(first, special[0], so_far):
                yield from self._operands(tuple(others), special[1:], found)
