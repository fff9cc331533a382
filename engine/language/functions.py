"""The pure functions of the expression language, over numbers, strings and lists (which are tuples).

`FUNCTIONS` is the whole table. An implementation may assume that its arguments are of the kinds its signature
names: the caller checks them. What is wrong beyond kinds it reports with `Misuse`, a sentence that gets a
place later.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeVar

from genrw.engine.ir import dtypes

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
Value = Any
"""An int, float, bool, string, a tuple of values, or an object with members."""

INTEGER_LIMIT = 1 << 128
LIST_LIMIT = 1 << 16


class Misuse(Exception):
    """A value an operation cannot take: one sentence, without a place."""


# ---- kinds of arguments


_NUMBERS = frozenset({int, float, bool})
_INTEGERS = frozenset({int, bool})


def _list_of(types: frozenset[type]) -> Callable[[Value], bool]:
    return lambda value: type(value) is tuple and types.issuperset(map(type, value))


def _one_of(types: frozenset[type]) -> Callable[[Value], bool]:
    return lambda value: type(value) in types


KINDS: dict[str, tuple[Callable[[Value], bool], str]] = {
    "any": (lambda _: True, "a value"),
    "bool": (_one_of(frozenset({bool})), "true or false"),
    "bools": (_list_of(frozenset({bool})), "a list of truth values"),
    "dtype": (lambda value: type(value) is str and value in dtypes.DTYPES, "a dtype"),
    "int": (_one_of(_INTEGERS), "an integer"),
    "ints": (_list_of(_INTEGERS), "a list of integers"),
    "list": (_one_of(frozenset({tuple})), "a list"),
    "lists": (_list_of(frozenset({tuple})), "a list of lists"),
    "number": (_one_of(_NUMBERS), "a number"),
    "numbers": (_list_of(_NUMBERS), "a list of numbers"),
    "string": (_one_of(frozenset({str})), "a string"),
}
"""What a signature may ask of an argument: a test, and how messages call it."""


def describe(value: Value) -> str:
    """What a value is, as messages say it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return "an integer"
    if isinstance(value, float):
        return "a float"
    if isinstance(value, str):
        return f'the string "{value}"' if len(value) <= 20 else "a string"
    if isinstance(value, tuple):
        return _describe_list(value)
    return getattr(value, "described_as", None) or f"a {type(value).__name__}"


def _describe_list(value: tuple[Value, ...]) -> str:
    if not value:
        return "an empty list"
    inner = {str: "strings", tuple: "lists", bool: "truth values", int: "integers", float: "numbers"}
    names = {inner.get(type(item), "") for item in value}
    name = names.pop() if len(names) == 1 else ""
    return f"a list of {name}" if name else "a list"


def bounded(value: T) -> T:
    """The value itself, unless it is an integer of more than 128 bits."""
    if isinstance(value, int) and not -INTEGER_LIMIT < value < INTEGER_LIMIT:
        raise Misuse("the integer has more than 128 bits")
    return value


def weight_of(items: tuple[Value, ...]) -> int:
    """The elements of a list and of the lists in it, shared ones counted as often as they stand.

    Stops counting soon after the limit.
    """
    weight = len(items)
    todo = [items] if tuple in map(type, items) else []
    while todo and weight <= LIST_LIMIT:
        inner = [item for item in todo.pop() if type(item) is tuple]
        weight += sum(map(len, inner))
        todo += inner
    return weight


def weighed(items: tuple[Value, ...]) -> tuple[Value, ...]:
    """The list itself, unless it is too large; so whatever walks a list (a comparison, a hash) is bounded."""
    if weight_of(items) > LIST_LIMIT:
        raise Misuse(f"a list may have {LIST_LIMIT} elements at most")
    return items


# ---- the table


@dataclass(frozen=True)
class Parameter:
    """One argument of a function: its name and a kind out of `KINDS`."""

    name: str
    kind: str


