"""The operators of the expression language over single values: what each takes, gives and refuses."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from genrw.engine.language.functions import INTEGER_LIMIT, Misuse, Value, bounded, describe, place, weighed

_NUMBERS = frozenset({int, float, bool})
_INTEGERS = frozenset({int, bool})
_POWER_BITS = INTEGER_LIMIT.bit_length()


def _numbers(op: str, a: Value, b: Value) -> None:
    """Refuses operands that are not numbers."""
    for value in (a, b):
        if type(value) not in _NUMBERS:
            raise Misuse(f"`{op}` takes numbers, not {describe(value)}")


def _integers(op: str, a: Value, b: Value) -> None:
    for value in (a, b):
        if type(value) not in _INTEGERS:
            raise Misuse(f"`{op}` takes integers, not {describe(value)}")


def _arithmetic(op: str, compute: Callable[[Value, Value], Value]) -> Callable[[Value, Value], Value]:
    def apply(a: Value, b: Value) -> Value:
        _numbers(op, a, b)
        return bounded(compute(a, b))

    return apply


def _bitwise(op: str, compute: Callable[[Value, Value], Value]) -> Callable[[Value, Value], Value]:
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


BINARY: dict[str, Callable[[Value, Value], Value]] = {
    "+": _add,
    "-": _arithmetic("-", operator.sub),
    "*": _arithmetic("*", operator.mul),
    "/": _arithmetic("/", operator.truediv),
    "//": _arithmetic("//", operator.floordiv),
    "%": _arithmetic("%", operator.mod),
    "**": _power,
    "&": _bitwise("&", operator.and_),
    "|": _bitwise("|", operator.or_),
    "^": _bitwise("^", operator.xor),
    "<<": _shift_left,
    ">>": _shift_right,
}

INTEGER_FAST: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
}
"""Operators that for two ints of at most 128 bits need no check but that of the result's size."""


# ---- unary


def _negate(a: Value) -> Value:
    if type(a) not in _NUMBERS:
        raise Misuse(f"`-` takes a number, not {describe(a)}")
    return -a


def _invert(a: Value) -> Value:
    if type(a) not in _INTEGERS:
        raise Misuse(f"`~` takes an integer, not {describe(a)}")
    return ~int(a)


def _not(a: Value) -> Value:
    if type(a) is not bool:
        raise Misuse(f"`not` takes true or false, not {describe(a)}")
    return not a


UNARY: dict[str, Callable[[Value], Value]] = {"-": _negate, "~": _invert, "not": _not}


# ---- comparisons


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
    if type(container) is tuple:
        return item in container
    if isinstance(container, Mapping):
        return item in container
    raise Misuse(f"`in` takes a list on its right, not {describe(container)}")


COMPARE: dict[str, Callable[[Value, Value], bool]] = {
    "==": lambda a, b: bool(a == b),
    "!=": lambda a, b: bool(a != b),
    "<": _ordered("<", operator.lt),
    "<=": _ordered("<=", operator.le),
    ">": _ordered(">", operator.gt),
    ">=": _ordered(">=", operator.ge),
    "in": contains,
    "not in": lambda a, b: not contains(a, b),
}


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
