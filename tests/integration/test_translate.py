"""Translation, as a law over any map, and against what the clusters really hold."""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from mirrorlake.config.lake import Lake as Location
from mirrorlake.errors import UnknownOffset
from mirrorlake.groups.checkpoint_table import newest_checkpoints
from mirrorlake.lake.incidents import IncidentKey, Incidents
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.opening import open_lake
from mirrorlake.lake.path_lake import PathLake
from mirrorlake.lake.reader import NONE, Args, Frames
from mirrorlake.lake.targets import note_targets
from mirrorlake.lake.translate import Translator, translate, translate_all
from mirrorlake.offsets.generations import NotedTarget
from mirrorlake.offsets.runs import runs_of, segments_of
from tests.support.clusters import ClusterPair
from tests.support.histories import SCHEMAS
from tests.support.kafka import (
    NewRecord,
    Record,
    create_topic,
    numbered,
    read_topic,
    send,
    transactional_producer,
    write,
)
from tests.support.lake_rows import ago, append, now_of, run_row, sample
from tests.support.lanes import BOTH_ENGINES
from tests.support.replication import FLOW, replicate_once, replicating, write_topology

pytestmark = BOTH_ENGINES

_SEGMENT = pa.struct(
    [(name, pa.int64()) for name in ("source_first", "stride", "target_first", "record_count")]
)
_LONGS = ("source_first", "source_last", "target_first", "target_last", "record_count", "batch_id")
_MAP = pa.schema(
    [("flow", pa.string()), ("topic", pa.string()), ("partition", pa.int32())]
    + [("target_topic", pa.string()), ("target_partition", pa.int32())]
    + [(name, pa.int64()) for name in _LONGS]
    + [("segments", pa.list_(_SEGMENT))]
)


def all_positions(
    lake: Lake, topic: str, partition: int, positions: list[int], reverse: bool = False
) -> dict[int, tuple[int, bool]]:
    """What `sql/queries/translate_*.sql` says of many positions, all in one statement."""
    translated = translate_all(
        now_of(lake), FLOW, [(topic, partition, position) for position in positions], reverse
    )
    return {position: (item.offset, item.exact) for (_, _, position), item in translated.items()}


def expected_forward(pairs: list[tuple[int, int]], position: int) -> tuple[int, bool]:
    """The law in Python: the target offset of the first record at or behind the position, else
    behind the last one."""
    index = bisect_left([source for source, _ in pairs], position)
    if index < len(pairs):
        return pairs[index][1], True
    return pairs[-1][1] + 1, position <= pairs[-1][0] + 1


def expected_reverse(pairs: list[tuple[int, int]], position: int) -> tuple[int, bool]:
    return expected_forward([(target, source) for source, target in pairs], position)


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[list[int], int]]:
    """Batches of source offsets with gaps, each with its first target offset (gaps there too)."""
    source, target, batches = draw(st.integers(0, 3)), draw(st.integers(0, 3)), []
    for _ in range(draw(st.integers(1, 3))):
        offsets = []
        for step in draw(st.lists(st.integers(1, 3), min_size=1, max_size=5)):
            offsets.append(source)
            source += step
        batches.append((offsets, target))
        target += len(offsets) + draw(st.integers(0, 2))
    return batches


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return open_lake(spark, Location(path="lake"), tmp_path_factory.mktemp("translate"))


def fill(lake: Lake, topic: str, batches: list[tuple[list[int], int]]) -> list[tuple[int, int]]:
    """Put batches into the map; returns all (source, target) pairs."""
    fill_all(lake, {topic: batches})
    return [(offset, target + k) for offsets, target in batches for k, offset in enumerate(offsets)]


def fill_all(lake: Lake, topics: Mapping[str, list[tuple[list[int], int]]]) -> None:
    """Put batches of many topics into the map, in one commit."""
    rows = []
    for topic, number, (offsets, target) in [
        (topic, number, batch)
        for topic, batches in topics.items()
        for number, batch in enumerate(batches)
    ]:
        rows.extend(
            {
                "flow": FLOW,
                "topic": topic,
                "partition": 0,
                "target_topic": f"east.{topic}",
                "target_partition": 0,
                "batch_id": number,
                **{name: getattr(run, name) for name in _LONGS[:-1]},
                "segments": [vars(segment) for segment in run.segments],
            }
            for run in runs_of(segments_of(offsets, target))
        )
    lake.append("offset_map", pa.Table.from_pylist(rows, schema=_MAP))


