"""Programs evaluated in numpy: every stage's output means what the program means, and wrong programs are caught."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from genrw.engine import lane_program
from genrw.engine.build import build_file
from genrw.engine.compare import compare
from genrw.engine.dtypes import dtype_name
from genrw.engine.inputs import random_inputs
from genrw.engine.interpret import interpret
from genrw.engine.ir import Module
from genrw.engine.library import Library, build_library
from genrw.engine.pipeline import Options, Pipeline, Trace
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.gen import parse_gen
from genrw.grammar.rw import parse_rw

RULES = Path(__file__).parents[2] / "rules"

FIRST_HIGHEST = """
/// The place of the first highest element.
monoid first_highest
  carry value: T, index: int64
  element value = x, index = k
  identity value = lowest(type), index = highest(int64)
  combine value = max(a.value, b.value), index = a.index if a.value > b.value or (a.value == b.value and a.index < b.index) else b.index
  finish index
  result int64

/// The mean; half is added up in float.
monoid average
  identity 0
  combine a + b
  finish a / n
  accumulate float for half
"""


def _library(*more: str) -> Library:
    files = [parse_rw(path.read_text(), path.name) for path in sorted(RULES.rglob("*.rw"))]
    return build_library([*files, *(parse_rw(text, "more.rw") for text in more)])


@pytest.fixture(scope="module")
def library() -> Library:
    return _library()


@pytest.fixture(scope="module")
def pipeline(library: Library) -> Pipeline:
    return Pipeline(library)


def _module(library: Library, text: str, target: str = "gfx942") -> Module:
    (module,) = build_file(parse_gen(text), library, target).values()
    return replace(module, target=target)
