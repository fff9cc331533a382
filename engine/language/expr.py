"""The expression language, compiled to Python closures and run over a fixed set of functions.

Nothing of Python is ever executed on behalf of an expression: names come from the given mapping, functions
from `builtins.FUNCTIONS`, members from objects that offer them. Work is bounded (list sizes, integer sizes,
steps), so a hostile expression ends in a message too. Every message carries the span of the node that failed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import NoneType
from typing import Any, Protocol

from genrw.engine.ir.dtypes import DTYPES
from genrw.engine.language import operators
from genrw.engine.language.builtins import FUNCTIONS
from genrw.engine.language.expr_walk import (
    calls,
    check_call,
    check_expr,
    did_you_mean,
    free_names,
    member_uses,
    substitute,
    within_depth,
)
from genrw.engine.language.functions import (
    INTEGER_LIMIT,
    KINDS,
    Function,
    Misuse,
    Value,
    declare,
    describe,
    weighed,
    weight_of,
)
from genrw.engine.language.members import LASTING, Members
from genrw.grammar.diagnostics import GenrwError, error
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
)
from genrw.grammar.rw_tree import LetDecl
from genrw.grammar.source import Span

__all__ = [
    "Compiler",
    "Env",
    "Evaluator",
    "HasMembers",
    "calls",
    "check_expr",
    "compile_expr",
    "declare",
    "free_names",
    "member_uses",
    "substitute",
]

Env = Mapping[str, object]
Evaluator = Callable[[Env], Any]
"""A compiled expression."""
Frame = list[Any]
"""Slot 0: the steps left, a list of one number that all frames of a run share. Then local variables."""
Run = Callable[[Env, Frame], Any]
Binop = Callable[[Value, Value], Value]

STEP_LIMIT = 1_000_000
_SHORT = 32
"""A list of so many elements costs no step of its own."""
FAULTS = (Misuse, ArithmeticError, TypeError, ValueError, LookupError, MemoryError)


class HasMembers(Protocol):
    """A value with members. A mapping with strings as keys serves as well."""

    def member(self, name: str) -> object:
        """The member of a name; KeyError where there is none."""


def compile_expr(
    expr: Expr, lets: Mapping[str, LetDecl] | None = None, functions: Mapping[str, Function] | None = None
) -> Evaluator:
    """The expression as a function of its names' values; GenrwError for what can never run.

    `lets` are helper functions it may call, `functions` built-in ones (see `declare`) beyond `FUNCTIONS`.
    """
    return Compiler(lets or {}, functions or {}).program(expr)


def fault(exc: BaseException, what: str, values: Sequence[Value], span: Span) -> GenrwError:
    """What went wrong at a node, as one sentence at its place."""
    if isinstance(exc, Misuse):
        return error(str(exc), span)
    if isinstance(exc, ZeroDivisionError):
        return error("division by zero", span)
    if isinstance(exc, OverflowError | MemoryError):
        return error(f"the result of {what} is too large", span)
    return error(f"{what} does not take {' and '.join(map(describe, values)) or 'this'}", span)


@dataclass
class Locals:
    """The local variables in sight while compiling, with their slots in the frame."""

    slots: dict[str, int]
    frame_size: list[int]
    """One number, shared by all scopes of a frame."""
    helper: str | None = None
    """The `let` whose body this is: it sees its parameters only."""
    repeated: bool = False
    """Whether this may run more than once in a run, so that work on long lists has to count as steps."""

    def with_variable(self, name: str) -> Locals:
        """The scope of a comprehension's body."""
        slot = self.frame_size[0]
        self.frame_size[0] += 1
        return Locals({**self.slots, name: slot}, self.frame_size, self.helper, True)


@dataclass
class _Helper:
    """A compiled `let`: its body, the slots it needs beyond its parameters, the steps one call costs, and what the last
    calls gave, by their arguments, with the steps that they took in all."""

    body: Run
    extra: int
    weight: int
    known: dict[tuple[tuple[Value, ...], tuple[Any, ...]], tuple[Any, int]] = field(default_factory=dict)


