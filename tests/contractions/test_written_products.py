"""Products of matrices that a program writes as sums of products: however it repeats and widens the factors, they go by
tiles."""

from __future__ import annotations

from random import Random

import pytest
from support import check_every_stage, load

M, K, N = 64, 96, 72


def written_product(random: Random) -> str:
    """A program with x {m, k} and y {k, n}, of one type or widened to float, repeated by hand or by the product."""
    narrow = random.choice(("half", "bf16", "int8"))
    kinds = [random.choice((narrow, "float")), narrow]
    random.shuffle(kinds)
    widened = narrow == "int8" or len(set(kinds)) > 1 or random.random() < 0.3
    lines, factors = [], []
    for name, kind, lens, axis in (("x", kinds[0], (M, K), 2), ("y", kinds[1], (K, N), 0)):
        lines.append(f"{name} = @param:{name} -> {kind}{{{lens[0]}, {lens[1]}}}")
        steps = [f"unsqueeze[axes={{{axis}}}]", f"multibroadcast[out_lens={{{M}, {K}, {N}}}]"]
        if random.random() < 0.3:
            steps.pop()
        if widened and kind != "float":
            steps.insert(random.randrange(len(steps) + 1), "convert[target_type=float]")
        value = name
        for number, step in enumerate(steps):
            lines.append(f"{name}{number} = {step}({value})")
            value = f"{name}{number}"
        factors.append(value)
    random.shuffle(factors)
    lines += [f"m = mul({factors[0]}, {factors[1]})", "s = reduce_sum[axes={1}](m)", "z = squeeze[axes={1}](s)"]
    return "\n".join([*lines, "@return(z)"])


@pytest.mark.parametrize("seed", range(24))
def test_they_become_contractions(seed: int) -> None:
    text = written_product(Random(seed))
    kernels = load(text, "sm_90").lower("schedule")
    assert [node.op for module in kernels.modules for node in module.nodes].count("contraction") == 1, (
        f"{text}\n{kernels}"
    )


@pytest.mark.parametrize("seed", range(3))
def test_they_are_right(seed: int) -> None:
    check_every_stage(written_product(Random(100 + seed)), "sm_90")
