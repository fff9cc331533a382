"""Contractions in programs: what shares their kernels, what is stored between them, and how soon they are lowered."""

from __future__ import annotations

import pytest
from support import check_every_stage, check_host, load
from work import at_most

pytestmark = pytest.mark.few(1)

TARGETS = ("gfx942", "gfx1100", "sm_90", "host")

LAYERS = """
x = @param:x -> half{64, 256}
w = @param:w -> half{256, 512}
b = @param:b -> half{512}
u = @param:u -> half{512, 256}
d = dot(x, w)
a = add(d, b)
g = gelu_tanh(a)
e = dot(g, u)
r = add(e, x)
n = layernorm[axes={1}](r)
@return(n)
"""

ATTENTION = """
q = @param:q -> half{2, 3, 33, 16}
k = @param:k -> half{2, 3, 31, 16}
v = @param:v -> half{2, 3, 31, 16}
t = transpose[permutation={0, 1, 3, 2}](k)
s = dot(q, t)
c = mul(s, 0.25)
p = softmax[axis=3](c)
o = dot(p, v)
@return(o)
"""

ONE_KERNEL = {
    "bias, activation and residual": """
        x = @param:x -> half{17, 33}
        w = @param:w -> half{33, 15}
        b = @param:b -> half{15}
        r = @param:r -> float{17, 15}
        d = dot(x, w)
        a = add(d, b)
        g = relu(a)
        c = convert[target_type=float](g)
        y = add(c, r)
        @return(y)""",
    "dequantised weights and gathered rows": """
        x = @param:x -> float{64, 17}
        w = @param:w -> int8{17, 32}
        s = @param:s -> float{32}
        i = @param:i -> int32{15}
        f = convert[target_type=float](w)
        q = mul(f, s)
        g = gather[axis=0](x, i)
        y = dot(g, q)
        @return(y)""",
    "padded and transposed operands": """
        x = @param:x -> float{7, 16}
        w = @param:w -> float{31, 18}
        p = pad[pads={0, 1, 0, 1}](x)
        t = transpose[permutation={1, 0}](w)
        y = dot(p, t)
        @return(y)""",
    "a convolution of NHWC data, with a bias": """
        x = @param:x -> half{2, 9, 9, 4}
        w = @param:w -> half{6, 4, 3, 3}
        b = @param:b -> half{6}
        t = transpose[permutation={0, 3, 1, 2}](x)
        z = convolution[padding={1, 1}, stride={2, 2}](t, w)
        c = broadcast[axis=1, out_lens={2, 6, 5, 5}](b)
        a = add(z, c)
        y = relu(a)
        @return(y)""",
    "operands of any strides": """
        x = @param:x -> float{5, 17, 15}, {255, 1, 17}
        w = @param:w -> float{15, 31}, {1, 16}
        y = dot(x, w)
        @return(y)""",
    "a pool of a sum": """
        x = @param:x -> float{2, 3, 9, 8}
        y = @param:y -> float{2, 3, 1, 1}
        s = add(x, y)
        p = pooling[mode=average, lengths={3, 2}, padding={1, 0}, stride={2, 2}](s)
        @return(p)""",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ONE_KERNEL)
def test_one_kernel_has_it_all(name: str) -> None:
    lowered = check_every_stage(ONE_KERNEL[name])
    assert len(lowered.modules) == 1
    check_host(ONE_KERNEL[name], "gfx942")


def test_what_is_made_of_a_product_is_stored_in_its_place() -> None:
    """Bias and activation are the first product's, the residual the second one's: else each element of the space would
    have them again."""
    first, second, third = [m for m in load(LAYERS).lower("fuse").modules if m.name != "main"]
    read = [[p.attribute("name") for p in module.parameters] for module in (first, second, third)]
    assert [len(names) for names in read] == [3, 3, 1]
    activations = {"tanh", "one_and_tanh_near"}
    assert activations.intersection(n.op for n in first.nodes)
    assert activations.isdisjoint(n.op for n in second.nodes)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_attention_stores_its_scores_or_is_one_kernel(target: str) -> None:
    """It is one kernel where a target has instructions that multiply powers of scores."""
    lowered = check_every_stage(ATTENTION, target)
    weighs = bool(lowered.library.targets[target].values["weighing"])
    assert len([m for m in lowered.modules if m.schedule]) == (1 if weighs else 3)
    check_host(ATTENTION, target)


def test_operands_that_lie_turned_around_need_no_transpose() -> None:
    lines = ["x = @param:x -> half{8, 64}", "w = @param:w -> half{32, 64}"]
    lines += ["t = transpose[permutation={1, 0}](w)", "z = dot(x, t)", "@return(z)"]
    (module,) = load("\n".join(lines) + "\n").lower("simplify").modules
    assert "transpose" not in [n.op for n in module.nodes]


LARGE = {
    "dot": "x = @param:x -> half{512, 512}\ny = @param:y -> half{512, 512}\nz = dot(x, y)\n@return(z)\n",
    "convolution": "x = @param:x -> half{8, 64, 56, 56}\nw = @param:w -> half{64, 64, 3, 3}\n"
    "z = convolution[padding={1, 1}](x, w)\n@return(z)\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", LARGE)
def test_usual_sizes_are_lowered_with_little_work_to_tiles(name: str, target: str) -> None:
    """Work is that of the second lowering of the kind: the first one reads the rules."""
    text = LARGE[name]
    load(text.replace("512", "256").replace("56", "28"), target).lower("final")
    with at_most(1_400_000):
        modules = load(text, target).lower("final").modules
    assert [module.schedule["algo"] for module in modules].count("matrix") == 1, "others only copy its views"
