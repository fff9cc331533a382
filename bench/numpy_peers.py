"""The suites in numpy: what a user would write. One function a case of the suite `gpu`; and `OPERATORS`, of which
counterparts of other programs are made, instruction by instruction. Halves are computed with in float, as numpy is many
times as slow in halves."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]


def _relu_fma(a: Array, b: Array, c: Array) -> Array:
    return np.maximum(a * b + c, 0)


def _row_sum(x: Array) -> Array:
    return x.sum(1, keepdims=True)


def _softmax(x: Array) -> Array:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def _layernorm(x: Array, scale: Array, shift: Array) -> Array:
    d = x - x.mean(1, keepdims=True)
    return d / np.sqrt((d * d).mean(1, keepdims=True) + 1e-5) * scale + shift


def _rmsnorm(x: Array, scale: Array) -> Array:
    return x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-6) * scale


def _gelu_add(x: Array, bias: Array) -> Array:
    # numpy has no erf; its tanh is the usual stand-in.
    t = x + bias
    return 0.5 * t * (1 + np.tanh(0.7978845608 * (t + 0.044715 * t * t * t)))


def _in_float(function: Any) -> Any:
    """The function of halves, computed in float."""

    def run(*arrays: Array) -> Array:
        result: Array = function(*(a.astype(np.float32) for a in arrays)).astype(np.float16)
        return result

    return run


# ---- the suite `gpu`

pw_relu_fma_f32_64M = _relu_fma
pw_relu_fma_f16_64M = _in_float(_relu_fma)
sum_last_f32_8192x8192 = sum_last_f32_1048576x64 = sum_last_f32_4194304x16 = sum_mid_f32_64x4096x256 = _row_sum
softmax_f32_8192x4096 = softmax_f32_1024x131072 = _softmax
softmax_f16_65536x1024 = softmax_f16_1048576x128 = softmax_f16_4096x50257 = _in_float(_softmax)
layernorm_f32_32768x1024 = layernorm_f32_1024x131072 = _layernorm
layernorm_f16_8192x4096 = small_layernorm_f16_32x768 = _in_float(_layernorm)
rmsnorm_f16_8192x4096 = _in_float(_rmsnorm)
pw_gelu_add_f16_8192x4096 = _in_float(_gelu_add)


def add_layernorm_f16_8192x4096(a: Array, b: Array, scale: Array, shift: Array) -> Array:
    result: Array = _in_float(lambda x, y, s, t: _layernorm(x + y, s, t))(a, b, scale, shift)
    return result


def sum_all_f32_64M(x: Array) -> Array:
    return x.sum(0, keepdims=True)


def max_last_f16_8192x8192(x: Array) -> Array:
    return x.astype(np.float32).max(1, keepdims=True).astype(np.float16)


def sum_first_f16_8192x50257_to_f32(x: Array) -> Array:
    return x.astype(np.float32).sum(0, keepdims=True)


def sum_first_f32_8192x8192(x: Array) -> Array:
    return x.sum(0, keepdims=True)


def mul_sum_f32_8192x8192(a: Array, b: Array) -> Array:
    return (a * b).sum(1, keepdims=True)


def pad_add_f32_8190x8190(x: Array, b: Array) -> Array:
    return np.pad(x, 1) + b


def reverse_add_f32_8192x8192(x: Array, b: Array) -> Array:
    return x[::-1, ::-1] + b


def gather_add_f32_65536x1024(x: Array, i: Array, b: Array) -> Array:
    return x[i] + b


def concat_add_f32_8192x8192(a: Array, c: Array, b: Array) -> Array:
    return np.concatenate((a, c), 1) + b


def transpose_add_f32_8192x8192(x: Array, b: Array) -> Array:
    return x.T + b


def transpose_add_f16_8191x4099(x: Array, b: Array) -> Array:
    return (x.T.astype(np.float32) + b.astype(np.float32)).astype(np.float16)


def small_add_relu_f32_1x256(a: Array, b: Array) -> Array:
    return np.maximum(a + b, 0)


def log_softmax_f32_16384x1000(x: Array) -> Array:
    d = x - x.max(1, keepdims=True)
    return d - np.log(np.exp(d).sum(1, keepdims=True))


def variance_f32_4097x8191(x: Array) -> Array:
    return x.var(1, keepdims=True)


def argmax_f16_32768x2048(x: Array) -> Array:
    return x.astype(np.float32).argmax(1, keepdims=True)


# ---- operators, for programs without a function of their own

_NARROW = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
_TYPES = {"half": np.float32, "bf16": np.float32, "float": np.float32, "double": np.float64, "bool": np.bool_}
"""What is computed of halves stays in float until it is a result."""


def _wide(value: Any) -> Any:
    """Halves in float; other arrays and numbers as they are."""
    return value.astype(np.float32) if isinstance(value, np.ndarray) and value.dtype in _NARROW else value


def _on_wide(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of arrays in types that numpy computes with quickly."""
    return lambda *values, **attributes: function(*map(_wide, values), **attributes)


