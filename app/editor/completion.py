"""What may be written at a place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from genrw.editor.occurrence import CONTEXT, LOCAL
from genrw.editor.project import Analysis
from genrw.engine.ir.dtypes import DTYPES
from genrw.engine.ir.types import TYPE_MEMBERS
from genrw.engine.language.builtins import FUNCTIONS
from genrw.engine.library.context import CONTEXT_NAMES
from genrw.engine.library.library import ROLES, Library
from genrw.engine.programs.graph_facts import GRAPH_FACTS
from genrw.grammar.rw_cut import CLAUSES, DECLARATIONS

OPERATOR, ATTRIBUTE, WORD, FUNCTION, VALUE, TYPE = "operator", "attribute", "keyword", "function", "value", "type"
_IN_BRACKETS = re.compile(r"([A-Za-z_]\w*(?:\{\w*\}\w*)?)\[[^][\n]*$")
_MEMBER = re.compile(r"([A-Za-z_]\w*)\.\w*$")
_CLAUSES = tuple(dict.fromkeys(" ".join((*CLAUSES.values(), "gives where prec")).split()))
_OF_EXAMPLE = re.compile(r"^\s*(?:example|counterexample|context(?:\s+\w+)?)\s*\[(?:[^][]|\[[^][]*\])*$")
_FACTS = ("lo", "hi", "pow2", *GRAPH_FACTS)


@dataclass(frozen=True)
class Item:
    """One thing that may be written: the word, its kind, and a line about it."""

    word: str
    kind: str
    about: str = ""


def complete(analysis: Analysis, text: str, offset: int, is_program: bool) -> list[Item]:
    """All that fits at a place of a text, by what stands before it in its line."""
    line = text[text.rfind("\n", 0, offset) + 1 : offset]
    found = list(_program(analysis, line) if is_program else _rules(analysis, line))
    return list({item.word: item for item in found}.values())


def _program(analysis: Analysis, line: str) -> Iterator[Item]:
    library = analysis.library
    brackets = _IN_BRACKETS.search(line)
    if line.lstrip().startswith("@module"):
        yield from (Item(word, ATTRIBUTE) for word in ("stage", "target", "schedule", "space", "axes"))
        yield from (Item(name, VALUE) for name in (*library.stages, *library.targets))
    elif brackets:
        yield from _attributes(library, brackets[1])
    elif "->" in line:
        yield from (Item(name, TYPE) for name in DTYPES)
    elif "(" in line:
        yield from _locals(analysis)
    else:
        yield from _operators(library)
        yield from (Item(word, WORD) for word in ("@param", "@literal", "@return", "@module"))


def _rules(analysis: Analysis, line: str) -> Iterator[Item]:
    library = analysis.library
    member, brackets = _MEMBER.search(line), _IN_BRACKETS.search(line)
    words = line.split()
    if member:
        target = next(iter(library.targets.values()), None)
        of_target = member[1] == "target" and target is not None
        yield from (
            Item(n, ATTRIBUTE) for n in (target.values if of_target and target else sorted({*TYPE_MEMBERS, *_FACTS}))
        )
    elif _OF_EXAMPLE.match(line):
        yield from (Item(word, ATTRIBUTE) for word in ("target", "policy", "schedule", "space", "axes"))
        yield from (Item(o.name, VALUE) for o in analysis.remembered if o.kind == CONTEXT and o.declares)
        yield from (Item(name, VALUE) for name in library.targets)
    elif words[:1] in (["stage"], ["at"]):
        yield from (Item(stage, VALUE) for stage in library.stages)
    elif words[:1] == ["dialect"]:
        yield from (Item(dialect, VALUE) for dialect in library.dialects if dialect)
    elif words[:1] == ["role"]:
        yield from (Item(role, VALUE, about) for role, about in ROLES.items())
    else:
        if brackets:
            yield from _attributes(library, brackets[1])
        yield from _anywhere(analysis)


def _anywhere(analysis: Analysis) -> Iterator[Item]:
    library = analysis.library
    yield from _locals(analysis)
    yield from _operators(library)
    yield from (Item(name, FUNCTION, let.doc.split("\n")[0]) for name, let in library.scope.lets.items())
    known = {**FUNCTIONS, **library.scope.functions}
    yield from (Item(name, FUNCTION, function.doc) for name, function in known.items())
    yield from (Item(name, VALUE) for name in (*library.classes, *CONTEXT_NAMES))
    declarations = re.findall(r"[a-z]+", DECLARATIONS.partition("begins with")[2])
    yield from (Item(word, WORD) for word in (*declarations, *_CLAUSES) if word != "or")


def _locals(analysis: Analysis) -> Iterator[Item]:
    """The variables and values of the whole text."""
    yield from (Item(name.name, VALUE) for name in analysis.remembered if name.kind in LOCAL and name.declares)


def _operators(library: Library) -> Iterator[Item]:
    for name in library.names:
        yield Item(name, OPERATOR, library.operator(name).decl.doc.split("\n")[0])


def _attributes(library: Library, name: str) -> Iterator[Item]:
    found = library.find(name)
    family = next((f for f in library.families if f.name.partition("{")[0] == name.partition("{")[0]), None)
    operator = found[0] if found is not None else family
    if operator is not None:
        yield from (Item(a.name, ATTRIBUTE, a.type) for a in operator.decl.attributes)
