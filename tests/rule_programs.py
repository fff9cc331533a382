"""Programs for rules that need a certain schedule or target: each a text, a target, and what is pinned of its schedule."""

from __future__ import annotations

from math import prod

Pinned = tuple[str, str, dict[str, object]]


def _attention(mask: str, hidden: str, *, queries: int = 96, keys: int = 130, width: int = 64, made: str = "k") -> str:
    """Attention of halves whose scores are as `hidden` says of the score `x` and a mask's lines; `made` is of the keys."""
    lens = f"2, {queries}, {keys}"
    return f"""
        q = @param:q -> half{{2, {queries}, {width}}}
        k = @param:k -> half{{2, {keys}, {width}}}
        v = @param:v -> half{{2, {keys}, {width}}}
        t = transpose[permutation={{0, 2, 1}}]({made})
        d = dot(q, t)
        x = mul(d, 0.125)
        r = iota[lens={{{lens}}}, axis=1]()
        c = iota[lens={{{lens}}}, axis=2]()
        {mask}
        s = {hidden}
        p = softmax[axis=2](s)
        z = dot(p, v)
        @return(z)"""


_TURNS = {"turns": 1, "tile": (128, 64, 64)}
ATTENTION: dict[str, Pinned] = {
    "attention in turns": (_attention("m = greater(c, r)", "where(m, -inf, x)"), "sm_90", _TURNS),
    "attention in turns, deep": (_attention("m = less(c, r)", "where(m, x, -inf)", width=128), "sm_90", {"turns": 1}),
    "attention in turns of computed keys": (
        _attention("", "relu(x)", made="u").replace("t = transpose", "u = relu(k)\n        t = transpose"),
        "sm_90",
        _TURNS,
    ),
    "attention behind a distance": (
        _attention("e = sub(r, c)\nm = less(e, 9)", "where(m, x, -inf)"),
        "sm_90",
        {},
    ),
    "attention behind sums": (_attention("e = add(r, c)\nm = greater(e, 99)", "where(m, x, -inf)"), "sm_90", {}),
    "attention before a place": (
        _attention(
            "e = sub(r, 7)\nm = less(c, e)\nn = greater_equal(c, 5)\no = logical_and(m, n)", "where(o, -inf, x)"
        ),
        "sm_90",
        {},
    ),
    "attention of some": (
        _attention("m = equal(c, 9)\nn = less_equal(c, 3)\no = logical_or(m, n)", "where(o, -inf, x)"),
        "sm_90",
        {},
    ),
    "attention of others": (
        _attention("m = less(c, 9)\nn = greater(c, 30)\no = logical_or(m, n)", "where(o, x, -inf)"),
        "sm_90",
        {},
    ),
}

_PRODUCT = "x = @param:x -> half{{{b}, {m}, {k}}}\nw = @param:w -> half{{{b}, {k}, {n}}}\nz = dot(x, w)\n@return(z)"


def _boxes(b: int, m: int, k: int, n: int, **pins: object) -> Pinned:
    text = _PRODUCT.format(b=b, m=m, k=k, n=n)
    return text, "sm_90", {"algo": "matrix", "instruction": "wgmma_m64n128k16_f16", **pins}


BOXES: dict[str, Pinned] = {
    "boxes in turn": _boxes(300, 8, 32, 16, tile=(64, 128, 64)),
    "boxes in even bands": _boxes(1, 4096, 128, 4096, tile=(128, 128, 64)),
    "boxes in uneven bands": _boxes(1, 5000, 128, 4096, tile=(128, 128, 64)),
}

ROTATION = """
        x = @param:x -> {dtype}{{{lens}, {width}}}
        c = @param:c -> {dtype}{{{pairs}, 1}}
        s = @param:s -> {dtype}{{{pairs}, 1}}
        v = reshape[dims={{{lens}, {pairs}, 2}}](x)
        a = slice[axes={{{axis}}}, starts={{0}}, ends={{1}}](v)
        b = slice[axes={{{axis}}}, starts={{1}}, ends={{2}}](v)
        ac = mul(a, c)
        bs = mul(b, s)
        bc = mul(b, c)
        as = mul(a, s)
        l = sub(ac, bs)
        r = add(bc, as)
        j = concat[axis={axis}](l, r)
        y = reshape[dims={{{lens}, {width}}}](j)
        @return(y)"""
NIBBLES = """
        x = @param:x -> uint8{{{rows}, 64}}
        l = bitwise_and(x, 15)
        h = shift_right(x, 4)
        a = unsqueeze[axes={{2}}](l)
        b = unsqueeze[axes={{2}}](h)
        j = concat[axis=2](a, b)
        f = convert[target_type=half](j)
        y = reshape[dims={{{rows}, 128}}](f)
        @return(y)"""
POOL = """
        x = @param:x -> half{4, 3, 16, 32}
        r = reshape[dims={4, 3, 8, 2, 16, 2}](x)
        m = reduce_max[axes={3, 5}](r)
        y = reshape[dims={4, 3, 8, 16}](m)
        @return(y)"""
