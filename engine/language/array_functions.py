"""What the tables of functions and operators say of tensors, made functions that compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial, reduce
from typing import Any

import numpy as np

from genrw.engine.ir.dtypes import DTYPES, numpy_dtype
from genrw.engine.language import elementwise, operators, tensors
from genrw.engine.language.arrays import Array, meet, stored
from genrw.engine.language.builtins import BUILTINS
from genrw.engine.language.functions import Function, Misuse, Value, declare, describe, shown
from genrw.engine.language.meaning import NUMBERS, OfTensors
from genrw.engine.language.operators import Binop


def _compute(what: str, kinds: str, compute: Callable[..., Any], operands: tuple[Value, ...]) -> Array:
    """An elementwise function of operands that meet in one type, which has to be of one of the kinds."""
    dtype, values = meet(what, operands)
    if values[0].dtype.kind not in kinds:
        raise Misuse(f"{what} does not take tensors of {dtype}")
    with np.errstate(all="ignore"):
        return Array(np.asarray(compute(*values)), dtype)


def _named(name: str) -> Callable[..., Any]:
    """A function of elements that a table names."""
    found: Callable[..., Any] = getattr(elementwise, name, None) or getattr(np, name)
    return found


# ---- operators


def _operator(op: str, meaning: operators.Operator) -> Callable[..., Value]:
    scalar, kinds, compute = meaning.value, meaning.kinds, _named(meaning.tensors)

    def apply(*operands: Value) -> Value:
        if any(isinstance(operand, Array) for operand in operands):
            return _compute(f"`{op}`", kinds, compute, operands)
        return scalar(*operands)

    return apply


BINARY: dict[str, Binop] = {op: _operator(op, meaning) for op, meaning in operators.BINARY.items()}
UNARY: dict[str, Callable[[Value], Value]] = {op: _operator(op, meaning) for op, meaning in operators.UNARY.items()}


def _comparison(op: str, meaning: operators.Comparison) -> Binop:
    scalar, compute = meaning.value, meaning.compute
    if compute is None:
        return scalar

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


COMPARE: dict[str, Binop] = {op: _comparison(op, meaning) for op, meaning in operators.COMPARE.items()}


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


# ---- elementwise functions


def _elementwise(name: str, meaning: OfTensors) -> Callable[..., Value]:
    """A function of arrays and numbers; of numbers alone it gives a number."""
    kinds, compute = meaning.kinds, _named(meaning.compute)

    def apply(*operands: Value) -> Value:
        if any(isinstance(operand, Array) for operand in operands):
            return _compute(f"`{name}`", kinds, compute, operands)
        if kinds == "f":
            operands = tuple(float(v) if isinstance(v, int | float) else v for v in operands)
        return _compute(f"`{name}`", kinds, compute, operands).values.item()

    return apply


def _folding(name: str, meaning: OfTensors) -> Callable[..., Value]:
    apply = _elementwise(name, meaning)

    def fold(*operands: Value) -> Value:
        if len(operands) < 2:
            raise Misuse(f"`{name}` takes two or more tensors; a tensor's own elements are reduced by an operator")
        return reduce(apply, operands)

    return fold


def _test(name: str, meaning: OfTensors) -> Callable[..., Value]:
    compute = _named(meaning.compute)

    def test(x: Value) -> Value:
        _, (values,) = meet(f"`{name}`", (x,))
        # integers are finite, and no other thing that a test asks for
        whole = bool(compute(0.0))
        result = np.asarray(compute(values)) if values.dtype.kind == "f" else np.full(values.shape, whole)
        return Array(result, "bool") if isinstance(x, Array) else bool(result)

    return test


# ---- functions that move data


def _array(name: str, x: Value) -> Array:
    if not isinstance(x, Array):
        raise Misuse(f"`{name}` takes a tensor, not {describe(x)}")
    return x


def _moving(name: str, meaning: OfTensors) -> Callable[..., Array]:
    """A function that only moves the elements of its first argument."""
    compute = getattr(tensors, meaning.compute)

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
    if a.dtype != b.dtype or a.values.dtype.kind not in NUMBERS:
        raise Misuse(f"`sum_of_products` takes two tensors of one type of numbers, not of {a.dtype} and {b.dtype}")
    try:
        return Array(tensors.sum_of_products(a.values, b.values, axes), a.dtype)
    except ValueError:
        shapes = f"{shown(a.values.shape)} and {shown(b.values.shape)}"
        raise Misuse(f"lens {shapes} do not broadcast") from None


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
        own = np.asarray(elementwise.convert(values, source))
    return stored(own.view(numpy_dtype(dtype)), dtype, precise)


def _iota(precise: bool, lens: Any, axis: int, dtype: str = "int64") -> Array:
    return stored(tensors.iota(lens, axis), dtype, precise)


def _full(precise: bool, lens: Any, value: Value, dtype: str) -> Array:
    element = _convert(precise, value, dtype)
    return Array(tensors.broadcast_to(element.values, lens), dtype)


# ---- the functions of the table

_OWN: dict[str, Callable[..., Value]] = {
    "concat": _concat,
    "pad": _pad,
    "sum_of_products": _sum_of_products,
    "take": _take,
    "where": where,
}
_MAKING: dict[str, Callable[..., Value]] = {"bits": _bits, "convert": _convert, "full": _full, "iota": _iota}

FORMS: dict[str, Callable[[str, OfTensors], Callable[..., Value]]] = {
    "elementwise": _elementwise,
    "folding": _folding,
    "moving": _moving,
    "operator": lambda _, meaning: BINARY[meaning.compute],
    "own": lambda _, meaning: _OWN[meaning.compute],
    "test": _test,
}
"""The ways to take tensors. Beside these there is `making`, which is told whether floats are to be precise."""


def _made(name: str, meaning: OfTensors, precise: bool) -> Function:
    making = meaning.form == "making"
    compute = partial(_MAKING[meaning.compute], precise) if making else FORMS[meaning.form](name, meaning)
    return declare(meaning.signature, compute, meaning.doc)


@cache
def array_functions(precise: bool = False) -> Mapping[str, Function]:
    """Every function that takes or makes arrays, by name."""
    meanings = ((name, builtin.tensors) for name, builtin in BUILTINS.items())
    return {name: _made(name, meaning, precise) for name, meaning in meanings if isinstance(meaning, OfTensors)}
