"""What the library answers with, where that is no DataFrame. Pure.

Each is shown as HTML in a notebook; `to_dict()` is the document that the command line prints with
`--json`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from mirrorlake.library import html

#: Columns of `flow_status` that are looked at first.
_FLOW = (
    "flow", "standing", "enabled", "state", "topics", "partitions", "lag_records", "lag_seconds",
    "replication_p50_ms", "replication_p99_ms", "open_incidents", "heartbeat_age_seconds",
    "last_produced_at",
)  # fmt: skip
_TOPIC = ("topic", "target_topic", "partitions", "factor", "configs", "action", "reason", "note")
_Kind = TypeVar("_Kind", bound="Answer")


class Rows(list[dict[str, Any]]):
    """A short list of rows, each a mapping of column to value; a table in a notebook.

        for row in lake.incidents(kind="target_refused"): print(row["topic"], row["choices"])

    Attributes:
        columns: names of the columns, which are there without a row too, where the rows are those
            of a query.
        truncated: the query has more rows than were asked for.
    """

    truncated = False

    def __init__(self, rows: Iterable[dict[str, Any]] = ()) -> None:
        super().__init__(rows)
        self.columns: tuple[str, ...] = getattr(rows, "columns", ())

    def _repr_html_(self) -> str:
        return html.table(self)


class Answer:
    """An answer of several parts, each an attribute."""

    @classmethod
    def from_document(cls: type[_Kind], document: Mapping[str, Any]) -> _Kind:
        """Make it from the document that it is."""
        tables = {field.name for field in fields(cls) if field.type in (Rows, Rows | None)}  # type: ignore[arg-type]
        return cls(
            **{name: Rows(value) if name in tables else value for name, value in document.items()}
        )

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain mappings and lists, under the names of its attributes."""
        return dict(vars(self))


@dataclass(frozen=True)
class Position(Answer):
    """The next offset to be read of a partition of the other cluster.

        lake.translate("east->west", "orders", 0, 42).offset

    Attributes:
        topic: its name there.
        partition: the same as where the position came from.
        offset: reading from here skips no record, and repeats none.
        exact: False means not replicated yet; `offset` is then the highest safe position, from
            which records are read again and none is missed.
    """

    topic: str
    partition: int
    offset: int
    exact: bool

    def _repr_html_(self) -> str:
        return html.table([self.to_dict()])


@dataclass(frozen=True)
class Produced:
    """What `run` has brought to the target of a flow so far, how many of the batches the driver
    produced itself, and how tasks read the stage: by `files` or `rows`.

        lake.run(["east->west"], report=lambda produced: print(produced.flow, produced.records))
    """

    flow: str
    records: int
    batches: int
    short_batches: int
    reader: str


@dataclass(frozen=True)
class Status(Answer):
    """How the replication is.

        status = lake.status()
        status.healthy or print(*status.attention, sep="\\n")

    Attributes:
        healthy: no alert is there.
        flows: a row of the view `flow_status` for each flow, whether it is `enabled`, and its
            `standing` in words.
        topics: lag of each flow and topic, in records.
        incidents: what waits for a decision.
        alerts: rows of the view `alerts`, and laws of replication that are broken.
        unchecked: what could not be checked, a sentence each.
        proofs: how much of each topic of each flow is proven by content, and since when (`verify`).
        attention: a sentence for each thing that needs attention, the most urgent first.
        warnings: a sentence for each thing that may come to need it: another program commits to
            tables that only mirrorlake may commit to.
    """

    healthy: bool
    flows: Rows
    topics: Rows
    incidents: Rows
    alerts: Rows
    unchecked: list[str]
    proofs: Rows = field(default_factory=Rows)
    attention: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def _repr_html_(self) -> str:
        title = "healthy" if self.healthy else f"not healthy: {len(self.alerts)} alerts"
        parts = [html.heading(title, self.healthy), html.table(self.flows, "flows", _FLOW)]
        parts += [
            html.table(rows, name)
            for name, rows in (("incidents", self.incidents), ("alerts", self.alerts))
        ]
        parts += [html.sentences(self.warnings, "warnings")]
        return "".join(
            [*parts, html.sentences(self.unchecked, "unchecked"), html.table(self.topics, "topics")]
        )


