"""Kernels over the device header compiled for AMD GPUs, which needs no GPU."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from device_kernels import DTYPES, MONOIDS, math_kernel, row_sum_kernel

from genrw.codegen.runtime import amd
from genrw.codegen.runtime.amd import CodeObject, compile_amd, read_reports
from genrw.grammar.diagnostics import GenrwError

TARGETS = {"gfx90a": 64, "gfx942": 64, "gfx950": 64, "gfx1100": 32, "gfx1201": 32}


def everything(wave: int) -> str:
    """Every part of the device header, in kernels of one source."""
    widths = "\n".join(
        f"    y[i] += gen::dpp_reduce<sum, {1 << w}>(x[i]);\n"
        f"    y[i] += gen::dpp_reduce<argmax, {1 << w}>({{x[i], i}}).value;\n"
        f"    if (gen::dpp_reduce<every, {1 << w}>(x[i] > 0)) y[i] += gen::dpp_reduce<sum8, {1 << w}>(1);"
        for w in range(wave.bit_length())
    )
    conversions = "\n".join(
        f"    {{ {t} v = gen::convert<{t}>(x[i]); y[i] += gen::convert<float>(v); }}" for t in DTYPES
    )
    return f"""{row_sum_kernel(256, 4)}
GEN_CONSTANT gen::half weights[4] = {{gen::half(1.0f), gen::half(2.0f), gen::half(0.5f), gen::half(-1.0f)}};
GEN_KERNEL(128) lanes(const float* __restrict__ x, float* __restrict__ y)
{{
    const int i = gen::global_id();
{widths}
}}
GEN_KERNEL(64) types(const float* __restrict__ x, float* __restrict__ y)
{{
    const int i = gen::global_id();
{conversions}
    const float c = gen::floor_mod(i, 7) * gen::pow(x[i], 3.0f);
    y[i] = gen::max(y[i], float(weights[i % 4]) + gen::fma(x[i], y[i], c));
}}
GEN_KERNEL(64) vectors(const gen::half* __restrict__ x, gen::bf16* __restrict__ y, gen::int64 n)
{{
    const gen::int64 first = gen::int64(gen::global_id()) * 8;
    const auto inside = gen::chunks_below<512, 8>(first, n);
    const auto v = gen::strided_load<16, 512, 8>(x, first, inside, gen::half(0.0f));
    gen::array<gen::bf16, 16> out;
    GEN_UNROLL
    for (int i = 0; i < 16; i++) out[i] = gen::bf16(float(v[i]));
    gen::strided_store<16, 512, 8>(y, first, out, inside);
    gen::barrier();
    gen::vec_store(y, first, gen::vec_load<4>(y, first + 4));
}}
{math_kernel("float", "floats", 64)}
{math_kernel("double", "doubles", 64)}
"""


@pytest.fixture(scope="module", params=TARGETS)
def compiled(request: pytest.FixtureRequest) -> tuple[str, CodeObject]:
    arch: str = request.param
    return arch, compile_amd(everything(TARGETS[arch]), arch, TARGETS[arch])


def kernel_text(code: CodeObject, name: str) -> str:
    """The instructions of one kernel."""
    start = code.assembly.index(f"\n{name}:")
    return code.assembly[start : code.assembly.index(".section", start)]


def test_reports(compiled: tuple[str, CodeObject]) -> None:
    arch, code = compiled
    assert set(code.kernels) == {"rows", "lanes", "types", "vectors", "floats", "doubles"}
    for name, report in code.kernels.items():
        assert report.scratch_bytes == report.vgpr_spills == report.sgpr_spills == 0, name
        assert report.wavefront_size == TARGETS[arch]
        assert 3 <= report.vgprs <= 128, name
        assert 4 <= report.sgprs <= 108, name
        assert report.code_bytes > 100
    waves = 256 // TARGETS[arch]
    assert code.kernels["rows"].lds_bytes == waves * (4 + 16)
    assert code.kernels["lanes"].lds_bytes == 0
    assert code.kernels["vectors"].kernarg_bytes >= 24
    assert read_reports(code.blob) == code.kernels


def test_reductions_use_data_parallel_primitives(compiled: tuple[str, CodeObject]) -> None:
    arch, code = compiled
    text = kernel_text(code, "rows")
    assert "v_add_f32_dpp" in text
    assert ("row_bcast:31" in text) == ("permlanex16" not in text) == (TARGETS[arch] == 64)
    assert "bpermute" not in text


def test_vectors_are_one_access(compiled: tuple[str, CodeObject]) -> None:
    arch, code = compiled
    text = kernel_text(code, "vectors")
    wide = "dwordx4" if arch.startswith("gfx9") else "b128"
    assert len(re.findall(rf"global_store_{wide}", text)) == 2
    first, second = (match.start() for match in re.finditer(rf"global_load_{wide}", text))
    assert "wait" not in text[first:second]  # both loads are under way at once


def test_nothing_is_contracted() -> None:
    source = """
