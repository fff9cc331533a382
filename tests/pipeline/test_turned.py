"""Results of rows whose axes are exchanged: the kernel that has the rows stores their elements where they come to lie."""

from __future__ import annotations

from random import Random

import pytest
from alternatives_taken import take_only
from breadth import spread
from support import check_every_stage, check_host, check_host_schedules, load, schedules
from together import compile_together, lower_together

pytestmark = pytest.mark.few(1)

TARGETS = ("gfx942", "gfx1100", "sm_90", "host")
LAST = (1024, 960, 1000, 130, 129)
"""Elements of rows: of whole vectors, with a tail, and of odd length."""
ROWS = {
    "softmax": "s = softmax[axis={last}](x)",
    "norm": "s = rmsnorm[axes={{{last}}}](x)",
    "argmax": "a = argmax[axis={last}](x)\nc = convert[target_type={dtype}](a)\ns = mul(x, c)",
    "sums": "r = reduce_sum[axes={{{last}}}](x)\ns = sub(x, r)",
}


def turned(kind: str, seed: int) -> str:
    """A program of rows along the last axis, whose other axes are exchanged in a result."""
    random = Random(f"{kind}/{seed}")
    dtype = random.choice(("half", "float", "bf16"))
    lens = [random.choice((1, 2, 3, 5, 7)) for _ in range(random.choice((2, 3)))]
    order = random.sample(range(len(lens)), len(lens))
    n = random.choice(LAST)
    listed, permutation = (", ".join(map(str, numbers)) for numbers in ([*lens, n], [*order, len(lens)]))
    last = f"[axes={{{len(lens)}}}]"
    results, more = random.choice(
        (
            *(("y", ""), ("y, s", ""), ("z", "z = neg(y)\n")),
            *(("y, b", f"b = reduce_max{last}({name})\n") for name in ("s", "y")),
        )
    )
    return (
        f"x = @param:x -> {dtype}{{{listed}}}\n{ROWS[kind].format(last=len(lens), dtype=dtype)}\n"
        f"y = transpose[permutation={{{permutation}}}](s)\n{more}@return({results})\n"
    )


def check_together(at_stages: list[str], as_kernels: list[str], target: str) -> None:
    """Check some programs at every stage, and others as kernels on the CPU."""
    lower_together(at_stages, target)
    compile_together(lower_together(as_kernels, target))
    for text in at_stages:
        check_every_stage(text, target)
    for text in as_kernels:
        check_host(text, target)


@pytest.mark.parametrize(("kind", "target"), spread([*ROWS], TARGETS))
def test_random_programs(kind: str, target: str) -> None:
    at_stages, as_kernels = ([turned(kind, seed) for seed in seeds] for seeds in (range(3), range(100, 102)))
    check_together(at_stages, as_kernels, target)


TURNED_ROWS = """
x = @param:x -> half{{3, 5, 4, {n}}}
s = softmax[axis=3](x)
y = transpose[permutation={{0, 2, 1, 3}}](s)
@return(y)
"""


@pytest.mark.parametrize("target", ["gfx942", "sm_90"])
@pytest.mark.parametrize("n", [1024, 1000, 1001])
def test_one_kernel_under_every_schedule(n: int, target: str) -> None:
    text = TURNED_ROWS.format(n=n)
    assert len(load(text, target).lower("fuse").modules) == 1
    check_host_schedules(text, schedules(text, target)[::3], target)


@pytest.mark.parametrize("permutation", ["{1, 0, 2, 3}", "{2, 1, 0, 3}", "{0, 2, 1, 3}"])
def test_rows_are_stored_in_whole_accesses(permutation: str) -> None:
    text = TURNED_ROWS.format(n=1024).replace("{0, 2, 1, 3}", permutation)
    (module,) = load(text, "sm_90").lower("final").modules
    assert "vector_write" in [node.op for node in module.nodes]


def test_elements_that_part_are_left_to_another_kernel() -> None:
    """Each would be stored by a transaction of its own."""
    text = TURNED_ROWS.format(n=1024).replace("{0, 2, 1, 3}", "{0, 1, 3, 2}")
    assert len(load(text, "sm_90").lower("fuse").modules) == 2


TURNED_OPERANDS = """
x = @param:x -> half{32, 64, 64, 96}
y = @param:y -> half{32, 64, 64, 96}, {1, 196608, 32, 2048}
z = @param:z -> half{32, 64, 64, 96}, {393216, 6144, 1, 64}
a = add(x, y)
b = add(a, z)
@return(b)
"""


@pytest.mark.parametrize("plan", ["search", "exact"])
def test_operands_that_are_turned_before_have_a_kernel_each(plan: str) -> None:
    """No tile turns both: each has tiles of its own, and what takes them reads along their rows."""
    program = load(TURNED_OPERANDS, "sm_90", plan=plan).lower("fuse")
    turning = [module for module in program.modules if "exchanged" in [node.op for node in module.nodes]]
    assert len(turning) == 2
    assert [[node.op for node in module.root.operands] for module in turning] == [["stored"], ["stored"]]


@pytest.mark.parametrize(("length", "kernels"), [(2400, 2), (32, 1)])
def test_what_the_cache_does_not_keep_is_turned_before(length: int, kernels: int) -> None:
    """Neighbours along the outer axis are read long after one another: of a large operand each comes with a burst of its own. Rows are
    too long for workgroups to turn some at a time."""
    text = f"""
    x = @param:x -> float{{7, 10, 77, {length}}}
    y = @param:y -> float{{7, 10, 77, {length}}}, {{1, {1155 * length}, 15, 1155}}
    m = max(x, y)
    s = softmax[axis=3](m)
    @return(s)
    """
    assert len(load(text, "sm_90").lower("fuse").modules) == kernels


