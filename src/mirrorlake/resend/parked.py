"""A replay of parked records: once refused, they are sent to the flow's own topics after its limits
were raised, out of order: later records of their partitions are at the target already."""

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.errors import InputError
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.lease import Lease
from mirrorlake.lake.reader import Frame
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.lake.targets import stopped_targets
from mirrorlake.offsets.partition_ranges import StagedRange
from mirrorlake.offsets.positions import PartitionGeneration
from mirrorlake.produce.batch_report import BatchReport
from mirrorlake.resend.extras import ExtrasDone
from mirrorlake.resend.matches import REPLAY_HEADER, of_picked
from mirrorlake.resend.note import Picked, Resend, ResentTopic
from mirrorlake.resend.sender import Sender, Sending, SendOutcome
from mirrorlake.resend.steps import PlannedResend, Steps
from mirrorlake.resend.topics import made_again
from mirrorlake.run.flow_spec import provenance_of

#: Why parked records of a target topic that is gone, or was made again, are not sent.
_STOPPED = "its mirroring was stopped by a decision: nothing sends them"
_UNDECIDED = (
    "the flow does not write to it until that is decided (mirrorlake resolve), and then goes on"
)
#: A parked record that was sent: topic, partition, generation, offset, target topic.
SentRow = tuple[str, int, int, int, str]
_SENT = "topic STRING, partition INT, generation INT, offset BIGINT, target_topic STRING"


@dataclass(frozen=True)
class ParkedReplayRequest:
    """A request for a flow's parked records: of one topic, named as at the source, or all (None).

    A replay that has begun is continued first, whatever its topic: two at a time would each send
    what the other has not noted.
    """

    flow: ResolvedFlow
    topic: str | None = None
    start_over: bool = False

    @property
    def request(self) -> dict[str, Any]:
        """What identifies the same replay."""
        return {"parked": self.flow.name}


