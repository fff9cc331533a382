"""Identifiers in printed kernels: a program's own words, but for what C++, a compiler or a platform has taken already.

A word keeps its letters. One that is taken ends in an underscore. A compiler's own words have two underscores or one in
front, and macros begin with two capitals: no word is printed so. Those left are listed in `reserved/`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

KEPT = "gen_kept"
"""What the host's kernels call the variables that are kept. No variable of a kernel may have the name."""

_MACRO = re.compile(r"[A-Z][A-Z0-9_]\w*(?<!_)")
_NUMBERED = re.compile(r"[A-Z]\d*")
_OF_GPUS = re.compile(r"(cuda|hip|cu|nv)[A-Z]\w*")
_OF_THE_HEADER = re.compile(rf"gen_\w*(?<!_)|{KEPT}")
_OF_LIBRARIES = re.compile(r"\w+_t|(atomic|make_|pthread_|cuda_|hip_|hsa_|nv_|tex[1-3]D|surf[1-3]D)\w*(?<!_)")


def identifier(name: str, otherwise: str) -> str:
    """A name that a variable may have in C++, as close to the one given as can be; `otherwise` begins one that would not
    begin with a letter."""
    text = re.sub(r"_{2,}", "_", re.sub(r"\W", "_", name, flags=re.ASCII)).lstrip("_")
    if not text or text[0].isdigit():
        text = f"{otherwise}_{text}"
    return f"{text}_" if _is_reserved(text) else text


def global_identifier(name: str, otherwise: str) -> str:
    """The same for what has no scope around it: a C function that programs link with, a table."""
    text = identifier(name, otherwise)
    return f"{text}_" if text in _words("globals.txt") or _OF_LIBRARIES.fullmatch(text) else text


class Names:
    """Distinct names, none of which is `taken`. `given`: those given out."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = frozenset(taken)
        self.given: set[str] = set()

    def variable(self, wanted: str, otherwise: str = "value") -> str:
        """A new name for a variable."""
        return self._new(identifier, identifier(wanted, otherwise), "")

    def of_all(self, wanted: str, otherwise: str, between: str = "") -> str:
        """A new name for what stands outside of functions; namesakes are told apart by `between` and a number."""
        return self._new(global_identifier, global_identifier(wanted, otherwise), between)

    def _new(self, legal: Callable[[str, str], str], name: str, between: str) -> str:
        candidate, count = name, 1
        while candidate in self._taken or candidate in self.given:
            count += 1
            candidate = legal(f"{name}{between}{count}", "")
        self.given.add(candidate)
        return candidate


def _is_reserved(text: str) -> bool:
    may_be_macro = _MACRO.fullmatch(text) and not _NUMBERED.fullmatch(text)
    return bool(
        may_be_macro or text in _words("words.txt") or _OF_GPUS.fullmatch(text) or _OF_THE_HEADER.fullmatch(text)
    )


@cache
def _words(file: str) -> frozenset[str]:
    """The words of a list; its comments begin with #."""
    lines = (Path(__file__).parents[1] / "reserved" / file).read_text(encoding="utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split())
