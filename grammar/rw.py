"""`.rw` files: text to tree and back."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from lark import Token

from genrw.grammar.diagnostics import Diagnostic, GenrwError, error
from genrw.grammar.expr import print_expr
from genrw.grammar.expr_tree import Expr
from genrw.grammar.moved import moved
from genrw.grammar.parsing import Language, token_span
from genrw.grammar.recovery import Brackets, Errors
from genrw.grammar.rw_build import Dialect, Draft, RwBuilder, Stage
from genrw.grammar.rw_cut import CLAUSES, DECLARATIONS, Cutter, Part
from genrw.grammar.rw_print import print_declaration, print_pattern, print_rw
from genrw.grammar.rw_tree import Declaration, ImportDecl, RuleDecl, RuleFile
from genrw.grammar.source import Source, Span
from genrw.grammar.wording import Group, Mistake, Wording, quoted

__all__ = ["parse_expr", "parse_rw", "print_declaration", "print_expr", "print_pattern", "print_rw"]

_MAX_DEPTH = 200


def parse_expr(text: str, name: str = "<expr>") -> Expr:
    """One expression. Raises GenrwError if the text is none."""
    source = Source(name, text)
    expr: Expr = _parse(source, 0, len(text), "expr")
    return expr


def parse_rw(text: str, name: str = "<input>", before: RuleFile | None = None) -> RuleFile:
    """The declarations of a rule file. Raises GenrwError with all that is wrong.

    `before` is what was read of the file earlier: declarations of the same text are taken over from it, those that stand
    in the same place as the same objects.
    """
    source, errors = Source(name, text), Errors()
    cutter = Cutter(source, errors)
    known = {(d.span.text, *_headings_of(d)): d for d in before.declarations} if before is not None else {}
    declarations: list[Declaration] = []
    stage: str | None = None
    dialect: str | None = None
    for part in cutter.parts:
        found = known.get((source.text[part.start : part.end], *_headings_at(source, part, stage, dialect)))
        if found is not None:
            declarations.append(_taken_over(found, source, part))
            continue
        draft = errors.attempt(partial(_parse, source, part.start, part.end, "declaration"))
        if isinstance(draft, Stage):
            stage = draft.name
        elif isinstance(draft, Dialect):
            dialect = draft.name
        elif draft is not None:
            own = {RuleDecl: {"stage": stage}, ImportDecl: {"dialect": dialect}}.get(draft.kind, {})
            declarations.append(_declaration(source, part, draft, own))
    errors.finish()
    return RuleFile(tuple(declarations), cutter.doc, Span(source, 0, len(text)))


def _taken_over(found: Declaration, source: Source, part: Part) -> Declaration:
    """What was read of the same text earlier, at its place now."""
    if _lines(found.span) == _lines(Span(source, part.start, part.end)) and found.doc == part.doc:
        return found
    return replace(moved(found, source, part.start - found.span.start), doc=part.doc)


def _lines(span: Span) -> tuple[Any, ...]:
    """All that a message about a part of the text shows: its place, and its lines."""
    source = span.source
    line, column = source.position(span.start)
    end = source.text.find("\n", span.end)
    return source.name, line, column, source.text[source.line_starts[line - 1] : end if end >= 0 else len(source.text)]


def _headings_of(declaration: Declaration) -> tuple[str | None, str | None]:
    return getattr(declaration, "stage", None), getattr(declaration, "dialect", None)


def _headings_at(source: Source, part: Part, stage: str | None, dialect: str | None) -> tuple[str | None, str | None]:
    """The stage and the dialect of a declaration: only rules are of a stage, only imports of a dialect."""
    text, at = source.text, part.start
    return stage if text.startswith("rule", at) else None, dialect if text.startswith("import", at) else None


def declaration_tokens(source: Source, start: int, end: int) -> list[Token]:
    """The tokens of a declaration that can be read."""
    return _LANGUAGE.tokens(source, source.text, start, end, "declaration")


def _declaration(source: Source, part: Part, draft: Draft, own: dict[str, Any]) -> Declaration:
    span, name_span = Span(source, part.start, part.end), token_span(source, draft.token)
    declaration: Declaration = draft.kind(
        draft.name, **draft.fields, **own, doc=part.doc, span=span, name_span=name_span
    )
    return declaration


def _parse(source: Source, start: int, end: int, rule: str) -> Any:
    """Parses a slice, and refuses nesting that would overflow the stack of whoever reads the tree."""
    nameless = _NAMELESS.match(source.text, start, end)
    if nameless and rule == "declaration":
        place = Span(source, nameless.end() - 1, nameless.end())
        raise error("the rule has no name", place, "write rule NAME, then its pattern")
    try:
        tree = _LANGUAGE.parse(source, source.text, start, end, rule)
    except GenrwError as problem:
        raise _refine(problem, source, start, end) from None
    if end - start > _MAX_DEPTH:
        _check_depth(tree)
    return tree


# With a space between, parentheses begin the pattern.
_NAMELESS = re.compile(r"rule\s+\w+[(\[]")
_BRACKET = re.compile(r'"""[\s\S]*?"""|"(?:[^"\\\n]|\\.)*"?|#[^\n]*|^[^\S\n]*//[^\n]*|[][(){}]', re.MULTILINE)


def _unbalanced(source: Source, start: int, end: int) -> GenrwError | None:
    """The error for the first bracket without partner: a better lead than what Lark makes of the rest."""
    brackets = Brackets(source)
    for mark in _BRACKET.finditer(source.text, start, end):
        if mark[0] in "()[]{}" and (wrong := brackets.see(mark[0], mark.start())):
            return GenrwError(wrong)
    return GenrwError(brackets.never_closed()) if brackets.open else None


_GUARD_FIRST = re.compile(r"rule\s+\w+\s+when\s+")
_STRAY = "{found} belongs to no part of the rule"


def _refine(problem: GenrwError, source: Source, start: int, end: int) -> GenrwError:
    """Says better what is wrong where the text around it tells more than the parser's state."""
    unbalanced = _unbalanced(source, start, end)
    (found,) = problem.diagnostics
    span = found.span
    if unbalanced or span is None:
        return unbalanced or problem
    word = quoted(span.text)
    of_example = _of_example(source, start, span)
    if of_example is not None:
        found = of_example
    elif "//" in source.line(span.line)[: span.column - 1]:
        found = replace(found, remedy="behind a term or an expression `//` divides; write comments with #")
    elif span.column == 1 and span.text.isidentifier():
        found = replace(found, remedy=DECLARATIONS)
    elif _GUARD_FIRST.fullmatch(source.text, start, span.start):
        found = replace(found, message="the guard stands before the pattern")
    elif found.message == _STRAY.replace("{found}", word) and _unbalanced(source, start, span.start):
        found = Diagnostic(f"`,` is missing before {word}", span, "write one between them")
    return GenrwError(found)


