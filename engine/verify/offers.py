"""Kernels that any rule over schedules may be tried in, each with all the schedules that the rules open for it.

They are the same for all rules of a library: what one rule asks for is looked up where another one asked before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from random import Random
from typing import Any

from genrw.engine.ir.nodes import Module, Unit
from genrw.engine.library.library import Library
from genrw.engine.lowering.options import Options
from genrw.engine.lowering.pipeline import Pipeline
from genrw.engine.programs.build import plain
from genrw.engine.verify.facets import Kind
from genrw.engine.verify.goals import monoid_kind
from genrw.engine.verify.programs import random_fold_of_views, random_kernel, random_program
from genrw.grammar.diagnostics import GenrwError

Space = tuple[tuple[int, ...], tuple[int, ...]]
"""Lengths, and the axes along which rows lie."""
LONG: tuple[Space, ...] = (
    ((2, 5000), (1,)),
    ((300, 12), (0,)),
    ((2, 1000), (1,)),
    ((2000, 4), (0,)),
    ((12000,), ()),
    ((64, 64), ()),
)
"""Spaces that are long enough for every kind of schedule."""
_LONGER: tuple[Space, ...] = (
    ((3, 4099), (1,)),
    ((2, 40000), (1,)),
    ((7000, 3), (0,)),
    ((513, 31), (0,)),
    ((70, 5, 9), (0, 2)),
    ((40, 65), ()),
)
"""Spaces of several steps, and such that lanes do not cover exactly."""
POLICIES = ("cost", "cost", "cost", "classic")
_OF_VIEWS, _ANY_PROGRAM = 0.3, 0.08
"""How often a program folds several views of a space that examples show, and how often it runs over no certain space."""


@dataclass(frozen=True)
class Offer:
    """A kernel that has no schedule yet, and the schedules that rules open for it."""

    module: Module
    options: Options
    schedules: tuple[Mapping[str, Any], ...]


class Offers:
    """Kernels by number: the same library, waves, seed and number give the same ones."""

    def __init__(self, library: Library, waves: Sequence[int], seed: int) -> None:
        self._library, self._seed = library, seed
        self._pipeline = Pipeline(library)
        self._targets = [name for names in targets_of(library, waves) for name in names]
        shown = _spaces_of_examples(library)
        self._of_views = [space for space in shown if has_several_rows(*space)]
        self._spaces = [space for space in shown if not has_several_rows(*space)]
        kinds: dict[Kind, list[str]] = {}
        for monoid in library.monoids.values():
            kinds.setdefault(monoid_kind(monoid), []).append(monoid.name)
        self._monoids = [*kinds.values()]
        self._made: list[tuple[Offer, ...]] = []

    def first(self, count: int) -> list[Offer]:
        """The kernels of so many programs."""
        # one after the other, whoever asks: what the pipeline keeps is always the same
        while len(self._made) < count:
            self._made.append(self._drawn(Random(f"{self._seed}/offers/{len(self._made)}")))
        return [offer for made in self._made[:count] for offer in made]

    def _drawn(self, random: Random) -> tuple[Offer, ...]:
        options = Options(random.choice(self._targets), policy=random.choice(POLICIES))
        program = self._program(random)
        place = choosing(self._library)
        try:
            (unit,) = self._pipeline.lower([Unit((program,))], self._library.stages[place - 1], options)
            return tuple(Offer(m, options, tuple(opened(self._pipeline, m, options))) for m in unit.kernels)
        except GenrwError:
            return ()

    def _program(self, random: Random) -> Module:
        shape = random.random()
        if shape < _OF_VIEWS and self._of_views:
            module = random_fold_of_views(self._library, random, *random.choice(self._of_views))
            if module is not None:
                # folds of views are what the first stage makes
                return replace(module, stage=self._library.stages[0])
        if shape > 1 - _ANY_PROGRAM:
            return random_program(self._library, random)
        space, axes = random.choice(random.choice((LONG, _LONGER, _LONGER, self._spaces or LONG)))
        monoid = random.choice(random.choice(self._monoids)) if axes else None
        return random_kernel(self._library, random, space, axes, monoid=monoid)


@lru_cache(maxsize=4)
def offers_of(library: Library, waves: tuple[int, ...], seed: int) -> Offers:
    """The kernels of a library for targets with waves of these lengths."""
    return Offers(library, waves, seed)


def _spaces_of_examples(library: Library) -> list[Space]:
    """The spaces that examples show, once each."""
    found: dict[Space, None] = {}
    for rule in library.rules:
        for example in rule.examples:
            header = {a.name: plain(a.value) for a in example.context}
            if header.get("space"):
                found[tuple(header["space"]), tuple(header.get("axes", ()))] = None
    return [*found]


def targets_of(library: Library, waves: Sequence[int]) -> list[list[str]]:
    """The names of the targets with waves of each of these lengths; of all, if none has such waves."""
    found = [[n for n, t in library.targets.items() if t.values.get("wave_size") == wave] for wave in waves]
    return [names for names in found if names] or [[*library.targets]]


def choosing(library: Library) -> int:
    """The place of the stage at which schedules are chosen, among the stages."""
    kernels = library.kernel_operators
    stages = (i for i, stage in enumerate(library.stages) if any(op.legal_at(stage) for op in kernels))
    return next(stages, len(library.stages))


def opened(pipeline: Pipeline, module: Module, options: Options) -> list[dict[str, Any]]:
    """The schedules that the rules open for a kernel."""
    library = pipeline.library
    stage = library.stages[choosing(library)]
    batch = pipeline.batch([pipeline.spaced(module, stage)], stage, options)
    nodes = (node for _, node in batch.extractor.alternatives(batch.modules[0]))
    return [dict(batch.graph.interner.attributes(n.attributes)) for n in nodes if library.role(n.op) == "kernel"]


def has_several_rows(space: tuple[int, ...], axes: tuple[int, ...]) -> bool:
    """Has a space of rows several axes beside these?"""
    return bool(axes) and len(space) - len(axes) > 1