def _erf(x: Array) -> Array:
    """The error function by Abramowitz and Stegun 7.1.26, which numpy has none of: within 1.5e-7."""
    a = np.abs(x)
    t = 1 / (1 + np.float32(0.3275911) * a)
    scale = np.float32(1.061405429) * t + np.float32(-1.453152027)
    for factor in (1.421413741, -0.284496736, 0.254829592):
        scale = scale * t + np.float32(factor)
    return np.copysign(1 - scale * t * np.exp(-a * a), x)


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _div(x: Any, y: Any) -> Any:
    made = np.asarray(x) / np.asarray(y)
    return made if np.result_type(x, y).kind == "f" else np.trunc(made).astype(np.result_type(x, y))


def _convert(x: Array, target_type: str) -> Array:
    wanted = np.dtype(_TYPES.get(target_type, target_type))
    if wanted.kind in "iu" and x.dtype.kind == "f":
        bounds = np.iinfo(wanted)
        x = np.clip(x, bounds.min, bounds.max)
    return x.astype(wanted)


def _keeping(function: Callable[..., Any]) -> Callable[..., Any]:
    """A reduction whose axes stay, with length 1."""
    return lambda x, axes: function(x, axis=tuple(axes), keepdims=True)


def _sum(x: Array, axes: Sequence[int]) -> Array:
    return x.sum(axis=tuple(axes), keepdims=True, dtype=x.dtype)


def _softmax_along(x: Array, axis: int) -> Array:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def _log_sum_exp(x: Array, axes: Sequence[int]) -> Array:
    most = x.max(tuple(axes), keepdims=True)
    return most + np.log(np.exp(x - most).sum(tuple(axes), keepdims=True))


def _layer_norm_along(x: Array, axes: Sequence[int], epsilon: float) -> Array:
    d = x - x.mean(tuple(axes), keepdims=True)
    return d / np.sqrt((d * d).mean(tuple(axes), keepdims=True) + np.float32(epsilon))


def _rms_norm(x: Array, axes: Sequence[int], epsilon: float) -> Array:
    return x / np.sqrt((x * x).mean(tuple(axes), keepdims=True) + np.float32(epsilon))


def _group_norm(x: Array, groups: int, epsilon: float) -> Array:
    return _layer_norm_along(x.reshape(x.shape[0], groups, -1), (2,), epsilon).reshape(x.shape)


def _slice(x: Array, axes: Sequence[int], starts: Sequence[int], ends: Sequence[int], steps: Sequence[int]) -> Array:
    parts = [slice(None)] * x.ndim
    for axis, *part in zip(axes, starts, ends, steps, strict=True):
        parts[axis] = slice(*part)
    return x[tuple(parts)]


def _pad(x: Array, pads: Sequence[int], mode: str, value: float) -> Array:
    rank = x.ndim
    widths = [(pads[d], pads[d + rank]) for d in range(rank)]
    return np.pad(x, widths, constant_values=value) if mode == "constant" else np.pad(x, widths, mode=mode)  # type: ignore[call-overload]


