"""Networks as PyTorch has them, with random weights, and their export as ONNX models.

Takes PyTorch, torchvision, transformers, onnx and onnxscript.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers as text

try:
    import torchvision.models as vision
except RuntimeError:  # it was built for another PyTorch, and its operators are missing; no network here calls them
    operators = torch.library.Library("torchvision", "DEF")
    for operator in ("nms", "qnms"):
        operators.define(f"{operator}(Tensor boxes, Tensor scores, float threshold) -> Tensor")
    import torchvision.models as vision

Made = tuple[torch.nn.Module, tuple[torch.Tensor, ...]]
"""A network and its inputs."""


def made(name: str, batch: int = 1, length: int = 64) -> Made:
    """A network for inference, and inputs for so many images, or texts of so many words; the same for the same arguments."""
    torch.manual_seed(0)
    network, inputs = NETWORKS[name](batch, length)
    network.eval()
    for part in network.modules():
        if isinstance(part, torch.nn.modules.batchnorm._BatchNorm):
            part.running_mean.normal_(0, 0.1)
            part.running_var.uniform_(0.5, 1.5)
    with torch.no_grad():
        for weight in network.parameters():
            if weight.dim() == 1 or not weight.any():  # they begin as ones and zeros, and would be one constant
                weight.add_(torch.randn_like(weight), alpha=0.02)
    return network, inputs


def export(network: torch.nn.Module, inputs: tuple[torch.Tensor, ...], path: Path) -> None:
    """Write a network as an ONNX model, its weights beside it."""
    with torch.no_grad():
        torch.onnx.export(network, inputs, str(path), dynamo=True, verbose=False, external_data=True)


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

    def __init__(self, c: int) -> None:
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


def _of_image(make: Callable[..., torch.nn.Module], side: int = 224, **settings: Any) -> Callable[[int, int], Made]:
    return lambda batch, _: (make(**settings), (torch.randn(batch, 3, side, side),))


def _of_words(make: Callable[[], torch.nn.Module], result: str) -> Callable[[int, int], Made]:
    return lambda batch, length: (_One(make(), result), (torch.randint(0, 1000, (batch, length)),))


def _of_sound(make: Callable[[], torch.nn.Module], result: str) -> Callable[[int, int], Made]:
    return lambda batch, _: (_One(make(), result), (torch.randn(batch, 80, 3000),))


def _of_noise(channels: int, side: int) -> Callable[[int, int], Made]:
    return lambda batch, _: (
        _Block(channels),
        (torch.randn(batch, channels, side, side), torch.randn(batch, 128)),
    )


_EAGER: dict[str, Any] = {"attn_implementation": "eager"}
_NO_CACHE: dict[str, Any] = {**_EAGER, "use_cache": False}
_LLAMA: dict[str, Any] = {
    **{"hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 4},
    **{"num_attention_heads": 16, "num_key_value_heads": 4, "vocab_size": 8000},
}

NETWORKS: dict[str, Callable[[int, int], Made]] = {
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
    "whisper": _of_sound(lambda: text.WhisperModel(text.WhisperConfig(**_EAGER)).encoder, "last_hidden_state"),
    "unet_block": _of_noise(64, 32),
}
