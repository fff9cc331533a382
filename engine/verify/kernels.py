"""Rules whose sides mean nothing by themselves, tried in whole kernels: small ones, lowered with the rule's side wherever
it made one, and run at every lane.

A kernel that comes out wrong is the rule's fault if the same kernel comes out right without the rule's side.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np

from genrw.engine.arrays import Values
from genrw.engine.build import plain
from genrw.engine.compare import first_problem
from genrw.engine.enode import ENode
from genrw.engine.garbage import uncollected
from genrw.engine.inputs import random_inputs
from genrw.engine.interpret import interpret
from genrw.engine.ir import Module, Unit
from genrw.engine.library import Library
from genrw.engine.pipeline import Options, Pipeline, Trace
from genrw.engine.stage import Saturated
from genrw.engine.variants import pattern_operators
from genrw.engine.verify.examples import example_modules
from genrw.engine.verify.programs import random_kernel, random_program
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.rw_tree import OpPattern, RuleDecl

_LEAST_PROGRAMS = 300
_PROGRAMS_FOR_EACH, _PROGRAMS_FOR_RARE = 8, 100
"""Programs for each kernel that is wanted; more only as long as the rule took part in none."""
_LONG = (((2, 5000), (1,)), ((300, 12), (0,)), ((2, 1000), (1,)), ((2000, 4), (0,)), ((12000,), ()), ((64, 64), ()))
"""Spaces, and the axes of their rows, that are long enough for every kind of schedule."""
_SHOWN = 0.4
"""How often kernels have a type that examples show."""
_SHORT = 0.1
"""How often rows are of one element."""
_POLICIES = ("cost", "cost", "cost", "classic")


@dataclass(frozen=True)
class WrongKernel:
    """A kernel as it was before the rule's stage, after all stages, and what is wrong with its results."""

    before: Module
    after: Module
    options: Options
    reason: str


@dataclass
class KernelsTried:
    """How many kernels were right with the rule's side in them, and the first that was not."""

    compared: int = 0
    failure: WrongKernel | None = None


