"""Work counted in calls of functions: a bound that says the same on every machine, however busy it is."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class TooMuchWork(BaseException):
    """A block made more calls than it may. It is no `Exception`, so that nothing which is under test catches it."""


class Calls:
    """How many functions were called, Python's own and others."""

    count = 0


@contextmanager
def at_most(calls: int) -> Iterator[Calls]:
    """Fail as soon as the block has made more calls than this in its thread; gives their number, as it grows."""
    made = Calls()

    def note(_: FrameType, event: str, __: Any) -> None:
        if event in ("call", "c_call"):
            made.count += 1
            if made.count > calls:
                sys.setprofile(None)
                raise TooMuchWork(f"more than {calls} calls")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield made
    finally:
        sys.setprofile(before)
