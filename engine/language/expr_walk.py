"""What can be said of an expression without running it: names, members, calls; and substitution."""

from __future__ import annotations

import difflib
from collections import ChainMap
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

from genrw.engine.ir.dtypes import DTYPES
from genrw.engine.language.builtins import FUNCTIONS
from genrw.engine.language.functions import Function
from genrw.grammar.diagnostics import Diagnostic, error
from genrw.grammar.expr_tree import (
    Binary,
    Call,
    Compare,
    Comprehension,
    Const,
    Expr,
    IfElse,
    Index,
    ListExpr,
    Member,
    Name,
    Slice,
    Unary,
    children,
    walk_free,
)
from genrw.grammar.rw_tree import LetDecl
from genrw.grammar.source import Span

DEPTH_LIMIT = 200
_MOST_LISTED = 16

Lets = Mapping[str, LetDecl]


def within_depth(expr: Expr) -> None:
    """Refuses an expression nested so deeply that walking it could exhaust the stack."""
    level: list[Expr] = [expr]
    for _ in range(DEPTH_LIMIT):
        level = [child for parent in level for child in children(parent)]
        if not level:
            return
    raise error(f"the expression is nested more than {DEPTH_LIMIT} levels deep", level[0].span)


def walk(expr: Expr) -> Iterator[Expr]:
    """The expression and everything in it."""
    todo = [expr]
    while todo:
        node = todo.pop()
        yield node
        todo += reversed(children(node))


def free_names(expr: Expr) -> set[str]:
    """The names an environment has to give a value to. Names of dtypes are values already."""
    return {name for name in expr.free if name not in DTYPES}


def calls(expr: Expr) -> frozenset[str]:
    """The functions and helpers called."""
    return expr.called


def member_uses(expr: Expr, lets: Lets | None = None) -> set[tuple[str, str]]:
    """Pairs (name, member) for each `name.member` of a free name; through helpers, where `lets` are given."""
    return _member_uses(expr, lets or {}, {})


def _member_uses(expr: Expr, lets: Lets, known: dict[str, set[tuple[str, str]]]) -> set[tuple[str, str]]:
    uses = set(expr.members)
    if lets:
        for node, local in walk_free(expr):
            if isinstance(node, Call) and node.function in lets:
                uses |= _uses_of_arguments(node, local, lets, known)
    return uses


def _uses_of_arguments(
    call: Call, local: frozenset[str], lets: Lets, known: dict[str, set[tuple[str, str]]]
) -> set[tuple[str, str]]:
    """What a helper does with the members of its parameters, said of the names given for them."""
    let = lets[call.function]
    if let.name not in known:
        known[let.name] = set()
        known[let.name] = _member_uses(let.body, lets, known)
    given = dict(zip(let.parameters, call.args, strict=False))
    return {
        (argument.name, member)
        for parameter, member in known[let.name]
        if isinstance(argument := given.get(parameter), Name) and argument.name not in local
    }


def words_compared(expr: Expr, name: str, lets: Lets) -> Iterator[str]:
    """The strings that a name is compared with, in an expression and in the helpers that are given its value."""
    for part in walk(expr):
        if isinstance(part, Compare) and Name(name) in part.operands:
            yield from (o.value for o in part.operands if isinstance(o, Const) and isinstance(o.value, str))
        elif isinstance(part, Call) and part.function in lets:
            let = lets[part.function]
            for parameter, argument in zip(let.parameters, part.args, strict=False):
                if argument == Name(name):
                    yield from words_compared(let.body, parameter, lets)


# ---- substitution


def substitute(expr: Expr, mapping: Mapping[str, Expr]) -> Expr:
    """The expression with others put in for free names. Local variables that would capture are renamed."""
    within_depth(expr)
    return expr if expr.free.isdisjoint(mapping) else _substitute(expr, mapping)


def _substitute(expr: Expr, mapping: Mapping[str, Expr]) -> Expr:
    def inside(part: Expr) -> Expr:
        return _substitute(part, mapping)

    def inside_optional(part: Expr | None) -> Expr | None:
        return None if part is None else inside(part)

    match expr:
        case Const():
            return expr
        case Name(name):
            return mapping.get(name, expr)
        case Member(base, _):
            return replace(expr, base=inside(base))
        case Unary(_, operand):
            return replace(expr, operand=inside(operand))
        case Index(base, index):
            return replace(expr, base=inside(base), index=inside(index))
        case Slice(base, start, stop):
            return replace(expr, base=inside(base), start=inside_optional(start), stop=inside_optional(stop))
        case Call(_, args):
            return replace(expr, args=tuple(map(inside, args)))
        case ListExpr(items):
            return replace(expr, items=tuple(map(inside, items)))
        case Compare(operands, _):
            return replace(expr, operands=tuple(map(inside, operands)))
        case Binary(_, left, right):
            return replace(expr, left=inside(left), right=inside(right))
        case IfElse(condition, then, otherwise):
            parts = inside(condition), inside(then), inside(otherwise)
            return IfElse(*parts, span=expr.span)
        case Comprehension():
            return _substitute_comprehension(expr, mapping)


