"""Functions of the expression language on shapes and strides that need a walk over dimensions."""

from __future__ import annotations

from genrw.engine.functions import Function, Misuse, declare


def merged(lens: tuple[int, ...], strides: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """(length, stride) pairs with neighbours joined where one walk covers both, length-1 dimensions dropped."""
    if len(lens) != len(strides):
        raise Misuse("`merge_dims` takes as many strides as lengths")
    pairs: list[tuple[int, int]] = []
    for length, stride in zip(lens, strides, strict=True):
        if length == 1:
            continue
        if pairs and pairs[-1][1] == length * stride:
            pairs[-1] = (pairs[-1][0] * length, stride)
        else:
            pairs.append((length, stride))
    return tuple(pairs) or ((1, 0),)


def kept_groups(lens: tuple[int, ...], axes: tuple[int, ...]) -> tuple[tuple[int, bool], ...]:
    """(length, is reduced) pairs of neighbouring dimensions of one kind, length-1 dimensions dropped."""
    groups: list[tuple[int, bool]] = []
    for d, length in enumerate(lens):
        if length == 1:
            continue
        reduced = d in axes
        if groups and groups[-1][1] == reduced:
            groups[-1] = (groups[-1][0] * length, reduced)
        else:
            groups.append((length, reduced))
    return tuple(groups)


def trailing_axes(lens: tuple[int, ...], count: int) -> tuple[int, ...]:
    """The last axes, as many as hold `count` elements."""
    axes: tuple[int, ...] = ()
    held = 1
    for d in range(len(lens) - 1, -1, -1):
        if held == count and lens[d] != 1:
            break
        axes, held = (d, *axes), held * lens[d]
    if held != count:
        raise Misuse(f"no trailing axes hold {count} elements")
    return axes


LAYOUT_FUNCTIONS: dict[str, Function] = {
    f.name: f
    for f in (
        declare(
            "merge_dims(lens: ints, strides: ints) -> lists",
            merged,
            "[length, stride] pairs with neighbours joined where one walk covers both.",
        ),
        declare(
            "kept_groups(lens: ints, axes: ints) -> lists",
            kept_groups,
            "[length, is reduced] pairs of neighbouring dimensions of one kind.",
        ),
        declare(
            "trailing_axes(lens: ints, count: int) -> ints",
            trailing_axes,
            "The last axes, as many as hold `count` elements.",
        ),
        declare(
            "is_number(value: any) -> bool",
            lambda value: isinstance(value, (int, float)),
            "Whether a constant is one number for all elements.",
        ),
        declare(
            "numbered(name: string, i: int) -> string",
            lambda name, i: f"{name}{i}" if i else name,
            "The name, with i behind it unless i is 0.",
        ),
    )
}
