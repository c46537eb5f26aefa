"""What an action of Spark's may raise. Imported only where a session is there."""

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

#: A job that fails while its rows are on their way to the driver comes as an error of py4j, not of
#: Spark.
SPARK_FAILURES = (PySparkException, Py4JError)