class KernelTrial:
    """One rule, tried in kernels at one of its stages."""

    def __init__(self, library: Library, rule: RuleDecl, stage: str, waves: Sequence[int]) -> None:
        self.library, self.rule, self.stage = library, rule, stage
        self.pipeline = Pipeline(library)
        self.targets = [name for name, t in library.targets.items() if t.values.get("wave_size") in waves]
        self.place = library.stages.index(stage)
        self.choosing = next(
            (
                i
                for i, s in enumerate(library.stages)
                if any(self._is_kernel(op, s) for op in library.operators.values())
            ),
            len(library.stages),
        )
        headers = [{a.name: plain(a.value) for a in e.context} for e in rule.examples if e.after is not None]
        self.wanted = [header["schedule"] for header in headers if "schedule" in header]
        # a rule for some targets says so in its examples
        named = dict.fromkeys(str(h["target"]) for h in headers if h.get("target") in library.targets)
        self.targets += [*named] * len(self.targets)
        self.spaces = [(tuple(h["space"]), tuple(h.get("axes", ()))) for h in headers if h.get("space")]
        modules = list(example_modules(library, rule))
        if not self.spaces:
            self.spaces = [*dict.fromkeys(s for m in modules for s in self._rows(m))]
        self.types = sorted({p.type.dtype for m in modules for p in m.parameters if p.type.sort == "tensor"})

    def _rows(self, module: Module) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        """What the folds of a program run over."""
        for node in module.nodes:
            along = [a.name for a in self.library.operator(node.op).decl.attributes if a.type == "axes"]
            if self.library.role(node.op) == "fold" and along:
                yield node.operands[0].type.lens, node.attribute(along[0])

    @staticmethod
    def _is_kernel(operator: Any, stage: str) -> bool:
        return bool(operator.role == "kernel" and operator.legal_at(stage))

    def run(self, count: int, seed: str) -> KernelsTried:
        """Compare so many kernels that the rule took part in; ends with the first that fails."""
        tried = KernelsTried()
        with uncollected():
            for number in range(max(count * _PROGRAMS_FOR_RARE, _LEAST_PROGRAMS)):
                if tried.compared >= count or (tried.compared and number >= count * _PROGRAMS_FOR_EACH):
                    break
                random = Random(f"{seed}/{number}")
                for reference, before, options in self._kernels(random):
                    tried.failure = self._compared(reference, before, options, number, tried)
                    if tried.failure is not None:
                        return tried
        return tried

    # ---- kernels before the rule's stage

    def _kernels(self, random: Random) -> Iterator[tuple[Module, Module, Options]]:
        """Tensor programs of kernels, as they are before the rule's stage."""
        options = Options(random.choice(self.targets), policy=random.choice(_POLICIES))
        program = self._program(random)
        cut = self.library.stages[min(self.choosing, self.place) - 1]
        try:
            (unit,) = self.pipeline.lower([Unit((program,))], cut, options)
        except GenrwError:
            return
        for module in unit.kernels:
            try:
                own = self._scheduled(module, options, random)
                yield module, self._lowered(module, self.library.stages[self.choosing : self.place], own), own
            except GenrwError:
                continue

    def _program(self, random: Random) -> Module:
        """A program; where the rule's examples say what a kernel runs over, mostly one of such a kernel."""
        if self.spaces and random.random() < 0.8:
            space, axes = random.choice(self.spaces)
            if axes and random.random() < _SHORT:
                # rows of one element are left only where the program says that the first stage is done
                short = tuple(1 if d in axes else n for d, n in enumerate(space))
                module = random_kernel(self.library, random, short, axes, exact=True)
                return replace(module, stage=self.library.stages[0])
            dtype = random.choice(self.types) if self.types and random.random() < _SHOWN else None
            return random_kernel(self.library, random, space, axes, dtype=dtype)
        if random.random() < 0.5:
            return random_kernel(self.library, random, *random.choice(_LONG))
        return random_program(self.library, random)

    def _scheduled(self, module: Module, options: Options, random: Random) -> Options:
        """The options with one of the kernel's schedules, often one such as the rule's examples have."""
        if self.place <= self.choosing:
            return options
        stage = self.library.stages[self.choosing]
        batch = self.pipeline.batch([self.pipeline.spaced(module, stage)], stage, options)
        found = [
            dict(batch.graph.interner.attributes(node.attributes))
            for _, node in batch.extractor.alternatives(batch.modules[0])
            if self.library.role(node.op) == "kernel"
        ]
        if self.wanted and random.random() < 0.85:
            like = random.choice(self.wanted)
            best = max((_likeness(schedule, like) for schedule in found), default=0)
            found = [schedule for schedule in found if _likeness(schedule, like) == best]
        return replace(options, schedule=random.choice(found)) if found else options

    def _lowered(self, module: Module, stages: Sequence[str], options: Options) -> Module:
        for stage in stages:
            (module,) = self.pipeline.step([module], stage, options, Trace())
        return module

    # ---- the rule's side

    def _compared(
        self, reference: Module, before: Module, options: Options, seed: int, tried: KernelsTried
    ) -> WrongKernel | None:
        for forced in self._forced(before, options):
            wrong = self._wrong(reference, forced, options, seed)
            if wrong is None:
                tried.compared += 1
            elif isinstance(wrong, WrongKernel) and self._is_to_blame(reference, before, options, seed):
                return replace(wrong, before=before)
        return None

    def _forced(self, before: Module, options: Options) -> Iterator[Module]:
        """The kernel after the rule's stage, with the rule's side wherever there is one."""
        try:
            batch = self.pipeline.batch([self.pipeline.spaced(before, self.stage)], self.stage, options)
        except GenrwError:
            return
        graph, module = batch.graph, batch.modules[0]
        made = self._made(graph)
        if not made and not self._fired(graph):
            return
        root = graph.class_of[graph.ids[id(module.root)]]
        kernels = [n for n in made.get(root, ()) if self.library.role(n.op) == "kernel"]
        for node in kernels[:2]:
            yield replace(module, schedule=dict(graph.interner.attributes(node.attributes)), stage=self.stage)
        if kernels:
            return
        # what may not leave the stage is no choice: other rules go on from there
        for chosen in ([*made], *([number] for number in list(made)[:2]), []):
            kept = {number: graph.classes[number] for number in chosen}
            graph.classes.update((number, list(made[number])) for number in chosen)
            try:
                root_node = batch.extractor.extract(module, batch.contexts[0], batch.names)
            except GenrwError:
                continue
            finally:
                graph.classes.update(kept)
            yield self.pipeline.with_root(module, root_node, self.stage)
            return

    def _own(self, graph: Saturated) -> set[int]:
        """The numbers of the rule's directions."""
        return {number for number, key in graph.rules.items() if key.split("/")[0] == self.rule.name}

    def _fired(self, graph: Saturated) -> bool:
        own = self._own(graph)
        return any(rules & own for rules in graph.why.values())

    def _made(self, graph: Saturated) -> dict[int, list[ENode]]:
        """The nodes of classes that the rule made."""
        right = self.rule.right
        if not isinstance(right, OpPattern):
            return {}
        named = pattern_operators(right, self.rule, self.library)
        named = frozenset(name for name in named if self.library.operator(name).legal_at(self.stage))
        own = self._own(graph)
        found: dict[int, list[ENode]] = {}
        for number, rules in graph.why.items():
            if rules & own:
                nodes = [node for node in graph.classes.get(number, ()) if node.op in named]
                others = len(graph.classes.get(number, ())) - len(nodes)
                if nodes and (others or self.rule.replaces or number in graph.class_of.values()):
                    found[number] = nodes
        return found

    def _wrong(self, reference: Module, kernel: Module, options: Options, seed: int) -> WrongKernel | str | None:
        """What is wrong with a kernel lowered on and run; a text if it cannot be lowered; None if nothing is."""
        try:
            after = self._lowered(kernel, self.library.stages[self.place + 1 :], options)
        except GenrwError as problem:
            return problem.diagnostics[0].message
        try:
            inputs = random_inputs(reference, self.library, seed)
            want = interpret(reference, self.library, self.pipeline.context(reference, options), inputs, precise=True)
            rounded = interpret(reference, self.library, self.pipeline.context(reference, options), inputs)
        except GenrwError as problem:
            return problem.diagnostics[0].message
        if _different(list(rounded.values()), want, reference):
            return "the kernel's rounding alone makes its results differ"
        try:
            got = interpret(after, self.library, self.pipeline.context(after, options), inputs)
        except GenrwError as problem:
            return WrongKernel(kernel, after, options, problem.diagnostics[0].message)
        wrong = _different(list(got.values()), want, reference)
        return WrongKernel(kernel, after, options, wrong) if wrong else None

    def _is_to_blame(self, reference: Module, before: Module, options: Options, seed: int) -> bool:
        """Is the kernel right without the rule?"""
        rules = tuple(r for r in self.library.rules if r is not self.rule)
        without = KernelTrial(replace(self.library, rules=rules), self.rule, self.stage, ())
        try:
            after = without._lowered(before, [self.stage], options)
        except GenrwError:
            # nothing else does what the rule does: it alone is to blame
            return True
        return without._wrong(reference, after, options, seed) is None


def _likeness(schedule: Mapping[str, Any], like: Mapping[str, Any]) -> int:
    """How much a schedule is like another one: words count most."""
    return sum(100 if isinstance(v, str) else 1 for k, v in like.items() if schedule.get(k) == v)


def _different(got: Sequence[Values], want: Mapping[str, Values], reference: Module) -> str:
    """What is wrong with results, in words; empty if nothing is."""
    results = zip(got, want.items(), reference.root.operands, strict=True)
    return (
        first_problem(
            (f"the result `{name}`", np.asarray(found).reshape(right.shape), right, node.type.dtype)
            for found, (name, right), node in results
        )
        or ""
    )
