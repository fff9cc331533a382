"""Rules whose computations fail while the e-graph runs: a diagnostic at the text, and an e-graph that goes on."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

import genrw
from genrw.engine.egraph.bindings import egg
from genrw.engine.egraph.encode import Spans
from genrw.engine.egraph.stage import StageEngine
from genrw.engine.library.library import Library
from genrw.grammar.diagnostics import GenrwError, error
from genrw.grammar.source import NOWHERE

GOOD = "x = @param:x -> float{64}\ny = exp(x)\n@return(y)\n"
BAD = "x = @param:x -> float{64, 1000}\ns = reduce_sum[axes={1}](x)\n@return(s)\n"


def message(folder: Path, text: str, program: str = BAD) -> str:
    """What is said of a program under rules of one's own, from the file's name on."""
    (folder / "mine.rw").write_text(dedent(text).lstrip())
    loaded = genrw.load(program, rules=[folder])
    with pytest.raises(GenrwError) as caught:
        loaded.lower("final")
    return str(caught.value).replace(f"{folder}/", "")


@pytest.mark.parametrize("number", ["12 % 0", "n << 70", "n * 1000000000000 * 1000000000000", "n // 0"])
def test_a_number_that_the_e_graph_cannot_compute(tmp_path: Path, number: str) -> None:
    rule = f"stage final\n\nrule mine\n  a * {{n}} when n == 1000\n  => a * {{{number}}}\n"
    assert message(tmp_path, rule) == (
        f"mine.rw:5:11: error: rule `mine` cannot compute this: it divides by 0 or leaves 64 bits\n"
        f"    => a * {{{number}}}\n"
        f"            {'^' * len(number)}\n"
        "  help: guard against such numbers"
    )


@pytest.mark.parametrize(
    ("number", "said"),
    [
        ("n / 3", "an index is an integer, not 333.3333333333333"),
        ('"four" if n > 3 else 4', "an index is an integer, not 'four'"),
        ("n ** 7", f"an index has 64 bits, too few for {1000**7}"),
        ("n / 0", "division by zero"),
    ],
)
def test_a_number_that_is_no_index(tmp_path: Path, number: str, said: str) -> None:
    """Python computes it where it is more than egglog can, as here by the guard."""
    rule = f"stage final\n\nrule mine\n  a * {{n}} when n in [1000]\n  => a * {{{number}}}\n"
    assert message(tmp_path, rule).splitlines()[:2] == [
        f"mine.rw:5:11: error: {said}",
        f"    => a * {{{number}}}",
    ]


def test_a_range_that_cannot_be_computed(tmp_path: Path) -> None:
    text = """
        op far(a: index) -> index(a.size)
          role pointwise
          lo a.lo
          hi a.hi << 70
          means a

        stage final

        rule mine
          a * {n} when n == 1000
          => far(a)

        rule of_far
          far(a) when a.lo > 5
          => a

        rule above_far
          far(a) % {n} when a.hi < n
          => far(a)
    """
    said = message(tmp_path, text)
    assert said.startswith(
        "mine.rw:4:6: error: operator `far` cannot compute this: it divides by 0 or leaves 64 bits\n"
    )
    assert said.endswith(
        "\n  help: write numbers of fewer digits in the program, or facts that hold for large ones, too"
    )


def test_what_failed_leaves_the_next_program_alone(tmp_path: Path) -> None:
    """The e-graph is the same; only the program that failed has the number."""
    (tmp_path / "mine.rw").write_text("stage final\n\nrule mine\n  a * {n} when n == 1000\n  => a * {n % (n - 1000)}\n")
    want = str(genrw.load(GOOD).lower("final"))
    for _ in range(2):
        with pytest.raises(GenrwError, match="rule `mine` cannot compute this"):
            genrw.load(BAD, rules=[tmp_path]).lower("final")
        assert str(genrw.load(GOOD, rules=[tmp_path]).lower("final")) == want


def test_an_e_graph_that_cannot_be_loaded_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was read back by then that could be asked which rule is to blame; the next program is as ever."""

    def failing(*_: object) -> None:
        raise error("the e-graph failed: no room")

    want = str(genrw.load(GOOD).lower("final"))
    other = genrw.load(GOOD.replace("64", "65"))
    with monkeypatch.context() as patched:
        patched.setattr(StageEngine, "_load_terms", failing)
        with pytest.raises(GenrwError, match=r"^error: the e-graph failed: no room$"):
            other.lower("final")
    assert other.lower("final").kernels()
    assert str(genrw.load(GOOD).lower("final")) == want


def test_a_panic_is_a_diagnostic(library: Library) -> None:
    """egglog's panics are no `Exception`."""
    engine = StageEngine(library, "simplify", [])
    engine.graph = egg.EGraph()
    with pytest.raises(GenrwError) as caught:
        engine._run(egg.Input(Spans()(NOWHERE), "no such table", "no such file"))
    assert (
        str(caught.value) == "error: the e-graph of stage `simplify` failed: Unrecognized function name no such table"
    )


def test_an_interrupt_is_none(library: Library) -> None:
    class Interrupted:
        def run_program(self, *_: object) -> None:
            raise KeyboardInterrupt

    engine = StageEngine(library, "simplify", [])
    engine.graph = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        engine._run()
