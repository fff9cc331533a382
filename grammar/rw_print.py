"""`.rw` trees as text: one layout, which reads back to an equal tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from genrw.grammar.expr import print_expr
from genrw.grammar.expr_tree import Const, Expr
from genrw.grammar.gen_print import print_type, print_value
from genrw.grammar.gen_tree import Attribute
from genrw.grammar.parsing import show_number, show_string
from genrw.grammar.precedence import COMPARE, CONDITIONAL, tightness_of
from genrw.grammar.rw_tree import (
    AttributeDecl,
    AttributePattern,
    Binding,
    ClassDecl,
    ContextDecl,
    Declaration,
    DefineDecl,
    Example,
    FieldExpr,
    FunctionDecl,
    Given,
    GivenDecl,
    ImportDecl,
    InputDecl,
    InstructionDecl,
    LetDecl,
    MonoidDecl,
    NumberPattern,
    OpDecl,
    OperandDecl,
    OpPattern,
    Pattern,
    PipelineDecl,
    Repeat,
    Requirement,
    RuleDecl,
    RuleFile,
    TargetDecl,
    VarPattern,
)

_WIDTH = 110


def print_rw(file: RuleFile) -> str:
    """A rule file as text. Of its comments only the heading and the documentation are part of the tree."""
    blocks = [_comment("#", file.doc)] if file.doc else []
    stage: str | None = None
    dialect: str | None = None
    for declaration in file.declarations:
        if isinstance(declaration, RuleDecl) and declaration.stage is not None and declaration.stage != stage:
            stage = declaration.stage
            blocks.append(f"stage {stage}")
        if isinstance(declaration, ImportDecl) and declaration.dialect is not None and declaration.dialect != dialect:
            dialect = declaration.dialect
            blocks.append(f"dialect {dialect}")
        blocks.append(print_declaration(declaration))
    return "\n\n".join(blocks) + "\n"


def print_declaration(declaration: Declaration) -> str:
    """A declaration with its documentation, without final newline."""
    doc = [_comment("///", declaration.doc)] if declaration.doc else []
    return "\n".join([*doc, *_lines(declaration)])


def _comment(mark: str, text: str) -> str:
    return "\n".join(f"{mark} {line}".rstrip() for line in text.split("\n"))


def _lines(declaration: Declaration) -> Iterable[str]:
    match declaration:
        case RuleDecl():
            return _rule(declaration)
        case OpDecl():
            return _op(declaration)
        case DefineDecl():
            return [_define(declaration)]
        case MonoidDecl():
            return _monoid(declaration)
        case ImportDecl():
            return _import(declaration)
        case TargetDecl(name, base, values, requires):
            head = f"target {name}" + (f" : {base}" if base else "")
            return [head, *_settings(values), *_requirements(requires)]
        case InstructionDecl(name, values):
            return [f"instruction {name}", *_settings(values)]
        case LetDecl(name, parameters, body):
            return [f"let {name}({', '.join(parameters)}) = {print_expr(body)}"]
        case ClassDecl(name, terms):
            return [f"class {name} = {_class(terms)}"]
        case PipelineDecl(_, stages):
            return [f"pipeline {' -> '.join(stages)}"]
        case GivenDecl(_, given):
            return _given(given, "")
        case ContextDecl(name, entries):
            return [f"context {name} {_header(entries)}" if declaration.is_named else f"context {_header(entries)}"]


def _settings(values: tuple[tuple[str, Expr], ...]) -> list[str]:
    return [f"  {key} {print_expr(value)}" for key, value in values]


def _class(terms: tuple[tuple[str, tuple[str, ...]], ...]) -> str:
    shown = [(sign, names[0] if len(names) == 1 else f"{{{', '.join(names)}}}") for sign, names in terms]
    return shown[0][1] + "".join(f" {sign} {names}" for sign, names in shown[1:])


# ---- rules


def _rule(rule: RuleDecl) -> Iterator[str]:
    yield f"rule {rule.name}"
    yield f"  {print_pattern(rule.left)}"
    if rule.guard is not None:
        yield f"  when {print_expr(rule.guard)}"
    yield f"  {'<=>' if rule.both_ways else '=>'} {print_pattern(rule.right)}"
    yield from _bindings("with", "=", rule.with_)
    yield from _bindings("for", "in", rule.for_)
    for table in rule.tables:
        rows = ", ".join(f"({', '.join(map(print_expr, row))})" for row in table.rows)
        yield f"  for ({', '.join(table.names)}) in [{rows}]"
    if rule.contract != "exact":
        bound = "" if rule.bound is None else f" {show_number(rule.bound)}"
        yield f"  contract {rule.contract}{bound}"
    if rule.replaces:
        yield "  replaces"
    if rule.alternative:
        yield "  alternative"
    yield from _given(rule.given, "  ")
    for example in rule.examples:
        yield from _example(example)


def _bindings(keyword: str, sign: str, bindings: tuple[Binding, ...]) -> Iterator[str]:
    return _listed(f"  {keyword} ", [f"{binding.name} {sign} {print_expr(binding.value)}" for binding in bindings], "")


def _given(given: tuple[Given, ...], indent: str) -> Iterator[str]:
    return _listed(f"{indent}given ", list(map(_one_given, given)), ",")


def _listed(head: str, shown: list[str], comma: str) -> Iterator[str]:
    """One line if they fit, else one line each."""
    line = head + ", ".join(shown)
    if len(line) <= _WIDTH:
        yield from [line] if shown else []
    else:
        starts = [head, *[" " * len(head)] * (len(shown) - 1)]
        ends = [*[comma] * (len(shown) - 1), ""]
        yield from (start + one + end for start, one, end in zip(starts, shown, ends, strict=True))


def _one_given(given: Given) -> str:
    if given.term is not None:
        return f"{given.name} = {print_pattern(given.term)}"
    assert given.type is not None
    value = "" if given.value is None else f" = {print_expr(given.value)}"
    return f"{given.name}: {print_type(given.type)}{value}"


def _example(example: Example) -> Iterator[str]:
    brackets = "" if example.brackets is None else f" {_header(example.brackets)}"
    keyword = "counterexample" if example.after is None else "example"
    line = f"  {keyword}{brackets} {_results(example.before)}"
    if example.after is None:
        yield line
        return
    gives = f"gives {_results(example.after)}"
    yield from [f"{line} {gives}"] if len(f"{line} {gives}") <= _WIDTH else [line, f"  {gives}"]


def _results(results: tuple[Pattern, ...]) -> str:
    return ", ".join(map(print_pattern, results))


def _header(entries: tuple[Attribute, ...]) -> str:
    """Entries as rules write them: lists stand in square brackets."""
    shown = (e.name if e.value is None else f"{e.name}={print_value(e.value, '[]')}" for e in entries)
    return f"[{', '.join(shown)}]"


def print_pattern(pattern: Pattern) -> str:
    """A pattern or template of a rule, with signs where its author wrote them, and no parentheses beyond those it needs."""
    return _term(pattern, CONDITIONAL)


def _term(pattern: Pattern, least: int) -> str:
    """The text of a term, in parentheses if it binds less tightly than its place demands."""
    match pattern:
        case VarPattern(name, rest):
            return name + ("..." if rest else "")
        case NumberPattern(Const(value)) if not isinstance(value, str):
            return show_number(value)
        case NumberPattern(value):
            return f"{{{print_expr(value)}}}"
        case OpPattern(sign=str(sign), operands=(left, right), attributes=(), open_attributes=False):
            tightness = tightness_of(sign)
            # Comparisons stand alone, all others go from left to right.
            text = f"{_term(left, tightness + (tightness == COMPARE))} {sign} {_term(right, tightness + 1)}"
            whole = text if tightness >= least and not pattern.binds and not pattern.rest else f"({text})"
            return _named(pattern, whole)
        case OpPattern():
            return _named(pattern, _application(pattern))


def _named(pattern: OpPattern, text: str) -> str:
    """A term with the name that it is given, and with dots where it is a list."""
    return f"{pattern.binds}@" * bool(pattern.binds) + text + "..." * pattern.rest


def _application(pattern: OpPattern) -> str:
    op = pattern.op if pattern.family is None else pattern.op.replace("{}", f"{{{pattern.family}}}")
    attributes = [*map(_attribute_pattern, pattern.attributes), *([".."] if pattern.open_attributes else [])]
    brackets = f"[{', '.join(attributes)}]" if attributes else ""
    operands = ", ".join(map(print_pattern, pattern.operands))
    return f"{op}{brackets}({operands})"


def _attribute_pattern(attribute: AttributePattern) -> str:
    return attribute.name if attribute.value is None else f"{attribute.name}={print_expr(attribute.value)}"


# ---- operators


def _op(op: OpDecl) -> Iterator[str]:
    yield _signature(op)
    if op.role is not None:
        yield f"  role {op.role}" + (f"({', '.join(op.role_parts)})" if op.role_parts else "")
    if op.sign is not None:
        yield f"  written {op.operands[0].name} {op.sign} {op.operands[1].name}"
    if op.stages:
        yield f"  at {', '.join(op.stages)}"
    if op.commutative:
        yield "  commutative"
    if op.injective:
        yield "  injective"
    yield from _requirements(op.requires)
    for definition in op.definitions:
        guard = "" if definition.guard is None else f" when {print_expr(definition.guard)}"
        yield f"  is {print_pattern(definition.term)}{guard}"
        yield from _bindings("with", "=", definition.with_)
    for function in op.functions:
        yield from _function(function)
    yield from _expression("means", op.means)
    yield from _expression("within", op.within)
    if op.called is not None:
        yield f"  called {_show_text(op.called)}"
    if op.stuck is not None:
        yield f"  stuck {_show_text(op.stuck)}"
    if op.emit is not None:
        yield f"  emit {_show_text(op.emit)}" + (f" prec {op.precedence}" if op.precedence else "")
    if op.device is not None:
        yield f"  device {_show_text(op.device)}"
    yield from _expression("cost", op.cost)
    if op.terms:
        yield f"  terms {', '.join(f'{t.name} = {print_expr(t.value)}' for t in op.terms)}"
    yield from _domain(op.domain)
    yield from _expression("lo", op.lo)
    yield from _expression("hi", op.hi)
    yield from _expression("pow2", op.pow2)


def _function(function: FunctionDecl) -> Iterator[str]:
    guard = "" if function.guard is None else f" when {print_expr(function.guard)}"
    if function.term is None:
        yield "  function"
        return
    yield from _listed("  function ", [f"{s.name} = {print_pattern(s.term)}" for s in function.steps], ",")
    yield f"  {'gives' if function.steps else 'function'} {print_pattern(function.term)}{guard}"


def _signature(op: OpDecl) -> str:
    name = op.name if op.family is None else op.name.replace("}", f": {op.family_type}}}")
    attributes = f"[{', '.join(map(_attribute, op.attributes))}]" if op.attributes else ""
    operands = ", ".join(map(_operand, op.operands))
    where = f" where {_typed(op.where)}" if op.where else ""
    return f"op {name}{attributes}({operands}) -> {print_expr(op.result)}{where}"


def _attribute(attribute: AttributeDecl) -> str:
    default = "" if attribute.default is None else f" = {print_expr(attribute.default)}"
    return f"{attribute.name}: {attribute.type}{default}"


def _operand(operand: OperandDecl) -> str:
    type_ = " ".join(part for part in (operand.dtype, operand.sort) if part)
    return f"{operand.name}: {type_}{'...' if operand.variadic else ''}"


def _typed(pairs: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(f"{name}: {type_}" for name, type_ in pairs)


def _expression(keyword: str, value: Expr | None) -> list[str]:
    return [] if value is None else [f"  {keyword} {print_expr(value)}"]


def _requirements(requires: tuple[Requirement, ...]) -> Iterator[str]:
    for requirement in requires:
        yield f"  requires {print_expr(requirement.condition)} {show_string(requirement.message)}"


def _domain(conditions: tuple[Expr, ...]) -> list[str]:
    return [f"  domain {', '.join(map(print_expr, conditions))}"] if conditions else []


def _show_text(text: str) -> str:
    """C++ or a template: between triple quotes if it has lines, which keeps them readable."""
    plain = "\n" in text and '"""' not in text and not text.endswith('"') and "\r" not in text
    return f'"""{text}"""' if plain else show_string(text)


