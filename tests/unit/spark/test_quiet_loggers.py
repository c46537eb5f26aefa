"""What Spark's own log leaves out is named as the installed Spark names it."""

import re
from importlib.resources import files
from pathlib import Path
from zipfile import ZipFile

import pyspark

from mirrorlake.spark.session import PRINTING

SETTINGS = (files("mirrorlake.spark") / "log4j2.properties").read_text(encoding="utf-8")
JARS = Path(pyspark.__file__).parent / "jars"


def test_a_query_that_is_being_stopped_leaves_no_page_of_java() -> None:
    """Its error comes to who runs the query, who says it in a sentence."""
    (jar,) = JARS.glob("spark-sql_*.jar")
    with ZipFile(jar) as classes:
        (found,) = (
            name for name in classes.namelist() if name.endswith("/MicroBatchExecution.class")
        )
    logger = re.escape(found.removesuffix(".class").replace("/", "."))
    (short,) = re.findall(rf"^logger\.(\w+)\.name = {logger}$", SETTINGS, re.MULTILINE)
    assert f"logger.{short}.level = off" in SETTINGS.splitlines()


def test_what_spark_refuses_is_no_page_of_json() -> None:
    """It is raised as well, and a command says it in a sentence."""
    text = (Path(pyspark.__file__).parent / "errors" / "exceptions" / "base.py").read_text("utf-8")
    assert set(re.findall(r'getLogger\("(\w+)"\)', text)) == set(PRINTING)
