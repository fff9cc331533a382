"""`.rw` files: text to tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from genrw.grammar.diagnostics import Diagnostic, GenrwError, error
from genrw.grammar.expr import ExprBuilder, negative, print_expr
from genrw.grammar.expr_tree import Const, Expr
from genrw.grammar.gen import parse_attributes, parse_gen_slice
from genrw.grammar.gen_tree import Attribute, File
from genrw.grammar.parsing import (
    MAX_BRACKETS,
    MAX_DEPTH,
    Brackets,
    Errors,
    Language,
    Mistake,
    number,
    quoted,
    special,
    string,
    token_span,
)
from genrw.grammar.rw_print import print_rw
from genrw.grammar.rw_tree import (
    AttributeDecl,
    AttributePattern,
    Binding,
    ClassDecl,
    Declaration,
    Example,
    FieldExpr,
    LetDecl,
    MonoidDecl,
    NumberPattern,
    OpDecl,
    OperandDecl,
    OpPattern,
    Pattern,
    PipelineDecl,
    Requirement,
    RuleDecl,
    RuleFile,
    TargetDecl,
    VarPattern,
)
from genrw.grammar.source import Source, Span
from lark import Token

__all__ = ["parse_expr", "parse_rw", "print_expr", "print_rw"]


def parse_expr(text: str, name: str = "<expr>") -> Expr:
    """One expression. Raises GenrwError if the text is none."""
    source = Source(name, text)
    expr: Expr = _parse(source, text, 0, len(text), "expr")
    return expr


def parse_rw(text: str, name: str = "<input>") -> RuleFile:
    """The declarations of a rule file. Raises GenrwError with all that is wrong."""
    source, errors = Source(name, text), Errors()
    parts = _cut(source, errors)
    declarations: list[Declaration] = []
    stage: str | None = None
    for part in parts.parts:
        draft = errors.attempt(lambda p=part: _parse(source, parts.masked, p.start, p.end, "declaration"))
        examples = tuple(_examples(source, part, errors))
        if isinstance(draft, Stage):
            stage = draft.name
        elif draft is not None:
            if draft.kind is RuleDecl:
                draft.fields.update(stage=stage, examples=examples)
            declarations.append(_declaration(source, part, draft))
        if part.blocks and draft is not None and (isinstance(draft, Stage) or draft.kind is not RuleDecl):
            errors.add([Diagnostic("only a rule has examples", part.blocks[0].keyword)])
    errors.finish()
    return RuleFile(tuple(declarations), parts.doc, Span(source, 0, len(text)))


def _declaration(source: Source, part: _Part, draft: Draft) -> Declaration:
    declaration: Declaration = draft.kind(
        draft.name,
        **draft.fields,
        doc=part.doc,
        span=Span(source, part.start, part.end),
        name_span=token_span(source, draft.token),
    )
    return declaration


def _parse(source: Source, text: str, start: int, end: int, rule: str) -> Any:
    """Parses a slice, and refuses nesting that would overflow the stack of whoever reads the tree."""
    try:
        tree = _LANGUAGE.parse(source, text, start, end, rule)
    except GenrwError as problem:
        raise _unbalanced(source, text, start, end) or problem from None
    if sum(text.count(bracket, start, end) for bracket in "([{") > MAX_BRACKETS:
        problem_found = _unbalanced(source, text, start, end)
        if problem_found:
            raise problem_found
    if end - start > MAX_DEPTH:
        _check_depth(tree)
    return tree


_BRACKET = re.compile(r'\"\"\"[\s\S]*?\"\"\"|"(?:[^"\\\n]|\\.)*"?|#[^\n]*|[][(){}]')


def _unbalanced(source: Source, text: str, start: int, end: int) -> GenrwError | None:
    """The error for the first bracket without partner: a better lead than what Lark makes of the rest."""
    brackets = Brackets(source)
    for mark in _BRACKET.finditer(text, start, end):
        if mark[0] in "()[]{}" and (wrong := brackets.see(mark[0], mark.start())):
            return GenrwError(wrong)
    return GenrwError(brackets.never_closed()) if brackets.open else None


def _check_depth(tree: Any) -> None:
    todo = [(tree, 0)]
    while todo:
        node, depth = todo.pop()
        if isinstance(node, Draft):
            todo += [(value, 0) for value in node.fields.values()]
        elif isinstance(node, tuple):
            todo += [(item, depth) for item in node]
        elif hasattr(node, "span"):
            if depth > MAX_DEPTH:
                raise error(f"this is nested more than {MAX_DEPTH} levels deep", node.span, "name parts of it")
            todo += [(value, depth + 1) for value in vars(node).values() if not isinstance(value, (str, Span))]


# ---- cutting a file into declarations


class _Block(NamedTuple):
    """The program under `example`, `gives` or `counterexample`: where it stands, and the keyword's context."""

    keyword: Span
    context: tuple[int, int] | None
    start: int
    end: int


