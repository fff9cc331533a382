"""What tests of programs on a GPU share: the GPU whose part the CPU plays."""

from __future__ import annotations

from pathlib import Path

import pytest
from host_gpu import HostGpu


@pytest.fixture
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HostGpu:
    """A GPU for one test, with a cache of its own, so that what other tests built is built again."""
    monkeypatch.setenv("GENRW_CACHE_DIR", str(tmp_path / "cache"))
    return HostGpu()
