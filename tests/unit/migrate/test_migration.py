"""A whole wave over clusters in memory: positions read, located, set, read back and noted."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from mirrorlake.config.topology import Topology
from mirrorlake.errors import InputError
from mirrorlake.groups import passed_over
from mirrorlake.groups.shared_topics import Route
from mirrorlake.kafka.answered_offsets import Bounds
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.groups import GroupPositions, Listing
from mirrorlake.lake.changes import Change
from mirrorlake.migrate import locating, migration, reading
from mirrorlake.migrate.copies import Wave
from mirrorlake.migrate.migration import migrate
from mirrorlake.mm2.formats import OffsetSync, encode_offset_sync
from mirrorlake.offsets.positions import Committed, TopicAndPartition, Translated
from mirrorlake.produce.encoding import RECORDS
from mirrorlake.testing import MemoryCluster

THEIRS, OURS = ("east.orders", 0), ("east.mirrorlake.orders", 0)
SYNCS = "mm2-offset-syncs.west.internal"
#: Source offsets that MirrorMaker 2 copied: it died behind 59, and had noted 29 last.
COPIED = [*range(60), *range(30, 100)]
COUNT = 100


@dataclass
class FakeLog:
    """Logs of partitions in memory, as a `LogReader` reads them."""

    logs: Mapping[TopicAndPartition, list[tuple[bytes | None, bytes | None, int]]]

    def bounds(self, key: TopicAndPartition) -> Bounds:
        return Bounds(0, len(self.logs[key]))

    def offset_at(self, key: TopicAndPartition, timestamp: int) -> int:
        found = [at for at, record in enumerate(self.logs[key]) if record[2] >= timestamp]
        return found[0] if found else len(self.logs[key])

    def read(self, key: TopicAndPartition, first: int, end: int) -> Iterator[pa.RecordBatch]:
        rows = [
            {
                "offset": at,
                "timestamp": self.logs[key][at][2],
                "key": self.logs[key][at][0],
                "headers": [],
            }
            | {"value": self.logs[key][at][1]}
            for at in range(first, end)
        ]
        yield pa.RecordBatch.from_pylist(rows, RECORDS)


@dataclass
class FakeGroups:
    """Consumer groups in memory."""

    states: dict[str, str] = field(default_factory=dict)
    held: dict[str, dict[TopicAndPartition, Committed]] = field(default_factory=dict)
    errors: tuple[str, ...] = ()
    others: frozenset[str] = frozenset()

    def other_kinds(self, _listing: Listing) -> frozenset[str]:
        return self.others

    def listing(self) -> Listing:
        return Listing(self.states, self.errors)

    def positions(self, groups: Iterable[str]) -> GroupPositions:
        return GroupPositions({group: dict(self.held.get(group, {})) for group in groups})

    def move(self, moves: Mapping[str, Mapping[TopicAndPartition, Committed]]) -> dict[Any, str]:
        for group, items in moves.items():
            self.held.setdefault(group, {}).update(items)
        return {}

    def stand(self, group: str, key: TopicAndPartition, offset: int, state: str = "EMPTY") -> None:
        self.states[group] = state
        self.held.setdefault(group, {})[key] = Committed(offset, "mine")


@dataclass
class FakeLake:
    """What a wave asks of a lake: the history of changes, and which topics have mirrors. What is
    recorded comes into it."""

    changes: list[Change] = field(default_factory=list)
    parked: Sequence[int] = ()

    def query_rows(self, name: str, **_args: object) -> list[dict[str, Any]]:
        if name in ("starts_of", "mirror_incidents", "generation_begins"):
            return []
        if name == "parked_waiting":
            place = {"topic": "orders", "partition": 0, "generation": 0}
            return [{**place, "offset": offset} for offset in self.parked]
        if name == "living_targets_of":
            living = {"target_generation": 0, "topic_id": "", "lives": True}
            return [{"topic": "orders", "target_topic": OURS[0], **living}]
        assert name == "changes_of"
        return [vars(change) for change in self.changes]

    def refresh(self) -> None:
        pass

    def record(self, _flow: str, changes: list[Change]) -> None:
        self.changes += changes


@dataclass
class World:
    connections: Connections
    groups: FakeGroups
    lake: FakeLake
    ours: list[Any]

    def migrate(self, **options: Any) -> dict[str, Any]:
        wave = Wave(**{"topics": "orders", **options})
        flow = self.connections.topology.flow("east->west")
        lake: Any = self.lake
        route = Route(flow, lake=lake, connections=self.connections)
        return migrate(None if wave.dry_run else lake, route, wave)


@pytest.fixture(params=[True, False], ids=["syncs", "timestamps"])
def world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> World:
    source = [(b"k", b"%d" % number, 1_000 + number) for number in range(COUNT)]
    theirs, ours = [source[number] for number in COPIED], list(source)
    syncs = (
        [OffsetSync("orders", 0, COPIED[at], at) for at in (0, 20, 40, 60, 80, 100)]
        if request.param
        else []
    )
    logs = {
        THEIRS: theirs,
        OURS: ours,
        (SYNCS, 0): [(*encode_offset_sync(sync), 0) for sync in syncs],
    }
    east = MemoryCluster("east", {"orders": [COUNT], SYNCS: [len(syncs)]})
    west = MemoryCluster("west", {THEIRS[0]: [len(theirs)], OURS[0]: [COUNT]})
    document = {
        "clusters": {name: {"bootstrap_servers": "x:1"} for name in ("east", "west")},
        "lake": {"path": "./lake"},
        "flows": {
            "east->west": {
                "topics": ["orders", "pay.*"],
                "replication_policy_separator": ".mirrorlake.",
            }
        },
    }
    connections = Connections(Topology.model_validate(document), {"east": east, "west": west})
    groups, lake = FakeGroups(), FakeLake()
    connections._groups["west"] = groups  # type: ignore[assignment]

    @contextmanager
    def log_of(*_: object) -> Iterator[FakeLog]:
        yield FakeLog(logs)

    def translated(
        _lake: object, _flow: str, asked: Iterable[Any], reverse: bool = False
    ) -> dict[Any, Translated]:
        name = "orders" if reverse else OURS[0]
        return {
            key: Translated(name, 0, min(key[2], len(ours)), key[2] <= len(ours)) for key in asked
        }

    monkeypatch.setattr(reading, "log_of", log_of)
    monkeypatch.setattr(locating, "log_of", log_of)
    monkeypatch.setattr(locating, "translate_all", translated)
    monkeypatch.setattr(passed_over, "translate_all", translated)
    monkeypatch.setattr(migration, "sole_mover", lambda *_: nullcontext([]))
    monkeypatch.setattr(migration, "EventLog", lambda lake: lake)
    monkeypatch.setattr(migration, "WAIT_SECONDS", 0.0)
    return World(connections, groups, lake, ours)


def unread(position: int) -> int:
    return max(COPIED[:position], default=-1) + 1


@pytest.mark.parametrize("position", [0, 1, 30, 59, 60, 61, 75, 89, 90, 91, len(COPIED)])
def test_a_group_reads_on(world: World, position: int) -> None:
    world.groups.stand("billing", THEIRS, position)
    dry = world.migrate(dry_run=True)
    assert [row["done"] for row in dry["groups"]] == ["would move"] and world.lake.changes == []
    document = world.migrate()
    (row,) = document["groups"]
    assert (row["done"], row["exact"], row["to_position"]) == ("moved", True, unread(position)), row
    assert world.groups.held["billing"][OURS] == Committed(unread(position), "mine")
    assert world.groups.held["billing"][THEIRS] == Committed(position, "mine"), "what it left stays"
    assert document["complete"] and [change.outcome for change in world.lake.changes] == ["done"]
    assert world.migrate()["groups"][0]["done"] == "there"
    assert len(world.lake.changes) == 1, "noted once"


@pytest.mark.parametrize(
    ("position", "wanted"), [(0, 0), (29, 29), (30, 60), (59, 89), (60, 90), (COUNT, len(COPIED))]
)
def test_and_back(world: World, position: int, wanted: int) -> None:
    world.groups.stand("billing", OURS, position)
    (row,) = world.migrate(rollback=True)["groups"]
    assert (row["to_topic"], row["to_position"], row["exact"]) == (THEIRS[0], wanted, True)


def test_a_share_group_is_named(world: World) -> None:
    """In the answer: a line of the log does not reach a program that asks."""
    world.groups.stand("billing", THEIRS, 75)
    world.groups.others = frozenset({"shared", "its"})
    document = world.migrate(groups="(bill|sh).*")
    (warning,) = document["warnings"]
    assert document["complete"] and warning.startswith("group shared is not moved: it is a share")


def test_there_and_back_while_others_read(world: World) -> None:
    world.groups.stand("billing", THEIRS, 75)
    world.groups.stand("busy", THEIRS, 10, "STABLE")
    document = world.migrate()
    assert {row["group"]: row["done"] for row in document["groups"]} == {
        "billing": "moved",
        "busy": "kept",
    }
    assert not document["complete"] and ["members" in line for line in document["left"]] == [True]
    world.groups.stand("billing", OURS, 80)
    back = world.migrate(groups="billing", rollback=True)
    assert (back["groups"][0]["done"], back["groups"][0]["to_position"]) == ("moved", 110)
    world.groups.stand("billing", THEIRS, 120)
    again = world.migrate(groups="billing")
    assert (again["groups"][0]["done"], again["groups"][0]["to_position"]) == ("moved", 90)
    world.groups.stand("billing", OURS, 95)
    assert world.migrate(groups="billing")["groups"][0]["detail"].startswith("moved here before")


def test_what_group_sync_noted_is_no_migration(world: World) -> None:
    """It had brought the group to our copy while nobody read at the target; consumers read the
    other copy since, and have to be stopped."""
    world.lake.changes.append(Change("group", f"billing {OURS[0]}-{OURS[1]}", None, "90"))
    world.groups.stand("billing", THEIRS, 120, "STABLE")
    document = world.migrate()
    assert not document["complete"] and "members" in document["left"][0]


def test_what_went_back_since_is_not_there(world: World) -> None:
    """The group reads the copy of MirrorMaker 2 again, at the position that it had left once."""
    world.groups.stand("billing", THEIRS, 120)
    assert world.migrate()["complete"] and world.migrate(rollback=True)["complete"]
    world.groups.stand("billing", THEIRS, 120, "STABLE")
    document = world.migrate()
    assert not document["complete"] and "members" in document["left"][0]
    world.groups.stand("billing", THEIRS, 120)
    assert world.migrate()["complete"]
    world.groups.stand("billing", THEIRS, 120, "STABLE")
    assert world.migrate()["complete"], "it reads on where it was moved last"


def test_what_ours_does_not_have_yet_waits(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    taken, world.ours[50:] = world.ours[50:], []
    world.connections.admin("west").ends[OURS[0]] = [50]  # type: ignore[attr-defined]
    world.groups.stand("billing", THEIRS, 58)
    world.groups.stand("reports", THEIRS, 75)  # within the repetition, behind what ours lacks
    document = world.migrate()
    for row, line in zip(document["groups"], document["left"], strict=True):
        assert (row["done"], row["exact"], row["to_position"]) == (
            "kept",
            False,
            50,
        ) and "not come" in line
    assert OURS not in world.groups.held["billing"]
    told = world.migrate(inexact=True, dry_run=True)["groups"][0]
    assert (told["done"], told["exact"]) == ("would move", False)

    def arrives(seconds: float, _pause: float) -> Iterator[bool]:
        assert seconds == migration.WAIT_SECONDS
        yield False
        world.ours.extend(taken)
        world.connections.admin("west").ends[OURS[0]] = [COUNT]  # type: ignore[attr-defined]
        yield False

    monkeypatch.setattr(migration, "WAIT_SECONDS", 5.0)
    monkeypatch.setattr(migration, "attempts", arrives)
    rows = world.migrate()["groups"]
    assert [(row["done"], row["to_position"]) for row in rows] == [("moved", 58), ("moved", 60)]


def test_what_our_copy_goes_on_without_is_read_in_the_old_one_first(world: World) -> None:
    """Source offsets 12 to 14 are parked; MirrorMaker 2's copy has them."""
    world.lake.parked = [12, 13, 14]
    world.groups.stand("behind", THEIRS, 20)
    world.groups.stand("billing", THEIRS, 10)
    behind, billing = world.migrate()["groups"]
    assert (behind["done"], behind["exact"]) == ("moved", True)
    assert (billing["done"], billing["exact"], billing["to_position"]) == ("kept", False, 10)
    assert "records are not there: up to 3; --inexact" in billing["detail"]
    document = world.migrate(groups="billing", inexact=True)
    assert [row["done"] for row in document["groups"]] == ["moved"] and not document["complete"]
    assert "up to 3" in document["left"][0]
    assert world.migrate(groups="billing")["complete"], "it was moved all the same"
    assert world.migrate(rollback=True)["complete"], "the old copy has them"


