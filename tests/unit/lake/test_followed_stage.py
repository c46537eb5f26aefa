"""An index of the stage that Spark answers for, whose answers fail."""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkException

from mirrorlake.lake import stage, stage_sources
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.lake.stage_sources import SparkStage
from mirrorlake.offsets.partition_ranges import StagedRange

TABLE = [("a", [StagedRange("east", "t", 0, 0, 0, 9, 10)])]
NEWER = [*TABLE, ("b", [StagedRange("east", "t", 0, 0, 10, 14, 5)])]


class Answers:
    """What Spark answers about the table: its version, and what it holds, or that it cannot say."""

    version = 3
    table: list[tuple[str, list[StagedRange]]] | None = TABLE

    def version_of(self, _: str) -> int:
        return self.version

    def ranges_of_table(self, *_: object) -> Iterable[tuple[str, list[StagedRange]]]:
        if self.table is None:
            raise PySparkException("the metastore is away")
        return self.table

    def ranges_of_commits(self, *_: object) -> Iterable[tuple[str, list[StagedRange]]]:
        raise PySparkException("the metastore is away, or the commits are gone")


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answers:
    answers = Answers()
    monkeypatch.setattr(stage, "ranges_of_table", answers.ranges_of_table)
    monkeypatch.setattr(stage, "ranges_of_commits", answers.ranges_of_commits)
    return answers


def test_what_is_staged_is_known_still_when_spark_fails_twice_in_a_row(answers: Answers) -> None:
    """Who took an index that could not be built again for a stage that holds nothing would land
    all of it once more, and have nothing to produce."""
    lake: Any = SimpleNamespace(version_of=answers.version_of, directory=None)
    files = StageFiles(lake)
    files._source = SparkStage(lake)
    assert files.ends("east") == {("t", 0): (0, 10)}
    answers.version, answers.table = 4, None
    for _ in range(2):
        with pytest.raises(PySparkException):
            files.ends("east")
    answers.table = NEWER
    assert files.ends("east") == {("t", 0): (0, 15)}
    with files.reading() as index:
        assert index.version == 4 and set(index.paths()) == {"a", "b"}


def test_a_table_that_gets_deletion_vectors_later_is_no_longer_read_by_its_files(
    answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files alone still have what was deleted. Asked for once a minute, and never again where
    they do."""
    now, features, asked = [100.0], set[str](), list[float]()

    def features_of(_table: str) -> set[str]:
        asked.append(now[0])
        return features

    monkeypatch.setattr(stage_sources, "time", SimpleNamespace(monotonic=lambda: now[0]))
    lake: Any = SimpleNamespace(version_of=answers.version_of, directory=None, features=features_of)
    files = StageFiles(lake)
    files._source = SparkStage(lake)
    for now[0] in (100.0, 120.0, 161.0, 170.0):
        assert files.ends("east") and files.is_its_files
    features.add("deletionVectors")
    assert files.ends("east") and files.is_its_files and asked == [161.0]
    now[0] = 222.0
    assert files.ends("east") and not files.is_its_files
    features.clear()
    now[0] = 400.0
    assert files.ends("east") and not files.is_its_files and asked == [161.0, 222.0]
