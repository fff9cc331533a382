"""Places in a text as editors count them: lines, and columns in the units of one of the protocol's encodings."""

from __future__ import annotations

import re
from bisect import bisect_right

_UNITS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
_BREAK = re.compile(r"\r\n|\n|\r")


class Positions:
    """One text's lines. `encoding` is utf-8, utf-16 or utf-32; texts may hold lone surrogates."""

    def __init__(self, text: str, encoding: str = "utf-16") -> None:
        self.text = text
        self._codec, self._size = _UNITS.get(encoding, _UNITS["utf-16"])
        breaks = list(_BREAK.finditer(text))
        self._starts = [0, *(mark.end() for mark in breaks)]
        self._ends = [*(mark.start() for mark in breaks), len(text)]

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column, counted from 0, of a character; inside of a line's break, the end of the line."""
        offset = min(max(offset, 0), len(self.text))
        line = bisect_right(self._starts, offset) - 1
        return line, self._units(self.text[self._starts[line] : min(offset, self._ends[line])])

    def offset(self, line: int, column: int) -> int:
        """The character at a place; past the end of a line, its end."""
        if line >= len(self._starts):
            return len(self.text)
        first, last = self._starts[max(line, 0)], self._ends[max(line, 0)]
        if column >= self._units(self.text[first:last]):
            return last
        encoded = self.text[first:last].encode(self._codec, "surrogatepass")[: max(column, 0) * self._size]
        return first + len(encoded.decode(self._codec, "ignore"))

    def _units(self, text: str) -> int:
        return len(text.encode(self._codec, "surrogatepass")) // self._size
