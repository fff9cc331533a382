"""The shipped suites `models` and `random`: their programs can be read and lowered, and are right at small extents."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from breadth import spread
from together import compile_together, lower_together

import genrw
from genrw.engine.interpret.inputs import random_inputs
from genrw.engine.ir.dtypes import DTYPES, numpy_dtype
from genrw.engine.ir.types import packed_strides
from genrw.grammar.diagnostics import GenrwError
from genrw.measure.bench import least_bytes
from genrw.measure.cases import BenchCase, cases_in, suite
from genrw.measure.counterparts import Counterparts
from genrw.measure.host_case import HostCase
from genrw.measure.peers import numpy_arrays, own_results
from genrw.measure.random_cases import random_case, random_cases
from genrw.program import Program
from genrw.reference import Reference

ROOT = Path(__file__).parents[2]
TARGETS = ("gfx942", "gfx1100", "sm_90", "host")
SAMPLED = 9
"""Of so many cases one is lowered by the quick tests for each target."""


@cache
def models() -> list[BenchCase]:
    return suite("models")


@cache
def small() -> list[BenchCase]:
    return suite("models", quick=True)


@cache
def numpy_counterparts() -> Counterparts:
    return Counterparts(ROOT / "bench" / "numpy_peers.py")


# ---- models


def test_names_say_network_layer_and_shape() -> None:
    names = [case.name for case in models()]
    assert len(names) == len(set(names)) >= 150
    assert "bert-base-output-norm-add_layer_norm-half-32768x768" in names
    networks = {name.split("-")[0] for name in names}
    assert {"resnet50", "convnext", "vit", "bert", "gpt2", "llama3", "mixtral", "stable", "whisper", "dlrm"} <= networks


def test_every_kernel_has_a_case_of_a_network_and_a_small_one() -> None:
    kernels = {path.name.split(".")[0] for path in (ROOT / "app/suites/models").glob("*.jinja")}
    assert kernels == {case.kernel for case in models()}
    assert sorted(kernels) == sorted(case.kernel for case in small())


def test_all_programs_can_be_read() -> None:
    loaded = [genrw.load(case.source.text) for case in (*models(), *small())]
    assert max(map(least_bytes, loaded)) < 4e9 / 4, "four sets of inputs and results fit into 4 GB"
    types = {node.type.dtype for program in loaded for node in program.inputs.values()}
    assert {"half", "bf16", "float", "int8"} <= types


def _lower(cases: Sequence[BenchCase], target: str) -> None:
    for case, one in zip(cases, lower_together([case.source.text for case in cases], target), strict=True):
        assert one.kernels, case.name


@pytest.mark.few(1)
@pytest.mark.parametrize("target", TARGETS)
def test_some_lower(target: str) -> None:
    first = TARGETS.index(target) * 2
    _lower(models()[first::SAMPLED], target)


@pytest.mark.parametrize(("share", "target"), spread(range(len(TARGETS)), TARGETS, quick=0))
def test_a_case_of_each_kernel_lowers(share: int, target: str) -> None:
    kernels = list({case.kernel: case for case in models()}.values())
    _lower(kernels[share :: len(TARGETS)], target)


def _is_right(case: BenchCase, program: Program) -> None:
    """Kernels of the CPU against the interpreter in double, and numpy's counterpart too."""
    loaded = HostCase(program, case.name)
    assert loaded.check() is None, case.name
    _counterpart_is_right(case, loaded.reference)


def _are_right(cases: Sequence[BenchCase]) -> None:
    """The same of many, lowered and compiled together."""
    lowered = lower_together([case.source.text for case in cases], "host")
    compile_together(lowered)
    for case, one in zip(cases, lowered, strict=True):
        inputs = random_inputs(one.program.origin[0], one.program.library, 0)
        reference = Reference(one.program, inputs)
        assert reference.first_problem(one.on_the_host(inputs)) is None, case.name
        _counterpart_is_right(case, reference)


def _counterpart_is_right(case: BenchCase, reference: Reference) -> None:
    program = reference.program
    function = numpy_counterparts().of(case, program)
    assert function is not None, case.name
    types = {name: node.type.dtype for name, node in program.results.items()}
    with np.errstate(all="ignore"):
        arrays = numpy_arrays(program, reference.inputs)
        made = own_results(function(*arrays), [numpy_dtype(t) for t in types.values()], arrays)
    assert reference.first_problem(dict(zip(types, made, strict=True))) is None, case.name


QUICKLY = ("add_layer_norm", "causal_softmax", "embedding_bag", "quantise_rows", "unpack_nibbles", "max_pool", "adam")


@pytest.mark.few(1)
@pytest.mark.parametrize("kernel", QUICKLY)
def test_some_are_right(kernel: str) -> None:
    (case,) = (case for case in small() if case.kernel == kernel)
    _is_right(case, genrw.load(case.source.text, target="host"))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(0, 101, 10))
def test_all_are_right_at_small_extents(number: int) -> None:
    _are_right(small()[number : number + 10])


def test_torch_has_a_function_for_each_kernel() -> None:
    """Without PyTorch, what the file defines is read off its text."""
    text = (ROOT / "bench" / "peers.py").read_text()
    missing = [c.kernel for c in small() if f"\ndef {c.kernel}(" not in text and f"\n{c.kernel} = " not in text]
    assert not missing


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch")
@pytest.mark.slow
def test_torch_computes_the_same() -> None:
    import torch

    from genrw.measure.torch_counterparts import torch_arrays

    counterparts = Counterparts(ROOT / "bench" / "peers.py")
    for case in small():
        program = genrw.load(case.source.text)
        inputs = random_inputs(program.origin[0], program.library, 0)
        function = counterparts.of(case, program)
        assert function is not None
        made = function(*torch_arrays(torch, program, inputs, "cpu"))
        reference = Reference(program, inputs)
        for (name, node), got in zip(
            program.results.items(), made if isinstance(made, tuple) else (made,), strict=True
        ):
            array = got.double().numpy() if DTYPES[node.type.dtype].is_float else got.numpy()
            assert reference.first_problem({name: array}) is None, case.name


