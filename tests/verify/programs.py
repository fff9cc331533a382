"""The programs that are verified: texts by name, one kernel each."""

from __future__ import annotations

from attention_programs import ATTENTION
from contraction_programs import CONTRACTIONS
from rule_programs import RULE_PROGRAMS

FLOATS = ("float", "half", "bf16", "double")
INTEGERS = ("int8", "uint8", "int32", "int64")
WIDE_INTEGERS = ("int16", "uint16", "uint32", "uint64")
NUMBERS = (*FLOATS, *INTEGERS)
TYPES = (*NUMBERS, "bool")
ALL_TYPES = (*TYPES, *WIDE_INTEGERS)


def _pointwise() -> dict[str, str]:
    return {
        "add": """
            x = @param:x -> float{16}
            y = @param:y -> float{16}
            add(x, y)
            @return(add)""",
        "mul": """
            x = @param:x -> float{7, 33}
            y = @param:y -> float{7, 33}
            r = mul(x, y)
            @return(r)""",
        "mul_add": """
            x = @param:x -> float{3, 1025}
            y = @param:y -> float{3, 1025}
            z = @param:z -> float{3, 1025}
            product = mul(x, y)
            r = add(product, z)
            @return(r)""",
        "broadcasts": """
            x = @param:x -> float{5, 1, 7}
            y = @param:y -> float{1, 6, 1}
            z = @param:z -> float{5, 6, 7}
            product = mul(x, y)
            product2 = mul(z, 0.5)
            r = add(product, product2)
            @return(r)""",
        "broadcast_bias": """
            x = @param:x -> half{4, 12, 64}
            b = @param:b -> half{12}
            b3 = broadcast[axis=1, out_lens={4, 12, 64}](b)
            total = add(x, b3)
            r = relu(total)
            @return(r)""",
        "scalar": """
            x = @param:x -> float{}
            y = @param:y -> float{}
            r = sub(x, y)
            @return(r)""",
        "table": """
            x = @param:x -> float{4, 3}
            t = @literal{1, -2.5, 3} -> float{3}
            r = mul(x, t)
            @return(r)""",
        "gelu": """
            x = @param:x -> half{96, 64}
            product = mul(x, 0.5)
            product2 = mul(x, 0.70710678)
            bell = erf(product2)
            total = add(bell, 1.0)
            r = mul(product, total)
            @return(r)""",
        "outputs": """
            x = @param:x -> float{6, 50}
            y = @param:y -> float{6, 50}
            s = add(x, y)
            p = mul(x, y)
            b = less(x, y)
            i = convert[target_type=int32](s)
            @return(s, p, b, i)""",
        "outputs_of_two_shapes": """
            x = @param:x -> float{6, 50}
            s = add(x, 1.0)
            f = reshape[dims={300}](x)
            p = mul(f, 2.0)
            @return(s, p)""",
        "same_result_twice": """
            x = @param:x -> float{33}
            s = add(x, 1.0)
            @return(s, s)""",
        "input_returned": """
            x = @param:x -> float{5, 65}
            @return(x)""",
        "strided_inputs": """
            x = @param:x -> float{5, 33}, {1, 5}
            y = @param:y -> float{5, 33}, {66, 2}
            z = @param:z -> float{5, 33}, {0, 1}
            product = mul(x, y)
            r = add(product, z)
            @return(r)""",
        "five_dimensions": """
            x = @param:x -> float{2, 3, 2, 5, 3}
            y = @param:y -> float{1, 3, 1, 5, 1}
            r = sub(x, y)
            @return(r)""",
        "columns_cut_out": """
            x = @param:x -> float{40, 64}, {1, 40}
            y = slice[axes={0}, starts={2}, ends={34}](x)
            s = reduce_sum[axes={1}](y)
            @return(s)""",
        "columns_turned_around": """
            x = @param:x -> float{40, 64}, {1, 40}
            y = reverse[axes={1}](x)
            s = reduce_sum[axes={1}](y)
            @return(s)""",
        "columns_padded": """
            x = @param:x -> float{40, 64}, {1, 40}
            y = pad[pads={1, 2, 0, 3}](x)
            s = reduce_sum[axes={1}](y)
            @return(s)""",
        "columns_gathered": """
            x = @param:x -> float{40, 64}, {1, 40}
            i = @param:i -> int64{24}
            y = gather[axis=0](x, i)
            s = reduce_sum[axes={1}](y)
            @return(s)""",
        "columns_computed_and_cut_out": """
            x = @param:x -> float{40, 64}
            t = transpose[permutation={1, 0}](x)
            c = clip(t, -1.0, 1.0)
            m = mul(c, 2.5)
            d = sub(3.0, m)
            y = slice[axes={0}, starts={3}, ends={60}](d)
            @return(y)""",
        "columns_only_padded": """
            x = @param:x -> float{40, 64}
            t = transpose[permutation={1, 0}](x)
            p = pad[pads={1, 0, 0, 3}](t)
            @return(p)""",
        "columns_twice": """
            x = @param:x -> float{40, 64}
            t = transpose[permutation={1, 0}](x)
            r = reverse[axes={0}](t)
            p = pad[pads={1, 0, 0, 3}](t)
            y = add(r, t)
            @return(y, p)""",
        "columns_scaled_and_cut_out": """
            x = @param:x -> float{40, 64}
            w = @param:w -> float{40}
            z = @param:z -> float{57, 40}
            t = transpose[permutation={1, 0}](x)
            m = mul(t, w)
            c = slice[axes={0}, starts={3}, ends={60}](m)
            y = add(c, z)
            @return(y)""",
        "columns_repeated": """
            x = @param:x -> float{40, 64}, {0, 1}
            s = reduce_sum[axes={1}](x)
            @return(s)""",
        "repeated_across": """
            x = @param:x -> float{40, 1, 64}, {1, 1, 40}
            b = @param:b -> float{40, 8, 64}, {1, 40, 320}
            y = add(x, b)
            s = reduce_sum[axes={2}](y)
            @return(s)""",
        "no_elements": """
            x = @param:x -> float{4, 0}
            r = add(x, 1.0)
            @return(r)""",
    }


_UNARY_REAL = (
    *("sqrt", "rsqrt", "recip", "exp", "log", "tanh", "erf", "sigmoid", "relu", "sin", "cos"),
    *("floor", "ceil", "round", "abs", "neg"),
)
_ACTIVATIONS = (
    *("elu", "selu", "celu", "leaky_relu", "thresholded_relu", "shrink", "hard_sigmoid", "hard_swish"),
    *("softplus", "softsign", "swish", "mish", "gelu_erf", "gelu_tanh"),
)
_BITS = ("bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right", "mod", "fmod")
_BINARY = ("add", "sub", "mul", "div", "min", "max")
_COMPARISONS = ("equal", "less", "greater", "not_equal", "less_equal", "greater_equal")


def _all_pointwise(dtype: str) -> str:
    """Every pointwise operator of a type, each a result of one kernel."""
    lines = [f"x = @param:x -> {dtype}{{3, 43}}", f"y = @param:y -> {dtype}{{3, 43}}"]
    lines += [f"p = @param:p -> {dtype}{{3, 43}}", "c = @param:c -> bool{3, 43}"]
    results = []

    def result(call: str) -> None:
        results.append(f"r{len(results)}")
        lines.append(f"{results[-1]} = {call}")

    if dtype == "bool":
        for name in ("logical_and", "logical_or"):
            result(f"{name}(x, y)")
        result("logical_not(p)")
    else:
        for name in _BINARY:
            result(f"{name}(x, {'p' if name == 'div' else 'y'})")
        for name in _COMPARISONS:
            result(f"{name}(x, y)")
        for name in _UNARY_REAL if dtype in FLOATS else ("abs", "neg", "relu"):
            result(f"{name}({'p' if name in ('sqrt', 'rsqrt', 'recip', 'log') else 'x'})")
        result("clip(x, 1, 3)")
        if dtype in FLOATS:
            result("pow(p, y)")
    result("where(c, x, y)")
    return "\n".join([*lines, f"@return({', '.join(results)})"])


def _functions(dtype: str) -> str:
    """The functions whose domains are small, each of an input of its own."""
    names = ("tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh")
    inputs = [f"x{i} = @param:x{i} -> {dtype}{{3, 43}}" for i in range(len(names))]
    calls = [f"{name} = {name}(x{i})" for i, name in enumerate(names)]
    return "\n".join([*inputs, *calls, f"@return({', '.join(names)})"])


def _activations(dtype: str) -> str:
    """The functions between layers, with attributes that are not the usual ones too."""
    calls = [f"{name} = {name}(x)" for name in _ACTIVATIONS]
    calls += [
        "e = elu[alpha=-0.5](x)",
        "l = leaky_relu[alpha=2](x)",
        "p = prelu(x, y)",
        "m = mod(x, z)",
        "f = fmod(x, z)",
    ]
    names = ", ".join([*_ACTIVATIONS, "e", "l", "p", "m", "f"])
    inputs = [f"{name} = @param:{name} -> {dtype}{{3, 43}}" for name in "xyz"]
    return "\n".join([*inputs, *calls, f"@return({names})"])


def _bits(dtype: str) -> str:
    """The operators on integers; each second operand is an input of its own, for their domains differ."""
    inputs = [f"x = @param:x -> {dtype}{{3, 43}}"]
    inputs += [f"y{i} = @param:y{i} -> {dtype}{{3, 43}}" for i in range(len(_BITS))]
    calls = [f"{name} = {name}(x, y{i})" for i, name in enumerate(_BITS)]
    calls += ["bitwise_not = bitwise_not(x)", "prelu = prelu(x, y0)"]
    return "\n".join([*inputs, *calls, f"@return({', '.join(_BITS)}, bitwise_not, prelu)"])


def _conversions(dtype: str) -> str:
    """A tensor converted to every type."""
    lines = [f"x = @param:x -> {dtype}{{129}}"]
    lines += [f"to_{t} = convert[target_type={t}](x)" for t in ALL_TYPES if t != dtype]
    names = ", ".join(f"to_{t}" for t in ALL_TYPES if t != dtype)
    return "\n".join([*lines, f"@return({names})"])


