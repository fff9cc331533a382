"""Printed kernels on the CPU: compiled once, called on arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from genrw.codegen.host import HostKernel, compile_host
from genrw.codegen.layout import Array, check_array, from_memory, memory_size, poisoned, to_memory
from genrw.codegen.printer import KernelSource
from genrw.grammar.diagnostics import error


@dataclass(frozen=True)
class HostProgram:
    """A kernel compiled for the CPU, with its arguments' types and shapes."""

    source: KernelSource
    kernel: HostKernel

    @classmethod
    def compile(cls, source: KernelSource, *, cache: bool = True) -> HostProgram:
        """Compile a printed kernel; GenrwError if there is no compiler or it refuses the source."""
        types = [f"{'' if a.written else 'const '}{a.cpp}*" for a in source.arguments]
        kernel = compile_host(
            source.text,
            source.name,
            types,
            wave_size=source.wave_size,
            block=source.block,
            cooperative=source.cooperative,
            cache=cache,
        )
        return cls(source, kernel)

    def __call__(self, inputs: Mapping[str, object], *, threads: int | None = None, order: int = 0) -> dict[str, Array]:
        """Run on arrays by parameter name; gives the written ones. `order` shuffles groups and waves."""
        arguments = self._arguments(inputs)
        self.launch(arguments, threads=threads, order=order)
        return {
            a.parameter: from_memory(memory, a.lens, a.strides)
            for a, memory in zip(self.source.arguments, arguments, strict=True)
            if a.written
        }

    def launch(self, arguments: Sequence[Array], *, threads: int | None = None, order: int = 0) -> None:
        """Run on flat memories, in the order of the kernel's arguments."""
        if self.source.groups:
            self.kernel.launch(arguments, self.source.groups, threads=threads, order=order)

    def _arguments(self, inputs: Mapping[str, object]) -> list[Array]:
        arguments = []
        for argument in self.source.arguments:
            if argument.written:
                arguments.append(poisoned(argument.dtype, memory_size(argument.lens, argument.strides)))
            elif argument.parameter in inputs:
                value = inputs[argument.parameter]
                array = check_array(argument.parameter, value, argument.dtype, argument.lens)
                arguments.append(to_memory(array, argument.strides))
            else:
                raise error(f"input `{argument.parameter}` is missing")
        return arguments
