"""Merging rows of the map: what translates stays what it was, and rows become few."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from mirrorlake.config.maintenance import Maintenance
from mirrorlake.control.acl_plan import owned_acls
from mirrorlake.kafka.values import Acl
from mirrorlake.lake import table_upkeep
from mirrorlake.lake.changes import Change, ChangeOutcome
from mirrorlake.lake.event_log import EventLog
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.maintain import maintain
from mirrorlake.lake.translate import translate_all
from mirrorlake.offsets.runs import Segment, runs_of, segments_of
from tests.support.lake_rows import FLOW, ago, append, now_of, opened, run_row, write_file

DAY = 86_400
OUTCOMES: list[ChangeOutcome] = ["done", "gone", "refused"]
Batches = list[tuple[list[int], int, bool]]


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return opened(spark, write_file(tmp_path_factory.mktemp("merge")))[0]


@st.composite
def histories(draw: st.DrawFn) -> Batches:
    """Batches of one partition: source offsets with gaps, the first target offset (markers there), and age."""
    source, target, batches = draw(st.integers(0, 3)), draw(st.integers(0, 3)), []
    count = draw(st.integers(1, 7))
    old = draw(st.integers(0, count))
    for number in range(count):
        offsets = []
        for step in draw(st.lists(st.sampled_from([1, 1, 1, 2, 3]), min_size=1, max_size=6)):
            offsets.append(source)
            source += step
        batches.append((offsets, target, number < old))
        target += len(offsets) + draw(st.sampled_from([0, 1, 1, 2]))
    return batches


def rows_of(topic: str, batches: Batches, **more: object) -> Iterator[dict[str, object]]:
    """Rows of the map as batches write them."""
    for number, (offsets, target, is_old) in enumerate(batches):
        for run in runs_of(segments_of(offsets, target)):
            names = ("source_first", "source_last", "target_first", "target_last", "record_count")
            values = {name: getattr(run, name) for name in names}
            segments = [vars(segment) for segment in run.segments]
            age = 3 * DAY if is_old else 60
            yield run_row(0, 0, age, topic=topic, target_topic=f"east.{topic}", **{
                **values, "segments": segments, "batch_id": number, **more,
            })  # fmt: skip


def pairs(lake: Lake, topic_prefix: str) -> list[tuple[object, ...]]:
    """All that the map says: a row per record."""
    found = []
    for row in lake.table("offset_map").where(f"startswith(topic, '{topic_prefix}')").collect():
        segments = [Segment(*segment) for segment in row["segments"]]
        assert (row["source_first"], row["target_first"]) == (segments[0].source_first, segments[0].target_first), row
        assert (row["source_last"], row["target_last"]) == (segments[-1].source_last, segments[-1].target_last), row
        assert row["record_count"] == sum(segment.record_count for segment in segments), row
        place = (row["flow"], row["topic"], row["partition"], row["generation"], row["target_topic"])
        for one in segments:
            step = range(one.record_count)
            found += [(*place, one.source_first + k * one.stride, one.target_first + k) for k in step]
    return sorted(found)


def both_ways(lake: Lake, topics: list[str]) -> list[object]:
    asked = [(topic, 0, position) for topic in topics for position in range(60)]
    back = [(f"east.{topic}", 0, position) for topic in topics for position in range(60)]
    reader = now_of(lake)
    return [translate_all(reader, FLOW, asked), translate_all(reader, FLOW, back, reverse=True)]


def rows_left(lake: Lake, topic: str) -> list[tuple[int, int, int | None]]:
    """(first and last source offset, first batch of a merged row) of each row of a topic's map."""
    rows = lake.table("offset_map").where(f"topic = '{topic}'").orderBy("source_first").collect()
    return [(row["source_first"], row["source_last"], row["first_batch_id"]) for row in rows]


def merge(lake: Lake, most: int = 10_000) -> tuple[int, int]:
    found = table_upkeep.merge_map(lake, int(ago(DAY).timestamp() * 1000), most)
    return found.rows_before, found.rows


_examples = iter(range(1_000))


