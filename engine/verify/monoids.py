"""Do monoids keep what folds rely on? Tried on random elements, special ones among them, in every type that they fold.

An accumulator is what one to three elements combine to. Two are the same if their fields are, or if no fold tells them
apart: alone, and combined with another one on either side, they have the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from zlib import crc32

import numpy as np

from genrw.engine.interpret.fold import Accumulator, Fold, Folds
from genrw.engine.ir.dtypes import CLASSES, DTYPES, numpy_dtype
from genrw.engine.language.arrays import Array, Values
from genrw.engine.language.functions import Misuse
from genrw.engine.language.numeric import compile_numeric
from genrw.engine.library.library import Library
from genrw.engine.library.monoids import accumulate_type, folds, result_type
from genrw.engine.verify.judge import shown
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.rw_tree import MonoidDecl
from genrw.grammar.source import Span

_LONGEST = 3
"""The most elements of an accumulator."""
_COUNT = 7
"""The number of elements that results are asked for: any will do to tell accumulators apart."""
_INSTANCES = 20
"""Instances for each that is wanted: they are cheap."""
_WIDTHS = (10.0, 1e3, 1e6)
"""How far elements are drawn where the usual ones are outside of the domain."""
_USUAL = "float"
"""The type that is tried first."""
_TINY = 2.0**-38
_TIES = (-2.0, -1.0, 0.0, 1.0, 2.0)
_SPECIAL = (0.0, -0.0, 1.0, float("inf"), float("-inf"), float("nan"), 1e30, -1e30)
_REAL = CLASSES["real"]


@dataclass(frozen=True)
class WrongMonoid:
    """What a monoid does not keep, where it is written, what to do, and the elements that show it."""

    reason: str
    span: Span
    remedy: str
    shown: str


def try_monoid(library: Library, monoid: MonoidDecl, count: int, seed: str) -> tuple[int, WrongMonoid | None]:
    """How many instances held, and what the first that does not shows."""
    compared = 0
    computed = dict.fromkeys(accumulate_type(monoid, d) for d in DTYPES if folds(monoid, d))
    for dtype in sorted(computed, key=lambda d: d != _USUAL):
        trial = _Trial(library, monoid, dtype, count * _INSTANCES, f"{seed}/{dtype}")
        try:
            with np.errstate(all="ignore"):
                wrong = next(trial.problems(), None)
        except (GenrwError, Misuse, ValueError) as problem:
            said = problem.diagnostics[0].message if isinstance(problem, GenrwError) else str(problem)
            remedy = "say by `where T: …` which types it is for"
            return compared, WrongMonoid(f"cannot be evaluated for {dtype}: {said}", monoid.name_span, remedy, "")
        if wrong is not None:
            return compared, wrong
        compared += trial.count
    return compared, None


class _Trial:
    """A monoid over elements of one type: three accumulators in each of so many instances."""

    def __init__(self, library: Library, monoid: MonoidDecl, dtype: str, count: int, seed: str) -> None:
        self.library, self.monoid, self.dtype, self.count = library, monoid, dtype, count
        self.precise = DTYPES[dtype].is_float
        self.fold = Folds(library, self.precise).of(monoid.name, dtype)
        self.rng = np.random.default_rng(crc32(seed.encode()))
        self.lengths = self.rng.integers(1, _LONGEST + 1, (3, count))
        self.elements = self._drawn((3, count, _LONGEST))

    # ---- elements

    def _drawn(self, lens: tuple[int, ...]) -> Values:
        """Elements: in some instances few numbers that are often equal, in some special ones; all within the domain."""
        rng, type_ = self.rng, DTYPES[self.dtype]
        numpy_type = np.dtype(np.float64) if self.precise else numpy_dtype(self.dtype)
        if type_.kind == "bool":
            return rng.integers(0, 2, lens).astype(numpy_type)
        if type_.is_float:
            usual, special = rng.uniform(-2, 2, lens), np.array(_SPECIAL)
        else:
            usual = rng.integers(max(-9, int(type_.smallest)), 10, lens).astype(numpy_type)
            limits = (type_.smallest, type_.largest, 0, 1, type_.largest - 1)
            special = np.array([numpy_type.type(n) for n in limits])
        ties = np.asarray(_TIES if type_.is_signed else (0, 1, 2)).astype(numpy_type)
        kind = rng.integers(0, 3, (1, lens[1], 1))
        rare = (kind == 2) & (rng.uniform(size=lens) < 0.4)
        values = np.where(kind == 1, ties[rng.integers(0, len(ties), lens)], usual)
        values = np.where(rare, special[rng.integers(0, len(special), lens)], values).astype(numpy_type)
        return self._within_domain(values)

    def _within_domain(self, values: Values) -> Values:
        """The elements, others in place of those that the monoid is not for."""
        for width in _WIDTHS:
            fine = self._in_domain(values)
            if np.any(fine):
                return np.where(fine, values, self.rng.choice(values[fine], values.shape))
            values = self.rng.uniform(-width, width, values.shape).astype(values.dtype)
        raise Misuse("no random element is within its domain")

    def _in_domain(self, values: Values) -> Values:
        scope = self.library.scope
        fine = np.ones(values.shape, np.bool_)
        for condition in self.monoid.domain:
            holds = compile_numeric(condition, scope.lets, precise=self.precise, functions=scope.functions)
            fine &= np.asarray(holds({"x": Array(values, self.dtype), "type": self.dtype}))
        return fine

    def _accumulators(self, fold: Fold) -> list[Accumulator]:
        """Three accumulators of neighbouring elements, for each instance."""
        found = []
        for number in range(3):
            whole: Accumulator = ()
            for place in range(_LONGEST):
                position = np.full(self.count, number * _LONGEST + place)
                element = fold.element(Array(self.elements[number, :, place], self.dtype), Array(position, "int64"))
                whole = (
                    self._chosen(self.lengths[number] > place, fold.combine(whole, element), whole)
                    if place
                    else element
                )
            found.append(self._chosen(np.ones(self.count, np.bool_), whole, whole))
        return found

    @staticmethod
    def _chosen(where: Values, a: Accumulator, b: Accumulator) -> Accumulator:
        return tuple(Array(np.where(where, x.values, y.values), x.dtype) for x, y in zip(a, b, strict=True))

    # ---- what has to hold

    def problems(self) -> Iterator[WrongMonoid]:
        """What does not hold."""
        yield from self._truncating()
        fold, monoid = self.fold, self.monoid
        a, b, c = self._accumulators(fold)
        start: Accumulator = tuple(Array(np.broadcast_to(f.values, self.count), f.dtype) for f in fold.identity)
        identity, combine = monoid.identity[0].value.span, monoid.combine[0].value.span
        remedy = "folds start from it, and combine it in any place: write what changes nothing"
        told = f"its identity is not neutral for {self.dtype}"
        yield from self._compared(
            told, identity, remedy, "combine(identity, a)", "a", fold.combine(start, a), a, (b, c), 1
        )
        yield from self._compared(
            told, identity, remedy, "combine(a, identity)", "a", fold.combine(a, start), a, (b, c), 1
        )
        remedy = "folds combine accumulators in any order: treat `a` and `b` alike"
        told = f"it is not commutative for {self.dtype}"
        left, right = fold.combine(a, b), fold.combine(b, a)
        yield from self._compared(told, combine, remedy, "combine(a, b)", "combine(b, a)", left, right, (c,), 2)
        remedy = "folds combine in any grouping: let an accumulator hold all that the result needs"
        told = f"it is not associative for {self.dtype}"
        left, right = fold.combine(fold.combine(a, b), c), fold.combine(a, fold.combine(b, c))
        names = "combine(combine(a, b), c)", "combine(a, combine(b, c))"
        yield from self._compared(told, combine, remedy, *names, left, right, (a,), 3)

    def _compared(
        self,
        told: str,
        span: Span,
        remedy: str,
        left_name: str,
        right_name: str,
        left: Accumulator,
        right: Accumulator,
        others: tuple[Accumulator, ...],
        used: int,
    ) -> Iterator[WrongMonoid]:
        """Where two accumulators of the first so many are to be the same and are not."""
        wrong = ~self._alike(left, right) & ~self._told_alike(left, right, others)
        if not np.any(wrong):
            return
        place = self._simplest(np.flatnonzero(wrong), used)
        lines = [f"{name} of {self._elements(i, place)}" for i, name in zip(range(used), "abc", strict=False)]
        lines += [f"{left_name}: {self._fields(left, place)}", f"{right_name}: {self._fields(right, place)}"]
        yield WrongMonoid(told, span, remedy, "\n".join(lines))

    def _told_alike(self, left: Accumulator, right: Accumulator, others: tuple[Accumulator, ...]) -> Values:
        """In which instances do two accumulators have the same results, whatever they are combined with?"""
        if self.monoid.finish is None:
            return np.zeros(self.count, np.bool_)
        steps: list[Callable[[Accumulator], Accumulator]] = [lambda x: x]
        for other in others:
            steps += [lambda x, o=other: self.fold.combine(x, o), lambda x, o=other: self.fold.combine(o, x)]  # type: ignore[misc]
        alike = np.ones(self.count, np.bool_)
        for step in steps:
            made = [step(side) for side in (left, right)]
            results = [(*accumulator, self.fold.finish(accumulator, _COUNT)) for accumulator in made]
            scale = self._scale(*results)
            alike &= self._close(results[0][-1], results[1][-1], scale)
        return alike

    def _alike(self, left: Accumulator, right: Accumulator) -> Values:
        """In which instances are all fields the same?"""
        scale = self._scale(left, right)
        alike = [self._close(x, y, scale) for x, y in zip(left, right, strict=True)]
        return np.asarray(np.logical_and.reduce(alike))

    def _scale(self, *accumulators: Accumulator) -> Values:
        """How large numbers get in each instance: what rounding may lose goes by that."""
        largest = np.abs(np.where(np.isfinite(self.elements), self.elements, 0)).max((0, 2)).astype(np.float64)
        for array in (a for accumulator in accumulators for a in accumulator):
            values = np.abs(np.broadcast_to(array.values, self.count).astype(np.float64))
            largest = np.maximum(largest, np.where(np.isfinite(values), values, 0))
        return np.asarray(largest)

    def _close(self, a: Array, b: Array, scale: Values) -> Values:
        x, y = a.values, b.values
        equal = (x == y) | ((x != x) & (y != y))
        if not DTYPES[a.dtype].is_float:
            return np.broadcast_to(equal, self.count)
        near = np.isfinite(x) & np.isfinite(y) & (np.abs(x - y) <= _TINY * scale)
        return np.broadcast_to(equal | near, self.count)

    # ---- integers in place of numbers

    def _truncating(self) -> Iterator[WrongMonoid]:
        """A fold of real numbers whose integer fields, or whose integer result, drop fractions."""
        monoid = self.monoid
        result = result_type(monoid, self.dtype)
        whole = [name for name, dtype in monoid.carry if dtype in DTYPES and DTYPES[dtype].is_integer]
        if self.dtype not in _REAL or monoid.finish is None or not (whole or DTYPES[result].is_integer):
            return
        real = replace(
            monoid,
            carry=tuple((name, "double" if name in whole else dtype) for name, dtype in monoid.carry),
            result="double",
        )
        scope = self.library.scope
        other = Fold(
            real, self.dtype, lambda e: compile_numeric(e, scope.lets, precise=True, functions=scope.functions), True
        )
        mine, theirs = (self._row_results(fold) for fold in (self.fold, other))
        values = mine.values.astype(np.float64), theirs.values.astype(np.float64)
        known = np.isfinite(values[1]) & (np.abs(values[1]) < 2**31)
        wrong = known & ~(np.abs(values[0] - values[1]) <= _TINY * (self._scale() + np.abs(values[1])))
        if not np.any(wrong):
            return
        place = self._simplest(np.flatnonzero(wrong), 3)
        row = self._elements(range(3), place)
        by = f"its field `{whole[0]}` of integers" if whole else f"its result of {result}"
        lines = f"of {row} it makes {shown(values[0][place])}; with fields of real numbers {shown(values[1][place])}"
        remedy = "carry the field as T, or say by trunc, floor or round what the integer is"
        yield WrongMonoid(f"{by} drops fractions for {self.dtype}", monoid.finish.span, remedy, lines)

    def _row_results(self, fold: Fold) -> Array:
        a, b, c = self._accumulators(fold)
        result = fold.finish(fold.combine(fold.combine(a, b), c), _COUNT)
        return Array(np.broadcast_to(result.values, self.count), result.dtype)

    # ---- what is shown

    def _simplest(self, places: Values, used: int) -> int:
        """The instance of few elements without special ones, if there is one."""
        sizes = self.lengths[:used, places].sum(0)
        odd = ~np.isfinite(self.elements[:used][:, places]) | (np.abs(self.elements[:used][:, places]) > 100)
        return int(places[int(np.argmin(sizes + 10 * odd.any((0, 2))))])

    def _elements(self, numbers: int | range, place: int) -> str:
        several = [numbers] if isinstance(numbers, int) else numbers
        values = [v for i in several for v in self.elements[i, place, : self.lengths[i, place]]]
        return "{" + ", ".join(shown(v) for v in values) + "}"

    def _fields(self, accumulator: Accumulator, place: int) -> str:
        found = zip(self.fold.fields, accumulator, strict=True)
        return ", ".join(f"{name} = {shown(a.values[place])}" if name else shown(a.values[place]) for name, a in found)
