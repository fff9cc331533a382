"""Kernels in a process of their own: what they do to it is told, and nothing happens to this one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import genrw
from genrw.codegen.runtime.devices import find_device
from genrw.codegen.runtime.host_sequence import HostSequence
from genrw.codegen.runtime.isolated import run_apart
from genrw.engine.interpret.inputs import random_inputs
from genrw.grammar.diagnostics import GenrwError
from genrw.main import execute

SUMS = "x = @param:x -> float{4, 61}\ny = reduce_sum[axes={1}](x)\n@return(y)\n"
SHIFTED = """\
stage final

/// The elements that lie elsewhere.
rule elsewhere
  vector_read[size, stride, vector](x, base)
  => vector_read[size=size, stride=stride, vector=vector](x, base + SHIFT)
  when base.lo >= 0 and base.hi < 200
  replaces
"""
NEVER = """\
/// Not what it says.
op never(x: float) -> float
  role pointwise
  means x
  emit "gen::never({{x}})"
  device \'\'\'
namespace gen {
GEN_DEVICE float never(float x)
{
    float y = x;
    while (y == y) y = y * 0.5f;
    return y;
}
}
\'\'\'
""".replace("'''", '"' * 3)


def run(tmp_path: Path, rules: str, program: str, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    """The status and what is said of what went wrong."""
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "r.rw").write_text(rules)
    path = tmp_path / "p.gen"
    path.write_text(program)
    return execute(["run", str(path), "--rules", str(mine), *options]), capsys.readouterr().err


@pytest.mark.parametrize("shift", ["20", "1000000", "-1000"])
def test_a_rule_that_reaches_outside(tmp_path: Path, capsys: pytest.CaptureFixture[str], shift: str) -> None:
    status, err = run(tmp_path, SHIFTED.replace("SHIFT", shift), SUMS, capsys, "--check")
    assert status == 2
    assert err.startswith("error: kernel p ended its process by SIGSEGV, segmentation fault\n  help: a rule is wrong: ")


def test_the_interpreter_says_what_happens(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--device", "interpret", "--stage", "final")
    status, err = run(tmp_path, SHIFTED.replace("SHIFT", "20"), SUMS, capsys, *options)
    assert status == 2
    assert "error: `vector_read`: reads offset 244 of x" in err


def test_a_kernel_without_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = "x = @param:x -> float{61}\ny = never(x)\n@return(y)\n"
    status, err = run(tmp_path, NEVER, program, capsys, "--seconds", "0.5")
    assert (status, err) == (2, "error: kernel p took more than 0.5 s\n  help: allow more with `--seconds`\n")


def sequence(text: str, target: str = "host") -> HostSequence:
    prepared = find_device("host").prepare(genrw.load(text, target=target))
    assert isinstance(prepared, HostSequence)
    return prepared


@pytest.mark.parametrize(
    "text",
    [
        "x = @param:x -> bf16{8, 33}\ny = exp(x)\n@return(y, x)\n",
        "x = @param:x -> float{8, 32}\na = reduce_sum[axes={0}](x)\nb = mul(x, a)\ny = reduce_max[axes={1}](b)\n@return(y, a)\n",
        "x = @param:x -> int8{5, 7}, {1, 5}\nt = transpose[permutation={1, 0}](x)\ny = greater(t, 3)\n@return(y)\n",
        "x = @param:x -> double{0, 3}\ny = neg(x)\ns = reduce_sum[axes={0}](x)\n@return(y, s)\n",
        "x = @param:x -> half\ny = add(x, x)\n@return(y)\n",
        # memory that a value of another size has later
        "x = @param:x -> half{15, 7}\nw = @param:w -> half{7, 15}\nv = @param:v -> half{15, 40}\na = dot(x, w)\n"
        "p = softmax[axis=1](a)\nb = dot(p, v)\ny = layernorm[axes={0}](b)\n@return(y)\n",
    ],
)
def test_results_are_the_same(text: str) -> None:
    prepared = sequence(text)
    inputs = random_inputs(prepared.program.origin[0], prepared.program.library, 0)
    want = prepared(inputs)
    found, seconds = run_apart(prepared, inputs, 60.0, order=7)
    assert seconds < 60
    assert list(found) == list(want)
    for name, array in want.items():
        assert found[name].dtype == array.dtype
        assert (found[name].shape, found[name].tobytes()) == (array.shape, array.tobytes())


def test_a_write_behind_an_array() -> None:
    """Too near for the pages to show it."""
    prepared = sequence("x = @param:x -> float{61}\ny = neg(x)\n@return(y)\n")
    kernel = prepared.kernels[0].kernel
    whole = kernel.launch

    def launch(arrays: list[np.ndarray], *arguments: object, **settings: object) -> None:
        whole(arrays, *arguments, **settings)  # type: ignore[arg-type]
        np.lib.stride_tricks.as_strided(arrays[1], (62,), (4,), writeable=True)[61] = 0

    object.__setattr__(kernel, "launch", launch)
    with pytest.raises(GenrwError, match=r"kernel \w+ wrote past the end of `\w+`"):
        run_apart(prepared, {"x": np.ones(61, np.float32)}, 60.0)


def test_what_is_missing_is_told() -> None:
    with pytest.raises(GenrwError, match="input `x` is missing"):
        run_apart(sequence("x = @param:x -> float{4}\ny = neg(x)\n@return(y)\n"), {}, 60.0)
