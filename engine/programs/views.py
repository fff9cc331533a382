"""Where views of a kernel's parameters lie in memory: what a product multiplies, as operators that move elements made it."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from genrw.engine.ir.nodes import Node
from genrw.engine.language.layouts import merged, pieces_of
from genrw.engine.library.library import Library
from genrw.engine.programs.orders import Layout

_Pieces = Sequence[tuple[tuple[int, ...], tuple[int, ...]]]
"""The lengths and strides along each axis."""


def layout_in_memory(node: Node, library: Library, padded: bool = False) -> tuple[()] | Layout:
    """Where the elements of what operators have made of a parameter, in turn, lie in its memory: lengths and strides; nothing
    where they do not say so. If elements are added along an axis, and `padded`, these lie as far apart as the others."""
    if node.op == library.boundary("input").name:
        return node.type.lens, node.type.layout
    operator = library.operator(node.op)
    parts = operator.decl.role_parts
    if operator.role != "index_map" or len(parts) < 2:
        return ()
    operand = node.operands[library.part(node.op, 0)]
    inner = layout_in_memory(operand, library, padded)
    if not inner or "in_order" in parts:
        return inner
    pieces = pieces_of(*inner, operand.type.lens)
    if len(pieces) != len(operand.type.lens):
        return ()
    if "in_place" not in parts:
        return _joined([pieces[d] for d in node.attribute(parts[2])]) if len(parts) > 2 else ()
    return _joined(_lengthened(pieces, operand.type.lens, node.type.lens)) if padded else ()


def _joined(pieces: _Pieces) -> tuple[()] | Layout:
    """The layout whose axes are these; none without any."""
    if not pieces:
        return ()
    return tuple(n for lens, _ in pieces for n in lens), tuple(s for _, strides in pieces for s in strides)


def _lengthened(pieces: _Pieces, lens: Sequence[int], made: Sequence[int]) -> _Pieces:
    """The pieces of axes of which some were made longer, or shorter; none where such an axis is more than one piece."""
    changed = [before != after for before, after in zip(lens, made, strict=True)]
    if any(is_changed and len(piece[0]) > 1 for piece, is_changed in zip(pieces, changed, strict=True)):
        return ()
    return [
        ((after,), piece[1]) if is_changed else piece
        for piece, after, is_changed in zip(pieces, made, changed, strict=True)
    ]


def run_in_memory(node: Node, library: Library) -> int:
    """How many elements, of what operators have made of a parameter, lie side by side in its memory for certain. Those of a layout
    lie along any axis, and where elements are added there, as many as divide those before them and those there were; others along the
    last axis longer than 1, as long as no operator changes how many there are."""
    layout = layout_in_memory(node, library)
    if layout:
        return next((length for length, stride in reversed(merged(*layout)) if stride == 1), 1)
    operator = library.operator(node.op)
    if operator.role != "index_map":
        return 1
    parts = operator.decl.role_parts
    moved = [node.operands[library.part(node.op, 0)]] if parts else node.operands
    if layout_in_memory(node, library, padded=True):
        return gcd(run_in_memory(moved[0], library), _added_beside(node, moved[0], library))
    if any(_last_length(operand) != _last_length(node) for operand in moved):
        return 1
    return min(_last_length(node), *(run_in_memory(operand, library) for operand in moved))


def _added_beside(node: Node, operand: Node, library: Library) -> int:
    """What divides where an operator that adds elements puts its operand's, along the axis whose neighbours lie side by side in
    memory; 0 if it adds none there."""
    parts = library.operator(node.op).decl.role_parts
    layout = layout_in_memory(operand, library, padded=True)
    if "in_place" not in parts or not layout:
        return 0
    pieces = pieces_of(*layout, operand.type.lens)
    before = node.attribute(parts[2])
    lens, made = operand.type.lens, node.type.lens
    beside = [d for d, (_, strides) in enumerate(pieces) if strides[-1] == 1 and made[d] != lens[d]]
    return gcd(0, *(gcd(lens[d], before[d]) for d in beside))


def _last_length(node: Node) -> int:
    return next((n for n in reversed(node.type.lens) if n > 1), 1)
