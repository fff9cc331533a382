"""Finding and running compilers, the cache of what they built, and what users are told when it fails."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from genrw.codegen.runtime.compilers import HostCompiler, host_compiler, zig
from genrw.codegen.runtime.host import HostKernel, compile_host
from genrw.grammar.cache import cache_key, read_entry, write_entry
from genrw.grammar.diagnostics import GenrwError

ADD = """#include "gen.hpp"
GEN_KERNEL(64) add(const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ z, int n)
{
    const int i = gen::global_id();
    if (i < n) z[i] = x[i] + y[i];
}
"""
ADD_TYPES = ("const float*", "const float*", "float*", "int")


def compile_add(source: str = ADD, **options: Any) -> HostKernel:
    return compile_host(source, "add", ADD_TYPES, wave_size=64, block=64, in_loops=False, **options)


def check_add(kernel: HostKernel, n: int = 1000) -> None:
    x, y = np.arange(n, dtype=np.float32), np.ones(n, np.float32)
    z = np.zeros(n, np.float32)
    kernel.launch([x, y, z, n], -(-n // 64))
    assert np.array_equal(z, x + 1)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("GENRW_CACHE_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels built during a test."""
    built: list[str] = []
    original = HostCompiler.build

    def build(self: HostCompiler, source: str, kernel: str, *rest: Any) -> None:
        built.append(kernel)
        original(self, source, kernel, *rest)

    monkeypatch.setattr(HostCompiler, "build", build)
    return built


# ---- the cache


def test_second_compile_comes_from_the_cache(cache: Path, builds: list[str]) -> None:
    check_add(compile_add())
    check_add(compile_add())
    assert builds == ["add"]
    assert len(list((cache / "host").iterdir())) == 1


def test_without_cache(cache: Path, builds: list[str]) -> None:
    check_add(compile_add(cache=False))
    check_add(compile_add(cache=False))
    assert builds == ["add", "add"]
    assert not (cache / "host").exists()


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "foreign"])
def test_damaged_entry_is_rebuilt(damage: str, cache: Path, builds: list[str]) -> None:
    source = f"{ADD} // {damage}"
    compile_add(source)
    (entry,) = (cache / "host").iterdir()
    whole = entry.read_bytes()
    middle = len(whole) // 2
    half, flipped = whole[:middle], bytes([*whole[:middle], whole[middle] ^ 1, *whole[middle + 1 :]])
    entry.unlink()
    entry.write_bytes({"truncated": half, "flipped": flipped, "empty": b"", "foreign": b"x" * 99}[damage])
    check_add(compile_add(source))
    assert builds == ["add", "add"]
    assert read_entry(entry) is not None


def test_what_the_key_depends_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("CXX", "GENRW_HOST_COMPILER"):
        monkeypatch.delenv(variable, raising=False)
    kernels = {compile_add()._library._name, compile_add(f"{ADD} ")._library._name}
    kernels.add(compile_add(compiler="zig")._library._name)
    for wave_size, block in ((32, 64), (64, 128)):
        kernel = compile_host(ADD, "add", ADD_TYPES, in_loops=False, wave_size=wave_size, block=block)
        kernels.add(kernel._library._name)
    assert len(kernels) == 5
    assert cache_key("ab", "c") != cache_key("a", "bc")


def test_entries_are_whole_or_absent(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "entry"
    assert read_entry(path) is None
    write_entry(path, b"payload")
    assert read_entry(path) == b"payload"
    assert [file.name for file in path.parent.iterdir()] == ["entry"]


def test_whole_entry_that_does_not_load(cache: Path, builds: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    compile_add()
    (entry,) = (cache / "host").iterdir()
    other = cache / "other"
    write_entry(other / "host" / entry.name, b"no library")
    monkeypatch.setenv("GENRW_CACHE_DIR", str(other))
    check_add(compile_add())
    assert builds == ["add", "add"]


def test_unusable_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("GENRW_CACHE_DIR", str(tmp_path / "file"))
    check_add(compile_add())


def test_processes_share_the_cache(cache: Path) -> None:
    program = f"""
import numpy as np
from genrw.codegen.runtime.host import compile_host
kernel = compile_host({ADD!r}, "add", {ADD_TYPES!r}, wave_size=64, block=64, in_loops=False)
x = np.ones(64, np.float32)
kernel.launch([x, x, x, 64], 1)
assert x.tolist() == [2.0] * 64
"""
    workers = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(4)]
    assert [worker.wait() for worker in workers] == [0] * 4
    assert len(list((cache / "host").iterdir())) == 1


# ---- compilers


@pytest.mark.parametrize("choice", [None, "zig"])
def test_compilers(choice: str | None, cache: Path) -> None:
    del cache
    check_add(compile_add(compiler=choice))


def test_environment_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "zig")
    assert host_compiler().is_zig
    monkeypatch.setenv("GENRW_HOST_COMPILER", "g++ -g0")
    assert host_compiler().command == ("g++", "-g0")
    assert host_compiler("zig").is_zig


