"""Programs evaluated in numpy, kernel after kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from genrw.engine.interpret.memory import read_as
from genrw.engine.interpret.reference import interpret
from genrw.engine.ir.nodes import Main, Module, Unit
from genrw.engine.ir.types import Type
from genrw.engine.lowering.program import StagedProgram
from genrw.engine.programs.signature import given_parameters


def run_units(program: StagedProgram, inputs: Mapping[str, Any], precise: bool) -> list[Any]:
    """The results of all units of a program in order, for arrays by name."""
    return [array for unit in program.units for array in _run_unit(program, unit, inputs, precise)]


def _run_unit(program: StagedProgram, unit: Unit, inputs: Mapping[str, Any], precise: bool) -> list[Any]:
    if unit.main is None:
        taken = {p.attribute("name") for p in unit.kernels[0].parameters}
        given = {name: array for name, array in inputs.items() if name in taken}
        declared = {name: parameter.type for name, parameter in program.inputs.items()}
        return list(_run(program, unit.kernels[0], given, precise, declared).values())
    values = _values(program, unit.main, inputs)
    kernels = {module.name: module for module in unit.kernels}
    for call in unit.main.calls:
        module = kernels[call.kernel]
        names = given_parameters(module, program.library)
        given = {name: values[v] for name, v in zip(names, call.operands, strict=True) if v in values}
        values.update(zip(call.results, _run(program, module, given, precise).values(), strict=True))
    return [values[value] for value in unit.main.returned]


def _values(program: StagedProgram, main: Main, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The given inputs as the main module reads them, by the names that it has for them."""
    taken = {p.attribute("name"): p for p in main.parameters}
    return {
        taken[name].name or "": read_as(array, program.inputs[name].type, taken[name].type)
        for name, array in inputs.items()
        if name in taken
    }


def _run(
    program: StagedProgram,
    module: Module,
    given: Mapping[str, Any],
    precise: bool,
    declared: Mapping[str, Type] | None = None,
) -> dict[str, Any]:
    return interpret(module, program.library, program.context(module), given, precise=precise, declared=declared)
