"""Convolutions of tensors whose channels lie last: the same kernels, however a program says that they do."""

from __future__ import annotations

import re
from itertools import product

import pytest
from alternatives_taken import take_only
from support import check_host, listed, load
from together import made

pytestmark = pytest.mark.few(1)

TENSORS = {"convolution": "xw", "convolution_backwards_data": "gw", "convolution_backwards_weights": "xg"}
LENGTHS = {1: {"x": (2, 64, 20, 20), "w": (32, 64, 3, 3), "g": (2, 32, 20, 20)}}
LENGTHS[64] = {"x": (2, 64, 20, 20), "w": (64, 1, 3, 3), "g": (2, 64, 20, 20)}
LAST, FIRST = (0, 2, 3, 1), (0, 3, 1, 2)
"""Where axes go whose channels are moved to the end, and back."""


def convolved(op: str, groups: int, written: bool, before: str = "", behind: str = "") -> str:
    """A convolution of tensors whose channels lie last, which transposes say, if they are `written`, or strides."""
    lines = []
    for name in TENSORS[op]:
        lens = LENGTHS[groups][name]
        held = [lens[d] for d in LAST]
        channels, height, width = lens[1:]
        strides = (channels * height * width, 1, channels * width, channels)
        if written:
            lines.append(f"{name} = @param:{name} -> half{listed(held)}")
            lines.append(f"{name}1 = transpose[permutation={listed(FIRST)}]({name})")
        else:
            lines.append(f"{name}1 = @param:{name} -> half{listed(lens)}, {listed(strides)}")
        if before:
            lines.append(f"{name}2 = {before}({name}1)")
    lengths = ", lengths={3, 3}" if op.endswith("weights") else ""
    first, second = (f"{name}{2 if before else 1}" for name in TENSORS[op])
    lines.append(f"c = {op}[padding={{1, 1}}, group={groups}{lengths}]({first}, {second})")
    if behind:
        lines.append(f"d = {behind}(c)")
    lines.append(f"y = transpose[permutation={listed(LAST)}]({'d' if behind else 'c'})")
    return "\n".join([*lines, "@return(y)", ""])


def printed(text: str) -> list[str]:
    """A program's kernels, in which what is loaded goes by the parameter's name."""
    return [
        re.sub(r"\b([xwg])(1|_in)\b", r"\1", kernel.text.partition("GEN_KERNEL")[2])
        for kernel in made(text, "sm_90").kernels
    ]


@pytest.mark.parametrize(("op", "groups", "behind"), [*product(TENSORS, LENGTHS, ["", "relu"])])
def test_strides_and_transposes_say_the_same(op: str, groups: int, behind: str) -> None:
    written, strided = (printed(convolved(op, groups, way, behind=behind)) for way in (True, False))
    assert written == strided


@pytest.mark.parametrize(("op", "groups", "written"), [*product(TENSORS, LENGTHS, [True, False])])
def test_what_is_done_to_operands_first_leaves_channels_last(
    monkeypatch: pytest.MonkeyPatch, op: str, groups: int, written: bool
) -> None:
    """What stands between a transpose and a convolution hides it until other rules have moved the transpose."""
    if groups == 1:
        take_only(monkeypatch)  # operands of products might be stored by a kernel of their own
    texts = (convolved(op, groups, True), convolved(op, groups, written, "relu", "relu"))
    plain, computed = (load(text, "sm_90").lower("schedule").modules for text in texts)
    assert [(m.space, m.axes) for m in plain] == [(m.space, m.axes) for m in computed]
    check_host(texts[1], "sm_90")