class Compiler:
    """Turns trees into closures. A subclass changes what operators and functions mean on its values."""

    binary_ops: Mapping[str, Binop] = {op: meaning.value for op, meaning in operators.BINARY.items()}
    unary_ops: Mapping[str, Callable[[Value], Value]] = {op: meaning.value for op, meaning in operators.UNARY.items()}
    compare_ops: Mapping[str, Binop] = {op: meaning.value for op, meaning in operators.COMPARE.items()}
    is_plain = True
    """Are values what they are to Python? Local variables are then read as they are, and the results of helpers remembered:
    functions may depend on nothing but their arguments."""

    def __init__(self, lets: Mapping[str, LetDecl], functions: Mapping[str, Function]) -> None:
        self.lets = lets
        self.functions: Mapping[str, Function] = {**FUNCTIONS, **functions} if functions else FUNCTIONS
        self._helpers: dict[str, _Helper | None] = {}
        self._nodes = 0
        self._uses_frame = False

    def program(self, expr: Expr) -> Evaluator:
        """The expression as a function of an environment."""
        scope = Locals({}, [1])
        try:
            run = self.compile_bounded(expr, scope)
        except RecursionError:
            raise _too_deep(expr) from None
        slots = [None] * (scope.frame_size[0] - 1) if self._uses_frame else None

        def program(env: Env) -> Any:
            try:
                return run(env, _NO_FRAME if slots is None else [[STEP_LIMIT], *slots])
            except RecursionError:
                raise _too_deep(expr) from None

        return program

    def compile_bounded(self, expr: Expr, scope: Locals) -> Run:
        """The closure of a whole expression, of a depth that the stack can take."""
        within_depth(expr)
        return self.compile(expr, scope)

    def compile(self, expr: Expr, scope: Locals) -> Run:
        """The closure of one node."""
        self._nodes += 1
        compile_node: Callable[[Any, Locals], Run] = getattr(self, _METHODS[type(expr)])
        run = compile_node(expr, scope)
        return _metered(run, expr.span) if scope.repeated and self._may_be_long(expr, scope) else run

    def _may_be_long(self, expr: Expr, scope: Locals) -> bool:
        """May a node's value be a list that its closure does not see to itself? What gives numbers, truth values or words
        never costs more than a step."""
        if isinstance(expr, Binary | Member) or (isinstance(expr, Name) and expr.name in scope.slots):
            return False
        if isinstance(expr, IfElse) or (isinstance(expr, Call) and expr.function in self.lets):
            return False  # Its value is that of a node that was seen to.
        if isinstance(expr, Call):
            function = self.functions.get(expr.function)
            return function is None or function.signature.rpartition("-> ")[2] not in _SHORT_KINDS
        return not isinstance(expr, Const | Compare | Unary)

    # ---- leaves and members

    def const(self, expr: Const, _: Locals) -> Run:
        value = expr.value
        return lambda _env, _frame: value

    def name(self, expr: Name, scope: Locals) -> Run:
        """A local variable, a dtype, or else a name of the environment."""
        name, span = expr.name, expr.span
        if name in scope.slots:
            slot = scope.slots[name]
            return _metered_slot(slot, span) if scope.repeated else lambda _env, frame: frame[slot]
        if name in DTYPES:
            return lambda _env, _frame: name
        if scope.helper is not None:
            remedy = did_you_mean(name, scope.slots) or "a helper sees its own parameters only"
            raise error(f"unknown name `{name}` in the helper `{scope.helper}`", span, remedy)

        def run(env: Env, _frame: Frame) -> Any:
            try:
                return env[name]
            except KeyError:
                raise error(f"unknown name `{name}`", span, did_you_mean(name, env)) from None

        return run

    def slot_of(self, expr: Expr, scope: Locals) -> int:
        """The slot of a local variable, whose value may be read without a call; 0 for other nodes."""
        return scope.slots.get(expr.name, 0) if isinstance(expr, Name) and self.is_plain else 0

    def member(self, expr: Member, scope: Locals) -> Run:
        base, name, span = self.compile(expr.base, scope), expr.name, expr.span
        slot, repeated = self.slot_of(expr.base, scope), scope.repeated

        def run(env: Env, frame: Frame) -> Any:
            value = frame[slot] if slot else base(env, frame)
            try:
                found = value[name] if type(value) is Members or type(value) is dict else value.member(name)
            except (KeyError, AttributeError):
                found = find_member(value, name, span)
            return _paid(found, frame, span) if repeated and type(found) is tuple else found

        return run

    # ---- lists

    def list_expr(self, expr: ListExpr, scope: Locals) -> Run:
        items, span = [self.compile(item, scope) for item in expr.items], expr.span
        return lambda env, frame: _weighed_at(tuple([item(env, frame) for item in items]), span)

    def index(self, expr: Index, scope: Locals) -> Run:
        base, at, span = self.compile(expr.base, scope), self.compile(expr.index, scope), expr.span

        def run(env: Env, frame: Frame) -> Any:
            values, place = base(env, frame), at(env, frame)
            try:
                if type(values) is tuple and type(place) is int:
                    return values[place]
            except IndexError:
                pass
            try:
                return operators.index(values, place)
            except FAULTS as exc:
                raise fault(exc, "indexing", (values, place), span) from None

        return run

    def slice_expr(self, expr: Slice, scope: Locals) -> Run:
        base, span = self.compile(expr.base, scope), expr.span
        start = None if expr.start is None else self.compile(expr.start, scope)
        stop = None if expr.stop is None else self.compile(expr.stop, scope)

        def run(env: Env, frame: Frame) -> Any:
            values = base(env, frame)
            first = None if start is None else start(env, frame)
            last = None if stop is None else stop(env, frame)
            try:
                return operators.slice_list(values, first, last)
            except FAULTS as exc:
                raise fault(exc, "slicing", (values,), span) from None

        return run

    def comprehension(self, expr: Comprehension, scope: Locals) -> Run:
        source = self.compile(expr.source, scope)
        inner = scope.with_variable(expr.variable)
        slot, span, before = inner.slots[expr.variable], expr.span, self._nodes
        condition = None if expr.condition is None else self.condition(expr.condition, inner)
        body = self.compile(expr.body, inner)
        weight = 1 + self._nodes - before
        self._uses_frame = True

        def run(env: Env, frame: Frame) -> Any:
            items = source(env, frame)
            if type(items) is not tuple:
                raise error(f"a comprehension runs over a list, not {describe(items)}", expr.source.span)
            _spend(frame, len(items) * weight, span)
            results = []
            for item in items:
                frame[slot] = item
                if condition is None or condition(env, frame):
                    results.append(body(env, frame))
            return _weighed_at(tuple(results), span)

        return run

    # ---- operators

    def binary(self, expr: Binary, scope: Locals) -> Run:
        if expr.op in ("and", "or"):
            return self.logic(expr, scope)
        left, right = self.compile(expr.left, scope), self.compile(expr.right, scope)
        op, span, apply = expr.op, expr.span, self.binary_ops[expr.op]
        fast, limit = operators.BINARY[op].fast or apply, INTEGER_LIMIT
        constant, direct = constant_of(expr.right), _NUMBERS if self.is_plain else _INTEGERS
        first, second = self.slot_of(expr.left, scope), self.slot_of(expr.right, scope)
        repeated = scope.repeated

        def run(env: Env, frame: Frame) -> Any:
            a = frame[first] if first else left(env, frame)
            b = constant if constant is not None else frame[second] if second else right(env, frame)
            try:
                if type(a) in direct and type(b) in direct:
                    result = fast(a, b)
                    if type(result) is float or -limit < result < limit:
                        return result
                elif type(a) is tuple or type(b) is tuple:
                    # Those of local variables are to be metered.
                    a = left(env, frame) if first else a
                    b = right(env, frame) if second else b
                result = apply(a, b)
            except FAULTS as exc:
                raise fault(exc, f"`{op}`", (a, b), span) from None
            return _paid(result, frame, span) if repeated and type(result) is tuple else result

        return run

    def logic(self, expr: Binary, scope: Locals) -> Run:
        """`and` and `or`: the right side runs only where the left one does not decide."""
        left, right = self.condition(expr.left, scope), self.condition(expr.right, scope)
        if expr.op == "and":
            return lambda env, frame: left(env, frame) and right(env, frame)
        return lambda env, frame: left(env, frame) or right(env, frame)

    def condition(self, expr: Expr, scope: Locals) -> Run:
        """A node that has to be true or false."""
        run, span = self.compile(expr, scope), expr.span
        if isinstance(expr, Compare) or (isinstance(expr, Binary | Unary) and expr.op in _LOGICAL):
            return run

        def decided(env: Env, frame: Frame) -> Any:
            value = run(env, frame)
            if value is True or value is False:
                return value
            raise error(f"a condition is true or false, not {describe(value)}", span)

        return decided

    def unary(self, expr: Unary, scope: Locals) -> Run:
        operand, op, span = self.compile(expr.operand, scope), expr.op, expr.span
        apply = self.unary_ops[op]

        def run(env: Env, frame: Frame) -> Any:
            value = operand(env, frame)
            try:
                return apply(value)
            except FAULTS as exc:
                raise fault(exc, f"`{op}`", (value,), span) from None

        return run

    def compare(self, expr: Compare, scope: Locals) -> Run:
        """A chain of comparisons: each link runs only while all before it hold."""
        if len(expr.ops) > 1:
            return self._chain(expr, scope)
        left, right = (self.compile(operand, scope) for operand in expr.operands)
        op, span, apply = expr.ops[0], expr.span, self.compare_ops[expr.ops[0]]
        constant = constant_of(expr.operands[1])
        first, second = (self.slot_of(operand, scope) for operand in expr.operands)

        def run(env: Env, frame: Frame) -> Any:
            a = frame[first] if first else left(env, frame)
            b = constant if constant is not None else frame[second] if second else right(env, frame)
            if type(a) is tuple or type(b) is tuple:
                # Those of local variables are to be metered.
                a = left(env, frame) if first else a
                b = right(env, frame) if second else b
            try:
                return apply(a, b)
            except FAULTS as exc:
                raise fault(exc, f"`{op}`", (a, b), span) from None

        return run

    def _chain(self, expr: Compare, scope: Locals) -> Run:
        first, *rest = [self.compile(operand, scope) for operand in expr.operands]
        links = [(op, self.compare_ops[op], run) for op, run in zip(expr.ops, rest, strict=True)]

        def run(env: Env, frame: Frame) -> Any:
            left, result = first(env, frame), True
            for op, apply, operand in links:
                right = operand(env, frame)
                try:
                    result = self.both(result, apply(left, right))
                except FAULTS as exc:
                    raise fault(exc, f"`{op}`", (left, right), expr.span) from None
                if result is False:
                    return False
                left = right
            return result

        return run

    def both(self, a: Value, b: Value) -> Value:
        """Two links of a chain of comparisons."""
        return a and b

    def if_else(self, expr: IfElse, scope: Locals) -> Run:
        condition = self.condition(expr.condition, scope)
        then, otherwise = self.compile(expr.then, scope), self.compile(expr.otherwise, scope)
        return lambda env, frame: then(env, frame) if condition(env, frame) else otherwise(env, frame)

    # ---- calls

    def call(self, expr: Call, scope: Locals) -> Run:
        wrong = check_call(expr, self.lets, self.functions)
        if wrong is not None:
            raise GenrwError(wrong)
        args = [self.compile(arg, scope) for arg in expr.args]
        if expr.function in self.lets:
            return self._helper_call(expr, args)
        return self.function_call(self.functions[expr.function], expr, args)

    def function_call(self, function: Function, expr: Call, args: Sequence[Run]) -> Run:
        """A call of a built-in function."""
        apply = checked(function, expr)
        if len(args) == 1:
            only = args[0]
            return lambda env, frame: apply((only(env, frame),))
        return lambda env, frame: apply([arg(env, frame) for arg in args])

    def _helper_call(self, expr: Call, args: Sequence[Run]) -> Run:
        helper, span = self._helper(expr), expr.span
        body, weight, extra = helper.body, helper.weight, [None] * helper.extra
        self._uses_frame = True

        def run(values: Sequence[Value], frame: Frame) -> Any:
            _spend(frame, weight, span)
            return body(_NO_NAMES, [frame[0], *values, *extra])

        if weight < _WORTH_REMEMBERING or not self.is_plain:
            return lambda env, frame: run([arg(env, frame) for arg in args], frame)
        known = helper.known

        def remembered(env: Env, frame: Frame) -> Any:
            values, left = tuple([arg(env, frame) for arg in args]), frame[0]
            key = (
                values,
                tuple(
                    [kind if (kind := type(value)) in _PLAIN or kind in LASTING else kind_of(value) for value in values]
                ),
            )
            if None in key[1]:
                return run(values, frame)
            result, steps = known.get(key, _UNKNOWN)
            if steps <= left[0]:
                left[0] -= steps
                return result
            before = left[0]
            result = run(values, frame)
            if len(known) >= _MOST_REMEMBERED:
                known.clear()
            known[key] = result, before - left[0]
            return result

        return remembered

    def _helper(self, expr: Call) -> _Helper:
        """The compiled body of a `let`, made at its first call."""
        name = expr.function
        if name not in self._helpers:
            self._helpers[name] = None
            let, before = self.lets[name], self._nodes
            slots = {parameter: i for i, parameter in enumerate(let.parameters, 1)}
            scope = Locals(slots, [1 + len(slots)], name, True)
            body = self.compile_bounded(let.body, scope)
            extra = scope.frame_size[0] - 1 - len(let.parameters)
            self._helpers[name] = _Helper(body, extra, self._nodes - before)
        helper = self._helpers[name]
        if helper is None:
            raise error(f"the helper `{name}` calls itself", expr.span, "helpers are not recursive")
        return helper


