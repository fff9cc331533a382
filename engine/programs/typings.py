"""Types of operands and attributes with which what an operator declares is tried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from genrw.engine.ir.dtypes import DTYPES, in_class
from genrw.engine.ir.nodes import Attributes
from genrw.engine.ir.types import Type
from genrw.engine.library.infer import TypeProblem, infer, wanted_class
from genrw.engine.library.library import Library
from genrw.engine.programs.build import complete
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.expr_tree import Const
from genrw.grammar.rw_tree import AttributeDecl, OpDecl

_SOME_TYPE = "float"
NUMBERS: Mapping[str, int | float | bool] = {"int": 2, "float": 0.5, "bool": True, "axis": 0, "any": 0.5}
"""A number that stands for an attribute of each type."""


@dataclass(frozen=True)
class Typing:
    """Element types of single operands, as they are computed with, and attributes, that an operator takes on a target; and the
    element type of the result."""

    types: tuple[str, ...]
    attributes: Attributes
    context: Mapping[str, Any]
    result: str


def typings(library: Library, op: OpDecl) -> Iterator[Typing]:
    """All types of a pointwise operator's operands, with all types and truth values for its attributes, on all targets."""
    words = [a.name for a in op.attributes if a.type == "dtype" and a.default is None]
    truths = [a.name for a in op.attributes if a.type == "bool"]
    numbers = {a.name: number_of(a) for a in op.attributes if a.default is None and a.type in NUMBERS}
    values = [*([*DTYPES] for _ in words), *((False, True) for _ in truths)]
    computed = {
        tuple(DTYPES[types.get(o.dtype or "", _SOME_TYPE)].compute for o in op.operands): None
        for types in operand_types(op)
    }
    contexts: list[dict[str, Any]] = [{"target": target} for target in library.targets.values()] or [{}]
    for types, chosen, context in product(computed, [*product(*values)], contexts):
        given = numbers | dict(zip((*words, *truths), chosen, strict=True))
        operands = [Type("scalar", dtype) for dtype in types]
        try:
            attributes = complete(library.operators[op.name], given, operands, context)
            result = infer(library, op.name, attributes, operands, context).dtype
        except (TypeProblem, GenrwError):
            continue
        yield Typing(types, attributes, context, result)


def operand_types(op: OpDecl) -> Iterator[dict[str, str]]:
    """The element types that the operands may have: what each word for a type in the declaration stands for."""
    bounds = dict(op.where)
    words = list(dict.fromkeys(o.dtype for o in op.operands if o.dtype is not None))
    classes = [wanted_class(word, bounds) for word in words]
    members = [[dtype for dtype in DTYPES if in_class(dtype, name)] for name in classes]
    yield from (dict(zip(words, chosen, strict=True)) for chosen in product(*members))


def number_of(attribute: AttributeDecl) -> int | float | bool:
    """A number that stands for an attribute."""
    default = attribute.default
    given = default.value if isinstance(default, Const) else None
    return given if isinstance(given, int | float) else NUMBERS[attribute.type]
