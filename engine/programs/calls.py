"""How large the calls of modules make a program: each is built in place, so its size is known before it is built."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from genrw.grammar import gen_tree as tree
from genrw.grammar.diagnostics import error
from genrw.grammar.source import Span

_DEEPEST = 100
_MOST_INSTRUCTIONS = 20_000


def called_modules(module: tree.Module) -> Iterator[tuple[str, Span]]:
    """The names of the modules that a module calls, and where it does."""
    for instruction in module.instructions:
        for attribute in instruction.attributes:
            if attribute.name == "module" and isinstance(attribute.value, tree.Word):
                yield attribute.value.name, attribute.value_span


def check_calls(module: tree.Module, modules: Mapping[str, tree.Module]) -> None:
    """GenrwError at the call that nests modules too deeply, or makes the program too large."""
    _Sizes(modules).of(module, 0)


class _Sizes:
    def __init__(self, modules: Mapping[str, tree.Module]) -> None:
        self.modules = modules
        self.known: dict[str, tuple[int, int]] = {}

    def of(self, module: tree.Module, depth: int) -> tuple[int, int]:
        """How many instructions a module has with those of all calls, and how deep the calls in it go."""
        if module.name not in self.known:
            # A module that calls itself is refused where it is built.
            self.known[module.name] = 0, 0
            self.known[module.name] = self._measured(module, depth)
        return self.known[module.name]

    def _measured(self, module: tree.Module, depth: int) -> tuple[int, int]:
        size, deepest = len(module.instructions), 0
        for name, span in called_modules(module):
            if name not in self.modules:
                continue
            if depth >= _DEEPEST:
                raise _too_deep(span)
            inner, below = self.of(self.modules[name], depth + 1)
            size, deepest = size + inner, max(deepest, below + 1)
            if depth + deepest > _DEEPEST:
                raise _too_deep(span)
            if size > _MOST_INSTRUCTIONS:
                raise error(
                    f"calls make this a program of more than {_MOST_INSTRUCTIONS} instructions",
                    span,
                    "each call builds the whole module in place: call it once, or make programs of the parts",
                )
        return size, deepest


def _too_deep(span: Span) -> Exception:
    return error(
        f"modules call one another more than {_DEEPEST} deep", span, "write the instructions of some into their callers"
    )
