"""`genrw lsp`: the language server for programs and rules, over standard input and output."""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer
from pygls.protocol import json_rpc
from pygls.uris import from_fs_path, to_fs_path

from genrw.authoring.formatting import formatted
from genrw.editor import completion, renaming
from genrw.editor.about import declaration_of, hover
from genrw.editor.occurrence import LOCAL, Occurrence
from genrw.editor.positions import Positions
from genrw.editor.project import Analysis, Project, forget
from genrw.editor.renaming import shared_key
from genrw.folders import RULES, require_folder
from genrw.grammar.diagnostics import Diagnostic, GenrwError
from genrw.grammar.read import read_text
from genrw.grammar.source import Source, Span

_QUIET = 0.4
"""Seconds without a key until all rules are checked together."""
_NAME = "genrw"

_Handler = TypeVar("_Handler", bound=Callable[..., Any])
_log = logging.getLogger(_NAME)

_KINDS = {
    completion.OPERATOR: lsp.CompletionItemKind.Method,
    completion.ATTRIBUTE: lsp.CompletionItemKind.Property,
    completion.WORD: lsp.CompletionItemKind.Keyword,
    completion.FUNCTION: lsp.CompletionItemKind.Function,
    completion.VALUE: lsp.CompletionItemKind.Variable,
    completion.TYPE: lsp.CompletionItemKind.Class,
}


class Server(LanguageServer):
    """The server with what it knows of the editor's texts."""

    def __init__(self, folders: Sequence[Path], shipped: bool) -> None:
        # Whole texts: their lines are then counted in one place only.
        super().__init__(_NAME, "1", text_document_sync_kind=lsp.TextDocumentSyncKind.Full)
        self.project = Project(folders, shipped)
        self.edits: dict[Path, int] = {}
        self.versions: dict[Path, int] = {}

    def roots(self) -> list[Path]:
        """The editor's folders."""
        found = [to_fs_path(folder.uri) for folder in self.workspace.folders.values()]
        return [Path(path) for path in found if path]

    def text(self, path: Path) -> str:
        """A text as it is open, else as it is on disk."""
        return self.project.open[path] if path in self.project.open else read_text(path).text

    def positions(self, text: str) -> Positions:
        encoding = self.workspace.position_encoding or lsp.PositionEncodingKind.Utf16
        return Positions(text, lsp.PositionEncodingKind(encoding).value)

    def range(self, span: Span, text: str) -> lsp.Range:
        """A part of a text as the editor counts."""
        places = self.positions(text)
        return lsp.Range(lsp.Position(*places.place(span.start)), lsp.Position(*places.place(span.end)))

    def offset(self, path: Path, position: lsp.Position) -> int:
        return self.positions(self.project.open.get(path, "")).offset(position.line, position.character)

    def show(self, path: Path, diagnostics: Sequence[Diagnostic]) -> None:
        """Tell the editor what is wrong with a text."""
        text = self.project.open.get(path, "")
        told = [_diagnostic(d, self.range(d.span, text)) for d in diagnostics if d.span is not None]
        uri = from_fs_path(str(path))
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri or "", told, self.versions.get(path)))

    def name_at(self, path: Path, position: lsp.Position) -> tuple[Analysis, Occurrence | None]:
        """The name at a place, the more particular one where there are two."""
        analysis = self.project.analysis(path)
        found = analysis.at(self.offset(path, position))
        return analysis, min(found, key=lambda o: (o.kind not in LOCAL, o.span.end - o.span.start), default=None)

    def places(self, path: Path, name: Occurrence) -> list[tuple[Path, Occurrence]]:
        """Every place of what a name stands for."""
        library = self.project.analysis(path).library
        key = shared_key(name, library)
        own = self.project.analysis(path).names
        found = [(path, o) for o in own if shared_key(o, library) == key]
        if name.kind not in LOCAL:
            for other, names in self.project.elsewhere(path, self.roots()):
                found += [(other, o) for o in names if other != path and shared_key(o, library) == key]
        return found


