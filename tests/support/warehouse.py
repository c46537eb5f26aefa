"""A connection as databricks-sql-connector has it, which Spark answers."""

from typing import Any

import pyarrow as pa

from mirrorlake.lake.lake import Lake


class SparkCursor:
    """The connector's cursor, as far as it is used."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._rows = pa.table({})
        self.fetched: list[int] = []

    def execute(self, text: str, parameters: dict[str, Any]) -> None:
        self._rows = self._lake.sql(text, parameters).toArrow()

    def fetchmany_arrow(self, size: int) -> pa.Table:
        part, self._rows = self._rows.slice(0, min(size, 7)), self._rows.slice(min(size, 7))
        return part

    def close(self) -> None:
        """Nothing is kept."""


class SparkConnection:
    """A connection to the schema of a lake."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake

    def cursor(self) -> SparkCursor:
        return SparkCursor(self._lake)