def _define(define: DefineDecl) -> str:
    attributes = f"[{', '.join(define.attributes)}]" if define.attributes else ""
    return f"define {define.name}{attributes}({', '.join(define.operands)}) = {print_pattern(define.term)}"


# ---- foreign operators


def _import(declaration: ImportDecl) -> Iterator[str]:
    attributes = f"[{', '.join(map(_attribute, declaration.attributes))}]" if declaration.attributes else ""
    yield f"import {declaration.name}{attributes}({', '.join(map(_input, declaration.inputs))})"
    if declaration.guard is not None:
        yield f"  when {print_expr(declaration.guard)}"
    yield from _requirements(declaration.requires)
    yield f"  => {', '.join(map(print_pattern, declaration.results))}"
    yield from _bindings("with", "=", declaration.with_)
    if declaration.repeat is not None:
        yield f"  {_repeat(declaration.repeat)}"


def _repeat(repeat: Repeat) -> str:
    condition = "" if repeat.condition is None else f" while {print_expr(repeat.condition)}"
    steps = ", ".join(f"{s.name}{'...' if s.variadic else ''}" for s in repeat.steps)
    items = print_expr(repeat.items)
    return f"repeat {repeat.variable} in {items}{condition}: {steps} = {print_pattern(repeat.body)}"


