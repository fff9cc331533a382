"""The configuration of tiles, and the width of accesses: counterparts of the seed's tiling tests."""

from __future__ import annotations

from math import ceil, gcd, prod
from random import Random

import pytest
from stages import assert_right, at, found
from support import load, schedules

from genrw.engine.programs.space import space_record, with_space


def transposed(*lens: int) -> str:
    """A program whose result has these lengths, with an operand that is transposed in the last two."""
    *outer, rows, columns = lens
    shape, last = ", ".join(map(str, (*outer, columns, rows))), len(outer)
    permutation = ", ".join(map(str, (*range(last), last + 1, last)))
    return f"x = @param:x -> {{{shape}}}\nt = transpose[permutation={{{permutation}}}](x)\nr = exp(t)\n@return(r)"


@pytest.mark.parametrize(
    ("lens", "tile"),
    [
        ((128, 64), (64, 64)),
        ((64, 4096), (64, 64)),
        ((56, 640), (64, 64)),
        ((8, 4096), (8, 256)),
        ((3, 48, 100), (64, 64)),
        ((67, 131), (64, 64)),
        ((13, 64), (16, 64)),
        ((2, 2, 4096), (2, 1024)),
    ],
)
def test_tile_config(lens: tuple[int, ...], tile: tuple[int, int]) -> None:
    """Sides of 64 elements and more, or as long as a short axis, in all as many as keep a workgroup busy. A workgroup for
    each tile, the last ones cut."""
    lowered = at("lanewise", transposed(*lens), schedule={"algo": "tile", "rows": tile[0], "columns": tile[1]})
    config = found(lowered, "tile_index")[0]
    assert (config.attribute("rows"), config.attribute("columns")) == tile
    schedule = lowered.modules[0].schedule
    assert schedule["grid"] == prod(lens[:-2]) * ceil(lens[-2] / tile[0]) * ceil(lens[-1] / tile[1])
    assert schedule["share"] * schedule["block_size"] == tile[0] * tile[1]


@pytest.mark.parametrize("lens", [(64, 1), (1, 64)])
def test_no_tile_of_a_single_row_or_column(lens: tuple[int, int]) -> None:
    assert {s["algo"] for s in schedules(transposed(*lens))} == {"flat"}


@pytest.mark.parametrize(
    "text",
    [
        "x = @param:x -> {4096}\nr = exp(x)\n@return(r)",
        "x = @param:x -> {64, 64}\nr = exp(x)\n@return(r)",
    ],
)
def test_no_tile_without_a_transposed_operand(text: str) -> None:
    assert {s["algo"] for s in schedules(text)} == {"flat"}


MOVED = {
    "channels last": ("{2, 72, 8, 24}", "{0, 2, 3, 1}", (2, 192, 72), 1),
    "channels first": ("{2, 8, 24, 72}", "{0, 3, 1, 2}", (2, 72, 192), 1),
    "ends swapped": ("{72, 2, 136}", "{2, 1, 0}", (136, 2, 72), 0),
    "heads apart": ("{2, 64, 3, 72}", "{0, 3, 2, 1}", (2, 72, 3, 64), 1),
    "of ones": ("{1, 72, 1, 80}", "{0, 2, 3, 1}", (80, 72), 0),
}


@pytest.mark.parametrize("case", MOVED)
@pytest.mark.parametrize(("type_", "widest"), [("int8", 16), ("half", 8), ("float", 4), ("double", 2)])
def test_both_sides_of_a_tile_are_read_and_written_by_wide_accesses(case: str, type_: str, widest: int) -> None:
    """Axes that move together are one; the other side of the tile may be any axis."""
    lens, permutation, space, turned = MOVED[case]
    text = f"x = @param:x -> {type_}{lens}\nt = transpose[permutation={permutation}](x)\nr = add(t, t)\n@return(r)"
    tile = {"algo": "tile", "rows": 64, "columns": 64, "block_size": 256}
    module = at("final", text, schedule=tile).modules[0]
    assert module.space == space
    accesses = [n for n in module.nodes if n.op.startswith("vector_")]
    assert [n.attribute("vector") for n in accesses] == [gcd(space[turned], widest), gcd(space[-1], widest)]
    assert sum(n.op == "lds_allocate" for n in module.nodes) == 1
    assert_right(text, schedule=tile)


