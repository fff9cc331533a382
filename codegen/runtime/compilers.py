"""The compilers on this machine, and how they are run.

Two tools do everything that needs no GPU: the clang inside the `ziglang` package, which compiles for AMD GPUs
and for the host, and any C++ compiler of the system, which is preferred for the host.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from genrw.codegen.hip.header import device_header
from genrw.codegen.runtime.refusals import Refused
from genrw.grammar.cache import cache_folder
from genrw.grammar.diagnostics import GenrwError, error

LANE_LOOPS = "GEN_LANE_LOOPS"
"""What says to the device header whether a kernel has loops over its lanes in its text."""
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"gen\.hpp"[ \t]*$', re.MULTILINE)
_SHOWN_ERROR_LINES = 12
_SYSTEM_COMPILERS = ("g++", "clang++", "c++")
_NO_HOST_COMPILER = "install ziglang or a C++ compiler (g++, clang++), or set CXX"
_HOST_FLAGS = (
    *("-std=c++17", "-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"),
    "-mcpu=native" if platform.machine() in ("aarch64", "arm64") else "-march=native",
    *("-fPIC", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti", "-w"),
)
# GCC 12 cuts a loop over lanes in several and loses, where a choice stands between, that one reads what another writes.
_GCC_FLAGS = ("-fno-tree-loop-distribution", "-fno-tree-loop-distribute-patterns")
# Kernels of lanes that meet are checked on the CPU, and compiling them takes longer than the launches do. Of what -O3 adds, only
# vectors of loops pay. GCC 12 writes out a loop of 16 that stands in a loop over lanes, makes vectors of all of it, and takes
# seconds over that: ten times as long as over the loop as it is.
_GCC_LANE_LOOPS = (
    *("-O2", "-ftree-vectorize", "-fvect-cost-model=dynamic"),
    *("--param", "max-completely-peel-times=8"),
)
# GCC 12 ends in errors of its own on maxima of bytes that it has made vectors of.
_CRASH, _WITHOUT_VECTORS = "internal compiler error", ("-fno-tree-vectorize",)


# ---- sources ----------------------------------------------------------------------------------------------


def kernel_text(source: str) -> str:
    """A kernel's source without the line that includes the device header."""
    return _INCLUDE.sub("", source)


def translation_unit(source: str, kernel: str) -> str:
    """The device header and a kernel's source as one text, marked so that messages name the source's lines.

    Printed sources say `#include "gen.hpp"`; here the header is in place already.
    """
    return f'#line 1 "gen.hpp"\n{device_header()}\n{_begin(kernel)}{kernel_text(source)}\n'


def own_part(unit: str, kernel: str) -> str:
    """The kernel's source in a translation unit, whose lines messages name."""
    return unit.partition(_begin(kernel))[2]


def _begin(kernel: str) -> str:
    return f'#line 1 "{kernel}.hip"\n'


# ---- options for AMD GPUs ----------------------------------------------------------------------------------


def wave_options(arch: str, wave_size: int) -> list[str]:
    """What tells clang and hiprtc the wave size: gfx9 has one, later GPUs have two; GenrwError for another."""
    if arch.startswith("gfx9"):
        if wave_size != 64:
            raise error(f"{arch} has waves of 64 lanes, not {wave_size}", remedy=f"lower for it: --target {arch}")
        return []
    if wave_size not in (32, 64):
        raise error(f"{arch} has waves of 32 or 64 lanes, not {wave_size}", remedy=f"lower for it: --target {arch}")
    return ["-mwavefrontsize64" if wave_size == 64 else "-mno-wavefrontsize64"]


# ---- running a compiler -----------------------------------------------------------------------------------


def run_compiler(
    command: Sequence[str], kernel: str, stdin: str | None = None, after_crash: Sequence[str] = ()
) -> None:
    """Run one compiler step; a failure is an error that names the kernel and quotes the first messages.

    A compiler that fails by a fault of its own is run once more with the options `after_crash`.
    """
    environment = dict(os.environ)
    for variable in ("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"):
        environment.setdefault(variable, str(cache_folder("zig")))
    try:
        done = subprocess.run(list(command), input=stdin, text=True, capture_output=True, env=environment, check=False)
    except OSError as problem:
        message = f"kernel {kernel}: {command[0]} cannot be run: {problem.strerror}"
        raise error(message, remedy=_NO_HOST_COMPILER) from problem
    if done.returncode == 0:
        return
    if after_crash and _CRASH in done.stderr:
        run_compiler([*command, *after_crash], kernel, stdin)
    else:
        raise _compile_error(Path(command[0]).name, kernel, done.returncode, done.stderr, stdin or "")


