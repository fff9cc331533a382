"""A workgroup as loops over its lanes: how the host runs a kernel whose lanes meet.

A region of the kernel runs for all lanes of a wave, one after the other, before the next begins; between two barriers a wave
goes through its regions before the next wave does. A lane's variable that outlives its region is kept in an array over the
lanes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from genrw.codegen.hip.expression_text import ExpressionText
from genrw.codegen.hip.identifiers import KEPT
from genrw.codegen.hip.statement_text import INDENT, StatementText
from genrw.codegen.kernel_ir.kernel import (
    Allocate,
    Declare,
    Let,
    Meeting,
    Spill,
    Start,
    Statement,
    Variable,
)
from genrw.codegen.kernel_ir.regions import Around, Part, Region, given, kept, parts_of


@dataclass(frozen=True)
class LaneLoops:
    """A body as loops over lanes, and the members of the struct that holds the variables kept."""

    members: tuple[str, ...]
    lines: tuple[str, ...]


def lane_loops(
    body: Sequence[Statement], expressions: ExpressionText, spills: Mapping[Variable, Spill], dynamic: bool = False
) -> LaneLoops:
    """Cut a body where lanes meet."""
    parts = parts_of(body)
    writer = _Writer(kept(parts), expressions, spills, dynamic)
    writer.add(writer.text.lines([s for s in body if isinstance(s, Allocate)], 1))
    writer.parts(parts, 1)
    members = tuple(
        f"gen::lanes<{writer.text.declared_type(s)}> {expressions.names[v]}_;" for v, s in writer.kept.items()
    )
    return LaneLoops(members, tuple(writer.made))


class _RegionText(StatementText):
    """Prints statements of a region; what they declare is a place among the variables kept, if it is one of them."""

    kept: Mapping[Variable, Statement]

    def declaration(self, statement: Let | Declare | Start, value: str) -> str:
        variable = statement.variable
        if variable not in self.kept:
            return super().declaration(statement, value)
        type_ = self.declared_type(statement)
        shown = f"const {type_}" if _is_copied(statement) else f"{type_}&"
        name, given_value = self.expressions.names[variable], f" = {value}" if value else ""
        return f"{shown} {name} = {_of_lane(name)}{given_value};"


class _Writer:
    """Writes parts; loops over waves are open from one barrier to the next."""

    def __init__(
        self,
        variables: Mapping[Variable, Statement],
        expressions: ExpressionText,
        spills: Mapping[Variable, Spill],
        dynamic: bool,
    ) -> None:
        self.kept, self.names = variables, expressions.names
        self.text = _RegionText(expressions, spills, dynamic)
        self.text.kept = variables
        # A meeting's value, of all lanes instead of one.
        self.of_lanes = expressions.renamed({v: _of_all(self.names[v]) for v in variables})
        # All lanes walk a loop alike, as the first one says.
        of_first = expressions.renamed({v: f"{_of_all(self.names[v])}[0]" for v in variables})
        self.of_any = StatementText(of_first, spills, dynamic)
        self.made: list[str] = []
        self.open = False

    def add(self, lines: Iterable[str]) -> None:
        self.made += lines

    def parts(self, parts: Sequence[Part], depth: int) -> None:
        for part in parts:
            if isinstance(part, Region):
                self._region(part, depth)
            elif isinstance(part, Around):
                self._close(depth)
                self.add(INDENT * depth + head for head in self.of_any.loop_head(part.loop))
                self.parts(part.parts, depth + 1)
                self._line(depth, "}")
            elif part.meeting is Meeting.WAVE:
                self._wave(part, depth)
            else:
                self._block(part, depth)
        self._close(depth)

    def _region(self, region: Region, depth: int) -> None:
        self._waves(depth)
        self._line(depth + 1, "GEN_LANES {")
        for variable, statement in self.kept.items():
            if variable in region.variables and variable not in region.declared:
                type_ = "const auto" if _is_copied(statement) else "auto&"
                name = self.names[variable]
                self._line(depth + 2, f"{type_} {name} = {_of_lane(name)};")
        self.add(self.text.lines(region.statements, depth + 2))
        self._line(depth + 1, "}")

    def _wave(self, meeting: Statement, depth: int) -> None:
        variable = given(meeting)
        if variable is not None:
            self._waves(depth)
            self._line(depth + 1, f"{_of_all(self.names[variable])} = {self._value(meeting)};")

    def _block(self, meeting: Statement, depth: int) -> None:
        """A barrier; or an operation of which the waves' loops before and after have the first and the last step."""
        variable = given(meeting)
        if variable is None:
            self._close(depth)
            self.add(f"{INDENT * depth}// {line.strip()}" for line in self.text.statement(meeting, 0))
            return
        operation = f"({_of_all(self.names[variable])}, {self._value(meeting)});"
        self._waves(depth)
        self._line(depth + 1, f"gen::host::enter{operation}")
        self._close(depth)
        self._line(depth, f"gen::host::between{operation}")
        self._waves(depth)
        self._line(depth + 1, f"gen::host::leave{operation}")

    def _value(self, meeting: Statement) -> str:
        (value,) = meeting.expressions
        return self.of_lanes.text(value)

    def _waves(self, depth: int) -> None:
        if not self.open:
            self._line(depth, "GEN_WAVES {")
        self.open = True

    def _close(self, depth: int) -> None:
        if self.open:
            self._line(depth, "}")
        self.open = False

    def _line(self, depth: int, text: str) -> None:
        self.made.append(INDENT * depth + text)


def _is_copied(statement: Statement) -> bool:
    """Does a lane use a copy of the variable that a statement declares, as small and constant as it is?"""
    return isinstance(statement, Let) and statement.constant and not statement.variable.type.size


def _of_all(name: str) -> str:
    return f"{KEPT}.{name}_"


def _of_lane(name: str) -> str:
    return f"{_of_all(name)}[gen_lane]"