@dataclass(frozen=True)
class Function:
    """A function of the language. The last parameter of a `variadic` one may be given any number of times."""

    name: str
    signature: str
    doc: str
    implementation: Callable[..., Value]
    parameters: tuple[Parameter, ...]
    required: int
    variadic: bool

    def accepts(self, count: int) -> bool:
        """Whether it can be called with so many arguments."""
        return count >= self.required and (self.variadic or count <= len(self.parameters))

    def kind(self, position: int) -> str:
        """The kind of the argument at a position."""
        return self.parameters[min(position, len(self.parameters) - 1)].kind

    def arity(self) -> str:
        """How many arguments it takes, in words."""
        if self.variadic:
            return f"at least {self.required} argument" + "s" * (self.required != 1)
        if self.required < len(self.parameters):
            return f"{self.required} to {len(self.parameters)} arguments"
        return f"{self.required} argument" + "s" * (self.required != 1)


_SIGNATURE = re.compile(r"(\w+)\((.*)\) -> \w+")


def declare(signature: str, implementation: Callable[..., Value], doc: str) -> Function:
    """A function from its signature, `name(a: kind, b: kind?, rest: kind...) -> kind`; `?` means optional."""
    match = _SIGNATURE.fullmatch(signature)
    if match is None:
        raise ValueError(f"malformed signature {signature!r}")
    name, inside = match.groups()
    parts = [part.split(": ") for part in inside.split(", ")] if inside else []
    parameters = tuple(Parameter(label, kind.rstrip("?.")) for label, kind in parts)
    required = sum(not kind.endswith(("?", "...")) for _, kind in parts)
    variadic = bool(parts) and parts[-1][1].endswith("...")
    return Function(name, signature, doc, implementation, parameters, required, variadic)


FUNCTIONS: dict[str, Function] = {}
"""Every function of the language by its name."""


def _function(signature: str) -> Callable[[F], F]:
    """Adds a function to the table; the first line of its docstring becomes its documentation."""

    def add(implementation: F) -> F:
        doc = (implementation.__doc__ or "").strip().split("\n")[0]
        function = declare(signature, implementation, doc)
        FUNCTIONS[function.name] = function
        return implementation

    return add


# ---- lists


@_function("len(xs: list) -> int")
def _len(xs: tuple[Value, ...]) -> int:
    """The number of elements of a list."""
    return len(xs)


@_function("range(start: int, stop: int?, step: int?) -> ints")
def _range(start: int, stop: int | None = None, step: int = 1) -> tuple[int, ...]:
    """The integers 0 to n-1, or from start to before stop in steps."""
    if step == 0:
        raise Misuse("`range` takes a step other than 0")
    span = range(start) if stop is None else range(start, stop, step)
    # len() of a range beyond the machine's word raises, so the count comes from its ends
    if span and abs(span[-1] - span[0]) // abs(step) >= LIST_LIMIT:
        raise Misuse(f"a list may have {LIST_LIMIT} elements at most")
    return tuple(span)


@_function("concat(xs: list...) -> list")
def _concat(*lists: tuple[Value, ...]) -> tuple[Value, ...]:
    """Several lists one after the other."""
    if sum(map(len, lists)) > LIST_LIMIT:
        raise Misuse(f"a list may have {LIST_LIMIT} elements at most")
    return weighed(tuple(item for each in lists for item in each))


@_function("zip(xs: list...) -> lists")
def _zip(*lists: tuple[Value, ...]) -> tuple[tuple[Value, ...], ...]:
    """Lists of the elements at equal places; the lists must be of equal length."""
    if len({len(each) for each in lists}) > 1:
        raise Misuse(f"`zip` takes lists of equal length, not of {_and([len(each) for each in lists])}")
    return weighed(tuple(zip(*lists, strict=True)))


@_function("enumerate(xs: list) -> lists")
def _enumerate(xs: tuple[Value, ...]) -> tuple[tuple[int, Value], ...]:
    """Pairs [index, element]."""
    return weighed(tuple(enumerate(xs)))


@_function("sorted(xs: list) -> list")
def _sorted(xs: tuple[Value, ...]) -> tuple[Value, ...]:
    """The elements from the lowest to the highest."""
    try:
        return tuple(sorted(xs))
    except TypeError:
        raise Misuse("`sorted` takes elements that compare with one another") from None


