"""The device header and printed kernels compiled for NVIDIA GPUs by NVRTC, which needs no GPU."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from breadth import first_quick
from device_kernels import suite_kernels, together
from rule_programs import RULE_PROGRAMS
from support import load
from test_amd_objects import everything

import genrw
from genrw.codegen.runtime.cuda import compile_cuda, compile_ptx
from genrw.codegen.runtime.nvidia import read_reports
from genrw.grammar.diagnostics import GenrwError

try:
    from cuda.bindings import nvrtc

    nvrtc.nvrtcVersion()
except (ImportError, RuntimeError):
    pytest.skip("there is no NVRTC, which the extra `cuda` installs", allow_module_level=True)

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def ptx() -> str:
    return compile_ptx(everything(32), "sm_90", 32, "everything")


def kernel_text(ptx: str, name: str) -> str:
    """The instructions of one kernel."""
    start = ptx.index(f".entry {name}(")
    end = ptx.find(".entry ", start + 1)
    return ptx[start:] if end < 0 else ptx[start:end]


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_code_objects(arch: str) -> None:
    image = compile_cuda(everything(32), arch, 32, "everything")
    assert image.startswith(b"\x7fELF")
    for name in ("rows", "lanes", "types", "vectors", "floats", "doubles"):
        assert b".text.%b\0" % name.encode() in image


def test_the_suite() -> None:
    kernels = suite_kernels("sm_90")
    text = compile_ptx(together([kernel for _, kernel in kernels]), "sm_90", 32, "suite")
    assert text.count(".entry k") == len(kernels)


FOR_SM_90 = [name for name, (_, target, _) in RULE_PROGRAMS.items() if target == "sm_90"]


@pytest.mark.parametrize("name", first_quick(FOR_SM_90))
def test_pinned_programs(name: str) -> None:
    """Copying waves, workgroups that take turns, attention, digits: what the CPU runs is another text."""
    text, target, schedule = RULE_PROGRAMS[name]
    for kernel in load(text, target, schedule=schedule).kernels():
        assert f".entry {kernel.name}(" in compile_ptx(kernel.text, target, kernel.wave_size, kernel.name)


def test_reductions_shuffle(ptx: str) -> None:
    text = kernel_text(ptx, "rows")
    assert len(re.findall(r"shfl\.sync\.bfly", text)) >= 5
    assert "st.shared" in text


def test_vectors_are_one_access(ptx: str) -> None:
    text = kernel_text(ptx, "vectors")
    assert len(re.findall(r"ld\.global\.nc\.v4\.[buf]32", text)) == 2
    assert len(re.findall(r"st\.global\.v4\.[buf]32", text)) == 2


def test_types_are_converted_by_the_gpu(ptx: str) -> None:
    text = kernel_text(ptx, "types")
    assert "cvt.rn.bf16.f32" in text
    assert "cvt.rn.f16.f32" in text


def test_nothing_is_contracted() -> None:
    source = """
GEN_KERNEL(64) plain(const float* x, float* y) { const int i = gen::local_id(); y[i] = x[0] * x[i] + x[1]; }
GEN_KERNEL(64) fused(const float* x, float* y) { const int i = gen::local_id(); y[i] = gen::fma(x[0], x[i], x[1]); }
"""
    text = compile_ptx(source, "sm_90", 32)
    assert "fma.rn.f32" not in kernel_text(text, "plain")
    assert "fma.rn.f32" in kernel_text(text, "fused")


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.gen")), ids=lambda p: p.stem)
def test_examples(path: Path) -> None:
    for kernel in genrw.load(path, target="sm_90").kernels():
        assert compile_cuda(kernel.text, "sm_90", kernel.wave_size, kernel.name).startswith(b"\x7fELF")


def test_softmax_reads_and_writes_16_bytes_at_a_time() -> None:
    (kernel,) = genrw.load(EXAMPLES / "softmax.gen", target="sm_90").kernels()
    text = compile_ptx(kernel.text, "sm_90", kernel.wave_size, kernel.name)
    loads = re.findall(r"ld\.global\S*", text)
    stores = re.findall(r"st\.global\S*", text)
    assert loads
    assert stores
    assert {".v4." in access for access in loads + stores} == {True}


def test_kernels_wait_before_they_read() -> None:
    """The stream's previous kernel may still run when one begins."""
    kernels = [kernel for _, kernel in suite_kernels("sm_90")]
    assert all(kernel.waits for kernel in kernels)
    text = compile_ptx(together(kernels), "sm_90", 32, "suite")
    for entry in text.split(".entry ")[1:]:
        assert entry.index("griddepcontrol.wait") < min(m.start() for m in re.finditer(r"\b(?:ld|st)\.global", entry))


