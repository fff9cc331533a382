"""Instructions that multiply matrices: how the lanes of a wave hold their operands and their result.

A *digit* is [length, weight, weight]. The lanes of a wave are numbered by the digits of one list, the elements that a lane
holds by those of another, the last digit being the fastest. A digit times its weights says where an element stands: in rows
and depth of the left operand, in columns and depth of the second, in rows and columns of the result.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import inf, prod
from typing import Any

from genrw.engine.ir.dtypes import DTYPES
from genrw.engine.language.emit_text import multiply_text
from genrw.engine.language.functions import Function, Misuse, declare
from genrw.grammar.diagnostics import Diagnostic
from genrw.grammar.rw_tree import InstructionDecl

ENTRIES = {
    "shape": "rows, columns and depth of what it multiplies",
    "lanes": "the lanes that hold it together",
    "memory": "the elements of a row of workgroup memory, where it reads the operands there itself; 0 where lanes hold them",
    "operand": "the element type of both operands",
    "sum": "the element type of the result",
    "left": "digits of the left operand's lanes, and of the elements of a lane",
    "right": "digits of the right operand's lanes, and of the elements of a lane",
    "result": "digits of the result's lanes, and of the elements of a lane",
    "rate": "operations of a compute unit in a cycle, a multiplication and an addition being two",
    "multiply": "C++ that adds the product of `a` and `b` to an array `c`; a template that may name the other entries",
}
"""What every instruction says of itself."""
OPTIONAL = {
    "left_held": "true if lanes hold the left operand, though the instruction reads the right one from workgroup memory",
}
"""What an instruction may say besides; false if it does not."""
WORKED_OUT = "rows_together"
"""What follows from an instruction's digits, and may be asked for as its entries may."""
_LARGEST = 1024
_MOST_DIGITS = 16
_MOST_ELEMENTS = 1 << 16

INSTRUCTION = "instruction"
"""The function by which expressions ask for an instruction."""


@dataclass(frozen=True, eq=False)
class Instruction:
    """An instruction. `values` holds its entries, evaluated."""

    decl: InstructionDecl
    values: Mapping[str, Any]

    described_as = "an instruction"
    member_names = frozenset({"name", WORKED_OUT, *ENTRIES, *OPTIONAL})

    @property
    def name(self) -> str:
        return self.decl.name

    def member(self, name: str) -> object:
        if name in OPTIONAL:
            return self.values.get(name, False)
        return self.rows_together if name == WORKED_OUT else self.values[name]

    @property
    def rows_together(self) -> tuple[bool, bool]:
        """Of the left operand and the right one: are a lane's elements of a tile rows of one depth, which are neighbours?

        Then a lane holds its tiles depth by depth. Else its elements are rows, and in each of these the depths.
        """
        left, right = (self._holds_neighbours(part) for part in ("left", "right"))
        return left, right

    def _holds_neighbours(self, part: str) -> bool:
        of_share = self.values[part][1]
        in_order = all(row == prod(d[0] for d in of_share[k + 1 :]) for k, (_, row, _) in enumerate(of_share))
        return self.values["shape"][2] == 1 and self.held(part) > 1 and in_order

    def held(self, part: str) -> int:
        """How many elements of an operand, or of the result, a lane holds."""
        return prod(length for length, *_ in self.values[part][1])

    def multiplied(self) -> str:
        """The C++ that multiplies, filled in; GenrwError if it cannot be."""
        values = {name: self.values[name] for name in ("shape", "lanes", "memory", "operand", "sum")}
        return multiply_text(self.decl, self.values["multiply"], values, self.held("result")).strip("\n")


def instruction_problems(decl: InstructionDecl, values: Mapping[str, Any]) -> Iterator[Diagnostic]:
    """What is wrong with an instruction: entries that are not there, or not what they should be; elements that no lane
    holds, or that a result has twice."""
    known = dict(decl.values)
    for name in ENTRIES:
        if name not in known:
            remedy = f"say with `{name}`: {ENTRIES[name]}"
            yield Diagnostic(f"the instruction `{decl.name}` has no `{name}`", decl.name_span, remedy)
    possible = ENTRIES | OPTIONAL
    seen: set[str] = set()
    for name, value in decl.values:
        if name in seen:
            yield Diagnostic(f"`{name}` is given twice", value.span, "remove one of them")
        seen.add(name)
        if name not in possible:
            remedy = f"instructions have {', '.join(possible)}"
            yield Diagnostic(f"an instruction has no entry `{name}`", value.span, remedy)
        elif name in values and (wrong := _wrong(name, values[name])) is not None:
            yield Diagnostic(f"`{name}` of `{decl.name}` is {wrong}", value.span, f"it is {possible[name]}")
            return
    if all(name in values for name in ENTRIES):
        yield from (Diagnostic(message, known[part].span) for part, message in _misplaced(values))


