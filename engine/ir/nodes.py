"""Programs as typed graphs: what stages take and give."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, Self, TypeVar

from genrw.engine.ir.types import Type
from genrw.grammar.source import NOWHERE, Span

Attributes = tuple[tuple[str, Any], ...]

MAIN_MODULE = "main"
"""The name of a module that has none of its own."""


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


@dataclass(frozen=True)
class Call:
    """One launch of a kernel: its module's name, the values it is given and those it makes, in its own order."""

    kernel: str
    operands: tuple[str, ...]
    results: tuple[str, ...]


@dataclass(frozen=True)
class Main:
    """What a program of several kernels does: its parameters, the calls in order, and what it returns.

    Values are called by name: parameters and the results of calls. `returned` are those that the program returns,
    `results` the names under which it does.
    """

    name: str
    parameters: tuple[Node, ...]
    calls: tuple[Call, ...]
    returned: tuple[str, ...]
    results: tuple[str, ...]
    stage: str = ""
    target: str = ""
    span: Span = field(default=NOWHERE, repr=False)


@dataclass(frozen=True)
class Unit:
    """One program: a module, or the kernels that it fell into and the main module that calls them."""

    kernels: tuple[Module, ...]
    main: Main | None = None

    @property
    def stage(self) -> str:
        """The last stage that ran."""
        return self.kernels[0].stage

    @property
    def name(self) -> str:
        return self.main.name if self.main is not None else self.kernels[0].name


class HasOperands(Protocol):
    """What graphs consist of."""

    @property
    def operands(self) -> tuple[Self, ...]: ...


_N = TypeVar("_N", bound=HasOperands)


def walk(*roots: _N) -> Iterator[_N]:
    """Every node reachable from the roots once, operands before users, in a fixed order."""
    seen: set[int] = set()
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        node, ready = stack.pop()
        if ready:
            yield node
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((operand, False) for operand in reversed(node.operands) if id(operand) not in seen)


def rebuilt(nodes: Iterable[Node], made: Mapping[int, Node]) -> dict[int, Node]:
    """Copies of nodes, operands before users, by the identity of what they are copies of; `made` is what takes the place of
    some, which are not copied."""
    found = dict(made)
    for node in nodes:
        if id(node) not in found:
            found[id(node)] = replace(node, operands=tuple(found[id(o)] for o in node.operands))
    return found


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
    copies = rebuilt(module.nodes, {})
    parameters = tuple(copies.get(id(p), p) for p in module.parameters)
    return replace(module, root=copies[id(module.root)], parameters=parameters)


def distinct_names(names: Iterable[str]) -> tuple[str, ...]:
    """The names, those met again with a number behind them."""
    found: dict[str, None] = {}
    for wanted in names:
        name, count = wanted, 0
        while name in found:
            count += 1
            name = f"{wanted}_{count}"
        found[name] = None
    return tuple(found)
