"""Programs and rules edited while a process goes on: it says what a new process says."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Collection
from functools import cache
from pathlib import Path
from random import Random

import pytest

import genrw
from genrw.authoring.rulesets import shipped_folder
from genrw.grammar.diagnostics import GenrwError
from genrw.grammar.rw import parse_rw
from genrw.grammar.rw_tree import RuleDecl

PROGRAM = """\
x = @param:x -> half{4096, 1024}
b = @param:b -> half{1024}
m = reduce_max[axes={1}](x)
d = sub(x, m)
e = exp(d)
s = reduce_sum[axes={1}](e)
y = div(e, s)
z = add(y, b)
@return(z)
"""

EDITS = 6

NEW_PROCESS = """\
import os, sys, genrw
from genrw.grammar.diagnostics import GenrwError
try:
    print(genrw.lower(sys.argv[1], rules=[sys.argv[2]], shipped=False), end="", flush=True)
except GenrwError as problem:
    print(problem, end="", flush=True)
os._exit(0)
"""
"""It leaves without taking rules and e-graphs down, which takes a third of its time."""


def outcome(program: Path, rules: Path) -> str:
    """The lowered program, or what is wrong."""
    try:
        return genrw.lower(program, rules=[rules], shipped=False)
    except GenrwError as problem:
        return str(problem)


def outcome_of_new_process(program: Path, rules: Path) -> str:
    command = [sys.executable, "-c", NEW_PROCESS, str(program), str(rules)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@cache
def rules_of(text: str) -> list[RuleDecl]:
    return [d for d in parse_rw(text).declarations if isinstance(d, RuleDecl)]


# ---- edits of a rule: each gives its file's new text


def comment(text: str, rule: RuleDecl, _: Random) -> str:
    """Lines before a rule: what follows stands elsewhere."""
    at = text.rfind("\n\n", 0, rule.span.start) + 1
    return f"{text[:at]}\n# a remark\n{text[at:]}"


def removal(text: str, rule: RuleDecl, _: Random) -> str:
    return text[: rule.span.start] + text[rule.span.end :]


def copy(text: str, rule: RuleDecl, choice: Random) -> str:
    """The same rule under another name, somewhere between the others."""
    head = f"rule {rule.name}"
    twin = rule.span.text.replace(head, f"{head}_{choice.randrange(10**6)}", 1)
    at = choice.choice(rules_of(text)).span.end
    return f"{text[:at]}\n\n{twin}\n{text[at:]}"


def move(text: str, rule: RuleDecl, _: Random) -> str:
    """To the end of the file: another rule may come first now."""
    return f"{text[: rule.span.start]}{text[rule.span.end :]}\n{rule.span.text}\n"


def guard(text: str, rule: RuleDecl, choice: Random) -> str:
    """A guard that holds never, or as before; of another text each time."""
    if rule.guard is None:
        return removal(text, rule, choice)
    span = rule.guard.span
    return f"{text[: span.start]}{choice.randrange(20)} > 9 and ({span.text}){text[span.end :]}"


def mistake(text: str, rule: RuleDecl, _: Random) -> str:
    at = rule.left.span.start
    return f"{text[:at]}no_such_{text[at:]}"


def failure(text: str, rule: RuleDecl, _: Random) -> str:
    """A guard that fails only when it is asked."""
    if rule.guard is None:
        return removal(text, rule, _)
    at = rule.guard.span.start
    return f"{text[:at]}1 // 0 > 1 and {text[at:]}"


RULE_EDITS: tuple[Callable[[str, RuleDecl, Random], str], ...] = (
    comment,
    removal,
    copy,
    move,
    guard,
    mistake,
    failure,
)


def edit_rule(rules: Path, used: Collection[str], choice: Random) -> tuple[Path, str]:
    """Edit a rule, often one that is used; gives the file and its text before."""
    texts = {path: path.read_text() for path in sorted(rules.rglob("*.rw"))}
    every = [(path, rule) for path, text in texts.items() for rule in rules_of(text)]
    some = [(path, rule) for path, rule in every if rule.name in used]
    path, rule = choice.choice(some if some and choice.random() < 0.7 else every)
    path.write_text(choice.choice(RULE_EDITS)(texts[path], rule, choice))
    return path, texts[path]


def edit_program(path: Path, choice: Random) -> None:
    text = path.read_text()
    old, new = choice.choice(
        (("exp", "tanh"), ("4096", str(choice.randrange(100, 5000))), ("add(", "mul("), ("z", "w"))
    )
    path.write_text(text.replace(old, new) if old in text else PROGRAM)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 3])
def test_edits_in_one_process(tmp_path: Path, seed: int) -> None:
    choice = Random(seed)
    program, rules = tmp_path / "a.gen", tmp_path / "rules"
    program.write_text(PROGRAM)
    shutil.copytree(shipped_folder(), rules, ignore=lambda _, names: [n for n in names if n.startswith("__")])
    used = genrw.load(program, rules=[rules], shipped=False).lower("final").trace.survived
    seen = set()
    for _ in range(EDITS):
        undo = None
        if choice.random() < 0.2:
            edit_program(program, choice)
        else:
            undo = edit_rule(rules, used, choice)
        told = outcome(program, rules)
        assert told == outcome_of_new_process(program, rules)
        seen.add(told)
        if undo is not None and "@return" not in told:
            undo[0].write_text(undo[1])
    assert len(seen) > EDITS / 3


@pytest.mark.slow
@pytest.mark.parametrize(("guard", "number"), [("n == 1000", "n // 0"), ("n in [1000]", "n / 0"), ("n > 9", "half(n)")])
def test_what_fails_is_told_of_where_it_stands_now(tmp_path: Path, guard: str, number: str) -> None:
    """A rule, or the helper that it calls, has moved since it was encoded; the e-graph or Python finds the mistake."""
    program, rules = tmp_path / "a.gen", tmp_path / "rules"
    program.write_text("x = @param:x -> float{64, 1000}\ns = reduce_sum[axes={1}](x)\n@return(s)\n")
    shutil.copytree(shipped_folder(), rules, ignore=lambda _, names: [n for n in names if n.startswith("__")])
    rule = f"rule mine\n  a * {{n}} when {guard}\n  => a * {{{number}}}\n"
    first = f"stage final\n\nlet half(n) = n / 0\n\n{rule}"
    expected: dict[str, str] = {}
    for text in (first, f"\n\n{first}", first.replace("\nrule", "\n# moved\nrule"), first):
        (rules / "mine.rw").write_text(text)
        told = outcome(program, rules)
        assert "mine.rw:" in told
        if text not in expected:
            expected[text] = outcome_of_new_process(program, rules)
        assert told == expected[text]


def test_what_fails_in_a_folder_is_told_of_that_folder(tmp_path: Path) -> None:
    """Rules of the same text stood in another one before."""
    program = tmp_path / "a.gen"
    program.write_text("x = @param:x -> float{64, 1000}\ns = reduce_sum[axes={1}](x)\n@return(s)\n")
    for name in ("one", "two"):
        rules = tmp_path / name / "mine.rw"
        rules.parent.mkdir()
        rules.write_text("stage final\n\nlet half(n) = n / 0\n\nrule mine\n  a * {n} when n > 9\n  => a * {half(n)}\n")
        with pytest.raises(GenrwError, match="division by zero") as caught:
            genrw.lower(program, rules=[rules.parent])
        assert str(caught.value).startswith(f"{rules}:3:15: error:")
