"""Incidents of landing: lost records, topics made again or gone, unreadable partitions."""

import logging
from collections.abc import Collection, Mapping, Sequence

from mirrorlake.errors import MirrorlakeError, ReplicationError, SourceDataLost
from mirrorlake.lake.changes import Change
from mirrorlake.lake.event_log import EventLog
from mirrorlake.lake.incidents import Incident, IncidentKey
from mirrorlake.landing.gaps import Gap
from mirrorlake.landing.source_comparison import Loss, Planned
from mirrorlake.naming.selection import TopicSelection

logger = logging.getLogger(__name__)

FlowSelections = Sequence[tuple[str, TopicSelection]]
"""Names of the flows that read from a cluster, with what they select."""
REFUSED = "source_refused"
FAILED = "landing_failed"
#: For records that a batch left out and staged around: it never closes by itself.
GAP = "landing_gap"
#: How many incidents of one plan are logged in full; the table has all.
_LOGGED = 8


class LandingIncidents:
    """Writes the incidents and changes of one source cluster for every flow that they concern."""

    def __init__(self, alias: str, event_log: EventLog) -> None:
        self.alias = alias
        self._event_log = event_log
        self._shown: set[str] = set()  # topics that the cluster has shown to this process

    def report_plan(self, planned: Planned, flows: FlowSelections) -> MirrorlakeError | None:
        """Report a plan's outcome before its query runs. Returns the error that operators see."""
        self._shown |= planned.topics.keys()
        ids = {name: one.topic_id for name, one in planned.current_generations.topics.items()}
        unseen = {topic for topic, why in planned.denied.items() if why is None} - self._shown
        accepted = [
            Incident(flow, loss.kind, given_up(self.alias, loss))
            for loss in planned.given_up
            for flow in _concerned(flows, loss.topic)
        ]
        self._event_log.incidents.note(accepted, "continue")
        incidents = [
            *(
                Incident(flow, loss.kind, lost(self.alias, flow, loss))
                for loss in planned.losses
                for flow in _concerned(flows, loss.topic)
            ),
            *(
                Incident(flow, REFUSED, refused(self.alias, *key, reason))
                for key, reason in sorted(_refused(planned).items())
                for flow in _concerned(flows, key[0])
            ),
            *(
                Incident(flow, REFUSED, denied(self.alias, topic, planned.denied[topic]))
                for flow, selection in flows
                for topic in sorted(
                    planned.denied.keys() - self._reported_deleted(flow, unseen, ids)
                )
                if selection.selects(topic)
            ),
        ]
        error = self._report(incidents)
        self._report_deleted(flows, ids.keys() - planned.topics.keys() - planned.denied.keys(), ids)
        return waiting(self.alias, planned.open) if planned.open else error

    def gaps(self, gaps: Sequence[Gap], flows: FlowSelections) -> MirrorlakeError | None:
        """Report records that Spark left out of batches that it reported as done. Returns the error
        that operators see, if a flow is concerned."""
        return self._report(
            [
                Incident(flow, GAP, left_out(self.alias, gap))
                for gap in gaps
                for flow in _concerned(flows, gap.place.topic)
            ]
        )

    def _report(self, incidents: Sequence[Incident]) -> MirrorlakeError | None:
        """Log incidents and write them down; return the error of the first."""
        for incident in incidents[:_LOGGED]:
            logger.error("%s", incident.error)
        if len(incidents) > _LOGGED:
            logger.error(
                "landing from cluster %s: %d incidents more", self.alias, len(incidents) - _LOGGED
            )
        self._event_log.incidents.report(incidents)
        return incidents[0].error if incidents else None

    def failed(self, flows: Collection[str], problem: MirrorlakeError) -> None:
        """Report that landing as a whole failed."""
        self._event_log.incidents.report([Incident(flow, FAILED, problem) for flow in flows])

    def succeeded(self, flows: Collection[str], planned: Planned) -> None:
        """Close what is over, now that a query has read what was planned."""
        seen, refused_now = planned.topics.keys() | planned.denied.keys(), _refused(planned)

        def is_over(key: IncidentKey) -> bool:
            if key.flow not in flows or key.kind not in (FAILED, REFUSED):
                return False
            whole = key.partition is None and key.topic not in planned.denied
            return (
                key.kind == FAILED
                or key.topic not in seen
                or (whole and (key.topic, None) not in refused_now)
                or (key.topic, key.partition) in planned.plan.starts
            )

        self._event_log.incidents.close(is_over)

    def _report_deleted(
        self, flows: FlowSelections, gone: Collection[str], ids: Mapping[str, str]
    ) -> None:
        """Report a topic that was deleted at the source, whose mirror stays. It is reported once,
        and again if it was made again and deleted."""
        for flow, selection in flows if gone else ():
            known = self._reported_deleted(flow, gone, ids)
            fresh = sorted(name for name in set(gone) - known if selection.selects(name))
            for name in fresh:
                logger.warning(
                    "topic %s is not at cluster %s any more; its mirror stays", name, self.alias
                )
            rows = [
                Change("topic", name, ids[name], outcome="gone", error="deleted at the source")
                for name in fresh
            ]
            self._event_log.record(flow, rows)

    def _reported_deleted(
        self, flow: str, topics: Collection[str], ids: Mapping[str, str]
    ) -> set[str]:
        """The topics whose deletion was reported, by Kafka's ids; earlier versions noted none."""
        changes = self._event_log.history(flow, "topic") if topics else ()
        gone = {(change.resource, change.before) for change in changes if change.outcome == "gone"}
        return {topic for topic in topics if {(topic, ids.get(topic)), (topic, None)} & gone}


