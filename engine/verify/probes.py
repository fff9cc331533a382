"""Monoids that no rule knows by name, one of each kind: what holds for the shipped ones has to hold for a user's."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from genrw.engine.library.gather import build_library
from genrw.engine.library.library import Library
from genrw.grammar.rw import parse_rw

_PROBES = """
/// One value.
monoid probe_plain
  identity 0
  combine a + b
  accumulate float for half, bf16

/// The elements are not the accumulator.
monoid probe_mapped where T: real
  element abs(x) + k / 64
  identity 0
  combine max(a, b)
  accumulate float for half, bf16

/// The accumulator is not the result, which goes by the number of elements.
monoid probe_finished where T: real
  identity 0
  combine a + b
  finish a / n + 1
  accumulate float for half, bf16

/// Several fields, of several types.
monoid probe_carried where T: real
  carry total: T, least: T, last: int32
  element total = x, least = x, last = k
  identity total = 0, least = highest(type), last = -1
  combine total = a.total + b.total, least = min(a.least, b.least), last = max(a.last, b.last)
  finish total / n + least + last * 0.015625
  accumulate float for half, bf16

/// Several fields, and a result of another type.
monoid probe_counted where T: real
  carry above: int32, below: int32
  element above = 1 if x > 0 else 0, below = 1 if x < 0 else 0
  identity above = 0, below = 0
  combine above = a.above + b.above, below = a.below + b.below
  finish above - below
  result int64
  accumulate float for half, bf16
"""


@lru_cache(maxsize=4)
def with_probes(library: Library) -> Library:
    """The library, which any folds may be added to."""
    found = build_library((*library.files, parse_rw(_PROBES, "<probes>")))
    return replace(found, rules=library.rules, foreign=library.foreign, foreign_rules=library.foreign_rules)