@_function("argsort(xs: numbers) -> ints")
def _argsort(xs: tuple[Any, ...]) -> tuple[int, ...]:
    """The indices that sort a list; equal elements keep their order."""
    return tuple(sorted(range(len(xs)), key=xs.__getitem__))


@_function("reversed(xs: list) -> list")
def _reversed(xs: tuple[Value, ...]) -> tuple[Value, ...]:
    """The elements from the last to the first."""
    return xs[::-1]


@_function("union(xs: list...) -> list")
def _union(*lists: tuple[Value, ...]) -> tuple[Value, ...]:
    """The distinct elements of lists, in the order in which they first stand."""
    return tuple(dict.fromkeys(_concat(*lists)))


@_function("find(xs: list, v: any) -> int")
def _find(xs: tuple[Value, ...], v: Value) -> int:
    """The first index of an element equal to v; an error where there is none."""
    try:
        return xs.index(v)
    except ValueError:
        raise Misuse("`find` takes a value that is in the list") from None


@_function("count(xs: list, v: any) -> int")
def _count(xs: tuple[Value, ...], v: Value) -> int:
    """How many elements equal v."""
    return xs.count(v)


@_function("replace(xs: list, i: int, v: any) -> list")
def _replace(xs: tuple[Value, ...], i: int, v: Value) -> tuple[Value, ...]:
    """The list with v at place i."""
    i = place(i, len(xs))
    return weighed((*xs[:i], v, *xs[i + 1 :]))


@_function("insert(xs: list, i: int, v: any) -> list")
def _insert(xs: tuple[Value, ...], i: int, v: Value) -> tuple[Value, ...]:
    """The list with v put before place i; i may be the length."""
    if not 0 <= i <= len(xs):
        raise Misuse(f"index {i} is out of range for inserting into a list of {len(xs)}")
    return weighed((*xs[:i], v, *xs[i:]))


@_function("remove(xs: list, i: int) -> list")
def _remove(xs: tuple[Value, ...], i: int) -> tuple[Value, ...]:
    """The list without its element at place i."""
    i = place(i, len(xs))
    return xs[:i] + xs[i + 1 :]


def place(i: int, length: int) -> int:
    """An index counted from the start; negative ones count from the end."""
    if not -length <= i < length:
        raise Misuse(f"index {i} is out of range for a list of {length}")
    return i % length


@_function("take_axes(xs: list, axes: ints) -> list")
def _take_axes(xs: tuple[Value, ...], axes: tuple[int, ...]) -> tuple[Value, ...]:
    """The elements at the listed places; the same as `xs[axes]`."""
    return weighed(tuple(xs[place(i, len(xs))] for i in axes))


@_function("drop_axes(xs: list, axes: ints) -> list")
def _drop_axes(xs: tuple[Value, ...], axes: tuple[int, ...]) -> tuple[Value, ...]:
    """The elements at all but the listed places."""
    dropped = {place(i, len(xs)) for i in axes}
    return tuple(item for i, item in enumerate(xs) if i not in dropped)


@_function("is_permutation(xs: ints) -> bool")
def _is_permutation(xs: tuple[int, ...]) -> bool:
    """Whether a list holds each of 0 to n-1 once."""
    return sorted(xs) == list(range(len(xs)))


@_function("permute(xs: list, perm: ints) -> list")
def _permute(xs: tuple[Value, ...], perm: tuple[int, ...]) -> tuple[Value, ...]:
    """The list whose element i is xs[perm[i]]: what a transpose does to the lens."""
    if len(xs) != len(perm) or not _is_permutation(perm):
        raise Misuse(f"{_list(perm)} is not a permutation of {len(xs)} axes")
    return tuple(xs[i] for i in perm)


@_function("inverse(perm: ints) -> ints")
def _inverse(perm: tuple[int, ...]) -> tuple[int, ...]:
    """The permutation that undoes perm."""
    if not _is_permutation(perm):
        raise Misuse(f"{_list(perm)} is not a permutation")
    return _argsort(perm)


# ---- numbers