def _concerned(flows: FlowSelections, topic: str) -> list[str]:
    return [flow for flow, selection in flows if selection.selects(topic)]


def waiting(alias: str, names: Collection[str]) -> SourceDataLost:
    """A reminder of losses that an earlier run reported, and that still wait."""
    named = ", ".join(sorted(names))
    return SourceDataLost(
        f"of cluster {alias} wait until you decide about lost records: {named}; see mirrorlake "
        "resolve"
    )


def lost(alias: str, flow: str, loss: Loss) -> SourceDataLost:
    """The error of a loss, with the choices."""
    if loss.kind == "topic_recreated":
        loss_text = (
            f"topic {loss.topic} was deleted and made again at cluster {alias}, so its "
            "offsets start over"
        )
        waits, choice = "the topic", "new-generation"
    elif loss.kind == "source_rewound":
        loss_text = (
            f"the log of {loss.topic}-{loss.partition} at cluster {alias} went back: offsets "
            f"{loss.first} to {loss.last} were staged and are gone there, or are other records now"
        )
        waits, choice = "the partition", "new-generation"
    else:
        loss_text = (
            f"offsets {loss.first} to {loss.last} of {loss.topic}-{loss.partition} were gone at "
            f"cluster {alias} before they were landed"
        )
        waits, choice = "the partition", "continue"
    return _error(
        f"{loss_text}; {waits} waits until you decide: mirrorlake resolve --flow '{flow}' --topic "
        f"'{loss.topic}' --choice {choice} (or stop)",
        loss,
    )


def given_up(alias: str, loss: Loss) -> SourceDataLost:
    """The error of what was lost until landing went on, as an operator chose, with what is
    there."""
    return _error(
        f"offsets {loss.first} to {loss.last} of {loss.topic}-{loss.partition} were gone at "
        f"cluster {alias} too when landing went on with what is there, as was decided",
        loss,
    )


def left_out(alias: str, gap: Gap) -> ReplicationError:
    """The error of records that a batch left out, with what becomes of them."""
    topic, partition, generation = gap.place
    named = f"offsets {gap.first} to {gap.last} of {topic}-{partition}"
    if gap.count is None:
        text = (
            f"{named}, landed from cluster {alias}, may lack records: a process ended before it "
            f"was known what Spark had read of them, and the source does not say ({gap.reason})"
        )
    else:
        text = (
            f"Spark left out {gap.count} records among {named} when it landed them from cluster "
            f"{alias}, and staged what lies behind; they are landed again"
        )
    return ReplicationError(
        f"{text}: a flow that had gone on behind them lacks them at its target, which `mirrorlake "
        "verify` shows",
        topic=topic,
        partition=partition,
        first_offset=gap.first,
        last_offset=gap.last,
        generation=generation,
    )


def _error(text: str, loss: Loss) -> SourceDataLost:
    return SourceDataLost(
        text,
        topic=loss.topic,
        partition=loss.partition,
        first_offset=loss.first,
        last_offset=loss.last,
        generation=loss.generation,
    )


def denied(alias: str, topic: str, why: str | None) -> ReplicationError:
    """The error of a mirrored topic that may no longer be seen, or is not described, and `why`."""
    if why is not None:
        text = (
            f"topic {topic} is not described by cluster {alias} ({why}); the others go on, and it "
            "is asked for again"
        )
    else:
        text = (
            f"topic {topic} is not shown by cluster {alias} any more, and may not be described "
            "there: grant DESCRIBE and READ on it; or leave it out by topics_exclude, if it was "
            "deleted"
        )
    return ReplicationError(text, topic=topic)


def _refused(planned: Planned) -> dict[tuple[str, int | None], str]:
    """What is left out for now, and why: a topic that may not be read counts as a whole."""
    return {
        (topic, partition if planned.topics[topic].readable else None): why
        for (topic, partition), why in planned.refused.items()
    }


def refused(alias: str, topic: str, partition: int | None, reason: str) -> ReplicationError:
    """The error of a partition that cannot be read now; of a whole topic if `partition` is None."""
    name = f"topic {topic}" if partition is None else f"{topic}-{partition}"
    return ReplicationError(
        f"{name} cannot be read at cluster {alias} ({reason}); the others go on, and it is tried "
        "again",
        topic=topic,
        partition=partition,
    )
