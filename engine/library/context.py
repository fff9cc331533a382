"""What rules and declarations may ask of their surroundings: the target, the kernel's schedule, its space and
its parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from genrw.grammar.diagnostics import GenrwError


@dataclass(frozen=True)
class Record:
    """Named values with `.member` access for expressions; equal when their values are. `absent` makes the error for a
    value that the record lacks, where that is nobody's fault who asks for it."""

    items: tuple[tuple[str, Any], ...]
    absent: Callable[[str], GenrwError] | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, values: Mapping[str, Any], absent: Callable[[str], GenrwError] | None = None) -> Record:
        return cls(tuple(values.items()), absent)

    @cached_property
    def _values(self) -> dict[str, Any]:
        return dict(self.items)

    def member(self, name: str) -> object:
        return self._values[name]


EMPTY = Record(())
CONTEXT_NAMES = ("target", "schedule", "space", "policy", "parameters")
