"""Programs with the rules and options that lower them: checked, taken from stage to stage, their kernels in launch order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import PurePath
from typing import Any, Self

from genrw.engine.ir.nodes import MAIN_MODULE, Module, Node, Unit
from genrw.engine.ir.types import Type
from genrw.engine.library.library import Library
from genrw.engine.library.one_process import OfOneProcess
from genrw.engine.lowering.options import Options
from genrw.engine.lowering.pipeline import Pipeline
from genrw.engine.lowering.trace import Trace
from genrw.engine.programs.build import build_file
from genrw.engine.programs.launches import INPUT, LaunchPlan, MemorySlot, launches, parameters, returned
from genrw.engine.programs.text import unit_text
from genrw.grammar import gen_tree as tree
from genrw.grammar.diagnostics import error
from genrw.grammar.gen import parse_gen
from genrw.grammar.source import Source

_PIPELINES_KEPT = 4

watchers: list[Callable[[StagedProgram], None]] = []
"""Who is told of each program before it is lowered."""

_local = threading.local()


def pipeline_of(library: Library) -> Pipeline:
    """The calling thread's pipeline for a library: e-graphs belong to the thread that made them."""
    known: dict[Library, Pipeline] = _local.__dict__.setdefault("pipelines", {})
    pipeline = known.pop(library, None)
    if pipeline is None:
        before = next((p for p in reversed(known.values()) if p.library.shares_terms(library)), None)
        pipeline = Pipeline(library, before=before)
    known[library] = pipeline
    while len(known) > _PIPELINES_KEPT:
        del known[next(iter(known))]
    return pipeline


def recording_pipeline_of(library: Library) -> Pipeline:
    """The calling thread's pipeline that keeps what each rule of a library did: of the library asked about last."""
    known: dict[Library, Pipeline] = _local.__dict__.setdefault("recording", {})
    if library not in known:
        known.clear()
        known[library] = Pipeline(library, recorded=True)
    return known[library]


