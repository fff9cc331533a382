"""A few of ONNX's own tests of each operator that rules import; `node_tests.py` runs them all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from node_tests import PAGE, PASSED, Outcome, backend_tests, run

from genrw.authoring.rulesets import load_library

WITHOUT_TESTS = set((Path(__file__).parent / "without_tests.txt").read_text(encoding="utf-8").split())
"""Operators of which ONNX has no test of their own, and helpers of declarations."""


def chosen() -> list[str]:
    """The first test of each operator that stands alone in one, and its shortest in several."""
    imported = load_library().dialects["onnx"]
    found: dict[str, str] = {}
    for name, test in backend_tests().items():
        operators = {node.op_type for node in test.model.graph.node}
        if len(operators) == 1 and operators <= imported.keys() and "STRING" not in name:
            found.setdefault(operators.pop(), name)
    return sorted(found.values())


LISTED = Path(__file__).parent / "chosen.txt"
"""Their names: to make ONNX's tests takes longer than to collect all others."""
FEW = LISTED.read_text(encoding="utf-8").split()[::3]
"""Those that are run here: `node_tests.py` runs all."""

pytestmark = pytest.mark.slow


def test_the_list_is_of_these_tests(pytestconfig: pytest.Config) -> None:
    listed = "\n".join(chosen()) + "\n"
    if pytestconfig.getoption("--update-golden"):
        LISTED.write_text(listed, encoding="utf-8")
    assert LISTED.read_text(encoding="utf-8") == listed, "out of date: if it is right, run with --update-golden"


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    return {outcome.name: outcome for outcome in run(FEW)}


@pytest.mark.parametrize("name", FEW)
def test_node(outcomes: dict[str, Outcome], name: str) -> None:
    assert (outcomes[name].kind, outcomes[name].why) == (PASSED, "")


def test_every_declaration_has_a_test() -> None:
    tested = {node.op_type for name in chosen() for node in backend_tests()[name].model.graph.node}
    assert set(load_library().dialects["onnx"]) - tested == WITHOUT_TESTS


def test_the_page_is_of_these_declarations() -> None:
    """Operators of whose tests some pass, by docs/onnx.md, are those that rules import."""
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \| \d+ \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    passing = {operator for operator, count in rows if int(count)}
    assert set(load_library().dialects["onnx"]) - WITHOUT_TESTS <= passing


def test_a_wrong_result_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison compares."""
    test = backend_tests()["test_add"]
    inputs, (wanted,) = test.data_sets[0]
    monkeypatch.setattr(test, "data_sets", [(inputs, [wanted + 0.01])])
    (outcome,) = run(["test_add"])
    assert outcome.kind == "wrong"
    assert "Mismatched" in outcome.why
