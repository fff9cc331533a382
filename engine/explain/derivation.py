"""From the program that a stage was given to the one that it gives: the applications of rules that lead there, in order.

An e-graph knows which terms are equal, and by which applications of rules; it does not keep programs in between. These
are built here from what it recorded. The applications are made once more, on *terms*, whose operands are terms and no
classes, beginning with the program as given: a `History` of which term became which. In it every chain of steps is a
path. Then the program is rewritten from the root down, each term along the shortest path to one that has the node which
extraction took for its class.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from heapq import heappop, heappush
from itertools import count

from genrw.engine.egraph.recording import Part
from genrw.engine.egraph.stage import EGraphSnapshot
from genrw.engine.explain.history import Edge, History, swapped
from genrw.engine.explain.terms import Term, Terms
from genrw.engine.ir.enode import ENode
from genrw.engine.ir.nodes import Module, walk
from genrw.engine.library.library import Library

_DEPTH = 2
"""How deep terms are rewritten within one another over operands of their own: what is saved so is little, and deeper the steps multiply."""

_BACK = 8.0
"""What a step that reads a rule backwards counts: as many as so many others."""


@dataclass(frozen=True)
class Step:
    """One application of a rule to a term: the rule's direction, the part that it rewrote, before and after, and the
    whole after it. `matched` are the operations that it took for its left side, `made` those of its right side.

    A step `back` reads the rule from right to left: what the e-graph had found equal.
    """

    key: str
    before: Term
    after: Term
    whole: Term
    matched: tuple[Term, ...]
    made: tuple[Term, ...]
    back: bool = False


@dataclass(frozen=True)
class _Way:
    """Steps that were found, and the term that they lead to, perhaps but for the order of commutative operators' operands."""

    term: Term
    steps: tuple[Step, ...] = ()


