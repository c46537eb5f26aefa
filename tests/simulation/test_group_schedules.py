"""Consumer groups, over thousands of turns in which something else happens each time: nothing that
a group has not read is ever behind its position at the target, no position moves back, and each
comes to where it was at the source."""

import random
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from mirrorlake.config.topology import Topology, load_topology
from mirrorlake.errors import MirrorlakeError
from mirrorlake.groups.checkpoint_plan import BEHIND_LOST, GONE, OVER, Checkpoint
from mirrorlake.groups.group_sync import GroupTurns
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.changes import MemoryLog
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.reader import NONE, Frames, QueryRows
from mirrorlake.offsets.positions import Committed, Reached, TopicAndPartition
from mirrorlake.testing import MemoryCluster, MemoryLake
from tests.simulation.sides import Faults, Key, Side
from tests.support.group_turns import Running
from tests.support.lake_rows import FLOW, write_file

TOPICS = ("orders", "payments")
PARTITIONS = ((TOPICS[0], 0), (TOPICS[0], 1), (TOPICS[1], 0))
GROUPS = ("alice", "bob", "carol")
MIRROR = "east.{}"
#: Schedules of so many steps, in so many parts.
SCHEDULES, STEPS, PARTS = 250, 40, 4
#: `make test` has the first seed.
MORE_SEEDS = pytest.mark.wide("test_no_schedule_breaks_a_law_of_groups")


@dataclass
class Partition:
    """A partition of the source and its mirror.

    `records` are the offsets that have one, the others are markers. `mirrored` pairs a record with
    its offset at the target; the map has the first `mapped` of them. Where the target has lost
    records, each of the `losses` from an offset on, it `waits` for an operator.
    """

    records: list[int] = field(default_factory=list)
    end: int = 0
    start: int = 0
    mirrored: list[tuple[int, int]] = field(default_factory=list)
    mapped: int = 0
    target_end: int = 0
    target_start: int = 0
    losses: list[tuple[int, datetime]] = field(default_factory=list)
    waits: bool = False

    @property
    def mapped_end(self) -> int:
        """Where the map ends, at the source."""
        return self.mirrored[self.mapped - 1][0] + 1 if self.mapped else 0

    def unread(self, position: int) -> list[int]:
        """Where at the target the records are that a consumer has not read, which is at a position
        of the source."""
        return [at for offset, at in self.mirrored if offset >= position]

    def ahead(self, position: int) -> list[int]:
        """Where the records are that a consumer still gets at the target, from a position there
        on."""
        return [at for _, at in self.mirrored if at >= max(position, self.target_start)]


class GroupLake(MemoryLake):
    """The lake of a world: the law of translation, and the newest checkpoints."""

    def __init__(self, world: "World", faults: Faults) -> None:
        nothing = ("left_out_groups", "generation_begins", "living_targets_of")
        passed_over = ("starts_of", "mirror_incidents", "parked_waiting")
        super().__init__(dict.fromkeys((*nothing, *passed_over), ()))
        self._world, self._faults = world, faults

    def query_rows(self, name: str, frames: Frames = NONE, **args: object) -> QueryRows:
        if self._faults.takes(f"lake {name}"):
            raise OSError("the lake does not answer")
        if name == "newest_checkpoints":
            newest = {}
            for row in self.appended.get("checkpoints", ()):
                if row["source_position"] is not None:
                    newest[row["group_id"], row["topic"], row["partition"]] = row
            return QueryRows(map(self._as_viewed, newest.values()))
        if name == "mapped_ends":
            return QueryRows(
                {"topic": key[0], "partition": key[1], "source_position": end}
                for key, log in self._world.logs.items()
                if (end := log.mapped_end)
            )
        if name == "translate_forward":
            asked: Any = frames["asked"]
            samples: Any = frames["samples"]
            ends = {} if isinstance(samples, str) else {row[:2]: row[3:5] for row in samples.rows}
            return QueryRows(self._translated(*one, ends) for one in asked.rows)
        return super().query_rows(name, frames, **args)

    def _as_viewed(self, row: dict[str, Any]) -> dict[str, Any]:
        """A row as the view `group_positions` has it."""
        columns = set(Checkpoint.__dataclass_fields__) | {"checkpointed_at"}
        seen = {name: row[name] for name in columns}
        topic, position, world = row["topic"], row["target_position"], self._world
        if row["target_topic"] and world.target_generation(topic) != row["target_generation"]:
            return {**seen, "synced": False, "reason": OVER}
        losses = world.logs[topic, row["partition"]].losses
        is_behind = [
            at
            for at, until in losses
            if position is not None and at < position and until >= row["checkpointed_at"]
        ]
        if is_behind and row["reason"] != GONE:
            return {**seen, "synced": False, "reason": BEHIND_LOST}
        return seen

    def _translated(self, topic: str, partition: int, offset: int, ends: Any) -> dict[str, Any]:
        log = self._world.logs[topic, partition]
        end, log = log.mapped_end, Partition(mirrored=log.mirrored[: log.mapped])
        ahead = log.unread(offset)
        produced, mapped = ends.get((topic, partition), (0, 0))
        reached = produced if mapped <= end else 0
        behind = log.mirrored[-1][1] + 1 if log.mirrored else 0
        return {
            **{"asked_topic": topic, "partition": partition, "asked_offset": offset},
            **{"topic": MIRROR.format(topic), "offset": min(ahead, default=behind)},
            "exact": topic not in self._world.undecided
            and (bool(ahead) or offset <= max(end, reached)),
            **{"ahead": bool(ahead), "mapped": True, "known": True, "mapped_end": end},
        }

    def _commit(
        self, table: str, rows: pa.Table, application: str | None = None, version: int = 0
    ) -> None:
        fault = self._faults.takes(f"lake append {table}")
        if fault == "silent":
            raise OSError("no space left")
        super()._commit(table, rows, application, version)
        if fault:
            raise OSError("its answer was lost")


