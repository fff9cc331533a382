"""Shipped rules with a small slip each: what `check` lets pass never fails in files that the author did not write.

A slip that stays valid may change what a program becomes, or leave it stuck. But where lowering ends in an error, this is
told of at the changed file or at the program. `--fuzz N` tries N times as many.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest

from genrw.authoring.rulesets import load_library
from genrw.engine.library.gather import gathered_library
from genrw.engine.library.library import Library
from genrw.engine.lint.check_declarations import check_declarations
from genrw.engine.lint.check_imports import check_imports
from genrw.engine.lint.check_rules import check_rules
from genrw.engine.lint.check_targets import check_targets
from genrw.engine.lowering.options import Options
from genrw.grammar.diagnostics import Diagnostic, GenrwError
from genrw.grammar.rw import parse_rw
from genrw.grammar.rw_tree import Declaration, ImportDecl, OpDecl, RuleDecl, RuleFile, TargetDecl
from genrw.grammar.source import Source
from genrw.program import Program

FEW = 12
MINE = "mine.rw"
PROGRAM = "x.gen"
PROGRAMS = (
    "x = @param:x -> half{8, 1000}\nm = reduce_max[axes={1}](x)\nd = sub(x, m)\ne = exp(d)\n"
    "s = reduce_sum[axes={1}](e)\ny = div(e, s)\n@return(y)\n",
    "x = @param:x -> float{64, 30}\nw = @param:w -> float{64, 32}\np = pad[pads={0, 1, 0, 1}](x)\nm = mul(p, w)\n"
    "t = transpose[permutation={1, 0}](m)\ns = slice[axes={0}, starts={1}, ends={9}](t)\n@return(s)\n",
)

NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])")
WORD = re.compile(r"(?<![\w\"])[a-z_]\w*(?![\w\"])")
ENTRY = re.compile(r"(?<=[\[(,])\s*[\w.]+(?:\s*=\s*[\w.\"]+)?\s*,?(?=[\w\s\])])")


def _at_some(pattern: re.Pattern[str], text: str, new: Callable[[str], str], rng: random.Random) -> str:
    found = list(pattern.finditer(text))
    if not found:
        return text
    match = rng.choice(found)
    return text[: match.start()] + new(match.group()) + text[match.end() :]


def number(text: str, rng: random.Random) -> str:
    """Another number, of another sign or kind."""
    return _at_some(
        NUMBER, text, lambda n: rng.choice(("0", "-1", "1.5", '"word"', "true", "[1]", f"{n}00000000000")), rng
    )


def word(text: str, rng: random.Random) -> str:
    """A name for another one."""
    words = sorted({m.group() for m in WORD.finditer(text)})
    return _at_some(WORD, text, lambda w: rng.choice((f"{w}s", rng.choice(words), f'"{w}"')), rng)


def without(text: str, rng: random.Random) -> str:
    """An attribute, operand or argument less."""
    return _at_some(ENTRY, text, lambda _: "", rng)


def line(text: str, rng: random.Random) -> str:
    """A clause less, or twice."""
    lines = text.split("\n")
    place = rng.randrange(len(lines))
    lines[place : place + 1] = [lines[place]] * rng.choice((0, 0, 2))
    return "\n".join(lines)


def copied(text: str, rng: random.Random) -> str:
    """`..` where it does not stand."""
    return _at_some(re.compile(r"(?<=\w)\["), text, lambda _: rng.choice(("[.., ", "[")), rng)


SLIPS = (number, word, word, without, without, line, copied)


def rules_alone(declaration: Declaration) -> str:
    """The text of a declaration without examples."""
    text = declaration.span.text
    return re.split(r"\n\s*(?:given|(?:counter)?example)\b", text)[0]


def mutant(shipped: Library, rng: random.Random) -> tuple[str, RuleFile] | None:
    """A shipped file's name, and the file with a slip in one declaration, under the author's name; None if it cannot be
    read."""
    file = rng.choice(shipped.files)
    kinds = (RuleDecl, OpDecl, TargetDecl, ImportDecl)
    some = [d for d in file.declarations if isinstance(d, kinds)]
    if not some:
        return None
    declaration, text = rng.choice(some), file.span.source.text
    own = rules_alone(declaration)
    changed = rng.choice(SLIPS)(own, rng)
    start = declaration.span.start + declaration.span.text.index(own)
    if changed == own:
        return None
    try:
        return file.span.source.name, parse_rw(text[:start] + changed + text[start + len(own) :], MINE)
    except GenrwError:
        return None


def told(library: Library, mine: RuleFile) -> list[Diagnostic]:
    """What is said of a file before any program is lowered."""
    declared = mine.declarations
    found = check_rules(library, [d for d in declared if isinstance(d, RuleDecl)])
    found += check_imports(library, [d for d in declared if isinstance(d, ImportDecl)])
    return [*found, *check_declarations(library, declared), *check_targets(library, declared)]


def is_told_in_place(diagnostic: Diagnostic) -> bool:
    """At the changed file or the program; of an operator that a library lacks altogether nowhere."""
    if diagnostic.span is None:
        return diagnostic.message.startswith("no operator has the role")
    return diagnostic.span.source.name in (MINE, PROGRAM)


def outcome(shipped: Library, mine: RuleFile, replaced: str) -> str:
    """How a changed file ends: refused, or lowered; AssertionError where lowering fails elsewhere."""
    files = [mine if f.span.source.name == replaced else f for f in shipped.files]
    library, problems = gathered_library(files)
    if problems or told(library, mine):
        return "refused"
    ended = "lowered"
    for text in PROGRAMS:
        for target in ("gfx942", "host"):
            try:
                Program.parse(Source(PROGRAM, text), library, Options(target=target)).lower(library.stages[-1])
            except GenrwError as problem:
                astray = [d.render() for d in problem.diagnostics if not is_told_in_place(d)]
                assert not astray, astray
                ended = "told"
    return ended


@pytest.mark.slow
def test_a_slip_is_told_where_it_is(request: pytest.FixtureRequest) -> None:
    count = FEW * request.config.getoption("--fuzz")
    shipped = load_library(examples=False)
    ended: dict[str, int] = {}
    seed = 0
    faults = []
    while sum(ended.values()) < count:
        rng = random.Random(seed)
        seed += 1
        made = mutant(shipped, rng)
        if made is None:
            continue
        replaced, file = made
        try:
            how = outcome(shipped, file, replaced)
        except Exception as problem:  # whatever it is, the seed is what helps
            how = "astray"
            faults.append(f"seed {seed - 1}, {replaced}: {type(problem).__name__}: {str(problem)[:600]}")
        ended[how] = ended.get(how, 0) + 1
    assert not faults, f"{ended}\n" + "\n".join(faults)
    assert ended.get("refused", 0) > count / 4, ended
