"""Translation, as a law over any map, and against what the clusters really hold."""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from mirrorlake.core.runs import runs_of, segments_of
from mirrorlake.core.topology import Lake as Location
from mirrorlake.errors import UnknownOffset
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.opening import open_lake
from mirrorlake.lake.translate import Translation, Translator, translate, translate_all
from tests.support.clusters import ClusterPair
from tests.support.kafka import NewRecord, Record, create_topic, read_topic, send, transactional_producer
from tests.support.replication import FLOW, replicate_once, write_topology

_SEGMENT = pa.struct([(name, pa.int64()) for name in ("source_first", "stride", "target_first", "record_count")])
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
    found = translate_all(lake, FLOW, [(topic, partition, position) for position in positions], reverse)
    return {position: (item.offset, item.exact) for (_, _, position), item in found.items()}


def expected_forward(pairs: list[tuple[int, int]], position: int) -> tuple[int, bool]:
    """The law in Python: the target offset of the first record at or behind the position, else behind the last one."""
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
    rows = []
    for number, (offsets, target) in enumerate(batches):
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
    return [(offset, target + k) for offsets, target in batches for k, offset in enumerate(offsets)]


_examples = iter(range(1_000_000))


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
        assert translate(lake, FLOW, "library", 0, position) == Translation("east.library", 0, offset, exact)
    for position in (0, 8, 9, 22, 40):
        offset, exact = expected_reverse(pairs, position)
        found = translate(lake, FLOW, "east.library", 0, position, reverse=True)
        assert found == Translation("library", 0, offset, exact)


@pytest.mark.parametrize(
    ("flow", "topic", "partition"), [(FLOW, "never", 0), (FLOW, "known", 1), ("west->east", "known", 0)]
)
@pytest.mark.parametrize("reverse", [False, True])
def test_what_was_never_seen_is_an_error(lake: Lake, flow: str, topic: str, partition: int, reverse: bool) -> None:
    if lake.table("offset_map").where("topic = 'known'").count() == 0:
        fill(lake, "known", [([0, 1], 0)])
    with pytest.raises(UnknownOffset, match="never seen"):
        translate(lake, flow, f"east.{topic}" if reverse else topic, partition, 0, reverse)


def test_only_files_that_can_matter_are_read(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds of a running flow: Delta's statistics skip the rest of the map, and `records` is not read at all."""
    for start in range(0, 60, 10):
        fill(lake, "skipped", [(list(range(start, start + 10)), start)])  # a file each
    read: list[list[str]] = []
    query_over = Lake.query_over

    def watched(self: Lake, name: str, frames: Mapping[str, DataFrame], **args: object) -> DataFrame:
        frame = query_over(self, name, frames, **args)
        read.append([Path(file).parent.name for file in frame.inputFiles()])
        return frame

    monkeypatch.setattr(Lake, "query_over", watched)
    translator = Translator(lake, FLOW)
    for position in (3, 55, 25, 60):
        assert translator.translate([("skipped", 0, position)], None)["skipped", 0, position].offset == position
    assert [files.count("offset_map") for files in read] == [6, 1, 4, 1], "all, then what is behind the lowest position"
    assert {name for files in read for name in files} == {"offset_map"}


@dataclass(frozen=True)
class Replicated:
    """A topic with markers and aborted records, on both sides."""

    lake: Lake
    topic: str
    source: list[Record]
    target: list[Record]
    end: int


@pytest.fixture(scope="module")
def replicated(spark: SparkSession, clusters: ClusterPair, tmp_path_factory: pytest.TempPathFactory) -> Replicated:
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
        read_topic(bootstrap, name)[0] for bootstrap, name in ((clusters.east, topic), (clusters.west, f"east.{topic}"))
    )
    return Replicated(run.lake, topic, source, target, source[-1].offset + 2)


def test_every_offset_of_a_topic_with_gaps_leads_to_the_same_record(replicated: Replicated) -> None:
    assert [record.value for record in replicated.source] == [record.value for record in replicated.target]
    assert replicated.source[-1].offset > len(replicated.source) + 10
    found = all_positions(replicated.lake, replicated.topic, 0, list(range(replicated.end)))
    at_target = {record.offset: record.value for record in replicated.target}
    for position in range(replicated.source[-1].offset + 1):
        wanted = next(record.value for record in replicated.source if record.offset >= position)
        offset, exact = found[position]
        assert exact
        assert at_target[offset] == wanted, f"position {position} leads to another record"
    back = all_positions(
        replicated.lake, f"east.{replicated.topic}", 0, [record.offset for record in replicated.target], reverse=True
    )
    assert [back[record.offset] for record in replicated.target] == [(r.offset, True) for r in replicated.source]


def test_the_end_leads_to_the_end_and_what_is_beyond_is_not_exact(replicated: Replicated) -> None:
    after = replicated.target[-1].offset + 1
    for position in (replicated.source[-1].offset + 1, replicated.end):
        found = translate(replicated.lake, FLOW, replicated.topic, 0, position)
        assert (found.offset, found.exact) == (after, True), position
    beyond = translate(replicated.lake, FLOW, replicated.topic, 0, replicated.end + 1)
    assert (beyond.offset, beyond.exact) == (after, False)
