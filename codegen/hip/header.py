"""The device header that every kernel includes."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=1)
def device_header() -> str:
    """The text of gen.hpp."""
    return (Path(__file__).parents[1] / "device" / "gen.hpp").read_text(encoding="utf-8")
