"""Programs on the CPU in a process of their own, which a kernel can end without ending this one.

There each array ends at memory that cannot be touched, so that a kernel which reaches outside of its arrays is stopped
where it does, and is not only wrong. Results come back through memory that both processes share.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import json
import mmap
import os
import select
import signal
import time
from collections.abc import Iterator, Mapping
from functools import cache
from math import prod
from typing import Any

import numpy as np

from genrw.codegen.runtime.array_layout import Array
from genrw.codegen.runtime.host_sequence import HostSequence
from genrw.engine.ir.dtypes import numpy_dtype
from genrw.grammar.diagnostics import GenrwError, error

_PAGE = mmap.PAGESIZE
_ALIGNMENT = 64
_BARRIER = 1 << 26
"""Bytes before and behind an array that cannot be touched; they are addresses, no memory."""
_SLACK = 0xA5
"""What stands between the end of an array and the end of its pages."""
_LONGEST_NAME = 1 << 10
_REMEDY = "a rule is wrong: `genrw run --device interpret --stage {}` says what happens, `genrw rules verify` which rule it is"


def run_apart(
    prepared: HostSequence, inputs: Mapping[str, Any], seconds: float, **settings: Any
) -> tuple[dict[str, Array], float]:
    """Run a prepared program in a process of its own: its results by name, and how many seconds the run took.

    GenrwError where a kernel ends the process, writes past an array, or takes more than `seconds`.
    """
    results = {name: _shared(node.type.dtype, node.type.lens) for name, node in prepared.program.results.items()}
    note = mmap.mmap(-1, _LONGEST_NAME)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _work(prepared, inputs, settings, results, note, writer)
    os.close(writer)
    with _ended(child):
        told = _read(reader, time.monotonic() + seconds)
        if told is None:
            raise error(f"kernel {_noted(note)} took more than {seconds:g} s", remedy="allow more with `--seconds`")
        _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        what = (signal.strsignal(number) or "").lower()
        raise error(
            f"kernel {_noted(note)} ended its process by {signal.Signals(number).name}, {what}",
            remedy=_remedy(prepared),
        )
    said = json.loads(told or "{}")
    if "seconds" not in said:
        message = said.get("message", "the process of the kernels ended without a word")
        raise error(message, remedy=said.get("remedy") or _remedy(prepared))
    return results, float(said["seconds"])


def _remedy(prepared: HostSequence) -> str:
    return _REMEDY.format(prepared.program.stages[-1])


def _shared(dtype: str, lens: tuple[int, ...]) -> Array:
    """An array that this process and those that it starts share."""
    kind = np.dtype(numpy_dtype(dtype))
    memory = mmap.mmap(-1, max(1, prod(lens) * kind.itemsize))
    return np.frombuffer(memory, kind, prod(lens)).reshape(lens)


def _noted(note: mmap.mmap) -> str:
    """The kernel that was running."""
    return note[:].rstrip(b"\0").decode(errors="replace")


@contextlib.contextmanager
def _ended(child: int) -> Iterator[None]:
    """Whatever happens, the process does not outlive this."""
    try:
        yield
    except BaseException:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise


def _read(reader: int, until: float) -> bytes | None:
    """All that is written to a pipe until its other end is closed; None where that takes too long."""
    found = b""
    with os.fdopen(reader, "rb", buffering=0) as pipe:
        while select.select([pipe], [], [], max(0.0, until - time.monotonic()))[0]:
            part = pipe.read(1 << 16)
            if not part:
                return found
            found += part
    return None


# ---- the other process


def _work(
    prepared: HostSequence,
    inputs: Mapping[str, Any],
    settings: Mapping[str, Any],
    results: Mapping[str, Array],
    note: mmap.mmap,
    writer: int,
) -> None:
    """Run, say how it went, and leave without a trace of what the process was copied from."""
    said: dict[str, Any] = {}
    try:
        faulthandler.disable()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        _leave_no_core()
        guard = Guard(note)
        began = time.perf_counter()
        found = prepared(inputs, guard=guard, **settings)
        said["seconds"] = time.perf_counter() - began
        guard.check()
        for name, array in found.items():
            results[name][...] = array
    except GenrwError as problem:
        said = {"message": problem.diagnostics[0].message, "remedy": problem.diagnostics[0].remedy}
    except BaseException as problem:
        said = {"message": f"the process of the kernels failed: {type(problem).__name__}: {problem}"}
    finally:
        os.write(writer, json.dumps(said).encode())
        os._exit(0)


def _leave_no_core() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class Guard:
    """Arrays between pages that cannot be touched, and a note of the kernel that runs."""

    def __init__(self, note: mmap.mmap) -> None:
        self._note = note
        self._slack: list[tuple[str, str, Array]] = []
        self._kernel = ""

    def begin(self, kernel: str) -> None:
        """Note that a kernel begins."""
        self._kernel = kernel
        self._note[:] = kernel.encode()[:_LONGEST_NAME].ljust(_LONGEST_NAME, b"\0")

    def array(self, array: Array, name: str) -> Array:
        """A copy of a flat array that ends where memory does, but for what its alignment takes."""
        size = array.nbytes
        room = -(-max(size, 1) // _PAGE) * _PAGE
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
        memory = np.frombuffer(mmap.mmap(-1, room + 2 * _BARRIER, flags=flags), np.uint8)
        start = _BARRIER + (room - size) // _ALIGNMENT * _ALIGNMENT
        slack = memory[start + size : _BARRIER + room]
        slack[:] = _SLACK
        self._slack.append((self._kernel, name, slack))
        copied = memory[start : start + size].view(array.dtype)
        copied[:] = array
        for barrier in (0, _BARRIER + room):
            _protect(memory.ctypes.data + barrier)
        return copied

    def check(self) -> None:
        """GenrwError where something was written behind an array, to where memory had not ended yet."""
        for kernel, name, slack in self._slack:
            if np.any(slack != _SLACK):
                raise error(f"kernel {kernel} wrote past the end of `{name}`")


def _protect(address: int) -> None:
    """Let nobody touch a barrier; where the system cannot do that, it stays as it is."""
    _libc().mprotect(ctypes.c_void_p(address), ctypes.c_size_t(_BARRIER), 0)


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)
