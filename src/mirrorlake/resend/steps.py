"""The steps that replays and restores share: find, begin, send, end."""

import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any

from mirrorlake import failpoints
from mirrorlake.control.target_generations import MADE_SECONDS, until_known
from mirrorlake.errors import ClusterUnreachable, InputError
from mirrorlake.kafka.values import TopicInfo
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.offsets.positions import Ends, PartitionGeneration, TopicAndPartition
from mirrorlake.offsets.ranges import OffsetRanges
from mirrorlake.resend import topics
from mirrorlake.resend.extras import ExtrasDone
from mirrorlake.resend.note import Kind, Resend, ResentTopic, new_id, read_notes, with_began
from mirrorlake.resend.sender import Sender, Sending, SendOutcome
from mirrorlake.run.target_losses import ends_below


@dataclass(frozen=True)
class PlannedResend:
    """A resend before its first record. `makes` are the missing target topics; `continued` means
    that it has begun before; `replaces` is one that is given up for it. `examples` are its first
    records, for a dry run; `warnings` are sentences for the operator."""

    resend: Resend
    makes: tuple[TopicInfo, ...] = ()
    continued: bool = False
    replaces: Resend | None = None
    examples: list[dict[str, Any]] = field(default_factory=list)
    warnings: tuple[str, ...] = ()


OnSent = Callable[[PlannedResend, SendOutcome], None]
"""Hears what came of a resend of which all is sent."""