@dataclass(frozen=True)
class Forgotten(Answer):
    """What was deleted from the stage by a predicate, or would be.

        lake.forget("orders", "CAST(key AS STRING) = '4711'", dry_run=True).records

    Attributes:
        source: the cluster whose records they are.
        dry_run: nothing was deleted.
        forget_id: what `changes` and `forgotten` call it; None where nothing was deleted.
        records: how many were deleted.
        files: how many files of the stage held them.
        waiting: how many more the predicate picks that a flow still needs.
        topics: the same by topic.
        waits: for which flow, and why.
        elsewhere: other topics of the stage that hold the same records, mirrored or under another
            alias of the cluster: `source`, `topic`, and how many `records` the predicate picks
            there (None: it cannot be asked there). They stay until `forget` is called for them.
        replays: the names of replays whose predicates about these topics are in `changes`.
        finished: how many records were deleted of calls before that had been killed.
        deleted_at: when.
        gone_after: the first `maintain` behind this time removes the files that still hold them.
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

    def _repr_html_(self) -> str:
        title = (
            f"{self.records:,} records {'would be' if self.dry_run else 'were'} deleted; "
            f"{self.waiting:,} wait"
        )
        tables = (
            html.table(self.topics)
            + html.table(self.waits, "waits")
            + html.table(self.elsewhere, "elsewhere")
        )
        return html.heading(title, not (self.waiting or self.elsewhere)) + tables


@dataclass(frozen=True)
class Groups(Answer):
    """Where the consumer groups of a flow stand on both sides.

        for row in lake.groups("east->west", ["billing"]).groups: print(row)

    Attributes:
        flow: the flow.
        source_unreachable, target_unreachable: why a side was not asked; None when it answered.
        untold: why a cluster may have more groups than it reported.
        errors: why a group was not reported, by group.
        not_mirrored: groups that no command moves, with the reason.
        topics_waiting: topics that lead nowhere until an operator decides, with the reason.
        groups: a row for each group and partition. Positions are the next offset to be read, lags
            are records, None is not known; `read_again_at_most` are the records that would come
            twice if it failed over now, and `gone_at_most` those that it has not read and that are
            not at the target any more; a position that has no counterpart at the target has none of
            these; `reads_uncommitted`: at the target it stands behind records that are not
            committed, so it reads such.
    """

    flow: str
    source_unreachable: str | None
    target_unreachable: str | None
    untold: list[str]
    errors: dict[str, str]
    not_mirrored: dict[str, str]
    topics_waiting: dict[str, str]
    groups: Rows

    @property
    def complete(self) -> bool:
        """Whether both sides reported everything, and no topic waits."""
        is_reported = (
            self.source_unreachable is None and self.target_unreachable is None and not self.untold
        )
        return is_reported and not self.errors and not self.topics_waiting

    def _repr_html_(self) -> str:
        sentences = [
            line for line in (self.source_unreachable, self.target_unreachable) if line
        ] + self.untold
        sentences += [
            f"group {name}: {why}" for name, why in {**self.errors, **self.not_mirrored}.items()
        ]
        sentences += [f"topic {name}: {why}" for name, why in self.topics_waiting.items()]
        return html.table(self.groups, f"flow {self.flow}") + html.sentences(sentences, "to know")


@dataclass(frozen=True)
class Divergence(Answer):
    """What a flow's target never got; offsets are inclusive.

        lake.flows["east->west"].divergence().staged_only

    Attributes:
        flow: the flow.
        staged_only: what the lake holds: topic, partition, first_offset, last_offset and
            record_count.
        never_staged: what the lake has not either: topic, partition, first_offset, last_offset and
            sampled_at.
    """

    flow: str
    staged_only: Rows
    never_staged: Rows

    def _repr_html_(self) -> str:
        parts = [
            html.table(self.staged_only, "staged only"),
            html.table(self.never_staged, "never staged"),
        ]
        return html.heading(f"flow {self.flow}") + "".join(parts)


@dataclass(frozen=True)
class Moves(Answer):
    """What `failover` or `failback` did, or would do.

        moves = lake.failover("east->west", ["billing"], dry_run=True)
        moves.complete or print(*moves.left, sep="\\n")

    Attributes:
        flow: the flow.
        command: failover or failback.
        dry_run: nothing was changed.
        complete: nothing is left.
        origin_unreachable: why the cluster that the groups leave was not asked; None when it
            answered.
        drained: how far each flow was caught up before.
        groups: a row for each group and partition, from where to where, and what was `done`.
        warnings: what to know before consumers start, a sentence each.
        left: what is not as it should be, a sentence each; what was done stays done when it is
            called again.
        staged_only, never_staged: what never reached the target, where the origin did not answer;
            else None.
    """

    flow: str
    command: str
    dry_run: bool
    complete: bool
    origin_unreachable: str | None
    drained: Rows
    groups: Rows
    warnings: list[str]
    left: list[str]
    staged_only: Rows | None = None
    never_staged: Rows | None = None

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain mappings and lists; what was not asked for is left out."""
        unasked = {"staged_only", "never_staged"} if self.staged_only is None else set()
        return {name: value for name, value in super().to_dict().items() if name not in unasked}

    def _repr_html_(self) -> str:
        title = f"{self.command} of {self.flow}" + (
            ", a dry run: nothing was changed" if self.dry_run else ""
        )
        parts = [html.heading(title, self.complete), html.table(self.groups)]
        parts += [html.sentences(self.warnings, "to know"), html.sentences(self.left, "left")]
        for name, rows in (("staged only", self.staged_only), ("never staged", self.never_staged)):
            parts += [] if rows is None else [html.table(rows, name)]
        return "".join(parts)


