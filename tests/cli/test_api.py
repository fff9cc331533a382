"""The Python API."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import SOFTMAX
from host_gpu import HostGpu

import genrw

ROOT = Path(__file__).parents[2]
ADD = "x = @param:x -> float{2, 3}\ny = @param:y -> float{3}\nz = add(x, y)\n@return(z)\n"
X = np.arange(6, dtype=np.float32).reshape(2, 3)
Y = np.arange(3, dtype=np.float32)


def test_lowering_by_the_shipped_rules_does_without_numpy() -> None:
    """Its import would take a tenth of the command's time."""
    lowering = "genrw.lower('x = @param:x -> float{64, 64}\\ny = reduce_sum[axes={1}](x)\\n@return(y)\\n')"
    code = (
        f"import genrw, sys; {lowering}; print([m for m in sys.modules if m in ('numpy', 'genrw.engine.egraph.stage')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['genrw.engine.egraph.stage']\n"


def test_import_loads_nothing_heavy() -> None:
    code = "import genrw, sys; print([m for m in sys.modules if m in ('numpy', 'lark', 'genrw.engine.egraph.stage')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.slow
def test_it_runs_in_a_checkout(tmp_path: Path) -> None:
    """Python looks for modules in the folder where it runs before it looks among those that are installed."""
    code = (
        f"import genrw; print(genrw.__file__, genrw.compile({str(ROOT / 'examples' / 'pad_mul_reduce.gen')!r}).inputs)"
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}

    def found(folder: Path) -> str:
        command = [sys.executable, "-c", code]
        return subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder, env=environment).stdout

    assert found(ROOT) == found(tmp_path)
    assert "('x', 'w')" in found(ROOT)


def test_the_package_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "genrw", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("genrw ")


def test_all_names_are_there() -> None:
    assert set(genrw.__all__) <= set(dir(genrw))
    for name in genrw.__all__:
        assert getattr(genrw, name) is not None
    with pytest.raises(AttributeError, match="frobnicate"):
        genrw.frobnicate  # noqa: B018


def test_load_takes_a_path_or_a_text(tmp_path: Path) -> None:
    path = tmp_path / "a.gen"
    path.write_text(ADD)
    assert genrw.load(path).text == genrw.load(str(path)).text == genrw.load(ADD).text == ADD
    with pytest.raises(genrw.GenrwError, match="there is no file"):
        genrw.load(tmp_path / "b.gen")


def test_lower() -> None:
    assert genrw.lower(ADD, "gridwise").startswith("@module main [stage=gridwise, target=gfx942")
    assert genrw.lower(ADD) == genrw.lower(ADD, "final") == str(genrw.load(ADD).lower("final"))
    assert "target=host" in genrw.lower(ADD, target="host")
    assert "vector=1," in genrw.lower(ADD, "schedule", schedule={"vector": 1})


def test_settings_of_a_call_win_over_those_of_load() -> None:
    program = genrw.load(ADD)
    assert "target=gfx1100" in genrw.lower(program, target="gfx1100")
    assert genrw.compile(program).program.options.target == "host"
    assert genrw.compile(program, "gfx1100").program.options.target == "gfx1100"
    chosen = genrw.load(ADD, target="gfx90a")
    assert genrw.compile(chosen).program.options.target == "gfx90a"
    with pytest.raises(genrw.GenrwError, match="was read already"):
        genrw.lower(program, rules=["/nowhere"])


def test_emit() -> None:
    assert "GEN_KERNEL(256)" in genrw.emit(ADD, target="gfx942")


def test_compile_gives_a_function() -> None:
    add = genrw.compile(ADD)
    want = X + Y
    assert np.array_equal(add(X, Y), want)
    assert np.array_equal(add(y=Y, x=X), want)
    assert np.array_equal(add(X, y=Y), want)
    assert (add.inputs, add.results) == (("x", "y"), ("z",))
    assert "GEN_KERNEL" in add.source
    assert [a["buffer"] for a in add.launch["kernels"][0]["arguments"]] == ["x", "y", "z_output"]
    assert repr(add) == "<genrw program x, y -> z>"


@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "sm_90"])
def test_compile_for_a_gpu_emulates_it(target: str) -> None:
    softmax = genrw.compile(SOFTMAX, target)
    x = np.random.default_rng(0).normal(size=(8, 100)).astype(np.float16)
    np.testing.assert_allclose(softmax(x).sum(axis=1), 1, rtol=1e-2)


