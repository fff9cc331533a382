"""The texts of operators that stranger's rules bring: they fill in holes, and nothing else."""

from __future__ import annotations

import pytest
from work import at_most

from genrw.engine.language.emit_text import check_emit_text, emit_binding, emit_text, outside_of_brackets
from genrw.engine.library.library import Library
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.rw import parse_rw
from genrw.grammar.rw_tree import OpDecl

VALUES = {
    "x": "x[i]",
    "n": 10**9,
    "lens": (2, 3),
    "result": "y",
    "type": "float",
    "share": "i",
    "target": {"lanes": 64},
}


def declared(text: str) -> OpDecl:
    (op,) = parse_rw(f'op f[n: int, lens: ints](x: T) -> T\n  emit """{text}"""\n').declarations
    assert isinstance(op, OpDecl)
    return op


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("{{x}} + {{n}}", "x[i] + 1000000000"),
        ("{% if n > 3 and lens[1] == 3 %}a{% elif n %}b{% else %}c{% endif %}", "a"),
        ("{{x[:1]}}{{ 'p' if target.lanes == 64 else 'q' }}{{ n * 2 - 1 }}", "xp1999999999"),
        ("{% raw %}{{{% endraw %}", "{{"),
        ("{x.__class__} {0!r:>99999999}", "{x.__class__} {0!r:>99999999}"),
    ],
)
def test_what_is_filled_in(text: str, made: str) -> None:
    op = declared(text)
    check_emit_text(op)
    assert emit_text(op, VALUES) == made


REFUSED = {
    "loop": "{% for a in lens %}{% for b in lens %}{{a}}{% endfor %}{% endfor %}",
    "long loop": "{% for a in range(99999) %}{% endfor %}",
    "call": "{{ x.format(1) }}",
    "function": "{{ lipsum(1000) }}",
    "import of names": "{{ cycler.__init__.__globals__.os.system('true') }}",
    "filter": "{{ x|center(n) }}",
    "filter of a block": "{% filter upper %}a{% endfilter %}",
    "test": "{% if x is string %}a{% endif %}",
    "assignment": "{% set x = x ~ x %}",
    "macro": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "inclusion": "{% include '/etc/passwd' %}",
    "inheritance": "{% extends x %}",
    "power": "{{ n ** n ** n }}",
    "what is not there": "{{ z }}",
    "what Python has": "{{ self }}{{ range }}",
    "an open hole": "{{ x",
    "nested": "{{ " + "not " * 5000 + "x }}",
    "brackets": "{{ " + "(" * 5000 + "x" + ")" * 5000 + " }}",
    "members": "{{ x" + ".a" * 5000 + " }}",
    "branches": "{% if x %}" * 500 + "{% endif %}" * 500,
    "a long number": "{{ " + "1" * 6000 + " }}",
    "a long text": "a" * 100_000,
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_before_it_is_used(name: str) -> None:
    op = declared(REFUSED[name])
    with (
        at_most(20_000 + 200 * len(REFUSED[name])),
        pytest.raises(GenrwError, match="the `emit` of `f` fails: ") as problem,
    ):
        check_emit_text(op)
    assert problem.value.diagnostics[0].remedy
    assert len(str(problem.value)) < 3000


@pytest.mark.parametrize(
    "text",
    [
        "{{ x * n }}",
        "{{ lens * n }}",
        "{{ n * x }}",
        "{{ '%99999999d' % n }}",
        "{{ x.__class__.__mro__ }}",
        "{{ lens.__len__ }}",
        "{{ target['__class__'].__base__ }}",
        "{{ x + n }}",
        "{{ n / 0 }}",
        "{{ lens[7] + 1 }}",
        "{{ x.speed }}",
    ],
)
def test_what_fails_when_it_is_filled_in(text: str) -> None:
    with pytest.raises(GenrwError, match="the `emit` of `f` fails: "):
        emit_text(declared(text), VALUES)


@pytest.mark.parametrize(
    ("text", "level", "outside"),
    [
        ("{{x}}", "atom", ()),
        ("f({{x}} + {{n}})", "atom", ("f",)),
        ("gen::f<{{n}}, 2>({{x}} ? 1 : 2)", "atom", ("gen", "f")),
        ("gen::f<gen::array<int, 2>, sizeof(gen::array<int, 2>)>({{x}})", "atom", ("gen", "f")),
        ("{{x}}[{{n}} + 1].{{lens}}", "atom", ("x", "lens")),
        ("({{x}} + 1)", "atom", ()),
        ("-{{x}}", "unary", ("x",)),
        ("{{x}} * -{{n}}", "mul", ("x", "n")),
        ("f({{x}}) - f({{x}}) * 2", "add", ("f", "2")),
        ("{{x}} << 1", "shift", ("x", "1")),
        ("{{x}} < {{n}} + 1", "compare", ("x", "n", "1")),
        ("{{x}} == 1e-5", "equal", ("x", "1e", "5")),
        ("{{x}} {{'&' if n else '&&'}} {{n}}", "and", ("x", "n")),
        ("{{x}} || {{n}} && {{n}}", "or", ("x", "n")),
        ("{% if n %}{{x}}{% else %}{{x}} ? {{x}} : 0{% endif %}", "cond", ("x", "0")),
        ("{% if n %}{{x}}{% else %}{{n}}.f{% endif %}", "atom", ("x", "n", "f")),
        ("{{x}} += 1;", "atom", ("x", "1")),
    ],
)  # fmt: skip
def test_how_tightly_texts_bind(text: str, level: str, outside: tuple[str, ...]) -> None:
    op = declared(text)
    assert emit_binding(op) == level
    assert outside_of_brackets(op) - {"_"} == {*outside}


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("{{x}} {{sign}} {{y}}", "cond"),
        ("{{x}}{{sign}}{{y}}", "cond"),
        ("f({{x}}){{sign}} 2", "cond"),
        ("-1 {{sign}} f({{x}})", "cond"),
        ("{{x}} {{signs[0]}} {{y}}", "cond"),
        ("({{x}} {{sign}} {{y}})", "atom"),
        ("{{sign}}({{x}})", "atom"),
        ("gen::{{sign}}({{x}})", "atom"),
        ("gen::log_{{sign}}({{x}}) + {{sign}}({{y}})", "add"),
    ],
)
def test_a_hole_may_be_an_operator(text: str, level: str) -> None:
    head = "op f[sign: string, signs: any](x: T, y: T) -> T"
    (op,) = parse_rw(f'{head}\n  emit """{text}"""\n').declarations
    assert isinstance(op, OpDecl)
    assert emit_binding(op) == level


def test_shipped_texts_bind_as_they_say(library: Library) -> None:
    for operator in (*library.operators.values(), *library.families):
        if operator.decl.emit is not None:
            assert emit_binding(operator.decl) == (operator.decl.precedence or "atom"), operator.name


@pytest.mark.parametrize("part", ["(", "a<", "::", "x + ", "f<x>()", "1.", "-", "{% raw %}{{{% endraw %}"])
def test_long_texts_are_read_in_one_go(part: str) -> None:
    with at_most(400_000):
        emit_binding(declared(part * (60_000 // len(part))))