def _types() -> dict[str, str]:
    found = {f"pointwise_{t}": _all_pointwise(t) for t in ALL_TYPES}
    found |= {f"functions_{t}": _functions(t) for t in FLOATS}
    found |= {f"activations_{t}": _activations(t) for t in FLOATS}
    found |= {f"bits_{t}": _bits(t) for t in ("int8", "int64", *WIDE_INTEGERS)}
    return found | {f"convert_{t}": _conversions(t) for t in ALL_TYPES}


def _index_maps() -> dict[str, str]:
    return {
        "pad_add": """
            x = @param:x -> {8}
            pad = pad[pads={2, 2}](x) -> {12}
            y = @param:y -> {12}
            add = add(pad, y)
            @return(add)""",
        "pad_2d": """
            x = @param:x -> float{5, 7}
            y = @param:y -> float{8, 11}
            p = pad[pads={1, 0, 2, 4}, value=1.5](x)
            r = mul(p, y)
            @return(r)""",
        "pad_edge": """
            x = @param:x -> half{2, 5, 7}
            p = pad[pads={0, 2, 3, 0, 1, 4}, mode=edge](x)
            r = relu(p)
            @return(r)""",
        "pad_reflect": """
            x = @param:x -> int32{2, 5, 7}
            p = pad[pads={0, 2, 9, 0, 1, 4}, mode=reflect](x)
            r = add(p, 1)
            @return(r)""",
        "pad_negative": """
            x = @param:x -> float{9, 9}
            p = pad[pads={-2, 1, 3, -4}](x)
            @return(p)""",
        "pad_image": """
            x = @param:x -> half{1, 3, 165, 165}
            p = pad[pads={0, 0, 0, 0, 0, 0, 1, 1}](x)
            r = relu(p)
            @return(r)""",
        "pad_picture": """
            x = @param:x -> float{2, 3, 224, 224}
            p = pad[pads={0, 0, 0, 0, 0, 5, 0, 0}](x)
            @return(p)""",
        "pad_of_computed": """
            x = @param:x -> float{6, 10}
            e = exp(x)
            p = pad[pads={1, 1, 1, 1}, value=-1](e)
            r = add(p, 0.5)
            @return(r)""",
        "pad_of_pad": """
            x = @param:x -> float{5, 4}
            p = pad[pads={1, 0, 0, 2}, value=2](x)
            q = pad[pads={0, 3, 1, 0}, value=3](p)
            r = neg(q)
            @return(r)""",
        "reverse_add": """
            x = @param:x -> float{16}
            y = @param:y -> float{16}
            v = reverse[axes={0}](x)
            r = add(v, y)
            @return(r)""",
        "reverse_rows": """
            x = @param:x -> float{4, 16}
            v = reverse[axes={0}](x)
            w = reverse[axes={0, 1}](x)
            r = sub(v, w)
            @return(r)""",
        "gather_pointwise": """
            x = @param:x -> float{3, 3}
            i = @param:i -> int32{2, 2}
            g = gather[axis=0](x, i)
            r = mul(g, 2.0)
            @return(r)""",
        "gather_last_axis": """
            x = @param:x -> half{3, 3}
            i = @param:i -> int64{2, 2}
            g = gather[axis=1](x, i)
            r = add(g, 1.0)
            @return(r)""",
        "gather_one": """
            x = @param:x -> float{5, 7}
            i = @param:i -> int32{}
            g = gather[axis=0](x, i)
            r = relu(g)
            @return(r)""",
        "gather_embedding": """
            x = @param:x -> half{50, 64}
            i = @param:i -> int64{3, 11}
            y = @param:y -> half{3, 11, 64}
            g = gather[axis=0](x, i)
            r = add(g, y)
            @return(r)""",
        "gather_constant_indices": """
            x = @param:x -> float{6, 5}
            i = @literal{-1, 0, -6, 5} -> int32{4}
            g = gather[axis=0](x, i)
            r = mul(g, g)
            @return(r)""",
        "concat_pointwise": """
            x = @param:x -> float{8}
            y = @param:y -> float{9}
            z = @param:z -> float{17}
            c = concat[axis=0](x, y)
            r = add(c, z)
            @return(r)""",
        "concat_rows": """
            x = @param:x -> half{2, 5}
            y = @param:y -> half{4, 5}
            z = @param:z -> half{1, 5}
            c = concat[axis=0](x, y, z)
            r = relu(c)
            @return(r)""",
        "concat_columns": """
            x = @param:x -> float{3, 2, 5}
            y = @param:y -> float{3, 1, 5}
            z = @param:z -> float{3, 4, 5}
            positive = relu(y)
            power = exp(z)
            c = concat[axis=1](x, positive, power)
            r = add(c, 1.0)
            @return(r)""",
        "concat_of_slices": """
            x = @param:x -> float{4, 10}
            a = slice[axes={1}, starts={0}, ends={3}](x)
            b = slice[axes={1}, starts={-4}, ends={10}](x)
            c = concat[axis=1](b, a)
            r = relu(c)
            @return(r)""",
        "concat_of_transposed": """
            x = @param:x -> float{4, 6}
            y = @param:y -> float{5, 4}
            t = transpose[permutation={1, 0}](x)
            c = concat[axis=0](t, y)
            r = relu(c)
            @return(r)""",
        "slice_steps": """
            x = @param:x -> float{9, 20}
            s = slice[axes={0, 1}, starts={1, 18}, ends={9, 2}, steps={3, -5}](x)
            r = add(s, 1.0)
            @return(r)""",
        "slice_add": """
            x = @param:x -> float{16, 33}
            y = @param:y -> float{16, 16}
            s = slice[axes={1}, starts={9}, ends={25}](x)
            r = add(s, y)
            @return(r)""",
        "transpose_add": """
            x = @param:x -> float{635, 8, 88}, {1, 55880, 635}
            y = @param:y -> float{635, 8, 88}
            r = add(x, y)
            @return(r)""",
        "transpose_rows": """
            x = @param:x -> float{12, 40}
            t = transpose[permutation={1, 0}](x)
            s = reduce_sum[axes={1}](t)
            @return(s)""",
        "transpose_repeated": """
            x = @param:x -> float{1, 40}
            y = @param:y -> float{30, 40}
            t = transpose[permutation={1, 0}](x)
            b = multibroadcast[out_lens={40, 30}](t)
            u = transpose[permutation={1, 0}](y)
            p = mul(b, u)
            s = reduce_sum[axes={1}](p)
            @return(s)""",
        "transpose_tiles": """
            x = @param:x -> float{3, 64, 96}
            y = @param:y -> float{3, 96, 64}
            t = transpose[permutation={0, 2, 1}](x)
            r = mul(t, y)
            @return(r)""",
        "transpose_odd": """
            x = @param:x -> half{33, 65}
            t = transpose[permutation={1, 0}](x)
            r = add(t, 1.0)
            @return(r)""",
        "transpose_truths": """
            x = @param:x -> bool{64, 128}
            t = transpose[permutation={1, 0}](x)
            r = logical_not(t)
            @return(r)""",
        "gather_nothing": """
            x = @param:x -> float{5, 3}
            i = @param:i -> int32{0}
            g = gather[axis=0](x, i)
            r = neg(g)
            @return(r)""",
        "concat_with_nothing": """
            x = @param:x -> float{0, 4}
            y = @param:y -> float{5, 4}
            c = concat[axis=0](x, y)
            r = neg(c)
            @return(r)""",
        "transpose_four": """
            x = @param:x -> float{2, 3, 4, 5}
            t = transpose[permutation={3, 1, 0, 2}](x)
            r = neg(t)
            @return(r)""",
        "reshapes": """
            x = @param:x -> float{6, 10}
            y = @param:y -> float{5, 1, 12}
            a = reshape[dims={5, -1}](x)
            b = unsqueeze[axes={1}](a)
            c = add(b, y)
            r = squeeze[axes={1}](c)
            @return(r)""",
        "multibroadcast_row": """
            x = @param:x -> float{1, 6}
            y = @param:y -> float{5, 6}
            b = multibroadcast[out_lens={5, 6}](x)
            r = sub(y, b)
            @return(r)""",
        "chain_of_maps": """
            x = @param:x -> float{6, 8}
            t = transpose[permutation={1, 0}](x)
            p = pad[pads={0, 1, 1, 0}, value=9](t)
            v = reverse[axes={1}](p)
            s = slice[axes={0}, starts={2}, ends={9}, steps={2}](v)
            r = reshape[dims={7, 4}](s)
            y = @param:y -> float{7, 4}
            z = add(r, y)
            @return(z)""",
    }