def _extreme(pick: Callable[..., Value], name: str, first: Value, rest: tuple[Value, ...]) -> Value:
    candidates = first if not rest and type(first) is tuple else (first, *rest)
    if not candidates:
        raise Misuse(f"`{name}` of an empty list has no value")
    try:
        return pick(candidates)
    except TypeError:
        raise Misuse(f"`{name}` takes values that compare with one another") from None


@_function("min(x: any, more: any...) -> any")
def _min(first: Value, *rest: Value) -> Value:
    """The lowest of two or more values, or of one list."""
    return _extreme(min, "min", first, rest)


@_function("max(x: any, more: any...) -> any")
def _max(first: Value, *rest: Value) -> Value:
    """The highest of two or more values, or of one list."""
    return _extreme(max, "max", first, rest)


@_function("sum(xs: numbers) -> number")
def _sum(xs: tuple[Any, ...]) -> Value:
    """The sum of a list of numbers; 0 for the empty list."""
    return bounded(sum(xs))


@_function("product(xs: numbers) -> number")
def _product(xs: tuple[Any, ...]) -> Value:
    """The product of a list of numbers; 1 for the empty list."""
    if len(xs) <= 64:
        return bounded(math.prod(xs))
    result: Any = 1
    for x in xs:
        result = bounded(result * x)
    return result


@_function("dot(a: numbers, b: numbers) -> number")
def _dot(a: tuple[Any, ...], b: tuple[Any, ...]) -> Value:
    """The sum of the products of two lists of equal length."""
    if len(a) != len(b):
        raise Misuse(f"`dot` takes lists of equal length, not of {len(a)} and {len(b)}")
    return bounded(sum(map(operator.mul, a, b)))


