"""A table's upkeep by Spark: in a catalog, and where only Spark can make a table's commits."""

from collections.abc import Mapping

from mirrorlake.lake.definitions import sql_text
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.reader import NONE, Frames, Reader
from mirrorlake.lake.upkeep import Rewritten, TableSize
from mirrorlake.spark.session import settings_for_now

#: Delta refuses to remove younger files unless its check is switched off.
_SAFE_VACUUM_HOURS = 168
_VACUUM_CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"


class SparkUpkeep:
    """See `upkeep.TableUpkeep`."""

    def __init__(self, lake: Lake, table: str) -> None:
        self._lake = lake
        self._table = table

    @property
    def reader(self) -> Reader:
        return self._lake

    def size(self) -> TableSize:
        (row,) = self._lake.spark.sql(f"DESCRIBE DETAIL {self._lake.name(self._table)}").collect()
        return TableSize(row["numFiles"], row["sizeInBytes"])

    def set_properties(self, properties: Mapping[str, str]) -> None:
        text = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        self._run(f"ALTER TABLE {self._table} SET TBLPROPERTIES ({text})")

    def rewrite(self, query: str, frames: Frames = NONE, **args: object) -> Rewritten:
        text = sql_text("queries", query)
        (row,) = self._lake.retrying(lambda: self._lake.rows(text, args, frames))
        removed = row["num_deleted_rows"] if "num_deleted_rows" in row else row["num_affected_rows"]
        return Rewritten(int(removed), int(row.get("num_inserted_rows", 0)))

    def compact(self) -> None:
        self._run(f"OPTIMIZE {self._table}")

    def vacuum(self, hours: int) -> None:
        unchecked = {} if hours >= _SAFE_VACUUM_HOURS else {_VACUUM_CHECK: "false"}
        with settings_for_now(self._lake.spark, unchecked):
            self._lake.sql(f"VACUUM {self._table} RETAIN {hours} HOURS").collect()

    def _run(self, statement: str) -> None:
        self._lake.retrying(lambda: self._lake.sql(statement).collect())
