"""Random programs as networks have them: several products of one value, attention of grouped heads and of single queries,
products that are dequantised, folded, chosen from or multiplied again, and convolutions before pools and norms."""

from __future__ import annotations

from math import prod
from random import Random

from random_contractions import EXTENTS, FLOATS, MOST_ELEMENTS, ContractionWriter
from random_programs import RandomProgram

from genrw.engine.library.library import Library

WIDTHS = (7, 8, 16, 32, 40, 64)
FOLDS = ("reduce_sum", "reduce_max", "reduce_min", "reduce_mean")


def random_network(library: Library, seed: object) -> RandomProgram:
    """The program of a seed."""
    return NetworkWriter(library, Random(repr(seed))).program()


class NetworkWriter(ContractionWriter):
    """Writes a part of a network, and perhaps an operation behind it."""

    def program(self) -> RandomProgram:
        """The part; what is contracted again may be a result, too."""
        ways = (self._several, self._chain, self._grouped, self._written_out, self._dequantised, self._places)
        results = self.random.choice((*ways, self._pooled, self._normed))()
        if self._chance(0.3):
            results = [*results[:-1], self._followed(results[-1])]
        if self._chance(0.3):
            inner = [line.name for line in self.lines if line.operands and line.type.elements <= MOST_ELEMENTS]
            results.append(self.random.choice(inner))
        return RandomProgram(tuple(self.lines), tuple(dict.fromkeys(results))).needed()

    # ---- products

    def _several(self) -> list[str]:
        """Products of one value with several others: each a result, or combined to one."""
        dtype = self.random.choice((*FLOATS, "int32"))
        m, n, k = self._extents(3, self.most)
        x = self._operand(dtype, (m, k))
        made = [self._call("dot", x, self._operand(dtype, (k, n), 1)) for _ in range(self.random.choice((2, 2, 3)))]
        if self._chance(0.4):
            return made
        if dtype in FLOATS and self._chance(0.6):
            made[0] = self._call(self.random.choice(("sigmoid", "swish", "gelu_erf", "tanh")), made[0])
        joined = made[0]
        for other in made[1:]:
            joined = self._call(self.random.choice(("mul", "add", "max")), joined, other)
        return [joined]

    def _chain(self) -> list[str]:
        """Two or three products one after the other, of which each is computed with, and perhaps folded, before the next."""
        dtype = self.random.choice(FLOATS)
        m, n, k = self._extents(3, self.most)
        made = self._call("dot", self._operand(dtype, (m, k)), self._operand(dtype, (k, n), 1))
        results = []
        for _ in range(self.random.choice((1, 1, 2))):
            if self._chance(0.3):
                results.append(made)
            made = self._computed_rows(made)
            rows, depth = self._lens(made)
            width = self.random.choice([w for w in EXTENTS if rows * depth * w <= self.most])
            made = self._call("dot", made, self._operand(dtype, (depth, width), 1))
        return [*results, self._folded(made) if self._chance(0.4) else made]

    def _computed_rows(self, name: str) -> str:
        """Rows of the same type and lengths, or of one element each."""
        way = self.random.choice(("softmax", "layernorm", "rmsnorm", "relu", "bias", "scale", "fold"))
        if way == "softmax":
            return self._call(way, name, axis=self.random.choice((0, 1)))
        if way in ("layernorm", "rmsnorm"):
            return self._call(way, name, axes=(1,))
        if way == "relu":
            return self._call(way, name)
        if way == "bias":
            return self._biased(name)
        axes = (self.random.choice((0, 1)),)
        folded = self._call(self.random.choice(FOLDS), name, axes=axes)
        return folded if way == "fold" else self._call(self.random.choice(("sub", "mul")), name, folded)

    def _dequantised(self) -> list[str]:
        """A product of bytes as numbers, by a scale of all, of rows, of columns or of both; a zero point may come off."""
        m, n, k = self._extents(3, self.most)
        left, right = self.random.choice((("int8", "int8"), ("uint8", "int8"), ("uint8", "uint8")))
        made = self._call("quant_dot", self._operand(left, (m, k)), self._operand(right, (k, n), 1))
        if self._chance(0.3):
            made = self._call("sub", made, self._parameter("int32", self.random.choice(((n,), (m, 1)))))
        dtype = self.random.choice(("float", "half", "bf16"))
        made = self._call("convert", made, target_type=dtype)
        for lens in self.random.choice((((),), ((n,),), ((m, 1),), ((m, 1), (n,)))):
            made = self._call("mul", made, self._parameter(dtype, lens) if lens else "0.0125")
        if self._chance(0.5):
            made = self._call("add", made, self._parameter(dtype, (n,)))
        if self._chance(0.3):
            made = self._call("round", self._call("clip", made, "-128.0", "127.0"))
            made = self._call("convert", made, target_type="int8")
        return [made]

    def _places(self) -> list[str]:
        """Where the largest or smallest elements of a product are, perhaps beside these."""
        made = self._product()
        axis = self.random.randrange(len(self._lens(made)))
        results = [self._call(self.random.choice(("argmax", "argmin")), made, axis=axis)]
        if self._chance(0.4):
            results.append(self._call(self.random.choice(("reduce_max", "reduce_min")), made, axes=(axis,)))
        return results

    # ---- attention

    def _grouped(self) -> list[str]:
        """Attention whose heads share keys and values in groups, of one query or more, perhaps of those before only."""
        dtype = self.random.choice(FLOATS)
        while True:
            batch, groups, heads = (self.random.choice((1, 1, 2, 3)) for _ in "bgh")
            queries = self.random.choice((1, 1, *EXTENTS))
            keys, width = self.random.choice(EXTENTS), self.random.choice(WIDTHS)
            if batch * groups * heads * queries * keys * width <= self.most:
                break
        q = self._operand(dtype, (batch, groups, heads, queries, width), 1)
        k, v = (self._operand(dtype, (batch, groups, 1, keys, width), 1) for _ in "kv")
        if self._chance(0.5):
            q = self._call("reshape", q, dims=(batch, groups * heads, queries, width))
            k, v = (self._shared(name, heads) for name in (k, v))
        rank = len(self._lens(q))
        turned = self._call("transpose", k, permutation=(*range(rank - 2), rank - 1, rank - 2))
        scores = self._call("mul", self._call("dot", q, turned), "0.25")
        if self._chance(0.5):
            scores = self._call("where", self._mask(self._lens(scores)), scores, "-10000.0")
        made = self._call("dot", self._call("softmax", scores, axis=rank - 1), v)
        if self._chance(0.4):
            order = (*range(rank - 3), rank - 2, rank - 3, rank - 1)
            lens = self._lens(self._call("transpose", made, permutation=order))
            made = self._call("reshape", self.lines[-1].name, dims=(*lens[:-2], lens[-2] * lens[-1]))
        return [made]

    def _shared(self, name: str, heads: int) -> str:
        """Keys or values of a group for each of its heads."""
        batch, groups, _, keys, width = self._lens(name)
        repeated = self._call("multibroadcast", name, out_lens=(batch, groups, heads, keys, width))
        return self._call("reshape", repeated, dims=(batch, groups * heads, keys, width))

    def _written_out(self) -> list[str]:
        """Attention whose softmax is written out, perhaps without its largest element, or with a division behind the product."""
        dtype = self.random.choice(FLOATS)
        m, n, k = self._extents(3, self.most)
        width = self.random.choice([w for w in WIDTHS if m * n * w <= 2 * self.most] or [1])
        scores = self._call("dot", self._operand(dtype, (m, k)), self._operand(dtype, (k, n), 1))
        scores = self._call("mul", scores, str(0.5 / k))
        if self._chance(0.6):
            scores = self._call("sub", scores, self._call("reduce_max", scores, axes=(1,)))
        powers = self._call("exp", scores)
        sums = self._call("reduce_sum", powers, axes=(1,))
        v = self._operand(dtype, (n, width), 1)
        if self._chance(0.4):
            return [self._call("div", self._call("dot", powers, v), sums)]
        return [self._call("dot", self._call("div", powers, sums), v)]

    # ---- convolutions

    def _pooled(self) -> list[str]:
        """A pool of what a convolution makes, perhaps with an activation between."""
        made = self._convolution()
        lens, real = self._lens(made), self.types[made].dtype in FLOATS
        if self._chance(0.6):
            made = self._call("relu", made)
        if self._chance(0.3) and real:
            return [self._call("global_pooling", made, mode=self.random.choice(("max", "average")))]
        lengths = tuple(min(n, self.random.choice((1, 2, 3))) for n in lens[2:])
        stride = tuple(self.random.choice((1, 2)) for _ in lengths)
        mode = self.random.choice(("max", "average")) if real else "max"
        return [self._call("pooling", made, mode=mode, lengths=lengths, stride=stride)]

    def _normed(self) -> list[str]:
        """What a convolution makes, normalised by its own elements or by given numbers of each channel."""
        made = self._convolution()
        lens, dtype = self._lens(made), self.types[made].dtype
        channel = (lens[1], *(1 for _ in lens[2:]))
        if dtype not in FLOATS or prod(lens) == 0:
            return [self._call("mul", made, self._parameter(dtype, channel))]
        if self._chance(0.4):
            made = self._call("sub", made, self._parameter(dtype, channel))
            made = self._call("mul", made, self._parameter(dtype, channel))
            made = self._call("add", made, self._parameter(dtype, channel))
        elif self._chance(0.5):
            made = self._call("instance_norm", made)
        else:
            made = self._call("layernorm", made, axes=tuple(range(1, len(lens))))
        return [self._call("relu", made) if self._chance(0.5) else made]
