"""How values are made of a kernel's parameters: what each reads of them, and through which moves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from math import gcd, prod
from typing import Any

from genrw.engine.ir.nodes import Module, Node
from genrw.engine.language.layouts import merged, pieces_of
from genrw.engine.library.library import Library
from genrw.engine.programs.orders import Layout, named_axes, order_of_axes, places_of

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


@dataclass(frozen=True)
class Read:
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


Reads = dict[tuple[int, int], Read]
"""What is read, by the parameter and the operator that moved its elements last, 0 without any: of a parameter from which several
operators take elements each takes its own."""


def reads_of(module: Module, elements: int, library: Library) -> list[Read]:
    """How the outermost values of a kernel, results and what is folded, are made of its parameters."""
    known: dict[int, Reads] = {}
    found: Reads = {}
    for node in module.nodes:
        below = _merged(known.get(id(o), {}) for o in node.operands)
        role = library.role(node.op)
        if node.op == library.boundary("input").name and node.type.sort == "tensor":
            known[id(node)] = {(id(node), 0): read_of(node)} if _LEAST_PART * node.type.elements >= elements else {}
        elif role == "pointwise":
            known[id(node)] = below
        elif role == "index_map":
            known[id(node)] = _merged(_moved(node, o, known.get(id(o), {}), library) for o in node.operands)
        else:
            found = _merged((found, below))
    return list(found.values())


def _merged(reads: Iterator[Reads] | Sequence[Reads]) -> Reads:
    """What several values read: of a parameter that several read, the fewest neighbours together."""
    found: Reads = {}
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


def _moved(node: Node, operand: Node, reads: Reads, library: Library) -> Reads:
    """What an operator that moves elements reads through one of its operands."""
    order = order_of_axes(node, library)
    through = _together_through(node, operand, order, library)
    run, places = _run_through(node, operand, order, library), places_of(node, library)
    in_order = "in_order" in library.operator(node.op).decl.role_parts
    return {
        (parameter, last if in_order else id(node)): replace(
            read,
            together=gcd(read.together, through),
            run=min(read.run, run),
            elements=min(read.elements, node.type.elements),
            places=max(read.places, places),
            moved=_moved_again(node, operand, read.moved, library) if read.moved else order,
            **_told_apart(node, operand, read, order, library),
        )
        for (parameter, last), read in reads.items()
    }


def _told_apart(node: Node, operand: Node, read: Read, order: Layout | None, library: Library) -> dict[str, Any]:
    """The digits of an element's number that an operator tells apart: those of axes that it names, orders, or makes longer or shorter,
    and of those between them together."""
    made, lens = node.type.lens, operand.type.lens
    if "in_order" in library.operator(node.op).decl.role_parts or len(made) != len(lens):
        return {"digits": digits_of(read, lens), "cuts": frozenset()}
    if order is not None:
        return {"digits": digits_of(read, lens) + len(merged(*order)) - 1, "cuts": frozenset()}
    changed = {d for d, (before, after) in enumerate(zip(lens, made, strict=True)) if before != after}
    changed |= named_axes(node, library)
    return {"cuts": read.cuts | changed | {d + 1 for d in changed}}


def digits_of(read: Read, lens: Sequence[int]) -> int:
    """The digits of the number of an element of what has these lengths."""
    bounds = sorted({0, len(lens), *read.cuts} & set(range(len(lens) + 1)))
    return read.digits - 1 + max(1, sum(prod(lens[a:b]) > 1 for a, b in pairwise(bounds)))


def _moved_again(node: Node, operand: Node, layout: Layout, library: Library) -> Layout:
    """Where elements lie that an operator moves of an operand with a layout: those of each axis that keeps its place, as far apart as
    before. The same layout where its axes are not the operand's."""
    parts = library.operator(node.op).decl.role_parts
    if "in_order" in parts:
        return layout
    pieces = pieces_of(*layout, operand.type.lens)
    if len(pieces) != len(node.type.lens) or (len(parts) == 2 and "scattered" in parts):
        return layout
    order = node.attribute(parts[2]) if "scattered" in parts else range(len(pieces))
    moved = [
        (lens, strides) if prod(lens) == n else ((n,), strides[-1:])
        for (lens, strides), n in zip((pieces[d] for d in order), node.type.lens, strict=True)
    ]
    return tuple(n for lens, _ in moved for n in lens), tuple(s for _, strides in moved for s in strides)


def read_of(tensor: Node) -> Read:
    """A tensor's elements in their order."""
    lens, strides = tensor.type.lens, tensor.type.layout
    return Read(tensor, _of_layout(lens, strides), _run_of(lens, strides), tensor.type.elements)


def _of_layout(lens: tuple[int, ...], strides: tuple[int, ...]) -> int:
    *outer, (length, stride) = merged(lens, strides)
    return gcd(length, *(s for _, s in outer)) if stride in (0, 1) else 1


def _run_of(lens: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """How many neighbours follow one another in a layout."""
    *_, (length, stride) = merged(lens, strides)
    return max(1, length) if stride == 1 else 1


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
    named = named_axes(node, library) if library.operator(node.op).decl.role_parts else set()
    rank = len(node.type.lens)
    lens = (1,) * (rank - len(operand.type.lens)) + operand.type.lens[-rank:]
    axes = takewhile(lambda d: d not in named, reversed(range(rank)))
    return [(lens[d], node.type.lens[d]) for d in axes]