class ParkedReplay:
    """One replay of parked records over a lake that was opened by its topology file."""

    def __init__(
        self, deployment: Deployment, stage: StageFiles, asked: ParkedReplayRequest
    ) -> None:
        self._lake, self._asked = deployment.lake, asked
        self._steps = Steps(deployment, stage, asked.flow.target)
        self._taken = set[SentRow]()  # by any plan of this call

    def plan(self) -> PlannedResend:
        """What would be sent. Raises InputError if a target topic does not exist."""
        flow, steps = self._asked.flow, self._steps
        known = steps.find("replay", flow.source, self._asked.request)
        if known is not None and not self._asked.start_over:
            steps.check_can_go_on(known)
            self._taken.update(_picked_of(known))
            return PlannedResend(known, continued=True)
        return self._planned(() if known is None else self._still_there(known), replaces=known)

    def plans(self) -> list[PlannedResend]:
        """What would be sent: by a replay that has begun, and behind it. Raises InputError."""
        planned = self.plan()
        return [planned, self._behind(planned.resend)] if planned.continued else [planned]

    def _behind(self, known: Resend) -> PlannedResend:
        """What is sent once a replay that has begun is over: what it did not pick."""
        return self._planned(_picked_of(known))

    def _planned(self, without: Iterable[SentRow], replaces: Resend | None = None) -> PlannedResend:
        flow, steps, others = self._asked.flow, self._steps, frozenset(without)
        waiting = [row for row in self._waiting() if row["lives"] and sent_row(row) not in others]
        there = steps.admin.topics()
        waiting = _of_one_topic(waiting, flow.target_topic, there)
        self._taken.update(map(sent_row, waiting))
        parts = parts_of(flow.source, waiting)
        for part in parts:
            if part.target_topic not in there:
                raise InputError(
                    f"topic {part.target_topic} of cluster {flow.target} is not there; let the "
                    "flow make it"
                )
        resend = steps.new("replay", flow.source, self._asked.request, parts)
        return PlannedResend(resend, (), False, replaces)

    def _waiting(self) -> list[dict[str, Any]]:
        """What is parked of the topics of the request, in the order of offsets."""
        rows = self._lake.ask("parked_waiting", flow=self._asked.flow.name)
        return [row for row in rows if self._asked.topic in (None, row["topic"])]

    def held(self) -> list[str]:
        """A sentence for each target topic whose parked records are not sent now."""
        flow, waiting = self._asked.flow, self._waiting()
        held = Counter((row["topic"], row["target_topic"]) for row in waiting if not row["lives"])
        earlier = Counter(
            (row["topic"], row["target_topic"])
            for row in waiting
            if row["lives"] and sent_row(row) not in self._taken
            if row["target_topic"] != flow.target_topic(row["topic"])
        )
        stopped = stopped_targets(self._lake, flow.name) if held else set()
        return [
            f"{topic}: {count:,} records stay parked that topic {target} of cluster {flow.target} "
            "refused, which the flow mirrored to before: give the command again, as long as that "
            "topic is there"
            for (topic, target), count in sorted(earlier.items())
        ] + [
            f"{topic}: {count:,} records stay parked, since topic {target} of cluster "
            f"{flow.target} was deleted, or made again, and {why}"
            for (topic, target), count in sorted(held.items())
            for why in [_STOPPED if (topic, target) in stopped else _UNDECIDED]
        ]

    def run(
        self, stop: threading.Event, rate: int | None, report: Callable[[BatchReport], None]
    ) -> list[tuple[PlannedResend, SendOutcome]]:
        """Send what the target takes now; what it refuses again stays parked. Continues a killed
        one, then sends what that left. Raises InputError, LeaseTaken, ReplicationError."""
        flow = self._asked.flow
        with Lease(self._lake, f"replay of what flow {flow.name} has parked"):
            planned = self.plan()
            if planned.replaces is not None and planned.resend.records:
                mapped = self._map_what_was_sent(planned.replaces, stop, report)
                if not mapped.complete:  # what the map lacks would be sent twice
                    return [(PlannedResend(planned.replaces, continued=True), mapped)]
                planned = self.plan()
            if planned.replaces is not None:
                self._note(self._still_there(planned.replaces))
            sent = [self._carry_out(planned, stop, rate, report)]
            if planned.continued and sent[0][1].complete:
                sent.append(self._carry_out(self._behind(planned.resend), stop, rate, report))
            return sent

    def _carry_out(
        self,
        planned: PlannedResend,
        stop: threading.Event,
        rate: int | None,
        report: Callable[[BatchReport], None],
    ) -> tuple[PlannedResend, SendOutcome]:
        if not planned.resend.records:
            self._steps.give_up_replaced(planned)
            return planned, SendOutcome(complete=True)
        sending = self._sending(planned.resend, rate, report)
        return self._steps.carry_out(planned, sending, stop, self._note_sent)

    def _sending(
        self, resend: Resend, rate: int | None, report: Callable[[BatchReport], None]
    ) -> Sending:
        picked = [(part.topic, *place) for part in resend.parts for place in part.picked]
        return Sending(
            of_picked(self._lake.spark, picked, resend.id),
            (REPLAY_HEADER, resend.id.encode()),
            rate,
            report,
            goes_on=True,
            provenance=provenance_of(self._asked.flow, self._steps.deployment),
        )

    def _map_what_was_sent(
        self, known: Resend, stop: threading.Event, report: Callable[[BatchReport], None]
    ) -> SendOutcome:
        """Write the missing map rows of a process that was killed behind its last transaction: the
        replay that starts over leaves out mapped records."""
        left = self._living(known)
        if known.target_id != self._steps.admin.cluster_id() or not left.parts:
            return SendOutcome(complete=True)
        sending = replace(self._sending(left, None, report), restores_only=True)
        return Sender(self._steps.deployment, self._steps.stage, left, sending).send(stop)

    def _living(self, resend: Resend) -> Resend:
        """The resend without parts whose target topics are gone, or were made again."""
        again = made_again(self._steps.admin, resend.parts)
        parts = tuple(part for part in resend.parts if part.target_topic not in again)
        return replace(resend, parts=parts)

    def _still_there(self, resend: Resend) -> list[SentRow]:
        """What a given-up replay has sent and the target still has. Records lost with their topic,
        or by the target, are neither noted as sent nor left out by the new replay."""
        ends = self._steps.lost_ends(resend)[1]
        segments = [
            _in_front_of(row, ends.get((resend.names[row["topic"]], row["partition"])))
            for row in self._lake.ask("resent_segments", flow=resend.name)
        ]
        return sent_of(self._living(resend), segments)

    def _note_sent(self, resend: Resend) -> ExtrasDone:
        """Note in `parked` which records were sent; repeating it changes nothing."""
        self._note(sent_of(resend, self._lake.ask("resent_segments", flow=resend.name)))
        return ExtrasDone()

    def _note(self, rows: list[SentRow]) -> None:
        if rows:
            self._lake.change(
                "note_parked_sent", {"sent": Frame(_SENT, rows)}, flow=self._asked.flow.name
            )