def test_a_group_that_has_read_what_our_copy_goes_on_without_misses_nothing(world: World) -> None:
    """It stands at the first record behind them: they were counted as never read."""
    world.lake.parked = [12]
    del world.ours[12:13]
    world.connections.admin("west").ends[OURS[0]] = [COUNT - 1]  # type: ignore[attr-defined]
    world.groups.stand("behind", THEIRS, 13)
    world.groups.stand("billing", THEIRS, 12)
    behind, billing = world.migrate()["groups"]
    assert (behind["done"], behind["exact"], behind["to_position"]) == ("moved", True, 12)
    assert (billing["done"], billing["exact"], billing["to_position"]) == ("kept", False, 12)


@dataclass
class Elsewhere:
    """The log that a group goes to is another one since its position was located there."""

    world: World
    monkeypatch: pytest.MonkeyPatch

    def after(self, change: Callable[[Any], None]) -> None:
        locate = locating.Locator.locate

        def located(locator: locating.Locator, asked: Any) -> Any:
            found = locate(locator, asked)
            change(self.world.connections.admin("west"))
            return found

        self.monkeypatch.setattr(locating.Locator, "locate", located)


@pytest.fixture
def elsewhere(world: World, monkeypatch: pytest.MonkeyPatch) -> Elsewhere:
    return Elsewhere(world, monkeypatch)


