"""The functions of the expression language, each with all that it means.

An entry says what a function computes of single values and lists, what it computes of tensors, how C++ writes it, which
function of egglog computes it, and which formula the prover takes for it. Where one of these is missing, the entry says
why. The checks of rules read what they may assume from here, too. A function is added as one entry.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from genrw.engine.ir import dtypes
from genrw.engine.language import shapes, values
from genrw.engine.language.functions import Function, bounded, declare, weighed
from genrw.engine.language.meaning import ANY, NUMBERS, REALS, InCpp, OfTensors, Without, primitive
from genrw.grammar.expr_tree import Call, Expr, IfElse


@dataclass(frozen=True)
class Builtin:
    """One function with its meanings."""

    name: str
    value: Function | Without
    tensors: OfTensors | Without
    cpp: InCpp | Without
    egglog: Callable[..., Any] | Without
    formula: Callable[..., Any] | Without
    """Takes the algebra of formulas and the arguments, two of them where it may be given more."""

    def arity(self) -> tuple[int, bool]:
        """How many arguments C++ writes it with, and whether more may follow."""
        meaning = self.tensors if isinstance(self.tensors, OfTensors) else self.value
        assert not isinstance(meaning, Without), "a function of neither values nor tensors"
        return _arity(meaning.signature)


@cache
def _arity(signature: str) -> tuple[int, bool]:
    function = declare(signature, len, "")
    return len(function.parameters), function.variadic


def _without(**reasons: str) -> Callable[..., Builtin]:
    """A maker of entries that lack the same meanings for the same reasons."""

    def entry(
        signature: str, implementation: Callable[..., Any] | None = None, doc: str = "", facts: str = "", **given: Any
    ) -> Builtin:
        """A function; `signature` is its name where it has no value. The first line of a docstring serves as `doc`."""
        meanings: dict[str, Any] = {meaning: Without(why) for meaning, why in reasons.items()} | given
        if implementation is not None:
            doc = doc or (implementation.__doc__ or "").strip().split("\n")[0]
            meanings["value"] = declare(signature, implementation, doc, facts)
        return Builtin(signature.partition("(")[0], **meanings)

    return entry


_NO_TERM = "no term of egglog stands for such values"
_NO_FORMULA = "formulas speak of integers and truth values"
_ASKED = "a guard that calls it is answered outside of egglog"
_UNUSED = "no rule over indices calls it, and what is no formula is tried on many integers"
_HEADER = "the device header has no such function"
_KNOWN = "kernels know it when they are printed: rules compute it in attributes"


# ---- lists

_list = _without(tensors="lists hold what attributes say", cpp=_KNOWN, egglog=_NO_TERM, formula=_NO_FORMULA)

# fmt: off
_LISTS = (
    _list("len(xs: list) -> int", len, "The number of elements of a list.", "never_negative"),
    _list("range(start: int, stop: int?, step: int?) -> ints", values.range_),
    _list("concat(xs: list...) -> list", values.concat, tensors=OfTensors("concat(axis: int, xs: any...) -> any",
        "Tensors, or a list of them, joined along an axis.", "own", "concat")),
    _list("zip(xs: list...) -> lists", values.zip_),
    _list("enumerate(xs: list) -> lists", lambda xs: weighed(tuple(enumerate(xs))), "Pairs [index, element]."),
    _list("sorted(xs: list) -> list", values.sorted_),
    _list("argsort(xs: numbers) -> ints", values.argsort),
    _list("reversed(xs: list) -> list", lambda xs: xs[::-1], "The elements from the last to the first."),
    _list("union(xs: list...) -> list", values.union),
    _list("find(xs: list, v: any) -> int", values.find),
    _list("count(xs: list, v: any) -> int", tuple.count, "How many elements equal v.", "never_negative"),
    _list("replace(xs: list, i: int, v: any) -> list", values.replace),
    _list("insert(xs: list, i: int, v: any) -> list", values.insert),
    _list("remove(xs: list, i: int) -> list", values.remove),
    _list("take_axes(xs: list, axes: ints) -> list", values.take_axes),
    _list("drop_axes(xs: list, axes: ints) -> list", values.drop_axes),
    _list("is_permutation(xs: ints) -> bool", values.is_permutation),
    _list("permute(xs: list, perm: ints) -> list", values.permute),
    _list("inverse(perm: ints) -> ints", values.inverse),
)
# fmt: on


# ---- numbers


def _elementwise(name: str, arguments: str, kinds: str, compute: str, doc: str) -> OfTensors:
    parameters = ", ".join(f"{argument}: any" for argument in arguments.split())
    return OfTensors(f"{name}({parameters}) -> any", doc, "elementwise", compute, kinds)


def _in_header(
    name: str, count: int, *, any_kind: bool = False, is_test: bool = False, branches: bool = False
) -> InCpp:
    """A call of the header's function of the same name, of floats only or of elements of any kind."""
    call = f"gen::{name}({', '.join(f'{{{i}}}' for i in range(count))})"
    others = (call, call) if any_kind else ("", "")
    return InCpp(call, *others, is_test=is_test, branches=branches)


