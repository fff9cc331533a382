"""Rules that make terms which operators do not allow, or of another type: the rule is named, not one that met the term."""

from __future__ import annotations

from pathlib import Path

import pytest

from genrw.authoring.rulesets import load_library
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.source import Source
from genrw.program import Program

TANH = "x = @param:x -> float{8, 16}\na = tanh(x)\nb = tanh(a)\n"
SUM = "x = @param:x -> float{8, 16}\na = reduce_sum[axes={1}](x)\n"
ALONE, USED = "@return(b)\n", "c = add(b, x)\n@return(c)\n"

MADE = {
    "an attribute that a shipped rule chokes on": (
        "tanh(tanh(x))\n  => transpose[permutation=[0]](x)",
        TANH + ALONE,
        "transpose[permutation=[0]](x)",
        "builds a `transpose` that is not allowed: permutation {0} does not order the 2 axes",
    ),
    "an axis that is not there": (
        "tanh(tanh(x))\n  => reduce_sum[axes=[7]](x)",
        TANH + ALONE,
        "reduce_sum[axes=[7]](x)",
        "builds a `reduce_sum` that is not allowed",
    ),
    "a result of another shape": (
        "tanh(tanh(x))\n  => reduce_sum[axes=[0]](x)",
        TANH + ALONE,
        "mine",
        "puts float{1, 16} in the place of float{8, 16}",
    ),
    "a value of another shape that repeats in its user": (
        "tanh(tanh(x))\n  => reduce_sum[axes=[0]](x)",
        TANH + USED,
        "mine",
        "puts float{1, 16} in the place of float{8, 16}",
    ),
    "a value of another element type": (
        'tanh(tanh(x))\n  => convert[target_type="half"](x)',
        TANH + USED,
        "mine",
        "puts half{8, 16} in the place of float{8, 16}",
    ),
    "a slice that another rule takes for one of all elements": (
        "tanh(tanh(x))\n  => slice[axes=[0], starts=[0], ends=[1]](x)",
        TANH + ALONE,
        "mine",
        "puts float{1, 16} in the place of float{8, 16}",
    ),
    "a slice of what another rule made": (
        "tanh(abs(x))\n  => slice[axes=[0], starts=[0], ends=[1]](x)",
        "x = @param:x -> float{8, 16}\na = abs(x)\nc = abs(a)\nd = abs(c)\nb = tanh(d)\n" + ALONE,
        "mine",
        "puts float{1, 16} in the place of float{8, 16}",
    ),
    "lengths that are none": (
        "tanh(tanh(x))\n  => reshape[dims=[x.lens]](x)",
        TANH + ALONE,
        "reshape[dims=[x.lens]](x)",
        "builds a `reshape` that is not allowed: ",
    ),
    "strides that are not as many as lengths": (
        'tanh(tanh(x))\n  => param[name="z", dtype=x.type, lens=x.lens, strides=[1]]()',
        TANH + ALONE,
        'param[name="z", dtype=x.type, lens=x.lens, strides=[1]]()',
        "builds a `param` that is not allowed: `param` has a result of 2 lengths and 1 strides",
    ),
    "an operand of another shape as the result": (
        "reduce_sum[axes](x) when axes[0] > 0\n  => x",
        SUM + "@return(a)\n",
        "mine",
        "puts float{8, 16} in the place of float{8, 1}",
    ),
    "an operand of another shape below the result": (
        "reduce_sum[axes](x) when axes[0] > 0\n  => x",
        SUM + "b = tanh(a)\n@return(b)\n",
        "mine",
        "puts float{8, 16} in the place of float{8, 1}",
    ),
}


@pytest.mark.parametrize("about", MADE)
def test_the_rule_that_made_it_is_named(about: str, tmp_path: Path) -> None:
    rule, program, place, said = MADE[about]
    (tmp_path / "mine.rw").write_text(f"stage simplify\n\nrule mine\n  {rule}\n")
    with pytest.raises(GenrwError) as raised:
        Program.parse(Source("x.gen", program), load_library([tmp_path])).lower("simplify")
    (told,) = raised.value.diagnostics
    assert told.span is not None
    assert (told.span.source.name, told.span.text) == (str(tmp_path / "mine.rw"), place)
    assert f"rule `mine` {said}" in told.message
    assert told.remedy


def test_of_rules_that_make_alike_terms_the_one_is_named_that_computed_the_attributes(tmp_path: Path) -> None:
    rule = (
        "rule {name}\n  return(xs...)\n  when is_rows(space, policy)\n"
        '  => scheduled[algo="{name}", block_size=192, lanes={lanes}, vector=1, share=ceil_div(space.n, {lanes}), steps=1](xs...)\n'
    )
    (tmp_path / "a.rw").write_text("stage schedule\n\n" + rule.format(name="of_three", lanes=3))
    (tmp_path / "b.rw").write_text("stage schedule\n\n" + rule.format(name="of_sixteen", lanes=16))
    program = Program.parse(Source("p.gen", SUM + "@return(a)\n"), load_library([str(tmp_path)]))
    with pytest.raises(GenrwError) as refused:
        program.lower("schedule")
    told = refused.value.diagnostics[0]
    assert told.message.startswith("rule `of_three` builds a `scheduled` that is not allowed")
    assert told.span is not None
    assert told.span.source.name.endswith("a.rw")
