"""Groups that operators move, over a flow that goes on, sources that fall silent, logs that go
back, and commands that are killed: nothing that a group has not read is behind it where it was
moved, and `exact` and `complete` are said of what is so."""

import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from mirrorlake.errors import ClusterUnreachable, MirrorlakeError
from mirrorlake.failover import drain
from mirrorlake.failover.failover import MoveOptions, move_groups
from mirrorlake.groups.group_sync import GroupTurns
from mirrorlake.groups.shared_topics import Direction
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.other_logs import OtherLogs
from mirrorlake.lake.targets import note_targets
from mirrorlake.landing.generations import begin_generations
from mirrorlake.landing.source_comparison import TopicGeneration
from mirrorlake.offsets.generations import NotedTarget
from mirrorlake.offsets.positions import Committed, Reached, TopicAndPartition
from mirrorlake.run.resolve import Wanted, resolve
from mirrorlake.testing import MemoryCluster
from tests.simulation.sides import Faults, Key, Killed, Side
from tests.support.group_turns import Running
from tests.support.lake_rows import FLOW, append, no_session, opened, record_row, write_file

TOPIC, MIRROR = "orders", "east.orders"
PARTITIONS = ((TOPIC, 0), (TOPIC, 1))
GROUPS = ("alice", "bob")
SCHEDULES, STEPS = 4, 60
#: `make test` has the first two seeds.
MORE_SEEDS = pytest.mark.wide("test_no_schedule_moves_a_group_past_what_it_has_not_read")
#: A record: which log of its partition it is of, and its offset there.
Record = tuple[int, int]


@dataclass
class MovedLog:
    """A partition of the source and its mirror.

    `records` are those at the source, of the log `life`, visible up to `open_at`. `mirrored` pairs
    records, of this log or of earlier ones, with their offsets at the target; the map has the first
    `mapped` of them. `generation` is the log that the flow goes by.
    """

    life: int = 0
    records: list[int] = field(default_factory=list)
    start: int = 0
    end: int = 0
    open_at: int | None = None
    mirrored: list[tuple[Record, int]] = field(default_factory=list)
    mapped: int = 0
    generation: int = 0
    waits: bool = False
    target_start: int = 0
    target_end: int = 0
    #: At which offset each later log left the one before it.
    cuts: dict[int, int] = field(default_factory=dict)

    @property
    def stable_end(self) -> int:
        return self.end if self.open_at is None else self.open_at

    def is_living(self, record: Record) -> bool:
        """Whether the source's log is still the one that a record is of, up to there."""
        life, offset = record
        return all(offset < cut for later, cut in self.cuts.items() if later > life)

    @property
    def is_unseen(self) -> bool:
        """Whether the log went back, and nobody has noticed it: nothing can tell of it then."""
        return self.life != self.generation and not self.waits

    @property
    def ours(self) -> list[tuple[int, int]]:
        """What of the source's log is mirrored."""
        return [(one[1], at) for one, at in self.mirrored if self.is_living(one)]

    @property
    def waiting(self) -> list[int]:
        """Records, visible or not, that are not mirrored."""
        done = {offset for offset, _ in self.ours}
        return [one for one in self.records if one not in done and one >= self.start]

    @property
    def visible(self) -> list[int]:
        return [one for one in self.waiting if one < self.stable_end]


class MovedFlow(Running):
    """What a running flow says of its partitions."""

    def __init__(self, logs: dict[TopicAndPartition, MovedLog]) -> None:
        super().__init__()
        self.logs = logs

    def generation(self, key: TopicAndPartition) -> int:
        return self.logs[key].generation

    def generations(self) -> Any:
        return tuple(log.generation for log in self.logs.values())

    def other_logs(self) -> OtherLogs:
        back = {key: log.cuts[log.life] for key, log in self.logs.items() if log.waits}
        return OtherLogs("east", frozenset(), back)

    def reached(self, keys: Any) -> Any:
        reached = {}
        for key in keys:
            log = self.logs[key]
            mapped, produced = mapped_end(log), produced_end(log)
            reached[key] = Reached(produced, mapped, MIRROR, 0, log.generation)
        return reached


def mapped_end(log: MovedLog) -> int:
    mine = [one[1] for one, _ in log.mirrored if one[0] == log.generation]
    return mine[-1] + 1 if mine else 0


def produced_end(log: MovedLog) -> int:
    if log.waits or log.visible:
        return mapped_end(log)
    return log.stable_end


