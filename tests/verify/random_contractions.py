"""Random programs with products of matrices, convolutions, pools and attention: with index maps before their operands, and
what networks have behind them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from random import Random
from typing import Any

from random_programs import Line, RandomProgram, parameter

from genrw.engine.ir.types import Type
from genrw.engine.library.infer import infer, show
from genrw.engine.library.library import Library
from genrw.engine.library.rewriting import coerced
from genrw.engine.programs.build import complete

EXTENTS = (1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129)
SHORT = (1, 1, 2, 3, 4, 5, 7, 8, 9)
TYPES = ("float", "half", "half", "bf16", "double", "int8", "int32")
FLOATS = ("float", "half", "half", "bf16", "double")
MOST_PRODUCTS = 120_000
"""Products of most contractions: the interpreter computes each at every stage."""
MOST_ELEMENTS = 20_000
"""Elements of a value."""


def random_contraction(library: Library, seed: object) -> RandomProgram:
    """The program of a seed."""
    return ContractionWriter(library, Random(repr(seed))).program()


class ContractionWriter:
    """Writes a program around a contraction: what its operands are made of, and what becomes of its result."""

    def __init__(self, library: Library, random: Random) -> None:
        self.library, self.random = library, random
        self.most = MOST_PRODUCTS * random.choice((1, 1, 1, 5))
        self.lines: list[Line] = []
        self.types: dict[str, Type] = {}

    def program(self) -> RandomProgram:
        """One or two contractions, and what stands around them."""
        made = self.random.choice((self._product, self._product, self._attention, self._convolution, self._pool))()
        results = [made]
        for _ in range(self.random.choice((0, 0, 1, 1, 2, 3))):
            name = self._followed(results[-1])
            if self.random.random() < 0.2:
                results.append(name)
            else:
                results[-1] = name
        if self.random.random() < 0.15:
            inner = [line.name for line in self.lines if line.operands and line.type.elements <= MOST_ELEMENTS]
            results.append(self.random.choice(inner))
        return RandomProgram(tuple(self.lines), tuple(dict.fromkeys(results))).needed()

    # ---- instructions

    def _call(self, op: str, *operands: str, **attributes: Any) -> str:
        """An operation of values, or of numbers as programs write them."""
        found = self.library.find(op)
        assert found is not None, op
        types = [self.types.get(o, self._number_type(operands)) for o in operands]
        given = {key: coerced(found[0], key, value) for key, value in attributes.items()}
        type_ = infer(self.library, op, complete(found[0], given, types, {}), types, {})
        shown = ", ".join(f"{key}={show(value)}" for key, value in given.items())
        return self._kept(Line(f"v{len(self.lines)}", op + (f"[{shown}]" if shown else ""), operands, type_, op))

    def _number_type(self, operands: Sequence[str]) -> Type:
        beside = [self.types[o] for o in operands if o in self.types]
        return Type("tensor", beside[-1].dtype if beside else "float")

    def _kept(self, line: Line) -> str:
        self.lines.append(line)
        self.types[line.name] = line.type
        return line.name

    def _lens(self, name: str) -> tuple[int, ...]:
        return tuple(self.types[name].lens)

    def _chance(self, share: float) -> bool:
        return self.random.random() < share

    def _extents(self, count: int, most: int) -> list[int]:
        while True:
            found = [self.random.choice(EXTENTS) for _ in range(count)]
            if prod(found) <= most:
                return found

    # ---- what operands are made of

    def _operand(self, dtype: str, lens: Sequence[int], depth: int = 2) -> str:
        """A value of a type and shape: a parameter, or what index maps and pointwise operators make of others."""
        lens = tuple(lens)
        if depth == 0 or self._chance(0.5) or not lens:
            return self._parameter(dtype, lens)
        ways = [self._turned, self._cut, self._padded, self._reversed, self._joined, self._reshaped, self._repeated]
        ways += [self._gathered]
        if dtype != "bool":
            ways += [self._computed, self._converted, self._chosen]
        return self.random.choice(ways)(dtype, lens, depth - 1)

    def _parameter(self, dtype: str, lens: tuple[int, ...]) -> str:
        strides = self._strides(lens) if lens and self._chance(0.2) else None
        return self._kept(parameter(f"v{len(self.lines)}", Type("tensor", dtype, lens, strides)))

    def _strides(self, lens: tuple[int, ...]) -> tuple[int, ...]:
        """In another order, with gaps, repeated along axes."""
        order = self.random.sample(range(len(lens)), len(lens)) if self._chance(0.6) else range(len(lens))[::-1]
        strides, step = [0] * len(lens), self.random.choice((1, 1, 1, 2, 3))
        for d in order:
            strides[d] = step
            step *= lens[d] + self.random.choice((0, 0, 0, 1, 8))
        return tuple(0 if self._chance(0.12) else s for s in strides)

    def _turned(self, dtype: str, lens: tuple[int, ...], depth: int) -> str:
        order = self.random.sample(range(len(lens)), len(lens))
        given = [0] * len(lens)
        for d, p in enumerate(order):
            given[p] = lens[d]
        return self._call("transpose", self._operand(dtype, given, depth), permutation=tuple(order))

    def _cut(self, dtype: str, lens: tuple[int, ...], depth: int) -> str:
        axes = sorted(self.random.sample(range(len(lens)), self.random.randint(1, len(lens))))
        steps = [self.random.choice((1, 1, 2, 3)) for _ in axes]
        starts = [self.random.choice((0, 1, 2, 8)) for _ in axes]
        given, ends = list(lens), []
        for d, start, step in zip(axes, starts, steps, strict=True):
            ends.append(start + (lens[d] - 1) * step + 1)
            given[d] = ends[-1] + self.random.choice((0, 0, 1, 5))
        if prod(given) > MOST_ELEMENTS:
            return self._parameter(dtype, lens)
        operand = self._operand(dtype, given, depth)
        return self._call(
            "slice", operand, axes=tuple(axes), starts=tuple(starts), ends=tuple(ends), steps=tuple(steps)
        )

    def _padded(self, dtype: str, lens: tuple[int, ...], depth: int) -> str:
        befores = [min(self.random.choice((0, 0, 1, 3)), n - 1) for n in lens]
        afters = [min(self.random.choice((0, 0, 1, 2)), n - 1 - b) for n, b in zip(lens, befores, strict=True)]
        given = [n - b - a for n, b, a in zip(lens, befores, afters, strict=True)]
        around: dict[str, Any] = {"pads": (*befores, *afters)}
        if self._chance(0.3):
            around["value"] = 2.0
        elif self._chance(0.3) and all(b < n and a < n for b, a, n in zip(befores, afters, given, strict=True)):
            around["mode"] = self.random.choice(("edge", "reflect"))
        return self._call("pad", self._operand(dtype, given, depth), **around)

    def _reversed(self, dtype: str, lens: tuple[int, ...], depth: int) -> str:
        axes = sorted(self.random.sample(range(len(lens)), self.random.randint(1, min(2, len(lens)))))
        return self._call("reverse", self._operand(dtype, lens, depth), axes=tuple(axes))

    def _joined(self, dtype: str, lens: tuple[int, ...], depth: int) -> str:
        axis = self.random.choice([d for d, n in enumerate(lens) if n > 1] or [-1])
        if axis < 0:
            return self._parameter(dtype, lens)
        first = self.random.randrange(1, lens[axis])
        parts = [tuple(n if d != axis else part for d, n in enumerate(lens)) for part in (first, lens[axis] - first)]
        return self._call("concat", *[self._operand(dtype, part, depth) for part in parts], axis=axis)

    def _reshaped(self, dtype: str, lens: tuple[int, ...], depth: int) -> str:
        given = self._regrouped(lens)
        return self._call("reshape", self._operand(dtype, given, depth), dims=lens)

    def _regrouped(self, lens: Sequence[int]) -> tuple[int, ...]:
        """The lengths with some axes split, and some joined."""
        parts: list[int] = []
        for n in lens:
            factor = self.random.choice([f for f in (2, 3, 4, 8, 16) if n % f == 0] or [1])
            parts += [factor, n // factor] if self._chance(0.5) else [n]
        found = parts[:1]
        for n in parts[1:]:
            if self._chance(0.3):
                found[-1] *= n
            else:
                found.append(n)
        return tuple(found)

    def _repeated(self, dtype: str, lens: tuple[int, ...], depth: int) -> str:
        given = [1 if self._chance(0.4) else n for n in lens]
        return self._call("multibroadcast", self._operand(dtype, given, depth), out_lens=lens)

    def _gathered(self, dtype: str, lens: tuple[int, ...], depth: int) -> str:
        axis = self.random.randrange(len(lens))
        given = [n if d != axis else self.random.choice((n, 4, 17)) for d, n in enumerate(lens)]
        if prod(given) > MOST_ELEMENTS:
            return self._parameter(dtype, lens)
        indices = self._parameter(self.random.choice(("int32", "int64")), (lens[axis],))
        return self._call("gather", self._operand(dtype, given, depth), indices, axis=axis)

    def _computed(self, dtype: str, lens: tuple[int, ...], depth: int) -> str:
        operand = self._operand(dtype, lens, depth)
        if self._chance(0.4):
            return self._call(self.random.choice(("relu", "neg", "abs")), operand)
        beside = [1 if self._chance(0.5) else n for n in lens][self.random.choice((0, 0, len(lens) // 2)) :]
        return self._call(self.random.choice(("add", "mul", "sub", "max")), operand, self._operand(dtype, beside, 0))

    def _converted(self, dtype: str, lens: tuple[int, ...], depth: int) -> str:
        if dtype not in FLOATS:
            return self._call("neg", self._operand(dtype, lens, depth))
        given = self.random.choice(("int8", "half", "float", "bf16", "uint8", "bool"))
        found = self._call("convert", self._operand(given, lens, depth), target_type=dtype)
        return self._call("mul", found, self._parameter(dtype, (lens[-1],))) if self._chance(0.4) else found

    def _chosen(self, dtype: str, lens: tuple[int, ...], depth: int) -> str:
        condition = self._mask(lens) if self._chance(0.5) else self._parameter("bool", lens)
        return self._call("where", condition, self._operand(dtype, lens, depth), "0")

    def _mask(self, lens: tuple[int, ...]) -> str:
        """A comparison of positions."""
        rows = self._call("iota", lens=lens, axis=max(len(lens) - 2, 0))
        columns = self._call("iota", lens=lens, axis=len(lens) - 1)
        if self._chance(0.4):
            rows = self._call("add", rows, str(self.random.choice((-3, 1, 16))))
        return self._call(self.random.choice(("less", "greater", "less_equal", "greater_equal")), columns, rows)

    # ---- contractions

    def _product(self) -> str:
        if self._chance(0.15):
            dtypes = self.random.choice((("int8", "int8"), ("uint8", "int8"), ("int8", "uint8"), ("uint8", "uint8")))
            op = "quant_dot"
        else:
            dtypes, op = (self.random.choice(TYPES),) * 2, "dot"
        batch = [self.random.choice((1, 2, 3)) for _ in range(self.random.choice((0, 0, 1, 2)))]
        m, n, k = self._extents(3, self.most // prod(batch))
        first = [1 if self._chance(0.25) else b for b in batch]
        second = [1 if self._chance(0.25) and a > 1 else b for a, b in zip(first, batch, strict=True)]
        if self._chance(0.2):
            first = first[1:]
        elif self._chance(0.3):
            second = second[1:]
        x = self._operand(dtypes[0], (*first, m, k))
        if m == n and dtypes[0] == dtypes[1] and self._chance(0.2):
            order = (*range(len(first)), len(first) + 1, len(first))
            return self._call(op, x, self._call("transpose", x, permutation=order))
        return self._call(op, x, self._operand(dtypes[1], (*second, k, n)))

    def _attention(self) -> str:
        dtype = self.random.choice(FLOATS)
        batch = [self.random.choice((1, 2, 3)) for _ in range(self.random.choice((0, 1, 2)))]
        while True:
            queries, keys = (self.random.choice(EXTENTS) for _ in "qk")
            width, out = (self.random.choice((8, 16, 32, 40, 64, 7, 96)) for _ in "vo")
            if prod(batch) * queries * keys * max(width, out) <= 3 * self.most:
                break
        shared = [1 if self._chance(0.25) else b for b in batch]
        q = self._operand(dtype, (*batch, queries, width), 1)
        if self._chance(0.6):
            axes = range(len(batch))
            k = self._operand(dtype, (*shared, keys, width), 1)
            k = self._call("transpose", k, permutation=(*axes, len(batch) + 1, len(batch)))
        else:
            k = self._operand(dtype, (*shared, width, keys), 1)
        scores = self._call("dot", q, k)
        if self._chance(0.6):
            scores = self._call("mul", scores, "0.125")
        if self._chance(0.3):
            bias = tuple(1 if self._chance(0.4) else n for n in self._lens(scores))
            scores = self._call("add", scores, self._parameter(dtype, bias))
        if self._chance(0.4):
            scores = self._call(
                "where", self._mask(self._lens(scores)), scores, self.random.choice(("-inf", "-10000.0"))
            )
        p = self._call("softmax", scores, axis=len(batch) + 1)
        return self._call("dot", p, self._operand(dtype, (*shared, keys, out), 1))

    def _convolution(self) -> str:
        return self.random.choice((self._forwards, self._forwards, self._to_data, self._to_weights))()

    def _moved(self) -> tuple[int, dict[str, Any], list[int]]:
        """How many axes windows move along, in what way, and the windows' lengths."""
        n = self.random.choice((1, 2, 2, 2, 3))
        lengths = [self.random.choice((1, 1, 2, 3, 3, 5)) for _ in range(n)]
        ways: dict[str, Any] = {}
        if self._chance(0.5):
            ways["padding"] = tuple(self.random.choice((0, 1, 1, 2)) for _ in range(n * self.random.choice((1, 2))))
        if self._chance(0.5):
            ways["stride"] = tuple(self.random.choice((1, 2, 2, 3)) for _ in range(n))
        if self._chance(0.25):
            ways["dilation"] = tuple(self.random.choice((1, 2, 3)) for _ in range(n))
        return n, ways, lengths

    def _channels(self) -> tuple[int, int, int]:
        """How many groups, and channels of each in and out."""
        sort = self.random.random()
        if sort < 0.2:
            return self.random.choice((2, 3, 8, 16, 32)), 1, self.random.choice((1, 1, 2))
        group = self.random.choice((2, 3)) if sort < 0.4 else 1
        return group, *(self.random.choice((1, 2, 3, 4, 8, 16, 17, 32, 64)) for _ in "io")  # type: ignore[return-value]

    def _images(self, lengths: Sequence[int], ways: dict[str, Any], n: int) -> tuple[int, ...]:
        """Lengths of axes that windows fit into."""
        pads, dilation = ways.get("padding", (0,) * n), ways.get("dilation", (1,) * n)
        after = pads[n:] or pads
        least = [(lengths[d] - 1) * dilation[d] + 1 - pads[d] - after[d] for d in range(n)]
        longest = (1, 2, 3, 5, 7, 8, 9, 14, 16) if n < 3 else (1, 2, 3, 4, 5)
        return tuple(max(1, low, self.random.choice(longest if n > 1 else EXTENTS)) for low in least)

    def _layout(self, dtype: str, lens: Sequence[int]) -> str:
        """Channels first, or last in memory."""
        if self._chance(0.3):
            last = self._operand(dtype, (lens[0], *lens[2:], lens[1]), 1)
            return self._call("transpose", last, permutation=(0, len(lens) - 1, *range(1, len(lens) - 1)))
        return self._operand(dtype, lens)

    def _windows(self) -> tuple[dict[str, Any], Sequence[int], tuple[int, int, int], int, tuple[int, ...]]:
        """Windows over images that take no more products than `most`: how they move, groups said, and their lengths; the
        channels, the samples and the lengths of the images."""
        while True:
            n, ways, lengths = self._moved()
            channels = self._channels()
            samples, places = self.random.choice((1, 2, 3)), self._images(lengths, ways, n)
            if samples * prod(channels) * prod(places) * prod(lengths) <= self.most:
                break
        if channels[0] > 1:
            ways["group"] = channels[0]
        return ways, lengths, channels, samples, places

    def _forwards(self) -> str:
        ways, lengths, (group, inside, out), samples, places = self._windows()
        dtypes, op = (self.random.choice(TYPES),) * 2, "convolution"
        if self._chance(0.1):
            dtypes, op = self.random.choice((("int8", "int8"), ("uint8", "int8"))), "quant_convolution"
        x = self._layout(dtypes[0], (samples, group * inside, *places))
        return self._call(op, x, self._layout(dtypes[1], (group * out, inside, *lengths)), **ways)

    def _to_data(self) -> str:
        while True:
            n, ways, lengths = self._moved()
            group, inside, out = self._channels()
            samples, places = self.random.choice((1, 2)), self._images((1,) * n, {}, n)
            stride, dilation = ways.get("stride", (1,) * n), ways.get("dilation", (1,) * n)
            more = tuple(self.random.randrange(max(s, d)) for s, d in zip(stride, dilation, strict=True))
            pads = ways.get("padding", (0,) * n)
            made = [
                (places[d] - 1) * stride[d]
                + (lengths[d] - 1) * dilation[d]
                + 1
                + more[d]
                - pads[d]
                - (pads[n:] or pads)[d]
                for d in range(n)
            ]
            elements = samples * group * out * prod(max(1, m) for m in made)
            if min(made) > 0 and elements * inside * prod(lengths) <= 3 * self.most and elements <= MOST_ELEMENTS:
                break
        if self._chance(0.5):
            ways["output_padding"] = more
        if min(m if "output_padding" in ways else m - o for m, o in zip(made, more, strict=True)) < 1:
            ways["output_padding"] = more
        if group > 1:
            ways["group"] = group
        dtype = self.random.choice(TYPES)
        x = self._layout(dtype, (samples, group * inside, *places))
        return self._call("convolution_backwards_data", x, self._layout(dtype, (group * inside, out, *lengths)), **ways)

    def _to_weights(self) -> str:
        ways, lengths, (group, inside, out), samples, places = self._windows()
        n = len(lengths)
        pads = ways.get("padding", (0,) * n)
        stride, dilation = ways.get("stride", (1,) * n), ways.get("dilation", (1,) * n)
        made = [
            (places[d] + pads[d] + (pads[n:] or pads)[d] - (lengths[d] - 1) * dilation[d] - 1) // stride[d] + 1
            for d in range(n)
        ]
        dtype = self.random.choice(TYPES)
        x = self._layout(dtype, (samples, group * inside, *places))
        y = self._layout(dtype, (samples, group * out, *made))
        return self._call("convolution_backwards_weights", x, y, lengths=tuple(lengths), **ways)

    def _pool(self) -> str:
        dtype = self.random.choice(TYPES)
        n, ways, lengths = self._moved()
        n_lens = (self.random.choice((1, 2)), self.random.choice((1, 3, 8, 16)), *self._images(lengths, ways, n))
        mode = self.random.choice(("max", "average", "lpnorm") if dtype in FLOATS else ("max",))
        x = self._layout(dtype, n_lens)
        if self._chance(0.15):
            return self._call("global_pooling", x, mode=mode)
        if "padding" in ways:  # less than a window
            ways["padding"] = tuple(min(p, lengths[i % n] - 1) for i, p in enumerate(ways["padding"]))
        reaches = [(lengths[d] - 1) * ways.get("dilation", (1,) * n)[d] + 1 for d in range(n)]
        pads = ways.get("padding", (0,) * n)
        if any(reaches[d] > n_lens[2 + d] + pads[d] + (pads[n:] or pads)[d] for d in range(n)):
            ways, lengths = {}, [1] * n
        if self._chance(0.3):
            ways["ceil_mode"] = True
        if mode == "average" and self._chance(0.5):
            ways["count_include_pad"] = True
        if mode == "lpnorm" and self._chance(0.5):
            ways["lp_order"] = self.random.choice((1, 2, 3))
        return self._call("pooling", x, mode=mode, lengths=tuple(lengths), **ways)

    # ---- what becomes of them

    def _followed(self, name: str) -> str:
        """What an operation or two make of a value."""
        ways: list[Callable[[str], str]] = [self._biased, self._biased, self._activated, self._folded, self._moved_on]
        ways += [self._turned_into, self._joined_with, self._multiplied]
        return self.random.choice(ways)(name)

    def _biased(self, name: str) -> str:
        lens, dtype = self._lens(name), self.types[name].dtype
        beside = [1 if self._chance(0.5) else n for n in lens]
        bias = self._operand(dtype, beside[self.random.choice((0, 0, len(lens) - 1)) :], 1)
        return self._call(self.random.choice(("add", "add", "mul", "sub", "max")), name, bias)

    def _activated(self, name: str) -> str:
        real = self.types[name].dtype in FLOATS
        return self._call(
            self.random.choice(("relu", "gelu_erf", "sigmoid", "tanh") if real else ("relu", "neg")), name
        )

    def _folded(self, name: str) -> str:
        rank, real = len(self._lens(name)), self.types[name].dtype in FLOATS
        axes = tuple(sorted(self.random.sample(range(rank), self.random.randint(1, min(2, rank)))))
        if real and self._chance(0.3):
            return self._call("softmax", name, axis=axes[0])
        if real and self._chance(0.2):
            return self._call("layernorm", name, axes=axes)
        folded = self._call(
            self.random.choice(("reduce_sum", "reduce_max", "reduce_mean") if real else ("reduce_sum", "reduce_max")),
            name,
            axes=axes,
        )
        return self._call("sub", name, folded) if self._chance(0.3) else folded

    def _moved_on(self, name: str) -> str:
        lens = self._lens(name)
        way = self.random.choice(("transpose", "reshape", "slice", "pad", "reverse"))
        if way == "transpose":
            return self._call(way, name, permutation=tuple(self.random.sample(range(len(lens)), len(lens))))
        if way == "reshape":
            return self._call(way, name, dims=self._regrouped(lens))
        if way == "pad":
            return self._call(way, name, pads=tuple(self.random.choice((0, 0, 1)) for _ in range(2 * len(lens))))
        axis = self.random.randrange(len(lens))
        if way == "reverse":
            return self._call(way, name, axes=(axis,))
        start = self.random.randrange(lens[axis])
        step = self.random.choice((1, 1, 2))
        return self._call(way, name, axes=(axis,), starts=(start,), ends=(lens[axis],), steps=(step,))

    def _turned_into(self, name: str) -> str:
        dtype = self.types[name].dtype
        others = (
            [t for t in ("float", "half", "bf16", "double") if t != dtype] if dtype in FLOATS else ["float", "int64"]
        )
        return self._call("convert", name, target_type=self.random.choice(others))

    def _joined_with(self, name: str) -> str:
        lens, dtype = self._lens(name), self.types[name].dtype
        axis = self.random.randrange(len(lens))
        other = [n if d != axis else self.random.choice((1, 3)) for d, n in enumerate(lens)]
        parts = [name, self._parameter(dtype, tuple(other))]
        self.random.shuffle(parts)
        return self._call("concat", *parts, axis=axis)

    def _multiplied(self, name: str) -> str:
        """Another product, of matrices that this value is."""
        lens, dtype = self._lens(name), self.types[name].dtype
        n = self.random.choice((1, 3, 8, 16, 17, 64))
        if len(lens) < 2 or prod(lens) * n > self.most:
            return self._activated(name)
        if self._chance(0.5):
            return self._call("dot", name, self._operand(dtype, (lens[-1], n), 1))
        if prod(lens[:-2]) * n * lens[-2] * lens[-1] > self.most:
            return self._activated(name)
        return self._call("dot", self._operand(dtype, (n, lens[-2]), 1), name)
