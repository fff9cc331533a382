"""A workgroup as loops over its lanes: how the host runs a kernel whose lanes meet.

Where lanes meet, at a barrier or in an operation across lanes, a kernel's body is cut. What lies between two cuts is a
region: it runs for all lanes of a wave, one after the other, before the next begins; between two barriers a wave goes
through its regions before the next wave does. A lane's variable that several regions use is kept in an array over
the lanes. Lanes meet in straight lines and in loops that all of them walk alike, never in a branch: such a loop goes
around the loops over lanes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

KEPT = "gen_kept"
"""What the host's kernels call the variables that are kept. No variable of a kernel may have the name."""

_WORD = re.compile(r"(?<![\w.:])[A-Za-z_]\w*")
_INDENT = "    "


@dataclass(frozen=True)
class Variable:
    """A variable that a line declares: its C++ type, its value, None where lines to come give it one, and whether it keeps
    that."""

    name: str
    type: str
    value: str | None = None
    constant: bool = False

    @property
    def is_copied(self) -> bool:
        """Does a lane use a copy of it, as small and constant as it is?"""
        return self.constant and not self.type.startswith("gen::array")


@dataclass(frozen=True)
class Line:
    """A line of a kernel's body, as a GPU's compiler gets it.

    `meets`: whose lanes meet in it, those of a "wave" or of the "block"; `shared`: it declares workgroup memory.
    """

    depth: int
    text: str
    variable: Variable | None = None
    meets: str = ""
    shared: bool = False


@dataclass(frozen=True)
class Loop:
    """A loop that all lanes walk alike."""

    head: tuple[Line, ...]
    body: tuple[Line | Loop, ...]

    @property
    def lines(self) -> tuple[Line, ...]:
        return (*self.head, *_flat(self.body), Line(self.head[0].depth, "}"))


Body = Sequence[Line | Loop]


def straight(body: Body) -> list[str]:
    """The lines of a body as one lane runs them."""
    return [f"{_INDENT * line.depth}{line.text}" for line in _flat(body)]


@dataclass(frozen=True)
class LaneLoops:
    """A body as loops over lanes, and the members of the struct that holds the variables kept."""

    members: tuple[str, ...]
    lines: tuple[str, ...]


def lane_loops(body: Body) -> LaneLoops:
    """Cut a body where lanes meet."""
    parts = _parts([part for part in body if not (isinstance(part, Line) and part.shared)])
    kept = _kept(parts)
    writer = _Writer(kept)
    writer.lines += [_INDENT + line.text for line in _flat(body) if line.shared]
    writer.parts(parts, 1)
    members = tuple(f"gen::lanes<{v.type}> {v.name}_;" for v in kept.values())
    return LaneLoops(members, tuple(writer.lines))


# ---- the parts of a body


@dataclass(frozen=True)
class _Region:
    """Lines between two meetings."""

    lines: tuple[Line, ...]

    def words(self) -> set[str]:
        return {word for line in self.lines for word in _WORD.findall(line.text)}

    def declared(self) -> list[Variable]:
        return [line.variable for line in self.lines if line.variable is not None]


@dataclass(frozen=True)
class _Around:
    """A loop in which lanes meet."""

    head: tuple[Line, ...]
    parts: tuple[_Part, ...]


_Part = _Region | Line | _Around
"""A region, a meeting, a loop around both."""


def _flat(body: Body) -> Iterator[Line]:
    for part in body:
        yield from (part,) if isinstance(part, Line) else part.lines


def _parts(body: Body) -> tuple[_Part, ...]:
    parts: list[_Part] = []
    region: list[Line] = []
    for part in body:
        if isinstance(part, Line) and not part.meets:
            region.append(part)
        elif isinstance(part, Loop) and not any(line.meets for line in part.lines):
            region += part.lines
        else:
            parts += [_Region(tuple(region))] if region else []
            parts.append(part if isinstance(part, Line) else _Around(part.head, _parts(part.body)))
            region = []
    return (*parts, _Region(tuple(region))) if region else tuple(parts)


