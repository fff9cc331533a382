"""Kernels on the CPU: the HIP source compiled for the host, loaded and run.

The device header has the other half: there, a kernel is a plain function and its lanes are a loop, or one
fiber per lane where the kernel has barriers or cross-lane operations.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from genrw.codegen.compilers import host_compiler, kernel_text, translation_unit
from genrw.grammar.cache import cache_folder, cache_key, read_entry, write_entry
from genrw.grammar.diagnostics import error

Argument = npt.NDArray[Any] | np.generic | int | float

_DTYPES = {
    **{"float": "float32", "double": "float64", "gen::half": "float16", "gen::bf16": "bfloat16"},
    **{"int": "int32", "long long": "int64", "unsigned": "uint32", "unsigned long long": "uint64"},
    **{f"gen::{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "bool": "bool",
}

# gen::host::status in gen.hpp
_FAILURES = {
    1: "lanes that should have met at a barrier or a cross-lane operation stopped at different places",
    2: "a cross-lane operation is wider than what is left of the wave: the block is not whole waves",
    3: "a lane overran its stack",
}

# Below this much work, starting a second thread costs more than it saves.
_BYTES_PER_THREAD = 1 << 18
_LANES_PER_THREAD = 1 << 12


@dataclass(frozen=True)
class HostKernel:
    """A kernel compiled for this machine."""

    name: str
    arg_types: tuple[str, ...]
    block: int
    cooperative: bool
    _library: ctypes.CDLL = field(repr=False)
    _entry: str = "gen_run"

    def launch(self, arrays: Sequence[Argument], groups: int, *, threads: int | None = None, order: int = 0) -> None:
        """Run `groups` workgroups over arrays, in place; numbers stand for arguments that are not pointers.

        `order` is a seed: 0 runs groups and waves in turn, any other value shuffles them and starts workgroup
        memory with NaN patterns, so that a missing barrier shows.
        """
        if len(arrays) != len(self.arg_types):
            raise TypeError(f"{self.name} takes {len(self.arg_types)} arguments, got {len(arrays)}")
        held = [_argument(*pair) for pair in zip(self.arg_types, arrays, strict=True)]
        pointers = (ctypes.c_void_p * max(1, len(held)))(*(array.ctypes.data for array in held))

        def run(bounds: tuple[int, int]) -> int:
            memory = _lane_memory(self._memory_bytes)
            return int(self._run(pointers, *bounds, order, memory))

        count = min(groups, threads if threads is not None else self._threads(held))
        ranges = list(pairwise(groups * i // count for i in range(count + 1))) if count > 0 else []
        for status in [run(r) for r in ranges] if count < 2 else list(_pool().map(run, ranges)):
            if status != 0:
                raise error(f"kernel {self.name}: {_FAILURES[status]}")

    @cached_property
    def _run(self) -> Callable[..., int]:
        number = ctypes.c_longlong
        function = self._library[self._entry]
        function.argtypes = (ctypes.c_void_p, number, number, ctypes.c_uint, ctypes.c_void_p)
        function.restype = ctypes.c_int
        return function

    @cached_property
    def _memory_bytes(self) -> int:
        return int(self._library.gen_memory_bytes())

    def _threads(self, arrays: Sequence[npt.NDArray[Any]]) -> int:
        """As many threads as the work is worth."""
        worth = sum(array.nbytes for array in arrays) // _BYTES_PER_THREAD
        if self.cooperative:
            worth *= _BYTES_PER_THREAD // _LANES_PER_THREAD
        return max(1, min(_processors(), worth))


def compile_host(
    source: str,
    kernel: str,
    arg_types: Sequence[str],
    *,
    wave_size: int,
    block: int,
    cooperative: bool,
    cache: bool = True,
    compiler: str | None = None,
) -> HostKernel:
    """Compile one kernel for this machine, or take it from the cache.

    `arg_types` are the C++ types of the kernel's parameters, such as `const float*` or `int`. A kernel with
    barriers or cross-lane operations is `cooperative`. `compiler` is a command, or `zig`; by default the
    system's compiler is found.
    """
    body = f"{source}\n{_MEMORY_BYTES}\n{_entry('gen_run', kernel, arg_types)}"
    built = _built(body, kernel, Launch(wave_size, block, cooperative), cache, compiler)
    return HostKernel(kernel, tuple(arg_types), block, cooperative, built)


@dataclass(frozen=True)
class Launch:
    """What kernels of one translation unit have in common."""

    wave_size: int
    block: int
    cooperative: bool


@dataclass(frozen=True)
class Unit:
    """One kernel of several: its source, the parts of it that others may share, its name, its parameters' types."""

    source: str
    helpers: tuple[str, ...]
    kernel: str
    arg_types: tuple[str, ...]


