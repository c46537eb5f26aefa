"""Where a JVM finds Spark: without the zip from which Python would compile pyspark in each
process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mirrorlake.spark.home import at_spark_home, spark_home
from mirrorlake.spark.jars import pyspark_jars
from mirrorlake.spark.java import find_java


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty Python environment, in which nobody has chosen another Spark."""
    for name in ("SPARK_HOME", "SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
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


def class_path(*jars: str) -> str:
    """The class path of a JVM that spark-submit would start here, with jars of ours."""
    launcher = [str(find_java()), "-cp", f"{pyspark_jars()}/*", "org.apache.spark.launcher.Main"]
    with at_spark_home([Path(jar) for jar in jars]):
        arguments = os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell").split()
        command = [*launcher, "org.apache.spark.deploy.SparkSubmit", *arguments]
        answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    words = answer.split("\0")
    return words[words.index("-cp") + 1]


def test_a_users_settings_are_behind_the_jars(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Java takes no archive of classes if the class path begins otherwise than when it was made."""
    monkeypatch.setenv("SPARK_SCALA_VERSION", "2.13")  # as spark-submit's own script says
    settings, usual = tmp_path / "settings", class_path()
    settings.mkdir()
    (settings / "spark-defaults.conf").write_text("spark.driver.extraClassPath /first.jar\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(settings))
    assert class_path() == f"/first.jar:{usual}:{settings}/", "its defaults are read, too"
    (settings / "spark-defaults.conf").unlink()
    assert class_path() == f"{usual}:{settings}/"
    assert class_path("/delta.jar", "/more.jar") == f"{usual}:/delta.jar:/more.jar:{settings}/"
    monkeypatch.delenv("SPARK_CONF_DIR")
    monkeypatch.setenv("SPARK_DIST_CLASSPATH", "/users.jar")
    assert class_path("/delta.jar") == f"{usual}:/delta.jar:/users.jar"
    assert "SPARK_CONF_DIR" not in os.environ
    assert os.environ["SPARK_DIST_CLASSPATH"] == "/users.jar", "as it was"


@pytest.mark.parametrize("reason", ["HADOOP_CONF_DIR", "SPARK_HOME", "spark-env.sh", "unnamed"])
def test_settings_that_others_would_come_in_front_of_stay_where_they_are(
    reason: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Hadoop's settings may be in files of the same names; a script runs in its folder."""
    monkeypatch.chdir(tmp_path)
    folder = "" if reason == "unnamed" else str(tmp_path)
    monkeypatch.setenv("SPARK_CONF_DIR", folder)
    if reason == "spark-env.sh":
        (tmp_path / reason).touch()
    elif reason.isupper():
        monkeypatch.setenv(reason, str(pyspark_jars().parent))
    with at_spark_home():
        assert os.environ["SPARK_CONF_DIR"] == folder
        assert not os.environ.keys() & {"SPARK_DIST_CLASSPATH", "PYSPARK_SUBMIT_ARGS"}


def test_arguments_that_name_other_defaults_keep_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "spark-defaults.conf").touch()
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    mine = "--properties-file /mine.conf pyspark-shell"
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", mine)
    with at_spark_home():
        assert os.environ["PYSPARK_SUBMIT_ARGS"] == mine
        assert os.environ["SPARK_DIST_CLASSPATH"] == str(tmp_path)
