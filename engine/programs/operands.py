"""How the elements of a kernel's space lie in the memory of what it reads and stores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from genrw.engine.ir.nodes import Module, Node
from genrw.engine.ir.types import packed_strides
from genrw.engine.language.layouts import merged, pieces_of
from genrw.engine.language.members import Members
from genrw.engine.library.library import Library
from genrw.engine.programs.itemsizes import itemsize
from genrw.engine.programs.orders import Layout, stored
from genrw.engine.programs.reads import Read, digits_of, read_of, reads_of


def operands_of(
    module: Module, lens: tuple[int, ...], axes: tuple[int, ...], down: tuple[int, ...], library: Library
) -> Iterator[Members]:
    """What a kernel reads and stores of which there is at least an eighth of its space; see `space_record`."""
    for read in reads_of(module, prod(lens), library):
        yield _operand(read, lens, axes, down)
    for result in module.root.operands:
        value = stored(result)
        if value.type.elements == prod(lens):
            yield _operand(read_of(value), lens, axes, down, is_stored=True)
        elif axes and value.type.elements == prod(n for d, n in enumerate(lens) if d not in axes):
            # Those of rows side by side lie side by side, as in a space of their own.
            yield _operand(read_of(value), value.type.lens, (), down, is_stored=True)


def _operand(
    read: Read, lens: tuple[int, ...], axes: tuple[int, ...], down: tuple[int, ...], is_stored: bool = False
) -> Members:
    by_row = sorted(range(len(lens)), key=lambda d: (d in axes, d))
    by_column = sorted(range(len(lens)), key=lambda d: (d not in axes, d))
    going_down = sorted(range(len(lens)), key=lambda d: (d in down, d))
    where = _in_space(read.moved or (lens, packed_strides(lens)), lens)
    values: dict[str, float] = {
        "elements": min(read.elements, prod(lens)),
        "item": itemsize(read.parameter.type.dtype),
        "together": read.together,
        "run": read.run,
        "places": read.places,
        "digits": digits_of(read, lens),
        "gaps": _gaps(read.parameter),
        "spread": _spread(read.parameter),
        "is_stored": is_stored,
        "apart_by_row": _apart(where, lens, by_row),
        "step_by_row": _step(where, lens, by_row),
        "apart_by_column": _apart(where, lens, by_column),
        "step_by_column": _step(where, lens, by_column),
        "step_down": _step(where, lens, going_down),
    }
    return Members(values)


_BURST = 64
"""The bytes that memory brings at least."""


def _gaps(tensor: Node) -> float:
    """How many bytes memory brings with each byte of a tensor between whose runs of neighbours there are gaps."""
    lens, strides = tensor.type.lens, tensor.type.layout
    *_, (length, stride) = merged(lens, strides)
    run = (length if stride == 1 else 1) * itemsize(tensor.type.dtype)
    return max(1.0, min(_spread(tensor), (run + _BURST) / run)) if 0 < run < _BURST else 1.0


def _spread(tensor: Node) -> float:
    """How far apart neighbours of a tensor lie in memory on average."""
    lens, strides = tensor.type.lens, tensor.type.layout
    extent = 1 + sum((n - 1) * s for n, s in zip(lens, strides, strict=True))
    return max(1.0, extent / max(1, tensor.type.elements))


# ---- layouts in a space

_Pieces = Sequence[tuple[Sequence[int], Sequence[int]]]
"""The lengths and strides along each axis."""


def _in_space(layout: Layout, lens: tuple[int, ...]) -> _Pieces:
    """How elements that an operator moves lie in its operand, along the axes of a space. Of a part of the space that is guessed:
    neighbours are those along the same axis, or along one whose neighbours are as far apart."""
    pieces = pieces_of(*layout, lens) if prod(layout[0]) == prod(lens) else ()
    if pieces:
        return pieces
    made, strides = layout
    if max(made, default=1) < 2:
        return [((n,), (1,)) for n in lens]
    apart = apart_in(lens, made, strides)
    along = [d for d in range(len(lens)) if lens[d] > 1 and prod(lens[d + 1 :]) == apart]
    return [((n,), (1 if d in along else max(strides),)) for d, n in enumerate(lens)]


def _apart(pieces: _Pieces, lens: Sequence[int], order: list[int]) -> int:
    """How far apart an operand's neighbours come to lie, with the elements of a space in an order of its axes."""
    _, axis, within = min(
        (
            (stride, axis, prod(parts[k + 1 :]))
            for axis, (parts, strides) in enumerate(pieces)
            for k, (length, stride) in enumerate(zip(parts, strides, strict=True))
            if length > 1
        ),
        default=(1, 0, 1),
    )
    return within * prod(lens[d] for d in order[order.index(axis) + 1 :]) if lens else 1


def _step(pieces: _Pieces, lens: Sequence[int], order: list[int]) -> int:
    """How far apart in an operand elements lie that are side by side in that order."""
    last = next((d for d in reversed(order) if lens[d] > 1), None)
    return pieces[last][1][-1] if last is not None else 1


def apart_in(space: tuple[int, ...], lens: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """How far apart neighbours in memory come to lie in a space of which a layout gives a part."""
    return prod((space if len(space) == len(lens) else lens)[nearest(lens, strides) + 1 :])


def nearest(lens: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """The axis along which neighbours lie nearest."""
    return min((d for d in range(len(lens)) if lens[d] > 1), key=strides.__getitem__)
