"""The library's answers about maintaining the tables of a lake. Pure."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mirrorlake.library import html
from mirrorlake.library.answers import Answer, Rows


@dataclass(frozen=True)
class Forgotten(Answer):
    """What `forget` deleted from the stage, or would delete.

        lake.forget("orders", "CAST(key AS STRING) = '4711'", dry_run=True).records

    Attributes:
        source: the source cluster of the records.
        dry_run: nothing was deleted.
        forget_id: its id in `changes` and `forgotten`; None if nothing was noted.
        records: how many were deleted.
        files: how many files of the stage held them.
        waiting: how many more records match that a flow, replay or restore still needs.
        topics: the same counts by topic.
        waits: which flow needs the waiting records, and why.
        elsewhere: other staged topics that may hold the same records, mirrored or under another
            alias of the cluster: `source`, `topic`, and how many `records` match there (None: the
            predicate cannot be run there). They stay until `forget` is called for them.
        replays: the names of replays of these topics whose predicates are in `changes`.
        finished: how many records were deleted to finish earlier calls that had been killed.
        deleted_at: when.
        gone_after: the first `maintain` after this time removes the files that still contain them.
    """

    source: str
    dry_run: bool
    forget_id: str | None
    records: int
    files: int
    waiting: int
    topics: Rows
    waits: Rows
    elsewhere: Rows
    replays: list[str]
    finished: int
    deleted_at: datetime | None
    gone_after: datetime | None

    @property
    def headline(self) -> tuple[str, bool]:
        done = "would be" if self.dry_run else "were"
        good = not (self.waiting or self.elsewhere)
        return f"{self.records:,} records {done} deleted; {self.waiting:,} wait", good


@dataclass(frozen=True)
class Upkeep(Answer):
    """What `maintain` did, or would do.

        lake.maintain(retention_days=30, dry_run=True).records["removed"]

    Attributes:
        dry_run: nothing was changed.
        settings: table properties that were set.
        records: the time `before` which records were landed, how many were `removed`, which
            partitions are `held` for a flow, and what killed calls of `forget` noted and is not
            `forgotten` yet, for replays and restores.
        history: rows removed, by table.
        thinned: samples removed because another one of the same minute or hour remains.
        map: rows of the offset map before and after merging; None in a dry run.
        tables: files and bytes before and after, by table.
    """

    dry_run: bool
    settings: Any
    records: dict[str, Any]
    history: dict[str, int]
    thinned: int
    map: dict[str, int] | None
    tables: dict[str, dict[str, int]]

    def _repr_html_(self) -> str:
        title = f"{self.records['removed']:,} records" + (
            " would be deleted" if self.dry_run else " were deleted"
        )
        return html.heading(title) + html.table(
            [{"table": name, **size} for name, size in self.tables.items()]
        )


@dataclass(frozen=True)
class Registered(Answer):
    """The names of a lake's tables and views in a catalog.

        [row["table"] for row in lake.register().tables if row["action"] == "created"]

    Attributes:
        catalog, schema: where the names are.
        path: where the tables are; None for a catalog's own tables, which `run` creates there, so
            that none need registering.
        tables: each `table`, and the `action`: created, or kept as it was.
        views: each `view`, and the `action`: created, altered, or kept as it was.
    """

    catalog: str
    schema: str
    path: str | None
    tables: Rows
    views: Rows

    @property
    def headline(self) -> tuple[str, bool]:
        return f"{self.catalog}.{self.schema}", True
