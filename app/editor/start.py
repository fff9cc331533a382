"""The command `genrw lsp`, which needs an extra of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from genrw.grammar.diagnostics import error


def start(folders: Sequence[Path], shipped: bool) -> int:
    """Run the server; GenrwError where what it is made with is not installed."""
    try:
        from genrw.editor.server import serve
    except ModuleNotFoundError as problem:
        raise error(f"the language server needs {problem.name}", remedy="pip install 'genrw[lsp]'") from None
    return serve(folders, shipped)
