"""Whole networks, as PyTorch exports them, on the target `host` beside onnxruntime: `python bench/whole_networks.py [name ...]`.

Weights are random. Prints for each network how long it takes to load, to lower and compile, and to run, how long
onnxruntime runs, and the largest difference of the results in parts of the largest element. Takes PyTorch, torchvision,
transformers, onnx, onnxscript and onnxruntime.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
import transformers as text
from table import parser, report, seconds

import genrw

try:
    import torchvision.models as vision
except RuntimeError:  # it was built for another PyTorch, and its operators are missing; no network here calls them
    operators = torch.library.Library("torchvision", "DEF")
    for operator in ("nms", "qnms"):
        operators.define(f"{operator}(Tensor boxes, Tensor scores, float threshold) -> Tensor")
    import torchvision.models as vision

Made = tuple[torch.nn.Module, tuple[torch.Tensor, ...]]
_TOLERANCE = 1e-4


def main() -> None:
    options = parser(__doc__ or "", times=5)
    options.add_argument("names", nargs="*", choices=[[], *NETWORKS], metavar="name", help="all if none is named")
    given = options.parse_args()
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        rows = [_measure(name, Path(folder), given.times) for name in given.names or NETWORKS]
    headings = ["network", "load s", "ready s", "genrw ms", "onnxruntime ms", "ratio", "difference"]
    report(headings, rows, given.json)
    wrong = [row[0] for row in rows if not row[-1] <= _TOLERANCE]
    if wrong:
        raise SystemExit(f"wrong: {', '.join(wrong)}")


def _measure(name: str, folder: Path, times: int) -> list[Any]:
    """A row of the table: medians of runs that take turns with onnxruntime's."""
    path, inputs = _exported(name, folder)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    named = {given.name: value for given, value in zip(session.get_inputs(), inputs, strict=True)}
    expected = session.run(None, named)
    found: list[Any] = []
    loaded = seconds(lambda: found.append(genrw.load(path)))
    ready = seconds(lambda: found.append(genrw.compile(found[0], device="host")))
    results = found[1](**named)
    results = results if isinstance(results, (list, tuple)) else [results]
    difference = max(_difference(a, b) for a, b in zip(results, expected, strict=True))
    runs = (lambda: found[1](**named), lambda: session.run(None, named))
    taken = [[1e3 * seconds(run) for run in runs] for _ in range(times)]
    ours, theirs = (statistics.median(column) for column in zip(*taken, strict=True))
    return [name, loaded, ready, ours, theirs, theirs / ours, difference]


def _difference(ours: Any, theirs: Any) -> float:
    return float(np.abs(np.asarray(ours, np.float64) - theirs).max() / max(np.abs(theirs).max(), 1e-30))


def _exported(name: str, folder: Path) -> tuple[str, list[Any]]:
    """The path of a network's model, and inputs."""
    network, inputs = NETWORKS[name]()
    network.eval()
    for part in network.modules():
        if isinstance(part, torch.nn.modules.batchnorm._BatchNorm):
            part.running_mean.normal_(0, 0.1)
            part.running_var.uniform_(0.5, 1.5)
    path = str(folder / f"{name}.onnx")
    with torch.no_grad():
        torch.onnx.export(network, inputs, path, dynamo=True, verbose=False, external_data=True)
    return path, [value.numpy() for value in inputs]


# ---- networks


class _One(torch.nn.Module):
    """A network of one result, picked from those of another."""

    def __init__(self, network: torch.nn.Module, result: str) -> None:
        super().__init__()
        self.network, self.result = network, result

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        return getattr(self.network(given), self.result)