_NO_FRAME: Frame = []
_NO_NAMES: Env = {}
"""What the body of a helper sees of the environment."""
_WORTH_REMEMBERING = 8
"""From how many nodes on a helper's results are remembered: shorter ones are computed as fast."""
_MOST_REMEMBERED = 512
_UNKNOWN = None, STEP_LIMIT + 1
_PLAIN = frozenset({int, str, bool, NoneType})
"""The types of values that are told apart by value and type alone."""
_NUMBERS, _INTEGERS = frozenset({int, float}), frozenset({int})
"""The types on which operators work at once, where values are plain and where they are not."""
_LOGICAL = frozenset({"and", "or", "not"})
"""The operators whose results are true or false."""
_SHORT_KINDS = frozenset({"int", "float", "number", "bool", "string", "dtype"})

_METHODS: dict[type, str] = {
    Binary: "binary",
    Call: "call",
    Compare: "compare",
    Comprehension: "comprehension",
    Const: "const",
    IfElse: "if_else",
    Index: "index",
    ListExpr: "list_expr",
    Member: "member",
    Name: "name",
    Slice: "slice_expr",
    Unary: "unary",
}


def find_member(value: Value, name: str, span: Span) -> Any:
    """The slow way to a member: other mappings, and the message where there is none."""
    if isinstance(value, Mapping):
        if name in value:
            return value[name]
        names = value.names if isinstance(value, Members) else value
        raise error(f"there is no member `{name}`", span, did_you_mean(name, names))
    absent = getattr(value, "absent", None)
    if absent is not None:
        raise absent(name)
    if hasattr(type(value), "member"):
        raise error(f"{describe(value)} has no member `{name}`", span)
    raise error(f"{describe(value)} has no members, so no `{name}`", span)


