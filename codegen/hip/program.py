"""All kernels of a program as HIP C++."""

from __future__ import annotations

from genrw.codegen.hip.comments import comment_lines
from genrw.codegen.hip.names import kernel_names
from genrw.codegen.hip.printer import KernelSource, print_kernel
from genrw.codegen.hip.trust import Vetting
from genrw.engine.lowering.program import StagedProgram


def print_program(program: StagedProgram) -> list[KernelSource]:
    """The printed kernels of a program, lowered to the last stage, in the order in which they are first launched;
    GenrwError where rules that are not trusted bring C++ that could do harm."""
    lowered = program.lower(program.stages[-1])
    names = kernel_names(map(program.as_called, lowered.modules), program.library)
    heading = comment_lines(program.text)
    vetting = Vetting(program.library) if program.library.foreign and not program.trusted else None
    return [
        print_kernel(m, program.library, lowered.context(m), heading, name, vetting=vetting)
        for m, name in zip(lowered.modules, names, strict=True)
    ]