def _reductions() -> dict[str, str]:
    return {
        "reduce_sum": """
            x = @param:x -> {256}
            reduce_sum[axes={0}](x) -> {1}
            @return(reduce_sum)""",
        "reduce_max": """
            x = @param:x -> {1000}
            reduce_max[axes={0}](x) -> {1}
            @return(reduce_max)""",
        "mul_reduce": """
            x = @param:x -> float{7, 300}
            y = @param:y -> float{7, 300}
            product = mul(x, y)
            r = reduce_sum[axes={1}](product)
            @return(r)""",
        "pad_reduce": """
            x = @param:x -> {8}
            p = pad[pads={2, 2}](x)
            r = reduce_sum[axes={0}](p)
            @return(r)""",
        "gather_reduce": """
            x = @param:x -> float{40, 9}
            i = @param:i -> int32{131}
            g = gather[axis=0](x, i)
            r = reduce_sum[axes={0}](g)
            @return(r)""",
        "concat_reduce": """
            x = @param:x -> float{5, 100}
            y = @param:y -> float{5, 31}
            c = concat[axis=1](x, y)
            r = reduce_sum[axes={1}](c)
            @return(r)""",
        "reverse_reduce": """
            x = @param:x -> float{3, 67}
            v = reverse[axes={1}](x)
            r = reduce_sum[axes={1}](v)
            @return(r)""",
        "reverse_argmax": """
            x = @param:x -> int8{3, 67}
            v = reverse[axes={1}](x)
            r = argmax[axis=1](v)
            @return(r)""",
        "pad_mul_reduce": """
            x = @param:x -> half{6, 1000}
            y = @param:y -> half{6, 1025}
            p = pad[pads={0, 12, 0, 13}, value=0.5](x)
            m = mul(p, y)
            r = reduce_sum[axes={1}](m)
            @return(r)""",
        "gather_add_reduce": """
            x = @param:x -> float{30, 65}
            i = @param:i -> int64{9}
            y = @param:y -> float{9, 65}
            g = gather[axis=0](x, i)
            total = add(g, y)
            r = reduce_sum[axes={1}](total)
            @return(r)""",
        "transpose_reduce": """
            x = @param:x -> float{65, 12, 3}
            y = @param:y -> float{3, 12, 65}
            t = transpose[permutation={2, 1, 0}](x)
            total = add(t, y)
            r = reduce_max[axes={2}](total)
            @return(r)""",
        "softmax": """
            x = @param:x -> float{37, 300}
            m = reduce_max[axes={1}](x)
            difference = sub(x, m)
            e = exp(difference)
            s = reduce_sum[axes={1}](e)
            y = div(e, s)
            @return(y)""",
        "softmax_half": """
            x = @param:x -> half{3, 4096}
            m = reduce_max[axes={1}](x)
            difference = sub(x, m)
            e = exp(difference)
            s = reduce_sum[axes={1}](e)
            y = div(e, s)
            @return(y)""",
        "softmax_long_rows": """
            x = @param:x -> float{2, 70001}
            m = reduce_max[axes={1}](x)
            difference = sub(x, m)
            e = exp(difference)
            s = reduce_sum[axes={1}](e)
            y = div(e, s)
            @return(y)""",
        "log_softmax": """
            x = @param:x -> half{10, 4, 130}
            m = reduce_max[axes={2}](x)
            d = sub(x, m)
            power = exp(d)
            s = reduce_sum[axes={2}](power)
            logarithm = log(s)
            y = sub(d, logarithm)
            @return(y)""",
        "layernorm": """
            x = @param:x -> half{24, 64}
            g = @param:g -> half{1, 64}
            b = @param:b -> half{1, 64}
            mu = reduce_mean[axes={1}](x)
            d = sub(x, mu)
            product = mul(d, d)
            v = reduce_mean[axes={1}](product)
            total = add(v, 1e-5)
            scale = rsqrt(total)
            n = mul(d, scale)
            product2 = mul(n, g)
            y = add(product2, b)
            @return(y)""",
        "rmsnorm": """
            x = @param:x -> bf16{9, 1024}
            g = @param:g -> bf16{1, 1024}
            f = convert[target_type=float](x)
            product = mul(f, f)
            v = reduce_mean[axes={1}](product)
            total = add(v, 1e-6)
            scale = rsqrt(total)
            n = mul(f, scale)
            narrow = convert[target_type=bf16](n)
            y = mul(narrow, g)
            @return(y)""",
        "mean_and_variance": """
            x = @param:x -> float{16, 129}
            mu = reduce_mean[axes={1}](x)
            d = sub(x, mu)
            product = mul(d, d)
            v = reduce_mean[axes={1}](product)
            @return(mu, v)""",
        "normalised_and_mean": """
            x = @param:x -> float{16, 129}
            mu = reduce_mean[axes={1}](x)
            y = sub(x, mu)
            @return(mu, y)""",
        "several_folds": """
            x = @param:x -> float{16, 77}
            a = reduce_max[axes={1}](x)
            b = reduce_min[axes={1}](x)
            c = reduce_sum[axes={1}](x)
            difference = sub(x, b)
            difference2 = sub(a, b)
            total = add(difference2, 1.0)
            y = div(difference, total)
            @return(a, b, c, y)""",
        "column_sums": """
            x = @param:x -> float{300, 257}
            r = reduce_sum[axes={0}](x)
            @return(r)""",
        "column_softmax": """
            x = @param:x -> float{4, 129, 33}
            m = reduce_max[axes={1}](x)
            difference = sub(x, m)
            e = exp(difference)
            s = reduce_sum[axes={1}](e)
            y = div(e, s)
            @return(y)""",
        "mean_of_two_axes": """
            x = @param:x -> float{3, 5, 7, 11}
            r = reduce_mean[axes={1, 3}](x)
            @return(r)""",
        "mean_of_all": """
            x = @param:x -> half{33, 40}
            r = reduce_mean[axes={0, 1}](x)
            @return(r)""",
        "argmax": """
            x = @param:x -> float{12, 300}
            r = argmax[axis=1](x)
            @return(r)""",
        "argmin_columns": """
            x = @param:x -> int32{70, 33}
            r = argmin[axis=0](x)
            @return(r)""",
        "row_of_one": """
            x = @param:x -> float{200, 1}
            s = reduce_sum[axes={1}](x)
            y = div(x, s)
            @return(y)""",
        "pointwise_around": """
            x = @param:x -> float{20, 100}
            y = @param:y -> float{1, 100}
            w = @param:w -> float{20, 1}
            total = add(x, y)
            a = mul(total, w)
            s = reduce_sum[axes={1}](a)
            product = mul(s, w)
            t = tanh(product)
            product2 = mul(a, t)
            r = add(product2, y)
            @return(r, t)""",
        "strided_rows": """
            x = @param:x -> float{4, 256, 2, 2}, {1024, 1, 512, 256}
            r = reduce_mean[axes={2, 3}](x)
            @return(r)""",
        "nothing_of_rows": """
            x = @param:x -> float{0, 7}
            m = reduce_max[axes={1}](x)
            d = sub(x, m)
            @return(d, m)""",
        "folds_of_nothing": """
            x = @param:x -> bool{3, 0, 2}
            a = reduce_any[axes={1}](x)
            b = reduce_all[axes={1}](x)
            @return(a, b)""",
        "sum_of_pads_alone": """
            x = @param:x -> float{4, 0}
            p = pad[pads={0, 1, 0, 1}, value=3](x)
            r = reduce_sum[axes={1}](p)
            @return(r)""",
        "truths_of_long_rows": """
            x = @param:x -> float{3, 70001}
            m = reduce_mean[axes={1}](x)
            b = less(x, m)
            w = where(b, x, m)
            a = reduce_any[axes={1}](b)
            n = logical_and(b, a)
            @return(b, w, a, n)""",
        "sum_of_nothing": """
            x = @param:x -> float{4, 0}
            r = reduce_sum[axes={1}](x)
            @return(r)""",
    }


def reduce_program(op: str, dtype: str, lens: tuple[int, ...], axes: tuple[int, ...]) -> str:
    """One reduction."""
    shape, along = (", ".join(map(str, n)) for n in (lens, axes))
    return f"x = @param:x -> {dtype}{{{shape}}}\nr = reduce_{op}[axes={{{along}}}](x)\n@return(r)\n"


def softmax_program(dtype: str, lens: tuple[int, ...], axis: int, log: bool = False) -> str:
    """A softmax, or its logarithm, along an axis."""
    shape = ", ".join(map(str, lens))
    last = "l = log(s)\n        y = sub(d, l)" if log else "y = div(e, s)"
    return f"""
        x = @param:x -> {dtype}{{{shape}}}
        m = reduce_max[axes={{{axis}}}](x)
        d = sub(x, m)
        e = exp(d)
        s = reduce_sum[axes={{{axis}}}](e)
        {last}
        @return(y)"""


def layernorm_program(dtype: str, lens: tuple[int, ...], eps: float) -> str:
    """A layer norm along the last axis."""
    shape, axis = ", ".join(map(str, lens)), len(lens) - 1
    return f"""
        x = @param:x -> {dtype}{{{shape}}}
        mu = reduce_mean[axes={{{axis}}}](x)
        d = sub(x, mu)
        product = mul(d, d)
        v = reduce_mean[axes={{{axis}}}](product)
        total = add(v, {eps})
        scale = rsqrt(total)
        y = mul(d, scale)
        @return(y)"""


def _rows() -> dict[str, str]:
    """Operators on rows that rules expand, by name: of one operand."""
    calls = {
        "softmax_op": ("softmax[axis=1]", (17, 100)),
        "softmax_op_strided": ("softmax[axis=0]", (17, 100)),
        "logsoftmax_op": ("logsoftmax[axis=1]", (5, 131)),
        "hardmax_op": ("hardmax[axis=1]", (17, 100)),
        "reduce_l1": ("reduce_l1[axes={1}]", (9, 67)),
        "reduce_l2": ("reduce_l2[axes={0}]", (9, 67)),
        "reduce_sum_square": ("reduce_sum_square[axes={0, 1}]", (9, 67)),
        "reduce_log_sum": ("reduce_log_sum[axes={1}]", (9, 67)),
        "reduce_log_sum_exp": ("reduce_log_sum_exp[axes={1}]", (9, 67)),
        "layernorm_op": ("layernorm[axes={1}]", (9, 131)),
        "rmsnorm_op": ("rmsnorm[axes={1}, epsilon=0.5]", (9, 131)),
        "group_norm": ("group_norm[groups=3]", (2, 6, 5, 7)),
        "instance_norm": ("instance_norm", (2, 6, 5, 7)),
        "prefix_sum": ("prefix_scan_sum[axis=1]", (3, 7, 5)),
        "prefix_sum_backwards": ("prefix_scan_sum[axis=0, exclusive=true, reverse=true]", (9, 5)),
        "prefix_prod": ("prefix_scan_prod[axis=1, exclusive=true]", (4, 9)),
        "trilu": ("trilu[k=-1]", (3, 7, 5)),
        "trilu_lower": ("trilu[upper=false, k=1]", (3, 7, 5)),
        "tile_op": ("tile[repeats={2, 1, 3}]", (3, 7, 5)),
        "depth_to_space": ("depth_to_space[blocksize=2]", (2, 8, 3, 5)),
        "depth_to_space_crd": ("depth_to_space[blocksize=2, mode=CRD]", (2, 8, 3, 5)),
        "space_to_depth": ("space_to_depth[blocksize=2]", (2, 3, 4, 6)),
    }
    return {
        name: _one_call(call, lens, "half" if i % 2 else "float")
        for i, (name, (call, lens)) in enumerate(calls.items())
    }


def _one_call(call: str, lens: tuple[int, ...], dtype: str) -> str:
    return f"""
        x = @param:x -> {dtype}{{{", ".join(map(str, lens))}}}
        y = {call}(x)
        @return(y)"""


