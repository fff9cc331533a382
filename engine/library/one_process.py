"""What belongs to the process that made it: it cannot be pickled, and a copy of it is the thing itself."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn, Self, SupportsIndex


class OfOneProcess:
    """Holds compiled functions or a device, and never changes. Another process reads the same text instead."""

    what: ClassVar[str]
    """How messages call it."""
    instead: ClassVar[str]
    """What another process is given in its place."""

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError(f"{self.what} cannot be pickled, for it belongs to the process that made it: {self.instead}")

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self
