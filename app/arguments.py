"""What callers of the Python API give: checked before anything is made of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from genrw.grammar.diagnostics import error

_KINDS = {
    "strict": (bool, "give True or False"),
    "trust_rules": (bool, "give True or False"),
    "shipped": (bool, "give True or False"),
    "target": (str | None, "name one by a text, or leave it out"),
    "policy": (str, "name one by a text, or leave it out"),
    "plan": (str, "name one by a text, or leave it out"),
}
"""Of what type settings are, and what to do about those of another one."""


def check_settings(settings: Mapping[str, object]) -> None:
    """GenrwError for a setting of another type than it has to be: a text `no` would be taken for true."""
    for name, (kind, remedy) in _KINDS.items():
        if name in settings and not isinstance(settings[name], kind):
            raise error(f"`{name}` is {settings[name]!r}", remedy=remedy)


def folders(given: object) -> tuple[str | Path, ...]:
    """Folders of rules: several, or one by itself."""
    remedy = "give the path of a folder of rules, or a list of such"
    if isinstance(given, str | bytes | Path) or not isinstance(given, Iterable):
        given = [given]
    return tuple(named(one, remedy) for one in given)


def named(given: object, remedy: str) -> str | Path:
    """A path or a text. An empty one, as of a variable that a script left unset, would name the folder at hand."""
    if given == "":
        raise error("an empty text names no file or folder", remedy=remedy)
    if not isinstance(given, str | Path):
        raise error(f"{given!r} names no file or folder", remedy=remedy)
    return given