@pytest.mark.parametrize("rollback", [False, True])
@pytest.mark.parametrize("cut", [False, True])
def test_a_position_outside_of_the_log_of_now_is_not_called_exact(
    elsewhere: Elsewhere, rollback: bool, cut: bool
) -> None:
    """Retention has passed it, or the log has lost its end: consumers would begin elsewhere."""
    world, goal = elsewhere.world, THEIRS if rollback else OURS
    world.groups.stand("billing", OURS if rollback else THEIRS, 20)

    def change(west: Any) -> None:
        if cut:
            west.ends[goal[0]] = [15]
        else:
            west.starts[goal] = 25

    elsewhere.after(change)
    document = world.migrate(rollback=rollback)
    (row,) = document["groups"]
    assert (row["done"], row["exact"], row["to_position"]) == ("kept", False, 15 if cut else 25)
    why = "ends 5 offsets in front" if cut else "not there: up to 5"
    assert why in document["left"][0] and goal not in world.groups.held["billing"]
    west: Any = world.connections.admin("west")
    west.starts.clear()
    west.ends[goal[0]] = [COUNT]
    document = world.migrate(rollback=rollback, inexact=True)
    assert [row["done"] for row in document["groups"]] == ["moved"] and not document["complete"]
    assert why in document["left"][0]


