"""Writes tables.md, the data dictionary, from the statements that make tables and views: `make
tables`.

Columns are described where they are defined (`sql/tables/*.sql`). A column of a view has the
description of the column of that name in what the view reads; what only views have is described in
`OF_VIEWS`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

import sqlglot
from sqlglot import exp

from mirrorlake.lake.definitions import TABLES, VIEWS, Column, definition, sql_text

PAGE = Path(__file__).with_name("tables.md")

#: What is in no table: by column, or by view and column where a word means something else there.
OF_VIEWS = {
    "alert": "the condition: `stuck`, `lag`, `latency`, `heartbeat`, `not_running`, "
    "`hanging_transaction`, `incident` or `map_gap`",
    "lag_to_high_watermark": "offsets from produced_end to the end of the log, those in and behind "
    "open transactions "
    "included",
    "alerts.detail": "the condition in a sentence",
    "alerts.since": "since when it holds",
    "alerts.value": "what was measured",
    "bytes_per_second": "of the last minute; in views by minute, of that minute",
    "checkpoint_count": "how many checkpoints the minute has",
    "divergence.first_offset": "the first source offset that is missing",
    "divergence.last_offset": "the last one",
    "differing_ranges": "stretches of offsets with a difference",
    "flow_status.state": "`incident`, `not running`, `replicating` or `idle`",
    "is_sampled": "whether the flow was sampled within a minute, or three intervals",
    "heartbeat_age_seconds": "how long ago the newest heartbeat that came through was sent",
    "last_batch_id": "the newest producing batch",
    "last_produced_at": "when that was committed",
    "latency_min_ms": "from asking the source for a position to its row in `checkpoints`",
    "flow_status.replication_p50_ms": "from the timestamp of a record to the commit at the target",
    "flow_status.replication_p95_ms": "from the timestamp of a record to the commit at the target",
    "living_targets.target_generation": "of the target topic, the newest one; 0 is the first",
    "living_targets.target_topic": "the mirror at the target",
    "lives": "false: the target topic is gone or another one, and nothing leads there",
    "long_batches": "batches of the last day that Spark's tasks produced",
    "mapped_records": "records that are in the map now",
    "minute": "the minute, by its start",
    "open_incidents": "how many are open",
    "partition_status.state": "`stopped`, `gone`, `not running`, `behind` or `at the end`",
    "partition_status.target_topic": "the mirror at the target",
    "parked": (
        "records that the target refused, that the flow went on behind, and that were not "
        "sent since"
    ),
    "other_log": "why the position is not one in the log that was mirrored; null: it is",
    "partitions": "how many partitions",
    "proof_status.audited_at": "the newest comparison",
    "proofs.generation": "of the source topic; 0 is the first",
    "proofs.target_topic": "the mirror at the target",
    "proofs.target_generation": "of the target topic; 0 is the first",
    "proven": "whether the newest comparison found no difference",
    "proven_records": "those that a comparison by content found whole, without `gone_records`",
    "mapped_count": "of these, the records that were not left out on purpose; an estimate too, "
    "where `record_count` is one",
    "proofs.record_count": "how many records of the stage; an estimate, in proportion to the "
    "offsets, where a part of a compared range was compared again, or lost by the target",
    "proven_share": "from 0 to 1, rounded down",
    "gone_count": "at most how many of the mapped records had nothing left to be compared with",
    "gone_records": "of the map, in stretches without a difference, and not proven: nothing was "
    "left to compare them with",
    "proven_since": "the oldest of these comparisons",
    "record_count": "how many records",
    "records_per_second": "of the last minute; in views by minute, of that minute",
    "run_source_last": "last source offset of the row of `offset_map`",
    "run_target_last": "last target offset of that row",
    "sample_age_seconds": "how old the newest sample is",
    "sampled_lag_seconds": "`lag_seconds` as it was sampled",
    "short_batches": "batches of the last day that the driver produced itself",
    "stride": "distance between two source offsets of the range",
    "threshold": "what the objective allows",
    "topics": "how many topics",
    "unsent_parked.target_generation": "of the target topic that refused it",
    "unsent_parked.target_topic": "the topic that refused it",
}

#: Which tables belong together, and by which columns.
RELATIONS = (
    (
        "records",
        "offset_map",
        "source_cluster = split(flow, '->')[0], topic, partition, generation, offset",
    ),
    ("records", "generations", "source_cluster, topic, generation"),
    ("records", "removals", "source_cluster, topic, partition, generation"),
    ("offset_map", "latency", "flow, topic, partition, batch_id"),
    ("offset_map", "target_generations", "flow, topic, target_topic, target_generation"),
    ("offset_map", "positions", "flow, topic, partition"),
    ("offset_map", "audits", "flow, topic, partition, generation, target_generation"),
    ("positions", "checkpoints", "flow, topic, partition"),
    ("incidents", "positions", "flow, topic, partition"),
    ("changes", "objectives", "flow"),
    ("positions", "objectives", "flow"),
    ("states", "clusters", "cluster = alias"),
    ("records", "clusters", "source_cluster = alias"),
)

INTRODUCTION = """\
# Tables and views

