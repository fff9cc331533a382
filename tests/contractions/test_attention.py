"""Attention as one kernel: random programs at every stage and as kernels on the CPU, by all schedules."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from random import Random
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from attention_programs import ATTENTION, OF_FEW_STORED_SCORES, OF_STORED_SCORES
from support import check_every_stage, load
from together import Made, chosen, compile_together, lower_together

from genrw.codegen.runtime.devices import HostDevice
from genrw.engine.ir.nodes import Module
from genrw.program import Program

pytestmark = pytest.mark.few(1)

LENGTHS = (2, 17, 31, 63, 64, 65, 100, 128, 129, 200)
WIDTHS = (8, 24, 40, 64, 72, 96, 128, 160)
NUMPY = {"half": np.float16, "bf16": ml_dtypes.bfloat16}
NEAR = {"half": 4e-3, "bf16": 3e-2}

Values = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Attention:
    """Queries, keys and values; how keys and values lie, what masks the scores, and how many heads share keys and values."""

    batch: int
    heads: int
    shared: int
    queries: int
    keys: int
    depth: int
    width: int
    dtype: str
    mask: str
    keys_turned: bool
    values_turned: bool
    by_hand: bool

    @classmethod
    def drawn(cls, random: Random) -> Attention:
        return cls(
            batch=random.choice((1, 2)),
            heads=random.choice((1, 2, 3)),
            shared=random.choice((1, 1, 2)),
            queries=random.choice(LENGTHS),
            keys=random.choice(LENGTHS),
            depth=random.choice(WIDTHS),
            width=random.choice(WIDTHS),
            dtype=random.choice(("half", "bf16")),
            mask=random.choice(("", "", "causal", "added", "first", "none")),
            keys_turned=random.random() < 0.5,
            values_turned=random.random() < 0.25,
            by_hand=random.random() < 0.25,
        )

    @property
    def text(self) -> str:
        b, h, g, m, n = self.batch, self.heads, self.shared, self.queries, self.keys
        k = (b, h, n, self.depth) if self.keys_turned else (b, h, self.depth, n)
        v = (b, h, self.width, n) if self.values_turned else (b, h, n, self.width)
        scores = f"{{{b}, {h * g}, {m}, {n}}}"
        lines = [
            self._input("q", (b, h * g, m, self.depth)),
            self._input("k", k),
            self._input("v", v),
            "kt = transpose[permutation={0, 1, 3, 2}](k)"
            if self.keys_turned
            else "kt = transpose[permutation={0, 1, 2, 3}](k)",
            "vt = transpose[permutation={0, 1, 3, 2}](v)"
            if self.values_turned
            else "vt = transpose[permutation={0, 1, 2, 3}](v)",
            *self._repeated("kt", "ks", (self.depth, n)),
            *self._repeated("vt", "vs", (n, self.width)),
            f"d = dot(q, ks)\nx = mul(d, {self.depth**-0.5})",
        ]
        if self.mask in ("causal", "first"):
            less = "c, r" if self.mask == "causal" else "c, 0"
            lines.append(f"r = iota[lens={scores}, axis=2]()\nc = iota[lens={scores}, axis=3]()")
            lines.append(f"later = greater({less})\ns = where(later, -inf, x)")
        elif self.mask == "added":
            lines.append(f"{self._input('bias', (b, 1, 1, n))}\ns = add(x, bias)")
        else:
            lines.append("s = transpose[permutation={0, 1, 2, 3}](x)")
        if self.by_hand:
            lines.append(
                "most = reduce_max[axes={3}](s)\nf = sub(s, most)\ne = exp(f)\nt = reduce_sum[axes={3}](e)\np = div(e, t)"
            )
        else:
            lines.append("p = softmax[axis=3](s)")
        return "\n".join([*lines, "z = dot(p, vs)", "@return(z)"])

    def _input(self, name: str, lens: tuple[int, ...]) -> str:
        return f"{name} = @param:{name} -> {self.dtype}{{{', '.join(map(str, lens))}}}"

    def _repeated(self, name: str, repeated: str, lens: tuple[int, int]) -> list[str]:
        """Heads of keys or values, each for several heads of queries."""
        if self.shared == 1:
            return [f"{repeated} = transpose[permutation={{0, 1, 2, 3}}]({name})"]
        b, h, g, (i, j) = self.batch, self.heads, self.shared, lens
        return [
            f"{name}u = unsqueeze[axes={{2}}]({name})",
            f"{name}b = multibroadcast[out_lens={{{b}, {h}, {g}, {i}, {j}}}]({name}u)",
            f"{repeated} = reshape[dims={{{b}, {h * g}, {i}, {j}}}]({name}b)",
        ]

    def inputs(self, seed: int) -> dict[str, Values]:
        rng = np.random.default_rng(seed)
        types = (line.split(" -> ")[1] for line in self.text.splitlines() if "@param" in line)
        names = [line.split(" = ")[0] for line in self.text.splitlines() if "@param" in line]
        lens = [tuple(map(int, t[t.index("{") + 1 : -1].split(","))) for t in types]
        return {n: rng.standard_normal(size).astype(NUMPY[self.dtype]) for n, size in zip(names, lens, strict=True)}

    def result(self, inputs: dict[str, Values]) -> Values:
        """In double precision."""
        given = {name: value.astype(np.float64) for name, value in inputs.items()}
        k = given["k"].swapaxes(2, 3) if self.keys_turned else given["k"]
        v = given["v"].swapaxes(2, 3) if self.values_turned else given["v"]
        k, v = (np.repeat(x, self.shared, axis=1) for x in (k, v))
        s = given["q"] @ k * self.depth**-0.5
        rows, columns = np.indices((self.queries, self.keys))
        if self.mask in ("causal", "first"):
            s = np.where(columns > (rows if self.mask == "causal" else 0), -np.inf, s)
        if self.mask == "added":
            s = s + given["bias"]
        e = np.exp(s - s.max(axis=3, keepdims=True))
        return e / e.sum(axis=3, keepdims=True) @ v

    def check(self, got: Values, inputs: dict[str, Values]) -> None:
        want = self.result(inputs)
        assert got.shape == want.shape
        assert got.dtype == NUMPY[self.dtype]
        assert np.abs(got.astype(np.float64) - want).max() <= NEAR[self.dtype] * np.abs(want).max(), self


def schedules(program: Program) -> list[dict[str, Any]]:
    """The schedules of a program that has one, which was chosen from them."""
    return [dict(schedule) for _, schedule, _ in next(iter(program.trace.schedules.values()), [])]


def drawn(seed: int) -> Attention:
    """One that has several rows, so that products of matrices are what it is made of."""
    random = Random(seed)
    while True:
        found = Attention.drawn(random)
        if found.queries * found.shared > 1 and min(found.queries, found.keys) > 1:
            return found


@lru_cache(maxsize=1)
def kernels_by_schedules(seeds: tuple[int, ...]) -> dict[int, list[Made]]:
    """For each seed, what is drawn by two of all schedules. All are lowered together, and compiled together."""
    scheduled = [
        one.until("schedule")[-1][1] for one in lower_together([drawn(s).text for s in seeds], "sm_90", last="schedule")
    ]
    modules: list[Module] = []
    of: list[int] = []
    for seed, program in zip(seeds, scheduled, strict=True):
        (module,) = program.modules
        tried = schedules(program)
        for schedule in Random(seed).sample(tried, min(2, len(tried))):
            modules.append(replace(module, name=f"k{len(modules)}", schedule=schedule))
            of.append(seed)
    lowered = scheduled[0].with_modules(tuple(modules)).lower("final")
    own = dict(zip(seeds, scheduled, strict=True))
    found = [Made(own[seed].with_modules((module,))) for seed, module in zip(of, lowered.modules, strict=True)]
    compile_together(found)
    return {seed: [one for one, its in zip(found, of, strict=True) if its == seed] for seed in seeds}


@pytest.mark.parametrize("seed", range(16))
def test_one_kernel_computes_it_by_any_schedule(seed: int, request: pytest.FixtureRequest) -> None:
    case = drawn(seed)
    inputs = case.inputs(seed)
    tried = kernels_by_schedules(tuple(chosen(request, "seed")))[seed]
    assert tried, "there is a schedule"
    for one in tried:
        assert len(one.kernels) == 1, case
        for order in (0, 1):
            case.check(one.on_the_host(inputs, threads=1, order=order)["z"], inputs)


@pytest.mark.parametrize("seed", range(100, 106))
def test_every_stage_computes_the_same(seed: int) -> None:
    case = drawn(seed)
    program, inputs = load(case.text, "sm_90"), case.inputs(seed)
    for _, lowered in program.remaining_stages():
        assert len(lowered.modules) == 1
        case.check(lowered.run(inputs, "interpret")["z"], inputs)


@pytest.mark.parametrize("text", [*ATTENTION.values(), OF_STORED_SCORES, OF_FEW_STORED_SCORES])
def test_every_stage_means_what_the_program_means(text: str) -> None:
    check_every_stage(text, "sm_90")


@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "host"])
def test_targets_without_such_instructions_store_scores(target: str) -> None:
    case = drawn(7)
    program, inputs = load(case.text, target), case.inputs(7)
    kernels = program.kernels()
    assert len(kernels) > 1
    case.check(HostDevice().load(program, kernels)(inputs, threads=1, order=0)["z"], inputs)


def test_rows_without_a_score_are_nan_and_others_are_not() -> None:
    text = """\
