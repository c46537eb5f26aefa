"""Where a JVM finds Spark: without the zip from which Python would compile pyspark in each
process."""

import os
import sys
from pathlib import Path

import pytest

from mirrorlake.spark.home import at_spark_home, spark_home
from mirrorlake.spark.jars import pyspark_jars


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty Python environment, in which nobody has chosen another Spark."""
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    return tmp_path


def test_it_has_scripts_and_jars_and_no_python() -> None:
    home = spark_home()
    assert sorted(path.name for path in home.iterdir()) == ["bin", "jars"]
    assert (home / "bin" / "spark-submit").exists()
    assert {path.name for path in (home / "jars").glob("*.jar")} == {
        path.name for path in pyspark_jars().glob("*.jar")
    }


def test_a_link_that_leads_elsewhere_is_replaced(tmp_path: Path) -> None:
    home = spark_home()
    (home / "jars").unlink()
    (home / "jars").symlink_to(tmp_path)
    assert (spark_home() / "jars").readlink() == pyspark_jars()
    assert sorted(path.name for path in home.iterdir()) == ["bin", "jars"]


def test_who_has_chosen_another_spark_keeps_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    assert spark_home() == Path("/opt/spark")
    with at_spark_home():
        assert os.environ["SPARK_HOME"] == "/opt/spark"
    assert os.environ["SPARK_HOME"] == "/opt/spark" and not list(tmp_path.iterdir())


def test_where_it_cannot_be_made_it_is_pysparks_own(tmp_path: Path) -> None:
    (tmp_path / "var").write_text("no folder")
    assert spark_home() == pyspark_jars().parent


def test_it_is_said_to_the_jvm_alone() -> None:
    with at_spark_home():
        assert os.environ["SPARK_HOME"] == str(spark_home())
    assert "SPARK_HOME" not in os.environ
