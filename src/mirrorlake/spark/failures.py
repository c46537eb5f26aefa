"""The errors of Spark actions. Imported only if there is a session."""

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

#: A job that fails while its rows are on their way to the driver raises an error of py4j.
SPARK_FAILURES = (PySparkException, Py4JError)
