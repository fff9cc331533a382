"""Random programs to measure: a few steps of the suite `random`'s table on tensors of random ranks, extents, strides and
types, of 1 to 256 MB in all. The same seed gives the same programs everywhere."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from random import Random
from typing import Any, TypeVar

import jinja2

from genrw.api import load
from genrw.engine.ir.dtypes import DTYPES, in_class
from genrw.engine.ir.types import Type, packed_strides
from genrw.grammar.diagnostics import GenrwError, error
from genrw.grammar.read import read_text
from genrw.grammar.source import Source
from genrw.measure.cases import RANDOM, SUITES, BenchCase, template_environment

_TABLE = SUITES / RANDOM / "steps.toml"
_LEAST_BYTES, _MOST_BYTES = 1 << 20, 1 << 28
_TYPES = ("half",) * 4 + ("float",) * 4 + ("bf16",) * 3 + ("int8", "uint8", "int32")
_FLOATS = ("half", "float", "bf16")
_RANKS = (1, 2, 2, 2, 3, 3, 4, 4, 5)
_STEPS = (1, 1, 2, 2, 3, 4, 5)
_SORTS = {"elementwise": 5, "folds": 4, "moves": 2}
"""How often steps of a part of the table are taken, in proportion."""
_USUAL = (
    2,
    3,
    4,
    7,
    8,
    12,
    14,
    16,
    28,
    32,
    49,
    56,
    64,
    77,
    96,
    100,
    128,
    197,
    224,
    256,
    300,
    320,
    512,
    768,
    1000,
    1024,
)
_LONG = (1280, 1500, 2048, 3072, 4096, 4099, 5120, 8192, 11008, 16384, 30522, 32000, 50257)
_SHARE_OF_FIRST = 0.35
"""What the first input takes of all bytes that a program aims at."""
_TRIES = 200

T = TypeVar("T")


class Choices:
    """Random choices that are the same in every version of Python: of its generators only this one's floats are."""

    def __init__(self, *seed: int) -> None:
        self.random = Random("-".join(map(str, seed))).random

    def one(self, options: Sequence[T]) -> T:
        return options[int(self.random() * len(options))]

    def order(self, count: int) -> list[int]:
        return sorted(range(count), key=[self.random() for _ in range(count)].__getitem__)

    def happens(self, share: float) -> bool:
        return self.random() < share


def random_cases(seed: int, count: int, only: str | None = None) -> list[BenchCase]:
    """The first programs of a seed, those whose name holds `only`. GenrwError where none does."""
    numbers = [n for n in range(count) if only is None or only in _name(seed, n)]
    if not numbers:
        raise error(
            f"none of {count} random programs has a name that holds `{only}`", remedy=f"as {_name(seed, 0)} does"
        )
    return [random_case(seed, number) for number in numbers]


def random_case(seed: int, number: int) -> BenchCase:
    """The program of a seed and a number."""
    choices = Choices(seed, number)
    for _ in range(_TRIES):
        text = _Writer(choices).text()
        if text is not None:
            name = _name(seed, number)
            return BenchCase(name, Source(name, text), name)
    raise error(f"no program found for the seed {seed} and the number {number}", remedy="take another seed")


def _name(seed: int, number: int) -> str:
    return f"{RANDOM}-{seed}-{number}"


@dataclass(frozen=True)
class _Step:
    """A step of the table: the types that it takes, and its lines."""

    types: str
    lines: jinja2.Template


@cache
def _steps() -> Mapping[str, Sequence[_Step]]:
    environment = template_environment()
    parts = tomllib.loads(read_text(_TABLE).text)
    return {
        part: [_Step(row["types"], environment.from_string("\n".join(row["lines"]))) for row in steps.values()]
        for part, steps in parts.items()
    }


