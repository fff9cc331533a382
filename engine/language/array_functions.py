"""Operators and functions of the expression language on arrays. `array_functions` is the whole table."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import cache, partial, reduce
from typing import Any

import numpy as np

from genrw.engine.ir.dtypes import DTYPES, numpy_dtype
from genrw.engine.language import arithmetic, elementwise, tensors
from genrw.engine.language.arrays import Array, Values, meet, stored
from genrw.engine.language.functions import Function, Misuse, Value, declare, describe

Binop = Callable[[Value, Value], Value]

_NUMBERS = "iuf"
_INTEGERS = "iu"
_BITS = "iub"
"""numpy's letters for the kinds of types an operator takes."""


def _compute(what: str, kinds: str, compute: Callable[..., Any], operands: tuple[Value, ...]) -> Array:
    """An elementwise function of operands that meet in one type, which has to be of one of the kinds."""
    dtype, values = meet(what, operands)
    if values[0].dtype.kind not in kinds:
        raise Misuse(f"{what} does not take tensors of {dtype}")
    with np.errstate(all="ignore"):
        return Array(np.asarray(compute(*values)), dtype)


# ---- operators


def _binary(op: str, kinds: str, compute: Callable[[Values, Values], Any]) -> Binop:
    scalar = arithmetic.BINARY[op]

    def apply(a: Value, b: Value) -> Value:
        if isinstance(a, Array) or isinstance(b, Array):
            return _compute(f"`{op}`", kinds, compute, (a, b))
        return scalar(a, b)

    return apply


BINARY: dict[str, Binop] = {
    "+": _binary("+", _NUMBERS, np.add),
    "-": _binary("-", _NUMBERS, np.subtract),
    "*": _binary("*", _NUMBERS, np.multiply),
    "/": _binary("/", _NUMBERS, elementwise.divide),
    "//": _binary("//", _NUMBERS, elementwise.floor_divide),
    "%": _binary("%", _NUMBERS, elementwise.floor_modulo),
    "**": _binary("**", _NUMBERS, elementwise.power),
    "&": _binary("&", _BITS, np.bitwise_and),
    "|": _binary("|", _BITS, np.bitwise_or),
    "^": _binary("^", _BITS, np.bitwise_xor),
    "<<": _binary("<<", _INTEGERS, elementwise.shift_left),
    ">>": _binary(">>", _INTEGERS, elementwise.shift_right),
}


def _unary(op: str, kinds: str, compute: Callable[[Values], Any]) -> Callable[[Value], Value]:
    scalar = arithmetic.UNARY[op]

    def apply(a: Value) -> Value:
        return _compute(f"`{op}`", kinds, compute, (a,)) if isinstance(a, Array) else scalar(a)

    return apply


UNARY: dict[str, Callable[[Value], Value]] = {
    "-": _unary("-", _NUMBERS, np.negative),
    "~": _unary("~", _INTEGERS, np.invert),
    "not": _unary("not", "b", np.logical_not),
}


def _comparison(op: str, compute: Callable[[Any, Any], Any]) -> Binop:
    scalar = arithmetic.COMPARE[op]

    def apply(a: Value, b: Value) -> Value:
        if not isinstance(a, Array) and not isinstance(b, Array):
            return scalar(a, b)
        if _beyond(a, b) or _beyond(b, a):
            # every element stands on the same side of the number as 0 does
            array, zeros = (a, (0, b)) if isinstance(a, Array) else (b, (a, 0))
            return Array(np.full(array.values.shape, compute(*zeros)), "bool")
        _, (x, y) = meet(f"`{op}`", (a, b))
        with np.errstate(all="ignore"):
            return Array(np.asarray(compute(x, y)), "bool")

    return apply


def _beyond(array: Value, number: Value) -> bool:
    """Whether a number is an integer that the type of an integer array cannot hold."""
    if not isinstance(array, Array) or not isinstance(number, int):
        return False
    limits = DTYPES[array.dtype]
    return limits.is_integer and not limits.smallest <= number <= limits.largest


COMPARE: dict[str, Binop] = {
    **arithmetic.COMPARE,
    "==": _comparison("==", operator.eq),
    "!=": _comparison("!=", operator.ne),
    "<": _comparison("<", operator.lt),
    "<=": _comparison("<=", operator.le),
    ">": _comparison(">", operator.gt),
    ">=": _comparison(">=", operator.ge),
}


def both(a: Value, b: Value) -> Value:
    """`and` of truth values and bool arrays."""
    return _compute("`and`", "b", np.logical_and, (a, b)) if isinstance(a, Array) else b if a else a


