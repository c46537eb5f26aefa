"""A flow whose tables are real ones, in a folder, and whose clusters are lists: many topics at once
go through land, produce, compare, lose and make again, each its own way.

What the tables say is what the package's own code wrote, and what it makes of them; how records
come there is a model of it, in a few lines. An oracle knows every record of both sides.
"""

import random
import shutil
import threading
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from mirrorlake.control.target_generations import TargetGenerations
from mirrorlake.errors import InputError, SourceDataLost, StageTrimmed, TargetRefused
from mirrorlake.forget.forget import forget
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.values import Row
from mirrorlake.lake import maintain
from mirrorlake.lake.decisions import Decided
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.forgotten import forgotten_from
from mirrorlake.lake.incidents import Incident, Incidents
from mirrorlake.lake.map_store import LakeMap
from mirrorlake.lake.table_upkeep import merge_map, removals_from
from mirrorlake.lake.targets import LivingMirror, noted_targets
from mirrorlake.landing.generations import begin_generations, decisions_of, generations_of
from mirrorlake.landing.source_comparison import TopicGeneration
from mirrorlake.offsets.generations import newest_of
from mirrorlake.offsets.parked import Parked
from mirrorlake.offsets.positions import PartitionGeneration, TopicAndPartition
from mirrorlake.offsets.progress import Floor, floors_of
from mirrorlake.run.target_losses import MappedLoss, log_ends_below, loss_errors, take_out
from mirrorlake.testing import MemoryCluster
from mirrorlake.verify import auditor, coverage, scope, target_side
from mirrorlake.verify.digest import RECORDS
from mirrorlake.verify.in_flight import TargetPosition
from mirrorlake.verify.job import Compared, Range, RangeReader
from mirrorlake.verify.outcome import Outcome
from mirrorlake.verify.plan import Choice
from mirrorlake.verify.verdict import WHOLE
from tests.support.lake_rows import FLOW, no_session, opened, write_file

Record = tuple[int, int]
"""A record of a partition: generation and offset."""


@dataclass
class MadeLog:
    """A log: contents by offset, None where there is a marker, of a topic that was made with this
    id."""

    topic_id: str
    entries: list[bytes | None] = field(default_factory=list)
    start: int = 0

    @property
    def end(self) -> int:
        """Behind the last one."""
        return len(self.entries)

    def rows(self, first: int, end: int) -> list[tuple[int, bytes]]:
        """Records with their offsets."""
        part = range(max(first, self.start), min(end, self.end))
        return [(at, value) for at in part if (value := self.entries[at]) is not None]


@dataclass
class Mirrored:
    """A partition on its way.

    `origin` has every record that landing has come over, as the source had it, and `staged` those
    that the stage got, by generation and offset. `written` are records that the target has and the
    map does not. `unseen` says that the target has changed, and that the flow did not look since;
    `spoilt` are records that were changed somewhere. `unmapped` are those that the target has and
    an older lake does not know of, until they are found.
    """

    key: TopicAndPartition
    source: MadeLog
    target: MadeLog
    origin: dict[Record, bytes] = field(default_factory=dict)
    staged: dict[Record, bytes] = field(default_factory=dict)
    landed: Record = (0, 0)
    rewound: int | None = None
    written: list[tuple[Record, int]] = field(default_factory=list)
    position: TargetPosition | None = None
    unseen: bool = False
    spoilt: bool = False
    count: int = 0
    leaves_out: int | None = None
    unmapped: list[tuple[Record, int]] | None = None


@dataclass
class Turn:
    """What a flow goes by in a turn, and what comes of it."""

    chance: random.Random
    decided: Decided
    removals: Mapping[PartitionGeneration, int]
    forgotten: Mapping[PartitionGeneration, Any]
    parked: Collection[tuple[str, int, int, int, int]]
    problems: list[Incident] = field(default_factory=list)
    to_park: list[Parked] = field(default_factory=list)


