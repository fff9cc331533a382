"""Instructions that multiply matrices: how the lanes of a wave hold their operands and their result.

A *digit* is [length, weight, weight]. The lanes of a wave are numbered by the digits of one list, the elements that a lane
holds by those of another, the last digit being the fastest. A digit times its weights says where an element stands: in rows
and depth of the first operand, in columns and depth of the second, in rows and columns of the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from genrw.engine.language.functions import Function, Misuse, declare

DIGITS = ("first", "second", "result")
"""The entries that hold digits: of the lanes, and of the elements of a lane."""
ENTRIES = {
    "shape": "rows, columns and depth of what it multiplies",
    "lanes": "the lanes that hold it together",
    "memory": "the elements of a row of workgroup memory, where it reads the operands there itself; 0 where lanes hold them",
    "operand": "the element type of both operands",
    "sum": "the element type of the result",
    "first": "digits of the first operand's lanes, and of the elements of a lane",
    "second": "digits of the second operand's lanes, and of the elements of a lane",
    "result": "digits of the result's lanes, and of the elements of a lane",
    "rate": "operations of a compute unit in a cycle, a multiplication and an addition being two",
    "multiply": "C++ that adds the product of `a` and `b` to an array `c`; a template that may name the other entries",
}
"""What every instruction says of itself."""


@dataclass(frozen=True, eq=False)
class Instruction:
    """An instruction. `values` holds its entries, evaluated."""

    name: str
    values: Mapping[str, Any]

    described_as = "an instruction"

    def member(self, name: str) -> object:
        return self.values[name]

    def held(self, part: str) -> int:
        """How many elements of an operand, or of the result, a lane holds."""
        count = 1
        for length, *_ in self.values[part][1]:
            count *= length
        return count


def instruction_functions(instructions: Mapping[str, Instruction]) -> dict[str, Function]:
    """The function by which expressions ask for an instruction."""

    def find(name: str) -> Instruction:
        if name not in instructions:
            raise Misuse(f"`{name}` is not an instruction")
        return instructions[name]

    known = declare("instruction(name: string) -> any", find, "An instruction that multiplies matrices, by its name.")
    return {known.name: known}
