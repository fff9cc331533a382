"""Programs as typed graphs: what stages take and give."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from genrw.engine.types import Type
from genrw.grammar.source import NOWHERE, Span

Attributes = tuple[tuple[str, Any], ...]


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """One operation. Attributes are complete (defaults filled in) and in declared order.

    `rules` names the rules that made the node, none for one that was written in the program.
    """

    op: str
    attributes: Attributes
    operands: tuple[Node, ...]
    type: Type
    name: str | None = None
    span: Span = field(default=NOWHERE, repr=False)
    rules: tuple[str, ...] = ()

    def attribute(self, name: str) -> Any:
        """The value of an attribute; KeyError if it has none of that name."""
        for key, value in self.attributes:
            if key == name:
                return value
        raise KeyError(name)


@dataclass(frozen=True)
class Module:
    """One program or kernel: its root node, and what its header says.

    `stage` is the last stage that ran ("" for a program as written), `schedule` and `space` belong to kernels,
    `results` are the names under which the program returns its values, `outputs` says which of them each output
    parameter of a kernel holds.
    """

    name: str
    root: Node
    parameters: tuple[Node, ...]
    stage: str = ""
    target: str = ""
    schedule: Mapping[str, Any] = field(default_factory=dict)
    space: tuple[int, ...] | None = None
    axes: tuple[int, ...] = ()
    results: tuple[str, ...] = ()
    outputs: Mapping[str, str] = field(default_factory=dict)
    span: Span = field(default=NOWHERE, repr=False)

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """Every node once, operands before users, the root last."""
        return tuple(walk(self.root))


def walk(*roots: Node) -> Iterator[Node]:
    """Every node reachable from the roots once, operands before users, in a fixed order."""
    seen: set[int] = set()
    stack: list[tuple[Node, bool]] = [(root, False) for root in reversed(roots)]
    while stack:
        node, ready = stack.pop()
        if ready:
            yield node
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((operand, False) for operand in reversed(node.operands) if id(operand) not in seen)


def unshared(modules: Iterable[Module]) -> list[Module]:
    """The modules, with copies of nodes that an earlier one holds too: a node belongs to one kernel."""
    seen: set[int] = set()
    result = []
    for module in modules:
        if any(id(node) in seen for node in module.nodes):
            module = _copied(module)
        seen.update(map(id, module.nodes))
        result.append(module)
    return result


def _copied(module: Module) -> Module:
    copies: dict[int, Node] = {}
    for node in module.nodes:
        copies[id(node)] = replace(node, operands=tuple(copies[id(o)] for o in node.operands))
    parameters = tuple(copies.get(id(p), p) for p in module.parameters)
    return replace(module, root=copies[id(module.root)], parameters=parameters)
