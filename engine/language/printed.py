"""Functions of Python while they are printed: lines, local variables, and what is known of these."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType
from typing import Any

from genrw.engine.language import running
from genrw.engine.language.members import Members
from genrw.grammar.source import Span

_RUNNING: dict[str, Any] = {
    "NUMBERS": frozenset({int, float}),
    "Members": Members,
    "exhausted": running.exhausted,
    "failed": running.failed,
    "index": running.index,
    "member": running.member,
    "not_a_list": running.not_a_list,
    "part": running.part,
    "pay": running.pay,
    "undecided": running.undecided,
    "weighed_at": running.weighed_at,
}
"""What printed functions call by name."""


@dataclass
class Printed:
    """A function of Python that is being printed: its lines, and the values of the names that stand for no local variable."""

    lines: list[str]
    values: dict[str, Any] = field(default_factory=dict)
    names: int = 0
    nodes: int = 0
    takes_steps: bool = False
    kinds: dict[str, str] = field(default_factory=dict)
    """What is known of constants and variables: it is a `number` (or a truth value, which computes as one), a `truth`, a `list`."""
    reads: dict[int, tuple[str, str, Span]] = field(default_factory=dict)
    """By its line what is read: of which variable, which name or member, and where it stands."""

    def fresh(self) -> str:
        """The name of another local variable."""
        self.names += 1
        return f"v{self.names}"

    def bound(self, value: object) -> str:
        """A name that stands for a value."""
        name = f"k{len(self.values)}"
        self.values[name] = value
        return name

    def made(self) -> Callable[..., Any]:
        """The function. Its name is `f`."""
        values = {**_RUNNING, **self.values, "reads": self.reads}
        exec(_compiled("\n".join(self.lines)), values)
        function: Callable[..., Any] = values["f"]
        return function


@lru_cache(maxsize=1 << 14)
def _compiled(text: str) -> CodeType:
    """The code of a text: libraries have most of their expressions in common."""
    return compile(text, "<expression>", "exec")


@dataclass
class Scope:
    """Where code is printed: the function, how deep in it, and the local variables in sight by their names in the language."""

    function: Printed
    variables: Mapping[str, str]
    helper: str | None = None
    """The `let` whose body this is: it sees its parameters only."""
    repeated: bool = False
    """Whether this may run more than once in a run, so that work on long lists has to count as steps."""
    indent: int = 1
    loops: int = 0
    known: dict[tuple[str, str], str] = field(default_factory=dict)
    """The variables that hold what was read already, by what was read of which variable."""

    def line(self, text: str) -> None:
        """Print a line."""
        self.function.lines.append(" " * self.indent + text)

    def set(self, text: str) -> str:
        """A new variable, set to what a text says."""
        name = self.function.fresh()
        self.line(f"{name} = {text}")
        return name

    def bound(self, value: object) -> str:
        """A name that stands for a value."""
        return self.function.bound(value)

    def read(self, holder: str, name: str, text: str, span: Span) -> str:
        """A variable that holds what a text reads of another one, at a line of its own."""
        found = self.known.get((holder, name))
        if found is None:
            found = self.known[holder, name] = self.set(text)
            self.function.reads[len(self.function.lines)] = holder, name, span
        return found

    @property
    def inner(self) -> Scope:
        """What stands below an `if`."""
        return Scope(
            self.function, self.variables, self.helper, self.repeated, self.indent + 1, self.loops, dict(self.known)
        )

    def of_kind(self, kind: str, name: str) -> str:
        """The name, known to stand for a value of a kind."""
        self.function.kinds[name] = kind
        return name

    def is_number(self, name: str) -> bool:
        """Is a name known to stand for a number?"""
        return self.function.kinds.get(name) in ("number", "truth")
