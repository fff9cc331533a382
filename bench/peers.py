"""The suites in PyTorch: what a user would write. One function a case of the suite `gpu`, one a kernel of the suite
`models`, which takes by keyword what its program leaves open; and `OPERATORS`, of which counterparts of other programs are
made, instruction by instruction.
"""

from functools import partial, reduce

import torch
import torch.nn.functional as F

_TYPES = {
    "half": torch.half,
    "bf16": torch.bfloat16,
    "float": torch.float,
    "double": torch.double,
    "int8": torch.int8,
    "uint8": torch.uint8,
    "int16": torch.int16,
    "int32": torch.int32,
    "int64": torch.int64,
    "bool": torch.bool,
}

# ---- the suite `gpu`


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


# ---- the suite `models`: norms


def layer_norm(x, scale, shift):
    return F.layer_norm(x, x.shape[-1:], scale, shift, 1e-5)


def add_layer_norm(x, block, scale, shift):
    s = x + block
    return s, layer_norm(s, scale, shift)


def modulated_layer_norm(x, scale, shift):
    return F.layer_norm(x, x.shape[-1:]) * (1 + scale) + shift


def layer_norm_grad(dy, x, mean, deviation, scale):
    n = (x.float() - mean) * deviation
    t = dy.float() * scale.float()
    a, b = t.mean(1, keepdim=True), (t * n).mean(1, keepdim=True)
    return ((t - a - n * b) * deviation).to(x.dtype)


def layer_norm_weight_grads(dy, x, mean, deviation):
    g = dy.float()
    return (g * (x.float() - mean) * deviation).sum(0, keepdim=True), g.sum(0, keepdim=True)


def rms_norm(x, scale):
    return F.rms_norm(x, x.shape[-1:], scale, 1e-5)


def add_rms_norm(x, block, scale):
    s = x + block
    return s, rms_norm(s, scale)


def head_rms_norm(x, scale):
    return rms_norm(x, scale).transpose(1, 2).contiguous()


def group_norm_silu(x, scale, shift, *, groups):
    return F.silu(F.group_norm(x, groups, scale.flatten(), shift.flatten(), 1e-5))


def instance_norm_relu(x):
    return torch.relu(F.instance_norm(x))


def batch_norm_relu(x, mean, variance, scale, shift):
    weights = mean.flatten(), variance.flatten().abs(), scale.flatten(), shift.flatten()
    return torch.relu(F.batch_norm(x, *weights, False, 0.1, 0.1))


def batch_norm_add_relu(x, block, scale, shift):
    return torch.relu(x * scale + shift + block)


def batch_norm_hard_swish(x, scale, shift):
    return F.hardswish(x * scale + shift)


def _statistics(x, axes):
    variance, mean = torch.var_mean(x.float(), axes, correction=0, keepdim=True)
    return mean, variance


batch_norm_statistics = partial(_statistics, axes=(0, 2, 3))
batch_norm_statistics_nhwc = partial(_statistics, axes=(0, 1, 2))


def batch_norm_grads(dy, x, mean, deviation):
    g = dy.float()
    p = g * (x.float() - mean) * deviation
    return p.sum((0, 2, 3), keepdim=True), g.sum((0, 2, 3), keepdim=True)


def nhwc_layer_norm(x, scale, shift):
    return layer_norm(x.permute(0, 2, 3, 1).contiguous(), scale, shift)


def l2_normalise(x):
    f = x.float()
    return (f * torch.rsqrt((f * f).sum(1, keepdim=True) + 1e-6)).to(x.dtype)


# ---- softmaxes and losses


def softmax(x):
    return torch.softmax(x, 1)


def masked_softmax(x, mask):
    return torch.softmax(x * 0.125 + mask, 3)


def choice_softmax(x, mask):
    return torch.softmax(torch.where(mask, x * 0.125, -10000.0), 3)


def causal_softmax(x, *, queries, keys):
    mask = torch.ones(queries, keys, dtype=torch.bool, device=x.device).tril()
    return torch.softmax(torch.where(mask, x * 0.125, -torch.inf), 2)