def constant_of(expr: Expr) -> Value:
    """The value of a constant, to be taken without a call; None for other nodes."""
    return expr.value if isinstance(expr, Const) else None


def kind_of(value: Value) -> Any:
    """What tells a value from others that Python takes for equal, such as 1, 1.0 and true; None where nothing does."""
    kind = type(value)
    if kind in _PLAIN or kind in LASTING:
        return kind
    if kind is float:
        return kind if value else str(value)
    if kind is not tuple:
        return None
    kinds = set(map(type, value))
    if len(kinds) == 1 and kinds <= _PLAIN:
        return *kinds, tuple
    inner = tuple(map(kind_of, value))
    return None if None in inner else inner


def _spend(frame: Frame, steps: int, span: Span) -> None:
    left = frame[0]
    left[0] -= steps
    if left[0] < 0:
        raise error(f"the expression takes more than {STEP_LIMIT} steps", span)


def _paid(value: tuple[Value, ...], frame: Frame, span: Span) -> tuple[Value, ...]:
    """A list, which costs steps if it is long, since code that is repeated may walk it many times."""
    if len(value) > _SHORT or tuple in map(type, value):
        _spend(frame, weight_of(value), span)
    return value


def _metered(run: Run, span: Span) -> Run:
    """A node whose long results cost steps."""

    def metered(env: Env, frame: Frame) -> Any:
        value = run(env, frame)
        return _paid(value, frame, span) if type(value) is tuple else value

    return metered


