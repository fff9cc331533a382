"""Functions of numbers and lists that take more than an expression of Python."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from itertools import accumulate
from typing import Any

from genrw.engine.language.functions import LIST_LIMIT, Misuse, Value, bounded, joined, shown, weighed


def range_(start: int, stop: int | None = None, step: int = 1) -> tuple[int, ...]:
    """The integers 0 to n-1, or from start to before stop in steps."""
    if step == 0:
        raise Misuse("`range` takes a step other than 0")
    span = range(start) if stop is None else range(start, stop, step)
    # len() of a range beyond the machine's word raises, so the count comes from its ends
    if span and abs(span[-1] - span[0]) // abs(step) >= LIST_LIMIT:
        raise Misuse(f"a list may have {LIST_LIMIT} elements at most")
    return tuple(span)


def concat(*lists: tuple[Value, ...]) -> tuple[Value, ...]:
    """Several lists one after the other."""
    if sum(map(len, lists)) > LIST_LIMIT:
        raise Misuse(f"a list may have {LIST_LIMIT} elements at most")
    return weighed(tuple(item for each in lists for item in each))


def zip_(*lists: tuple[Value, ...]) -> tuple[tuple[Value, ...], ...]:
    """Lists of the elements at equal places; the lists must be of equal length."""
    if len({len(each) for each in lists}) > 1:
        raise Misuse(f"`zip` takes lists of equal length, not of {joined([len(each) for each in lists])}")
    return weighed(tuple(zip(*lists, strict=True)))


def sorted_(xs: tuple[Value, ...]) -> tuple[Value, ...]:
    """The elements from the lowest to the highest."""
    try:
        return tuple(sorted(xs))
    except TypeError:
        raise Misuse("`sorted` takes elements that compare with one another") from None


def argsort(xs: tuple[Any, ...]) -> tuple[int, ...]:
    """The indices that sort a list; equal elements keep their order."""
    return tuple(sorted(range(len(xs)), key=xs.__getitem__))


def union(*lists: tuple[Value, ...]) -> tuple[Value, ...]:
    """The distinct elements of lists, in the order in which they first stand."""
    return tuple(dict.fromkeys(concat(*lists)))


def find(xs: tuple[Value, ...], v: Value) -> int:
    """The first index of an element equal to v; an error where there is none."""
    try:
        return xs.index(v)
    except ValueError:
        raise Misuse("`find` takes a value that is in the list") from None


def replace(xs: tuple[Value, ...], i: int, v: Value) -> tuple[Value, ...]:
    """The list with v at place i."""
    i = place(i, len(xs))
    return weighed((*xs[:i], v, *xs[i + 1 :]))


def insert(xs: tuple[Value, ...], i: int, v: Value) -> tuple[Value, ...]:
    """The list with v put before place i; i may be the length."""
    if not 0 <= i <= len(xs):
        raise Misuse(f"index {i} is out of range for inserting into a list of {len(xs)}")
    return weighed((*xs[:i], v, *xs[i:]))


def remove(xs: tuple[Value, ...], i: int) -> tuple[Value, ...]:
    """The list without its element at place i."""
    i = place(i, len(xs))
    return xs[:i] + xs[i + 1 :]


def place(i: int, length: int) -> int:
    """An index counted from the start; negative ones count from the end."""
    if not -length <= i < length:
        remedy = f"ask before how many there are, as in `len(xs) {f'> {i}' if i >= 0 else f'>= {-i}'} and …`"
        raise Misuse(f"index {i} is out of range for a list of {length}", remedy)
    return i % length


def take_axes(xs: tuple[Value, ...], axes: tuple[int, ...]) -> tuple[Value, ...]:
    """The elements at the listed places; the same as `xs[axes]`."""
    return weighed(tuple(xs[place(i, len(xs))] for i in axes))


def drop_axes(xs: tuple[Value, ...], axes: tuple[int, ...]) -> tuple[Value, ...]:
    """The elements at all but the listed places."""
    dropped = {place(i, len(xs)) for i in axes}
    return tuple(item for i, item in enumerate(xs) if i not in dropped)


def is_permutation(xs: tuple[int, ...]) -> bool:
    """Whether a list holds each of 0 to n-1 once."""
    return sorted(xs) == list(range(len(xs)))


def permute(xs: tuple[Value, ...], perm: tuple[int, ...]) -> tuple[Value, ...]:
    """The list whose element i is xs[perm[i]]: what a transpose does to the lens."""
    if len(xs) != len(perm) or not is_permutation(perm):
        raise Misuse(f"{shown(perm)} is not a permutation of {len(xs)} axes")
    return tuple(xs[i] for i in perm)


def inverse(perm: tuple[int, ...]) -> tuple[int, ...]:
    """The permutation that undoes perm."""
    if not is_permutation(perm):
        raise Misuse(f"{shown(perm)} is not a permutation")
    return argsort(perm)


def extreme(pick: Callable[..., Value], name: str, first: Value, *rest: Value) -> Value:
    """The first or the last of several values, or of one list."""
    candidates = first if not rest and type(first) is tuple else (first, *rest)
    if not candidates:
        raise Misuse(f"`{name}` of an empty list has no value")
    try:
        return pick(candidates)
    except TypeError:
        raise Misuse(f"`{name}` takes values that compare with one another") from None


def product(xs: tuple[Any, ...]) -> Value:
    """The product of a list of numbers; 1 for the empty list."""
    if len(xs) <= 64:
        return bounded(math.prod(xs))
    result: Any = 1
    for x in xs:
        result = bounded(result * x)
    return result


def dot(a: tuple[Any, ...], b: tuple[Any, ...]) -> Value:
    """The sum of the products of two lists of equal length."""
    if len(a) != len(b):
        raise Misuse(f"`dot` takes lists of equal length, not of {len(a)} and {len(b)}")
    return bounded(sum(map(operator.mul, a, b)))


def cumsum(xs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The sums of the first one, two, three … elements."""
    return tuple(accumulate(xs, lambda a, b: bounded(a + b)))