def _substitute_comprehension(expr: Comprehension, mapping: Mapping[str, Expr]) -> Expr:
    inner = {name: value for name, value in mapping.items() if name != expr.variable}
    used = free_names(expr)
    captured = {name for key, value in inner.items() if key in used for name in free_names(value)}
    variable = expr.variable
    if variable in captured:
        taken = captured | used
        while variable in taken:
            variable += "_"
        inner[expr.variable] = Name(variable, span=expr.span)
    condition = None if expr.condition is None else _substitute(expr.condition, inner)
    body, source = _substitute(expr.body, inner), _substitute(expr.source, mapping)
    return Comprehension(body, variable, source, condition, span=expr.span)


# ---- checks


def check_expr(
    expr: Expr,
    names: Collection[str],
    lets: Lets | None = None,
    functions: Mapping[str, Function] | None = None,
) -> list[Diagnostic]:
    """What cannot run whatever the values: unknown names and functions, wrong numbers of arguments."""
    if not calls(expr) and all(name in names or name in DTYPES for name in expr.free):
        return []
    lets, table = lets or {}, ChainMap(dict(functions or {}), FUNCTIONS)
    found: list[Diagnostic] = []
    for node, local in walk_free(expr):
        if isinstance(node, Name):
            if node.name not in local and node.name not in names and node.name not in DTYPES:
                remedy = did_you_mean(node.name, {*names, *local}) or _known({*names, *local})
                found.append(Diagnostic(f"unknown name `{node.name}`", node.span, remedy))
        elif isinstance(node, Call):
            diagnostic = check_call(node, lets, table)
            found += [diagnostic] if diagnostic else []
    return sorted(found, key=lambda diagnostic: diagnostic.span.start if diagnostic.span else 0)


def foreign_calls(
    expr: Expr, lets: Lets, functions: Mapping[str, Function], elsewhere: Collection[str]
) -> Iterator[Diagnostic]:
    """Calls of helpers that go on to call what there is `elsewhere` only: in what operators mean."""
    for node in walk(expr) if not calls(expr).isdisjoint(lets) else ():
        if isinstance(node, Call) and node.function in lets:
            helpers = {node.function} | reached(lets[node.function], lets)
            called = {f for name in helpers for f in calls(lets[name].body)}
            foreign = sorted(f for f in called if f in elsewhere and f not in functions and f not in FUNCTIONS)
            if foreign:
                message = f"`{node.function}` calls `{foreign[0]}`, which only what operators mean may call"
                yield Diagnostic(message, node.span, "say it by functions of numbers and lists")


def reached(let: LetDecl, lets: Lets) -> set[str]:
    """The helpers that one calls, also through others."""
    found: set[str] = set()
    todo = [let]
    while todo:
        more = {name for name in calls(todo.pop().body) if name in lets} - found
        found |= more
        todo += [lets[name] for name in more]
    return found


def _known(names: Collection[str]) -> str | None:
    """A remedy that lists the names there are, if they are few."""
    return f"one may name {', '.join(sorted(names))}" if 0 < len(names) <= _MOST_LISTED else None


def check_call(call: Call, lets: Lets, functions: Mapping[str, Function]) -> Diagnostic | None:
    """Whether a call's function exists and takes so many arguments."""
    name, count = call.function, len(call.args)
    if name in lets:
        wanted = len(lets[name].parameters)
        arity = f"{wanted} argument" + "s" * (wanted != 1)
        remedy = f"{name}({', '.join(lets[name].parameters)})"
        return None if count == wanted else _wrong_count(name, arity, count, remedy, call.span)
    function = functions.get(name)
    if function is None:
        remedy = did_you_mean(name, {*functions, *lets}) or f"declare it: let {name}(…) = …"
        return Diagnostic(f"unknown function `{name}`", call.span, remedy)
    if function.accepts(count):
        return None
    return _wrong_count(name, function.arity(), count, function.signature, call.span)


def _wrong_count(name: str, arity: str, count: int, remedy: str, span: Span) -> Diagnostic:
    return Diagnostic(f"`{name}` takes {arity}, not {count}", span, remedy)


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """A remedy that names the closest known name, if one is close."""
    return _closest(name, tuple(sorted(known)))


@lru_cache(maxsize=4096)
def _closest(name: str, known: tuple[str, ...]) -> str | None:
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean `{close[0]}`?" if close else None