@dataclass(frozen=True)
class Migrated(Answer):
    """What `migrate` did, or would do, about a wave of groups.

        lake.migrate("east->west", topics="orders", groups="billing", dry_run=True).left

    Attributes:
        flow: the flow.
        rollback: from our copies to MirrorMaker 2's.
        dry_run: nothing was changed.
        complete: nothing is left.
        groups: a row for each group and partition, from where to where, whether that is `exact`, by
            which `method` it was found, and what was `done`.
        left: what is not as it should be, a sentence each.
    """

    flow: str
    rollback: bool
    dry_run: bool
    complete: bool
    groups: Rows
    left: list[str]

    def _repr_html_(self) -> str:
        title = f"groups of {self.flow} " + (
            "back to MirrorMaker 2's copies" if self.rollback else "to our copies"
        )
        title += ", a dry run: nothing was changed" if self.dry_run else ""
        return (
            html.heading(title, self.complete)
            + html.table(self.groups)
            + html.sentences(self.left, "left")
        )


@dataclass(frozen=True)
class Plan(Answer):
    """Everything that `run` would do to the targets.

        for problem in lake.plan().problems: print(problem["sentence"], problem["fix"])

    Attributes:
        clusters: the id of each cluster, by alias.
        problems: what a rule refuses or notes, with the `sentence` and what `fix` helps.
        flows: for each flow its policy, and the `topics`, `configs`, `acls` and `heartbeats` that
            it would make.
        totals: topics, partitions, what waits, and conflicts, of all flows; each flow has its own
            too.
    """

    clusters: dict[str, str]
    problems: Rows
    flows: Rows
    totals: dict[str, int | None] = field(default_factory=dict)

    def _repr_html_(self) -> str:
        problems = html.table(self.problems, "problems", ("severity", "sentence", "fix", "rule"))
        return problems + "".join(
            html.table(flow["topics"], flow["flow"], _TOPIC) for flow in self.flows
        )


