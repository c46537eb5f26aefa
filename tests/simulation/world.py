"""Everything around the code that is simulated: two clusters, a lake, workers, operators, and what
must be true."""

import itertools
import random
import traceback
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from mirrorlake.errors import Fenced
from mirrorlake.forget.still_needed import StillNeeded
from mirrorlake.groups.readable import Sides, readable_positions
from mirrorlake.kafka.client_pool import ClientPool
from mirrorlake.landing.source_comparison import (
    Branch,
    CurrentGenerations,
    LandingPlan,
    TopicGeneration,
)
from mirrorlake.offsets.generations import Begun, NotedTarget, SourceGenerations, counts_from
from mirrorlake.offsets.parked import Parked
from mirrorlake.offsets.positions import (
    LogEnds,
    PartitionGeneration,
    TopicAndPartition,
    TopicPartitionOffset,
    Translated,
)
from mirrorlake.produce import task
from tests.simulation.kafka import ODD, TOO_LARGE, Cluster, Entry, Log, Topic, Transaction
from tests.simulation.stage import Row, Stage, Tables
from tests.simulation.steps import Death, Steps, TaskFailed, WorkerDeath

SOURCE, TARGET = "a", "b"
FLOW = f"{SOURCE}->{TARGET}"
TOPICS = ("t0", "t1", "t2")
#: Nanoseconds where milliseconds were meant: each seventh record of a partition is of about then.
ODD_TIME = 1_700_000_000_000_000_000
#: Kinds of incidents that hold a partition.
HOLDS = ("target_refused", "position_lost", "target_recreated", "target_lost")
HOLDS += ("map_behind", "map_unknown")


@dataclass
class Settings:
    """What a run is started with; all but the reader may be other ones the next time."""

    max_records: int = 100
    land_records: int = 100
    land_files: int = 1
    produce_tasks: int = 2
    transaction_records: int = 600_000
    metadata_bytes: int = 4_000
    reader: str = "auto"
    catalog: bool = False
    parks: bool = False
    #: Up to how many records a process lands at once, while its session starts.
    few: int = 100
    #: Whether processes may have to wait for their sessions.
    waits: bool = False
    #: Whether processes stand by for each other, by Kafka, or have leases in the lake.
    stands_by: bool = False


@dataclass
class Incident:
    """A row of `incidents`; `resolution` is None while it is open."""

    kind: str
    topic: str | None
    partition: int | None = None
    first: int | None = None
    last: int | None = None
    detail: str = ""
    at: int = 0
    resolution: str | None = None
    generation: int = 0
    target_generation: int = 0
    target_offset: int = 0

    @property
    def place(self) -> PartitionGeneration:
        """What its offsets are of."""
        return PartitionGeneration(str(self.topic), self.partition or 0, self.generation)


@dataclass
class Worker:
    """A Python worker: producers live in it from batch to batch."""

    name: str = field(default_factory=lambda: uuid.uuid4().hex)
    writers: ClientPool[Any] = field(default_factory=ClientPool)


@dataclass
class Suspended:
    """What a process has that stands still."""

    workers: list[Worker]
    here: Worker
    later: list[Any]


def is_refused(row: Row) -> bool:
    """Whether a target refuses a record for its own sake, or its batch."""
    return (row.value or b"").startswith((TOO_LARGE, ODD))


