"""Decisions about incidents, and how each is done. A running replicator notices."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from mirrorlake.control.acl_reports import LEFT
from mirrorlake.control.acl_sync import AclSync
from mirrorlake.errors import InputError
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.decisions import READ_AGAIN
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.incidents import key_of
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.reader import Reader
from mirrorlake.landing.generations import (
    begin_branches,
    begin_generations,
    decisions_of,
    generations_of,
)
from mirrorlake.landing.source_comparison import Branch, TopicGeneration, blocked
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.run.attention import no_decision, resolving, what_helps
from mirrorlake.run.choices import choices_of

#: Kinds that concern a source cluster, and so every flow that reads from it.
_OF_SOURCE = frozenset({"topic_recreated", "source_truncated", "source_rewound"})


@dataclass(frozen=True)
class Wanted:
    """A selection of incidents; None stands for any."""

    flow: str | None = None
    topic: str | None = None
    partition: int | None = None
    kind: str | None = None
    target_topic: str | None = None

    def meets(self, incident: Mapping[str, Any]) -> bool:
        """Whether an incident is selected."""
        asked = {"topic": self.topic, "partition": self.partition, "kind": self.kind}
        asked["target_topic"] = self.target_topic
        same_flow = self.flow in (None, incident["flow"]) or (
            incident["kind"] in _OF_SOURCE
            and source_of(str(self.flow)) == source_of(incident["flow"])
        )
        return same_flow and all(
            value in (None, incident.get(name)) for name, value in asked.items()
        )


class Resolution(NamedTuple):
    """The incidents that were `decided`, and those that offer the same choice but stay open, since
    they are about another target topic of the same source topic."""

    decided: list[dict[str, Any]]
    left_open: list[dict[str, Any]]


def source_of(flow: str) -> str:
    """The source's alias in the name of a flow."""
    return flow.partition("->")[0]


def open_incidents(lake: Reader, wanted: Wanted) -> list[dict[str, Any]]:
    """The selected open incidents, each with its `choices` (choice to meaning), `decide_by` (the
    command that takes one of them with --choice), `helps` (what to do about it in words) and
    `closes_by_itself` (whether no decision ends it while its cause is there)."""
    rows = sorted(lake.table_rows("open_incidents"), key=lambda row: row["at"])
    mirrors = mirrors_of(rows)
    return [
        {
            **row,
            "choices": dict(choices_of(row["kind"])),
            "decide_by": f"{resolving(row)} --kind {row['kind']}{_of_mirror(row, mirrors)}",
            "helps": what_helps(row),
            "closes_by_itself": no_decision(row["kind"]) is not None,
        }
        for row in rows
        if wanted.meets(row)
    ]


def mirrors_of(incidents: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], set[str]]:
    """The target topics that incidents name, by flow and source topic: several where a flow had it
    under another policy."""
    mirrors: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row in incidents:
        if row["topic"] is not None and row.get("target_topic") is not None:
            mirrors[row["flow"], row["topic"]].add(row["target_topic"])
    return mirrors


def _of_mirror(row: Mapping[str, Any], mirrors: Mapping[tuple[str, str], set[str]]) -> str:
    """The option that names the target topic of an incident, where others are about another one."""
    several = len(mirrors.get((row["flow"], row["topic"]), ())) > 1
    named = several and row["target_topic"] is not None
    return f" --target-topic {row['target_topic']}" if named else ""


def resolve(deployment: Deployment, wanted: Wanted, choice: str) -> Resolution:
    """Decide all selected incidents that offer a choice. Where those of a topic are about several
    target topics, those about the one that it is mirrored to now.

    Raises:
        InputError: no such incident is open, none is about the target topic of now, or there is
            nothing to read again.
        ClusterUnreachable: a new generation cannot be looked up, ACLs cannot be changed, or records
            cannot be read.
        ReplicationError: the target refuses.
    """
    lake = deployment.lake
    open_now = open_incidents(lake.now, wanted)
    offering = [incident for incident in open_now if choice in incident["choices"]]
    if not offering:
        raise InputError(_nothing(open_now, choice))
    deciding = _of_one_mirror(offering, deployment.connections)
    left_open = [incident for incident in offering if incident not in deciding]
    anew = [incident for incident in deciding if choice == "new-generation"]
    for alias in sorted({source_of(incident["flow"]) for incident in anew}):
        here = [incident for incident in anew if source_of(incident["flow"]) == alias]
        topics = {incident["topic"] for incident in here if incident["partition"] is None}
        _begin(deployment, alias, sorted(topics))
        _branch(lake, alias, [incident for incident in here if incident["partition"] is not None])
    incidents = deployment.event_log.incidents
    if choice != READ_AGAIN and all(incident["kind"] != LEFT for incident in deciding):
        incidents.settle_all(map(key_of, deciding), choice)
        return Resolution(deciding, left_open)
    for incident in deciding:  # close each one as soon as it is done
        if incident["kind"] == LEFT:
            _settle_acls(deployment, incident["flow"], choice == "revoke")
        incidents.settle_all(
            [key_of(incident)], _read(deployment, incident) if choice == READ_AGAIN else choice
        )
    return Resolution(deciding, left_open)


