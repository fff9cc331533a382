"""What one kernel of a plan makes, loads and costs."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from math import inf

from genrw.engine.fusion.compute_locations import ELEMENT, ELSEWHERE, HELD, ROW
from genrw.engine.fusion.graph import FLAT, FusionGraph, Need


@dataclass(frozen=True)
class Kernel:
    """Which values a kernel stores, in order, and the number of its space."""

    space: int
    outputs: tuple[int, ...]


@dataclass
class KernelBody:
    """What a kernel does. `time` is in microseconds.

    `made` and `loaded` are the values that it makes and loads, each with the places where it is needed. `missing` are
    values that it needs at a place where no rule makes them: a kernel that has some is no kernel.
    """

    graph: FusionGraph
    kernel: Kernel
    made: dict[Need, None]
    loaded: dict[Need, None]
    missing: list[Need]
    own: dict[int, int]
    bytes: int = 0
    operations: float = 0.0
    time: float = 0.0

    def __post_init__(self) -> None:
        graph = self.graph
        self.elements, self.rows = graph.counts(self.kernel.space, self.kernel.outputs[0])
        # Written out, since most of a search's time is spent here.
        count, roots, work = (self.elements, self.rows), graph.roots, graph.work
        self.operations = sum(
            [work[i] * (count[roots[place]] if roots[place] < HELD else graph.elements[i]) for i, place in self.made]
        )
        self.bytes = sum(map(self.bytes_of, self.loaded)) + sum([graph.bytes[i] for i in self.kernel.outputs])
        self.time = graph.time(self.bytes, self.operations)

    def count(self, need: Need) -> int:
        """How many elements of a value are made at a place."""
        i, place = need
        if self.graph.roots[place] == HELD:
            return self.graph.elements[i]
        return self.rows if self.graph.roots[place] == ROW else self.elements

    def work_of(self, need: Need) -> float:
        """The operations of making a value at a place."""
        return self.graph.work[need[0]] * self.count(need)

    def bytes_of(self, need: Need) -> int:
        """The bytes read where a value is loaded for a place."""
        i = need[0]
        if self.graph.free[i]:
            return 0
        return min(self.graph.bytes[i], self.count(need) * self.graph.item[i])

    @property
    def legal(self) -> bool:
        return not self.missing

    @cached_property
    def values(self) -> dict[int, int]:
        """The values that the kernel makes, and at how many places."""
        found: dict[int, int] = {}
        for i, _ in self.made:
            found[i] = found.get(i, 0) + 1
        return found

    @cached_property
    def repeated(self) -> list[int]:
        """The values that the kernel makes at several places and could load instead, those first that it makes at the most, and of these
        that of which most is made beneath."""
        graph, outputs = self.graph, self.kernel.outputs
        found = {
            i: count
            for i, count in self.values.items()
            if count > 1 and not (graph.held[i] or graph.free[i] or i in outputs)
        }
        return sorted(found, key=lambda i: (-found[i], -i))

    @cached_property
    def loads(self) -> dict[int, None]:
        """The tensors that the kernel reads."""
        return dict.fromkeys(i for i, _ in self.loaded if not self.graph.free[i])

    @cached_property
    def uses(self) -> dict[Need, int]:
        """How many of the values that a kernel makes need each value, and whether it is an output."""
        found: dict[Need, int] = dict.fromkeys(self.own.items(), 1)
        below = self.graph.below_in(self.kernel.space)
        for made in self.made:
            for need in below(made) or ():
                found[need] = found.get(need, 0) + 1
        return found

    def storing(self, i: int) -> float:
        """The kernel's time if it stores a value besides that it makes anyway."""
        return self.graph.time(self.bytes + self.graph.bytes[i], self.operations)

    def loading(self, i: int) -> float | None:
        """The kernel's time if a value were loaded that it makes now; None if it would be no kernel any more."""
        moved, operations, folds = self._left(i)
        if self.kernel.space != FLAT and folds < 1:
            return None
        moved += sum(self.bytes_of(need) for need in self.made if need[0] == i)
        return self.graph.time(moved, operations)

    def least_without(self, i: int) -> float:
        """What the kernel takes at least if it does not store one of its values any more."""
        moved, operations, _ = self._left(i)
        return self.graph.time(moved - self.graph.bytes[i], operations)

    def least_with(self, i: int) -> float:
        """What the kernel takes at least if it stores a value of another kernel."""
        saved = sum(self.bytes_of(need) for need in self.loaded if need[0] == i)
        return self.graph.time(self.bytes - saved + self.graph.bytes[i], self.operations)

    def _left(self, i: int) -> tuple[int, float, int]:
        """The bytes, operations and reductions that are left if a value is not made, nor what only it needs."""
        moved, operations = self.bytes, self.operations
        left = dict[Need, int]()
        folds = sum(1 for value, _ in self.made if value in self.graph.fold_space)
        below_of = self.graph.below_in(self.kernel.space)
        stack = [need for need in self.made if need[0] == i]
        while stack:
            need = stack.pop()
            if need in self.loaded:
                moved -= self.bytes_of(need)
                continue
            operations -= self.work_of(need)
            folds -= need[0] in self.graph.fold_space
            for below in below_of(need) or ():
                left[below] = left.get(below, self.uses[below]) - 1
                if not left[below] and below[0] != i:
                    stack.append(below)
        return moved, operations, folds

    def with_body(self, other: KernelBody, kernel: Kernel) -> float:
        """About the time of this kernel and another one as one."""
        shared = sum(map(self.bytes_of, self.loaded.keys() & other.loaded.keys()))
        same = sum(map(self.work_of, self.made.keys() & other.made.keys()))
        moved = self.bytes + other.bytes - shared
        moved -= sum(self.bytes_of(need) for need in self.loaded if other.own.get(need[0]) == need[1])
        moved -= sum(other.bytes_of(need) for need in other.loaded if self.own.get(need[0]) == need[1])
        dropped = {*self.kernel.outputs, *other.kernel.outputs}.difference(kernel.outputs)
        moved -= sum(self.graph.bytes[i] for i in dropped)
        return self.graph.time(moved, self.operations + other.operations - same)


