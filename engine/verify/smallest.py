"""A small instance of a rule that fails, in place of the first that was found: made from fewer and lower choices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from genrw.engine.verify.choices import Choices
from genrw.engine.verify.instances import MOST_AXES, Instance, NoInstance
from genrw.engine.verify.trial import Failure, RuleTrial, Tried, kind_of

_SIZES = ((1, 1), (1, 2), (2, 1), (2, 2), (3, MOST_AXES), (5, MOST_AXES), (9, MOST_AXES))
"""The most elements of an axis, and the most axes."""
_DRAWS, _ENOUGH = 250, 6
_WIDTHS = (16, 4, 1)
_MOST = 1200
"""How many instances are tried for a smaller one."""

_Size = tuple[int, int, int, int, float]
"""Elements, axes, the text of the attributes, the choices: those of two instances are compared in this order."""


def smallest(trial: RuleTrial, first: Failure) -> Failure:
    """A failure for the same reason, of as few and short axes as there are any, from whose choices none can be left out or
    lowered to make it smaller."""
    usual = trial.instances.longest, trial.instances.most_axes
    try:
        for longest, axes in _SIZES:
            trial.instances.longest, trial.instances.most_axes = longest, axes
            seed = f"{first.seed}/{longest}/{axes}"
            drawn = (_of(trial, i, c, first, f"{seed}/{n}") for n, c, i in trial.instances.drawn(seed, _DRAWS))
            found = list(islice((f for f in drawn if f is not None), _ENOUGH))
            if found:
                return _lowered(trial, min(found, key=lambda f: _size(f.instance, f.choices)))
        return first
    finally:
        trial.instances.longest, trial.instances.most_axes = usual


def _lowered(trial: RuleTrial, first: Failure) -> Failure:
    best, left, before = first, _MOST, None
    while left > 0 and best is not before:
        before, place = best, 0
        while place < len(best.choices.taken) and left > 0:
            kept = best
            for tape in _lower(best.choices.taken, place):
                left -= 1
                found = _again(trial, tape, first, _size(best.instance, best.choices))
                if found is not None:
                    best = found
                    break
            # behind a choice that was left out stands the next one
            place += best is kept
    return best


def _lower(tape: Sequence[float], place: int) -> Iterator[list[float]]:
    """The choices without some from a place on, with a lower one there."""
    for width in _WIDTHS:
        yield [*tape[:place], *tape[place + width :]]
    for lower in (0.0, tape[place] / 2):
        if lower < tape[place]:
            yield [*tape[:place], lower, *tape[place + 1 :]]


def _again(trial: RuleTrial, tape: Sequence[float], first: Failure, most: _Size) -> Failure | None:
    """The failure that choices lead to; None if they lead to none for the same reason that is smaller than `most`."""
    choices = first.choices.again(first.seed, tape)
    try:
        instance = trial.instances.draw(choices)
    except NoInstance:
        return None
    return _of(trial, instance, choices, first, first.seed, most)


def _of(
    trial: RuleTrial, instance: Instance, choices: Choices, first: Failure, seed: str, most: _Size | None = None
) -> Failure | None:
    """The failure of an instance, with values of a seed, if it fails for the same reason, and is smaller than `most`."""
    kind = kind_of(choices)
    if most is not None and _size(instance, choices) >= most:
        return None
    for alternative in trial.sides.alternatives(instance.match):
        found = None if alternative.refused else trial.compare(instance, alternative, kind, seed, Tried())
        if found is not None and _is_like(found, first):
            return replace(found, choices=choices)
    return None


def _is_like(a: Failure, b: Failure) -> bool:
    """Do two instances fail in the same way: is the right side none, another value, or none that can be compared?"""
    return (a.right is None, a.difference is None) == (b.right is None, b.difference is None)


def _size(instance: Instance, choices: Choices) -> _Size:
    leaves, taken = instance.match.leaves, choices.taken
    elements = sum(n.type.elements if n.type.sort == "tensor" else n.type.size for n in leaves)
    ranks = sum(len(n.type.lens) + (n.type.strides is not None) for n in leaves)
    return elements, ranks, len(repr(instance.match.left.attributes)), len(taken), sum(taken)