_OF_EXAMPLES = re.compile(r'"(?:[^"\\\n]|\\.)*"|#[^\n]*|\b(?P<word>example|gives|counterexample)\b')
_ONLY_RULES = ("example", "counterexample", "given")
_BARE_NAME = re.compile(r"(?:\s|#[^\n]*)*(?:\[[^\n]*\])?(?:\s|#[^\n]*)*[\w.]*\s*")


def _of_example(source: Source, start: int, span: Span) -> Diagnostic | None:
    """What is wrong with the example that the parser stumbled in: its halves, or that it is written as instructions."""
    if span.text in _ONLY_RULES and not source.text.startswith("rule", start):
        return Diagnostic("only a rule has examples", span, "move it to a rule that shows it")
    words = [mark for mark in _OF_EXAMPLES.finditer(source.text, start, span.start) if mark["word"]]
    last = words[-1] if words else None
    if span.text == "gives" and (last is None or last["word"] != "example"):
        return Diagnostic("`gives` follows no `example`", span, "write example, a term, and then gives")
    if last is None:
        return None
    if span.text == "=" and _BARE_NAME.fullmatch(source.text, last.end(), span.start):
        return Diagnostic("an example is a term, not a list of instructions", span, _EXAMPLE)
    if last["word"] == "example" and (not span.text or span.text in CLAUSES["rule"].split()):
        keyword = Span(source, last.start(), last.end())
        return Diagnostic("this example has no `gives`", keyword, "write gives, and what the rule makes of the term")
    return None


def _check_depth(tree: Any) -> None:
    todo: list[tuple[Any, int]] = [(tree, 0)]
    while todo:
        node, depth = todo.pop()
        if isinstance(node, Draft):
            todo += [(value, 0) for value in node.fields.values()]
        elif isinstance(node, tuple):
            todo += [(item, depth) for item in node]
        elif hasattr(node, "__dataclass_fields__") and not isinstance(node, Span):
            if depth > _MAX_DEPTH:
                message = f"this is nested more than {_MAX_DEPTH} levels deep"
                raise error(message, getattr(node, "span", None), "give names to its parts")
            todo += [(value, depth + 1) for value in vars(node).values()]


# ---- what to say about bad input

_LIST = "a list in an expression stands in square brackets: [1, 2]"
# Whatever can end a pattern, a right side or a guard: each is a place of its own to the parser.
_PATTERNS = ("c", "f()", "f(c)", "f[a]()", "f[a](c)")
_TEMPLATES = tuple(f"rule a b => {pattern}" for pattern in (*_PATTERNS, "1"))
_LEFTS = tuple(f"rule a {pattern}" for pattern in _PATTERNS)
_GUARDS = tuple(f"rule a b when {guard}" for guard in ("c", "1", '"c"', "c.d", "f()", "f(c)", "c[1]", "(c)", "[c]"))
_EXAMPLE = "write example relu(relu(x)) gives relu(x), and above it what the names are: given x: float{4}"
_BOUND = ("rule a f() with n = b", "rule a f() for n in b")


def _after(places: Iterable[str], *words: str) -> tuple[str, ...]:
    return tuple(f"{place} {word}" for place in places for word in words)


