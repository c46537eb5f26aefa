"""A Delta log whose checkpoint is damaged or gone.

A checkpoint repeats what commits hold (Delta's protocol, "Checkpoints"). Even so, where it cannot
be read a table does not open (delta-rs 1.6: "Had a _last_checkpoint hint but
didn't find any checkpoints"). So it is made again of the commits, where these are all there.
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
    """What a log says of its newest checkpoint: the version, and how many actions it has."""

    version: int
    actions: int


def hinted(log: Place) -> Hint | None:
    """The hint of a log; None without one. Raises ValueError for a hint that is damaged,
    OSError."""
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
    """The versions of the checkpoints that are files of their own, among the names of a log's
    files, rising."""
    return sorted(int(match[1]) for name in names if (match := _CHECKPOINT.fullmatch(name)))


def mended(table: Place) -> bool:
    """Write again the checkpoints of a table's log that are damaged, and the one that the hint
    names where it is gone. Whether any was, and the table may open now.

    Nothing is written unless the commits that a checkpoint is of are all there, those of an older
    checkpoint aside, and nothing is taken away but checksums of what is replaced: a process that
    has the table open may rely on any of these files, and puts the same ones there.
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
            # On a disk Hadoop keeps a checksum beside a file, by which it would refuse another one.
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
    """A checkpoint of a version, made of the newest good one before it and the commits behind that.
    Raises OSError where one of these is not there."""
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
    """Whether a file is Parquet from end to end. Raises OSError where it cannot be looked at now,
    which says nothing about it; what Arrow raises of the content alone does."""
    content = pa.BufferReader(file.read())
    try:
        with pq.ParquetFile(content) as parquet:
            parquet.read()
    except (pa.ArrowException, ValueError, OSError):
        return False
    return True