Made by `make tables` from `src/mirrorlake/sql`; a test fails when it is out of date. All tables are
Delta, in the folder `lake.path` or the schema `lake.catalog`.`lake.schema`, and any Delta reader
opens them. Views exist in a catalog, and wherever mirrorlake answers: `mirrorlake sql`, the
library, the dashboard. Names are fixed; columns may be added.

Words: an *offset* names a record, a *position* is the next offset to be read, a *flow* is
`source->target`, a *generation* counts how often a topic was made again under its name ([how it
works](../DESIGN.md)).
"""


def page() -> str:
    """The whole page."""
    parts = [INTRODUCTION, "## How they belong together\n", *_relations(), "## Tables\n"]
    parts += [part for table in TABLES for part in _table(table)]
    parts += ["## Views\n"]
    parts += [part for view in VIEWS for part in _view(view)]
    return "\n".join(parts)


def _relations() -> Iterator[str]:
    for left, right, by in RELATIONS:
        known = {column.name for table in (left, right) for column in definition(table).columns}
        if unknown := set(re.findall(r"\w+", re.sub(r"split\(.*?\]", "flow", by))) - known:
            raise ValueError(f"{left} and {right} have no columns {sorted(unknown)}")
    lines = [f'    {left} }}o--o{{ {right} : "{by}"' for left, right, by in RELATIONS]
    yield "\n".join(["```mermaid", "erDiagram", *lines, "```", ""])
    yield "What each view reads:\n"
    edges = [f"    {source} --> {view}" for view in VIEWS for source in sources_of(view)]
    yield "\n".join(["```mermaid", "flowchart LR", *edges, "```", ""])


def _table(name: str) -> Iterator[str]:
    found = definition(name)
    yield f"### `{name}`\n"
    yield f"{_lead(sql_text('tables', name))}\n"
    yield _rows(
        (
            column.name,
            f"{column.spark_type}{' NOT NULL' if column.required else ''}",
            column.comment or "",
        )
        for column in found.columns
    )


def _view(name: str) -> Iterator[str]:
    yield f"### `{name}`\n"
    read = " ".join(f"`{source}`" for source in sources_of(name))
    yield f"{_lead(sql_text('views', name))} Reads: {read}.\n"
    yield _rows((column, "", meaning(name, column)) for column in columns_of(name))


@cache
def query_of(view: str) -> exp.Expression:
    """The query of a view."""
    return sqlglot.parse_one(sql_text("views", view).partition(" AS\n")[2], read="databricks")


@cache
def columns_of(view: str) -> Sequence[str]:
    """The columns of a view."""
    query = query_of(view)
    return query.named_selects if isinstance(query, exp.Query) else ()


@cache
def sources_of(view: str) -> list[str]:
    """The tables and views that a view reads, in the order of their definition."""
    named = {table.name for table in query_of(view).find_all(exp.Table)}
    return [name for name in (*TABLES, *VIEWS) if name in named]


def meaning(view: str, column: str) -> str:
    """What a column of a view says. Raises KeyError for one that is not described."""
    for known in (f"{view}.{column}", column):
        if known in OF_VIEWS:
            return OF_VIEWS[known]
    return _inherited(view, column) or ""


def _inherited(view: str, column: str) -> str | None:
    for source in sources_of(view):
        if source in TABLES:
            found: Column | None = next(
                (item for item in definition(source).columns if item.name == column), None
            )
            if found is not None:
                return found.comment or ""
        elif column in columns_of(source):
            return meaning(source, column)
    if re.match(r"(landing|replication|latency)_(avg|p\d+|max)_ms$", column):
        return ""
    raise KeyError(f"what {column} of view {view} means is not said: add it to OF_VIEWS")


def _lead(text: str) -> str:
    """The comment that a statement begins with, as a paragraph."""
    lines = [line.removeprefix("--").strip() for line in text.splitlines()]
    count = next(at for at, line in enumerate(text.splitlines()) if not line.startswith("--"))
    return re.sub(
        r"(?<!`)docs/(\w+\.md)", r"[\1](\1)", " ".join(line for line in lines[:count] if line)
    )


def _rows(columns: Iterable[tuple[str, str, str]]) -> str:
    """A table of columns; of several of one kind the first one says what they are."""
    rows: list[tuple[list[str], list[str], str]] = []
    for name, kind, comment in columns:
        family = re.fullmatch(r"(landing|replication|latency)_\w+_ms", name)
        if family and not comment and rows and rows[-1][0][0].startswith(f"{family[1]}_"):
            rows[-1][0].append(name)
            rows[-1][1].append(kind)
        else:
            rows.append(([name], [kind], comment))
    typed = any(any(kinds) for _, kinds, _ in rows)
    lines = ["| column | type | |", "|---|---|---|"] if typed else ["| column | |", "|---|---|"]
    for names, kinds, comment in rows:
        types = [", ".join(f"`{kind}`" for kind in dict.fromkeys(kinds))] if typed else []
        cells = [", ".join(f"`{name}`" for name in names), *types, comment.replace("|", "\\|")]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