_MISTAKES = (
    Mistake("the rule has no `=>`", "write => and the template", (*_LEFTS, *_GUARDS, *_BOUND)),
    Mistake("{found} is no arrow of a rule", "=> rewrites one way, <=> both", _after((*_LEFTS, *_GUARDS), "->")),
    Mistake("{found} is no arrow of a rule", "=> rewrites one way, <=> both", _after(_LEFTS, "=")),
    Mistake("a rule has one arrow", "write a second rule", _after(_TEMPLATES, "=>", "<=>")),
    Mistake("a condition is a `when` clause", "write when CONDITION", _after((*_LEFTS, *_TEMPLATES), "if")),
    Mistake(
        _STRAY,
        "a rule is: its name, pattern, `when` guard, `=>`, template, other clauses",
        _after(_LEFTS, "d"),
    ),
    Mistake("`with` needs name = expression", None, ("rule a b => c with n",)),
    Mistake("`for` needs name in expression", None, _after(["rule a b => c for n"], "[", "=", "")),
    Mistake(
        "{found} stands before no term",
        "call the operator by its name",
        _after(("rule a", "rule a b =>", "rule a f(", "rule a b +"), "not", "~"),
    ),
    Mistake("only numbers have a sign before them", "call the operator by its name", ("rule a b => -(",)),
    Mistake("a pattern holds no list", _LIST, ("rule a [", "rule a f([")),
    Mistake(
        "braces cannot stand here",
        _LIST,
        ("rule a f[b={", *_after(["rule a b when"], "{", "c + {", "[{", "f({")),
    ),
    Mistake("`=` cannot stand in an expression", "equality is written ==", _after(_GUARDS, "=")),
    Mistake("`&&` is written `and`", None, ("rule a b when c && d", "rule a b && c"), exact=True),
    Mistake("`||` is written `or`", None, ("rule a b when c || d", "rule a b || c"), exact=True),
    Mistake("only a name can be called", None, tuple(f"{guard}(" for guard in _GUARDS[1:])),
    Mistake("a slice has two ends", "write [start:stop]", ("rule a b when c[1:2:", "rule a b when c[d:e:")),
    Mistake(
        "a name is given a type or a term",
        "write for example given x: float{4, 8}, u = relu(x)",
        (
            "given x",
            "given x,",
            "given x f",
            "rule a b => c given x",
            *_after(["given x"], "example", "counterexample", "given"),
        ),
    ),
    Mistake("examples are given tensors", "values of lanes are made: given u = f(x)", ("given x: f[",)),
    Mistake(
        "a context has its entries in brackets", "write context [target=…]", ("context", "context a", "context a f(")
    ),
    Mistake(
        "a list stands in square brackets", "write [8, 256]", ("context [a={1", "context [a={b,", "context [a={b}")
    ),
    Mistake("a value follows its name without `=`", "write NAME VALUE, one a line", ("target a b =",)),
    Mistake("an operand needs a type", "write for example x: T, or x: T tensor", ("op a(x,", "op a(x)")),
    Mistake("an attribute needs a type", "write for example axes: axes, or n: int = 1", ("op a[x,", "op a[x]")),
    Mistake(
        "the operator has no result",
        "write -> and its type, such as -> tensor(T, x.lens)",
        ("op a(x: T)", "op a(x: T) role", "op a()", "op a[b: c]", "op a"),
    ),
)

_EXPRESSION = frozenset({"NAME", "NUMBER", "STRING", "MINUS", "TILDE", "NOT", "LPAR", "LSQB"})
_SIGNS = frozenset({"INFIX", "PLUS", "MINUS"})
_INFIX = _SIGNS | {"IN"}
_PATTERN = frozenset({"NAME", "FAMILY", "NUMBER", "MINUS", "LBRACE", "LPAR"})


def _clauses(what: str, keywords: str) -> Group:
    remedy = f"the clauses of {what} are {keywords.replace(' ', ', ')}"
    return Group("a clause", frozenset(keywords.upper().split()), remedy)


_GROUPS = (
    Group("an expression", _EXPRESSION),
    Group("an operator", _INFIX | {"LSQB", "DOT", "IF"}),
    Group("an operator", _INFIX | {"IF"}),
    Group("an operator", _INFIX),
    Group("an operator", _SIGNS),
    Group("a pattern", _PATTERN),
    Group("a name", frozenset({"NAME", "FAMILY"})),
    _clauses("a rule", CLAUSES["rule"]),
    _clauses("an operator", CLAUSES["op"]),
    _clauses("an import", CLAUSES["import"]),
    _clauses("a monoid", CLAUSES["monoid"]),
)

_WORDS = {
    "NAME": "a name",
    "KEY": "a name with `=`",
    "FAMILY": "a family",
    "NUMBER": "a number",
    "STRING": "a string",
    "FOR": "`for`",
    "IN": "`in`",
    "MINUS": "`-`",
}

_CHARACTERS = {
    "!": "write not",
    "?": "a choice is written a if condition else b",
    "'": 'quoted text stands between "',
    ";": "nothing separates declarations",
}

_WHOLES = {"declaration": "declaration", "expr": "expression"}

_LANGUAGE = Language("rw.lark", RwBuilder(), Wording(_WHOLES, _WORDS, _GROUPS, _MISTAKES, _CHARACTERS))
