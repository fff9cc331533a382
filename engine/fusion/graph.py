"""A tensor program as the plan search sees it: numbered values, what they cost, and where kernels can make them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from genrw.engine.fusion.compute_locations import (
    ELEMENT,
    ELSEWHERE,
    HELD,
    ROW,
    TURNED,
    IterationSpace,
    LocationQuery,
    OperandLocations,
)
from genrw.engine.ir.dtypes import DTYPES
from genrw.engine.ir.nodes import Module
from genrw.engine.library.library import Library
from genrw.engine.library.monoids import element_type
from genrw.engine.programs.space import fold_axes, fold_lens, folded_operands

Need = tuple[int, int]
"""A value's number and that of the place where it is needed."""

Asked = tuple[int, int, "int | IterationSpace"]
"""A value's number, a place, and the number of the space that it belongs to, or what lanes hold."""

EXPOSED = 0.5
"""The share of a kernel's lesser time, for memory or for arithmetic, that the greater one does not hide."""
FLAT = -1
"""The number of the space of kernels without reductions."""


@dataclass(frozen=True)
class PlanCosts:
    """What the cost of a kernel depends on: microseconds a launch, bytes and operations a microsecond. A kernel computes so
    many values and reads and writes so many buffers at most; with a fold of several operands among them, it has so many
    folds (`products`)."""

    launch: float
    bandwidth: float
    rate: float
    values: float = inf
    buffers: float = inf
    products: float = inf

    @classmethod
    def of(cls, values: Mapping[str, float]) -> PlanCosts:
        """From a target's entries."""
        bandwidth, rate = values["bandwidth_gbs"] * 1000.0, values["gflops"] * 1000.0
        limits = (values.get(entry, inf) for entry in ("kernel_values", "kernel_buffers", "kernel_products"))
        return cls(values["launch_us"], bandwidth, rate, *limits)