def _metered_slot(slot: int, span: Span) -> Run:
    """A local variable, metered. In one closure, since helpers do little else than look at their parameters."""

    def local(_env: Env, frame: Frame) -> Any:
        value = frame[slot]
        return _paid(value, frame, span) if type(value) is tuple else value

    return local


def _weighed_at(values: tuple[Value, ...], span: Span) -> tuple[Value, ...]:
    try:
        return weighed(values)
    except Misuse as exc:
        raise error(str(exc), span) from None


def checked(function: Function, expr: Call) -> Callable[[Sequence[Value]], Value]:
    """A function of a call's argument values, that checks their kinds first."""
    implementation, what, span = function.implementation, f"`{function.name}`", expr.span
    checks = [KINDS[function.kind(i)][0] for i in range(len(expr.args))]

    def apply(values: Sequence[Value]) -> Value:
        for check, value in zip(checks, values, strict=True):
            if not check(value):
                raise _wrong_kind(function, expr, values)
        try:
            return implementation(*values)
        except FAULTS as exc:
            raise fault(exc, what, values, span) from None

    if len(checks) != 1:
        return apply
    only = checks[0]

    def apply_to_one(values: Sequence[Value]) -> Value:
        if not only(values[0]):
            raise _wrong_kind(function, expr, values)
        try:
            return implementation(values[0])
        except FAULTS as exc:
            raise fault(exc, what, values, span) from None

    return apply_to_one


def _wrong_kind(function: Function, expr: Call, values: Sequence[Value]) -> GenrwError:
    kinds = [KINDS[function.kind(i)] for i in range(len(values))]
    position = next(i for i, value in enumerate(values) if not kinds[i][0](value))
    message = f"`{function.name}` takes {kinds[position][1]}, not {describe(values[position])}"
    return error(message, expr.args[position].span, function.signature)


def _too_deep(expr: Expr) -> GenrwError:
    return error("the expression and its helpers are nested too deeply", expr.span)
