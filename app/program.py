"""Programs as the Python API hands them out: lowered, printed, run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from genrw.engine.lowering.program import StagedProgram

if TYPE_CHECKING:
    from genrw.codegen.hip.printer import KernelSource


@dataclass(frozen=True)
class Program(StagedProgram):
    """A program at some stage that can be printed as HIP C++ and run on a device."""

    def kernels(self) -> list[KernelSource]:
        """The printed kernels, in order; GenrwError where rules that are not trusted bring C++ that could do harm."""
        # Lowering alone does without the printer.
        from genrw.codegen.hip.program import print_program

        return print_program(self)

    def run(self, inputs: Mapping[str, object], device: str = "host", **settings: Any) -> dict[str, Any]:
        """Run on arrays by name; gives the results by the names that the program returns."""
        # Lowering alone does without numpy and the devices' runtimes.
        from genrw.codegen.runtime.devices import find_device
        from genrw.codegen.runtime.given import check_settings

        found = find_device(device)
        check_settings(found, settings)
        return found.prepare(self)(self.by_own_names(inputs), **settings)
