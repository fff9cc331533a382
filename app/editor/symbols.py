"""Names in texts: where each stands, of what kind it is, and which of its places declares it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from genrw.editor.example_symbols import ExampleNames
from genrw.editor.occurrence import (
    CLASS,
    FUNCTION,
    INSTRUCTION,
    LET,
    MODULE,
    MONOID,
    OPERATOR,
    RULE,
    TARGET,
    VALUE,
    VARIABLE,
    Occurrence,
    head,
)
from genrw.engine.library.definitions import terms_of
from genrw.engine.library.library import Library
from genrw.engine.library.variants import leaves, nodes
from genrw.engine.lint.walks import expressions
from genrw.grammar.expr_tree import Call, Expr, Name, walk_free
from genrw.grammar.gen_tree import File, Module, Ref, Word
from genrw.grammar.rw_tree import (
    AttributePattern,
    Binding,
    ClassDecl,
    Declaration,
    DefineDecl,
    InstructionDecl,
    LetDecl,
    MonoidDecl,
    NumberPattern,
    OpDecl,
    OpPattern,
    Pattern,
    RuleDecl,
    RuleFile,
    TargetDecl,
    VarPattern,
)
from genrw.grammar.source import Span

# ---- programs


def program_names(file: File) -> Iterator[Occurrence]:
    """The names of a program: operators, results, modules."""
    for module in file.modules:
        yield from _module(module, f"{module.span.source.name}:{module.name}", module.span.source.name)


def _module(module: Module, scope: str, file: str) -> Iterator[Occurrence]:
    source = module.span.source
    at = source.text.find(module.name, module.span.start)
    if source.text.startswith("@module", module.span.start):
        yield Occurrence(Span(source, at, at + len(module.name)), MODULE, module.name, file, True)
    for instruction in module.instructions:
        for name, span in zip(instruction.names, instruction.name_spans, strict=False):
            yield Occurrence(span, VALUE, name, scope, True)
        if not instruction.op.startswith("@"):
            unnamed = not instruction.names
            if unnamed:
                yield Occurrence(instruction.op_span, VALUE, instruction.op, scope, True)
            yield Occurrence(instruction.op_span, OPERATOR, instruction.op)
        for attribute in instruction.attributes:
            if attribute.name == "module" and isinstance(attribute.value, Word):
                yield Occurrence(attribute.value_span, MODULE, attribute.value.name, file)
        yield from (Occurrence(o.span, VALUE, o.name, scope) for o in instruction.operands if isinstance(o, Ref))


# ---- rule files


def rule_names(file: RuleFile, library: Library) -> Iterator[Occurrence]:
    """The names of a rule file."""
    examples = ExampleNames(file.span.source.name)
    for declaration in file.declarations:
        yield from _declared(declaration)
        yield from examples.of(declaration)
        match declaration:
            case RuleDecl():
                yield from _rule(declaration, library)
            case LetDecl(_, parameters, body):
                yield from _let(declaration, parameters, body)
            case ClassDecl():
                yield from _class(declaration, library)
            case DefineDecl():
                yield from _term_function(declaration, library)
            case OpDecl():
                if declaration.sign is not None:
                    yield Occurrence(declaration.sign_span, OPERATOR, declaration.name, is_sign=True)
                for term in terms_of(declaration):
                    yield from _side(term, frozenset(), "", library)
                yield from _calls(expressions(declaration))
            case _:
                yield from _calls(expressions(declaration))


_KINDS = {
    OpDecl: OPERATOR,
    DefineDecl: OPERATOR,
    RuleDecl: RULE,
    ClassDecl: CLASS,
    LetDecl: LET,
    MonoidDecl: MONOID,
    TargetDecl: TARGET,
    InstructionDecl: INSTRUCTION,
}


def _declared(declaration: Declaration) -> Iterator[Occurrence]:
    kind = _KINDS.get(type(declaration))
    if kind is not None:
        yield Occurrence(declaration.name_span, kind, declaration.name, declares=True)


def _calls(found: Iterable[Expr]) -> Iterator[Occurrence]:
    """The functions called; which of them are `let`s is known by their names."""
    for expression in found:
        for node, _ in walk_free(expression):
            if isinstance(node, Call):
                yield Occurrence(head(node.span, node.function), FUNCTION, node.function)


def _let(declaration: LetDecl, parameters: Iterable[str], body: Expr) -> Iterator[Occurrence]:
    scope = f"let {declaration.name}"
    source, at = declaration.span.source, declaration.name_span.end
    for parameter in parameters:
        at = _word(source.text, parameter, at)
        yield Occurrence(Span(source, at, at + len(parameter)), VARIABLE, parameter, scope, True)
        at += len(parameter)
    yield from _names(body, frozenset(parameters), scope)
    yield from _calls([body])


def _term_function(define: DefineDecl, library: Library) -> Iterator[Occurrence]:
    scope = f"define {define.name}"
    source, at = define.span.source, define.name_span.end
    for parameter in (*define.attributes, *define.operands):
        at = _word(source.text, parameter, at)
        yield Occurrence(Span(source, at, at + len(parameter)), VARIABLE, parameter, scope, True)
        at += len(parameter)
    yield from _side(define.term, frozenset((*define.attributes, *define.operands)), scope, library)
    yield from _calls(expressions(define))


def _word(text: str, word: str, at: int) -> int:
    """Where a word stands next, whole."""
    while at >= 0:
        at = text.find(word, at)
        around = text[at - 1 : at] + text[at + len(word) : at + len(word) + 1]
        if not any(char.isalnum() or char == "_" for char in around):
            return at
        at += 1
    return 0


def _class(declaration: ClassDecl, library: Library) -> Iterator[Occurrence]:
    source, at = declaration.span.source, declaration.name_span.end
    for name in (name for _, names in declaration.terms for name in names):
        at = _word(source.text, name, at)
        kind = OPERATOR if library.find(name) is not None and name not in library.classes else CLASS
        yield Occurrence(Span(source, at, at + len(name)), kind, name)
        at += len(name)


def _names(expr: Expr, known: frozenset[str], scope: str, prefix: str = "") -> Iterator[Occurrence]:
    for node, local in walk_free(expr):
        if isinstance(node, Name) and node.name in known and node.name not in local:
            yield Occurrence(node.span, VARIABLE, node.name, scope, prefix=prefix)


def _rule(rule: RuleDecl, library: Library) -> Iterator[Occurrence]:
    scope = f"rule {rule.name}"
    bound = list(_bound(rule, scope))
    seen: set[str] = set()
    for occurrence in sorted(bound, key=lambda o: o.span.start):
        yield replace(occurrence, declares=occurrence.name not in seen)
        seen.add(occurrence.name)
    known = frozenset(seen)
    places = {o.span.start for o in bound}
    for side in (rule.left, rule.right):
        for used in _side(side, known, scope, library):
            if used.kind != VARIABLE or used.span.start not in places:
                yield used
    for expression in (rule.guard, *(b.value for b in (*rule.with_, *rule.for_))):
        if expression is not None:
            yield from _names(expression, known, scope)
    yield from _calls(expressions(rule))
    for binding in rule.for_:
        if isinstance(binding.value, Name) and library.members_of(binding.value.name) is not None:
            yield Occurrence(binding.value.span, CLASS, binding.value.name)


def _bound(rule: RuleDecl, scope: str) -> Iterator[Occurrence]:
    """The places of a rule at which variables come to be: in its left side, by `with` and by `for`."""
    for leaf in leaves(rule.left):
        if isinstance(leaf, VarPattern):
            yield Occurrence(head(leaf.span, leaf.name), VARIABLE, leaf.name, scope)
        elif isinstance(leaf, NumberPattern) and isinstance(leaf.value, Name):
            yield Occurrence(leaf.value.span, VARIABLE, leaf.value.name, scope)
    for node in nodes(rule.left):
        if node.binds is not None:
            at = node.op_span.source.text.rfind(node.binds, 0, node.op_span.start)
            yield Occurrence(Span(node.op_span.source, at, at + len(node.binds)), VARIABLE, node.binds, scope)
        yield from (o for a in node.attributes if (o := _attribute(a, scope)) is not None)
    for binding in (*rule.with_, *rule.for_):
        yield _binding(binding, scope)
    for table in rule.tables:
        for name, span in zip(table.names, table.name_spans, strict=True):
            yield Occurrence(span, VARIABLE, name, scope)


def _attribute(attribute: AttributePattern, scope: str) -> Occurrence | None:
    """The variable that an attribute of a pattern binds, or that one of a template stands for."""
    if attribute.value is None:
        span = head(attribute.span, attribute.name)
        return Occurrence(span, VARIABLE, attribute.name, scope, prefix=f"{attribute.name}=")
    if isinstance(attribute.value, Name):
        return Occurrence(attribute.value.span, VARIABLE, attribute.value.name, scope)
    return None


def _binding(binding: Binding, scope: str) -> Occurrence:
    return Occurrence(head(binding.span, binding.name), VARIABLE, binding.name, scope)


def _side(side: Pattern, known: frozenset[str], scope: str, library: Library) -> Iterator[Occurrence]:
    """The operators and variables that a side names."""
    for leaf in leaves(side):
        if isinstance(leaf, VarPattern) and leaf.name in known:
            yield Occurrence(head(leaf.span, leaf.name), VARIABLE, leaf.name, scope)
        elif isinstance(leaf, NumberPattern):
            yield from _names(leaf.value, known, scope)
    for node in nodes(side):
        yield from _operator(node, known, scope, library)
        for attribute in node.attributes:
            own = _attribute(attribute, scope)
            if own is not None:
                yield from [own] if own.name in known else []
            elif attribute.value is not None:
                yield from _names(attribute.value, known, scope)


def _operator(node: OpPattern, known: frozenset[str], scope: str, library: Library) -> Iterator[Occurrence]:
    if node.op in known:
        yield Occurrence(head(node.op_span, node.op), VARIABLE, node.op, scope)
        return
    name = node.op if node.family is None else _family(node, library)
    yield Occurrence(node.op_span, OPERATOR, name, is_sign=node.sign is not None)


def _family(node: OpPattern, library: Library) -> str:
    """The declared name of a family: `reduce_{op}` for `reduce_{}` with any variable or member."""
    before, _, after = node.op.partition("{}")
    families = (f.name for f in library.families)
    return next((n for n in families if n.startswith(f"{before}{{") and n.endswith(f"}}{after}")), node.op)
