"""What printed expressions call while they run: members, lists, functions and helpers, each with its messages.

Work is bounded by steps, which all calls of a run share as a list of one number. Every message carries the span of the
node that failed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from genrw.engine.language import operators
from genrw.engine.language.expr_walk import did_you_mean
from genrw.engine.language.functions import KINDS, Function, Misuse, Value, describe, weighed, weight_of
from genrw.engine.language.members import DISTINCT, Members
from genrw.grammar.diagnostics import GenrwError, error
from genrw.grammar.expr_tree import Call
from genrw.grammar.source import Span

Steps = list[int]

STEP_LIMIT = 1_000_000
_SHORT = 32
"""A list of so many elements costs no step of its own."""
FAULTS = (Misuse, ArithmeticError, TypeError, ValueError, LookupError, MemoryError)
_MOST_REMEMBERED = 512
_UNKNOWN = None, None, 0
_LOOKED_UP, _NOTED = 12, 64
"""How many steps take as long as a look at what is remembered, and as noting another call."""
_CREDIT = 64 * _NOTED


def fault(exc: BaseException, what: str, values: Sequence[Value], span: Span) -> GenrwError:
    """What went wrong at a node, as one sentence at its place."""
    if isinstance(exc, Misuse):
        return error(str(exc), span, exc.remedy)
    if isinstance(exc, ZeroDivisionError):
        return error("division by zero", span, "ask before whether it is 0, as in `n != 0 and …`")
    if isinstance(exc, OverflowError | MemoryError):
        return error(f"the result of {what} is too large", span, "compute it of smaller numbers")
    return error(f"{what} does not take {' and '.join(map(describe, values)) or 'this'}", span)


def too_deep(span: Span) -> GenrwError:
    """The message of an expression whose walk exhausts the stack."""
    return error("the expression and its helpers are nested too deeply", span, "have fewer helpers call one another")


def failed(exc: KeyError | RecursionError, span: Span) -> BaseException:
    """What went wrong in a printed expression: a name or a member is not there, as the line says that was to read it."""
    if isinstance(exc, RecursionError):
        return too_deep(span)
    trace, last = exc.__traceback__, None
    while trace is not None:
        last = trace if "reads" in trace.tb_frame.f_globals else last
        trace = trace.tb_next
    assert last is not None, "the printed expression itself is in its trace"
    holder, name, place = last.tb_frame.f_globals["reads"].get(last.tb_lineno, ("", "", span))
    value = last.tb_frame.f_locals.get(holder, ())
    if holder == "env":
        return error(f"unknown name `{name}`", place, did_you_mean(name, value))
    return no_member(value, name, place) if holder and name not in value else exc


# ---- names and members


def member(value: Value, name: str, span: Span) -> Any:
    """The member of a value that is none of `Members`."""
    try:
        return value[name] if type(value) is dict else value.member(name)
    except (KeyError, AttributeError):
        if isinstance(value, Mapping) and name in value:
            return value[name]
    raise no_member(value, name, span)


def no_member(value: Value, name: str, span: Span) -> BaseException:
    """The message where there is no member of a name."""
    if isinstance(value, Mapping):
        return error(
            f"there is no member `{name}`",
            span,
            did_you_mean(name, value.names if isinstance(value, Members) else value),
        )
    absent = getattr(value, "absent", None)
    if absent is not None:
        problem: GenrwError = absent(name)
        return problem
    if hasattr(type(value), "member"):
        names = sorted(getattr(value, "member_names", ()))
        remedy = did_you_mean(name, names) or (f"it has {', '.join(names)}" if names else None)
        return error(f"{describe(value)} has no member `{name}`", span, remedy)
    return error(f"{describe(value)} has no members, so no `{name}`", span, "name an operand, or the context")


# ---- lists and their steps


def exhausted(span: Span) -> GenrwError:
    """The message of an expression that has no steps left."""
    return error(f"the expression takes more than {STEP_LIMIT} steps", span, "go over shorter lists")


def pay(values: tuple[Value, ...], steps: Steps, span: Span) -> None:
    """A list costs steps if it is long, since code that is repeated may walk it many times."""
    if len(values) > _SHORT or tuple in map(type, values):
        steps[0] -= weight_of(values)
        if steps[0] < 0:
            raise exhausted(span)


def weighed_at(values: tuple[Value, ...], span: Span) -> tuple[Value, ...]:
    """A list that is not too large."""
    try:
        return weighed(values)
    except Misuse as exc:
        raise error(str(exc), span, exc.remedy) from None


def not_a_list(value: Value, span: Span) -> GenrwError:
    """The message of a comprehension over something else."""
    return error(f"a comprehension runs over a list, not {describe(value)}", span, "write range(…) for numbers")


def undecided(value: Value, span: Span) -> GenrwError:
    """The message of a condition that is neither true nor false."""
    return error(f"a condition is true or false, not {describe(value)}", span, "compare it: `… > 0`")


def index(values: Value, place: Value, span: Span) -> Value:
    """An element of a list, or a member by its name."""
    try:
        return operators.index(values, place)
    except FAULTS as exc:
        raise fault(exc, "indexing", (values, place), span) from None


def part(values: Value, start: Value, stop: Value, span: Span) -> Value:
    """A slice of a list."""
    try:
        return operators.slice_list(values, start, stop)
    except FAULTS as exc:
        raise fault(exc, "slicing", (values,), span) from None


# ---- operators and functions


def operation(apply: Callable[..., Value], what: str, span: Span) -> Callable[..., Value]:
    """An operator at its place; given steps, it pays with them for lists."""

    def run(a: Value, b: Value, steps: Steps | None = None) -> Value:
        try:
            result = apply(a, b)
        except FAULTS as exc:
            raise fault(exc, what, (a, b), span) from None
        if steps is not None:
            for value in (a, b, result):
                if type(value) is tuple:
                    pay(value, steps, span)
        return result

    return run


def prefix(apply: Callable[[Value], Value], what: str, span: Span) -> Callable[[Value], Value]:
    """An operator of one operand at its place."""

    def run(value: Value) -> Value:
        try:
            return apply(value)
        except FAULTS as exc:
            raise fault(exc, what, (value,), span) from None

    return run


def checked(function: Function, expr: Call) -> Callable[..., Value]:
    """A function of a call's arguments, that checks their kinds first."""
    implementation, what, span = function.implementation, f"`{function.name}`", expr.span
    kinds = [function.kind(i) for i in range(len(expr.args))]
    checks = [(i, KINDS[kind][0]) for i, kind in enumerate(kinds) if kind != "any"]

    def apply(*values: Value) -> Value:
        for i, check in checks:
            if not check(values[i]):
                raise _wrong_kind(function, expr, values)
        try:
            return implementation(*values)
        except FAULTS as exc:
            raise fault(exc, what, values, span) from None

    if len(kinds) != 1 or not checks:
        return apply
    only = checks[0][1]

    def apply_to_one(value: Value) -> Value:
        if not only(value):
            raise _wrong_kind(function, expr, (value,))
        try:
            return implementation(value)
        except FAULTS as exc:
            raise fault(exc, what, (value,), span) from None

    return apply_to_one