class _Paths:
    """The chains of steps in a history."""

    def __init__(self, history: History) -> None:
        self.history = history
        self._prices: dict[int, float] = {}

    def way(self, term: Term, goal: ENode) -> _Way:
        """The way that gives a term, one that was taken in, a node of its class as root."""
        return self._towards(term, lambda found: found.node == goal, 0)

    def _towards(self, term: Term, ends: Callable[[Term], bool], depth: int) -> _Way:
        """The way of a term along the cheapest path: to the node at its end, over operands of the term's own."""
        way = _Way(term)
        vertex = term
        path = self._path(term, ends, None)
        if depth >= _DEPTH:
            return _Way(_end(term, path), tuple(step for edge, forward in path for step in self._along(edge, forward)))
        for edge, forward in path:
            if edge.application is not None:
                way = self._rewritten(way, edge, forward, vertex, depth)
            elif edge.swapped:
                way = replace(way, term=self._turned(way.term))
            elif edge.over is not None:
                steps = self._under(edge, forward, way.term)
                way = _Way(edge.right if forward else edge.left, (*way.steps, *steps))
            vertex = edge.right if forward else edge.left
            if way.term.node != vertex.node:
                # What a variable stood for is equal to what it stands for in the path, but another operation.
                rest = self._towards(way.term, ends, depth + 1)
                return _Way(rest.term, (*way.steps, *rest.steps))
        return way

    def _turned(self, term: Term) -> Term:
        """A term with its operands in the other order."""
        found = self.history.terms.make(term.number, swapped(term.node), term.operands[::-1])
        self.history.take(found)
        return found

    def _rewritten(self, way: _Way, edge: Edge, forward: bool, vertex: Term, depth: int) -> _Way:
        """One more application, to a term that is equal to the one at which the path has it, operand by operand."""
        assert edge.application is not None
        left, right = edge.application.left, edge.application.right
        before, after = (left, right) if forward else (right, left)
        names: dict[str, Term] = {}
        matched: list[Term] = []
        fit = self._fit(before, vertex, way.term, names, matched, depth)
        if not forward:
            names = {**_bound(left, edge.left), **names}
        made: list[Term] = []
        whole = self.history.made(after, names, made)
        self.history.take(whole)
        step = Step(edge.application.key, fit.term, whole, whole, tuple(matched), tuple(made), not forward)
        return _Way(whole, (*way.steps, *fit.steps, step))

    def _fit(self, part: Part, like: Term, term: Term, names: dict[str, Term], matched: list[Term], depth: int) -> _Way:
        """The way to a term that matches a part of a side as another one does; fills `names` and `matched`."""
        if part.node is None:
            assert part.name is not None
            return self._exactly(term, names.setdefault(part.name, term))
        way = self._towards(term, partial(operator.is_, like), depth + 1)
        place = len(matched)
        for i, operand in enumerate(part.operands):
            fit = self._fit(operand, like.operands[i], way.term.operands[i], names, matched, depth)
            lifted = self._lifted(fit.steps, way.term, i)
            way = _Way(self._over(way.term, i, fit.term), (*way.steps, *lifted))
        self.history.take(way.term)
        matched.insert(place, way.term)
        if part.name is not None:
            names[part.name] = way.term
        return way

    def _exactly(self, term: Term, goal: Term) -> _Way:
        """The way to the very term."""
        return self._towards(term, partial(operator.is_, goal), _DEPTH)

    def _path(self, start: Term, ends: Callable[[Term], bool], before: int | None) -> list[tuple[Edge, bool]]:
        """The cheapest edges, each with its direction, from a term to one that will do, of those before a time."""
        order = count()
        queue: list[tuple[float, int, Term]] = [(0.0, next(order), start)]
        came: dict[int, tuple[Edge, bool] | None] = {}
        best = {id(start): 0.0}
        via: dict[int, tuple[Edge, bool] | None] = {id(start): None}
        while queue:
            cost, _, term = heappop(queue)
            if id(term) in came:
                continue
            came[id(term)] = via[id(term)]
            if ends(term):
                return _back_to_start(term, came)
            for edge in self.history.edges.get(id(term), ()):
                if before is not None and edge.time >= before:
                    break
                forward = edge.left is term
                other = edge.right if forward else edge.left
                price = cost + self._price(edge, forward)
                if id(other) not in came and price < best.get(id(other), price + 1):
                    best[id(other)], via[id(other)] = price, (edge, forward)
                    heappush(queue, (price, next(order), other))
        raise AssertionError("equal terms have a path")

    def _price(self, edge: Edge, forward: bool) -> float:
        """What an edge costs: so many steps, or those of the operands."""
        if edge.application is not None:
            return 1.0 if forward else _BACK
        key = edge.time if forward else -1 - edge.time
        if key not in self._prices and edge.over is not None:
            self._prices[key] = sum(self._price(e, f) for e, f in self._path_over(edge, forward))
        if key not in self._prices:
            below = self._below(edge, forward)
            self._prices[key] = sum(self._price(e, f) for _, path in below for e, f in path)
        return self._prices[key]

    def _below(self, edge: Edge, forward: bool) -> Iterator[tuple[int, list[tuple[Edge, bool]]]]:
        """For an edge between terms of equal operands, the operands that differ, and their paths."""
        start, end = (edge.left, edge.right) if forward else (edge.right, edge.left)
        if edge.swapped or edge.over is not None:
            return
        for i, (a, b) in enumerate(zip(start.operands, end.operands, strict=True)):
            if a is not b:
                yield i, self._path(a, partial(operator.is_, b), edge.time)

    def _along(self, edge: Edge, forward: bool) -> Iterator[Step]:
        """The steps from one end of an edge to the other."""
        start, end = (edge.left, edge.right) if forward else (edge.right, edge.left)
        if edge.application is not None:
            matched, made = (edge.matched, edge.made) if forward else (edge.made, edge.matched)
            yield Step(edge.application.key, start, end, end, matched, made, not forward)
            return
        if edge.over is not None:
            yield from self._under(edge, forward, start)
            return
        for i, path in self._below(edge, forward):
            yield from self._lifted((step for e, f in path for step in self._along(e, f)), start, i)
            start = self._over(start, i, end.operands[i])

    def _path_over(self, edge: Edge, forward: bool) -> list[tuple[Edge, bool]]:
        """For an edge between operands of which an injective operator makes the same, the path between what it makes."""
        assert edge.over is not None
        start, end = edge.over if forward else edge.over[::-1]
        return self._path(start, partial(operator.is_, end), edge.time)

    def _under(self, edge: Edge, forward: bool, term: Term) -> Iterator[Step]:
        """The one step that puts an operand in the place of another: what was done to the terms over them, done to them
        wherever they stand. Its rule is the last that was applied there."""
        end = edge.right if forward else edge.left
        over = [step for e, f in self._path_over(edge, forward) for step in self._along(e, f)]
        matched = tuple(found for step in over for found in step.matched)
        made = tuple(found for step in over for found in step.made)
        yield Step(over[-1].key, term, end, end, matched, made, over[-1].back)

    def _lifted(self, steps: Iterable[Step], term: Term, position: int) -> Iterator[Step]:
        """The steps of an operand as steps of the term."""
        for step in steps:
            yield replace(step, whole=self._over(term, position, step.whole))

    def _over(self, term: Term, position: int, operand: Term) -> Term:
        """A term with another operand at a position."""
        operands = (*term.operands[:position], operand, *term.operands[position + 1 :])
        return self.history.terms.make(term.number, term.node, operands)


