"""The options that all commands share, as written on the command line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from genrw.engine.fusion.stage import SEARCH, plan_named
from genrw.engine.lowering.options import DEFAULT_POLICY, Options
from genrw.grammar.diagnostics import error

_POLICY = "policy"
_FLAGS = {"true": True, "false": False}
_BETWEEN_ENTRIES = re.compile(r",(?![^{\[(]*[}\])])")
"""A comma that stands in no list."""
_LIST = re.compile(r"\{(.*)\}", re.DOTALL)
_OTHER_LIST = re.compile(r"\[(.*)\]|\((.*)\)", re.DOTALL)
"""A list as rules or Python have it, and as nobody calls a word."""


@dataclass(frozen=True)
class Settings:
    """`--target`, `--strict`, `--schedule`, `--plan`, `--rules`, `--no-shipped-rules` and
    `--trust-rules`."""

    target: str | None = None
    strict: bool = False
    schedule: str = ""
    plan: str = SEARCH
    rules: Sequence[Path] = ()
    shipped: bool = True
    trusted: bool = False

    def options(self) -> Options:
        """What the pipeline takes; GenrwError for a schedule that cannot be read."""
        pinned = parse_schedule(self.schedule)
        policy = pinned.pop(_POLICY, DEFAULT_POLICY)
        return Options(self.target or "", self.strict, pinned, str(policy), plan_named(self.plan))


def parse_schedule(text: str) -> dict[str, Any]:
    """The entries of `key=value,key={value,value}`: numbers as such, everything else as a word."""
    entries: dict[str, Any] = {}
    for item in filter(None, (part.strip() for part in _BETWEEN_ENTRIES.split(text))):
        key, sign, value = (part.strip() for part in item.partition("="))
        if not (key and sign and value):
            raise error(f"the schedule entry {item!r} has no value", remedy="write `key=value,key=value`")
        if not key.isidentifier():
            raise error(
                f"the schedule entry {key!r} is called by no name",
                remedy="write `key=value,key=value`, without brackets",
            )
        if key in entries:
            raise error(f"the schedule gives `{key}` twice", remedy="give it once")
        entries[key] = _listed(key, value) if value[0] in "{[(" else _value(value)
    return entries


def _listed(key: str, text: str) -> tuple[Any, ...]:
    if (other := _OTHER_LIST.fullmatch(text)) is not None:
        raise error(
            f"the list of the schedule entry `{key}` stands in no braces",
            remedy=f"write `{key}={{{other[other.lastindex or 0]}}}`",
        )
    if (found := _LIST.fullmatch(text)) is None:
        raise error(f"the list of the schedule entry `{key}` has no end", remedy=f"write `{key}={{value,value}}`")
    return tuple(_value(part.strip()) for part in found[1].split(",") if part.strip())


def _value(text: str) -> Any:
    if text in _FLAGS:
        return _FLAGS[text]
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 19 else text