def _depth_to_space(x: Array, blocksize: int, mode: str) -> Array:
    n, c, h, w = x.shape
    lens = (blocksize, blocksize, -1) if mode == "DCR" else (-1, blocksize, blocksize)
    order = (0, 3, 4, 1, 5, 2) if mode == "DCR" else (0, 1, 4, 2, 5, 3)
    blocks = x.reshape(n, *lens, h, w).transpose(order)
    return blocks.reshape(n, c // blocksize**2, h * blocksize, w * blocksize)


def _iota(lens: Sequence[int], axis: int) -> Array:
    shape = [1] * len(lens)
    shape[axis] = lens[axis]
    return np.broadcast_to(np.arange(lens[axis]).reshape(shape), lens)


_POINTWISE: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": _div,
    "max": np.maximum,
    "min": np.minimum,
    "neg": lambda x: -x,
    "abs": np.abs,
    "recip": lambda x: 1 / x,
    "fma": lambda x, y, z: x * y + z,
    "clip": np.clip,
    "relu": lambda x: np.maximum(x, 0),
    "convert": _convert,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "exp": np.exp,
    "log": np.log,
    "pow": np.power,
    "tanh": np.tanh,
    "erf": _erf,
    "sigmoid": _sigmoid,
    "sin": np.sin,
    "cos": np.cos,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "gelu_erf": lambda x: np.float32(0.5) * x * (1 + _erf(x * np.float32(0.70710678))),
    "gelu_tanh": lambda x: np.float32(0.5) * x * (1 + np.tanh(np.float32(0.7978845608) * (x + 0.044715 * x * x * x))),
    "swish": lambda x, alpha: x * _sigmoid(x * alpha),
    "hard_swish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "shift_right": np.right_shift,
    "shift_left": np.left_shift,
    "equal": np.equal,
    "less": np.less,
    "greater": np.greater,
    "less_equal": np.less_equal,
    "greater_equal": np.greater_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_not": np.logical_not,
    "where": np.where,
    "reduce_sum": _sum,
    "reduce_prod": lambda x, axes: x.prod(axis=tuple(axes), keepdims=True, dtype=x.dtype),
    "reduce_max": _keeping(np.max),
    "reduce_min": _keeping(np.min),
    "reduce_mean": _keeping(np.mean),
    "argmax": lambda x, axis: x.argmax(axis, keepdims=True),
    "argmin": lambda x, axis: x.argmin(axis, keepdims=True),
    "softmax": _softmax_along,
    "logsoftmax": lambda x, axis: x - _log_sum_exp(x, (axis,)),
    "layernorm": _layer_norm_along,
    "rmsnorm": _rms_norm,
    "group_norm": _group_norm,
    "instance_norm": lambda x, epsilon: _layer_norm_along(x, range(2, x.ndim), epsilon),
    "reduce_log_sum_exp": _log_sum_exp,
}

_MOVES: dict[str, Callable[..., Any]] = {
    "transpose": lambda x, permutation: x.transpose(permutation),
    "multibroadcast": lambda x, out_lens: np.broadcast_to(x, out_lens),
    "reverse": lambda x, axes: np.flip(x, tuple(axes)),
    "reshape": lambda x, dims: x.reshape(dims),
    "unsqueeze": lambda x, axes: np.expand_dims(x, tuple(axes)),
    "squeeze": lambda x, axes: np.squeeze(x, tuple(axes)),
    "flatten": lambda x, axis: x.reshape(prod(x.shape[:axis]), -1),
    "slice": _slice,
    "pad": _pad,
    "gather": lambda x, indices, axis: np.take(x, indices, axis),
    "gather_elements": lambda x, indices, axis: np.take_along_axis(x, indices, axis),
    "concat": lambda *xs, axis: np.concatenate(xs, axis),
    "depth_to_space": _depth_to_space,
    "iota": _iota,
}

OPERATORS = {name: _on_wide(function) for name, function in _POINTWISE.items()} | _MOVES
