"""What the names and the contexts of examples stand for: what a file and a rule give, brought to each example."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import NamedTuple

from genrw.engine.library.variants import leaves
from genrw.grammar.diagnostics import Diagnostic
from genrw.grammar.gen_tree import Attribute, Word
from genrw.grammar.rw_tree import (
    UNNAMED_CONTEXT,
    ContextDecl,
    Declaration,
    Example,
    Given,
    GivenDecl,
    RuleDecl,
    VarPattern,
)

KERNEL = "kernel"
"""The entry of a context that says of which kernel its schedule is."""


class _Context(NamedTuple):
    """A context and its entries, those of the contexts that it names included."""

    declaration: ContextDecl
    entries: tuple[Attribute, ...]


@dataclass
class ExampleScope:
    """What a file says for the examples of its rules, as far as it was gone through."""

    problems: list[Diagnostic]
    given: dict[str, Given] = field(default_factory=dict)
    contexts: dict[str, _Context] = field(default_factory=dict)
    asked: set[int] = field(default_factory=set)
    """The declarations of the contexts that examples or other contexts have, by their ids."""

    def enter(self, declaration: Declaration) -> Declaration:
        """Take in the next declaration of the file: a rule gets its examples' names and contexts."""
        match declaration:
            case GivenDecl(given=given):
                self.given |= {one.name: one for one in given}
            case ContextDecl(name=name, entries=entries):
                self.contexts[name] = _Context(declaration, self._whole(entries))
            case RuleDecl(examples=(_, *_)):
                known = {**self.given, **{one.name: one for one in declaration.given}}
                examples = tuple(self._example(example, known) for example in declaration.examples)
                return replace(declaration, examples=examples)
        return declaration

    def _example(self, example: Example, known: Mapping[str, Given]) -> Example:
        brackets = example.brackets
        if brackets is None:
            context = self._entries(UNNAMED_CONTEXT) if UNNAMED_CONTEXT in self.contexts else ()
        else:
            context = self._whole(brackets)
        of_kernel = next((entry for entry in context if entry.name == KERNEL), None)
        said = replace(
            example,
            context=tuple(entry for entry in context if entry is not of_kernel),
            kernel=self._kernel(of_kernel) if of_kernel is not None else None,
        )
        return replace(said, given=used_by(said, known))

    def _kernel(self, entry: Attribute) -> VarPattern | None:
        """The name that stands for what a kernel makes."""
        if isinstance(entry.value, Word):
            return VarPattern(entry.value.name, span=entry.value_span)
        remedy = f"write context [{KERNEL}=y, …], and above it given y = f(x)"
        self.problems.append(Diagnostic("a context's kernel is a name that is given", entry.value_span, remedy))
        return None

    def _entries(self, name: str) -> tuple[Attribute, ...]:
        """The entries of a context, which somebody asks for."""
        self.asked.add(id(self.contexts[name].declaration))
        return self.contexts[name].entries

    def _whole(self, entries: tuple[Attribute, ...]) -> tuple[Attribute, ...]:
        """The entries with those of named contexts in place of the names; of two for one thing the last counts."""
        found: dict[str, Attribute] = {}
        for entry in entries:
            if entry.value is not None:
                found[entry.name] = entry
            elif entry.name in self.contexts and entry.name != UNNAMED_CONTEXT:
                found |= {e.name: e for e in self._entries(entry.name)}
            else:
                self.problems.append(self._unknown(entry))
        return tuple(found.values())

    def _unknown(self, entry: Attribute) -> Diagnostic:
        close = get_close_matches(entry.name, self.contexts.keys() - {UNNAMED_CONTEXT}, 1)
        remedy = f"did you mean `{close[0]}`?" if close else f"declare it above: context {entry.name} [target=…]"
        return Diagnostic(f"there is no context `{entry.name}`", entry.span, remedy)


def used_by(example: Example, known: Mapping[str, Given]) -> tuple[Given, ...]:
    """What the names of an example stand for, and those that these stand for, each before the one that needs it."""
    found: dict[str, Given] = {}
    seen: set[str] = set()

    def visit(name: str) -> None:
        if name in known and name not in seen:
            seen.add(name)
            term = known[name].term
            for leaf in leaves(term) if term is not None else ():
                if isinstance(leaf, VarPattern):
                    visit(leaf.name)
            found[name] = known[name]

    kernel = (example.kernel,) if example.kernel is not None else ()
    for result in (*example.before, *(example.after or ()), *kernel):
        for leaf in leaves(result):
            if isinstance(leaf, VarPattern):
                visit(leaf.name)
    return tuple(found.values())
