"""Attributes that a side of a rule leaves out, and whose defaults depend on the rest of the operation: written out.

A default may name its operator's attributes and operands. In a rule these are what the side gives for them, under the
rule's own names. So the default is put in as its author would have written it, and is told of where it would stand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from operator import is_
from typing import Any

from genrw.engine.language.expr_walk import free_names, substitute
from genrw.engine.library.context import CONTEXT_NAMES
from genrw.engine.library.library import Library, Operator, family_affixes
from genrw.grammar.expr_tree import Const, Expr, Name
from genrw.grammar.expr_tree import Node as ExprNode
from genrw.grammar.rw_tree import AttributePattern, OpPattern, Pattern, VarPattern
from genrw.grammar.source import Span


def written_out(pattern: Pattern, library: Library) -> Pattern:
    """A side of a rule with such attributes given, as far as what they depend on has a name."""
    if not isinstance(pattern, OpPattern):
        return pattern
    operands = tuple(written_out(operand, library) for operand in pattern.operands)
    operator = declared(pattern, library)
    given = pattern.attributes
    if operator is not None and not pattern.open_attributes:
        known = _known(pattern, operator, library)
        for name, default in dependent(pattern, operator):
            if needed(default) <= known.keys():
                known[name] = _placed(substitute(default, known), pattern.op_span)
                given = (*given, AttributePattern(name, known[name], span=pattern.op_span))
    same = given is pattern.attributes and all(map(is_, operands, pattern.operands))
    return pattern if same else replace(pattern, operands=operands, attributes=given)


def nameless(pattern: OpPattern, operator: Operator, library: Library) -> Iterator[tuple[str, str]]:
    """Attributes that are left out though their defaults depend on what has no name here: each with what that is."""
    known = _known(pattern, operator, library)
    for name, default in () if pattern.open_attributes else dependent(pattern, operator):
        missing = sorted(needed(default) - known.keys())
        if missing:
            yield name, missing[0]
        else:
            known[name] = default


def dependent(pattern: OpPattern, operator: Operator) -> Iterator[tuple[str, Expr]]:
    """The defaults of attributes left out that are no constants, nor of the context alone; in declared order."""
    given = {attribute.name for attribute in pattern.attributes}
    for name, decl in operator.attributes.items():
        if name not in given and decl.default is not None and needed(decl.default):
            yield name, decl.default


def needed(default: Expr) -> set[str]:
    """What a default names of its own operation."""
    return free_names(default) - set(CONTEXT_NAMES)


def declared(pattern: OpPattern, library: Library) -> Operator | None:
    """The operator of a pattern; None for a variable over a class."""
    if pattern.family is None:
        found = library.find(pattern.op)
        return found[0] if found is not None else None
    affixes = family_affixes(pattern.op)
    return next((family for family in library.families if family_affixes(family.name) == affixes), None)


def _known(pattern: OpPattern, operator: Operator, library: Library) -> dict[str, Expr]:
    """What stands in a side for the attributes and operands of an operation."""
    known: dict[str, Expr] = {a.name: a.value or Name(a.name, span=a.span) for a in pattern.attributes}
    known |= {
        name: decl.default
        for name, decl in operator.attributes.items()
        if name not in known and decl.default is not None and not needed(decl.default)
    }
    for decl, operand in zip(operator.decl.operands, pattern.operands, strict=False):
        name = _name_of(operand)
        if name is not None and (decl.variadic == (isinstance(operand, VarPattern) and operand.rest)):
            known[decl.name] = name
    if pattern.family is not None and operator.decl.family is not None:
        member = Const if pattern.family in library.monoids else Name
        known[operator.decl.family] = member(pattern.family, span=pattern.op_span)
    return known


def _name_of(operand: Pattern) -> Expr | None:
    if isinstance(operand, VarPattern):
        return Name(operand.name, span=operand.span)
    if isinstance(operand, OpPattern) and operand.binds is not None:
        return Name(operand.binds, span=operand.span)
    return None


def _placed(expr: Any, span: Span) -> Any:
    """An expression all of whose parts stand at one place."""
    if isinstance(expr, tuple):
        return tuple(_placed(part, span) for part in expr)
    if not isinstance(expr, ExprNode):
        return expr
    parts: Mapping[str, Any] = {f.name: _placed(getattr(expr, f.name), span) for f in fields(expr) if f.name != "span"}
    return replace(expr, **parts, span=span)
