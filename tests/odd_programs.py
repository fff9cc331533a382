"""Random programs of what nobody would write: operators with any operands and attributes, numbers at the limits of types,
and everything deep or wide."""

from __future__ import annotations

import random
import re

from genrw.engine.ir.dtypes import DTYPES
from genrw.engine.library.library import Library, Operator

_GIVEN = {
    "f": "f = @param:f -> float{4, 3}",
    "g": "g = @param:g -> int8{4, 3}",
    "u": "u = @param:u -> uint64{4, 3}",
    "b": "b = @param:b -> bool{4, 3}",
    "h": "h = @param:h -> half{3}",
    "z": "z = @param:z -> float{0, 3}",
    "s": "s = @param:s -> float",
    "i": "i = local_id()",
    "l": "l = lds_allocate[shape={float, {4}}]()",
    "v": "v = load(f, i)",
    "k": "k = strided_load[size=4, stride=8](f, i)",
}
_BEHIND = {"v": "fi", "k": "fi"}
_NUMBERS = (
    "0",
    "1",
    "-1",
    "1.5",
    "300",
    "1e300",
    "inf",
    "-inf",
    "nan",
    "true",
    str(2**63),
    str(2**64 - 1),
    str(-(2**63)),
)
_WORDS = ("word", '""', '"a b"', "float", "int8", "index", "effect", "sum", "argmax", "constant", "edge", "half[4]")
_LISTS = (
    "{}",
    "{0}",
    "{1, 0}",
    "{-1}",
    "{1, 1, 1, 1}",
    "{0, 0, 0, 0, 0, 0, 0, 0}",
    "{1.5}",
    "{nan}",
    "{true}",
    "{word}",
)
_NESTED = ("{{1}, {2}}", "{{}, {}}", "{float, {4}}", "{4, {4}}", "{a=1}", "{{a=1}}", "float{4}", "float{0}")
_VALUES = (*_NUMBERS, *_WORDS, *_LISTS, *_NESTED, f"{{{2**63}}}", f"{{{2**64 - 1}}}", f"{{{2**62}}}")
_USUAL = {
    **{"int": "1", "ints": "{0, 1}", "axes": "{1}", "axis": "0", "float": "1.0", "bool": "true", "dtype": "float"},
    **{
        "monoid": "sum",
        "instruction": "mma_m16n8k16_f16",
        "shape": "{float, {4}}",
        "string": "a",
        "name": "a",
        "module": "m",
        "any": "1",
    },
}


def odd_operation(library: Library, rng: random.Random) -> str:
    """A program of one operation, all of whose parts may be wrong."""
    name, operator = rng.choice(_operators(library))
    operands = _operands(len(operator.fixed), operator.variadic is not None, rng)
    attributes = {
        a: _USUAL[declared.type]
        for a, declared in operator.attributes.items()
        if a not in operator.defaults or rng.random() < 0.2
    }
    if operator.attributes and rng.random() < 0.7:
        attributes[rng.choice(list(operator.attributes))] = rng.choice(_VALUES)
    shown = ", ".join(f"{a}={value}" for a, value in attributes.items())
    needed = {part for operand in operands if operand in _GIVEN for part in (operand, *_BEHIND.get(operand, ""))}
    given = "".join(f"{line}\n" for n, line in _GIVEN.items() if n in needed)
    return f"{given}y = {name}{f'[{shown}]' if shown else ''}({', '.join(operands)})\n@return(y)\n"


def _operators(library: Library) -> list[tuple[str, Operator]]:
    """All operators, and some members of each family."""
    alone = list(library.operators.items())
    members = [(member, family) for family in library.families for member in ("sum", "max", "argmax")]
    return alone + [(re.sub(r"\{.*\}", member, family.name), family) for member, family in members]


def _operands(count: int, variadic: bool, rng: random.Random) -> list[str]:
    wanted = rng.choice((count, count, count, count, count + 1, 0, 40 if variadic else count))
    alike = rng.choice((*_GIVEN, *_NUMBERS))
    return [alike if rng.random() < 0.6 else rng.choice((*_GIVEN, *_NUMBERS)) for _ in range(wanted)]


def odd_constant(rng: random.Random) -> str:
    """A program with numbers at the limits of a type or beyond."""
    dtype = rng.choice(list(DTYPES))
    limits = DTYPES[dtype]
    largest, smallest = int(limits.largest), int(limits.smallest)
    near = [largest, largest + 1, smallest, smallest - 1] if limits.is_integer else [1, -1]
    number = rng.choice((*_NUMBERS, *(str(n) for n in near if -(2**63) <= n < 2**64)))
    used = rng.choice(
        ("max(c, x)", f"max(x, {number})", "mul(x, c)", f"pad[pads={{1, 1}}, value={number}](x)", "neg(c)")
    )
    elements = rng.choice((number, f"{number}, 1, 1, {number}"))
    return f"x = @param:x -> {dtype}{{4}}\nc = @literal{{{elements}}} -> {dtype}{{4}}\ny = {used}\n@return(y, c)\n"


def odd_size(rng: random.Random) -> str:
    """A program that is deep or wide in one way."""
    count = rng.choice((3, 12, 40, 300))
    return rng.choice((_modules, _nested, _wide, _long, _ranks, _elements))(count, rng)


def _modules(count: int, rng: random.Random) -> str:
    """Modules that call one another, once or twice each, one of them perhaps in a circle."""
    calls = rng.choice((1, 2, 3))
    text = "@module m0\nx = @param:x -> float{4}\ny0 = exp(x)\n@return(y0)\n"
    for i in range(1, count):
        inner = rng.choice((i - 1,) * 50 + (i,))
        steps = [f"y{k} = call[module=m{inner}]({f'y{k - 1}' if k else 'x'})\n" for k in range(calls)]
        text += f"@module m{i}\nx = @param:x -> float{{4}}\n{''.join(steps)}@return(y{calls - 1})\n"
    return text


def _nested(count: int, rng: random.Random) -> str:
    opening, closing = rng.choice((("{", "}"), ("{a=", "}"), ("(", ")"), ("[", "]")))
    return f"x = @param:x -> float{{4}}\ny = slice[axes={opening * count}0{closing * count}](x)\n@return(y)\n"


def _wide(count: int, rng: random.Random) -> str:
    given = "".join(f"p{i} = @param:p{i} -> float{{4}}\n" for i in range(count))
    names = ", ".join(f"p{i}" for i in range(count))
    return given + rng.choice((f"y = add({names})\n@return(y)\n", f"@return({names}, {names})\n", "@return(p0)\n"))


def _long(count: int, rng: random.Random) -> str:
    step = rng.choice(("exp({0})", "add({0}, {0})", "softmax[axis=0]({0})"))
    lines = [f"y{i} = {step.format(f'y{i - 1}' if i else 'x')}\n" for i in range(count)]
    return f"x = @param:x -> float{{4}}\n{''.join(lines)}@return(y{count - 1})\n"


def _ranks(count: int, rng: random.Random) -> str:
    lens = ", ".join(rng.choice(("1", "1", "1", "2")) if i < 20 else "1" for i in range(count))
    return f"x = @param:x -> float{{{lens}}}\ny = {rng.choice(('exp(x)', 'reduce_sum[axes={0}](x)'))}\n@return(y)\n"


def _elements(count: int, rng: random.Random) -> str:
    numbers = ", ".join(str(rng.randrange(100)) for _ in range(count))
    return f"x = @literal{{{numbers}}} -> float{{{rng.choice((count, count, count + 1))}}}\ny = exp(x)\n@return(y)\n"
