"""What a device is to those who run programs on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from genrw.engine.lowering.program import StagedProgram

Prepared = Callable[..., dict[str, Any]]
"""A program ready to run: called on arrays by name and the device's settings, gives the results by name."""


class Device(Protocol):
    """Prepares programs; a prepared one runs, as often as one likes, on arrays by the parameters' names."""

    name: str
    default_target: str
    """What programs are lowered for that name no target."""
    settings: tuple[str, ...]
    """What a prepared program takes besides arrays."""

    @property
    def model(self) -> str:
        """Which machine it is, for what was measured on it."""

    def prepare(self, program: StagedProgram) -> Prepared: ...
