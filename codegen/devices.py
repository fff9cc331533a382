"""The devices that programs run on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from genrw.codegen.host_program import HostProgram
from genrw.grammar.diagnostics import error

if TYPE_CHECKING:
    from genrw.program import Program


class Device(Protocol):
    """Runs a program on arrays by name; gives the results by the names that the program returns."""

    name: str

    def run(self, program: Program, inputs: Mapping[str, object], **settings: Any) -> dict[str, Any]: ...


class HostDevice:
    """The CPU: any target's printed kernel, compiled by the system's compiler."""

    name = "host"

    def run(
        self, program: Program, inputs: Mapping[str, object], *, threads: int | None = None, order: int = 0
    ) -> dict[str, Any]:
        lowered = program.lower(program.stages[-1])
        results: dict[str, Any] = {}
        for module, source in zip(lowered.modules, lowered.kernels(), strict=True):
            outputs = HostProgram.compile(source)(inputs, threads=threads, order=order)
            results.update((module.outputs.get(name, name), array) for name, array in outputs.items())
        return results


class InterpretDevice:
    """numpy: a program at whatever stage it is, over all groups and lanes."""

    name = "interpret"

    def run(
        self, program: Program, inputs: Mapping[str, object], *, precise: bool = False
    ) -> dict[str, Any]:
        from genrw.engine.interpret import interpret

        results: dict[str, Any] = {}
        for module in program.modules:
            results.update(interpret(module, program.library, program.context(module), inputs, precise=precise))
        return results


DEVICES: dict[str, Device] = {d.name: d for d in (HostDevice(), InterpretDevice())}


def find_device(name: str) -> Device:
    """A device by name; GenrwError if there is none."""
    if name not in DEVICES:
        raise error(f"there is no device `{name}`", remedy=f"devices are {', '.join(DEVICES)}")
    return DEVICES[name]
