"""How views lie in pictures: parameters of a kernel with zeros around them, of which operators move elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from genrw.engine.ir.nodes import Node
from genrw.engine.language.arrays import Array
from genrw.engine.language.layouts import pieces_of
from genrw.engine.language.numeric import compile_numeric
from genrw.engine.language.tensors import ELEMENT_LIMIT
from genrw.engine.library.infer import environment
from genrw.engine.library.library import Library
from genrw.grammar.diagnostics import GenrwError

_Ints = tuple[int, ...]
_Bytes = npt.NDArray[np.int8]
Picture = tuple[_Ints, _Ints, int, _Ints, _Ints, _Ints]
"""[lens, strides, offset] of a layout, whose numbers count the elements of a picture along its rows; the picture's lengths and strides
in memory without zeros, and how many zeros stand before and behind along each axis, as a pad says it: negative numbers of elements are left out."""


def picture_of(view: Node, library: Library) -> tuple[()] | Picture:
    """How the elements of a view lie in a picture; nothing where that is no layout."""
    below = _below(view, library)
    if not below:
        return ()
    begun = _begun(below[-1], library)
    if begun is None:
        return ()
    parameter, pads = begun
    padded = below[-1].type.lens
    if max(node.type.elements for node in below) > ELEMENT_LIMIT:
        return ()
    # one byte an element: numpy's strides count elements
    first = np.empty(padded, np.int8)
    seen: _Bytes | None = first
    for node in reversed(below[:-1]):
        seen = _moved(seen, node, library)
        if seen is None or not np.may_share_memory(seen, first):
            return ()
    assert seen is not None
    offset = seen.__array_interface__["data"][0] - first.__array_interface__["data"][0]
    return seen.shape, seen.strides, offset, parameter.type.lens, parameter.type.layout, pads


def _below(view: Node, library: Library) -> list[Node]:
    """A view and what operators moved to make it, down to what is padded, or to a parameter; nothing where one has other operands."""
    below = [view]
    while below[-1].op != library.boundary("input").name:
        operator = library.operator(below[-1].op)
        if operator.role != "index_map" or not operator.decl.role_parts or len(below[-1].operands) != 1:
            return []
        if "in_place" in operator.decl.role_parts:
            return below
        below.append(below[-1].operands[0])
    return below


def _begun(node: Node, library: Library) -> tuple[Node, _Ints] | None:
    """The parameter that a picture is made of and its pads, if zeros are all that is added."""
    if node.op == library.boundary("input").name:
        return node, (0,) * (2 * len(node.type.lens))
    parameter = node.operands[0]
    pads = node.attribute(library.operator(node.op).decl.role_parts[2])
    if parameter.op != library.boundary("input").name:
        return None
    rank = len(parameter.type.lens)
    kept = [1 - min(before, 0) - min(behind, 0) for before, behind in zip(pads[:rank], pads[rank:], strict=True)]
    one = _moved(np.ones(kept, np.int8), node, library)
    if one is None or one.sum() != 1 or one[tuple(max(before, 0) for before in pads[:rank])] != 1:
        return None
    return parameter, tuple(pads)


def _moved(operand: _Bytes | None, node: Node, library: Library) -> _Bytes | None:
    """What an operator makes of an array by its meaning; None where that cannot be said of it."""
    operator = library.operator(node.op)
    if operand is None or operator.decl.means is None:
        return None
    if "in_order" in operator.decl.role_parts:
        return _reshaped(operand, node.type.lens)
    meaning = compile_numeric(operator.decl.means, operator.scope.lets, functions=operator.scope.functions)
    env = environment(operator, None, node.attributes, [Array(operand, "int8")], {}, {})
    try:
        made: Any = meaning(env)
    except GenrwError:
        return None
    return made if isinstance(made, np.ndarray) else None


def _reshaped(operand: _Bytes, lens: Sequence[int]) -> _Bytes | None:
    """The same elements in another shape, if none has to be copied for that."""
    pieces = pieces_of(operand.shape, operand.strides, tuple(lens))
    if len(pieces) != len(lens) or any(len(piece[0]) > 1 for piece in pieces):
        return None
    return np.lib.stride_tricks.as_strided(operand, lens, [piece[1][-1] for piece in pieces], writeable=False)
