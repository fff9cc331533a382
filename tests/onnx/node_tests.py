"""ONNX's own backend tests of single operators, run through the `host` device.

    python tests/onnx/node_tests.py            runs all and writes docs/onnx.md
    python tests/onnx/node_tests.py NAME …     runs those whose names begin so, and tells each failure

Each test is a model, with inputs and what has to come out, to ONNX's tolerances. Kernels are compiled many at a time,
and kept in the cache.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

from genrw.authoring.rulesets import load_library
from genrw.codegen.hip.printer import KernelSource
from genrw.codegen.runtime.host_program import HostProgram
from genrw.codegen.runtime.host_sequence import HostSequence
from genrw.engine.library.library import Library
from genrw.engine.lowering.options import Options
from genrw.grammar.diagnostics import GenrwError
from genrw.onnx.program import Model, import_model
from genrw.program import Program

PAGE = Path(__file__).parents[2] / "docs" / "onnx.md"
TARGET = "host"
_TOGETHER = 48

PASSED, WRONG, ROUNDED = "passed", "wrong", "rounded otherwise"
REFUSED, MISSING, TYPES = "refused", "operators missing", "types"
_SIGNS = {"not supported:": MISSING}
_TYPE_SIGNS = ("elements of type", "not a tensor")


_UNITS = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23}
_ROUNDINGS = 4
"""So many units in the last place of the largest element may results differ by: those of half and bf16 are rounded less often
than ONNX's own, which are after each operator, and those of float are 0 where ONNX's sum leaves its roundings."""


@dataclass
class Outcome:
    """What became of a test, and why."""

    name: str
    operators: tuple[str, ...]
    kind: str = PASSED
    why: str = ""


@dataclass
class _Case:
    """A test's data set on its way: the program for it, its kernels, and what has to come out."""

    outcome: Outcome
    model: Model
    program: Program
    inputs: dict[str, Any]
    wanted: Sequence[Any]
    tolerances: tuple[float, float]
    kernels: list[KernelSource] = field(default_factory=list)


@lru_cache(maxsize=1)
def backend_tests() -> dict[str, Any]:
    """ONNX's tests by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {case.name: case for case in collect_testcases(None)}


def run(names: Iterable[str], library: Library | None = None) -> list[Outcome]:
    """Run tests; gives what became of each."""
    library = library or load_library()
    remaining = iter(names)
    outcomes: list[Outcome] = []
    while batch := list(islice(remaining, _TOGETHER)):
        outcomes += _run_batch(batch, library)
        print(f"\r{len(outcomes)} tests", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return outcomes


def _run_batch(names: Sequence[str], library: Library) -> list[Outcome]:
    outcomes, cases = [], []
    for name in names:
        test = backend_tests()[name]
        outcome = Outcome(name, tuple(sorted({_operator(n) for n in test.model.graph.node})))
        outcomes.append(outcome)
        try:
            cases += [_prepared(outcome, test, *data, library) for data in test.data_sets]
        except GenrwError as problem:
            _refuse(outcome, problem)
    compiled = iter(HostProgram.compile_all([kernel for case in cases for kernel in case.kernels]))
    for case in cases:
        _check(case, HostSequence(list(islice(compiled, len(case.kernels))), case.program))
    return outcomes


def _operator(node: onnx.NodeProto) -> str:
    return f"{node.domain}.{node.op_type}" if node.domain else node.op_type


def _refuse(outcome: Outcome, problem: GenrwError) -> None:
    message = problem.diagnostics[0].message
    outcome.kind = next((kind for sign, kind in _SIGNS.items() if sign in message), REFUSED)
    if any(sign in d.message for d in problem.diagnostics for sign in _TYPE_SIGNS):
        outcome.kind = TYPES
    outcome.why = message


def _prepared(outcome: Outcome, test: Any, inputs: Sequence[Any], wanted: Sequence[Any], library: Library) -> _Case:
    """The kernels of a test's model, for its inputs."""
    arrays = {value.name: _array(a) for value, a in zip(test.model.graph.input, inputs, strict=False)}
    tensors = {name: a for name, a in arrays.items() if isinstance(a, np.ndarray) and a.dtype != object}
    model = import_model(test.model, library, {}, tensors, TARGET)
    program = model.program(f"{outcome.name}.onnx", library, Options(target=TARGET), TARGET)
    given = {name: tensors[original] for name, original in model.imported.inputs.items()}
    case = _Case(outcome, model, program, given, wanted, (test.rtol, test.atol))
    case.kernels = program.kernels()
    _check_order(case, [value.name for value in test.model.graph.input])
    return case


def _check_order(case: _Case, graph_inputs: Sequence[str]) -> None:
    """Called by position, the program takes the graph's inputs in the graph's order."""
    named = case.model.imported.inputs
    order = [named[name] for name in case.program.inputs if name in named]
    if order != [name for name in graph_inputs if name in order]:
        case.outcome.kind, case.outcome.why = WRONG, f"its inputs are in the order {', '.join(order)}"