def cumprod(xs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The products of the first one, two, three … elements."""
    return tuple(accumulate(xs, lambda a, b: bounded(a * b)))


def lcm(*xs: int) -> int:
    """The least common multiple."""
    result = 1
    for x in xs:
        result = bounded(math.lcm(result, x))
    return result


def largest_divisor(n: int, limit: int) -> int:
    """The largest divisor of n that is not above limit (itself at most 65536)."""
    if n < 1 or not 1 <= limit <= LIST_LIMIT:
        raise Misuse(f"`largest_divisor` takes n from 1 and a limit from 1 to {LIST_LIMIT}")
    return next(d for d in range(min(n, limit), 0, -1) if n % d == 0)


def log2(n: int) -> int:
    """The binary logarithm of a power of two, rounded up for other integers."""
    if n < 1:
        raise Misuse(f"`log2` takes an integer from 1, not {n}")
    return (n - 1).bit_length()


def pow2_floor(n: int) -> int:
    """The largest power of two that is not above n."""
    if n < 1:
        raise Misuse(f"`pow2_floor` takes an integer from 1, not {n}")
    return 1 << (n.bit_length() - 1)


def whole(name: str, to_integer: Callable[[Any], int], x: Any) -> int:
    """A number as an integer."""
    try:
        return bounded(to_integer(x))
    except (OverflowError, ValueError):
        raise Misuse(f"`{name}` takes a finite number") from None


def real(name: str, compute: Callable[[Any], float], x: Any) -> float:
    """A real function; beyond the largest float it is infinite."""
    try:
        return compute(x)
    except OverflowError:
        return math.inf
    except ValueError:
        raise Misuse(f"`{name}` has no value at {x}") from None


def split(text: str, separator: str) -> Value:
    """The parts of a text between separators."""
    if not separator:
        raise Misuse("`split` needs a separator")
    return weighed(tuple(text.split(separator)))


def letters(text: str) -> Value:
    """The characters of a text but blanks; `...` is one."""
    return weighed(tuple(re.findall(r"\.\.\.|\S", text)))
