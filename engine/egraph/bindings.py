"""egglog's extension module, without the Python package around it, whose import takes a fifth of a second."""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any


def _load() -> ModuleType:
    name = "egglog.bindings"
    if name in sys.modules:
        return sys.modules[name]
    package = PathFinder.find_spec("egglog")
    places = package.submodule_search_locations if package is not None else None
    spec = PathFinder.find_spec(name, places)
    if spec is None or spec.loader is None:
        raise ImportError("egglog is not installed")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


# The stubs type results as one large union, so that every access would need a cast.
egg: Any = _load()

__all__ = ["egg"]
