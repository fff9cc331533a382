"""Types of values at every stage, as the expression language sees them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import prod

SORTS = ("tensor", "scalar", "array", "index", "buffer", "effect")
_MOST_AXES = 24
"""numpy has 32 in its older releases, and rules may cut some."""
_MOST_ELEMENTS = 2**48


@dataclass(frozen=True, slots=True)
class Type:
    """The type of one value.

    sort "tensor": `lens` elements of `dtype` in memory, element strides `strides` (None: row-major, packed);
    "scalar": one `dtype` value a lane; "array": `size` of them a lane; "index": an int64 index a lane (`size` of
    them when not 0); "buffer": `lens` elements of workgroup memory; "effect": nothing to read.
    """

    sort: str
    dtype: str = ""
    lens: tuple[int, ...] = ()
    strides: tuple[int, ...] | None = None
    size: int = 0

    @property
    def elements(self) -> int:
        """How many elements a tensor or buffer has."""
        return prod(self.lens)

    @property
    def layout(self) -> tuple[int, ...]:
        """Element strides, worked out for packed tensors."""
        return packed_strides(self.lens) if self.strides is None else self.strides

    @property
    def span(self) -> int:
        """The elements of memory from a tensor's first one to its last, those between rows included."""
        if not self.elements:
            return 0
        return 1 + sum((length - 1) * stride for length, stride in zip(self.lens, self.layout, strict=True))

    @property
    def described_as(self) -> str:
        """What a value of the type is, as messages say it."""
        return f"{'an' if self.sort[0] in 'aei' else 'a'} {self.sort}"

    def member(self, name: str) -> object:
        """A member as expressions name it (`x.lens`); KeyError if there is none."""
        if name == "type":
            return self.dtype
        if name == "rank":
            return len(self.lens)
        if name == "strides":
            return self.layout
        if name == "packed":
            return self.strides is None or self.strides == packed_strides(self.lens)
        if name in ("lens", "elements", "size", "sort"):
            return getattr(self, name)
        raise KeyError(name)

    @property
    def member_names(self) -> frozenset[str]:
        """The members that expressions may name."""
        return TYPE_MEMBERS


TYPE_MEMBERS = frozenset({"type", "rank", "strides", "packed", "lens", "elements", "size", "sort"})


@cache
def packed_strides(lens: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major element strides."""
    strides = [1] * len(lens)
    for d in range(len(lens) - 2, -1, -1):
        strides[d] = strides[d + 1] * max(lens[d + 1], 1)
    return tuple(strides)


EFFECT = Type("effect")


MEMORY_LIMIT = 1 << 56
"""How many elements of memory a tensor reaches over at most: offsets in bytes take 64 bits, and so do sums of some of them."""


def beyond_limits(lens: Sequence[int]) -> tuple[str, str] | None:
    """What is too much about a tensor's lengths, and what is not. Axes of no elements do not make up for long ones:
    indices and strides count through them."""
    if len(lens) > _MOST_AXES:
        return f"the tensor has {len(lens)} axes", f"it has at most {_MOST_AXES}"
    if prod(n for n in lens if n > 0) >= _MOST_ELEMENTS:
        return "the tensor is too large", "it has fewer than 2^48 elements, axes of length 0 left out"
    return None
