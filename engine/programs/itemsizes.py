"""How many bytes an element takes."""

from __future__ import annotations

from genrw.engine.ir.dtypes import DTYPES
from genrw.engine.library.monoids import element_type


def itemsize(dtype: str) -> int:
    return DTYPES[element_type(dtype)].itemsize