@pytest.mark.parametrize("rollback", [False, True])
def test_where_the_log_of_now_is_not_reported_no_group_is_moved(
    elsewhere: Elsewhere, rollback: bool
) -> None:
    world, goal = elsewhere.world, THEIRS if rollback else OURS
    world.groups.stand("billing", OURS if rollback else THEIRS, 20)
    elsewhere.after(lambda west: west.silent.add(goal))
    document = world.migrate(rollback=rollback)
    assert [row["done"] for row in document["groups"]] == ["failed"] and not document["complete"]
    assert "once its leader answers" in document["left"][0]


@pytest.mark.parametrize("was_there", [False, True])
@pytest.mark.parametrize("rollback", [False, True])
def test_what_read_on_while_the_lease_was_waited_for_is_not_moved_to_where_it_was(
    world: World, monkeypatch: pytest.MonkeyPatch, rollback: bool, was_there: bool
) -> None:
    """Its consumers are stopped in time, and would read again what they have read since."""
    origin, goal = (OURS, THEIRS) if rollback else (THEIRS, OURS)
    before = {goal: Committed(20, "mine")} if was_there else {}
    world.groups.stand("billing", origin, 20, "STABLE")
    world.groups.held["billing"] |= before

    @contextmanager
    def waited(*_: object) -> Iterator[list[str]]:
        world.groups.stand("billing", origin, 25)
        yield []

    monkeypatch.setattr(migration, "sole_mover", waited)
    document = world.migrate(rollback=rollback)
    assert [row["done"] for row in document["groups"]] == ["kept"] and not document["complete"]
    assert "has read on" in document["left"][0]
    assert world.groups.held["billing"] == {origin: Committed(25, "mine"), **before}
    monkeypatch.setattr(migration, "sole_mover", lambda *_: nullcontext([]))
    assert world.migrate(rollback=rollback)["complete"]


