"""Contractions and pools that are none: the place, one sentence, and what to do."""

from __future__ import annotations

import pytest
from support import load

from genrw.grammar.diagnostics import GenrwError

X, W = "float{2, 4, 8, 8}", "float{6, 4, 3, 3}"
Y = "float{2, 6, 6, 6}"

REFUSED = [
    (
        "dot(x, y)",
        ("float{4, 5}", "float{6, 7}"),
        "the rows of x of shape {4, 5} are not as long as the columns of y of shape {6, 7}: transpose",
    ),
    ("dot(x, y)", ("float{5}", "float{5, 7}"), "a dot multiplies matrices, and x has shape {5}"),
    ("dot(x, y)", ("float{2, 4, 5}", "float{3, 5, 6}"), "batches that do not broadcast"),
    ("dot(x, y)", ("float{4, 5}", "half{5, 6}"), "takes operands of one type"),
    ("dot(x, y)", ("bool{4, 5}", "bool{5, 6}"), "number"),
    ("quant_dot(x, y)", ("int8{4, 5}", "int32{5, 6}"), "a quant_dot multiplies int8 or uint8"),
    ("quant_dot(x, y)", ("int8{4, 5}", "float{5, 6}"), "integer"),
    ("convolution[group=3](x, y)", (X, W), "do not divide into 3 groups: take a group that divides"),
    ("convolution[group=2](x, y)", (X, W), "has weights for another number of channels"),
    (
        "convolution(x, y)",
        (X, "float{6, 4, 9, 3}"),
        "are larger than x of shape {2, 4, 8, 8} with padding {0, 0}: pad it",
    ),
    ("convolution[dilation={4, 1}](x, y)", (X, W), "are larger than"),
    ("convolution[padding={1}](x, y)", (X, W), "padding {1} is not one number"),
    ("convolution[padding={-1, 0}](x, y)", (X, W), "padding {-1, 0} is not one number"),
    ("convolution[stride={0, 1}](x, y)", (X, W), "stride {0, 1} and dilation {1, 1} are not"),
    ("convolution(x, y)", (X, "float{6, 4, 3}"), "y has 3 axes and x has 4"),
    ("convolution(x, y)", ("float{4, 8}", "float{6, 8}"), "reshape it to have these"),
    ("quant_convolution(x, y)", (X, W), "integer"),
    ("quant_convolution(x, y)", (X.replace("float", "int32"), W.replace("float", "int8")), "takes int8 or uint8"),
    ("convolution_backwards_data(x, y)", (X, W), "another number of channels"),
    ("convolution_backwards_data[group=3](x, y)", (X, "float{4, 4, 3, 3}"), "do not divide into 3 groups"),
    ("convolution_backwards_data[padding={9, 9}](x, y)", (X, "float{4, 4, 3, 3}"), "takes away all"),
    ("convolution_backwards_data[output_padding={1}](x, y)", (X, "float{4, 4, 3, 3}"), "output_padding {1} is not"),
    ("convolution_backwards_weights[lengths={3, 3}, stride={2, 2}](x, y)", (X, Y), "another number of windows"),
    ("convolution_backwards_weights[lengths={3}](x, y)", (X, Y), "lengths {3} are not"),
    ("convolution_backwards_weights[lengths={3, 3}, group=4](x, y)", (X, Y), "do not divide into 4 groups"),
    ("pooling[mode=median, lengths={2, 2}](x)", (X, Y), "the mode of a pooling is max, average or lpnorm, not median"),
    ("pooling[mode=max, lengths={9, 2}](x)", (X, Y), "windows of {9, 2} with dilation {1, 1} are larger"),
    ("pooling[mode=max, lengths={2}](x)", (X, Y), "lengths {2} are not"),
    ("pooling[mode=lpnorm, lengths={2, 2}, lp_order=0](x)", (X, Y), "lp_order 0 is the order of no norm"),
    ("pooling[mode=lpnorm, lengths={2, 2}](x)", (X.replace("float", "int8"), Y), "convert it to a floating type"),
    ("pooling[lengths={2, 2}](x)", (X, Y), "needs its attribute `mode`"),
    ("global_pooling[mode=sum](x)", (X, Y), "the mode of a pooling is"),
    ("windows[axes={2}, lengths={9}](x)", (X, Y), "are larger than"),
    ("windows[axes={3, 2}, lengths={2, 2}](x)", (X, Y), "in ascending order"),
    ("windows[axes={2, 3}, lengths={2}](x)", (X, Y), "lists of one length"),
]


@pytest.mark.parametrize(("call", "types", "message"), REFUSED)
def test_what_fits_not_together_is_told(call: str, types: tuple[str, str], message: str) -> None:
    x, y = types
    with pytest.raises(GenrwError) as caught:
        load(f"x = @param:x -> {x}\ny = @param:y -> {y}\nz = {call}\n@return(z, y)\n")
    (found,) = caught.value.diagnostics
    assert message in found.render()
    assert found.span is not None
    assert found.span.line == 3