def derivation(
    graph: EGraphSnapshot, start: Module, program: Mapping[int, ENode], library: Library
) -> tuple[Term, list[tuple[Step, Term]]]:
    """The term of the module that an e-graph was loaded with, and the steps to a program, which has one node for each
    class, each with the whole term after it."""
    terms = Terms()
    root = written(start, graph, terms, library)
    declared = [o.decl for o in library.operators.values()]
    commutative, injective = {d.name for d in declared if d.commutative}, {d.name for d in declared if d.injective}
    history = History(terms, graph.applied, commutative, injective)
    history.add(root)
    history.replay()
    paths = _Paths(history)
    found: list[tuple[Step, Term]] = []
    first = root
    while (term := _unfinished(root, program)) is not None:
        history.take(term)
        way = paths.way(term, program[term.number])
        for step in way.steps:
            root = terms.replaced(root, term, step.whole)
            term = step.whole
            found.append((step, root))
        if way.term is not term:  # what no rule did is part of the step before it
            root = terms.replaced(root, term, way.term)
            first, found = (first, [*found[:-1], (found[-1][0], root)]) if found else (root, found)
    return first, found


def written(module: Module, graph: EGraphSnapshot, terms: Terms, library: Library) -> Term:
    """The term of a module that an e-graph was loaded with."""
    made: dict[int, Term] = {}
    number_op = library.boundary("number").name
    for node in module.nodes:
        operands = tuple(made[id(o)] for o in node.operands)
        if node.op == number_op:
            found = ENode("", 0, (), node.attribute("value"))
        else:
            attributes = graph.interner.attributes_id(0, node.attributes)
            found = ENode(node.op, attributes, tuple(o.number for o in operands))
        made[id(node)] = terms.make(graph.class_of[graph.ids[id(node)]], found, operands)
    return made[id(module.root)]


def _bound(part: Part, term: Term) -> dict[str, Term]:
    """What the names in a part of a side stand for in a term that matches it."""
    found = {part.name: term} if part.name is not None else {}
    for below, operand in zip(part.operands, term.operands, strict=bool(part.operands)):
        found |= _bound(below, operand)
    return found


def _end(term: Term, path: Sequence[tuple[Edge, bool]]) -> Term:
    """Where a path from a term ends."""
    for edge, forward in path:
        term = edge.right if forward else edge.left
    return term


def _back_to_start(term: Term, came: Mapping[int, tuple[Edge, bool] | None]) -> list[tuple[Edge, bool]]:
    path: list[tuple[Edge, bool]] = []
    while (last := came[id(term)]) is not None:
        path.append(last)
        edge, forward = last
        term = edge.left if forward else edge.right
    return path[::-1]


def _unfinished(root: Term, program: Mapping[int, ENode]) -> Term | None:
    """The first term, users before operands, that has another node than the program; None if there is none."""
    for term in reversed(list(walk(root))):
        if program[term.number] != term.node:
            return term
    return None