def test_older_gpus_do_not_wait() -> None:
    (kernel,) = genrw.load(EXAMPLES / "softmax.gen", target="sm_90").kernels()
    assert "griddepcontrol" not in compile_ptx(kernel.text, "sm_80", 32)


def test_halves_are_computed_with_two_at_a_time() -> None:
    kernels = {case: kernel for case, kernel in suite_kernels("sm_90") if "f16" in case}
    fused = compile_ptx(kernels["pw_relu_fma_f16_64M"].text, "sm_90", 32)
    assert len(re.findall(r"fma\.rn\.f16x2", fused)) == len(re.findall(r"max\.NaN\.f16x2", fused)) > 0
    assert "cvt.f32.f16" not in fused
    rows = kernels["max_last_f16_8192x8192"]
    greatest = compile_ptx(rows.text, "sm_90", 32)
    assert rows.groups == 8192
    assert len(re.findall(r"max\.NaN\.f16x2", greatest)) == 8192 // rows.block // 2
    assert len(re.findall(r"cvt\.f32\.f16", greatest)) == 1


def test_rows_are_left_to_memory_that_the_launch_asks_for() -> None:
    """Registers hold 48 of a lane's 128 elements: 24 of 64 registers, and nothing is spilled to make room."""
    rows = (EXAMPLES / "softmax.gen").read_text(encoding="utf-8").replace("half{8192, 4096}", "half{2048, 131072}")
    (kernel,) = genrw.load(rows, target="sm_90").kernels()
    assert "GEN_KERNEL_RESIDENT(1024, 1)\n" in kernel.text
    assert "gen::strided_load<128, 8192, 8, 48, 1024>(x, base, x_in_rest)" in kernel.text
    assert kernel.dynamic_lds_bytes == 2 * 1024 * 80
    assert kernel.lds_bytes == kernel.dynamic_lds_bytes + 2 * 32 * 4
    text = compile_ptx(kernel.text, "sm_90", 32)
    assert ".extern .shared" in text
    assert ".minnctapersm 1" in text
    assert len(re.findall(r"ld\.shared\.v4\.[bu]32", text)) == 80 // 8  # by the maximum, as pairs
    assert len(re.findall(r"ld\.shared\.[bu]32", text)) == 2 * 80 // 2  # by the sum and the result, as floats
    assert ".local" not in text


def test_error_names_kernel_and_line() -> None:
    source = '#include "gen.hpp"\n\nGEN_KERNEL(64) wrong(float* x) { x[0] = nothing; }\n'
    with pytest.raises(
        GenrwError, match=r"kernel wrong does not compile: NVRTC_ERROR_COMPILATION(.|\n)*wrong\.hip\(3\)"
    ):
        compile_cuda(source, "sm_90", 32, "wrong")


@pytest.mark.parametrize("turned", ["", "transpose[permutation={0, 2, 1}]"])
@pytest.mark.parametrize(("batches", "columns"), [(3, 128), (3, 192), (3, 256), (300, 128)])
def test_boxes_are_copied_by_the_gpus_engine(batches: int, columns: int, turned: str) -> None:
    """By waves that copy while others multiply, for one workgroup's tile after the other if there are many."""
    second = f"{batches}, 136, 264" if turned else f"{batches}, 264, 136"
    text = f"x = @param:x -> half{{{batches}, 8, 264}}\nv = @param:w -> half{{{second}}}\n"
    text += f"w = {turned}(v)\nz = dot(x, w)\n@return(z)" if turned else "z = dot(x, v)\n@return(z)"
    schedule = {"algo": "matrix", "instruction": f"wgmma_m64n{columns}k16_f16"}
    (kernel,) = genrw.load(text, target="sm_90", schedule=schedule).kernels()
    made = compile_ptx(kernel.text, "sm_90", 32, kernel.name)
    assert "cp.async.bulk.tensor.3d" in made
    assert "mbarrier.try_wait" in made
    assert read_reports(compile_cuda(kernel.text, "sm_90", 32, kernel.name))[kernel.name].scratch_bytes == 0