PAIRS = """
x = @param:x -> int8{{{lens}}}
t = transpose[permutation={{2, 1, 3, 0}}](x)
y = @param:y -> int8{{{others}}}
s = {computed}
z = {folded}(s)
@return(z)
"""


@pytest.mark.parametrize("computed", ["add(t, y)", "sub(y, t)"])
def test_rows_of_two_operands_are_folded_as_one_of_them_lies(computed: str) -> None:
    """The other one is turned before, so that lanes side by side read both along memory."""
    folded = "reduce_min[axes={0, 1, 3}]"
    text = PAIRS.format(lens="61, 64, 128, 128", others="128, 64, 128, 61", computed=computed, folded=folded)
    modules = load(text, "sm_90").lower("fuse").modules
    (turning,) = [m for m in modules if "exchanged" in [node.op for node in m.nodes]]
    assert [p.type.lens for p in turning.parameters] == [(128, 64, 128, 61)]


@pytest.mark.parametrize("computed", ["add(t, y)", "sub(y, t)"])
@pytest.mark.parametrize("folded", ["reduce_min[axes={0, 1, 3}]", "reduce_sum[axes={2}]", "argmax[axis=3]"])
def test_what_is_folded_so_is_right(computed: str, folded: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of operands that are small, too; positions along bytes are folded in a wider type, to which the sum is converted first."""
    take_only(monkeypatch, "rows_as_the_first_lies", "rows_as_the_second_lies")
    text = PAIRS.format(lens="5, 16, 96, 72", others="96, 16, 72, 5", computed=computed, folded=folded)
    text = text.replace("int8", "int32") if folded.startswith("argmax") else text
    assert "t" not in [node.name for module in load(text, "sm_90").lower("fuse").modules for node in module.nodes]
    check_host(text, "sm_90")


# ---- what moves transposed tensors

MOVES = ("slice[axes={0}, starts={3}, ends={30}]", "reverse[axes={0}]", "pad[pads={1, 0, 0, 3}]")


def simplified(text: str) -> list[str]:
    """The operators of a program after the stage `simplify`, in their order."""
    return [node.op for node in load(text, "sm_90").lower("simplify").modules[0].nodes]


@pytest.mark.parametrize("move", MOVES)
def test_a_transpose_is_the_last_move(move: str) -> None:
    written = "x = @param:x -> half{40, 64}\nt = transpose[permutation={1, 0}](x)\n"
    computed = "m = mul(t, 2.0)\nc = clip(m, -1.0, 1.0)\nd = sub(3.0, c)\n"
    for before, moved in (("", "t"), (computed, "d")):
        ops = simplified(f"{written}{before}y = {move}({moved})\n@return(y)\n")
        assert ops[-2:] == ["transpose", "return"]
        assert ops.count("transpose") == 1


@pytest.mark.parametrize("move", MOVES)
def test_a_transposed_tensor_of_more_uses_stays(move: str) -> None:
    text = f"x = @param:x -> half{{40, 64}}\nt = transpose[permutation={{1, 0}}](x)\ny = {move}(t)\n@return(y, t)\n"
    assert simplified(text) == ["param", "transpose", move.partition("[")[0], "return"]


def moved(seed: int) -> str:
    """A chain of transposes, other moves, and operators beside constants; some values are used again."""
    random = Random(f"moved/{seed}")
    dtype = random.choice(("half", "float", "bf16", "int32"))
    lens = [random.choice((1, 2, 5, 8, 9, 16, 33)) for _ in range(random.choice((2, 3, 3)))]
    lines, values = [f"v0 = @param:v0 -> {dtype}{{{', '.join(map(str, lens))}}}"], []
    for i in range(1, random.randint(4, 7)):
        axis = random.randrange(len(lens))
        kind = random.choice(("transpose", "transpose", "slice", "reverse", "pad", "beside", "before", "between"))
        if kind == "transpose":
            order = random.sample(range(len(lens)), len(lens))
            lens = [lens[d] for d in order]
            made = f"transpose[permutation={{{', '.join(map(str, order))}}}](v{i - 1})"
        elif kind == "slice" and lens[axis] > 1:
            start = random.randrange(lens[axis] // 2 + 1)
            made = f"slice[axes={{{axis}}}, starts={{{start}}}, ends={{{lens[axis]}}}](v{i - 1})"
            lens = [n - start if d == axis else n for d, n in enumerate(lens)]
        elif kind == "pad":
            pads = [random.choice((0, 0, 1, 3)) for _ in range(2 * len(lens))]
            lens = [n + pads[d] + pads[d + len(lens)] for d, n in enumerate(lens)]
            made = f"pad[pads={{{', '.join(map(str, pads))}}}](v{i - 1})"
        elif kind == "reverse":
            made = f"reverse[axes={{{axis}}}](v{i - 1})"
        else:
            made = {"beside": f"mul(v{i - 1}, 2)", "before": f"sub(3, v{i - 1})"}.get(kind, f"clip(v{i - 1}, -1, 1)")
        lines.append(f"v{i} = {made}")
        values.append(f"v{i}")
    results = dict.fromkeys([values[-1], *random.sample(values, random.choice((0, 0, 1)))])
    return "\n".join([*lines, f"@return({', '.join(results)})"]) + "\n"


@pytest.mark.parametrize("target", TARGETS)
def test_random_moves(target: str) -> None:
    at_stages, as_kernels = ([moved(seed) for seed in seeds] for seeds in (range(12), range(100, 104)))
    check_together(at_stages, as_kernels, target)
