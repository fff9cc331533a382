"""The element types: names, sizes, limits, C++ and numpy counterparts, and the classes they belong to.

numpy is imported only when a numpy type is asked for, so that lowering a program does not pay for it.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np

Kind = Literal["bool", "uint", "int", "float"]


@dataclass(frozen=True)
class Dtype:
    """One element type.

    `lowest` and `highest` are the identities of max and min: for floating types the infinities.
    `smallest` and `largest` are the finite limits. `epsilon` is the gap above 1, and 0 for exact types.
    """

    name: str
    kind: Kind
    itemsize: int
    cpp: str
    smallest: int | float
    largest: int | float
    epsilon: float = 0.0

    @property
    def bits(self) -> int:
        """The width in memory."""
        return self.itemsize * 8

    @property
    def lowest(self) -> int | float:
        """The value not above any other, -inf included."""
        return -math.inf if self.kind == "float" else self.smallest

    @property
    def highest(self) -> int | float:
        """The value not below any other, inf included."""
        return math.inf if self.kind == "float" else self.largest

    @property
    def compute(self) -> str:
        """The type arithmetic is done in: half and bf16 are only stored."""
        return "float" if self.kind == "float" and self.itemsize < 4 else self.name

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint")

    @property
    def is_signed(self) -> bool:
        return self.kind in ("int", "float")


def _integer(name: str, itemsize: int, cpp: str) -> Dtype:
    bits = itemsize * 8
    if name.startswith("u"):
        return Dtype(name, "uint", itemsize, cpp, 0, 2**bits - 1)
    return Dtype(name, "int", itemsize, cpp, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _floating(name: str, itemsize: int, cpp: str, fraction: int, exponent: int) -> Dtype:
    """A binary floating type with so many stored fraction bits and this largest power of two."""
    largest = math.ldexp(2 - 2.0**-fraction, exponent)
    return Dtype(name, "float", itemsize, cpp, -largest, largest, 2.0**-fraction)


_TABLE = (
    Dtype("bool", "bool", 1, "bool", False, True),
    _integer("int8", 1, "gen::int8"),
    _integer("uint8", 1, "gen::uint8"),
    _integer("int16", 2, "gen::int16"),
    _integer("uint16", 2, "gen::uint16"),
    _integer("int32", 4, "int"),
    _integer("uint32", 4, "gen::uint32"),
    _integer("int64", 8, "gen::int64"),
    _integer("uint64", 8, "gen::uint64"),
    _floating("half", 2, "gen::half", 10, 15),
    _floating("bf16", 2, "gen::bf16", 7, 127),
    _floating("float", 4, "float", 23, 127),
    _floating("double", 8, "double", 52, 1023),
)

DTYPES: dict[str, Dtype] = {dtype.name: dtype for dtype in _TABLE}

CLASSES: dict[str, frozenset[str]] = {
    "any": frozenset(DTYPES),
    "number": frozenset(d.name for d in _TABLE if d.kind != "bool"),
    "real": frozenset(d.name for d in _TABLE if d.is_float),
    "integer": frozenset(d.name for d in _TABLE if d.is_integer),
    "signed": frozenset(d.name for d in _TABLE if d.is_signed),
}
"""Classes a dtype variable may be bounded by (`where T: number`)."""

_NUMPY_NAMES = {"half": "float16", "float": "float32", "double": "float64"}
_GENRW_NAMES = {theirs: ours for ours, theirs in _NUMPY_NAMES.items()} | {"bfloat16": "bf16"}


def is_dtype(name: str) -> bool:
    """Whether there is an element type of this name."""
    return name in DTYPES


_OTHER_NAMES = re.compile(r"(?P<kind>f|fp|float|i|int|u|uint|bf|bfloat)(?P<bits>8|16|32|64)?(_?t)?")
_KINDS = {"f": "float", "fp": "float", "i": "int", "u": "uint", "bfloat": "bf"}


def type_meant(name: str) -> str | None:
    """The element type that is meant by a name which other languages have for it, or which is nearly one."""
    other = _OTHER_NAMES.fullmatch(name.lower())
    if other is not None:
        common = _KINDS.get(other["kind"], other["kind"]) + (other["bits"] or "32")
        found = _GENRW_NAMES.get(common, common)
        return found if is_dtype(found) else None
    return next(iter(get_close_matches(name.lower(), DTYPES, 1)), None)


def in_class(dtype: str, class_name: str) -> bool:
    """Whether a dtype belongs to a class, or is the dtype of that very name; accumulators are of class `any` too."""
    members = CLASSES.get(class_name)
    return dtype == class_name if members is None else class_name == "any" or dtype in members


def holds(wide: str, narrow: str) -> bool:
    """Whether every value of a type is one of another type."""
    a, b = DTYPES[wide], DTYPES[narrow]
    if b.kind == "bool" or wide == narrow:
        return True
    if a.kind == "bool" or (b.is_float and not a.is_float):
        return False
    if a.is_float and b.is_float:
        return a.epsilon <= b.epsilon and a.largest >= b.largest
    if a.is_float:
        return b.largest * a.epsilon <= 1
    return a.smallest <= b.smallest and a.largest >= b.largest


_LEAST_EXPONENT = {"half": -14, "bf16": -126, "float": -126}
"""The exponent of a floating type's smallest normal value."""