def either(a: Value, b: Value) -> Value:
    """`or` of truth values and bool arrays."""
    return _compute("`or`", "b", np.logical_or, (a, b)) if isinstance(a, Array) else a if a else b


def where(condition: Value, a: Value, b: Value) -> Value:
    """a where the condition holds, b elsewhere."""
    if isinstance(condition, bool):
        return a if condition else b
    if not isinstance(condition, Array) or condition.dtype != "bool":
        raise Misuse(f"`where` takes a condition of type bool, not {describe(condition)}")
    dtype, (x, y) = meet("`where`", (a, b))
    meet("`where`", (condition, *(v for v in (a, b) if isinstance(v, Array))))
    return Array(np.where(condition.values, x, y), dtype)


# ---- the table


def _elementwise(name: str, kinds: str, compute: Callable[..., Any]) -> Callable[..., Value]:
    """A function of arrays and numbers; of numbers alone it gives a number."""

    def apply(*operands: Value) -> Value:
        if any(isinstance(operand, Array) for operand in operands):
            return _compute(f"`{name}`", kinds, compute, operands)
        if kinds == "f":
            operands = tuple(float(v) if isinstance(v, int | float) else v for v in operands)
        return _compute(f"`{name}`", kinds, compute, operands).values.item()

    return apply


def _whole(compute: np.ufunc) -> Callable[[Values], Any]:
    """A rounding function, which leaves integers alone."""
    return lambda x: compute(x) if x.dtype.kind == "f" else x


def _fold(name: str, compute: np.ufunc) -> Callable[..., Value]:
    apply = _elementwise(name, _NUMBERS + "b", compute)

    def fold(*operands: Value) -> Value:
        if len(operands) < 2:
            raise Misuse(f"`{name}` takes two or more tensors; a tensor's own elements are reduced by an operator")
        return reduce(apply, operands)

    return fold


def _clamp(x: Values, low: Values, high: Values) -> Any:
    return np.minimum(np.maximum(x, low), high)


def _fma(a: Values, b: Values, c: Values) -> Any:
    if a.dtype != np.float32:
        return a * b + c
    return (a.astype(np.float64) * b + c).astype(np.float32)


_FLOATING: dict[str, tuple[Callable[[Values], Any], str]] = {
    "sqrt": (np.sqrt, "The square root."),
    "rsqrt": (elementwise.rsqrt, "1 over the square root."),
    "cbrt": (np.cbrt, "The cube root."),
    "exp": (np.exp, "e to the power x."),
    "exp2": (np.exp2, "2 to the power x."),
    "expm1": (np.expm1, "exp(x) - 1, exact near 0."),
    "log": (np.log, "The natural logarithm."),
    "log2": (np.log2, "The binary logarithm."),
    "log10": (np.log10, "The decimal logarithm."),
    "log1p": (np.log1p, "log(1 + x), exact near 0."),
    "sin": (np.sin, "The sine."),
    "cos": (np.cos, "The cosine."),
    "tan": (np.tan, "The tangent."),
    "asin": (np.arcsin, "The inverse sine."),
    "acos": (np.arccos, "The inverse cosine."),
    "atan": (np.arctan, "The inverse tangent."),
    "sinh": (np.sinh, "The hyperbolic sine."),
    "cosh": (np.cosh, "The hyperbolic cosine."),
    "tanh": (np.tanh, "The hyperbolic tangent."),
    "asinh": (np.arcsinh, "The inverse hyperbolic sine."),
    "acosh": (np.arccosh, "The inverse hyperbolic cosine."),
    "atanh": (np.arctanh, "The inverse hyperbolic tangent."),
    "erf": (elementwise.erf, "The error function."),
}

_ROUNDING: dict[str, tuple[np.ufunc, str]] = {
    "floor": (np.floor, "The largest whole number that is not above x."),
    "ceil": (np.ceil, "The smallest whole number that is not below x."),
    "trunc": (np.trunc, "x without its fraction."),
    "round": (np.rint, "The nearest whole number; halves go to the even one."),
}

_TESTS: dict[str, tuple[np.ufunc, str]] = {
    "isnan": (np.isnan, "Whether x is nan."),
    "isinf": (np.isinf, "Whether x is inf or -inf."),
    "isfinite": (np.isfinite, "Whether x is neither nan nor infinite."),
}