@dataclass(frozen=True)
class Verified(Answer):
    """What a comparison by content found.

        lake.verify(["east->west"], topics=["orders"]).differences

    Attributes:
        began, ended: when.
        ranges, records: how much was compared; records are those of the stage.
        proven: how many of these records are in ranges without a difference.
        proven_before: records that earlier comparisons had proven, and that were not compared
            again.
        bytes_read: of all three sides.
        excused: records that were left out, by reason (docs/trust.md).
        differences: each with flow, topic, partition, first_offset and last_offset (source offsets,
            inclusive), kind, record_count, target_offset and detail.
        not_compared: what was selected and not compared, each with flow, topic, partition,
            generation, first_offset and last_offset (None: not known), reason and detail
            (docs/trust.md).
        audits: the rows that were added to the table `audits`, one a range; the newest 20,000 of
            them.
        cut: how many `ranges` are not among these rows, and how many `differences` are not listed,
            because a range has more than 100 of them.
    """

    began: datetime
    ended: datetime
    ranges: int
    records: int
    proven: int
    proven_before: int
    bytes_read: int
    excused: dict[str, int]
    differences: Rows
    not_compared: Rows
    audits: Rows
    cut: dict[str, int] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether nothing differs, and all that was selected was compared, now or before, except
        what is on its way."""
        return not self.differences and all(
            row["reason"] == "in_flight" for row in self.not_compared
        )

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain mappings and lists, without the rows of `audits`."""
        return {name: value for name, value in super().to_dict().items() if name != "audits"}

    @property
    def cut_sentences(self) -> list[str]:
        """What the answer leaves out for its size, and how to get it: a sentence each."""
        sentences = []
        if self.cut.get("differences"):
            sentences.append(
                f"{self.cut['differences']:,} differences more are not listed, since their ranges "
                "have over 100 each: compare fewer offsets at a time, by mirrorlake verify "
                "--again --topic TOPIC --offsets FIRST:LAST"
            )
        if self.cut.get("ranges"):
            sentences.append(
                f"{self.cut['ranges']:,} ranges more were compared than are listed as evidence; "
                "the table audits has "
                f'all: mirrorlake sql "SELECT * FROM audits WHERE audited_at >= '
                f"CAST('{self.began.isoformat(sep=' ', timespec='seconds')}' AS TIMESTAMP)\""
            )
        return sentences

    def write(self, file: Path) -> None:
        """Write the evidence: one self-contained page for `.html`, else JSON. Raises OSError."""
        from mirrorlake.verify.evidence import evidence

        document = {**self.to_dict(), "audits": self.audits, "cut_sentences": self.cut_sentences}
        file.write_text(evidence(document, file.suffix == ".html"), encoding="utf-8")

    def _repr_html_(self) -> str:
        title = f"{self.proven:,} of {self.records:,} records proven by content"
        tables = html.table(self.differences, "differences") + html.table(
            self.not_compared, "not compared"
        )
        return html.heading(title, self.complete) + tables


@dataclass(frozen=True)
class Upkeep(Answer):
    """What `maintain` did, or would do.

        lake.maintain(retention_days=30, dry_run=True).records["removed"]

    Attributes:
        dry_run: nothing was changed.
        settings: properties of tables that were set.
        records: those landed `before` a time that were `removed`, and which partitions are `held`
            for a flow.
        history: rows removed, by table.
        thinned: samples removed, of those of a minute or an hour that others stand for.
        map: rows of the map before and after merging; None in a dry run.
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
        path: where the tables lie; None where they are the catalog's own, which `run` makes, so
            that none had to be registered.
        tables: each `table`, and the `action`: created, or kept as it was.
        views: each `view`, and the `action`: created, altered, or kept as it was.
    """

    catalog: str
    schema: str
    path: str | None
    tables: Rows
    views: Rows

    def _repr_html_(self) -> str:
        title = html.heading(f"{self.catalog}.{self.schema}")
        return title + html.table(self.tables, "tables") + html.table(self.views, "views")