class World(Running):
    """Logs, and what a running flow says of them.

    `made` counts how often each target topic was made; `noted` is what the flow knows of that, and
    `undecided` are those about which no operator has decided.
    """

    def __init__(self) -> None:
        super().__init__()
        self.logs = {key: Partition() for key in PARTITIONS}
        self.made = dict.fromkeys(TOPICS, 0)
        self.noted = dict(self.made)
        self.undecided: set[str] = set()

    def target_generation(self, topic: str) -> int | None:
        return None if topic in self.undecided else self.noted[topic]

    def check_targets(self) -> None:
        self.undecided |= {topic for topic in TOPICS if self.made[topic] != self.noted[topic]}

    def decide(self) -> None:
        """An operator lets all go on, from the start of what is there."""
        self.check_targets()
        for log in self.logs.values():
            log.waits = False
        for topic in self.undecided:
            self.noted[topic] = self.made[topic]
            for key, log in self.logs.items():
                if key[0] == topic:
                    self.logs[key] = Partition(log.records, log.end)
        self.undecided.clear()

    def reached(self, keys: Iterable[TopicAndPartition]) -> dict[TopicAndPartition, Reached]:
        """A flow that has produced up to what it mirrored, and to the end once that is all."""
        ends = {}
        for key in keys:
            log = self.logs[key]
            mapped = log.mirrored[-1][0] + 1 if log.mirrored else 0
            is_all = len(log.mirrored) == len(log.records)
            ends[key] = Reached(log.end if is_all else mapped, mapped, MIRROR.format(key[0]))
        return ends


#: What may strike in a turn.
FAULTS = (
    *(("east listing", fault) for fault in ("silent", "part")),
    *(("east positions", fault) for fault in ("silent", "part", "part")),
    *(("west listing", fault) for fault in ("silent", "part")),
    *(("west members", fault) for fault in ("silent", "part")),
    *(("west positions", fault) for fault in ("silent", "part")),
    *(("west move", fault) for fault in ("silent", "part", "lost answer", "lost answer")),
    *(("lake append checkpoints", fault) for fault in ("silent", "lost answer")),
    *(("lake append changes", "silent"), ("lake translate_forward", "silent")),
)