def _array(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return np.asarray(value) if isinstance(value, np.ndarray | np.generic) else value


def _check(case: _Case, run: HostSequence) -> None:
    """Compare what kernels give with what is right."""
    got = list(run(case.inputs).values())
    pairs = list(zip(got, map(_array, case.wanted), strict=False))
    try:
        assert len(got) == len(case.wanted), f"{len(got)} results, not {len(case.wanted)}"
        for array, wanted in pairs:
            _compare(array, wanted, case.tolerances)
    except AssertionError as problem:
        kind = ROUNDED if len(got) == len(case.wanted) and all(_near(*pair) for pair in pairs) else WRONG
        case.outcome.kind, case.outcome.why = kind, " ".join(str(problem).split())


def _compare(got: Any, wanted: Any, tolerances: tuple[float, float]) -> None:
    """As ONNX's own runner compares."""
    assert got.dtype == wanted.dtype, f"{got.dtype}, not {wanted.dtype}"
    assert got.shape == wanted.shape, f"shape {got.shape}, not {wanted.shape}"
    if got.dtype.kind not in "fiub":  # bf16, which numpy does not compare
        got, wanted = got.astype(np.float32), wanted.astype(np.float32)
    rtol, atol = tolerances
    np.testing.assert_allclose(got, wanted, rtol=rtol, atol=atol)


def _near(got: Any, wanted: Any) -> bool:
    """Does a result differ by roundings of a narrow type alone?"""
    unit = _UNITS.get(wanted.dtype.name, 0.0)
    if got.dtype != wanted.dtype or got.shape != wanted.shape:
        return False
    a, b = got.astype(np.float64), wanted.astype(np.float64)
    most = _ROUNDINGS * unit * np.max(np.abs(b[np.isfinite(b)]), initial=0.0)
    return bool(np.allclose(a, b, rtol=0, atol=most, equal_nan=True))


# ---- the page


_HEAD = """\
# ONNX's tests

ONNX comes with tests of single operators: models with inputs, and what has to come out. This page says which of them
pass on the `host` device, with ONNX's tolerances. What ONNX's operators are here the
[imports](languages.md#import) of its dialect say, in `rules/onnx/`. The page is written by

```bash
python tests/onnx/node_tests.py
```

"""

_ABOUT = {
    PASSED: "the results are right",
    WRONG: "the results are not",
    ROUNDED: "the last places differ: of half and bf16, which genrw rounds less often than after each operator, and of float where a sum cancels",
    REFUSED: "the operator is known, but not in this form",
    MISSING: "an operator is not known",
    TYPES: "strings, sequences, optional values, or elements of less than 8 bits or of 8-bit floats",
}


def page(outcomes: Sequence[Outcome]) -> str:
    """The page for the outcomes of all tests."""
    counts = Counter(o.kind for o in outcomes)
    lines = [_HEAD + f"Tests of onnx {onnx.__version__}: {counts[PASSED]} of {len(outcomes)} pass.\n"]
    lines += ["| tests | what became of them |", "| --- | --- |"]
    lines += [f"| {counts[kind]} | {kind}: {about} |" for kind, about in _ABOUT.items()]
    lines += ["", "## Operators", "", "Tests of one operator. Those of several are the operators' definitions.", ""]
    lines += ["| operator | pass | of | otherwise |", "| --- | --- | --- | --- |", *_operator_rows(outcomes)]
    lines += ["", "## Tests that do not pass", "", "Those of operators that are known, and of several operators.", ""]
    lines += ["| test | why not |", "| --- | --- |", *_failure_rows(outcomes)]
    return "\n".join(lines) + "\n"


def _operator_rows(outcomes: Sequence[Outcome]) -> Iterator[str]:
    single = [o for o in outcomes if len(o.operators) == 1]
    for name in sorted({o.operators[0] for o in single}):
        kinds = Counter(o.kind for o in single if o.operators[0] == name)
        others = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()) if kind != PASSED)
        yield f"| `{name}` | {kinds[PASSED]} | {sum(kinds.values())} | {others} |"


def _failure_rows(outcomes: Sequence[Outcome]) -> Iterator[str]:
    for outcome in outcomes:
        alone = len(outcome.operators) == 1 and outcome.kind == MISSING
        if outcome.kind not in (PASSED, TYPES) and not alone:
            yield f"| `{outcome.name}` | {outcome.kind}: {outcome.why[:160].replace('|', ' ')} |"


def main(prefixes: Sequence[str]) -> int:
    """Run tests, all or those whose names begin so; the exit status is 1 if a result is wrong."""
    names = [n for n in backend_tests() if not prefixes or n.startswith(tuple(prefixes))]
    outcomes = run(names)
    for outcome in outcomes:
        if outcome.kind == WRONG or (prefixes and outcome.kind != PASSED):
            print(f"{outcome.name}: {outcome.kind}: {outcome.why}")
    counts = Counter(o.kind for o in outcomes)
    print(", ".join(f"{count} {kind}" for kind, count in counts.most_common()))
    if not prefixes:
        PAGE.write_text(page(outcomes), encoding="utf-8")
    return int(counts[WRONG] > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
