"""What is made once for this user, and found again by later processes."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def cache_root() -> Path:
    """`$MIRRORLAKE_CACHE`, or `~/.cache/mirrorlake`."""
    chosen = os.environ.get("MIRRORLAKE_CACHE") or "~/.cache/mirrorlake"
    return Path(chosen).expanduser().absolute()


def cached_text(name: str, make: Callable[[], str]) -> str:
    """The text of a file below `cache_root`, made where it is not there: what it depends on is in
    its name. Where nothing can be written it is made each time."""
    file = cache_root() / name
    with suppress(OSError):
        return file.read_text(encoding="utf-8")
    text = make()
    part = file.with_name(f".{file.name}.{os.getpid()}")
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(text, encoding="utf-8")
        part.replace(file)  # whole, or not at all
    return text
