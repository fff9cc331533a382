"""Cyclic garbage collection, put off while programs are lowered.

What lowering makes is kept or freed by reference counts. The collector finds nothing there, but looks through all rules
and programs again and again: an eighth of the time.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """No collection within, if there was any before."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
