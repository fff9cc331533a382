"""Kernels on the CPU: the HIP source compiled for the host, loaded and run.

The device header has the other half: there, a kernel is a plain function of one lane, called in a loop over lanes. A
kernel whose lanes meet, at barriers or in cross-lane operations, has such loops in its text, and is a function of a
whole workgroup.
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

from genrw.codegen.runtime.compilers import LANE_LOOPS, host_compiler, kernel_text, translation_unit
from genrw.engine.ir.dtypes import numpy_dtype
from genrw.grammar.cache import cache_folder, cache_key, read_entry, write_entry

Argument = npt.NDArray[Any] | np.generic | int | float

_DTYPES = {
    **{"float": "float", "double": "double", "gen::half": "half", "gen::bf16": "bf16"},
    **{"int": "int32", "long long": "int64", "unsigned": "uint32", "unsigned long long": "uint64"},
    **{f"gen::{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "bool": "bool",
}

# Below this much work, starting a second thread costs more than it saves.
_BYTES_PER_THREAD = 1 << 18


@dataclass(frozen=True)
class HostKernel:
    """A kernel compiled for this machine."""

    name: str
    arg_types: tuple[str, ...]
    block: int
    _library: ctypes.CDLL = field(repr=False)
    _entry: str = "gen_run"

    def launch(self, arrays: Sequence[Argument], groups: int, *, threads: int | None = None, order: int = 0) -> None:
        """Run `groups` workgroups over arrays, in place; numbers stand for arguments that are not pointers.

        `order` is a seed: 0 runs groups and waves in turn, any other value shuffles them and starts workgroup
        memory with NaN patterns, so that a missing barrier shows.
        """
        if len(arrays) != len(self.arg_types):
            raise TypeError(f"{self.name} takes {len(self.arg_types)} arguments, got {len(arrays)}")
        held = [parameter.array(given) for parameter, given in zip(self._parameters, arrays, strict=True)]
        pointers = (ctypes.c_void_p * max(1, len(held)))(*(array.ctypes.data for array in held))

        def run(bounds: tuple[int, int]) -> None:
            self._run(pointers, *bounds, order, _lane_memory(self._memory_bytes))

        count = min(groups, threads if threads is not None else self._threads(held))
        if count == 1:  # small calls are all Python
            run((0, groups))
        elif count > 1:
            list(_pool().map(run, pairwise(groups * i // count for i in range(count + 1))))

    @cached_property
    def _parameters(self) -> list[_Parameter]:
        return [_Parameter.of(type_) for type_ in self.arg_types]

    @cached_property
    def _run(self) -> Callable[..., None]:
        number = ctypes.c_longlong
        function = self._library[self._entry]
        function.argtypes = (ctypes.c_void_p, number, number, ctypes.c_uint, ctypes.c_void_p)
        function.restype = None
        return function

    @cached_property
    def _memory_bytes(self) -> int:
        function = self._library[f"{self._entry}_bytes"]
        function.restype = ctypes.c_ulonglong
        return int(function())

    def _threads(self, arrays: Sequence[npt.NDArray[Any]]) -> int:
        """As many threads as the work is worth."""
        worth = sum(array.nbytes for array in arrays) // _BYTES_PER_THREAD
        return max(1, min(_processors(), worth))


def compile_host(
    source: str,
    kernel: str,
    arg_types: Sequence[str],
    *,
    wave_size: int,
    block: int,
    in_loops: bool,
    cache: bool = True,
    compiler: str | None = None,
) -> HostKernel:
    """Compile one kernel for this machine, or take it from the cache.

    `arg_types` are the C++ types of the kernel's parameters, such as `const float*` or `int`. A kernel `in_loops` has
    loops over its lanes in its text, and before these parameters a struct `KERNEL_lanes`. `compiler` is a command, or
    `zig`; by default the system's compiler is found.
    """
    launch = UnitOptions(wave_size, block, in_loops)
    body = f"{source}\n{_entry('gen_run', kernel, arg_types, in_loops)}"
    return HostKernel(kernel, tuple(arg_types), block, _built(body, kernel, launch, cache, compiler))


@dataclass(frozen=True)
class UnitOptions:
    """What kernels of one translation unit have in common."""

    wave_size: int
    block: int
    in_loops: bool


@dataclass(frozen=True)
class Unit:
    """One kernel of several: its source, the parts of it that others may share, its name, its parameters' types."""

    source: str
    helpers: tuple[str, ...]
    kernel: str
    arg_types: tuple[str, ...]


def compile_host_units(units: Sequence[Unit], launch: UnitOptions, *, cache: bool = True) -> list[HostKernel]:
    """Compile kernels together, which takes far less time than one by one; each stands in a namespace of its own."""
    helpers = dict.fromkeys(helper for unit in units for helper in unit.helpers)
    parts = list(helpers)
    for i, unit in enumerate(units):
        own = kernel_text(unit.source)
        for helper in unit.helpers:
            own = own.replace(helper, "", 1)
        entry = _entry(f"gen_run{i}", f"unit{i}::{unit.kernel}", unit.arg_types, launch.in_loops)
        parts += [f"namespace unit{i} {{", own, "}", entry]
    name = units[0].kernel if len(units) == 1 else f"{units[0].kernel} and {len(units) - 1} more"
    built = _built("\n".join(parts), name, launch, cache, None)
    return [HostKernel(u.kernel, u.arg_types, launch.block, built, f"gen_run{i}") for i, u in enumerate(units)]


