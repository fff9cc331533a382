"""Where a kernel can make a value: asked of the rules about each operation, and remembered.

A kernel makes a value at one of five places: at a lane's own element of the kernel's space, in its row, of the lane's own
elements in another order, at those elements of a fold's operand that lanes hold while they fold it, or elsewhere.
The rules of the stage say, of an operation alone, where its operands have to be made. What they have no answer for,
no kernel can make there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any

from genrw.engine.egraph.stage import EGraphSnapshot
from genrw.engine.ir.enode import ENode
from genrw.engine.ir.interner import attributes_key
from genrw.engine.ir.nodes import Module, Node
from genrw.engine.ir.types import Type
from genrw.engine.language.layouts import kept_groups
from genrw.engine.library.library import Library
from genrw.engine.programs.build import input_node
from genrw.grammar.diagnostics import error
from genrw.grammar.rw_tree import OpPattern, RuleDecl

ELEMENT, ROW, TURNED, ELSEWHERE, HELD = 0, 1, 2, 3, 4
PLACES = ("element", "in_row", "turned", "elsewhere", "held")
"""The places by number, as operators of role `place` name them."""


@dataclass(frozen=True)
class IterationSpace:
    """The shape that a kernel runs over, and which axes make up a row: none in a kernel without reductions.

    Neighbouring axes of one kind are one axis, so spaces whose rows are the same are equal.
    """

    lens: tuple[int, ...]
    axes: tuple[int, ...] = ()

    @classmethod
    def of(cls, lens: tuple[int, ...], axes: Iterable[int]) -> IterationSpace:
        """The space of a reduction of a shape along axes."""
        groups = kept_groups(lens, tuple(axes))
        return cls(tuple(n for n, _ in groups), tuple(d for d, (_, reduced) in enumerate(groups) if reduced))

    @cached_property
    def elements(self) -> int:
        """How many elements there are in all rows."""
        return prod(self.lens)

    @cached_property
    def rows(self) -> int:
        return prod(n for d, n in enumerate(self.lens) if d not in self.axes)


@dataclass(frozen=True)
class OperandLocations:
    """Where the operands have to be made, by number, and the rules that say so."""

    places: tuple[int, ...]
    rules: tuple[str, ...]


@dataclass(frozen=True)
class LocationQuery:
    """Where do the operands of an operation have to be made for it to be made at a place in a space? None is the space of
    kernels without reductions; where lanes hold a fold's operand, it is that operand's shape with the axes that are folded.
    `asker` is the program's name."""

    asker: str
    node: Node
    place: int
    space: IterationSpace | None


def is_of_places(rule: RuleDecl, library: Library) -> bool:
    """Does a rule say where the operands of operations have to be made?"""
    left = rule.left
    return isinstance(left, OpPattern) and library.find(left.op) is not None and library.role(left.op) == "made"


Key = tuple[Any, ...]


@dataclass
class Places:
    """The rules' answers, by operation, place and space. `run` lets the rules act on modules and gives the e-graph."""

    library: Library
    target: str
    run: Any
    answers: dict[Key, OperandLocations | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        operators = self.library.operators.values()
        made = next((op.name for op in operators if op.role == "made"), None)
        if made is None:
            raise error("no operator has the role `made`", remedy="declare one")
        self._made = made
        self._places = {op.decl.role_parts[0]: op.name for op in operators if op.role == "place"}
        for part in PLACES:
            if part not in self._places:
                raise error(f"no operator has the role `place({part})`", remedy="declare one")
        self._numbers = {self._places[part]: number for number, part in enumerate(PLACES)}

    def _keys(self, questions: Sequence[LocationQuery]) -> list[Key]:
        """What the answers depend on."""
        nodes = {id(q.node): q.node for q in questions}
        about = {i: (node.op, attributes_key(node.attributes), self._types(node)) for i, node in nodes.items()}
        return [(*about[id(q.node)], q.place, q.space) for q in questions]

    def _types(self, node: Node) -> tuple[Type, ...]:
        """The operands' types; a number beside tensors stands for as many elements as they have."""
        constant = self.library.boundary("constant").name
        spread = self.library.role(node.op) == "pointwise"
        return tuple(
            replace(o.type, lens=node.type.lens) if spread and o.op == constant and not o.type.lens else o.type
            for o in node.operands
        )

    def ask(self, questions: Sequence[LocationQuery]) -> list[OperandLocations | None]:
        """The rules' answers to questions, None where no rule makes the operation there. What they were not asked before
        they answer together."""
        keys = self._keys(questions)
        new = {key: q for key, q in zip(keys, questions, strict=True) if key not in self.answers}
        modules = [self._module(question) for question in new.values()]
        if modules:
            graph: EGraphSnapshot = self.run(modules)
            self.answers.update(
                (key, self._answer(graph, module.root)) for key, module in zip(new, modules, strict=True)
            )
        return [self.answers[key] for key in keys]

    def _module(self, question: LocationQuery) -> Module:
        """The operation alone, on inputs, made at a place, as a module with the asker's name."""
        node, space = question.node, question.space
        inputs = tuple(input_node(self.library, f"x{i}", type_) for i, type_ in enumerate(self._types(node)))
        alone = Node(node.op, node.attributes, inputs, node.type)
        index = Node(self._places[PLACES[question.place]], (), (), Type("index", "int64"))
        root = Node(self._made, (), (alone, index), node.type)
        lens, axes = (space.lens, space.axes) if space is not None else (node.type.lens, ())
        return Module(question.asker, root, inputs, target=self.target, space=lens, axes=axes)

    def _answer(self, graph: EGraphSnapshot, made: Node) -> OperandLocations | None:
        """The answer that leaves most operands at places of their own; None if the rules have none."""
        asked = made.operands[0]
        number = graph.class_of[graph.ids[id(made)]]
        inputs = [graph.class_of[graph.ids[id(operand)]] for operand in asked.operands]
        found: list[tuple[int, ...]] = []
        for node in graph.classes[number]:
            if node.op == asked.op and len(node.operands) == len(inputs):
                places = [self._place(graph, o, x) for o, x in zip(node.operands, inputs, strict=True)]
                if all(place is not None for place in places):
                    found.append(tuple(place for place in places if place is not None))
        if not found:
            return None
        best = min(found, key=lambda places: (places.count(ELSEWHERE), places))
        return OperandLocations(best, tuple(graph.rules[r] for r in sorted(graph.why.get(number, ()))))

    def _place(self, graph: EGraphSnapshot, operand: int, value: int) -> int | None:
        """The place at which an operand is made, if it is the value that it should be."""
        for node in graph.classes[operand]:
            if node.op == self._made and node.operands[0] == value:
                index: Sequence[ENode] = graph.classes[node.operands[1]]
                return next((self._numbers[i.op] for i in index if i.op in self._numbers), None)
        return None
