"""A rule that is missing is one fault: it is told once, with a place in the program."""

from __future__ import annotations

from dataclasses import replace

import pytest

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