def _positions() -> dict[str, str]:
    """Operators that know where elements stand, and those that take elements by index."""
    return {
        "iota": """
            y = iota[lens={5, 7}, axis=1]
            @return(y)""",
        "iota_in_a_reduction": """
            x = @param:x -> int64{9, 131}
            i = iota[lens={9, 131}, axis=1]
            p = mul(x, i)
            y = reduce_sum[axes={1}](p)
            @return(y)""",
        "eye": """
            y = eye[lens={5, 7}, dtype=half, k=-1]
            @return(y)""",
        "onehot": """
            i = @literal{0, 4, -1, 7, -6, 2} -> int32{2, 3}
            v = @param:v -> float{2}
            y = onehot[depth=5, axis=1](i, v)
            @return(y)""",
        "gather_elements": """
            x = @param:x -> float{5, 6}
            i = @param:i -> int32{3, 6}
            y = gather_elements[axis=0](x, i)
            @return(y)""",
        "gather_elements_longer": """
            x = @param:x -> half{5, 6}
            i = @param:i -> int64{4, 9}
            y = gather_elements[axis=1](x, i)
            @return(y)""",
        "gathernd": """
            x = @param:x -> float{5, 6, 4}
            i = @literal{0, 1, 4, -1, -5, 3} -> int64{3, 2}
            y = gathernd(x, i)
            @return(y)""",
        "gathernd_batched": """
            x = @param:x -> float{2, 6, 4}
            i = @literal{0, 1, 4, -1, -5, 3} -> int64{2, 3, 1}
            y = gathernd[batch_dims=1](x, i)
            @return(y)""",
    }


def _typed_reductions() -> dict[str, str]:
    found = {}
    for dtype in (*NUMBERS, *WIDE_INTEGERS):
        ops = ["sum", "max", "min", "mean", "argmax"]
        lines = [f"x = @param:x -> {dtype}{{9, 131}}"]
        lines += [f"{op} = reduce_{op}[axes={{1}}](x)" for op in ops]
        found[f"folds_{dtype}"] = "\n".join([*lines, f"@return({', '.join(ops)})"])
    for dtype in ("float", "half", "int32"):
        found[f"prod_{dtype}"] = reduce_program("prod", dtype, (5, 67), (1,))
    found["folds_bool"] = "\n".join(
        (
            "x = @param:x -> bool{9, 131}",
            *(f"{op} = reduce_{op}[axes={{1}}](x)" for op in ("any", "all", "max", "min")),
            "@return(any, all, max, min)",
        )
    )
    return found


def _shapes() -> dict[str, str]:
    found = {}
    for n in (2, 3, 4, 8, 16, 25, 32, 64, 67, 128, 129):
        found[f"reduce_2x{n}"] = reduce_program("sum", "float", (2, n), (1,))
    for axis, op in enumerate(("max", "mean", "min", "sum")):
        found[f"{op}_3x1026x4x3_axis{axis}"] = reduce_program(op, "float", (3, 1026, 4, 3), (axis,))
    for axis, op in enumerate(("all", "any", "all", "any")):
        found[f"{op}_3x4x2x2_axis{axis}"] = reduce_program(op, "bool", (3, 4, 2, 2), (axis,))
    for axis in range(4):
        found[f"prod_3x4x2x2_axis{axis}"] = reduce_program("prod", "float", (3, 4, 2, 2), (axis,))
    for axis in range(4):
        found[f"softmax_5x4x1067x6_axis{axis}"] = softmax_program("half", (5, 4, 1067, 6), axis)
    return found | {
        "mean_1x384x1024_axis1": reduce_program("mean", "float", (1, 384, 1024), (1,)),
        "mean_336x400": reduce_program("mean", "half", (336, 400), (1,)),
        "mean_2x1048576": reduce_program("mean", "float", (2, 1048576), (1,)),
        "mean_1x2x262144": reduce_program("mean", "half", (1, 2, 262144), (2,)),
        "split_33x32x20x16": reduce_program("sum", "float", (33, 32, 20, 16), (0, 2)),
        "split_3276x2x4x3": reduce_program("sum", "float", (3276, 2, 4, 3), (0, 2)),
        "split_3277x2x4x3": reduce_program("sum", "half", (3277, 2, 4, 3), (0, 2)),
        "split_14400x2x2x3": reduce_program("sum", "float", (14400, 2, 2, 3), (0, 2)),
        "softmax_1x3x384x384": softmax_program("half", (1, 3, 384, 384), 3),
        "softmax_1x1000x1x1": softmax_program("float", (1, 1000, 1, 1), 1),
        "log_softmax_2x4x2080x6": softmax_program("half", (2, 4, 2080, 6), 2, log=True),
        "layernorm_1x2x5": layernorm_program("float", (1, 2, 5), 1e-12),
        "layernorm_1x4x24": layernorm_program("half", (1, 4, 24), 1e-5),
        "layernorm_1x24x64": layernorm_program("float", (1, 24, 64), 1e-12),
        "layernorm_1x48x1024": layernorm_program("half", (1, 48, 1024), 1e-5),
        "layernorm_1x2x262144": layernorm_program("float", (1, 2, 262144), 1e-5),
    }


def _folds_of_pads() -> dict[str, str]:
    folds = {"folds": ("sum", "0.0"), "largest": ("max", "2.5"), "smallest": ("min", "2.5")}
    return {
        f"{name}_of_pads{of}": f"""
            x = @param:x -> {dtype}{{5, 33}}
            p = pad[pads={{1, 2, 0, 5}}, value={value}](x)
            y = reduce_{op}[axes={{1}}](p)
            @return(y)"""
        for of, dtype in (("", "float"), ("_of_halves", "half"))
        for name, (op, value) in folds.items()
    }