def biased_softmax(x, bias):
    return torch.softmax(x + bias, 3)


def capped_softmax(x):
    return torch.softmax(torch.tanh(x.float() * 0.02) * 50.0, 1).to(x.dtype)


def softmax_grad(dy, p):
    g, f = dy.float(), p.float()
    return ((g - (g * f).sum(1, keepdim=True)) * f).to(p.dtype)


def log_softmax(x):
    return torch.log_softmax(x, 1)


def cross_entropy(x, label):
    return F.cross_entropy(x.float(), label.flatten() % x.shape[1], reduction="none").unsqueeze(1)


def cross_entropy_grad(x, label):
    places = torch.arange(x.shape[1], device=x.device)
    return (torch.softmax(x.float(), 1) - (places == label).float()).to(x.dtype)


def log_sum_exp(x):
    return torch.logsumexp(x.float(), 1, keepdim=True)


def route(x):
    p = torch.softmax(x.float(), 1)
    return p, p.amax(1, keepdim=True), x.argmax(1, keepdim=True)


def greedy_token(x):
    return x.argmax(1, keepdim=True)


def binary_cross_entropy(x, label):
    return F.binary_cross_entropy_with_logits(x, label).reshape(1, 1)


def squared_loss(a, b):
    return F.mse_loss(a.float(), b.float()).reshape(1, 1)


def huber_loss(a, b):
    return F.smooth_l1_loss(a, b, reduction="none").sum(1, keepdim=True)


def distillation_loss(student, teacher):
    q, p = torch.log_softmax(student.float(), 1), torch.log_softmax(teacher.float(), 1)
    return (p.exp() * (p - q)).sum(1, keepdim=True)


# ---- embeddings and rotations


def embedding(table, token):
    return table[token]


def embedding_add_position(table, token, position):
    return embedding(table, token) + position


def embedding_layer_norm(words, segments, word, segment, position, scale, shift):
    return layer_norm(embedding(words, word) + embedding(segments, segment) + position, scale, shift)


def embedding_bag(table, token):
    return F.embedding_bag(token % table.shape[0], table, mode="sum").unsqueeze(1)


def class_token(patches, token, position):
    return torch.cat((token.expand(patches.shape[0], -1, -1), patches), 1) + position


def class_token_nchw(patches, token, position):
    return class_token(patches.flatten(2).transpose(1, 2), token, position)


def rotary(x, cosine, sine):
    a, b = x.chunk(2, -1)
    return x * cosine + torch.cat((-b, a), -1) * sine


def rotary_split(x, cosine, sine):
    return rotary(x.transpose(1, 2), cosine, sine).contiguous()


def rotary_pairs(x, cosine, sine):
    a, b = x.unflatten(-1, (-1, 2)).split(1, -1)
    return torch.cat((a * cosine - b * sine, b * cosine + a * sine), -1).flatten(-2)


# ---- activations


def swiglu(gate, up):
    return F.silu(gate) * up


def swiglu_packed(x):
    return swiglu(*x.chunk(2, 1))


def geglu_packed(x, bias):
    a, g = (x + bias).chunk(2, 1)
    return a * F.gelu(g)


def swiglu_grads(dy, gate, up):
    d, g, u = dy.float(), gate.float(), up.float()
    s = torch.sigmoid(g)
    return (s * (1 + g * (1 - s)) * u * d).to(dy.dtype), (d * g * s).to(dy.dtype)


def bias_gelu(x, bias):
    return F.gelu(x + bias)


bias_gelu_channels = bias_gelu


def bias_gelu_tanh(x, bias):
    return F.gelu(x + bias, approximate="tanh")


def gelu_grad(dy, x):
    return torch.ops.aten.gelu_backward(dy, x)


def bias_relu(x, bias):
    return torch.relu(x + bias)


def bias_silu_channels(x, bias):
    return F.silu(x + bias)


def bias_residual(x, bias, block):
    return x + bias + block


def time_bias(x, time):
    return x + time[:, :, None, None]


