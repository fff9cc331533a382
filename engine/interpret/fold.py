"""What monoids mean: folding arrays along an axis, from a monoid's declaration.

An accumulator is a tuple of arrays, one for each field that the monoid carries; if it carries none, of one.
Expressions see an accumulator of one field as an array, others as a value with the fields as members.

Adjacent elements are combined in pairs, then the results in pairs and so on: in order, and with little rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from genrw.engine.language.arrays import Array, Values, stored
from genrw.engine.language.functions import Function, Misuse, Value, declare
from genrw.engine.language.numeric import ArrayExpression, compile_numeric
from genrw.engine.language.shapes import normalise_axes
from genrw.engine.library.library import Library
from genrw.engine.library.monoids import accumulate_type, element_type, result_type
from genrw.grammar.expr_tree import Expr
from genrw.grammar.rw_tree import FieldExpr, MonoidDecl

Accumulator = tuple[Array, ...]


class Folds:
    """The folds of a library's monoids, each made when first asked for."""

    def __init__(self, library: Library, precise: bool) -> None:
        self.library = library
        self.precise = precise
        self._folds: dict[tuple[str, str], Fold] = {}

    def of(self, monoid: str, dtype: str) -> Fold:
        """The fold of a monoid over elements of a type; an accumulator's type stands for its elements'."""
        if monoid not in self.library.monoids:
            raise Misuse(f"`{monoid}` is not a monoid")
        key = monoid, element_type(dtype)
        if key not in self._folds:
            self._folds[key] = Fold(self.library.monoids[monoid], key[1], self._compile, self.precise)
        return self._folds[key]

    def over(self, monoid: str, accumulator: Accumulator) -> Fold:
        """The fold that an accumulator belongs to: a field of the elements' type tells that type."""
        carried = self.library.monoids[monoid].carry if monoid in self.library.monoids else ()
        generic = [i for i, (_, dtype) in enumerate(carried) if dtype == "T"]
        if carried and len(carried) != len(accumulator):
            raise Misuse(f"the accumulator of `{monoid}` has {len(carried)} fields, not {len(accumulator)}")
        return self.of(monoid, accumulator[generic[0] if generic else 0].dtype)

    def _compile(self, expr: Expr) -> ArrayExpression:
        scope = self.library.scope
        return compile_numeric(expr, scope.lets, precise=self.precise, functions=scope.functions)