class Schedule:
    """What happens to one flow's groups, as numbers say."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.world, self.faults = World(), Faults()
        self.lake = GroupLake(self.world, self.faults)
        self.east, self.west = Side("east", self.faults), Side("west", self.faults)
        ends = {topic: [1 << 40] * 2 for topic in TOPICS}
        self.clusters: dict[str, Any] = {
            "east": MemoryCluster("east", ends),
            "west": MemoryCluster("west", {MIRROR.format(name): at for name, at in ends.items()}),
        }
        #: Positions of which the source told, by group and partition.
        self.told: dict[Key, set[int]] = {}
        #: Groups that did something at the target by themselves.
        self.own: set[Key] = set()
        self.taken: list[str] = []
        self.seen = 0  # rows of checkpoints
        self._starts_anew()

    def _starts_anew(self) -> None:
        connections = Connections(
            self.topology, {**dict.fromkeys(self.topology.clusters), **self.clusters}
        )
        sides: Any = {"east": self.east, "west": self.west}
        connections.groups = sides.__getitem__  # type: ignore[method-assign]
        deployment = Deployment(self.lake, connections, MemoryLog())  # type: ignore[arg-type]
        published: Any = SimpleNamespace(publish=list)
        self.groups = GroupTurns(self.topology.flow(FLOW), deployment, self.world, published)

    def _say(self, text: str) -> None:
        self.taken.append(text)

    def flows_on(self, number: int) -> None:
        """Records come to the source, or to the target."""
        (self._records_come if number % 2 else self._mirror_follows)(number // 2)

    def happens(self, number: int) -> None:
        """Something rarer."""
        rare = (self._works_at_target, self._leaves_source, self._target_forgets)
        rarest = (self._target_is_made_again, self._target_loses, self._decides)
        (*rare, *rare, *rarest)[number % 9](number // 9)

    def _target_is_made_again(self, number: int) -> None:
        """With it go the positions of groups there; the flow learns of it when it looks."""
        topic = TOPICS[number % 2]
        self.world.made[topic] += 1
        for key, log in self.world.logs.items():
            if key[0] == topic:
                place = (MIRROR.format(topic), key[1])
                log.target_end = log.target_start = 0
                self.clusters["west"].starts.pop(place, None)
                for positions in self.west.at.values():
                    positions.pop(place, None)
        self._say(f"mirror of {topic} is made again")

    def _target_loses(self, number: int) -> None:
        """A mirror loses its newest records, which the flow notices, and sends again."""
        key = self._key(number)
        log = self.world.logs[key]
        if key[0] in self.world.undecided or self.world.made[key[0]] != self.world.noted[key[0]]:
            return
        log.target_end = max(log.target_start, log.target_end - 1 - number // 3 % 4)
        log.mirrored = [pair for pair in log.mirrored if pair[1] < log.target_end]
        log.mapped = min(log.mapped, len(log.mirrored))
        log.losses.append((log.target_end, datetime.now(timezone.utc)))
        log.waits = True
        self.world.lost += 1
        self._say(f"mirror of {key} ends at {log.target_end}")

    def _decides(self, _: int) -> None:
        """Behind some turns that nothing keeps from what they do."""
        self._turn()
        self.world.decide()
        self.groups.target._mirror_starts.forget()
        self._say("an operator decides")

    def _records_come(self, number: int) -> None:
        log = self._log(number)
        for at in range(1 + number // 3 % 4):
            if (number >> (8 + at)) % 4:
                log.records.append(log.end)
            log.end += 1
        self._say(f"source of {self._key(number)} ends at {log.end}")

    def _mirror_follows(self, number: int) -> None:
        """Some of the records come to the target, behind markers, and some rows into the map."""
        log, topic = self._log(number), self._key(number)[0]
        if log.waits or self.world.made[topic] != self.world.noted[topic]:
            return
        for offset in log.records[len(log.mirrored) :][: 1 + number // 3 % 4]:
            log.mirrored.append((offset, log.target_end + (number >> 9) % 2))
            log.target_end = log.mirrored[-1][1] + 1
        log.mapped = max(log.mapped, len(log.mirrored) - (number >> 10) % 3)
        self._say(f"mirror of {self._key(number)}: {log.mirrored}, mapped {log.mapped}")

    def reads_at_source(self, number: int) -> None:
        """A group commits: it has read up to there, or is set back."""
        key, group = self._key(number), GROUPS[number // 3 % 3]
        log = self.world.logs[key]
        known = self.east.at.setdefault(group, {}).get(key, Committed(0)).offset
        lowest = 0 if number // 9 % 5 == 0 else known
        at = lowest + (number >> 8) % (log.end - lowest + 1) if log.end >= lowest else known
        self.east.at[group][key] = Committed(at)
        self._say(f"{group} is at {at} of {key}")

    def _leaves_source(self, number: int) -> None:
        """A group's positions expire at the source, or it is deleted."""
        group = GROUPS[number % 3]
        if number // 3 % 2:
            self.east.at.pop(group, None)
        else:
            self.east.at[group] = {}
        self._say(f"{group} is gone at the source")

    def _works_at_target(self, number: int) -> None:
        """A group's consumers start there, read on, set themselves back, stop; or what it has there
        expires."""
        key, group = self._key(number), GROUPS[number // 3 % 3]
        place, log = (MIRROR.format(key[0]), key[1]), self.world.logs[key]
        what = number // 9 % 4
        if what == 0:
            self.west.active ^= {group}
            self.own |= {(group, *place) for place in PARTITIONS}
            self.west.at.setdefault(group, {})
        elif what == 1:
            self.west.at.pop(group, None)
            self.west.active.discard(group)
        else:
            at = log.target_start + (number >> 8) % (log.target_end - log.target_start + 1)
            self.west.at.setdefault(group, {})[place] = Committed(at)
            self.own.add((group, *key))
        self._say(f"{group} works at the target: {what} {key} {self.west.at.get(group)}")

    def _target_forgets(self, number: int) -> None:
        """Retention moves the start of a mirror."""
        key = self._key(number)
        log = self.world.logs[key]
        log.target_start += (number >> 8) % (log.target_end - log.target_start + 1)
        self.clusters["west"].starts[MIRROR.format(key[0]), key[1]] = log.target_start
        self.groups.target._mirror_starts.forget()  # a minute later
        self._say(f"mirror of {key} starts at {log.target_start}")

    def turn(self, number: int) -> None:
        """Checkpoints, and what is moved by them; something may go wrong in it."""
        if number % 3:
            call, fault = FAULTS[(number >> 8) % len(FAULTS)]
            self.faults.armed = {call: (fault, (number >> 20) % 2)}
        self._turn()
        self.faults.armed.clear()
        if number // 3 % 4 == 0:
            self._say("starts anew")
            self._starts_anew()

    def _turn(self) -> None:
        self._say(f"turn, {self.faults.armed}")
        for (topic, number), log in self.world.logs.items():
            self.clusters["west"].ends[MIRROR.format(topic)][number] = log.target_end
        self.groups.target._mirror_ends.forget()  # a minute later
        self.groups.source._listed._listed_at = float("-inf")
        for group, positions in self.east.at.items():
            for key, position in positions.items():
                self.told.setdefault((group, *key), set()).add(position.offset)
        for work in (self.groups.source.checkpoint, self.groups.target.sync):
            with suppress(MirrorlakeError, OSError):
                work()
        self._check_moves()
        self._check_gone()

    def _check_gone(self) -> None:
        """A group is gone where the source has no position of it, and not where it did not say."""
        rows = self.lake.appended.get("checkpoints", [])
        for row in rows[self.seen :]:
            if row["reason"] == GONE:
                there = self.east.at.get(row["group_id"], {})
                key = (row["topic"], row["partition"])
                assert key not in there, self._shown(f"{row['group_id']} is called gone in {key}")
        self.seen = len(rows)

    def _check_moves(self) -> None:
        for (group, topic, partition), before, to in self.west.moves:
            key = (topic.removeprefix("east."), partition)
            log = self.world.logs[key]
            self._say(f"  moved {group} in {key} from {before} to {to}")
            if before is not None and log.target_start <= before <= log.target_end:
                assert to >= before, self._shown(f"{group} is moved back in {key}")
            if before is not None and to < before:
                continue  # its owner was there
            skips = [
                [at for at in log.unread(position) if log.target_start <= at < to]
                for position in self.told.get((group, *key), ())
            ]
            assert [] in skips, self._shown(f"{group} skips {skips} in {key}")
        self.west.moves.clear()

    def _shown(self, text: str) -> str:
        return "\n".join([*self.taken, text])

    def _key(self, number: int) -> TopicAndPartition:
        return PARTITIONS[number % 3]

    def _log(self, number: int) -> Partition:
        return self.world.logs[self._key(number)]

    def run(self, chance: random.Random) -> None:
        """Steps in any order, and what must be so in the end."""
        for _ in range(STEPS):
            step = chance.choice((self.flows_on, self.reads_at_source, self.happens, self.turn))
            step(chance.getrandbits(60))
        self._end()

    def _end(self) -> None:
        self._decides(0)
        for key, log in self.world.logs.items():
            for offset in log.records[len(log.mirrored) :]:
                log.mirrored.append((offset, log.target_end))
                log.target_end += 1
            log.mapped = len(log.mirrored)
            self._say(f"mirror of {key}: {log.mirrored}, all of it mapped")
        self.west.active.clear()
        for _ in range(3):
            self._turn()
        for group, positions in self.east.at.items():
            for key, position in positions.items():
                self._check_end(group, key, position.offset)

    def _check_end(self, group: str, key: TopicAndPartition, position: int) -> None:
        """Where all is mirrored, and nobody is in the way, each is where it belongs, unless it was
        further before, or its owner set it somewhere else."""
        log, place = self.world.logs[key], (MIRROR.format(key[0]), key[1])
        there = self.west.at.get(group, {}).get(place)
        assert there is not None, self._shown(f"{group} is nowhere in {key}")
        unread = [at for at in log.unread(position) if at >= log.target_start]
        further = max(self.told[(group, *key)]) > position
        if (group, *key) not in self.own and not further:
            assert log.ahead(there.offset) == unread, self._shown(
                f"{group} is at {there.offset} in {key}, and has not read {unread}"
            )
        newest = self.groups.source._newest.known()[(group, *key)]
        if newest.is_exact:
            assert log.ahead(newest.target_position) == unread, self._shown(
                f"{newest} is called exact, and {unread} is unread"
            )


def drawn(directory: Path, chance: random.Random) -> None:
    topology = load_topology(write_file(directory))
    for _ in range(SCHEDULES):
        Schedule(topology).run(chance)


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=MORE_SEEDS) for seed in range(1, PARTS))]
)
def test_no_schedule_breaks_a_law_of_groups(tmp_path: Path, seed: int) -> None:
    drawn(tmp_path, random.Random(seed))
