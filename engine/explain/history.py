"""Which terms became which others in an e-graph: the applications that it recorded, made once more on terms."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from genrw.engine.egraph.recording import Application, Part
from genrw.engine.explain.terms import Term, Terms
from genrw.engine.ir.enode import ENode
from genrw.engine.ir.nodes import walk


@dataclass(frozen=True)
class Edge:
    """Two terms that are equal from some time on: by an application, or, without one, because their operands are, which
    are `swapped` where a commutative operator has them in the other order, or because an injective operator makes the same of
    both: the terms `over` them."""

    time: int
    left: Term
    right: Term
    application: Application | None = None
    matched: tuple[Term, ...] = ()
    made: tuple[Term, ...] = ()
    swapped: bool = False
    over: tuple[Term, Term] | None = None


def swapped(node: ENode) -> ENode:
    """An operation with its operands in the other order."""
    return node._replace(operands=node.operands[::-1])


@dataclass(frozen=True)
class _Match:
    """Terms that match a part of a left side: its root, all operations, and what stands for names."""

    term: Term
    names: Mapping[str, Term]
    matched: tuple[Term, ...] = ()


class History:
    """Which terms became which others by the applications that an e-graph recorded. Both orders of a `commutative` operator's
    operands are equal without any, and so are operands of which an `injective` one makes the same."""

    def __init__(
        self, terms: Terms, applied: Sequence[Application], commutative: Collection[str], injective: Collection[str]
    ) -> None:
        self.terms = terms
        self._applied = applied
        self._commutative = commutative
        self._injective = injective
        self._known: dict[int, Term] = {}
        self._leader: dict[int, int] = {}
        self.edges: dict[int, list[Edge]] = {}
        self._time = count()
        self._first: dict[tuple[ENode, tuple[int, ...]], Term] = {}

    # ---- what is equal

    def add(self, root: Term) -> None:
        """Take a term in, and all below it."""
        for term in walk(root):
            if self._known.setdefault(id(term), term) is term:
                self._leader.setdefault(id(term), id(term))

    def take(self, root: Term) -> None:
        """Take in a term that is equal, operand by operand, to one that is known."""
        for term in walk(root):
            if id(term) not in self._known:
                self.add(term)
                other = self._first.setdefault(self._key(term), term)
                if other is not term:
                    self._join(other, term)

    def _find(self, term: Term) -> int:
        number = id(term)
        while self._leader[number] != number:
            self._leader[number] = number = self._leader[self._leader[number]]
        return number

    def _join(
        self,
        left: Term,
        right: Term,
        application: Application | None = None,
        matched: tuple[Term, ...] = (),
        made: tuple[Term, ...] = (),
        swapped: bool = False,
        over: tuple[Term, Term] | None = None,
    ) -> None:
        edge = Edge(next(self._time), left, right, application, matched, made, swapped, over)
        self.edges.setdefault(id(left), []).append(edge)
        self.edges.setdefault(id(right), []).append(edge)
        self._leader[self._find(right)] = self._find(left)

    def _key(self, term: Term) -> tuple[ENode, tuple[int, ...]]:
        return term.node, tuple(map(self._find, term.operands))

    def close(self) -> dict[ENode, list[Term]]:
        """Join terms whose operands are equal until no two are left; gives one of each sort, by their nodes."""
        while True:
            first: dict[tuple[ENode, tuple[int, ...]], Term] = {}
            self._first = first
            joined = False
            for term in list(self._known.values()):
                other = first.setdefault(self._key(term), term)
                if self._find(other) != self._find(term):
                    self._join(other, term)
                    joined = True
            for term in first.values():
                joined = self._turned(term) or joined
            joined = self._narrowed(first.values()) or joined
            if not joined:
                break
        found: dict[ENode, list[Term]] = {}
        for term in first.values():
            found.setdefault(term.node, []).append(term)
        return found

    def _turned(self, term: Term) -> bool:
        """Join a term to one that differs in the order of its operands alone; says whether there is one that was apart."""
        if term.node.op not in self._commutative or len(term.operands) != 2:
            return False
        node = swapped(term.node)
        other = self._first.get((node, self._key(term)[1][::-1]))
        if other is None or self._find(other) == self._find(term):
            return False
        exact = self.terms.make(term.number, node, term.operands[::-1])
        self.add(exact)
        self._join(term, exact, swapped=True)
        if self._find(exact) != self._find(other):
            self._join(other, exact)
        return True

    def _narrowed(self, terms: Iterable[Term]) -> bool:
        """Join operands of which an injective operator makes the same; says whether some were apart."""
        joined = False
        first: dict[tuple[int, str, int], Term] = {}
        for term in terms:
            if term.node.op not in self._injective or len(term.operands) != 1:
                continue
            other = first.setdefault((self._find(term), term.node.op, term.node.attributes), term)
            (left,), (right,) = other.operands, term.operands
            if self._find(left) != self._find(right):
                self._join(left, right, over=(other, term))
                joined = True
        return joined

    # ---- applications

    def replay(self) -> None:
        """Make all applications, until they give nothing new."""
        changed = True
        while changed:
            present = self.close()
            keys = {self._key(term) for terms in present.values() for term in terms}
            changed = False
            for application in self._applied:
                for match in list(self._matches(application.left, None, {}, present)):
                    changed = self._apply(application, match, keys) or changed
        self.close()

    def _apply(self, application: Application, match: _Match, keys: set[tuple[ENode, tuple[int, ...]]]) -> bool:
        """Make one application; says whether it gave a new term, or a new equality."""
        made: list[Term] = []
        after = self.made(application.right, match.names, made)
        self.add(match.term)
        self.add(after)
        if self._find(match.term) == self._find(after) and all(self._key(term) in keys for term in made):
            return False
        self._join(match.term, after, application, match.matched, tuple(made))
        return True

    def _matches(
        self, part: Part, at: Term | None, names: Mapping[str, Term], present: Mapping[ENode, Sequence[Term]]
    ) -> Iterator[_Match]:
        """The terms that match a part of a left side, all that there are or those that are equal to one."""
        if part.node is None:
            assert part.name is not None
            assert at is not None
            bound = names.get(part.name, at)
            if self._find(bound) == self._find(at):
                yield _Match(bound, {**names, part.name: bound})
            return
        for term in present.get(part.node, ()):
            if at is None or self._find(term) == self._find(at):
                for operands in self._operands(part, 0, _Match(term, names), present, ()):
                    yield self._whole(part, term, operands, names)

    def _operands(
        self,
        part: Part,
        position: int,
        match: _Match,
        present: Mapping[ENode, Sequence[Term]],
        found: tuple[_Match, ...],
    ) -> Iterator[tuple[_Match, ...]]:
        """Matches of a term's operands from a position on."""
        if position == len(part.operands):
            yield found
            return
        for below in self._matches(part.operands[position], match.term.operands[position], match.names, present):
            yield from self._operands(part, position + 1, _Match(match.term, below.names), present, (*found, below))

    def _whole(self, part: Part, term: Term, operands: Sequence[_Match], names: Mapping[str, Term]) -> _Match:
        """The match of a part whose operands match: the very term, joined to the one that it was found by."""
        assert part.node is not None
        exact = self.terms.make(part.number, part.node, tuple(o.term for o in operands))
        self.add(exact)
        if self._find(exact) != self._find(term):
            self._join(term, exact)
        names = operands[-1].names if operands else names
        if part.name is not None:
            names = {**names, part.name: exact}
        return _Match(exact, names, (exact, *(m for o in operands for m in o.matched)))

    def made(self, part: Part, names: Mapping[str, Term], made: list[Term]) -> Term:
        """The term that a right side makes; its operations are added to `made`."""
        if part.node is None:
            assert part.name is not None
            return names[part.name]
        operands = tuple(self.made(operand, names, made) for operand in part.operands)
        term = self.terms.make(part.number, part.node, operands)
        made.append(term)
        return term