def _compile_error(tool: str, kernel: str, status: int, messages: str, unit: str) -> Refused:
    """What a compiler said, from its first error on."""
    lines = [line for line in messages.splitlines() if line.strip()]
    first = next((i for i, line in enumerate(lines) if "error" in line), 0)
    shown = "".join(f"\n  {line}" for line in lines[first : first + _SHOWN_ERROR_LINES])
    message = f"kernel {kernel} does not compile: {tool} ended with status {status}{shown}"
    return Refused(message, own_part(unit, kernel), messages)


@lru_cache(maxsize=1)
def zig() -> str:
    """The zig executable of the ziglang package."""
    package = importlib.util.find_spec("ziglang")
    for folder in (package.submodule_search_locations or []) if package else []:
        path = Path(folder) / ("zig.exe" if sys.platform == "win32" else "zig")
        if path.exists():
            return str(path)
    raise error("the Python package ziglang, a compiler, is missing", remedy="pip install ziglang")


@lru_cache(maxsize=8)
def compiler_version(*command: str) -> str:
    """The first line that a command prints about its version."""
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    return done.stdout.partition("\n")[0]


# ---- the host compiler ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HostCompiler:
    """A C++ compiler that makes shared libraries for this machine."""

    command: tuple[str, ...]
    is_zig: bool = False

    @property
    def identity(self) -> str:
        """All that may change what it builds from the same source."""
        version = compiler_version(*self.command, "version" if self.is_zig else "--version")
        return "\n".join((*self.command, version, *self.flags(True), cpu_features()))

    def flags(self, in_loops: bool) -> tuple[str, ...]:
        """The options of a call, whether kernels have loops over lanes in their text or not."""
        if self.is_zig or _is_clang(self.command):
            return _HOST_FLAGS
        return (*_HOST_FLAGS, *_GCC_FLAGS, *(_GCC_LANE_LOOPS if in_loops else ()))

    def build(self, source: str, kernel: str, defines: Sequence[str], library: Path) -> None:
        """Compile a translation unit to a shared library."""
        flags = self.flags(f"{LANE_LOOPS}=1" in defines)
        options = [*flags, *(f"-D{name}" for name in defines), "-x", "c++", "-"]
        if not self.is_zig:
            command = [*self.command, *options, "-shared", "-o", str(library)]
            run_compiler(command, kernel, source, after_crash=_WITHOUT_VECTORS)
            return
        # Compiled and linked by hand: `zig c++` would first build a C++ library, which kernels have no use
        # for. What remains undefined (memset) is found in the process that loads the library.
        objects = library.with_suffix(".o")
        run_compiler([*self.command, "clang", *options, "-c", "-o", str(objects)], kernel, source)
        run_compiler([*self.command, "ld.lld", "-shared", str(objects), "-o", str(library)], kernel)
        objects.unlink()


@lru_cache(maxsize=8)
def _is_clang(command: tuple[str, ...]) -> bool:
    """Is it a clang, by whatever name? It refuses options of GCC's that it does not know."""
    asked = [*command, "-dM", "-E", "-x", "c++", "-"]
    done = subprocess.run(asked, input="", text=True, capture_output=True, check=False)
    return "__clang__" in done.stdout


def host_compiler(choice: str | None = None) -> HostCompiler:
    """The C++ compiler for the host: the one asked for, else $GENRW_HOST_COMPILER, $CXX, the system's, zig's.

    A choice is a command line, or `zig` for the clang in the ziglang package.
    """
    wanted = choice or os.environ.get("GENRW_HOST_COMPILER") or os.environ.get("CXX")
    if wanted == "zig":
        return HostCompiler((zig(),), is_zig=True)
    if wanted:
        command = _words(wanted)
        if not command or not shutil.which(command[0]):
            raise error(f"the C++ compiler {wanted!r} is not there", remedy=_NO_HOST_COMPILER)
        return HostCompiler(command)
    for name in _SYSTEM_COMPILERS:
        if found := shutil.which(name):
            return HostCompiler((found,))
    try:
        return HostCompiler((zig(),), is_zig=True)
    except GenrwError as problem:
        raise error("no C++ compiler for the host was found", remedy=_NO_HOST_COMPILER) from problem


def _words(command: str) -> tuple[str, ...]:
    """The words of a command line; none where a quote is not closed."""
    try:
        return tuple(shlex.split(command))
    except ValueError:
        return ()


@lru_cache(maxsize=1)
def cpu_features() -> str:
    """What `native` resolves to, as far as it can be seen: a library is for one kind of processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    wanted = ("flags", "Features", "model name", "CPU part")
    found = "\n".join(dict.fromkeys(line for line in lines if line.startswith(wanted)))
    return found or f"{platform.machine()} {platform.processor()}"
