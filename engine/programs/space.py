"""The iteration space of a kernel: the elements it runs over, and the axes along which its rows lie."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from math import prod
from typing import Any

from genrw.engine.ir.nodes import Module, Node
from genrw.engine.ir.types import Type
from genrw.engine.language.layouts import (
    first_places,
    kept_groups,
    lines_of,
    lying_together,
    merged,
    pieces_of,
    run_along,
)
from genrw.engine.language.members import Members
from genrw.engine.language.shapes import broadcast_lens
from genrw.engine.library.library import Library
from genrw.engine.library.monoids import accumulate_type, combining, field_types
from genrw.engine.programs.graph_facts import GraphFacts
from genrw.engine.programs.itemsizes import itemsize
from genrw.engine.programs.operands import apart_in, nearest, operands_of
from genrw.engine.programs.orders import Layout, laid_out, order_of_axes, scattering, stored
from genrw.engine.programs.reads import read_beneath
from genrw.engine.programs.views import layout_in_memory, run_in_memory
from genrw.grammar.diagnostics import Diagnostic, GenrwError
from genrw.grammar.rw_tree import MonoidDecl


@dataclass(frozen=True)
class FoldedAxes:
    """What one fold of a tensor program runs over."""

    node: Node
    lens: tuple[int, ...]
    axes: tuple[int, ...]


def with_space(module: Module, library: Library) -> Module:
    """The module with its space; GenrwError if no one space serves all its values."""
    if module.space is not None:
        return module
    rows = _rows(module, library)
    if not rows:
        return replace(module, space=_joined(_result_lens(module), module, library))
    first = rows[0]
    groups = kept_groups(first.lens, first.axes)
    others = [r for r in rows if kept_groups(r.lens, r.axes) != groups]
    if others:
        raise GenrwError(_two_spaces(first, others[0]))
    return replace(module, space=first.lens, axes=first.axes)


def _rows(module: Module, library: Library) -> list[FoldedAxes]:
    return [
        FoldedAxes(node, fold_lens(node, library), fold_axes(node, library)) for node in _outer_folds(module, library)
    ]


def _tensor_folds(module: Module, library: Library) -> list[Node]:
    return [n for n in module.nodes if library.role(n.op) == "fold" and n.operands[0].type.sort == "tensor"]


def _inner_folds(module: Module, library: Library) -> list[Node]:
    """The folds of whose results another fold combines several operands: lanes hold these while they fold."""
    folds = _tensor_folds(module, library)
    beneath: set[int] = set()
    todo = [o for fold in folds if len(folded_operands(fold, library)) > 1 for o in fold.operands]
    while todo:
        node = todo.pop()
        if id(node) not in beneath:
            beneath.add(id(node))
            todo += node.operands
    return [fold for fold in folds if id(fold) in beneath]


def _outer_folds(module: Module, library: Library) -> list[Node]:
    """The folds that run over the kernel's space."""
    inner = {id(fold) for fold in _inner_folds(module, library)}
    return [fold for fold in _tensor_folds(module, library) if id(fold) not in inner]


def folded_operands(node: Node, library: Library) -> tuple[Node, ...]:
    """The operands whose elements a fold combines: one, or several that are combined pairwise first."""
    parts = library.operator(node.op).decl.role_parts
    return tuple(node.operands[library.part(node.op, place)] for place in range(len(parts)))


def fold_lens(node: Node, library: Library) -> tuple[int, ...]:
    """The shape that a reduction runs over: what the operands that it folds broadcast to."""
    lens: tuple[int, ...] = ()
    for operand in folded_operands(node, library):
        lens = broadcast_lens(lens, operand.type.lens)
    return lens


def fold_axes(node: Node, library: Library) -> tuple[int, ...]:
    """The axes along which a reduction folds its operand."""
    operator = library.operator(node.op)
    axes = next((node.attribute(a.name) for a in operator.decl.attributes if a.type in ("axes", "axis")), ())
    return axes if isinstance(axes, tuple) else (axes,)


