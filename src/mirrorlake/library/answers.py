"""The library's answers that are not DataFrames: rows, status and plan. Pure.

Each is shown as HTML in a notebook; `to_dict()` is what the command line prints with `--json`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from mirrorlake.library import html

#: Columns of `flow_status` that a notebook shows.
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
        columns: names of the columns of a query's rows, also if there are none.
        truncated: whether the query has more rows than the limit.
    """

    truncated = False

    def __init__(self, rows: Iterable[dict[str, Any]] = ()) -> None:
        super().__init__(rows)
        self.columns: tuple[str, ...] = getattr(rows, "columns", ())

    def _repr_html_(self) -> str:
        return html.table(self)


class Resolved(Rows):
    """The incidents that `resolve` decided.

        for row in lake.resolve("skip", topic="orders").left_open: print(row["target_topic"])

    Attributes:
        left_open: incidents that offer the same choice and stay open, since they are about another
            target topic than the one of now; `target_topic` names it.
    """

    def __init__(
        self, decided: Iterable[dict[str, Any]], left_open: Iterable[dict[str, Any]]
    ) -> None:
        super().__init__(decided)
        self.left_open = Rows(left_open)


class Answer:
    """An answer of several parts, each an attribute."""

    @property
    def headline(self) -> tuple[str, bool]:
        """What a notebook shows first, and whether all is as it should be."""
        raise NotImplementedError

    @classmethod
    def from_document(cls: type[_Kind], document: Mapping[str, Any]) -> _Kind:
        """Build the answer from its document."""
        tables = {field.name for field in fields(cls) if field.type in (Rows, Rows | None)}  # type: ignore[arg-type]
        return cls(
            **{name: Rows(value) if name in tables else value for name, value in document.items()}
        )

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain mappings and lists, under the names of its attributes."""
        return dict(vars(self))

    def _repr_html_(self) -> str:
        """The headline, then each table and each list of sentences under its name. A table whose
        field has a default is shown only if it has rows."""
        parts = [html.heading(*self.headline)]
        optional = {field.name for field in fields(self) if field.default_factory is Rows}  # type: ignore[arg-type]
        for name, value in self.to_dict().items():
            title = name.replace("_", " ")
            if isinstance(value, Rows):
                columns = _FLOW if name == "flows" else None
                parts += (
                    [html.table(value, title, columns)] if value or name not in optional else []
                )
            elif isinstance(value, list):
                parts += [html.sentences(value, title)]
            elif isinstance(value, Mapping):
                sentences = [
                    f"{key}: {text}" for key, text in value.items() if isinstance(text, str)
                ]
                parts += [html.sentences(sentences, title)]
        return "".join(parts)


@dataclass(frozen=True)
class Produced:
    """What `run` has produced to a flow's target so far, how many batches the driver produced
    itself (`short_batches`), and how tasks read the stage: `files` or `rows`.

        lake.run(["east->west"], report=lambda produced: print(produced.flow, produced.records))
    """

    flow: str
    records: int
    batches: int
    short_batches: int
    reader: str


@dataclass(frozen=True)
class Status(Answer):
    """The state of the replication.

        status = lake.status()
        status.healthy or print(*status.attention, sep="\\n")

    Attributes:
        healthy: there is no alert, and flows have begun.
        flows: a row of the view `flow_status` per flow, with whether it is `enabled`, and its
            `standing` in words.
        topics: lag of each flow and topic, in records.
        incidents: what waits for a decision.
        alerts: rows of the view `alerts`, and laws of replication that are broken.
        unchecked: what could not be checked, a sentence each.
        proofs: how much of each topic of each flow is proven by content, and since when (`verify`).
        attention: a sentence for each thing that needs attention, the most urgent first.
        warnings: a sentence for each thing that may need attention later, as another program that
            commits to tables which only mirrorlake may write.
        workers: with `availability: kafka`, which process does which work and which stand by: work,
            flow, cluster, state, host, pid, since.
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
    workers: Rows = field(default_factory=Rows)

    @property
    def headline(self) -> tuple[str, bool]:
        alerts = f"not healthy: {len(self.alerts)} alerts"
        return "healthy" if self.healthy else alerts, self.healthy


@dataclass(frozen=True)
class Plan(Answer):
    """Everything that `run` would do to the targets.

        for problem in lake.plan().problems: print(problem["sentence"], problem["fix"])

    Attributes:
        clusters: the id of each cluster, by alias.
        problems: what a rule refuses or notes, with its `sentence` and a `fix`.
        flows: for each flow its policy, and the `topics`, `configs`, `acls` and `heartbeats` that
            it would make; `unasked` says which cluster did not answer, in which case the rest is
            unknown.
        totals: topics, partitions, waiting records and conflicts of all flows; each flow has its
            own too.
        needs: an estimate of the cores and memory for the process that runs these flows
            (docs/capacity.md): `cores`, `cores_at_rest`, `cores_per_1000_records`, `memory_gib`,
            `records_per_second`, `bytes_per_second`; None if a cluster does not answer.
    """

    clusters: dict[str, str]
    problems: Rows
    flows: Rows
    totals: dict[str, int | None] = field(default_factory=dict)
    needs: dict[str, float | None] | None = None

    def _repr_html_(self) -> str:
        problems = html.table(self.problems, "problems", ("severity", "sentence", "fix", "rule"))
        return problems + "".join(
            html.table(flow["topics"], flow["flow"], _TOPIC) for flow in self.flows
        )
