"""Names in printed kernels that C++ or a platform has taken already."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import genrw

TEXT = "x = @param:{name} -> float{{8}}\ny = neg(x)\n@return(y)\n"


@pytest.mark.parametrize("name", ["exp", "double", "round"])
def test_kernels_named_like_functions_and_keywords(tmp_path: Path, name: str) -> None:
    path = tmp_path / f"{name}.gen"
    path.write_text(TEXT.format(name="x"))
    assert f"\n{name}_(const float*" in genrw.emit(path)


def test_parameters_may_be_named_like_functions() -> None:
    assert "const float* __restrict__ exp," in genrw.emit(TEXT.format(name="exp"))
    assert "const float* __restrict__ while_," in genrw.emit(TEXT.format(name="while"))


@pytest.mark.parametrize("name", ["gen_kept", "gen_lane", "lane", "sum_float", "main_lanes"])
def test_values_may_be_named_like_what_runs_lanes_on_the_host(name: str) -> None:
    text = f"x = @param:x -> float{{4, 300}}\n{name} = reduce_sum[axes={{1}}](x)\ny = sub(x, {name})\n@return(y)\n"
    x = np.random.default_rng(0).random((4, 300), np.float32)
    got = genrw.load(text, target="gfx942").run({"x": x})["y"]
    np.testing.assert_allclose(got, x - x.sum(1, keepdims=True), rtol=1e-5)