def _corners() -> dict[str, str]:
    """What rules do that the programs above have no need of."""
    return {
        "powers_of_nothing_folded": """
            x = @param:x -> float{4, 8}
            y = reduce_powers[axes={}](x)
            @return(y)""",
        "chosen_always": """
            x = @param:x -> float{4, 1000}
            yes = @literal{true} -> bool{4, 1000}
            no = @literal{false} -> bool{4, 1000}
            five = @literal{5} -> float{4, 1000}
            a = where(yes, five, x)
            s = reduce_sum[axes={1}](a)
            b = where(no, five, x)
            t = reduce_sum[axes={1}](b)
            @return(s, t)""",
        "pairs_of_halves": """
            x = @param:x -> half{8, 1024}
            y = @param:y -> half{8, 1024}
            a = add(x, y)
            b = sub(x, y)
            c = mul(x, 2.5)
            m = mul(x, y)
            d = add(m, x)
            e = relu(d)
            f = exp(y)
            g = max(x, f)
            h = min(y, f)
            @return(a, b, c, e, g, h)""",
        "folds_of_halves": """
            x = @param:x -> half{8, 4099}
            y = @param:y -> half{8, 4096}
            a = reduce_max[axes={1}](x)
            b = reduce_min[axes={1}](x)
            c = reduce_max[axes={1}](y)
            @return(a, b, c)""",
        "repeated_input": """
            x = @param:x -> float{16, 1024}, {0, 16}
            s = reduce_sum[axes={0}](x)
            @return(s)""",
        "pad_reshape_pad": """
            x = @param:x -> float{2, 2}
            p = pad[pads={1, 0, 0, 2}](x)
            r = reshape[dims={4, 3}](p)
            q = pad[pads={1, 1, 1, 1}](r)
            y = exp(q)
            @return(y)""",
        "pads_of_zeros": """
            x = @param:x -> float{3}
            p = pad[pads={1, 1}, value=-0.0](x)
            q = pad[pads={1, 1}](p)
            y = rsqrt(q)
            @return(y)""",
        **_folds_of_pads(),
        "cut_tiles_of_two_axes": """
            x = @param:x -> int8{6, 35, 70}
            y = @param:y -> int8{6, 35, 70}
            s = add(x, y)
            t = transpose[permutation={2, 1, 0}](s)
            @return(t)""",
        "size_of_unsigned": """
            x = @param:x -> uint32{4, 8}
            n = neg(x)
            y = abs(n)
            @return(y)""",
        "rows_of_nothing": """
            x = @param:x -> float{4, 0}
            a = softmax[axis=1](x)
            b = logsoftmax[axis=1](x)
            c = hardmax[axis=1](x)
            d = layernorm[axes={1}](x)
            e = rmsnorm[axes={1}](x)
            @return(a, b, c, d, e)""",
        "columns_of_the_middle": """
            x = @param:x -> float{4, 6, 256}
            s = reduce_sum[axes={1}](x)
            @return(s)""",
        "algebra": """
            x = @param:x -> float{5, 8}
            y = @param:y -> float{5, 8}
            c = @param:c -> bool{5, 8}
            i = @param:i -> int32{5, 8}
            positive = relu(x)
            a = relu(positive)
            same = max(y, y)
            either = where(c, same, same)
            b = exp(either)
            down = neg(x)
            up = neg(down)
            d = sin(up)
            away = neg(y)
            e = abs(away)
            no = logical_not(c)
            yes = logical_not(no)
            f = logical_and(yes, c)
            once = mul(x, 1.0)
            g = cos(once)
            h = div(1.0, x)
            plus = add(i, 0)
            minus = sub(plus, 0)
            whole = div(minus, 1)
            j = mul(whole, whole)
            k = div(y, 4.0)
            @return(a, b, d, e, f, g, h, j, k)""",
        "whole_powers": """
            x = @param:x -> float{7, 9}
            h = @param:h -> half{7, 9}
            a = pow(x, 1.0)
            b = pow(x, 2.0)
            c = pow(x, 3.0)
            d = pow(x, 4.0)
            e = pow(x, -1.0)
            f = pow(h, 3.0)
            @return(a, b, c, d, e, f)""",
        "known_conditions": """
            c = @param:c -> bool{5, 8}
            a = logical_and(c, true)
            b = logical_or(c, false)
            d = logical_and(c, false)
            e = logical_or(c, true)
            @return(a, b, d, e)""",
        "conversions": """
            x = @param:x -> half{7, 9}
            h = @param:h -> half{7, 9}
            f = @param:f -> float{7, 9}
            i = @param:i -> int8{7, 9}
            wide = convert[target_type=float](x)
            a = convert[target_type=double](wide)
            middle = convert[target_type=int32](i)
            b = convert[target_type=int64](middle)
            same = convert[target_type=int8](i)
            c = neg(same)
            narrow = convert[target_type=half](f)
            d = exp(narrow)
            e = less(x, h)
            @return(a, b, c, d, e)""",
        "moves": """
            x = @param:x -> float{6, 8}
            y = @param:y -> float{6, 8}
            t = transpose[permutation={1, 0}](x)
            u = transpose[permutation={1, 0}](y)
            total = add(t, u)
            power = exp(total)
            a = transpose[permutation={1, 0}](power)
            around = reverse[axes={0, 1}](x)
            columns = reverse[axes={0}](around)
            b = relu(columns)
            part = slice[axes={1}, starts={1}, ends={8}](y)
            parts = slice[axes={1}, starts={0}, ends={6}, steps={2}](part)
            p = pad[pads={0, 1, 0, 0}](parts)
            q = pad[pads={0, 2, 0, 2}](p)
            c = neg(q)
            @return(a, b, c)""",
        "moves_of_nothing": """
            x = @param:x -> float{1, 6, 1, 8}
            none = @param:none -> float{0, 6, 1, 8}
            v = reverse[axes={0, 2}](x)
            s = slice[axes={1}, starts={0}, ends={6}](v)
            p = pad[pads={0, 0, 0, 0, 0, 0, 0, 0}](s)
            one = concat[axis=0](p)
            first = concat[axis=0](none, one)
            last = concat[axis=0](first, none)
            r = reshape[dims={1, 6, 1, 8}](last)
            t = transpose[permutation={2, 1, 0, 3}](r)
            f = flatten[axis=2](t)
            fill = pad[pads={1, 0, 0, 0, 0, 0, 0, 0}, value=2](none)
            full = flatten[axis=2](fill)
            z = add(f, full)
            @return(z)""",
        "cut_and_sliced": """
            x = @param:x -> half{9, 12}
            p = pad[pads={-2, 0, -1, -3}](x)
            s = slice[axes={1}, starts={0}, ends={9}, steps={2}](p)
            r = exp(s)
            @return(r)""",
        "broadcasts_of_broadcasts": """
            x = @param:x -> float{1, 8}
            y = @param:y -> float{4, 6, 8}
            w = @param:w -> float{1}
            a = multibroadcast[out_lens={6, 8}](x)
            b = multibroadcast[out_lens={4, 6, 8}](a)
            product = mul(b, y)
            r = add(product, w)
            @return(r)""",
        "misaligned_rows": """
            x = @param:x -> half{9, 20001}
            b = @param:b -> half{9, 1}
            d = sub(x, b)
            at = argmax[axis=1](d)
            repeated = multibroadcast[out_lens={9, 20001}](b)
            s = reduce_sum[axes={1}](repeated)
            y = mul(d, s)
            @return(y, at)""",
        "misaligned_rows_in_steps": """
            x = @param:x -> float{3, 70001}
            s = reduce_sum[axes={1}](x)
            y = sub(x, s)
            @return(y)""",
        "repeated_block": """
            x = @param:x -> float{4, 1024}, {2048, 1}
            y = @param:y -> float{3, 4, 1024}
            r = add(x, y)
            @return(r)""",
        "padded_rows": """
            x = @param:x -> float{5, 1000}
            y = @param:y -> float{7, 1000}
            p = pad[pads={1, 0, 1, 0}](x)
            m = mul(p, y)
            r = reduce_sum[axes={1}](m)
            @return(r)""",
        "layouts_of_layouts": """
            x = @param:x -> float{2, 3, 4}
            y = @param:y -> float{2, 12}
            t = transpose[permutation={1, 2, 0}](x)
            m = reshape[dims={12, 2}](t)
            u = transpose[permutation={1, 0}](m)
            a = exp(u)
            n = reshape[dims={0, -1}](x)
            b = sub(n, y)
            @return(a, b)""",
        "layouts_that_do_not_nest": """
            x = @param:x -> float{6, 8}
            y = @param:y -> float{4, 6}, {8, 1}
            z = @param:z -> float{4, 6}, {8, 1}
            i = @param:i -> int32{10}
            s = slice[axes={1}, starts={1}, ends={6}](x)
            m = reshape[dims={5, 6}](s)
            t = transpose[permutation={1, 0}](m)
            a = relu(t)
            n = reshape[dims={3, 8}](y)
            p = pad[pads={0, 1, 0, 1}](n)
            b = exp(p)
            o = reshape[dims={3, 8}](z)
            g = gather[axis=1](o, i)
            c = sin(g)
            @return(a, b, c)""",
        "shifted_layout": """
            x = @param:x -> float{600, 4}, {8, 1}
            m = reshape[dims={2400}](x)
            s = slice[axes={0}, starts={8}, ends={2398}](m)
            r = relu(s)
            @return(r)""",
        "chunks_of_short_rows": """
            x = @param:x -> float{512, 4}, {8, 1}
            r = relu(x)
            @return(r)""",
        "pads_of_edges": """
            x = @param:x -> float{5, 7}
            p = pad[pads={0, 2, 3, 0}, mode=edge](x)
            q = pad[pads={1, 2, 3, 4}, mode=edge](x)
            s = slice[axes={0, 1}, starts={1, 2}, ends={9, 11}](q)
            r = sub(p, s)
            @return(r)""",
        "columns_of_mirrored_rows": """
            x = @param:x -> uint8{17, 3}
            p = pad[pads={2, 1, 7, 0}, mode=reflect](x)
            a = slice[axes={1}, starts={0}, ends={1}](p)
            b = slice[axes={1}, starts={1}, ends={2}](p)
            c = slice[axes={1}, starts={2}, ends={3}](p)
            d = slice[axes={1}, starts={3}, ends={4}](p)
            e = add(a, b)
            f = add(e, c)
            g = add(f, d)
            @return(g)""",
        "axes_of_one_place": """
            x = @param:x -> float{1, 5}
            y = @param:y -> float{4, 8}, {0, 1}
            i = @param:i -> int32{4}
            p = pad[pads={2, 0, 1, 3}, mode=reflect](x)
            g = gather[axis=0](y, i)
            r = add(p, g)
            @return(r)""",
        "inside_of_pad": """
            x = @param:x -> float{32, 32}
            e = exp(x)
            p = pad[pads={2, 1, 2, 1}, value=-1](e)
            s = slice[axes={0, 1}, starts={2, 1}, ends={34, 33}](p)
            @return(s)""",
        "repeated_rows_moved": """
            x = @param:x -> float{9, 131}
            w = @param:w -> float{9, 1}
            d = sub(x, w)
            v = reverse[axes={1}](d)
            p = pad[pads={0, 3, 0, 2}](d)
            q = slice[axes={1}, starts={1}, ends={132}](p)
            total = add(v, q)
            r = reduce_sum[axes={1}](total)
            @return(r)""",
        "rows_that_do_not_nest": """
            x = @param:x -> float{10, 3, 4}, {40, 8, 1}
            m = reshape[dims={6, 5, 4}](x)
            r = reduce_sum[axes={1}](m)
            @return(r)""",
        "folds_of_folds": """
            x = @param:x -> float{4, 6, 20}
            a = reduce_sum[axes={2}](x)
            b = reduce_sum[axes={1}](a)
            @return(b)""",
        "log_sum_of_nothing": """
            x = @param:x -> float{4, 0}
            r = reduce_log_sum_exp[axes={1}](x)
            @return(r)""",
        "position_of_one": """
            x = @param:x -> float{70, 1}
            a = argmax[axis=1](x)
            @return(a)""",
    }