def _wrong_kind(function: Function, expr: Call, values: Sequence[Value]) -> GenrwError:
    kinds = [KINDS[function.kind(i)] for i in range(len(values))]
    position = next(i for i, value in enumerate(values) if not kinds[i][0](value))
    message = f"`{function.name}` takes {kinds[position][1]}, not {describe(values[position])}"
    return error(message, expr.args[position].span, function.signature)


# ---- helpers


def remembered(body: Callable[..., Value], forget: Callable[[], None]) -> Callable[..., Value]:
    """A helper that remembers what its last calls gave, by their arguments, with the steps that they took in all; as long
    as that saves more than it costs."""
    known: dict[tuple[Value, ...], tuple[Any, Value, int]] = {}
    saved = _CREDIT

    def run(steps: Steps, span: Span, *values: Value) -> Value:
        nonlocal saved
        kinds: Any = tuple(map(type, values))
        key, before = values, steps[0]
        try:
            found = known.get(key, _UNKNOWN)
            if found[0] != kinds and not DISTINCT.issuperset(kinds):
                kinds = tuple(map(kind_of, values))
                key = values, kinds
                found = known.get(key, _UNKNOWN)
        except TypeError:
            return body(steps, span, *values)  # A value has no hash.
        taken = found[2]
        if found[0] == kinds and taken <= before:
            steps[0] = before - taken
            saved += taken - _LOOKED_UP
            return found[1]
        result = body(steps, span, *values)
        saved -= _NOTED
        if saved < 0:
            forget()
        elif None not in kinds:
            if len(known) >= _MOST_REMEMBERED:
                known.clear()
            known[key] = kinds, result, before - steps[0]
        return result

    return run


def kind_of(value: Value) -> Any:
    """What tells a value from others that Python takes for equal, such as 1, 1.0 and true; None where nothing does."""
    kind = type(value)
    if kind in DISTINCT:
        return kind
    if kind is float:
        return kind if value else str(value)
    if kind is not tuple:
        return None
    kinds = set(map(type, value))
    if len(kinds) == 1 and kinds <= DISTINCT:
        return *kinds, tuple
    inner = tuple(map(kind_of, value))
    return None if None in inner else inner
