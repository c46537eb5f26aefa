"""What a local session is started with names what the installed Spark has."""

from zipfile import ZipFile

from mirrorlake.spark.jars import SPARK_MINORS, pyspark_jars, spark_minor
from mirrorlake.spark.session import query_log_settings


def test_the_manager_of_query_logs_is_in_the_installed_spark() -> None:
    (name,) = query_log_settings(spark_minor()).values()
    (jar,) = pyspark_jars().glob("spark-sql_*.jar")
    with ZipFile(jar) as classes:
        assert f"{name.replace('.', '/')}.class" in classes.namelist()


def test_of_a_spark_that_is_not_known_no_class_is_named() -> None:
    assert all(query_log_settings(minor) for minor in SPARK_MINORS)
    assert query_log_settings("5.0") == {}
