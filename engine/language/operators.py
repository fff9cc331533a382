"""The operators of the expression language, each with all that it means: see `builtins`.

`value` computes single values and refuses what it does not take. `tensors` computes tensors of the listed kinds: a
function of Python, or the name of one of `elementwise` or numpy. `cpp` has the texts for operands of a kind; no text for
a kind means that C++ has none. `egglog` makes a term, and `formula` a formula.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from genrw.engine.language.functions import INTEGER_LIMIT, Misuse, Value, bounded, describe, weighed
from genrw.engine.language.meaning import BITS, INTEGERS, NUMBERS, Without, Written, infix, primitive
from genrw.engine.language.values import place

_NUMBERS = frozenset({int, float, bool})
_INTEGERS = frozenset({int, bool})
_POWER_BITS = INTEGER_LIMIT.bit_length()

Binop = Callable[[Value, Value], Value]


@dataclass(frozen=True)
class Operator:
    """An operator of one or two operands."""

    value: Callable[..., Value]
    kinds: str
    tensors: str
    cpp: Mapping[str, Written]
    """The text for `floats`, `integers`, `bools`; `unsigned` ones of 32 bits and more; `by_constant`: shifts by less than the width."""
    egglog: Callable[..., Any] | Without
    formula: Callable[..., Any] | Without
    direct: str = ""
    """Of which operands Python's operator of the same name computes it, with no check needed but that of the result's size:
    `numbers` of at most 128 bits, or such numbers where the second is not 0: a `divisor`."""
    comes_round: bool = False
    """Is the result right again where operands that wrapped around come round?"""
    branches: bool = False
    """Do compilers make branches of it?"""


@dataclass(frozen=True)
class Comparison:
    """A comparison. Where one is none of numbers, `compute` is missing."""

    value: Callable[[Value, Value], bool]
    compute: Callable[[Any, Any], Any] | None = None
    """Compares elements, and integers of formulas."""
    binds: str = ""
    mirrored: str = ""
    """The comparison that says the same of exchanged operands."""
    on_equals: bool | None = None
    """What it is where both operands are the same."""
    direct: str = "list"
    """Which operands Python's operator of the same name compares: `any`, `numbers`, or any with a `list` on its right."""


# ---- single values


def _numbers(op: str, *operands: Value) -> None:
    """Refuses operands that are not numbers."""
    for value in operands:
        if type(value) not in _NUMBERS:
            raise Misuse(f"`{op}` takes {'numbers' if len(operands) > 1 else 'a number'}, not {describe(value)}")


def _integers(op: str, *operands: Value) -> None:
    for value in operands:
        if type(value) not in _INTEGERS:
            raise Misuse(f"`{op}` takes {'integers' if len(operands) > 1 else 'an integer'}, not {describe(value)}")


def _arithmetic(op: str, compute: Binop) -> Binop:
    def apply(a: Value, b: Value) -> Value:
        _numbers(op, a, b)
        return bounded(compute(a, b))

    return apply


def _bitwise(op: str, compute: Binop) -> Binop:
    def apply(a: Value, b: Value) -> Value:
        _integers(op, a, b)
        return compute(a, b)

    return apply


def _add(a: Value, b: Value) -> Value:
    if type(a) is tuple and type(b) is tuple:
        return weighed(a + b)
    if type(a) is tuple or type(b) is tuple:
        raise Misuse(f"`+` takes two numbers or two lists, not {describe(a)} and {describe(b)}")
    _numbers("+", a, b)
    return bounded(a + b)


def _power(a: Value, b: Value) -> Value:
    _numbers("**", a, b)
    exact = type(a) in _INTEGERS and type(b) in _INTEGERS and b >= 0
    if exact and abs(a) > 1 and (b > _POWER_BITS or abs(a).bit_length() * b > 2 * _POWER_BITS):
        raise Misuse("the integer has more than 128 bits")
    if a < 0 and b != b // 1:
        raise Misuse(f"a negative number has no power {b}")
    return bounded(a**b)


def _shift_left(a: Value, b: Value) -> Value:
    _integers("<<", a, b)
    if not 0 <= b <= _POWER_BITS:
        raise Misuse(f"`<<` shifts by 0 to 128 bits, not by {b}")
    return bounded(a << b)


