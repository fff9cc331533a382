"""C++ of own rules that a compiler refuses: told at its line of the rule file, whichever kernel and compiler it was."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import genrw
from genrw.codegen.hip.own_text import OwnTexts, text_in
from genrw.codegen.runtime.refusals import Refused, told_at_own_texts
from genrw.engine.library.library import Library
from genrw.grammar.diagnostics import GenrwError

GOOD = """
/// A sine, moved up.
op wavy(x: T) -> T where T: real
  role pointwise
  means sin(x) + 1
  emit "my_sine({{x}}) + 1" prec add
  device \"\"\"
// a sine
GEN_DEVICE float my_sine(float x)
{
    return gen::sin(x);
}
\"\"\"

/// Half of it.
op halved(x: T) -> T where T: real
  role pointwise
  means x / 2
  emit "half_of({{x}}, {{ 2 }})"
  device "GEN_DEVICE float half_of(float x, float n) { return x / n; }"
"""

MISTAKES = {
    "a member that there is not": ("my_sine({{x}}) + 1", "my_sine({{x}}).first + 1", 6, "emit"),
    "a value that there is not": ("my_sine({{x}}) + 1", "my_sine({{x}}) + one", 6, "emit"),
    "a sign too many": ("my_sine({{x}}) + 1", "my_sine({{x}}) +* 1", 6, "emit"),
    "a semicolon too few": ("return gen::sin(x);", "return gen::sin(x)", 11, "device"),
    "a type that there is not": ("GEN_DEVICE float my_sine", "GEN_DEVICE flaot my_sine", 9, "device"),
    "operands too few": ('"half_of({{x}}, {{ 2 }})"', '"half_of({{x}})"', 19, "emit"),
    "a name that there is not": ("return x / n", "return x / m", 20, "device"),
}

PROGRAMS = {
    "elements": "x = @param:x -> float{64}\nw = wavy(x)\ny = halved(w)\n@return(y)\n",
    "other order": "x = @param:x -> float{64}\nh = halved(x)\ny = wavy(h)\n@return(y)\n",
    # lanes meet, so that the kernel for the CPU has loops over them
    "rows": "x = @param:x -> float{8, 8192}\nw = wavy(x)\ns = reduce_sum[axes={1}](w)\ny = halved(s)\n@return(y)\n",
}


def refusal(folder: Path, rules: str, program: str) -> GenrwError:
    """What is said of a program that has rules as they stand."""
    folder.mkdir(exist_ok=True)
    (folder / "own.rw").write_bytes(rules.encode())
    loaded = genrw.load(program, target="gfx942", rules=[folder], trust_rules=True)
    inputs = {name: np.zeros(p.type.lens, np.float32) for name, p in loaded.inputs.items()}
    with pytest.raises(GenrwError) as raised:
        loaded.run(inputs, device="host")
    return raised.value


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_told_where_it_is_written(
    tmp_path: Path, mistake: tuple[str, str, int, str], program: str
) -> None:
    right, wrong, line, clause = mistake
    assert right in GOOD
    (told,) = refusal(tmp_path / "mine", GOOD.replace(right, wrong), program).diagnostics
    assert told.span is not None
    assert told.span.source.name.endswith("own.rw")
    assert told.span.line == line
    assert told.message.startswith(f"in the `{clause}` of `")
    assert " does not compile: " in told.message


def test_lines_may_end_as_they_do_elsewhere(tmp_path: Path) -> None:
    wrong = GOOD.replace("return gen::sin(x);", "return gen::sin(x)").replace("\n", "\r\n")
    (told,) = refusal(tmp_path / "mine", wrong, PROGRAMS["elements"]).diagnostics
    assert told.span is not None
    assert (told.span.line, told.span.text) == (11, "return gen::sin(x)")


def test_what_is_right_compiles(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "own.rw").write_text(GOOD)
    x = np.linspace(-1, 1, 64, dtype=np.float32)
    program = genrw.load(PROGRAMS["elements"], rules=[folder])
    assert np.allclose(program.run({"x": x})["y"], (np.sin(x) + 1) / 2)


def test_the_innermost_text_at_a_column_is_meant(library: Library) -> None:
    own = OwnTexts(frozenset({"exp", "add"}))
    outer, inner = library.operators["add"].decl, library.operators["exp"].decl
    own.filled_in(outer, "a + exp(b)")
    own.filled_in(inner, "exp(b)")
    line = "    y[i] = a + exp(b);"
    found = [text_in(own.found, line, column) for column in (12, 16, None)]
    assert [text.name for text in found if text] == ["add", "exp", "exp"]
    assert text_in(own.found, "int i;", None) is None


def test_shipped_texts_are_not_noted(library: Library) -> None:
    own = OwnTexts(library.foreign)
    own.filled_in(library.operators["exp"].decl, "exp(b)")
    assert not own.found


def test_a_fault_elsewhere_stays_where_it_is() -> None:
    problem = Refused("kernel k does not compile", "int a;", "k.hip:1:1: error: no")
    with pytest.raises(Refused), told_at_own_texts([]):
        raise problem
