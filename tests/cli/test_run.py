"""`genrw run`: inputs, results, checks."""

from __future__ import annotations

import os
from pathlib import Path
from shutil import copytree

import ml_dtypes
import numpy as np
import pytest
from commands import SOFTMAX, Command

from genrw.authoring.rulesets import shipped_folder
from genrw.runner import _seconds

EXP = "x = @param:x -> {type}\ny = exp(x)\n@return(y)\n"


def save(path: Path, array: object) -> Path:
    np.save(path, np.asarray(array))
    return path


@pytest.mark.parametrize("target", ["host", "gfx942", "gfx1100"])
def test_check_on_the_host(genrw: Command, softmax: Path, target: str) -> None:
    result = genrw("run", softmax, "--check", "--target", target, "--order", 5)
    assert (result.status, result.err) == (0, "")
    assert "half{8, 100}" in result.out
    assert "  right\n" in result.out
    assert f"host, target {target}: ready in" in result.out


@pytest.mark.parametrize("stage", [None, "simplify", "gridwise", "lanewise", "final"])
def test_check_in_the_interpreter(genrw: Command, softmax: Path, stage: str | None) -> None:
    arguments = ["--stage", stage] if stage else []
    result = genrw("run", softmax, "--check", "--device", "interpret", "--target", "gfx942", *arguments)
    assert (result.status, result.err) == (0, "")


def test_a_wrong_result_is_found(genrw: Command, tmp_path: Path) -> None:
    rule = "stage simplify\n\nrule wrong\n  exp(x)\n  => neg(x)\n  replaces\n"
    (tmp_path / "wrong.rw").write_text(rule)
    result = genrw("run", "-", "--check", "--rules", tmp_path, stdin=EXP.replace("{type}", "float{4}"))
    assert result.status == 1
    assert "wrong" in result.out
    assert "is right (4 of 4 elements are wrong)" in result.out


def test_given_inputs_and_saved_results(genrw: Command, tmp_path: Path) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    given = save(tmp_path / "a.npy", np.asfortranarray(x))
    text = EXP.replace("{type}", "float{2, 3}")
    result = genrw("run", "-", "--input", f"x={given}", "--save", tmp_path / "out", stdin=text)
    assert result.status == 0
    assert os.listdir(tmp_path / "out") == ["y.npy"]
    np.testing.assert_allclose(np.load(tmp_path / "out" / "y.npy"), np.exp(x), rtol=1e-5)


def test_a_profile_shows_each_kernel(genrw: Command) -> None:
    """Twice the same product is one kernel, launched twice."""
    text = "x = @param:x -> float{64, 64}\ny = dot(x, x)\nz = dot(y, y)\n@return(z)\n"
    result = genrw("run", "-", "--profile", stdin=text)
    assert (result.status, result.err) == (0, "")
    table = [line.split() for line in result.out.splitlines()[2:-1]]
    heading, *kernels, everything = table
    assert heading == ["kernel", "launches", "µs", "part", "predicted", "µs"]
    assert sum(int(row[1]) for row in kernels) == int(everything[1]) == 2
    assert all(float(row[2]) > 0 and float(row[-1]) > 0 for row in kernels)
    assert sum(float(row[2]) for row in kernels) == pytest.approx(float(everything[2]), rel=0.02)
    assert sum(float(row[3]) for row in kernels) == pytest.approx(100, abs=0.2)


def test_the_interpreter_has_no_profile(genrw: Command, softmax: Path) -> None:
    result = genrw("run", softmax, "--profile", "--device", "interpret")
    assert (result.status, result.out) == (2, "")
    assert "the interpreter runs no kernels that could be timed" in result.err


def test_a_time_limit_is_a_number(genrw: Command, softmax: Path) -> None:
    assert "nan is no number" in genrw("run", softmax, "--seconds", "nan").err


