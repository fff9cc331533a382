"""`genrw view`: one HTML page with a program's stages side by side, which needs nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files
from pathlib import Path

import jinja2

from genrw.explain.view_data import view_data
from genrw.output import write_file
from genrw.program import Program
from genrw.terminal import write

_TEMPLATES = files("genrw") / "templates"


def view_file(program: Program, output: Path | None) -> int:
    """Write the page of a program, beside the present folder's files under the program's name if no place is given."""
    data = view_data(program)
    path = output or Path(f"{Path(data['title']).stem.strip('<>')}.html")
    write_file(path, page(data).encode())
    write(str(path))
    return 0


def page(data: dict[str, object]) -> str:
    """The page that shows what `view_data` collected."""
    style, script = (_text(f"view.{kind}") for kind in ("css", "js"))
    template = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(_text("view.html"))
    return template.render(
        title=data["title"],
        target=data["target"],
        style=style,
        script=script,
        style_hash=_hash(style),
        script_hash=_hash(script),
        data=json_in_html(data),
    )


def json_in_html(data: object) -> str:
    """JSON that can stand in a script element, whatever its strings hold: nothing in it ends the element."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


def _text(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """What a page's policy calls a script or style that it allows."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