def _one_value() -> list[Function]:
    """Elementwise functions of one operand."""
    table = [(name, "f", compute, doc) for name, (compute, doc) in _FLOATING.items()]
    table += [(name, _NUMBERS, _whole(compute), doc) for name, (compute, doc) in _ROUNDING.items()]
    table.append(("abs", _NUMBERS, np.abs, "The value without its sign; of the lowest integer, itself."))
    table.append(("sign", _NUMBERS, np.sign, "-1, 0 or 1; nan of nan."))
    functions = [
        declare(f"{name}(x: any) -> any", _elementwise(name, kinds, compute), doc)
        for name, kinds, compute, doc in table
    ]
    for name, (compute, doc) in _TESTS.items():
        functions.append(declare(f"{name}(x: any) -> any", partial(_test, name, compute), doc))
    return functions


def _test(name: str, compute: np.ufunc, x: Value) -> Value:
    _, (values,) = meet(f"`{name}`", (x,))
    result = np.asarray(compute(values)) if values.dtype.kind == "f" else np.full(values.shape, name == "isfinite")
    return Array(result, "bool") if isinstance(x, Array) else bool(result)


def _several_values() -> list[Function]:
    """Elementwise functions of several operands."""
    least = "The lowest of two or more values; nan if one of them is nan."
    greatest = "The highest of two or more values; nan if one of them is nan."
    clamp, remainder = _elementwise("clamp", _NUMBERS, _clamp), elementwise.truncating_modulo
    return [
        declare("min(x: any, more: any...) -> any", _fold("min", np.minimum), least),
        declare("max(x: any, more: any...) -> any", _fold("max", np.maximum), greatest),
        declare("clamp(x: any, low: any, high: any) -> any", clamp, "x, but no less than low nor more than high."),
        declare("pow(x: any, y: any) -> any", BINARY["**"], "x to the power y."),
        declare(
            "fmod(x: any, y: any) -> any",
            _elementwise("fmod", _NUMBERS, remainder),
            "The remainder of the division rounded towards 0: it has the sign of x.",
        ),
        declare("atan2(y: any, x: any) -> any", _elementwise("atan2", "f", np.arctan2), "The angle of (x, y)."),
        declare(
            "fma(a: any, b: any, c: any) -> any",
            _elementwise("fma", _NUMBERS, _fma),
            "a * b + c, rounded once.",
        ),
        declare("where(condition: any, a: any, b: any) -> any", where, "a where the condition holds, else b."),
    ]


# ---- functions that move data


def _array(name: str, x: Value) -> Array:
    if not isinstance(x, Array):
        raise Misuse(f"`{name}` takes a tensor, not {describe(x)}")
    return x


def _moving(name: str, compute: Callable[..., Values]) -> Callable[..., Array]:
    """A function that only moves the elements of its first argument."""

    def apply(x: Value, *args: Value) -> Array:
        array = _array(name, x)
        return Array(compute(array.values, *args), array.dtype)

    return apply


def _pad(x: Value, pads: Any, mode: str = "constant", value: Value = 0) -> Array:
    array = _array("pad", x)
    fill = value.values.item() if isinstance(value, Array) and value.values.size == 1 else value
    if not isinstance(fill, int | float):
        raise Misuse(f"`pad` takes a number to pad with, not {describe(value)}")
    return Array(tensors.pad(array.values, pads, mode, fill, array.dtype), array.dtype)


def _take(x: Value, indices: Value, axis: int = 0) -> Array:
    array = _array("take", x)
    if not isinstance(indices, Array | int | tuple):
        raise Misuse(f"`take` takes integers as indices, not {describe(indices)}")
    places = indices.values if isinstance(indices, Array) else np.asarray(indices, np.int64)
    return Array(tensors.take(array.values, places, axis), array.dtype)


def _concat(axis: int, *xs: Value) -> Array:
    parts = [_array("concat", x) for x in (xs[0] if len(xs) == 1 and isinstance(xs[0], tuple) else xs)]
    dtypes = {part.dtype for part in parts}
    if len(dtypes) > 1:
        raise Misuse(f"`concat` takes tensors of one type, not of {' and '.join(sorted(dtypes))}")
    return Array(tensors.concat(axis, [part.values for part in parts]), *dtypes)


def _sum_of_products(x: Value, y: Value, axes: Any) -> Array:
    a, b = _array("sum_of_products", x), _array("sum_of_products", y)
    if a.dtype != b.dtype or a.values.dtype.kind not in _NUMBERS:
        raise Misuse(f"`sum_of_products` takes two tensors of one type of numbers, not of {a.dtype} and {b.dtype}")
    try:
        return Array(tensors.sum_of_products(a.values, b.values, axes), a.dtype)
    except ValueError:
        shapes = f"{tensors.shown(a.values.shape)} and {tensors.shown(b.values.shape)}"
        raise Misuse(f"lens {shapes} do not broadcast") from None


