"""Roundings that rules leave out, put back into the program, so that what is stored is stored in the narrower type.

Between two operators of a kernel a rounding only costs time. But whether two operators are in one kernel is known when
a program is cut, and rules that look for a form of several operators look for it without roundings. So the rules leave
roundings out where they look, and what is cut has them again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from genrw.engine.ir.dtypes import DTYPES
from genrw.engine.ir.enode import ENode
from genrw.engine.ir.nodes import Module, Node, walk

Step = tuple[int, ENode]
"""A class, and the node of it that makes it of one operand."""
Build = Callable[[Step, Node], Node]
"""Makes a node of the program from a step and its operand."""


@dataclass(frozen=True)
class Classes:
    """An e-graph as it is asked about here: the nodes of each class, and the class of each written node."""

    nodes: Mapping[int, Sequence[ENode]]
    of: Callable[[Node], int]


class Numbered(NamedTuple):
    """A program's root, the classes of its nodes by their identity, and what makes those classes that are rounded values."""

    root: Node
    numbers: Mapping[int, int]
    rounded: Mapping[int, ENode]


def narrowed(root: Node, made: Mapping[int, Node], module: Module, classes: Classes, build: Build) -> Numbered:
    """A program in which values are rounded that the written module rounds.

    `made` are the nodes of the program as it is, by the numbers of their classes.
    """
    numbers = {id(node): number for number, node in made.items()}
    takers = _takers(module, classes)
    ways = {id(v): (n, _ways(n, classes, takers.get(n, set()))) for n, v in made.items() if v.operands}
    added: dict[int, ENode] = {}
    new: dict[int, Node] = {}
    rounded: dict[int, Node] = {}
    inside: dict[int, tuple[Node, ...]] = {}
    for node in walk(root):
        if id(node) in new:
            continue
        new[id(node)] = value = _over(node, [_read(o, node, new, rounded, inside) for o in node.operands])
        numbers[id(value)] = numbers[id(node)]
        number, found = ways.get(id(node), (-1, ()))
        for steps in found:
            chain = _chain(made.get(steps[-2][0]), node)
            narrow = value
            for step in chain:
                narrow = new[id(step)] = _over(step, [narrow])
                numbers[id(narrow)] = numbers[id(step)]
            own = () if chain else steps[:-1]
            for below in own:
                narrow = build(below, narrow)
                numbers[id(narrow)] = below[0]
            if _bytes(narrow) < _bytes(value) and node.op != steps[-1][1].op:
                rounded[id(node)] = wide = build(steps[-1], narrow)
                inside[id(node)], numbers[id(wide)] = chain, number
                added.update(own)
                break
    return Numbered(new[id(root)] if rounded else root, numbers, added)


def _takers(module: Module, classes: Classes) -> dict[int, set[int]]:
    """The classes of what the written module makes of values as they are, by the values' classes."""
    found: dict[int, set[int]] = {}
    for node in module.nodes:
        for operand in node.operands:
            if len(operand.operands) != 1 or _bytes(operand.operands[0]) >= _bytes(operand):
                found.setdefault(classes.of(operand), set()).add(classes.of(node))
    return found


def _ways(number: int, classes: Classes, takers: set[int]) -> tuple[tuple[Step, ...], ...]:
    """How a class is made of itself, by two or three steps of one operand each, `takers` among them; the shortest first."""
    found = (
        (*reversed(below), (number, last))
        for last in _of_one(number, classes)
        for below in _down(last.operands[0], number, classes, 2)
        if takers.issubset(step for step, _ in below)
    )
    return tuple(sorted(found, key=len))


def _down(number: int, goal: int, classes: Classes, most: int) -> Iterator[tuple[Step, ...]]:
    """Steps from a class down to another one, the last first."""
    if number == goal or not most:
        return
    for node in _of_one(number, classes):
        if node.operands[0] == goal:
            yield ((number, node),)
        else:
            yield from (((number, node), *below) for below in _down(node.operands[0], goal, classes, most - 1))


def _of_one(number: int, classes: Classes) -> list[ENode]:
    return [node for node in classes.nodes.get(number, ()) if len(node.operands) == 1]


def _bytes(node: Node) -> int:
    """The size of an element; accumulators are never narrower."""
    return DTYPES[node.type.dtype].itemsize if node.type.dtype in DTYPES else 1 << 30


def _chain(top: Node | None, value: Node) -> tuple[Node, ...]:
    """The operations of the new program by which a value becomes narrower, up to `top`; none if it has none."""
    chain: list[Node] = []
    while top is not None and top is not value:
        chain.append(top)
        top = top.operands[0] if len(top.operands) == 1 and len(chain) < 3 else None
    return tuple(reversed(chain)) if top is not None else ()


def _read(
    operand: Node,
    user: Node,
    new: Mapping[int, Node],
    rounded: Mapping[int, Node],
    inside: Mapping[int, Sequence[Node]],
) -> Node:
    """What a node of the new program takes for an operand: the rounded value, but for what rounds it."""
    if id(operand) in rounded and all(user is not step for step in inside[id(operand)]):
        return rounded[id(operand)]
    return new[id(operand)]


def _over(node: Node, operands: list[Node]) -> Node:
    if all(a is b for a, b in zip(node.operands, operands, strict=True)):
        return node
    return replace(node, operands=tuple(operands))
