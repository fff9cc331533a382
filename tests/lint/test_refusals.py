"""What lowering would refuse, told by `check` at the author's line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from genrw.authoring.rulesets import load_library, unchecked_library
from genrw.engine.lint.check import lint
from genrw.engine.lowering.options import Options
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.source import Source
from genrw.program import Program

RULE = "stage simplify\n\nrule mine\n  {}\n"
OP = "op mine(x: T) -> T where T: real\n  role pointwise\n  {}\n"
FIELD = "monoid mine where T: real\n  carry s: T\n  element s = x\n  identity s = 0\n  combine s = {}\n  finish s\n"
TARGET = "target mine : gfx942\n  {}\n"
BARE = 'target mine\n  device "hip"\n  wave_size 64\n'
INSTRUCTION = """instruction mine_mma
  shape [16, 8, 16]
  lanes 32
  memory 0
  operand "half"
  sum "float"
  left [[[8, 1, 0], [4, 0, 2]], [[2, 0, 8], [2, 8, 0], [2, 0, 1]]]
  right [[[8, 1, 0], [4, 0, 2]], [[2, 0, 8], [2, 0, 1]]]
  result [[[8, 1, 0], [4, 0, 2]], [[2, 8, 0], [2, 0, 1]]]
"""
MULTIPLIES = INSTRUCTION + "  rate 2600\n  multiply {}\n"
TENSORS = "op mine[n: ints{}](x: T tensor, y: T tensor{}) -> tensor(T, {}) where T: real\n  {}\n"
IMPORT = "dialect mine\nimport Mine[n: ints](x, ys...)\n  {}\n  => exp(x)\n"


def tensors(default: str = "", more: str = "", lens: str = "x.lens", clauses: str = "means x") -> str:
    """An operator on two tensors with some parts of its declaration."""
    return TENSORS.format(default, more, lens, clauses)


REFUSED = {
    "an operand that has no name": (RULE.format("tanh(tanh(x))\n  => tanh(y)"), "y", "is not bound by the left side"),
    "a name as a pattern": (RULE.format("x\n  => tanh(x)"), "x", "which matches everything"),
    "an operand too many": (RULE.format("tanh(x)\n  => tanh(x, x)"), "tanh(x, x)", "takes 1 operand, not 2"),
    "an input that is none": ("dialect mine\nimport Mine(x)\n  => exp(y)\n", "y", "`y` is no input"),
    "a field that is none": (FIELD.format("a.s + b.q"), "b.q", "there is no `b.q`"),
    "attributes copied from nothing": (RULE.format('tanh(tanh(x))\n  => pad[mode="edge", ..](x)'), "pad", "has none"),
    "a default that follows from what has no name": (
        "stage final\n\nrule mine\n  vector_store[stride, vector](z, i, fma(a, b, c))\n"
        "  => vector_store[stride, vector, size=3](z, i, a)\n",
        "vector_store",
        "has no name here",
    ),
    "a text for an attribute that is a number": (
        RULE.format('tanh(tanh(x))\n  => slice[axes=[0], starts=[0], ends=[1], steps=["a"]](x)'),
        'steps=["a"]',
        "is a list of whole numbers",
    ),
    "a default of another kind": (
        "op mine[n: int = 1.5](x: T) -> T where T: real\n  role pointwise\n  means x * n\n",
        "n: int = 1.5",
        "is a whole number",
    ),
    "a member of a family that is none": (
        RULE.format("tanh(tanh(x))\n  => reduce_{sume}[axes=[0]](x)"),
        "reduce_{sume}",
        "`sume` is no monoid, and the left side does not bind it",
    ),
    "the schedule before there is one": (
        RULE.format('tanh(tanh(x)) when schedule.algo == "wave"\n  => x'),
        "schedule",
        "`simplify` does not know the schedule",
    ),
    "the schedule where it is chosen": (
        'stage schedule\n\nrule mine\n  return(xs...)\n  => scheduled[algo="mine", block_size=n, lanes=1, vector=1,'
        " share=1, steps=1](xs...)\n  with n = schedule.block_size\n",
        "schedule",
        "`schedule` does not know the schedule",
    ),
    "the space before there is one": (
        RULE.format("tanh(tanh(x))\n  => mul(x, {space.rows})"),
        "space",
        "`simplify` does not know the space",
    ),
    "elements of no operand": ("op mine() -> float\n  role pointwise\n  means 7.0\n", "mine", "and has none"),
    "elements of a type alone": (
        "op mine[to: dtype]() -> to\n  role pointwise\n  at nowhere\n  means 7.0\n",
        "mine",
        "and has none",
    ),
    "an operator without a role": ("op mine(x: T) -> T where T: real\n  means x + x\n", "mine", "no role"),
    "a meaning that has no C++": (OP.format("means flip(x, [0])"), "flip(x, [0])", "cannot be printed"),
    "a meaning that is a text": (OP.format('means "word"'), '"word"', "cannot be printed"),
    "a meaning that has C++ for some types only": (
        "op mine(x: T) -> T\n  role pointwise\n  means sqrt(x)\n",
        "sqrt(x)",
        "`sqrt` of bool",
    ),
    "a type that no operand has": (
        "op mine(x: U) -> T where T: real\n  role pointwise\n  means x\n",
        "mine",
        "no operand of `mine` is of type `T`",
    ),
    "a requirement that is a number": (
        OP.format('means x\n  requires 1 + 1 "two"'),
        "1 + 1",
        "is a number, not a condition",
    ),
    "a domain that is a number": (OP.format("means x\n  domain x + 1"), "x + 1", "is a number, not a condition"),
    "a monoid's domain that is a number": (
        "monoid mine\n  identity 0\n  combine a + b\n  domain x + 1\n",
        "x + 1",
        "is a number, not a condition",
    ),
    "a name with what is no attribute": (OP.format('means x\n  called "of_{y}"'), "mine", "`called` names `y`"),
    "a text with a member of an operand": (OP.format('means x\n  emit "f({{x.lots}})"'), "mine", "no member `lots`"),
    "a text that binds less tightly than a call": (
        OP.format('means x\n  emit "{{x}} + 0"'),
        "mine",
        "not bind as tightly as a call",
    ),
    "a text that binds less tightly than it says": (
        OP.format('means x\n  emit "{{x}} * 1 + 0" prec mul'),
        "mine",
        "not bind as tightly as it says",
    ),
    "an injective operator of two operands": (
        "op mine(x: T, y: T) -> T\n  role pointwise\n  injective\n  means x + y\n",
        "mine",
        "`mine` is injective, and has not one operand",
    ),
    "a function and a text": (
        OP.format('means x\n  emit "{{x}}"\n  function neg(x)'),
        "function neg(x)",
        "`mine` has an `emit` and a function, of which kernels can print one",
    ),
    "a function of nothing": (
        OP.format("means x\n  function"),
        "function",
        "nothing says what the function of `mine` computes",
    ),
    "a part of a function that stands below": (
        OP.format("means x\n  function a = neg(b), b = neg(x) gives add(a, b)"),
        "b",
        "`b` is no operand, and no part that stands above",
    ),
    "a part that nothing is made of": (
        OP.format("means x\n  function a = neg(x) gives abs(x)"),
        "a = neg(x)",
        "nothing is made of `a`",
    ),
    "a part that is called as an operand": (
        OP.format("means x\n  function x = neg(x) gives x"),
        "x = neg(x)",
        "`x` is declared twice",
    ),
    "a function that calls itself": (
        OP.format("means x\n  function theirs(x)")
        + "\nop theirs(x: T) -> T where T: real\n  role pointwise\n  means x\n  function mine(x)\n",
        "mine",
        "the function of `mine` calls itself",
    ),
    "a function behind one that is always called": (
        OP.format("means x\n  function neg(x)\n  function abs(x)"),
        "function neg(x)",
        "what stands behind a function without guard is never called",
    ),
    "a function of what is not pointwise": (
        OP.format("means x\n  function reduce_sum[axes=[0]](x)"),
        "reduce_sum",
        "`reduce_sum` is not pointwise, and a function computes one element",
    ),
    "a function of another type": (
        OP.format("means x\n  function less(x, 1)"),
        "less(x, 1)",
        "the function of `mine` computes bool, and the operator is of float",
    ),
    "a function that some types have not": (
        "op mine(x: T) -> T where T: number\n  role pointwise\n  means x\n  function exp(x)\n",
        "exp(x)",
        "`exp` takes a real value here",
    ),
    "a number that a function has no type for": (
        "op mine(x: float, y: double) -> float\n  role pointwise\n  means x\n  function where(less(x, 1), 1, 2)\n",
        "1",
        "nothing tells what type this number is of",
    ),
    "an error above 1": (OP.format("means x\n  within 2\n  function neg(x)"), "2", "`within` says a relative error"),
    "an operator variable with more operands than it was matched with": (
        RULE.format("f[..](tanh(x))\n  => f[..](x, x)\n  for f in pointwise"),
        "f[..](x, x)",
        "was matched with 1 operand,",
    ),
    "an operator variable over what is no class": (
        RULE.format("f(tanh(x))\n  => f(x)\n  for f in pointwize"),
        "f",
        "unknown operator `f`",
    ),
    "a combination that has no C++": (
        "monoid mine\n  identity 0\n  combine flip(a, [0]) + b\n",
        "flip(a, [0])",
        "`flip` cannot be printed",
    ),
    "a result that has no C++ for some elements": (
        "monoid mine where T: number\n  identity 0\n  combine a + b\n  finish sqrt(a)\n",
        "sqrt(a)",
        "`sqrt` of int",
    ),
    "an identity that some elements cannot be": (
        "monoid mine where T: integer\n  identity -1\n  combine max(a, b)\n",
        "-1",
        "uint8",
    ),
    "a field that is not carried": (FIELD.format("a.t + b.s"), "a.t", "there is no `a.t`"),
    "an accumulator as a number": (FIELD.format("a + b"), "a", "unknown name `a`"),
    "a field of a number": ("monoid mine\n  identity 0\n  combine a.s + b.s\n", "a.s", "there is no `a.s`"),
    "a narrow type to fold in": (
        "monoid mine where T: real\n  identity 0\n  combine a + b\n  accumulate half for float\n",
        "mine",
        "cannot be computed in half",
    ),
    "a member of a value": (RULE.format("tanh(tanh(x)) when x.ranks > 1\n  => x"), "x.ranks", "no member `ranks`"),
    "a member of the target": (RULE.format("tanh(tanh(x)) when target.wave > 1\n  => x"), "target.wave", "`wave`"),
    "a member of the schedule": (RULE.format("tanh(tanh(x)) when schedule.alg == 1\n  => x"), "schedule.alg", "`alg`"),
    "a member of the space": (RULE.format("tanh(tanh(x)) when space.row > 1\n  => x"), "space.row", "`row`"),
    "a member of a list of values": (
        RULE.format("concat[axis](xs...) when xs.rank > 1\n  => concat[axis](xs...)"),
        "xs.rank",
        "`xs` has no member `rank`",
    ),
    "a member that a helper asks of the target": (
        "let waves(machine) = machine.wave\n" + RULE.format("tanh(tanh(x)) when waves(target) > 1\n  => x"),
        "waves(target)",
        "`waves` asks for the member `wave` of `target`",
    ),
    "a member of an instruction": (
        RULE.format('tanh(tanh(x)) when instruction("wgmma_m64n64k16_f16").lan > 1\n  => x'),
        'instruction("wgmma_m64n64k16_f16").lan',
        "no member `lan`",
    ),
    "a member of an operand in a default": (tensors(" = x.lenz"), "x.lenz", "`x` has no member `lenz`"),
    "a member of an operand in a result": (tensors(lens="x.lenz"), "x.lenz", "`x` has no member `lenz`"),
    "a member of an operand in a requirement": (
        tensors(clauses='requires x.lenz == y.lens "{n}"\n  means x'),
        "x.lenz",
        "`x` has no member `lenz`",
    ),
    "a member of several operands": (tensors(more="...", lens="y.lens"), "y.lens", "`y` has no member `lens`"),
    "a member of an operand in a meaning": (tensors(clauses="means x + y.mean"), "y.mean", "`y` has no member `mean`"),
    "a fact of a tensor": (tensors(lens="[x.hi]"), "x.hi", "`x` has no member `hi`"),
    "a member of an operand in a domain": (
        tensors(clauses="means x\n  domain x > 0, y.ranks > 1"),
        "y.ranks",
        "`y` has no member `ranks`",
    ),
    "a member of the target in a cost": (tensors(clauses="means x\n  cost target.wave"), "target.wave", "`wave`"),
    "a member of the space in a range": (
        'op mine(i: index) -> index(i.size)\n  emit "{{ i }}"\n  means i\n  lo i.low\n  hi space.row\n',
        "i.low",
        "`i` has no member `low`",
    ),
    "a member in a message": (
        tensors(clauses='requires x.rank > 1 "not {x.lenz}"\n  means x'),
        'requires x.rank > 1 "not {x.lenz}"',
        "the message names `x.lenz`",
    ),
    "a member of a member in a message": (
        tensors(clauses='requires x.rank > 1 "not {x.rank.high}"\n  means x'),
        'requires x.rank > 1 "not {x.rank.high}"',
        "the message names `x.rank.high`",
    ),
    "a member of an attribute in a message": (
        tensors(clauses='requires x.rank > 1 "not {n.length}"\n  means x'),
        'requires x.rank > 1 "not {n.length}"',
        "the message names `n.length`",
    ),
    "a member of the target in a message": (
        tensors(clauses='requires x.rank > 1 "not {target.wave}"\n  means x'),
        'requires x.rank > 1 "not {target.wave}"',
        "the message names `target.wave`",
    ),
    "a member of an input": (IMPORT.format("when x.ranks > 1"), "x.ranks", "`x` has no member `ranks`"),
    "a member of an input in a message": (
        IMPORT.format('requires x.rank > 1 "not {x.lenz}"'),
        'requires x.rank > 1 "not {x.lenz}"',
        "the message names `x.lenz`",
    ),
    "a member of an instruction that a target asks for": (
        TARGET.format('requires all([instruction(by).lan > 1 for by in matrices]) "lanes"'),
        "instruction(by).lan",
        "no member `lan`",
    ),
    "an instruction without end": (INSTRUCTION + '  rate inf\n  multiply "c"\n', "inf", "no positive number"),
    "an instruction that does nothing": (MULTIPLIES.format('""'), '""', "no text that names `c`"),
    "an instruction of blanks": (MULTIPLIES.format('"  "'), '"  "', "no text that names `c`"),
    "an instruction that is a comment": (MULTIPLIES.format('"// ..."'), '"// ..."', "no text that names `c`"),
    "an instruction of what there is not": (
        MULTIPLIES.format('"c[0] += {{ depths }};"'),
        '"c[0] += {{ depths }};"',
        "'depths' is undefined",
    ),
    "an instruction of a fourth extent": (
        MULTIPLIES.format('"c[0] += {{ shape[3] }};"'),
        '"c[0] += {{ shape[3] }};"',
        "has no element 3",
    ),
    "an instruction that goes over a list": (
        MULTIPLIES.format('"{% for n in shape %}c{% endfor %}"'),
        '"{% for n in shape %}c{% endfor %}"',
        "has a `for`",
    ),
    "an instruction with an open bracket": (
        MULTIPLIES.format('"c[0] += (a[0];"'),
        '"c[0] += (a[0];"',
        "the `multiply` of `mine_mma` has a `(` without",
    ),
    "a text with an open bracket": (
        OP.format('means x\n  emit "gen::exp({{ x }}"'),
        "mine",
        "`emit` of `mine` has a `(`",
    ),
    "a text with a bracket too many": (OP.format('means x\n  emit "{{ x }})"'), "mine", "`emit` of `mine` has a `)`"),
    "a text with brackets that do not match": (
        OP.format('means x\n  emit "gen::exp({{ x }}]"'),
        "mine",
        "`emit` of `mine` has a `]`",
    ),
    "C++ with an open bracket": (
        OP.format('means x\n  emit "gen::f({{ x }})"\n  device "GEN_DEVICE float f(float x) { return x; // }"'),
        "mine",
        "`device` of `mine` has a `{`",
    ),
    "a cost of nothing": (OP.format("means x\n  cost 3 - 3"), "3 - 3", "a cost is a number above 0"),
    "a cost without end": (OP.format("means x\n  cost inf"), "inf", "a cost is a number above 0"),
    "a range that is a text": (
        'op mine(i: index) -> index(i.size)\n  role pointwise\n  means i\n  lo "a"\n',
        '"a"',
        "this is a text, and indices are whole numbers",
    ),
    "a range that is a list": (
        "op mine(i: index) -> index(i.size)\n  role pointwise\n  means i\n  hi [i.hi]\n",
        "[i.hi]",
        "this is a list, and indices are whole numbers",
    ),
    "a power of two that is none": (
        "op mine(i: index) -> index(i.size)\n  role pointwise\n  means i\n  pow2 1.5\n",
        "1.5",
        "this is no whole number, and indices are whole numbers",
    ),
    "a cost that is true": (OP.format("means x\n  cost 2 > 1"), "2 > 1", "a cost is a number above 0"),
    "a cost by a helper": ("let none() = 0\n" + OP.format("means x\n  cost none()"), "none()", "above 0"),
    "a type of attributes of imports": (
        "dialect mine\nimport Mine[n: intt](x) => exp(x)\n",
        "n: intt",
        "there is no type of attributes `intt`",
    ),
    "a type of constants of imports": (
        "dialect mine\nimport Mine(x, n: tensors) => exp(x)\n",
        "n: tensors",
        "there is no type of constants `tensors`",
    ),
    "an entry of an instruction given twice": (
        MULTIPLIES.format('"c[0] += a[0];"') + "  lanes 16\n",
        "16",
        "`lanes` is given twice",
    ),
    "values computed from one another": (
        RULE.format("tanh(tanh(x)) when a > 1\n  => x\n  with a = b + 1, b = a - 1"),
        "a = b + 1",
        "computed from itself",
    ),
    "a place outside of a mapped template": (
        RULE.format("tanh(tanh(x)) when position > 1\n  => x"),
        "position",
        "unknown",
    ),
    "a text for a number": (TARGET.format('compute_units "many"'), '"many"', "is a whole number, not a text"),
    "a fraction for a whole number": (TARGET.format("wave_size 64.5"), "64.5", "is a whole number, not a number"),
    "nothing where there has to be something": (TARGET.format("bandwidth_gbs 0"), "0", "is above 0"),
    "less than nothing": (TARGET.format("crowding 0 - 1"), "0 - 1", "is not below 0"),
    "a number for a list": (TARGET.format("block_sizes 64"), "64", "is a list, not a whole number"),
    "an empty list": (TARGET.format("block_sizes []"), "[]", "has no elements"),
    "a text among numbers": (
        TARGET.format('block_sizes [64, "a"]'),
        '[64, "a"]',
        "has a whole number in it, not a text",
    ),
    "a fraction among whole numbers": (
        TARGET.format("block_sizes [64.5]"),
        "[64.5]",
        "has a whole number in it, not a number",
    ),
    "a list among numbers": (TARGET.format("block_sizes [[64]]"), "[[64]]", "has a whole number in it, not a list"),
    "a list with nothing in it": (TARGET.format("block_sizes [64, 0]"), "[64, 0]", "is above 0"),
    "an instruction that there is not": (
        TARGET.format('matrices ["mma_m16n8k16_f61"]'),
        '["mma_m16n8k16_f61"]',
        "there is no instruction `mma_m16n8k16_f61`",
    ),
    "a helper of meanings in a guard": (
        "let all_of(x) = total([x, 1])\nlet more(x) = all_of(x) + 1\n"
        + RULE.format("tanh(tanh(x)) when more(x.rank) > 2\n  => x"),
        "more(x.rank)",
        "`more` calls `total`, which only what operators mean may call",
    ),
    "a helper of meanings in a cost": (
        "let all_of(x) = total([x, 1])\n" + OP.format("means x\n  cost all_of(2)"),
        "all_of(2)",
        "`all_of` calls `total`",
    ),
    "a name that nothing reads": (TARGET.format("compute_unit 80"), "80", "no other target has a `compute_unit`"),
    "waves that are no power of two": (
        TARGET.format("wave_size 48"),
        "48",
        "are a power of two, and `wave_size` is 48",
    ),
    "workgroups of parts of waves": (
        TARGET.format("block_sizes [96, 100]"),
        "[96, 100]",
        "a workgroup has whole waves",
    ),
    "accesses of three bytes": (TARGET.format("vector_bytes 3"), "3", "takes a power of two bytes"),
    "workgroup memory of three bytes": (TARGET.format("lds_bytes 3"), "3", "workgroup memory is a kilobyte at least"),
    "more workgroup memory than a unit has": (
        TARGET.format("lds_bytes 131072"),
        "131072",
        "and `group_lds_bytes` is 65536",
    ),
    "bursts of a byte": (
        TARGET.format("burst_bytes 1"),
        "1",
        "no less than the widest access takes, and `burst_bytes` is 1",
    ),
    "a bandwidth in bytes": (TARGET.format("bandwidth_gbs 5.3e12"), "5.3e12", "the bandwidth is in GB a second"),
    "a workgroup that no unit holds": (TARGET.format("resident_lanes 512"), "512", "a unit has room for a workgroup"),
    "waves that copy without an engine": (TARGET.format("copying_waves 1"), "1", "waves copy where an engine copies"),
    "a kernel of one tensor": (TARGET.format("kernel_buffers 1"), "1", "a kernel reads a tensor and stores one"),
    "more than all of the bandwidth": (
        TARGET.format("narrowing 1.5"),
        "1.5",
        "is a part of it, and `narrowing` is 1.5",
    ),
    "a kind that a requirement cannot ask": (TARGET.format("wave_size 64.5"), "64.5", "are a power of two, and"),
    "an instruction of longer waves": (
        TARGET.format('wave_size 32\n  matrices ["mfma_f32_16x16x16_f16"]'),
        "32",
        "are those of a wave, or one alone, and `matrices` is",
    ),
    "an instruction of waves where lanes are alone": (
        TARGET.format('wave_size 1\n  block_sizes [1]\n  default_block 1\n  matrices ["mma_m16n8k16_f16"]'),
        "1",
        "are those of a wave, or one alone",
    ),
    "an instruction of parts of waves": (
        TARGET.format('weighing ["wgmma_m64n64k16_f16"]\n  wave_size 256\n  block_sizes [256]'),
        '["wgmma_m64n64k16_f16"]',
        "in workgroup memory are whole waves",
    ),
    "an instruction of short rows in memory": (
        MULTIPLIES.replace("memory 0", "memory 48").format('"c[0] = a[0];"')
        + TARGET.replace("gfx942", "sm_90").format('matrices ["mine_mma"]'),
        '["mine_mma"]',
        "rows of workgroup memory that an instruction reads have 128 bytes",
    ),
    "a device that there is not": (TARGET.format('device "vulkan"'), '"vulkan"', "a device is hip, cuda or host"),
    "a value given twice": (TARGET.format("flat_steps 1\n  flat_steps 2"), "2", "`flat_steps` is given twice"),
    "a base that may be one": (TARGET.format("abstract 3"), "3", "`abstract` is true or false"),
    "a second default": (TARGET.format("default true"), "true", "`gfx942` is the target of programs that name none"),
    "a requirement of its own": (
        TARGET.format('compute_units 7\n  requires compute_units % 2 == 0 "units come in pairs"'),
        "7",
        "units come in pairs, and `compute_units` is 7",
    ),
    "a requirement of what no target has": (
        TARGET.format('requires wavesize > 1 "waves have lanes"'),
        "wavesize > 1",
        "no target has a `wavesize`",
    ),
    "a requirement without a message": (
        TARGET.format("requires wave_size == 64"),
        "wave_size == 64",
        "what is required has no message",
    ),
    "a requirement with an empty message": (TARGET.format('requires wave_size == 64 " "'), '" "', "message is empty"),
    "a message that names what no target has": (
        TARGET.format('requires wave_size == 64 "not {wavesize}"'),
        'requires wave_size == 64 "not {wavesize}"',
        "the message names `wavesize`, which no target has",
    ),
    "a message that names a value": (
        TARGET.format('requires compute_units % 5 == 0 "units of {default_block}"'),
        "mine",
        "units of 256, and `compute_units` is 304",
    ),
    "a text behind another value": (TARGET.format('flat_steps 1 "step"'), '"step"', "a text follows the value"),
    "a target that keeps nothing": (BARE, "mine", "every other target is based on `machine`"),
    "a value that is missing": (BARE, "mine", "has no `bandwidth_gbs`"),
    "a value made of itself": (TARGET.format("gflops 2 * gflops"), "2 * gflops", "`gflops` is made of itself"),
    "values made of one another": (
        TARGET.format("bandwidth_gbs gflops\n  gflops bandwidth_gbs"),
        "gflops",
        "`bandwidth_gbs` is made of itself",
    ),
    "an architecture that is no text": (TARGET.format("arch 90"), "90", "`arch` is a text, not a whole number"),
    "a base that is spelt otherwise": ("target mine : cnda\n", "mine", "the base target `cnda` is not declared"),
}


@pytest.mark.parametrize("about", REFUSED)
def test_it_is_refused_where_it_is(about: str, tmp_path: Path) -> None:
    text, place, said = REFUSED[about]
    (tmp_path / "mine.rw").write_text(text)
    with pytest.raises(GenrwError) as raised:
        load_library([tmp_path])
    told = [d for d in raised.value.diagnostics if said in d.message]
    assert [(d.span.source.name, d.span.text) for d in told[:1] if d.span] == [(str(tmp_path / "mine.rw"), place)]
    assert told[0].remedy


@pytest.mark.parametrize("clause", ['requires n > 1 "{n}"', "role index_map(x)"])
def test_a_declaration_that_has_no_answer_is_named_where_a_program_meets_it(clause: str, tmp_path: Path) -> None:
    lens = "x.lens" if "requires" in clause else "n.lens"
    text = f"op mine[n: ints](x: T tensor) -> tensor(T, {lens}) where T: real\n  {clause}\n  means x\n"
    (tmp_path / "mine.rw").write_text(text)
    program = "x = @param:x -> float{8}\ny = mine[n={1}](x)\n@return(y)\n"
    with pytest.raises(GenrwError) as raised:
        Program.parse(Source("x.gen", program), load_library([tmp_path]))
    (told,) = raised.value.diagnostics
    asked = "n > 1" if "requires" in clause else "n.lens"
    line = next(number for number, line in enumerate(text.splitlines(), 1) if asked in line)
    assert told.span is not None
    assert told.span.text == "mine"
    assert f"asks it at {tmp_path / 'mine.rw'}:{line}:" in (told.remedy or "")


def test_a_target_may_name_an_instruction_that_is_declared_wrongly(tmp_path: Path) -> None:
    """What is wrong is told where it is."""
    (tmp_path / "mine.rw").write_text(MULTIPLIES.format('""') + TARGET.format('matrices ["mine_mma"]'))
    with pytest.raises(GenrwError) as raised:
        load_library([tmp_path])
    assert [d.span.text for d in raised.value.diagnostics if d.span] == ['""']


@pytest.mark.parametrize(
    ("means", "said"),
    [
        ("reshape(x, [1, x.elements])", "means a tensor of lens [1, 8], but its type says [8]"),
        ("reshape(x, [x.elements + 1])", "do not reshape"),
    ],
)
def test_a_meaning_that_is_not_what_the_type_says_is_told_with_its_place(means: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "mine.rw").write_text(f"op mine(x: T tensor) -> tensor(T, x.lens) where T: real\n  means {means}\n")
    library = load_library([tmp_path])
    program = Program.parse(Source("x.gen", "x = @param:x -> float{8}\ny = mine(x)\n@return(y)\n"), library)
    with pytest.raises(GenrwError) as raised:
        program.run({"x": np.ones(8, np.float32)}, "interpret")
    told = raised.value.diagnostics[0]
    assert said in told.message
    assert told.span is not None
    assert told.span.source.name == "x.gen"
    assert f"what `mine` means is declared at {tmp_path / 'mine.rw'}:2:9" in (told.remedy or "")


def test_what_no_rule_takes_is_told_with_its_words(tmp_path: Path) -> None:
    """A schedule may name a way to fold that no rule of a later stage knows."""
    (tmp_path / "mine.rw").write_text(
        "stage schedule\n\nrule mine_rows\n  return(xs...) when is_rows(space, policy)\n"
        '  => scheduled[algo="mine", block_size=256, lanes=256, vector=1, share=2, steps=1, fold="mine"](xs...)\n'
    )
    text = "x = @param:x -> float{16, 330}\ns = reduce_sum[axes={1}](x)\n@return(s)\n"
    program = Program.parse(
        Source("x.gen", text), load_library([tmp_path]), Options("gfx942", schedule={"algo": "mine"})
    )
    with pytest.raises(GenrwError) as raised:
        program.lower("final")
    remedies = [d.remedy or "" for d in raised.value.diagnostics]
    assert any("`gridwise_reduce[op=sum, algo=mine]`" in remedy for remedy in remedies)
    assert all("genrw rules trace --stage lanewise" in remedy for remedy in remedies)


@pytest.mark.parametrize("declared", ["", "instruction mine_mma\n  lanes 0\n"])
def test_nothing_is_required_of_instructions_that_there_are_not(declared: str, tmp_path: Path) -> None:
    """What is wrong with them is told by itself."""
    (tmp_path / "mine.rw").write_text(declared + TARGET.format('matrices ["mine_mma"]'))
    with pytest.raises(GenrwError) as raised:
        load_library([tmp_path])
    assert all("mine_mma" in d.message for d in raised.value.diagnostics)
    assert not any("one alone" in d.message for d in raised.value.diagnostics)


BRACKETS = [
    """emit "{% if n %}gen::f({% else %}gen::g({% endif %}{{ x }})" """,
    """emit "gen::f({{ x }})"\n  device "inline float f(float x) { return x; /* } */ } // {" """,
    """emit "gen::f({{ x }})"\n  device "inline char f(float) { return '{'; }" """,
]


@pytest.mark.parametrize("clauses", BRACKETS)
def test_brackets_that_are_none_and_those_of_choices_need_no_other(clauses: str, tmp_path: Path) -> None:
    text = f"op mine[n: int = 0](x: T) -> T where T: real\n  role pointwise\n  means x\n  {clauses}\n"
    (tmp_path / "mine.rw").write_text(text)
    assert load_library([tmp_path]).find("mine") is not None


OPERATORS = {
    "an index map of which no rule takes elements": "-> tensor(T, x.lens) where T: real\n  role index_map(x)\n  means x\n",
    "a pointwise operator that says nothing": "-> T where T: real\n  role pointwise\n",
}


@pytest.mark.parametrize("about", OPERATORS)
def test_an_operator_of_which_nothing_becomes_is_told_of(about: str, tmp_path: Path) -> None:
    operand = "x: T tensor" if "index_map" in OPERATORS[about] else "x: T"
    (tmp_path / "mine.rw").write_text(f"op mine({operand}) {OPERATORS[about]}")
    library, _ = unchecked_library([tmp_path])
    told = [(f.kind, f.subject, f.diagnostic.span.text) for f in lint(library) if f.diagnostic.span is not None]
    assert told == [("not lowered", "mine", "mine")]


ALONE = {
    "a base that is not declared": "target mine : nothing\n  wave_size 64\n",
    "bases in a circle": "target mine : mine\n  wave_size 64\n",
    "a value that has none": TARGET.format("gflops 1 / 0\n  bandwidth_gbs gflops / 10"),
}


TOLD_ONCE = {
    "a result with too few parts": (
        "op mine(x: T tensor) -> tensor(T) where T: real\n  means x\n",
        "write 2 to 3 parts",
    ),
    "an attribute of no type": (
        "op mine[n: itn](x: T) -> T where T: real\n  role pointwise\n  means x * n\n",
        "did you mean `int`?",
    ),
    "a term of no operator": (OP.format("is mull(x, 2)"), "did you mean `mul`?"),
    "a stage that there is not": (OP.format("at fuze\n  means x"), "did you mean `fuse`?"),
}


@pytest.mark.parametrize("about", TOLD_ONCE)
def test_of_a_faulty_operator_only_the_fault_is_told(about: str, tmp_path: Path) -> None:
    """Neither that nothing lowers it, nor what its meaning lacks."""
    text, remedy = TOLD_ONCE[about]
    (tmp_path / "mine.rw").write_text(text)
    assert [f.diagnostic.remedy for f in lint(unchecked_library([tmp_path])[0])] == [remedy]


@pytest.mark.parametrize(
    ("cost", "found"),
    [
        ("n - 3", "-1"),
        ("n - 2", "0"),
        ("inf if n == 2 else 1", "inf"),
        ("n > 1", "true"),
        ("[n]", "a list of integers"),
    ],
)
def test_a_cost_that_is_none_for_some_attributes_is_told_where_it_is(cost: str, found: str, tmp_path: Path) -> None:
    (tmp_path / "mine.rw").write_text(
        f"op mine[n: int](x: T) -> T where T: real\n  role pointwise\n  means x * n\n  cost {cost}\n"
    )
    library = load_library([tmp_path])
    program = "x = @param:x -> float{8}\ny = mine[n=2](x)\n@return(y)\n"
    with pytest.raises(GenrwError) as raised:
        Program.parse(Source("x.gen", program), library).lower("final")
    (told,) = raised.value.diagnostics
    assert told.message == f"the cost of `mine` is {found} here"
    assert told.span is not None
    assert told.span.text == cost
    assert told.remedy


@pytest.mark.parametrize(
    ("word", "remedy"), [("blocc", "did you mean `block`?"), ("hypercube", "write a rule that asks for it")]
)
def test_a_word_of_schedules_that_no_rule_asks_for_is_told(word: str, remedy: str, tmp_path: Path) -> None:
    opens = (
        "stage schedule\n\nrule mine\n  return(xs...) when is_rows(space, policy)\n"
        '  => scheduled[algo="own", block_size=256, lanes=256, vector=1, share=2, steps=1, fold="{}"](xs...)\n'
    )
    folds = '\nstage lanewise\n\nrule mine_too\n  row_fold[op, algo="{}"](x, lds)\n  => reduce_waves[op](lane_reduce[op](share[op](x)), lds)\n'

    def told(text: str) -> list[tuple[str, str | None]]:
        (tmp_path / "mine.rw").write_text(text)
        found = [f.diagnostic for f in lint(unchecked_library([tmp_path])[0]) if f.subject == "mine"]
        return [(d.span.text, d.remedy) for d in found if d.span and "into schedules" in d.message]

    assert told(opens.format(word)) == [(f'"{word}"', remedy)]
    assert told(opens.format("block")) == []
    assert told(opens.format(word) + folds.format(word)) == []


@pytest.mark.parametrize("about", ALONE)
def test_what_follows_from_a_fault_is_not_told(about: str, tmp_path: Path) -> None:
    (tmp_path / "mine.rw").write_text(ALONE[about])
    with pytest.raises(GenrwError) as raised:
        load_library([tmp_path])
    assert len(raised.value.diagnostics) == 1


def test_values_name_those_above_them_wherever_a_base_has_these(tmp_path: Path) -> None:
    """What a base makes of a value is made of the one that stands last."""
    family = "target family : gfx942\n  abstract true\n  last_cache_bytes compute_units * 1048576\n"
    own = "target mine : family\n  compute_units 100\n  gflops compute_units * 200\n  bandwidth_gbs gflops / 10\n"
    (tmp_path / "mine.rw").write_text(family + own)
    values = load_library([tmp_path]).target("mine").values
    assert (values["gflops"], values["bandwidth_gbs"], values["last_cache_bytes"]) == (20000, 2000.0, 104857600)


def test_a_target_like_the_others_is_taken(tmp_path: Path) -> None:
    text = TARGET.format('arch "gfx942"\n  compute_units 228\n  crowding 0\n  dynamic_lds true\n  gflops 81700.5')
    (tmp_path / "mine.rw").write_text(text)
    assert load_library([tmp_path]).target("mine").values["compute_units"] == 228


def test_a_default_that_reads_another_attribute(tmp_path: Path) -> None:
    """It is one of what the side says, whatever names the rule has for other things."""
    rule = "tanh(slice[axes=[0], starts=axes, ends=[1]](x))\n  => slice[axes=[0], starts=axes, ends=[1]](tanh(x))\n  replaces"
    (tmp_path / "mine.rw").write_text(RULE.format(rule))
    text = "x = @param:x -> float{8}\na = slice[axes={0}, starts={0}, ends={1}](x)\nb = tanh(a)\n@return(b)\n"
    lowered = str(Program.parse(Source("x.gen", text), load_library([tmp_path])).lower("simplify"))
    assert "tanh(x)" in lowered
    assert "slice[axes={0}, starts={0}, ends={1}](tanh)" in lowered
