"""What a loop over steps does ahead of time: it fetches for later steps while it computes this one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from genrw.codegen.kernel_ir.placement import Placed
from genrw.engine.library.library import Library

AHEAD = "ahead"
"""The attribute by which memory says for how many steps ahead lanes fill it."""
APART = "apart"
"""The attribute by which memory says how many waves fill it that do nothing else."""


@dataclass(frozen=True)
class Filling:
    """What fills a memory ahead of time: by `effects`, which are made of `values`."""

    filled: Placed
    values: tuple[Placed, ...]
    effects: tuple[Placed, ...]


@dataclass(frozen=True)
class Ahead:
    """The parts of a loop that fills memories so many `steps` ahead of time: the `values` of all `fillings`, in time all
    `others`. `apart`: so many waves do the filling and nothing else; the filled memories then come first."""

    steps: int
    apart: int
    fillings: tuple[Filling, ...]
    values: tuple[Placed, ...]
    others: tuple[Placed, ...]

    @property
    def effects(self) -> tuple[Placed, ...]:
        """What fills memories, one after the other."""
        return tuple(effect for filling in self.fillings for effect in filling.effects)

    @property
    def handed_on(self) -> frozenset[int]:
        """The identities of values that wait in registers until effects take them."""
        values = {id(value) for value in self.values}
        return frozenset(id(o) for effect in self.effects for o in effect.operands if id(o) in values)


def ahead_of_time(items: Sequence[Placed], folds: Sequence[Placed]) -> Ahead | None:
    """What the items of a loop's body do ahead of time; None if they do nothing so. `folds` take some of them at each step.
    All memories that lanes fill ahead of time are filled as many steps ahead."""
    filled = [p for p in items if dict(p.node.attributes).get(AHEAD, 0)]
    if not filled:
        return None
    ((steps, apart),) = {(p.node.attribute(AHEAD), dict(p.node.attributes).get(APART, 0)) for p in filled}
    inside = {id(p) for p in items}
    fillings = [_filling(p, items, inside) for p in filled]
    early = {id(p) for filling in fillings for p in (*filling.values, *filling.effects)}
    taken = [o for fold in folds for o in fold.operands]
    in_time = _below([*(p for p in items if id(p) not in early), *taken], inside, filled)
    values = tuple(p for p in items if id(p) in early and p.node.type.sort != "effect")
    # filled by others, all memories are waited for at once, before one of them is used
    first = _below(filled, inside, filled) if apart else set()
    others = [*(p for p in items if id(p) in first), *(p for p in items if id(p) in in_time - first)]
    return Ahead(steps, apart, tuple(fillings), values, tuple(others))


def _filling(filled: Placed, items: Sequence[Placed], inside: set[int]) -> Filling:
    early = _below([o for o in filled.operands if o.node.type.sort == "effect"], inside, ())
    made = [p for p in items if id(p) in early]
    return Filling(
        filled,
        tuple(p for p in made if p.node.type.sort != "effect"),
        tuple(p for p in made if p.node.type.sort == "effect"),
    )


@dataclass(frozen=True)
class Early:
    """The parts of a loop that loads for the next step: its `loads` and all `values` that they are made of, themselves
    included, in time all `others`."""

    loads: tuple[Placed, ...]
    values: tuple[Placed, ...]
    others: tuple[Placed, ...]


def early_loads(items: Sequence[Placed], folds: Sequence[Placed], library: Library) -> Early | None:
    """What the items of a loop's body load from arguments, and can load a step before; None if nothing."""
    inside = {id(p) for p in items}
    loads = [p for p in items if reads_argument(p, library) and p.loop is not None]
    early = _below(loads, inside, ())
    values = [p for p in items if id(p) in early]
    if not loads or any(library.role(p.node.op) in ("sync", "alloc") or p.node.type.sort == "buffer" for p in values):
        return None
    loaded = {id(p) for p in loads}
    used = [o for p in (*items, *folds) if id(p) not in early for o in (p, *p.operands)]
    in_time = _below([p for p in used if id(p) not in loaded], inside - loaded, ())
    return Early(tuple(loads), tuple(values), tuple(p for p in items if id(p) in in_time))


def reads_argument(item: Placed, library: Library) -> bool:
    """Does it read memory that no lane writes?"""
    op = item.node.op
    return library.role(op) == "read" and item.node.operands[library.part(op, 0)].type.sort != "buffer"


def _below(roots: Sequence[Placed], inside: set[int], stops: Sequence[Placed]) -> set[int]:
    """What is computed inside for some items, themselves included; not what is only done to fill `stops`."""
    ends = {id(stop) for stop in stops}
    found: set[int] = set()
    stack = list(roots)
    while stack:
        item = stack.pop()
        if id(item) in inside and id(item) not in found:
            found.add(id(item))
            stack += [o for o in item.operands if id(item) not in ends or o.node.type.sort != "effect"]
    return found