class Reading:
    """Stands for a `LogReader` over lists."""

    def __init__(self, side: str, world: "ProvenWorld") -> None:
        self.start, self._side, self._world = 0, side, world

    def read(self, key: TopicAndPartition, first: int, end: int) -> Iterator[pa.RecordBatch]:
        """Records as RECORDS."""
        log = self._world.log(self._side, key)
        self.start = log.start
        rows = log.rows(first, end)
        if rows:
            yield pa.RecordBatch.from_pylist(
                [
                    {"offset": at, "timestamp": 1_000, "key": b"k", "value": value, "headers": []}
                    for at, value in rows
                ],
                RECORDS,
            )


class ProvenWorld:
    """See the head of this module."""

    def __init__(
        self, directory: Path, patches: pytest.MonkeyPatch, topics: int, partitions: int = 2
    ) -> None:
        self.file = write_file(directory, flows={FLOW: {}})
        self.made = 0
        self.source, self.target = MemoryCluster("east"), MemoryCluster("west")
        self._open_lake()
        self.parts: dict[TopicAndPartition, Mirrored] = {}
        self.said: dict[str, list[str]] = defaultdict(list)
        for number in range(topics):
            topic = f"t{number:03}"
            self._make_source(topic, partitions)
        #: Of a copy of the lake: what is landed of partitions there, and what was not noticed.
        self.copied: dict[TopicAndPartition, tuple[Any, Any, Record, bool]] = {}
        #: What was compared: when, and which records were not as they should be.
        self.compared: dict[tuple[str, int, int, int, datetime], list[tuple[int, int, set[int]]]]
        self.compared = defaultdict(list)
        self.meanwhile: Any = lambda: None
        self._open_now: Any = ()
        self._patch(patches)

    # the lake

    def _open_lake(self) -> None:
        self.lake, self.topology = opened(no_session, self.file)
        assert self.lake.lake_id
        self.flow = self.topology.flow(FLOW)
        self.connections = Connections(self.topology, {"east": self.source, "west": self.target})
        self.deployment = Deployment.opened(self.lake, self.connections)
        self.incidents = Incidents(self.lake)
        self.targets = self._targets()

    def copy_lake(self) -> None:
        """As a backup does."""
        place = self.file.parent
        shutil.rmtree(place / "copy", ignore_errors=True)
        shutil.copytree(place / "lake", place / "copy")
        self.copied = {
            key: (dict(part.origin), dict(part.staged), part.landed, part.unseen)
            for key, part in self.parts.items()
        }

    def put_back(self) -> None:
        """The copy is the lake, and the clusters are as they are: where the target has what this
        lake lacks is found once it is landed again."""
        place = self.file.parent
        shutil.rmtree(place / "lake")
        (place / "copy").rename(place / "lake")
        self._open_lake()
        floors = self.floors()
        for key, (origin, staged, landed, unseen) in self.copied.items():
            part = self.parts[key]
            part.unseen |= unseen  # what was noticed since is so no more
            records = {value: record for record, value in part.origin.items()}
            known = floors.get(key, Floor(0, None)).target or 0
            entries = enumerate(part.target.entries)
            part.unmapped = [
                (records[value], at) for at, value in entries if value in records and at >= known
            ]
            part.origin, part.staged, part.landed, part.written = origin, staged, landed, []
            self.say(key[0], f"{key[1]} is as it was: {landed}, and lacks {part.unmapped}")
        self.copied = {}

    def _finds(self, part: Mirrored, floor: Floor) -> bool:
        """As `produce/older_lake.py`: whether the flow goes on, since it is known where the target
        has what the map lacks."""
        if part.unmapped is None:
            return True
        position = part.position
        if position is None or (position.generation, position.offset) <= (
            floor.generation,
            floor.next,
        ):
            part.unmapped = None
            return True
        if part.landed < (position.generation, position.offset):
            return False
        due = {
            record
            for record in part.staged
            if (floor.generation, floor.next) <= record < (position.generation, position.offset)
        }
        there = [(record, at) for record, at in part.unmapped if record in due]
        if len(there) < len(due):
            return False  # what was parked or left out since: it waits for an operator
        part.written, part.unmapped = there, None
        self._passed(part, position.offset, position.generation, position.target_generation)
        self.say(part.key[0], f"{part.key[1]} found {there}")
        return True

    # clusters

    def log(self, side: str, key: TopicAndPartition) -> MadeLog:
        if side == "source":
            return self.parts[key].source
        return self.parts[key[0].removeprefix("east."), key[1]].target

    def of(self, topic: str) -> list[Mirrored]:
        return [part for key, part in self.parts.items() if key[0] == topic]

    def say(self, topic: str, text: str) -> None:
        self.said[topic].append(text)

    def _make_source(self, topic: str, partitions: int) -> None:
        made = self.source.make(topic, *[0] * partitions)
        for number in range(partitions):
            known = self.parts.get((topic, number))
            if known is None:
                target = MadeLog("")
                self.parts[topic, number] = Mirrored((topic, number), MadeLog(made), target)
            else:
                known.source, known.rewound = MadeLog(made), None

    def show(self) -> None:
        """Let the clusters say what the logs are."""
        for (topic, number), part in self.parts.items():
            self.source.ends[topic][number] = part.source.end
            self.source.starts[topic, number] = part.source.start
            name = f"east.{topic}"
            if name in self.target.ends:
                self.target.ends[name][number] = part.target.end
                self.target.starts[name, number] = part.target.start

    # what stands for clients

    def _patch(self, patches: pytest.MonkeyPatch) -> None:
        def positions(*args: Any) -> dict[TopicAndPartition, TargetPosition]:
            return {
                (f"east.{topic}", number): part.position
                for (topic, number), part in self.parts.items()
                if part.position is not None and (f"east.{topic}", number) in args[2]
            }

        def rows(_alias: str, _settings: Any, asked: Mapping[TopicAndPartition, int]) -> Any:
            found = {}
            for key, at in asked.items():
                log = self.parts[key].source
                for offset, value in log.rows(at, log.end)[: at >= log.start]:
                    found[key] = Row(offset, 0, b"k", value)
            return found

        no_configs = SimpleNamespace(configs={})
        patches.setattr(target_side, "target_positions", positions)
        patches.setattr(scope, "describe_topic_configs", lambda *_: no_configs)
        patches.setattr(coverage, "first_rows", rows)
        patches.setattr("mirrorlake.control.target_generations.GONE_SECONDS", 0.0)

    def _reader(self, clusters: Any) -> RangeReader:
        reader = RangeReader.__new__(RangeReader)
        reader._clusters = clusters
        reader._source, reader._target = Reading("source", self), Reading("target", self)  # type: ignore[assignment]
        return reader

    def _targets(self) -> TargetGenerations:
        return TargetGenerations(self.lake, FLOW, self.target, Incidents(self.lake))

    # landing

    def land(self, topics: Collection[str]) -> None:
        """As landing does: what is there of each partition goes into the stage, unless an operator
        has to decide before."""
        lake, rows, problems = self.lake, [], []
        current = generations_of(lake, "east")
        begun = {}
        decisions = decisions_of(lake, "east")
        for topic in topics:
            log_id = self.parts[topic, 0].source.topic_id
            known = current.topics.get(topic)
            if known is None:
                begun[topic] = TopicGeneration(0, log_id)
        begin_generations(lake, "east", begun)
        current = generations_of(lake, "east")
        stopped = {(one.topic, one.partition) for one in decisions if one.resolution == "stop"}
        for topic in topics:
            known = current.topics[topic]
            for part in self.of(topic):
                if {(topic, None), part.key} & stopped:
                    continue
                if part.source.topic_id != known.topic_id:
                    if part.key[1] == 0:
                        problems.append(
                            Incident(
                                FLOW, "topic_recreated", SourceDataLost("made again", topic=topic)
                            )
                        )
                    continue
                rows += self._land_one(part, current, decisions, problems)
        lake.append("records", rows_of("records", rows))
        self.incidents.report(problems)

    def _land_one(
        self, part: Mirrored, current: Any, decisions: Any, problems: list[Incident]
    ) -> list[dict[str, Any]]:
        generation, branch = current.generation(part.key), current.branches.get(part.key)
        if part.landed[0] != generation:
            part.landed = (generation, 0 if branch is None else branch.first)
            if branch is not None:
                part.rewound = None
        facts = dict(zip(("topic", "partition"), part.key, strict=True))
        if part.rewound is not None and part.rewound < part.landed[1]:
            where = {"first_offset": part.rewound, "last_offset": part.landed[1] - 1}
            error = SourceDataLost("rewound", **facts, **where, generation=generation)
            problems.append(Incident(FLOW, "source_rewound", error))
            return []
        part.rewound = None
        first = part.landed[1]
        if part.source.start > first:
            where = {"first_offset": first, "last_offset": part.source.start - 1}
            decided = any(
                one.kind == "source_truncated"
                and (one.topic, one.partition) == part.key
                and one.resolution == "continue"
                and one.last_offset is not None
                and one.last_offset >= first
                for one in decisions
            )
            if not decided:
                error = SourceDataLost("truncated", **facts, **where, generation=generation)
                problems.append(Incident(FLOW, "source_truncated", error))
                return []
        rows = []
        for at, value in part.source.rows(first, part.source.end):
            part.origin[generation, at] = value
            if at == part.leaves_out:
                part.leaves_out = None
                continue
            part.staged[generation, at] = value
            rows.append(self._staged_row(part.key, generation, at, value))
        part.landed = (generation, part.source.end)
        self.say(part.key[0], f"{part.key[1]} landed to {part.landed}")
        return rows

    def _staged_row(
        self, key: TopicAndPartition, generation: int, at: int, value: bytes
    ) -> dict[str, Any]:
        now = datetime.now(timezone.utc)
        return {
            "source_cluster": "east",
            "topic": key[0],
            "partition": key[1],
            "offset": at,
            "timestamp": datetime.fromtimestamp(1, timezone.utc),
            "timestamp_type": 0,
            "key": b"k",
            "value": value,
            "headers": [],
            "landed_at": now,
            "batch_id": int(now.timestamp() * 1000),
            "generation": generation,
        }

    def current(self) -> Any:
        """The generations that the lake knows of the source."""
        return generations_of(self.lake, "east")

    # producing

    def floors(self) -> dict[TopicAndPartition, Floor]:
        """Where the flow goes on."""
        noted, _ = noted_targets(self.lake, FLOW)
        living = {name: newest_of(known) for name, known in noted.items()}
        return floors_of(LakeMap(self.lake, FLOW).ends()[0], self.flow.target_topic, living)

    def look(self, topics: Collection[str]) -> set[str]:
        """What a flow does before it produces: compares ids, rebuilds rows of the map, looks for
        what targets lost. Returns the topics that it may produce."""
        self.show()
        names = {topic: f"east.{topic}" for topic in topics}
        known = self.targets.comparison(names)
        new = {topic: names[topic] for topic in known.begin}
        for topic, name in new.items():
            if name not in self.target.ends:
                parts = self.of(topic)
                made = self.target.make(name, *[0] * len(parts))
                for part in parts:
                    part.target = MadeLog(made)
        self.targets.begin(known, new)
        for topic in (known.waiting | known.begin.keys()) & set(topics):
            for part in self.of(topic):
                part.written, part.unseen = [], False
                if topic in known.begin:
                    part.position = None
        usable = self.usable = set(topics) - known.waiting - known.stopped
        self._append_map([part for topic in usable for part in self.of(topic)])
        self._look_for_losses(usable)
        return usable

    def _decided(self) -> Decided:
        return self.incidents.decided(
            FLOW, lambda topic: LivingMirror(f"east.{topic}", self.targets.newest(topic))
        )

    def _look_for_losses(self, usable: set[str]) -> None:
        floors = {key: floor for key, floor in self.floors().items() if key[0] in usable}
        gone: list[TopicAndPartition] = []

        def set_back(places: Mapping[TopicAndPartition, int]) -> None:
            for name, number in places:
                self.parts[name.removeprefix("east."), number].position = None

        producer: Any = SimpleNamespace(
            floors=lambda: floors,
            spec=SimpleNamespace(remote_topic=self.flow.target_topic, name=FLOW),
            set_back=set_back,
        )

        def ends(keys: Collection[TopicAndPartition]) -> Mapping[TopicAndPartition, int]:
            return {key: self.log("target", key).end for key in keys}

        with_patience = pytest.MonkeyPatch()
        with with_patience.context() as patches:
            patches.setattr("mirrorlake.run.target_losses.SURE_SECONDS", 0.0)
            losses = log_ends_below(producer, ends)
        decided = self._decided()
        news = {key: loss for key, loss in losses.items() if key not in decided.lost}
        named = {key: MappedLoss(f"east.{key[0]}", loss) for key, loss in news.items()}
        self.incidents.report(
            Incident(FLOW, error.incident_kind, error)
            for error in loss_errors(self.lake, FLOW, named)
        )
        lost = {key: loss for key, loss in decided.lost.items() if key[0] in usable} | news
        take_out(self.lake, producer, lost)
        for topic in usable:
            for part in self.of(topic):
                if part.key not in decided.lost:
                    part.unseen = False
        for key in news:
            self.say(key[0], f"{key[1]} lost from {news[key]}")
        gone += news

    def produce(self, topics: Collection[str], chance: random.Random) -> None:
        """Look, and bring what is staged; rows of the map may come later."""
        usable = self.look(topics)
        floors, turn = self.floors(), self._turn(chance)
        open_now = {
            (row["topic"], row["partition"])
            for row in self.lake.ask_table("open_incidents")
            if row["kind"] in ("target_refused", "stage_trimmed", "target_lost")
        }
        self.blocked = open_now | turn.decided.lost.keys()
        self.blocked |= {place.topic_partition for place in turn.decided.stopped}
        late = []
        for part in (part for topic in sorted(usable) for part in self.of(topic)):
            if part.key in open_now or part.key in turn.decided.lost:
                continue
            if not self._finds(part, floors.get(part.key, Floor(0, None))):
                continue
            self._produce_one(part, floors.get(part.key, Floor(0, None)), turn)
            if part.written and chance.random() < 0.7:
                late.append(part)
        self.incidents.report(turn.problems)
        if turn.to_park:
            LakeMap(self.lake, FLOW).park(turn.to_park)
        self._append_map(late)

    def _turn(self, chance: random.Random) -> "Turn":
        removals = {one.place: one.below for one in removals_from(self.lake, "east")}
        parked = {
            (row.topic, row.partition, row.generation, row.offset, row.target_generation)
            for row in LakeMap(self.lake, FLOW).parked()
        }
        forgotten = forgotten_from(self.lake, "east")
        return Turn(chance, self._decided(), removals, forgotten, parked)

    def _produce_one(self, part: Mirrored, floor: Floor, turn: "Turn") -> None:
        number = self.targets.newest(part.key[0])
        at = (floor.generation, floor.next)
        if part.position is not None and part.position.target_generation == number:
            at = max(at, (part.position.generation, part.position.offset))
        else:
            part.position = TargetPosition(at[1], at[0], number, ())
        limit = turn.chance.choice((1, 3, 1_000))
        for generation in sorted({gen for gen, _ in part.origin} | {at[0]}):
            first = at[1] if generation == at[0] else 0
            place = PartitionGeneration(*part.key, generation)
            if generation < at[0]:
                continue
            if self._is_trimmed(part, place, first, turn) or place in turn.decided.stopped:
                return
            for off in sorted(off for gen, off in part.staged if gen == generation):
                if off < first:
                    continue
                if limit == 0 or not self._send(part, place, off, turn):
                    return
                limit -= 1
                self._passed(part, off + 1, generation, number)
            if generation == part.landed[0]:
                self._passed(part, max(first, part.landed[1]), generation, number)

    def _is_trimmed(
        self, part: Mirrored, place: PartitionGeneration, first: int, turn: "Turn"
    ) -> bool:
        """Whether the stage lacks what the flow lacks, and nobody has decided about that."""
        below = turn.removals.get(place, 0)
        known = any(
            one <= first and below - 1 <= last for one, last in turn.decided.trimmed.get(place, ())
        )
        lacks = any(gen == place.generation and first <= off < below for gen, off in part.origin)
        if first >= below or known or not lacks:
            return False
        where = {"first_offset": first, "last_offset": below - 1, "generation": place.generation}
        number = self.targets.newest(part.key[0])
        error = StageTrimmed(
            "trimmed",
            topic=place.topic,
            partition=place.partition,
            **where,
            target_generation=number,
        )
        turn.problems.append(Incident(FLOW, "stage_trimmed", error))
        return True

    def _send(self, part: Mirrored, place: PartitionGeneration, off: int, turn: "Turn") -> bool:
        """One record: it is sent, parked, left out, or refused, which stops the partition."""
        number, topic = self.targets.newest(place.topic), place.topic
        ranges = [*turn.decided.skipped.get(place, ()), *turn.forgotten.get(place, ())]
        if any(first <= off <= last for first, last in ranges):
            return True
        if (*place, off, number) in turn.parked:
            return True
        dice, name = turn.chance.random(), f"{place.partition} {(place.generation, off)}"
        if dice < 0.02:
            where = {"first_offset": off, "last_offset": off, "generation": place.generation}
            error = TargetRefused(
                "refused", topic=topic, partition=place.partition, **where, target_generation=number
            )
            turn.problems.append(Incident(FLOW, "target_refused", error))
            self.say(topic, f"{name} is refused")
            return False
        if dice < 0.05:
            mirror = {"target_topic": f"east.{topic}", "target_generation": number}
            turn.to_park.append(
                Parked(*place, offset=off, **mirror, reason="TOO_LARGE", byte_count=1)  # type: ignore[arg-type]
            )
            self.say(topic, f"{name} is parked")
            return True
        if dice < 0.2:
            part.target.entries.append(None)
        part.written.append(((place.generation, off), part.target.end))
        self.say(topic, f"{name} is sent to {part.target.end}")
        part.target.entries.append(part.staged[place.generation, off])
        return True

    def _passed(self, part: Mirrored, offset: int, generation: int, number: int) -> None:
        written = tuple((to, to) for _, to in part.written)
        part.position = TargetPosition(offset, generation, number, written)

    def _append_map(self, parts: Collection[Mirrored]) -> None:
        rows = []
        for part in parts:
            number = self.targets.newest(part.key[0])
            for generation in sorted({gen for (gen, _), _ in part.written}):
                mine = [(off, to) for (gen, off), to in part.written if gen == generation]
                runs: list[list[tuple[int, int]]] = []
                for off, to in mine:
                    if runs and (off, to) == (runs[-1][-1][0] + 1, runs[-1][-1][1] + 1):
                        runs[-1].append((off, to))
                    else:
                        runs.append([(off, to)])
                segments = [
                    {
                        "source_first": run[0][0],
                        "stride": 1,
                        "target_first": run[0][1],
                        "record_count": len(run),
                    }
                    for run in runs
                ]
                self.made += 1
                rows.append(
                    {
                        "flow": FLOW,
                        "topic": part.key[0],
                        "partition": part.key[1],
                        "source_first": mine[0][0],
                        "source_last": mine[-1][0],
                        "target_topic": f"east.{part.key[0]}",
                        "target_partition": part.key[1],
                        "target_first": mine[0][1],
                        "target_last": mine[-1][1],
                        "record_count": len(mine),
                        "produced_at": datetime.now(timezone.utc),
                        "batch_id": self.made,
                        "generation": generation,
                        "target_generation": number,
                        "segments": segments,
                    }
                )
            part.written = []
        if rows:
            self.lake.append("offset_map", rows_of("offset_map", rows))

    # comparing

    def verify(self, topics: Collection[str], choice: Choice) -> Outcome:
        """As `verify` does."""
        self.show()
        outcome = Outcome()
        here = auditor.Auditor(
            self.deployment, lambda _: self._workers(), threading.Event(), lambda _: None
        )
        here.audit(self.flow, sorted(topics), choice, None, outcome)
        return outcome

    def _workers(self) -> Any:
        def compare(clusters: Any, ranges: Collection[Range]) -> list[Compared]:
            found = []
            for one in ranges:
                compared = self._reader(clusters).compare(one)
                found.append(compared)
                self._note_truth(one, compared)
            self.meanwhile()
            return found

        return SimpleNamespace(compare=compare, tasks=1)

    def _note_truth(self, one: Range, compared: Compared) -> None:
        bad = self.wrong(one.topic, one.partition, one.generation)
        wrong = {at for at in bad if one.first <= at <= one.last}
        self.say(
            one.topic,
            f"{one.partition} compared {one.generation}: {one.first}-{one.last}: "
            f"{compared.verdict.word}, wrong {sorted(wrong)}",
        )
        if compared.verdict.word in WHOLE:
            assert not wrong, self.shown(one.topic, f"{one} is called the same, wrong: {wrong}")

    # truth

    def wrong(self, topic: str, partition: int, generation: int) -> set[int]:
        """Source offsets of a generation whose record is not once at the target, or not where the
        map says, and should be."""
        part, number = self.parts[topic, partition], self.targets.newest(topic)
        places: dict[bytes | None, list[int]] = defaultdict(list)
        for at, value in enumerate(part.target.entries):
            places[value].append(at)
        mapped = self._mapped().get(part.key, {})
        flying = {record for record, _ in part.written}
        excused = self._excused(part, generation, number)
        wrong = set()
        for (gen, off), value in part.origin.items():
            if gen != generation:
                continue
            there = places.get(value, [])
            to = mapped.get((gen, off), [])
            known = part.staged.get((gen, off))
            if known is not None and known != value:
                wrong.add(off)
            elif not there and not to and off in excused:
                continue
            elif len(there) != 1 or to != there and (gen, off) not in flying:
                wrong.add(off)
        return wrong

    def _excused(self, part: Mirrored, generation: int, number: int) -> set[int]:
        place = PartitionGeneration(*part.key, generation)
        decided = self._decided_now
        ranges = [
            *decided.skipped.get(place, ()),
            *decided.trimmed.get(place, ()),
            *self._forgotten_now.get(place, ()),
        ]
        excused = {off for first, last in ranges for off in range(first, min(last, 999) + 1)}
        return excused | {
            row.offset
            for row in self._parked_now
            if (row.topic, row.partition, row.generation, row.target_generation) == (*place, number)
        }

    def open_rows(self) -> Any:
        """The open incidents, as they were lately."""
        return self._open_now

    def refresh(self) -> None:
        """Ask the lake what excuses records."""
        self._decided_now = self._decided()
        self._forgotten_now = forgotten_from(self.lake, "east")
        self._parked_now = LakeMap(self.lake, FLOW).parked()
        self._open_now = self.lake.ask_table("open_incidents")
        rows = self.lake.ask("living_targets_of", flow=FLOW)
        self.living = {row["topic"] for row in rows if row["lives"]}
        self._map_now = defaultdict(lambda: defaultdict(list))
        for row in self.lake.ask_table("offset_translation"):
            for k in range(row["record_count"]):
                at = (row["generation"], row["source_first"] + k * row["stride"])
                self._map_now[row["topic"], row["partition"]][at].append(row["target_first"] + k)

    def _mapped(self) -> Any:
        return self._map_now

    def read_stage_again(self) -> None:
        """Forget what was deleted of the stage."""
        there = defaultdict(set)
        for row in self.lake.ask_table("records"):
            at = (row["generation"], row["offset"])
            there[row["topic"], row["partition"]].add(at)
        for key, part in self.parts.items():
            part.staged = {at: value for at, value in part.staged.items() if at in there[key]}

    def retain(self) -> None:
        """As `maintain` does, of all that is old: all is."""
        kept: Any = SimpleNamespace(retention_days=0, disabled_hold_days=0)
        maintain._retain_records(self.lake, self.topology, kept, False, lambda _: ())
        merge_map(self.lake, int(time.time() * 1000) + 1_000)
        self.read_stage_again()

    def forgets(self, topic: str, offsets: Collection[int]) -> None:
        """As `forget` does."""
        names = ", ".join(map(str, offsets))
        with suppress(InputError):
            forget(self.deployment, [topic], f"offset IN ({names})", "east")
        self.read_stage_again()

    def shown(self, topic: str, text: str) -> str:
        return "\n".join([*self.said[topic], text])
