"""A small instance of a rule that fails, in place of the first that was found."""

from __future__ import annotations

from random import Random

from genrw.engine.verify.instances import NoInstance
from genrw.engine.verify.trial import Failure, Trial, Tried, kind_of

_LENGTHS = (1, 2, 3, 5, 9)
_DRAWS = 250
_ENOUGH = 6


def smallest(trial: Trial, first: Failure, seed: str) -> Failure:
    """The smallest of some failures with as short axes as there are any."""
    usual = trial.instances.longest
    try:
        for longest in _LENGTHS:
            trial.instances.longest = longest
            found = [failure for failure in _failures(trial, f"{seed}/{longest}") if failure.reason == first.reason]
            if found:
                return min([*found, first], key=_size)
    finally:
        trial.instances.longest = usual
    return first


def _failures(trial: Trial, seed: str) -> list[Failure]:
    found: list[Failure] = []
    for number in range(_DRAWS):
        random = Random(f"{seed}/{number}")
        try:
            instance = trial.instances.draw(random)
        except NoInstance:
            continue
        kind = kind_of(random)
        for alternative in trial.sides.alternatives(instance.match):
            failure = None
            if not alternative.refused:
                failure = trial.compare(instance, alternative, kind, f"{seed}/{number}", Tried())
            if failure is not None:
                found.append(failure)
                break
        if len(found) >= _ENOUGH:
            break
    return found


def _size(failure: Failure) -> tuple[int, int, int]:
    leaves = failure.instance.match.leaves
    elements = sum(n.type.elements if n.type.sort == "tensor" else n.type.size for n in leaves)
    ranks = sum(len(n.type.lens) + (n.type.strides is not None) for n in leaves)
    return elements, ranks, len(repr(failure.left.attributes))