_SHUFFLED = """
        x = @param:x -> half{{2, 8, {rows}, 32}}
        a = reshape[dims={{2, 2, 2, 2, {rows}, 32}}](x)
        t = transpose[permutation={{0, 1, 4, 2, 5, 3}}](a)
        y = reshape[dims={{2, 2, {twice}, 64}}](t)
        @return(y)"""
_DIGITS_MOVED = """
        x = @param:x -> {dtype}{{{count}}}
        v = reshape[dims={{{lens}}}](x)
        t = transpose[permutation={{{order}}}](v)
        y = reshape[dims={{{count}}}](t)
        @return(y)"""
_REPEATED = """
        x = @param:x -> float{192}
        v = reshape[dims={1, 6, 2, 8, 1, 2}](x)
        t = multibroadcast[out_lens={1, 6, 2, 8, 4, 2}](v)
        y = reshape[dims={768}](t)
        @return(y)"""
_EIGHT = {"vector": 4, "share": 8}


def _digits_moved(lens: str, order: str, dtype: str) -> str:
    return _DIGITS_MOVED.format(count=prod(map(int, lens.split(","))), lens=lens, order=order, dtype=dtype)


def rotation(lens: tuple[int, ...], width: int, dtype: str = "half") -> str:
    """Neighbouring pairs of rows of `width` elements, each turned by an angle of its own."""
    shown = ", ".join(map(str, lens))
    return ROTATION.format(lens=shown, width=width, pairs=width // 2, axis=len(lens) + 1, dtype=dtype)


DIGITS: dict[str, Pinned] = {
    "nibbles": (NIBBLES.format(rows=48), "sm_90", _EIGHT),
    "nibbles of a tail": (NIBBLES.format(rows=47), "sm_90", _EIGHT),
    "pixels shuffled": (_SHUFFLED.format(rows=16, twice=32), "sm_90", _EIGHT),
    "pixels shuffled with a tail": (_SHUFFLED.format(rows=15, twice=30), "sm_90", _EIGHT),
    "pairs that are rotated": (rotation((2, 3, 16), 128), "sm_90", _EIGHT),
    "windows in whole blocks": (POOL, "sm_90", {"algo": "lane", "vector": 4, "share": 4}),
    "repeated pairs": (_REPEATED, "sm_90", {"algo": "flat"}),
    "fours moved": (_digits_moved("3, 6, 4, 16, 4", "1, 3, 0, 4, 2", "bf16"), "sm_90", {"algo": "flat"}),
    "fours moved in whole": (
        _digits_moved("1, 16, 4, 16, 4", "0, 4, 1, 3, 2", "half"),
        "sm_90",
        {"vector": 8, "share": 16},
    ),
    "pairs moved": (_digits_moved("3, 6, 2, 48, 2", "3, 1, 4, 0, 2", "int8"), "sm_90", {"algo": "flat"}),
    "pairs moved in sixteens": (
        _digits_moved("5, 6, 2, 8, 2", "1, 3, 0, 2, 4", "half"),
        "sm_90",
        {"vector": 8, "share": 16},
    ),
}

ROUNDED_ROWS = """
        x = @param:x -> {dtype}{{6, 80}}
        f = convert[target_type=float](x)
        a = abs(f)
        m = reduce_max[axes={{1}}](a)
        d = div(f, m)
        q = mul(d, 100.0)
        r = round(q)
        y = convert[target_type=int8](r)
        @return(y)"""
CLIPPED = """
        x = @param:x -> float{{{count}}}
        r = round(x)
        c = clip(r, {low}.0, {high}.0)
        y = convert[target_type={target_type}](c)
        @return(y)"""
_HALVES = """
        x = @param:x -> float{8, 64}
        s = @param:s -> float{8, 1}
        d = div(x, s)
        e = neg(d)
        y = convert[target_type=half](e)
        @return(y)"""
BYTES: dict[str, Pinned] = {
    "quotients as halves": (_HALVES, "sm_90", {}),
    "rows rounded to bytes": (ROUNDED_ROWS.format(dtype="half"), "sm_90", {}),
    **{
        f"{t} from {low} to {high}": (CLIPPED.format(count=1000, low=low, high=high, target_type=t), "sm_90", {})
        for t, low, high in (("int8", -128, 127), ("uint8", 0, 255), ("int8", -127, 127), ("int8", 0, 127))
    },
}

_PARTS = """
        x = @param:x -> half{8, 56, 64}
        w = @param:w -> half{8, 56, 64}
        a = slice[axes={1}, starts={0}, ends={28}](x)
        b = slice[axes={1}, starts={0}, ends={28}](w)
        c = reshape[dims={224, 64}](a)
        d = reshape[dims={224, 64}](b)
        t = transpose[permutation={1, 0}](c)
        z = dot(t, d)
        @return(z)"""
CHUNKS: dict[str, Pinned] = {
    "products of parts of rows": (
        _PARTS,
        "gfx1100",
        {"instruction": "wmma_f32_16x16x16_f16_gfx11", "tile": (64, 64, 32)},
    ),
}

_VARIANCE = """
        x = @param:x -> float{3, 65536}
        m = reduce_mean[axes={1}](x)
        d = sub(x, m)
        q = mul(d, d)
        s = reduce_mean[axes={1}](q)
        @return(s, m)"""
LOGITS = """
        x = @param:x -> {dtype}{{3, {width}}}
        f = convert[target_type=float](x)
        y = reduce_log_sum_exp[axes={{1}}](f)
        p = softmax[axis=1](f)
        @return(y, p)"""
STEPS = {"algo": "block", "block_size": 64, "vector": 4, "share": 16}
WALKED: dict[str, Pinned] = {
    "variance of a power of two": (_VARIANCE, "gfx942", {"algo": "block", "block_size": 64}),
    "logits in steps": (LOGITS.format(dtype="bf16", width=16384), "sm_90", STEPS),
    "logits in steps with a tail": (LOGITS.format(dtype="half", width=16396), "sm_90", STEPS),
}

DEPTHWISE = """
        x = @param:x -> half{2, 6, 9, 13}
        w = @param:w -> half{6, 1, 3, 3}
        y = convolution[padding={1, 0, 0, 1}, group=6](x, w)
        @return(y)"""
DEPTHWISE_OF_LAST = """
        x = @param:x -> half{2, 10, 13, 16}
        w = @param:w -> half{16, 1, 3, 3}
        u = transpose[permutation={0, 3, 1, 2}](x)
        c = convolution[padding={1, 1}, stride={1, 2}, group=16](u, w)
        y = transpose[permutation={0, 2, 3, 1}](c)
        @return(y)"""
_GRADIENT_BY_WEIGHTS = """
        x = @param:x -> half{2, 8, 11, 16}
        y = @param:y -> half{2, 8, 11, 16}
        u = transpose[permutation={0, 3, 1, 2}](x)
        v = transpose[permutation={0, 3, 1, 2}](y)
        c = convolution_backwards_weights[lengths={3, 3}, padding={1, 1}, group=16](u, v)
        z = transpose[permutation={2, 3, 0, 1}](c)
        @return(z)"""
_SUMS_OF_WINDOWS = """
        x = @param:x -> float{10, 66}
        w = windows[axes={0, 1}, lengths={3, 3}](x)
        y = reduce_sum[axes={0, 1}](w)
        @return(y)"""
PATCHES: dict[str, Pinned] = {
    "patches of places": (DEPTHWISE, "sm_90", {"patch": 2}),
    "patches of places of whole channels": (DEPTHWISE_OF_LAST, "gfx942", {"patch": 7}),
    "patches of windows of a gradient": (_GRADIENT_BY_WEIGHTS, "sm_90", {"patch": 3}),
    "patches of sums of windows": (_SUMS_OF_WINDOWS, "gfx1100", {"patch": 4}),
}


def _turned(lens: str, rest: str, axis: int = 1) -> str:
    """Rows of what lies along them, and of what lies across."""
    rows, length = lens.split(", ")
    return f"""
        x = @param:x -> float{{{lens}}}
        t = @param:t -> float{{{length}, {rows}}}
        c = @param:c -> bool{{{lens}}}
        v = transpose[permutation={{1, 0}}](t)
        {rest}
        z = reduce_sum[axes={{{axis}}}](m)
        @return(z)"""


_ROWS, _COLUMNS = {"rows": 64, "lanes": 4}, {"rows": 64, "lanes": 4, "block_size": 256}
TURNED_ROWS: dict[str, Pinned] = {
    "rows of two orders": (_turned("128, 16", "m = mul(x, v)"), "sm_90", _ROWS),
    "rows of two orders that end early": (_turned("67, 16", "m = mul(x, v)"), "gfx942", _ROWS),
    "rows of two orders and others": (
        _turned("128, 16", "w = mul(x, v)\n        r = reverse[axes={0}](v)\n        m = mul(w, r)"),
        "sm_90",
        _ROWS,
    ),
    "columns of an input and rows": (_turned("16, 128", "m = sub(x, v)", 0), "sm_90", _COLUMNS),
    "rows and columns of an input": (_turned("16, 128", "m = sub(v, x)", 0), "gfx1100", _COLUMNS),
    "rows where columns say so": (_turned("16, 128", "m = where(c, v, x)", 0), "sm_90", _COLUMNS),
    "columns where columns say so": (_turned("16, 128", "m = where(c, x, v)", 0), "sm_90", _COLUMNS),
}

NEAR: dict[str, Pinned] = {
    f"near_{name}": (f"x = @param:x -> half{{37, 24}}\ny = {name}(x)\n@return(y)", "gfx942", {})
    for name in ("erf", "swish", "gelu_erf", "gelu_tanh")
}

RULE_PROGRAMS: dict[str, Pinned] = {
    **ATTENTION,
    **BOXES,
    **DIGITS,
    **BYTES,
    **CHUNKS,
    **WALKED,
    **PATCHES,
    **TURNED_ROWS,
    **NEAR,
}
