"""Programs for rules that need a certain schedule or target: each a text, a target, and what is pinned of its schedule."""

from __future__ import annotations

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

RULE_PROGRAMS: dict[str, Pinned] = {**ATTENTION, **BOXES}