def _built(body: str, name: str, launch: UnitOptions, cache: bool, compiler: str | None) -> ctypes.CDLL:
    """The library of a translation unit, compiled or from the cache."""
    tool = host_compiler(compiler)
    text = translation_unit(body, name)
    defines = (
        f"GEN_WAVE_SIZE={launch.wave_size}",
        f"GEN_BLOCK={launch.block}",
        f"{LANE_LOOPS}={int(launch.in_loops)}",
    )
    path = cache_folder("host") / f"{cache_key(text, *defines, tool.identity)}.so" if cache else None

    def build(library: Path) -> None:
        tool.build(text, name, defines, library)

    return _library(path, build)


def _library(path: Path | None, build: Callable[[Path], None]) -> ctypes.CDLL:
    """The library of a cache entry, built if there is none; without a path or a usable cache, a fresh one."""
    if path is not None and read_entry(path) is not None:
        try:
            return ctypes.CDLL(str(path))
        except OSError:
            pass  # whole but not loadable: a cache that was copied from elsewhere
    with tempfile.TemporaryDirectory(prefix="genrw") as folder:
        fresh = Path(folder) / "kernel.so"
        build(fresh)
        stored = path is not None and write_entry(path, fresh.read_bytes())
        return ctypes.CDLL(str(path if path is not None and stored else fresh))


_EXPORT = 'extern "C" __attribute__((visibility("default")))'


def _entry(name: str, kernel: str, arg_types: Sequence[str], in_loops: bool) -> str:
    """The exported function that runs a range of groups over an array of argument pointers, and how many bytes of memory
    it takes for the variables of a group's lanes."""
    kernel = f"::{kernel}"  # A parameter of the function may have the kernel's name.
    lines = [
        f"{_EXPORT} unsigned long long {name}_bytes() {{ return {f'sizeof({kernel}_lanes)' if in_loops else 0}; }}"
    ]
    lines += [f"{_EXPORT} void {name}(void* const* args, long long first, long long last, unsigned order,"]
    lines += ["                 void* memory) {"]
    for i, type_ in enumerate(arg_types):
        value = f"({type_})args[{i}]" if "*" in type_ else f"*(const {type_}*)args[{i}]"
        lines.append(f"    const auto a{i} = {value};")
    given = [f"*static_cast<{kernel}_lanes*>(memory)"] if in_loops else []
    call = ", ".join([*given, *(f"a{i}" for i in range(len(arg_types)))])
    lines += [f"    gen::host::run([=] {{ {kernel}({call}); }}, first, last, order);", "}"]
    return "\n".join(lines)


@dataclass(frozen=True)
class _Parameter:
    """What a parameter takes: its C++ type, the type of its elements, None for one that numpy does not have; a pointer's
    array may be written."""

    type: str
    dtype: np.dtype[Any] | None
    is_pointer: bool
    is_written: bool

    @classmethod
    def of(cls, type_: str) -> _Parameter:
        base = type_.replace("__restrict__", "").replace("const", "").replace("*", "").strip()
        dtype = numpy_dtype(_DTYPES[base]) if base in _DTYPES else None
        return cls(type_, dtype, "*" in type_, "*" in type_ and "const" not in type_)

    def array(self, value: Argument) -> npt.NDArray[Any]:
        """An argument as an array whose memory the kernel may use: the array itself, or one around a number."""
        if not self.is_pointer:
            return np.array(value, dtype=self.dtype)
        if not isinstance(value, np.ndarray) or not value.flags.c_contiguous:
            raise TypeError(f"an argument of type {self.type} takes a contiguous array")
        if self.dtype is not None and value.dtype != self.dtype:
            raise TypeError(
                f"an argument of type {self.type} takes an array of {self.dtype.name}, not {value.dtype.name}"
            )
        if self.is_written and not value.flags.writeable:
            raise TypeError(f"an argument of type {self.type} takes an array that can be written")
        return value


class _LaneMemory(threading.local):
    """The variables of a group's lanes: one area per thread, kept for the kernels to come."""

    area: npt.NDArray[np.uint8] = np.empty(0, np.uint8)
    address = 0


_memory = _LaneMemory()


def _lane_memory(size: int) -> int:
    """The address of an area of at least this many bytes that is the calling thread's own."""
    if _memory.area.nbytes < size:
        _memory.area = np.empty(size, np.uint8)
        _memory.address = int(_memory.area.ctypes.data)
    return _memory.address


@lru_cache(maxsize=1)
def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_processors(), thread_name_prefix="genrw-host")


# A forked process has the pool but none of its threads.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)
