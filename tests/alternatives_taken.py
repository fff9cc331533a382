"""Alternatives that are taken whatever they cost, so that tests see what their rules make."""

from __future__ import annotations

from math import inf

import pytest

from genrw.engine.ir.nodes import Module
from genrw.engine.lowering import alternatives
from genrw.engine.lowering.alternatives import Alternatives
from genrw.engine.lowering.options import Options


def take_only(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Take the alternatives of rules whose names end so, wherever there is one, and no others."""
    found = Alternatives._able_on

    def able_on(self: Alternatives, kernel: Module, options: Options) -> frozenset[str]:
        return frozenset(rule for rule in found(self, kernel, options) if rule.endswith(names))

    monkeypatch.setattr(Alternatives, "_able_on", able_on)
    monkeypatch.setattr(alternatives, "_WORTH", inf)