def add_samples(lake: Lake, topics: Mapping[str, list[tuple[int, int, int | None]]]) -> None:
    """Samples (produced_end, mapped_end, target_passed_end) of many topics, in one commit."""
    rows = [
        {
            "flow": FLOW,
            "topic": topic,
            "partition": 0,
            "sampled_at": datetime.now(timezone.utc) - timedelta(seconds=100 - age),
            "source_end": produced,
            "produced_end": produced,
            "mapped_end": mapped,
            "target_end": passed,
            "target_passed_end": passed,
            "target_topic": f"east.{topic}",
        }
        for topic, samples in topics.items()
        for age, (produced, mapped, passed) in enumerate(samples)
    ]
    lake.append("positions", pa.Table.from_pylist(rows, schema=SCHEMAS["positions"]))


_examples = iter(range(1_000_000))


@pytest.mark.law("exact map")
@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(histories())
def test_law_over_generated_runs_and_gaps(lake: Lake, batches: list[tuple[list[int], int]]) -> None:
    topic = f"law{next(_examples)}"
    pairs = fill(lake, topic, batches)
    positions = list(range(pairs[-1][0] + 3))
    forward = all_positions(lake, topic, 0, positions)
    assert forward == {position: expected_forward(pairs, position) for position in positions}
    answers = [forward[position][0] for position in positions]
    assert answers == sorted(answers)
    back_positions = list(range(pairs[-1][1] + 3))
    back = all_positions(lake, f"east.{topic}", 0, back_positions, reverse=True)
    assert back == {position: expected_reverse(pairs, position) for position in back_positions}
    assert all(back[forward[source][0]] == (source, True) for source, _ in pairs)


def test_the_library_says_what_the_statement_says(lake: Lake) -> None:
    pairs = fill(lake, "library", [([0, 2, 4, 9], 5), ([10, 11], 20)])
    for position in (0, 1, 5, 9, 12, 40):
        offset, exact = expected_forward(pairs, position)
        translated = translate(now_of(lake), FLOW, "library", 0, position)
        assert (translated.topic, translated.offset, translated.exact) == (
            "east.library",
            offset,
            exact,
        )
    for position in (0, 8, 9, 22, 40):
        offset, exact = expected_reverse(pairs, position)
        translated = translate(now_of(lake), FLOW, "east.library", 0, position, reverse=True)
        assert (translated.topic, translated.offset, translated.exact) == ("library", offset, exact)


@pytest.mark.parametrize(
    ("flow", "topic", "partition"),
    [(FLOW, "never", 0), (FLOW, "known", 1), ("west->east", "known", 0)],
)
@pytest.mark.parametrize("reverse", [False, True])
def test_what_was_never_seen_is_an_error(
    lake: Lake, flow: str, topic: str, partition: int, reverse: bool
) -> None:
    if not now_of(lake).rows("SELECT 1 FROM offset_map WHERE topic = 'known'"):
        fill(lake, "known", [([0, 1], 0)])
    with pytest.raises(UnknownOffset, match="never seen"):
        translate(
            now_of(lake), flow, f"east.{topic}" if reverse else topic, partition, 0, reverse=reverse
        )


