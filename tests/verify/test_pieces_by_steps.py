"""Kernels of the CPU whose steps read one operand or another: each step's branch is taken as written."""

from __future__ import annotations

import pytest
from support import check_host_schedules, schedules

JOINED = """
v = @param:v -> {dtype}{{1, 2, 1, 16}}
w = {op}(v)
j = concat[axis=1](v, w)
@return(j)
"""


@pytest.mark.parametrize("op", ["bitwise_not", "neg"])
@pytest.mark.parametrize("dtype", ["int64", "int32", "int16"])
def test_joined_in_steps(op: str, dtype: str) -> None:
    """Every schedule of several steps. GCC 12 made one masked access of two opposite branches."""
    text = JOINED.format(dtype=dtype, op=op)
    stepped = [s for s in schedules(text, "host") if s["algo"] == "flat" and s["steps"] > 1]
    assert stepped
    check_host_schedules(text, stepped, "host")