# ---- tables


PROGRAM = "# scaled\nx = @param:x -> $(type){$(rows), $(2 * width)}\ny = mul(x, 2.0)\n@return(y)\n"


def _suite(folder: Path, table: str) -> list[BenchCase]:
    (folder / "scale.gen.jinja").write_text(PROGRAM)
    (folder / "cases.toml").write_text(table)
    return suite(str(folder))


def test_a_suite_of_ones_own(tmp_path: Path) -> None:
    table = '[net]\nfirst = { kernel = "scale", type = "half", rows = 3, width = 5 }\nscale = { type = "float", rows = 1, width = 2 }\n'
    first, second = _suite(tmp_path, table)
    assert (first.name, second.name) == ("net-first-scale-half-3x5", "net-scale-float-1x2")
    assert first.source.text.splitlines()[1] == "x = @param:x -> half{3, 10}"
    assert (first.kernel, first.open) == ("scale", {"type": "half", "rows": 3, "width": 5})


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("[net]\nfirst = { kernel = 'none', rows = 3 }\n", "is of the kernel `none`"),
        ("[net]\nfirst = { kernel = 'scale', rows = 3 }\n", "gives rows"),
        ("[net]\nfirst = { kernel = 'scale', type = 'half', rows = 3, width = 5, more = 1 }\n", "gives more, rows"),
        ("[net\n", "cases.toml:"),
        ("net = 5\n", "`net` is no table of layers"),
        ("[net]\nfirst = 5\n", "`first` of `net` is no row"),
        ("[net]\n'../first' = { kernel = 'scale', type = 'half', rows = 3, width = 5 }\n", "is no name of a file"),
        (
            "[a]\nb-c = { kernel = 'scale', type = 'half', rows = 3, width = 5 }\n"
            "[a-b]\nc = { kernel = 'scale', type = 'half', rows = 3, width = 5 }\n",
            "two cases are called `a-b-c-scale-half-3x5`",
        ),
    ],
)
def test_faults_of_a_table(tmp_path: Path, table: str, message: str) -> None:
    with pytest.raises(GenrwError) as caught:
        _suite(tmp_path, table)
    assert message in caught.value.diagnostics[0].message
    assert caught.value.diagnostics[0].remedy


@pytest.mark.parametrize(
    "text",
    [
        "x = $(rows\n",
        "x = $(rows // 0)\n",
        "x = $(rows.none.none)\n",
        "x = $(rows.__class__.__base__.__subclasses__())\n",
        "$(rows){% include 'cases.toml' %}\n",
    ],
)
def test_faults_of_a_template(tmp_path: Path, text: str) -> None:
    (tmp_path / "scale.gen.jinja").write_text(text)
    (tmp_path / "cases.toml").write_text("[net]\nscale = { rows = 3 }\n")
    with pytest.raises(GenrwError) as caught:
        suite(str(tmp_path))
    assert "scale.gen.jinja:" in caught.value.diagnostics[0].message


def test_suites_are_found_for_tuning() -> None:
    found = cases_in("models")
    assert found is not None
    assert [c.name for c in found] == [c.name for c in models()]
    assert cases_in("random") is None


# ---- random programs


def test_the_same_seed_gives_the_same_programs() -> None:
    texts = "".join(random_case(11, number).source.text for number in range(20))
    assert hashlib.sha256(texts.encode()).hexdigest()[:16] == "f9df4fe68dd079e4", "other programs than before"
    assert [c.source.text for c in random_cases(11, 3)] == [random_case(11, n).source.text for n in range(3)]
    assert random_case(12, 0).source.text != random_case(11, 0).source.text


@cache
def _random(count: int) -> list[tuple[str, Program]]:
    return [(case.name, genrw.load(case.source.text)) for case in random_cases(3, count)]


def test_random_programs_are_of_all_sorts() -> None:
    programs = [program for _, program in _random(60)]
    assert all(2**20 <= least_bytes(program) <= 2**28 for program in programs)
    inputs = [node.type for program in programs for node in program.inputs.values()]
    assert {len(t.lens) for t in inputs} >= {1, 2, 3, 4, 5}
    assert {t.dtype for t in inputs} >= {"half", "float", "bf16", "int8", "bool", "int64"}
    assert sum(t.layout != packed_strides(t.lens) for t in inputs) > 10
    operators: Mapping[str, Any] = {node.op: 1 for p in programs for node in p.origin[0].kernels[0].nodes}
    assert len(operators) > 25


def test_random_programs_have_counterparts() -> None:
    for name, program in _random(60):
        case = BenchCase(name, program.source, name)
        assert numpy_counterparts().of(case, program) is not None, name


@pytest.mark.few(1)
@pytest.mark.parametrize("target", TARGETS)
def test_random_programs_lower(target: str) -> None:
    texts = [program.source.text for _, program in _random(60)[TARGETS.index(target) :: 10]]
    assert all(one.kernels for one in lower_together(texts, target))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(8))
def test_random_programs_are_right(number: int) -> None:
    case = random_case(4, number)
    _is_right(case, genrw.load(case.source.text, target="host"))
