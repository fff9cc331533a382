"""Operands of products that are computed: stored first where instructions take boxes of memory, and products take long."""

from __future__ import annotations

from random import Random

import pytest
from alternatives_taken import take_only
from support import check_host, listed, load
from test_channels_last import convolved

pytestmark = pytest.mark.few(1)

RULES = ("computed_before", "computed_before_its_view", "computed_before_its_pads")
COMPUTED = {
    "relu({x})": "half",
    "swish({x})": "bf16",
    "convert[target_type=half]({x})": "float",
    "mul({x}, {x}s)": "half",
}
"""What is done to an operand, and the type that it has before."""


def operand(name: str, lens: tuple[int, ...], computed: str, is_turned: bool) -> list[str]:
    """A matrix that is computed, of one that lies as it does or turned."""
    held = (*lens[:-2], lens[-1], lens[-2]) if is_turned else lens
    order = [*range(len(lens) - 2), len(lens) - 1, len(lens) - 2]
    lines = [f"{name} = @param:{name} -> {COMPUTED[computed]}{listed(held)}"]
    if "{x}s" in computed:
        lines.append(f"{name}s = @param:{name}s -> {COMPUTED[computed]}{listed(held[-1:])}")
    lines.append(f"{name}r = {computed.format(x=name)}")
    return [*lines, f"{name}t = transpose[permutation={listed(order)}]({name}r)"] if is_turned else lines


def drawn(seed: int) -> str:
    """A product of matrices, or of batches of them, of which one is computed or both."""
    random = Random(f"computed/{seed}")
    batch = random.choice(((), (), (3,)))
    m, k, n = (random.choice((8, 16, 33, 64, 72, 130)) for _ in range(3))
    computed = random.choice(tuple(COMPUTED))
    which = random.choice(("x", "y", "xy"))
    dtype = "half" if COMPUTED[computed] == "float" else COMPUTED[computed]
    lines, names = [], []
    for name, lens in (("x", (*batch, m, k)), ("y", (*batch, k, n))):
        is_turned = random.random() < 0.4
        if name in which:
            lines += operand(name, lens, computed, is_turned)
        else:
            lines.append(f"{name} = @param:{name} -> {dtype}{listed(lens)}")
        names.append(name + ("" if name not in which else "t" if is_turned else "r"))
    return "\n".join([*lines, f"z = dot({', '.join(names)})", "@return(z)", ""])


@pytest.mark.parametrize("seed", range(12))
def test_what_is_stored_first_is_multiplied_right(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    take_only(monkeypatch, *RULES)
    text = drawn(seed)
    assert len(load(text, "sm_90").lower("fuse").modules) > 1
    check_host(text, "sm_90")


@pytest.mark.parametrize("op", ["convolution", "convolution_backwards_data"])
def test_windows_of_what_is_stored_first_are_right(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    take_only(monkeypatch, *RULES)
    text = convolved(op, 1, True, "relu")
    assert len(load(text, "sm_90").lower("fuse").modules) > 1
    check_host(text, "sm_90")


LARGE = """
x = @param:x -> half{{{m}, 1024}}
w = @param:w -> half{{1024, 4096}}
r = relu(x)
z = dot(r, w)
@return(z)
"""


def test_only_products_that_take_long_have_their_operands_stored() -> None:
    """Lanes of an AMD GPU bring operands through registers in either case."""
    assert len(load(LARGE.format(m=2048), "sm_90").lower("fuse").modules) == 2
    assert len(load(LARGE.format(m=2048), "gfx942").lower("fuse").modules) == 1
    assert len(load(LARGE.format(m=1), "sm_90").lower("fuse").modules) == len(
        load(LARGE.format(m=1).replace("relu", "neg"), "gfx942").lower("fuse").modules
    )