def channel_gate(x, gate):
    return x * torch.sigmoid(gate)


def layer_scale_residual(x, scale, block):
    return (x * scale).permute(0, 3, 1, 2) + block


def dropout_residual(x, keep, block):
    return torch.where(keep, x * 1.125, 0.0) + block


# ---- integers of 8 bits


def quantise_rows(x):
    f = x.float()
    m = f.abs().amax(1, keepdim=True)
    return torch.round(f / m * 127.0).to(torch.int8), m / 127.0


def quantise(x):
    return torch.round(x.float() * 32.0).clamp(-128.0, 127.0).to(torch.int8)


def fake_quantise(x, scale):
    s = scale.float().abs()
    return (torch.round(x.float() / s).clamp(-128.0, 127.0) * s).to(x.dtype)


def dequantise_channels(x, scale):
    return x.to(scale.dtype) * scale


def dequantise_groups(x, scale, zero, *, group):
    return ((x.unflatten(1, (-1, group)).to(scale.dtype) - zero) * scale).flatten(1)


def unpack_nibbles(x, scale):
    j = torch.stack((x & 15, x >> 4), 2)
    return ((j.to(scale.dtype) - 8.0) * scale).flatten(1)


def requantise_relu(x, bias, scale):
    return torch.round((x + bias).float() * scale).clamp(0.0, 127.0).to(torch.int8)


def add_quantised(a, b):
    return torch.round(a.float() * 0.7578125 + b.float() * 0.296875).clamp(-128.0, 127.0).to(torch.int8)


# ---- layouts


def normalise_image(x, mean, scale, *, type):
    made = ((x.float() - mean) * scale).permute(0, 3, 1, 2)
    return made.to(_TYPES[type]).contiguous()


def nchw_to_nhwc(x):
    return x.permute(0, 2, 3, 1).contiguous()


def nhwc_to_nchw_relu(x):
    return torch.relu(x.permute(0, 3, 1, 2)).contiguous()


def transpose(x):
    return x.t().contiguous()


def split_heads(x, bias, *, heads, size):
    return (x + bias).unflatten(2, (3, heads, size)).permute(2, 0, 3, 1, 4).contiguous()


def transposed_keys(x):
    return x.permute(0, 2, 3, 1).contiguous()


def merge_heads(x):
    return x.transpose(1, 2).contiguous().flatten(2)


def repeat_heads(x, *, group):
    return x.repeat_interleave(group, 1)


def append_cache(cache, new):
    return torch.cat((cache, new), 2)


def window_partition(x, *, window, c):
    n, side = x.shape[0], x.shape[1] // window
    windows = x.view(n, side, window, side, window, c).transpose(2, 3).contiguous()
    return windows.view(n * side * side, window * window, c)


def roll(x, *, shift):
    return torch.roll(x, (-shift, -shift), (1, 2))


def merge_patches_layer_norm(x, scale, shift):
    n, side, c = x.shape[0], x.shape[1] // 2, x.shape[3]
    merged = x.view(n, side, 2, side, 2, c).permute(0, 1, 3, 4, 2, 5).reshape(n, side, side, 4 * c)
    return layer_norm(merged, scale, shift)


def patchify(x, *, patch):
    n, c, side = x.shape[0], x.shape[1], x.shape[2] // patch
    patches = x.view(n, c, side, patch, side, patch).permute(0, 2, 4, 3, 5, 1).contiguous()
    return patches.view(n, side * side, patch * patch * c)


def pixel_shuffle(x):
    return F.pixel_shuffle(x, 2)


def upsample(x):
    return F.interpolate(x, scale_factor=2, mode="nearest")


def concat_channels(a, b):
    return torch.cat((a, b), 1)


def pad_image(x, *, border):
    return F.pad(x, (border,) * 4)


def causal_mask(keep, *, type, tokens):
    dtype = _TYPES[type]
    causal = torch.ones(tokens, tokens, dtype=torch.bool, device=keep.device).tril()
    made = torch.zeros(keep.shape[0], tokens, tokens, dtype=dtype, device=keep.device)
    return made.masked_fill(~(causal & keep), -10000.0)


