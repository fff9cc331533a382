"""Programs with products of matrices, convolutions and pools: texts by name, one kernel each."""

from __future__ import annotations

CONTRACTIONS = {
    "dot": """
        x = @param:x -> float{17, 33}
        y = @param:y -> float{33, 31}
        z = dot(x, y)
        @return(z)""",
    "dot_with_epilogue": """
        x = @param:x -> half{2, 1, 15, 16}
        y = @param:y -> half{3, 16, 40}
        b = @param:b -> half{40}
        d = dot(x, y)
        a = add(d, b)
        z = relu(a)
        @return(z)""",
    "dot_of_rows": """
        x = @param:x -> bf16{2, 7, 64}
        y = @param:y -> bf16{16, 64}
        t = transpose[permutation={1, 0}](y)
        z = dot(x, t)
        @return(z)""",
    "dot_of_columns": """
        x = @param:x -> double{32, 7}
        y = @param:y -> double{32, 15}
        t = transpose[permutation={1, 0}](x)
        z = dot(t, y)
        @return(z)""",
    "dots_of_other_transposes": """
        x = @param:x -> float{7, 2, 3, 8}
        y = @param:y -> float{5, 2, 3, 8}
        q = transpose[permutation={1, 2, 0, 3}](x)
        k = transpose[permutation={1, 2, 3, 0}](y)
        z = dot(q, k)
        @return(z)""",
    "dot_of_integers": """
        x = @param:x -> int32{5, 9}
        y = @param:y -> int32{9, 6}
        z = dot(x, y)
        @return(z)""",
    "product_of_repeated_halves": """
        x = @param:x -> half{17, 33, 1}
        y = @param:y -> half{1, 33, 31}
        a = multibroadcast[out_lens={17, 33, 31}](x)
        b = multibroadcast[out_lens={17, 33, 31}](y)
        m = mul(a, b)
        z = reduce_sum[axes={1}](m)
        @return(z)""",
    "product_of_repeated_bytes_and_numbers": """
        x = @param:x -> int8{17, 33, 1}
        y = @param:y -> float{1, 33, 31}
        a = multibroadcast[out_lens={17, 33, 31}](x)
        b = multibroadcast[out_lens={17, 33, 31}](y)
        c = convert[target_type=float](a)
        m = mul(c, b)
        z = reduce_sum[axes={1}](m)
        @return(z)""",
    "dot_of_nothing": """
        x = @param:x -> float{5, 0}
        y = @param:y -> float{0, 6}
        z = dot(x, y)
        @return(z)""",
    "quant_dot": """
        x = @param:x -> int8{7, 64}
        y = @param:y -> uint8{64, 17}
        z = quant_dot(x, y)
        @return(z)""",
    "quant_dot_of_nothing": """
        x = @param:x -> int8{5, 0}
        y = @param:y -> int8{0, 6}
        z = quant_dot(x, y)
        @return(z)""",
    "convolution_of_channels_last": """
        x = @param:x -> half{2, 9, 8, 7}
        w = @param:w -> half{5, 3, 3, 7}
        b = @param:b -> half{5, 1, 1}
        u = transpose[permutation={0, 3, 1, 2}](x)
        v = transpose[permutation={0, 3, 1, 2}](w)
        c = convolution[padding={1, 1}](u, v)
        a = sub(b, c)
        m = mul(a, b)
        r = relu(m)
        z = transpose[permutation={0, 2, 3, 1}](r)
        @return(z)""",
    "convolution_of_turned_images": """
        x = @param:x -> float{2, 3, 9, 8}
        w = @param:w -> float{5, 3, 3, 2}
        u = transpose[permutation={0, 1, 3, 2}](x)
        z = convolution[stride={2, 1}](u, w)
        @return(z)""",
    "gradient_by_images_of_channels_last": """
        x = @param:x -> half{2, 4, 3, 7}
        w = @param:w -> half{7, 2, 2, 5}
        u = transpose[permutation={0, 3, 1, 2}](x)
        v = transpose[permutation={0, 3, 1, 2}](w)
        c = convolution_backwards_data[stride={2, 2}](u, v)
        z = transpose[permutation={0, 2, 3, 1}](c)
        @return(z)""",
    "gradient_by_images_between_zeros": """
        x = @param:x -> half{2, 6, 3, 5}
        w = @param:w -> half{6, 4, 1, 1}
        z = convolution_backwards_data[stride={2, 3}, group=2, output_padding={1, 0}](x, w)
        @return(z)""",
    "gradient_by_images_between_zeros_of_channels_last": """
        x = @param:x -> half{2, 3, 5, 8}
        w = @param:w -> half{8, 6, 1, 1}
        u = transpose[permutation={0, 3, 1, 2}](x)
        c = convolution_backwards_data[stride={2, 2}](u, w)
        z = transpose[permutation={0, 2, 3, 1}](c)
        @return(z)""",
    "gradient_by_weights_of_lone_channels_last": """
        x = @param:x -> half{2, 9, 8, 4}
        y = @param:y -> half{2, 9, 8, 8}
        u = transpose[permutation={0, 3, 1, 2}](x)
        v = transpose[permutation={0, 3, 1, 2}](y)
        z = convolution_backwards_weights[lengths={3, 3}, padding={1, 1}, group=4](u, v)
        @return(z)""",
    "gradient_by_weights_of_turned_images": """
        x = @param:x -> half{2, 7, 9, 8}
        y = @param:y -> half{2, 5, 9, 8}
        u = transpose[permutation={0, 1, 3, 2}](x)
        v = transpose[permutation={0, 1, 3, 2}](y)
        z = convolution_backwards_weights[lengths={3, 3}, padding={1, 1}](u, v)
        @return(z)""",
    "convolution": """
        x = @param:x -> half{2, 7, 9, 8}
        w = @param:w -> half{5, 7, 3, 3}
        b = @param:b -> half{5}
        z = convolution[padding={1, 1}](x, w)
        c = broadcast[axis=1, out_lens={2, 5, 9, 8}](b)
        a = add(z, c)
        r = relu(a)
        @return(r)""",
    "convolution_by_pixels": """
        x = @param:x -> float{2, 7, 9, 8}
        w = @param:w -> float{16, 7, 1, 1}
        z = convolution[stride={2, 2}](x, w)
        @return(z)""",
    "convolution_by_channels": """
        x = @param:x -> float{1, 8, 15, 16}
        w = @param:w -> float{8, 1, 3, 5}
        z = convolution[padding={2, 0, 1, 3}, stride={2, 3}, dilation={1, 2}, group=8](x, w)
        @return(z)""",
    "convolution_of_rows": """
        x = @param:x -> int32{2, 6, 65}
        w = @param:w -> int32{4, 3, 7}
        z = convolution[padding={3}, group=2](x, w)
        @return(z)""",
    "convolution_of_volumes": """
        x = @param:x -> bf16{1, 2, 5, 6, 7}
        w = @param:w -> bf16{3, 2, 2, 3, 2}
        z = convolution[dilation={1, 2, 1}](x, w)
        @return(z)""",
    "convolution_of_no_channels": """
        x = @param:x -> float{2, 0, 5, 5}
        w = @param:w -> float{3, 0, 3, 3}
        z = convolution(x, w)
        @return(z)""",
    "quant_convolution": """
        x = @param:x -> uint8{1, 8, 7, 9}
        w = @param:w -> int8{4, 8, 3, 3}
        z = quant_convolution[padding={1, 1}](x, w)
        @return(z)""",
    "convolution_backwards_in_phases": """
        x = @param:x -> half{2, 4, 7, 7}
        w = @param:w -> half{4, 3, 3, 3}
        z = convolution_backwards_data[padding={1, 1}, stride={2, 2}, output_padding={1, 1}](x, w)
        @return(z)""",
    "convolution_backwards_spread": """
        x = @param:x -> float{2, 4, 7, 5}
        w = @param:w -> float{4, 3, 3, 2}
        z = convolution_backwards_data[padding={1, 0}, stride={2, 3}, dilation={2, 1}, group=2](x, w)
        @return(z)""",
    "convolution_backwards_to_weights": """
        x = @param:x -> float{2, 4, 9, 8}
        y = @param:y -> float{2, 6, 5, 4}
        z = convolution_backwards_weights[lengths={3, 2}, padding={1, 0}, stride={2, 2}, group=2](x, y)
        @return(z)""",
    "pooling_max": """
        x = @param:x -> half{2, 3, 15, 16}
        z = pooling[mode=max, lengths={3, 3}, padding={1, 1}, stride={2, 2}](x)
        @return(z)""",
    "pooling_max_of_integers": """
        x = @param:x -> int8{2, 3, 33}
        z = pooling[mode=max, lengths={3}, padding={1}, dilation={2}, ceil_mode=true, stride={2}](x)
        @return(z)""",
    "pooling_average": """
        x = @param:x -> half{2, 3, 9, 8}
        z = pooling[mode=average, lengths={3, 2}, stride={3, 2}](x)
        @return(z)""",
    "pooling_average_of_uneven_windows": """
        x = @param:x -> float{2, 3, 9, 8}
        z = pooling[mode=average, lengths={3, 3}, padding={1, 1}, stride={2, 2}, ceil_mode=true](x)
        y = pooling[mode=average, lengths={3, 3}, padding={1, 1}, stride={2, 2}, ceil_mode=true, count_include_pad=true](x)
        @return(z, y)""",
    "pooling_norms": """
        x = @param:x -> float{2, 3, 9, 8}
        a = pooling[mode=lpnorm, lengths={3, 3}, lp_order=1](x)
        b = pooling[mode=lpnorm, lengths={3, 3}](x)
        c = pooling[mode=lpnorm, lengths={3, 3}, lp_order=3](x)
        @return(a, b, c)""",
    "global_pooling": """
        x = @param:x -> bf16{2, 5, 7, 9}
        z = global_pooling[mode=average](x)
        @return(z)""",
}
