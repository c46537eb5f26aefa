"""Repairs a Delta log whose checkpoint is damaged or gone.

A checkpoint repeats what commits hold (Delta's protocol, "Checkpoints"). Even so, a table whose
checkpoint cannot be read does not open (delta-rs 1.6: "Had a _last_checkpoint hint but didn't find
any checkpoints"). So it is made again from the commits, where these are all there.
"""

import json
import logging
import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from mirrorlake.lake.folder import HINT
from mirrorlake.lake.place import Place

logger = logging.getLogger(__name__)

_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.parquet")


class Hint(NamedTuple):
    """What a log says of its newest checkpoint: its version, and how many actions it has."""

    version: int
    actions: int


def hinted(log: Place) -> Hint | None:
    """The hint of a log; None without one. Raises ValueError for a damaged hint, OSError."""
    try:
        content = (log / HINT).read()
    except FileNotFoundError:
        return None
    try:
        hint = json.loads(content)
        return Hint(int(hint["version"]), int(hint.get("size") or 0))
    except (KeyError, TypeError, AttributeError):
        raise ValueError(f"{log}: {HINT} names no version") from None


def checkpoints_of(names: Iterable[str]) -> list[int]:
    """The versions of checkpoints that are single files, by the names of a log's files, rising."""
    return sorted(int(match[1]) for name in names if (match := _CHECKPOINT.fullmatch(name)))


def mended(table: Place) -> bool:
    """Write again the damaged checkpoints of a table's log, and the one that the hint names where
    it is gone. Returns whether any was written, so that the table may open now.

    Nothing is written unless all commits of a checkpoint are there, those of an older checkpoint
    aside. Nothing is deleted but checksums of replaced files: a process that has the table open may
    rely on any of these files, and writes the same ones there.
    """
    log = table / "_delta_log"
    try:
        there, hint = checkpoints_of(log.names()), None
        with suppress(ValueError):  # delta-rs itself does without a damaged one
            hint = hinted(log)
        good = [version for version in there if _reads(_file_of(log, version))]
        wanted = {*there, *([] if hint is None else [hint.version])} - set(good)
        written = [(version, _written_again(log, version, good)) for version in sorted(wanted)]
        for version, content in written:
            file = _file_of(log, version)
            # On a disk Hadoop keeps a checksum beside a file, and would refuse the new file by it.
            (log / f".{file.name}.crc").delete()
            file.write(content)
    except (OSError, DeltaError) as error:
        logger.warning("the log of table %s cannot be mended: %s", table.name, error)
        return False
    if written:
        logger.warning(
            "checkpoint %s of the log of table %s is written again", written[-1][0], table.name
        )
    return bool(written)


def _written_again(log: Place, version: int, good: Collection[int]) -> bytes:
    """The content of a version's checkpoint, made from the newest good one before it and the
    commits behind that. Raises OSError where one of these is missing."""
    base = max((each for each in good if each < version), default=-1)
    with TemporaryDirectory() as directory:
        copy = Path(directory, "_delta_log")
        copy.mkdir()
        parts = [f"{each:020d}.json" for each in range(base + 1, version + 1)]
        for name in parts if base < 0 else [_file_of(log, base).name, *parts]:
            (copy / name).write_bytes((log / name).read())
        DeltaTable(directory, version=version).create_checkpoint()
        return (copy / _file_of(log, version).name).read_bytes()


def _file_of(log: Place, version: int) -> Place:
    return log / f"{version:020d}.checkpoint.parquet"


def _reads(file: Place) -> bool:
    """Whether a file is Parquet from end to end. Raises OSError where it cannot be read now, which
    says nothing about its content; an error that Arrow raises for the content does."""
    content = pa.BufferReader(file.read())
    try:
        with pq.ParquetFile(content) as parquet:
            parquet.read()
    except (pa.ArrowException, ValueError, OSError):
        return False
    return True