def _in_front_of(segment: dict[str, Any], end: int | None) -> dict[str, Any]:
    """The part of a segment in front of the end of a target's log; None: all of it."""
    count = segment["record_count"]
    left = count if end is None else min(count, max(0, end - segment["target_first"]))
    return {**segment, "record_count": left}


def _picked_of(resend: Resend) -> list[SentRow]:
    return [
        (part.topic, *place, part.target_topic) for part in resend.parts for place in part.picked
    ]


def _of_one_topic(
    rows: Sequence[dict[str, Any]], now: Callable[[str], str], there: Collection[str]
) -> list[dict[str, Any]]:
    """The rows of one target topic of each source topic, as a resend has it: of the one of `now`,
    else of one that the flow mirrored to before, as under another policy, and that is `there`."""
    chosen: dict[str, str] = {}
    for row in rows:
        topic, target = row["topic"], row["target_topic"]
        if target == now(topic):
            chosen[topic] = target
        elif target in there:
            chosen.setdefault(topic, target)
    return [row for row in rows if chosen.get(row["topic"]) == row["target_topic"]]


def sent_row(row: dict[str, Any]) -> SentRow:
    """A row of `parked` in the form that `sent_of` returns."""
    names = ("topic", "partition", "generation", "offset", "target_topic")
    return tuple(row[name] for name in names)


def parts_of(source: str, rows: Iterable[dict[str, Any]]) -> tuple[ResentTopic, ...]:
    """Rows of `parked`, in the order of offsets, as parts of a resend."""
    places: dict[tuple[str, str], list[Picked]] = defaultdict(list)
    for row in rows:
        places[row["topic"], row["target_topic"]].append(
            (row["partition"], row["generation"], row["offset"])
        )
    return tuple(
        ResentTopic(topic, target, _ranges(source, topic, picked), picked=tuple(picked))
        for (topic, target), picked in sorted(places.items())
    )


def _ranges(source: str, topic: str, picked: Sequence[Picked]) -> tuple[StagedRange, ...]:
    offsets: dict[tuple[int, int], list[int]] = defaultdict(list)
    for partition, generation, offset in picked:
        offsets[partition, generation].append(offset)
    return tuple(
        StagedRange(
            source, topic, partition, generation, first=min(of), last=max(of), record_count=len(of)
        )
        for (partition, generation), of in sorted(offsets.items())
    )


def sent_of(resend: Resend, segments: Iterable[dict[str, Any]]) -> list[SentRow]:
    """The records of a resend that are in its map."""
    mapped: dict[PartitionGeneration, set[int]] = defaultdict(set)
    for row in segments:
        first, stride = row["source_first"], row["stride"]
        offsets = range(first, first + row["record_count"] * stride, stride)
        mapped[PartitionGeneration.from_row(row)].update(offsets)
    return [
        (part.topic, partition, generation, offset, part.target_topic)
        for part in resend.parts
        for partition, generation, offset in part.picked
        if offset in mapped[PartitionGeneration(part.topic, partition, generation)]
    ]