def _wrong(name: str, value: Any) -> str | None:
    """Why an entry's value is not what it should be; None if it is."""
    if name in ("operand", "sum"):
        return None if value in DTYPES and DTYPES[value].kind != "bool" else "no type of numbers"
    if name == "multiply":
        if not isinstance(value, str):
            return "no text"
        return None if re.search(r"\bc\b", value) else "no text that names `c`"
    if name in OPTIONAL:
        return None if isinstance(value, bool) else "neither true nor false"
    if name == "rate":
        return (
            None
            if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < inf
            else "no positive number"
        )
    if name in ("lanes", "memory"):
        least = 1 if name == "lanes" else 0
        return (
            None if _is_whole(value) and least <= value <= _LARGEST else f"no whole number from {least} to {_LARGEST}"
        )
    if name == "shape":
        fine = _is_list(value, 3) and all(_is_whole(n) and 1 <= n <= _LARGEST for n in value)
        return None if fine else f"no list of three whole numbers from 1 to {_LARGEST}"
    fine = _is_list(value, 2) and all(_is_list(digits, None) and all(map(_is_digit, digits)) for digits in value)
    return None if fine else "no list of two lists of digits [length, weight, weight]"


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_list(value: Any, length: int | None) -> bool:
    return isinstance(value, tuple) and (len(value) == length if length is not None else len(value) <= _MOST_DIGITS)


def _is_digit(value: Any) -> bool:
    return _is_list(value, 3) and all(_is_whole(n) and 0 <= n <= _LARGEST for n in value) and value[0] >= 1


def _misplaced(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The parts whose digits do not say where each element is, each with what is wrong, found by counting all of them."""
    rows, columns, depth = values["shape"]
    for part, extents in (("left", (rows, depth)), ("right", (columns, depth)), ("result", (rows, columns))):
        of_lane, of_share = values[part]
        digits = (*of_lane, *of_share)
        lanes, elements = prod(d[0] for d in of_lane), prod(d[0] for d in digits)
        if lanes != values["lanes"]:
            yield part, f"the lanes' digits of `{part}` count {lanes} lanes, not {values['lanes']}"
            continue
        if elements > _MOST_ELEMENTS:
            yield part, f"the digits of `{part}` count more than {_MOST_ELEMENTS} elements"
            continue
        if _miscounted(digits, *extents):
            yield (
                part,
                f"the digits of `{part}` do not count all {extents[0]} times {extents[1]} elements and no others",
            )
        elif part == "result" and prod(extents) != elements:
            yield part, "two lanes hold the same element of the result"
    if [d for digits in values["left"] for d in digits if d[2]] != [
        d for digits in values["right"] for d in digits if d[2]
    ] and not values["memory"]:
        yield "right", "the operands' digits of the depth differ, and a lane multiplies what it holds of both"


@lru_cache(maxsize=1024)
def _miscounted(digits: tuple[tuple[int, int, int], ...], rows: int, columns: int) -> bool:
    """Do digits count other elements than so many rows and columns have? Each library has the same instructions again."""
    # an element's row and column as one number
    row = columns + _LARGEST
    places = _counted((length, of_row * row + of_column) for length, of_row, of_column in digits)
    return places != _counted(((rows, row), (columns, 1)))


def _counted(digits: Iterable[tuple[int, int]]) -> set[int]:
    """All sums of digits of some lengths times their weights."""
    found = {0}
    for length, weight in digits:
        found = {place + n * weight for place in found for n in range(length)} if weight else found
    return found


def instruction_functions(instructions: Mapping[str, Instruction]) -> dict[str, Function]:
    """That function, for these instructions."""

    def find(name: str) -> Instruction:
        if name not in instructions:
            raise Misuse(f"`{name}` is not an instruction")
        return instructions[name]

    known = declare(
        f"{INSTRUCTION}(name: string) -> any", find, "An instruction that multiplies matrices, by its name."
    )
    return {known.name: known}
