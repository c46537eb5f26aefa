"""Files made once per user and reused by later processes."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def cache_root() -> Path:
    """`$MIRRORLAKE_CACHE`, or `~/.cache/mirrorlake`."""
    chosen = os.environ.get("MIRRORLAKE_CACHE") or "~/.cache/mirrorlake"
    return Path(chosen).expanduser().absolute()


def cached_text(name: str, make: Callable[[], str]) -> str:
    """Return the text of a file below `cache_root`, made on the first call; its name must contain
    all that the text depends on. If the cache is not writable, the text is made on each call."""
    file = cache_root() / name
    with suppress(OSError):
        return file.read_text(encoding="utf-8")
    text = make()
    part = file.with_name(f".{file.name}.{os.getpid()}")
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(text, encoding="utf-8")
        part.replace(file)  # atomically
    return text
