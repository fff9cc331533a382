"""Functions of the expression language on shapes and strides that need a walk over dimensions.

A *layout* gives each element of a shape, counted along its rows, a number: the sum of its coordinates times strides,
and an offset. Layouts are closed under composition wherever the dimensions of both nest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

from genrw.engine.language.functions import Function, Misuse, declare
from genrw.engine.language.shapes import broadcast_lens

Ints = tuple[int, ...]
Piece = tuple[int, int]
"""The length and the stride of a dimension, or of a part of one."""


# ---- dimensions that belong together


def merged(lens: Ints, strides: Ints) -> tuple[Piece, ...]:
    """(length, stride) pairs with neighbours joined where one walk covers both, length-1 dimensions dropped."""
    if len(lens) != len(strides):
        raise Misuse("`merge_dims` takes as many strides as lengths")
    pairs: list[Piece] = []
    for length, stride in zip(lens, strides, strict=True):
        if length == 1:
            continue
        if pairs and pairs[-1][1] == length * stride:
            pairs[-1] = (pairs[-1][0] * length, stride)
        else:
            pairs.append((length, stride))
    return tuple(pairs) or ((1, 0),)


def kept_groups(lens: Ints, axes: Ints) -> tuple[tuple[int, bool], ...]:
    """(length, is reduced) pairs of neighbouring dimensions of one kind, length-1 dimensions dropped."""
    groups: list[tuple[int, bool]] = []
    for d, length in enumerate(lens):
        if length == 1:
            continue
        reduced = d in axes
        if groups and groups[-1][1] == reduced:
            groups[-1] = (groups[-1][0] * length, reduced)
        else:
            groups.append((length, reduced))
    return tuple(groups)


def trailing_axes(lens: Ints, count: int) -> Ints:
    """The last axes, as many as hold `count` elements."""
    axes: Ints = ()
    held = 1
    for d in range(len(lens) - 1, -1, -1):
        if held == count and lens[d] != 1:
            break
        axes, held = (d, *axes), held * lens[d]
    if held != count:
        raise Misuse(f"no trailing axes hold {count} elements")
    return axes


def broadcast_all(shapes: tuple[Ints, ...]) -> Ints:
    """The shape that all shapes of a list broadcast to."""
    return broadcast_lens(*shapes)


# ---- composition


def compose(
    outer_lens: Ints, outer_strides: Ints, lens: Ints, strides: Ints, offset: int
) -> tuple[tuple[tuple[Piece, ...], ...], int] | tuple[()]:
    """The layout (lens, strides, offset), whose numbers count elements of another layout, followed by that one.

    The result is, for each of `lens`, the pieces that its dimension falls into, and the offset; or nothing, where the
    dimensions of the two do not nest.
    """
    digits = _Digits(outer_lens, outer_strides)
    low = offset + sum(s * (n - 1) for n, s in zip(lens, strides, strict=True) if s < 0 and n > 1)
    if low < 0 or 0 in lens or 0 in outer_lens:
        return ()
    base = digits.begin(low)
    pieces: list[tuple[Piece, ...]] = []
    for length, stride in zip(lens, strides, strict=True):
        split = digits.split(length, abs(stride))
        if split is None:
            return ()
        if stride < 0:
            base += sum((n - 1) * s for n, s in split)
            split = tuple((n, -s) for n, s in split)
        pieces.append(split)
    return (tuple(pieces), base) if digits.fit() else ()


class _Digits:
    """The coordinates of numbers along a layout's dimensions, and how far each has been filled."""

    def __init__(self, lens: Ints, strides: Ints) -> None:
        pairs = [(n, s) for n, s in zip(lens, strides, strict=True) if n != 1]
        self.lens = [n for n, _ in pairs]
        self.strides = [s for _, s in pairs]
        self.weights = [prod(self.lens[d + 1 :]) for d in range(len(pairs))]
        self.highest = [0] * len(pairs)

    def begin(self, number: int) -> int:
        """Where the layout puts a number, whose coordinates all others are added to."""
        self.highest = [number // w % n for w, n in zip(self.weights, self.lens, strict=True)]
        return sum(c * s for c, s in zip(self.highest, self.strides, strict=True))

    def split(self, length: int, stride: int) -> tuple[Piece, ...] | None:
        """A dimension of numbers `stride` apart as pieces, each of which changes one coordinate only."""
        if length == 1 or stride == 0:
            return ((length, 0),)
        pieces: list[Piece] = []
        while length > 1:
            d = next((d for d, w in enumerate(self.weights) if stride % w == 0), None)
            if d is None:
                return None
            step = stride // self.weights[d]
            count = length if d == 0 or step * (length - 1) < self.lens[d] else self._whole(d, step, length)
            if count < 2:
                return None
            self.highest[d] += step * (count - 1)
            pieces.insert(0, (count, step * self.strides[d]))
            length, stride = length // count, stride * count
        return tuple(pieces)

    def _whole(self, d: int, step: int, length: int) -> int:
        """How many steps exhaust coordinate d, if they divide it and the length; else 0."""
        count, rest = divmod(self.lens[d], step)
        return count if rest == 0 and count and length % count == 0 else 0

    def fit(self) -> bool:
        """Does no coordinate carry over to the next?"""
        return all(high < n for high, n in zip(self.highest, self.lens, strict=True))


def composed(outer_lens: Ints, outer_strides: Ints, lens: Ints, strides: Ints, offset: int) -> tuple[Any, ...]:
    """[lens, strides, offset] of one layout followed by another, neighbours merged; empty where they do not nest."""
    found = compose(outer_lens, outer_strides, lens, strides, offset)
    if not found:
        return ()
    pieces = [p for dimension in found[0] for p in dimension]
    pairs = merged(tuple(n for n, _ in pieces), tuple(s for _, s in pieces))
    return tuple(n for n, _ in pairs), tuple(s for _, s in pairs), found[1]


def pieces_of(lens: Ints, strides: Ints, shape: Ints) -> tuple[tuple[Ints, Ints], ...]:
    """For each dimension of `shape`, [lens, strides] of a layout of as many elements, neighbours joined where one walk
    covers both; empty where they do not nest."""
    packed = tuple(prod(shape[d + 1 :]) for d in range(len(shape)))
    found = compose(lens, strides, shape, packed, 0)
    if not found:
        return ()
    joined = (merged(tuple(n for n, _ in p), tuple(s for _, s in p)) for p in found[0])
    return tuple((tuple(n for n, _ in p), tuple(s for _, s in p)) for p in joined)


def layout_along(lens: Ints, strides: Ints, shape: Ints, dims: Ints) -> tuple[Ints, ...]:
    """[lens, strides] of a layout along some dimensions of `shape` taken together; empty where they do not nest."""
    pieces = pieces_of(lens, strides, shape)
    if len(pieces) != len(shape):
        return ()
    chosen = [pieces[d] for d in dims]
    pairs = merged(tuple(n for p in chosen for n in p[0]), tuple(s for p in chosen for s in p[1]))
    return tuple(n for n, _ in pairs), tuple(s for _, s in pairs)


def run_along(lens: Ints, strides: Ints, shape: Ints, dim: int) -> int:
    """How many first elements along a dimension of `shape` follow one another in memory; 1 where a layout does not nest with the
    shape."""
    pieces = pieces_of(lens, strides, shape)
    return pieces[dim][0][-1] if pieces and pieces[dim][1][-1] == 1 else 1


_LINE = 32
"""The elements of a line of memory."""


def lying_together(lens: Ints, strides: Ints, shape: Ints, dim: int) -> int:
    """How many of the first elements along a dimension of `shape` lie in one line of memory, on average and rounded down; 1 where a
    layout does not nest with the shape."""
    pieces = pieces_of(lens, strides, shape)
    if len(pieces) != len(shape):
        return 1
    places = first_places(*pieces[dim], 2 * _LINE)
    return len(places) // lines_of(places)


def first_places(lens: Ints, strides: Ints, count: int) -> set[int]:
    """Where about so many first elements along a dimension lie in memory."""
    places = {0}
    for length, stride in zip(reversed(lens), reversed(strides), strict=True):
        taken = min(length, max(1, count // len(places)))
        places = {place + k * stride for place in places for k in range(taken)}
    return places


def lines_of(places: Iterable[int]) -> int:
    """The lines of memory in which places lie."""
    return len({place // _LINE for place in places})


def _unused(name: str, names: Sequence[str]) -> str:
    while name in names:
        name += "_"
    return name


# fmt: off
LAYOUT_FUNCTIONS: dict[str, Function] = {
    f.name: f
    for f in (
        declare("merge_dims(lens: ints, strides: ints) -> lists", merged,
            "[length, stride] pairs with neighbours joined where one walk covers both."),
        declare("kept_groups(lens: ints, axes: ints) -> lists", kept_groups,
            "[length, is reduced] pairs of neighbouring dimensions of one kind."),
        declare("trailing_axes(lens: ints, count: int) -> ints", trailing_axes,
            "The last axes, as many as hold `count` elements."),
        declare("broadcast_all(shapes: lists) -> ints", broadcast_all,
            "The shape that all shapes of a list broadcast to."),
        declare("compose_layouts(outer_lens: ints, outer_strides: ints, lens: ints, strides: ints, offset: int) -> list",
            composed, "[lens, strides, offset] of a layout followed by another; empty where their dimensions do not nest."),
        declare("pieces_of(lens: ints, strides: ints, shape: ints) -> lists", pieces_of,
            "For each dimension of `shape`, the [lens, strides] of a layout along it; empty where they do not nest."),
        declare("layout_along(lens: ints, strides: ints, shape: ints, dims: ints) -> lists", layout_along,
            "[lens, strides] of a layout along dimensions of `shape` taken together; empty where they do not nest."),
        declare("run_along(lens: ints, strides: ints, shape: ints, dim: int) -> int", run_along,
            "How many first elements along a dimension of `shape` follow one another in memory; 1 where a layout does not nest with it."),
        declare("lying_together(lens: ints, strides: ints, shape: ints, dim: int) -> int", lying_together,
            "How many elements along a dimension of `shape` lie in one line of memory, on average; 1 where a layout does not nest with it."),
        declare("flat(xs: lists) -> list", lambda xs: tuple(item for each in xs for item in each),
            "The elements of the lists of a list."),
        declare("is_number(value: any) -> bool", lambda value: isinstance(value, (int, float)),
            "Whether a constant is one number for all elements."),
        declare("numbered(name: string, i: int) -> string", lambda name, i: f"{name}{i}" if i else name,
            "The name, with i behind it unless i is 0."),
        declare("unused(name: string, names: list) -> string", _unused,
            "The name, with underscores behind it as long as it is among the names."),
    )
}
# fmt: on