GEN_KERNEL(64) plain(const float* x, float* y) { const int i = gen::local_id(); y[i] = x[0] * x[i] + x[1]; }
GEN_KERNEL(64) fused(const float* x, float* y)
{
    const int i = gen::local_id();
    y[i] = gen::fma(x[0], x[i], x[1]);
}
"""
    code = compile_amd(source, "gfx942", 64)
    fused = re.compile(r"v_(pk_)?(fma|fmac|mad|mac)[a-z]*_")
    assert not fused.search(kernel_text(code, "plain"))
    assert fused.search(kernel_text(code, "fused"))


def test_wave64_on_rdna() -> None:
    code = compile_amd(row_sum_kernel(256, 4), "gfx1100", 64)
    assert code.kernels["rows"].wavefront_size == 64
    assert code.kernels["rows"].lds_bytes == 4 * (4 + 16)


@pytest.mark.parametrize(("arch", "wave"), [("gfx942", 32), ("gfx1100", 1)])
def test_wrong_wave_size(arch: str, wave: int) -> None:
    with pytest.raises(GenrwError, match=f"{arch} has waves of"):
        compile_amd(MONOIDS, arch, wave)


def test_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GENRW_CACHE_DIR", str(tmp_path))
    source = "GEN_KERNEL(64) one(float* x) { x[gen::global_id()] = 1; }"
    first = compile_amd(source, "gfx942", 64)
    (entry,) = (tmp_path / "amd").iterdir()
    monkeypatch.setattr(amd, "_compile", lambda *_: pytest.fail("it is in the cache"))
    assert compile_amd(source, "gfx942", 64) == first
    monkeypatch.undo()
    monkeypatch.setenv("GENRW_CACHE_DIR", str(tmp_path))
    entry.write_bytes(entry.read_bytes()[:-1])
    assert compile_amd(source, "gfx942", 64).kernels == first.kernels
    assert compile_amd(source, "gfx1100", 32, cache=False).kernels["one"].wavefront_size == 32
    assert len(list((tmp_path / "amd").iterdir())) == 1


def test_undefined_symbols_do_not_link() -> None:
    source = """
__attribute__((device)) float elsewhere(float);
GEN_KERNEL(64) lonely(float* x) { x[0] = elsewhere(x[0]); }
"""
    with pytest.raises(GenrwError, match=r"kernel lonely does not compile(.|\n)*undefined"):
        compile_amd(source, "gfx942", 64, "lonely")


def test_error_names_kernel_and_line() -> None:
    source = '#include "gen.hpp"\n\nGEN_KERNEL(64) wrong(float* x) { x[0] = nothing; }\n'
    with pytest.raises(GenrwError, match=r"kernel wrong does not compile(.|\n)*wrong\.hip:3"):
        compile_amd(source, "gfx942", 64, "wrong")
