"""Samples of a flow: each cluster is asked once, what is new is written, and lag goes on over a
restart. No Kafka, no Spark."""

import time
from collections.abc import Collection
from datetime import datetime, timedelta, timezone, tzinfo
from pathlib import Path
from typing import Any

import pytest

from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.transactions import OpenTransaction
from mirrorlake.offsets import known_offsets
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.run import log_offsets, samples
from mirrorlake.testing import MemoryCluster, MemoryLake
from tests.support.lake_rows import append, no_session, opened, sample, write_file
from tests.support.sampling import Rows, Setting

_BEGAN = datetime.now(timezone.utc)


def never_sampled() -> MemoryLake:
    return MemoryLake({"newest_samples": []})


def after(rows: Rows, ago: float) -> MemoryLake:
    """A lake in which an earlier process wrote these, the newest of each partition, so many seconds
    ago."""
    at = time.time() - ago
    return MemoryLake({"newest_samples": [{**row, "at": at} for row in rows]})


def test_one_call_a_cluster_however_many_partitions() -> None:
    source = MemoryCluster("east", {"orders": range(0, 500, 10), "other": [7]})
    target = MemoryCluster("west", {"east.orders": [9] * 49})
    setting = Setting(source, target, never_sampled())
    rows = setting.sample({("orders", p): 10 * p for p in range(50)}, caught_up=True)
    assert source.asked == {"topics": 1, "start_offsets": 1, "end_offsets": 2}
    assert target.asked == {"topics": 1, "end_offsets": 1}
    assert [(row["topic"], row["partition"]) for row in rows] == [("orders", p) for p in range(50)]
    assert {row["lag_records"] for row in rows} == {0} and {row["lag_seconds"] for row in rows} == {
        0.0
    }
    assert {row["interval_seconds"] for row in rows} == {10}
    assert rows[0]["source_end"] == 0, "a partition that never had a record has its row"
    assert rows[49]["target_end"] is None and rows[48]["target_end"] == 9, "one is not made yet"


def test_what_did_not_change_is_not_written_but_for_one() -> None:
    source, target = (
        MemoryCluster("east", {"orders": [5] * 40}),
        MemoryCluster("west", {"east.orders": [5] * 40}),
    )
    floors = {("orders", p): 5 for p in range(40)}
    setting = Setting(source, target, never_sampled())
    assert len(setting.sample(floors, caught_up=True)) == 40
    assert len(setting.sample(floors, caught_up=True)) == 1
    source.ends["orders"][7] = 6
    changed, alive = setting.sample(floors)
    assert (changed["partition"], changed["lag_records"]) == (7, 1)
    assert alive["target_passed_end"] == 5, (
        "that the flow is not at its end elsewhere is nothing to it"
    )
    floors["orders", 7] = 6
    target.ends["east.orders"][7] = 6
    assert [row["partition"] for row in setting.sample(floors, caught_up=True)] == [7, 2]


