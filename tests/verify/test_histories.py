"""A program is lowered to the same whatever was lowered before it: alone, among others, or after them.

What was lowered before shows in the order of an e-graph's rows, and in the numbers that values have there. So programs are
lowered with rows in any order, and with any numbers for attributes and types.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from programs import COMPOSED, CORNERS, LARGE, SEED_TABLE, SPLIT
from support import WAVE32, WAVE64, load

from genrw.engine.egraph import bindings
from genrw.engine.ir.interner import Interner
from genrw.engine.library.gather import build_library
from genrw.engine.library.library import Library
from genrw.engine.lowering.pipeline import Pipeline
from genrw.engine.lowering.trace import Trace
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.rw import parse_rw
from genrw.program import Program

TEXTS = {**SEED_TABLE, **COMPOSED, **CORNERS, **SPLIT, **LARGE}
NAMES = {
    "transpose_four": (WAVE64, "host"),
    "eye": (WAVE32,),
    "columns_twice": (WAVE64,),
    "gather_last_axis": (WAVE64, "sm_90"),
    "product_of_repeated_halves": (WAVE64,),
    "dots_of_other_transposes": ("host",),
    "rows_turned": ("host",),
    "dot_of_rows": ("host",),
    "layouts_that_do_not_nest": (WAVE64,),
}
"""Programs of which several forms cost the same, and their targets."""


def drawn(library: Library) -> list[Program]:
    return [load(TEXTS[name], target, library) for name, targets in NAMES.items() for target in targets]


def in_turn(library: Library, programs: Iterable[Program]) -> Iterator[tuple[str, Any]]:
    """What one pipeline makes of programs one after the other: the text, and the schedules in their order."""
    pipeline = Pipeline(library)
    for program in programs:
        trace = Trace()
        units = pipeline.lower(program.units, program.stages[-1], program.options, trace)
        yield str(program.with_units(tuple(units))), trace.schedules


class Shuffled:
    """An e-graph that is the same but for the order of its tables and of their rows."""

    def __init__(self, graph: Any, random: Random) -> None:
        self._graph, self._random = graph, random
        self._shown: dict[str, int] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._graph, name)

    def freeze(self) -> Any:
        """The tables: rows that are new since the last look come after the others."""
        tables = {}
        for name, table in self._graph.freeze().functions.items():
            rows = list(table.rows)
            first = self._shown.get(name, 0) if self._shown.get(name, 0) <= len(rows) else 0
            new = rows[first:]
            self._random.shuffle(new)
            tables[name] = SimpleNamespace(rows=[*rows[:first], *new])
            self._shown[name] = len(rows)
        return SimpleNamespace(functions={name: tables[name] for name in self._random.sample([*tables], len(tables))})


class Drawn(dict[Any, Any]):
    """A dictionary, or a list of what is appended, whose length is any number. It is another one after each entry."""

    def __init__(self, random: Random) -> None:
        super().__init__()
        self._random, self._length = random, random.randrange(1 << 30)

    def __len__(self) -> int:
        return self._length

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        self._length = self._random.randrange(1 << 30)

    def append(self, value: Any) -> None:
        self[self._length] = value


def shuffle(monkeypatch: pytest.MonkeyPatch, random: Random) -> None:
    """Have e-graphs shuffled that are made from now on."""
    graph = bindings.egg.EGraph
    monkeypatch.setattr(bindings.egg, "EGraph", lambda **given: Shuffled(graph(**given), random))


@pytest.mark.slow
def test_the_order_of_rows_and_numbers_does_not_matter(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    programs, random = drawn(library), Random(1)
    expected = list(in_turn(library, programs))
    shuffle(monkeypatch, random)

    def any_numbers(*given: Any) -> Interner:
        interner = Interner(*given)
        vars(interner).update(_attribute_ids=Drawn(random), types=Drawn(random))
        return interner

    monkeypatch.setattr("genrw.engine.egraph.stage.Interner", any_numbers)
    for program, first, shuffled in zip(programs, expected, in_turn(library, programs), strict=True):
        assert shuffled == first, str(program)


FAILING = """\
stage simplify

/// Its axis is not there.
rule first_to_fail
  tanh(tanh(x))
  => neg(reduce_sum[axes=[x.rank + 7]](x))

/// Nor is this one's.
rule last_to_fail
  sin(sin(x))
  => neg(reduce_max[axes=[x.rank + 8]](x))
"""
BOTH = """
    x = @param:x -> float{8, 16}
    y = @param:y -> float{4, 16}
    a = sin(x)
    b = sin(a)
    c = tanh(y)
    d = tanh(c)
    e = tanh(x)
    f = tanh(e)
    @return(b, d, f)"""


@pytest.mark.parametrize("seed", range(4))
def test_of_several_faults_the_first_rules_is_told(
    seed: int, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    shuffle(monkeypatch, Random(seed))
    own = build_library([*library.files, parse_rw(FAILING, "mine.rw")])
    with pytest.raises(GenrwError, match="rule `first_to_fail` builds"):
        list(in_turn(own, [load(BOTH, WAVE64, own)]))
