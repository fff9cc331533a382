"""Names in printed kernels that C++ or a platform has taken already."""

from __future__ import annotations

from pathlib import Path

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
