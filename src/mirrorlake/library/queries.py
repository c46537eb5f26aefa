"""Queries on the tables: the part of an open lake that runs statements."""

from typing import TYPE_CHECKING

from mirrorlake.errors import InputError, first_line
from mirrorlake.extras import needs
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.reader import Reader
from mirrorlake.library.answers import Rows
from mirrorlake.library.flows import Opened
from mirrorlake.library.store_refusals import raises_lake_errors

if TYPE_CHECKING:  # answers need no Spark; methods that do import it
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


@raises_lake_errors
class Queries(Opened):
    """`OpenLake`'s methods that read its tables."""

    @property
    def spark(self) -> "SparkSession":
        """The session that reads the lake, made on first use. Raises MissingJava."""
        return self.internals.spark

    def table(self, name: str) -> "DataFrame":
        """A table or view, such as `records` or `flow_status`, as of now (DESIGN.md lists them)."""
        return self.internals.tables.table(name)

    def sql(self, query: str, /, **parameters: object) -> "DataFrame":
        """Run a statement in which bare table names mean this lake's.

        Args:
            query: the statement; `:name` in it is a parameter.
            parameters: values of parameters, by name.

        Raises:
            InputError: the statement cannot be run.
        """
        with needs("spark"):
            from pyspark.errors import AnalysisException, ParseException

        try:
            frame = self.internals.tables.sql(query, parameters)
            frame.columns  # noqa: B018 - Spark Connect analyses a statement only when this is read
        except (AnalysisException, ParseException) as error:
            raise InputError(f"the query cannot be run: {first_line(error)}") from error
        return frame

    def rows(self, query: str, /, *, limit: int | None = None, **parameters: object) -> Rows:
        """Run a query in which bare table names mean this lake's; in a folder this needs no Spark.
        Times are in UTC.

        Args:
            query: the query, in Spark's SQL; `:name` in it is a parameter.
            limit: the most rows to return; `truncated` says whether there are more. None for all
                rows.
            parameters: values of parameters, by name.

        Raises:
            InputError: the query cannot be run.
            LakeError: there is no lake.
        """
        self.internals.check_there()
        reader = self.internals.reader
        try:
            rows = Rows(reader.rows(query, parameters, limit=None if limit is None else limit + 1))
        except InputError as error:
            raise _refused(reader, error) from error
        if limit is not None:
            rows.truncated = len(rows) > limit
            del rows[limit:]
        return rows

    def arrow(self, query: str, /, **parameters: object) -> "pa.Table":
        """Like `rows`, as an Arrow table: columns keep their types even without rows, and times
        their zone.

        Args:
            query: the query, in Spark's SQL; `:name` in it is a parameter.
            parameters: values of parameters, by name.

        Raises:
            InputError: the query cannot be run.
            LakeError: there is no lake.
        """
        self.internals.check_there()
        reader = self.internals.reader
        try:
            return reader.arrow(query, parameters).read_all()
        except InputError as error:
            raise _refused(reader, error) from error


def _refused(reader: Reader, error: InputError) -> InputError:
    """The error for a query that the lake's engine refuses."""
    by = "" if isinstance(reader, Lake) else f" by {reader.engine} (--engine spark asks Spark)"
    return InputError(f"the query cannot be run{by}: {error}")
