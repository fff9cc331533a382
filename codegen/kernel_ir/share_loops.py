"""Loops over the elements that a lane holds at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

from genrw.codegen.kernel_ir.branching import Branching
from genrw.codegen.kernel_ir.expressions import Expressions, monoid_of, taken
from genrw.codegen.kernel_ir.keeping import is_kept, may_inline
from genrw.codegen.kernel_ir.kernel import (
    Accumulate,
    Assign,
    Declare,
    Effect,
    Expression,
    IfWithin,
    Let,
    Loop,
    Statement,
    Use,
    Variable,
    Walk,
)
from genrw.codegen.kernel_ir.pipelining import reads_argument
from genrw.codegen.kernel_ir.placement import Placed, Placement
from genrw.codegen.kernel_ir.variables import Variables
from genrw.engine.ir.nodes import Node
from genrw.engine.library.library import Library

Fold = tuple[Placed, Variable]
"""A fold that is made element by element, and its accumulator."""


@dataclass(frozen=True)
class Masked:
    """An array that differs from another one, `source`, at some steps of a loop only: those from `first` on, before `end`."""

    source: Placed
    step: Node
    first: Expression | None
    end: Expression | None


class ShareLoops:
    """Writes the share loops of a kernel. `masked` are arrays that mostly are what others are, by the identities of their items."""

    def __init__(
        self,
        library: Library,
        placement: Placement,
        variables: Variables,
        expressions: Expressions,
        branching: Branching,
    ) -> None:
        self.library, self.placement = library, placement
        self.variables, self.expressions, self.branching = variables, expressions, branching
        self.masked: dict[int, Masked] = {}

    def loops(self, wide: Sequence[Placed], folds: Sequence[Fold]) -> Iterator[Statement]:
        """The loops for what is computed element by element at a level: one for each number of elements."""
        for size in dict.fromkeys(map(self._share_of, [*wide, *(fold for fold, _ in folds)])):
            beside = [p for p in wide if self._share_of(p) == size]
            folded = [f for f in folds if self._share_of(f[0]) == size]
            costly = [p for p in beside if not p.cheap]
            if costly and not folded and all(id(p) in self.masked for p in costly):
                for item in costly:
                    yield from self._masked(item, size)
            elif folded or costly:
                yield from self._loop(beside, folded, size)

    def _masked(self, item: Placed, size: int) -> Iterator[Statement]:
        """An array as another one, and its own loop where it differs."""
        mask, variable = self.masked[id(item)], self.variables.of(item.node)
        value = self.expressions.apply(item, inside=True, result=variable)
        loop = Loop(Walk.SHARE, size, 0, (*self._cheap_of(item), Assign(value, variable)))
        yield Let(Use(self.variables.of(mask.source.node), mask.source.node), variable, constant=False)
        yield IfWithin(Use(self.variables.of(mask.step), mask.step), mask.first, mask.end, (loop,))

    def _cheap_of(self, item: Placed) -> list[Statement]:
        return [self._element(p) for p in self._with_cheap([item]) if p is not item]

    def _share_of(self, item: Placed) -> int:
        """How many elements of a share an item takes or gives; the kernel's share where one value stands for all."""
        return item.node.type.size or max((o.node.type.size for o in item.operands), default=0) or self.placement.share

    def _loop(self, wide: Sequence[Placed], folds: Sequence[Fold], size: int) -> Iterator[Statement]:
        """One loop; arrays that are needed elsewhere are declared before it. What is loaded is loaded in a loop of its own where a
        load would wait behind a branch."""
        early = self._before_branches(wide, folds)
        made = {id(p) for p in early}
        self.expressions.handed_on |= {id(p) for p in early if self._outlives(p, made)}
        handed_on = self.expressions.handed_on
        yield from (Declare(self.variables.of(p.node)) for p in wide if is_kept(p, handed_on))
        folded = (fold.operands[0] for fold, _ in folds)
        wanted = [*(p for p in wide if not p.cheap), *(p for p in folded if id(p) not in handed_on)]
        if early:
            yield Loop(Walk.SHARE, size, 0, tuple(map(self._element, self._with_cheap(early))))
            wanted = [p for p in wanted if id(p) not in made]
        body = [self._element(item) for item in self._with_cheap(wanted)]
        for fold, accumulator in folds:
            value = self.expressions.operand(fold.operands[0], inside=True)
            body.append(Accumulate(value, accumulator, monoid_of(fold.node, self.library), element=True))
        yield Loop(Walk.SHARE, size, 0, tuple(body))

    def _before_branches(self, wide: Sequence[Placed], folds: Sequence[Fold]) -> list[Placed]:
        """The loads from arguments in a loop that has branches, and what they are made of there. A load that is itself made of
        what has branches comes behind them."""
        branching = {id(p) for p in wide if p.node in self.branching}
        if not branching and not any(self.branching.folds(monoid_of(fold.node, self.library)) for fold, _ in folds):
            return []
        inside = {id(p) for p in wide}
        early: set[int] = set()
        for load in wide:
            if reads_argument(load, self.library):
                needed = self._costly_of(load, inside)
                early |= needed if needed.isdisjoint(branching) else set()
        return [p for p in wide if id(p) in early]

    def _costly_of(self, item: Placed, inside: Set[int]) -> set[int]:
        """What is computed `inside` for an item and kept in a variable, itself included, be it for the cheap ones between."""
        needed: set[int] = set()
        seen: set[int] = set()
        stack = [item]
        while stack:
            value = stack.pop()
            if id(value) not in seen and (value.cheap or id(value) in inside):
                seen.add(id(value))
                if not value.cheap:
                    needed.add(id(value))
                stack.extend(taken(value, self.library))
        return needed

    def _outlives(self, item: Placed, made: Set[int]) -> bool:
        """May a value that is `made` early with others be needed in the loop that follows? A cheap user may stand in both."""
        return reads_argument(item, self.library) or any(id(user) not in made for user in item.users)

    def _with_cheap(self, wanted: Sequence[Placed]) -> list[Placed]:
        """Values of a loop with the cheap ones that they need, from wherever these stand."""
        needed: dict[int, Placed] = {}
        stack = list(wanted)
        while stack:
            item = stack.pop()
            if id(item.node) not in needed:
                needed[id(item.node)] = item
                stack.extend(o for o in taken(item, self.library) if o.cheap)
        return [p for p in self.placement.nodes if id(p.node) in needed]

    def _element(self, item: Placed) -> Statement:
        node, handed_on = item.node, self.expressions.handed_on
        if node.type.sort == "effect":
            return Effect(self.expressions.apply(item, inside=True))
        variable = self.variables.of(node)
        value = self.expressions.apply(item, inside=True, result=variable)
        if is_kept(item, handed_on):
            return Assign(value, variable)
        return Let(value, variable, may_inline(item, self.library, handed_on), element=True)
