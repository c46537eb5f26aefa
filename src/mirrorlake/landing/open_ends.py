"""What a landed batch notes of the ends of the logs (`offsets/as_of.py: noted_ends`), from the
process that asks to those that write.

The planner of a streaming query asks, in a process of its own, and leaves the answer in the query's
checkpoint: tasks get it with their parts, and the driver reads it there.
"""

import json
from collections.abc import Mapping
from pathlib import Path

_FILE = "open_ends.json"


def write_open_ends(
    checkpoint: Path, ends: Mapping[str, Mapping[str, int]], noted: str | None
) -> None:
    """Write what the batch with these ends notes, in place of that of the one before."""
    path = checkpoint / _FILE
    path.with_suffix(".new").write_text(
        json.dumps([ends, noted], ensure_ascii=False), encoding="utf-8"
    )
    path.with_suffix(".new").replace(path)


def read_open_ends(checkpoint: Path, ends: Mapping[str, Mapping[str, int]]) -> str | None:
    """What was written for the batch with these ends; None where it is of another batch, or nothing
    was written."""
    try:
        written_for, noted = json.loads((checkpoint / _FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return noted if written_for == ends else None