@pytest.mark.slow
def test_only_files_that_can_matter_are_read(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, topic_name: str
) -> None:
    """Turns of a running flow in a catalog, which Spark answers: Delta's statistics skip the rest
    of the map, and `records` is not read at all."""
    for start in range(0, 60, 10):
        fill(lake, topic_name, [(list(range(start, start + 10)), start)])  # a file each
    read: list[list[str]] = []
    sql = Lake.sql

    def watched(self: Lake, text: str, args: Args = NONE, frames: Frames = NONE) -> DataFrame:
        frame = sql(self, text, args, frames)
        if frames:
            read.append([Path(file).parent.name for file in frame.inputFiles()])
        return frame

    monkeypatch.setattr(Lake, "sql", watched)
    monkeypatch.setattr(PathLake, "reader", property(lambda self: self))
    translator = Translator(lake, FLOW)
    for position in (3, 55, 25, 60):
        assert (
            translator.translate([(topic_name, 0, position)], None)[topic_name, 0, position].offset
            == position
        )
    assert [files.count("offset_map") for files in read] == [6, 1, 4, 1], (
        "all, then what is behind the lowest position"
    )
    assert {name for files in read for name in files} == {"offset_map"}


@pytest.mark.law("kept by generation")
def test_offsets_of_a_target_topic_that_was_made_again_lead_nowhere(lake: Lake) -> None:
    """Through all that may happen to it: waiting, decided, begun, sampled, mapped anew."""
    topic, target = "again", "east.again"
    fill(lake, topic, [(list(range(10)), 100)])
    append(lake, "checkpoints", [_checkpoint(topic, 4, 104)])
    note_targets(lake, FLOW, {(topic, target): NotedTarget(0, "old", "stage", (100,))})
    append(
        lake, "positions", [sample(60, 10, 10, topic=topic, target_topic=target, target_end=110)]
    )

    def found(reverse: bool = False, *offsets: int) -> dict[int, tuple[int, bool]]:
        return all_positions(lake, target if reverse else topic, 0, list(offsets), reverse)

    def is_over() -> list[bool]:
        checkpoints = newest_checkpoints(now_of(lake), FLOW)
        return [item.is_over for item, _ in checkpoints.values() if item.topic == topic]

    assert found(False, 4, 10) == {4: (104, True), 10: (110, True)}
    assert is_over() == [False]
    incident = {
        "flow": FLOW,
        "kind": "target_recreated",
        "topic": topic,
        "target_generation": 0,
        "at": ago(30),
    }
    append(lake, "incidents", [incident])
    for _ in ("waiting", "decided"):
        assert found(False, 0, 4, 10) == dict.fromkeys((0, 4, 10), (0, False))
        assert found(True, 0, 104, 110) == dict.fromkeys((0, 104, 110), (0, False))
        assert map_rows(lake, topic) == 0
        assert is_over() == [True]
        Incidents(lake).settle_all([IncidentKey(FLOW, "target_recreated", topic)], "again")
    note_targets(lake, FLOW, {(topic, target): NotedTarget(1, "new", "stage", (0,))})
    assert found(False, 4, 10) == {4: (0, False), 10: (0, False)}, (
        "the sample is of the generation before"
    )
    assert found(True, 104) == {104: (0, False)}
    assert is_over() == [True]
    append(
        lake, "offset_map", [run_row(0, 5, topic=topic, target_topic=target, target_generation=1)]
    )
    assert found(False, 4, 10) == {4: (4, True), 10: (6, False)}
    assert found(True, 4, 104) == {4: (4, True), 104: (6, False)}


def _checkpoint(topic: str, source: int, target: int) -> dict[str, object]:
    places = {
        "flow": FLOW,
        "group_id": "app",
        "topic": topic,
        "partition": 0,
        "target_topic": f"east.{topic}",
    }
    positions = {"source_position": source, "target_position": target}
    return {**places, **positions, "synced": True, "checkpointed_at": ago(60)}


def map_rows(lake: Lake, topic: str) -> int:
    """How many ranges of a topic lead anywhere."""
    return len(
        now_of(lake).rows("SELECT 1 FROM offset_translation WHERE topic = :topic", {"topic": topic})
    )


@dataclass(frozen=True)
class Sampled:
    """A flow that produced batches with markers between them, of which the map has only the first
    ones, and samples.

    `pairs` are all (source, target) offsets, `mapped` how many batches the map has, `samples` rows
    of `positions`, each taken at another time, and `end` the highest position that any of them
    passed.
    """

    batches: list[tuple[list[int], int]]
    mapped: int
    samples: list[tuple[int, int, int | None]]

    @property
    def pairs(self) -> list[tuple[int, int]]:
        return [
            (offset, target + k)
            for offsets, target in self.batches
            for k, offset in enumerate(offsets)
        ]