def test_random_inputs_follow_from_the_seed(genrw: Command, softmax: Path, tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        assert genrw("run", softmax, "--seed", seed, "--save", tmp_path / name).status == 0
    a, b, c = (np.load(tmp_path / name / "y.npy") for name in "abc")
    assert np.array_equal(a, b)
    assert not np.array_equal(a, c)


@pytest.mark.parametrize("stored", [np.uint16, ml_dtypes.bfloat16])
def test_bf16_travels_by_its_bits(genrw: Command, tmp_path: Path, stored: type) -> None:
    x = np.arange(4).astype(ml_dtypes.bfloat16)
    given = save(tmp_path / "x.npy", x.view(stored))
    text = "x = @param:x -> bf16{4}\ny = add(x, x)\n@return(y)\n"
    assert genrw("run", "-", "--input", f"x={given}", "--save", tmp_path, stdin=text).status == 0
    y = np.load(tmp_path / "y.npy")
    assert y.dtype == np.uint16
    assert np.array_equal(y.view(ml_dtypes.bfloat16).astype(float), [0, 2, 4, 6])


def test_byte_order_does_not_matter(genrw: Command, tmp_path: Path) -> None:
    given = save(tmp_path / "x.npy", np.arange(4, dtype=">f4"))
    text = "x = @param:x -> float{4}\ny = add(x, x)\n@return(y)\n"
    result = genrw("run", "-", "--input", f"x={given}", stdin=text)
    assert "0 2 4 6" in result.out


def test_results_keep_their_names(genrw: Command, tmp_path: Path) -> None:
    text = "x = @param:x -> float{4}\ny = exp(x)\n@return(y, y, x)\n"
    result = genrw("run", "-", "--check", "--save", tmp_path, stdin=text)
    assert result.status == 0
    assert sorted(os.listdir(tmp_path)) == ["x.npy", "y.npy", "y_1.npy"]


def test_equal_values_keep_their_names(genrw: Command, tmp_path: Path) -> None:
    text = "a = @param:a -> float{4}\nb = @param:b -> float{4}\np = add(a, b)\nq = add(b, a)\n@return(q, p)\n"
    assert genrw("run", "-", "--check", "--save", tmp_path, stdin=text).status == 0
    assert sorted(os.listdir(tmp_path)) == ["p.npy", "q.npy"]


def test_parameters_may_be_called_as_they_like(genrw: Command) -> None:
    text = "d = @param:double -> float{4}\nm = @param:main -> float{4}\ny = sub(d, m)\n@return(y)\n"
    assert genrw("run", "-", "--check", stdin=text).status == 0


def test_a_parameter_may_be_called_as_the_output(genrw: Command) -> None:
    text = "z = @param:z_output -> float{4}\nz_output_ = neg(z)\ny = add(z_output_, 1)\n@return(y, z)\n"
    result = genrw("run", "-", "--check", stdin=text)
    assert (result.status, result.err) == (0, "")


@pytest.mark.slow
def test_rules_that_write_results_to_inputs_are_told(genrw: Command, tmp_path: Path) -> None:
    copytree(shipped_folder(), tmp_path / "rules")
    outputs = tmp_path / "rules" / "gridwise" / "outputs.rw"
    outputs.write_text(outputs.read_text().replace('unused(numbered("z_output", position), parameters)', '"x"'))
    text = "x = @param:x -> float{4}\ny = neg(x)\n@return(y)\n"
    result = genrw("lower", "-", "--no-shipped-rules", "--rules", tmp_path / "rules", "--stage", "gridwise", stdin=text)
    assert result.status == 2
    assert "error: a result of `main` is written to its parameter `x`" in result.err


def test_modules_share_inputs(genrw: Command) -> None:
    body = "x = @param:x -> float{4}\ny = exp(x)\n@return(y)\n"
    text = f"@module a\n{body}@module b\n{body.replace('exp', 'neg')}"
    result = genrw("run", "-", "--check", stdin=text)
    assert result.status == 0
    assert "y_1" in result.out
    result = genrw("run", "-", stdin=f"@module a\n{body}@module b\n{body.replace('4', '5')}")
    assert result.status == 2
    assert "the modules disagree about the type of parameter `x`" in result.err


def test_a_program_on_its_way_runs(genrw: Command, softmax: Path) -> None:
    text = genrw("lower", softmax, "--stage", "gridwise").out
    result = genrw("run", "-", "--check", stdin=text)
    assert result.status == 0
    assert "host, target gfx942" in result.out
    assert result.out.split("\n")[1].startswith("y ")


@pytest.mark.parametrize(
    ("contents", "said"),
    [
        (np.zeros((4, 4), np.float32), "holds float{4, 4}, but the input `x` is half{8, 100}"),
        (np.zeros((8, 100), np.float32), "holds float{8, 100}, but the input `x` is half{8, 100}"),
        (np.zeros((8, 100), np.complex64), "holds complex64{8, 100}, but the input `x`"),
        (b"", "holds no array: "),
        (b"junk", "holds no array\n  x = @param:x -> half{8, 100}\n"),
        (b"\x93NUMPY\x01\x00\xff\xff{", "holds no array: "),
        (b"\x93NUMPY\x01\x00\x46\x00{'descr': '<f2', 'fortran_order': False, 'shape': (1000000000000,)}   \n", ""),
    ],
)
def test_arrays_at_fault(genrw: Command, softmax: Path, tmp_path: Path, contents: object, said: str) -> None:
    path = tmp_path / "x.npy"
    if isinstance(contents, bytes):
        path.write_bytes(contents)
    else:
        save(path, contents)
    result = genrw("run", softmax, "--input", f"x={path}", "--save", tmp_path / "out")
    assert result.status == 2
    assert said in result.err
    assert "Traceback" not in result.err
    assert not (tmp_path / "out").exists()


def test_several_arrays_in_a_file(genrw: Command, softmax: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", a=np.zeros(3))
    result = genrw("run", softmax, "--input", f"x={tmp_path / 'x.npz'}")
    assert result.status == 2
    assert "holds several arrays" in result.err


def test_pickled_objects_are_not_loaded(genrw: Command, softmax: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([{}], dtype=object), allow_pickle=True)
    result = genrw("run", softmax, "--input", f"x={tmp_path / 'x.npy'}")
    assert result.status == 2
    assert "holds no array" in result.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--input", "x"], "the input 'x' names no file"),
        (["--dim", "N=4"], "only ONNX models have symbolic dimensions"),
        (["--input", "q=a.npy"], "the program has no input `q`"),
        (["--input", "x=a.npy", "--input", "x=b.npy"], "the input `x` is given twice"),
        (["--input", "x=/nowhere/a.npy"], "there is no file /nowhere/a.npy"),
        (["--input", "x=/"], "/ cannot be read: "),
        (["--device", "gpu"], "there is no device `gpu`"),
        (["--stage", "final"], "only the interpreter runs a program at a stage"),
        (["--device", "interpret", "--order", "3"], "it has no `--order`"),
        (["--device", "interpret", "--stage", "nowhere"], "there is no stage `nowhere`"),
        (["--seed", "-1"], "--seed"),
        (["--seed", "x"], "--seed"),
    ],
)
def test_calls_at_fault(genrw: Command, softmax: Path, arguments: list[str], said: str) -> None:
    result = genrw("run", softmax, *arguments)
    assert (result.status, result.out) == (2, "")
    assert said in result.err
    assert "Traceback" not in result.err


