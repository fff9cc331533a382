"""Names in printed kernels that C++ or a platform has taken already."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import genrw
from genrw import codegen
from genrw.codegen.hip.header import device_header
from genrw.codegen.hip.identifiers import Names, global_identifier, identifier
from genrw.codegen.runtime.amd import compile_amd
from genrw.codegen.runtime.compilers import zig
from genrw.codegen.runtime.cuda import compile_ptx

TEXT = "x = @param:{name} -> float{{8}}\ny = neg(x)\n@return(y)\n"


@pytest.mark.parametrize("name", ["exp", "double", "round"])
def test_kernels_named_like_functions_and_keywords(tmp_path: Path, name: str) -> None:
    path = tmp_path / f"{name}.gen"
    path.write_text(TEXT.format(name="x"))
    assert f"\n{name}_(const float*" in genrw.emit(path)


def test_parameters_may_be_named_like_functions() -> None:
    assert "const float* __restrict__ exp," in genrw.emit(TEXT.format(name="exp"))
    assert "const float* __restrict__ while_," in genrw.emit(TEXT.format(name="while"))


@pytest.mark.parametrize("name", ["gen_kept", "gen_lane", "lane", "sum_float", "main_lanes"])
def test_values_may_be_named_like_what_runs_lanes_on_the_host(name: str) -> None:
    text = f"x = @param:x -> float{{4, 300}}\n{name} = reduce_sum[axes={{1}}](x)\ny = sub(x, {name})\n@return(y)\n"
    x = np.random.default_rng(0).random((4, 300), np.float32)
    got = genrw.load(text, target="gfx942").run({"x": x})["y"]
    np.testing.assert_allclose(got, x - x.sum(1, keepdims=True), rtol=1e-5)


# ---- words that a program may use and C++ may not

WORDS = """
    nullptr __asm__ typeof decltype consteval concept __LINE__ __FILE__ __func__ linux unix errno M_PI INFINITY NAN NULL
    _Bool _Float16 __half __restrict__ __int128 _Complex co_await requires constinit char8_t static_assert final import
    stdin assert offsetof threadIdx blockDim warpSize cudaMalloc hipMalloc FLT_MAX CHAR_BIT PRId64 SCNu8 EOF I_MAX BUFSIZ
    GEN_LDS gen_lanes gen_lane gen_block_ gen_turns exp max read index X W x1 X1 B0 a__b __ _ _1 i acc lds step value
"""


def assert_compiles(command: list[str], text: str) -> None:
    done = subprocess.run([*command, "-"], input=text, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]


def lists() -> list[str]:
    """The words that must not be printed as they are, and more."""
    files = Path(codegen.__file__).with_name("reserved").iterdir()
    lines = [line for file in files for line in file.read_text().splitlines() if not line.startswith("#")]
    return [*" ".join(lines).split(), *WORDS.split()]


def declarations() -> str:
    """Functions, a table and variables that are called what a program's names become."""
    new = Names(())
    variables = "".join(f"    const float {new.variable(word)} = x[0];\n" for word in lists())
    others = Names(())
    functions = "".join(f'extern "C" void {others.of_all(word, "kernel")}(const float*) {{}}\n' for word in lists())
    return f"{functions}void of_test(const float* x)\n{{\n{variables}}}\n"


HEADERS = ("math", "stdlib", "stdio", "string", "time", "errno", "signal", "setjmp", "unistd", "sys/stat")
INCLUDES = "".join(f"#include <{name}.h>\n" for name in HEADERS)
HOST = "#define GEN_BLOCK 1\n#define GEN_LANE_LOOPS 0\n#define GEN_WAVE_SIZE 1\n"


@pytest.mark.parametrize("dialect", ["gnu++17", "c++17", "gnu++2b"])
def test_names_compile_beside_the_headers_of_c(dialect: str) -> None:
    """What hipcc and nvcc include before a kernel, and more."""
    compiler = shutil.which("g++") or pytest.skip("there is no g++ here")
    text = f"{INCLUDES}{HOST}{device_header()}\n{declarations()}"
    assert_compiles([compiler, f"-std={dialect}", "-fsyntax-only", "-w", "-x", "c++"], text)


@pytest.mark.parametrize("dialect", ["gnu++17", "c++2c"])
@pytest.mark.parametrize("target", ["x86_64-linux-gnu", "x86_64-windows-msvc"])
def test_names_compile_with_clang(dialect: str, target: str) -> None:
    extensions = ["-fms-extensions", "-fms-compatibility"] if "msvc" in target else []
    options = ["-target", target, f"-std={dialect}", "-nostdinc", "-fsyntax-only", "-w", *extensions, "-x", "c++"]
    assert_compiles([zig(), "clang", *options], declarations())


def for_gpu() -> str:
    """The same for a GPU, beside a kernel."""
    text = (
        declarations().replace('extern "C" void', 'extern "C" GEN_DEVICE void').replace("\nvoid", "\nGEN_DEVICE void")
    )
    return f'#include "gen.hpp"\n{text}GEN_KERNEL(64)\napply(const float* x) {{ of_test(x); }}\n'


