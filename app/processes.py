"""How a command's processes end: those that it starts for itself end with it, and it alone tells how."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def deaf_to_interrupts() -> Iterator[None]:
    """What is started meanwhile does not hear of Ctrl-C until it is `ready_to_end`: where it met Python while that reads the
    process's modules, Python would print a traceback."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Signals are the main thread's; what others start hears of them.
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def ended_by_interrupts() -> Iterator[None]:
    """Ctrl-C ends this process meanwhile. Python itself would hear of it when compiled code returns, which may take hours."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is not signal.default_int_handler:
        yield  # Somebody else minds it, or nobody is to.
        return
    ready_to_end()
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def ready_to_end() -> None:
    """From now on Ctrl-C ends this process, and nothing is printed."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
