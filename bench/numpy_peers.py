"""The suite `gpu` in numpy, one function a case: what a user would write. Halves are computed with in float, as numpy
is many times as slow in halves."""

from typing import Any

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
