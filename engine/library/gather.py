"""Rule files gathered into a library: declarations by kind and name, and rules as the engine runs them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from genrw.engine.language.layouts import LAYOUT_FUNCTIONS
from genrw.engine.library.constants import CONSTANTS, constant_operators, spelled_out
from genrw.engine.library.definitions import Derived, TermFunctions, definition_rules
from genrw.engine.library.example_scope import ExampleScope
from genrw.engine.library.instructions import Instruction, instruction_functions, instruction_problems
from genrw.engine.library.library import NOWHERE, ROLES, ExpressionScope, Library, Operator
from genrw.engine.library.monoids import monoid_functions, with_field
from genrw.engine.library.rows import with_variables_apart, written_out_rows
from genrw.engine.library.signs import operators_of_signs, with_operators
from genrw.engine.library.taken_types import operator_functions
from genrw.engine.library.targets import settings, targets_of
from genrw.engine.library.variants import nodes
from genrw.grammar.diagnostics import Diagnostic, GenrwError
from genrw.grammar.rw_tree import (
    ClassDecl,
    ContextDecl,
    Declaration,
    DefineDecl,
    GivenDecl,
    ImportDecl,
    InstructionDecl,
    LetDecl,
    MonoidDecl,
    OpDecl,
    Pattern,
    PipelineDecl,
    RuleDecl,
    RuleFile,
    TargetDecl,
)


def build_library(files: Iterable[RuleFile], before: Library | None = None) -> Library:
    """Gather declarations. Names declared twice, unknown bases and unknown class members are GenrwErrors.

    From an earlier library everything but the rules is taken over if it is the same; messages about helpers may then be
    about the place where they stood before.
    """
    library, problems = gathered_library(files, before)
    if problems:
        raise GenrwError(problems)
    return library


def gathered_library(
    files: Iterable[RuleFile], before: Library | None = None
) -> tuple[Library, tuple[Diagnostic, ...]]:
    """The same as far as it goes, and what is wrong: of two declarations of a name the first counts."""
    gatherer = _Gatherer(tuple(files), before)
    library = gatherer.library(before)
    return library, tuple(gatherer.problems)


_D = TypeVar("_D")


def _known(before: Library | None, signs: Mapping[str, str]) -> dict[int, Declaration]:
    """What declarations that were read before became then, by their ids: the same again where signs mean the same."""
    if before is None or before.signs != signs:
        return {}
    pairs = zip(before.read, before.files, strict=True)
    return {id(old): new for read, file in pairs for old, new in zip(read.declarations, file.declarations, strict=True)}


def _attempted(make: Callable[[_D], _D], declaration: _D) -> _D:
    """A declaration made over; one that cannot be stays as it is, for the checks to tell."""
    try:
        return make(declaration)
    except GenrwError:
        return declaration


def _matched_sides(rule: RuleDecl) -> tuple[Pattern, ...]:
    """The sides of a rule that are matched."""
    return (rule.left, rule.right) if rule.both_ways else (rule.left,)


def _spelled_out(rule: RuleDecl, library: Library) -> Sequence[RuleDecl]:
    """A rule with its constants written out; one whose numbers mean nothing stays as it is, for the checks to tell."""
    try:
        return spelled_out(rule, library)
    except GenrwError:
        return (rule,)


class _Gatherer:
    """Collects declarations by kind and the problems met on the way."""

    def __init__(self, files: tuple[RuleFile, ...], before: Library | None) -> None:
        self.problems: list[Diagnostic] = []
        self.read = files
        self.signs = operators_of_signs(files, self.problems)
        self.files = with_operators(files, self.signs, _known(before, self.signs))
        self.kinds: dict[type, dict[str, Any]] = {}
        self.dialects: dict[str, dict[str, tuple[ImportDecl, ...]]] = {}
        for file in self.files:
            scope = ExampleScope(self.problems)
            for declaration in map(scope.enter, file.declarations):
                if isinstance(declaration, ImportDecl):
                    imports = self.dialects.setdefault(declaration.dialect or "", {})
                    imports[declaration.name] = (*imports.get(declaration.name, ()), declaration)
                elif isinstance(declaration, RuleDecl):
                    self._add_rules(declaration)
                elif not isinstance(declaration, OF_EXAMPLES):
                    self._add(declaration)

    def _add(self, declaration: Any) -> None:
        named = self.kinds.setdefault(type(declaration), {})
        if declaration.name in named:
            first = named[declaration.name]
            self.problems.append(
                Diagnostic(
                    f"`{declaration.name}` is declared twice",
                    declaration.name_span,
                    f"the first declaration is at {first.name_span}; rename one or remove it",
                )
            )
        else:
            named[declaration.name] = declaration

    def _add_rules(self, rule: RuleDecl) -> None:
        try:
            for one in written_out_rows(rule):
                self._add(one)
        except GenrwError as problem:
            self.problems += problem.diagnostics

    def _of(self, kind: type) -> dict[str, Any]:
        return self.kinds.get(kind, {})

    def library(self, before: Library | None) -> Library:
        if before is not None and not self.problems and _same_terms(self.read, before.read):
            return self._with_rules(replace(before, files=self.files, read=self.read))
        lets: dict[str, LetDecl] = self._of(LetDecl)
        monoids = {name: with_field(monoid) for name, monoid in self._of(MonoidDecl).items()}
        instructions: dict[str, Instruction] = {}
        declared = self._operators(monoids)
        named = monoid_functions(monoids) | operator_functions({op.name: op for op in declared})
        scope = ExpressionScope(lets, named | instruction_functions(instructions) | LAYOUT_FUNCTIONS)
        instructions |= self._instructions(scope)
        operators = [Operator(decl, scope) for decl in declared]
        pipeline = next(iter(self._of(PipelineDecl).values()), None)
        library = Library(
            files=self.files,
            read=self.read,
            signs=self.signs,
            operators={op.name: op for op in operators if op.decl.family is None},
            families=tuple(op for op in operators if op.decl.family is not None),
            monoids=monoids,
            targets=targets_of(self._of(TargetDecl), scope, instructions, self.problems),
            instructions=instructions,
            scope=scope,
            classes={},
            stages=pipeline.stages if pipeline is not None else (),
            rules=(),
            dialects=self._dialects(),
            defines=self._of(DefineDecl),
        )
        classes: dict[str, frozenset[str]] = {CONSTANTS: constant_operators(library)}
        object.__setattr__(library, "classes", classes)
        for decl in self._of(ClassDecl).values():
            classes[decl.name] = self._class(decl, library)
        return self._with_rules(library)

    def _with_rules(self, library: Library) -> Library:
        """The library with its rules, spelled out."""
        functions = TermFunctions(library.defines)
        rules = [_attempted(functions.rule, rule) for rule in self._of(RuleDecl).values()]
        wanted = self._recognised(rules)
        operators = (*library.operators.values(), *library.families)
        defined = [
            rule
            for op in operators
            if op.decl.definitions
            for rule in definition_rules(library, op.decl, op.decl.name in wanted)
        ]
        classes = {*library.classes, *ROLES}
        apart = (with_variables_apart(rule, library.operators, classes) for rule in rules)
        library = replace(library, rules=(*defined, *apart))
        return replace(library, rules=tuple(one for rule in library.rules for one in _spelled_out(rule, library)))

    def _recognised(self, rules: Iterable[RuleDecl]) -> set[str]:
        """The operators for which it matters that they are recognised in what they are made of: those that rules match by
        name, and of those that a stage may leave what classes list and what says itself what it costs."""
        named = {node.op for rule in rules for side in _matched_sides(rule) for node in nodes(side)}
        listed = {name for decl in self._of(ClassDecl).values() for _, names in decl.terms for name in names}
        ops: dict[str, OpDecl] = self._of(OpDecl)
        lasting = {name for name, op in ops.items() if op.stages != (NOWHERE,)}
        costed = {name for name, op in ops.items() if op.cost is not None}
        return named | (lasting & (listed | costed))

    def _operators(self, monoids: Mapping[str, MonoidDecl]) -> Sequence[OpDecl]:
        """The operators, with what their definitions say."""
        functions = TermFunctions(self._of(DefineDecl))
        declared: dict[str, OpDecl] = self._of(OpDecl)
        foreign = {name: one[0].full_name for imports in self.dialects.values() for name, one in imports.items()}
        for name, define in functions.declared.items():
            if name in declared or name in foreign:
                message = (
                    f"`{name}` is an operator, too" if name in declared else f"`{foreign[name]}` is called so, too"
                )
                self.problems.append(Diagnostic(message, define.name_span, "rename the term function"))
        expanded = {name: _attempted(functions.operator, op) for name, op in declared.items()}
        derived = Derived(expanded, monoids)
        return [_attempted(derived.completed, op) for op in expanded.values()]

    def _dialects(self) -> dict[str, dict[str, tuple[ImportDecl, ...]]]:
        functions = TermFunctions(self._of(DefineDecl))
        return {
            dialect: {
                name: tuple(_attempted(functions.imported, one) for one in several) for name, several in imports.items()
            }
            for dialect, imports in self.dialects.items()
        }

    def _instructions(self, scope: ExpressionScope) -> dict[str, Instruction]:
        decls: dict[str, InstructionDecl] = self._of(InstructionDecl)
        made: dict[str, Instruction] = {}
        for name, decl in decls.items():
            values = settings(name, decl.values, scope, self.problems)
            problems = [*instruction_problems(decl, values)]
            self.problems += problems
            if not problems:
                made[name] = Instruction(decl, values)
        return made

    def _class(self, decl: ClassDecl, library: Library) -> frozenset[str]:
        members: set[str] = set()
        for sign, names in decl.terms:
            for name in names:
                found = library.members_of(name)
                if found is None and library.find(name) is not None:
                    found = frozenset({name})
                if found is None:
                    remedy = library.suggest(name)
                    self.problems.append(Diagnostic(f"`{name}` is neither an operator nor a class", decl.span, remedy))
                    continue
                members = members | found if sign == "+" else members - found
        return frozenset(members)


OF_EXAMPLES = (GivenDecl, ContextDecl)
"""What a file says for the examples of its rules alone."""
_PLACELESS = (LetDecl, ClassDecl, PipelineDecl, TargetDecl, InstructionDecl)
"""What no message is about once a library is made, helpers aside: these are told of where rules call them."""


def _same_terms(some: Iterable[RuleFile], others: Iterable[RuleFile]) -> bool:
    """Do files declare the same things, rules aside? What messages may be about has to be the very same."""
    first, second = (
        [d for file in files for d in file.declarations if not isinstance(d, (RuleDecl, *OF_EXAMPLES))]
        for files in (some, others)
    )
    if len(first) != len(second):
        return False
    if not all(a is b or (isinstance(a, _PLACELESS) and a == b) for a, b in zip(first, second, strict=True)):
        return False
    helpers = {a.name for a, b in zip(first, second, strict=True) if a is not b and isinstance(a, LetDecl)}
    return not helpers or not _called_for(helpers, first)


def _called_for(helpers: set[str], declarations: Sequence[Declaration]) -> bool:
    """May anything but rules call the helpers, directly or through others? So it seems if calls stand in their text."""
    size = 0
    while size < len(helpers):
        size = len(helpers)
        call = re.compile(rf"\b(?:{'|'.join(sorted(helpers))})\s*\(")
        users = [d for d in declarations if d.name not in helpers and call.search(d.span.text)]
        if not all(isinstance(user, LetDecl) for user in users):
            return True
        helpers = helpers | {user.name for user in users}
    return False