class _Block(torch.nn.Module):
    """A block of a UNet: norms, convolutions, a time step, attention over the image, down and up."""

    def __init__(self, c: int = 64) -> None:
        super().__init__()
        n = torch.nn
        self.norms = n.ModuleList([n.GroupNorm(32, c), n.GroupNorm(32, 2 * c), n.GroupNorm(32, 2 * c)])
        self.first, self.second = n.Conv2d(c, 2 * c, 3, padding=1), n.Conv2d(2 * c, 2 * c, 3, padding=1)
        self.past, self.time = n.Conv2d(c, 2 * c, 1), n.Linear(128, 2 * c)
        self.heads, self.out = n.Conv1d(2 * c, 6 * c, 1), n.Conv1d(2 * c, 2 * c, 1)
        self.down, self.up = n.Conv2d(2 * c, 2 * c, 3, stride=2, padding=1), n.Upsample(scale_factor=2)
        self.last = n.ConvTranspose2d(4 * c, c, 4, stride=2, padding=1)

    def forward(self, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        silu = torch.nn.functional.silu
        h = self.first(silu(self.norms[0](x))) + self.time(silu(t))[:, :, None, None]
        h = self.second(silu(self.norms[1](h))) + self.past(x)
        b, c, rows, columns = h.shape
        q, k, v = self.heads(self.norms[2](h).flatten(2)).reshape(b, 3, 4, c // 4, rows * columns).unbind(1)
        weights = torch.softmax(torch.einsum("bhcq,bhck->bhqk", q, k) * (c // 4) ** -0.5, -1)
        h = h + self.out(torch.einsum("bhqk,bhck->bhcq", weights, v).reshape(b, c, -1)).reshape(h.shape)
        return self.last(torch.cat([self.up(self.down(h)), h], 1))


def _of_image(make: Callable[..., torch.nn.Module], side: int = 224, **settings: Any) -> Callable[[], Made]:
    return lambda: (make(**settings), (torch.randn(1, 3, side, side),))


def _of_words(make: Callable[[], torch.nn.Module], result: str) -> Callable[[], Made]:
    return lambda: (_One(make(), result), (torch.randint(0, 1000, (1, 64)),))


_EAGER: dict[str, Any] = {"attn_implementation": "eager"}
_NO_CACHE: dict[str, Any] = {**_EAGER, "use_cache": False}
_LLAMA: dict[str, Any] = {
    **{"hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 4},
    **{"num_attention_heads": 16, "num_key_value_heads": 4, "vocab_size": 8000},
}
_PLAIN: dict[str, Any] = {"weights": None, "weights_backbone": None}

NETWORKS: dict[str, Callable[[], Made]] = {
    "resnet18": _of_image(vision.resnet18),
    "resnet50": _of_image(vision.resnet50),
    "mobilenet_v2": _of_image(vision.mobilenet_v2),
    "mobilenet_v3": _of_image(vision.mobilenet_v3_small),
    "efficientnet_b0": _of_image(vision.efficientnet_b0),
    "densenet121": _of_image(vision.densenet121),
    "googlenet": _of_image(vision.googlenet, init_weights=False, aux_logits=False),
    "shufflenet": _of_image(vision.shufflenet_v2_x0_5),
    "squeezenet": _of_image(vision.squeezenet1_1),
    "regnet": _of_image(vision.regnet_y_400mf),
    "alexnet": _of_image(vision.alexnet),
    "convnext_tiny": _of_image(vision.convnext_tiny),
    "vit_b_16": _of_image(vision.vit_b_16),
    "swin_t": _of_image(vision.swin_t),
    "bert": _of_words(lambda: text.BertModel(text.BertConfig(**_EAGER)), "last_hidden_state"),
    "gpt2": _of_words(lambda: text.GPT2LMHeadModel(text.GPT2Config(**_NO_CACHE)), "logits"),
    "llama": _of_words(lambda: text.LlamaForCausalLM(text.LlamaConfig(**_LLAMA, **_NO_CACHE)), "logits"),
    "t5": _of_words(lambda: text.T5EncoderModel(text.T5Config()), "last_hidden_state"),
    "whisper": lambda: (
        _One(text.WhisperModel(text.WhisperConfig(**_EAGER)).encoder, "last_hidden_state"),
        (torch.randn(1, 80, 3000),),
    ),
    "unet_block": lambda: (_Block(), (torch.randn(1, 64, 32, 32), torch.randn(1, 128))),
}


if __name__ == "__main__":
    main()
