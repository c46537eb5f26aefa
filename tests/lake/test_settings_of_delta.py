"""What a local session tells Delta, Delta knows by that name: it takes any other one without a
word."""

from zipfile import ZipFile

import pytest

from mirrorlake.spark.jars import spark_jars
from mirrorlake.spark.session import LOCAL_SETTINGS

PREFIX = "spark.databricks.delta."
NAMED = sorted(key.removeprefix(PREFIX) for key in LOCAL_SETTINGS if key.startswith(PREFIX))


@pytest.fixture(scope="module")
def known() -> bytes:
    """The class that has the names of all of Delta's settings."""
    (jar,) = (path for path in spark_jars() if path.name.startswith("delta-spark"))
    with ZipFile(jar) as classes:
        return classes.read("org/apache/spark/sql/delta/sources/DeltaSQLConfBase.class")


@pytest.mark.parametrize("name", NAMED)
def test_a_setting_of_delta_is_one(known: bytes, name: str) -> None:
    """As a constant of a class file: behind its length."""
    assert len(name).to_bytes(2, "big") + name.encode() in known
