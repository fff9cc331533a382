"""Tiles that turn what is padded, cut, turned around, joined or gathered: through workgroup memory, if all take it in one way."""

from __future__ import annotations

from random import Random

import pytest
from support import check_host, listed, load, schedules

from genrw.engine.programs.graph_facts import GraphFacts

TILE = {"algo": "tile"}


def drawn(seed: int) -> str:
    """An operand that is turned, beside another one or by itself, and moved by one or two operators."""
    rng = Random(f"moved/{seed}")
    dtype, rank = rng.choice(("half", "float", "int8", "int32", "double")), rng.choice((2, 3))
    lens = [rng.choice((3, 5, 17, 33, 64, 70, 100)) for _ in range(rank)]
    order = rng.choice([[1, 0], [1, 0]] if rank == 2 else [[2, 1, 0], [0, 2, 1], [1, 2, 0]])
    given = [lens[order.index(d)] for d in range(rank)]
    lines = [f"x = @param:x -> {dtype}{listed(given)}", f"v0 = transpose[permutation={listed(order)}](x)"]
    if rng.random() < 0.5:
        lines += [f"b = @param:b -> {dtype}{listed(lens)}", "a = add(v0, b)"]
    last = lines[-1].split(" ")[0]
    for k in range(1, rng.choice((2, 3))):
        kind, d = rng.choice(("pad", "slice", "reverse", "concat", "gather")), rng.randrange(rank)
        if kind == "pad":
            pads = [rng.choice((0, 0, 1, 3)) for _ in range(2 * rank)]
            lens = [n + pads[e] + pads[e + rank] for e, n in enumerate(lens)]
            term = f"pad[pads={listed(pads)}]({last})"
        elif kind == "slice" and lens[d] > 2:
            term = f"slice[axes={{{d}}}, starts={{1}}, ends={{{lens[d]}}}]({last})"
            lens[d] -= 1
        elif kind == "concat":
            other = [rng.choice((1, 7, 64)) if e == d else n for e, n in enumerate(lens)]
            lines.append(f"w{k} = @param:w{k} -> {dtype}{listed(other)}")
            term = f"concat[axis={d}]({', '.join(rng.sample([last, f'w{k}'], 2))})"
            lens[d] += other[d]
        elif kind == "gather":
            lens[d] = rng.choice((5, 40, 64))
            lines.append(f"i{k} = @param:i{k} -> int64{{{lens[d]}}}")
            term = f"gather[axis={d}]({last}, i{k})"
        else:
            term = f"reverse[axes={{{d}}}]({last})"
        lines.append(f"v{k} = {term}")
        last = f"v{k}"
    return "\n".join([*lines, f"y = abs({last})", "@return(y)", ""])


@pytest.mark.few(3)
@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
def test_what_tiles_turn_is_right_wherever_it_is_moved(seed: int, target: str) -> None:
    if any(schedule["algo"] == "tile" for schedule in schedules(drawn(seed), target)):
        check_host(drawn(seed), target, schedule=TILE)


JOINED = """
x = @param:x -> half{100, 300}
w = @param:w -> half{300, 60}
t = transpose[permutation={1, 0}](x)
c = concat[axis=1](w, t)
y = relu(c)
@return(y)
"""
TWICE = """
x = @param:x -> float{131, 67}
y = @param:y -> float{67, 131}
t = transpose[permutation={1, 0}](x)
m = mul(t, y)
r = reverse[axes={1}](m)
z = add(m, r)
@return(z)
"""


def test_a_part_of_what_is_joined_goes_through_workgroup_memory() -> None:
    (kernel,) = load(JOINED, "sm_90", schedule=TILE).kernels()
    assert "GEN_LDS(gen::half, lds" in kernel.text
    check_host(JOINED, "sm_90", schedule=TILE)


def test_what_is_taken_in_two_ways_is_read_where_it_lies() -> None:
    (module,) = load(TWICE, "sm_90").lower("simplify").modules
    library = load(TWICE, "sm_90").library
    ways = GraphFacts.of(module, library).ways
    assert {node.op: ways[id(node)] for node in module.nodes if node.op in ("mul", "reverse")} == {
        "mul": 2,
        "reverse": 1,
    }
    check_host(TWICE, "sm_90", schedule=TILE)
