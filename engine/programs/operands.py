"""How the elements of a kernel's space lie in the memory of what it reads and stores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from math import gcd, prod
from typing import Any

from genrw.engine.ir.dtypes import DTYPES
from genrw.engine.ir.nodes import Module, Node
from genrw.engine.ir.types import packed_strides
from genrw.engine.language.layouts import merged, pieces_of
from genrw.engine.language.members import Members
from genrw.engine.library.library import Library
from genrw.engine.library.monoids import element_type

Layout = tuple[tuple[int, ...], tuple[int, ...]]
"""Lengths and strides."""


def scattering(module: Module, library: Library) -> list[Node]:
    """The operators that move elements so that neighbours in the result lie apart in the operand."""
    return [node for node in module.nodes if _scatters(node, library)]


def _scatters(node: Node, library: Library) -> bool:
    operator = library.operator(node.op)
    if operator.role != "index_map" or "scattered" not in operator.decl.role_parts:
        return False
    layout = order_of_axes(node, library)
    if layout is None or node.type.elements < 2:
        return layout is None
    return merged(*layout)[-1][1] != 1


def order_of_axes(node: Node, library: Library, in_memory: Node | None = None) -> Layout | None:
    """Lengths and strides in the operand of an operator that says how it orders its axes, or in a parameter of the operand's shape."""
    parts = library.operator(node.op).decl.role_parts
    if len(parts) < 3 or "scattered" not in parts:
        return None
    operand, order = node.operands[library.part(node.op, 0)], node.attribute(parts[2])
    lens = operand.type.lens
    strides = packed_strides(lens) if in_memory is None or in_memory.type.lens != lens else in_memory.type.layout
    scattered = _from_anywhere(operand, library)
    strides = tuple(_ANYWHERE if d in scattered else stride for d, stride in enumerate(strides))
    return tuple(lens[d] for d in order), tuple(strides[d] for d in order)


_ANYWHERE = 1 << 40
"""How far apart elements are taken to lie that indices say the places of."""


def _from_anywhere(node: Node, library: Library) -> set[int]:
    """The axes along which indices say where a tensor's elements come from, as far as operators above left them in their order."""
    role = library.role(node.op)
    if role not in ("pointwise", "index_map"):
        return set()
    if role == "index_map" and _places(node, library):
        return _named_axes(node, library)
    if order_of_axes(node, library) is not None:
        return set()
    alike = [operand for operand in node.operands if len(operand.type.lens) == len(node.type.lens)]
    return set[int]().union(*(_from_anywhere(operand, library) for operand in alike))


def laid_out(module: Module, library: Library) -> list[tuple[Node, Layout]]:
    """The operators that scatter and say how, each with lengths and strides in its operand."""
    return [(n, layout) for n in scattering(module, library) if (layout := order_of_axes(n, library)) is not None]


def stored(node: Node) -> Node:
    """The tensor behind a result: what is copied or stored, or the result itself."""
    return node.operands[0] if node.type.sort == "effect" and node.operands else node


_LEAST_PART = 8
"""Parameters count of which there is at least an eighth of what is made of them: parts of concatenations, and what is padded by more
than itself. Fewer elements than that are repeated, and stay in the cache."""


def read_beneath(node: Node, library: Library) -> list[Node]:
    """The parameters that a value's elements are computed from one by one; the value itself without any."""
    found, beneath = [], list(node.operands)
    for below in beneath:
        if below.op == library.boundary("input").name and _LEAST_PART * below.type.elements >= node.type.elements:
            found.append(below)
        elif library.role(below.op) == "pointwise":
            beneath += [operand for operand in below.operands if operand not in beneath]
    return found or [node]


# ---- operands of a space


@dataclass(frozen=True)
class _Read:
    """A parameter as a value's elements are taken from it: blocks of `together` neighbours are read as one, `run` neighbours
    follow one another, and an index of `places` bytes says where, if there is one. It is `elements` that are taken. Once an operator
    has ordered its axes, `moved` says how they lie. Of an element's number `digits` were told apart so far, and before the axes `cuts`
    others are."""

    parameter: Node
    together: int
    run: int
    elements: int
    places: int = 0
    moved: Layout | None = None
    digits: int = 1
    cuts: frozenset[int] = frozenset()


