"""Positions in a topic that two opposite flows share under one name, over real tables, while both
flows go on: what a group has not read, of either kind, is not behind where its position leads, and
`exact` is called what it reads on from."""

import random
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from mirrorlake.failover.query_checkpoint import translate_query
from mirrorlake.groups.readable import readable_positions
from mirrorlake.groups.route_sides import sides_of
from mirrorlake.groups.shared_topics import Route
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.targets import note_targets
from mirrorlake.offsets.generations import NotedTarget
from mirrorlake.offsets.positions import Translated
from mirrorlake.spark.query_files import QueryPosition
from mirrorlake.testing import MemoryCluster
from tests.support.lake_rows import append, no_session, opened, record_row, write_file

TOPIC, KEY = "orders", ("orders", 0)
SCHEDULES, STEPS = 8, 20
#: `make test` has the first seed.
MORE_SEEDS = pytest.mark.wide("test_no_position_leads_behind_what_was_not_read")


@dataclass
class SharedLog:
    """The topic at one cluster: the name of the record at each offset, None for a marker."""

    records: list[str | None] = field(default_factory=list)

    @property
    def end(self) -> int:
        return len(self.records)

    def offset(self, name: str) -> int:
        return self.records.index(name)


@dataclass
class OneWay:
    """A flow: it has `passed` its source up to an offset, and `sent` records; the map has the first
    `mapped` of them."""

    name: str
    source: SharedLog
    target: SharedLog
    born: str
    passed: int = 0
    sent: list[tuple[int, int]] = field(default_factory=list)
    mapped: int = 0

    def go_on(self, count: int) -> None:
        """Write some records in a transaction, and leave out what came from the target."""
        wrote = False
        for offset in range(self.passed, min(self.source.end, self.passed + count)):
            record = self.source.records[offset]
            if record is not None and record.startswith(self.born):
                self.sent.append((offset, self.target.end))
                self.target.records.append(record)
                wrote = True
            self.passed = offset + 1
        if wrote:
            self.target.records.append(None)


class SharedTopic:
    """Two flows, and groups that stand at either side."""

    def __init__(
        self, directory: Path, chance: random.Random, ran: int = 2, is_paused: bool = False
    ) -> None:
        """`ran`: how many of the flows have ever run; `is_paused`: the one back is, as a whole."""
        self.chance = chance
        settings = {"policy": "identity", "provenance": "headers"}
        flows = {"east->west": settings, "west->east": {**settings, "paused": is_paused}}
        self.lake, self.topology = opened(no_session, write_file(directory, flows=flows))
        self.logs = {"east": SharedLog(), "west": SharedLog()}
        self.clusters: dict[str, Any] = {
            alias: MemoryCluster(alias, {TOPIC: [0]}) for alias in self.logs
        }
        self.connections = Connections(self.topology, {"north": None, **self.clusters})
        self.ways = [
            OneWay(f"{here}->{there}", self.logs[here], self.logs[there], here[0])
            for here, there in (("east", "west"), ("west", "east"))
        ]
        for way in self.ways[:ran]:
            noted = NotedTarget(0, self.clusters[way.name[-4:]]._ids[TOPIC], "stage", (0,))
            note_targets(self.lake, way.name, {(TOPIC, TOPIC): noted})
        self.taken: list[str] = []

    def say(self, text: str) -> None:
        self.taken.append(text)

    def records_come(self) -> None:
        alias = self.chance.choice([*self.logs])
        log = self.logs[alias]
        for _ in range(self.chance.randint(1, 3)):
            log.records.append(f"{alias[0]}{log.end}")
        self.say(f"{alias} is {log.records}")

    def produced(self) -> None:
        way = self.chance.choice(self.ways)
        way.go_on(self.chance.choice((1, 2, 99)))
        self.say(f"{way.name} is at {way.passed}, {way.sent}")

    def mapped(self) -> None:
        self._map(self.chance.choice(self.ways))

    def _map(self, way: OneWay) -> None:
        rows = [
            record_row(way.name, (TOPIC, 0, 0), at, TOPIC, to) for at, to in way.sent[way.mapped :]
        ]
        if rows:
            append(self.lake, "offset_map", rows)
        way.mapped = len(way.sent)
        self.say(f"the map of {way.name} has all")

    def sampled(self) -> None:
        self._sample(self.chance.choice(self.ways))

    def _sample(self, way: OneWay) -> None:
        at_target, all_of_it = way.target.end, way.passed == way.source.end
        row = {
            **{"flow": way.name, "topic": TOPIC, "partition": 0, "generation": 0},
            **{"sampled_at": datetime.now(timezone.utc), "interval_seconds": 10},
            **{"source_start": 0, "source_end": way.source.end, "staged_end": way.passed},
            **{"produced_end": way.passed, "lag_records": 0, "lag_seconds": 0.0},
            **{"target_topic": TOPIC, "target_generation": 0, "target_end": at_target},
            "mapped_end": way.sent[-1][0] + 1 if way.sent else 0,
            "target_passed_end": at_target if all_of_it else None,
        }
        append(self.lake, "positions", [row])
        self.say(f"sampled {way.name}: {row['produced_end']}, {row['target_passed_end']}")

    def go_on(self) -> None:
        self.chance.choice((self.records_come, self.produced, self.mapped, self.sampled))()

    def asks(self) -> None:
        """Where positions lead, while both flows go on, and others refresh who answers."""
        reverse = self.chance.random() < 0.5
        flow = self.topology.flow("east->west")
        reader: Any = Meanwhile(self)
        route = Route(flow, reverse, lake=reader, connections=self.connections)
        origin, goal = self.logs[route.origin], self.logs[route.goal]
        at = self.chance.randint(0, origin.end)
        read = {record for record in origin.records[:at] if record is not None}
        self._show()
        self.lake.reader.refresh()
        self.say(f"where does {at} of {route.origin} lead")
        found = readable_positions({(*KEY, at)}, sides_of(route)).get((*KEY, at))
        self.say(f"  {found}")
        if found is None:
            return
        self._check(found, read, goal)
        query = QueryPosition(1, {0: {KEY: at}})
        told = translate_query(reader, self.topology, flow, query, reverse)
        there = told.positions[0].get(KEY)
        self.say(f"  a query goes on at {there}, {told.problems}")
        if there is not None:
            self._check(Translated(TOPIC, 0, there, not told.problems, again=99), read, goal)

    def _check(self, found: Translated, read: set[str], goal: SharedLog) -> None:
        skipped = [
            one for one in goal.records[: found.offset] if one is not None and one not in read
        ]
        assert not skipped, "\n".join([*self.taken, f"skips {skipped}"])
        if found.exact:
            late = read - {*goal.records}
            assert not late, "\n".join([*self.taken, f"is called exact, and {late} come again"])
            again = [one for one in goal.records[found.offset :] if one in read]
            assert len(again) <= found.again, "\n".join([*self.taken, f"reads {again} again"])

    def _show(self) -> None:
        for alias, log in self.logs.items():
            self.clusters[alias].ends[TOPIC][0] = log.end

    def steps(self) -> None:
        for _ in range(STEPS):
            self.go_on()
            if self.chance.random() < 0.4:
                self.asks()


