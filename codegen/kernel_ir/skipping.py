"""Which steps of a loop may be left out: those at which all that its folds take is what they start from, for all lanes.

A mask is such a case: elements that it hides are the fold's identity. So a step is left out where a mask hides all that a
workgroup has at it, if the mask is made of comparisons of indices. Where it hides nothing, nothing is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from genrw.codegen.kernel_ir.keeping import is_kept
from genrw.codegen.kernel_ir.kernel import Chosen, Divided, Expression, Step, Use, Weighted
from genrw.codegen.kernel_ir.linear import Linear
from genrw.codegen.kernel_ir.meant import Between, Choice, Meant, Number, Truth
from genrw.codegen.kernel_ir.placement import IN_PLACE, Pass, Placed
from genrw.codegen.kernel_ir.step_meanings import StepMeanings
from genrw.codegen.kernel_ir.variables import Variables
from genrw.codegen.kernel_ir.windows import ALWAYS, NEVER, Bound, Extreme, Window
from genrw.engine.ir.nodes import Node
from genrw.engine.library.library import Library
from genrw.engine.library.monoids import identity_value


def needed_steps(inside: Sequence[Placed], folds: Sequence[Placed], library: Library, meanings: StepMeanings) -> Window:
    """The steps of a loop that have to be walked: those at which a fold may take something, all where something is stored."""
    if not folds or any(_stores(p, library) for p in inside):
        return ALWAYS
    needed = reduce(Window.join, (_taken_at(fold.node, meanings, library) for fold in folds), NEVER)
    return ALWAYS if needed.empty else needed


def _stores(item: Placed, library: Library) -> bool:
    """Does it write memory that lanes do not share?"""
    op = item.node.op
    return library.role(op) == "write" and item.node.operands[library.part(op, 0)].type.sort != "buffer"


def _taken_at(fold: Node, meanings: StepMeanings, library: Library) -> Window:
    """The steps at which a fold may take something other than its identity."""
    operand = fold.operands[library.part(fold.op, 0)]
    identity = _identity(fold, operand, library)
    return ALWAYS if identity is None else _differs(meanings.of(operand), identity)


def _identity(fold: Node, operand: Node, library: Library) -> float | None:
    """The number that changes nothing where a fold takes it: the identity of its monoid, or, of one that adds by itself, of the
    monoid that its role names. None where there is no such number."""
    decl = library.operator(fold.op).decl
    named = (
        decl.role_parts[2:] if IN_PLACE in decl.role_parts else [a.name for a in decl.attributes if a.type == "monoid"]
    )
    if not named or named[0] == IN_PLACE:
        return None
    monoid = library.monoids[fold.attribute(named[0])]
    return None if monoid.carry else float(identity_value(monoid, operand.type.dtype))


def _differs(value: Meant, number: float) -> Window:
    """The steps at which a value may be another number."""
    match value:
        case Choice(condition, then, otherwise):
            first = condition.holds.meet(_differs(then, number))
            return first.join(condition.fails.meet(_differs(otherwise, number)))
        case Number(known):
            return NEVER if known == number else ALWAYS
        case Between(lo, hi):
            return NEVER if lo.lo == hi.hi == number else ALWAYS
    return ALWAYS


def masked_arrays(
    inside: Sequence[Placed], library: Library, meanings: StepMeanings
) -> dict[int, tuple[Placed, Placed, Window]]:
    """The arrays that are others but at some steps, by the identities of their items: item, what it is else, and the steps at
    which it may differ. An array is another one, masked, that may be masked itself."""
    found: dict[int, tuple[Placed, Placed, Window]] = {}
    for item in inside:
        choice = _choice_of(item, library, meanings)
        for source, differs in choice:
            stands = (not source.wide or id(source) in found) and source.node.type == item.node.type
            if differs not in (ALWAYS, NEVER) and stands and source.loop == item.loop:
                found[id(item)] = item, source, differs
    needed = {key for key, (item, _, _) in found.items() if is_kept(item)}
    for key, (_, source, _) in reversed(found.items()):
        if key in needed:
            needed.add(id(source))
    return {key: masked for key, masked in found.items() if key in needed}


def _choice_of(item: Placed, library: Library, meanings: StepMeanings) -> list[tuple[Placed, Window]]:
    """The two operands of which an array has one or the other by a condition, each with the steps at which it may be the other."""
    operator = library.operator(item.node.op)
    if not item.wide or item.cheap or operator.role != "pointwise":
        return []
    if operator.chosen is None:
        return []
    condition, then, otherwise = (item.operands[place] for place in operator.chosen)
    asked = meanings.of(condition.node)
    return [(otherwise, asked.holds), (then, asked.fails)] if isinstance(asked, Truth) else []


# ---- the ends of a window, in the kernel


def first_step(window: Window, this: Pass, variables: Variables) -> Expression | None:
    """The first step to walk, which is one of the loop's; None if it is the loop's own."""
    if window.first is None:
        return None
    last = Step(this.extent - 1)
    found = _written(window.first, variables)
    return found if window.first.hi < this.extent else Chosen((found, last), True)


def end_of_steps(window: Window, this: Pass, variables: Variables) -> Expression | None:
    """The step before which the walk ends; None if it is the loop's own."""
    if window.end is None:
        return None
    found = _written(window.end, variables)
    return found if window.end.hi <= this.extent else Chosen((found, Step(this.extent)), True)


def _written(bound: Bound, variables: Variables) -> Expression:
    if bound.lo == bound.hi:
        return Step(bound.lo)
    if isinstance(bound, Extreme):
        return Chosen((_written(bound.a, variables), _written(bound.b, variables)), bound.choose is min)
    found = _sum(bound.sum, variables)
    if bound.sum.lo < 0:
        found = Chosen((found, Step(0)), False)
    return Divided(found, bound.by) if bound.by > 1 else found


def _sum(linear: Linear, variables: Variables) -> Expression:
    parts = tuple(Use(variables.of(unknown.node), unknown.node) for unknown, _ in linear.terms)
    return Weighted(parts, linear.number, tuple(factor for _, factor in linear.terms))