_Reads = dict[tuple[int, int], _Read]
"""What is read, by the parameter and the operator that moved its elements last, 0 without any: of a parameter from which several
operators take elements each takes its own."""


def operands_of(
    module: Module, lens: tuple[int, ...], axes: tuple[int, ...], down: tuple[int, ...], library: Library
) -> Iterator[Members]:
    """What a kernel reads and stores of which there is at least an eighth of its space; see `space_record`."""
    for read in _reads(module, prod(lens), library):
        yield _operand(read, lens, axes, down)
    for result in module.root.operands:
        value = stored(result)
        if value.type.elements == prod(lens):
            yield _operand(_read_of(value), lens, axes, down, is_stored=True)
        elif axes and value.type.elements == prod(n for d, n in enumerate(lens) if d not in axes):
            # Those of rows side by side lie side by side, as in a space of their own.
            yield _operand(_read_of(value), value.type.lens, (), down, is_stored=True)


def _operand(
    read: _Read, lens: tuple[int, ...], axes: tuple[int, ...], down: tuple[int, ...], is_stored: bool = False
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
        "digits": _digits(read, lens),
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


def _reads(module: Module, elements: int, library: Library) -> list[_Read]:
    """How the outermost values of a kernel, results and what is folded, are made of its parameters."""
    known: dict[int, _Reads] = {}
    found: _Reads = {}
    for node in module.nodes:
        below = _merged(known.get(id(o), {}) for o in node.operands)
        role = library.role(node.op)
        if node.op == library.boundary("input").name and node.type.sort == "tensor":
            known[id(node)] = {(id(node), 0): _read_of(node)} if _LEAST_PART * node.type.elements >= elements else {}
        elif role == "pointwise":
            known[id(node)] = below
        elif role == "index_map":
            known[id(node)] = _merged(_moved(node, o, known.get(id(o), {}), library) for o in node.operands)
        else:
            found = _merged((found, below))
    return list(found.values())


def _merged(reads: Iterator[_Reads] | Sequence[_Reads]) -> _Reads:
    """What several values read: of a parameter that several read, the fewest neighbours together."""
    found: _Reads = {}
    for each in reads:
        for key, read in each.items():
            other = found.get(key, read)
            kept = read if read.moved and not other.moved else other
            found[key] = replace(
                kept,
                together=gcd(read.together, other.together),
                run=min(read.run, other.run),
                places=max(read.places, other.places),
                digits=max(read.digits, other.digits),
                cuts=read.cuts | other.cuts,
            )
    return found


def _moved(node: Node, operand: Node, reads: _Reads, library: Library) -> _Reads:
    """What an operator that moves elements reads through one of its operands."""
    order = order_of_axes(node, library)
    through = _together_through(node, operand, order, library)
    run, places = _run_through(node, operand, order, library), _places(node, library)
    scattered = order if order is not None and _scatters(node, library) else None
    in_order = "in_order" in library.operator(node.op).decl.role_parts
    return {
        (parameter, last if in_order else id(node)): replace(
            read,
            together=gcd(read.together, through),
            run=min(read.run, run),
            elements=min(read.elements, node.type.elements),
            places=max(read.places, places),
            moved=_moved_again(node, operand, read.moved, library) or read.moved if read.moved else scattered,
            **_told_apart(node, operand, read, library),
        )
        for (parameter, last), read in reads.items()
    }


def _told_apart(node: Node, operand: Node, read: _Read, library: Library) -> dict[str, Any]:
    """The digits of an element's number that an operator tells apart: those of axes that it names, orders, or makes longer or shorter,
    and of those between them together."""
    made, lens = node.type.lens, operand.type.lens
    if "in_order" in library.operator(node.op).decl.role_parts or len(made) != len(lens):
        return {"digits": _digits(read, lens), "cuts": frozenset()}
    layout = order_of_axes(node, library)
    if layout is not None:
        return {"digits": _digits(read, lens) + len(merged(*layout)) - 1, "cuts": frozenset()}
    changed = {d for d, (before, after) in enumerate(zip(lens, made, strict=True)) if before != after}
    changed |= _named_axes(node, library)
    return {"cuts": read.cuts | changed | {d + 1 for d in changed}}


def _digits(read: _Read, lens: Sequence[int]) -> int:
    """The digits of the number of an element of what has these lengths."""
    bounds = sorted({0, len(lens), *read.cuts} & set(range(len(lens) + 1)))
    return read.digits - 1 + max(1, sum(prod(lens[a:b]) > 1 for a, b in pairwise(bounds)))


def _moved_again(node: Node, operand: Node, layout: Layout, library: Library) -> Layout | None:
    """Where elements lie that an operator moves of an operand with a layout: those of each axis that keeps its place, as far apart as
    before. None where its axes are not the operand's."""
    parts = library.operator(node.op).decl.role_parts
    if "in_order" in parts:
        return layout
    pieces = pieces_of(*layout, operand.type.lens)
    if len(pieces) != len(node.type.lens) or (len(parts) == 2 and "scattered" in parts):
        return None
    order = node.attribute(parts[2]) if "scattered" in parts else range(len(pieces))
    moved = [
        (lens, strides) if prod(lens) == n else ((n,), strides[-1:])
        for (lens, strides), n in zip((pieces[d] for d in order), node.type.lens, strict=True)
    ]
    return tuple(n for lens, _ in moved for n in lens), tuple(s for _, strides in moved for s in strides)


def _read_of(tensor: Node) -> _Read:
    """A tensor's elements in their order."""
    lens, strides = tensor.type.lens, tensor.type.layout
    return _Read(tensor, _of_layout(lens, strides), _run_of(lens, strides), tensor.type.elements)


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


def _of_layout(lens: tuple[int, ...], strides: tuple[int, ...]) -> int:
    *outer, (length, stride) = merged(lens, strides)
    return gcd(length, *(s for _, s in outer)) if stride in (0, 1) else 1


def _run_of(lens: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """How many neighbours follow one another in a layout."""
    *_, (length, stride) = merged(lens, strides)
    return max(1, length) if stride == 1 else 1


def _places(node: Node, library: Library) -> int:
    """The bytes of an index that says where elements come from, if several elements share it."""
    parts = library.operator(node.op).decl.role_parts
    place = library.part(node.op, 0) if parts else 0
    others = [o for i, o in enumerate(node.operands) if i != place] if parts else []
    return max((itemsize(o.type.dtype) for o in others if 2 * o.type.elements < node.type.elements), default=0)


def _run_through(node: Node, operand: Node, layout: Layout | None, library: Library) -> int:
    """How many neighbours follow one another in an operand of an operator that moves elements, if they do there."""
    parts = library.operator(node.op).decl.role_parts
    if layout is not None:
        return _run_of(*layout)
    if "in_order" in parts:
        return max(1, node.type.elements)
    inner = 1
    for length, made in _up_to_named(node, operand, library):
        inner *= max(1, min(length, made))
        if length != made:
            break
    return inner


def _together_through(node: Node, operand: Node, layout: Layout | None, library: Library) -> int:
    """Of how many neighbours blocks an operator leaves together that moves elements of an operand; 0: all. Along an axis that one of
    its attributes names, the elements of its only operand may come from anywhere; those of several operands follow one another."""
    parts = library.operator(node.op).decl.role_parts
    if layout is not None:
        return _of_layout(*layout)
    if "in_order" in parts:
        return 0
    inner, lengths = 1, _up_to_named(node, operand, library)
    for length, made in lengths:
        if length != made:
            return inner * gcd(length, made) if length > 1 else 0 if inner == 1 else inner
        inner *= length
    return inner if len(lengths) < len(node.type.lens) else 0


def _up_to_named(node: Node, operand: Node, library: Library) -> list[tuple[int, int]]:
    """The lengths of an operand and of what is made of it along each axis, the last one first, up to one that an attribute names."""
    named = _named_axes(node, library) if library.operator(node.op).decl.role_parts else set()
    rank = len(node.type.lens)
    lens = (1,) * (rank - len(operand.type.lens)) + operand.type.lens[-rank:]
    axes = takewhile(lambda d: d not in named, reversed(range(rank)))
    return [(lens[d], node.type.lens[d]) for d in axes]


def _named_axes(node: Node, library: Library) -> set[int]:
    found: set[int] = set()
    for attribute in library.operator(node.op).decl.attributes:
        if attribute.type in ("axis", "axes"):
            value = node.attribute(attribute.name)
            found |= set(value) if isinstance(value, tuple) else {value}
    return found


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


def itemsize(dtype: str) -> int:
    return DTYPES[element_type(dtype)].itemsize