def body_of(graph: FusionGraph, kernel: Kernel, stored: Collection[int]) -> KernelBody:
    """What a kernel does if the values `stored` are in memory for it to load, its own outputs excepted."""
    own: dict[int, int] = {}
    missing: list[Need] = []
    for output in kernel.outputs:
        homes = graph.homes(output, kernel.space, graph.counts(kernel.space, kernel.outputs[0])[0])
        if homes:
            own[output] = homes[0]
        else:
            missing.append((output, ELEMENT))
    made, loaded = _descend(graph, kernel, own, stored, missing)
    if not missing:
        missing += _too_much(graph, kernel, own.items(), made, loaded)
    return KernelBody(graph, kernel, made, loaded, missing, own)


def _descend(
    graph: FusionGraph, kernel: Kernel, own: dict[int, int], stored: Collection[int], missing: list[Need]
) -> tuple[dict[Need, None], dict[Need, None]]:
    """Walk down from a kernel's outputs to what it loads: each value once for each place where it is needed. What is kept apart
    it makes to store that and nothing else."""
    given, below = graph.given, graph.below_in(kernel.space)
    stack: list[Need] = list(own.items())
    seen: set[Need] = set()
    made: dict[Need, None] = {}
    loaded: dict[Need, None] = {}
    while stack:
        need = stack.pop()
        if need in seen:
            continue
        seen.add(need)
        i = need[0]
        if given[i] or (i in stored and i not in own):
            loaded[need] = None
            continue
        needs = below(need)
        if needs is None or len(made) >= graph.costs.values or (graph.kept_apart[i] and own.keys() != {i}):
            missing.append(need)
            continue
        made[need] = None
        stack += needs
    return made, loaded


def _too_much(
    graph: FusionGraph, kernel: Kernel, own: Iterable[Need], made: Iterable[Need], loaded: Iterable[Need]
) -> list[Need]:
    """What speaks against a kernel as a whole: it folds nothing though it has rows, or too much beside a product, or stores
    what a product's tiles do not have, or it has too many buffers."""
    values = dict.fromkeys(i for i, _ in made)
    first = kernel.outputs[0]
    folds = sorted({i for i, place in made if i in graph.fold_space and graph.roots[place] != HELD})
    if kernel.space != FLAT and not folds:
        return [(first, ROW)]
    if graph.costs.products < inf and not graph.products.isdisjoint(folds):
        # tiles are of rows: no lane has elements of the space besides those that it multiplies
        elements = [(i, place) for i, place in own if graph.roots[place] == ELEMENT]
        if elements:
            return elements[:1]
        if len(folds) > graph.costs.products:
            return [(next((i for i in folds if i not in kernel.outputs), first), ROW)]
    buffers = len({i for i, _ in loaded if not graph.free[i]}) + len(kernel.outputs)
    if buffers <= graph.costs.buffers:
        return []
    # Storing the value in the middle cuts the kernel into halves.
    inner = sorted(i for i in values if i not in kernel.outputs) or [first]
    return [(inner[len(inner) // 2], ELSEWHERE)]