class Meanwhile:
    """Who answers, while the flows go on between two questions."""

    def __init__(self, shared: SharedTopic) -> None:
        self._shared = shared

    def query_rows(self, *args: Any, **named: Any) -> Any:
        while self._shared.chance.random() < 0.5:
            self._shared.go_on()
            self._shared._show()
            self._shared.lake.reader.refresh()
        return self._shared.lake.reader.query_rows(*args, **named)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._shared.lake.reader, name)


def drawn(directory: Path, chance: random.Random) -> None:
    SharedTopic(directory, chance).steps()


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=MORE_SEEDS) for seed in range(1, SCHEDULES))]
)
def test_no_position_leads_behind_what_was_not_read(tmp_path: Path, seed: int) -> None:
    drawn(tmp_path, random.Random(seed))


@pytest.mark.parametrize("is_sampled", [False, True])
def test_the_first_records_of_a_flow_are_not_passed_before_they_are_mapped(
    tmp_path: Path, is_sampled: bool
) -> None:
    """A flow that has mapped nothing yet has written a record in front of one that came back."""
    shared = SharedTopic(tmp_path, random.Random(0))
    east, west = shared.logs["east"], shared.logs["west"]
    onward, back = shared.ways
    east.records.append("e0")
    onward.go_on(1)
    west.records.append("w2")
    back.go_on(99)
    shared._map(back)
    if is_sampled:
        shared._sample(onward)
    route = Route(
        shared.topology.flow(onward.name), lake=shared.lake.reader, connections=shared.connections
    )
    shared._show()
    shared.lake.reader.refresh()
    position = readable_positions({(*KEY, 0)}, sides_of(route))[(*KEY, 0)]
    shared._check(position, set(), west)
    assert (position.offset, position.exact) == (0, False)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("at", "is_paused"),
    [
        (0, False),
        *(
            pytest.param(
                *case,
                marks=pytest.mark.wide(
                    "test_nothing_is_passed_that_a_flow_which_never_ran_would_bring"
                ),
            )
            for case in ((1, False), (0, True))
        ),
    ],
)
def test_nothing_is_passed_that_a_flow_which_never_ran_would_bring(
    tmp_path: Path, at: int, is_paused: bool, reverse: bool
) -> None:
    """What was born at the target lies in front of what the flow brought there, and no group of the
    source has read it. One that is paused will bring it."""
    shared = SharedTopic(tmp_path, random.Random(0), 1, is_paused)
    east, west = shared.logs["east"], shared.logs["west"]
    onward, _ = shared.ways
    west.records.append("w0")
    east.records.append("e0")
    onward.go_on(1)
    shared._map(onward)
    shared._sample(onward)
    flow = shared.topology.flow(onward.name)
    route = Route(flow, reverse, lake=shared.lake.reader, connections=shared.connections)
    shared._show()
    shared.lake.reader.refresh()
    origin, goal = (west, east) if reverse else (east, west)
    position = readable_positions({(*KEY, at)}, sides_of(route))[(*KEY, at)]
    read = {record for record in origin.records[:at] if record is not None}
    shared._check(position, read, goal)
    assert (position.offset, position.exact) == (0, False)