class FusionGraph:
    """Values are numbered, operands before users. Those that a kernel cannot make but only read are `given`,
    those that a kernel makes at places of its own and stores, and nothing else, `kept_apart`.

    Places are numbered too: a lane's own element, its row, its own element stored in another order, and from 3 on those to
    which an operation at a place takes an operand. `roots` says of each which of the first two it was reached from, or that
    lanes hold it: then each element is made once. `views` says of places that lanes hold which fold's operand they are of,
    as a shape with the axes folded. `aligned` says of each value at which places, and of which spaces, it is made of a
    reduction that the same kernel can make.

    A graph has `questions` to the rules, and is complete when it has taken their answers (`answer`).
    """

    def __init__(self, module: Module, library: Library, costs: PlanCosts, apart: Collection[int] = ()) -> None:
        self.module, self.costs = module, costs
        self.nodes = list(module.nodes[:-1])
        number = {id(node): i for i, node in enumerate(self.nodes)}
        self.operands = [tuple(number[id(o)] for o in node.operands) for node in self.nodes]
        self.results = tuple(dict.fromkeys(number[id(o)] for o in module.root.operands))
        self.elements = [node.type.elements for node in self.nodes]
        self.item = [DTYPES[element_type(node.type.dtype)].itemsize for node in self.nodes]
        self.held = [node.type.dtype not in DTYPES for node in self.nodes]
        self.bytes = [n * size for n, size in zip(self.elements, self.item, strict=True)]
        self.users: list[list[int]] = [[] for _ in self.nodes]
        for i, operands in enumerate(self.operands):
            for operand in dict.fromkeys(operands):
                self.users[operand].append(i)
        boundary = {part: library.boundary(part).name for part in ("input", "constant")}
        self.free = [n.op == boundary["constant"] and not isinstance(n.attribute("value"), tuple) for n in self.nodes]
        self.given = [n.op in boundary.values() for n in self.nodes]
        self.kept_apart = [library.operator(n.op).decl.role_parts == ("apart",) or id(n) in apart for n in self.nodes]
        self.spaces: list[IterationSpace] = []
        self.fold_space: dict[int, int] = {}
        self.products: set[int] = set()
        self._axes: dict[int, tuple[int, ...]] = {}
        self.work = [self._work(i, library) for i in range(len(self.nodes))]
        self.roots = [ELEMENT, ROW, ELEMENT]
        self.views: dict[int, IterationSpace] = {}
        self.candidates = self._candidates(library)
        self.held_candidates = dict.fromkeys(self._held_candidates(library))
        self._elsewhere: dict[tuple[int, int, int], int] = {}
        self._below: dict[int, _Below] = {}
        self._homes: dict[tuple[int, int], tuple[int, ...]] = {}

    def _work(self, i: int, library: Library) -> float:
        """Operations for one element of a value; of a reduction, for one row. Notes the reductions' spaces, and which of
        them combine several operands."""
        node = self.nodes[i]
        if self.given[i]:
            return 0.0
        role = library.role(node.op)
        if role != "fold":
            return 0.0 if role == "index_map" else library.operator(node.op).fixed_cost or 1.0
        space = IterationSpace.of(fold_lens(node, library), fold_axes(node, library))
        if space not in self.spaces:
            self.spaces.append(space)
        self.fold_space[i] = self.spaces.index(space)
        if len(folded_operands(node, library)) > 1:
            self.products.add(i)
        self._axes[i] = fold_axes(node, library)
        return space.elements / max(space.rows, 1)

    def questions(self) -> list[LocationQuery]:
        """Where operands have to be made, of every value and at every place where it might be."""
        about = {FLAT: None} | dict(enumerate(self.spaces))
        return [
            LocationQuery(
                self.module.name, self.nodes[i], place, space if isinstance(space, IterationSpace) else about[space]
            )
            for i, place, space in self._asked()
        ]

    def answer(self, answers: Sequence[OperandLocations | None]) -> None:
        """Take the rules' answers to the questions, in order."""
        self.answers = dict(zip(self._asked(), answers, strict=True))
        self.needs = {key: answer.places for key, answer in self.answers.items() if answer is not None}
        self.aligned = self._aligned()
        for i, place, space in self.candidates:
            known = self._homes.get((i, space), ())
            if place == TURNED:
                self._homes[i, space] = (place,) if (place, space) in self.aligned[i] else known
            elif self.given[i] or (i, place, space) in self.needs:
                self._homes[i, space] = (*known, place)

    def _aligned(self) -> list[dict[tuple[int, int], None]]:
        """For each value, the places and spaces at which it is made of a kernel's own reduction."""
        found: list[dict[tuple[int, int], None]] = [{} for _ in self.nodes]
        for (i, place, space), needs in self.needs.items():
            if not isinstance(space, int) or space == FLAT:
                continue
            below = (
                (there, space) in found[operand]
                for operand, there in zip(self.operands[i], needs, strict=True)
                if there != ELSEWHERE
            )
            if self.fold_space.get(i) == space or any(below):
                found[i][place, space] = None
        return found

    def _asked(self) -> list[Asked]:
        candidates: list[Asked] = [*self.candidates, *self.held_candidates]
        return [candidate for candidate in candidates if not self.given[candidate[0]]]

    def _held_candidates(self, library: Library) -> Iterator[tuple[int, int, IterationSpace]]:
        """What lanes might hold of the operands of folds that combine several: values with as many elements."""
        for i in self.fold_space:
            views = folded_operands(self.nodes[i], library)
            for view in {id(v): v for v in views}.values() if len(views) > 1 else ():
                space = IterationSpace(view.type.lens, fold_axes(self.nodes[i], library))
                found = [next(o for o in self.operands[i] if self.nodes[o] is view)]
                for j in found:
                    yield j, HELD, space
                    if j not in self.fold_space:
                        found += [
                            o for o in self.operands[j] if self.elements[o] == view.type.elements and o not in found
                        ]

    def _candidates(self, library: Library) -> list[tuple[int, int, int]]:
        """Each value with the places, and the spaces they belong to, that have as many elements as it has. What exchanges axes
        may be turned in spaces with rows."""
        counts = [
            (n, place, count)
            for n, s in enumerate(self.spaces)
            for place, count in ((ELEMENT, s.elements), (ROW, s.rows))
        ]
        fitting = {size: [(place, n) for n, place, count in counts if count == size] for size in {*self.elements}}
        exchanges = [library.operator(node.op).permutes for node in self.nodes]
        return [
            (i, *where)
            for i, size in enumerate(self.elements)
            for where in ([] if i in self.fold_space else [(ELEMENT, FLAT)])
            + fitting[size]
            + [(TURNED, n) for place, n in fitting[size] if exchanges[i] and place == ELEMENT]
        ]

    def takes_elsewhere(self, i: int, operand: int) -> bool:
        """Does a value's own element need other elements of an operand?"""
        needs = self.needs.get((i, ELEMENT, FLAT), ())
        return any(o == operand and there == ELSEWHERE for o, there in zip(self.operands[i], needs, strict=False))

    def below(self, space: int, i: int, place: int) -> tuple[Need, ...] | None:
        """What a value needs to be made at a place in a kernel of a space; None if no rule makes it there."""
        return self.below_in(space)((i, place))

    def below_in(self, space: int) -> Callable[[Need], tuple[Need, ...] | None]:
        """What values need to be made in kernels of one space."""
        known = self._below.get(space)
        if known is None:
            known = self._below[space] = _Below(self, space)
        return known.__getitem__

    def needed(self, space: int, i: int, place: int) -> tuple[Need, ...] | None:
        """As `below`, found out anew."""
        needs = self.needs.get(self.asked_about(space, i, place))
        if needs is None or (place >= ELSEWHERE and self.kept_apart[i]):
            return None
        found = []
        for position, (operand, there) in enumerate(zip(self.operands[i], needs, strict=True)):
            if there == ELSEWHERE or (there == HELD and place not in self.views):
                found.append((operand, self._taken(place, i, position, there)))
            else:
                found.append((operand, place if place >= ELSEWHERE else there))
        return tuple(found)

    def asked_about(self, space: int, i: int, place: int) -> Asked:
        """The question whose answer says what a value needs to be made at a place in a kernel of a space."""
        if place in self.views:
            return i, HELD, self.views[place]
        return (i, place, space) if place < ELSEWHERE else (i, ELEMENT, FLAT)

    def _taken(self, place: int, i: int, position: int, there: int) -> int:
        """The place to which an operation takes an operand; a fold takes one for each element of its space, or of the
        operand if lanes hold it."""
        key = (place, i, position)
        number = self._elsewhere.get(key)
        if number is None:
            number = self._elsewhere[key] = len(self.roots)
            self.roots.append(self._root(place, i, there))
            if there == HELD:
                lens = self.nodes[self.operands[i][position]].type.lens
                self.views[number] = IterationSpace(lens, self._axes[i])
        return number

    def _root(self, place: int, i: int, there: int) -> int:
        if HELD in (there, self.roots[place]):
            return HELD
        return ELEMENT if i in self.fold_space else self.roots[place]

    def counts(self, space: int, output: int) -> tuple[int, int]:
        """The elements and the rows of a kernel of a space that stores a value."""
        if space == FLAT:
            return self.elements[output], 0
        return self.spaces[space].elements, self.spaces[space].rows

    def time(self, moved: float, operations: float) -> float:
        """The predicted time of a kernel that moves so many bytes, in microseconds."""
        moving, computing = moved / self.costs.bandwidth, operations / self.costs.rate
        return self.costs.launch + max(moving, computing) + EXPOSED * min(moving, computing)

    def homes(self, i: int, space: int, elements: int) -> tuple[int, ...]:
        """The places at which a kernel of a space, or a flat one of so many elements, can store a value.

        Accumulators of several fields are held by lanes and workgroups only.
        """
        if self.held[i]:
            return ()
        if space == FLAT:
            return (ELEMENT,) if self.elements[i] == elements else ()
        return self._homes.get((i, space), ())

    def name(self, i: int) -> str:
        """How messages call a value."""
        return self.nodes[i].name or self.nodes[i].op


class _Below(dict[Need, "tuple[Need, ...] | None"]):
    """What values need in kernels of one space, found out once.

    What is made of an accumulator that cannot be made at a place cannot be made there either: accumulators are not loaded.
    """

    def __init__(self, graph: FusionGraph, space: int) -> None:
        super().__init__()
        self.graph, self.space = graph, space

    def __missing__(self, need: Need) -> tuple[Need, ...] | None:
        found = self.graph.needed(self.space, *need)
        if found is not None and any(self.graph.held[below[0]] and self[below] is None for below in found):
            found = None
        self[need] = found
        return found
