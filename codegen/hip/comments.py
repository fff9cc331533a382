"""Texts that others wrote, as comments in kernels."""

from __future__ import annotations


def comment_lines(text: str) -> str:
    """A text whose lines can stand in C++ comments: none of them reaches into the next."""
    shown = ("".join(c if c.isprintable() else " " for c in line) for line in text.splitlines())
    return "\n".join(line.rstrip(" \\") for line in shown)