def rounded(value: float, dtype: str) -> float:
    """A number as a floating type stores it: the nearest value, halfway the even one, beyond the largest infinity."""
    if dtype not in _LEAST_EXPONENT or value == 0 or not math.isfinite(value):
        return float(value)
    limits = DTYPES[dtype]
    exponent = max(math.frexp(value)[1] - 1, _LEAST_EXPONENT[dtype])
    step = math.ldexp(limits.epsilon, exponent)
    nearest = round(value / step) * step
    return nearest if abs(nearest) <= limits.largest else math.copysign(math.inf, value)


def converted(value: float, source: str, target: str) -> float:
    """What the conversion of a constant gives: see the `convert` function of expressions."""
    a, b = DTYPES[source], DTYPES[target]
    stored = rounded(value, source) if a.is_float else value
    if b.is_float:
        return rounded(stored, target)
    if b.kind == "bool":
        return stored != 0
    if a.is_float:
        return in_range(math.trunc(stored) if math.isfinite(stored) else stored, target)
    return (int(stored) - int(b.smallest)) % (1 << b.bits) + int(b.smallest)


def is_constant(value: float, number: float, dtype: str) -> bool:
    """Is a constant of a type the number: itself, as the type stores it, or as a narrower floating type does?

    0 and -0 are two numbers, and no number is true or false.
    """
    if isinstance(value, bool) or isinstance(number, bool):
        return value is number
    if not DTYPES[dtype].is_float:
        return value == number
    narrower = [name for name, d in DTYPES.items() if d.is_float and holds(dtype, name)]
    stored = rounded(value, dtype)
    return any(_same(stored, rounded(number, name)) for name in narrower)


def _same(a: float, b: float) -> bool:
    """Are two floating numbers one, NaN and the sign of 0 included?"""
    return (a == b and math.copysign(1, a) == math.copysign(1, b)) or (math.isnan(a) and math.isnan(b))


def same_value(a: Any, b: Any) -> bool:
    """Are two attributes' values one? 0 and -0 are two, as are 1 and true; NaN is one with itself, 1 with 1.0."""
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return len(a) == len(b) and all(map(same_value, a, b))
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, float) or isinstance(b, float):
        return isinstance(a, (int, float)) and isinstance(b, (int, float)) and _same(a, b)
    return bool(a == b)


def has_reciprocal(value: float, dtype: str) -> bool:
    """Whether 1 / value is exact and normal in a floating type, so that dividing is multiplying by it."""
    mantissa, exponent = math.frexp(rounded(value, dtype))
    return abs(mantissa) == 0.5 and abs(exponent - 1) <= -_LEAST_EXPONENT.get(dtype, -1022)


def in_range(value: float, dtype: str) -> float:
    """A number as an element: values beyond the type's limits become those, infinities of floats stay."""
    limits = DTYPES[dtype]
    if limits.kind == "bool":
        return value != 0
    if math.isnan(value):
        return value if limits.is_float else 0
    if math.isinf(value) and limits.is_float:
        return value
    clamped = min(max(value, limits.smallest), limits.largest)
    return clamped if limits.is_float else int(clamped)


def is_element(value: object, dtype: str) -> bool:
    """Can a number stand for an element? Those for integers are finite and in range; what follows the point is cut off."""
    if not isinstance(value, (int, float)):
        return False
    limits = DTYPES[dtype]
    if not limits.is_integer:
        return True
    return math.isfinite(value) and limits.smallest <= math.trunc(value) <= limits.largest


def promote(a: str, b: str) -> str:
    """The type two types meet in: float over integer over bool; of mixed signs, the signed type of both."""
    if a == b:
        return a
    low, high = sorted((DTYPES[a], DTYPES[b]), key=_rank)
    if high.is_float:
        same_size = low.is_float and low.itemsize == high.itemsize
        return "float" if same_size else high.name
    if low.kind == "bool" or low.kind == high.kind:
        return high.name
    unsigned = low if low.kind == "uint" else high
    signed = high if low.kind == "uint" else low
    return f"int{min(64, max(signed.bits, unsigned.bits * 2))}"


def _rank(dtype: Dtype) -> tuple[int, int]:
    return {"bool": 0, "uint": 1, "int": 1, "float": 2}[dtype.kind], dtype.itemsize


@cache
def numpy_dtype(name: str) -> np.dtype[Any]:
    """The numpy type of a dtype; bf16 is the one of ml_dtypes."""
    import numpy

    if name != "bf16":
        return numpy.dtype(_NUMPY_NAMES.get(name, name))
    import ml_dtypes

    bf16: np.dtype[Any] = numpy.dtype(ml_dtypes.bfloat16)
    return bf16


def dtype_name(dtype: np.dtype[Any]) -> str | None:
    """The dtype of a numpy type, or None where there is none (complex, strings …)."""
    name = _GENRW_NAMES.get(dtype.name, dtype.name)
    return name if name in DTYPES else None
