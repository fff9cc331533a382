"""The texts of operators that stranger's rules bring: they fill in holes, and nothing else."""

from __future__ import annotations

import pytest
from work import at_most

from genrw.engine.language.emit_text import check_emit_text, emit_text
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
