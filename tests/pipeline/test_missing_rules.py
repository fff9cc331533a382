"""A rule that is missing is one fault: it is told once, with a place in the program."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from genrw import lower
from genrw.authoring.rulesets import load_library
from genrw.engine.library.gather import build_library
from genrw.engine.lowering.options import Options
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.source import Source
from genrw.program import Program

SOFTMAX = """\
x = @param:x -> half{64, 4096}
m = reduce_max[axes={1}](x)
d = sub(x, m)
e = exp(d)
s = reduce_sum[axes={1}](e)
y = div(e, s)
@return(y)
"""

MISSING = {
    "fold_block": "row_fold",
    "row_of_block": "row",
    "lane_of_block": "lane_of_row",
    "position_in_row": "position",
    "broadcast_operands": "div_short",
}
"""Rules without which the program is stuck, each with the operator that is then left."""


@pytest.mark.parametrize("name", MISSING)
def test_one_missing_rule_is_told_once(name: str) -> None:
    shipped = load_library(examples=False)
    assert any(rule.name == name for rule in shipped.rules)
    files = [replace(f, declarations=tuple(d for d in f.declarations if d.name != name)) for f in shipped.files]
    library = build_library(files)
    program = Program.parse(Source("x.gen", SOFTMAX), library, Options(target="gfx942", schedule={"algo": "block"}))
    with pytest.raises(GenrwError) as raised:
        program.lower("final")
    (told,) = raised.value.diagnostics
    assert told.message.startswith("no rule ")
    assert f"`{MISSING[name]}`" in told.message
    assert told.span is not None
    assert told.span.source.name == "x.gen"


FEW_TENSORS = "target narrow : cdna\n  compute_units 60\n  bandwidth_gbs 1024\n  gflops 13400\n  kernel_buffers 2\n"


@pytest.mark.parametrize(
    ("call", "needed"),
    [("add(x, y)", 3), ("fma(x, y, z)", 4), ("fma(x, y, x)", 3)],
)  # fmt: skip
def test_an_operator_of_too_many_tensors_is_told_with_the_limit(tmp_path: Path, call: str, needed: int) -> None:
    """The rules make it; it is the target that lets no kernel have it."""
    (tmp_path / "narrow.rw").write_text(FEW_TENSORS)
    lines = [f"{name} = @param:{name} -> float{{8}}" for name in "xyz"]
    text = "\n".join([*lines, f"r = {call}", "@return(r)"]) + "\n"
    with pytest.raises(GenrwError) as raised:
        lower(text, rules=[tmp_path], target="narrow")
    (told,) = raised.value.diagnostics
    assert f"reads and writes {needed} tensors here, and a kernel of the target 2 at most" in told.message
    assert told.span is not None
    assert told.span.text == f"r = {call}"