def _movements() -> list[Function]:
    def moving(signature: str, compute: Callable[..., Values], doc: str) -> Function:
        return declare(signature, _moving(signature.split("(")[0], compute), doc)

    return [
        declare(
            "pad(x: any, pads: ints, mode: string?, value: any?) -> any",
            _pad,
            "Elements put around a tensor: pads is befores, then afters; mode constant, edge or reflect.",
        ),
        declare(
            "take(x: any, indices: any, axis: int?) -> any",
            _take,
            "Elements at indices along an axis; negative indices count from the end.",
        ),
        declare(
            "concat(axis: int, xs: any...) -> any",
            _concat,
            "Tensors, or a list of them, joined along an axis.",
        ),
        moving("flip(x: any, axes: ints) -> any", tensors.flip, "The axes turned around."),
        moving(
            "slice(x: any, axes: ints, starts: ints, ends: ints, steps: ints?) -> any",
            tensors.slice_,
            "A part of a tensor; negative starts and ends count from the end, all are clamped.",
        ),
        moving(
            "windows(x: any, axes: ints, lengths: ints, strides: ints?, dilations: ints?) -> any",
            tensors.windows,
            "The windows over some axes; the places in a window are axes of their own before the first of these.",
        ),
        declare(
            "sum_of_products(x: any, y: any, axes: ints) -> any",
            _sum_of_products,
            "The products of two tensors, summed along axes, which stay with length 1.",
        ),
        moving("transpose(x: any, perm: ints) -> any", tensors.transpose, "Axis i is the operand's axis perm[i]."),
        moving("broadcast_to(x: any, lens: ints) -> any", tensors.broadcast_to, "Repeated to fill a shape."),
        moving(
            "broadcast_axis(x: any, axis: int, out_lens: ints) -> any",
            tensors.broadcast_axis,
            "Repeated over all axes but its own, which begin at an axis.",
        ),
        moving("reshape(x: any, dims: ints) -> any", tensors.reshape, "The same elements in another shape."),
        moving("squeeze(x: any, axes: ints?) -> any", tensors.squeeze, "Without axes of extent 1."),
        moving("unsqueeze(x: any, axes: ints) -> any", tensors.unsqueeze, "With axes of extent 1 put in."),
    ]


# ---- functions that make elements


def _convert(precise: bool, x: Value, dtype: str) -> Array:
    _, (values,) = meet("`convert`", (x,))
    if precise and DTYPES[dtype].is_float:
        return stored(values, dtype, precise)
    with np.errstate(all="ignore"):
        return stored(np.asarray(elementwise.convert(values, dtype)), dtype, precise)


def _bits(precise: bool, x: Value, dtype: str) -> Array:
    source, (values,) = meet("`bits`", (x,))
    if DTYPES[source].itemsize != DTYPES[dtype].itemsize:
        raise Misuse(f"`bits` takes elements of as many bytes as {dtype} has, not of {source}")
    with np.errstate(all="ignore"):
        own = np.ascontiguousarray(elementwise.convert(values, source))
    return stored(own.view(numpy_dtype(dtype)), dtype, precise)


def _iota(precise: bool, lens: Any, axis: int, dtype: str = "int64") -> Array:
    return stored(tensors.iota(lens, axis), dtype, precise)


def _full(precise: bool, lens: Any, value: Value, dtype: str) -> Array:
    element = _convert(precise, value, dtype)
    return Array(tensors.broadcast_to(element.values, lens), dtype)


def _makers(precise: bool) -> list[Function]:
    return [
        declare(
            "convert(x: any, dtype: dtype) -> any",
            partial(_convert, precise),
            "x as another type: floats to integers truncate and saturate, integers wrap, floats round.",
        ),
        declare(
            "bits(x: any, dtype: dtype) -> any",
            partial(_bits, precise),
            "What x's bits are as another type of as many bytes.",
        ),
        declare(
            "iota(lens: ints, axis: int, dtype: dtype?) -> any",
            partial(_iota, precise),
            "Each element's index along an axis, int64 unless a type is given.",
        ),
        declare(
            "full(lens: ints, value: any, dtype: dtype) -> any",
            partial(_full, precise),
            "A tensor of one value.",
        ),
    ]


@cache
def array_functions(precise: bool = False) -> Mapping[str, Function]:
    """Every function that takes or makes arrays, by name."""
    functions = [*_one_value(), *_several_values(), *_movements(), *_makers(precise)]
    return {function.name: function for function in functions}
