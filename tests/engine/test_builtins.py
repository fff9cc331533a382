"""The tables of functions and operators: each entry has each meaning or says why not, and meanings agree."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from genrw.codegen import device
from genrw.engine.language.array_functions import array_functions
from genrw.engine.language.builtins import BUILTINS, FUNCTIONS, Builtin
from genrw.engine.language.expr import compile_expr
from genrw.engine.language.functions import Function
from genrw.engine.language.meaning import InCpp, OfTensors, Without
from genrw.engine.language.operators import BINARY, COMPARE, UNARY, Operator
from genrw.engine.verify.numbers import Numbers
from genrw.grammar.rw import parse_expr

MEANINGS = {"value": Function, "tensors": OfTensors, "cpp": InCpp}
HEADER = (Path(str(device.__path__[0])) / "gen.hpp").read_text(encoding="utf-8")
INTEGERS = (-5, -1, 0, 1, 2, 3, 7, 8)


@pytest.mark.parametrize("builtin", BUILTINS.values(), ids=lambda builtin: builtin.name)
def test_each_function_has_each_meaning_or_says_why_not(builtin: Builtin) -> None:
    for field in dataclasses.fields(builtin)[1:]:
        meaning = getattr(builtin, field.name)
        if isinstance(meaning, Without):
            assert " " in meaning.why
        else:
            kind = MEANINGS.get(field.name)
            assert callable(meaning) if kind is None else isinstance(meaning, kind)
    assert isinstance(builtin.value, Function) or isinstance(builtin.tensors, OfTensors)


@pytest.mark.parametrize(("op", "operator"), [*BINARY.items(), *UNARY.items()])
def test_each_operator_has_each_meaning_or_says_why_not(op: str, operator: Operator) -> None:
    assert operator.cpp, op
    for meaning in (operator.egglog, operator.formula):
        assert callable(meaning) or " " in meaning.why


@pytest.mark.parametrize("builtin", BUILTINS.values(), ids=lambda builtin: builtin.name)
def test_signatures_are_of_the_name(builtin: Builtin) -> None:
    for meaning in (builtin.value, builtin.tensors):
        assert isinstance(meaning, Without) or meaning.signature.startswith(f"{builtin.name}(")


def test_tensors_are_computed_by_what_there_is() -> None:
    named = {name for name, builtin in BUILTINS.items() if isinstance(builtin.tensors, OfTensors)}
    assert array_functions().keys() == array_functions(precise=True).keys() == named


def header_calls(builtin: Builtin) -> set[str]:
    cpp = builtin.cpp
    texts = (cpp.floats, cpp.integers, cpp.bools) if isinstance(cpp, InCpp) else ()
    return {name for text in texts for name in re.findall(r"gen::(\w+)", text)}


def test_cpp_calls_what_the_header_has() -> None:
    called = set().union(*map(header_calls, BUILTINS.values()))
    called |= {
        n
        for o in (*BINARY.values(), *UNARY.values())
        for w in o.cpp.values()
        for n in re.findall(r"gen::(\w+)", w.text)
    }
    assert {"exp", "trunc_mod", "floor_div"} <= called
    declared = set(re.findall(r"^ *(?:inline |constexpr )*GEN_DEVICE .*?(\w+)\(", HEADER, re.MULTILINE))
    declared |= set(re.findall(r"^GEN_[A-Z]+\((\w+)[,)]", HEADER, re.MULTILINE))
    assert called - declared == set()


def with_formula() -> list[str]:
    return [name for name, builtin in BUILTINS.items() if not isinstance(builtin.formula, Without)]


@pytest.mark.parametrize("name", with_formula())
def test_formulas_say_what_values_are(name: str) -> None:
    builtin, function = BUILTINS[name], FUNCTIONS[name]
    assert not isinstance(builtin.formula, Without)
    grid = np.meshgrid(*[np.array(INTEGERS)] * len(function.parameters))
    found = builtin.formula(Numbers(8), *grid)
    wanted = np.vectorize(function.implementation)(*grid)
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize("op", [op for op, operator in BINARY.items() if not isinstance(operator.formula, Without)])
def test_formulas_of_operators_say_what_values_are(op: str) -> None:
    a, b = np.meshgrid(np.array(INTEGERS), np.array([n for n in INTEGERS if n]))
    formula = BINARY[op].formula
    assert not isinstance(formula, Without)
    assert np.array_equal(formula(Numbers(8), a, b), np.vectorize(BINARY[op].value)(a.astype(object), b.astype(object)))


PRIMITIVES = {
    **{op: BINARY[op].value for op in ("+", "-", "*", "&", "|", "^", "<<", ">>")},
    "/": lambda a, b: int(a / b),
    "%": lambda a, b: a - int(a / b) * b,
    "min": min,
    "max": max,
}
"""egglog's functions of integers: its division rounds towards 0."""


def computed(primitive: str, *args: Any) -> Any:
    return PRIMITIVES[primitive](*args)


@pytest.mark.parametrize("op", [op for op, operator in BINARY.items() if not isinstance(operator.egglog, Without)])
def test_terms_of_operators_say_what_values_are(op: str) -> None:
    term = BINARY[op].egglog
    assert not isinstance(term, Without)
    for a in INTEGERS:
        for b in (1, 2, 3, 7):
            assert term(computed, a, b) == BINARY[op].value(a, b)


@pytest.mark.parametrize("name", [n for n, builtin in BUILTINS.items() if not isinstance(builtin.egglog, Without)])
def test_terms_of_functions_say_what_values_are(name: str) -> None:
    term = BUILTINS[name].egglog
    assert not isinstance(term, Without)
    assert [term(computed, a, b) for a in INTEGERS for b in INTEGERS] == [
        FUNCTIONS[name].implementation(a, b) for a in INTEGERS for b in INTEGERS
    ]


@pytest.mark.parametrize("op", [op for op, comparison in COMPARE.items() if comparison.mirrored])
def test_facts_of_comparisons(op: str) -> None:
    comparison = COMPARE[op]
    mirrored = COMPARE[comparison.mirrored]
    assert all(comparison.value(a, b) == mirrored.value(b, a) for a in INTEGERS for b in INTEGERS)
    assert all(comparison.value(a, a) is comparison.on_equals for a in INTEGERS)


def test_facts_of_functions_hold() -> None:
    """On the examples that are simple to make: integers, lists of them and types."""
    calls = {"len": "len([])", "count": "count([1, 2], 3)", "itemsize": "itemsize(bool)"}
    counting = {name for name, function in FUNCTIONS.items() if "never_negative" in function.facts}
    assert counting == calls.keys()
    assert all(compile_expr(parse_expr(call))({}) >= 0 for call in calls.values())
    selecting = [function for function in FUNCTIONS.values() if "selects" in function.facts]
    assert selecting
    assert all(f.implementation(a, b) in (a, b) for f in selecting for a in INTEGERS for b in INTEGERS)