def test_compile_for_a_device(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    gpu = HostGpu()
    monkeypatch.setenv("GENRW_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("genrw.codegen.runtime.devices.open_gpu", lambda *_: gpu)
    add = genrw.compile(ADD, device="hip:1")
    assert add.program.options.target == gpu.arch
    assert np.array_equal(add(X, Y), X + Y)
    assert np.array_equal(add(X, y=Y, stream=7), X + Y)
    assert gpu.finished == [0, 7]
    with pytest.raises(genrw.GenrwError, match="kernels for sm_90 do not run on the device hip"):
        genrw.compile(ADD, "sm_90", device="hip")


def test_a_device_has_settings() -> None:
    assert np.array_equal(genrw.compile(ADD)(X, Y, threads=1, order=3), X + Y)
    precise = genrw.compile(ADD, device="interpret")(X, Y, precise=True)
    assert precise.dtype == np.float64
    with pytest.raises(genrw.GenrwError, match="the program has no input `stream`"):
        genrw.compile(ADD)(X, Y, stream=7)
    for unknown in ("gpu", None):
        with pytest.raises(genrw.GenrwError, match=f"there is no device `{unknown}`"):
            genrw.compile(ADD, device=unknown)  # type: ignore[arg-type]


def test_parameters_win_over_settings() -> None:
    text = ADD.replace("x", "threads")
    assert np.array_equal(genrw.compile(text)(threads=X, y=Y), X + Y)


def test_a_parameter_may_be_called_self() -> None:
    assert np.array_equal(genrw.compile(ADD.replace("x", "self"))(self=X, y=Y), X + Y)


def test_settings_that_there_are_not() -> None:
    """Of a call, of a program that is loaded already, and of another kind."""
    with pytest.raises(genrw.GenrwError, match="the device `host` has no setting `stage`"):
        genrw.load(ADD).run({"x": X, "y": Y}, stage="final")
    with pytest.raises(genrw.GenrwError, match="the device `interpret` has no setting `threads`"):
        genrw.compile(ADD, device="interpret").run({"x": X, "y": Y}, threads=1)
    with pytest.raises(TypeError, match="there is no setting `strictly`"):
        genrw.lower(genrw.load(ADD), strictly=True)
    with pytest.raises(genrw.GenrwError, match="`dims` is too late"):
        genrw.lower(genrw.load(ADD), dims={"n": 3})
    for program in (ADD, genrw.load(ADD)):
        with pytest.raises(genrw.GenrwError, match="the schedule is 'algo=flat'"):
            genrw.lower(program, schedule="algo=flat")
        with pytest.raises(genrw.GenrwError, match="the schedule entry `algo` is None"):
            genrw.lower(program, schedule={"algo": None})
        with pytest.raises(genrw.GenrwError, match=r"no legal schedule of module `main` has sides=\{1, 2\}"):
            genrw.lower(program, schedule={"sides": [1, 2]})


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"strict": "no"}, "`strict` is 'no'"),
        ({"trust_rules": "no"}, "`trust_rules` is 'no'"),
        ({"shipped": None}, "`shipped` is None"),
        ({"target": ["gfx942"]}, r"`target` is \['gfx942'\]"),
        ({"policy": None}, "`policy` is None"),
        ({"plan": 3}, "`plan` is 3"),
        ({"rules": ""}, "an empty text names no file or folder"),
        ({"rules": ["", "mine"]}, "an empty text names no file or folder"),
        ({"rules": None}, "None names no file or folder"),
        ({"rules": b"mine"}, "b'mine' names no file or folder"),
    ],
)
def test_settings_of_other_types(settings: dict[str, Any], said: str) -> None:
    """What would be taken for something else: a text for true, an unset variable for the folder at hand."""
    with pytest.raises(genrw.GenrwError, match=f"{said}\n  help: "):
        genrw.load(ADD, **settings)
    if not settings.keys() & {"rules", "trust_rules", "shipped"}:
        with pytest.raises(genrw.GenrwError, match=f"{said}\n  help: "):
            genrw.lower(genrw.load(ADD), **settings)


@pytest.mark.parametrize(("given", "said"), [("", "an empty text"), (None, "None"), (b"a.gen", "b'a.gen'")])
def test_programs_are_paths_or_texts(given: Any, said: str) -> None:
    with pytest.raises(genrw.GenrwError, match=f"{said} names no file or folder\n  help: give the path of a program"):
        genrw.compile(given)


def test_inputs_have_names() -> None:
    for run in (genrw.load(ADD).run, genrw.compile(ADD).run):
        with pytest.raises(genrw.GenrwError, match="the inputs are a list\n  help: give arrays by name"):
            run([X, Y])  # type: ignore[arg-type]


def test_arrays_may_lie_in_any_layout() -> None:
    add = genrw.compile(ADD)
    spread = np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2]
    for x in (np.asfortranarray(X), spread, X[::-1][::-1]):
        assert np.array_equal(add(x, Y), X + Y)


def test_results_come_in_order() -> None:
    text = "x = @param:x -> float{3}\ny = neg(x)\n@return(y, x, y)\n"
    results = genrw.compile(text)(Y)
    assert isinstance(results, tuple)
    assert [r.tolist() for r in results] == [(-Y).tolist(), Y.tolist(), (-Y).tolist()]


