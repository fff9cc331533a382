"""Random programs of one shape: index maps and pointwise operators around folds that run along one set of axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod
from random import Random
from typing import Any

LENGTHS = (1, 2, 3, 4, 5, 7, 8, 16, 33, 64, 65)
LARGEST = 3000
MAPS = ("transpose", "reverse", "pad", "slice", "gather", "concat", "reshape", "multibroadcast", "unsqueeze")

# Floats stay positive and small, so that nothing cancels or overflows and every order of computing is as good as
# another; integers are exact whatever happens to them.
UNARY = {"int32": ("neg", "abs", "relu"), "float": ("sqrt", "tanh", "sigmoid"), "half": ("tanh", "sigmoid")}
BINARY = {"int32": ("add", "sub", "mul", "min", "max"), "float": ("add", "mul", "max", "min"), "half": ("max", "min")}
FOLDS = {"int32": ("sum", "max", "min", "prod"), "float": ("sum", "max", "mean"), "half": ("max", "min", "mean")}


@dataclass
class Builder:
    """Writes a program line by line, its decisions drawn from `random`."""

    random: Random
    dtype: str
    lines: list[str] = field(default_factory=list)
    count: int = 0

    def pick(self, options: Sequence[Any]) -> Any:
        return self.random.choice(options)

    def number(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def line(self, text: str) -> str:
        name = f"v{self.count}"
        self.count += 1
        self.lines.append(f"{name} = {text}")
        return name

    # ---- leaves

    def parameter(self, lens: Sequence[int], dtype: str | None = None) -> str:
        text = f"@param:p{self.count} -> {dtype or self.dtype}{ints(lens)}"
        if lens and self.number(0, 4) == 0:
            text += f", {ints(self._strides(lens))}"
        name = self.line(text)
        return name if dtype or self.dtype == "int32" else self.line(f"abs({name})")

    def _strides(self, lens: Sequence[int]) -> list[int]:
        """Strides of a tensor that lies in another order, with gaps, or is repeated."""
        order = self.random.sample(range(len(lens)), len(lens))
        strides, step = [0] * len(lens), 1
        for d in order:
            strides[d] = step
            step *= lens[d] + self.number(0, 1)
        if self.number(0, 3) == 0:
            strides[self.pick(range(len(lens)))] = 0
        return strides

    # ---- values of a shape

    def value(self, lens: Sequence[int], depth: int) -> str:
        """Something of a shape, made of parameters by index maps and pointwise operators."""
        kind = self.pick(("leaf", "pointwise", "pointwise", "map", "map", "map")) if depth else "leaf"
        if kind == "pointwise":
            return self.pointwise([self.value(lens, depth - 1), self.value(self.repeated(lens), depth - 1)])
        if kind == "map":
            made = self.moved(list(lens), depth - 1)
            return made if made is not None else self.value(lens, depth - 1)
        return self.parameter(lens)

    def repeated(self, lens: Sequence[int]) -> list[int]:
        """The shape, or one that broadcasts to it."""
        if self.number(0, 2):
            return list(lens)
        return [n if self.number(0, 1) else 1 for n in lens]

    def pointwise(self, operands: list[str]) -> str:
        """An operator of two values of one shape up to broadcasts; the first has the full shape."""
        kind = self.pick(("binary", "binary", "unary", "where", "number"))
        if kind == "unary":
            return self.line(f"{self.pick(UNARY[self.dtype])}({operands[0]})")
        if kind == "number":
            number = self.pick((1, 2, 3)) if self.dtype == "int32" else self.pick((0.5, 0.25, 1.5))
            return self.line(f"{self.pick(BINARY[self.dtype])}({operands[0]}, {number})")
        if kind == "where" and self.dtype == "int32":
            condition = self.line(f"{self.pick(('less', 'equal', 'greater'))}({', '.join(operands)})")
            return self.line(f"where({condition}, {', '.join(operands)})")
        if self.number(0, 1):
            operands.reverse()
        return self.line(f"{self.pick(BINARY[self.dtype])}({', '.join(operands)})")

    def moved(self, lens: list[int], depth: int) -> str | None:
        """An index map whose result has the shape; None where the map cannot give it."""
        made: str | None = getattr(self, f"_{self.pick(MAPS)}")(lens, depth)
        return made

    def _transpose(self, lens: list[int], depth: int) -> str:
        order = self.random.sample(range(len(lens)), len(lens))
        source = [0] * len(lens)
        for place, d in enumerate(order):
            source[d] = lens[place]
        return self.line(f"transpose[permutation={ints(order)}]({self.value(source, depth)})")

    def _reverse(self, lens: list[int], depth: int) -> str:
        axes = [d for d in range(len(lens)) if self.number(0, 1)]
        return self.line(f"reverse[axes={ints(axes)}]({self.value(lens, depth)})")

    def _pad(self, lens: list[int], depth: int) -> str:
        before, after, source = [], [], []
        for n in lens:
            source.append(self.number(1, n))
            before.append(self.number(0, n - source[-1]))
            after.append(n - source[-1] - before[-1])
        mode = self.pick(("constant", "edge", "reflect"))
        value = f", value={self.number(0, 3)}" if mode == "constant" else ""
        return self.line(f"pad[pads={ints(before + after)}, mode={mode}{value}]({self.value(source, depth)})")

    def _slice(self, lens: list[int], depth: int) -> str:
        axes, starts, ends, steps, source = [], [], [], [], list(lens)
        for d, n in enumerate(lens):
            if self.number(0, 1):
                step, gap = self.pick((1, 1, 2, 3, -1, -2)), self.number(0, 3)
                source[d] = (n - 1) * abs(step) + 1 + gap + self.number(0, 2)
                first = gap if step > 0 else source[d] - 1
                end = first + n * step
                axes.append(d)
                starts.append(first)
                ends.append(end if step > 0 else end if end >= 0 else -source[d] - 1)
                steps.append(step)
        if prod(source) > 2 * LARGEST:
            return self.value(lens, depth)
        attributes = f"axes={ints(axes)}, starts={ints(starts)}, ends={ints(ends)}, steps={ints(steps)}"
        return self.line(f"slice[{attributes}]({self.value(source, depth)})")

    def _gather(self, lens: list[int], depth: int) -> str:
        first = self.number(0, len(lens))
        last = self.number(first, len(lens))
        entries = self.pick((1, 2, 5, 9))
        source = [*lens[:first], entries, *lens[last:]]
        indices = self.parameter(lens[first:last], self.pick(("int32", "int64")))
        return self.line(f"gather[axis={first}]({self.value(source, depth)}, {indices})")

    def _concat(self, lens: list[int], depth: int) -> str | None:
        axes = [d for d, n in enumerate(lens) if n > 1]
        if not axes:
            return None
        axis = self.pick(axes)
        cuts = sorted({0, lens[axis], *(self.number(1, lens[axis] - 1) for _ in range(self.number(1, 2)))})
        parts = [self.value([*lens[:axis], b - a, *lens[axis + 1 :]], depth) for a, b in pairwise(cuts)]
        return self.line(f"concat[axis={axis}]({', '.join(parts)})")

    def _reshape(self, lens: list[int], depth: int) -> str:
        source = [prod(lens)]
        for factor in (2, 3, 4, 5):
            if source[-1] % factor == 0 and self.number(0, 1):
                source[-1:] = [source[-1] // factor, factor]
        return self.line(f"reshape[dims={ints(lens)}]({self.value(source, depth)})")

    def _multibroadcast(self, lens: list[int], depth: int) -> str:
        source = [n if self.number(0, 1) else 1 for n in lens]
        return self.line(f"multibroadcast[out_lens={ints(lens)}]({self.value(source, depth)})")

    def _unsqueeze(self, lens: list[int], depth: int) -> str | None:
        ones = [d for d, n in enumerate(lens) if n == 1]
        if not ones:
            return None
        axis = self.pick(ones)
        return self.line(f"unsqueeze[axes={{{axis}}}]({self.value(lens[:axis] + lens[axis + 1 :], depth)})")

    # ---- folds

    def fold(self, x: str, axes: Sequence[int]) -> str:
        return self.line(f"reduce_{self.pick(FOLDS[self.dtype])}[axes={ints(axes)}]({x})")


def ints(values: Sequence[int]) -> str:
    return "{" + ", ".join(map(str, values)) + "}"


def shape(random: Random, rank: int) -> list[int]:
    """Lengths of some axes."""
    lens: list[int] = []
    for _ in range(rank):
        lens.append(random.choice([n for n in LENGTHS if n * prod(lens) <= LARGEST]))
    return lens


def program(seed: int, rank: int, depth: int, folds: int) -> str:
    """A program that may need several kernels."""
    random = Random(seed)
    build = Builder(random, random.choice(("int32", "int32", "int32", "float", "float", "half")))
    lens = shape(random, rank)
    full = [build.value(lens, depth) for _ in range(build.number(1, 2))]
    axes = sorted(random.sample(range(rank), build.number(1, rank))) if rank else []
    rows: list[str] = []
    for _ in range(folds if axes else 0):
        rows.append(build.fold(build.pick(full), axes))
        if build.number(0, 1):
            row_lens = [1 if d in axes else n for d, n in enumerate(lens)]
            other = build.pick(rows) if build.number(0, 1) else build.value(row_lens, 1)
            rows.append(build.pointwise([rows[-1], other]))
        if build.number(0, 1):
            full.append(build.pointwise([build.pick(full), build.pick(rows)]))
    full, rows = disturbed(build, lens, full, rows)
    results = [*full[-build.number(0, 2) :], *rows[-1:]] if rows else full[-2:]
    return "\n".join([*build.lines, f"@return({', '.join(results)})"]) + "\n"


def disturbed(build: Builder, lens: list[int], full: list[str], rows: list[str]) -> tuple[list[str], list[str]]:
    """Something that a kernel with folds can often not do: folds along other axes, folds that are moved about."""
    x = build.pick(full)
    if lens and build.number(0, 1):
        fold = build.fold(x, [build.number(0, len(lens) - 1)])
        return [*full, build.pointwise([x, fold])], [*rows, fold]
    order = list(range(len(lens)))[::-1]
    moved = build.line(f"transpose[permutation={ints(order)}]({x})")
    return [moved, build.line(f"reverse[axes={ints(order[:1])}]({x})")], rows