@settings(max_examples=1, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(st.lists(histories(), min_size=12, max_size=12), st.sampled_from([1, 2, 3, 10_000]))
def test_any_map_translates_as_before(lake: Lake, maps: list[Batches], most: int) -> None:
    prefix = f"law{next(_examples)}-"
    topics = [f"{prefix}{number:02}" for number in range(len(maps))]
    append(
        lake,
        "offset_map",
        [row for topic, batches in zip(topics, maps, strict=True) for row in rows_of(topic, batches)],
    )
    told, translated = pairs(lake, prefix), both_ways(lake, topics)
    version = lake.version_of("offset_map")
    merge(lake, most)
    assert lake.version_of("offset_map") <= version + 1, "more than one commit can be cut in half"
    assert pairs(lake, prefix) == told
    assert both_ways(lake, topics) == translated
    for topic, batches in zip(topics, maps, strict=True):
        old = [item for item in batches if item[2]]
        segments = sum(len(segments_of(offsets, target)) for offsets, target, _ in old)
        most_rows = -(-segments // most) + len(batches) - len(old)
        assert len(rows_left(lake, topic)) <= max(most_rows, len(batches) if most == 1 else 0), (topic, batches)
    assert merge(lake, most)[0] <= 2 * len(topics), "what is full is left alone"


def test_only_what_may_be_one_row_becomes_one(lake: Lake) -> None:
    def run(topic: str, first: int, age: float = 3 * DAY, **more: object) -> dict[str, object]:
        return run_row(first, first + 9, age, topic=topic, target_topic=more.pop("target_topic", "t"), **more)

    rows = [run("young", 0, 60), run("young", 10, 60)]
    rows += [run("ages", 0), run("ages", 10), run("ages", 20, 60), run("ages", 30)]
    rows += [run("lives", 0), run("lives", 10), run("lives", 20, generation=1), run("lives", 30, generation=1)]
    rows += [run("moved", 0), run("moved", 10, target_topic="u"), run("moved", 20, target_topic="u")]
    back = {"target_first": 0, "target_last": 9}
    back["segments"] = [{"source_first": 10, "stride": 1, "target_first": 0, "record_count": 10}]  # type: ignore[assignment]
    rows += [run("back", 0), run("back", 10, **back), run("back", 20)]
    rows += [run("again", 0), run("again", 10), run("again", 20, target_generation=1)]
    rows += [run("flows", 0), run("flows", 10, flow="east->north")]
    append(lake, "offset_map", rows)
    merge(lake)
    assert rows_left(lake, "young") == [(0, 9, None), (10, 19, None)]
    assert rows_left(lake, "ages") == [(0, 19, 0), (20, 29, None), (30, 39, None)]
    assert rows_left(lake, "lives") == [(0, 19, 0), (20, 39, 20)]
    assert rows_left(lake, "moved") == [(0, 9, None), (10, 29, 10)]
    assert rows_left(lake, "back") == [(0, 9, None), (10, 29, 10)], "target offsets that do not rise are not joined"
    assert rows_left(lake, "again") == [(0, 19, 0), (20, 29, None)]
    assert rows_left(lake, "flows") == [(0, 9, None), (10, 19, None)]
    # Offsets that go on on both sides are one segment; the row goes on with what has become old since.
    assert [len(row["segments"]) for row in lake.table("offset_map").where("topic = 'ages'").collect()] == [1] * 3
    lake.sql("UPDATE offset_map SET produced_at = current_timestamp() - INTERVAL 2 DAYS WHERE topic = 'ages'").collect()
    merge(lake)
    assert rows_left(lake, "ages") == [(0, 39, 0)]
    newest = lake.table("offset_map").where("topic = 'ages'").collect()[0]
    assert (newest["batch_id"], newest["record_count"]) == (30, 40), "the number of the next batch goes by the newest"


def test_maintain_merges_the_map_of_an_older_lake(spark: SparkSession, tmp_path: Path) -> None:
    """100 partitions, 200 batches: what a process that starts has to read is what one day left."""
    lake, topology = opened(spark, write_file(tmp_path))
    lake.sql("ALTER TABLE offset_map SET TBLPROPERTIES ('delta.appendOnly' = 'true')")
    lake.sql(
        "INSERT INTO offset_map (flow, topic, partition, source_first, source_last, target_topic, target_partition, "
        "target_first, target_last, record_count, produced_at, batch_id, generation, segments) "
        f"SELECT '{FLOW}', 'orders', CAST(id % 100 AS INT), batch * 7, batch * 7 + 6, 'east.orders', "
        "CAST(id % 100 AS INT), batch * 8, batch * 8 + 6, 7, current_timestamp() - INTERVAL 200 DAYS, batch, 0, "
        "array(struct(batch * 7 AS source_first, 1L AS stride, batch * 8 AS target_first, 7L AS record_count)) "
        "FROM (SELECT id, id DIV 100 AS batch FROM range(20000))"
    )
    append(lake, "offset_map", [run_row(1_400, 1_409, 60, partition=5, batch_id=200)])
    asked = [("orders", partition, position) for partition in (0, 5, 99) for position in (0, 6, 7, 703, 1_399, 1_405)]
    before = translate_all(lake, FLOW, asked), table_upkeep.floors_of(lake, FLOW)
    found = maintain(lake, topology, Maintenance())
    assert found["map"] == {"rows_before": 20_000, "rows": 100}
    assert lake.table("offset_map").count() == 101
    assert (translate_all(lake, FLOW, asked), table_upkeep.floors_of(lake, FLOW)) == before


def test_changes_that_control_goes_by_stay(spark: SparkSession, tmp_path: Path) -> None:
    lake, topology = opened(spark, write_file(tmp_path))
    dice, rows = random.Random(7), []
    places = [(f"east.{name}", f"User:{who}") for name in "ab" for who in "xyz"]
    acls = [Acl("LITERAL", name, who, "*", "READ", "ALLOW") for name, who in places]
    for number in range(60):
        text, added = dice.choice(acls).text(), dice.random() < 0.5
        outcome = "done" if added else dice.choice(OUTCOMES)
        told = Change("acl", "t", None if added else text, text if added else None, outcome)
        rows.append({"flow": FLOW, "at": ago((200 - number) * DAY), **vars(told)})
    for age in (300, 200, 150):
        rows.append({"flow": FLOW, "at": ago(age * DAY), **vars(Change("topic", "orders", None, None, "gone"))})
        rows.append({"flow": FLOW, "at": ago(age * DAY), **vars(Change("group", "g east.orders-0", "1", str(age)))})
    rows.append({"flow": FLOW, "at": ago(5), **vars(Change("group", "g east.orders-0", "1", "2"))})
    append(lake, "changes", rows)
    owned = owned_acls(EventLog(lake).history(FLOW, "acl"))
    assert 0 < len(owned) < len(acls)
    removed = maintain(lake, topology, Maintenance(history_days=90))["history"]["changes"]
    assert owned_acls(EventLog(lake).history(FLOW, "acl")) == owned
    left = lake.table("changes").where("kind <> 'acl'").collect()
    assert sorted((row["kind"], row["after"]) for row in left if row["kind"] == "group") == [("group", "2")]
    assert len([row for row in left if row["kind"] == "topic"]) == 1
    kept = lake.table("changes").where("kind <> 'maintain'").count()
    assert kept == len(rows) - removed and kept <= 2 + 3 * len(acls)
