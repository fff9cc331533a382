"""All tests of a run share one cache of compiled kernels, which is not the user's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="session")
def _kernel_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GENRW_CACHE_DIR", str(tmp_path_factory.mktemp("genrw-cache")))
        yield