@dataclass
class _Part:
    """A declaration's text, its documentation, and its blocks."""

    start: int
    end: int
    doc: str
    blocks: list[_Block] = field(default_factory=list)


_SCAN = re.compile(
    r"""
      (?P<string> \"\"\"[\s\S]*?(?:\"\"\"|\Z) | "(?:[^"\\\n]|\\.)*"? )
    | (?P<doc> ^[ \t]*///[^\n]* )
    | (?P<comment> \#[^\n]* | ^[ \t]*//[^\n]* )
    | ^(?P<indent>[ \t]*) (?:
        (?P<block> (?:example|gives|counterexample)\b )
      | (?P<declaration> (?:rule|op|let|class|monoid|target|pipeline|stage)\b (?=[ \t]+[A-Za-z_]|[ \t]*\r?$) )
      )
    """,
    re.MULTILINE | re.VERBOSE,
)
_BLANK = re.compile(r"(?:\s+|#[^\n]*|//[^\n]*)*")
_CONTEXT = re.compile(r"[ \t]*(\[[^\n]*?\](?=[ \t]*(?:#|//|\r?$)))?[ \t]*(?:(?:#|//)[^\n]*)?\r?$", re.MULTILINE)
_INDENT = re.compile(r"([ \t]*)([^\n]*)(?:\n|\Z)")
_HEADING = re.compile(r"(?:(?:#|//(?!/))[^\n]*(?:\n|\Z))*")


