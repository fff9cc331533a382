"""Programs in which each rounding may go either way, as it does where a kernel adds up in another order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from genrw.engine.interpret.evaluate import Evaluator
from genrw.engine.ir.dtypes import DTYPES, numpy_dtype
from genrw.engine.ir.nodes import Node
from genrw.engine.language.arrays import Array, Values
from genrw.engine.language.functions import Value
from genrw.engine.library.library import Library, nearness


class EitherWay(Evaluator):
    """Rounds each floating element to one of the two nearest of its type, drawn by a seed.

    A kernel need not store what one operator hands to another: with odd seeds elements are of the types that operators are
    computed in, and of half of the operators the nearest, as of a kernel that rounds as the program does. What the type
    holds exactly stays as it is, so it makes sense only where it is `precise`. What an operator says that it is off by may be
    drawn as well, of exact results too.
    """

    def __init__(self, library: Library, context: Mapping[str, Any], precise: bool, seed: int) -> None:
        super().__init__(library, context, precise)
        self.random = np.random.default_rng(seed)
        self.stores_all = seed % 2 == 0

    def _stored(self, node: Node, values: Any) -> Value:
        value = super()._stored(node, values)
        if isinstance(value, Array) and DTYPES[value.dtype].is_float:
            kept = value.dtype if self.stores_all else DTYPES[value.dtype].compute
            either = self.stores_all or bool(self.random.integers(0, 2))
            return Array(self._rounded(self._off(node, value.values), kept, either), value.dtype)
        return value

    def _off(self, node: Node, values: Values) -> Values:
        """What an operator gives that is only near what it means."""
        near = nearness(self.library.operator(node.op).decl)
        with np.errstate(all="ignore"):
            return values if near is None else values * (1 + near * self.random.uniform(-1, 1, values.shape))

    def _rounded(self, values: Values, dtype: str, either: bool) -> Values:
        own = numpy_dtype(dtype)
        with np.errstate(all="ignore"):
            nearest = np.asarray(values).astype(own)
            if not either:
                return nearest.astype(np.float64)
            other = np.nextafter(nearest, np.where(values > nearest, np.inf, -np.inf).astype(own))
            exact = ~np.isfinite(nearest) | (nearest == values)
        stay = exact | (self.random.integers(0, 2, values.shape) == 0)
        return np.where(stay, nearest, other).astype(np.float64)
