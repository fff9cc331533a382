"""What a stage gives, printed and read again, is the same text, and leads to the same kernels."""

from __future__ import annotations

from random import Random

import pytest
from breadth import first_quick
from random_contractions import random_contraction
from random_programs import random_program

import genrw
from genrw.engine.library.library import Library

TARGETS = ("gfx942", "host", "sm_90", "gfx1100")
SEEDS = (102, 113, 101, 4, 5006, 11, 12, 16, 20, 103, 108, 139, 5059)

WRITTEN = [
    "x = @param:x -> float{1, 0, 4}\ny = exp(x)\nz = reverse[axes={2}](y)\n@return(z)\n",
    "x = @param:x -> float{8, 16}\ne = @param:e -> float{8, 0}\ny = concat[axis=1](x, e)\nw = neg(e)\n@return(y, w)\n",
    "x = @param:y -> half{64, 100}, {1, 64}\ny = exp(x)\nparam = add(y, 1.0)\n@return(param, x)\n",
    "x = @param:x -> half{64, 100}, {0, 1}\nliteral = @literal{2.0} -> half{64, 1}\nload = mul(x, literal)\n@return(load)\n",
]


def same_again(text: str, target: str) -> None:
    """Each stage's listing stands for what it was printed from."""
    stages = dict(genrw.load(text, target=target).remaining_stages())
    last = str(stages["final"])
    for stage, lowered in stages.items():
        listing = str(lowered)
        again = genrw.load(listing)
        assert str(again) == listing, stage
        assert str(again.lower("final")) == last, f"{stage}\n{listing}"


@pytest.mark.parametrize("seed", first_quick(SEEDS, 4))
def test_a_listing_of_a_random_program(library: Library, seed: int) -> None:
    draw = random_contraction if seed % 4 == 0 else random_program
    same_again(draw(library, seed).text, Random(seed).choice(TARGETS))


@pytest.mark.parametrize("text", WRITTEN)
@pytest.mark.parametrize("target", ["gfx942", "host"])
def test_a_listing_of_a_program(text: str, target: str) -> None:
    same_again(text, target)
