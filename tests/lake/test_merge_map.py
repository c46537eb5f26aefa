"""Merging rows of the map: what translates stays what it was, and rows become few."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mirrorlake.config.lake import Maintenance
from mirrorlake.control.acl_plan import owned_acls
from mirrorlake.kafka.values import Acl
from mirrorlake.lake import table_upkeep
from mirrorlake.lake.changes import Change, ChangeOutcome
from mirrorlake.lake.event_log import EventLog
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.maintain import maintain
from mirrorlake.lake.translate import translate_all
from mirrorlake.offsets.runs import Segment, runs_of, segments_of
from tests.support.lake_rows import (
    FLOW,
    ago,
    append,
    no_session,
    now_of,
    opened,
    run_row,
    write_file,
)

DAY = 86_400
OUTCOMES: list[ChangeOutcome] = ["done", "gone", "refused"]
Batches = list[tuple[list[int], int, bool]]


@pytest.fixture(scope="module", params=["path", pytest.param("catalog", marks=pytest.mark.slow)])
def lake(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Lake]:
    folder = tmp_path_factory.mktemp("merge")
    if request.param == "path":
        yield opened(no_session, write_file(folder))[0]
        return
    spark = request.getfixturevalue("spark")
    location = {"catalog": "spark_catalog", "schema": "merge", "checkpoints": str(folder)}
    yield opened(spark, write_file(folder, lake=location))[0]
    spark.sql("DROP SCHEMA spark_catalog.merge CASCADE")


@st.composite
def histories(draw: st.DrawFn) -> Batches:
    """Batches of one partition: source offsets with gaps, the first target offset (markers there),
    and age."""
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
    for row in now_of(lake).rows(
        f"SELECT * FROM offset_map WHERE startswith(topic, '{topic_prefix}')"
    ):
        segments = [Segment(**segment) for segment in row["segments"]]
        assert (row["source_first"], row["target_first"]) == (
            segments[0].source_first,
            segments[0].target_first,
        ), row
        assert (row["source_last"], row["target_last"]) == (
            segments[-1].source_last,
            segments[-1].target_last,
        ), row
        assert row["record_count"] == sum(segment.record_count for segment in segments), row
        place = (
            row["flow"],
            row["topic"],
            row["partition"],
            row["generation"],
            row["target_topic"],
        )
        for one in segments:
            step = range(one.record_count)
            found += [
                (*place, one.source_first + k * one.stride, one.target_first + k) for k in step
            ]
    return sorted(found)


def both_ways(lake: Lake, topics: list[str]) -> list[object]:
    asked = [(topic, 0, position) for topic in topics for position in range(60)]
    back = [(f"east.{topic}", 0, position) for topic in topics for position in range(60)]
    reader = now_of(lake)
    return [translate_all(reader, FLOW, asked), translate_all(reader, FLOW, back, reverse=True)]


def rows_left(lake: Lake, topic: str) -> list[tuple[int, int, int | None]]:
    """(first and last source offset, first batch of a merged row) of each row of a topic's map."""
    rows = now_of(lake).rows(
        f"SELECT * FROM offset_map WHERE topic = '{topic}' ORDER BY source_first"
    )
    return [(row["source_first"], row["source_last"], row["first_batch_id"]) for row in rows]


def merge(lake: Lake, most: int = 10_000, age: int = DAY) -> tuple[int, int]:
    return table_upkeep.merge_map(lake, int(ago(age).timestamp() * 1000), most)


_examples = iter(range(1_000))


