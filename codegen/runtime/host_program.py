"""Printed kernels on the CPU: compiled once, called on arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from genrw.codegen.hip.printer import KernelSource
from genrw.codegen.runtime.array_layout import (
    Array,
    check_array,
    from_memory,
    memory_size,
    missing_input,
    poisoned,
    to_memory,
)
from genrw.codegen.runtime.host import HostKernel, Unit, UnitOptions, compile_host, compile_host_units
from genrw.codegen.runtime.refusals import told_at_own_texts


@dataclass(frozen=True)
class HostProgram:
    """A kernel compiled for the CPU, with its arguments' types and shapes."""

    source: KernelSource
    kernel: HostKernel

    @classmethod
    def compile(cls, source: KernelSource, *, cache: bool = True) -> HostProgram:
        """Compile a printed kernel; GenrwError if there is no compiler or it refuses the source."""
        with told_at_own_texts([source]):
            kernel = compile_host(
                source.host_text,
                source.name,
                _cpp_types(source),
                wave_size=source.wave_size,
                block=source.block,
                in_loops=source.in_loops,
                cache=cache,
            )
        return cls(source, kernel)

    @classmethod
    def compile_all(cls, sources: Sequence[KernelSource], *, cache: bool = True) -> list[HostProgram]:
        """Compile printed kernels, those that are launched alike together."""
        alike: dict[UnitOptions, list[KernelSource]] = {}
        for source in sources:
            alike.setdefault(UnitOptions(source.wave_size, source.block, source.in_loops), []).append(source)
        compiled: dict[int, HostProgram] = {}
        for launch, group in alike.items():
            units = [Unit(s.host_text, s.helpers, s.name, _cpp_types(s)) for s in group]
            with told_at_own_texts(group):
                kernels = compile_host_units(units, launch, cache=cache)
            compiled |= {id(source): cls(source, kernel) for source, kernel in zip(group, kernels, strict=True)}
        return [compiled[id(source)] for source in sources]

    def __call__(self, inputs: Mapping[str, object], *, threads: int | None = None, order: int = 0) -> dict[str, Array]:
        """Run on arrays by parameter name; gives the written ones. `order` shuffles groups and waves."""
        arguments = self.arguments(inputs)
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

    def arguments(self, inputs: Mapping[str, object]) -> list[Array]:
        """Flat memories for a launch: the inputs, by parameter name, and poisoned results."""
        arguments = []
        for argument in self.source.arguments:
            if argument.written:
                arguments.append(poisoned(argument.dtype, memory_size(argument.lens, argument.strides)))
            elif argument.parameter in inputs:
                value = inputs[argument.parameter]
                strides = argument.strides
                array = check_array(argument.parameter, value, argument.dtype, argument.lens, strides)
                arguments.append(to_memory(array, strides))
            else:
                raise missing_input(argument.parameter)
        return arguments


def _cpp_types(source: KernelSource) -> tuple[str, ...]:
    """The C++ types of a kernel's parameters."""
    return tuple(f"{'' if a.written else 'const '}{a.cpp}*" for a in source.arguments)