def _kept(parts: Sequence[_Part]) -> dict[str, Variable]:
    """The variables that outlive the region which declares them: results of meetings, and those used elsewhere."""
    regions, meetings = list(_regions(parts)), list(_meetings(parts))
    kept = {m.variable.name: m.variable for m in meetings if m.variable is not None}
    elsewhere = {word for m in meetings if m.variable is not None for word in _WORD.findall(m.variable.value or "")}
    words = [region.words() for region in regions]
    for i, region in enumerate(regions):
        others = elsewhere.union(*words[:i], *words[i + 1 :])
        kept |= {v.name: v for v in region.declared() if v.name in others}
    return kept


def _regions(parts: Sequence[_Part]) -> Iterator[_Region]:
    for part in parts:
        if isinstance(part, _Region):
            yield part
        elif isinstance(part, _Around):
            yield from _regions(part.parts)


def _meetings(parts: Sequence[_Part]) -> Iterator[Line]:
    for part in parts:
        if isinstance(part, Line):
            yield part
        elif isinstance(part, _Around):
            yield from _meetings(part.parts)


# ---- the text


class _Writer:
    """Writes parts; loops over waves are open from one barrier to the next."""

    def __init__(self, kept: dict[str, Variable]) -> None:
        self.kept = kept
        self.lines: list[str] = []
        self.open = False

    def parts(self, parts: Sequence[_Part], depth: int) -> None:
        for part in parts:
            if isinstance(part, _Region):
                self._region(part, depth)
            elif isinstance(part, _Around):
                self._close(depth)
                self.lines += [f"{_INDENT * line.depth}{line.text}" for line in part.head]
                self.parts(part.parts, depth + 1)
                self._line(depth, "}")
            elif part.meets == "wave":
                self._wave(part, depth)
            else:
                self._block(part, depth)
        self._close(depth)

    def _region(self, region: _Region, depth: int) -> None:
        self._waves(depth)
        self._line(depth + 1, "GEN_LANES {")
        declared = {v.name for v in region.declared()}
        words = region.words()
        for name in self.kept:
            if name in words and name not in declared:
                type_ = "const auto" if self.kept[name].is_copied else "auto&"
                self._line(depth + 2, f"{type_} {name} = {_of_lane(name)};")
        for line in region.lines:
            self._line(line.depth + 2, self._kept_here(line))
        self._line(depth + 1, "}")

    def _kept_here(self, line: Line) -> str:
        """The line; what it declares is a place among the variables kept, if it is one of them."""
        variable = line.variable
        if variable is None or variable.name not in self.kept:
            return line.text
        value = "" if variable.value is None else f" = {variable.value}"
        type_ = f"const {variable.type}" if variable.is_copied else f"{variable.type}&"
        return f"{type_} {variable.name} = {_of_lane(variable.name)}{value};"

    def _wave(self, line: Line, depth: int) -> None:
        if line.variable is not None:
            self._waves(depth)
            self._line(depth + 1, f"{_of_all(line.variable.name)} = {self._of_lanes(line.variable)};")

    def _block(self, line: Line, depth: int) -> None:
        """A barrier; or an operation of which the waves' loops before and after have the first and the last step."""
        if line.variable is None:
            self._close(depth)
            self._line(depth, f"// {line.text}")
            return
        operation = f"({_of_all(line.variable.name)}, {self._of_lanes(line.variable)});"
        self._waves(depth)
        self._line(depth + 1, f"gen::host::enter{operation}")
        self._close(depth)
        self._line(depth, f"gen::host::between{operation}")
        self._waves(depth)
        self._line(depth + 1, f"gen::host::leave{operation}")

    def _of_lanes(self, variable: Variable) -> str:
        """A meeting's value, of all lanes instead of one."""
        return _WORD.sub(lambda m: _of_all(m[0]) if m[0] in self.kept else m[0], variable.value or "")

    def _waves(self, depth: int) -> None:
        if not self.open:
            self._line(depth, "GEN_WAVES {")
        self.open = True

    def _close(self, depth: int) -> None:
        if self.open:
            self._line(depth, "}")
        self.open = False

    def _line(self, depth: int, text: str) -> None:
        self.lines.append(_INDENT * depth + text)


def _of_all(name: str) -> str:
    return f"{KEPT}.{name}_"


def _of_lane(name: str) -> str:
    return f"{_of_all(name)}[gen_lane]"