@pytest.mark.parametrize("rollback", [False, True])
def test_what_reads_on_while_others_are_moved_is_not_where_it_should_be(
    world: World, monkeypatch: pytest.MonkeyPatch, rollback: bool
) -> None:
    """Behind the check of its position others may take seconds."""
    origin, goal = (OURS, THEIRS) if rollback else (THEIRS, OURS)
    world.groups.stand("billing", origin, 20)
    move = world.groups.move

    def reads_on(moves: Any) -> dict[Any, str]:
        world.groups.stand("billing", origin, 25)
        return move(moves)

    monkeypatch.setattr(world.groups, "move", reads_on)
    document = world.migrate(rollback=rollback)
    assert not document["complete"] and "has read on" in document["left"][0]
    monkeypatch.setattr(world.groups, "move", move)
    before = world.groups.held["billing"][goal].offset
    assert world.migrate(rollback=rollback)["complete"]
    assert world.groups.held["billing"][goal].offset > before


def test_whoever_may_still_move_groups_is_left_to_be_looked_at(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.groups.stand("billing", THEIRS, 20)
    monkeypatch.setattr(
        migration, "sole_mover", lambda *_: nullcontext(["be sure that it is gone"])
    )
    document = world.migrate()
    assert not document["complete"] and document["left"] == ["be sure that it is gone"]
    assert [row["done"] for row in document["groups"]] == ["moved"]


@pytest.mark.parametrize("was_moved_before", [False, True])
@pytest.mark.parametrize(
    ("errors", "says"), [({"billing": "no answer"}, "is not known: no answer"), ({}, "has read on")]
)
def test_what_may_have_read_on_is_not_where_it_should_be(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    errors: dict[str, str],
    says: str,
    was_moved_before: bool,
) -> None:
    world.groups.stand("billing", THEIRS, 20)
    if was_moved_before:
        assert world.migrate()["complete"]
    stands = {"billing": {THEIRS: Committed(25, "mine")}}
    now = GroupPositions({} if errors else stands, errors)
    with monkeypatch.context() as patch:
        patch.setattr(migration, "positions_or_errors", lambda *_: now)
        document = world.migrate()
    assert not document["complete"] and says in document["left"][0]
    assert world.migrate()["complete"]


@pytest.mark.parametrize("copies", ["{source}.{topic}", "{topic}"])
def test_what_stands_in_a_copy_of_a_topic_that_is_not_shown_is_left(
    world: World, monkeypatch: pytest.MonkeyPatch, copies: str
) -> None:
    """The flow never mirrored it, so there is nothing that the group could be moved to."""
    east: Any = world.connections.admin("east")
    west: Any = world.connections.admin("west")
    names = Wave(copies=copies)
    hidden = names.copy_of("east", "payments")
    east.make("payroll", 10)
    for copy in (names.copy_of("east", "payroll"), "east.mirrorlake.payroll", hidden):
        west.make(copy, 10)
    west.make("pay-at-home", 10)
    world.groups.stand("of its own", ("pay-at-home", 0), 5)
    identities = east.identities

    def shown(topics: Sequence[str]) -> tuple[Any, frozenset[str]]:
        known, missing = identities(topics)
        return known, missing - {"payments"}

    monkeypatch.setattr(east, "identities", shown)
    assert world.migrate(topics="pay.*", copies=copies)["complete"], "no group stands there"
    world.groups.stand("billing", (hidden, 0), 5)
    document = world.migrate(topics="pay.*", copies=copies)
    assert not document["complete"]
    (sentence,) = document["left"]
    assert f"group billing stands in {hidden}" in sentence and "topic payments" in sentence
    assert world.migrate(topics="payroll", copies=copies)["complete"]
    assert world.migrate(topics="pay.*", copies=copies, groups="of .*")["complete"]


def test_groups_of_the_wave_only(world: World) -> None:
    for group in ("billing", "reports", "mirrorlake-0a1b2c3d-east->west"):
        world.groups.stand(group, THEIRS, 5)
    assert [row["group"] for row in world.migrate(groups="bill.*")["groups"]] == ["billing"]
    assert [row["group"] for row in world.migrate(dry_run=True)["groups"]] == ["billing", "reports"]


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_pattern_of_groups_that_finds_none_is_an_error(world: World, dry_run: bool) -> None:
    """As one of topics is: it is misspelt, and nothing of the wave would be moved."""
    world.groups.stand("billing", THEIRS, 5)
    world.groups.stand("mirrorlake-0a1b2c3d-east->west", THEIRS, 5)
    for pattern in ("biling", "mirrorlake-.*"):
        with pytest.raises(InputError, match=f"west has no group that --groups {pattern} matches"):
            world.migrate(groups=pattern, dry_run=dry_run)
    world.groups.errors = ("broker 2 is away",)
    document = world.migrate(groups="biling", dry_run=dry_run)
    assert not document["complete"] and "broker 2" in document["left"][0], "it may be there"


def test_a_wave_before_any_group_is_there(world: World) -> None:
    assert world.migrate()["complete"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"topics": "none"}, "mirrors no topic"),
        ({"topics": "("}, "no regular expression"),
        ({"copies": "{source}_{topic}"}, "no east_orders"),
        ({"copies": "{source}.mirrorlake.{topic}"}, "both called"),
        ({"copies": "{source}"}, "write it as"),
        ({"copies": "{topic}{x}"}, "write it as"),
    ],
)
def test_what_cannot_be(world: World, options: dict[str, str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        world.migrate(**options)


@pytest.mark.parametrize("rollback", [False, True])
@pytest.mark.parametrize("silent", [THEIRS, OURS])
def test_a_position_whose_leader_does_not_answer_is_left(
    world: World, silent: TopicAndPartition, rollback: bool
) -> None:
    """It is neither taken for moved nor for none, and comes along when the leader is back."""
    west: Any = world.connections.admin("west")
    west.silent = {silent}
    world.groups.stand("billing", OURS if rollback else THEIRS, 20)
    for dry_run in (True, False):
        document = world.migrate(rollback=rollback, dry_run=dry_run)
        (row,) = document["groups"]
        assert (row["done"], row["to_position"]) == ("kept", None)
        assert not document["complete"] and "leader" in document["left"][0]
    west.silent = set()
    assert world.migrate(rollback=rollback)["complete"]


def test_a_group_that_stands_at_the_start_of_a_copy_is_not_there_for_that(world: World) -> None:
    """Where it has to stand is not known."""
    west: Any = world.connections.admin("west")
    west.silent = {OURS}
    world.groups.stand("billing", THEIRS, 20)
    world.groups.held["billing"][OURS] = Committed(0)
    document = world.migrate()
    assert [row["done"] for row in document["groups"]] == ["kept"]
    assert not document["complete"] and "leader" in document["left"][0]


@pytest.mark.parametrize("rollback", [False, True])
def test_a_topic_that_the_source_does_not_show_has_its_groups_moved(
    world: World, rollback: bool
) -> None:
    """It was deleted there, or may not be seen, and both copies are there still."""
    clusters: Any = {alias: world.connections.admin(alias) for alias in ("east", "west")}
    clusters["east"].delete("orders")
    origin, goal = (OURS, THEIRS) if rollback else (THEIRS, OURS)
    world.groups.stand("billing", origin, 20)
    document = world.migrate(rollback=rollback)
    assert [row["done"] for row in document["groups"]] == ["moved"] and document["complete"]
    clusters["west"].delete(goal[0])
    with pytest.raises(InputError, match=f"no {goal[0]}"):
        world.migrate(rollback=rollback)
    clusters["west"].delete(origin[0])
    with pytest.raises(InputError, match="mirrors no topic"):
        world.migrate(rollback=rollback)


def test_a_position_in_a_partition_that_only_one_copy_has_is_left(world: World) -> None:
    """The source got a partition more: one of the two replicators has not seen it yet."""
    west: Any = world.connections.admin("west")
    west.ends[THEIRS[0]].append(5)
    world.groups.stand("billing", THEIRS, 20)
    assert world.migrate(dry_run=True)["complete"], "no group stands there"
    world.groups.stand("billing", (THEIRS[0], 1), 3)
    document = world.migrate()
    assert [row["done"] for row in document["groups"]] == ["moved"]
    assert document["left"] == [
        "group billing, east.orders-1: the other copy has no such partition (yet)"
    ]
    assert not document["complete"]


@pytest.mark.parametrize("rollback", [False, True])
def test_a_partition_that_only_the_other_copy_has_is_not_begun_at_its_end(
    world: World, rollback: bool
) -> None:
    """Consumers without a position skip, by default, what is there."""
    origin, goal = (OURS, THEIRS) if rollback else (THEIRS, OURS)
    west: Any = world.connections.admin("west")
    west.ends[goal[0]] += [0]
    world.groups.stand("billing", origin, 20)
    assert world.migrate(rollback=rollback, dry_run=True)["complete"], "nothing is there"
    west.ends[goal[0]][1] = 5
    document = world.migrate(rollback=rollback)
    assert [row["done"] for row in document["groups"]] == ["moved"]
    (line,) = document["left"]
    assert line.startswith(f"group billing, {goal[0]}-1: the copy that it leaves has no such")
    world.groups.stand("billing", (goal[0], 1), 0)
    assert world.migrate(rollback=rollback)["complete"]
