"""Meanings of pointwise operators, and clauses of monoids, that are printed as C++: tried with each element type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice

from genrw.engine.interpret.fold import Folds, fold_functions
from genrw.engine.interpret.lanes import Lanes, lane_functions
from genrw.engine.ir.dtypes import DTYPES, is_dtype
from genrw.engine.language.array_functions import array_functions
from genrw.engine.language.cpp_expr import WHOLE, TypeWord, cpp_braced, cpp_expr
from genrw.engine.language.expr_walk import substitute, walk
from genrw.engine.language.functions import Function
from genrw.engine.library.library import Library
from genrw.engine.library.monoids import ELEMENT, accumulate_type, folds, result_type
from genrw.engine.programs.typings import NUMBERS, number_of, operand_types
from genrw.grammar.diagnostics import Diagnostic, GenrwError
from genrw.grammar.expr_tree import Const, Expr, Member, Name
from genrw.grammar.rw_tree import MonoidDecl, OpDecl

_MOST = 1000
"""So many ways to choose types are tried."""
_SOME_TYPE = "float"
"""What stands for a type that programs choose."""


@lru_cache(maxsize=8)
def meaning_functions(library: Library) -> Mapping[str, Function]:
    """The functions that what operators mean may call."""
    folds = Folds(library, False)
    functions = {**array_functions(), **library.scope.functions, **fold_functions(folds)}
    return functions | lane_functions(Lanes(folds, True))


def check_meaning(library: Library, op: OpDecl) -> Iterator[Diagnostic]:
    """What of a pointwise operator's meaning has no C++, where its text is made of that."""
    last = next(reversed(library.stages), None)
    called = any(function.guard is None for function in op.functions)
    printed = op.role == "pointwise" and op.emit is None and not called and (not op.stages or last in op.stages)
    if op.means is None or not printed or isinstance(op.result, Const):
        return
    problems = [_problem(op, op.means, types) for types in islice(operand_types(op), _MOST)]
    found = next(filter(None, problems), None)
    if found is not None and None in problems:
        yield Diagnostic(found.message, found.span, "bound the types by `where`, or give the operator an `emit`")
    elif found is not None:
        yield found


def check_clauses(monoid: MonoidDecl) -> Iterator[Diagnostic]:
    """What of a monoid's clauses has no C++ for some elements that it says it folds; for any, if it does not say."""
    complete = monoid.identity and monoid.combine and (monoid.element or not monoid.carry)
    folded = {accumulate_type(monoid, dtype) for dtype in DTYPES if folds(monoid, dtype)} if complete else set()
    computed = [d for d in DTYPES if d in folded and DTYPES[d].compute == d]
    problems = {dtype: found for dtype in computed if (found := _wrong_clause(monoid, dtype)) is not None}
    if not problems or (not monoid.where and len(problems) < len(computed)):
        return
    dtype, found = next(iter(problems.items()))
    remedy = f"write it otherwise, or say which elements are folded: `where {ELEMENT}: real`"
    yield Diagnostic(f"for elements of {dtype}: {found.message}", found.span, remedy)


def _wrong_clause(monoid: MonoidDecl, dtype: str) -> Diagnostic | None:
    """The first problem of a monoid that computes in a type."""
    for clause, types, result in _clauses(monoid, dtype):
        found = next(_unknown_members(clause, types), None) or _no_text(clause, types, dtype, result)
        if found is not None:
            return found
    return None


def _clauses(monoid: MonoidDecl, dtype: str) -> Iterator[tuple[Expr, dict[str, str], str]]:
    """The expressions of a monoid that computes in a type, the types of what each may name, and of its value."""
    fields: dict[str | None, str] = {name: dtype if d == ELEMENT else d for name, d in monoid.carry} or {None: dtype}
    parts = {who: {who if f is None else f"{who}.{f}": d for f, d in fields.items()} for who in ("a", "b")}
    given: dict[str, str] = {"x": dtype, "index": "int64", "k": "int64"}
    for clause, types in ((monoid.identity, {}), (monoid.element, given), (monoid.combine, parts["a"] | parts["b"])):
        yield from ((field.value, types, fields[field.field]) for field in clause if field.field in fields)
    if monoid.finish is not None:
        named = {name.removeprefix("a."): d for name, d in parts["a"].items()} | {"n": WHOLE}
        yield monoid.finish, named, result_type(monoid, dtype)


def _unknown_members(clause: Expr, types: Mapping[str, str]) -> Iterator[Diagnostic]:
    """Fields that an accumulator is asked for and does not have."""
    owners = {name.partition(".")[0] for name in types}
    for node in walk(clause):
        if isinstance(node, Member) and isinstance(node.base, Name) and node.base.name in owners:
            path = f"{node.base.name}.{node.name}"
            if path not in types:
                yield Diagnostic(f"there is no `{path}`", node.span, f"one may name {', '.join(sorted(types))}")


def _no_text(clause: Expr, types: Mapping[str, str], dtype: str, result: str) -> Diagnostic | None:
    try:
        cpp_braced(clause, {name: name for name in types}, dtype, types, result)
    except GenrwError as problem:
        return problem.diagnostics[0]
    return None


def _problem(op: OpDecl, means: Expr, types: Mapping[str, str]) -> Diagnostic | None:
    """Why the meaning is no C++ of operands that have these types."""
    operands = {o.name: types.get(o.dtype or "", _SOME_TYPE) for o in op.operands}
    result = types.get(op.result.name, op.result.name) if isinstance(op.result, Name) else _SOME_TYPE
    result = result if is_dtype(result) else _SOME_TYPE
    first = next(iter(operands.values()), result) if result == "bool" else result
    numbers = {a.name: Const(number_of(a)) for a in op.attributes if a.type in NUMBERS}
    names = {name: name for name in operands} | {
        a.name: TypeWord(_SOME_TYPE) for a in op.attributes if a.type == "dtype"
    }
    computed = {name: DTYPES[dtype].compute for name, dtype in operands.items()}
    try:
        cpp_expr(substitute(means, numbers), names, DTYPES[first].compute, computed, DTYPES[result].compute)
    except GenrwError as problem:
        return problem.diagnostics[0]
    return None
