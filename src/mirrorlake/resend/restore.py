"""A restore: writes topics, as staged or staged below a cut, where they are empty or missing."""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

from mirrorlake.config.flow import Flow
from mirrorlake.errors import InputError
from mirrorlake.kafka.values import TopicInfo
from mirrorlake.lake.as_of import staged_as_of
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.lease import Lease
from mirrorlake.lake.other_logs import begun_from
from mirrorlake.lake.reader import OFFSET_RANGES, SINGLE_OFFSETS, Frame
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.lake.states import ALWAYS, states_as_of
from mirrorlake.lake.table_upkeep import removals_from
from mirrorlake.lake.topic_states import TopicState
from mirrorlake.mm2.heartbeat_topics import KeyAndValue, are_heartbeats, may_be_heartbeats
from mirrorlake.naming.selection import matches_any
from mirrorlake.offsets.generations import Begun
from mirrorlake.offsets.partition_ranges import PartitionRanges, StagedRange
from mirrorlake.offsets.positions import PartitionGeneration, TopicAndPartition, partitions_of
from mirrorlake.produce.batch_report import BatchReport
from mirrorlake.resend import topics
from mirrorlake.resend.compaction import Compaction
from mirrorlake.resend.cut import Moment, RestoreRequest, ends_as_of, ends_of, ranges_below
from mirrorlake.resend.extras import Extras, ExtrasDone
from mirrorlake.resend.note import Resend, ResentTopic
from mirrorlake.resend.removed import not_in_stage
from mirrorlake.resend.sender import Sending, SendOutcome
from mirrorlake.resend.steps import OnSent, PlannedResend, Steps


