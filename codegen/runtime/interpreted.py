"""Programs evaluated in numpy, kernel after kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from genrw.engine.interpret.memory import inputs_read_as
from genrw.engine.interpret.reference import interpret
from genrw.engine.ir.nodes import Module, Node, Unit
from genrw.engine.lowering.program import StagedProgram
from genrw.engine.programs.signature import given_parameters


def run_units(program: StagedProgram, inputs: Mapping[str, Any], precise: bool) -> list[Any]:
    """The results of all units of a program in order, for arrays by name."""
    return [array for unit in program.units for array in _run_unit(program, unit, inputs, precise)]


def _run_unit(program: StagedProgram, unit: Unit, inputs: Mapping[str, Any], precise: bool) -> list[Any]:
    if unit.main is None:
        (module,) = unit.kernels
        return list(_run(program, module, _given(program, module.parameters, inputs), precise).values())
    shown = {p.attribute("name"): p.name or "" for p in unit.main.parameters}
    values = {shown[name]: array for name, array in _given(program, unit.main.parameters, inputs).items()}
    kernels = {module.name: module for module in unit.kernels}
    for call in unit.main.calls:
        module = kernels[call.kernel]
        names = given_parameters(module, program.library)
        given = {name: values[v] for name, v in zip(names, call.operands, strict=True) if v in values}
        values.update(zip(call.results, _run(program, module, given, precise).values(), strict=True))
    return [values[value] for value in unit.main.returned]


def _given(program: StagedProgram, parameters: Iterable[Node], inputs: Mapping[str, Any]) -> dict[str, Any]:
    declared = {name: parameter.type for name, parameter in program.inputs.items()}
    return inputs_read_as(parameters, inputs, declared)


def _run(program: StagedProgram, module: Module, given: Mapping[str, Any], precise: bool) -> dict[str, Any]:
    return interpret(module, program.library, program.context(module), given, precise=precise)
