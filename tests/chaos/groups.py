"""Consumer groups of the source while everything else happens: they commit positions there, and at
the target none may ever stand behind a record that its group has not read.

What is seen is kept and judged at the end, by the pairs of offsets that the two logs themselves
have then.
"""

import random
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from threading import Event, Thread
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaException, TopicPartition

GROUPS = ("readers", "billing", "audit")
#: Between two commits, seconds, at least and at most; and how many commits come before positions at
#: the target are looked at again.
PAUSE, COMMITS_PER_LOOK = (0.1, 0.6), 4


class Place(NamedTuple):
    """Where a group has a position, by the topic's name at the source."""

    group: str
    topic: str
    partition: int


class Seen(NamedTuple):
    """A position, and a moment of `time.monotonic`: before it was committed at the source, or after
    it was seen at the target."""

    at: float
    position: int


#: (source offset, target offset) of each record of a partition, in order.
Pairs = Sequence[tuple[int, int]]


class Groups(Thread):
    """Commits positions at the source until it is stopped, and looks at those of the target."""

    def __init__(
        self, east: str, west: str, partitions: Mapping[str, int], client: Mapping[str, object]
    ) -> None:
        super().__init__(name="groups", daemon=True)
        self.committed = defaultdict[Place, list[Seen]](list)
        self.seen = defaultdict[Place, list[Seen]](list)
        self._partitions = partitions
        self._random = random.Random(len(partitions))
        self._ended = Event()
        self._readers, self._at_target = (
            {
                name: Consumer(
                    {
                        **client,
                        "bootstrap.servers": servers,
                        "enable.auto.commit": False,
                        "group.id": name,
                    }
                )
                for name in GROUPS
            }
            for servers in (east, west)
        )

    def run(self) -> None:
        commits = 0
        while not self._ended.wait(self._random.uniform(*PAUSE)):
            try:
                self._commit()
                commits += 1
                if commits % COMMITS_PER_LOOK == 0:
                    self.look()
            except KafkaException:
                self._ended.wait(0.5)  # a broker is away

    def stop(self) -> None:
        """Commit once more what was committed last, since a broker may have died before it
        answered; then no more. Raises KafkaException."""
        self._ended.set()
        self.join(60)
        for place, commits in self.committed.items():
            self._send(place, commits[-1].position)

    def _commit(self) -> None:
        """Read on in one partition, up to anywhere in what is there: in the middle of a transaction
        and behind its marker, too."""
        topic = self._random.choice(list(self._partitions))
        place = Place(
            self._random.choice(GROUPS), topic, self._random.randrange(self._partitions[topic])
        )
        reader = self._readers[place.group]
        _, end = reader.get_watermark_offsets(
            TopicPartition(topic, place.partition), timeout=10, cached=False
        )
        before = max((one.position for one in self.committed[place]), default=0)
        position = self._random.choice((end, self._random.randint(before, max(before, end))))
        self._send(place, max(before, position))

    def _send(self, place: Place, position: int) -> None:
        self.committed[place].append(Seen(time.monotonic(), position))
        where = TopicPartition(place.topic, place.partition, position)
        self._readers[place.group].commit(offsets=[where], asynchronous=False)

    def look(self) -> None:
        """Keep where groups are at the target."""
        places = [
            TopicPartition(f"east.{topic}", number)
            for topic, count in list(self._partitions.items())
            for number in range(count)
        ]
        # Not by an admin client, which may crash: kafka/groups.py has a process of its own for it.
        for group, reader in self._at_target.items():
            there = reader.committed(places, timeout=10)
            now = time.monotonic()
            for one in there:
                if one.offset >= 0:
                    place = Place(group, one.topic.removeprefix("east."), one.partition)
                    self.seen[place].append(Seen(now, one.offset))

    def wrong(self, topic: str, mapped: Mapping[tuple[str, int], Pairs]) -> Iterator[str]:
        """What was wrong with positions in a topic, a sentence each. To be asked once the flow has
        caught up, groups commit no more, and `look` has seen the end."""
        for place in sorted(self.committed):
            if place.topic == topic:
                pairs = sorted(mapped.get((topic, place.partition), []))
                for what in wrong_positions(self.committed[place], self.seen[place], pairs):
                    yield f"group {place.group} in {topic}-{place.partition}: {what}"


def wrong_positions(committed: Sequence[Seen], seen: Sequence[Seen], pairs: Pairs) -> Iterator[str]:
    """Judge a group in one partition: its commits at the source, and what the target had, each in
    the order of time."""
    sources, targets = [source for source, _ in pairs], [target for _, target in pairs]
    highest = 0
    for one in seen:
        passed = bisect_left(targets, one.position)
        read = max((commit.position for commit in committed if commit.at < one.at), default=0)
        if passed and sources[passed - 1] >= read:
            yield (
                f"position {one.position} at the target is behind source offset "
                f"{sources[passed - 1]}, and the group had read up to {read} only"
            )
        if one.position < highest:
            yield f"the position moved back from {highest} to {one.position}"
        highest = max(highest, one.position)
    read = committed[-1].position
    missed = bisect_left(sources, read) - bisect_left(targets, highest)
    if missed > 0:
        yield f"the position {highest} at the end makes it read {missed} records again"
