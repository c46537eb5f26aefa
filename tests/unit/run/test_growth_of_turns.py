"""What samples, incidents and answers of a flow cost grows no faster than its partitions."""

from collections.abc import Callable, Collection
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.errors import TargetRefused
from mirrorlake.lake.incidents import Incidents
from mirrorlake.lake.reader import Frames, QueryRows
from mirrorlake.lake.targets import LivingMirror
from mirrorlake.landing.source_comparison import CurrentGenerations
from mirrorlake.offsets.lag import LagHistory, OpenTransactions
from mirrorlake.offsets.positions import PartitionGeneration, TopicAndPartition
from mirrorlake.offsets.progress import Floor, MappedEnd, floors_of
from mirrorlake.offsets.samples import SampleLog
from mirrorlake.offsets.starts import floors_from
from mirrorlake.run.snapshot import Snapshot, snapshot_of
from mirrorlake.run.stopped_partitions import StoppedPartitions
from mirrorlake.run.target_losses import log_ends_below
from mirrorlake.testing import MemoryCluster, MemoryLake
from tests.support.growth import LINEAR, Made, Name, growth
from tests.support.sampling import Setting

TOPICS = 10


def keys(size: int) -> list[TopicAndPartition]:
    return [(Name(f"t{n % TOPICS}"), n // TOPICS) for n in range(size)]


def producer(size: int, target_end: int = 10) -> Any:
    """A producer that has produced up to 10 of each partition."""
    floors = {key: Floor(10, target_end) for key in keys(size)}
    spec: Any = SimpleNamespace(
        left_out=(), stopped=(), blocked=frozenset(), whole={}, remote_topic=str.upper, name="f"
    )
    copied = lambda: {key: floor for key, floor in floors.items()}  # noqa: C416, E731 - counted
    return SimpleNamespace(floors=copied, spec=spec, drain=lambda: None)


def snapshot(size: int) -> Snapshot:
    covered = dict.fromkeys(keys(size), 10)
    return snapshot_of(producer(size), covered, True, CurrentGenerations(), {})


def sampled(log: SampleLog[int], size: int) -> object:
    values = dict.fromkeys(keys(size), 1)
    log.note(1.0, {key: values[key] for key in log.due(1.0, values, values.keys())})
    return log.lost(values.keys())


def seen(size: int) -> object:
    history, transactions = LagHistory(), OpenTransactions()
    for at in range(3):
        places = [PartitionGeneration(*key, 0) for key in keys(size)]
        for place in places:
            history.observe(place, at, 5, 9)
        history.keep(set(places))
        transactions.observe(at, dict.fromkeys(keys(size), 5))
        for key in transactions.unknown():
            transactions.name(key, 1, at)
    return [transactions.standing(key) for key in keys(size)]


def mapped(size: int) -> object:
    ends = [MappedEnd(*key, "T", 0, 0, 10, 10) for key in keys(size)]
    floors = floors_of(ends, str.upper, {})
    starts = {PartitionGeneration(*key, 0): 20 for key in keys(size)}
    return floors_from(floors, starts, str.upper, {})


PLANS: dict[str, Made] = {
    "where a flow is": lambda size: lambda: snapshot(size),
    "which samples are due": lambda size: lambda: sampled(SampleLog(), size),
    "lag and open transactions": lambda size: lambda: seen(size),
    "where a flow goes on": lambda size: lambda: mapped(size),
}


@pytest.mark.parametrize("case", PLANS)
def test_a_plan_grows_as_the_partitions(case: str) -> None:
    assert growth(PLANS[case]) < LINEAR


@pytest.mark.parametrize("is_first", [True, False])
def test_a_sample_grows_as_the_partitions(is_first: bool) -> None:
    def made(size: int) -> Callable[[], object]:
        source = MemoryCluster("east", {"orders": [5] * size})
        target = MemoryCluster("west", {"east.orders": [5] * size})
        setting = Setting(source, target, MemoryLake({"newest_samples": []}))
        floors = {("orders", number): 5 for number in range(size)}
        if not is_first:
            setting.sample(floors, caught_up=True)
        return lambda: setting.sample(floors, caught_up=True)

    assert growth(made) < LINEAR


class Lake(MemoryLake):
    """A lake with an incident of each partition, which is never changed."""

    def __init__(self, size: int, kind: str, resolution: str | None = None) -> None:
        super().__init__()
        common = {"kind": kind, "open": resolution is None, "resolution": resolution, "flow": "f"}
        offsets = {"first_offset": 3, "last_offset": 4, "target_offset": 7, "at": 0}
        generations = {"generation": 0, "target_generation": 0}
        names = {"target_topic": None, "noted_topic": None}
        rows = [
            {"topic": topic, "partition": number, **common, **offsets, **generations, **names}
            for topic, number in keys(size)
        ]
        self.answers["mirror_incidents"] = rows
        self.open = QueryRows(rows if resolution is None else ())

    def table_rows(self, _: str) -> QueryRows:
        return self.open

    def change(self, _name: str, _frames: Frames | None = None, **_: object) -> None:
        """Said to be done."""


def stopped(size: int, kind: str = "target_refused") -> tuple[StoppedPartitions, Any]:
    lake = Lake(size, kind)
    targets: Any = SimpleNamespace(
        remote_topic=str.upper,
        check=lambda: None,
        closed=dict,
        deny=list,
        mirror=lambda _topic: LivingMirror(None, None),
    )
    waits = StoppedPartitions(
        "f",
        lake,
        targets,
        incidents=Incidents(lake),
        begin_anew=lambda: None,
        limits=lambda names: dict.fromkeys(names, 1),
    )
    waits._producer = producer(size)
    return waits, lake


def refusals(size: int) -> list[TargetRefused]:
    return [
        TargetRefused("no", topic=str(topic), partition=number, first_offset=3, last_offset=4)
        for topic, number in keys(size)
    ]


def behind_refusals(size: int) -> Callable[[], object]:
    waits, _ = stopped(size)
    now = snapshot(size)
    return lambda: waits.check(now)


def before_refusals(size: int) -> Callable[[], object]:
    waits, _ = stopped(size)
    waits.refused(refusals(size))
    return lambda: waits.check(None)


def decided(size: int, resolution: str) -> Callable[[], object]:
    incidents = Incidents(Lake(size, "target_refused", resolution))
    return lambda: incidents.decided("f", lambda _: LivingMirror("T", 0))


def ends_below(size: int) -> Callable[[], object]:
    ends: Callable[[Collection[TopicAndPartition]], Any] = lambda at: dict.fromkeys(at, 5)  # noqa: E731
    return lambda: log_ends_below(producer(size), ends)


def reported(size: int) -> Callable[[], object]:
    incidents = Incidents(Lake(size, "target_refused"))
    return lambda: (
        incidents.open_all("f", "other_kind", refusals(size)),
        incidents.close(lambda key: key.partition != 0),
        incidents.open_counts(),
    )


INCIDENTS: dict[str, Made] = {
    "records are refused": lambda size: lambda: stopped(size)[0].refused(refusals(size)),
    "refused records came through": behind_refusals,
    "refused records wait": before_refusals,
    "records are parked": lambda size: (
        lambda: stopped(size)[0].parked(
            [PartitionGeneration(str(topic), number, 0) for topic, number in keys(size)]
        )
    ),
    "partitions were stopped": lambda size: decided(size, "stop"),
    "records were given up": lambda size: decided(size, "skip"),
    "targets lost records": ends_below,
    "incidents open and close": reported,
}


@pytest.mark.parametrize("case", INCIDENTS)
def test_incidents_grow_as_the_partitions(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mirrorlake.run.target_losses.SURE_SECONDS", 0.0)
    assert growth(INCIDENTS[case]) < LINEAR
