"""Kernels compiled together do what they do alone."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from support import differences, load

from genrw.codegen.runtime.host_program import HostProgram
from genrw.engine.interpret.inputs import random_inputs

GATHERED_SUM = """
x = @param:x -> float{{4, {n}}}
k = @param:k -> int32{{3}}
g = gather[axis=0](x, k)
s = reduce_sum[axes={{1}}](g)
@return(s)
"""
MAXIMUM = "x = @param:x -> half{5, 64}\nm = reduce_max[axes={1}](x)\n@return(m)"


def test_kernels_of_one_name_share_helpers_and_nothing_else() -> None:
    """Equal names, equal monoids, equal helpers of operators, and launches of two kinds."""
    programs = [load(GATHERED_SUM.format(n=n), target) for n in (5, 6, 300) for target in ("host", "gfx942")]
    programs.append(load(MAXIMUM, "host"))
    sources = [kernel for program in programs for kernel in program.kernels()]
    assert sum("GEN_DEVICE int64 entry" in s.text for s in sources) > 1, "the helper is in several kernels"
    for program, compiled in zip(programs, HostProgram.compile_all(sources), strict=True):
        inputs = random_inputs(program.modules[0], program.library, 3)
        want = program.run(inputs, "interpret", precise=True)
        got = dict(zip(program.results, compiled(inputs).values(), strict=True))
        assert not differences(program, got, want)


def test_results_are_in_the_order_of_the_sources() -> None:
    programs = [load(f"x = @param:x -> float{{4}}\ny = add(x, {n}.0)\n@return(y)", "host") for n in range(5)]
    compiled = HostProgram.compile_all([kernel for program in programs for kernel in program.kernels()])
    assert [kernel({"x": np.zeros(4, np.float32)}).popitem()[1][0] for kernel in compiled] == [0, 1, 2, 3, 4]
