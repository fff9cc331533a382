"""What rules and declarations may ask of their surroundings: the target, the kernel's schedule, its space and
its parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Record:
    """Named values with `.member` access for expressions; equal when their values are."""

    items: tuple[tuple[str, Any], ...]

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Record:
        return cls(tuple(values.items()))

    def member(self, name: str) -> object:
        for key, value in self.items:
            if key == name:
                return value
        raise KeyError(name)

    def as_dict(self) -> dict[str, Any]:
        return dict(self.items)


class LazyRecord:
    """Named values that are worked out when first asked for."""

    def __init__(self, makers: Mapping[str, Callable[[], Any]]) -> None:
        self._makers = makers
        self._values: dict[str, Any] = {}

    def member(self, name: str) -> object:
        if name not in self._values:
            self._values[name] = self._makers[name]()
        return self._values[name]


EMPTY = Record(())
CONTEXT_NAMES = ("target", "schedule", "space", "policy", "parameters")