@st.composite
def sampled_histories(draw: st.DrawFn) -> Sampled:
    batches = draw(histories())
    samples: list[tuple[int, int, int | None]] = []
    for done in draw(st.lists(st.integers(0, len(batches)), max_size=3)):
        floor = batches[done - 1][0][-1] + 1 if done else 0
        first_left = batches[done][0][0] if done < len(batches) else floor + 2
        there = batches[done - 1][1] + len(batches[done - 1][0]) if done else 0
        next_there = batches[done][1] if done < len(batches) else there + 2
        if draw(st.booleans()):  # it found nothing more: it passed markers on both sides
            samples.append(
                (draw(st.integers(floor, first_left)), floor, draw(st.integers(there, next_there)))
            )
        else:
            samples.append((floor, floor, None))
    return Sampled(batches, draw(st.integers(0, len(batches))), samples)


@pytest.mark.law("never more than was seen")
@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(st.lists(sampled_histories(), min_size=30, max_size=30))
def test_exact_is_said_only_of_what_is(lake: Lake, flows: list[Sampled]) -> None:
    """Rows of the map come later than what they tell of, and samples do not wait for them."""
    named = {f"sampled{next(_examples)}": flow for flow in flows}
    fill_all(lake, {topic: item.batches[: item.mapped] for topic, item in named.items()})
    add_samples(lake, {topic: item.samples for topic, item in named.items()})
    asked = [
        (topic, 0, position)
        for topic, item in named.items()
        for position in range(item.pairs[-1][0] + 4)
    ]
    for (topic, _, position), found in translate_all(now_of(lake), FLOW, asked).items():
        item = named[topic]
        truth, _ = expected_forward(item.pairs, position)
        at_target = [(target, source) for source, target in item.pairs]
        is_right = not _skips(at_target, found.offset, truth)  # markers may lie in between
        assert found.offset <= truth and (is_right or not found.exact), (item, position)
        known = [pair for batch in item.batches[: item.mapped] for pair in batch[0]]
        floor = known[-1] + 1 if known else 0
        passed = max(
            [floor, *(produced for produced, mapped, _ in item.samples if mapped <= floor)]
        )
        assert found.exact == (position <= passed), (item, position)
    asked = [
        (f"east.{topic}", 0, offset)
        for topic, item in named.items()
        for offset in range(item.pairs[-1][1] + 4)
    ]
    for (topic, _, position), found in translate_all(
        now_of(lake), FLOW, asked, reverse=True
    ).items():
        item = named[topic.removeprefix("east.")]
        truth, _ = expected_reverse(item.pairs, position)
        is_safe = found.offset <= truth or position > item.pairs[-1][1]
        assert is_safe and not (found.exact and _skips(item.pairs, found.offset, truth)), (
            item,
            position,
        )
        done = [
            (offsets[-1] + 1, target + len(offsets))
            for offsets, target in item.batches[: item.mapped]
        ]
        floor, end = done[-1] if done else (0, 0)
        passed = max([end, *(known or 0 for _, mapped, known in item.samples if mapped <= floor)])
        assert found.exact == (position <= passed), (item, position)


def _skips(pairs: list[tuple[int, int]], one: int, other: int) -> bool:
    """Whether a record lies between two positions, of the first offsets of pairs."""
    return any(min(one, other) <= offset < max(one, other) for offset, _ in pairs)