class Fold:
    """A monoid over elements of one type."""

    def __init__(
        self, monoid: MonoidDecl, dtype: str, compile_: Callable[[Expr], ArrayExpression], precise: bool
    ) -> None:
        self.monoid, self.dtype, self.precise, self._compile = monoid, dtype, precise, compile_

    @cached_property
    def fields(self) -> dict[str, str]:
        """The types of the accumulator's fields; one without name if the monoid carries none."""
        return {name: self.dtype if d == "T" else d for name, d in self.monoid.carry} or {"": self.dtype}

    @cached_property
    def identity(self) -> Accumulator:
        """What a fold starts from."""
        return self._fields(self._identity, {})

    @cached_property
    def _identity(self) -> dict[str, ArrayExpression]:
        return self._compiled(self.monoid.identity)

    @cached_property
    def _element(self) -> dict[str, ArrayExpression]:
        return self._compiled(self.monoid.element)

    @cached_property
    def _combine(self) -> dict[str, ArrayExpression]:
        return self._compiled(self.monoid.combine)

    @cached_property
    def _finish(self) -> ArrayExpression | None:
        return self._compile(self.monoid.finish) if self.monoid.finish is not None else None

    def _compiled(self, fields: tuple[FieldExpr, ...]) -> dict[str, ArrayExpression]:
        return {f.field or "": self._compile(f.value) for f in fields}

    def _fields(
        self, meanings: Mapping[str, ArrayExpression], env: Mapping[str, Any], of: Sequence[Value] = ()
    ) -> Accumulator:
        """The fields of an accumulator, each for all elements of what it is made `of`."""
        env = {"type": self.dtype, **env}
        return tuple(
            stored(_filled(np.asarray(meanings[name](env, dtype)), of), dtype, self.precise)
            for name, dtype in self.fields.items()
        )

    def _named(self, accumulator: Accumulator) -> Value:
        """An accumulator as expressions see it."""
        return dict(zip(self.fields, accumulator, strict=True)) if self.monoid.carry else accumulator[0]

    def element(self, x: Array, position: Value) -> Accumulator:
        """The accumulator of single elements, at these positions of their rows."""
        if not self.monoid.element:
            return (stored(x.values, self.dtype, self.precise),)
        return self._fields(self._element, {"x": x, "k": position, "index": position}, (x, position))

    def combine(self, a: Accumulator, b: Accumulator) -> Accumulator:
        """Two accumulators in one."""
        return self._fields(self._combine, {"a": self._named(a), "b": self._named(b)}, (*a, *b))

    def finish(self, accumulator: Accumulator, count: int) -> Array:
        """The result of a fold over so many elements."""
        dtype = result_type(self.monoid, self.dtype)
        if self._finish is None:
            return accumulator[0]
        env = {**dict(zip(self.fields, accumulator, strict=True)), "a": self._named(accumulator)}
        values = self._finish({**env, "n": count, "type": self.dtype}, dtype)
        return stored(_filled(np.asarray(values), accumulator), dtype, self.precise)

    def along(self, accumulator: Accumulator, axis: int) -> Accumulator:
        """All accumulators along an axis combined in one; the axis stays, with length 1."""
        lens = np.broadcast_shapes(*(array.values.shape for array in accumulator))
        elements = parts = tuple(Array(np.broadcast_to(a.values, lens), a.dtype) for a in accumulator)
        count = lens[axis]
        if count == 0:
            shape = list(lens)
            shape[axis] = 1
            return tuple(Array(np.broadcast_to(a.values, shape), a.dtype) for a in self.identity)
        while count > 1:
            paired = count - count % 2
            folded = self.combine(_every(parts, axis, 0, paired, 2), _every(parts, axis, 1, paired, 2))
            if paired < count:
                folded = _joined(folded, _every(parts, axis, paired, count, 1), axis)
            parts, count = folded, count - count // 2
        return self._without_order(elements, parts, axis)

    def _without_order(self, elements: Accumulator, folded: Accumulator, axis: int) -> Accumulator:
        """The folded accumulators without the NaN that their order made: a product of small numbers that became 0, times
        an infinite one. Such rows are folded again, infinite elements first, one after the other."""
        made = np.moveaxis(_any_field(np.isnan, folded), axis, -1)[..., 0]
        if not made.any():
            return folded
        made &= ~np.moveaxis(_any_field(np.isnan, elements), axis, -1).any(axis=-1)
        rows = tuple(Array(np.moveaxis(e.values, axis, -1)[made], e.dtype) for e in elements)
        order = np.argsort(~_any_field(np.isinf, rows), axis=-1, kind="stable")
        rows = tuple(Array(np.take_along_axis(r.values, order, axis=-1), r.dtype) for r in rows)
        again = _every(rows, -1, 0, 1, 1)
        for i in range(1, order.shape[-1]):
            again = self.combine(again, _every(rows, -1, i, i + 1, 1))
        return tuple(_replaced(f, made, a, axis) for f, a in zip(folded, again, strict=True))


def _filled(values: Values, of: Sequence[Value]) -> Values:
    """Values for all elements of what they are made of: what names none of it is one value."""
    shapes = (a.values.shape for a in of if isinstance(a, Array))
    return np.broadcast_to(values, np.broadcast_shapes(values.shape, *shapes))


def _every(parts: Accumulator, axis: int, start: int, stop: int, step: int) -> Accumulator:
    where: list[slice] = [slice(None)] * parts[0].values.ndim
    where[axis] = slice(start, stop, step)
    return tuple(Array(a.values[tuple(where)], a.dtype) for a in parts)


def _any_field(test: np.ufunc, accumulator: Accumulator) -> Values:
    """Where a test of floats holds for some field."""
    found = [test(a.values) for a in accumulator if a.values.dtype.kind == "f"]
    return np.logical_or.reduce(found) if found else np.zeros(accumulator[0].values.shape, np.bool_)


def _replaced(folded: Array, rows: Values, values: Array, axis: int) -> Array:
    """An array folded along an axis, with other values in some rows."""
    result = folded.values.copy()
    np.moveaxis(result, axis, -1)[rows] = values.values
    return Array(result, folded.dtype)


def _joined(a: Accumulator, b: Accumulator, axis: int) -> Accumulator:
    pairs = zip(a, b, strict=True)
    return tuple(Array(np.concatenate((x.values, y.values), axis), x.dtype) for x, y in pairs)


def opened(value: Value) -> Accumulator:
    """A value of the expression language as an accumulator."""
    if isinstance(value, Array):
        return (value,)
    if isinstance(value, tuple) and value and all(isinstance(part, Array) for part in value):
        return value
    raise Misuse("only values of lanes can be folded")


def closed(accumulator: Accumulator) -> Value:
    """An accumulator as a value of the expression language."""
    return accumulator if len(accumulator) > 1 else accumulator[0]


