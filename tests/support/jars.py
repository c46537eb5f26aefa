"""Jars that cannot be had."""

from pathlib import Path


def nowhere(folder: Path) -> dict[str, str]:
    """The environment of a command that has no jar but pyspark's own and can resolve none. The
    folder is made as soon as one is looked for."""
    return {
        "MIRRORLAKE_CACHE": str(folder),
        "MIRRORLAKE_IVY_SETTINGS": str(folder.parent / "none.xml"),
    }
