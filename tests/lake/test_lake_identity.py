"""Where a lake's identity is kept, and who decides it."""

import errno
import fcntl
import hashlib
import os
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirrorlake.config.lake import Lake as Location
from mirrorlake.errors import LakeError
from mirrorlake.lake import opening
from mirrorlake.lake.identity import store_identity
from mirrorlake.lake.lease import Lease
from mirrorlake.lake.opening import open_lake, reading_lake
from mirrorlake.lake.path_lake import PathLake
from mirrorlake.lake.place import place_of
from mirrorlake.lake.properties import PROPERTY

HERE = Location(path="lake")


def test_the_identity_goes_where_the_lake_goes(spark: SparkSession, tmp_path: Path) -> None:
    first, other = (open_lake(spark, HERE, tmp_path / name) for name in ("first", "other"))
    assert first.lake_id != other.lake_id, "no path decides it"
    shutil.copytree(tmp_path / "first", tmp_path / "copy")
    elsewhere = Location(path="lake", checkpoints=str(tmp_path / "checkpoints"))
    copy = open_lake(spark, elsewhere, tmp_path / "copy")
    assert copy.lake_id == first.lake_id
    assert copy.leases == tmp_path / "copy" / "lake" / "_checkpoints" / "leases", (
        "whatever a file says of checkpoints"
    )


def test_a_lake_of_an_earlier_version_keeps_its_name(spark: SparkSession, tmp_path: Path) -> None:
    lake = open_lake(spark, HERE, tmp_path)
    lake.sql(f"ALTER TABLE records UNSET TBLPROPERTIES ('{PROPERTY}')")
    version = lake.version_of("records")
    reader, lake = reading_lake(spark, HERE, tmp_path), open_lake(spark, HERE, tmp_path)
    with pytest.raises(LakeError, match="was opened read-only"):
        store_identity(reader)
    with pytest.raises(LakeError, match="was opened read-only"):
        Lease(reader, "flow a->b")
    with pytest.raises(LakeError, match="has no identity yet"):
        lake.lake_id  # noqa: B018 - it raises
    assert lake.version_of("records") == version, "reading writes nothing"
    named = hashlib.sha256(os.fsencode(tmp_path / "lake" / "_checkpoints")).hexdigest()[:8]
    assert store_identity(lake) == named == store_identity(lake)
    (tmp_path / "lake").rename(tmp_path / "moved")
    assert store_identity(open_lake(spark, Location(path="moved"), tmp_path)) == named


def test_what_another_process_stored_just_before_is_the_identity(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = open_lake(spark, HERE, tmp_path)
    known = lake.lake_id
    late = open_lake(spark, HERE, tmp_path)
    late.stored_id = None  # it checked before the other one stored
    assert store_identity(late) == known
    # The table is made between this process's check of the folder and its own commit.
    late = PathLake(lambda: spark, place_of(tmp_path / "lake"), lake.checkpoints)
    opening._create_tables(late, ["records"])
    assert late.properties("records")[PROPERTY] == known


def test_producing_is_refused_where_locks_cannot_tell(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    lake = open_lake(spark, HERE, tmp_path)

    def no_locks(_handle: int, _how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    Lease(lake, "flow a->b").take()
    assert "be sure that only one process runs it" in caplog.text
    with pytest.raises(
        LakeError,
        match=r"whether another process has flow a->b cannot be known.*No locks available",
    ):
        Lease(lake, "flow a->b").take(sure=True)