@pytest.mark.parametrize(
    ("lens", "widths"), [((66, 68), (4, 2)), ((67, 72), (8, 1)), ((80, 65), (1, 8)), ((196, 64), (8, 4))]
)
def test_a_side_of_a_tile_is_as_wide_as_divides_its_axis(lens: tuple[int, int], widths: tuple[int, int]) -> None:
    """A cut tile exists chunk by chunk: no element is asked for by itself."""
    written, read = widths
    text = transposed(*lens).replace("-> ", "-> half")
    tile = {"algo": "tile", "rows": 64, "columns": 64, "block_size": 256}
    nodes = at("final", text, schedule=tile).modules[0].nodes
    accesses = {n.op.split("_")[1]: n.attribute("vector") for n in nodes if n.op.startswith("vector_")}
    assert accesses == {"read": read, "write": written}
    assert_right(text, schedule=tile)


@pytest.mark.parametrize("permutation", ["{0, 2, 1, 3}", "{2, 0, 1, 3}", "{1, 2, 0, 3}"])
def test_what_stays_together_needs_no_tile(permutation: str) -> None:
    """The last axis stays where it is: each access is of neighbours on both sides."""
    text = f"x = @param:x -> half{{6, 10, 14, 16}}\nt = transpose[permutation={permutation}](x)\nr = exp(t)\n@return(r)"
    assert {s["algo"] for s in schedules(text)} == {"flat"}
    lowered = at("final", text, schedule={"vector": 8, "share": 8})
    assert {n.attribute("vector") for n in lowered.modules[0].nodes if n.op.startswith("vector_")} == {8}
    assert_right(text, schedule={"vector": 8, "share": 8})


@pytest.mark.parametrize("lens", ["1, 1, 1", "0, 1, 1", "5, 0, 3", "1, 4, 1"])
def test_what_has_no_neighbours_is_not_turned(lens: str) -> None:
    """Listings may keep transposes that move nothing."""
    shape = ", ".join(reversed(lens.split(", ")))
    text = (
        f"@module main [stage=fuse]\nx = @param:x -> half{{{lens}}}\n"
        f"t = transpose[permutation={{2, 1, 0}}](x) -> half{{{shape}}}\nr = exp(t) -> half{{{shape}}}\n@return(r)"
    )
    assert at("schedule", text).modules[0].schedule["algo"] == "flat"


def test_tile_fits_into_workgroup_memory() -> None:
    """64 × 65 doubles do; where the memory would not do, the tile would be none."""
    text = transposed(64, 64).replace("-> ", "-> double")
    (lds,) = found(at("blockwise", text, schedule={"algo": "tile"}), "lds_allocate")
    assert lds.type.elements * 8 <= 65536


@pytest.mark.parametrize(
    ("type_", "width"),
    [
        ("half{8192}", 8),
        ("float{8192}", 4),
        ("double{8192}", 2),
        ("float{8190}", 2),
        ("half{8190}", 2),
        ("float{8191}", 1),
    ],
)
def test_vector_width(type_: str, width: int) -> None:
    """As wide as the target's widest access, where it divides the length."""
    text = f"x = @param:x -> {type_}\nr = exp(x)\n@return(r)"
    assert max(s["vector"] for s in schedules(text)) == width
    lowered = at("final", text, schedule={"vector": width})
    if width > 1:
        assert {n.attribute("vector") for n in lowered.modules[0].nodes if n.op.startswith("vector_")} == {width}
    assert_right(text, schedule={"vector": width})


@pytest.mark.parametrize("lens", [(3, 48, 100), (67, 131), (2, 33, 5), (2, 7, 64), (1025, 9)])
def test_tiled_kernel(lens: tuple[int, ...]) -> None:
    """Also where the last tiles are cut."""
    assert_right(transposed(*lens), schedule={"algo": "tile"})


@pytest.mark.parametrize("seed", range(8))
def test_sides_of_a_tile_are_axes_taken_together(seed: int) -> None:
    """Whatever the order of axes in memory, and whatever their lengths."""
    random = Random(seed)
    lens = [random.choice((5, 8, 20, 33)) for _ in range(random.choice((3, 4)))]
    order = random.sample(range(len(lens)), len(lens))
    while order[-1] == len(lens) - 1:
        random.shuffle(order)
    listed, permutation = (", ".join(map(str, numbers)) for numbers in (lens, order))
    dtype = random.choice(("int8", "half", "float"))
    text = f"x = @param:x -> {dtype}{{{listed}}}\nt = transpose[permutation={{{permutation}}}](x)\nr = add(t, t)\n@return(r)"
    assert_right(text, schedule={"algo": "tile"})