def test_of_many_partitions_those_that_move_are_asked_for_and_all_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A sample says of the others what they were, and the last one of a run asks for all."""
    monkeypatch.setattr(log_offsets, "SPREAD_FROM", 10)
    monkeypatch.setattr(known_offsets, "SPREAD_FROM", 10)
    source = MemoryCluster("east", {"orders": [5] * 40})
    target = MemoryCluster("west", {"east.orders": [5] * 40})
    asked: list[tuple[str, list[int]]] = []
    for cluster in (source, target):
        _write_down(monkeypatch, cluster, asked)
    floors = {("orders", p): 5 for p in range(40)}
    setting = Setting(source, target, never_sampled())
    setting.sample(floors, caught_up=True)
    assert {(alias, len(numbers)) for alias, numbers in asked} == {("east", 40), ("west", 40)}
    setting.sample(floors, caught_up=True)  # what was written under the first one
    asked.clear()
    source.ends["orders"][7] = target.ends["east.orders"][7] = floors["orders", 7] = 6
    source.ends["orders"][8] = 9  # of which landing has not heard
    setting.sample(floors, caught_up=True)
    assert setting.lag.rows["orders", 7]["source_end"] == 6 and setting.lag.records == 0
    setting.sample(floors, caught_up=True)
    assert setting.lag.rows["orders", 7]["target_end"] == 6
    assert {(alias, *numbers) for alias, numbers in asked if numbers} == {("east", 7), ("west", 7)}
    setting.sampler.ask_for_all()
    setting.sample(floors)
    assert setting.lag.records == 4
    source.ends["orders"][8] = 12
    setting.sample(floors)
    assert setting.lag.records == 7, "what waits is asked for each time"


def _write_down(
    monkeypatch: pytest.MonkeyPatch, cluster: MemoryCluster, asked: list[tuple[str, list[int]]]
) -> None:
    ends = cluster.end_offsets

    def end_offsets(keys: Collection[TopicAndPartition], **how: Any) -> Any:
        asked.append((cluster.alias, [partition for _, partition in keys]))
        return ends(keys, **how)

    monkeypatch.setattr(cluster, "end_offsets", end_offsets)


def test_of_logs_that_did_not_move_the_last_stable_offset_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that a transaction holds back is asked for, and one whose topic was made again."""
    source = MemoryCluster("east", {"orders": [5] * 40})
    target = MemoryCluster("west", {"east.orders": [5] * 40})
    floors, answer = {("orders", p): 5 for p in range(40)}, source.end_offsets
    setting, asked = Setting(source, target, never_sampled()), list[int]()

    def counted(keys: Collection[TopicAndPartition], committed: bool = True, **how: Any) -> Any:
        asked.append(len(keys))
        return answer(keys, committed, **how)

    monkeypatch.setattr(source, "end_offsets", counted)
    setting.sample(floors, caught_up=True)
    setting.sample(floors, caught_up=True)
    assert asked == [40, 40, 40, 0]
    source.ends["orders"][7], source.open_at = 9, {("orders", 7): 6}
    for _ in range(2):
        row = next(row for row in setting.sample(floors) if row["partition"] == 7)
    assert (row["source_end"], row["source_high_watermark"]) == (6, 9)
    assert row["transaction_since"] is not None
    source.open_at = {}
    row = next(row for row in setting.sample(floors) if row["partition"] == 7)
    assert (row["source_end"], row["transaction_since"]) == (9, None)
    assert asked[4:] == [40, 1] * 3


def test_in_a_store_an_idle_flow_writes_now_and_then() -> None:
    source = MemoryCluster("east", {"orders": [5, 5], "heartbeats": [1]})
    target = MemoryCluster("west", {"east.orders": [5, 5], "east.heartbeats": [1]})
    floors = {("orders", 0): 5, ("orders", 1): 5, ("heartbeats", 0): 1}
    setting = Setting(source, target, never_sampled(), "s3://bucket/lake")
    rows = setting.sample(floors, caught_up=True)
    assert {row["interval_seconds"] for row in rows} == {120}, "readers wait for so long"
    source.ends["heartbeats"][0] = 11  # they wait, and lag
    assert setting.sample(floors) == []
    assert setting.lag.rows[("heartbeats", 0)]["lag_records"] == 10, "who watches the process sees"
    source.ends["orders"][1] = 6
    written = sorted(row["topic"] for row in setting.sample(floors))
    assert written == ["heartbeats", "orders", "orders"]


def test_another_process_goes_on_from_what_was_written() -> None:
    source, target = (
        MemoryCluster("east", {"orders": [5] * 9}),
        MemoryCluster("west", {"east.orders": [5] * 9}),
    )
    floors = {("orders", p): 5 for p in range(9)}
    rows = Setting(source, target, never_sampled()).sample(floors, caught_up=True)
    assert len(Setting(source, target, after(rows, 60)).sample(floors, caught_up=True)) == 1
    gone = {**rows[0], "partition": 9}
    found = Setting(source, target, after([*rows, gone], 60)).sample(floors, caught_up=True)
    assert [(row["partition"], row["source_end"]) for row in found] == [(0, 5), (9, None)], (
        "deleted while it was down"
    )