def _two_spaces(first: FoldedAxes, second: FoldedAxes) -> Diagnostic:
    def say(row: FoldedAxes) -> str:
        return f"`{row.node.name or row.node.op}` folds {list(row.lens)} over axes {list(row.axes)}"

    return Diagnostic(
        f"this program needs several kernels: {say(first)}, but {say(second)}",
        second.node.span,
        "lower programs whose folds all run over one shape and one set of axes",
    )


def _result_lens(module: Module) -> tuple[int, ...]:
    """The shape that all results share, up to the number of elements."""
    results = [stored(n) for n in module.root.operands]
    lens = max((r.type.lens for r in results), key=lambda n: (prod(n), len(n)), default=())
    for result in results:
        if result.type.elements != prod(lens):
            raise GenrwError(
                Diagnostic(
                    f"this program needs several kernels: its results have {prod(lens)} and "
                    f"{result.type.elements} elements",
                    result.span,
                    "return values of one size",
                )
            )
    return lens


def _joined(lens: tuple[int, ...], module: Module, library: Library) -> tuple[int, ...]:
    """A shape's elements along as few axes as the operators allow that move neighbours apart; the shape itself where their
    axes do not nest, or without any."""
    sizes = {prod(lens), 1}
    layouts = [order_of_axes(node, library) for node in scattering(module, library) if node.type.elements == prod(lens)]
    for layout in layouts:
        inner = 1
        for length, _ in reversed(merged(*layout) if layout else ()):
            inner *= length
            sizes.add(inner)
    ends = sorted(sizes, reverse=True)
    if not all(layouts) or len(ends) < 3 or any(a % b for a, b in pairwise(ends)):
        return lens
    return tuple(a // b for a, b in pairwise(ends))


SPACE_MEMBERS = frozenset(
    {
        "combining",
        "views",
        "view_types",
        "view_layouts",
        "view_strides",
        "view_pictures",
        "view_runs",
        "sum_type",
        "folding",
        "accumulators",
    }
    | {"inner_views", "inner_axes", "inner_n"}
    | {
        "lens",
        "axes",
        "n",
        "rows",
        "elements",
        "bytes",
        "read",
        "inputs",
        "streams",
        "folds",
        "passes",
        "scattered",
        "scattered_bytes",
        "operands",
        "sides",
        "down",
        "turned",
        "run",
        "lines",
        "sectors",
    }
    | {"operations", "item", "wide", "stored_item", "min_stride", "fast"}
)
"""What rules may ask of a kernel's space."""


def space_record(module: Module, library: Library) -> Members:
    """The space as rules see it.

    lens, axes; `rows` outputs of `n` elements each (n = 1 without axes); `elements`; `bytes` moved at least,
    of which `read`, parts that are moved elsewhere counted as such; `inputs`, the number of parameters but those of one
    element a row, of which `streams` are at least half as large as the space; `operations` per element; `folds`, their number, `folding`, their operators' names, `accumulators`, the bytes of what a lane folds to with all of them, `combining`, the operations that combine
    two of these; `passes` over a row that is
    not kept; `scattered`, the operators whose neighbouring results lie apart in their operands, `scattered_bytes`, those
    of an element of each; `operands`, what is read or stored of which there
    is at least an eighth of the space: its `elements`, the bytes of an `item`, whether it `is_stored`, how many neighbours lie
    `together` in aligned blocks, how many follow one another there (`run`), the bytes of an index that says `places` of runs (0 without one), how many
    `digits` of an element's number tell where it lies, how far neighbours lie from one another in memory on average, its `spread`, how many bytes come with
    each of its bytes where there are `gaps`, and with the space's elements row by row, or column by column: how far `apart_by_row`,
    `apart_by_column` the operand's neighbours come to lie, and how far elements side by side lie apart in the operand, `step_by_row`,
    `step_by_column`, and as far `step_down` along the axes named below; `sides`, the space as
    [before, down, between, across], so that neighbours there lie down, as those in the result lie across (down and across are 1 without such
    operators, or with rows), `down`, where some operands lie along rows and
    `turned` do not, the axes beside one another along which the neighbours of these lie ([] without), and for tiles of it: how many neighbours follow one another down it in memory (`run`), how many lines of
    memory waves ask for (`lines`), and how many sectors of 32 bytes tiles bring (`sectors`); `item`, the bytes of
    the smallest element type read or written, `wide` those of the largest, of tensors at least half as large as the space, if
    there are some, and `stored_item` those of the largest that is stored; `views`, the shapes of what the only fold
    multiplies before it adds up, `view_types`, their element types, `view_layouts`, how they lie in memory ([lens, strides], [] where
    that is no layout), `view_strides`, the same of those too that are padded, `view_pictures`, how they lie in parameters with zeros around
    them (`Picture`, [] where that is no layout), `view_runs`, how many neighbours lie side by side there for certain, and `sum_type`,
    that of its result; `inner_views`, the shapes
    of what the fold multiplies whose results that one combines, `inner_axes`, the axes that it folds, and `inner_n`, how many
    elements it folds to one (0 without such a fold); `min_stride`, the least distance of
    neighbours along a row in any parameter; `fast`, whether the last axis longer than 1 is part of the row.
    """
    lens, axes = module.space or (), module.axes
    n = prod(lens[a] for a in axes)

    def inner() -> list[Node]:
        return _inner_folds(module, library)

    @cache
    def tiling() -> Tiling:
        found = _tiling(module, lens, library) if not axes and prod(lens) > 1 else None
        return found or Tiling((prod(lens), 1, 1, 1), 0, 0, 0)

    @cache
    def rows_turned() -> tuple[tuple[int, ...], int]:
        return _rows_turned(module, lens, axes, library) if axes else ((), 0)

    return Members(
        {},
        {
            "lens": lambda: lens,
            "axes": lambda: axes,
            "n": lambda: n,
            "rows": lambda: prod(length for d, length in enumerate(lens) if d not in axes),
            "elements": lambda: prod(lens),
            "bytes": lambda: _read(module, library) + sum(map(_bytes, _stored(module))),
            "read": lambda: _read(module, library),
            "inputs": lambda: sum(
                not _is_row_value(p.type, lens, axes) for p in module.parameters if p.type.sort == "tensor"
            ),
            "streams": lambda: sum(
                2 * p.type.elements >= prod(lens) for p in module.parameters if p.type.sort == "tensor"
            ),
            "folds": lambda: len(_outer_folds(module, library)),
            "folding": lambda: tuple(fold.op for fold in _outer_folds(module, library)),
            "accumulators": lambda: sum(_accumulator_bytes(fold, library) for fold in _outer_folds(module, library)),
            "combining": lambda: sum(_combining(fold, library) for fold in _outer_folds(module, library)),
            "passes": lambda: _passes(module, library, prod(lens)),
            "scattered": lambda: len(scattering(module, library)),
            "scattered_bytes": lambda: sum(itemsize(node.type.dtype) for node in scattering(module, library)),
            "operands": lambda: tuple(operands_of(module, lens, axes, rows_turned()[0], library)),
            "sides": lambda: tiling().sides,
            "down": lambda: rows_turned()[0],
            "turned": lambda: rows_turned()[1],
            "run": lambda: tiling().run,
            "lines": lambda: tiling().lines,
            "sectors": lambda: tiling().sectors,
            "operations": lambda: _count(module, library, "pointwise"),
            "views": lambda: tuple(view.type.lens for view in _views(module, library)),
            "view_types": lambda: tuple(view.type.dtype for view in _views(module, library)),
            "view_layouts": lambda: tuple(layout_in_memory(view, library) for view in _views(module, library)),
            "view_strides": lambda: tuple(
                layout_in_memory(view, library, padded=True) for view in _views(module, library)
            ),
            "view_pictures": lambda: _pictures(module, library),
            "view_runs": lambda: tuple(run_in_memory(view, library) for view in _views(module, library)),
            "sum_type": lambda: next((fold.type.dtype for fold in _folds_of_views(module, library)), ""),
            "inner_views": lambda: tuple(view.type.lens for fold in inner() for view in folded_operands(fold, library)),
            "inner_axes": lambda: tuple(a for fold in inner() for a in fold_axes(fold, library)),
            "inner_n": lambda: sum(prod(fold_lens(f, library)[a] for a in fold_axes(f, library)) for f in inner()),
            "item": lambda: min((itemsize(t.dtype) for t in _streamed(module, prod(lens))), default=4),
            "wide": lambda: max((itemsize(t.dtype) for t in _streamed(module, prod(lens))), default=4),
            "stored_item": lambda: max((itemsize(t.dtype) for t in _stored(module) if t.sort == "tensor"), default=1),
            "min_stride": lambda: _min_stride(module, lens, axes),
            "fast": lambda: next((d in axes for d in range(len(lens) - 1, -1, -1) if lens[d] > 1), False),
        },
    )


def _stored(module: Module) -> list[Type]:
    """The types of what a kernel stores."""
    return [stored(node).type for node in module.root.operands]


def _accumulator_bytes(fold: Node, library: Library) -> int:
    """The bytes of what a fold combines elements to: all fields, aligned, if its monoid carries several."""
    monoid, dtype = _monoid_of(fold, library), fold.operands[0].type.dtype
    fields = [itemsize(t) for t in field_types(monoid, dtype)] if monoid is not None else []
    if fields:
        return -(-sum(fields) // max(fields)) * max(fields)
    return max(itemsize(fold.type.dtype), itemsize(accumulate_type(monoid, dtype)) if monoid is not None else 0)


def _monoid_of(fold: Node, library: Library) -> MonoidDecl | None:
    """The monoid that a fold's name tells; None of a fold that goes by another name."""
    member = library.find(fold.op)
    return library.monoids.get(member[1] or "") if member is not None else None


def _combining(fold: Node, library: Library) -> int:
    """The operations by which a fold combines two accumulators."""
    monoid = _monoid_of(fold, library)
    return combining(monoid) if monoid is not None else 1


def _folds_of_views(module: Module, library: Library) -> tuple[Node, ...]:
    """The only fold over a kernel's space, if that combines several operands before it folds them."""
    folds = tuple(_outer_folds(module, library))
    return folds if len(folds) == 1 and len(folded_operands(folds[0], library)) > 1 else ()


def _views(module: Module, library: Library) -> tuple[Node, ...]:
    """The operands that a kernel's only fold combines before it folds them; none if there is no such fold."""
    return tuple(view for fold in _folds_of_views(module, library) for view in folded_operands(fold, library))


def _pictures(module: Module, library: Library) -> tuple[tuple[Any, ...], ...]:
    """How these lie in pictures."""
    from genrw.engine.programs.pictures import picture_of  # with numpy, whose import takes a tenth of a command's time

    return tuple(picture_of(view, library) for view in _views(module, library))


def _read(module: Module, library: Library) -> int:
    """The bytes of its parameters that a kernel reads: of what operators only move, as much as there is of it then."""
    users: dict[int, list[Node]] = {id(p): [] for p in module.parameters if p.type.sort == "tensor"}
    for node in module.nodes:
        for operand in node.operands:
            users.get(id(operand), []).append(node)
    return sum(_read_of(p, users[id(p)], library) for p in module.parameters if id(p) in users)


def _read_of(parameter: Node, users: Sequence[Node], library: Library) -> int:
    whole = _bytes(parameter.type)
    if not all(_moves(parameter, user, library) for user in users):
        return whole
    return min(whole, sum(user.type.elements for user in users) * itemsize(parameter.type.dtype))


def _moves(operand: Node, user: Node, library: Library) -> bool:
    """Is an operand what a node takes elements of, and nothing else?"""
    operator = library.operator(user.op)
    if operator.role != "index_map" or not operator.decl.role_parts:
        return False
    place = library.part(user.op, 0)
    return all((other is operand) == (i == place) for i, other in enumerate(user.operands))


def _bytes(type_: Type) -> int:
    return type_.elements * itemsize(type_.dtype) if type_.sort == "tensor" else 0


def _is_row_value(type_: Type, lens: Sequence[int], axes: Sequence[int]) -> bool:
    """Has each row of a space one element of a tensor of that type?"""
    one_a_row = tuple(1 if axis in axes else length for axis, length in enumerate(lens))
    return len(axes) > 0 and type_.lens == one_a_row


def _streamed(module: Module, elements: int) -> list[Type]:
    """The tensors that are read and written as a kernel goes over so many elements; all where it goes over none."""
    tensors = _tensors(module)
    return [t for t in tensors if 2 * t.elements >= elements] or tensors


def _tensors(module: Module) -> list[Type]:
    """The types of what a kernel reads and stores."""
    nodes = [*module.parameters, *(stored(n) for n in module.root.operands)]
    return [n.type for n in nodes if n.type.sort == "tensor"]


def _count(module: Module, library: Library, role: str) -> int:
    return sum(1 for node in module.nodes if library.role(node.op) == role)


def _passes(module: Module, library: Library, elements: int) -> int:
    """How often a row is walked: once for each fold above another, once more to store elements."""
    folds = max(GraphFacts.of(module, library).depth.values(), default=0)
    return folds + any(stored(n).type.elements == elements for n in module.root.operands)


Sides = tuple[int, int, int, int]
"""A space as [before, down, between, across]: tiles lie down and across."""


@dataclass(frozen=True)
class Tiling:
    """How a space is cut into tiles, and what that means for operands that scatter."""

    sides: Sides
    run: int
    """How many neighbours follow one another down it, at least, in operands that tiles turn; 0 without any."""
    lines: int
    """The lines that waves ask for, of all operands together."""
    sectors: int
    """The sectors of 32 bytes that tiles bring."""


@dataclass(frozen=True)
class _Operand:
    """How the elements of a space lie in an operand, the bytes of each, and of which part of the space it has some."""

    lens: tuple[int, ...]
    strides: tuple[int, ...]
    item: int
    part: float

    def tiled(self, sides: Sides) -> tuple[bool, float, float]:
        """Do tiles turn it? And what are its lines and sectors for each element?"""
        pieces = pieces_of(self.lens, self.strides, sides)
        if not pieces:
            return False, self.part, self.part
        down, across = (lying_together(self.lens, self.strides, sides, side) for side in (1, 3))
        corner = {a + b for a in first_places(*pieces[1], 32) for b in first_places(*pieces[3], 32)}
        brought = max(self.item / 32, lines_of(corner) / len(corner))
        lines = 1 / down if down > across else 1 / max(1, across // 8)
        return down > across, self.part * lines, self.part * brought


def _tiling(module: Module, lens: tuple[int, ...], library: Library) -> Tiling | None:
    """The best way to cut a space into tiles, so that neighbours in the operands of operators that scatter lie down, as those in
    the result lie across: the more lie together, the better, and the fewer axes are taken together for it. None without any."""
    nodes = [(node, _in_whole(node, layout, lens)) for node, layout in laid_out(module, library)]
    whole = [(node, layout) for node, layout in nodes if prod(layout[0]) == prod(lens)]
    operands = [_operand_of(node, read, lens, library) for node, _ in whole for read in read_beneath(node, library)]
    parts = [layout for _, layout in nodes if prod(layout[0]) != prod(lens)]
    shapes = [layout for _, layout in whole]
    found = []
    for sides in {sides for layout in shapes for sides in _groupings(*layout)}:
        tiled = [operand.tiled(sides) for operand in operands]
        tiled += [(False, *_tiled_part(*layout, lens, sides)) for layout in parts]
        runs = [
            run_along(o.lens, o.strides, sides, 1) for o, (turned, *_) in zip(operands, tiled, strict=False) if turned
        ]
        lines, sectors = (int(prod(lens) * sum(each[k] for each in tiled)) for k in (1, 2))
        accesses = lines + sectors + prod(lens) // min(sides[3], 64)
        found.append((accesses, sides[1], sides[3], Tiling(sides, min(runs, default=0), lines, sectors)))
    return min(found, key=lambda each: (*each[:3], each[3].sides), default=(0, 0, 0, None))[3]


def _rows_turned(
    module: Module, lens: tuple[int, ...], axes: tuple[int, ...], library: Library
) -> tuple[tuple[int, ...], int]:
    """The axes beside one another, none of them a row's, along which neighbours lie together in some operands, of several such runs the
    longest, and how many operands lie so; nothing where no operand lies along rows, or all do."""
    whole = [node for node in module.nodes if node.type.lens == lens]
    layouts = [layout for node in whole if (layout := order_of_axes(node, library)) is not None]
    layouts += [(p.type.lens, p.type.layout) for p in module.parameters if p.type.lens == lens]
    runs = [_axes_together(*layout, axes) for layout in layouts if prod(lens) > 1]
    down = max(runs, key=lambda run: (prod(lens[a] for a in run), run), default=())
    if () not in runs or not down:
        return (), 0
    return down, sum(run[-1:] == down[-1:] for run in runs)


def _axes_together(lens: tuple[int, ...], strides: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """The axes up to the one along which neighbours lie nearest that follow one another in memory; none where a row's are among them."""
    last = nearest(lens, strides)
    first = last
    while first > 0 and first - 1 not in axes and strides[first - 1] == strides[first] * lens[first]:
        first -= 1
    return () if last in axes else tuple(range(first, last + 1))


def _in_whole(node: Node, layout: Layout, lens: tuple[int, ...]) -> Layout:
    """The layout of a part of a space that has its axes, as if it went on."""
    return (lens, layout[1]) if node.type.elements != prod(lens) and len(layout[0]) == len(lens) else layout


def _operand_of(node: Node, read: Node, lens: tuple[int, ...], library: Library) -> _Operand:
    """How the elements of an operator that orders axes lie in what it reads."""
    layout = order_of_axes(node, library, read) or (node.type.lens, node.type.layout)
    return _Operand(
        *_in_whole(node, layout, lens), itemsize(read.type.dtype), min(1.0, node.type.elements / prod(lens))
    )


def _tiled_part(
    lens: tuple[int, ...], strides: tuple[int, ...], space: tuple[int, ...], sides: Sides
) -> tuple[float, float]:
    """The lines and sectors for each element of a part of a space, or of what is padded to it: no tile turns it, but of neighbours
    down the tile, several lanes take a line, and all lanes a sector."""
    share = min(1.0, prod(lens) / prod(sides))
    apart = apart_in(space, lens, strides)
    row = sides[2] * sides[3]
    if not row <= apart < sides[1] * row:
        return share, share
    rows = apart // row
    return share / max(1, 4 // rows), share / max(1, min(8, 64 // rows))


def _groupings(lens: tuple[int, ...], strides: tuple[int, ...]) -> Iterator[Sides]:
    """A shape as [before, down, between, across], where the axis lies down along which neighbours lie together."""
    last = nearest(lens, strides)
    for first in range(last + 1):
        for behind in range(last + 1, len(lens)):
            for end in range(behind, len(lens)):
                bounds = pairwise((0, first, behind, end, len(lens)))
                before, down, between, across = (prod(lens[a:b]) for a, b in bounds)
                if down > 1 and across > 1:
                    yield before, down, between, across


def _min_stride(module: Module, lens: tuple[int, ...], axes: tuple[int, ...]) -> int:
    strides = [
        stride
        for parameter in module.parameters
        if parameter.type.lens == lens
        for d, stride in enumerate(parameter.type.layout)
        if d in axes and lens[d] != 1
    ]
    return min(strides, default=1)