# ---- pools, sums, steps


def global_average_pool(x):
    return x.mean((2, 3), keepdim=True)


def global_average_pool_nhwc(x):
    return x.mean((1, 2), keepdim=True)


def max_pool(x, *, window):
    return F.max_pool2d(x, window)


def average_pool(x, *, window):
    return F.avg_pool2d(x, window)


def masked_mean_pool(x, mask):
    k = mask.float()
    return ((x.float() * k).sum(1, keepdim=True) / k.sum(1, keepdim=True).clamp(min=1.0)).to(x.dtype)


def bias_grad(dy):
    return dy.sum(0, keepdim=True)


def bias_grad_channels(dy):
    return dy.sum((0, 2, 3), keepdim=True)


def relu_bias_grad(dy, y):
    dx = torch.where(y > 0, dy, 0.0)
    return dx, dx.sum(0, keepdim=True, dtype=torch.float)


def adam(weight, grad, first, second):
    g = grad.float()
    m, v = first * 0.9 + g * 0.1, second.abs() * 0.999 + g * g * 0.001
    return weight - m / (v.sqrt() + 1e-3) * 0.001, m, v


def momentum(weight, grad, buffer):
    m = buffer * 0.9 + grad.float()
    return weight - m * 0.1, m


def square_norm(x):
    return x.float().square().sum(0, keepdim=True)


def cast(x, *, to):
    return x.to(_TYPES[to])


def guided_step(x, both):
    u, t = both.chunk(2, 0)
    return x - (u + (t - u) * 7.5) * 0.05


def log_mel(x):
    t = x.abs().clamp(min=1e-10).log10()
    return (torch.maximum(t, t.amax((1, 2), keepdim=True) - 8.0) + 4.0) * 0.25


def dense_features(x, *, type):
    dtype = _TYPES[type]
    return (x.abs().float() + 1.0).log().to(dtype)


def join_features(dense, sparse):
    return torch.cat((dense, sparse.transpose(0, 1)), 1)


# ---- operators, for programs without a function of their own


def _tensors(*values):
    """Operands of which numbers became tensors of the others' type, for functions that take no numbers."""
    like = next(v for v in values if isinstance(v, torch.Tensor))
    return [
        v if isinstance(v, torch.Tensor) else torch.full((), v, dtype=like.dtype, device=like.device) for v in values
    ]


def _max(x, y):
    return torch.maximum(*_tensors(x, y))


def _min(x, y):
    return torch.minimum(*_tensors(x, y))


def _div(x, y):
    x, y = _tensors(x, y)
    return x / y if x.is_floating_point() else torch.div(x, y, rounding_mode="trunc")


def _convert(x, target_type):
    return x.to(_TYPES[target_type])


def _sum(x, axes):
    return x.sum(axes, keepdim=True, dtype=x.dtype)


def _prod(x, axes):
    return reduce(lambda made, axis: made.prod(axis, keepdim=True, dtype=x.dtype), axes, x)


def _log_sum_exp(x, axes):
    return torch.logsumexp(x, axes, keepdim=True)


def _layer_norm(x, axes, epsilon):
    if tuple(axes) == (x.ndim - 1,):
        return F.layer_norm(x, x.shape[-1:], eps=epsilon)
    variance, mean = torch.var_mean(x, axes, correction=0, keepdim=True)
    return (x - mean) * torch.rsqrt(variance + epsilon)


def _slice(x, axes, starts, ends, steps):
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        x = x[(slice(None),) * axis + (slice(start, end, step),)]
    return x


def _pad(x, pads, mode, value):
    rank = x.ndim
    return F.pad(x, [n for d in range(rank)[::-1] for n in (pads[d], pads[d + rank])], mode, value)


def _gather(x, indices, axis):
    wrapped = indices % x.shape[axis]
    made = torch.index_select(x, axis, wrapped.flatten())
    return made.unflatten(axis, wrapped.shape) if wrapped.ndim != 1 else made