def _written_lower() -> dict[str, str]:
    """Programs that begin at a later stage, or under a schedule of their own."""
    return {
        "rows_of_one_element": """
            @module main [stage=simplify, target=gfx942]
            x = @param:x -> float{300, 1}
            s = reduce_sum[axes={1}](x)
            y = div(x, s)
            @return(y)""",
        "rows_of_one_element_in_lanes": """
            @module main [stage=simplify, target=gfx942, schedule={algo=subwave}]
            x = @param:x -> float{512, 1}
            s = reduce_sum[axes={1}](x)
            y = div(x, s)
            @return(y)""",
        "walked_softmax": """
            @module main [target=gfx942, schedule={algo=block, block_size=64, lanes=64}]
            x = @param:x -> float{3, 16388}
            m = reduce_max[axes={1}](x)
            d = sub(x, m)
            e = exp(d)
            s = reduce_sum[axes={1}](e)
            y = div(e, s)
            @return(y)""",
        "walked_softmax_of_halves": """
            @module main [target=gfx942, schedule={algo=block, block_size=64, lanes=64}]
            x = @param:x -> half{3, 16392}
            m = reduce_max[axes={1}](x)
            d = sub(x, m)
            e = exp(d)
            s = reduce_sum[axes={1}](e)
            y = div(e, s)
            @return(y)""",
        "walked_variance": """
            @module main [target=gfx942, schedule={algo=block, block_size=64, lanes=64}]
            x = @param:x -> float{3, 16388}
            m = reduce_mean[axes={1}](x)
            d = sub(x, m)
            q = mul(d, d)
            v = reduce_mean[axes={1}](q)
            @return(m, v)""",
        "walked_variance_of_a_power_of_two": """
            @module main [target=gfx942, schedule={algo=block, block_size=64, lanes=64}]
            x = @param:x -> half{3, 16384}
            m = reduce_mean[axes={1}](x)
            d = sub(x, m)
            q = mul(d, d)
            v = reduce_mean[axes={1}](q)
            r = rsqrt(v)
            y = mul(d, r)
            @return(y)""",
        "cut_tiles": """
            @module main [target=gfx942, schedule={algo=tile}]
            x = @param:x -> float{3, 67, 131}
            y = @param:y -> float{3, 131, 67}
            t = transpose[permutation={0, 2, 1}](x)
            r = mul(t, y)
            @return(r)""",
        "tiles_of_a_shape_that_does_not_nest": """
            @module main [target=gfx942, schedule={algo=tile}]
            x = @param:x -> float{192, 128}
            y = @param:y -> float{256, 96}, {100, 1}
            t = transpose[permutation={1, 0}](x)
            r = reshape[dims={128, 192}](y)
            a = add(t, r)
            f = exp(y)
            @return(a, f)""",
        "elements_of_other_tiles": """
            @module main [target=gfx942, schedule={algo=tile}]
            x = @param:x -> float{131, 67}
            t = transpose[permutation={1, 0}](x)
            p = slice[axes={0}, starts={3}, ends={67}](t)
            q = slice[axes={0}, starts={0}, ends={3}](t)
            c = concat[axis=0](p, q)
            r = add(t, c)
            @return(r)""",
        "padded_tiles": """
            @module main [target=gfx942, schedule={algo=tile}]
            x = @param:x -> float{67, 131}
            y = @param:y -> float{131, 67}
            t = transpose[permutation={1, 0}](x)
            m = mul(t, y)
            p = pad[pads={2, 0, 1, 3}](m)
            @return(p)""",
        "joined_tiles": """
            @module main [target=gfx942, schedule={algo=tile}]
            x = @param:x -> int8{70, 3, 65}
            y = @param:y -> int8{65, 3, 9}
            t = transpose[permutation={2, 1, 0}](x)
            r = reverse[axes={0}](t)
            c = concat[axis=2](y, r)
            @return(c)""",
        "gathered_tiles": """
            @module main [target=gfx942, schedule={algo=tile}]
            x = @param:x -> half{67, 131}
            y = @param:y -> half{131, 67}
            i = @param:i -> int64{90}
            t = transpose[permutation={1, 0}](x)
            m = sub(t, y)
            g = gather[axis=0](m, i)
            @return(g)""",
        "tiles_cut_in_rows": """
            @module main [target=gfx942, schedule={algo=tile, rows=64, columns=64, block_size=256}]
            x = @param:x -> float{2, 64, 72}
            t = transpose[permutation={0, 2, 1}](x)
            r = exp(t)
            @return(r)""",
        "tiles_cut_in_columns": """
            @module main [target=gfx942, schedule={algo=tile, rows=64, columns=64, block_size=256}]
            x = @param:x -> float{72, 2, 64}
            t = transpose[permutation={2, 1, 0}](x)
            r = exp(t)
            @return(r)""",
        "tiles_cut_in_both": """
            @module main [target=gfx942, schedule={algo=tile, rows=64, columns=64, block_size=256}]
            x = @param:x -> half{68, 72}
            t = transpose[permutation={1, 0}](x)
            r = exp(t)
            @return(r)""",
        "channels_of_chunks": """
            @module main [target=gfx942, schedule={algo=flat, vector=8, share=32}]
            x = @param:x -> half{8, 8, 24, 16}
            bias = @param:bias -> half{8, 1, 1}
            y = add(x, bias)
            @return(y)""",
        "channels_of_whole_chunks": """
            @module main [target=gfx942, schedule={algo=flat, vector=8, share=32}]
            x = @param:x -> half{8, 2, 1024}
            bias = @param:bias -> half{8, 2, 1}, {5, 1, 1}
            y = add(x, bias)
            @return(y)""",
        "channels_past_the_last_lanes": """
            @module main [target=gfx942, schedule={algo=flat, vector=8, share=8}]
            x = @param:x -> half{3, 5, 16}
            bias = @param:bias -> half{5, 1}
            y = add(x, bias)
            @return(y)""",
        "channels_that_chunks_reach_into": """
            @module main [target=gfx942, schedule={algo=flat, vector=8, share=8}]
            x = @param:x -> half{256, 8, 49}
            bias = @param:bias -> half{12}
            s = slice[axes={0}, starts={4}, ends={12}](bias)
            r = reshape[dims={8, 1}](s)
            y = add(x, r)
            @return(y)""",
        "channels_of_batches_that_chunks_reach_into": """
            @module main [target=gfx942, schedule={algo=flat, vector=8, share=8}]
            x = @param:x -> half{4, 8, 49}
            bias = @param:bias -> half{4, 8, 1}, {10, 1, 1}
            y = add(x, bias)
            @return(y)""",
        "columns_in_steps": """
            @module main [target=gfx942, schedule={algo=subwave}]
            x = @param:x -> float{4100, 9}
            s = reduce_sum[axes={0}](x)
            @return(s)""",
        "columns_of_a_lane": """
            @module main [target=gfx942, schedule={algo=columns, lanes=1}]
            x = @param:x -> float{64, 516}
            b = @param:b -> float{1, 516}
            s = reduce_sum[axes={0}](x)
            repeated = multibroadcast[out_lens={64, 516}](b)
            c = reduce_sum[axes={0}](repeated)
            @return(s, c)""",
        "columns_in_parts": """
            @module main [target=gfx942, schedule={algo=columns, lanes=32}]
            x = @param:x -> half{64, 512}
            b = @param:b -> half{1, 512}
            s = reduce_mean[axes={0}](x)
            at = argmax[axis=0](x)
            repeated = multibroadcast[out_lens={64, 512}](b)
            c = reduce_sum[axes={0}](repeated)
            d = sub(s, c)
            y = sub(x, d)
            @return(y, at)""",
        "chunks_of_padded_rows": """
            @module main [target=gfx942, schedule={algo=flat, share=16}]
            x = @param:x -> float{3, 8192}, {8448, 1}
            y = exp(x)
            @return(y)""",
        "columns_in_parts_with_tails": """
            @module main [target=gfx942, schedule={algo=columns, lanes=32}]
            x = @param:x -> half{67, 520}
            b = @param:b -> half{1, 520}
            s = reduce_mean[axes={0}](x)
            at = argmax[axis=0](x)
            repeated = multibroadcast[out_lens={67, 520}](b)
            c = reduce_sum[axes={0}](repeated)
            d = sub(s, c)
            y = sub(x, d)
            @return(y, at)""",
        "tiles_of_48": """
            @module main [target=gfx942, schedule={algo=tile}]
            x = @param:x -> float{80, 48}
            t = transpose[permutation={1, 0}](x)
            r = relu(t)
            @return(r)""",
        "table_of_indices": """
            @module main [stage=blockwise, target=gfx942, schedule={algo=flat, block_size=256, lanes=256, vector=1, share=1, steps=1, grid=4}, space={1024}]
            x = @param:x -> float{8, 256}
            t = @param:t -> int32{4}
            z_output = @param:z_output -> float{4, 256}
            i = global_id
            g = gather_index[input_shape={8, 256}, axis=0](t, i)
            v = load(x, g)
            store = store(z_output, i, v)
            @return(store)""",
        "neighbours_by_hand": """
            @module main [stage=lanewise, target=gfx942, schedule={algo=flat, block_size=256, lanes=256, vector=4, share=4, steps=1, grid=2}, space={2048}]
            x = @param:x -> float{2048}
            z_output = @param:z_output -> float{2048}
            i = global_id
            first = imul(i, 4)
            v = vector_load[size=4](x, first)
            e = exp(v)
            store = vector_store[size=4](z_output, first, e)
            @return(store)""",
        "places_by_hand": """
            @module main [stage=lanewise, target=gfx942, schedule={algo=flat, block_size=256, lanes=256, vector=1, share=4, steps=1, grid=2}, space={2048}]
            x = @param:x -> float{2048}
            z_output = @param:z_output -> float{2048}
            i = global_id
            g = idiv(i, 8)
            m = imul(g, 8)
            r = imod(i, 8)
            place = iadd(m, r)
            v = load(x, place)
            share = strided_index[size=4, stride=512](i)
            none = idiv(share, 2048)
            w = load(x, none)
            y = add(v, w)
            store = store(z_output, share, y)
            @return(store)""",
        "lanes_apart": """
            @module main [stage=gridwise, target=gfx942, schedule={algo=apart, block_size=256, lanes=16, vector=1, share=4, steps=2, lane_stride=16, grid=3}, space={70, 37}, axes={0}, outputs={z_output=y}]
            x = @param:x -> float{70, 37}
            z_output = @param:z_output -> float{1, 37}
            y = gridwise_reduce[op=sum, algo=columns, reduce_elements=70, axes={0}](x)
            copy = copy(y, z_output)
            @return(copy)""",
        "rows_by_hand": """
            @module main [stage=lanewise, target=gfx942, schedule={algo=wave, block_size=256, lanes=64, vector=1, share=4, steps=1, grid=2}, space={8, 256}, axes={1}]
            x = @param:x -> float{8, 256}
            z_output = @param:z_output -> float{8}
            i = global_id
            row = idiv(i, 64)
            lane = lane_id
            start = imul(row, 256)
            first = iadd(start, lane)
            v = strided_load[size=4, stride=64](x, first)
            sixth = load(x, 5)
            share = lane_reduce[op=sum](v)
            all = dpp_reduce[op=sum](share)
            s = add(all, sixth)
            own = elect[lanes=64](row)
            place = imin(own, 7)
            store = store(z_output, place, s)
            @return(store)""",
        "split_mean": """
            @module main [stage=simplify]
            x = @param:x -> float{2, 400000}
            s = reduce_mean[axes={1}](x)
            @return(s)""",
        "split_uneven_mean": """
            @module main [stage=simplify]
            x = @param:x -> float{2, 400003}
            s = reduce_mean[axes={1}](x)
            @return(s)""",
    }


SEED_TABLE = {
    **_pointwise(),
    **_index_maps(),
    **_reductions(),
}
TURNED = {
    "rows_turned": """
        x = @param:x -> half{2, 5, 4, 64}
        n = rmsnorm[axes={3}](x)
        y = transpose[permutation={0, 2, 1, 3}](n)
        @return(y)""",
}


def _variance(rows: int, columns: int) -> str:
    return f"""
        x = @param:x -> float{{{rows}, {columns}}}
        m = reduce_mean[axes={{1}}](x)
        d = sub(x, m)
        q = mul(d, d)
        v = reduce_mean[axes={{1}}](q)
        @return(m, v)"""


COMPOSED = {**_rows(), **_positions(), **TURNED, **CONTRACTIONS}
BY_TYPE = {**_types(), **_typed_reductions()}
UPSTREAM_SHAPES = _shapes()
CORNERS = _corners()
SPLIT = {
    "folds_of_one_element": """
        x = @param:x -> float{1, 1}
        a = reduce_squares[axes={1}](x)
        b = reduce_squares[axes={0}](a)
        @return(b)""",
    "split_sum": """
        x = @param:x -> half{2, 400000}
        s = reduce_sum[axes={1}](x)
        @return(s)""",
    "split_uneven_max": """
        x = @param:x -> int32{2, 400003}
        y = @param:y -> int32{2, 400003}
        t = add(x, y)
        s = reduce_max[axes={1}](t)
        @return(s)""",
    "long_rows_whole": """
        x = @param:x -> float{2, 100000}
        s = reduce_max[axes={1}](x)
        @return(s)""",
    "split_argmax": """
        x = @param:x -> half{2, 400000}
        a = reduce_argmax[axes={1}](x)
        @return(a)""",
    "split_uneven_argmin": """
        x = @param:x -> float{2, 400003}
        a = reduce_argmin[axes={1}](x)
        @return(a)""",
    "split_variance": _variance(2, 300000),
    "split_variance_that_ends_early": _variance(2, 310529),
    "split_variance_of_a_power_of_two": _variance(2, 262144),
    "squares_of_short_rows": """
        x = @param:x -> float{5, 70}
        s = reduce_squares[axes={1}](x)
        @return(s)""",
    "split_columns": """
        x = @param:x -> float{40000, 20}
        s = reduce_mean[axes={0}](x)
        d = sub(x, s)
        @return(d)""",
}
"""Reductions of so few rows that a GPU folds parts of them first, and one that is too small for that."""

