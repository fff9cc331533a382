"""Values for the leaves of a term: numbers of every kind that a contract allows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from genrw.engine.interpret.inputs import random_inputs
from genrw.engine.ir.dtypes import DTYPES, numpy_dtype
from genrw.engine.ir.nodes import Module, Node
from genrw.engine.ir.types import EFFECT
from genrw.engine.language.arrays import Values
from genrw.engine.library.library import Library
from genrw.engine.library.monoids import element_type
from genrw.grammar.diagnostics import GenrwError

_SPECIAL = (0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan"))
_EXTREME = (1e-30, 3e4, -7e4, 1e30)
_CHUNKS = (1, 1, 1, 1, 1, 1, 2, 4, 8)
"""So many neighbours of a share have one index."""


@dataclass(frozen=True)
class LaunchExtents:
    """How many workgroups, lanes and steps there are."""

    groups: int
    lanes: int
    steps: int


@dataclass(frozen=True)
class Kind:
    """What numbers leaves get: ordinary ones, or special and extreme ones among them; how indices are spread."""

    special: bool
    extreme: bool
    distinct: bool


def leaf_values(
    leaves: tuple[Node, ...],
    root: Node,
    library: Library,
    launch: LaunchExtents,
    ranges: Mapping[int, Mapping[str, int]],
    kind: Kind,
    seed: int,
) -> dict[int, Values]:
    """Values by the identity of the leaf: of tensors one for each element, of workgroup memory one for each element and
    workgroup, of others one for each lane."""
    domained = _domained(leaves, root, library, seed)
    found: dict[int, Values] = {}
    for number, leaf in enumerate(leaves):
        rng = np.random.default_rng((seed, number))
        sort = leaf.type.sort
        if sort == "index":
            found[id(leaf)] = _indices(_shape(leaf, launch), ranges[id(leaf)], kind.distinct, rng)
        elif sort == "tensor":
            values = domained.get(leaf.attribute("name"))
            if values is None:
                values = _numbers(leaf.type.lens, leaf.type.dtype, rng)
            found[id(leaf)] = _overlapping(leaf, _mixed(values, leaf.type.dtype, kind, rng))
        elif sort == "buffer":
            if leaf.type.dtype in DTYPES:
                held = (launch.groups, *leaf.type.lens)
                found[id(leaf)] = _mixed(_numbers(held, leaf.type.dtype, rng), leaf.type.dtype, kind, rng)
        else:
            dtype = element_type(leaf.type.dtype)
            found[id(leaf)] = _mixed(_numbers(_shape(leaf, launch), dtype, rng), dtype, kind, rng)
    return found


def _shape(leaf: Node, launch: LaunchExtents) -> tuple[int, int, int, int]:
    return launch.groups, launch.lanes, launch.steps, leaf.type.size or 1


def _domained(leaves: tuple[Node, ...], root: Node, library: Library, seed: int) -> dict[str, Values]:
    """Values within the domains that operators declare, where the term is one of tensors."""
    tensors = tuple(leaf for leaf in leaves if leaf.type.sort == "tensor")
    if root.type.sort != "tensor" or len(tensors) < len(leaves):
        return {}
    ending = Node(library.boundary("result").name, (), (root,), EFFECT)
    try:
        return random_inputs(Module("term", ending, tensors), library, seed)
    except GenrwError:
        return {}


def _numbers(lens: tuple[int, ...], dtype: str, rng: np.random.Generator) -> Values:
    type_ = numpy_dtype(dtype)
    if DTYPES[dtype].kind == "bool":
        return rng.integers(0, 2, lens).astype(type_)
    if DTYPES[dtype].is_float:
        return (rng.choice((-1, 1), lens) * rng.uniform(0.05, 2.0, lens)).astype(type_)
    return rng.integers(0 if DTYPES[dtype].kind == "uint" else -8, 9, lens).astype(type_)


def _mixed(values: Values, dtype: str, kind: Kind, rng: np.random.Generator) -> Values:
    """The values, some of them replaced by special or extreme ones of the type."""
    if not (kind.special or kind.extreme):
        return values
    if DTYPES[dtype].is_float:
        options = [*(_SPECIAL if kind.special else ()), *(_EXTREME if kind.extreme else ())]
    elif DTYPES[dtype].kind == "bool":
        return values
    else:
        found = DTYPES[dtype]
        options = [0, 1, found.largest, found.smallest, found.largest - 1, found.smallest + 1]
    with np.errstate(all="ignore"):
        chosen = np.array([numpy_dtype(dtype).type(v) for v in options])[rng.integers(0, len(options), values.shape)]
    return np.where(rng.uniform(size=values.shape) < 0.3, chosen, values).astype(values.dtype)


def _overlapping(leaf: Node, values: Values) -> Values:
    """The values, those equal that strides put in one place."""
    strides = leaf.type.strides
    if strides is None or not values.size:
        return values
    places = sum(
        (
            np.arange(n).reshape((-1,) + (1,) * (values.ndim - d - 1)) * s
            for d, (n, s) in enumerate(zip(values.shape, strides, strict=True))
        ),
        np.zeros(values.shape, np.int64),
    )
    _, first = np.unique(places, return_inverse=True)
    _, one = np.unique(first, return_index=True)
    return values.reshape(-1)[one][first].reshape(values.shape)


def _indices(shape: tuple[int, ...], facts: Mapping[str, int], distinct: bool, rng: np.random.Generator) -> Values:
    """Indices within a range, multiples of a power of two; where they are to be distinct, those left over are -1."""
    low, high, step = facts["lo"], facts["hi"], facts["pow2"]
    count = (high - low) // step + 1
    if distinct and low >= -1:
        options = range(max(low, 0), high + 1, step)
        values = np.full(int(np.prod(shape)), -1 if low < 0 else 0, np.int64)
        taken = max(low, 0) + step * rng.choice(len(options), min(len(options), values.size), replace=False)
        places = rng.permutation(values.size)[: taken.size]
        values[places] = taken
        if low >= 0:
            values[np.setdiff1d(np.arange(values.size), places)] = taken[0] if taken.size else 0
        return values.reshape(shape)
    values = low + step * rng.integers(0, count, shape)
    edge = rng.uniform(size=shape)
    values = np.where(edge < 0.05, low, np.where(edge > 0.95, low + (count - 1) * step, values))
    return _in_chunks(np.asarray(values, np.int64), int(rng.choice(_CHUNKS)))


def _in_chunks(values: Values, length: int) -> Values:
    """The values of a share, each chunk of it as its first element."""
    size = values.shape[-1]
    return values[..., np.arange(size) // length * length] if size % length == 0 else values


def launch_of(library: Library, schedule: Mapping[str, Any], wave: int) -> LaunchExtents:
    """The launch of a schedule, small enough to evaluate every lane."""
    lanes = library.launch_entry(schedule, "block", wave)
    groups = library.launch_entry(schedule, "grid", 2)
    steps = library.launch_entry(schedule, "steps", 1)
    return LaunchExtents(groups if groups <= 4 else 1, lanes, steps if steps <= 4 else 1)