q = @param:q -> half{64, 64}
k = @param:k -> half{64, 128}
v = @param:v -> half{128, 64}
a = @param:a -> half{64, 128}
d = dot(q, k)
s = add(d, a)
p = softmax[axis=1](s)
z = dot(p, v)
@return(z)
"""
    rng = np.random.default_rng(5)
    inputs = {
        name: rng.standard_normal(n).astype(np.float16)
        for name, n in {"q": (64, 64), "k": (64, 128), "v": (128, 64)}.items()
    }
    inputs["a"] = np.zeros((64, 128), np.float16)
    inputs["a"][3], inputs["a"][5, :64], inputs["a"][7, 64:] = -np.inf, -np.inf, -np.inf
    program = load(text, "sm_90")
    results = [HostDevice().load(program, program.kernels())(inputs, threads=1, order=1)]
    results += [lowered.run(inputs, "interpret") for _, lowered in program.remaining_stages()]
    for result in results:
        assert np.isnan(result["z"][3]).all()
        assert np.isfinite(np.delete(result["z"], 3, axis=0)).all()


def test_two_of_them_are_two_kernels() -> None:
    one = "d{0} = dot(q, k{0})\np{0} = softmax[axis=2](d{0})\nz{0} = dot(p{0}, v{0})\n"
    text = "".join(f"{name} = @param:{name} -> half{{2, 128, 128}}\n" for name in ("q", "k0", "k1", "v0", "v1"))
    program = load(text + one.format(0) + one.format(1) + "z = add(z0, z1)\n@return(z)", "sm_90")
    rng = np.random.default_rng(6)
    inputs = {n: rng.standard_normal((2, 128, 128)).astype(np.float16) for n in ("q", "k0", "k1", "v0", "v1")}
    got = HostDevice().load(program, program.kernels())(inputs, threads=1, order=0)["z"].astype(float)
    want = 0.0
    for i in "01":
        s = inputs["q"].astype(float) @ inputs[f"k{i}"]
        e = np.exp(s - s.max(axis=2, keepdims=True))
        want = want + e / e.sum(axis=2, keepdims=True) @ inputs[f"v{i}"]
    assert len(program.kernels()) == 2
    np.testing.assert_allclose(got, want, atol=2e-2)
