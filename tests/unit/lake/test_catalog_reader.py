"""A catalog's own tables, read by their files: what only Spark reads is left to Spark, and what
Spark writes is not written to."""

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable

from mirrorlake.errors import LakeError
from mirrorlake.lake.catalog_files import CatalogFiles
from mirrorlake.lake.catalog_lake import CatalogLake
from mirrorlake.lake.catalog_reader import CatalogReader
from mirrorlake.lake.definitions import TABLES
from mirrorlake.lake.path_tables import PathTables
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.lake.stage_sources import SparkStage
from mirrorlake.offsets.partition_ranges import StagedRange
from mirrorlake.offsets.stage_index import StageIndex


@pytest.fixture
def reader(tmp_path: Path) -> CatalogReader:
    tables = PathTables(tmp_path / "l.db")
    for table in TABLES:
        tables.create(table)
    return CatalogReader(CatalogFiles("`c`.`s`", str(tmp_path / "l.db")), tmp_path / "state")


def log_of(reader: CatalogReader, table: str) -> Path:
    return Path(str(reader.files.place / table)) / "_delta_log"


def commit(reader: CatalogReader, table: str, *actions: object) -> None:
    """A commit of another program."""
    log = log_of(reader, table)
    version = max(int(path.stem) for path in log.glob("*.json")) + 1
    info = {"commitInfo": {"timestamp": 1, "inCommitTimestamp": 1, "operation": "UPGRADE"}}
    lines = [json.dumps(action) for action in (info, *actions)]
    (log / f"{version:020d}.json").write_text("\n".join(lines) + "\n", encoding="utf-8")


def needs(*features: str) -> dict[str, object]:
    names = {"readerFeatures": [*features], "writerFeatures": [*features]}
    return {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **names}}


@pytest.mark.parametrize("feature", ["catalogManaged", "catalogOwned-preview"])
def test_a_table_that_gets_a_feature_meanwhile_is_sparks_to_read(
    reader: CatalogReader, feature: str
) -> None:
    assert reader.version("changes") == 0
    commit(reader, "changes", needs(feature))
    with pytest.raises(LakeError, match="table changes at .* commits that only its catalog knows"):
        reader.version("changes")
    assert reader.lost


@pytest.mark.parametrize("feature", ["deletionVectors", "v2Checkpoint", "typeWidening"])
def test_a_change_of_a_table_that_is_not_read_here_is_sparks(
    reader: CatalogReader, feature: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[str] = []
    lake = CatalogLake(lambda: pytest.fail("a session"), "`c`.`s`", None)
    monkeypatch.setattr(lake, "rows", lambda text, *more: given.append(text))
    lake.use_files(reader)
    lake.change("forget_done", forget_id="of nothing")
    assert not given, "what would change nothing is left out"
    commit(reader, "forgotten", needs(feature))
    lake.change("forget_done", forget_id="of nothing")
    assert len(given) == 1


def test_a_log_that_is_sparks_to_write_is_not_mended(reader: CatalogReader) -> None:
    log = log_of(reader, "changes")
    DeltaTable(str(log.parent)).create_checkpoint()
    checkpoint = log / f"{0:020d}.checkpoint.parquet"
    checkpoint.write_bytes(checkpoint.read_bytes()[:300])
    with pytest.raises(LakeError, match="cannot be opened here"):
        reader.opened("changes")
    assert checkpoint.stat().st_size == 300


@pytest.mark.parametrize("feature", ["catalogManaged", "deletionVectors"])
@pytest.mark.parametrize("late", [False, True])
def test_an_index_of_files_that_are_the_table_no_more_is_sparks_to_build(
    reader: CatalogReader, feature: str, late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commits that its log has no more would never come: landing would begin where it was then,
    and land all behind it twice. And rows that are deleted are in files still."""
    lake = CatalogLake(lambda: pytest.fail("a session"), "`c`.`s`", None)
    lake.use_files(reader)
    stage = StageFiles(lake)
    if late:
        assert stage.ends("east") == {} and stage.is_its_files
    commit(reader, "records", {"commitInfo": {}})
    if late:
        assert stage.ends("east") == {} and stage.is_its_files
    commit(reader, "records", needs(feature))
    built = list[int]()
    found = [("f", [StagedRange("east", "t", 0, 0, 0, 9, 10)])]

    def build(_self: object, index: StageIndex) -> StageIndex:
        built.append(1)
        index.apply(found, set(index.paths()), 7)
        return index

    monkeypatch.setattr(SparkStage, "build", build)
    monkeypatch.setattr(SparkStage, "follow", lambda *_: None)
    for _ in range(2):
        assert stage.ends("east") == {("t", 0): (0, 10)}
    assert built == [1] and not stage.is_its_files


def test_the_log_of_a_stage_that_is_sparks_to_write_is_not_mended(reader: CatalogReader) -> None:
    lake = CatalogLake(lambda: pytest.fail("a session"), "`c`.`s`", None)
    lake.use_files(reader)
    log = log_of(reader, "records")
    DeltaTable(str(log.parent)).create_checkpoint()
    checkpoint = log / f"{0:020d}.checkpoint.parquet"
    checkpoint.write_bytes(checkpoint.read_bytes()[:300])
    with pytest.raises(pytest.fail.Exception, match="a session"):
        StageFiles(lake).ends("east")
    assert checkpoint.stat().st_size == 300