def _diagnostic(diagnostic: Diagnostic, place: lsp.Range) -> lsp.Diagnostic:
    help_ = f"\nhelp: {diagnostic.remedy}" if diagnostic.remedy else ""
    kinds = {"warning": lsp.DiagnosticSeverity.Warning}
    severity = kinds.get(diagnostic.severity, lsp.DiagnosticSeverity.Error)
    return lsp.Diagnostic(place, diagnostic.message + help_, severity, source=_NAME)


def _path(uri: str) -> Path:
    """The file of an address. Texts that are no files count as files of their name."""
    found = to_fs_path(uri)
    return Path(found).resolve() if found else Path("/") / uri.rpartition("/")[2]


def make_server(folders: Sequence[Path] = (), shipped: bool = True) -> Server:
    """A server with all that it can answer."""
    server = Server(folders, shipped)
    json_rpc.logger.addFilter(_is_failure)
    _texts(server)
    _questions(server)
    _changes(server)
    return server


class _Told(JsonRpcException):
    """What an editor is told in place of an answer."""


def _is_failure(record: logging.LogRecord) -> bool:
    """Is that a failure of the server, and not what an editor is told?"""
    return record.exc_info is None or not isinstance(record.exc_info[1], _Told)


def _answers(handler: _Handler) -> _Handler:
    """A handler that has no answer where it fails: the editor's work goes on. What it refuses is told."""

    @functools.wraps(handler)
    def guarded(*given: Any) -> Any:
        try:
            return handler(*given)
        except renaming.Refused as refused:
            raise _Told(str(refused), lsp.LSPErrorCodes.RequestFailed) from None
        except Exception:
            _log.exception("no answer")
            return None

    return guarded  # type: ignore[return-value]


def _texts(server: Server) -> None:
    """What the editor tells of its texts."""

    async def look(uri: str, version: int, text: str) -> None:
        path = _path(uri)
        server.versions[path] = version
        server.project.edit(path, text)
        server.edits[path] = now = server.edits.get(path, 0) + 1
        _look(server, path)
        await asyncio.sleep(_QUIET)
        if server.edits.get(path) == now and path.suffix == RULES:
            _look_again(server, path)

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    async def opened(params: lsp.DidOpenTextDocumentParams) -> None:
        await look(params.text_document.uri, params.text_document.version, params.text_document.text)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(params: lsp.DidChangeTextDocumentParams) -> None:
        if params.content_changes:
            await look(params.text_document.uri, params.text_document.version, params.content_changes[-1].text)

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    def saved(_: lsp.DidSaveTextDocumentParams) -> None:
        forget()

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    @_answers
    def closed(params: lsp.DidCloseTextDocumentParams) -> None:
        path = _path(params.text_document.uri)
        server.edits.pop(path, None)
        server.versions.pop(path, None)
        server.project.close(path)
        server.show(path, [])


@_answers
def _look(server: Server, path: Path) -> None:
    server.show(path, server.project.analysis(path).diagnostics)


@_answers
def _look_again(server: Server, path: Path) -> None:
    """All rules together, which takes longer."""
    found = server.project.analysis(path).diagnostics or server.project.lint(path)
    server.show(path, found)