@pytest.mark.parametrize(
    ("lens", "order", "sides"),
    [
        ((64, 128), (1, 0), (1, 128, 1, 64)),
        ((2, 64, 3, 72), (0, 3, 2, 1), (2, 72, 3, 64)),
        ((320, 16, 2, 224), (3, 1, 0, 2), (1, 224, 16, 640)),
        ((8, 2, 96, 28, 4), (3, 4, 1, 2, 0), (1, 112, 2, 768)),
    ],
)
def test_as_few_axes_are_taken_together_as_make_whole_lines(
    lens: tuple[int, ...], order: tuple[int, ...], sides: tuple[int, ...]
) -> None:
    listed, permutation = (", ".join(map(str, numbers)) for numbers in (lens, order))
    text = (
        f"x = @param:x -> half{{{listed}}}\nt = transpose[permutation={{{permutation}}}](x)\nr = add(t, t)\n@return(r)"
    )
    found = at("schedule", text, schedule={"algo": "tile"}).modules[0].schedule
    assert found["sides"] == sides


ELSEWHERE = {
    "padded": "p = pad[pads={0, 1, 0, 1}](t)\nr = slice[axes={1}, starts={2}, ends={COLUMNS + 2}](p)",
    "padded by what a tile is cut": "p = pad[pads={0, 0, 61, 61}](t)\nr = slice[axes={0, 1}, starts={1, 1}, ends={ROWS + 1, COLUMNS + 1}](p)",
    "rolled": """a = slice[axes={0}, starts={3}, ends={ROWS}](t)
        b = slice[axes={0}, starts={0}, ends={3}](t)
        r = concat[axis=0](a, b)""",
    "reversed": "r = reverse[axes={0}](t)",
    "gathered": "k = @param:k -> int64{ROWS}\nr = gather[axis=0](t, k)",
    "repeated": "a = slice[axes={0}, starts={1}, ends={2}](t)\nm = multibroadcast[out_lens={ROWS, COLUMNS}](a)\nr = add(m, t)",
    "one for all": "a = slice[axes={0, 1}, starts={1, 2}, ends={2, 3}](t)\nm = multibroadcast[out_lens={ROWS, COLUMNS}](a)\nr = add(m, t)",
    "at both places": "a = reverse[axes={1}](t)\nr = add(t, a)",
    "turned again": """a = exp(t)
        b = reshape[dims={COLUMNS, ROWS}](a)
        u = transpose[permutation={1, 0}](b)
        r = add(u, t)""",
}


@pytest.mark.parametrize("lens", [(64, 32), (67, 64), (67, 131)])
@pytest.mark.parametrize("use", ELSEWHERE)
def test_turned_operand_at_elements_of_others(use: str, lens: tuple[int, int]) -> None:
    """A lane that needs a turned operand's element of another lane, maybe of another tile, reads it from the operand."""
    text = f"x = @param:x -> float{{COLUMNS, ROWS}}\nt = transpose[permutation={{1, 0}}](x)\n{ELSEWHERE[use]}\ny = relu(r)\n@return(y)"
    rows, columns = lens
    for name, value in (("ROWS + 1", rows + 1), ("COLUMNS + 1", columns + 1), ("COLUMNS + 2", columns + 2)):
        text = text.replace(name, str(value))
    assert_right(text.replace("ROWS", str(rows)).replace("COLUMNS", str(columns)), schedule={"algo": "tile"})


def test_gaps_keep_neighbours_of_a_plane_apart() -> None:
    """Of 16 neighbours that lie together, with gaps behind them, no line has those of two rows of a tile."""
    text = "x = @param:x -> float{{16, 256, 512}}, {{{0}}}\ny = @param:y -> float{{16, 256, 512}}, {{131072, 1, 256}}\nr = add(x, y)\n@return(r)"
    packed, apart = (sectors_read(text.format(strides)) for strides in ("1, 16, 4096", "1, 80, 20480"))
    assert apart - packed == 16 * 256 * 512 / 2


def sectors_read(text: str) -> int:
    program = load(text, target="sm_90")
    (module,) = program.lower("simplify").modules
    return int(space_record(with_space(module, program.library), program.library)["sectors"])
