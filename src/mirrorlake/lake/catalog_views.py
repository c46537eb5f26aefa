"""The views of a lake in a catalog: made once, altered where their query is another one now, and
never replaced.

`CREATE OR REPLACE VIEW` would drop what was granted on a view; `ALTER VIEW … AS` keeps it, on
Databricks as in Spark. A session that reads a folder makes its own views instead, which no other
session sees (`Lake.make_known`).
"""

from mirrorlake.errors import LakeError
from mirrorlake.lake.definitions import VIEWS, view_query
from mirrorlake.lake.lake import Lake


def keep_views(lake: Lake) -> None:
    """Make the views that are missing, alter those whose query differs from ours, leave the others
    alone.

    Two processes may do this at once. Raises LakeError where a view can be neither made nor
    altered: it is another principal's.
    """
    from mirrorlake.spark.causes import cause_of
    from mirrorlake.spark.failures import SPARK_FAILURES  # only who has a session has Spark

    lake.mark_known(views=VIEWS)
    for view in VIEWS:
        query = view_query(view)
        there = _query_of(lake, view)
        # A catalog may change blanks and the ends of lines in keeping a query.
        if there is not None and there.split() == query.split():
            continue
        verb = f"CREATE VIEW IF NOT EXISTS {view}" if there is None else f"ALTER VIEW {view}"
        try:
            lake.sql(f"{verb} AS\n{query}")
        except SPARK_FAILURES as error:
            done = "made" if there is None else "altered, which only its owner may"
            raise LakeError(
                f"the view {view} in {lake.place} cannot be {done} ({cause_of(error)}); let the "
                "principal that runs this command, or a group of theirs, own the view (ALTER VIEW "
                f"{view} OWNER TO …) and have CREATE TABLE on the schema"
            ) from error


def _query_of(lake: Lake, view: str) -> str | None:
    """The query that a view has in the catalog: None for a view that is not there, "" where it is
    not shown."""
    from pyspark.errors import AnalysisException

    try:
        rows = lake.sql(f"DESCRIBE TABLE EXTENDED {view}").collect()
    except AnalysisException as error:
        if error.getCondition() == "TABLE_OR_VIEW_NOT_FOUND":
            return None
        raise
    return next((str(row["data_type"]) for row in rows if row["col_name"] == "View Text"), "")
