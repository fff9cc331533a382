"""Kernels that a compiler refuses, told where the C++ at fault is written if rules brought it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from genrw.codegen.hip.own_text import OwnText, text_in
from genrw.codegen.hip.printer import KernelSource
from genrw.grammar.diagnostics import Diagnostic, GenrwError

OF_OWN_TEXTS = "`genrw emit` prints the kernel; `genrw rules verify {}` tries a text of your own by itself"
"""What to do about a kernel that a compiler refuses: the C++ of own rules is in it as it was written."""
_PLACE = re.compile(r"\.hip[:(](?P<line>\d+)(?:\)|:(?P<column>\d+))?.*?\berror\b")


class Refused(GenrwError):
    """A compiler's refusal of a kernel: `text` is what it read of the kernel, `said` all that it says."""

    def __init__(self, message: str, text: str, said: str) -> None:
        super().__init__(Diagnostic(message, None, OF_OWN_TEXTS.format("OPERATOR")))
        self.message, self.text, self.said = message, text, said

    def __reduce__(self) -> Any:
        return type(self), (self.message, self.text, self.said)


@contextmanager
def told_at_own_texts(sources: Sequence[KernelSource]) -> Iterator[None]:
    """What a compiler meanwhile refuses of these kernels is told at the text that rules brought, if it is that."""
    try:
        yield
    except Refused as problem:
        text = _at_fault(problem, {text: None for source in sources for text in source.own_texts})
        if text is None:
            raise
        message = f"in the `{text.clause}` of `{text.name}`: {problem.message}"
        raise GenrwError(Diagnostic(message, text.span, OF_OWN_TEXTS.format(text.name))) from problem


def _at_fault(problem: Refused, texts: dict[OwnText, None]) -> OwnText | None:
    """The text at the first place of an error that one holds."""
    lines = problem.text.split("\n")
    for place in _PLACE.finditer(problem.said):
        number, column = int(place["line"]), place["column"]
        if 0 < number <= len(lines):
            found = text_in(texts, lines[number - 1], int(column) if column else None)
            if found is not None:
                return found
    return None
