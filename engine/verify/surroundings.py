"""What a rule is tried in: a target, a schedule and a space, drawn at random or taken from the rule's examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from genrw.engine.ir.nodes import Module, Node
from genrw.engine.ir.types import EFFECT
from genrw.engine.library.library import Library, Target
from genrw.engine.programs.build import complete, plain
from genrw.engine.programs.signature import parameter_names
from genrw.engine.programs.space import space_record
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.rw_tree import RuleDecl

WAVES = (1, 32, 64)
_SCALES = (2.0**-16, 2.0**-10, 2.0**-6, 64, 1024)


@dataclass(frozen=True)
class KernelContext:
    """What expressions may ask of a kernel beside its values."""

    target: Target
    schedule: Mapping[str, Any]
    space: tuple[int, ...]
    axes: tuple[int, ...]
    policy: str
    parameters: tuple[Node, ...] = ()

    def context(self, library: Library, root: Node | None = None) -> dict[str, Any]:
        """As expressions see it; of a kernel that computes `root`, if that is known."""
        ending = Node(library.boundary("result").name, (), (root,) if root is not None else (), EFFECT)
        module = Module("main", ending, self.parameters, space=self.space, axes=self.axes)
        return {
            "target": self.target,
            "schedule": library.schedule_record(self.schedule, self.target),
            "space": space_record(module, library),
            "policy": self.policy,
            "parameters": parameter_names(module),
        }


@dataclass
class Headers:
    """The headers of a rule's examples, and those of the library's others where it has none."""

    library: Library
    schedules: list[dict[str, Any]] = field(default_factory=list)
    own: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, library: Library, rule: RuleDecl) -> Headers:
        found = cls(library)
        for other in library.rules:
            for example in other.examples:
                header = {a.name: plain(a.value) for a in example.context}
                if other is rule:
                    found.own.append(header)
                if "schedule" in header and header["schedule"] not in found.schedules:
                    found.schedules.append(header["schedule"])
        return found


def draw(
    headers: Headers, lens: Sequence[int], random: Random, waves: Sequence[int] = WAVES, *, odd: bool = False
) -> KernelContext:
    """Random surroundings of a kernel whose tensors have about these lengths; `odd` if the machine matters, so that it
    is mostly one of other proportions than those that there are."""
    library = headers.library
    header = random.choice(headers.own) if headers.own and random.random() < 0.7 else {}
    target = _target(library, random, waves, 0.9 if odd else 0.5)
    schedule = _schedule(headers, header, target, random)
    space = tuple(header["space"]) if "space" in header and random.random() < 0.5 else tuple(lens)
    space = tuple(n if n <= 64 else 2 + n % 7 for n in space)
    axes = tuple(header.get("axes", ())) if space and "axes" in header and random.random() < 0.5 else None
    if axes is None or any(d >= len(space) for d in axes):
        axes = tuple(d for d in range(len(space)) if random.random() < 0.4)
    return KernelContext(
        target, schedule, space, axes, header.get("policy", random.choice(("cost", "cost", "classic")))
    )


def _target(library: Library, random: Random, waves: Sequence[int], odd: float) -> Target:
    """A target with waves of one of these lengths; sometimes a machine of other proportions."""
    fitting = [t for t in library.targets.values() if t.values.get("wave_size") in waves] or [*library.targets.values()]
    target = random.choice(fitting)
    if random.random() >= odd:
        return target
    values = {
        name: type(value)(max(1, value * random.choice(_SCALES)))
        if _is_scalable(name, value) and random.random() < 0.5
        else value
        for name, value in target.values.items()
    }
    return replace(target, values=values)


def _is_scalable(name: str, value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and name != "wave_size"


def _schedule(headers: Headers, header: Mapping[str, Any], target: Target, random: Random) -> dict[str, Any]:
    """A schedule such as examples have, some of its numbers drawn anew; small enough to evaluate every lane."""
    options = [header["schedule"]] if "schedule" in header else headers.schedules
    if not options:
        return {}
    schedule = dict(random.choice(options))
    wave = int(target.values.get("wave_size", 1))
    for name, value in schedule.items():
        if isinstance(value, int) and not isinstance(value, bool) and random.random() < 0.4:
            schedule[name] = random.choice((1, 2, 3, 4, 8, wave, 2 * wave, value))
    for name, value in schedule.items():
        if isinstance(value, int) and not isinstance(value, bool):
            schedule[name] = max(1, min(value, 256))
    return _completed(headers.library, schedule)


def _completed(library: Library, schedule: Mapping[str, Any]) -> dict[str, Any]:
    """The schedule with all attributes of the operator that stands for kernels, as far as they have defaults."""
    kernel = next(iter(library.kernel_operators), None)
    if kernel is None:
        return dict(schedule)
    try:
        return dict(complete(kernel, schedule, (), {}))
    except (GenrwError, KeyError):
        return {**{name: 1 for name, decl in kernel.attributes.items() if decl.type == "int"}, **schedule}
