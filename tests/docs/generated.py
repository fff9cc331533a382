"""Tables of docs/ that are made from the code and the rules, between `<!-- generated: NAME -->` and `<!-- end -->`."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePath

from programs import PROGRAMS

from genrw.engine.interpret.fold import Folds, fold_functions
from genrw.engine.interpret.lanes import Lanes, lane_functions
from genrw.engine.ir.dtypes import CLASSES, DTYPES
from genrw.engine.language.array_functions import array_functions
from genrw.engine.language.builtins import FUNCTIONS
from genrw.engine.language.functions import Function
from genrw.engine.language.layouts import LAYOUT_FUNCTIONS
from genrw.engine.library.library import ROLES, Library, family_affixes
from genrw.engine.library.monoids import monoid_functions
from genrw.engine.library.taken_types import operator_functions
from genrw.engine.library.variants import nodes
from genrw.engine.programs.example_programs import program_of
from genrw.grammar import gen_tree as tree
from genrw.grammar.expr_tree import Name
from genrw.grammar.gen import parse_gen
from genrw.grammar.rw import print_declaration
from genrw.grammar.rw_print import print_pattern
from genrw.grammar.rw_tree import OpDecl, OpPattern, RuleFile

ROOT = Path(__file__).parents[2]

_COVERED = ROOT / "tests" / "rules" / "covered_by.json"
"""For each rule programs that it matters to, as tests/rules/test_coverage.py found them."""

_SHOWN = 3
"""How many programs a table names for an operator."""

_SHORT_TERM = 120
"""Terms of so many characters are shown beside an operator."""

_SECTION = re.compile(r"(<!-- generated: ([\w ./]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def filled(text: str, library: Library) -> str:
    """A page with its generated tables as they should be."""
    return _SECTION.sub(lambda m: f"{m[1]}\n{_section(m[2], library)}\n{m[4]}", text)


def _section(name: str, library: Library) -> str:
    if name.startswith("operators "):
        return _operators(name.removeprefix("operators "), library)
    if name.startswith("modules "):
        return _modules(ROOT / name.removeprefix("modules "))
    return _TABLES[name](library)


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def _functions(functions: Mapping[str, Function]) -> str:
    return _table(["function", "value"], [[f"`{f.signature}`", f.doc] for f in functions.values()])


def _array_functions(library: Library) -> str:
    return _functions({**array_functions(), **fold_functions(Folds(library, False))})


def _lane_functions(library: Library) -> str:
    return _functions(lane_functions(Lanes(Folds(library, False), True)))


def _dtypes(_: Library) -> str:
    classes = {d: [c for c, members in CLASSES.items() if d in members and c != "any"] for d in DTYPES}
    rows = [[f"`{d.name}`", str(d.itemsize), f"`{d.compute}`", ", ".join(classes[d.name])] for d in DTYPES.values()]
    return _table(["element type", "bytes", "computed in", "classes besides `any`"], rows)


def _roles(_: Library) -> str:
    return _table(["role", "an operator that"], [[f"`{role}`", about] for role, about in ROLES.items()])


_TARGET_VALUES = ("device", "wave_size", "lds_bytes", "vector_bytes", "compute_units", "bandwidth_gbs")


def _targets(library: Library) -> str:
    rows = [
        [f"`{name}`", *(str(target.values[key]) for key in _TARGET_VALUES)] for name, target in library.targets.items()
    ]
    return _table(["target", *(f"`{key}`" for key in _TARGET_VALUES)], rows)


def _monoids(library: Library) -> str:
    return _table(["monoid", "a fold"], [[f"`{m.name}`", _line(m.doc)] for m in library.monoids.values()])


def _operators(name: str, library: Library) -> str:
    """The operators that one of the shipped files declares."""
    declared = [d for d in _file(name, library).declarations if isinstance(d, OpDecl)]
    return _table(
        ["operator", "value"], [[f"`{_head(d)}`", _line(d.doc) + _written(d) + _made_of(d)] for d in declared]
    )


def _written(op: OpDecl) -> str:
    """The sign that an operator is written with in terms, if it has one."""
    return f" Written `{op.operands[0].name} {op.sign} {op.operands[1].name}`." if op.sign is not None else ""


def _made_of(op: OpDecl) -> str:
    """What an operator is made of, where it says so and the term is short."""
    term = print_pattern(op.definitions[0].term) if op.definitions else ""
    return f" It is `{term}`." if term and len(term) <= _SHORT_TERM else ""


def _modules(folder: Path) -> str:
    """What a package says that it holds, and what its modules say."""
    paths = sorted(path for path in folder.glob("*.py") if path.name != "__init__.py")
    rows = [[f"`{path.name}`", _prose(_docstring(path))] for path in paths]
    return f"{_prose(_docstring(folder / '__init__.py'))}\n\n{_table(['module', 'holds'], rows)}"


def _docstring(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def _prose(doc: str) -> str:
    """A docstring without its listings."""
    return _line(" ".join(part for part in doc.split("\n\n") if "\n  " not in part))


def _rule_files(library: Library) -> str:
    """The shipped files with the first paragraph of the comments that head them."""
    rows = [[f"`{f.span.source.name}`", _line(f.doc.partition("\n\n")[0])] for f in library.files]
    return _table(["file", "about"], rows)


def _made_and_taken(library: Library) -> str:
    """For each operator the rules that name it: those that build it, and those whose left sides hold it."""
    made: dict[str, dict[str, None]] = {}
    taken: dict[str, dict[str, None]] = {}
    for rule in library.rules:
        for side, found in ((rule.left, taken), (rule.right, made)):
            for node in nodes(side):
                found.setdefault(_declared_name(node, library), {})[rule.name] = None
    examples, programs = _examples_with(library), _programs_with(library)
    rows = [
        [
            f"`{o.name}`",
            _names(made.get(o.name, ())),
            _names(taken.get(o.name, ())),
            str(examples.get(o.name, 0)),
            _some(programs.get(o.name, [])),
        ]
        for o in [*library.operators.values(), *library.families]
    ]
    headings = ["operator", "built by", "taken by", "examples", "programs"]
    return _table(headings, [row for row in rows if row[1] or row[2]])


def _examples_with(library: Library) -> Counter[str]:
    """In how many examples of rules each operator stands."""
    held = []
    for example in (e for rule in library.rules for e in rule.examples):
        sides = [side for side in (example.before, example.after) if side is not None]
        held.append({node.op for side in sides for node in program_of(library, example, side).nodes})
    return Counter(found[0].name for ops in held for op in ops if (found := library.find(op)) is not None)


def _programs_with(library: Library) -> dict[str, list[str]]:
    """The programs of tests/verify/programs.py in which each operator stands."""
    found: dict[str, list[str]] = {}
    for program, text in PROGRAMS.items():
        for name in _operators_in(parse_gen(text), library):
            found.setdefault(name, []).append(program)
    return found


def _operators_in(file: tree.File, library: Library) -> set[str]:
    """The operators and families that a program's lines name."""
    known = (library.find(line.op) for module in file.modules for line in module.instructions)
    return {operator[0].name for operator in known if operator is not None}


