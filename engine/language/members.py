"""Objects with members that last: expressions meet them again and again, and ask each time for the same members."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, TypeVar

Kind = TypeVar("Kind", bound=type)

DISTINCT: set[type] = {int, str, bool, NoneType}
"""The types of values that are told apart by value and type alone: objects that stay what they are among them. Calls that are
given such values are remembered."""


def lasting(kind: Kind) -> Kind:
    """Declare that objects of a type stay what they are, and are equal to themselves alone."""
    DISTINCT.add(kind)
    return kind


@lasting
class Members(dict[str, Any]):
    """The members of an object by name, some of which are worked out when first asked for, as `makers` say."""

    def __init__(self, values: Mapping[str, Any], makers: Mapping[str, Callable[[], Any]] | None = None) -> None:
        super().__init__(values)
        self._makers = makers or {}

    @property
    def names(self) -> list[str]:
        """The names of all members."""
        return [*self, *(name for name in self._makers if name not in self.keys())]

    def __missing__(self, name: str) -> Any:
        made = self[name] = self._makers[name]()
        return made

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self._makers

    # An object is itself. What every object has costs no call of Python, as a method of this class would.
    __eq__ = object.__eq__
    __hash__ = object.__hash__  # type: ignore[assignment]  # `dict` has none.