_PAIR = """
        x = @param:x -> int8{{61, 64, 128, 128}}
        t = transpose[permutation={{2, 1, 3, 0}}](x)
        y = @param:y -> int8{{128, 64, 128, 61}}, {{507904, 7936, 62, 1}}
        s = {computed}
        z = reduce_min[axes={{0, 1, 3}}](s)
        @return(z)"""
_FORWARD = """
        x = @param:x -> {dtype}{{32, 512, 7, 7}}
        w = @param:w -> {dtype}{{512, 512, 3, 3}}
        z = convolution[padding={{1, 1}}](x, w)
        @return(z)"""
_WEIGHTS_FIRST = """
        x = @param:x -> half{32, 512, 7, 7}
        w = @param:w -> half{512, 512, 3, 3}
        b = reshape[dims={1, 1, 512, 512, 3, 3, 1, 1}](w)
        g = convert[target_type=float](b)
        h = multibroadcast[out_lens={32, 1, 512, 512, 3, 3, 7, 7}](g)
        p = pad[pads={0, 0, 1, 1, 0, 0, 1, 1}](x)
        v = windows[axes={2, 3}, lengths={3, 3}](p)
        a = reshape[dims={32, 1, 1, 512, 3, 3, 7, 7}](v)
        f = convert[target_type=float](a)
        e = multibroadcast[out_lens={32, 1, 512, 512, 3, 3, 7, 7}](f)
        m = mul(h, e)
        s = reduce_sum[axes={3, 4, 5}](m)
        r = reshape[dims={32, 512, 7, 7}](s)
        z = convert[target_type=half](r)
        @return(z)"""
_IN_PHASES = """
        x = @param:x -> {dtype}{{32, 256, 14, 14}}
        w = @param:w -> {dtype}{{256, 256, 3, 3}}
        z = convolution_backwards_data[padding={{1, 1}}, stride={{2, 2}}, output_padding={{1, 1}}](x, w)
        @return(z)"""
_GRADIENT_OF_LONE = """
        x = @param:x -> {dtype}{{{lens}}}
        y = @param:y -> {dtype}{{{lens}}}
        {turned}
        z = convolution_backwards_weights[lengths={{3, 3}}, padding={{1, 1}}, group=96](u, v)
        @return(z)"""
_FIRST = "u = neg(x)\n        v = neg(y)"
_LAST = "u = transpose[permutation={0, 3, 1, 2}](x)\n        v = transpose[permutation={0, 3, 1, 2}](y)"


def _squares_of_row(n: int) -> str:
    return f"""
        x = @param:x -> float{{2, {n}}}
        s = reduce_squares[axes={{1}}](x)
        @return(s)"""


_FOLDS_OF_FEW = ("sum", "prod", "max", "min", "argmax", "mean")
_ROWS_OF_FEW = (2048, 2064, 2080, 2096, 2112, 2128)


def _folds_of_few(count: int) -> str:
    """Folds of so many elements each, whose results are turned: as many kernels, since no two are of the same shape."""
    lines = []
    for rows, op in zip(_ROWS_OF_FEW, _FOLDS_OF_FEW, strict=True):
        lines += [
            f"x_{op} = @param:x_{op} -> half{{{rows}, {count}, 6144}}",
            f"f_{op} = convert[target_type=float](x_{op})",
            f"m_{op} = reduce_{op}[axes={{1}}](f_{op})",
            f"s_{op} = squeeze[axes={{1}}](m_{op})",
            f"y_{op} = transpose[permutation={{1, 0}}](s_{op})",
        ]
    return "\n".join([*lines, f"@return({', '.join(f'y_{op}' for op in _FOLDS_OF_FEW)})"])


_COMPUTED_WINDOWS = """
        x = @param:x -> half{{16, 28, 28, 256}}
        w = @param:w -> half{{256, 3, 3, 256}}
        r = relu(x)
        s = transpose[permutation={{0, 3, 1, 2}}](r)
        v = transpose[permutation={{0, 3, 1, 2}}](w)
        c = convolution[padding={{{pad}, {pad}}}](s, v)
        y = transpose[permutation={{0, 2, 3, 1}}](c)
        @return(y)"""

LARGE = {
    "split_contraction": """
        x = @param:x -> half{32, 4096}
        y = @param:y -> half{4096, 4096}
        z = dot(x, y)
        @return(z)""",
    "split_contraction_tail": """
        x = @param:x -> half{32, 4000}
        y = @param:y -> half{4000, 4096}
        z = dot(x, y)
        @return(z)""",
    "copied_windows": _FORWARD.format(dtype="half"),
    "copied_windows_behind_weights": _WEIGHTS_FIRST,
    "copied_windows_of_phases": _IN_PHASES.format(dtype="half"),
    "copied_windows_of_floats": _FORWARD.format(dtype="float"),
    "copied_windows_of_phases_of_floats": _IN_PHASES.format(dtype="float"),
    "split_shared": _GRADIENT_OF_LONE.format(dtype="half", lens="32, 56, 56, 96", turned=_LAST),
    "copied_windows_of_lone_channels": _GRADIENT_OF_LONE.format(dtype="half", lens="32, 96, 56, 56", turned=_FIRST),
    "copied_windows_of_lone_floats": _GRADIENT_OF_LONE.format(dtype="float", lens="32, 96, 56, 56", turned=_FIRST),
    "copied_bytes": """
        x = @param:x -> int8{4096, 1024}
        y = @param:y -> int8{1024, 4096}
        z = quant_dot(x, y)
        @return(z)""",
    **{f"folds_of_{count}": _folds_of_few(count) for count in (2, 7)},
    "squares_of_long_parts_that_end_early": _squares_of_row(35000003),
    "computed_first": """
        x = @param:x -> float{1024, 1024}
        y = @param:y -> half{1024, 2048}
        r = convert[target_type=half](x)
        z = dot(r, y)
        @return(z)""",
    "computed_second": """
        x = @param:x -> half{1024, 1024}
        y = @param:y -> int8{1024, 2048}
        s = @param:s -> half{2048}
        h = convert[target_type=half](y)
        r = mul(h, s)
        z = dot(x, r)
        @return(z)""",
    "computed_both_turned": """
        x = @param:x -> half{1024, 1024}
        y = @param:y -> half{2048, 1024}
        r = relu(x)
        s = relu(y)
        t = transpose[permutation={1, 0}](r)
        u = transpose[permutation={1, 0}](s)
        z = dot(t, u)
        @return(z)""",
    "computed_windows": _COMPUTED_WINDOWS.format(pad=0),
    "computed_windows_with_pads": _COMPUTED_WINDOWS.format(pad=1),
    "rows_as_the_first_lies": _PAIR.format(computed="add(t, y)"),
    "rows_as_the_second_lies": _PAIR.format(computed="sub(y, t)"),
    "copied_bytes_once": """
        x = @param:x -> int8{2048, 1536}
        t = transpose[permutation={1, 0}](x)
        y = @param:y -> int8{2048, 1024}
        z = quant_dot(t, y)
        @return(z)""",
    "folded_before_padding": """
        x = @param:x -> uint8{65536, 384}
        p = pad[pads={2, 1, 0, 1}](x)
        y = reduce_min[axes={0}](p)
        @return(y)""",
    "folded_before_padding_converted": """
        x = @param:x -> int8{65536, 384}
        p = pad[pads={0, 1, 0, 1}](x)
        c = convert[target_type=int32](p)
        y = reduce_sum[axes={0}](c)
        @return(y)""",
    "rows_as_they_lie": """
        x = @param:x -> float{24, 512, 16, 112}
        t = transpose[permutation={0, 3, 1, 2}](x)
        r = argmax[axis=0](t)
        @return(r)""",
    "converted_rows_as_they_lie": """
        x = @param:x -> half{448, 320, 96}
        t = transpose[permutation={2, 1, 0}](x)
        r = argmax[axis=0](t)
        @return(r)""",
    "operands_turned_before": """
        x = @param:x -> bf16{8, 1344, 64, 32}
        y = @param:y -> bf16{8, 32, 1344, 64}
        c = @param:c -> bool{8, 64, 1344, 64}
        z = @param:z -> bf16{8, 64, 1344, 64}
        t = transpose[permutation={0, 3, 1, 2}](x)
        b = concat[axis=1](t, y)
        w = where(c, b, z)
        r = reduce_sum[axes={1, 3}](w)
        @return(r)""",
    "columns_by_residue": """
        x = @param:x -> half{8192, 50257}
        f = convert[target_type=float](x)
        s = reduce_sum[axes={0}](f)
        @return(s)""",
    "rows_in_lds": softmax_program("float", (2048, 65536), 1),
    "misaligned_rows_in_lds": softmax_program("half", (4096, 50257), 1),
}
"""Programs that are other kernels for being large; smaller ones are computed under a small target."""

PROGRAMS = {**SEED_TABLE, **COMPOSED, **BY_TYPE, **UPSTREAM_SHAPES, **CORNERS, **SPLIT}
WRITTEN_LOWER = _written_lower()

MATRIX = ("add", "mul_add", "pad_mul_reduce", "gather_add_reduce", "softmax", "softmax_half", "layernorm")
"""Programs that are tried on every target."""

SEED_CASES = (
    *("add", "mul", "mul_add", "pad_add", "reverse_add", "gather_pointwise", "concat_pointwise"),
    *("reduce_sum", "reduce_max", "mul_reduce", "pad_reduce", "gather_reduce", "concat_reduce", "reverse_reduce"),
    *("pad_mul_reduce", "gather_add_reduce"),
)
"""The cases of the seed's verify table."""

