"""Programs evaluated in numpy, kernel after kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from genrw.codegen.runtime.given import given_inputs
from genrw.engine.interpret.evaluate import Evaluator
from genrw.engine.interpret.memory import inputs_read_as
from genrw.engine.interpret.reference import checked_input, interpret
from genrw.engine.ir.nodes import Module, Node, Unit
from genrw.engine.lowering.program import StagedProgram
from genrw.engine.programs.signature import given_parameters

MakeEvaluator = Callable[..., Evaluator]
"""Of a library, a context, and whether floats are double."""


def results_of(
    program: StagedProgram, inputs: Mapping[str, Any], *, precise: bool = False, evaluator: MakeEvaluator = Evaluator
) -> dict[str, Any]:
    """The results of a program by name, for arrays by name. With `precise`, floats are double throughout."""
    # as they were declared: a lowered program may read their memory as something else
    declared = program.inputs
    given = {n: checked_input(n, declared[n], value, precise) for n, value in given_inputs(program, inputs).items()}
    run = partial(_run, program, precise=precise, evaluator=evaluator)
    arrays = [array for unit in program.units for array in _run_unit(program, unit, given, run)]
    return dict(zip(program.results, arrays, strict=True))


def _run_unit(program: StagedProgram, unit: Unit, inputs: Mapping[str, Any], run: Callable[..., Any]) -> list[Any]:
    if unit.main is None:
        (module,) = unit.kernels
        return list(run(module, _given(program, module.parameters, inputs)).values())
    shown = {p.attribute("name"): p.name or "" for p in unit.main.parameters}
    values = {shown[name]: array for name, array in _given(program, unit.main.parameters, inputs).items()}
    kernels = {module.name: module for module in unit.kernels}
    for call in unit.main.calls:
        module = kernels[call.kernel]
        names = given_parameters(module, program.library)
        given = {name: values[v] for name, v in zip(names, call.operands, strict=True) if v in values}
        values.update(zip(call.results, run(module, given).values(), strict=True))
    return [values[value] for value in unit.main.returned]


def _given(program: StagedProgram, parameters: Iterable[Node], inputs: Mapping[str, Any]) -> dict[str, Any]:
    declared = {name: parameter.type for name, parameter in program.inputs.items()}
    return inputs_read_as(parameters, inputs, declared)


def _run(
    program: StagedProgram, module: Module, given: Mapping[str, Any], precise: bool, evaluator: MakeEvaluator
) -> dict[str, Any]:
    context = program.context(module)
    made = evaluator(program.library, context, precise=precise)
    return interpret(module, program.library, context, given, precise=precise, evaluator=made)
