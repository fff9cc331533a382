"""Meanings of pointwise operators that are printed as C++, tried with each element type that the operands may have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice, product

from genrw.engine.ir.dtypes import DTYPES, in_class, is_dtype
from genrw.engine.language.cpp_expr import TypeWord, cpp_expr
from genrw.engine.language.expr_walk import substitute
from genrw.engine.library.infer import is_variable
from genrw.engine.library.library import Library
from genrw.grammar.diagnostics import Diagnostic, GenrwError
from genrw.grammar.expr_tree import Const, Expr, Name
from genrw.grammar.rw_tree import AttributeDecl, OpDecl

_MOST = 1000
"""So many ways to choose types are tried."""
_SOME_TYPE = "float"
"""What stands for a type that programs choose."""
_NUMBERS: Mapping[str, int | float | bool] = {"int": 2, "float": 0.5, "bool": True, "axis": 0, "any": 0.5}


def check_meaning(library: Library, op: OpDecl) -> Iterator[Diagnostic]:
    """What of a pointwise operator's meaning has no C++, where its text is made of that."""
    last = next(reversed(library.stages), None)
    printed = op.role == "pointwise" and op.emit is None and (not op.stages or last in op.stages)
    if op.means is None or not printed or isinstance(op.result, Const):
        return
    problems = [_problem(op, op.means, types) for types in islice(_choices(op), _MOST)]
    found = next(filter(None, problems), None)
    if found is not None and None in problems:
        yield Diagnostic(found.message, found.span, "bound the types by `where`, or give the operator an `emit`")
    elif found is not None:
        yield found


def _choices(op: OpDecl) -> Iterator[dict[str, str]]:
    """The element types that the operands may have: what each word for a type in the declaration stands for."""
    bounds = dict(op.where)
    words = list(dict.fromkeys(o.dtype for o in op.operands if o.dtype is not None))
    classes = [bounds.get(word, "any" if is_variable(word) else word) for word in words]
    members = [[dtype for dtype in DTYPES if in_class(dtype, name)] for name in classes]
    yield from (dict(zip(words, chosen, strict=True)) for chosen in product(*members))


def _problem(op: OpDecl, means: Expr, types: Mapping[str, str]) -> Diagnostic | None:
    """Why the meaning is no C++ of operands that have these types."""
    operands = {o.name: types.get(o.dtype or "", _SOME_TYPE) for o in op.operands}
    result = types.get(op.result.name, op.result.name) if isinstance(op.result, Name) else _SOME_TYPE
    result = result if is_dtype(result) else _SOME_TYPE
    first = next(iter(operands.values()), result) if result == "bool" else result
    numbers = {a.name: Const(_number(a)) for a in op.attributes if a.type in _NUMBERS}
    names = {name: name for name in operands} | {
        a.name: TypeWord(_SOME_TYPE) for a in op.attributes if a.type == "dtype"
    }
    computed = {name: DTYPES[dtype].compute for name, dtype in operands.items()}
    try:
        cpp_expr(substitute(means, numbers), names, DTYPES[first].compute, computed, DTYPES[result].compute)
    except GenrwError as problem:
        return problem.diagnostics[0]
    return None


def _number(attribute: AttributeDecl) -> int | float | bool:
    default = attribute.default
    given = default.value if isinstance(default, Const) else None
    return given if isinstance(given, int | float) else _NUMBERS[attribute.type]