def test_names_compile_for_amd() -> None:
    compile_amd(for_gpu(), "gfx942", 64, "apply")


def test_names_compile_for_nvidia() -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="there is no NVRTC, which the extra `cuda` installs")
    compile_ptx(for_gpu(), "sm_90", 32, "apply")


def macros(command: list[str], text: str = "") -> set[str]:
    asked = [*command, "-dM", "-E", "-x", "c++", "-"]
    done = subprocess.run(asked, input=text, text=True, capture_output=True, check=True)
    return set(re.findall(r"^#define (\w+)", done.stdout, re.MULTILINE))


def test_no_macro_is_printed() -> None:
    """Of two compilers for several processors; and of the headers, those that are names without arguments too."""
    found: set[str] = set()
    for target in ("x86_64-linux-gnu", "i386-linux-gnu", "aarch64-linux-gnu", "riscv64-linux-gnu", "amdgcn-amd-amdhsa"):
        found |= macros([zig(), "clang", "-target", target, "-std=gnu++17"])
    if compiler := shutil.which("g++"):
        found |= macros([compiler, "-std=gnu++17"], INCLUDES)
    assert len(found) > 300
    made = {identifier(word, "value") for word in found}
    functions = found - {word for word in found if re.search(r"[A-Z]|^_", word)}
    assert made & found <= functions
    assert not {global_identifier(word, "kernel") for word in found} & found


@pytest.mark.parametrize("target", ["host", "gfx942"])
def test_a_program_of_such_words_runs(tmp_path: Path, target: str) -> None:
    """Parameters, values, results, a table and the kernel."""
    words = WORDS.split()[:9]
    lines = [f"{word} = @param:{word} -> float{{70}}\n{word}.out = neg({word})" for word in words]
    path = tmp_path / "errno.gen"
    path.write_text("\n".join([*lines, f"@return({', '.join(f'{word}.out' for word in words)})"]) + "\n")
    program = genrw.load(path, target=target)
    got = program.run({word: np.full(70, number, np.float32) for number, word in enumerate(words)})
    assert [float(array[0]) for array in got.values()] == [-number for number in range(len(words))]


@pytest.mark.parametrize("name", ["exp", "sum_float", "M_PI", "soft"])
def test_kernels_and_tables_stand_beside_the_names_of_libraries(tmp_path: Path, name: str) -> None:
    (tmp_path / "mine.rw").write_text(SOFT)
    text = f"x = @param:x -> float{{4, 3}}\n{name} = @literal{{1, 2, 3}} -> float{{3}}\ny = mul(x, {name})\n"
    text += "h = soft(y)\ns = reduce_sum[axes={1}](h)\n@return(s)\n"
    path = tmp_path / f"{name}.gen"
    path.write_text(text)
    program = genrw.load(path, target="host", rules=[tmp_path])
    assert program.kernels()[0].name not in (name, "soft", "sum_float")
    assert program.run({"x": np.ones((4, 3), np.float32)})["s"].tolist() == [[3.0]] * 4


@pytest.mark.parametrize("target", ["host", "gfx942"])
@pytest.mark.parametrize(
    "name", ["a0", "a1", "args", "first", "last", "order", "memory", "gen_run", "gen_run0", "unit0"]
)
def test_kernels_may_be_named_like_what_starts_them(name: str, target: str) -> None:
    text = f"@module {name}\nx = @param:x -> float{{2, 300}}\ny = reduce_max[axes={{1}}](x)\n@return(y)\n"
    twice = (
        f"@module {name}\nx = @param:x -> float{{2, 300}}\ny = softmax[axis=0](x)\nz = softmax[axis=1](y)\n@return(z)\n"
    )
    x = np.random.default_rng(0).random((2, 300), np.float32)
    assert genrw.load(text, target=target).run({"x": x})["y"].ravel().tolist() == x.max(1).tolist()
    np.testing.assert_allclose(genrw.load(twice, target=target).run({"x": x})["z"].sum(1), 1, rtol=1e-5)


SOFT = """
/// Half of a value, by a function of its own.
op soft(x: float) -> float
  role pointwise
  means x * 0.5
  device QQQ
GEN_DEVICE float soft(float x) { return x * 0.5f; }
QQQ
  emit "soft({{x}})"

/// The sum, in a field that is called like a keyword.
monoid typeof
  carry errno: T, acc: T, int: T
  element errno = x, acc = 0, int = 1
  identity errno = 0, acc = 0, int = 0
  combine errno = a.errno + b.errno, acc = a.acc + b.acc, int = a.int + b.int
  finish errno
""".replace("QQQ", '"""')


@pytest.mark.parametrize("target", ["host", "gfx942"])
def test_monoids_and_fields_may_be_called_like_keywords(tmp_path: Path, target: str) -> None:
    (tmp_path / "mine.rw").write_text(SOFT)
    text = "x = @param:x -> float{4, 100}\nsoft = soft(x)\ny = reduce_typeof[axes={1}](soft)\n@return(y)\n"
    got = genrw.load(text, target=target, rules=[tmp_path]).run({"x": np.ones((4, 100), np.float32)})
    assert got["y"].tolist() == [[50.0]] * 4
