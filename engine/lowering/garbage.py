"""Cyclic garbage collection, put off while programs are lowered and rules are loaded.

What these make is kept or freed by reference counts. The collector finds nothing there, but looks through all rules
and programs again and again: an eighth of the time of lowering, half of that of loading.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """No collection within, if there was any before. What was made is looked at by the next full collection only."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            _grow_old()
            gc.enable()


def _grow_old() -> None:
    """Put all objects in the oldest generation, which takes no time. The first collection would look through all that
    lowering made, and a program of a hundred kernels has half a million objects."""
    if not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()