@pytest.mark.parametrize(
    ("arrays", "named", "said"),
    [
        ((X,), {}, "the input `y` is missing"),
        ((X, Y, Y), {}, "the program takes 2 arrays, not 3"),
        ((X, Y), {"y": Y}, "the input `y` is given twice"),
        ((X, Y), {"q": Y}, "the program has no input `q`"),
        ((X, X), {}, r"shape \[2, 3\], not \[3\]"),
        ((X, Y.astype(np.float64)), {}, "is float64, not float"),
        ((X, "text"), {}, "input `y` is"),
        ((X, [[1.0], [2.0, 3.0]]), {}, "input `y` is no array"),
        ((X, Y.astype(Y.dtype.newbyteorder())), {}, "input `y`'s elements are in the other order"),
        ((X, np.ma.masked_equal(Y, 1)), {}, "input `y` is a masked array, and programs see no masks"),
        ((X, Y), {"threads": 0}, "`threads` is 0"),
        ((X, Y), {"threads": "two"}, "`threads` is 'two'"),
        ((X, Y), {"order": -1}, "`order` is -1"),
    ],
)
def test_wrong_arguments(arrays: tuple[Any, ...], named: dict[str, Any], said: str) -> None:
    with pytest.raises(genrw.GenrwError, match=said) as told:
        genrw.compile(ADD)(*arrays, **named)
    assert "\n  help: " in str(told.value)


@pytest.mark.parametrize("device", ["host", "interpret"])
def test_no_mask_is_ignored(device: str) -> None:
    with pytest.raises(genrw.GenrwError, match=r"input `x` is a masked array, .*\n  help: .*x\.filled\(0\)"):
        genrw.load(ADD).run({"x": np.ma.array(X), "y": Y}, device)


@pytest.mark.parametrize(("device", "stage"), [("host", None), ("interpret", None), ("interpret", "final")])
@pytest.mark.parametrize(
    ("given", "said"),
    [
        (np.ones((3, 6), np.float32), "shape|lens"),
        (np.ones(24, np.float32), "shape|lens"),
        (np.ma.masked_equal(np.ones((4, 6), np.float32), 1), "masked"),
        ([[1.0] * 6] * 4, "double|float64"),
        ("text", "U4|str"),
    ],
)
def test_inputs_are_those_that_were_declared_at_every_stage(
    device: str, given: object, said: str, stage: str | None
) -> None:
    """The first stage may have made something else of how an input lies in memory."""
    program = genrw.load("x = @param:x -> float{4, 6}, {1, 4}\ny = reduce_sum[axes={1}](x)\n@return(y)\n")
    lowered = program.lower(stage) if stage else program
    with pytest.raises(genrw.GenrwError, match=said):
        lowered.run({"x": given}, device)


@pytest.mark.parametrize("strides", ["{0, 1}", "{1, 1}", "{3, 1}", "{0, 0}"])
@pytest.mark.parametrize("device", ["host", "interpret"])
def test_arrays_repeat_where_strides_do(device: str, strides: str) -> None:
    program = genrw.load(f"x = @param:x -> float{{3, 4}}, {strides}\ny = neg(x)\n@return(y)\n")
    steps = [4 * int(s) for s in strides.strip("{}").split(",")]
    x = np.lib.stride_tricks.as_strided(np.arange(12, dtype=np.float32), (3, 4), steps).copy()
    assert np.array_equal(program.run({"x": x}, device)["y"], -x)
    x[0, 3] = np.nan  # what is no number equals not even itself
    with pytest.raises(genrw.GenrwError, match=rf"the strides \{strides} of input `x`.*\n  help: .*repeats"):
        program.run({"x": x}, device)


@pytest.mark.slow
def test_threads_each_have_their_own_engine() -> None:
    results: list[Any] = []

    def work() -> None:
        results.append(genrw.compile(ADD)(X, Y))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(r, X + Y) for r in results)
    assert len(results) == 3


def test_problems_come_together() -> None:
    with pytest.raises(genrw.GenrwError) as raised:
        genrw.load("x = @param:x -> float{3}\na = adx(x)\nb = neg(q)\n@return(a, b)\n")
    assert [d.message for d in raised.value.diagnostics] == ["unknown operator `adx`", "`q` is not defined"]
    assert all(isinstance(d, genrw.Diagnostic) for d in raised.value.diagnostics)


def test_a_program_has_no_symbolic_dimensions() -> None:
    with pytest.raises(genrw.GenrwError, match="only ONNX models have symbolic dimensions"):
        genrw.load("x = @param:x -> float{4}\n@return(x)\n", dims={"N": 4})


def test_what_belongs_to_a_process_is_not_pickled() -> None:
    """The message says what to pass on instead; a copy is the thing itself."""
    program, compiled = genrw.load(ADD), genrw.compile(ADD)
    for thing, said in [
        (compiled, r"a compiled program cannot be pickled, .*: pass the program's path or its text on, and compile"),
        (program, r"a program cannot be pickled, .*: pass its path or its text on, `str\(program\)`"),
        (program.lower("lanewise"), "a program cannot be pickled"),
        (program.library, "a library of rules cannot be pickled, .*: pass the folders of the rules on"),
    ]:
        with pytest.raises(TypeError, match=said):
            pickle.dumps([thing])
        assert copy.copy(thing) is thing
        assert copy.deepcopy(thing) is thing
    again = genrw.load(str(program.lower("lanewise")))
    assert genrw.lower(again) == genrw.lower(program)