def compile_host_units(units: Sequence[Unit], launch: Launch, *, cache: bool = True) -> list[HostKernel]:
    """Compile kernels together, which takes far less time than one by one; each stands in a namespace of its own."""
    helpers = dict.fromkeys(helper for unit in units for helper in unit.helpers)
    parts = [*helpers, _MEMORY_BYTES]
    for i, unit in enumerate(units):
        own = kernel_text(unit.source)
        for helper in unit.helpers:
            own = own.replace(helper, "", 1)
        parts += [f"namespace unit{i} {{", own, "}", _entry(f"gen_run{i}", f"unit{i}::{unit.kernel}", unit.arg_types)]
    name = units[0].kernel if len(units) == 1 else f"{units[0].kernel} and {len(units) - 1} more"
    built = _built("\n".join(parts), name, launch, cache, None)
    return [
        HostKernel(u.kernel, u.arg_types, launch.block, launch.cooperative, built, f"gen_run{i}")
        for i, u in enumerate(units)
    ]


def _built(body: str, name: str, launch: Launch, cache: bool, compiler: str | None) -> ctypes.CDLL:
    """The library of a translation unit, compiled or from the cache."""
    tool = host_compiler(compiler)
    text = translation_unit(body, name)
    defines = (
        f"GEN_WAVE_SIZE={launch.wave_size}",
        f"GEN_BLOCK={launch.block}",
        f"GEN_COOPERATIVE={int(launch.cooperative)}",
    )
    path = cache_folder("host") / f"{cache_key(text, *defines, tool.identity)}.so" if cache else None

    def build(library: Path) -> None:
        tool.build(text, name, defines, library)

    return _library(path, build)


def _library(path: Path | None, build: Callable[[Path], None]) -> ctypes.CDLL:
    """The library of a cache entry, built if there is none; without a path or a usable cache, a fresh one."""
    if path is not None and read_entry(path) is not None:
        try:
            return _load(path)
        except OSError:
            pass  # whole but not loadable: a cache that was copied from elsewhere
    with tempfile.TemporaryDirectory(prefix="genrw") as folder:
        fresh = Path(folder) / "kernel.so"
        build(fresh)
        stored = path is not None and write_entry(path, fresh.read_bytes())
        return _load(path if path is not None and stored else fresh)


def _load(path: Path) -> ctypes.CDLL:
    library = ctypes.CDLL(str(path))
    library.gen_memory_bytes.restype = ctypes.c_ulonglong
    return library


_EXPORT = 'extern "C" __attribute__((visibility("default")))'
_MEMORY_BYTES = f"{_EXPORT} unsigned long long gen_memory_bytes() {{ return gen::host::memory_bytes; }}"


def _entry(name: str, kernel: str, arg_types: Sequence[str]) -> str:
    """The exported function that runs a range of groups over an array of argument pointers."""
    lines = [f"{_EXPORT} int {name}(void* const* args, long long first, long long last, unsigned order,"]
    lines += ["                void* memory) {"]
    for i, name in enumerate(arg_types):
        value = f"({name})args[{i}]" if "*" in name else f"*(const {name}*)args[{i}]"
        lines.append(f"    const auto a{i} = {value};")
    call = ", ".join(f"a{i}" for i in range(len(arg_types)))
    lines += [f"    return gen::host::run([=] {{ {kernel}({call}); }}, first, last, order, memory);", "}"]
    return "\n".join(lines)


def _argument(type_name: str, value: Argument) -> npt.NDArray[Any]:
    """An argument as an array whose memory the kernel may use: the array itself, or one around a number."""
    base = type_name.replace("__restrict__", "").replace("const", "").replace("*", "").strip()
    dtype = _DTYPES.get(base)
    if "*" not in type_name:
        return np.array(value, dtype=dtype)
    if not isinstance(value, np.ndarray) or not value.flags.c_contiguous:
        raise TypeError(f"an argument of type {type_name} takes a contiguous array")
    if dtype is not None and value.dtype.name != dtype:
        raise TypeError(f"an argument of type {type_name} takes an array of {dtype}, not {value.dtype.name}")
    if "const" not in type_name and not value.flags.writeable:
        raise TypeError(f"an argument of type {type_name} takes an array that can be written")
    return value


class _LaneMemory(threading.local):
    """The stacks of a group's lanes: one area per thread, kept for the kernels to come."""

    area: npt.NDArray[np.uint8] = np.empty(0, np.uint8)


_memory = _LaneMemory()


def _lane_memory(size: int) -> int:
    """The address of an area of at least this many bytes that is the calling thread's own."""
    if _memory.area.nbytes < size:
        _memory.area = np.empty(size, np.uint8)
    return int(_memory.area.ctypes.data)


@lru_cache(maxsize=1)
def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_processors(), thread_name_prefix="genrw-host")


# A forked process has the pool but none of its threads.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)