def test_lag_in_seconds_is_told_and_goes_on_over_a_restart() -> None:
    source, target = (
        MemoryCluster("east", {"orders": [10, 5]}),
        MemoryCluster("west", {"east.orders": [10]}),
    )
    first = Setting(source, target, never_sampled())
    first.sample({("orders", 0): 10, ("orders", 1): 5})
    source.ends["orders"][0] = 30
    behind, idle = first.sample({("orders", 0): 10, ("orders", 1): 5})
    assert behind["lag_records"] == 20 and behind["lag_seconds"] > 0
    assert (idle["lag_records"], idle["lag_seconds"]) == (0, 0.0)
    assert first.lag.records == 20 and first.lag.seconds == behind["lag_seconds"]

    lake = after([{**behind, "lag_seconds": 60.0}], 3600)
    again, _ = Setting(source, target, lake).sample({("orders", 0): 10, ("orders", 1): 5})
    assert 3660 <= again["lag_seconds"] < 3670


def test_a_partition_that_stands_still_says_so_over_restarts() -> None:
    """A process that is started again every few minutes would else never raise `stuck`; and one
    that was stopped for hours would raise it as soon as it is started."""
    source = MemoryCluster("east", {"orders": [10, 5]})
    target = MemoryCluster("west", {"east.orders": [4, 5]})
    floors = {("orders", 0): 4, ("orders", 1): 5}
    standing, idle = Setting(source, target, never_sampled()).sample(floors)
    assert idle["stalled_since"] is None, "none wait"
    began = standing["stalled_since"].timestamp()
    assert began == pytest.approx(time.time(), abs=5.0)
    for ago in (7_200, 300):
        earlier = {**standing, "stalled_since": standing["stalled_since"] - timedelta(hours=3)}
        setting = Setting(source, target, after([earlier, idle], ago))
        standing = setting.sample(floors)[0]
        began += ago - 3 * 3_600
        assert standing["stalled_since"].timestamp() == pytest.approx(began, abs=5.0)
    floors["orders", 0] = 5
    assert setting.sample(floors)[0]["stalled_since"].timestamp() > time.time() - 5, "it moved"


def test_what_does_not_move_from_one_run_with_an_end_to_the_next_stands_still() -> None:
    source = MemoryCluster("east", {"orders": [10]})
    target = MemoryCluster("west", {"east.orders": [4]})
    (row,) = Setting(source, target, never_sampled(), once=True).sample({("orders", 0): 4})
    lake = after([row], 3_600)
    (again,) = Setting(source, target, lake, once=True).sample({("orders", 0): 4})
    assert again["stalled_since"] == row["stalled_since"]


def test_where_an_earlier_version_did_not_note_it_a_partition_stands_since_this_start() -> None:
    source = MemoryCluster("east", {"orders": [10]})
    target = MemoryCluster("west", {"east.orders": [4]})
    floors = {("orders", 0): 4}
    (row,) = Setting(source, target, never_sampled()).sample(floors)
    lake = after([{**row, "stalled_since": None}], 600)
    (again,) = Setting(source, target, lake).sample(floors)
    assert again["stalled_since"].timestamp() == pytest.approx(time.time(), abs=5.0)


def test_a_sample_of_an_hour_ago_held_until_the_flow_stopped() -> None:
    """Else the first record after a restart would have come at some time in that hour."""
    source, target = (
        MemoryCluster("east", {"orders": [10, 5]}),
        MemoryCluster("west", {"east.orders": [10, 5]}),
    )
    idle, other = Setting(source, target, never_sampled()).sample(
        {("orders", 0): 10, ("orders", 1): 5}, caught_up=True
    )
    now = time.time()
    lake = MemoryLake({"newest_samples": [{**idle, "at": now - 3000}, {**other, "at": now - 2}]})
    source.ends["orders"][0] = 11
    (found, *_) = Setting(source, target, lake).sample({("orders", 0): 10, ("orders", 1): 5})
    assert found["lag_records"] == 1 and found["lag_seconds"] < 5


def test_what_the_source_has_forgotten_is_not_waited_for() -> None:
    source, target = (
        MemoryCluster("east", {"orders": [100]}),
        MemoryCluster("west", {"east.orders": [4]}),
    )
    source.starts["orders", 0] = 100
    (row,) = Setting(source, target, never_sampled()).sample({("orders", 0): 4})
    assert (row["lag_records"], row["lag_seconds"]) == (0, 0.0)