@settings(max_examples=1, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(st.lists(histories(), min_size=12, max_size=12), st.sampled_from([1, 2, 3, 10_000]))
def test_any_map_translates_as_before(lake: Lake, maps: list[Batches], most: int) -> None:
    prefix = f"law{next(_examples)}-"
    topics = [f"{prefix}{number:02}" for number in range(len(maps))]
    append(
        lake,
        "offset_map",
        [
            row
            for topic, batches in zip(topics, maps, strict=True)
            for row in rows_of(topic, batches)
        ],
    )
    told, translated = pairs(lake, prefix), both_ways(lake, topics)
    version = lake.version_of("offset_map")
    merge(lake, most)
    assert lake.version_of("offset_map") <= version + 1, "more than one commit can be cut in half"
    assert pairs(lake, prefix) == told
    assert both_ways(lake, topics) == translated
    for topic, batches in zip(topics, maps, strict=True):
        old = [batch for batch in batches if batch[2]]
        segments = sum(len(segments_of(offsets, target)) for offsets, target, _ in old)
        most_rows = -(-segments // most) + len(batches) - len(old)
        assert len(rows_left(lake, topic)) <= max(most_rows, len(batches) if most == 1 else 0), (
            topic,
            batches,
        )
    assert merge(lake, most)[0] <= 2 * len(topics), "what is full is left alone"


def test_only_what_may_be_one_row_becomes_one(lake: Lake) -> None:
    def run(topic: str, first: int, age: float = 3 * DAY, **more: object) -> dict[str, object]:
        return run_row(
            first, first + 9, age, topic=topic, target_topic=more.pop("target_topic", "t"), **more
        )

    rows = [run("young", 0, 60), run("young", 10, 60)]
    rows += [run("ages", 0), run("ages", 10), run("ages", 20, 60), run("ages", 30)]
    rows += [
        run("lives", 0),
        run("lives", 10),
        run("lives", 20, generation=1),
        run("lives", 30, generation=1),
    ]
    rows += [
        run("moved", 0),
        run("moved", 10, target_topic="u"),
        run("moved", 20, target_topic="u"),
    ]
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
    assert rows_left(lake, "back") == [(0, 9, None), (10, 29, 10)], (
        "target offsets that do not rise are not joined"
    )
    assert rows_left(lake, "again") == [(0, 19, 0), (20, 29, None)]
    assert rows_left(lake, "flows") == [(0, 9, None), (10, 19, None)]
    # Offsets that go on on both sides are one segment; the row goes on with what has become old
    # since.
    ages = "SELECT * FROM offset_map WHERE topic = 'ages'"
    assert [len(row["segments"]) for row in now_of(lake).rows(ages)] == [1] * 3
    merge(lake, age=0)
    assert rows_left(lake, "ages") == [(0, 39, 0)]
    newest = now_of(lake).rows(ages)[0]
    assert (newest["batch_id"], newest["record_count"]) == (30, 40), (
        "the number of the next batch goes by the newest"
    )


@dataclass(frozen=True)
class Maintained:
    """A lake of an earlier version behind one `maintain`: what was asked of it before, and is asked
    again."""

    lake: Lake
    found: dict[str, Any]
    changes: int
    before: tuple[object, ...]

    @staticmethod
    def answers(lake: Lake) -> tuple[object, ...]:
        """What flows go by: translations, where they go on, and which ACLs are theirs."""
        places = [
            ("orders", partition, position) for partition in (0, 5, 99) for position in POSITIONS
        ]
        owned = owned_acls(EventLog(lake).history(FLOW, "acl"))
        return (
            translate_all(now_of(lake), FLOW, places),
            table_upkeep.flow_floors(lake, FLOW),
            owned,
        )


#: Positions of a partition whose batches are 7 records and a marker, in and between old ones, and
#: in a young one.
POSITIONS = (0, 6, 7, 703, 1_399, 1_405)
PLACES = [(f"east.{name}", f"User:{who}") for name in "ab" for who in "xyz"]


@pytest.fixture(scope="module")
def maintained(tmp_path_factory: pytest.TempPathFactory) -> Maintained:
    """100 partitions, 200 batches: what a process that starts has to read is what one day left. And
    ACLs, a topic and a group that control has dealt with, over most of a year."""
    lake, topology = opened(no_session, write_file(tmp_path_factory.mktemp("maintained")))
    old = [
        run_row(
            batch * 7,
            batch * 7 + 6,
            200 * DAY,
            partition=partition,
            target_partition=partition,
            batch_id=batch,
            target_first=batch * 8,
            target_last=batch * 8 + 6,
            segments=[vars(Segment(batch * 7, 1, batch * 8, 7))],
        )
        for batch in range(200)
        for partition in range(100)
    ]
    append(lake, "offset_map", old)
    append(lake, "offset_map", [run_row(1_400, 1_409, 60, partition=5, batch_id=200)])
    lake.upkeep("offset_map").set_properties({"delta.appendOnly": "true"})
    rows = list(noted_changes())
    append(lake, "changes", rows)
    before = Maintained.answers(lake)
    report = maintain(lake, topology, Maintenance(history_days=90))
    return Maintained(lake, report, len(rows), before)


def noted_changes() -> Iterator[dict[str, object]]:
    """Rows of `changes`: ACLs that came and went, a topic that went three times, a group that was
    moved four times."""
    dice = random.Random(7)
    acls = [
        Acl("LITERAL", name, principal=who, host="*", operation="READ", permission="ALLOW")
        for name, who in PLACES
    ]
    for number in range(60):
        text, added = dice.choice(acls).text(), dice.random() < 0.5
        outcome = "done" if added else dice.choice(OUTCOMES)
        told = Change("acl", "t", None if added else text, text if added else None, outcome)
        yield {"flow": FLOW, "at": ago((200 - number) * DAY), **vars(told)}
    for age in (300, 200, 150):
        yield {
            "flow": FLOW,
            "at": ago(age * DAY),
            **vars(Change("topic", "orders", None, None, "gone")),
        }
        yield {
            "flow": FLOW,
            "at": ago(age * DAY),
            **vars(Change("group", "g east.orders-0", "1", str(age))),
        }
    yield {"flow": FLOW, "at": ago(5), **vars(Change("group", "g east.orders-0", "1", "2"))}


@pytest.mark.wide("test_any_map_translates_as_before")
def test_maintain_merges_the_map_of_an_older_lake(maintained: Maintained) -> None:
    assert maintained.found["map"] == {"rows_before": 20_000, "rows": 100}
    assert now_of(maintained.lake).rows("SELECT count(*) AS n FROM offset_map") == [{"n": 101}]
    assert Maintained.answers(maintained.lake)[:2] == maintained.before[:2]


def test_changes_that_control_goes_by_stay(maintained: Maintained) -> None:
    owned = maintained.before[2]
    assert isinstance(owned, Mapping) and 0 < len(owned) < len(PLACES)
    removed = maintained.found["history"]["changes"]
    assert Maintained.answers(maintained.lake)[2] == owned
    reader = now_of(maintained.lake)
    left = reader.rows("SELECT * FROM changes WHERE kind <> 'acl'")
    assert sorted((row["kind"], row["after"]) for row in left if row["kind"] == "group") == [
        ("group", "2")
    ]
    assert len([row for row in left if row["kind"] == "topic"]) == 1
    (kept,) = reader.rows("SELECT count(*) AS n FROM changes WHERE kind <> 'maintain'")
    assert kept["n"] == maintained.changes - removed and kept["n"] <= 2 + 3 * len(PLACES)