def _of_named(text: str, names: int) -> InCpp:
    return InCpp(text, text, text, names=names)


def _extreme(name: str, pick: Callable[..., Any], doc: str, compute: str, formula: Callable[..., Any]) -> Builtin:
    return _number(
        f"{name}(x: any, more: any...) -> any",
        partial(values.extreme, pick, name),
        f"{doc} of two or more values, or of one list.",
        "selects",
        tensors=OfTensors(
            f"{name}(x: any, more: any...) -> any",
            f"{doc} of two or more values; nan if one of them is nan.",
            "folding",
            compute,
            ANY,
        ),
        cpp=_in_header(name, 2, any_kind=True),
        egglog=primitive(name),
        formula=formula,
    )


def _clamped(call: Call) -> Expr:
    x, low, high = call.args
    return Call("min", (Call("max", (x, low), span=call.span), high), span=call.span)


_number = _without(tensors="rules compute it in attributes", cpp=_KNOWN, egglog=_ASKED, formula=_UNUSED)
_whole_list = _without(
    tensors="a tensor's own elements are reduced by an operator", cpp=_KNOWN, egglog=_NO_TERM, formula=_NO_FORMULA
)

# fmt: off
_NUMBERS = (
    _extreme("min", min, "The lowest", "minimum", lambda logic, a, b: logic.If(a <= b, a, b)),
    _extreme("max", max, "The highest", "maximum", lambda logic, a, b: logic.If(a >= b, a, b)),
    _whole_list("sum(xs: numbers) -> number", lambda xs: bounded(sum(xs)),
        "The sum of a list of numbers; 0 for the empty list."),
    _whole_list("product(xs: numbers) -> number", values.product),
    _whole_list("dot(a: numbers, b: numbers) -> number", values.dot),
    _whole_list("cumsum(xs: numbers) -> numbers", values.cumsum),
    _whole_list("cumprod(xs: numbers) -> numbers", values.cumprod),
    _whole_list("any(xs: bools) -> bool", any, "Whether at least one element is true."),
    _whole_list("all(xs: bools) -> bool", all, "Whether every element is true."),
    _number("abs(x: number) -> number", abs, "The value without its sign.", cpp=_in_header("abs", 1, any_kind=True),
        tensors=_elementwise("abs", "x", NUMBERS, "abs", "The value without its sign; of the lowest integer, itself.")),
    _number("identical(a: any, b: any) -> bool", lambda a, b: repr(a) == repr(b),
        "Whether two values are the same down to their kinds and the sign of 0; nan is identical to nan.",
        formula=Without(_NO_FORMULA)),
    _number("sign(x: number) -> int", lambda x: int(x > 0) - int(x < 0), "-1, 0 or 1.",
        tensors=_elementwise("sign", "x", NUMBERS, "sign", "-1, 0 or 1; nan of nan."), cpp=InCpp(printed_by="sign")),
    _number("clamp(x: number, low: number, high: number) -> number", lambda x, low, high: min(max(x, low), high),
        "x, but no less than low and no more than high.", cpp=InCpp(written_as=_clamped),
        tensors=_elementwise("clamp", "x low high", NUMBERS, "clamp", "x, but no less than low nor more than high.")),
    _number("gcd(a: int, more: int...) -> int", math.gcd, "The greatest common divisor; gcd(0, n) is n."),
    _number("lcm(a: int, more: int...) -> int", values.lcm),
    _number("ceil_div(a: int, b: int) -> int", lambda a, b: -(-a // b), "a / b rounded up."),
    _number("round_up(a: int, b: int) -> int", lambda a, b: bounded(-(-a // b) * b),
        "The next multiple of b that is not below a."),
    _number("divides(a: int, b: int) -> bool", lambda a, b: b == 0 if a == 0 else b % a == 0,
        "Whether b is a multiple of a; 0 divides only 0."),
    _number("largest_divisor(n: int, limit: int) -> int", values.largest_divisor),
    _number("is_pow2(n: int) -> bool", lambda n: n > 0 and n & (n - 1) == 0, "Whether n is a power of two.",
        formula=lambda logic, n: logic.Or(*(n == 1 << i for i in range(31)))),
    _number("log2(n: int) -> int", values.log2,
        tensors=_elementwise("log2", "x", REALS, "log2", "The binary logarithm."), cpp=_in_header("log2", 1)),
    _number("pow2_floor(n: int) -> int", values.pow2_floor),
    _number("pow2_ceil(n: int) -> int", lambda n: bounded(1 << values.log2(max(n, 1))),
        "The smallest power of two that is not below n."),
    _number("pow2_divisor(n: int) -> int", lambda n: n & -n if n else 1 << 62,
        "The largest power of two that divides n; 2^62 for 0, which all divide."),
)
# fmt: on


# ---- real functions

_real = _without(
    value="of numbers alone it is what it is of tensors, and attributes need none", egglog=_NO_TERM, formula=_NO_FORMULA
)


def _of_real(
    name: str, doc: str, compute: str = "", value: Callable[[Any], float] | None = None, branches: bool = False
) -> Builtin:
    """A real function of one number."""
    return _real(
        f"{name}(x: number) -> number",
        value and partial(values.real, name, value),
        doc,
        tensors=_elementwise(name, "x", REALS, compute or name, doc),
        cpp=_in_header(name, 1, branches=branches),
    )


def _rounding(name: str, doc: str, value: Callable[[Any], int], of_value: str) -> Builtin:
    """A function that gives whole numbers: it leaves integers alone."""
    cpp = InCpp(f"gen::{name}({{0}})", "{0}", "{0}")
    tensors = _elementwise(name, "x", NUMBERS, name, doc)
    return _real(f"{name}(x: number) -> int", partial(values.whole, name, value), of_value, tensors=tensors, cpp=cpp)


def _test(name: str, doc: str, cpp: InCpp) -> Builtin:
    tensors = OfTensors(f"{name}(x: any) -> any", doc, "test", name)
    return _real(name, tensors=tensors, cpp=cpp)


# fmt: off
_REALS = (
    _rounding("floor", "The largest whole number that is not above x.", math.floor,
        "The largest integer that is not above x."),
    _rounding("ceil", "The smallest whole number that is not below x.", math.ceil,
        "The smallest integer that is not below x."),
    _rounding("trunc", "x without its fraction.", math.trunc, "x without its fraction."),
    _rounding("round", "The nearest whole number; halves go to the even one.", round,
        "The nearest integer; halves go to the even one."),
    _of_real("sqrt", "The square root.", value=math.sqrt, branches=True),
    _of_real("exp", "e to the power x.", value=math.exp),
    _of_real("log", "The natural logarithm.", value=math.log),
    _of_real("rsqrt", "1 over the square root."),
    _of_real("exp2", "2 to the power x."),
    _of_real("expm1", "exp(x) - 1, exact near 0."),
    _of_real("log1p", "log(1 + x), exact near 0."),
    _of_real("sin", "The sine.", branches=True),
    _of_real("cos", "The cosine.", branches=True),
    _of_real("tan", "The tangent.", branches=True),
    _of_real("asin", "The inverse sine.", "arcsin"),
    _of_real("acos", "The inverse cosine.", "arccos"),
    _of_real("atan", "The inverse tangent.", "arctan"),
    _of_real("sinh", "The hyperbolic sine."),
    _of_real("cosh", "The hyperbolic cosine."),
    _of_real("tanh", "The hyperbolic tangent."),
    _of_real("asinh", "The inverse hyperbolic sine.", "arcsinh"),
    _of_real("acosh", "The inverse hyperbolic cosine.", "arccosh"),
    _of_real("atanh", "The inverse hyperbolic tangent.", "arctanh"),
    _of_real("erf", "The error function."),
    _real("erfc", tensors=_elementwise("erfc", "x", REALS, "erfc", "What the error function leaves of 1, where that is little, too."),
        cpp=Without(_HEADER)),
    _real("cbrt", tensors=_elementwise("cbrt", "x", REALS, "cbrt", "The cube root."), cpp=Without(_HEADER)),
    _real("log10", tensors=_elementwise("log10", "x", REALS, "log10", "The decimal logarithm."),
        cpp=Without(_HEADER)),
    _test("isnan", "Whether x is nan.", _in_header("isnan", 1, any_kind=True, is_test=True)),
    _test("isinf", "Whether x is inf or -inf.", _in_header("isinf", 1, any_kind=True, is_test=True)),
    _test("isfinite", "Whether x is neither nan nor infinite.",
        InCpp("gen::abs({0}) < gen::infinity<{type}>()", "true", "true", "compare", is_test=True)),
    _real("pow", tensors=OfTensors("pow(x: any, y: any) -> any", "x to the power y.", "operator", "**"),
        cpp=_in_header("pow", 2, branches=True)),
    _real("fmod", tensors=_elementwise("fmod", "x y", NUMBERS, "truncating_modulo",
        "The remainder of the division rounded towards 0: it has the sign of x."),
        cpp=InCpp("gen::trunc_mod({0}, {1})", "gen::trunc_mod<{type}, {type}>({0}, {1})", branches=True)),
    _real("atan2", tensors=_elementwise("atan2", "y x", REALS, "arctan2", "The angle of (x, y)."),
        cpp=Without(_HEADER)),
    _real("fma", tensors=_elementwise("fma", "a b c", NUMBERS, "fma", "a * b + c, rounded once."),
        cpp=_in_header("fma", 3)),
    _real("where", cpp=InCpp(written_as=lambda call: IfElse(*call.args, span=call.span)), tensors=OfTensors(
        "where(condition: any, a: any, b: any) -> any", "a where the condition holds, else b.", "own", "where")),
)
# fmt: on


# ---- element types

_type = _without(tensors="it is asked about a type, not about elements", cpp=_KNOWN, egglog=_ASKED, formula=_NO_FORMULA)


def _of_type(name: str, kind: str, member: str, doc: str, facts: str = "", **given: Any) -> Builtin:
    """What a type is asked for."""
    return _type(f"{name}(dtype: dtype) -> {kind}", lambda d: getattr(dtypes.DTYPES[d], member), doc, facts, **given)


# fmt: off
_TYPES = (
    _of_type("itemsize", "int", "itemsize", "Bytes of one element.", "never_negative"),
    _of_type("lowest", "number", "lowest", "The least value of a type: -inf for floats; the identity of max.",
        cpp=_of_named("gen::lowest<{type}>()", 0)),
    _of_type("highest", "number", "highest", "The greatest value of a type: inf for floats; the identity of min.",
        cpp=_of_named("gen::highest<{type}>()", 0)),
    _of_type("smallest", "number", "smallest", "The least finite value of a type."),
    _of_type("largest", "number", "largest", "The greatest finite value of a type."),
    _of_type("epsilon", "number", "epsilon", "The gap between 1 and the next value; 0 for exact types."),
    _of_type("is_float", "bool", "is_float", "Whether a type is a floating one."),
    _of_type("is_integer", "bool", "is_integer", "Whether a type is an integer one; bool is not."),
    _of_type("is_signed", "bool", "is_signed", "Whether a type has negative values."),
    _of_type("compute_type", "dtype", "compute",
        "The type arithmetic on a type is done in: float for half and bf16."),
    _type("promote(a: dtype, b: dtype) -> dtype", dtypes.promote, "The type two types meet in."),
    _type("holds(wide: dtype, narrow: dtype) -> bool", dtypes.holds),
    _type("element_value(value: number, dtype: dtype) -> number", dtypes.in_range,
        "A number as an element: beyond the type's limits it becomes those, infinities of floats stay."),
    _type("is_element(value: any, dtype: dtype) -> bool",
        lambda value, dtype: all(dtypes.is_element(v, dtype) for v in (value if isinstance(value, tuple) else (value,))),
        "Whether a constant, a number or a list of them, holds elements of a type: of an integer one, what is in range."),
    _type("converted(value: number, source: dtype, target: dtype) -> number", dtypes.converted,
        "A constant of one type converted to another."),
    _type("is_constant(value: any, number: any, dtype: dtype) -> bool",
        lambda value, number, dtype: not isinstance(value, tuple) and dtypes.is_constant(value, number, dtype),
        "Whether a constant of a type is a number: rounded to it, or to a narrower type that was widened."),
    _type("has_reciprocal(value: number, dtype: dtype) -> bool", dtypes.has_reciprocal,
        "Whether 1 / value is exact in a floating type, so that dividing by value is multiplying by that."),
)
# fmt: on


# ---- texts

_text = _without(tensors="tensors hold no texts", cpp=_KNOWN, egglog=_NO_TERM, formula=_NO_FORMULA)

# fmt: off
_TEXTS = (
    _text("split(text: string, separator: string) -> list", values.split),
    _text("letters(text: string) -> list", values.letters),
)
# fmt: on


# ---- shapes

_shape = _without(
    tensors="it is asked about a shape, not about elements", cpp=_KNOWN, egglog=_NO_TERM, formula=_NO_FORMULA
)

# fmt: off
_SHAPES = (
    _shape("normalise_axis(axis: int, rank: int) -> int", shapes.normalise_axis),
    _shape("normalise_axes(axes: ints, rank: int) -> ints", shapes.normalise_axes),
    _shape("strides_of(lens: ints) -> ints", shapes.strides_of),
    _shape("ravel(index: ints, lens: ints) -> int", shapes.ravel),
    _shape("unravel(index: int, lens: ints) -> ints", shapes.unravel),
    _shape("broadcast_lens(a: ints, more: ints...) -> ints", shapes.broadcast_lens),
    _shape("broadcasts_to(lens: ints, out_lens: ints) -> bool", shapes.broadcasts_to),
    _shape("reduce_lens(lens: ints, axes: ints) -> ints", shapes.reduce_lens),
    _shape("pad_lens(lens: ints, pads: ints) -> ints", shapes.pad_lens),
    _shape("gather_lens(lens: ints, indices_lens: ints, axis: int) -> ints", shapes.gather_lens),
    _shape("slice_lens(lens: ints, axes: ints, starts: ints, ends: ints, steps: ints?) -> ints", shapes.slice_lens),
    _shape("slice_starts(lens: ints, axes: ints, starts: ints, ends: ints, steps: ints?) -> ints",
        shapes.slice_starts),
    _shape("concat_lens(axis: int, shapes: lists) -> ints", shapes.concat_lens),
    _shape("reshape_lens(lens: ints, dims: ints) -> ints", shapes.reshape_lens),
    _shape("squeeze_lens(lens: ints, axes: ints?) -> ints", shapes.squeeze_lens),
    _shape("unsqueeze_lens(lens: ints, axes: ints) -> ints", shapes.unsqueeze_lens),
)
# fmt: on


# ---- tensors

_tensor = _without(
    value="there are no tensors in attributes and guards",
    cpp="it moves whole tensors: rules turn it into indices",
    egglog=_NO_TERM,
    formula=_NO_FORMULA,
)


def _moving(signature: str, doc: str, compute: str = "", form: str = "moving", **given: Any) -> Builtin:
    """A function of whole tensors, computed by the function of `tensors` of that name if it only moves elements."""
    name = signature.partition("(")[0]
    return _tensor(name, tensors=OfTensors(signature, doc, form, compute or name), **given)


# fmt: off
_TENSORS = (
    _moving("pad(x: any, pads: ints, mode: string?, value: any?) -> any",
        "Elements put around a tensor: pads is befores, then afters; mode constant, edge or reflect.", form="own"),
    _moving("take(x: any, indices: any, axis: int?) -> any",
        "Elements at indices along an axis; negative indices count from the end.", form="own"),
    _moving("flip(x: any, axes: ints) -> any", "The axes turned around."),
    _moving("slice(x: any, axes: ints, starts: ints, ends: ints, steps: ints?) -> any",
        "A part of a tensor; negative starts and ends count from the end, all are clamped.", "slice_"),
    _moving("windows(x: any, axes: ints, lengths: ints, strides: ints?, dilations: ints?) -> any",
        "The windows over some axes; the places in a window are axes of their own before the first of these."),
    _moving("sum_of_products(x: any, y: any, axes: ints) -> any",
        "The products of two tensors, summed along axes, which stay with length 1.", form="own"),
    _moving("transpose(x: any, perm: ints) -> any", "Axis i is the operand's axis perm[i]."),
    _moving("broadcast_to(x: any, lens: ints) -> any", "Repeated to fill a shape."),
    _moving("broadcast_axis(x: any, axis: int, out_lens: ints) -> any",
        "Repeated over all axes but its own, which begin at an axis."),
    _moving("reshape(x: any, dims: ints) -> any", "The same elements in another shape."),
    _moving("squeeze(x: any, axes: ints?) -> any", "Without axes of extent 1."),
    _moving("unsqueeze(x: any, axes: ints) -> any", "With axes of extent 1 put in."),
    _moving("convert(x: any, dtype: dtype) -> any",
        "x as another type: floats to integers truncate and saturate, integers wrap, floats round.", form="making",
        cpp=_of_named("gen::convert<{type}>({0})", 1)),
    _moving("bits(x: any, dtype: dtype) -> any", "What x's bits are as another type of as many bytes.", form="making"),
    _moving("iota(lens: ints, axis: int, dtype: dtype?) -> any",
        "Each element's index along an axis, int64 unless a type is given.", form="making"),
    _moving("full(lens: ints, value: any, dtype: dtype) -> any", "A tensor of one value.", form="making"),
)
# fmt: on


BUILTINS: dict[str, Builtin] = {
    b.name: b for section in (_LISTS, _NUMBERS, _REALS, _TYPES, _TEXTS, _SHAPES, _TENSORS) for b in section
}
"""Every function of the language by its name."""

FUNCTIONS: dict[str, Function] = {name: b.value for name, b in BUILTINS.items() if isinstance(b.value, Function)}
"""Those of single values and lists: what attributes, guards and types may call."""


def facts(function: str) -> frozenset[str]:
    """What checks may assume of a function."""
    return FUNCTIONS[function].facts if function in FUNCTIONS else frozenset()