class Steps:
    """The steps of resends to one cluster. The caller holds the resend's lease."""

    def __init__(self, deployment: Deployment, stage: StageFiles, target: str) -> None:
        self.deployment, self.stage, self.event_log = deployment, stage, deployment.event_log
        self.admin = deployment.connections.admin(target)

    def find(self, kind: Kind, source: str, request: Mapping[str, Any]) -> Resend | None:
        """The oldest resend of the same request that has begun and not ended; None without one."""
        return next(iter(self.find_all(kind, source, request)), None)

    def find_all(self, kind: Kind, source: str, request: Mapping[str, Any]) -> list[Resend]:
        """All such resends, oldest first."""
        begun = read_notes(self.deployment.lake.ask("resends", kind=kind))
        return [resend for resend in begun if resend.answers(source, self.admin.alias, request)]

    def new(
        self,
        kind: Kind,
        source: str,
        request: Mapping[str, Any],
        parts: tuple[ResentTopic, ...],
        time_zone: str = "UTC",
    ) -> Resend:
        """A resend that has not begun. Raises ClusterUnreachable."""
        return Resend(
            kind,
            new_id(datetime.now(timezone.utc)),
            source,
            self.admin.alias,
            target_id=self.admin.cluster_id(),
            request=request,
            parts=parts,
            time_zone=time_zone,
        )

    def check_can_go_on(self, known: Resend, time_zone: str | None = None) -> None:
        """Raise InputError if the conditions under which a resend began have changed since."""
        comparisons = [(known.target_id, self.admin.cluster_id(), "cluster")]
        comparisons += [(known.time_zone, time_zone, "time zone")] if time_zone is not None else []
        for was, now, what in comparisons:
            if was != now:
                raise InputError(
                    f"{known.name} began with {what} {was}, and now it is {now}: it cannot go on; "
                    "start over with --start-over"
                )
        self._check_targets(known)

    def _check_targets(self, resend: Resend) -> Ends:
        """Raise InputError if sent records are gone, which the map still has. Returns the end of
        what was sent by target partition."""
        for name in sorted(topics.made_again(self.admin, resend.parts)):
            raise InputError(
                f"topic {name} of cluster {self.admin.alias} was deleted, or made again, since "
                f"{resend.name} began, and what was sent there is gone with it: it cannot go on; "
                "start over with --start-over"
            )
        mapped, lost = self.lost_ends(resend)
        for (topic, partition), end in sorted(lost.items()):
            raise InputError(
                f"{topic}-{partition} of cluster {self.admin.alias} ends at offset {end}, and "
                f"{resend.name} had sent records up to {mapped[topic, partition]}: the cluster has "
                "lost what it had acknowledged; start over with --start-over"
            )
        return mapped

    def _check_still_there(self, resend: Resend) -> None:
        """Raise if records are not there, or that is not reported. Later calls check again."""
        mapped = self._check_targets(resend)
        answers = self.admin.end_offsets(mapped.keys(), committed=False, skip_silent=True)
        for topic, partition in sorted(mapped.keys() - answers.keys()):
            raise ClusterUnreachable(
                f"cluster {self.admin.alias} does not say where {topic}-{partition} ends, so it is "
                f"not known whether all that {resend.name} has sent is there; give the same "
                "command again",
                alias=self.admin.alias,
            )

    def lost_ends(self, resend: Resend) -> tuple[Ends, Ends]:
        """The ends of what a resend has sent, by target partition, in topics that still exist; and
        the ends of logs that have lost some of it."""
        mapped: dict[TopicAndPartition, int] = {}
        for row in self.deployment.lake.ask("mapped_ends", flow=resend.name):
            key = (row["target_topic"], row["partition"])
            mapped[key] = max(row["target_position"], mapped.get(key, 0))
        there = self.admin.topics() if mapped else {}
        mapped = {key: end for key, end in mapped.items() if key[0] in there}

        def ends(places: Collection[TopicAndPartition]) -> Ends:
            return self.admin.end_offsets(places, committed=False, skip_silent=True)

        return mapped, ends_below(ends, mapped)

    def staged_topics(self) -> dict[str, set[str]]:
        """The topics that the stage has of each cluster of the file."""
        with self.stage.reading() as index:
            clusters = self.deployment.connections.topology.clusters
            return {cluster: set(index.topics(cluster)) for cluster in clusters}

    def carry_out(
        self,
        planned: PlannedResend,
        sending: Sending,
        stop: threading.Event,
        rest: Callable[[Resend], ExtrasDone] = lambda _resend: ExtrasDone(),
        on_sent: OnSent = lambda _planned, _outcome: None,
    ) -> tuple[PlannedResend, SendOutcome]:
        """Make topics, note what is sent, send, do the rest, call `on_sent` with the outcome, note
        the end: each once, even if the process is killed. Until the end is noted, the same call
        gives the outcome again and sends nothing."""
        resend = planned.resend if planned.continued else self._begin(planned)
        planned = replace(planned, resend=resend)
        outcome = Sender(self.deployment, self.stage, resend, sending).send(stop)
        if outcome.complete:
            self._check_still_there(resend)
            failpoints.reached("resend-sent")
            outcome.extras = rest(resend)
            outcome.complete = outcome.extras.complete
        if outcome.complete:
            outcome.unexplained = self._unexplained(resend, outcome.records)
            on_sent(planned, outcome)
            failpoints.reached("resend-told")
            self.event_log.record(resend.name, resend.ended(outcome.records))
        return planned, outcome

    def _unexplained(self, resend: Resend, records: Mapping[str, int]) -> tuple[str, ...]:
        """The target topics that have more records than were picked, or fewer by more than the
        stage may have lost since. Those picked one by one are parked, and stay in the stage."""
        parts = [part for part in resend.parts if not part.picked]
        differing = [part for part in parts if records.get(part.target_topic, 0) != part.records]
        if not differing:
            return ()
        gone: dict[PartitionGeneration, OffsetRanges] = defaultdict(OffsetRanges)
        for row in self.deployment.lake.ask(
            "not_in_stage", source_cluster=resend.source, flow=resend.name
        ):
            offsets = (row["first_offset"], row["last_offset"])
            gone[PartitionGeneration.from_row(row)].add([offsets])
        missing = {part: part.records - records.get(part.target_topic, 0) for part in differing}
        return tuple(
            part.target_topic
            for part, count in missing.items()
            if not 0 <= count <= _gone_of(part, gone)
        )

    def give_up_replaced(self, planned: PlannedResend) -> None:
        """Note that the resend which this one replaces is not continued."""
        if planned.replaces is not None:
            self.event_log.record(planned.replaces.name, planned.replaces.given_up())

    def _begin(self, planned: PlannedResend) -> Resend:
        """Make the target topics, and note what is sent: from here on that is fixed."""
        resend = planned.resend
        self.give_up_replaced(planned)
        if planned.makes:
            topics.make_topics(self.admin, self.event_log, resend.name, planned.makes)
        made = {topic.name: (0,) * topic.partitions for topic in planned.makes}
        there = self.admin.topics() if len(made) < len(resend.parts) else {}
        present = {
            name: there[name].partitions for name in resend.names.values() if name not in made
        }
        ends = {**made, **topics.ends_of_topics(self.admin, present)}
        identities, _ = until_known(self.admin, resend.names.values(), MADE_SECONDS)
        ids = {name: topic.topic_id for name, topic in identities.items()}
        resend = with_began(resend, ends, ids)
        self.event_log.record(resend.name, resend.began())
        failpoints.reached("resend-begun")
        return resend


def _gone_of(part: ResentTopic, gone: Mapping[PartitionGeneration, OffsetRanges]) -> int:
    """How many of some offsets lie within a part's ranges: at most so many records."""
    none = OffsetRanges()
    return sum(gone.get(sent.place, none).count(sent.first, sent.last) for sent in part.ranges)
