"""`genrw rules cover`: what was seen of rules, as a table, as JSON, as a page with the rules' text, as Cobertura XML."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any
from xml.etree import ElementTree

from genrw.authoring.rulesets import chosen_rules, load_library
from genrw.coverage.data import CoverageData
from genrw.coverage.observed import Coverage, RuleRow
from genrw.grammar.diagnostics import GenrwError
from genrw.output import check_writable, write_file
from genrw.program import Program
from genrw.settings import Settings
from genrw.terminal import write, write_table


@dataclass(frozen=True)
class Request:
    """What `cover` is asked about, all rules or those of the folders, and what it writes besides the table: JSON instead, a
    page, XML, and where data of other runs is kept."""

    everything: bool = False
    as_json: bool = False
    page: Path | None = None
    xml: Path | None = None
    data: Path | None = None


def cover_files(programs: Mapping[str, Program], settings: Settings, request: Request) -> int:
    """Lower programs by file name, ask guards in the rules' examples and print what was seen; 1 if something is still to
    be seen.

    The rules are those of the folders, without folders all.
    """
    check_writable(request.page, request.xml, request.data)
    library = load_library(settings.rules, shipped=settings.shipped)
    asked = chosen_rules(library, (), () if request.everything else settings.rules)
    coverage = Coverage(library, frozenset(rule.name for rule in asked))
    coverage.add(list(programs.values()), list(programs))
    problems = coverage.add_examples()
    if problems:
        raise GenrwError(problems)
    rows = coverage.rows()
    if request.data is not None:
        data = CoverageData.read(request.data)
        data.add(CoverageData.of(rows, library))
        rows = data.rows(coverage.rules, library)
        data.write(request.data)
    write_reports(rows, request)
    return show(rows, request.as_json)


def write_reports(rows: Sequence[RuleRow], request: Request) -> None:
    """Write the page and the XML that were asked for."""
    if request.page is not None:
        write_file(request.page, page(rows).encode())
    if request.xml is not None:
        write_file(request.xml, cobertura(rows))


def percent(rows: Sequence[RuleRow]) -> float:
    """How many of a hundred rows lack nothing."""
    return 100.0 * sum(not row.gaps for row in rows) / len(rows) if rows else 100.0


# ---- as text


def show(rows: Iterable[RuleRow], as_json: bool) -> int:
    """Print what was seen; 1 if something is still to be seen."""
    rows = list(rows)
    if as_json:
        write(json.dumps([_entry(row) for row in rows], indent=2))
    else:
        headings = [
            "rule",
            "stage",
            "declared at",
            "fired",
            "survived",
            "taken",
            "refused",
            "time",
            "terms",
            "to be seen",
        ]
        write_table(headings, [_cells(row) for row in rows])
        open_rows = sum(bool(row.gaps) for row in rows)
        write(f"{len(rows) - open_rows} of {len(rows)} rules are covered")
    return int(any(row.gaps for row in rows))


def _entry(row: RuleRow) -> dict[str, Any]:
    return {
        "name": row.direction,
        "stage": row.rule.stage or "",
        "declared_at": row.rule.name_span.location,
        "fired": row.fired,
        "survived": row.survived,
        "programs": list(row.programs),
        "guard": None if row.refused is None else {"taken": row.taken, "refused": row.refused},
        "stages": {stage: vars(seen) for stage, seen in row.stages.items()},
        "gaps": row.gaps,
    }


def _cells(row: RuleRow) -> list[str]:
    def count(number: int | None) -> str:
        return "" if number is None else str(number)

    seen = ["yes" if yes else "no" for yes in (row.fired, row.survived)]
    guard = [count(row.taken), count(row.refused)]
    weight = [f"{row.seconds * 1000:.1f} ms", str(row.grown)]
    return [
        row.direction,
        row.rule.stage or "",
        row.rule.name_span.location,
        *seen,
        *guard,
        *weight,
        ", ".join(row.gaps),
    ]


# ---- as a page

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 80em; padding: 0 1em; color: #222; }
table { border-collapse: collapse; } th, td { text-align: left; padding: .15em .8em .15em 0; vertical-align: top; }
td.n, th.n { text-align: right; } tr + tr td { border-top: 1px solid #eee; }
pre { line-height: 1.4; overflow-x: auto; } pre span { display: block; padding-left: .6em; border-left: .4em solid #ddd; }
pre .seen { border-color: #2a2; background: #f2fbf2; } pre .open { border-color: #c33; background: #fdf2f2; }
pre .stale { border-color: #d90; background: #fdf8ec; } .gap { color: #b22; } a { color: inherit; }
"""


def page(rows: Sequence[RuleRow]) -> str:
    """One HTML page without anything from elsewhere: a table of the rules, then each file with its rules coloured."""
    files: dict[str, list[RuleRow]] = {}
    for row in rows:
        files.setdefault(row.rule.span.source.name, []).append(row)
    covered = sum(not row.gaps for row in rows)
    body = [f"<h1>Rules covered: {covered} of {len(rows)}</h1>", _html_table(rows)]
    body += [_html_file(name, of_file) for name, of_file in files.items()]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Coverage of rules</title>'
        f"<style>{_STYLE}</style></head>\n<body>\n" + "\n".join(body) + "\n</body></html>\n"
    )


