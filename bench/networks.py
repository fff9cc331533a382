"""How long parts of real networks take to lower: `python bench/networks.py [name ...] [--target TARGET] [--stages]`.

A network's products and convolutions are left out, as a compiler leaves them to a library: what a product gives is a
parameter, what it takes is a result. So one program holds all that lies between, with as many results as there are
products.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import isqrt
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from table import parser, report

import genrw
from genrw.engine.ir.nodes import walk
from genrw.program import Program

TARGETS = ("gfx942", "gfx1100", "sm_90", "host")
EPSILON = "0.00001"


@dataclass
class Graph:
    """A program that is written line by line; values go by name."""

    type: str = "float"
    lines: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)

    def parameter(self, *lens: int, type_: str = "") -> str:
        """A tensor from outside: a weight, or what a product gives."""
        name = f"p{len(self.lines)}"
        self.lines.append(f"{name} = @param:{name} -> {type_ or self.type}{_lens(lens)}")
        return name

    def op(self, call: str, *operands: str) -> str:
        """One operation, `call` with its attributes if it has any."""
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {call}({', '.join(operands)})")
        return name

    def result(self, value: str) -> None:
        """What a product takes."""
        if value not in self.results:
            self.results.append(value)

    def text(self) -> str:
        return "\n".join([*self.lines, f"@return({', '.join(self.results)})"]) + "\n"

    # ---- what networks are made of, spelled out as exporters do

    def reshape(self, value: str, *lens: int) -> str:
        return self.op(f"reshape[dims={_lens(lens)}]", value)

    def transpose(self, value: str, *permutation: int) -> str:
        return self.op(f"transpose[permutation={_lens(permutation)}]", value)

    def slice(self, value: str, axis: int, start: int, end: int) -> str:
        return self.op(f"slice[axes={{{axis}}}, starts={{{start}}}, ends={{{end}}}]", value)

    def concat(self, axis: int, *values: str) -> str:
        return self.op(f"concat[axis={axis}]", *values)

    def norm(self, value: str, axis: int, width: int) -> str:
        """A layer norm with scale and shift."""
        mean = self.op(f"reduce_mean[axes={{{axis}}}]", value)
        centred = self.op("sub", value, mean)
        variance = self.op(f"reduce_mean[axes={{{axis}}}]", self.op("mul", centred, centred))
        deviation = self.op("sqrt", self.op("add", variance, EPSILON))
        scaled = self.op("mul", self.op("div", centred, deviation), self.parameter(width))
        return self.op("add", scaled, self.parameter(width))

    def softmax(self, value: str, axis: int) -> str:
        largest = self.op(f"reduce_max[axes={{{axis}}}]", value)
        raised = self.op("exp", self.op("sub", value, largest))
        return self.op("div", raised, self.op(f"reduce_sum[axes={{{axis}}}]", raised))

    def gelu(self, value: str) -> str:
        error = self.op("erf", self.op("div", value, "1.4142135"))
        return self.op("mul", self.op("mul", value, self.op("add", error, "1.0")), "0.5")

    def batch_norm(self, value: str, channels: int) -> str:
        """A batch norm of inference: mean, variance, scale and shift are weights."""
        mean, variance, scale, shift = (self.parameter(1, channels, 1, 1) for _ in range(4))
        centred = self.op("sub", value, mean)
        deviation = self.op("sqrt", self.op("add", variance, EPSILON))
        return self.op("add", self.op("mul", self.op("div", centred, deviation), scale), shift)


def _lens(lens: Sequence[int]) -> str:
    return "{" + ", ".join(map(str, lens)) + "}"


# ---- networks


def vit(blocks: int = 12, tokens: int = 197, width: int = 768, heads: int = 12, type_: str = "float") -> str:
    """A vision transformer: patches behind a class token, blocks of attention and of an activation, a last norm."""
    g = Graph(type_)
    side = isqrt(tokens - 1)
    patches = g.transpose(g.reshape(g.parameter(1, width, side, side), 1, width, side * side), 0, 2, 1)
    x = g.op("add", g.concat(1, g.parameter(1, 1, width), patches), g.parameter(1, tokens, width))
    for _ in range(blocks):
        x = _attention(g, x, tokens, width, heads)
        x = _activation(g, x, tokens, width)
    x = g.norm(x, 2, width)
    g.result(g.reshape(g.slice(x, 1, 0, 1), 1, width))
    return g.text()


def _attention(g: Graph, x: str, tokens: int, width: int, heads: int) -> str:
    """Attention over all tokens and the sum with its input."""
    g.result(g.norm(x, 2, width))
    size = width // heads
    joined = g.op("add", g.parameter(1, tokens, 3 * width), g.parameter(3 * width))
    parts = g.transpose(g.reshape(joined, 1, tokens, 3, heads, size), 2, 0, 3, 1, 4)
    for i in range(3):
        part = g.reshape(g.slice(parts, 0, i, i + 1), 1, heads, tokens, size)
        if i == 0:
            part = g.op("mul", part, "0.125")
        g.result(g.transpose(part, 0, 1, 3, 2) if i == 1 else part)
    g.result(g.softmax(g.parameter(1, heads, tokens, tokens), 3))
    taken = g.transpose(g.parameter(1, heads, tokens, size), 0, 2, 1, 3)
    g.result(g.reshape(taken, 1, tokens, width))
    return g.op("add", x, g.op("add", g.parameter(1, tokens, width), g.parameter(width)))


def _activation(g: Graph, x: str, tokens: int, width: int) -> str:
    """The two layers behind attention and the sum with their input."""
    g.result(g.norm(x, 2, width))
    g.result(g.gelu(g.op("add", g.parameter(1, tokens, 4 * width), g.parameter(4 * width))))
    return g.op("add", x, g.op("add", g.parameter(1, tokens, width), g.parameter(width)))


def encoder(blocks: int = 2, tokens: int = 128, width: int = 256, heads: int = 4, type_: str = "float") -> str:
    """Blocks with masked attention whose products are elementwise: one chain through all, nothing returned between."""
    g = Graph(type_)
    x, mask = g.parameter(1, tokens, width), g.parameter(1, 1, tokens, tokens)
    for _ in range(blocks):
        n = g.norm(x, 2, width)
        split = g.transpose(g.reshape(n, 1, tokens, heads, width // heads), 0, 2, 1, 3)
        weight = g.softmax(g.op("add", g.op("mul", g.parameter(1, heads, tokens, tokens), "0.125"), mask), 3)
        largest = g.op("reduce_max[axes={3}]", weight)
        merged = g.reshape(g.transpose(g.op("mul", split, largest), 0, 2, 1, 3), 1, tokens, width)
        x = g.op("add", x, merged)
        x = g.op("add", x, g.gelu(g.norm(x, 2, width)))
    g.result(x)
    return g.text()


def densenet(blocks: Sequence[int] = (6, 12, 24, 16), growth: int = 32, size: int = 56, type_: str = "float") -> str:
    """Layers that each take all that the layers before them in a block gave, side by side."""
    g = Graph(type_)
    channels = 2 * growth
    features = [g.op("relu", g.batch_norm(g.parameter(1, channels, size, size), channels))]
    for block, layers in enumerate(blocks):
        for _ in range(layers):
            joined = g.concat(1, *features) if len(features) > 1 else features[0]
            g.result(g.op("relu", g.batch_norm(joined, channels)))
            between = g.parameter(1, 4 * growth, size, size)
            g.result(g.op("relu", g.batch_norm(between, 4 * growth)))
            features.append(g.parameter(1, growth, size, size))
            channels += growth
        last = g.op("relu", g.batch_norm(g.concat(1, *features), channels))
        if block < len(blocks) - 1:
            g.result(last)
            channels, size = channels // 2, size // 2
            features = [g.parameter(1, channels, size, size)]
    g.result(g.reshape(g.op("reduce_mean[axes={2, 3}]", last), 1, channels))
    return g.text()


def swin(
    depths: Sequence[int] = (2, 2, 6, 2), width: int = 96, side: int = 56, window: int = 7, type_: str = "float"
) -> str:
    """Attention within windows that every second block shifts, with a bias by relative position; patches merge."""
    g = Graph(type_)
    heads = width // 32
    x = g.transpose(g.reshape(g.parameter(1, width, side, side), 1, width, side * side), 0, 2, 1)
    x = g.reshape(g.norm(x, 2, width), 1, side, side, width)
    for stage, depth in enumerate(depths):
        for block in range(depth):
            x = _window_block(g, x, side, width, heads, window, block % 2 == 1 and side > window)
        if stage < len(depths) - 1:
            x = _merged(g, x, side, width)
            side, width, heads = side // 2, 2 * width, 2 * heads
    x = g.norm(x, 3, width)
    g.result(g.reshape(g.op("reduce_mean[axes={1, 2}]", x), 1, width))
    return g.text()


def _window_block(g: Graph, x: str, side: int, width: int, heads: int, window: int, shifted: bool) -> str:
    n, shift = g.norm(x, 3, width), window // 2
    if shifted:
        n = _rolled(g, n, side, shift)
    count, tokens = side // window, window * window
    parts = g.transpose(g.reshape(n, 1, count, window, count, window, width), 0, 1, 3, 2, 4, 5)
    g.result(g.reshape(parts, count * count, tokens, width))
    joined = g.op("add", g.parameter(count * count, tokens, 3 * width), g.parameter(3 * width))
    split = g.transpose(g.reshape(joined, count * count, tokens, 3, heads, 32), 2, 0, 3, 1, 4)
    for i in range(3):
        part = g.reshape(g.slice(split, 0, i, i + 1), count * count, heads, tokens, 32)
        if i == 0:
            part = g.op("mul", part, "0.17677669")
        g.result(g.transpose(part, 0, 1, 3, 2) if i == 1 else part)
    table, places = g.parameter((2 * window - 1) ** 2, heads), g.parameter(tokens * tokens, type_="int64")
    named = g.reshape(g.op("gather[axis=0]", table, places), tokens, tokens, heads)
    bias = g.op("unsqueeze[axes={0}]", g.transpose(named, 2, 0, 1))
    scores = g.op("add", g.parameter(count * count, heads, tokens, tokens), bias)
    if shifted:
        mask = g.parameter(count * count, tokens, tokens)
        apart = g.op("unsqueeze[axes={0}]", g.op("unsqueeze[axes={1}]", mask))
        scores = g.op("add", g.reshape(scores, 1, count * count, heads, tokens, tokens), apart)
        scores = g.reshape(scores, count * count, heads, tokens, tokens)
    g.result(g.softmax(scores, 3))
    taken = g.transpose(g.parameter(count * count, heads, tokens, 32), 0, 2, 1, 3)
    g.result(g.reshape(taken, count * count, tokens, width))
    y = g.op("add", g.parameter(count * count, tokens, width), g.parameter(width))
    y = g.transpose(g.reshape(y, 1, count, count, window, window, width), 0, 1, 3, 2, 4, 5)
    y = g.reshape(y, 1, side, side, width)
    if shifted:
        y = _rolled(g, y, side, side - shift)
    x = g.op("add", x, y)
    g.result(g.norm(x, 3, width))
    g.result(g.gelu(g.op("add", g.parameter(1, side, side, 4 * width), g.parameter(4 * width))))
    return g.op("add", x, g.op("add", g.parameter(1, side, side, width), g.parameter(width)))


def _rolled(g: Graph, value: str, side: int, shift: int) -> str:
    """A cyclic shift of height and width."""
    for axis in (1, 2):
        value = g.concat(axis, g.slice(value, axis, shift, side), g.slice(value, axis, 0, shift))
    return value


def _merged(g: Graph, x: str, side: int, width: int) -> str:
    """Four neighbours side by side, normalised, and what a product makes of them."""
    corners = [
        g.op(f"slice[axes={{1, 2}}, starts={{{i}, {j}}}, ends={{{side}, {side}}}, steps={{2, 2}}]", x)
        for j in (0, 1)
        for i in (0, 1)
    ]
    g.result(g.norm(g.concat(3, *corners), 3, 4 * width))
    return g.parameter(1, side // 2, side // 2, 2 * width)


def chain(length: int = 100, rows: int = 512, width: int = 1024, type_: str = "float") -> str:
    """One pointwise operation after the other."""
    g = Graph(type_)
    x, bias = g.parameter(rows, width), g.parameter(width)
    steps: Sequence[Callable[[str], str]] = (
        lambda v: g.op("add", v, bias),
        lambda v: g.op("relu", v),
        lambda v: g.op("mul", v, "1.5"),
        lambda v: g.op("sub", x, v),
        lambda v: g.op("tanh", v),
        lambda v: g.op("div", v, "3.0"),
        lambda v: g.op("max", v, x),
    )
    value = x
    for i in range(length):
        value = steps[i % len(steps)](value)
    g.result(value)
    return g.text()


def wide(results: int = 100, kinds: int = 0, type_: str = "float") -> str:
    """So many results, each of a shape of its own, or of as many shapes as there are `kinds`."""
    g = Graph(type_)
    for i in range(results):
        x = g.parameter(64, 256 + 4 * (i % (kinds or results)))
        g.result(g.op("relu", g.op("add", x, f"{i + 1}.0")))
    return g.text()


def moves(length: int = 24, side: int = 32, type_: str = "float") -> str:
    """Transposes, reshapes, slices, pads and concats, one after the other."""
    g = Graph(type_)
    x = g.parameter(side, side, side)
    for i in range(length):
        match i % 6:
            case 0:
                x = g.transpose(x, 1, 0, 2)
            case 1:
                x = g.reshape(g.transpose(g.reshape(x, side * side, side), 1, 0), side, side, side)
            case 2:
                x = g.concat(0, g.slice(x, 0, 3, side), g.slice(x, 0, 0, 3))
            case 3:
                x = g.op("relu", g.transpose(x, 0, 2, 1))
            case 4:
                x = g.slice(g.op("pad[pads={0, 0, 1, 0, 0, 1}]", x), 2, 1, side + 1)
            case 5:
                x = g.op("add", x, g.parameter(side))
    g.result(x)
    return g.text()


PROGRAMS: dict[str, Callable[[], str]] = {
    "vit-1": lambda: vit(1),
    "vit-3": lambda: vit(3),
    "vit-b": vit,
    "vit-b half": lambda: vit(type_="half"),
    "encoder-2": encoder,
    "encoder-4": lambda: encoder(4),
    "densenet-6": lambda: densenet((6,)),
    "densenet-121": densenet,
    "swin-2": lambda: swin((2, 2)),
    "swin-t": swin,
    "chain-30": lambda: chain(30),
    "chain-100": chain,
    "chain-300": lambda: chain(300),
    "moves-12": lambda: moves(12),
    "moves-24": moves,
    "wide-5": lambda: wide(5),
    "wide-50": lambda: wide(50),
    "wide-500": lambda: wide(500),
    "wide-500 of 3 kinds": lambda: wide(500, 3),
}


def stage_seconds(program: Program) -> tuple[dict[str, float], Program]:
    """The seconds of the processor that each stage takes, and the program of the last."""
    found = {}
    for stage in program.stages:
        started = time.process_time()
        program = program.lower(stage)
        found[stage] = time.process_time() - started
    return found, program


def kernel_seconds(fused: Program) -> list[tuple[float, str, int]]:
    """For each kernel of a program cut into kernels: seconds of the processor to the last stage alone, its name, and its values."""
    found = []
    for module in fused.modules:
        alone = fused.with_modules((module,))
        started = time.process_time()
        alone.lower(alone.stages[-1])
        found.append((time.process_time() - started, module.name, sum(1 for _ in walk(module.root))))
    return sorted(found, reverse=True)


def main() -> None:
    """Print a line for each program and target."""
    given = parser(__doc__ or "")
    given.add_argument("names", nargs="*", help=f"of {', '.join(PROGRAMS)}; all without")
    given.add_argument("--target", action="append", choices=TARGETS, help="may be given several times")
    given.add_argument("--kernels", action="store_true", help="time each kernel alone, too")
    options = given.parse_args()
    stages = genrw.load(chain(1)).stages
    headings = ["program", "target", "operators", "kernels", "distinct", *stages, "all, s of the processor"]
    if options.kernels:
        headings.append("slowest kernel s")
    rows = []
    for name in options.names or PROGRAMS:
        for target in options.target or TARGETS:
            program = genrw.load(PROGRAMS[name](), target=target)
            operators = sum(1 for _ in walk(program.modules[0].root)) - len(program.inputs) - 1
            taken, lowered = stage_seconds(program)
            (unit,) = lowered.units
            calls = len(unit.main.calls) if unit.main is not None else 1
            row = [name, target, operators, calls, len(unit.kernels), *taken.values(), sum(taken.values())]
            if options.kernels:
                row.append(kernel_seconds(program.lower(program.library.fusing_stage or program.stages[0]))[0][0])
            rows.append(row)
            print("  ".join(map(str, [name, target, f"{sum(taken.values()):.2f} s"])), file=sys.stderr, flush=True)
    report(headings, rows, options.json)


if __name__ == "__main__":
    main()