class Operated:
    """What happens to one flow, and the commands of its operator."""

    def __init__(self, directory: Path, chance: random.Random) -> None:
        self.chance, self.faults = chance, Faults()
        self.logs = {key: MovedLog() for key in PARTITIONS}
        self.lake, self.topology = opened(no_session, write_file(directory, flows={FLOW: {}}))
        self.east, self.west = Side("east", self.faults), Side("west", self.faults)
        self.clusters: dict[str, Any] = {
            "east": MemoryCluster("east", {TOPIC: [0, 0]}),
            "west": MemoryCluster("west", {MIRROR: [0, 0]}),
        }
        self.taken: list[str] = []
        self.told: dict[Key, set[tuple[int, int]]] = {}
        self.own: set[Key] = set()
        self.runs_elsewhere = False
        self.begun: dict[TopicAndPartition, list[int]] = {}
        first = TopicGeneration(0, self.clusters["east"]._ids[TOPIC])
        begin_generations(self.lake, "east", {TOPIC: first})
        noted = NotedTarget(0, self.clusters["west"]._ids[MIRROR], "stage", (0, 0))
        note_targets(self.lake, FLOW, {(TOPIC, MIRROR): noted})
        self._starts_anew()

    def _starts_anew(self) -> None:
        self.connections = Connections(
            self.topology, {**dict.fromkeys(self.topology.clusters), **self.clusters}
        )
        sides: Any = {"east": self.east, "west": self.west}
        self.connections.groups = sides.__getitem__  # type: ignore[method-assign]
        self.connections.open_transactions = lambda *_: {}  # type: ignore[method-assign]
        self.deployment = Deployment.opened(self.lake, self.connections)
        published: Any = type("Published", (), {"publish": staticmethod(list)})()
        self.groups = GroupTurns(
            self.topology.flow(FLOW), self.deployment, MovedFlow(self.logs), published
        )

    def say(self, text: str) -> None:
        self.taken.append(text)

    def shown(self, text: str) -> str:
        return "\n".join([*self.taken, text])

    def _show(self) -> None:
        """The clusters have what the logs have."""
        for (topic, number), log in self.logs.items():
            east, west = self.clusters["east"], self.clusters["west"]
            east.ends[topic][number], west.ends[MIRROR][number] = log.end, log.target_end
            east.starts[topic, number], west.starts[MIRROR, number] = log.start, log.target_start
            east.open_at.pop((topic, number), None)
            if log.open_at is not None:
                east.open_at[topic, number] = log.open_at

    # What happens.

    def records_come(self) -> None:
        key = self.chance.choice(PARTITIONS)
        log = self.logs[key]
        for _ in range(self.chance.randint(1, 4)):
            if self.chance.random() < 0.8:
                log.records.append(log.end)
            log.end += 1
        self.say(f"source of {key} ends at {log.end}, {log.records}")

    def transaction(self) -> None:
        key = self.chance.choice(PARTITIONS)
        log = self.logs[key]
        log.open_at = log.end if log.open_at is None else None
        self.say(f"transaction of {key}: {log.open_at}")
        if log.open_at is not None:
            log.records.append(log.end)
            log.end += 1

    def produced(self) -> None:
        self._mirror(self.chance.choice(PARTITIONS), self.chance.randint(1, 4))

    def _mirror(self, key: TopicAndPartition, count: int) -> None:
        log = self.logs[key]
        if log.waits or log.generation != log.life:
            return
        for offset in log.visible[:count]:
            log.mirrored.append(((log.life, offset), log.target_end))
            log.target_end += 1
        log.target_end += self.chance.randint(0, 1)
        self.say(f"mirror of {key}: {log.mirrored}, ends at {log.target_end}")

    def mapped(self) -> None:
        for key, log in self.logs.items():
            self._map(key, log)

    def _map(self, key: TopicAndPartition, log: MovedLog) -> None:
        rows = [
            record_row(FLOW, (*key, life), offset, MIRROR, at)
            for (life, offset), at in log.mirrored[log.mapped :]
        ]
        if rows:
            append(self.lake, "offset_map", rows)
            log.mapped = len(log.mirrored)
            self.say(f"map of {key} has all")

    def sampled(self) -> None:
        if self.clusters["east"].refusal is not None:
            return
        rows = []
        now = datetime.now(timezone.utc)
        for key, log in self.logs.items():
            passed = not (log.waits or log.visible)
            common = {"flow": FLOW, "topic": key[0], "partition": key[1], "sampled_at": now}
            produced = produced_end(log)
            rows.append(
                {
                    **common,
                    **{"source_start": log.start, "source_end": log.stable_end},
                    **{"staged_end": produced, "produced_end": produced, "lag_records": 0},
                    **{"target_end": log.target_end, "target_topic": MIRROR, "lag_seconds": 0.0},
                    **{"mapped_end": mapped_end(log), "target_generation": 0},
                    **{"target_passed_end": log.target_end if passed else None},
                    **{"generation": log.generation, "source_high_watermark": log.end},
                    **{"interval_seconds": 10},
                }
            )
        append(self.lake, "positions", rows)
        self.say("sampled")

    def reads_at_source(self) -> None:
        """A consumer reads on, or is set back; it may be a reader of what is not committed."""
        key, group = self.chance.choice(PARTITIONS), self.chance.choice(GROUPS)
        log = self.logs[key]
        known = self.east.at.setdefault(group, {}).get(key, Committed(log.start)).offset
        lowest = log.start if self.chance.random() < 0.2 else known
        highest = log.end if self.chance.random() < 0.1 else log.stable_end
        at = self.chance.randint(min(lowest, highest), highest)
        self.east.at[group][key] = Committed(at)
        self.say(f"{group} is at {at} of {key}")

    def reads_at_target(self) -> None:
        key, group = self.chance.choice(PARTITIONS), self.chance.choice(GROUPS)
        log, place = self.logs[key], (MIRROR, key[1])
        known = self.west.at.get(group, {}).get(place)
        if known is None:
            return
        low = max(known.offset, log.target_start)
        if self.chance.random() < 0.1:
            low = log.target_start
        at = self.chance.randint(min(low, log.target_end), log.target_end)
        self.west.at[group][place] = Committed(at)
        self.own.add((group, *key))
        self.say(f"{group} is at {at} of mirror of {key}")

    def joins(self) -> None:
        side, group = self.chance.choice((self.east, self.west)), self.chance.choice(GROUPS)
        side.active ^= {group}
        side.at.setdefault(group, {})
        self.say(f"{side.name} has members of {side.active}")

    def trims(self) -> None:
        key = self.chance.choice(PARTITIONS)
        log = self.logs[key]
        if self.chance.random() < 0.5:
            done = mapped_end(log)
            log.start = max(log.start, self.chance.randint(0, min(done, log.stable_end)))
            log.records = [one for one in log.records if one >= log.start]
        else:
            mapped = log.mirrored[log.mapped - 1][1] + 1 if log.mapped else 0
            log.target_start = self.chance.randint(log.target_start, max(mapped, log.target_start))
        self.say(f"{key} starts at {log.start}, its mirror at {log.target_start}")

    def goes_silent(self) -> None:
        east = self.clusters["east"]
        if east.refusal is None:
            east.refusal = ClusterUnreachable("it does not answer", alias="east")
        else:
            east.refusal = None
        self.east.is_gone = east.refusal is not None
        self.say(f"source is silent: {self.east.is_gone}")

    def leader_is_silent(self) -> None:
        name = self.chance.choice(("east", "west"))
        topic = TOPIC if name == "east" else MIRROR
        cluster = self.clusters[name]
        cluster.silent = cluster.silent ^ {(topic, self.chance.randint(0, 1))}
        self.say(f"silent leaders of {name}: {cluster.silent}")

    def goes_back(self) -> None:
        """The log of a partition goes back, and on from there: another leader had less."""
        key = self.chance.choice(PARTITIONS)
        log = self.logs[key]
        if log.life != log.generation or log.end <= log.start or log.open_at is not None:
            return
        if mapped_end(log) <= log.start:
            return
        cut = self.chance.randint(log.start, mapped_end(log) - 1)
        log.life += 1
        log.cuts[log.life] = cut
        log.records = [one for one in log.records if one < cut]
        log.end = cut
        for _ in range(self.chance.randint(0, 8)):
            log.records.append(log.end)
            log.end += 1
        for positions in self.east.at.values():
            if key in positions and positions[key].offset > log.end:
                positions[key] = Committed(log.end)
        self.say(f"log of {key} went back to {cut}, ends at {log.end}")

    def landing_notices(self) -> None:
        """Landing tells of logs that went back."""
        for key, log in self.logs.items():
            if log.life != log.generation and not log.waits:
                log.waits = True
                cut = log.cuts[log.life]
                row = {"flow": FLOW, "at": datetime.now(timezone.utc), "kind": "source_rewound"}
                row |= {"topic": key[0], "partition": key[1], "first_offset": cut}
                row |= {"last_offset": cut, "detail": "it went back", "generation": log.generation}
                append(self.lake, "incidents", [row])
                self.say(f"landing sees that {key} went back")

    def decides(self) -> None:
        """An operator lets what waits go on."""
        for key, log in self.logs.items():
            if not log.waits:
                continue
            wanted = Wanted(topic=key[0], partition=key[1], kind="source_rewound")
            resolve(self.deployment, wanted, "new-generation")
            log.generation, log.waits = log.life, False
            self.say(f"an operator decides about {key}")

    # The flow's own turns, and commands.

    def turn(self) -> None:
        self._show()
        self.groups.target._mirror_ends.forget()
        self.groups.target._mirror_starts.forget()
        self.groups.source._listed._listed_at = float("-inf")
        self.say("a turn of groups")
        self._source_tells()
        works = [self.groups.source.checkpoint]
        works += [self.groups.target.sync] if self.chance.random() < 0.5 else []
        for work in works:
            with suppress(MirrorlakeError):
                work()
        self.west.moves.clear()

    def _source_tells(self) -> None:
        if self.clusters["east"].refusal is None:
            for group, positions in self.east.at.items():
                for key, position in positions.items():
                    life = self.logs[key].life
                    self.told.setdefault((group, *key), set()).add((life, position.offset))

    def run(self) -> None:
        """Stands for a replicator: what it lands, produces and maps before it ends."""
        self.landing_notices()
        dice = self.chance.random()
        if dice < 0.1:
            raise MirrorlakeError("it could not land")
        for key in PARTITIONS:
            self._mirror(key, self.chance.randint(0, 3) if dice < 0.2 else 99)
            if self.chance.random() < 0.2:
                self.records_come()
            if dice > 0.3:
                self._map(key, self.logs[key])
        if 0.2 < dice < 0.3:
            raise Killed
        self._show()
        self.sampled()
        if any(log.waits for log in self.logs.values()):
            raise MirrorlakeError("a partition waits for a decision")

    def meanwhile(self, seconds: float, _: float) -> Iterator[bool]:
        """What a process elsewhere does while a command waits."""
        yield False
        for _ in range(3):
            step = self.chance.choice(
                (self.landing_notices, self.records_come, self._elsewhere, self._elsewhere)
            )
            if seconds:
                step()
            self._show()
            yield False
        yield True

    def _elsewhere(self) -> None:
        if self.runs_elsewhere:
            for key in PARTITIONS:
                self._mirror(key, 99)
                self._map(key, self.logs[key])
            self.sampled()

    def failover(self) -> None:
        self._command(reverse=False)

    def failback(self) -> None:
        self._command(reverse=True)

    def _command(self, reverse: bool) -> None:
        """One that may be killed, or go wrong, and is repeated then."""
        self._show()
        self._source_tells()
        self.runs_elsewhere = self.chance.random() < 0.3
        options = MoveOptions(drain=self.chance.random() < 0.6)
        if self.chance.random() < 0.4:
            call = f"{self.chance.choice(('east', 'west'))} " + self.chance.choice(
                ("listing", "positions", "move")
            )
            fault = self.chance.choice(("silent", "part", "killed"))
            if call.endswith("move"):
                fault = self.chance.choice(("silent", "part", "lost answer", "killed behind"))
            self.faults.armed = {call: (fault, self.chance.randint(0, 1))}
        word = "failback" if reverse else "failover"
        self.say(f"{word} {options}, elsewhere: {self.runs_elsewhere}, {self.faults.armed}")
        before = {key: log.waiting for key, log in self.logs.items()}
        try:
            told = move_groups(
                self.deployment, Direction(self.topology.flow(FLOW), reverse), options
            )
        except (MirrorlakeError, Killed) as error:
            self.say(f"  it ended with {error!r}")
            self._starts_anew()
            return
        finally:
            self.faults.armed.clear()
            self.west.moves.clear()
            self.east.moves.clear()
        self.say(f"  {told}")
        self._check(told, reverse, options, before)

    def _check(
        self,
        told: dict[str, Any],
        reverse: bool,
        options: MoveOptions,
        before: dict[TopicAndPartition, list[int]],
    ) -> None:
        origin, goal = (self.west, self.east) if reverse else (self.east, self.west)
        seen: set[Key] = set()
        for one in told["groups"]:
            key = (TOPIC, one["partition"])
            log, group = self.logs[key], one["group"]
            seen.add((group, *key))
            place = (one["to_topic"], one["partition"])
            now = goal.at.get(group, {}).get(place)
            if one["done"] not in ("moved", "there") or now is None:
                continue
            if one["done"] == "there" and one["detail"]:
                continue  # its owner went on there
            if log.is_unseen:
                continue
            if told["origin_unreachable"] is not None:
                self._check_by_told(one, log, now.offset)
            elif reverse:
                self._check_back(one, log, now.offset)
            else:
                self._check_there(one, log, now.offset)
        if told["complete"]:
            self._check_complete(told, reverse, options, before, seen)

    def _check_by_told(self, one: dict[str, Any], log: MovedLog, now: int) -> None:
        """A position of a source that is gone, which it told before."""
        key = (one["group"], TOPIC, one["partition"])
        skips = [
            [
                to
                for record, to in log.mirrored
                if (record[0] > life or record[0] <= life and record[1] >= at)
                and log.target_start <= to < now
            ]
            for life, at in self.told.get(key, ())
        ]
        assert [] in skips, self.shown(f"{one} skips {skips}")

    def _check_there(self, one: dict[str, Any], log: MovedLog, now: int) -> None:
        """A position of the source, as one at the target."""
        at = one["position"]
        unread = [to for offset, to in log.ours if offset >= at and to >= log.target_start]
        skipped = [to for to in unread if to < now]
        assert not skipped, self.shown(f"{one} skips {skipped}")
        if not one["exact"]:
            return
        again = [pair for pair in log.ours if pair[0] < at and pair[1] >= now]
        assert not again, self.shown(f"{one} is called exact and reads {again} again")
        missing = [offset for offset in log.waiting if offset < at]
        assert not missing, self.shown(f"{one} is called exact and will get {missing} again")
        gone = [
            pair
            for pair in log.ours
            if pair[0] >= max(at, log.start) and pair[1] < log.target_start
        ]
        assert not gone, self.shown(f"{one} is called exact and {gone} is gone there")

    def _check_back(self, one: dict[str, Any], log: MovedLog, now: int) -> None:
        """A position of the target, as one at the source."""
        at = one["position"]
        unread = [offset for offset, to in log.ours if to >= at and offset >= log.start]
        unread += log.waiting
        skipped = [offset for offset in unread if offset < now]
        assert not skipped, self.shown(f"{one} skips {skipped} at the source")
        if one["exact"]:
            again = [pair for pair in log.ours if pair[1] < at and pair[0] >= now]
            assert not again, self.shown(f"{one} is called exact and reads {again} again")

    def _check_complete(
        self,
        told: dict[str, Any],
        reverse: bool,
        options: MoveOptions,
        before: dict[TopicAndPartition, list[int]],
        seen: set[Key],
    ) -> None:
        if told["origin_unreachable"] is None:
            origin = self.west if reverse else self.east
            for group, positions in origin.at.items():
                for key in positions:
                    if (group, TOPIC, key[1]) not in seen:
                        raise AssertionError(self.shown(f"{group} in {key} is left out"))
            if options.drain:
                for key, waiting in before.items():
                    log = self.logs[key]
                    if log.is_unseen:
                        continue
                    left = [one for one in waiting if one in log.waiting]
                    assert not left, self.shown(f"complete, and {left} of {key} is not mirrored")

    def steps(self) -> None:
        often = (self.records_come, self.produced, self.mapped, self.sampled)
        reading = (self.reads_at_source, self.reads_at_source, self.reads_at_target, self.turn)
        rare = (self.transaction, self.joins, self.trims, self.leader_is_silent)
        rarest = (self.goes_silent, self.goes_back, self.landing_notices, self.decides)
        commands = (self.failover, self.failover, self.failback)
        for _ in range(STEPS):
            kind = self.chance.choices((often, reading, rare, rarest, commands), (6, 6, 1, 1, 2))[0]
            self.chance.choice(kind)()


def drawn(directory: Path, chance: random.Random) -> None:
    with pytest.MonkeyPatch.context() as patches:
        schedule = Operated(directory, chance)
        patch(patches, schedule)
        schedule.steps()


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=MORE_SEEDS) for seed in range(2, SCHEDULES))]
)
def test_no_schedule_moves_a_group_past_what_it_has_not_read(tmp_path: Path, seed: int) -> None:
    drawn(tmp_path, random.Random(seed))


def patch(monkeypatch: pytest.MonkeyPatch, schedule: Operated) -> None:
    monkeypatch.setattr(drain, "Replicator", lambda *_, **__: schedule)
    monkeypatch.setattr(drain, "attempts", schedule.meanwhile)
    monkeypatch.setattr(drain, "hidden", lambda *_: {})
    monkeypatch.setattr(drain, "_is_free", lambda *_: (not schedule.runs_elsewhere, None))