def fold_functions(folds: Folds) -> dict[str, Function]:
    """What `means` clauses may say about folding tensors."""
    reduce_ = declare(
        "reduce(op: string, x: any, axes: ints) -> any",
        lambda op, x, axes: reduce_tensor(folds, op, x, axes),
        "The elements along axes folded with a monoid; the axes stay, with length 1.",
    )
    # fmt: off
    parts = (
        declare("accumulated(op: string, x: any, k: any) -> any", lambda op, x, k: accumulated(folds, op, x, k),
            "Each element's accumulator, at position k of its row; what a fold starts from where k is below 0."),
        declare("merged(op: string, x: any, axes: ints) -> any", lambda op, x, axes: merged(folds, op, x, axes),
            "Accumulators along axes folded into one; the axes stay, with length 1."),
        declare("combined(op: string, x: any, y: any) -> any",
            lambda op, x, y: closed(folds.over(op, opened(x)).combine(opened(x), opened(y))),
            "Two accumulators in one."),
        declare("read_off(op: string, x: any, n: int) -> any",
            lambda op, x, n: folds.over(op, opened(x)).finish(opened(x), n),
            "The result of a fold over n elements, from the accumulator."),
        declare("field(op: string, x: any, name: string) -> any",
            lambda op, x, name: opened(x)[field_number(folds, op, name)], "A field of an accumulator."),
        declare("with_field(op: string, x: any, name: string, value: any) -> any",
            lambda op, x, name, value: with_field(folds, op, x, name, value),
            "The accumulator with another value in a field. A type for `x` stands for what a fold over it starts from."),
    )
    # fmt: on
    return {f.name: f for f in (reduce_, *parts)}


def accumulated(folds: Folds, op: str, x: Value, k: Value) -> Value:
    """The accumulators of elements at positions of their rows; those of no elements, below position 0, are identities."""
    if not isinstance(x, Array) or not isinstance(k, Array):
        raise Misuse("`accumulated` takes elements and their positions")
    fold = folds.of(op, x.dtype)
    found = zip(fold.element(x, k), fold.identity, strict=True)
    return closed(tuple(Array(np.where(k.values >= 0, a.values, b.values), a.dtype) for a, b in found))


def merged(folds: Folds, op: str, x: Value, axes: tuple[int, ...]) -> Value:
    """Accumulators folded along axes."""
    parts = opened(x)
    rank = parts[0].values.ndim
    axes = normalise_axes(axes, rank)
    kept = tuple(d for d in range(rank) if d not in axes)
    lens = parts[0].values.shape
    rows = tuple(a.values.transpose(kept + axes).reshape((*(lens[d] for d in kept), -1)) for a in parts)
    found = folds.over(op, parts).along(tuple(Array(r, a.dtype) for r, a in zip(rows, parts, strict=True)), len(kept))
    shape = tuple(1 if d in axes else n for d, n in enumerate(lens))
    return closed(tuple(Array(a.values.reshape(shape), a.dtype) for a in found))


def field_number(folds: Folds, op: str, name: str) -> int:
    """The place of a field among those that a monoid carries."""
    names = [field for field, _ in folds.library.monoids[op].carry] if op in folds.library.monoids else []
    if name not in names:
        raise Misuse(f"`{op}` carries no field `{name}`")
    return names.index(name)


def with_field(folds: Folds, op: str, x: Value, name: str, value: Value) -> Value:
    """An accumulator, or what a fold over a type starts from, with another value in a field."""
    if not isinstance(value, Array):
        raise Misuse("`with_field` takes a value for the field")
    parts = folds.of(op, x).identity if isinstance(x, str) else opened(x)
    lens = np.broadcast_shapes(value.values.shape, *(a.values.shape for a in parts))
    own = field_number(folds, op, name)
    found = (value if place == own else a for place, a in enumerate(parts))
    return closed(tuple(Array(np.broadcast_to(v.values, lens), a.dtype) for v, a in zip(found, parts, strict=True)))


def reduce_tensor(folds: Folds, op: str, x: Value, axes: tuple[int, ...]) -> Array:
    """A tensor folded along axes, in the type the monoid accumulates in."""
    if not isinstance(x, Array):
        raise Misuse("`reduce` takes a tensor")
    axes = normalise_axes(axes, x.values.ndim)
    kept = tuple(d for d in range(x.values.ndim) if d not in axes)
    lens = tuple(1 if d in axes else n for d, n in enumerate(x.values.shape))
    count = int(np.prod([x.values.shape[d] for d in axes], dtype=np.int64))
    rows = x.values.transpose(kept + tuple(sorted(axes)))
    rows = rows.reshape((*rows.shape[: len(kept)], count))
    monoid = folds.of(op, x.dtype).monoid
    fold = folds.of(op, accumulate_type(monoid, x.dtype))
    with np.errstate(all="ignore"):
        elements = fold.element(Array(rows, x.dtype), Array(np.arange(count), "int64"))
        result = fold.finish(fold.along(elements, len(kept)), count)
    return Array(result.values.reshape(lens), result_type(monoid, x.dtype))
