"""Numbered commits to the tables of a catalog, by Spark: Delta's application transactions, with an answer.

Delta skips what an application has come to already (`txnAppId`, `txnVersion`), and says nothing; nor
does a catalog show how far an application is. So each commit says it in its own words, and the
table's history shows whose is there.
"""

import random
from typing import TYPE_CHECKING

from mirrorlake.errors import Fenced
from mirrorlake.lake.path_tables import OWNER_NUMBERS, fenced

if TYPE_CHECKING:  # answers without Spark come by this module too
    from pyspark.sql import DataFrame

    from mirrorlake.lake.lake import Lake

#: How many commits of the history are looked at before all of them are.
_NEWEST = 100
#: How often somebody who takes over looks further up: the last step is a year in milliseconds.
_ATTEMPTS = 16


def commit(lake: "Lake", rows: "DataFrame", table: str, application: str, version: int) -> None:
    """Append rows as a version of an application; Delta does nothing where the application has come as far."""
    writer = rows.write.format("delta").mode("append").option("userMetadata", f"{application} {version}")
    writer.option("txnAppId", application).option("txnVersion", str(version)).saveAsTable(lake.name(table))


def append(lake: "Lake", rows: "DataFrame", table: str, application: str, version: int) -> None:
    """The same, as `Lake.append`. Raises Fenced."""
    commit(lake, rows, table, application, version)
    known = application_version(lake, table, application)
    if known != version:
        raise fenced(table, application, known, version)


def application_version(lake: "Lake", table: str, application: str) -> int | None:
    """How far an application has come, by commits of this module; None where the table has none of it."""
    for limit in (f"LIMIT {_NEWEST}", ""):
        history = lake.spark.sql(f"DESCRIBE HISTORY {lake.name(table)} {limit}").select("userMetadata").collect()
        said = [str(row["userMetadata"]).rpartition(" ") for row in history]
        found = max((int(number) for name, _, number in said if name == application), default=None)
        if found is not None or len(history) < _NEWEST:
            return found
    return None


def take_over(lake: "Lake", table: str, application: str, least: int) -> int:
    """`Lake.take_over`. Numbers of an owner that ran an earlier version of this package are not known: where Delta
    skipped ours, it is tried further up."""
    known = application_version(lake, table, application)
    number = max(least, (known or 0) + OWNER_NUMBERS) + random.randrange(1000)  # two who do it at once differ
    for attempt in range(_ATTEMPTS):
        lake.fence(table, application, number)
        if (known := application_version(lake, table, application)) == number:
            return number
        number = max(number, known or 0) + (OWNER_NUMBERS << attempt)
    raise Fenced(f"{application} has come further in {table} than any clock says; give the lake a new identity")