def _some(names: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return _names(names[:_SHOWN]) + more


def _declared_name(node: OpPattern, library: Library) -> str:
    """The operator or family that a node of a pattern names; a variable's name where it stands for a class."""
    found = library.find(node.op.replace("{}", node.family or "") if node.family in library.monoids else node.op)
    families = (f.name for f in library.families if family_affixes(f.name) == tuple(node.op.split("{}")))
    return found[0].name if found is not None else next(families, node.op)


def _names(rules: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in rules)


def _rules_of_classes(library: Library) -> str:
    """The rules over many operators, by class."""
    over: dict[str, list[str]] = {}
    for rule in library.rules:
        for binding in rule.for_:
            if isinstance(binding.value, Name) and library.members_of(binding.value.name) is not None:
                over.setdefault(binding.value.name, []).append(rule.name)
    members = {name: library.members_of(name) or frozenset() for name in over}
    rows = [[f"`{name}`", str(len(members[name])), _names(rules)] for name, rules in sorted(over.items())]
    return _table(["class", "operators", "rules"], rows)


def _rules(library: Library) -> str:
    """Every rule with what it says of itself, how many examples it has, and programs that it matters to."""
    rows, covered = [], json.loads(_COVERED.read_text(encoding="utf-8"))
    for rule in library.rules:
        against = sum(example.after is None for example in rule.examples)
        examples = f"{len(rule.examples) - against} and {against} against" if against else str(len(rule.examples))
        file = PurePath(rule.span.source.name).as_posix()
        programs = ", ".join(_program(label) for label in covered.get(rule.name, ()))
        rows.append([f"`{rule.name}`", rule.stage or "", f"`{file}`", _line(rule.doc), examples, programs])
    return _table(["rule", "stage", "file", "about", "examples", "covered by"], rows)


def _program(label: str) -> str:
    """A program by its name, and how it is lowered if not as usual."""
    name, *how = label.split(" ", 1)
    return " ".join([f"`{name}`", *how])


def _file(name: str, library: Library) -> RuleFile:
    return next(f for f in library.files if PurePath(f.span.source.name).as_posix() == f"rules/{name}")


def _head(declaration: OpDecl) -> str:
    """What stands before the clauses of a declaration: how the operator is used."""
    lines = print_declaration(declaration).splitlines()
    head = next(line for line in lines if line.startswith("op "))
    return head.removeprefix("op ")


def _line(doc: str) -> str:
    return " ".join(doc.split())


_TABLES: dict[str, Callable[[Library], str]] = {
    "dtypes": _dtypes,
    "roles": _roles,
    "targets": _targets,
    "monoids": _monoids,
    "rule files": _rule_files,
    "made and taken": _made_and_taken,
    "rules of classes": _rules_of_classes,
    "rules": _rules,
    "functions": lambda _: _functions(FUNCTIONS),
    "layout functions": lambda _: _functions(LAYOUT_FUNCTIONS),
    "monoid functions": lambda library: _functions(monoid_functions(library.monoids)),
    "operator functions": lambda _: _functions(operator_functions({})),
    "array functions": _array_functions,
    "lane functions": _lane_functions,
}
