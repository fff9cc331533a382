"""Random choices that can be made again, with some of them changed: to come nearer to something, or to less."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, TypeVar

_T = TypeVar("_T")


class Choices(Random):
    """Random choices. Each takes one number from 0 to below 1, the lower ones for what comes first: `taken` so far.

    Those `given` are taken first; then they are drawn. Where examples are `shown`, most is as in one of them.
    """

    def __init__(self, seed: str, *, shown: bool = False) -> None:
        self.shown = shown
        self.given: tuple[float, ...] = ()
        self.wanted: Mapping[str, Any] = {}
        self.taken: list[float] = []
        super().__init__(seed)

    def again(self, seed: str, given: Sequence[float], wanted: Mapping[str, Any] | None = None) -> Choices:
        """The choices that numbers say, and random ones behind them; some names are to stand for what is `wanted`."""
        choices = Choices(seed, shown=self.shown)
        choices.given, choices.wanted = tuple(given), self.wanted if wanted is None else wanted
        return choices

    def random(self) -> float:
        """A number from 0 to below 1."""
        taken, given = self.taken, self.given
        number = given[len(taken)] if len(taken) < len(given) else super().random()
        taken.append(number)
        return number

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        """An integer of a range; ValueError if there is none."""
        among = range(start) if stop is None else range(start, stop, step)
        if not among:
            raise ValueError("an empty range")
        return among[int(self.random() * len(among))]

    def randint(self, a: int, b: int) -> int:
        """An integer from a to b, both included."""
        return self.randrange(a, b + 1)

    def choice(self, seq: Sequence[_T]) -> _T:  # type: ignore[override]
        """One of a sequence; IndexError if it is empty."""
        return seq[int(self.random() * len(seq))]

    def sample(self, population: Any, k: int, *, counts: Any = None) -> list[Any]:  # noqa: ARG002
        """So many of a sequence, in any order; the lower the numbers, the more in their own."""
        left = list(population)
        return [left.pop(self.randrange(len(left))) for _ in range(k)]
