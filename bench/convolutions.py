"""Convolutions on a GPU, beside cuDNN's fastest in the same process.

    python bench/convolutions.py                          forward, of halves, channels first and last
    python bench/convolutions.py --directions data,weights --layouts nchw
    python bench/convolutions.py --only resnet --processes 12
    python bench/convolutions.py --drawn 70 --seed 77 --processes 12    drawn ones, of any direction and layout

Every distinct shape of ResNet-50 and MobileNetV2, and some of ConvNeXt-T and a UNet, as [samples, in, rows and columns, out,
window, stride, groups]. Prints both times, TFLOP/s and the ratio of the times (torch / genrw: above 1 is sooner).
"""

from __future__ import annotations

import argparse
from functools import partial
from random import Random

import torch
from beside_torch import TYPES, Case, drawn, main

Shape = tuple[int, int, int, int, int, int, int]

SHAPES: dict[str, list[Shape]] = {
    "resnet": [
        *((32, 3, 224, 64, 7, 2, 1), (32, 64, 56, 64, 1, 1, 1), (32, 64, 56, 64, 3, 1, 1), (32, 64, 56, 256, 1, 1, 1)),
        *(
            (32, 256, 56, 64, 1, 1, 1),
            (32, 256, 56, 128, 1, 1, 1),
            (32, 128, 56, 128, 3, 2, 1),
            (32, 256, 56, 512, 1, 2, 1),
        ),
        *(
            (32, 128, 28, 512, 1, 1, 1),
            (32, 512, 28, 128, 1, 1, 1),
            (32, 128, 28, 128, 3, 1, 1),
            (32, 512, 28, 256, 1, 1, 1),
        ),
        *((32, 256, 28, 256, 3, 2, 1), (32, 512, 28, 1024, 1, 2, 1), (32, 256, 14, 1024, 1, 1, 1)),
        *((32, 1024, 14, 256, 1, 1, 1), (32, 256, 14, 256, 3, 1, 1), (32, 1024, 14, 512, 1, 1, 1)),
        *((32, 512, 14, 512, 3, 2, 1), (32, 1024, 14, 2048, 1, 2, 1), (32, 512, 7, 2048, 1, 1, 1)),
        *((32, 2048, 7, 512, 1, 1, 1), (32, 512, 7, 512, 3, 1, 1)),
    ],
    "mobilenet": [
        *(
            (32, 3, 224, 32, 3, 2, 1),
            (32, 32, 112, 32, 3, 1, 32),
            (32, 96, 112, 96, 3, 2, 96),
            (32, 144, 56, 144, 3, 1, 144),
        ),
        *((32, 192, 28, 192, 3, 1, 192), (32, 384, 14, 384, 3, 1, 384), (32, 960, 7, 960, 3, 1, 960)),
        *(
            (32, 32, 112, 16, 1, 1, 1),
            (32, 16, 112, 96, 1, 1, 1),
            (32, 96, 56, 24, 1, 1, 1),
            (32, 24, 56, 144, 1, 1, 1),
        ),
        *(
            (32, 144, 28, 32, 1, 1, 1),
            (32, 64, 14, 384, 1, 1, 1),
            (32, 96, 14, 576, 1, 1, 1),
            (32, 160, 7, 960, 1, 1, 1),
        ),
        *((32, 320, 7, 1280, 1, 1, 1),),
    ],
    "convnext": [
        (32, 3, 224, 96, 4, 4, 1),
        (32, 96, 56, 96, 7, 1, 96),
        (32, 384, 14, 384, 7, 1, 384),
        (32, 96, 56, 192, 2, 2, 1),
    ],
    "unet": [
        (2, 320, 64, 320, 3, 1, 1),
        (2, 640, 32, 640, 3, 1, 1),
        (2, 1280, 16, 1280, 3, 1, 1),
        (2, 4, 64, 320, 3, 1, 1),
    ],
}
DIRECTIONS = ("forward", "data", "weights")
_OPERATORS = {
    "forward": "convolution",
    "data": "convolution_backwards_data",
    "weights": "convolution_backwards_weights",
}
_LAYOUTS = {"nchw": (0, 1, 2, 3), "nhwc": (0, 2, 3, 1)}  # where the axes of channels-first tensors go
_BACK = {"nchw": (0, 1, 2, 3), "nhwc": (0, 3, 1, 2)}


