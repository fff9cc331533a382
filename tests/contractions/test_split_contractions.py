"""Contractions with few tiles, whose depth is split over the grid: what they compute, and where two kernels are taken."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
import pytest
from alternatives_taken import take_only
from cases import Case, case, whole
from references import backwards_weights, dot
from support import load
from tiled_cases import Convolution, Product

from genrw.authoring.rulesets import load_library
from genrw.codegen.runtime.devices import HostDevice
from genrw.engine.library.library import Library

pytestmark = pytest.mark.few(1)

EAGER = """
/// Units enough, and kernels that begin so soon, that short depths may be split.
target eager_waves : gfx942
  arch "gfx942"
  default false
  launch_us 0.001
  latency_us 0.001

target eager_warps : sm_90
  arch "sm_90"
  launch_us 0.001
  latency_us 0.001
"""
TARGETS = ("eager_waves", "eager_warps")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    folder: Path = tmp_path_factory.mktemp("target")
    (folder / "eager.rw").write_text(EAGER)
    return load_library([folder])


@pytest.fixture
def eager(library: Library, monkeypatch: pytest.MonkeyPatch) -> Library:
    """The library with these targets, while products are split whatever it costs, and no other alternative is taken."""
    take_only(monkeypatch, "split_contraction")
    return library


@dataclass(frozen=True)
class Weights:
    """The gradient of a convolution by its weights: the depth are samples and places."""

    def case(self, rng: np.random.Generator, dtype: str) -> Case:
        x, y = whole(rng, dtype, (2, 6, 19, 18)), whole(rng, dtype, (2, 9, 17, 16))
        result = backwards_weights(x, y, (3, 3), (0, 0), (1, 1), (1, 1), 1)
        return case(
            {"x": (dtype, x), "y": (dtype, y)}, "convolution_backwards_weights[lengths={3, 3}](x, y)", result, dtype
        )


@dataclass(frozen=True)
class Bytes:
    """A product of 8-bit integers, added up in 32 bits."""

    def case(self, rng: np.random.Generator, dtype: str) -> Case:
        x, y = whole(rng, dtype, (17, 300)) * 40, whole(rng, dtype, (300, 20)) * 40
        return case({"x": (dtype, x), "y": (dtype, y)}, "quant_dot(x, y)", dot(x, y), "int32")


DEEP = {
    "even parts": (Product(33, 512, 40), "half"),
    "a tail": (Product(24, 300, 17, before=True, after=True), "half"),
    "an odd tail": (Product(16, 299, 40, turned=(True, False)), "bf16"),
    "batches": (Product(17, 300, 24, batch=(2, 3), turned=(False, True)), "half"),
    "both turned": (Product(33, 384, 18, turned=(True, True), after=True), "float"),
    "doubles": (Product(17, 300, 20), "double"),
    "integers": (Product(20, 299, 17, turned=(False, True)), "int32"),
    "bytes": (Bytes(), "int8"),
    "channels": (Convolution(1, 1, (40, 24), (6, 5), (3, 3), padding=(1, 1)), "half"),
    "channels of groups and a tail": (Convolution(2, 2, (41, 9), (7, 6), (3, 3), stride=(2, 1)), "float"),
    "weights": (Weights(), "half"),
}
"""Contractions deep enough for parts, by what is particular about them, and their element types."""


def deep_case(name: str) -> Case:
    made, dtype = DEEP[name]
    return made.case(np.random.default_rng(len(name)), dtype)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", DEEP)
def test_every_stage_computes_the_same(eager: Library, name: str, target: str) -> None:
    made = deep_case(name)
    for stage, lowered in load(made.text, target, eager).remaining_stages():
        if stage == "fuse":
            contracted = [k for k, m in enumerate(lowered.modules) if "contraction" in [n.op for n in m.nodes]]
            assert contracted == [0], lowered
            assert len(lowered.modules) > 1, "the parts are added up by a kernel of their own"
        made.check(lowered.run(made.inputs, "interpret")["z"])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", DEEP)
def test_kernels_compute_the_same_on_the_cpu(eager: Library, name: str, target: str) -> None:
    made = deep_case(name)
    program = load(made.text, target, eager)
    kernels = program.kernels()
    assert len(kernels) > 1
    run = HostDevice().load(program, kernels)
    for order in (0, 1):
        made.check(run(made.inputs, threads=1, order=order)["z"])


def kernels_of(m: int, n: int, k: int, target: str) -> int:
    """How many kernels make a product of halves."""
    text = f"x = @param:x -> half{{{m}, {k}}}\nw = @param:w -> half{{{k}, {n}}}\nz = dot(x, w)\n@return(z)\n"
    return len(load(text, target).lower("fuse").modules)


@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
@pytest.mark.parametrize(("m", "n", "k"), [(32, 1024, 14336), (512, 512, 16384), (64, 64, 65536)])
def test_products_with_few_tiles_are_split(m: int, n: int, k: int, target: str) -> None:
    assert kernels_of(m, n, k, target) > 1


@pytest.mark.parametrize("target", ["sm_90", "gfx942", "host"])
@pytest.mark.parametrize(("m", "n", "k"), [(4096, 4096, 4096), (1024, 8192, 14336), (512, 768, 768), (1, 4096, 128)])
def test_products_that_fill_the_target_are_one_kernel(m: int, n: int, k: int, target: str) -> None:
    assert kernels_of(m, n, k, target) == 1


@pytest.mark.parametrize(("target", "kernels"), [("sm_90", 1), ("gfx942", 2), ("host", 1)])
def test_whether_a_product_is_split_is_a_matter_of_the_target(target: str, kernels: int) -> None:
    """Its 128 tiles of 128 x 128 fill the 132 processors of sm_90, and less than half of the 304 of gfx942."""
    assert kernels_of(512, 4096, 14336, target) == kernels


@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
@pytest.mark.parametrize("seed", range(24))
def test_parts_come_out_even_and_are_not_split_again(monkeypatch: pytest.MonkeyPatch, seed: int, target: str) -> None:
    take_only(monkeypatch, "split_contraction")
    draw = Random(seed)
    m, n = (draw.choice([64, 96, 200, 384, 512, 1000, 1536]) for _ in "mn")
    steps = draw.choice([16, 40, 48, 64, 72, 96, 128, 172, 224])
    text = (
        f"x = @param:x -> half{{{m}, {64 * steps}}}\nw = @param:w -> half{{{64 * steps}, {n}}}\n"
        "z = dot(x, w)\n@return(z)\n"
    )
    contracted, *sums = load(text, target).lower("fuse").modules
    (product,) = (node for node in contracted.nodes if node.op == "contraction")
    parts = product.operands[0].type.lens[0] if sums else 1
    assert steps % parts == 0
    assert len(product.operands[0].type.lens) == (4 if sums else 3)


def several_products(seed: int) -> tuple[str, dict[str, np.ndarray]]:
    """Sums and differences of products of integers, some of which are returned, in any order, and what they are of."""
    draw = Random(seed)
    rng = np.random.default_rng(seed)
    inputs = {f"{side}{i}": rng.integers(-2, 3, (24, 24)).astype(np.float16) for i in range(3) for side in "xw"}
    inputs |= {name: np.tile(value, (1, 12) if name[0] == "x" else (12, 1)) for name, value in inputs.items()}
    lines = [f"{n} = @param:{n} -> half{{{v.shape[0]}, {v.shape[1]}}}" for n, v in inputs.items()]
    lines += [f"d{i} = dot(x{i}, w{i})" for i in range(3)]
    values = [f"d{i}" for i in range(3)]
    for i in range(4):
        lines.append(f"v{i} = {draw.choice(['add', 'sub', 'max'])}({draw.choice(values)}, {draw.choice(values)})")
        values.append(f"v{i}")
    results = draw.sample(values, draw.randint(2, 4))
    return "\n".join([*lines, f"@return({', '.join(results)})\n"]), inputs


@pytest.mark.parametrize("seed", range(12))
def test_several_products_are_split_where_what_is_made_of_them_needs_others(eager: Library, seed: int) -> None:
    text, inputs = several_products(seed)
    program = load(text, "eager_warps", eager)
    want = program.run(inputs, "interpret")
    for _stage, lowered in program.remaining_stages():
        for name, value in lowered.run(inputs, "interpret").items():
            np.testing.assert_array_equal(value, want[name])
