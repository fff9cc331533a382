"""Names that are declared and that nothing reads: alternatives of rules, parameters, functions, classes, words of schedules,
and what examples are given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeGuard

from genrw.engine.language.expr_walk import calls, did_you_mean, free_names, walk
from genrw.engine.library.definitions import terms_of
from genrw.engine.library.example_scope import ExampleScope
from genrw.engine.library.library import Library
from genrw.engine.library.variants import nodes
from genrw.engine.lint.finding import Finding, finding
from genrw.engine.lint.walks import expressions
from genrw.grammar.expr_tree import Const, Expr, Name
from genrw.grammar.rw_tree import (
    ClassDecl,
    ContextDecl,
    Declaration,
    DefineDecl,
    GivenDecl,
    ImportDecl,
    InstructionDecl,
    LetDecl,
    OpDecl,
    Pattern,
    RuleDecl,
    RuleFile,
)


def unused(library: Library) -> Iterator[Finding]:
    """All findings, file by file."""
    declarations = [declaration for file in library.files for declaration in file.declarations]
    called = {name for d in declarations for expr in expressions(d) for name in calls(expr)}
    terms = {node.op for d in declarations for side in _sides(d) for node in nodes(side)}
    classes = _classes_named(library)
    yield from _words(library, declarations)
    for file in library.files:
        yield from _of_examples(file)
    for declaration in declarations:
        if isinstance(declaration, RuleDecl):
            yield from _alternatives(declaration)
        if isinstance(declaration, DefineDecl) and declaration.name not in terms:
            message = f"no rule calls the term function `{declaration.name}`"
            yield finding("unused", declaration.name, message, declaration.name_span, "remove it")
        if isinstance(declaration, LetDecl):
            yield from _let(declaration, called)
        if isinstance(declaration, ClassDecl) and declaration.name not in classes:
            message = f"no rule asks for the class `{declaration.name}`"
            yield finding("unused", declaration.name, message, declaration.name_span, "remove it")
    yield from _instructions(declarations)


def _instructions(declarations: Sequence[Declaration]) -> Iterator[Finding]:
    """Instructions that no target has among its values, nor any rule by name."""
    others = [d for d in declarations if not isinstance(d, InstructionDecl)]
    named = {part.value for d in others for expr in expressions(d) for part in walk(expr) if _is_word(part)}
    for declaration in declarations:
        if isinstance(declaration, InstructionDecl) and declaration.name not in named:
            message = f"no target has the instruction `{declaration.name}`"
            yield finding(
                "unused", declaration.name, message, declaration.name_span, "name it among a target's, or remove it"
            )


def _sides(declaration: Declaration) -> Iterable[Pattern]:
    """The patterns and templates of a declaration."""
    match declaration:
        case RuleDecl():
            return (declaration.left, declaration.right)
        case OpDecl():
            return terms_of(declaration)
        case DefineDecl():
            return (declaration.term,)
        case ImportDecl():
            return declaration.templates
    return ()


def _alternatives(rule: RuleDecl) -> Iterator[Finding]:
    """Choices of a rule that make no difference."""
    used = {name for expr in expressions(rule) for name in free_names(expr)}
    used |= {n.op for side in (rule.left, rule.right) for n in nodes(side)}
    for binding in rule.for_:
        if binding.name not in used:
            message = f"`{binding.name}` runs over alternatives that make no difference"
            yield finding("unused", rule.name, message, binding.span, "use it, or remove it")


def _words(library: Library, declarations: Sequence[Declaration]) -> Iterator[Finding]:
    """Words that rules write into schedules, in place of those that follow from the numbers, and that nothing else names."""
    written = [(d, part) for d in declarations if isinstance(d, RuleDecl) for part in _words_of_schedules(library, d)]
    named = Counter(part.value for d in declarations for e in expressions(d) for part in walk(e) if _is_word(part))
    named.subtract(part.value for _, part in written)
    known = sorted(str(word) for word, count in named.items() if count > 0)
    for rule, part in written:
        if part.value not in known:
            message = f"rule `{rule.name}` writes `{part.value}` into schedules, and no rule asks for it"
            remedy = did_you_mean(str(part.value), known) or "write a rule that asks for it"
            yield finding("unused", rule.name, message, part.span, remedy)


def _words_of_schedules(library: Library, rule: RuleDecl) -> Iterator[Const]:
    """The words of a rule's schedules for attributes that have a default."""
    for node in nodes(rule.right):
        if any(operator.name == node.op for operator in library.kernel_operators):
            declared = library.operator(node.op).attributes
            for attribute in node.attributes:
                kind = declared.get(attribute.name)
                if (
                    attribute.value is not None
                    and kind is not None
                    and kind.type == "string"
                    and kind.default is not None
                ):
                    yield from (part for part in walk(attribute.value) if _is_word(part))


def _is_word(part: Expr) -> TypeGuard[Const]:
    return isinstance(part, Const) and isinstance(part.value, str)


def _of_examples(file: RuleFile) -> Iterator[Finding]:
    """What a file and its rules give that no example takes."""
    scope = ExampleScope([])
    rules = [d for d in map(scope.enter, file.declarations) if isinstance(d, RuleDecl)]
    taken = {id(one) for rule in rules for example in rule.examples for one in example.given}
    for declaration in file.declarations:
        for one in declaration.given if isinstance(declaration, GivenDecl | RuleDecl) else ():
            if id(one) not in taken:
                message = f"no example names `{one.name}`"
                yield finding("unused", declaration.name, message, one.name_span, "remove it")
        if isinstance(declaration, ContextDecl) and id(declaration) not in scope.asked:
            message = "no example has this context"
            yield finding("unused", declaration.name, message, declaration.name_span, "remove it")


def _let(let: LetDecl, called: Iterable[str]) -> Iterator[Finding]:
    if let.name not in called:
        yield finding("unused", let.name, f"nothing calls `{let.name}`", let.name_span, "remove it")
    for parameter in let.parameters:
        if parameter not in free_names(let.body) and not parameter.startswith("_"):
            message = f"`{let.name}` does not use its parameter `{parameter}`"
            yield finding("unused", let.name, message, let.name_span, f"remove it, or call it `_{parameter}`")


def _classes_named(library: Library) -> set[str]:
    """The classes that rules and other classes name."""
    named = {b.value.name for r in library.rules for b in r.for_ if isinstance(b.value, Name)}
    for file in library.files:
        for declaration in file.declarations:
            if isinstance(declaration, ClassDecl):
                named.update(name for _, names in declaration.terms for name in names)
    return named
