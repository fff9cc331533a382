"""The inputs of a call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from genrw.engine.lowering.program import StagedProgram
from genrw.grammar.diagnostics import error


def given_inputs(program: StagedProgram, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """The inputs, with the usual values of those that are not given; GenrwError for some that no parameter is called."""
    unknown = [name for name in inputs if name not in program.inputs]
    if unknown:
        names = ", ".join(program.inputs)
        remedy = f"its inputs are {names}" if names else "it has no inputs"
        raise error(f"the program has no input `{unknown[0]}`", remedy=remedy)
    return {**program.defaults, **inputs}