def test_a_partition_whose_leader_is_away_is_said_to_be_and_its_lag_goes_on() -> None:
    source, target = (
        MemoryCluster("east", {"orders": [10, 5]}),
        MemoryCluster("west", {"east.orders": [10]}),
    )
    floors = {("orders", 0): 4, ("orders", 1): 5}
    rows = Setting(source, target, never_sampled()).sample(floors)
    setting = Setting(source, target, after([{**rows[0], "lag_seconds": 60.0}], 60))
    assert setting.sample(floors)[0]["lag_seconds"] >= 60
    source.silent = {("orders", 0)}
    alive, away = setting.sample(floors)
    assert (alive["partition"], away["partition"], away["source_end"], away["target_topic"]) == (
        1, 0, None, "east.orders"
    )  # fmt: skip
    assert setting.lag.silent == {("orders", 0)}
    assert [row["partition"] for row in setting.sample(floors)] == [1], "once"
    source.silent = set()
    assert setting.sample(floors)[0]["lag_seconds"] >= 60, "not as if it had just begun"
    assert not setting.lag.silent


def test_a_transaction_that_stays_open_is_told_with_its_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source, target = (
        MemoryCluster("east", {"orders": [10]}),
        MemoryCluster("west", {"east.orders": [4]}),
    )
    source.open_at["orders", 0] = 4
    floors = {("orders", 0): 4}
    setting = Setting(source, target, never_sampled())
    (first,) = setting.sample(floors)
    assert (first["source_end"], first["source_high_watermark"], first["lag_records"]) == (4, 10, 0)
    assert first["transaction_since"] is None, "it may be over in a moment"
    written = time.time() - 60
    told = OpenTransaction(4711, 4, int(written * 1000))
    monkeypatch.setattr(
        Connections, "open_transactions", lambda _self, _alias, keys: dict.fromkeys(keys, told)
    )
    (standing,) = setting.sample(floors)
    assert standing["transaction_producer_id"] == 4711
    assert standing["transaction_since"].timestamp() == pytest.approx(written, abs=0.01)
    again = Setting(source, target, after([first], 30)).sample(floors)[0]
    assert again["transaction_since"] is not None, "another process goes on from what was seen"
    source.open_at.clear()
    (over,) = setting.sample(floors)
    assert (over["source_end"], over["transaction_since"], over["transaction_producer_id"]) == (
        10,
        None,
        None,
    )


def test_a_sample_by_a_clock_that_was_ahead_hides_none_that_comes(tmp_path: Path) -> None:
    """It said that all is there, and for minutes each answer did."""
    lake = opened(no_session, write_file(tmp_path))[0]
    append(lake, "positions", [sample(-240, 5, 5)])
    source = MemoryCluster("east", {"orders": [5]})
    target = MemoryCluster("west", {"east.orders": [5]})
    setting = Setting(source, target, lake)
    for end in (8, 9):
        source.ends["orders"] = [end]
        setting.take({("orders", 0): 5})
        (row,) = lake.ask_table("replication_lag")
        assert (row["lag_records"], row["is_sampled"]) == (end - 5, True)


def test_nor_does_one_of_before_this_clock_was_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers leave out what is of a time to come by five minutes or more, and then go by it."""
    source = MemoryCluster("east", {"orders": [5]})
    lake = MemoryLake({"newest_samples": []})
    setting, times = Setting(source, MemoryCluster("west", {"east.orders": [5]}), lake), []
    for ahead in (600, 0, 200, 400, 601):
        monkeypatch.setattr(samples, "datetime", type("Clock", (_Clock,), {"ahead": ahead}))
        source.ends["orders"][0] += 1
        (row,) = setting.sample({("orders", 0): 5})
        times.append(round((row["sampled_at"] - _BEGAN).total_seconds(), 4))
    assert times == [600, 0, 200, 600, 601]


class _Clock(datetime):
    ahead = 0

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> "_Clock":
        return cls.fromtimestamp((_BEGAN + timedelta(seconds=cls.ahead)).timestamp(), tz)
