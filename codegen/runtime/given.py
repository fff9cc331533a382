"""The inputs of a call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from genrw.codegen.runtime.device import Device
from genrw.engine.lowering.program import StagedProgram
from genrw.grammar.diagnostics import GenrwError, error


def given_inputs(program: StagedProgram, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """The inputs, with the usual values of those that are not given; GenrwError for some that no parameter is called."""
    unknown = next((name for name in inputs if name not in program.inputs), None)
    if unknown is not None:
        raise unknown_input(program, unknown)
    return {**program.defaults, **inputs}


def unknown_input(program: StagedProgram, name: str) -> GenrwError:
    """What to tell of an array for an input that a program does not have."""
    return error(f"the program has no input `{name}`", remedy=what_it_takes(program))


def what_it_takes(program: StagedProgram) -> str:
    """The inputs of a program, in words."""
    names = ", ".join(program.inputs)
    return f"its inputs are {names}" if names else "it has no inputs"


def check_settings(device: Device, settings: Iterable[str]) -> None:
    """GenrwError for a setting that a device does not have."""
    unknown = next((name for name in settings if name not in device.settings), None)
    if unknown is not None:
        remedy = f"its settings are {', '.join(device.settings)}"
        raise error(f"the device `{device.name}` has no setting `{unknown}`", remedy=remedy)