class Restore:
    """One restore over a lake that was opened by its topology file. The source is never queried."""

    def __init__(self, deployment: Deployment, stage: StageFiles, asked: RestoreRequest) -> None:
        self._lake, self._connections = deployment.lake, deployment.connections
        self._asked, self._steps = asked, Steps(deployment, stage, asked.target)
        self._naming = self._connections.topology.naming(asked.source, Flow(policy=asked.rename))

    @cached_property
    def begun(self) -> tuple[Begun, ...]:
        """The generations of the source's topics."""
        return begun_from(self._lake.now, self._asked.source)

    def below(self, offsets: Mapping[TopicAndPartition, int]) -> Moment:
        """The ends of all that is staged now, or below some offsets. Raises InputError."""
        with self._steps.stage.reading() as index:
            ends = ends_of(index.topics(self._asked.source), self.begun, offsets)
        return Moment(ends, self._steps.event_log.states.newest(self._asked.source, fresh=True))

    def as_of(self, until_ms: int) -> Moment:
        """What the lake had of the source at a time, and later records with a timestamp up to that
        time. A transaction of the source is there as a whole or not at all."""
        source, reader = self._asked.source, self._lake.now
        held = staged_as_of(reader, source, until_ms)
        with self._steps.stage.reading() as index:
            ends = ends_as_of(
                index.topics(source),
                {key: (staged_end.generation, staged_end.end) for key, staged_end in held.items()},
            )
        unproven = frozenset(key[0] for key, staged_end in held.items() if not staged_end.whole)
        staged = {key[0] for key, staged_end in held.items() if staged_end.newest_ms is not None}
        return Moment(ends, states_as_of(reader, source, until_ms, staged), unproven)

    def plan(self, cut: Callable[[], Moment]) -> PlannedResend:
        """What would be sent. Raises InputError for a restore that is not possible.

        Args:
            cut: gives the cut; called only if no earlier call has fixed it.
        """
        asked, steps = self._asked, self._steps
        known = steps.find("restore", asked.source, asked.request)
        if known is not None and not asked.start_over:
            steps.check_can_go_on(known)
            return PlannedResend(known, continued=True, warnings=_unproven(known))
        moment = cut()
        with self._steps.stage.reading() as index:
            staged = index.topics(asked.source)
            ranges = ranges_below(asked.source, staged, self.begun, moment.ends)
            heartbeats = self._heartbeats({*staged, *moment.states}, staged)
        there = moment.states.keys() | {topic for topic, items in ranges.items() if items}
        wanted = sorted(topic for topic in there if self._wants(topic, heartbeats))
        self._check_patterns(wanted)
        ranges = self._counted({topic: ranges.get(topic, []) for topic in wanted})
        parts = tuple(
            ResentTopic(
                topic,
                self._naming.target_topic(topic),
                tuple(ranges[topic]),
                unproven=topic in moment.unproven,
            )
            for topic in wanted
        )
        makes = self._check(parts, moment.states)
        resend = steps.new("restore", asked.source, asked.request, parts)
        return PlannedResend(resend, makes, False, known, warnings=_unproven(resend))

    def _heartbeats(
        self, topics: Collection[str], staged: Mapping[str, Mapping[int, PartitionRanges]]
    ) -> frozenset[str]:
        """Which of these topics hold heartbeats, by the first staged record of each partition."""
        named = {name for name in topics if may_be_heartbeats(name)}
        firsts = [
            (name, partition, first.first, first.generation)
            for name in sorted(named & staged.keys())
            for partition, ranges in staged[name].items()
            if (first := next(ranges.above(0, 0), None)) is not None
        ]
        records_by_topic: dict[str, list[KeyAndValue]] = {name: [] for name in named}
        frames, alias = {"offsets": Frame(SINGLE_OFFSETS, firsts)}, self._asked.source
        for row in self._lake.ask("staged_rows", frames, source_cluster=alias) if firsts else ():
            records_by_topic[row["topic"]].append((row["key"], row["value"]))
        return frozenset(
            name for name, records in records_by_topic.items() if are_heartbeats(records, name)
        )

    def _wants(self, topic: str, heartbeats: Collection[str]) -> bool:
        """Whether a topic is requested, and not internal: those are made by what needs them."""
        own = topic in heartbeats or self._naming.is_internal(topic)
        return not own and matches_any(self._asked.topics, topic)

    def _check_patterns(self, wanted: Collection[str]) -> None:
        """Raise InputError for a pattern that matches none of the topics to restore."""
        for pattern in self._asked.topics:
            if not any(matches_any((pattern,), topic) for topic in wanted):
                raise InputError(
                    f"the lake has no topic of cluster {self._asked.source} that {pattern} matches;"
                    " internal ones and heartbeats are not restored"
                )

    def _counted(self, ranges: Mapping[str, list[StagedRange]]) -> dict[str, list[StagedRange]]:
        """The ranges with exact counts of their records."""
        asked = [staged_range for of_topic in ranges.values() for staged_range in of_topic]
        if not asked:
            return dict(ranges)
        if self._asked.compacted:
            counts = self._compaction(asked).counts()
        else:
            counts = {
                PartitionGeneration.from_row(row): row["record_count"]
                for row in self._staged(asked)
            }
        return {
            topic: [each._replace(record_count=counts.get(each.place, 0)) for each in of_topic]
            for topic, of_topic in ranges.items()
        }

    def _staged(self, ranges: Sequence[StagedRange]) -> Sequence[Mapping[str, Any]]:
        """The stage's records within ranges, but for those that `forget` has noted, summed up."""
        asked = [(*each.place, each.first, each.last) for each in ranges]
        frames = {"ranges": Frame(OFFSET_RANGES, asked)}
        return self._lake.ask("staged_within", frames, cluster=self._asked.source, noted_too=False)

    def reached(self, resend: Resend) -> list[dict[str, Any]]:
        """How far partitions are restored: source offset, oldest and newest record's time, ms."""
        rows = self._staged(resend.ranges) if resend.ranges else ()
        by_partition: dict[TopicAndPartition, dict[str, Any]] = {}
        for row in sorted(rows, key=PartitionGeneration.from_row):
            key = row["topic"], row["partition"]
            before = by_partition.get(key, row)
            by_partition[key] = {
                "topic": row["topic"],
                "partition": row["partition"],
                "end": row["last_offset"] + 1,
                "oldest_ms": min(row["oldest_ms"], before["oldest_ms"]),
                "newest_ms": max(row["newest_ms"], before["newest_ms"]),
            }
        return list(by_partition.values())

    def plan_extras(self, resend: Resend) -> ExtrasDone:
        """What would be done beside the records, once they are sent."""
        done = self._extras.plan(resend, self.begun, self._oldest(resend))
        return self._with_removed(resend, done)

    def _carry_out_extras(self, resend: Resend) -> ExtrasDone:
        done = ExtrasDone()
        if self._asked.extras:
            done = self._extras.carry_out(resend, self.begun, self._oldest(resend))
        return self._with_removed(resend, done)

    def _with_removed(self, resend: Resend, done: ExtrasDone) -> ExtrasDone:
        """What was done, with what the stage lacks of the restored topics among the sentences."""
        removals = removals_from(self._lake, self._asked.source)
        with self._steps.stage.reading() as index:
            staged = index.topics(self._asked.source)
            done.warnings += not_in_stage(resend.parts, removals, staged)
        return done

    @property
    def _extras(self) -> Extras:
        until_ms = ALWAYS if self._asked.until_ms is None else self._asked.until_ms
        return Extras(
            self._steps.deployment,
            self._naming,
            self._asked.target,
            what=self._asked.extras,
            until_ms=until_ms,
        )

    def _oldest(self, resend: Resend) -> dict[str, int]:
        newest_first = sorted(self.reached(resend), key=lambda row: row["oldest_ms"], reverse=True)
        return {row["topic"]: row["oldest_ms"] for row in newest_first}

    def _compaction(self, ranges: Sequence[StagedRange]) -> Compaction:
        folder = self._lake.checkpoints / "restore" / f"{self._asked.source}-{self._asked.target}"
        return Compaction(self._lake, ranges, folder)

    def _check(
        self, parts: tuple[ResentTopic, ...], states: Mapping[str, TopicState]
    ) -> tuple[TopicInfo, ...]:
        """The target topics to make. Raises InputError if one cannot be made, or is not empty."""
        there = self._steps.admin.topics()
        written = topics.written_by_flows(
            self._connections.topology, self._asked.target, self._steps.staged_topics()
        )
        stated = topics.Stated(self._steps.admin)
        makes, present, names = [], {}, set()
        for part in parts:
            name = part.target_topic
            topics.check_name(name)
            if name in names:
                raise InputError(f"two topics would be named {name}; choose another --rename")
            names.add(name)
            if name in written:
                raise InputError(
                    f"flow {written[name]} writes to topic {name}: it brings there what is staged "
                    "by itself"
                )
            state = states.get(part.topic)
            needed = max((staged_range.partition + 1 for staged_range in part.ranges), default=1)
            made = stated.topic(name, state, needed, topics.made_with(state))
            topics.check_partitions(there.get(name), made.partitions, part.topic)
            if name in there:
                present[name] = there[name].partitions
            else:
                makes.append(made)
        self._check_empty(present)
        self._check_kept([part for part in parts if part.target_topic in present])
        return tuple(makes)

    def _check_empty(self, present: Mapping[str, int]) -> None:
        places = partitions_of(present)
        starts = self._steps.admin.start_offsets(places)
        ends = self._steps.admin.end_offsets(places, committed=False)
        for name, partition in places:
            if ends[name, partition] > starts[name, partition]:
                raise InputError(
                    f"topic {name} of cluster {self._asked.target} holds records; delete it, or "
                    "name the restored ones otherwise with --rename"
                )

    def _check_kept(self, parts: Sequence[ResentTopic]) -> None:
        names = {part.topic: part.target_topic for part in parts}
        ranges = [each for part in parts for each in part.ranges]
        rows = sorted(self._staged(ranges) if ranges else (), key=lambda row: -row["oldest_ms"])
        oldest = {names[row["topic"]]: row["oldest_ms"] for row in rows}
        topics.check_kept(self._steps.admin, oldest)

    def run(
        self,
        cut: Callable[[], Moment],
        stop: threading.Event,
        report: Callable[[BatchReport], None],
        on_sent: OnSent,
    ) -> tuple[PlannedResend, SendOutcome]:
        """Send, or continue a killed restore. Raises InputError, LeaseTaken, ReplicationError."""
        with Lease(self._lake, f"restore to {self._asked.target}"):
            planned = self.plan(cut)
            rest = self._carry_out_extras
            if not (self._asked.compacted and planned.resend.ranges):
                return self._steps.carry_out(planned, Sending(report=report), stop, rest, on_sent)
            compaction = self._compaction(planned.resend.ranges)
            compaction.write()
            try:
                sending = Sending(compaction.select, report=report)
                return self._steps.carry_out(planned, sending, stop, rest, on_sent)
            finally:
                compaction.forget()


def _unproven(resend: Resend) -> tuple[str, ...]:
    return tuple(
        f"{part.topic}: a transaction of its cluster may be restored in part, since it is not "
        "known which were open then (docs/restore.md)"
        for part in resend.parts
        if part.unproven
    )
