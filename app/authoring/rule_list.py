"""`genrw rules list`: every rule with its stage, place, contract and what it says of itself."""

from __future__ import annotations

import json
from typing import Any

from genrw.engine.library.library import Library
from genrw.grammar.rw_tree import RuleDecl
from genrw.terminal import write, write_table


def show(library: Library, as_json: bool) -> None:
    """Print all rules, in the order in which they are declared."""
    entries = [_entry(rule) for rule in library.rules]
    if as_json:
        write(json.dumps(entries, indent=2, ensure_ascii=False))
    else:
        headings = ["rule", "stage", "declared at", "contract", "about"]
        write_table(headings, [[str(value) for value in entry.values()] for entry in entries])


def _entry(rule: RuleDecl) -> dict[str, Any]:
    return {
        "name": rule.name,
        "stage": rule.stage or "",
        "declared_at": rule.name_span.location,
        "contract": rule.contract if rule.bound is None else f"{rule.contract} {rule.bound:g}",
        "doc": rule.doc.split("\n")[0],
    }
