"""The rule of the house: an operator's name appears in rules/ and in tests, nowhere else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from genrw.engine.ir.dtypes import CLASSES, DTYPES
from genrw.engine.language.builtins import BUILTINS
from genrw.engine.library.library import ROLES, Library
from genrw.grammar.rw_tree import PRECEDENCES

ROOT = Path(__file__).parents[1]
FOLDERS = ("grammar", "engine", "codegen", "app")

# Words that name something else besides, wherever they stand.
BOUNDARY_PARTS = ("input", "constant", "scalar", "number", "result", "effects", "call")

# Words that name something else in one file.
CLAUSES = ("where", "at", "bound")
NUMPY_AND_CPP = ("add", "sub", "shift_left", "shift_right", "bitwise_and", "bitwise_or", "bitwise_xor", "logical_not")
ELSEWHERE = {
    "grammar/rw_build.py": CLAUSES,
    **dict.fromkeys(("grammar/rw.py", "grammar/rw_cut.py", "grammar/rw_format.py"), ("op",)),
    "engine/language/emit_text.py": ("share",),
    "engine/importing/importer.py": ("position",),
    "engine/importing/scope.py": ("position",),
    "engine/library/variants.py": ("position",),
    "engine/egraph/stage.py": ("op", "load"),
    "grammar/rw_tree.py": PRECEDENCES,
    "engine/language/operators.py": (*PRECEDENCES, *NUMPY_AND_CPP),
    "codegen/hip/expression_text.py": ("share", *PRECEDENCES),
    "codegen/runtime/compile.py": ("source",),
    "codegen/hip/trust.py": ("return",),
    "app/coverage/report.py": ("source",),
    "app/explain/view_data.py": ("source",),
    "app/__init__.py": ("load",),
    "app/editor/completion.py": ("at",),
}


def operator_names(library: Library) -> frozenset[str]:
    foreign = {name for imports in library.dialects.values() for name in imports}
    return frozenset(library.names) | {family.name for family in library.families} | foreign


def strings(path: Path) -> Iterator[tuple[int, str]]:
    """The string literals of a file with their lines."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def everywhere() -> frozenset[str]:
    """Roles, parts of the boundary, element types and the functions of the expression language."""
    return frozenset({*ROLES, *BOUNDARY_PARTS, *DTYPES, *CLASSES, *BUILTINS})


def named_operators(path: Path, library: Library) -> list[str]:
    """The places in a file that name an operator."""
    allowed = everywhere() | set(ELSEWHERE.get(path.relative_to(ROOT).as_posix(), ()))
    names = operator_names(library) - allowed
    return [f"{path.relative_to(ROOT)}:{line}: {text!r}" for line, text in strings(path) if text in names]


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_operator_is_named(folder: str, library: Library) -> None:
    found = [place for path in sorted((ROOT / folder).rglob("*.py")) for place in named_operators(path, library)]
    assert not found, "\n".join(found)


def test_every_exception_is_one(library: Library) -> None:
    """No file has leave to name what it does not name."""
    names = operator_names(library) - everywhere()
    for file, words in ELSEWHERE.items():
        used = {text for _, text in strings(ROOT / file)}
        assert used & names & set(words), f"{file} names no operator any more"


def test_the_test_sees_names(library: Library) -> None:
    assert {"Softmax", "exp", "add", "gridwise_reduce", "reduce_sum", "lds_allocate"} <= operator_names(library)
    assert "gridwise_reduce" not in everywhere()


@pytest.mark.parametrize("path", sorted((ROOT / "engine/lint").glob("*.py")), ids=lambda path: str(path.stem))
def test_all_that_checks_tell_has_a_remedy(path: Path) -> None:
    calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    told = [c for c in calls if isinstance(c.func, ast.Name) and c.func.id in ("Diagnostic", "error")]
    without = [c.lineno for c in told if len(c.args) < 3 and not any(k.arg == "remedy" for k in c.keywords)]
    assert not without
