"""Processes with an environment of their own: Python's bindings load a vendor's library once a process."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ProcessPoolExecutor
from multiprocessing import get_context

import pytest


def process(environment: Mapping[str, str]) -> Executor:
    """A process, started, that runs what is submitted to it in turn; to be shut down."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
        pool.submit(os.getpid).result()
    return pool


def problem(executor: Executor, call: Callable[..., object], *arguments: object) -> str:
    """Have the process make a call: the traceback where it fails, empty where not."""
    return executor.submit(_attempt, call, *arguments).result()


def _attempt(call: Callable[..., object], *arguments: object) -> str:
    try:
        call(*arguments)
    except BaseException:  # pytest's own failures too, which cannot be sent to another process
        return traceback.format_exc()
    return ""