@_function("cumsum(xs: numbers) -> numbers")
def _cumsum(xs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The sums of the first one, two, three … elements."""
    return tuple(accumulate(xs, lambda a, b: bounded(a + b)))


@_function("cumprod(xs: numbers) -> numbers")
def _cumprod(xs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The products of the first one, two, three … elements."""
    return tuple(accumulate(xs, lambda a, b: bounded(a * b)))


@_function("any(xs: bools) -> bool")
def _any(xs: tuple[bool, ...]) -> bool:
    """Whether at least one element is true."""
    return any(xs)


@_function("all(xs: bools) -> bool")
def _all(xs: tuple[bool, ...]) -> bool:
    """Whether every element is true."""
    return all(xs)


@_function("abs(x: number) -> number")
def _abs(x: Any) -> Value:
    """The value without its sign."""
    return abs(x)


@_function("identical(a: any, b: any) -> bool")
def _identical(a: Value, b: Value) -> bool:
    """Whether two values are the same down to their kinds and the sign of 0; nan is identical to nan."""
    return repr(a) == repr(b)


@_function("sign(x: number) -> int")
def _sign(x: Any) -> int:
    """-1, 0 or 1."""
    return int(x > 0) - int(x < 0)


@_function("clamp(x: number, low: number, high: number) -> number")
def _clamp(x: Any, low: Any, high: Any) -> Value:
    """x, but no less than low and no more than high."""
    return min(max(x, low), high)


@_function("gcd(a: int, more: int...) -> int")
def _gcd(*xs: int) -> int:
    """The greatest common divisor; gcd(0, n) is n."""
    return math.gcd(*xs)


@_function("lcm(a: int, more: int...) -> int")
def _lcm(*xs: int) -> int:
    """The least common multiple."""
    result = 1
    for x in xs:
        result = bounded(math.lcm(result, x))
    return result


@_function("ceil_div(a: int, b: int) -> int")
def _ceil_div(a: int, b: int) -> int:
    """a / b rounded up."""
    if b == 0:
        raise Misuse("division by zero")
    return -(-a // b)


@_function("round_up(a: int, b: int) -> int")
def _round_up(a: int, b: int) -> int:
    """The next multiple of b that is not below a."""
    return bounded(_ceil_div(a, b) * b)


@_function("divides(a: int, b: int) -> bool")
def _divides(a: int, b: int) -> bool:
    """Whether b is a multiple of a; 0 divides only 0."""
    return b == 0 if a == 0 else b % a == 0


@_function("largest_divisor(n: int, limit: int) -> int")
def _largest_divisor(n: int, limit: int) -> int:
    """The largest divisor of n that is not above limit (itself at most 65536)."""
    if n < 1 or not 1 <= limit <= LIST_LIMIT:
        raise Misuse(f"`largest_divisor` takes n from 1 and a limit from 1 to {LIST_LIMIT}")
    return next(d for d in range(min(n, limit), 0, -1) if n % d == 0)


@_function("is_pow2(n: int) -> bool")
def _is_pow2(n: int) -> bool:
    """Whether n is a power of two."""
    return n > 0 and n & (n - 1) == 0


@_function("log2(n: int) -> int")
def _log2(n: int) -> int:
    """The binary logarithm of a power of two, rounded up for other integers."""
    if n < 1:
        raise Misuse(f"`log2` takes an integer from 1, not {n}")
    return (n - 1).bit_length()


@_function("pow2_floor(n: int) -> int")
def _pow2_floor(n: int) -> int:
    """The largest power of two that is not above n."""
    if n < 1:
        raise Misuse(f"`pow2_floor` takes an integer from 1, not {n}")
    return 1 << (n.bit_length() - 1)


@_function("pow2_ceil(n: int) -> int")
def _pow2_ceil(n: int) -> int:
    """The smallest power of two that is not below n."""
    return bounded(1 << _log2(max(n, 1)))


@_function("pow2_divisor(n: int) -> int")
def _pow2_divisor(n: int) -> int:
    """The largest power of two that divides n; 2^62 for 0, which all divide."""
    return n & -n if n else 1 << 62


def _whole(name: str, to_integer: Callable[[Any], int], x: Any) -> int:
    try:
        return bounded(to_integer(x))
    except (OverflowError, ValueError):
        raise Misuse(f"`{name}` takes a finite number") from None


@_function("floor(x: number) -> int")
def _floor(x: Any) -> int:
    """The largest integer that is not above x."""
    return _whole("floor", math.floor, x)


@_function("ceil(x: number) -> int")
def _ceil(x: Any) -> int:
    """The smallest integer that is not below x."""
    return _whole("ceil", math.ceil, x)


@_function("trunc(x: number) -> int")
def _trunc(x: Any) -> int:
    """x without its fraction."""
    return _whole("trunc", math.trunc, x)


@_function("round(x: number) -> int")
def _round(x: Any) -> int:
    """The nearest integer; halves go to the even one."""
    return _whole("round", round, x)


def _real(name: str, compute: Callable[[Any], float], x: Any) -> float:
    try:
        return compute(x)
    except OverflowError:
        return math.inf
    except ValueError:
        raise Misuse(f"`{name}` has no value at {x}") from None


@_function("sqrt(x: number) -> number")
def _sqrt(x: Any) -> float:
    """The square root."""
    return _real("sqrt", math.sqrt, x)


@_function("exp(x: number) -> number")
def _exp(x: Any) -> float:
    """e to the power x."""
    return _real("exp", math.exp, x)


@_function("log(x: number) -> number")
def _log(x: Any) -> float:
    """The natural logarithm."""
    return _real("log", math.log, x)


# ---- dtypes


@_function("itemsize(dtype: dtype) -> int")
def _itemsize(dtype: str) -> int:
    """Bytes of one element."""
    return dtypes.DTYPES[dtype].itemsize


@_function("lowest(dtype: dtype) -> number")
def _lowest(dtype: str) -> int | float:
    """The least value of a type: -inf for floats; the identity of max."""
    return dtypes.DTYPES[dtype].lowest


@_function("highest(dtype: dtype) -> number")
def _highest(dtype: str) -> int | float:
    """The greatest value of a type: inf for floats; the identity of min."""
    return dtypes.DTYPES[dtype].highest


@_function("smallest(dtype: dtype) -> number")
def _smallest(dtype: str) -> int | float:
    """The least finite value of a type."""
    return dtypes.DTYPES[dtype].smallest


@_function("largest(dtype: dtype) -> number")
def _largest(dtype: str) -> int | float:
    """The greatest finite value of a type."""
    return dtypes.DTYPES[dtype].largest


@_function("epsilon(dtype: dtype) -> number")
def _epsilon(dtype: str) -> float:
    """The gap between 1 and the next value; 0 for exact types."""
    return dtypes.DTYPES[dtype].epsilon


@_function("is_float(dtype: dtype) -> bool")
def _is_float(dtype: str) -> bool:
    """Whether a type is a floating one."""
    return dtypes.DTYPES[dtype].is_float


@_function("is_integer(dtype: dtype) -> bool")
def _is_integer(dtype: str) -> bool:
    """Whether a type is an integer one; bool is not."""
    return dtypes.DTYPES[dtype].is_integer


@_function("is_signed(dtype: dtype) -> bool")
def _is_signed(dtype: str) -> bool:
    """Whether a type has negative values."""
    return dtypes.DTYPES[dtype].is_signed


@_function("compute_type(dtype: dtype) -> dtype")
def _compute_type(dtype: str) -> str:
    """The type arithmetic on a type is done in: float for half and bf16."""
    return dtypes.DTYPES[dtype].compute


@_function("promote(a: dtype, b: dtype) -> dtype")
def _promote(a: str, b: str) -> str:
    """The type two types meet in."""
    return dtypes.promote(a, b)


@_function("holds(wide: dtype, narrow: dtype) -> bool")
def _holds(wide: str, narrow: str) -> bool:
    """Whether every value of a type is one of another type."""
    return dtypes.holds(wide, narrow)


@_function("element_value(value: number, dtype: dtype) -> number")
def _element_value(value: Any, dtype: str) -> Value:
    """A number as an element: beyond the type's limits it becomes those, infinities of floats stay."""
    return dtypes.in_range(value, dtype)


@_function("is_element(value: any, dtype: dtype) -> bool")
def _is_element(value: Any, dtype: str) -> bool:
    """Whether a constant, a number or a list of them, holds elements of a type: of an integer one, what is in range."""
    return all(dtypes.is_element(v, dtype) for v in (value if isinstance(value, tuple) else (value,)))


@_function("converted(value: number, source: dtype, target: dtype) -> number")
def _converted(value: Any, source: str, target: str) -> Value:
    """A constant of one type converted to another."""
    return dtypes.converted(value, source, target)


@_function("is_constant(value: any, number: any, dtype: dtype) -> bool")
def _is_constant(value: Any, number: Any, dtype: str) -> Value:
    """Whether a constant of a type is a number: rounded to it, or to a narrower type that was widened."""
    return not isinstance(value, tuple) and dtypes.is_constant(value, number, dtype)


@_function("has_reciprocal(value: number, dtype: dtype) -> bool")
def _has_reciprocal(value: Any, dtype: str) -> bool:
    """Whether 1 / value is exact in a floating type, so that dividing by value is multiplying by that."""
    return dtypes.has_reciprocal(value, dtype)


# ---- texts


@_function("split(text: string, separator: string) -> list")
def _split(text: str, separator: str) -> Value:
    """The parts of a text between separators."""
    if not separator:
        raise Misuse("`split` needs a separator")
    return weighed(tuple(text.split(separator)))


@_function("letters(text: string) -> list")
def _letters(text: str) -> Value:
    """The characters of a text but blanks; `...` is one."""
    return weighed(tuple(re.findall(r"\.\.\.|\S", text)))


# ---- shapes


def _and(items: Sequence[object]) -> str:
    words = [str(item) for item in items]
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def _list(items: Sequence[object]) -> str:
    return "{" + ", ".join(map(str, items)) + "}"


@_function("normalise_axis(axis: int, rank: int) -> int")
def normalise_axis(axis: int, rank: int) -> int:
    """An axis counted from the first; negative ones count from the last."""
    if not -rank <= axis < rank:
        reach = f"axes run from {-rank} to {rank - 1}" if rank else "a scalar has no axes"
        raise Misuse(f"axis {axis} is out of range for rank {rank}: {reach}")
    return axis % rank


@_function("normalise_axes(axes: ints, rank: int) -> ints")
def normalise_axes(axes: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """Distinct axes counted from the first, in order as given."""
    result = tuple(normalise_axis(axis, rank) for axis in axes)
    if len(set(result)) != len(result):
        raise Misuse(f"the axes {_list(axes)} name one axis twice")
    return result


@_function("strides_of(lens: ints) -> ints")
def _strides_of(lens: tuple[int, ...]) -> tuple[int, ...]:
    """The row-major strides of a shape: the product of all later lens."""
    return tuple(accumulate(lens[:0:-1], lambda a, b: bounded(a * b), initial=1))[::-1] if lens else ()


@_function("ravel(index: ints, lens: ints) -> int")
def _ravel(index: tuple[int, ...], lens: tuple[int, ...]) -> int:
    """The row-major linear index of a multi-index."""
    return _dot(index, _strides_of(lens))  # type: ignore[no-any-return]


@_function("unravel(index: int, lens: ints) -> ints")
def _unravel(index: int, lens: tuple[int, ...]) -> tuple[int, ...]:
    """The multi-index of a row-major linear index."""
    if not 0 <= index < math.prod(lens[:64]):
        raise Misuse(f"index {index} is out of range for lens {_list(lens)}")
    return tuple(index // stride % n for stride, n in zip(_strides_of(lens), lens, strict=True))


@_function("broadcast_lens(a: ints, more: ints...) -> ints")
def broadcast_lens(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that shapes broadcast to: aligned at the last axis, an extent of 1 stretches."""
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(lens)) + lens for lens in shapes]
    result = []
    for axis, extents in enumerate(zip(*padded, strict=True)):
        wide = set(extents) - {1}
        if len(wide) > 1:
            shown = _and([_list(lens) for lens in shapes])
            raise Misuse(f"lens {shown} do not broadcast: axis {axis} has {_and(sorted(wide))}")
        result.append(wide.pop() if wide else 1)
    return tuple(result)


@_function("broadcasts_to(lens: ints, out_lens: ints) -> bool")
def broadcasts_to(lens: tuple[int, ...], out_lens: tuple[int, ...]) -> bool:
    """Whether a shape stretches to out_lens."""
    tail = out_lens[len(out_lens) - len(lens) :]
    return len(lens) <= len(out_lens) and all(n in (1, m) for n, m in zip(lens, tail, strict=True))


@_function("reduce_lens(lens: ints, axes: ints) -> ints")
def _reduce_lens(lens: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape with the axes of a reduction made 1."""
    reduced = normalise_axes(axes, len(lens))
    return tuple(1 if i in reduced else n for i, n in enumerate(lens))


@_function("pad_lens(lens: ints, pads: ints) -> ints")
def pad_lens(lens: tuple[int, ...], pads: tuple[int, ...]) -> tuple[int, ...]:
    """The shape after padding; pads holds all befores, then all afters, and negative ones crop."""
    rank = len(lens)
    if len(pads) != 2 * rank:
        raise Misuse(f"pads of a tensor of rank {rank} hold {2 * rank} numbers, not {len(pads)}")
    result = tuple(n + pads[i] + pads[i + rank] for i, n in enumerate(lens))
    if any(n < 0 for n in result):
        raise Misuse(f"the pads {_list(pads)} crop more than lens {_list(lens)} have")
    return result


@_function("gather_lens(lens: ints, indices_lens: ints, axis: int) -> ints")
def _gather_lens(lens: tuple[int, ...], indices_lens: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """The shape of a gather: the indices' shape stands in for the axis."""
    axis = normalise_axis(axis, len(lens))
    return lens[:axis] + indices_lens + lens[axis + 1 :]


@_function("slice_lens(lens: ints, axes: ints, starts: ints, ends: ints, steps: ints?) -> ints")
def _slice_lens(
    lens: tuple[int, ...],
    axes: tuple[int, ...],
    starts: tuple[int, ...],
    ends: tuple[int, ...],
    steps: tuple[int, ...] | None = None,
) -> tuple[int, ...]:
    """The shape of a slice; starts and ends count from the end where negative and are clamped."""
    result = list(lens)
    for axis, (start, stop, step) in slice_bounds(lens, axes, starts, ends, steps).items():
        result[axis] = len(range(start, stop, step))
    return tuple(result)


@_function("slice_starts(lens: ints, axes: ints, starts: ints, ends: ints, steps: ints?) -> ints")
def _slice_starts(
    lens: tuple[int, ...],
    axes: tuple[int, ...],
    starts: tuple[int, ...],
    ends: tuple[int, ...],
    steps: tuple[int, ...] | None = None,
) -> tuple[int, ...]:
    """The first index a slice takes, for every axis of the tensor (0 where it does not slice)."""
    bounds = slice_bounds(lens, axes, starts, ends, steps)
    return tuple(bounds[i][0] if i in bounds else 0 for i in range(len(lens)))


def slice_bounds(
    lens: tuple[int, ...],
    axes: tuple[int, ...],
    starts: tuple[int, ...],
    ends: tuple[int, ...],
    steps: tuple[int, ...] | None = None,
) -> dict[int, tuple[int, int, int]]:
    """Per sliced axis the (start, stop, step) in which negative numbers no longer count from the end."""
    steps = (1,) * len(axes) if steps is None else steps
    if not len(axes) == len(starts) == len(ends) == len(steps):
        raise Misuse("axes, starts, ends and steps of a slice must be of equal length")
    if 0 in steps:
        raise Misuse("the step of a slice must not be 0")
    places = normalise_axes(axes, len(lens))
    bounds = zip(places, starts, ends, steps, strict=True)
    return {axis: slice(start, end, step).indices(lens[axis]) for axis, start, end, step in bounds}


@_function("concat_lens(axis: int, shapes: lists) -> ints")
def concat_lens(axis: int, shapes: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    """The shape of tensors joined along an axis; their other extents must agree."""
    if not shapes:
        raise Misuse("concat takes at least one tensor")
    axis = normalise_axis(axis, len(shapes[0]))
    rest = {(len(lens), lens[:axis], lens[axis + 1 :]) for lens in shapes}
    if len(rest) > 1:
        shown = _and([_list(lens) for lens in shapes])
        raise Misuse(f"lens {shown} differ in more than axis {axis}")
    total = bounded(sum(lens[axis] for lens in shapes))
    return (*shapes[0][:axis], total, *shapes[0][axis + 1 :])


@_function("reshape_lens(lens: ints, dims: ints) -> ints")
def reshape_lens(lens: tuple[int, ...], dims: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a reshape: dims, in which one -1 stands for what is left over."""
    elements = _product(lens)
    known = _product(tuple(n for n in dims if n != -1))
    if dims.count(-1) == 1 and known > 0 and elements % known == 0:
        dims = tuple(elements // known if n == -1 else n for n in dims)
    if any(n < 0 for n in dims) or _product(dims) != elements:
        raise Misuse(f"lens {_list(lens)} with {elements} elements do not reshape to {_list(dims)}")
    return dims


@_function("squeeze_lens(lens: ints, axes: ints?) -> ints")
def squeeze_lens(lens: tuple[int, ...], axes: tuple[int, ...] = ()) -> tuple[int, ...]:
    """The shape without the given axes of extent 1; without all of them where no axes are given."""
    dropped = normalise_axes(axes, len(lens))
    for axis in dropped:
        if lens[axis] != 1:
            raise Misuse(f"axis {axis} of lens {_list(lens)} has extent {lens[axis]}: only 1 can be squeezed")
    return tuple(n for i, n in enumerate(lens) if (i not in dropped if axes else n != 1))


@_function("unsqueeze_lens(lens: ints, axes: ints) -> ints")
def unsqueeze_lens(lens: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape with axes of extent 1 put in; axes count in the result."""
    rank = len(lens) + len(axes)
    added = normalise_axes(axes, rank)
    rest = iter(lens)
    return tuple(1 if i in added else next(rest) for i in range(rank))