def _shift_right(a: Value, b: Value) -> Value:
    _integers(">>", a, b)
    if b < 0:
        raise Misuse(f"`>>` shifts by 0 bits or more, not by {b}")
    return a >> b


def _negate(a: Value) -> Value:
    _numbers("-", a)
    return -a


def _invert(a: Value) -> Value:
    _integers("~", a)
    return ~int(a)


def _not(a: Value) -> Value:
    if type(a) is not bool:
        raise Misuse(f"`not` takes true or false, not {describe(a)}")
    return not a


def _ordered(op: str, compute: Callable[[Value, Value], bool]) -> Callable[[Value, Value], bool]:
    def apply(a: Value, b: Value) -> bool:
        if type(a) in _NUMBERS and type(b) in _NUMBERS:
            return compute(a, b)
        if type(a) is type(b) and type(a) in (str, tuple):
            try:
                return compute(a, b)
            except TypeError:
                pass
        raise Misuse(f"`{op}` cannot compare {describe(a)} with {describe(b)}")

    return apply


def contains(item: Value, container: Value) -> bool:
    """`item in container`, for a list, or a member's name in an object."""
    if type(container) is tuple or isinstance(container, Mapping):
        return item in container
    raise Misuse(f"`in` takes a list on its right, not {describe(container)}")


# ---- the table


def _remainder(call: Callable[..., Any], a: Any, b: Any) -> Any:
    """egglog's own has the sign of the dividend; this is right for divisors above 0."""
    return call("%", call("+", call("%", a, b), b), b)


_NO_FORMULA = Without("rules over indices add, multiply, divide and compare")
_NOT_EXACT = Without("egglog's integers have no such operation")


def _of_header(function: str) -> Written:
    return Written(f"gen::{function}<{{type}}>({{0}}, {{1}})")


def _dividing(function: str) -> Written:
    return Written(f"gen::{function}<{{type}}, {{type}}>({{0}}, {{1}})")


def _ring(op: str, binds: str, compute: Binop, tensors: str, function: str, value: Binop | None = None) -> Operator:
    """An operator that C++ has for floats and for unsigned integers; of signed ones, whose overflow is undefined, the
    header has it."""
    cpp = {"floats": infix(op, binds), "unsigned": infix(op, binds), "integers": _of_header(function)}
    apply = value or _arithmetic(op, compute)
    formula = lambda _logic, a, b: compute(a, b)  # noqa: E731
    return Operator(apply, NUMBERS, tensors, cpp, primitive(op), formula, "numbers", comes_round=True)


def _of_bits(op: str, compute: Binop, tensors: str) -> Operator:
    text = Written(f"({{0}} {op} {{1}})", "atom", "shift", "shift")
    cpp = {"integers": text, "bools": text}
    return Operator(_bitwise(op, compute), BITS, tensors, cpp, primitive(op), _NO_FORMULA)


def _shift(op: str, value: Binop, function: str) -> Operator:
    cpp = {"integers": _of_header(function), "by_constant": infix(op, "shift")}
    return Operator(value, INTEGERS, function, cpp, primitive(op), _NO_FORMULA)


BINARY: dict[str, Operator] = {
    "+": _ring("+", "add", operator.add, "add", "add", _add),
    "-": _ring("-", "add", operator.sub, "subtract", "sub"),
    "*": _ring("*", "mul", operator.mul, "multiply", "mul"),
    "/": Operator(
        _arithmetic("/", operator.truediv),
        NUMBERS,
        "divide",
        {"floats": infix("/", "mul"), "integers": _dividing("trunc_div")},
        _NOT_EXACT,
        _NO_FORMULA,
        "divisor",
        branches=True,
    ),
    "//": Operator(
        _arithmetic("//", operator.floordiv),
        NUMBERS,
        "floor_divide",
        {"floats": Written("gen::floor({0} / {1})", "atom", "mul", "unary"), "integers": _dividing("floor_div")},
        lambda call, a, b: call("/", call("-", a, _remainder(call, a, b)), b),
        lambda logic, a, b: logic.quotient(a, b),
        "divisor",
        branches=True,
    ),
    "%": Operator(
        _arithmetic("%", operator.mod),
        NUMBERS,
        "floor_modulo",
        {"floats": Written("gen::floor_mod({0}, {1})"), "integers": _dividing("floor_mod")},
        _remainder,
        lambda logic, a, b: a - b * logic.quotient(a, b),
        "divisor",
        branches=True,
    ),
    "**": Operator(
        _power, NUMBERS, "power", {"floats": Written("gen::pow({0}, {1})")}, _NOT_EXACT, _NO_FORMULA, branches=True
    ),
    "&": _of_bits("&", operator.and_, "bitwise_and"),
    "|": _of_bits("|", operator.or_, "bitwise_or"),
    "^": _of_bits("^", operator.xor, "bitwise_xor"),
    "<<": _shift("<<", _shift_left, "shift_left"),
    ">>": _shift(">>", _shift_right, "shift_right"),
}
"""All but `and` and `or`, which do not always look at both operands."""