@pytest.mark.wide("test_exact_is_said_only_of_what_is")
def test_a_sample_does_not_stand_for_rows_that_are_on_their_way(
    spark: SparkSession,
    clusters: ClusterPair,
    tmp_path: Path,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Produced, sampled, and not in the map yet: what a process that dies just then leaves
    behind."""
    create_topic(clusters.east, topic_name)
    write(clusters.east, topic_name, numbered(100))
    sampled, asked = Event(), Event()
    append = Lake.append

    def later(self: Lake, table: str, rows: pa.Table, *args: Any, **named: Any) -> None:
        if table == "offset_map":
            assert asked.wait(120)
        append(self, table, rows, *args, **named)
        if table == "positions" and max(rows["produced_end"].to_pylist()) == 100:
            sampled.set()

    monkeypatch.setattr(Lake, "append", later)
    positions = [0, 50, 100, 101]
    settings = {"topics": [topic_name], "sample_positions_interval_seconds": 1}
    with replicating(
        spark, write_topology(tmp_path, clusters.east, clusters.west, settings)
    ) as run:
        try:
            assert sampled.wait(120)
            assert all_positions(run.lake, topic_name, 0, positions) == {
                0: (0, True),
                **dict.fromkeys(positions[1:], (0, False)),
            }
            back = all_positions(run.lake, f"east.{topic_name}", 0, positions, reverse=True)
            assert back == {0: (0, True), **dict.fromkeys(positions[1:], (0, False))}
        finally:
            asked.set()
    assert all_positions(run.lake, topic_name, 0, positions) == {
        0: (0, True),
        50: (50, True),
        100: (100, True),
        101: (100, False),
    }
    back = all_positions(run.lake, f"east.{topic_name}", 0, positions, reverse=True)
    assert back[101] == (100, True), "behind the marker of the transaction"


@dataclass(frozen=True)
class Replicated:
    """A topic with markers and aborted records, on both sides."""

    lake: Lake
    topic: str
    source: list[Record]
    target: list[Record]
    end: int


@pytest.fixture(scope="module")
def replicated(
    spark: SparkSession, clusters: ClusterPair, tmp_path_factory: pytest.TempPathFactory
) -> Replicated:
    directory = tmp_path_factory.mktemp("translate-real")
    topic = f"translate-{abs(hash(directory)):x}"
    create_topic(clusters.east, topic)
    topology = write_topology(directory, clusters.east, clusters.west, {"topics": [topic]})
    producer = transactional_producer(clusters.east)
    for half in range(2):
        for number in range(12):
            producer.begin_transaction()
            for index in range(number % 4 + 1):
                send(producer, topic, NewRecord(b"%d.%d.%d" % (half, number, index)))
            if number % 5 == 3:
                producer.flush(30)
                producer.abort_transaction(30)
            else:
                producer.commit_transaction(30)
        run = replicate_once(spark, topology)
    source, target = (
        read_topic(bootstrap, name)[0]
        for bootstrap, name in ((clusters.east, topic), (clusters.west, f"east.{topic}"))
    )
    return Replicated(run.lake, topic, source, target, source[-1].offset + 2)


@pytest.mark.wide("test_law_over_generated_runs_and_gaps")
def test_every_offset_of_a_topic_with_gaps_leads_to_the_same_record(replicated: Replicated) -> None:
    assert [record.value for record in replicated.source] == [
        record.value for record in replicated.target
    ]
    assert replicated.source[-1].offset > len(replicated.source) + 10
    found = all_positions(replicated.lake, replicated.topic, 0, list(range(replicated.end)))
    at_target = {record.offset: record.value for record in replicated.target}
    for position in range(replicated.source[-1].offset + 1):
        wanted = next(record.value for record in replicated.source if record.offset >= position)
        offset, exact = found[position]
        assert exact
        assert at_target[offset] == wanted, f"position {position} leads to another record"
    back = all_positions(
        replicated.lake,
        f"east.{replicated.topic}",
        0,
        [record.offset for record in replicated.target],
        reverse=True,
    )
    assert [back[record.offset] for record in replicated.target] == [
        (r.offset, True) for r in replicated.source
    ]


def test_the_end_leads_to_the_end_and_what_is_beyond_is_not_exact(replicated: Replicated) -> None:
    after = replicated.target[-1].offset + 1
    for position in (replicated.source[-1].offset + 1, replicated.end):
        translated = translate(now_of(replicated.lake), FLOW, replicated.topic, 0, position)
        assert (translated.offset, translated.exact) == (after, True), position
    beyond = translate(now_of(replicated.lake), FLOW, replicated.topic, 0, replicated.end + 1)
    assert (beyond.offset, beyond.exact) == (after, False)
