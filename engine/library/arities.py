"""How many operands the terms of a stage can have.

Most operators have a fixed number of operands. Of the others, only the numbers count that programs have and that rules
make of them: a rule is spelled out for each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from genrw.engine.ir.nodes import Module
from genrw.engine.library.library import Library, Operator
from genrw.engine.library.variants import directions, nodes, pattern_operators, rest_name, rest_owner
from genrw.grammar.expr_tree import Name
from genrw.grammar.rw_tree import OpPattern, Pattern, RuleDecl, VarPattern

NARROW = 4
"""Operands up to which terms and rules have one ruleset."""
_SHARED = 2
"""Up to so many operands, programs share engines, whatever numbers they have."""


@dataclass(frozen=True)
class Arities:
    """The numbers of operands that terms can have: of operators that take any number, those in `found`, by name, or those
    in `others` where the name is not there."""

    found: Mapping[str, frozenset[int]] = field(default_factory=dict)
    others: frozenset[int] = frozenset()

    @classmethod
    def up_to(cls, most: int) -> Arities:
        """Any number up to `most`."""
        return cls(others=frozenset(range(most + 1)))

    @cached_property
    def key(self) -> frozenset[tuple[str, frozenset[int]]]:
        """What tells them apart."""
        return frozenset(self.found.items())

    def of(self, name: str, operator: Operator | None) -> frozenset[int]:
        """The numbers of operands of an operator."""
        if operator is None:
            return self.found.get(name, self.others)
        if operator.variadic is None:
            return frozenset({len(operator.fixed)})
        return frozenset(n for n in self.found.get(name, self.others) if n >= len(operator.fixed))

    def all(self, library: Library, operators: Iterable[str]) -> frozenset[int]:
        """The numbers of operands of all terms of operators."""
        return frozenset().union(*(self.of(name, declared(library, name)) for name in operators))


def declared(library: Library, name: str) -> Operator | None:
    """The operator of a name, None if there is none."""
    found = library.find(name)
    return found[0] if found is not None else None


def program_arities(modules: Iterable[Module], library: Library) -> Arities:
    """The numbers of operands that programs have of operators that take any number."""
    pairs = {(node.op, len(node.operands)) for module in modules for node in module.nodes}
    found: dict[str, set[int]] = {}
    for name, count in pairs:
        operator = declared(library, name)
        if _takes_any(operator):
            found.setdefault(name, set()).add(count)
    return Arities({name: frozenset(counts) for name, counts in sorted(found.items())})


def term_arities(library: Library, rules: Iterable[RuleDecl], present: Arities) -> Arities:
    """The numbers of operands that terms can have where rules act on programs that have those `present`."""
    makers = [maker for rule in rules for maker in library.of_rule(rule, _makers)]
    found = {name: set(counts) | _shared(name, counts, library) for name, counts in present.found.items()}
    most = _most(makers, found)
    size = -1
    while size < (size := sum(map(len, found.values()))):
        for maker in makers:
            for name, count in list(_made(library, maker, found)):
                if count <= most:
                    found.setdefault(name, set()).add(count)
    return Arities({name: frozenset(counts) for name, counts in sorted(found.items())})


def rest_counts(
    rule: RuleDecl, library: Library, arities: Arities, operators: frozenset[str]
) -> tuple[tuple[int, ...], ...]:
    """For each direction of a rule, how many operands its rest variable can stand for; 0 where it has none.

    `arities` are the numbers of operands that terms have, `operators` those that can appear.
    """
    rests = library.of_rule(rule, _rests)
    return tuple((0,) if rest is None else rest.counts(library, arities, operators) for rest in rests)


@dataclass(frozen=True)
class _Rest:
    """What the rest variable of a left side is an operand of: which operators, beside how many other operands, and
    whether a class names them."""

    owners: frozenset[str]
    beside: int
    is_class: bool

    @classmethod
    def of(cls, left: Pattern, rule: RuleDecl, library: Library) -> _Rest | None:
        """Of a left side; None if it has no rest variable."""
        rest = rest_name(left)
        if rest is None:
            return None
        owner = rest_owner(left, rest)
        is_class = any(b.name == owner.op and isinstance(b.value, Name) for b in rule.for_)
        return cls(pattern_operators(owner, rule, library), len(owner.operands) - 1, is_class)

    def counts(self, library: Library, arities: Arities, operators: frozenset[str]) -> tuple[int, ...]:
        """How many operands it can stand for: what its operators take."""
        counts = arities.all(library, self.owners & operators if self.is_class else self.owners)
        return tuple(sorted(n - self.beside for n in counts if n - self.beside >= self.is_class))


def _rests(rule: RuleDecl, library: Library) -> list[_Rest | None]:
    """The rest variable of each direction of a rule."""
    return [_Rest.of(left, rule, library) for _, left, _ in directions(rule)]


def _shared(name: str, counts: Iterable[int], library: Library) -> set[int]:
    """The numbers of operands that count with some, so that programs share engines: with few operands, all of few."""
    operator = declared(library, name)
    least = len(operator.fixed) if operator is not None else 0
    few = [n for n in counts if n <= NARROW]
    return set(range(least, max(_SHARED, _power_of_two(max(few))) + 1)) if few else set()


def _makers(rule: RuleDecl, library: Library) -> list[_Maker]:
    """What each direction of a rule says of numbers of operands."""
    return [_Maker.of(rule, left, right, library) for _, left, right in directions(rule)]


@dataclass(frozen=True)
class _Maker:
    """One direction of a rule: how many operands a node of its left side has at most; the operators that the rest
    variable is an operand of, if there is one, and how many operands they have beside it; and what the right side makes:
    operators that take any number of operands, how many these are in the rule, and how many of them stand for one of each
    rest operand."""

    most: int
    owners: frozenset[str]
    beside: int
    made: tuple[tuple[str, int, int], ...]

    @classmethod
    def of(cls, rule: RuleDecl, left: Pattern, right: Pattern, library: Library) -> _Maker:
        """What a direction of a rule, from its left to its right side, says of numbers of operands."""
        rest = rest_name(left)
        owner = rest_owner(left, rest) if rest is not None else None
        return cls(
            max((len(node.operands) for node in nodes(left)), default=0),
            pattern_operators(owner, rule, library) if owner is not None else frozenset(),
            len(owner.operands) - 1 if owner is not None else 0,
            tuple(
                (name, len(node.operands), sum(_is_spread(operand) for operand in node.operands))
                for node in nodes(right)
                for name in sorted(pattern_operators(node, rule, library))
                if _takes_any(declared(library, name))
            ),
        )


def _takes_any(operator: Operator | None) -> bool:
    """Does an operator take any number of operands?"""
    return operator is None or operator.variadic is not None


def _most(makers: Iterable[_Maker], found: Mapping[str, set[int]]) -> int:
    """How many operands terms may have that rules make longer and longer."""
    matched = (count for maker in makers for name in maker.owners for count in found.get(name, ()))
    return _power_of_two(max([0, *(maker.most for maker in makers), *matched]))


def _power_of_two(number: int) -> int:
    """The next power of two that is no smaller; 0 for 0."""
    return 1 << (number - 1).bit_length() if number > 0 else 0


def _made(library: Library, maker: _Maker, found: Mapping[str, set[int]]) -> Iterator[tuple[str, int]]:
    """The operators that take any number of operands and that a rule makes, with the numbers that they have."""
    counts = {0}
    if maker.owners:
        known = Arities({name: frozenset(numbers) for name, numbers in found.items()})
        matched = (known.of(name, declared(library, name)) for name in maker.owners)
        counts = {n - maker.beside for n in frozenset().union(*matched) if n >= maker.beside}
    for name, count, spread in maker.made:
        yield from ((name, count + spread * (n - 1)) for n in sorted(counts))


def _is_spread(operand: Pattern) -> bool:
    """Does a template's operand stand for one of each rest operand?"""
    return isinstance(operand, (VarPattern, OpPattern)) and operand.rest