class _Writer:
    """Writes a program step by step; what the language refuses, or what becomes too large, is drawn again."""

    def __init__(self, choices: Choices) -> None:
        self.choices = choices
        self.bytes = int(_LEAST_BYTES * 4 * (_MOST_BYTES / _LEAST_BYTES / 4) ** choices.random())
        self.inputs: list[str] = []
        self.lines: list[str] = []
        self.names = 0

    def text(self) -> str | None:
        """The program; None if it is not of the bytes that are wanted."""
        dtype = self.choices.one(_TYPES)
        lens = self._lens(int(self.bytes * _SHARE_OF_FIRST) // DTYPES[dtype].itemsize)
        value = self._input(dtype, lens, strided=True)
        type_ = Type("tensor", dtype, lens)
        for _ in range(self.choices.one(_STEPS)):
            value, type_ = self._step(value, type_)
        if not self.lines:
            return None
        text = self._program(value)
        program = load(text)
        tensors = [node.type for node in (*program.inputs.values(), *program.results.values())]
        size = sum(t.elements * DTYPES[t.dtype].itemsize for t in tensors)
        return text if _LEAST_BYTES <= size <= _MOST_BYTES else None

    def _program(self, result: str) -> str:
        return "\n".join([*self.inputs, *self.lines, f"@return({result})"]) + "\n"

    # ---- tensors

    def _lens(self, elements: int) -> tuple[int, ...]:
        """Lengths of some axes, of about so many elements: usual ones, and one that is what is left."""
        rank = self.choices.one(_RANKS)
        lens = [self.choices.one(_USUAL + (_LONG if rank <= 2 else ())) for _ in range(rank - 1)]
        while lens and prod(lens) > elements:
            lens[lens.index(max(lens))] = self.choices.one(_USUAL[:6])
        rest = max(1, elements // prod(lens))
        if rest > 64 and self.choices.happens(0.6):
            rest -= rest % 64
        lens.insert(int(self.choices.random() * rank), rest)
        return tuple(lens)

    def _input(self, dtype: str, lens: tuple[int, ...], strided: bool = False) -> str:
        """A new input; one that may be `strided` lies in another order or with gaps now and then."""
        name = f"x{len(self.inputs)}"
        strides = self._strides(lens) if strided and len(lens) > 1 and self.choices.happens(0.3) else None
        shown = f", {_braces(strides)}" if strides is not None and strides != packed_strides(lens) else ""
        self.inputs.append(f"{name} = @param:{name} -> {dtype}{_braces(lens)}{shown}")
        return name

    def _strides(self, lens: tuple[int, ...]) -> tuple[int, ...]:
        """Axes in another order, or rows with a gap behind each."""
        rank = len(lens)
        order = self.choices.order(rank) if self.choices.happens(0.6) else list(range(rank))[::-1]
        gap = self.choices.one((0, 0, 1, 8, 64))
        strides, step = [0] * rank, 1
        for place, d in enumerate(order):
            strides[d] = step
            step *= lens[d] + (gap if place == 0 else 0)
        return tuple(strides)

    # ---- steps

    def _step(self, value: str, type_: Type) -> tuple[str, Type]:
        """One more step, and what it makes; nothing more if none of some draws is allowed."""
        for _ in range(_TRIES // 10):
            steps = _steps()[self.choices.one([part for part, share in _SORTS.items() for _ in range(share)])]
            step = self.choices.one(steps)
            if not in_class(type_.dtype, step.types):
                continue
            kept = list(self.inputs), list(self.lines), self.names
            made = self._name()
            try:
                self.lines += step.lines.render(_Asked(self, value, made, type_).values()).split("\n")
                (result,) = load(self._program(made)).results.values()
            except (GenrwError, IndexError, ZeroDivisionError):
                result = None
            if result is not None and 0 < result.type.elements * DTYPES[result.type.dtype].itemsize <= self.bytes:
                return made, result.type
            self.inputs, self.lines, self.names = kept
        return value, type_

    def _name(self) -> str:
        self.names += 1
        return f"v{self.names}"


class _Asked:
    """What a step's lines may ask for, about a value of a type."""

    def __init__(self, writer: _Writer, value: str, made: str, type_: Type) -> None:
        self.writer, self.choices, self.value, self.made, self.type = writer, writer.choices, value, made, type_

    def values(self) -> dict[str, Any]:
        lens, rank = self.type.lens, len(self.type.lens)
        chosen = [d for d in range(rank) if self.choices.happens(0.5)] or [rank - 1]
        return {
            "x": self.value,
            "y": self.made,
            "t": f"{self.made}_t",
            "u": f"{self.made}_u",
            "axis": int(self.choices.random() * rank),
            "last": rank - 1,
            "axes": ", ".join(map(str, chosen)),
            "permutation": ", ".join(map(str, self.choices.order(rank))),
            "befores": ", ".join(str(self.choices.one((0, 1, 2))) for _ in range(2 * rank)),
            "other_type": self.choices.one([t for t in _FLOATS if t != self.type.dtype]),
            "length": lens.__getitem__,
            "full": lambda dtype=self.type.dtype: self.writer._input(dtype, lens, strided=True),
            "last_row": lambda dtype=self.type.dtype: self.writer._input(dtype, lens[-1:]),
            "column": lambda: self.writer._input(self.type.dtype, (*lens[:-1], 1)),
            "indices": lambda axis: self.writer._input("int64", (max(1, lens[axis] // 2),)),
        }


def _braces(numbers: Sequence[int]) -> str:
    return "{" + ", ".join(map(str, numbers)) + "}"
