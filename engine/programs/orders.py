"""How operators order the axes of what they move, and along which axes their elements come from anywhere."""

from __future__ import annotations

from genrw.engine.ir.nodes import Module, Node
from genrw.engine.ir.types import packed_strides
from genrw.engine.language.layouts import merged
from genrw.engine.library.library import Library
from genrw.engine.programs.itemsizes import itemsize

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
    if role == "index_map" and places_of(node, library):
        return named_axes(node, library)
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


def places_of(node: Node, library: Library) -> int:
    """The bytes of an index that says where elements come from, if several elements share it."""
    parts = library.operator(node.op).decl.role_parts
    place = library.part(node.op, 0) if parts else 0
    others = [o for i, o in enumerate(node.operands) if i != place] if parts else []
    return max((itemsize(o.type.dtype) for o in others if 2 * o.type.elements < node.type.elements), default=0)


def named_axes(node: Node, library: Library) -> set[int]:
    found: set[int] = set()
    for attribute in library.operator(node.op).decl.attributes:
        if attribute.type in ("axis", "axes"):
            value = node.attribute(attribute.name)
            found |= set(value) if isinstance(value, tuple) else {value}
    return found