class World:
    """One schedule's world. What is in `tables`, `stage`, `marks` and the clusters survives a
    death."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.steps = Steps()
        self.source, self.target = Cluster(SOURCE), Cluster(TARGET)
        self.stage = Stage(self.steps, settings.catalog)
        self.tables = Tables(self.steps)
        self.marks: dict[str, bytes] = {}  # of landing queries
        self.seconds = 0.0  # of time.monotonic()
        self.lake_id = "lake0"
        self.selected = {"t0", "t1"}
        self.paused: set[str] = set()
        self.generations: list[tuple[str, int, str, int]] = []  # topic, generation, id, when
        self.branches: dict[TopicAndPartition, tuple[Branch, int]] = {}  # with when it began
        self.begun: list[Begun] = []  # all of both
        self.incidents: list[Incident] = []
        self.parked: list[Parked] = []
        #: What was deleted from the stage by predicate, or is about to be, by (topic, partition,
        #: generation, offset).
        self.forgotten: dict[tuple[str, int, int, int], Row] = {}
        #: The generations of target topics that are noted before the first write to them, by name.
        self.noted: dict[str, list[NotedTarget]] = {}
        self.workers, self.here = [Worker(), Worker()], Worker()
        self.topics: list[Topic] = []
        #: Where the log began when landing first saw a partition, by topic id and partition.
        self.seen: dict[TopicAndPartition, int] = {}
        #: Work of threads that is not done yet, of the living process and of dead ones whose last
        #: call is on its way.
        self.later: list[Any] = []
        #: How far the clock is ahead, ms; less than 0 where it is behind.
        self.clock_ahead = 0
        self.ghosts: list[Callable[[], object]] = []
        #: How far landing was seen to have come, and the leaders that it knew.
        self.samples: dict[PartitionGeneration, int] = {}
        self.epochs: dict[TopicAndPartition, int] = {}
        #: Whether a log lost what it had since landing polled. It polls before the log has grown
        #: beyond its old end again: within the seconds between two polls it cannot be told
        #: (docs/not_obvious.md).
        self.unseen = False
        #: The same of a target topic: producing polls before its next batch.
        self.target_unseen = False
        #: Whether the lake was put back to what it was: what the source has lost since is not
        #: staged again.
        self.put_back = False
        self.salt = 0
        #: The process that began last: who has the leases.
        self.newest: object = None
        self._clock = itertools.count(1)
        self._open: dict[str, Transaction] = {}

    def next_id(self) -> int:
        """A number that nothing else has."""
        return next(self._clock)

    def tell(
        self, kind: str, topic: str | None, partition: int | None = None, **facts: Any
    ) -> None:
        """Note an incident; one of this kind and place that is open is not repeated."""
        key = (kind, topic, partition, facts.get("generation", 0))
        if key not in {(i.kind, i.topic, i.partition, i.generation) for i in self.open_incidents()}:
            self.incidents.append(Incident(kind, topic, partition, at=next(self._clock), **facts))

    def open_incidents(self) -> list[Incident]:
        """Those that nobody has decided about."""
        return [item for item in self.incidents if item.resolution is None]

    def begin_generation(self, topic: str, generation: int, topic_id: str) -> None:
        """Note the generation of a source topic."""
        self.generations.append((topic, generation, topic_id, next(self._clock)))
        self.begun.append(Begun(topic, generation, id=topic_id))

    def begin_branch(self, key: TopicAndPartition, first: int) -> None:
        """Let a partition go another way from an offset on, in a generation of its own."""
        living, now = self.living(), next(self._clock)
        self.branches[key] = (Branch(living.generation(key) + 1, first), now)
        id_ = f"{living.topics[key[0]].topic_id}@{now}"
        self.begun.append(Begun(key[0], self.branches[key][0].generation, key[1], first, id_))

    def living(self) -> CurrentGenerations:
        """The newest generation of every topic, and the partitions that went another way since."""
        found: dict[str, TopicGeneration] = {}
        for topic, generation, topic_id, _ in self.generations:
            if topic not in found or found[topic].generation < generation:
                found[topic] = TopicGeneration(generation, topic_id)
        branches = {key: branch for key, (branch, _) in self.branches.items()}
        return CurrentGenerations(
            found,
            {
                key: item
                for key, item in branches.items()
                if item.generation > found[key[0]].generation
            },
        )

    def generation_of(self, topic_id: str) -> int | None:
        """The generation as which a topic of the source is staged; None if it never was."""
        found = [generation[1] for generation in self.generations if generation[2] == topic_id]
        return max(found) if found else None

    def undecided(self) -> list[Incident]:
        """Those about which an operator would decide now."""
        return [item for item in self.open_incidents() if item.kind != "position_lost"]

    def unmapped_at_target(self, topic: str, partition: int) -> bool:
        """Whether the target holds records of the flow that the map does not have."""
        log = self.target.log(topic, partition)
        rows = [
            run
            for run in self.tables.of("offset_map")
            if (run["topic"], run["partition"]) == (topic, partition)
        ]
        living = self.target_generation(topic)
        count = sum(
            run["record_count"] for run in rows if (run["target_generation"] or 0) == living
        )
        return (
            log is not None
            and sum(entry.value != b"foreign" for _, entry in log.read(0, log.end)) > count
        )

    def target_generation(self, topic: str) -> int:
        """The newest generation that is noted of a target topic."""
        return self.noted[topic][-1].number if topic in self.noted else 0

    def _is_lost(self, topic: str) -> bool:
        """Whether a target topic is not the one that was noted."""
        there = self.target.topics.get(topic)
        return topic in self.noted and (
            there is None or there.topic_id != self.noted[topic][-1].topic_id
        )

    # What happens at the clusters

    def lose_target(self, topic: str, made_again: bool) -> None:
        """A target topic is deleted, and perhaps made again with a stranger's record in it. Nobody
        of an older process is left, who would write to the new one without a poll."""
        if topic in self.target.topics:
            self.steps.bury()
            count = len(self.target.topics[topic].logs)
            self.target.delete(topic)
            self.target_unseen = True
            if made_again:
                self.target.create(topic, count).logs[0].append(Entry(b"foreign"))

    def rewind_target(self, topic: str, partition: int, count: int) -> None:
        """A target partition loses its newest entries, as by an unclean election. Who outlived a
        process is gone with the leader: else it might fill the log up again before anybody looks
        (docs/not_obvious.md)."""
        found = self.target.topics.get(topic)
        if found is not None:
            self.steps.bury()
            self.target.time_out()
            log = found.logs[partition % len(found.logs)]
            log.rewind(max(log.start, log.end - count))
            self.target_unseen = True

    def trim_target(self, topic: str, partition: int, count: int) -> None:
        """Retention moves the start of a target partition: what is gone there was mirrored all the
        same."""
        found = self.target.topics.get(topic)
        if found is not None:
            log = found.logs[partition % len(found.logs)]
            log.start = min(log.stable, log.start + count)

    def create(self, topic: str, partitions: int) -> None:
        """A topic is made at the source."""
        if topic not in self.source.topics:
            self.topics.append(self.source.create(topic, partitions))

    def write(
        self, topic: str, partition: int, count: int, kind: str = "plain", refused: bytes = b""
    ) -> None:
        """Records come: `plain` ones, or a transaction's that is committed, aborted, or left open.
        Of those the last one is `refused` by the target, if it begins like what it refuses."""
        found = self.source.topics.get(topic)
        if found is None:
            return
        log = found.logs[partition % len(found.logs)]
        place = f"{found.topic_id}/{partition % len(found.logs)}/{log.epoch}"
        transaction = None if kind == "plain" else Transaction()
        for number in range(count):
            value = f"{place}/{log.end}".encode()
            if number == count - 1:
                value = refused + value
            headers = (("h", b"1"), ("h", None)) if log.end % 3 == 0 else ()
            at = 1_000 + log.end if log.end % 7 else ODD_TIME + log.end
            log.append(Entry(value, b"k%d" % (log.end % 2), at, headers, transaction))
        if transaction is not None and kind != "open":
            transaction.state = "committed" if kind == "committed" else "aborted"
            log.append(Entry(transaction=transaction, marker=True))
        elif transaction is not None:
            self._open[f"{place}/{log.end}"] = transaction

    def end_transactions(self, state: str) -> None:
        """The transactions that were left open at the source end."""
        for transaction in self._open.values():
            transaction.state = state
            for log in transaction.logs:
                log.append(Entry(transaction=transaction, marker=True))
        self._open.clear()

    def compact(self, topic: str, salt: int) -> None:
        """Compaction takes some of the committed records away."""
        chance = random.Random(salt)
        found = None if self.unseen else self.source.topics.get(topic)
        for log in found.logs if found is not None else ():
            for offset in range(log.start, log.stable):
                if log.entries[offset].visible and chance.random() < 0.7:
                    log.entries[offset].gone = True

    def truncate(self, topic: str, partition: int, count: int) -> None:
        """Retention moves a log's start."""
        found = self.source.topics.get(topic)
        if found is not None:
            log = found.logs[partition % len(found.logs)]
            log.start = min(log.stable, log.start + count)

    def rewind(self, topic: str, partition: int, count: int, more: int) -> None:
        """A log loses its newest entries, transactions that are open there end, and records are
        written in their place.

        One at least, which is seen: where only markers, or nothing that a reader gets, took the
        place of what was lost, it cannot be told (docs/not_obvious.md).
        """
        found = self.source.topics.get(topic)
        if found is not None:
            number = partition % len(found.logs)
            log = found.logs[number]
            for name, transaction in list(self._open.items()):
                if log in transaction.logs:
                    transaction.state = "aborted"
                    del self._open[name]
            log.rewind(max(log.start, log.end - count))
            self.unseen = True
            self.write(topic, number, 1 + more)

    def saw(
        self, plan: LandingPlan, sampled: bool, covered: Mapping[TopicAndPartition, int]
    ) -> None:
        """Landing has begun as planned. From now on the lake knows of partitions of which it has a
        record, or, where positions are `sampled`, of all; what went before was never its to
        read."""
        staged = {(row.topic, row.partition) for row in self.stage.rows()}
        for key, start in plan.starts.items():
            topic = self.source.topics.get(key[0])
            if topic is None or not (sampled or key in staged):
                continue
            self.seen.setdefault((topic.topic_id, key[1]), start)
            place = PartitionGeneration(*key, plan.generations.get(key, 0))
            known = self.generation_of(topic.topic_id) is not None
            if sampled and known and self.living().generation(key) == place.generation:
                self.samples[place] = max(self.samples.get(place, 0), covered.get(key, start))

    def forget(self, topic: str, salt: int, waits: Sequence[StillNeeded], finishes: bool) -> int:
        """Some staged records are noted, unless they wait for the flow, and deleted, unless the
        process dies."""
        chance, before = random.Random(salt), len(self.forgotten)
        for row in self.stage.rows():
            place = (row.topic, row.partition, row.generation)
            stays = any(
                item[1:4] == place and item.first <= row.offset < item.below for item in waits
            )
            if row.topic == topic and not stays and chance.random() < 0.5:
                self.forgotten[(*place, row.offset)] = row
        if finishes:
            self.stage.forget(self.forgotten.keys())
        return len(self.forgotten) - before

    def ever_staged(self) -> list[Row]:
        """What is staged, and what was until it was forgotten; one that is there again is there
        twice."""
        rows = list(self.stage.rows())
        there = {id(row) for row in rows}
        return rows + [row for row in self.forgotten.values() if id(row) not in there]

    # What workers do

    def run_task(self, number: int, work: Callable[[], Any]) -> Any:
        """Run a task in a worker, which the salt chooses. Raises TaskFailed as Spark does, or
        Death."""
        chance = random.Random(self.salt * 31 + number)
        attempts = 2 if self.salt % 5 == 1 else 1
        while True:
            attempts -= 1
            at = chance.randrange(len(self.workers)) if self.salt % 2 else 0
            try:
                return self.steps.run_task(lambda at=at: self._in_worker(at, work))
            except WorkerDeath:
                self.workers[at] = Worker()
                if not attempts:
                    raise TaskFailed("the Python worker exited unexpectedly (crashed)") from None
            except Exception as error:
                if not attempts:
                    raise TaskFailed(
                        "".join(traceback.format_exception_only(error)).strip()
                    ) from error

    def _in_worker(self, at: int, work: Callable[[], Any]) -> Any:
        worker = self.workers[at]
        task._writers, task.WORKER = worker.writers, worker.name
        return work()

    def run_here(self, work: Callable[[], Any]) -> Any:
        """Run what the driver does itself: it dies with the driver, and never outlives it."""
        task._writers, task.WORKER = self.here.writers, self.here.name
        return work()

    def die(self) -> None:
        """The driver is gone, and its workers with it."""
        self.workers, self.here = [Worker(), Worker()], Worker()
        self.steps.fault = None
        if self.salt % 2:
            self.ghosts.extend(partial(self._finish, later) for later in self.later)
            if self.stage.in_flight is not None:
                self.ghosts.append(partial(self.stage.append, *self.stage.in_flight))
        self.later.clear()
        self.stage.in_flight = None

    def wake(self) -> None:
        """What outlived its process comes to its end: tasks, and commits that were on their way."""
        # those tasks have a worker of their own
        task._writers, task.WORKER = (ClientPool(), "outlived")
        self.steps.wake()
        ghosts, self.ghosts = self.ghosts, []
        for ghost in ghosts:
            with suppress(Fenced):
                ghost()

    def suspend(self) -> "Suspended":
        """Take a driver's threads and workers away, as they are: others will come."""
        kept = Suspended(self.workers, self.here, list(self.later))
        self.workers, self.here = [Worker(), Worker()], Worker()
        self.later.clear()
        return kept

    def resumed(self, kept: "Suspended", work: Callable[[], None]) -> None:
        """Do something with them, in the middle of what goes on."""
        mine = self.suspend()
        self.workers, self.here = kept.workers, kept.here
        self.later.extend(kept.later)
        work()
        self.workers, self.here = mine.workers, mine.here
        self.later[:] = mine.later

    def _finish(self, later: Any) -> None:
        self.later.append(later)
        later.run()

    # What must be true

    def violations(self) -> list[str]:
        """What is wrong once all is landed and produced; nothing may be."""
        found = [*self._staged_wrong(), *self._mirrored_wrong()]
        return [*found, *self._groups_wrong(), *self._positions_wrong(), *self._refusals_wrong()]

    def _positions_wrong(self) -> list[str]:
        """Groups stand at each position of each living partition, and are moved by the map, as far
        as mirrors reach: a consumer can read from there, skips nothing that is there, and what it
        misses is counted."""
        found: list[str] = []
        mapped, _ = self._mapped()
        for key, pairs in sorted(mapped.items()):
            source, mirror = self.source.log(*key), self.target.log(*key)
            if source is None or mirror is None:
                continue
            newest = max(generation for generation, _, _ in pairs)
            runs = sorted((offset, at) for generation, offset, at in pairs if generation == newest)
            for asked, item in readable_positions(
                [(*key, position) for position in range(source.end + 3)],
                _sides(runs, source, mirror),
            ).items():
                unread = [(offset, at) for offset, at in runs if offset >= asked[2]]
                skipped = [at for _, at in unread if mirror.start <= at < item.offset]
                missed = [
                    at for offset, at in unread if at < mirror.start and offset >= source.start
                ]
                if (
                    skipped
                    or not mirror.start <= item.offset <= mirror.end
                    or bool(missed) != bool(item.gone)
                ):
                    found.append(
                        f"{key}: position {asked[2]} leads to {item}, skips {skipped}, misses "
                        f"{missed}"
                    )
        return found

    def _staged_wrong(self) -> list[str]:
        found: list[str] = []
        staged: dict[tuple[str, int, int], list[tuple[int, bytes | None]]] = {}
        for row in self.ever_staged():
            staged.setdefault((row.topic, row.generation, row.partition), []).append(
                (row.offset, row.value)
            )
        for place, rows in staged.items():
            twice = [
                offset
                for offset, times in Counter(offset for offset, _ in rows).items()
                if times > 1
            ]
            if twice:
                found.append(f"staged twice: {place} offsets {sorted(twice)}")
        values: dict[TopicAndPartition, dict[bytes | None, int]] = {}
        for (name, _, partition), rows in staged.items():
            values.setdefault((name, partition), {}).update(
                {value: offset for offset, value in rows}
            )
        for topic in self.topics:
            if topic.name in self.selected:
                for partition, log in enumerate(topic.logs):
                    there = values.get((topic.name, partition), {})
                    found.extend(self._not_staged(topic, partition, log.entries, there))
                    found.extend(self._not_told(topic, partition, log.entries, there))
        return found

    def _not_told(
        self, topic: Topic, partition: int, entries: list[Entry], values: Mapping[Any, int]
    ) -> list[str]:
        """What is staged of a living topic, and not at the source any more, is told with its
        offsets."""
        if self.source.topics.get(topic.name) is not topic:
            return []
        there = {entry.value for entry in entries}
        prefix = f"{topic.topic_id}/{partition}/".encode()
        told = [
            range(item.first or 0, (item.last or 0) + 1)
            for item in self.incidents
            if (item.kind, item.topic, item.partition) == ("source_rewound", topic.name, partition)
        ]
        gone = sorted(
            offset
            for value, offset in values.items()
            if value is not None
            and value.removeprefix(TOO_LARGE).startswith(prefix)
            and value not in there
        )
        silent = [offset for offset in gone if not any(offset in part for part in told)]
        return (
            [f"staged, gone at the source, and not told: {topic.name}-{partition} offsets {silent}"]
            if silent
            else []
        )

    def _not_staged(
        self, topic: Topic, partition: int, entries: list[Entry], values: Mapping[Any, int]
    ) -> list[str]:
        living = self.source.topics.get(topic.name) is topic
        missing = [
            offset
            for offset, entry in enumerate(entries)
            if entry.visible and values.get(entry.value) != offset
        ]
        excused = [range(self.seen.get((topic.topic_id, partition), topic.logs[partition].start))]
        for item in self.incidents:
            if (
                item.topic == topic.name
                and item.kind == "source_truncated"
                and item.partition == partition
            ):
                excused.append(range(item.first or 0, (item.last or 0) + 1))
            elif item.topic == topic.name and item.kind == "topic_recreated" and not living:
                excused.append(range(len(entries)))
        never_met = self.generation_of(topic.topic_id) is None
        if not living and (never_met or topic.name not in self.source.topics):
            excused.append(range(len(entries)))
        lost = [offset for offset in missing if not any(offset in part for part in excused)]
        return (
            [f"not staged, and no incident: {topic.topic_id}-{partition} offsets {lost}"]
            if lost
            else []
        )

    def _mirrored_wrong(self) -> list[str]:
        found: list[str] = []
        staged: dict[TopicAndPartition, dict[tuple[int, int], Any]] = {}
        for row in self.ever_staged():
            staged.setdefault((row.topic, row.partition), {})[row.generation, row.offset] = row
        given_up: dict[TopicAndPartition, set[tuple[int, int]]] = {}
        for item in self.incidents:
            if (item.kind, item.resolution) in (
                ("target_refused", "skip"),
                ("target_lost", "accept"),
            ):
                offsets = range(item.first or 0, (item.last or 0) + 1)
                key = item.place.topic_partition
                if item.target_generation >= counts_from(self.noted.get(key[0], ())):
                    given_up.setdefault(key, set()).update(
                        (item.generation, offset) for offset in offsets
                    )
        held = [item for item in self.incidents if item.kind in HOLDS]
        waiting = {(item.topic, item.partition) for item in held if item.resolution is None}
        stopped = {
            item.place for item in held if item.resolution == "stop" and self._holds_now(item)
        }
        mapped, before = self._mapped()
        for key, rows in staged.items():
            if key[0] not in self.selected and self._is_lost(key[0]):
                continue  # nobody polls
            log = self.target.log(*key)
            # What retention has taken of a mirror was there: whether it is there still is no matter
            # of the flow.
            entries = [] if log is None else log.entries[: log.stable]
            there = [(offset, entry) for offset, entry in enumerate(entries) if entry.visible]
            known, again = {at for *_, at in mapped.get(key, ())}, self._again_from(key)
            mine = [
                (offset, entry)
                for offset, entry in there
                if entry.value != b"foreign" and (offset >= again or offset in known)
            ]
            by_value = {row.value: (place, row) for place, row in rows.items()}
            order = [by_value[entry.value][0] for _, entry in mine if entry.value in by_value]
            if len(order) < len(mine) and not self.put_back:
                found.append(
                    f"{key}: {len(mine) - len(order)} records at the target that are not in the "
                    "stage"
                )
            if any(left >= right for left, right in zip(order, order[1:], strict=False)):
                found.append(f"{key}: not once and in order at the target: {order}")
            parked = self._parked(key)
            if parked & set(order):
                found.append(f"{key}: parked, and at the target: {sorted(parked & set(order))}")
            wanted = {
                at for at in rows if PartitionGeneration(*key, at[0]) not in stopped
            } - given_up.get(key, set())
            wanted -= (
                before.get(key, set()) | parked | {at[2:] for at in self.forgotten if at[:2] == key}
            )
            produced = key[0] in self.selected - self.paused and key not in waiting
            if produced and wanted - set(order):
                found.append(f"{key}: not at the target: {sorted(wanted - set(order))}")
            for _, entry in mine:
                row = by_value[entry.value][1] if entry.value in by_value else None
                if row and (row.key, row.timestamp, row.headers) != (
                    entry.key,
                    entry.timestamp,
                    entry.headers,
                ):
                    found.append(f"{key}: another key, timestamp or headers: {row} {entry}")
            truth = sorted(
                (*by_value[entry.value][0], at) for at, entry in mine if entry.value in by_value
            )
            if sorted(mapped.get(key, [])) != truth:
                extra = sorted(Counter(mapped.get(key, [])) - Counter(truth))
                lacking = sorted(Counter(truth) - Counter(mapped.get(key, [])))
                lost = all(log is None or at >= log.end for *_, at in extra)
                if lost and not produced:
                    # What is not produced now gets the rest of its map when it is again; and what
                    # its target has lost meanwhile is noticed then.
                    continue
                found.append(f"{key}: the map has {extra} too many and lacks {lacking}")
        return found

    def _again_from(self, key: TopicAndPartition) -> int:
        """Below which target offset an older lake does not know what is there, as an operator has
        decided."""
        return max(
            (
                item.target_offset
                for item in self.incidents
                if item.kind in ("map_behind", "map_unknown")
                and (item.place.topic_partition, item.resolution) == (key, "produce-again")
                and self._holds_now(item)
            ),
            default=0,
        )

    def _holds_now(self, item: Incident) -> bool:
        """Whether a decision is about the target topic that there is now."""
        return item.target_generation == self.target_generation(str(item.topic))

    def _groups_wrong(self) -> list[str]:
        """A group that moves to the source from anywhere at the target, in records that are gone
        there too, skips none of the log that there is now, and reads none of it again."""
        found = []
        known = SourceGenerations(self.begun)
        for key, pairs in self._mapped()[0].items():
            order = sorted(
                (target, PartitionGeneration(*key, generation), at)
                for generation, at, target in pairs
            )
            living = {
                target: at for target, place, at in order if known.living(place, at + 1) == at + 1
            }
            for position in [0, *(target + 1 for target, _, _ in order)]:
                ahead = next(
                    ((place, at) for target, place, at in order if target >= position), None
                )
                place, at = ahead or (order[-1][1], order[-1][2] + 1)
                there = known.living(place, at)
                skipped = [at for target, at in living.items() if target >= position and at < there]
                again = [at for target, at in living.items() if target < position and at >= there]
                if skipped or again:
                    found.append(
                        f"{key}: a group at {position} goes to {there}: skips {skipped}, reads "
                        f"{again} again"
                    )
        return found

    def _refusals_wrong(self) -> list[str]:
        """What is told as refused, or was, has a record among it that a target refuses."""
        refused = [row for row in self.ever_staged() if is_refused(row)]
        return [
            f"refused without a reason: {item}"
            for item in self.incidents
            if item.kind == "target_refused"
            and not any(
                (row.topic, row.partition, row.generation)
                == (item.topic, item.partition, item.generation)
                and (item.first or 0) <= row.offset <= (item.last or 0)
                for row in refused
            )
        ]

    def _parked(self, key: TopicAndPartition) -> set[tuple[int, int]]:
        """What a flow goes on behind, in what counts of the generations of its target topic. Only
        what is refused."""
        counted = counts_from(self.noted.get(key[0], ()))
        rows = [
            row
            for row in self.parked
            if (row.topic, row.partition) == key and row.target_generation >= counted
        ]
        refused = {(row.generation, row.offset) for row in self.ever_staged() if is_refused(row)}
        assert {(row.generation, row.offset) for row in rows} <= refused, "parked, and not refused"
        return {(row.generation, row.offset) for row in rows}

    def _mapped(
        self,
    ) -> tuple[
        dict[TopicAndPartition, list[tuple[int, int, int]]],
        dict[TopicAndPartition, set[tuple[int, int]]],
    ]:
        """What is mapped to the living target topics, each (generation, offset, target offset); and
        what had been brought to those before them where an operator has let the new one go on
        behind it."""
        living: dict[TopicAndPartition, list[tuple[int, int, int]]] = {}
        before: dict[TopicAndPartition, set[tuple[int, int]]] = {}
        for run in self.tables.of("offset_map"):
            key, number = (run["topic"], run["partition"]), run["target_generation"] or 0
            counted = number >= counts_from(self.noted.get(key[0], ()))
            for segment in run["segments"]:
                for index in range(segment["record_count"]):
                    place = (
                        run["generation"] or 0,
                        segment["source_first"] + index * segment["stride"],
                    )
                    if number == self.target_generation(key[0]):
                        living.setdefault(key, []).append((*place, segment["target_first"] + index))
                    elif counted:
                        before.setdefault(key, set()).add(place)
        return living, before


def _sides(runs: list[tuple[int, int]], source: Log, mirror: Log) -> Sides:
    """A partition as those see it who move groups: `runs` are pairs of offsets here and there, in
    order."""

    def translate(
        asked: Collection[TopicPartitionOffset],
    ) -> dict[TopicPartitionOffset, Translated]:
        end = runs[-1][0] + 1
        return {
            key: Translated(
                *key[:2],
                offset=next((at for offset, at in runs if offset >= key[2]), runs[-1][1] + 1),
                exact=key[2] <= max(end, source.stable),
                ahead=key[2] < end,
                end=end,
            )
            for key in asked
        }

    return Sides(
        translate,
        lambda wanted: dict.fromkeys(wanted, source.start),
        lambda wanted: dict.fromkeys(wanted, source.end),
        lambda wanted: dict.fromkeys(wanted, LogEnds(mirror.start, mirror.end)),
    )


__all__ = ["FLOW", "SOURCE", "TARGET", "TOPICS", "Death", "Incident", "Settings", "World"]
