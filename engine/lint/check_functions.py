"""Functions of operators checked before kernels call them: made of pointwise operators, for all types that the operands may
have; and how near they are said to be."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from genrw.engine.ir.dtypes import DTYPES
from genrw.engine.language.expr import free_names
from genrw.engine.library.definitions import TermFunctions, term_expressions
from genrw.engine.library.library import Library
from genrw.engine.library.variants import leaves
from genrw.engine.programs.function_bodies import called_functions, function_body
from genrw.engine.programs.typings import Typing, typings
from genrw.grammar.diagnostics import Diagnostic, GenrwError
from genrw.grammar.expr_tree import Const
from genrw.grammar.rw_tree import FunctionDecl, OpDecl, VarPattern

_MOST = 1000
"""So many ways to choose types and attributes are tried."""


def check_functions(library: Library, op: OpDecl) -> Iterator[Diagnostic]:
    """All findings on the functions of an operator, as it is declared."""
    yield from _nearness(op)
    if not op.functions:
        return
    found = list(_clauses(op))
    found += [problem for function in op.functions for problem in _parts(op, function)]
    if not found and op.name in _reached(library, op):
        message = f"the function of `{op.name}` calls itself"
        found.append(Diagnostic(message, op.name_span, "functions are not recursive"))
    yield from found or _bodies(library, op)


def _nearness(op: OpDecl) -> Iterator[Diagnostic]:
    if op.within is None:
        return
    if op.role != "pointwise":
        yield Diagnostic("`within` is for pointwise operators", op.within.span, "leave it out")
    value = op.within.value if isinstance(op.within, Const) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
        remedy = "write for example: within 1e-6"
        yield Diagnostic("`within` says a relative error: a number above 0 and below 1", op.within.span, remedy)


def _clauses(op: OpDecl) -> Iterator[Diagnostic]:
    first = op.functions[0].span
    if op.role != "pointwise":
        why = f"`{op.name}` has a function and is not pointwise"
        yield Diagnostic(why, first, "a function computes one element: write role pointwise")
    if op.emit is not None:
        why = f"`{op.name}` has an `emit` and a function, of which kernels can print one"
        yield Diagnostic(why, first, "leave one of them out")
    if any(function.term is None for function in op.functions) and not op.definitions:
        why = f"nothing says what the function of `{op.name}` computes"
        yield Diagnostic(why, first, "write function TERM, or is TERM besides")
    for function in op.functions[:-1]:
        if function.guard is None and function.term is not None:
            why = "what stands behind a function without guard is never called"
            yield Diagnostic(why, function.span, "put it last, or write when COND")


def _parts(op: OpDecl, function: FunctionDecl) -> Iterator[Diagnostic]:
    """The names of a function's parts."""
    known = {o.name for o in op.operands} | {a.name for a in op.attributes}
    terms = [*(step.term for step in function.steps), *([function.term] if function.term is not None else [])]
    used = {leaf.name for term in terms for leaf in leaves(term) if isinstance(leaf, VarPattern)}
    used |= {name for term in terms for expr in term_expressions(term) for name in free_names(expr)}
    for step in function.steps:
        if step.name in known:
            yield Diagnostic(f"`{step.name}` is declared twice", step.span, "give the part another name")
        elif step.name not in used:
            yield Diagnostic(f"nothing is made of `{step.name}`", step.span, "leave it out")
        known.add(step.name)


def _reached(library: Library, op: OpDecl) -> set[str]:
    """The operators whose functions an operator's function calls, and those that these call."""
    found: set[str] = set()
    todo = list(called_functions(library, op))
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += called_functions(library, library.operators[name].decl)
    return found


def _bodies(library: Library, op: OpDecl) -> Iterator[Diagnostic]:
    """What is wrong with the terms, for operands of any types and on any target; what some types are refused for, `where`
    may bound."""
    if any(o.variadic for o in op.operands):
        yield Diagnostic(f"the function of `{op.name}` takes any number of operands", op.name_span, "name each of them")
        return
    try:
        TermFunctions(library.defines).operator(op)
    except GenrwError as problem:
        yield from problem.diagnostics
        return
    problems = [_tried(library, op, typing) for typing in islice(typings(library, op), _MOST)]
    told = next(filter(None, problems), None)
    if told is not None:
        remedy = "bound the types by `where`, or the attributes by `requires`" if None in problems else told.remedy
        yield Diagnostic(told.message, told.span, remedy)


def _tried(library: Library, op: OpDecl, typing: Typing) -> Diagnostic | None:
    """Why a function says nothing of operands and attributes that the operator takes; None if it says something."""
    try:
        body = function_body(library, op.name, typing.attributes, typing.types, typing.context)
    except GenrwError as problem:
        return problem.diagnostics[0]
    if body is not None and body.result.type.dtype != DTYPES[typing.result].compute:
        message = (
            f"the function of `{op.name}` computes {body.result.type.dtype}, and the operator is of {typing.result}"
        )
        return Diagnostic(message, body.result.span, "convert it")
    return None