_PRODUCT = "x = @param:x -> {t}{{{m}, {k}}}\nw = @param:w -> {t}{{{k}, {n}}}\nz = dot(x, w)\n@return(z)"
_BYTES = "x = @param:x -> {t}{{{m}, {k}}}\nv = @param:v -> {t}{{{n}, {k}}}\nw = transpose[permutation={{1, 0}}](v)\nz = quant_dot(x, w)\n@return(z)"
_TURNED = "x = @param:x -> {t}{{{k}, {m}}}\ny = transpose[permutation={{1, 0}}](x)\nv = @param:v -> {t}{{{n}, {k}}}\nw = transpose[permutation={{1, 0}}](v)\nz = dot(y, w)\n@return(z)"
_SQUASHED = "x = @param:x -> {t}{{{m}, {k}}}\ny = sigmoid(x)\nw = @param:w -> {t}{{{k}, {n}}}\nb = @param:b -> {t}{{{n}}}\nd = dot(y, w)\nz = add(d, b)\n@return(z)"
_ADDED = "x = @param:x -> {t}{{{m}, {k}}}\nw = @param:w -> {t}{{{k}, {n}}}\nb = @param:b -> {t}{{{n}}}\nr = @param:r -> {t}{{{m}, {n}}}\nd = dot(x, w)\ns = add(d, b)\nz = add(s, r)\n@return(z)"
_IMAGES = "x = @param:x -> {t}{{2, {m}, 7, {k}}}\nw = @param:w -> {t}{{{n}, 3, 3, {k}}}\nu = transpose[permutation={{0, 3, 1, 2}}](x)\nv = transpose[permutation={{0, 3, 1, 2}}](w)\nc = convolution[padding={{1, 1}}](u, v)\nz = transpose[permutation={{0, 2, 3, 1}}](c)\n@return(z)"
_MIRRORED = _IMAGES.replace("(w)", "(r)").replace("\nu =", "\nr = reverse[axes={{2}}](w)\nu =")
_STEPS_OF_TWO = _IMAGES.replace("padding={{1, 1}}", "padding={{1, 1}}, stride={{2, 2}}")
_DATA = "x = @param:x -> {t}{{2, {m}, 7, {k}}}\nw = @param:w -> {t}{{{k}, 3, 3, {n}}}\nu = transpose[permutation={{0, 3, 1, 2}}](x)\nv = transpose[permutation={{0, 3, 1, 2}}](w)\nc = convolution_backwards_data[padding={{1, 1}}](u, v)\nz = transpose[permutation={{0, 2, 3, 1}}](c)\n@return(z)"
_WEIGHTS = "x = @param:x -> {t}{{2, {m}, 7, {k}}}\nw = @param:w -> {t}{{2, {m}, 7, {n}}}\nu = transpose[permutation={{0, 3, 1, 2}}](x)\nv = transpose[permutation={{0, 3, 1, 2}}](w)\nc = convolution_backwards_weights[padding={{1, 1}}, lengths={{3, 3}}](u, v)\nz = transpose[permutation={{0, 2, 3, 1}}](c)\n@return(z)"
_BATCHES = "x = @param:x -> {t}{{3, {m}, {k}}}\nw = @param:w -> {t}{{{k}, {n}}}\nz = dot(x, w)\n@return(z)"


def _of_tiles(
    text: str, lengths: tuple[int, int, int], t: str, target: str, **pins: object
) -> tuple[str, str, dict[str, object]]:
    m, k, n = lengths
    return text.format(t=t, m=m, k=k, n=n), target, {"algo": "matrix", **pins}


def _of_pieces(first: int, rows: int, last: int) -> tuple[str, str, dict[str, object]]:
    text = (
        f"x = @param:x -> float{{{first}, {rows}, {last}}}\nm = reduce_max[axes={{0, 2}}](x)\ny = sub(x, m)\n@return(y)"
    )
    return text, "gfx942", {"algo": "wave"}


_PRODUCT_IN_PARTS = """
x = @param:x -> half{40, 64, 1}
w = @param:w -> half{1, 64, 200}
z = contraction[axes={1}, type=float](w, x)
@return(z)
"""
PINNED: dict[str, tuple[str, str, dict[str, object]]] = {
    "whole rows of pieces": _of_pieces(16, 4, 96),
    "some rows of pieces": _of_pieces(16, 5, 96),
    "tails of rows of pieces": _of_pieces(14, 4, 100),
    "tails of some rows of pieces": _of_pieces(14, 5, 100),
    "tiles in turn": _of_tiles(_PRODUCT, (128, 128, 128), "half", "gfx942", stages=1),
    "tiles ahead": _of_tiles(_PRODUCT, (70, 150, 40), "half", "gfx942"),
    "tiles of odd rows": _of_tiles(_SQUASHED, (33, 265, 65), "half", "gfx1100"),
    "turned tiles": _of_tiles(_TURNED, (136, 264, 130), "half", "sm_90", instruction="mma_m16n8k16_f16"),
    "tiles from registers": _of_tiles(_SQUASHED, (130, 264, 136), "half", "sm_90", instruction="mma_m16n8k16_f16"),
    "tiles of one matrix copied": _of_tiles(_PRODUCT, (128, 256, 128), "half", "sm_90", instruction="mma_m16n8k16_f16"),
    "tiles of the other matrix copied": _of_tiles(
        _PRODUCT, (66, 259, 136), "half", "sm_90", instruction="wgmma_m64n128k16_f16"
    ),
    "images of whole channels in steps of two": _of_tiles(
        _STEPS_OF_TWO, (9, 72, 72), "half", "sm_90", instruction="wgmma_m64n128k16_f16", tile=(64, 128, 64), stages=4
    ),
    "images of whole channels in steps of two by AMD": _of_tiles(_STEPS_OF_TWO, (9, 64, 72), "half", "gfx942"),
    "images of whole channels in steps of two without pads": _of_tiles(
        _STEPS_OF_TWO.replace("{{1, 1}}", "{{0, 0}}"), (9, 64, 72), "half", "gfx942"
    ),
    "gradients by images of whole channels": _of_tiles(
        _DATA, (9, 72, 72), "half", "sm_90", instruction="wgmma_m64n128k16_f16", tile=(64, 128, 64), stages=4
    ),
    "gradients by weights of whole channels": (_WEIGHTS.format(t="half", m=9, k=72, n=72), "sm_90", {}),
    "boxes of windows": _of_tiles(
        _IMAGES, (9, 64, 72), "half", "sm_90", instruction="wgmma_m64n64k16_f16", tile=(64, 64, 64)
    ),
    "boxes of windows and mirrored weights": _of_tiles(
        _MIRRORED, (9, 64, 72), "half", "sm_90", instruction="wgmma_m64n64k16_f16", tile=(64, 64, 64)
    ),
    "boxes of windows in steps of two": _of_tiles(
        _STEPS_OF_TWO, (9, 128, 72), "half", "sm_90", instruction="wgmma_m64n64k16_f16", tile=(64, 64, 64)
    ),
    "boxes of windows and turned weights": _of_tiles(
        _DATA, (9, 64, 72), "half", "sm_90", instruction="wgmma_m64n64k16_f16", tile=(64, 64, 64)
    ),
    "boxes of the places of windows": _of_tiles(
        _WEIGHTS, (9, 64, 72), "half", "sm_90", instruction="wgmma_m64n64k16_f16", tile=(64, 64, 64)
    ),
    "tiles in memory": _of_tiles(_PRODUCT, (130, 264, 136), "half", "sm_90", instruction="wgmma_m64n128k16_f16"),
    "bytes in memory": _of_tiles(_BYTES, (130, 272, 144), "int8", "sm_90", instruction="wgmma_m64n128k32_s8"),
    "turned tiles in memory": _of_tiles(_TURNED, (136, 264, 130), "bf16", "sm_90", instruction="wgmma_m64n128k16_bf16"),
    "whole tiles in memory": _of_tiles(_PRODUCT, (256, 256, 256), "half", "sm_90", instruction="wgmma_m64n128k16_f16"),
    "tiles exchanged and added to": _of_tiles(
        _ADDED, (130, 72, 128), "half", "sm_90", instruction="wgmma_m64n64k16_f16", staged=2
    ),
    "whole tiles exchanged and added to": _of_tiles(
        _ADDED, (128, 64, 128), "bf16", "sm_90", instruction="wgmma_m64n64k16_bf16", staged=2
    ),
    "wide tiles of odd rows": _of_tiles(
        _PRODUCT, (66, 72, 259), "half", "sm_90", instruction="mma_m16n8k16_f16", tile=(32, 128, 32), staged=1
    ),
    "wide tiles in parts": (
        _PRODUCT_IN_PARTS,
        "sm_90",
        {"instruction": "wgmma_m64n64k16_f16", "tile": (192, 64, 64), "staged": 1},
    ),
    "images of whole channels": _of_tiles(
        _IMAGES, (9, 72, 72), "half", "sm_90", instruction="wgmma_m64n128k16_f16", tile=(64, 128, 64)
    ),
    "images of whole channels by AMD": _of_tiles(_IMAGES, (9, 64, 72), "half", "gfx942"),
    "tiles of batches": _of_tiles(_BATCHES, (64, 72, 64), "float", "gfx942"),
    "squares of parts in steps": (_squares_of_row(310528), "sm_90", {"block_size": 64}),
    "squares of parts that end early": (_squares_of_row(310529), "sm_90", {"block_size": 1024}),
    "squares of whole parts that end early": (_squares_of_row(320001), "sm_90", {"block_size": 256}),
    "squares of whole parts that end early, in steps": (_squares_of_row(320001), "sm_90", {"block_size": 64}),
    "misaligned rows in steps": (
        "x = @param:x -> float{3, 70001}\ns = reduce_sum[axes={1}](x)\ny = sub(x, s)\n@return(y)\n",
        "gfx942",
        {"algo": "aligned"},
    ),
    "steps that load early": (softmax_program("half", (8, 9000), 1), "gfx942", {"ahead": 1}),
    **{name.replace("_", " "): (text, "sm_90", {"block_size": 128}) for name, text in ATTENTION.items()},
    **RULE_PROGRAMS,
}
"""Contractions by tiles, rows whose steps load early, and rows of pieces that lie apart: each a program, a target, and what is pinned of its schedule."""