def test_zig_stands_in_for_a_system_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in ("CXX", "GENRW_HOST_COMPILER"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert host_compiler().is_zig
    check_add(compile_add())


def test_no_compiler_at_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in ("CXX", "GENRW_HOST_COMPILER"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    zig.cache_clear()
    with pytest.raises(GenrwError, match=r"no C\+\+ compiler") as caught:
        compile_add()
    assert "install ziglang or a C++ compiler" in str(caught.value)
    with pytest.raises(GenrwError, match="help: pip install ziglang"):
        zig()


@pytest.mark.parametrize("choice", ["no-such-compiler", "no-such-compiler -O2", 'g++ "', "   "])
def test_wrong_choice(choice: str) -> None:
    with pytest.raises(GenrwError, match=f"'{re.escape(choice)}' is not there"):
        host_compiler(choice)


@pytest.mark.parametrize("choice", [None, "zig"])
def test_error_names_kernel_and_line(choice: str | None) -> None:
    broken = ADD.replace("x[i] + y[i]", "x[i] + why[i]")
    with pytest.raises(GenrwError, match="kernel add does not compile") as caught:
        compile_add(broken, compiler=choice)
    message = str(caught.value)
    assert "add.hip:5" in message
    assert "why" in message
    assert message.endswith("`genrw rules verify OPERATOR` tries a text of your own by itself")
    assert len(message.splitlines()) < 20


# ---- launching


def test_arguments_are_checked() -> None:
    kernel = compile_add()
    x = np.ones(64, np.float32)
    frozen = x.copy()
    frozen.flags.writeable = False
    for arguments, message in [
        ([x, x, x], "takes 4 arguments, got 3"),
        ([x, x, x.astype(np.float64), 64], "takes an array of float32, not float64"),
        ([x, x, frozen, 64], "can be written"),
        ([x[::2], x, x, 64], "contiguous"),
        ([x, x, 1.0, 64], "contiguous"),
    ]:
        with pytest.raises(TypeError, match=message):
            kernel.launch(arguments, 1)  # type: ignore[arg-type]
    check_add(kernel)


@pytest.mark.parametrize("threads", [None, 1, 2, 5, 100])
@pytest.mark.parametrize("order", [0, 1, 77])
def test_every_group_runs_once(threads: int | None, order: int) -> None:
    source = "GEN_KERNEL(1) count(int* hits) { hits[gen::workgroup_id()] += 1; }"
    kernel = compile_host(source, "count", ["int*"], wave_size=1, block=1, in_loops=False)
    for groups in (0, 1, 2, 15, 16, 17, 1000):
        hits = np.zeros(groups + 1, np.int32)
        kernel.launch([hits], groups, threads=threads, order=order)
        assert hits.tolist() == [1] * groups + [0]


def test_large_arrays_use_threads() -> None:
    check_add(compile_add(), 1 << 20)


def test_scalars_of_every_kind() -> None:
    source = """
GEN_KERNEL(1) scalars(double* out, float a, int b, gen::int64 c, gen::half d, bool e)
{
    out[0] = a; out[1] = b; out[2] = gen::convert<double>(c); out[3] = float(d); out[4] = e;
}
"""
    types = ["double*", "float", "int", "gen::int64", "gen::half", "bool"]
    kernel = compile_host(source, "scalars", types, wave_size=1, block=1, in_loops=False)
    out = np.zeros(5)
    kernel.launch([out, 1.5, -7, 1 << 40, np.float16(0.25), True], 1)
    assert out.tolist() == [1.5, -7, 1 << 40, 0.25, 1]


# ---- compilers that fail by themselves

CRASHING = """#!/bin/sh
case "$*" in
*-dM*) exit 0 ;;
*-fno-tree-vectorize*) exec {python} -c "open('{built}', 'w')" ;;
esac
echo "add.hip:1:1: internal compiler error: in extract_insn" >&2
exit 1
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the compiler is a shell script")
def test_a_compiler_that_crashes_is_asked_for_less(tmp_path: Path) -> None:
    tool, built = tmp_path / "crashing", tmp_path / "add.so"
    tool.write_text(CRASHING.format(python=sys.executable, built=built))
    tool.chmod(0o755)
    HostCompiler((str(tool),)).build(ADD, "add", [], built)
    assert built.exists()


NOTING = """#!/bin/sh
case "$*" in
*-dM*) ;;
*) echo "$*" > {noted}; cat > /dev/null ;;
esac
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the compiler is a shell script")
@pytest.mark.parametrize("in_loops", [0, 1])
def test_loops_in_loops_over_lanes_are_not_written_out(tmp_path: Path, in_loops: int) -> None:
    tool, noted = tmp_path / "noting", tmp_path / "noted"
    tool.write_text(NOTING.format(noted=noted))
    tool.chmod(0o755)
    HostCompiler((str(tool),)).build(ADD, "add", [f"GEN_LANE_LOOPS={in_loops}"], tmp_path / "add.so")
    assert ("max-completely-peel-times" in noted.read_text()) == bool(in_loops)
