"""Rules as the checks look at them: one direction at a time, with the stages at which it runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from genrw.engine.language.expr_walk import substitute
from genrw.engine.library.library import Library
from genrw.engine.library.variants import nodes, pattern_operators
from genrw.grammar.expr_tree import Binary, Call, Expr
from genrw.grammar.rw_tree import LetDecl, OpPattern, Pattern, RuleDecl


@dataclass(frozen=True, eq=False)
class Direction:
    """A rule read in one of its directions. `number` counts directions in the order of the rules."""

    library: Library
    rule: RuleDecl
    number: int
    left: OpPattern
    right: Pattern

    @cached_property
    def stages(self) -> frozenset[str]:
        return frozenset(self.rule.stages)

    @cached_property
    def needs(self) -> tuple[frozenset[str], ...]:
        """For each node of the left side the operators that it may be, the root's first."""
        return tuple(pattern_operators(node, self.rule, self.library) for node in nodes(self.left))

    @cached_property
    def built(self) -> tuple[tuple[OpPattern, frozenset[str]], ...]:
        """The nodes of the right side with the operators that they may be."""
        return tuple((node, pattern_operators(node, self.rule, self.library)) for node in nodes(self.right))

    @cached_property
    def makes(self) -> frozenset[str]:
        """All operators of the right side."""
        return frozenset().union(*(operators for _, operators in self.built))


def directions(library: Library, rules: Iterable[RuleDecl]) -> Iterator[Direction]:
    """Every direction of the rules that rewrites an operator."""
    number = 0
    for rule in rules:
        sides = [(rule.left, rule.right)] + ([(rule.right, rule.left)] if rule.both_ways else [])
        for left, right in sides:
            if isinstance(left, OpPattern):
                yield Direction(library, rule, number, left, right)
                number += 1


def conditions(guard: Expr | None) -> Iterator[Expr]:
    """The parts of a conjunction, left to right; none where there is no guard."""
    if isinstance(guard, Binary) and guard.op == "and":
        yield from conditions(guard.left)
        yield from conditions(guard.right)
    elif guard is not None:
        yield guard


def opened(condition: Expr | None, lets: Mapping[str, LetDecl]) -> Iterator[Expr]:
    """The parts of a conjunction, those of the helpers that it calls too."""
    for part in conditions(condition):
        let = lets.get(part.function) if isinstance(part, Call) else None
        if isinstance(part, Call) and let is not None:
            yield from opened(substitute(let.body, dict(zip(let.parameters, part.args, strict=True))), lets)
        else:
            yield part