def _flatten(x, axis):
    rows = 1
    for n in x.shape[:axis]:
        rows *= n
    return x.reshape(rows, -1)


def _depth_to_space(x, blocksize, mode):
    n, c, h, w = x.shape
    lens = (blocksize, blocksize, -1) if mode == "DCR" else (-1, blocksize, blocksize)
    order = (0, 3, 4, 1, 5, 2) if mode == "DCR" else (0, 1, 4, 2, 5, 3)
    blocks = x.reshape(n, *lens, h, w).permute(order)
    return blocks.reshape(n, c // blocksize**2, h * blocksize, w * blocksize)


OPERATORS = {
    "add": torch.add,
    "sub": lambda x, y: x - y,
    "mul": torch.mul,
    "div": _div,
    "max": _max,
    "min": _min,
    "neg": torch.neg,
    "abs": torch.abs,
    "recip": torch.reciprocal,
    "fma": lambda x, y, z: x * y + z,
    "clip": lambda x, low, high: x.clamp(low, high),
    "relu": torch.relu,
    "convert": _convert,
    "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt,
    "exp": torch.exp,
    "log": torch.log,
    "pow": torch.pow,
    "tanh": torch.tanh,
    "erf": torch.erf,
    "sigmoid": torch.sigmoid,
    "sin": torch.sin,
    "cos": torch.cos,
    "floor": torch.floor,
    "ceil": torch.ceil,
    "round": torch.round,
    "gelu_erf": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "swish": lambda x, alpha: x * torch.sigmoid(x if alpha == 1 else alpha * x),
    "hard_swish": F.hardswish,
    "bitwise_and": torch.bitwise_and,
    "bitwise_or": torch.bitwise_or,
    "shift_right": lambda x, n: x >> n,
    "shift_left": lambda x, n: x << n,
    "equal": torch.eq,
    "less": torch.lt,
    "greater": torch.gt,
    "less_equal": torch.le,
    "greater_equal": torch.ge,
    "logical_and": torch.logical_and,
    "logical_or": torch.logical_or,
    "logical_not": torch.logical_not,
    "where": lambda c, x, y: torch.where(c, *_tensors(x, y)),
    "transpose": lambda x, permutation: x.permute(permutation),
    "multibroadcast": lambda x, out_lens: x.expand(out_lens),
    "reverse": lambda x, axes: x.flip(axes),
    "reshape": lambda x, dims: x.reshape(dims),
    "unsqueeze": lambda x, axes: reduce(lambda made, axis: made.unsqueeze(axis), sorted(axes), x),
    "squeeze": lambda x, axes: x.squeeze(axes),
    "flatten": _flatten,
    "slice": _slice,
    "pad": _pad,
    "gather": _gather,
    "concat": lambda *xs, axis: torch.cat(xs, axis),
    "reduce_sum": _sum,
    "reduce_prod": _prod,
    "reduce_max": lambda x, axes: x.amax(axes, keepdim=True),
    "reduce_min": lambda x, axes: x.amin(axes, keepdim=True),
    "reduce_mean": lambda x, axes: x.mean(axes, keepdim=True),
    "argmax": lambda x, axis: x.argmax(axis, keepdim=True),
    "argmin": lambda x, axis: x.argmin(axis, keepdim=True),
    "softmax": lambda x, axis: torch.softmax(x, axis),
    "logsoftmax": lambda x, axis: torch.log_softmax(x, axis),
    "layernorm": _layer_norm,
    "rmsnorm": lambda x, axes, epsilon: x * torch.rsqrt((x * x).mean(axes, keepdim=True) + epsilon),
    "reduce_log_sum_exp": _log_sum_exp,
    "group_norm": lambda x, groups, epsilon: F.group_norm(x, groups, eps=epsilon),
    "instance_norm": lambda x, epsilon: F.instance_norm(x, eps=epsilon),
    "gather_elements": lambda x, indices, axis: torch.gather(x, axis, indices % x.shape[axis]),
    "depth_to_space": _depth_to_space,
}
