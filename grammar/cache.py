"""What was built once is kept on disk: in a folder that processes share, each entry whole and with its checksum."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import pickle
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

import platformdirs

_DIGEST_BYTES = hashlib.sha256().digest_size
_BYTES_KEPT = 1 << 29
"""What a folder may hold; beyond that, entries go that were not used for longest. $GENRW_CACHE_BYTES overrides it."""


def cache_folder(kind: str) -> Path:
    """The folder of one kind of cached thing: under $GENRW_CACHE_DIR, else the user's cache folder."""
    root = os.environ.get("GENRW_CACHE_DIR") or platformdirs.user_cache_dir("genrw")
    return Path(root) / kind


def cache_key(*parts: str) -> str:
    """A name for what follows from these texts; no two lists of texts share one but by chance."""
    return hashlib.sha256(
        "\0".join(f"{len(part)}:{part}" for part in parts).encode("utf-8", "surrogatepass")
    ).hexdigest()


def write_entry(path: Path, payload: bytes) -> bool:
    """Store a cache entry, whole or not at all, with its checksum at the end. False if the folder refuses."""
    return write_plain(path, payload + hashlib.sha256(payload).digest())


def write_plain(path: Path, data: bytes) -> bool:
    """Store a file for others to read, whole or not at all. False if the folder refuses."""
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except OSError:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        return False
    _trim(path.parent)
    return True


def _trim(folder: Path) -> None:
    """Remove entries, the ones used least recently first, until the folder is within its size."""
    limit = int(os.environ.get("GENRW_CACHE_BYTES") or _BYTES_KEPT)
    entries = []
    for entry in os.scandir(folder):
        with contextlib.suppress(OSError):  # another process removed it
            status = entry.stat()
            entries.append((status.st_atime_ns, status.st_size, entry.path))
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if total <= limit:
            break
        with contextlib.suppress(OSError):
            os.unlink(path)
            total -= size


def read_entry(path: Path) -> bytes | None:
    """A cache entry's payload, or None if there is none or it is damaged."""
    try:
        stored = path.read_bytes()
    except OSError:
        return None
    payload, digest = stored[:-_DIGEST_BYTES], stored[-_DIGEST_BYTES:]
    if hashlib.sha256(payload).digest() != digest:
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    return payload


# ---- entries that are objects


def write_object(path: Path, value: Any) -> bool:
    """Store an object. False if the folder refuses."""
    return write_entry(path, pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL))


def read_object(path: Path, modules: Collection[str] = ()) -> Any | None:
    """An object of plain values and of classes that some modules define; None if there is none or it is damaged."""
    payload = read_entry(path)
    if payload is None:
        return None
    try:
        return _Reader(io.BytesIO(payload), modules).load()
    except pickle.UnpicklingError:
        return None


class _Reader(pickle.Unpickler):
    """Makes objects of no other classes, so that an entry can do nothing but hold data."""

    def __init__(self, file: io.BytesIO, modules: Collection[str]) -> None:
        super().__init__(file)
        self._modules = modules

    def find_class(self, module: str, name: str) -> Any:
        found = getattr(sys.modules.get(module), name, None) if module in self._modules else None
        if isinstance(found, type) and found.__module__ == module:
            return found
        raise pickle.UnpicklingError(f"{module}.{name} is not for cache entries")