def _of_one_mirror(
    incidents: Sequence[dict[str, Any]], connections: Connections
) -> list[dict[str, Any]]:
    """Those of some incidents that one decision is about: what is decided about another target
    topic would hold when the flow has its earlier policy again."""
    now: dict[tuple[str, str], str] = {}
    for (flow, topic), names in mirrors_of(incidents).items():
        if len(names) == 1:
            continue
        known = connections.topology.flows
        name = connections.topology.flow(flow).target_topic(topic) if flow in known else None
        if name is None or name not in names:
            raise InputError(
                f"the open incidents of topic {topic} of flow {flow} are about several target "
                "topics, and none of them is the one of now: name one of "
                f"{', '.join(sorted(names))} by --target-topic"
            )
        now[flow, topic] = name
    return [
        row
        for row in incidents
        if row.get("target_topic") is None
        or now.get((row["flow"], row["topic"]), row["target_topic"]) == row["target_topic"]
    ]


def _begin(deployment: Deployment, alias: str, topics: Sequence[str]) -> None:
    """Begin the next generation of topics, with the topic that now has the name."""
    if not topics:
        return
    lake = deployment.lake
    current = generations_of(lake, alias)
    ids = deployment.connections.admin(alias).topic_ids(topics)
    for topic in topics:
        if topic not in ids:
            raise InputError(
                f"topic {topic} is not at cluster {alias} now; decide when it is there again"
            )
    # A decision noted by a process that died before it closed the incident is not noted twice.
    begin_generations(
        lake,
        alias,
        {
            topic: TopicGeneration(current.newest(topic) + 1, ids[topic])
            for topic in topics
            if topic in current.topics and current.topics[topic].topic_id != ids[topic]
        },
    )


def _read(deployment: Deployment, incident: Mapping[str, Any]) -> str:
    """Stage again what the source still has. If it has trimmed a part of it too, the flow stops
    before that part and reports it."""
    # needs Spark, which listing incidents does not
    from mirrorlake.landing.read_again import read_again

    alias = source_of(incident["flow"])
    start = read_again(deployment, alias, incident)
    return READ_AGAIN if start == incident["first_offset"] else f"{READ_AGAIN} from {start}"


def _settle_acls(deployment: Deployment, name: str, revoke: bool) -> None:
    """Revoke, or give up ownership of, the ACLs that a flow made under another policy."""
    connections = deployment.connections
    flow = connections.topology.flow(name)
    acls = AclSync(flow, connections, deployment.event_log, remote_topic=flow.target_topic)
    acls.settle_left(revoke)


def _branch(lake: Lake, alias: str, incidents: Sequence[Mapping[str, Any]]) -> None:
    """Begin a generation of each partition whose log went back, from where the logs differ."""
    if not incidents:
        return
    current = generations_of(lake, alias)
    # A generation that began already, by a decision of a process that died before it closed the
    # incident or with its whole topic, does not count as open any more.
    waiting = blocked(
        decision
        for decision in decisions_of(lake, alias)
        if decision.open and decision.kind == "source_rewound"
    )[1]
    first: dict[TopicAndPartition, int] = {
        (incident["topic"], incident["partition"]): incident["first_offset"]
        for incident in incidents
    }
    begun = {
        key: Branch(current.generation(key) + 1, offset)
        for key, offset in first.items()
        if key in waiting
    }
    begin_branches(lake, alias, begun, current)


def _nothing(incidents: Sequence[Mapping[str, Any]], choice: str) -> str:
    if not incidents:
        return (
            "no open incident is meant by these options; `mirrorlake resolve` without --choice "
            "lists them all"
        )
    offered = sorted({name for incident in incidents for name in incident["choices"]})
    return (
        f"none of the {len(incidents)} open incidents meant offers the choice {choice}; they "
        f"offer {', '.join(offered)}"
    )
