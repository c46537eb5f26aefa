"""The offsets of a flow's logs at both clusters, as its samples ask for them: of thousands of logs,
those that stand still are asked for less often."""

import time
from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.control.topic_sync import TargetTopics
from mirrorlake.kafka.connections import Connections
from mirrorlake.offsets.known_offsets import SPREAD_FROM, KnownOffsets, spread
from mirrorlake.offsets.positions import Ends, PartitionGeneration, TopicAndPartition, partitions_of

#: Seconds between two requests for all ends, if they are more than SPREAD_FROM.
_ALL_SECONDS = 10.0


class TargetLogs(NamedTuple):
    """A flow's partitions at the source, the names of their topics at the target, and the end
    offsets there of those that exist."""

    keys: Sequence[TopicAndPartition]
    names: Mapping[str, str]
    ends: Ends


class SourceLogs(NamedTuple):
    """The starts of logs, their ends (high watermarks), and their last stable offsets."""

    starts: Mapping[TopicAndPartition, int]
    marks: Ends
    ends: Ends


class LogOffsets:
    """Asks for the offsets of one flow. For one thread."""

    def __init__(self, flow: ResolvedFlow, connections: Connections, targets: TargetTopics) -> None:
        self._flow, self._connections, self._targets = flow, connections, targets
        self._starts, self._marks, self._ends = KnownOffsets(), KnownOffsets(), KnownOffsets()
        #: The source's last stable offsets at the last sample.
        self._stable: dict[PartitionGeneration, int] = {}

    def ask_for_all(self) -> None:
        """Ask for the ends of all partitions the next time, however many they are."""
        self._marks.forget()
        self._ends.forget()

    def at_target(
        self, moving: Set[TopicAndPartition], generations: Mapping[str, int]
    ) -> TargetLogs:
        """The target's side. Of many partitions, only the `moving` ones are asked for, and all now
        and then: what another program writes there shows that much later. `generations` are those
        of the target topics."""
        target = self._connections.admin(self._flow.target)
        topics = self._connections.admin(self._flow.source).topics().items()
        selects = self._targets.selection.selects
        counts = {name: info.partitions for name, info in topics if selects(name)}
        keys, there = partitions_of(counts), target.topics()
        names = {name: self._targets.remote_topic(name) or "" for name in counts}
        mirrors = [
            (names[t], p) for t, p in keys if names[t] in there and p < there[names[t]].partitions
        ]
        ends = self._ends.of(
            time.monotonic(),
            {(name, at): (name, at, generations.get(name)) for name, at in mirrors},
            lambda asked: target.end_offsets(asked, skip_silent=True),
            {(names.get(topic, ""), at) for topic, at in moving},
            _every(len(mirrors)),
        )
        return TargetLogs(keys, names, ends)

    def at_source(
        self,
        places: Mapping[TopicAndPartition, PartitionGeneration],
        lagging: Set[TopicAndPartition],
        moved: Set[TopicAndPartition],
    ) -> SourceLogs:
        """The source's side. A partition whose leader does not answer is missing."""
        source, now = self._connections.admin(self._flow.source), time.monotonic()
        starts = self._starts.of(
            now, places, lambda asked: source.start_offsets(asked, skip_silent=True), lagging
        )
        marks = self._marks.of(
            now,
            places,
            lambda asked: source.end_offsets(asked, committed=False, skip_silent=True),
            lagging | moved,
            _every(len(places)),
        )
        # A last stable offset neither goes back nor passes the log's end: where it equalled this
        # end at the last sample it still does, unasked.
        still = {key: end for key, end in marks.items() if self._stable.get(places[key]) == end}
        asked = source.end_offsets(places.keys() - still.keys(), skip_silent=True)
        ends = {key: still.get(key, asked.get(key)) for key in places}
        known = {key: end for key, end in ends.items() if end is not None}
        self._stable = {places[key]: end for key, end in known.items()}
        return SourceLogs(starts, marks, known)


def _every(logs: int) -> float:
    """Seconds between two requests for the ends of all logs, if they are so many."""
    return 0.0 if logs <= SPREAD_FROM else spread(_ALL_SECONDS, logs)
