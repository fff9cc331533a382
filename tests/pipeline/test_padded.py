"""Folds of padded tensors: rows of pads alone come to what the others are folded to."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from alternatives_taken import take_only
from support import differences, inputs_and_reference, load

from genrw.authoring.rulesets import load_library
from genrw.engine.library.library import Library

EAGER = """
/// Launches so cheap that kernels may be many.
target eager_warps : sm_90
  arch "sm_90"
  default false
  launch_us 0.000001
"""

PROGRAMS = 30


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    folder: Path = tmp_path_factory.mktemp("target")
    (folder / "eager.rw").write_text(EAGER)
    return load_library([folder])


def padded(random: Random) -> str:
    """A fold of a tensor that is padded along rows, across them, or both; some pads cut rows."""
    dtype, op = random.choice(("half", "float", "uint8", "int32")), random.choice(("max", "min", "sum"))
    lens = [random.choice((1, 3, 5, 8, 17, 33)) for _ in range(random.choice((2, 3)))]
    axes = sorted(random.sample(range(len(lens)), random.choice((1, len(lens) - 1))))
    pads = [random.choice((0, 1, 2) if d % len(lens) not in axes else (0, 0, 1, -1)) for d in range(2 * len(lens))]
    if any(lens[d] + pads[d] + pads[d + len(lens)] < 1 for d in axes):
        return padded(random)
    value = random.choice((0, 0, 3)) if op != "sum" else 0
    lists = [", ".join(map(str, numbers)) for numbers in (lens, pads, axes)]
    return (
        f"x = @param:x -> {dtype}{{{lists[0]}}}\np = pad[pads={{{lists[1]}}}, value={value}](x)\n"
        f"y = reduce_{op}[axes={{{lists[2]}}}](p)\n@return(y)\n"
    )


@pytest.mark.slow
def test_random_programs(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    take_only(monkeypatch, "fold_before_padding", "fold_before_padding_converted")
    random = Random("padded")
    parted = 0
    for _ in range(PROGRAMS):
        text = padded(random)
        inputs, want = inputs_and_reference(text)
        stages = dict(load(text, "eager_warps", library).remaining_stages())
        parted += len(stages["fuse"].modules) > 1
        problems = differences(stages["final"], stages["final"].run(inputs, "interpret"), want)
        assert not problems, f"{text}\n{problems}"
    assert parted > PROGRAMS // 3


def columns(random: Random) -> str:
    """The sum of some columns of a tensor that goes on past its ends."""
    rows, width = random.randint(2, 20), random.randint(2, 9)
    pads = [random.randint(0, length - 1) for length in (rows, width) * 2]
    whole = width + pads[1] + pads[3]
    taken = random.sample(range(whole), min(whole, random.randint(2, 7)))
    mode = random.choice(("reflect", "reflect", "edge"))
    lines = [
        f"x = @param:x -> int32{{{rows}, {width}}}",
        f"p = pad[pads={{{', '.join(map(str, pads))}}}, mode={mode}](x)",
        *(f"c{k} = slice[axes={{1}}, starts={{{d}}}, ends={{{d + 1}}}](p)" for k, d in enumerate(taken)),
        "s0 = neg(c0)",
        *(f"s{k} = add(s{k - 1}, c{k})" for k in range(1, len(taken))),
        f"@return(s{len(taken) - 1})",
    ]
    return "\n".join([*lines, ""])


@pytest.mark.parametrize("seed", range(24))
def test_columns_of_tensors_that_go_on_past_their_ends(seed: int) -> None:
    """Places of columns are shares of constants, of which rules make no end of remainders unless these are constants, too."""
    text = columns(Random(seed))
    inputs, want = inputs_and_reference(text)
    lowered = load(text, ("gfx942", "sm_90", "host")[seed % 3]).lower("final")
    problems = differences(lowered, lowered.run(inputs, "interpret"), want)
    assert not problems, f"{text}\n{problems}"