def _html_table(rows: Sequence[RuleRow]) -> str:
    heads = ["rule", "stage", "fired", "survived", "taken", "refused", "time", "terms", "to be seen"]
    lines = ["<table><tr>" + "".join(f"<th>{head}</th>" for head in heads) + "</tr>"]
    for row in rows:
        name, stage, _, *seen, gaps = map(html.escape, _cells(row))
        link = f'<a href="#{html.escape(row.rule.name)}">{name}</a>'
        cells = "".join(f'<td class="n">{cell}</td>' for cell in seen)
        lines.append(f'<tr><td>{link}</td><td>{stage}</td>{cells}<td class="gap">{gaps}</td></tr>')
    return "\n".join([*lines, "</table>"])


def _html_file(name: str, rows: Sequence[RuleRow]) -> str:
    """A rule file's text; the lines of a rule carry what was seen of it."""
    source = rows[0].rule.span.source
    marks: dict[int, tuple[str, str]] = {}
    anchors: dict[int, str] = {}
    for row in rows:
        first, last = row.rule.span.line, source.position(row.rule.span.end)[0]
        kind = "stale" if row.stale else "open" if row.gaps else "seen"
        told = f"{row.direction}: {', '.join(row.gaps) or 'covered'}"
        anchors[first] = row.rule.name
        for line in range(first, last + 1):
            before = marks.get(line)
            worse = kind if before is None or before[0] == "seen" else before[0]
            marks[line] = worse, f"{before[1]}; {told}" if before is not None else told
    lines = [_html_line(text, marks.get(i), anchors.get(i)) for i, text in enumerate(source.text.split("\n"), 1)]
    return f"<h2>{html.escape(name)}</h2>\n<pre>{''.join(lines)}</pre>"


def _html_line(text: str, mark: tuple[str, str] | None, anchor: str | None) -> str:
    kind, told = mark or ("", "")
    id_ = f' id="{html.escape(anchor)}"' if anchor is not None else ""
    title = f' class="{kind}" title="{html.escape(told)}"' if mark else ""
    return f"<span{id_}{title}>{html.escape(text) or '&nbsp;'}</span>"


# ---- as Cobertura XML


def cobertura(rows: Sequence[RuleRow]) -> bytes:
    """What viewers of coverage read: a file is a class, a rule a line, its guard's decisions are branches."""
    files: dict[str, list[RuleRow]] = {}
    for row in rows:
        files.setdefault(row.rule.span.source.name, []).append(row)
    root = ElementTree.Element("coverage", {**_rates(rows), "version": "genrw", "timestamp": "0"})
    ElementTree.SubElement(ElementTree.SubElement(root, "sources"), "source").text = "."
    packages = ElementTree.SubElement(root, "packages")
    folders: dict[str, list[str]] = {}
    for name in files:
        folders.setdefault(PurePath(name).parent.as_posix(), []).append(name)
    for folder, names in folders.items():
        inside = [row for name in names for row in files[name]]
        package = ElementTree.SubElement(packages, "package", {"name": folder, **_rates(inside)})
        classes = ElementTree.SubElement(package, "classes")
        for name in names:
            _class(classes, name, files[name])
    ElementTree.indent(root)
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root) + b"\n"


def _class(classes: ElementTree.Element, name: str, rows: Sequence[RuleRow]) -> None:
    about = {"name": PurePath(name).stem, "filename": name, **_rates(rows)}
    made = ElementTree.SubElement(classes, "class", about)
    ElementTree.SubElement(made, "methods")
    lines = ElementTree.SubElement(made, "lines")
    by_line: dict[int, list[RuleRow]] = {}
    for row in rows:
        by_line.setdefault(row.rule.name_span.line, []).append(row)
    for number, of_line in sorted(by_line.items()):
        ElementTree.SubElement(lines, "line", _line(number, of_line))


def _line(number: int, rows: Sequence[RuleRow]) -> dict[str, str]:
    """A rule's line: how often it fired where it counts, and which ways its guard decided."""
    hits = 0 if any("never" in gap and "guard" not in gap for row in rows for gap in row.gaps) else _fired(rows)
    ways, all_ways = _branches(rows)
    line = {"number": str(number), "hits": str(hits), "branch": "true" if all_ways else "false"}
    if all_ways:
        line["condition-coverage"] = f"{100 * ways // all_ways}% ({ways}/{all_ways})"
    return line


def _fired(rows: Sequence[RuleRow]) -> int:
    return sum(seen.fired for row in rows if not row.stale for seen in row.stages.values())


def _branches(rows: Sequence[RuleRow]) -> tuple[int, int]:
    guarded = [row for row in rows if row.refused is not None]
    return sum(bool(row.taken) + bool(row.refused) for row in guarded), 2 * len(guarded)


def _rates(rows: Sequence[RuleRow]) -> Mapping[str, str]:
    lines = sum(row.survived and not row.stale for row in rows)
    ways, all_ways = _branches(rows)
    return {
        "line-rate": f"{lines / len(rows) if rows else 1:.4f}",
        "branch-rate": f"{ways / all_ways if all_ways else 1:.4f}",
        "lines-covered": str(lines),
        "lines-valid": str(len(rows)),
        "branches-covered": str(ways),
        "branches-valid": str(all_ways),
        "complexity": "0",
    }