def lens(shape: Shape) -> dict[str, tuple[int, ...]]:
    """The lengths of the data, the weights and the result, channels first."""
    samples, channels, side, out, window, stride, groups = shape
    places = (side + 2 * _pad(window, stride) - window) // stride + 1
    return {
        "x": (samples, channels, side, side),
        "w": (out, channels // groups, window, window),
        "g": (samples, out, places, places),
    }


def _pad(window: int, stride: int) -> int:
    return 0 if window == stride else window // 2


def program(shape: Shape, direction: str, layout: str, dtype: str) -> str:
    """The convolution as a program; with channels last, parameters and the result are transposed."""
    lengths, (*_, window, stride, groups) = lens(shape), shape
    first, second = {"forward": "xw", "data": "gw", "weights": "xg"}[direction]
    pad = _pad(window, stride)
    attributes = f"padding={{{pad}, {pad}}}, stride={{{stride}, {stride}}}, group={groups}"
    if direction == "data":
        spare = lengths["x"][2] - ((lengths["g"][2] - 1) * stride + window - 2 * pad)
        attributes += f", output_padding={{{spare}, {spare}}}"
    if direction == "weights":
        attributes += f", lengths={{{window}, {window}}}"
    lines = []
    for name in (first, second):
        given = ", ".join(str(lengths[name][axis]) for axis in _LAYOUTS[layout])
        lines.append(f"p{name} = @param:{name} -> {dtype}{{{given}}}")
        lines.append(f"v{name} = transpose[permutation={_axes(_BACK[layout])}](p{name})")
    lines.append(f"c = {_OPERATORS[direction]}[{attributes}](v{first}, v{second})")
    lines.append(f"y = transpose[permutation={_axes(_LAYOUTS[layout])}](c)")
    return "\n".join([*lines, "@return(y)", ""])


def _axes(axes: tuple[int, ...]) -> str:
    return f"{{{', '.join(map(str, axes))}}}"


def made(shape: Shape, direction: str, layout: str, dtype: str) -> tuple:
    """Tensors, cuDNN's call on them, and what is expected."""
    lengths, (*_, window, stride, groups) = lens(shape), shape
    settings = {"stride": stride, "padding": _pad(window, stride), "groups": groups}
    order = torch.channels_last if layout == "nhwc" else torch.contiguous_format
    x, w, g = (drawn(lengths[name], dtype).to(memory_format=order) for name in "xwg")

    def call(x: torch.Tensor, w: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
        if direction == "forward":
            return torch.nn.functional.conv2d(x, w, **settings)
        wanted = [direction == "data", direction == "weights", False]
        pads = [settings["padding"]] * 2
        found = torch.ops.aten.convolution_backward(
            g, x, w, None, [stride] * 2, pads, [1, 1], False, [0, 0], groups, wanted
        )
        return found[0] if direction == "data" else found[1]

    arguments = {"forward": [x, w], "data": [g, w], "weights": [x, g]}[direction]
    turned = [value.permute(_LAYOUTS[layout]).contiguous() for value in arguments]

    def peer() -> torch.Tensor:
        return call(x, w, g).permute(_LAYOUTS[layout])

    return turned, peer, call(x.float(), w.float(), g.float()).permute(_LAYOUTS[layout])


def cases(given: argparse.Namespace) -> list[Case]:
    """Each shape in each direction and layout; or convolutions that are drawn."""
    if given.drawn:
        return drawn_cases(Random(given.seed), Random(given.seed + 1), given.drawn, given.type)
    return [
        case(network, shape, direction, layout, given.type)
        for network, shapes in SHAPES.items()
        for shape in shapes
        for direction in given.directions.split(",")
        for layout in given.layouts.split(",")
    ]


def case(network: str, shape: Shape, direction: str, layout: str, dtype: str) -> Case:
    """A convolution."""
    name = f"{network} {'x'.join(map(str, shape))} {direction} {layout}"
    samples, out, places, _ = lens(shape)["g"]
    operations = 2.0 * samples * out * places**2 * shape[1] // shape[6] * shape[4] ** 2
    text = program(shape, direction, layout, dtype)
    return Case(name, text, operations, partial(made, shape, direction, layout, dtype))


def drawn_cases(shapes: Random, ways: Random, count: int, dtype: str) -> list[Case]:
    """Convolutions of the kinds that networks have, in a direction and a layout each."""
    drawn_shapes: dict[str, list[Shape]] = {}
    while sum(map(len, drawn_shapes.values())) < count:
        kind, shape = _drawn_shape(shapes)
        if shape[0] * max(shape[1], shape[3]) * shape[2] ** 2 <= 1 << 28:
            drawn_shapes.setdefault(kind, []).append(shape)
    return [
        case(kind, shape, ways.choice(DIRECTIONS), ways.choice(["nchw", "nhwc"]), dtype)
        for kind, found in drawn_shapes.items()
        for shape in found
    ]


def _drawn_shape(random: Random) -> tuple[str, Shape]:
    kind = random.choice(["plain", "plain", "plain", "point", "point", "grouped", "depthwise", "stem"])
    pick = random.choice
    n = pick([1, 2, 4, 8, 16, 32, 64])
    side = pick([7, 8, 10, 14, 16, 20, 28, 32, 40, 56, 64, 80, 112])
    if kind == "plain":
        inner = pick([16, 24, 32, 48, 64, 96, 128, 192, 256, 320, 512])
        outer = pick([16, 32, 64, 96, 128, 192, 256, 384, 512])
        return kind, (n, inner, side, outer, pick([3, 3, 3, 5]), pick([1, 1, 2]), 1)
    if kind == "point":
        inner = pick([16, 24, 40, 64, 80, 112, 240, 256, 480, 672, 1152])
        return kind, (n, inner, side, pick([24, 40, 80, 96, 112, 192, 320, 480]), 1, pick([1, 1, 1, 2]), 1)
    if kind == "grouped":
        width, groups = pick([4, 8, 16, 24, 32]), pick([4, 8, 32])
        return kind, (n, width * groups, side, width * groups, 3, pick([1, 2]), groups)
    if kind == "depthwise":
        channels = pick([32, 96, 144, 240, 480, 672])
        return kind, (n, channels, side, channels, pick([3, 5, 7]), pick([1, 2]), channels)
    return kind, (n, 3, pick([64, 128, 224, 256]), pick([16, 32, 40, 64]), pick([3, 7]), 2, 1)


if __name__ == "__main__":
    options = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument(
        "--directions", default="forward", help=f"of {', '.join(DIRECTIONS)}; several with commas between"
    )
    options.add_argument("--layouts", default="nchw,nhwc")
    options.add_argument("--type", default="half", choices=TYPES)
    options.add_argument(
        "--drawn", type=int, default=0, help="how many convolutions to draw, in place of the networks'"
    )
    options.add_argument("--seed", type=int, default=0)
    main(__doc__ or "", cases, options)