class _Cutter:
    """Walks once over a file, past strings and comments, and notes where declarations and their blocks begin."""

    def __init__(self, source: Source, errors: Errors) -> None:
        self._source = source
        self._errors = errors
        self._doc: list[str] = []
        # Where text begins that belongs to no declaration; None while inside one.
        self._loose: int | None = 0
        self.parts: list[_Part] = []
        # The text with all blocks blanked out, offsets unchanged: the pieces so far, and up to where they reach.
        self._pieces: list[str] = []
        self._reach = 0
        heading = _HEADING.match(source.text)
        self.doc = _comment_text(heading[0]) if heading else ""
        self._walk()

    @property
    def masked(self) -> str:
        return "".join(self._pieces) + self._source.text[self._reach :]

    def _walk(self) -> None:
        text, at = self._source.text, 0
        while mark := _SCAN.search(text, at):
            at = mark.end()
            if mark["doc"] is not None:
                self._close(mark.start())
                self._doc.append(_comment_text(mark["doc"]))
            elif mark["declaration"]:
                self._close(mark.start())
                self._check_loose(mark.start())
                self._loose = None
                self.parts.append(_Part(mark.start("declaration"), len(text), "\n".join(self._doc)))
                self._doc = []
            elif mark["block"]:
                at = self._block(mark)
        self._close(len(text))
        self._check_loose(len(text))
        if self._doc:
            end = Span(self._source, len(text), len(text))
            self._errors.add([Diagnostic("a `///` comment is followed by no declaration", end, "write it with #")])

    def _close(self, at: int) -> None:
        """Ends the declaration at hand before an offset."""
        if self._loose is None:
            part = self.parts[-1]
            part.end = part.start + len(self._source.text[part.start : at].rstrip())
            self._loose = at

    def _check_loose(self, end: int) -> None:
        """Complains about text between declarations that is no comment."""
        blank = _BLANK.match(self._source.text, self._loose or 0, end)
        at = blank.end() if blank else end
        if at < end:
            word = self._source.text[at:end].split(maxsplit=1)[0]
            span = Span(self._source, at, at + len(word))
            self._errors.add([Diagnostic(f"expected a declaration, found {quoted(word)}", span, _DECLARATIONS)])

    def _block(self, mark: re.Match[str]) -> int:
        """Notes a block and blanks it out; where the text goes on after it."""
        text, source = self._source.text, self._source
        start, after = mark.start("block"), mark.end()
        context = _CONTEXT.match(text, after)
        if context is None:
            line_end = text.find("\n", after)
            span = Span(source, after, len(text) if line_end < 0 else line_end)
            self._errors.add([Diagnostic(f"the program of `{mark['block']}` begins on the next line", span)])
        first = text.find("\n", after) + 1 or len(text)
        end = _block_end(text, first, len(mark["indent"].expandtabs()))
        if self._loose is None:
            where = context.span(1) if context is not None and context[1] else None
            self.parts[-1].blocks.append(_Block(Span(source, start, after), where, first, end))
        self._pieces += [text[self._reach : start], " " * (end - start)]
        self._reach = end
        return end


_DECLARATIONS = "declarations begin with rule, op, monoid, target, let, class, pipeline or stage"


def _cut(source: Source, errors: Errors) -> _Cutter:
    return _Cutter(source, errors)


def _block_end(text: str, at: int, column: int) -> int:
    """Where the first line begins, from `at` on, that is not indented deeper than a column."""
    while at < len(text):
        line = _INDENT.match(text, at)
        assert line is not None
        if line[2].strip() and len(line[1].expandtabs()) <= column:
            return at
        at = line.end()
    return at


def _comment_text(text: str) -> str:
    """The words of comment lines, without their marks and one space after these."""
    return "\n".join(re.sub(r"^\s*(?:///|//|#) ?", "", line).rstrip() for line in text.splitlines())


# ---- examples


def _examples(source: Source, part: _Part, errors: Errors) -> Iterator[Example]:
    blocks = iter(part.blocks)
    for block in blocks:
        before = _program(source, block, errors)
        context = _context(source, block, errors)
        span = Span(source, block.keyword.start, block.end)
        match block.keyword.text:
            case "gives":
                errors.add([Diagnostic("`gives` follows no `example`", block.keyword)])
            case "counterexample":
                if before:
                    yield Example(before, None, context, span)
            case _:
                result = next(blocks, None)
                if result is None or result.keyword.text != "gives":
                    errors.add([Diagnostic("this example has no `gives`", block.keyword)])
                    continue
                after = _program(source, result, errors)
                if before and after:
                    yield Example(before, after, context, span.to(Span(source, result.start, result.end)))


def _program(source: Source, block: _Block, errors: Errors) -> File | None:
    program: File | None = errors.attempt(lambda: parse_gen_slice(source, block.start, block.end))
    return program


def _context(source: Source, block: _Block, errors: Errors) -> tuple[Attribute, ...]:
    if block.context is None:
        return ()
    start, end = block.context
    return errors.attempt(lambda: parse_attributes(source, start, end)) or ()


_WORDS = {
    "NAME": "a name",
    "FAMILY": "an operator",
    "NUMBER": "a number",
    "STRING": "a string",
    "INFIX": "an operator",
    "$END": "the end of the declaration",
}

_MISTAKES: tuple[Mistake, ...] = ()

_LANGUAGE = Language("rw.lark", ("declaration", "expr"), _Builder(), _WORDS, _MISTAKES)
