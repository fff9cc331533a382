"""Matrix instructions as C++ structs, printed from their digits: what each does, and where its lanes hold what."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from genrw.engine.ir.dtypes import DTYPES
from genrw.engine.library.instructions import Instruction

Digits = Sequence[Sequence[int]]


def instruction_struct(instruction: Instruction) -> str:
    """The struct. `left_at` and `right_at` say where register `i` of a tile stands in what a lane holds, for step `k` of
    `deep`; the functions of a lane and a register say of which row, column and depth an element is."""
    values = instruction.values
    rows, columns, depth = values["shape"]
    operand, total = DTYPES[values["operand"]].cpp, DTYPES[values["sum"]].cpp
    sizes = {
        **{"rows": rows, "columns": columns, "depth": depth, "lanes": values["lanes"]},
        **{
            "left": instruction.held("left"),
            "right": instruction.held("right"),
            "sums": instruction.held("result"),
        },
    }
    lines = [
        f"struct {instruction.name} {{",
        f"    using operand = {operand};",
        f"    using sum = {total};",
        f"    static constexpr int {', '.join(f'{name} = {size}' for name, size in sizes.items())};",
    ]
    for part, together in zip(("left", "right"), instruction.rows_together, strict=True):
        of_lane, of_share = values[part]
        lines.append(_place(f"{part}_row", of_lane, of_share, 1))
        lines.append(_place(f"{part}_depth", of_lane, of_share, 2))
        lines.append(_order(f"{part}_at", of_share, together))
    of_lane, of_share = values["result"]
    lines.append(_place("sum_row", of_lane, of_share, 1))
    lines.append(_place("sum_column", of_lane, of_share, 2))
    lines += _rows_of_sums(of_lane, of_share)
    body = [
        f"    {_head(instruction)}",
        "    {",
        *(f"        {line}" for line in instruction.multiplied().split("\n")),
        "    }",
    ]
    alone = values["lanes"] == 1
    return "\n".join([*lines, *(body if alone else ["#if !GEN_HOST", *body, "#endif"]), "};"])


def _head(instruction: Instruction) -> str:
    """The function that multiplies, without its body: of what lanes hold, of descriptions of workgroup memory, or of both."""
    if not instruction.values["memory"]:
        return "static GEN_DEVICE void multiply(const operand* a, const operand* b, sum* c)"
    if instruction.member("left_held"):
        return "template <int SecondAcross>\n    static GEN_DEVICE void multiply(const gen::uint32* a, gen::uint64 b, sum* c)"
    return "template <int FirstAcross, int SecondAcross>\n    static GEN_DEVICE void multiply(gen::uint64 a, gen::uint64 b, sum* c)"


def _rows_of_sums(of_lane: Digits, of_share: Digits) -> list[str]:
    """How many rows of the result a lane has part of, of which of these an element is, and in which bits the numbers of lanes
    differ that have part of the same ones."""
    rows = prod(d[0] for d in of_share if d[1])
    beside = sum((d[0] - 1) * prod(e[0] for e in of_lane[i + 1 :]) for i, d in enumerate(of_lane) if not d[1])
    number = _number("i", of_share, True)
    return [
        f"    static constexpr int sum_rows = {rows}, beside = {beside};",
        f"    static GEN_DEVICE constexpr int row_of_sum([[maybe_unused]] int i) {{ return {number}; }}",
    ]


def _place(name: str, of_lane: Digits, of_share: Digits, weight: int) -> str:
    text = " + ".join([*_terms("lane", of_lane, weight), *_terms("i", of_share, weight)]) or "0"
    return f"    static GEN_DEVICE constexpr int {name}([[maybe_unused]] int lane, [[maybe_unused]] int i) {{ return {text}; }}"


def _order(name: str, of_share: Digits, together: bool) -> str:
    """Where a register stands among a lane's elements, which are counted by tiles, rows, steps, depth, or by tiles, steps, rows."""
    along = [d[0] for d in of_share if d[1]]
    down = [d[0] for d in of_share if not d[1]]
    row, place = _number("i", of_share, True), _number("i", of_share, False)
    text = f"((tile * {prod(along)} + {row}) * deep + k) * {prod(down)} + {place}"
    if together:
        text = f"(tile * deep + k) * {prod(along)} + {row}"
    return f"    static GEN_DEVICE constexpr int {name}(int tile, int k, int deep, [[maybe_unused]] int i) {{ return {text}; }}"


def _terms(number: str, digits: Digits, weight: int) -> list[str]:
    found = []
    for place, digit in enumerate(digits):
        if digit[weight] and digit[0] > 1:
            found.append(_times(_digit(number, digits, place), digit[weight]))
    return found


def _number(number: str, digits: Digits, along: bool) -> str:
    """Those of a number's digits that count along the tile's rows, or those that do not, as a number of their own."""
    terms, stride = [], 1
    for place in reversed(range(len(digits))):
        if bool(digits[place][1]) == along:
            if digits[place][0] > 1:
                terms.append(_times(_digit(number, digits, place), stride))
            stride *= digits[place][0]
    return " + ".join(reversed(terms)) or "0"


def _digit(number: str, digits: Digits, place: int) -> str:
    below = prod([d[0] for d in digits[place + 1 :]])
    text = number if below == 1 else f"{number} / {below}"
    return text if place == 0 else f"{text} % {digits[place][0]}"


def _times(text: str, factor: int) -> str:
    return text if factor == 1 else f"{text} * {factor}"
