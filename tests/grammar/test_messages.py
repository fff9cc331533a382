"""What is said about bad input, word for word: see data/gen_messages.txt and data/rw_messages.txt."""

from __future__ import annotations

import pickle

import pytest
from messages import cases, check

from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.gen import parse_gen
from genrw.grammar.rw import parse_expr, parse_rw


@pytest.mark.parametrize("name", [name for name, _, _ in cases("gen_messages.txt")])
def test_gen(name: str) -> None:
    check("gen_messages.txt", name, parse_gen)


@pytest.mark.parametrize("name", [name for name, _, _ in cases("rw_messages.txt")])
def test_rw(name: str) -> None:
    check("rw_messages.txt", name, parse_rw)


@pytest.mark.parametrize("name", [name for name, _, _ in cases("expr_messages.txt")])
def test_expr(name: str) -> None:
    check("expr_messages.txt", name, parse_expr)


def test_errors_go_from_process_to_process() -> None:
    with pytest.raises(GenrwError) as raised:
        parse_expr("1 +")
    got = pickle.loads(pickle.dumps(raised.value))
    assert str(got) == str(raised.value)
    assert [d.message for d in got.diagnostics] == [d.message for d in raised.value.diagnostics]
