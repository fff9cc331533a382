"""Programs as the Python API hands them out: loaded, lowered, printed, compiled, run."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from genrw.engine.build import build_file
from genrw.engine.ir import Module
from genrw.engine.library import Library
from genrw.engine.pipeline import Options, Pipeline, Trace
from genrw.engine.text import module_text
from genrw.grammar.diagnostics import error
from genrw.grammar.gen import parse_gen
from genrw.grammar.source import Source

if TYPE_CHECKING:
    from genrw.codegen.printer import KernelSource

DEFAULT_TARGET = "gfx942"

_local = threading.local()


def pipeline_of(library: Library) -> Pipeline:
    """The calling thread's pipeline for a library: e-graphs belong to the thread that made them."""
    known: dict[int, tuple[Library, Pipeline]] = _local.__dict__.setdefault("pipelines", {})
    if id(library) not in known:
        known[id(library)] = (library, Pipeline(library))
    return known[id(library)][1]


@dataclass(frozen=True)
class Program:
    """Modules at some stage, with the rules and options that they are lowered by."""

    modules: tuple[Module, ...]
    library: Library
    options: Options
    text: str
    origin: tuple[Module, ...] = ()
    trace: Trace = field(default_factory=Trace, compare=False)

    @classmethod
    def parse(cls, source: Source, library: Library, options: Options | None = None) -> Program:
        """Check a `.gen` text. Without options, the target is the one in its header, else the default."""
        file = parse_gen(source.text, source.name)
        target = options.target if options is not None else DEFAULT_TARGET
        library.target(target)
        modules = tuple(build_file(file, library, target).values())
        if not modules:
            raise error("there is no module to lower", file.span)
        if options is None:
            targets = {m.target for m in modules if m.target}
            options = Options(target=targets.pop() if len(targets) == 1 else target)
        return cls(modules, library, options, source.text, modules)

    def lower(self, stage: str) -> Program:
        """The program at a stage."""
        trace = Trace()
        modules = pipeline_of(self.library).lower(self.modules, stage, self.options, trace)
        return replace(self, modules=tuple(modules), trace=trace)

    @property
    def stages(self) -> tuple[str, ...]:
        return self.library.stages

    def context(self, module: Module) -> dict[str, Any]:
        """What rules may ask about a module's surroundings."""
        return pipeline_of(self.library).context(module, self.options)

    def __str__(self) -> str:
        """The program as `.gen` text."""
        return module_text(self.modules, self.library, map(self.context, self._targeted()))

    def _targeted(self) -> list[Module]:
        return [replace(m, target=m.target or self.options.target) for m in self.modules]

    def kernels(self) -> list[KernelSource]:
        """The printed kernels, in order."""
        from genrw.codegen.printer import kernel_names, print_kernel

        lowered = self.lower(self.stages[-1])
        names = kernel_names(lowered.modules)
        return [
            print_kernel(m, self.library, lowered.context(m), self.text, name)
            for m, name in zip(lowered.modules, names, strict=True)
        ]

    def run(
        self, inputs: Mapping[str, object], device: str = "host", **settings: Any
    ) -> dict[str, Any]:
        """Run on arrays by name; gives the results by the names that the program returns."""
        from genrw.codegen.devices import find_device

        return find_device(device).run(self, inputs, **settings)