@dataclass(frozen=True)
class StagedProgram(OfOneProcess):
    """Programs at some stage, with the rules and options that they are lowered by: modules, each alone or with the
    kernels that it fell into.

    `origin` holds them as loaded; `target_chosen` says that the call or a header chose the target. `arrays` are the
    contents of files that parameters name; others lie beside the program's own file. `unused` names inputs of a model
    that are none of its program; `aliases` are a model's own names for inputs that the program calls otherwise. Where the rules are not `trusted`, kernels have no C++ of theirs that could do harm.
    """

    what = "a program"
    instead = "pass its path or its text on, `str(program)`, and load it there"

    units: tuple[Unit, ...]
    library: Library
    options: Options
    source: Source
    origin: tuple[Unit, ...] = ()
    target_chosen: bool = True
    arrays: Mapping[str, Any] = field(default_factory=dict, compare=False)
    unused: frozenset[str] = frozenset()
    aliases: Mapping[str, str] = field(default_factory=dict, compare=False)
    trusted: bool = False
    trace: Trace = field(default_factory=Trace, compare=False)

    @classmethod
    def parse(
        cls,
        source: Source,
        library: Library,
        options: Options | None = None,
        default_target: str = "",
    ) -> Self:
        """Check a `.gen` text. A target that the options leave open is the headers', else the default: the rules' own if it
        is empty."""
        if not library.stages:
            raise error("the rules declare no pipeline", remedy="declare one: `pipeline first -> … -> last`")
        file = parse_gen(source.text, source.name)
        options = options or Options(target="")
        chosen = options.target or _header_target(file)
        target = chosen or default_target or library.default_target
        if target != _header_target(file):
            library.target(target)
        units = build_file(file, library, target)
        if not units:
            raise error("there is no module to lower", file.span)
        return cls(units, library, replace(options, target=target), source, units, bool(chosen))

    def with_options(self, options: Options) -> Self:
        """The program as loaded, under other options."""
        parsed = type(self).parse(self.source, self.library, options)
        return replace(parsed, arrays=self.arrays, unused=self.unused, aliases=self.aliases, trusted=self.trusted)

    def pinned(self, schedule: Mapping[str, Any]) -> Self:
        """The same kernel with a schedule, of which entries that follow from others need not be given."""
        (module,) = self.modules
        entries = self.library.whole_schedule(schedule, self.library.target(module.target))
        return replace(self, options=replace(self.options, schedule=entries))

    @property
    def modules(self) -> tuple[Module, ...]:
        """All modules but the main ones that only call others."""
        return tuple(module for unit in self.units for module in unit.kernels)

    def with_modules(self, modules: tuple[Module, ...]) -> Self:
        """Other modules, each a program of its own, with this program's rules and options."""
        return self.with_units(tuple(Unit((module,)) for module in modules))

    def with_units(self, units: tuple[Unit, ...]) -> Self:
        """Other programs with this one's rules and options."""
        return replace(self, units=units)

    def lower(self, stage: str) -> Self:
        """The program at a stage."""
        for watcher in watchers:
            watcher(self)
        trace = Trace()
        units = pipeline_of(self.library).lower(self.units, stage, self.options, trace)
        return replace(self, units=tuple(units), trace=trace)

    def remaining_stages(self) -> Iterator[tuple[str, Self]]:
        """The program at each stage that is still to come, one after the other."""
        done = max((self.stages.index(u.stage) for u in self.units if u.stage), default=-1)
        program = self
        for stage in self.stages[done + 1 :]:
            program = program.lower(stage)
            yield stage, program

    @property
    def stages(self) -> tuple[str, ...]:
        return self.library.stages

    @property
    def text(self) -> str:
        """The `.gen` text that was loaded."""
        return self.source.text

    def context(self, module: Module) -> dict[str, Any]:
        """What rules may ask about a module's surroundings."""
        return pipeline_of(self.library).context(self._targeted(module), self.options)

    def __str__(self) -> str:
        """The program as `.gen` text."""
        return unit_text(self.units, self.library, self.context)

    def _targeted(self, module: Module) -> Module:
        return replace(module, target=module.target or self.options.target)

    # ---- inputs and results

    @cached_property
    def inputs(self) -> dict[str, Node]:
        """The parameters that a caller gives, by name, in order; modules may share them."""
        found: dict[str, Node] = {}
        for unit in self.origin:
            for name, parameter in parameters(unit, self.library).items():
                if found.setdefault(name, parameter).type != parameter.type:
                    raise error(
                        f"the modules disagree about the type of parameter `{name}`",
                        parameter.span,
                        "rename one of the parameters",
                    )
        return found

    def by_own_names(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """What is given for inputs by whichever of their names, by the program's own."""
        if not isinstance(given, Mapping):
            raise error(f"the inputs are a {type(given).__name__}", remedy='give arrays by name: {"x": x}')
        if self.aliases.keys().isdisjoint(given):
            return given
        named: dict[str, Any] = {}
        for name, value in given.items():
            own = self.aliases.get(name, name)
            if own in named:
                raise error(f"the input `{own}` is given twice")
            named[own] = value
        return named

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """The arrays that stand for parameters which a caller does not give."""
        from genrw.engine.programs.array_files import read_beside

        files = {name: p.attribute("file") for name, p in self.inputs.items() if p.attribute("file")}
        return {
            name: self.arrays[file] if file in self.arrays else read_beside(self.source.name, file, self.inputs[name])
            for name, file in files.items()
        }

    @cached_property
    def results(self) -> dict[str, Node]:
        """The values that the program returns, by name, in order."""
        return distinct(pair for unit in self.origin for pair in returned(unit, self.library))

    @cached_property
    def computed_in(self) -> dict[str, tuple[str, str, float]]:
        """For each result its element type, the one to whose accuracy it is held, and how near its operators say they are."""
        from genrw.engine.interpret.compare import computed_in

        return {name: computed_in(node, self.library) for name, node in self.results.items()}

    # ---- running

    def as_called(self, module: Module) -> Module:
        """The module under the name of its kernel: one without a header is called as its file."""
        stem = PurePath(self.source.name).stem
        anonymous = module.name == MAIN_MODULE and not self.source.name.startswith("<")
        return replace(module, name=stem) if anonymous else module

    def make_ready(self) -> None:
        """Clear away what lowering left, to be called where there is something to wait for: the next program then is
        lowered sooner."""
        pipeline_of(self.library).prepare()

    def launches(self) -> LaunchPlan:
        """How the kernels are launched one after the other, at the last stage."""
        return launches(self.lower(self.stages[-1]).units, list(self.inputs), self.library)

    def tensors(self, plan: LaunchPlan) -> dict[MemorySlot, Type]:
        """The types of inputs and results by their places. Kernels may see the axes of one in another order."""
        given = (MemorySlot(INPUT, number) for number in range(len(self.inputs)))
        nodes = (*self.inputs.values(), *self.results.values())
        return {place: node.type for place, node in zip((*given, *plan.result_places), nodes, strict=True)}


def _header_target(file: tree.File) -> str:
    """The target that the headers name; none where they name several, which no one call can serve."""
    values = [a.value for m in file.modules for a in m.attributes if a.name == "target"]
    names = {value.name for value in values if isinstance(value, tree.Word)}
    return names.pop() if len(names) == 1 else ""


def distinct(named: Iterable[tuple[str, Node]]) -> dict[str, Node]:
    """Values by name; a name met again gets a number."""
    found: dict[str, Node] = {}
    for wanted, value in named:
        name, count = wanted, 0
        while name in found:
            count += 1
            name = f"{wanted}_{count}"
        found[name] = value
    return found