def test_results_that_cannot_be_saved(genrw: Command, softmax: Path) -> None:
    result = genrw("run", softmax, "--save", softmax)
    assert result.status == 2
    assert "cannot be written: File exists" in result.err
    assert softmax.read_text() == SOFTMAX


def test_a_missing_compiler_is_told(genrw: Command, softmax: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GENRW_HOST_COMPILER", "/nowhere/c++")
    result = genrw("run", softmax)
    assert result.status == 2
    assert "help: " in result.err


@pytest.mark.parametrize(
    ("duration", "shown"),
    [(0.0004116, "0.412 ms"), (0.25, "250 ms"), (0.9994, "999 ms"), (0.9996, "1.00 s"), (12.3, "12.30 s")],
)
def test_durations(duration: float, shown: str) -> None:
    assert _seconds(duration) == shown


@pytest.mark.few(1)
@pytest.mark.parametrize("target", ["host", "gfx942"])
@pytest.mark.parametrize(
    "clauses",
    [
        "identity 0\n  combine a + b\n  finish a / n",
        "carry total: T, count: int32\n  element total = x, count = 1\n  identity total = 0, count = 0\n"
        "  combine total = a.total + b.total, count = a.count + b.count\n  finish total / count",
        "element abs(x)\n  identity 0\n  combine max(a, b)",
    ],
    ids=["finished", "carried", "mapped"],
)
def test_a_monoid_that_does_not_say_how_wide_it_folds(
    genrw: Command, tmp_path: Path, clauses: str, target: str
) -> None:
    """Half has no arithmetic of its own, so it is folded in float."""
    rules = tmp_path / "mine"
    rules.mkdir()
    (rules / "mine.rw").write_text(f"monoid mine where T: real\n  {clauses}\n")
    (tmp_path / "x.gen").write_text("x = @param:x -> half{8, 160}\na = reduce_mine[axes={1}](x)\n@return(a)\n")
    ran = genrw("run", str(tmp_path / "x.gen"), "--rules", str(rules), "--check", "--target", target)
    assert ran.status == 0, ran.err
    assert "right" in ran.out


@pytest.mark.parametrize("how", [(), ("--check",), ("--device", "interpret")])
@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("x = @param:x -> float{200000000000000}\ny = reduce_sum[axes={0}](x)\n@return(y)\n", "<stdin>:1:1: "),
        ("x = @param:x -> {}\ny = multibroadcast[out_lens={200000000000000}](x)\n@return(x, y)\n", "<stdin>:2:1: "),
        ("c = @literal{1} -> half{200000000000000}\n@return(c)\n", "<stdin>:1:1: "),
    ],
)
def test_what_takes_more_memory_than_there_is_is_refused_where_it_is(
    genrw: Command, text: str, place: str, how: tuple[str, ...]
) -> None:
    result = genrw("run", "-", *how, stdin=text)
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith(f"{place}error: inputs and results take ")
    assert "^^^" in result.err
    assert "  help: run it with shorter lengths" in result.err
