"""What a local session is started with names what its Spark has."""

from pathlib import Path
from zipfile import ZipFile

import pytest

from mirrorlake.landing.worker import COMPARE_SECONDS
from mirrorlake.spark.jars import pyspark_jars
from mirrorlake.spark.session import LOCAL_SETTINGS, query_log_settings

SETTING = "spark.sql.streaming.checkpointFileManagerClass"
#: As short as a batch is that Spark makes of nothing, seconds.
SHORTEST_BATCH = 0.2


def test_the_manager_of_query_logs_is_in_the_installed_spark() -> None:
    (name,) = query_log_settings(pyspark_jars()).values()
    (jar,) = pyspark_jars().glob("spark-sql_*.jar")
    with ZipFile(jar) as classes:
        assert f"{name.replace('.', '/')}.class" in classes.namelist()


@pytest.mark.parametrize("package", ["org.apache.spark", "org.apache.spark.of_another_version"])
def test_it_is_named_as_the_jar_names_it(tmp_path: Path, package: str) -> None:
    manager = f"{package}.FileSystemBasedCheckpointFileManager"
    with ZipFile(tmp_path / "spark-sql_2.13-5.0.0.jar", "w") as classes:
        for name in ("org.apache.spark.Other", f"{manager}Test", manager):
            classes.writestr(f"{name.replace('.', '/')}.class", b"")
    assert query_log_settings(tmp_path) == {SETTING: manager}


def test_a_spark_without_it_keeps_its_own(tmp_path: Path) -> None:
    with ZipFile(tmp_path / "spark-sql_2.13-5.0.0.jar", "w") as classes:
        classes.writestr("org/apache/spark/Other.class", b"")
    assert query_log_settings(tmp_path) == {} == query_log_settings(tmp_path / "nowhere")


def test_batches_are_remembered_until_landing_looks_again() -> None:
    """Of one that is forgotten it is not known what its tasks have read."""
    remembered = int(LOCAL_SETTINGS["spark.sql.streaming.numRecentProgressUpdates"])
    assert remembered > COMPARE_SECONDS / SHORTEST_BATCH
