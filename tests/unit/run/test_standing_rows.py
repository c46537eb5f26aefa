"""Samples in which few rows are made anew say what samples say whose rows are all made."""

import random
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.errors import LakeError
from mirrorlake.landing.source_comparison import Branch, CurrentGenerations, TopicGeneration
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.run import log_offsets, samples
from mirrorlake.run.snapshot import Snapshot
from mirrorlake.run.standing_rows import StandingRows
from mirrorlake.testing import MemoryCluster, MemoryLake
from tests.support.sampling import Setting

SIZE, SAMPLES = 12, 80
_BEGAN = datetime(2026, 1, 1, tzinfo=timezone.utc)


class Forgets(StandingRows):
    """Has no rows that stand."""

    def begin(self, *_: object) -> None:
        self._seen = None


class Scene:
    """A flow of one topic that runs by chance, and two samplers of it."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.source = MemoryCluster("east", {"orders": [5] * SIZE, "heartbeats": [5]})
        self.target = MemoryCluster("west", {"east.orders": [5] * SIZE, "east.heartbeats": [5]})
        self.lakes = [MemoryLake({"newest_samples": []}) for _ in range(2)]
        self.settings = [Setting(self.source, self.target, lake) for lake in self.lakes]
        self.settings[1].sampler._standing = Forgets()
        keys = [("orders", number) for number in range(SIZE)]
        floors: dict[TopicAndPartition, int] = dict.fromkeys(keys, 5)
        self.snapshot = Snapshot(
            covered=dict(floors),
            caught_up=True,
            floors=floors,
            mapped=dict(floors),
            blocked=frozenset(),
            left_out=frozenset(),
            written=dict(floors),
        )

    def go_on(self) -> None:
        """Something comes about, or nothing."""
        chance, snap = self.chance, self.snapshot
        place = "orders", chance.randrange(SIZE)
        what = chance.choice(
            ["nothing"] * 4
            + ["comes", "comes", "lands", "produced", "all", "caught", "blocked", "again", "branch"]
            + ["silent", "answers", "trimmed", "mirror", "open", "closed", "grown", "moved back"]
        )
        ends = self.source.ends["orders"]
        if what == "comes":
            ends[place[1]] += chance.randrange(1, 4)
        elif what == "lands":
            self.snapshot = replace(snap, covered={**snap.covered, place: ends[place[1]]})
        elif what == "produced":
            at = snap.covered[place]
            self.target.ends["east.orders"][place[1]] = max(at, 5)
            new = {
                name: {**getattr(snap, name), place: at} for name in ("floors", "mapped", "written")
            }
            self.snapshot = replace(snap, **new)
        elif what == "all":
            all_ends = {("orders", number): end for number, end in enumerate(ends)}
            self.target.ends["east.orders"][:] = ends
            names = ("covered", "floors", "mapped", "written")
            self.snapshot = replace(snap, **{name: dict(all_ends) for name in names})
        elif what == "caught":
            self.snapshot = replace(snap, caught_up=not snap.caught_up)
        elif what == "blocked":
            self.snapshot = replace(snap, blocked=frozenset({place} if not snap.blocked else ()))
        elif what == "again":
            number = 1 + snap.generations.newest("orders")
            topics = {"orders": TopicGeneration(number, str(number))}
            self.snapshot = replace(snap, generations=CurrentGenerations(topics))
        elif what == "branch":
            branches = {place: Branch(1 + snap.generations.newest("orders"), 2)}
            generations = CurrentGenerations(snap.generations.topics, branches)
            self.snapshot = replace(snap, generations=generations)
        elif what == "silent":
            self.source.silent = {place}
        elif what == "answers":
            self.source.silent, self.target.silent = set(), set()
        elif what == "trimmed":
            self.source.starts[place] = min(ends[place[1]], self.source.starts.get(place, 0) + 2)
        elif what == "mirror":
            self.target.ends["east.orders"][place[1]] += 1
        elif what == "open":
            self.source.open_at[place] = snap.covered[place]
        elif what == "closed":
            self.source.open_at.clear()
        elif what == "grown":
            ends.append(0)
            self.target.ends["east.orders"].append(0)
        elif what == "moved back":
            self.snapshot = replace(snap, target_generations={"east.orders": len(ends)})


def said(setting: Setting, snapshot: Snapshot | None) -> object:
    """What a sample says and appends; None where it says nothing."""
    lake: Any = setting.lake
    before = len(lake.appended.get("positions", ()))
    try:
        lag = setting.sampler.sample(lambda: snapshot)
    except LakeError:
        return "failed"
    if lag is None:
        return None
    rows = {key: {**row, "sampled_at": None} for key, row in lag.rows.items()}
    appended = lake.appended.get("positions", [])[before:]
    return (
        lag.records,
        lag.seconds,
        rows,
        sorted(appended, key=lambda row: (row["topic"], row["partition"])),
    )


@pytest.mark.parametrize("seed", range(6))
def test_few_rows_say_what_all_would(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever comes about between samples, also where one fails, or a clock goes back."""
    chance = random.Random(seed)
    scene, now, made = Scene(chance), [1_000.0], list[int]()
    monkeypatch.setattr(log_offsets, "time", SimpleNamespace(monotonic=lambda: now[0]))
    read = classmethod(lambda cls, tz: _BEGAN + timedelta(seconds=now[0]))
    monkeypatch.setattr(samples, "datetime", type("Clock", (datetime,), {"now": read}))
    for _ in range(SAMPLES):
        for _ in range(chance.choice([0, 0, 1, 3])):
            scene.go_on()
        now[0] += chance.choice([10.0, 10.0, 10.0, 12.0, 70.0, 4_000.0, -5.0])
        fails = chance.random() < 0.05
        for lake in scene.lakes:
            monkeypatch.setattr(lake, "append", failing if fails else kept(lake))
        polled = None if chance.random() < 0.05 else scene.snapshot
        few, all_made = (said(setting, polled) for setting in scene.settings)
        assert few == all_made
        standing = scene.settings[0].sampler._standing
        made.append(len(standing._rested))
    assert max(made) > SIZE // 2, "most rows stood at some time"


def failing(*_: object) -> None:
    raise LakeError("no room")


def kept(lake: MemoryLake) -> Any:
    return partial(MemoryLake.append, lake)
