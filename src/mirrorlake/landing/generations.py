"""What the lake knows of a source's topics: generations, how far they are landed, decisions."""

import json
from collections.abc import Collection, Mapping
from datetime import datetime, timezone
from typing import NamedTuple

from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.values import Row
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.forgotten import forgotten_ends, forgotten_from
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.reader import SINGLE_OFFSETS, Frame, Reader
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.landing.source_comparison import (
    Branch,
    CurrentGenerations,
    Decision,
    TopicGeneration,
)
from mirrorlake.offsets.positions import (
    PartitionGeneration,
    TopicAndPartition,
    by_topic,
    from_topics,
)
from mirrorlake.offsets.ranges import NO_END


def generations_of(lake: Lake, alias: str) -> CurrentGenerations:
    """The newest generation of topics, and the partitions with one of their own since."""
    rows = lake.ask("generations_of", source_cluster=alias)
    topics = {
        row["topic"]: TopicGeneration(row["generation"], row["topic_id"])
        for row in rows
        if row["partition"] is None
    }
    branches = {
        (row["topic"], row["partition"]): Branch(row["generation"], row["first_offset"])
        for row in rows
        if row["partition"] is not None and row["generation"] > topics[row["topic"]].generation
    }
    return CurrentGenerations(topics, branches)


class SinceLanded(NamedTuple):
    """Topics that were made again since they were landed, and landed ones of which the source does
    not say whether they were."""

    made_again: set[str]
    unknown: set[str]


SAME = SinceLanded(set(), set())


def since_landed(lake: Reader, source: ClusterAdmin, topics: Collection[str]) -> SinceLanded:
    """Compare some topics with the landed ones: landing reports those that were made again some
    seconds later, or when it begins. Raises ClusterUnreachable."""
    rows = lake.query_rows("generations_of", source_cluster=source.alias)
    landed = {row["topic"]: row["topic_id"] for row in rows if row["partition"] is None}
    asked = landed.keys() & topics
    there, missing = source.identities(sorted(asked))
    again = {topic for topic, found in there.items() if found.topic_id != landed[topic]}
    return SinceLanded(again, asked - there.keys() - missing)


def begin_generations(lake: Lake, alias: str, begun: Mapping[str, TopicGeneration]) -> None:
    """Note generations of topics that are new, or that an operator has let begin."""
    now = datetime.now(timezone.utc)
    rows = [
        {"source_cluster": alias, "topic": topic, "started_at": now, **vars(generation)}
        for topic, generation in begun.items()
    ]
    lake.append("generations", rows_of("generations", rows))


def begin_branches(
    lake: Lake,
    alias: str,
    branches: Mapping[TopicAndPartition, Branch],
    current: CurrentGenerations,
) -> None:
    """Note generations that partitions begin by themselves, by an operator's decision."""
    now = datetime.now(timezone.utc)
    rows = [
        {
            "source_cluster": alias,
            "topic": topic,
            "generation": branch.generation,
            "topic_id": current.topics[topic].topic_id,
            "started_at": now,
            "partition": partition,
            "first_offset": branch.first,
        }
        for (topic, partition), branch in branches.items()
    ]
    lake.append("generations", rows_of("generations", rows))


def decisions_of(lake: Lake, alias: str) -> list[Decision]:
    """The known losses at a cluster, and the decisions about them."""
    rows = lake.ask("source_decisions", source_cluster=alias, prefix=f"{alias}->")
    return [
        Decision(
            row["topic"],
            row["partition"],
            row["kind"],
            last_offset=row["last_offset"],
            open=row["open"],
            resolution=row["resolution"],
        )
        for row in rows
    ]


