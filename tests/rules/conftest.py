"""Helpers of these tests, and the catalogue of verified programs, are imported by name."""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "verify")]
