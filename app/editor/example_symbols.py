"""Names in the examples of rules: what is given, and the contexts that have names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from genrw.editor.occurrence import CONTEXT, OPERATOR, VALUE, Occurrence, head
from genrw.engine.library.variants import leaves, nodes
from genrw.grammar.gen_tree import Attribute
from genrw.grammar.rw_tree import ContextDecl, Declaration, Given, GivenDecl, Pattern, RuleDecl, VarPattern


@dataclass
class ExampleNames:
    """The names of a file's examples, declaration by declaration, with what each stands for at its place."""

    file: str
    given: dict[str, str] = field(default_factory=dict)
    """The scope of each name that the file gives, as far as it was gone through."""

    def of(self, declaration: Declaration) -> Iterator[Occurrence]:
        """The names of the next declaration."""
        match declaration:
            case GivenDecl(given=given):
                scope = f"{self.file}:{declaration.span.start}"
                self.given |= {one.name: scope for one in given}
                yield from self._given(given, self.given)
            case ContextDecl(name=name, entries=entries):
                if declaration.is_named:
                    yield Occurrence(declaration.name_span, CONTEXT, name, self.file, True)
                yield from self._entries(entries)
            case RuleDecl(given=given, examples=examples):
                known = self.given | {one.name: f"{self.file} rule {declaration.name}" for one in given}
                yield from self._given(given, known)
                for example in examples:
                    yield from self._entries(example.brackets or ())
                    for result in (*example.before, *(example.after or ())):
                        yield from _term(result, known)

    def _given(self, given: Iterable[Given], known: dict[str, str]) -> Iterator[Occurrence]:
        for one in given:
            yield Occurrence(one.name_span, VALUE, one.name, known[one.name], True)
            if one.term is not None:
                yield from _term(one.term, known)

    def _entries(self, entries: Iterable[Attribute]) -> Iterator[Occurrence]:
        for entry in entries:
            if entry.value is None:
                yield Occurrence(entry.span, CONTEXT, entry.name, self.file)


def _term(term: Pattern, known: dict[str, str]) -> Iterator[Occurrence]:
    for leaf in leaves(term):
        if isinstance(leaf, VarPattern) and leaf.name in known:
            yield Occurrence(head(leaf.span, leaf.name), VALUE, leaf.name, known[leaf.name])
    for node in nodes(term):
        yield Occurrence(node.op_span, OPERATOR, node.op, is_sign=node.sign is not None)