def _input(declared: InputDecl) -> str:
    type_ = f": {declared.type}" if declared.type else ""
    default = "" if declared.default is None else f" = {print_expr(declared.default)}"
    count = "" if declared.count is None else f"[{print_expr(declared.count)}]"
    return f"{declared.name}{type_}{count}{'...' if declared.variadic else ''}{default}"


# ---- monoids


def _monoid(monoid: MonoidDecl) -> Iterator[str]:
    where = f" where {_typed(monoid.where)}" if monoid.where else ""
    yield f"monoid {monoid.name}{where}"
    if monoid.carry:
        yield f"  carry {_typed(monoid.carry)}"
    yield from _fields("element", monoid.element)
    yield from _fields("identity", monoid.identity)
    yield from _fields("combine", monoid.combine)
    yield from _expression("finish", monoid.finish)
    if monoid.result is not None:
        yield f"  result {monoid.result}"
    for dtype, types in monoid.accumulate:
        yield f"  accumulate {dtype} for {', '.join(types)}"
    yield from _domain(monoid.domain)


def _fields(keyword: str, fields: tuple[FieldExpr, ...]) -> list[str]:
    shown = [("" if f.field is None else f"{f.field} = ") + print_expr(f.value) for f in fields]
    return [f"  {keyword} {', '.join(shown)}"] if shown else []
