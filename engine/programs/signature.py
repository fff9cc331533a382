"""What a module is to its caller: which parameters it is given, which it writes, and what its results are."""

from __future__ import annotations

from genrw.engine.ir.nodes import Module, Node
from genrw.engine.library.library import Library


def written_parameters(module: Module, library: Library) -> dict[str, Node]:
    """The parameters that a module writes, by name, in order."""
    buffers = [n.operands[library.part(n.op, 0)] for n in module.nodes if library.role(n.op) == "write"]
    found = {b.attribute("name") for b in buffers if b.op == library.boundary("input").name}
    return {p.attribute("name"): p for p in module.parameters if p.attribute("name") in found}


def given_parameters(module: Module, library: Library) -> dict[str, Node]:
    """The parameters that a caller gives, by name, in order."""
    written = written_parameters(module, library)
    return {p.attribute("name"): p for p in module.parameters if p.attribute("name") not in written}


def parameter_names(module: Module) -> tuple[str, ...]:
    """The names of all parameters that a module has so far."""
    return tuple(p.attribute("name") for p in module.parameters)


def results(module: Module, library: Library) -> list[tuple[str, Node]]:
    """What a module returns: names, and the nodes that are of the results' types, in order."""
    if module.root.op == library.boundary("result").name:
        return list(zip(module.results, module.root.operands, strict=True))
    written = written_parameters(module, library)
    return [(module.outputs.get(name, name), parameter) for name, parameter in written.items()]
