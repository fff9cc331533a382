"""Members that values and records never have, wherever an expression of a declaration asks for one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from genrw.engine.language.expr_walk import did_you_mean, member_uses, walk
from genrw.engine.library.instructions import INSTRUCTION, Instruction
from genrw.engine.library.library import Library
from genrw.engine.programs.space import SPACE_MEMBERS
from genrw.grammar.diagnostics import Diagnostic
from genrw.grammar.expr_tree import Call, Expr, Member, Name, walk_free

Known = Mapping[str, Collection[str]]
"""The members of what is at hand by its name; a list of several values has none."""


def record_members(library: Library) -> dict[str, Collection[str]]:
    """The members that the records of the context have in a library; those of which nothing is declared are left out."""
    records: dict[str, Collection[str]] = {
        "target": {"name", *(name for t in library.targets.values() for name in t.values)},
        "schedule": {name for op in library.kernel_operators for name in op.attributes},
        "space": SPACE_MEMBERS,
    }
    # A target always has its name: alone it says that there are none.
    return {name: members for name, members in records.items() if {*members} - {"name"}}


def unknown_members(library: Library, expr: Expr, known: Known) -> Iterator[Diagnostic]:
    """What an expression asks for that is not there: of what is at hand, of instructions, and by helpers of what they are given."""
    told: set[tuple[str, str]] = set()
    for node, local in walk_free(expr):
        if not isinstance(node, Member):
            continue
        if isinstance(node.base, Call) and node.base.function == INSTRUCTION:
            if node.name not in Instruction.member_names:
                yield _unknown(f"`{INSTRUCTION}(…)`", node, Instruction.member_names)
        elif isinstance(node.base, Name) and node.base.name not in local:
            base = node.base.name
            if base in known and node.name not in known[base]:
                told.add((base, node.name))
                yield _unknown(f"`{base}`", node, known[base])
    lets = library.scope.lets
    if expr.called.isdisjoint(lets):
        return
    for base, name in sorted(member_uses(expr, lets) - told):
        if base in known and name not in known[base]:
            call = next(n for n in walk(expr) if isinstance(n, Call) and (base, name) in member_uses(n, lets))
            message = f"`{call.function}` asks for the member `{name}` of `{base}`, which it has not"
            yield Diagnostic(message, call.span, _remedy(name, known[base]))


def _unknown(base: str, node: Member, members: Collection[str]) -> Diagnostic:
    return Diagnostic(f"{base} has no member `{node.name}`", node.span, _remedy(node.name, members))


def _remedy(name: str, members: Collection[str]) -> str:
    if not members:
        return "it stands for several values: ask one of them, as in `[x.lens for x in xs]`"
    return did_you_mean(name, members) or f"it has {', '.join(sorted(members))}"
