"""A key that two modules share exactly when they are the same program, names included."""

from __future__ import annotations

from typing import Any

from genrw.engine.ir.interner import attributes_key
from genrw.engine.ir.nodes import Main, Module, Unit


def structure_key(module: Module) -> tuple[Any, ...]:
    """What lowering a module depends on: its header and its graph."""
    ids: dict[int, int] = {}
    graph = []
    for node in module.nodes:
        ids[id(node)] = len(ids)
        operands = tuple(ids[id(o)] for o in node.operands)
        graph.append((node.op, attributes_key(node.attributes), operands, node.name, node.type))
    parameters = tuple((attributes_key(p.attributes), p.name, ids.get(id(p))) for p in module.parameters)
    header = (module.name, module.stage, module.target, attributes_key(tuple(module.schedule.items())))
    return (header, module.space, module.axes, module.results, tuple(module.outputs.items()), parameters, tuple(graph))


def unit_key(unit: Unit) -> tuple[Any, ...]:
    """The same for a program of several kernels: the kernels, and how they are called."""
    return (tuple(map(structure_key, unit.kernels)), _main_key(unit.main) if unit.main is not None else None)


def _main_key(main: Main) -> tuple[Any, ...]:
    parameters = tuple((attributes_key(p.attributes), p.name) for p in main.parameters)
    return (main.name, main.stage, main.target, parameters, main.calls, main.returned, main.results)


def nameless_key(module: Module) -> tuple[Any, ...]:
    """What tells kernels apart that are the same under other names: parameters count by their place."""
    places = {id(p): (i, p.type) for i, p in enumerate(module.parameters)}
    ids: dict[int, int] = {}
    graph: list[Any] = []
    for node in module.nodes:
        ids[id(node)] = len(ids)
        operands = tuple(ids[id(o)] for o in node.operands)
        what = places.get(id(node)) or (node.op, attributes_key(node.attributes), operands, node.type)
        graph.append(what)
    return tuple(graph)