def _questions(server: Server) -> None:
    """What the editor asks about a place."""

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    @_answers
    def hovered(params: lsp.HoverParams) -> lsp.Hover | None:
        path = _path(params.text_document.uri)
        analysis, name = server.name_at(path, params.position)
        told = hover(name, analysis) if name is not None else None
        if name is None or told is None:
            return None
        place = server.range(name.span, server.project.open.get(path, ""))
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, told), place)

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    @_answers
    def definition(params: lsp.DefinitionParams) -> list[lsp.Location]:
        path = _path(params.text_document.uri)
        analysis, name = server.name_at(path, params.position)
        if name is None:
            return []
        if name.kind in LOCAL:
            return [_location(server, path, o.span) for o in analysis.names if o.key == name.key and o.declares]
        declared = declaration_of(name, analysis.library)
        return (
            [_location(server, _file(server, declared.name_span), declared.name_span)] if declared is not None else []
        )

    @server.feature(lsp.TEXT_DOCUMENT_REFERENCES)
    @_answers
    def references(params: lsp.ReferenceParams) -> list[lsp.Location]:
        path = _path(params.text_document.uri)
        _, name = server.name_at(path, params.position)
        found = server.places(path, name) if name is not None else []
        wanted = [(p, o) for p, o in found if params.context.include_declaration or not o.declares]
        return [_location(server, p, o.span) for p, o in wanted]

    @server.feature(lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=["[", ".", "(", "@"]))
    @_answers
    def completed(params: lsp.CompletionParams) -> lsp.CompletionList:
        path = _path(params.text_document.uri)
        text, offset = server.project.open.get(path, ""), server.offset(path, params.position)
        found = completion.complete(server.project.analysis(path), text, offset, path.suffix != RULES)
        items = [lsp.CompletionItem(item.word, kind=_KINDS[item.kind], detail=item.about or None) for item in found]
        return lsp.CompletionList(is_incomplete=False, items=items)


def _changes(server: Server) -> None:
    """What the editor asks to have changed."""

    @server.feature(lsp.TEXT_DOCUMENT_PREPARE_RENAME)
    @_answers
    def prepared(params: lsp.PrepareRenameParams) -> lsp.Range:
        path = _path(params.text_document.uri)
        return server.range(_renamed(server, path, params.position).span, server.project.open.get(path, ""))

    @server.feature(lsp.TEXT_DOCUMENT_RENAME)
    @_answers
    def renamed(params: lsp.RenameParams) -> lsp.WorkspaceEdit:
        path, new = _path(params.text_document.uri), params.new_name
        name = _renamed(server, path, params.position)
        renaming.require_free(name, new, server.project.analysis(path))
        found: dict[Path, list[Occurrence]] = {}
        for other, place in server.places(path, name):
            if not place.is_sign:
                found.setdefault(other, []).append(place)
        texts = {other: server.text(other) for other in found}
        changed = {other: renaming.renamed(texts[other], places, new) for other, places in found.items()}
        renaming.require_right(server.project, texts, changed)
        return lsp.WorkspaceEdit(dict(_edits(server, *part, new) for part in found.items()))

    @server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    @_answers
    def laid_out(params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit] | None:
        path = _path(params.text_document.uri)
        text = server.project.open.get(path, "")
        try:
            new = formatted(Source(str(path), text))
        except GenrwError:
            return None
        return [] if new == text else [lsp.TextEdit(server.range(Span(Source("", text), 0, len(text)), text), new)]


def _renamed(server: Server, path: Path, position: lsp.Position) -> Occurrence:
    """The name at a place, which may be another one; Refused if it may not."""
    analysis, name = server.name_at(path, position)
    own = {*server.project.open, *_own(server)}
    return renaming.require_renamed(name, analysis, server.project, own)


def _edits(server: Server, path: Path, places: Sequence[Occurrence], new: str) -> tuple[str, list[lsp.TextEdit]]:
    """A text's address, and what changes where names get another one."""
    found = [lsp.TextEdit(_location(server, path, place.span).range, place.prefix + new) for place in places]
    return from_fs_path(str(path)) or "", found


def _own(server: Server) -> set[Path]:
    """The rule files of the editor's folders."""
    return {p.resolve() for root in (*server.roots(), *server.project.folders) for p in root.rglob(f"*{RULES}")}


def _file(server: Server, span: Span) -> Path:
    return server.project.path_of(span.source.name)


def _location(server: Server, path: Path, span: Span) -> lsp.Location:
    return lsp.Location(from_fs_path(str(path)) or "", server.range(span, server.text(path)))


def serve(folders: Sequence[Path], shipped: bool) -> int:
    """Answer an editor until it is done."""
    for folder in folders:
        require_folder(folder)
    # The server closes what it reads and writes; the process still has its own.
    with open(os.dup(sys.stdin.fileno()), "rb") as asked, open(os.dup(sys.stdout.fileno()), "wb") as answered:
        make_server(folders, shipped).start_io(asked, answered)
    return 0
