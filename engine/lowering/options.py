"""What a call of lowering asks for."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from genrw.engine.fusion.stage import SEARCH
from genrw.engine.ir.nodes import Module

DEFAULT_POLICY = "cost"


class Preferences(Protocol):
    """Schedules to take in place of the cheapest. `key` tells preferences apart."""

    @property
    def key(self) -> Hashable: ...

    def schedule(self, module: Module) -> Mapping[str, Any] | None:
        """The schedule of a kernel, None where none is preferred."""


@dataclass(frozen=True)
class Options:
    """What a call asks for besides the program: target, only exact rules, pinned schedule entries, policy, how kernels
    are formed, and what is preferred where nothing is pinned."""

    target: str
    strict: bool = False
    schedule: Mapping[str, Any] = field(default_factory=dict)
    policy: str = DEFAULT_POLICY
    plan: str = SEARCH
    preferences: Preferences | None = field(default=None, compare=False)

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells calls apart."""
        preferred = self.preferences.key if self.preferences is not None else None
        pinned = tuple(sorted(self.schedule.items()))
        return (self.target, self.strict, pinned, self.policy, self.plan, preferred)