LOGIC: dict[str, tuple[Written, Callable[..., Any]]] = {
    "and": (infix("&&", "and"), lambda logic, a, b: logic.And(a, b)),
    "or": (infix("||", "or"), lambda logic, a, b: logic.Or(a, b)),
}
"""`and` and `or`: how C++ writes them, and their formulas."""

_PREFIX = Written("-{0}", "unary", "atom")

UNARY: dict[str, Operator] = {
    "-": Operator(
        _negate,
        NUMBERS,
        "negative",
        {"floats": _PREFIX, "bools": _PREFIX, "integers": Written("gen::sub<{type}>(0, {0})")},
        lambda call, a: call("-", 0, a),
        lambda _logic, a: -a,
        "numbers",
    ),
    "~": Operator(_invert, INTEGERS, "invert", {"integers": Written("~{0}", "unary", "atom")}, _NOT_EXACT, _NO_FORMULA),
    "not": Operator(
        _not,
        "b",
        "logical_not",
        {"bools": Written("!{0}", "unary", "atom")},
        Without("egglog asks for facts, not for their absence"),
        lambda logic, a: logic.Not(a),
    ),
}


def _compared(op: str, compute: Callable[[Any, Any], bool], mirrored: str, on_equals: bool) -> Comparison:
    return Comparison(_ordered(op, compute), compute, "compare", mirrored, on_equals, "numbers")


COMPARE: dict[str, Comparison] = {
    "==": Comparison(lambda a, b: bool(a == b), operator.eq, "equal", "==", True, "any"),
    "!=": Comparison(lambda a, b: bool(a != b), operator.ne, "equal", "!=", False, "any"),
    "<": _compared("<", operator.lt, ">", False),
    "<=": _compared("<=", operator.le, ">=", True),
    ">": _compared(">", operator.gt, "<", False),
    ">=": _compared(">=", operator.ge, "<=", True),
    "in": Comparison(contains),
    "not in": Comparison(lambda a, b: not contains(a, b)),
}

MIRRORED = {op: c.mirrored for op, c in COMPARE.items() if c.mirrored}
"""The comparisons of numbers, with those that say the same of exchanged operands."""


# ---- indexing


def index(base: Value, at: Value) -> Value:
    """`base[at]`: one element, or a list of them where `at` is a list; a member where `at` is a string."""
    if type(base) is tuple:
        if type(at) in _INTEGERS:
            return base[place(at, len(base))]
        if type(at) is tuple:
            return weighed(tuple(index(base, each) for each in at))
        raise Misuse(f"a list is indexed by an integer or a list of them, not by {describe(at)}")
    if isinstance(base, Mapping) and type(at) is str:
        if at not in base:
            raise Misuse(f'there is no "{at}" in it')
        return base[at]
    raise Misuse(f"only a list can be indexed, not {describe(base)}")


def slice_list(base: Value, start: Value, stop: Value) -> Value:
    """`base[start:stop]`; either end may be None, negative ones count from the end."""
    if type(base) is not tuple:
        raise Misuse(f"only a list can be sliced, not {describe(base)}")
    for end in (start, stop):
        if end is not None and type(end) not in _INTEGERS:
            raise Misuse(f"a slice runs between integers, not {describe(end)}")
    return base[start:stop]
