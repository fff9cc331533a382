"""Compiled programs that are called like functions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from genrw.codegen.hip.printer import KernelSource
from genrw.codegen.runtime.device import Device
from genrw.codegen.runtime.given import check_settings, unknown_input, what_it_takes
from genrw.codegen.runtime.launch import Built, launch_table
from genrw.engine.library.one_process import OfOneProcess
from genrw.grammar.diagnostics import error
from genrw.program import Program
from genrw.tuned import with_winners


class Executable(OfOneProcess):
    """A program compiled for a device, called on arrays of the parameters' types and shapes.

    `source` is its HIP C++; `launch` describes its kernels as `launch.json` does.
    """

    what = "a compiled program"
    instead = "pass the program's path or its text on, and compile it there, where compiled kernels are found on disk"

    def __init__(self, program: Program, device: Device) -> None:
        self.program, self.device = with_winners(program, device.model), device
        self._run = device.prepare(self.program)
        self._inputs, self._results = tuple(self.program.inputs), tuple(self.program.results)
        usual = self.program.defaults
        self._least = max((i for i, name in enumerate(self._inputs, 1) if name not in usual), default=0)
        self._settings = frozenset(device.settings) - frozenset(self._inputs)
        self._usual = {"poison": False} if "poison" in device.settings else {}

    def __call__(self, /, *arrays: object, **named: object) -> Any:
        """The program's results: one array, or a tuple in the order in which the program returns them. Names that are no
        parameters are the device's settings, as for `run`."""
        if self._least <= len(arrays) <= len(self._inputs) and self._settings.issuperset(named):
            inputs, settings = dict(zip(self._inputs, arrays, strict=False)), named
        else:
            settings = {name: named.pop(name) for name in self._settings if name in named}
            inputs = self._bind(arrays, self.program.by_own_names(named))
        results = tuple(self._called(inputs, settings).values())
        return results[0] if len(results) == 1 else results

    def run(self, inputs: dict[str, object], **settings: Any) -> dict[str, Any]:
        """The results by name, for arrays by name.

        Settings of the CPU: `threads`, `order`, and `poison`, which fills results before the run with a pattern that shows
        where nothing was written, and is off here. Of a GPU: `stream`, on which to run, and `out`, arrays by result that
        take the results. Given a stream, results on the GPU are for what that stream does next; without, they are done.
        """
        check_settings(self.device, settings)
        return self._called(inputs, settings)

    def _called(self, inputs: dict[str, object], settings: Mapping[str, Any]) -> dict[str, Any]:
        return self._run(self.program.by_own_names(inputs), **{**self._usual, **settings})

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the parameters, in order."""
        return self._inputs

    @property
    def results(self) -> tuple[str, ...]:
        """The names of the results, in order."""
        return self._results

    @cached_property
    def _kernels(self) -> list[KernelSource]:
        return self.program.kernels()

    @cached_property
    def source(self) -> str:
        return "\n".join(kernel.text for kernel in self._kernels)

    @cached_property
    def launch(self) -> dict[str, Any]:
        return launch_table(self.program, [Built(kernel, {}) for kernel in self._kernels])

    def _bind(self, arrays: tuple[object, ...], named: Mapping[str, object]) -> dict[str, object]:
        """Arguments by parameter name, as Python binds a call's."""
        if len(arrays) > len(self.inputs):
            takes = "1 array" if len(self.inputs) == 1 else f"{len(self.inputs)} arrays"
            message = f"the program takes {takes}, not {len(arrays)}"
            raise error(message, remedy=what_it_takes(self.program))
        bound = dict(zip(self.inputs, arrays, strict=False))
        unknown = next((name for name in named if name not in self.inputs), None)
        if unknown is not None:
            raise unknown_input(self.program, unknown)
        twice = next((name for name in named if name in bound), None)
        if twice is not None:
            raise error(f"the input `{twice}` is given twice", remedy="give it once")
        bound |= named
        missing = next((name for name in self.inputs if name not in bound and name not in self.program.defaults), None)
        if missing is not None:
            raise error(f"the input `{missing}` is missing", remedy=what_it_takes(self.program))
        return bound

    def __repr__(self) -> str:
        return f"<genrw program {', '.join(self.inputs)} -> {', '.join(self.results)}>"
