"""The suite `gpu` in PyTorch, one function a case: what a user would write."""

import torch
import torch.nn.functional as F


def _relu_fma(a, b, c):
    return torch.relu(a * b + c)


def _softmax(x):
    return torch.softmax(x, 1)


def _row_sum(x):
    return x.sum(1, keepdim=True)


def _layernorm(x, scale, shift):
    return F.layer_norm(x, x.shape[1:], scale, shift, 1e-5)


pw_relu_fma_f32_64M = pw_relu_fma_f16_64M = _relu_fma
sum_last_f32_8192x8192 = sum_last_f32_1048576x64 = sum_last_f32_4194304x16 = sum_mid_f32_64x4096x256 = _row_sum
softmax_f32_8192x4096 = softmax_f32_1024x131072 = softmax_f16_65536x1024 = softmax_f16_1048576x128 = (
    softmax_f16_4096x50257
) = _softmax
layernorm_f16_8192x4096 = layernorm_f32_32768x1024 = layernorm_f32_1024x131072 = small_layernorm_f16_32x768 = _layernorm


def pw_gelu_add_f16_8192x4096(x, bias):
    return F.gelu(x + bias)


def sum_all_f32_64M(x):
    return x.sum()


def max_last_f16_8192x8192(x):
    return x.amax(1, keepdim=True)


def sum_first_f16_8192x50257_to_f32(x):
    return x.sum(0, dtype=torch.float32)


def sum_first_f32_8192x8192(x):
    return x.sum(0)


def mul_sum_f32_8192x8192(a, b):
    return (a * b).sum(1)


def rmsnorm_f16_8192x4096(x, scale):
    return F.rms_norm(x, x.shape[1:], scale, 1e-6)


def add_layernorm_f16_8192x4096(a, b, scale, shift):
    return _layernorm(a + b, scale, shift)


def pad_add_f32_8190x8190(x, b):
    return F.pad(x, (1, 1, 1, 1)) + b


def reverse_add_f32_8192x8192(x, b):
    return x.flip((0, 1)) + b


def gather_add_f32_65536x1024(x, i, b):
    return x[i] + b


def concat_add_f32_8192x8192(a, c, b):
    return torch.cat((a, c), 1) + b


def transpose_add_f32_8192x8192(x, b):
    return x.t() + b


transpose_add_f16_8191x4099 = transpose_add_f32_8192x8192


def small_add_relu_f32_1x256(a, b):
    return torch.relu(a + b)


def log_softmax_f32_16384x1000(x):
    return torch.log_softmax(x, 1)


def variance_f32_4097x8191(x):
    return x.var(1, correction=0)


def argmax_f16_32768x2048(x):
    return x.argmax(1)
