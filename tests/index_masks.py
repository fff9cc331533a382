"""Random masks: comparisons of places along the axes of a matrix, and what is made of them."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

Values = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Mask:
    """Lines of a program whose last one is called `name`, over tensors of shape `lens`, and what is hidden."""

    name: str
    lines: tuple[str, ...]
    hidden: Values


class Masks:
    """Draws masks of the last two axes of a shape."""

    def __init__(self, random: Random, lens: tuple[int, ...]) -> None:
        self.random, self.lens = random, lens
        self.lines: list[str] = []
        rows, columns = np.indices(lens[-2:])
        self.row, self.column = (self._iota(len(lens) - 2, rows), self._iota(len(lens) - 1, columns))

    def drawn(self) -> Mask:
        """One to three conditions, joined."""
        name, hidden = self._condition()
        for _ in range(self.random.choice((0, 0, 1, 2))):
            other, beside = self._condition()
            join = self.random.choice(("logical_or", "logical_or", "logical_and"))
            name = self._line(f"{join}({name}, {other})")
            hidden = hidden | beside if join == "logical_or" else hidden & beside
        return Mask(name, tuple(self.lines), hidden)

    def _line(self, text: str) -> str:
        name = f"m{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def _iota(self, axis: int, values: Values) -> tuple[str, Values]:
        return self._line(f"iota[lens={{{', '.join(map(str, self.lens))}}}, axis={axis}]()"), values.astype(np.int64)

    def _condition(self) -> tuple[str, Values]:
        """Columns compared with what may depend on the row."""
        limit, values = self._limit()
        column, columns = self.column
        op, compare = self.random.choice(
            (
                ("greater", np.greater),
                ("less", np.less),
                ("greater_equal", np.greater_equal),
                ("less_equal", np.less_equal),
                ("equal", np.equal),
                ("not_equal", np.not_equal),
            )[: self.random.choice((2, 4, 4, 6))]
        )
        if self.random.random() < 0.3:
            name, found = self._line(f"{op}({limit}, {column})"), compare(values, columns)
        else:
            name, found = self._line(f"{op}({column}, {limit})"), compare(columns, values)
        if self.random.random() < 0.2:
            return self._line(f"logical_not({name})"), ~found
        return name, found

    def _limit(self) -> tuple[str, Values]:
        """A number, or a place that goes along with the row."""
        row, rows = self.row
        longest = max(self.lens[-2:])
        offset = self.random.randint(-longest, longest)
        match self.random.choice(("row", "row", "offset", "offset", "number", "slope", "window")):
            case "row":
                return row, rows
            case "offset":
                return self._line(f"add({row}, {offset})"), rows + offset
            case "slope":
                factor = self.random.choice((-2, -1, 2, 3))
                scaled = self._line(f"mul({row}, {factor})")
                return self._line(f"add({scaled}, {offset})"), rows * factor + offset
            case "window":
                return self._line(f"sub({row}, {abs(offset) // 4})"), rows - abs(offset) // 4
            case _:
                return str(abs(offset)), np.full_like(rows, abs(offset))
