"""Names for shell completion: flows of a topology file; topics and groups that its lake has seen.

A person waits while the key is pressed. So the file is only parsed as YAML, not validated, and of
the lake only small tables are read, and only in a folder: a store or a catalog answers too slowly.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

#: The tables and columns that contain the names.
_PLACES = {
    "topics": (("states", "topic"), ("target_generations", "target_topic")),
    "groups": (("checkpoints", "group_id"),),
}


def flows(config: Path) -> list[str]:
    """The flows of a topology file. Raises OSError, ValueError or any other error if it is none."""
    return sorted(map(str, _document(config)["flows"]))


def topics(config: Path) -> list[str]:
    """The topics that a topology file's lake has seen, at source and targets. Raises as `flows`."""
    return _names(config, "topics")


def groups(config: Path) -> list[str]:
    """The consumer groups that the lake of a topology file has seen. Raises as `flows`."""
    return _names(config, "groups")


def _document(config: Path) -> Mapping[str, Any]:
    import yaml  # `--help` does not need it

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    document: Mapping[str, Any] = yaml.load(config.read_text(encoding="utf-8"), loader)
    return document


def _names(config: Path, kind: str) -> list[str]:
    path = _document(config)["lake"].get("path")
    if path is None or "://" in path:
        return []
    lake = config.parent / path
    return sorted(
        {name for table, column in _PLACES[kind] for name in _column(lake / table, column)}
    )


def _column(table: Path, column: str) -> Iterable[str]:
    """The distinct values of a column."""
    if not table.is_dir():
        return ()
    import duckdb
    from deltalake import DeltaTable

    files = DeltaTable(os.fspath(table)).file_uris()
    if not files:
        return ()
    rows = duckdb.connect().read_parquet(files).project(column).distinct().fetchall()
    return (row[0] for row in rows if row[0] is not None)