class LakeLandingStore:
    """What a lake, with the index of its stage, knows of one source cluster."""

    def __init__(self, lake: Lake, stage: StageFiles, alias: str) -> None:
        self._lake = lake
        self._stage = stage
        self._alias = alias
        # The epochs describe the lake's stage, whichever host landed it; checkpoints are a host's
        # own if the lake is in a store.
        self._epochs_file = lake.leases / "landing-epochs" / f"{alias}.json"

    def current_generations(self) -> CurrentGenerations:
        """The newest generation of every topic, and the partitions that have begun one since."""
        return generations_of(self._lake, self._alias)

    def begin(self, begun: Mapping[str, TopicGeneration]) -> None:
        """Note topics that are new."""
        begin_generations(self._lake, self._alias, begun)

    def decisions(self) -> Collection[Decision]:
        """The known losses, and the decisions of operators."""
        return decisions_of(self._lake, self._alias)

    def staged_ends(self) -> Mapping[TopicAndPartition, tuple[int, int]]:
        """The newest staged generation of every partition, and the offset after its last record. A
        last record that was deleted by predicate since counts: it is not landed again."""
        ends = dict(self._stage.ends(self._alias))
        for (topic, partition, generation), position in forgotten_ends(
            self._lake, self._alias
        ).items():
            ends[topic, partition] = max(
                ends.get((topic, partition), (0, 0)), (generation, position)
            )
        return ends

    def newest_batch(self) -> int:
        """The highest number of a batch that is staged, of whichever cluster; -1 without one."""
        return self._stage.newest_batch()

    def seen(self, places: Collection[PartitionGeneration]) -> Mapping[PartitionGeneration, int]:
        """How far samples saw earlier processes to have landed, transaction markers included; for a
        partition of which nothing was landed, where it began when it was seen. A partition that was
        never seen is missing."""
        rows = self._lake.ask("covered_ends", prefix=f"{self._alias}->")
        covered = {
            PartitionGeneration.from_row(row): row["covered"]
            for row in rows
            if row["covered"] is not None
        }
        return {place: covered[place] for place in places if place in covered}

    def staged_firsts(
        self, since: Mapping[TopicAndPartition, int]
    ) -> Mapping[TopicAndPartition, int]:
        """The first staged offset of each partition, in generations from a given one on."""
        with self._stage.reading() as index:
            firsts = {
                key: next(index.partition(self._alias, key).above(generation, 0), None)
                for key, generation in since.items()
            }
        return {key: first.first for key, first in firsts.items() if first is not None}

    def staged_rows(
        self, offsets: Mapping[TopicAndPartition, int], since: Mapping[TopicAndPartition, int]
    ) -> Mapping[TopicAndPartition, Row]:
        """The staged records at these offsets, one per partition, from the newest generation that
        has it, not before `since`; missing if none has."""
        asked = [(*key, offset, since[key]) for key, offset in offsets.items()]
        rows = self._lake.ask(
            "staged_rows", {"offsets": Frame(SINGLE_OFFSETS, asked)}, source_cluster=self._alias
        )
        by_key = {
            (row["topic"], row["partition"]): Row(
                row["offset"], row["ms"], row["key"], row["value"]
            )
            for row in rows
        }
        lacking = offsets.keys() - by_key.keys()
        forgotten = forgotten_from(self._lake, self._alias) if lacking else {}
        for (topic, partition, generation), ranges in forgotten.items():
            place, offset = (topic, partition), offsets.get((topic, partition), -1)
            if place in lacking and generation >= since[place] and offset in ranges:
                ((_, last),) = ranges.within(offset, NO_END)[:1]
                by_key[place] = Row(offset, 0, None, None, forgotten_to=last)
        return by_key

    def epochs(self) -> Mapping[TopicAndPartition, int]:
        """The leader epochs up to which logs match the stage; empty without the file."""
        try:
            return from_topics(json.loads(self._epochs_file.read()))
        except (FileNotFoundError, ValueError):
            return {}

    def note_epochs(self, epochs: Mapping[TopicAndPartition, int]) -> None:
        """Replace the noted epochs."""
        self._epochs_file.write(json.dumps(by_topic(epochs)).encode())
