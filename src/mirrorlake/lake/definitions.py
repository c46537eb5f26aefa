"""The definition of each table: the statement in `sql/tables/<name>.sql`, its only place."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import pyarrow as pa

#: The tables (DESIGN.md, "Tables"), among them `generations` (landing/source_comparison.py),
#: `target_generations` (control/target_comparison.py), `objectives` (config/objectives.py),
#: `removals` (produce/holes.py), `parked` (produce/parking.py), `forgotten` (forget/forget.py) and
#: `starts` (offsets/starts.py), each made by `sql/tables/<name>.sql`.
TABLES = tuple(
    """
    records offset_map latency positions checkpoints changes incidents clusters audits
    generations target_generations objectives states removals parked forgotten starts
    """.split()
)
#: The views, each behind those that it reads.
VIEWS = tuple(
    """
    living_targets offset_translation replication_lag lag_minutes replication_latency throughput
    partition_minutes partition_status checkpoint_latency open_incidents unsent_parked flow_status
    group_positions divergence alerts proofs proof_status
    """.split()
)


@dataclass(frozen=True)
class Column:
    """A column: its type in Spark's words and in Arrow's, and whether it is NOT NULL."""

    name: str
    spark_type: str
    arrow_type: pa.DataType
    required: bool
    comment: str | None


@dataclass(frozen=True)
class Definition:
    """A table: its columns in order, its comment, and its table properties by name."""

    name: str
    columns: tuple[Column, ...]
    comment: str
    properties: Mapping[str, str]

    @property
    def rows(self) -> pa.Schema:
        """The schema of rows to be appended; every column may be null in it."""
        return pa.schema([(column.name, column.arrow_type) for column in self.columns])


@cache
def sql_text(kind: str, name: str) -> str:
    """The package's `sql/<kind>/<name>.sql`; kind is tables, views, queries or notebooks."""
    return (files("mirrorlake") / "sql" / kind / f"{name}.sql").read_text(encoding="utf-8")


def view_query(view: str) -> str:
    """The query of a view: the text behind AS in `sql/views/<view>.sql`."""
    return sql_text("views", view).partition(f"CREATE OR REPLACE VIEW {view} AS\n")[2].strip()


@cache
def definition(table: str) -> Definition:
    """The definition of a table of the lake."""
    from mirrorlake.lake.table_statement import parsed  # an answer does without sqlglot

    return parsed(table, sql_text("tables", table))


def rows_of(table: str, rows: Sequence[Mapping[str, object]]) -> pa.Table:
    """Rows of a table, given as mappings, as an Arrow table; columns that they lack become null."""
    return pa.Table.from_pylist([dict(row) for row in rows], schema=definition(table).rows)
