"""The benchmark's arithmetic and what it reads from files: no clusters, no Spark."""

import json
import math
import os
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from mirrorlake.devtools.bench.contestants import Job, Running, TableRows, mirror_properties
from mirrorlake.devtools.bench.latency import latency_of, percentile
from mirrorlake.devtools.bench.measure import Race, Sample, finished
from mirrorlake.devtools.bench.payload import payload_lines
from mirrorlake.devtools.bench.report import (
    LANDING,
    MIRROR,
    MIRRORLAKE,
    Throughput,
    latency_document,
    ratio,
    throughput_document,
    throughput_of,
)
from mirrorlake.devtools.bench.scale import Size
from mirrorlake.devtools.bench.tables import SCALE_GOALS, scale_table, tables
from mirrorlake.errors import InputError


def sample(at: float, written: int, cpu: float = 0.0, brokers: float = 0.0) -> Sample:
    return Sample(at, written=written, committed=written, landed=0, cpu=cpu, brokers_cpu=brokers)


#: Reads from second 11 on, writes from second 20.5 on, done at second 31.
STAGED = (
    sample(10, 0, 5, 1),
    sample(11, 0, 6, 2),
    sample(20, 0, 15, 4),
    sample(21, 1000, 16, 5),
    sample(31, 100_000, 26, 12),
)


def test_a_race_is_timed_from_the_start_and_its_cpu_from_the_first_read() -> None:
    figures = throughput_of(Race("x", 100_000, STAGED, first_read=11.0))
    assert figures.seconds == 21.0
    assert figures.records_per_second == pytest.approx(100_000 / 21, abs=0.1)
    assert figures.records_per_second_from_first_record == pytest.approx(100_000 / 10.5, abs=0.1)
    assert figures.cpu_seconds_per_million == 200.0  # 6 to 26 for a tenth of a million
    assert figures.brokers_cpu_seconds_per_million == 100.0


def test_without_a_stage_cpu_counts_from_the_first_record() -> None:
    figures = throughput_of(Race("x", 100_000, STAGED, first_read=None))
    assert figures.seconds == 21.0
    assert figures.cpu_seconds_per_million == 110.0  # 15 to 26


def test_a_landing_that_reads_late_does_not_move_the_start() -> None:
    late = throughput_of(Race("x", 100_000, STAGED, first_read=25.0))
    assert late == throughput_of(Race("x", 100_000, STAGED, first_read=None))


def test_records_in_the_very_first_sample() -> None:
    figures = throughput_of(Race("x", 10, (sample(1, 5), sample(2, 10)), None))
    assert figures.seconds == 1.0


@pytest.mark.parametrize(
    ("change", "staged", "done"),
    [
        ({}, False, True),
        ({"landed": 9}, True, False),
        ({"landed": 10}, True, True),
        ({"committed": 9}, False, False),
        ({"written": 12, "committed": 11}, False, False),  # a transaction is open
        ({"written": 12, "committed": 12}, False, True),  # two markers
    ],
)
def test_finished(change: dict[str, int], staged: bool, done: bool) -> None:
    assert finished(replace(sample(1, 10), **change), 10, 1, staged) is done  # type: ignore[arg-type]


def test_percentiles_are_values_that_were_seen() -> None:
    values = [float(number) for number in range(100, 0, -1)]
    assert [percentile(values, share) for share in (0.5, 0.95, 0.99, 1.0)] == [50, 95, 99, 100]
    assert percentile([7.0], 0.5) == percentile([7.0], 0.99) == 7.0
    assert math.isnan(percentile([], 0.5))


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0.01, 1.0))
def test_a_percentile_covers_its_share(values: list[float], share: float) -> None:
    found = percentile(values, share)
    assert found in values
    assert sum(value <= found for value in values) >= share * len(values) - 1e-6


def test_latency_counts_what_did_not_arrive() -> None:
    figures = latency_of(4, (3.0, 1.0, 2.0))
    assert (figures.p50_ms, figures.p99_ms, figures.records, figures.lost) == (2.0, 3.0, 3, 1)


def test_ratio_is_none_where_it_is_no_number() -> None:
    assert ratio(1.0, 4.0) == 0.25
    assert ratio(1.0, 0.0) is None
    assert ratio(math.nan, 2.0) is None
    assert ratio(2.0, math.nan) is None


def document() -> dict[str, object]:
    run = Throughput(10, 1000, 2000, 3, 4, 20)
    runs = {
        MIRRORLAKE: run,
        MIRROR: replace(run, records_per_second=4000.0),
        LANDING: replace(run, seconds=1),
    }
    paced = latency_of(2, (10.0, 20.0))
    slow = latency_of(2, (100.0, 200.0))
    return {
        "throughput": {
            "1024": {
                "records": 5_000_000,
                "targets": 1,
                **throughput_document({name: [run] for name, run in runs.items()}),
            }
        },
        "latency": {
            "pace": {"records_per_second": 1000, "record_bytes": 200},
            **latency_document({MIRRORLAKE: paced, MIRROR: slow}),
        },
    }


def test_ratios_are_ours_to_theirs() -> None:
    made = json.loads(json.dumps(document()))
    ratios = made["throughput"]["1024"]["ratios"]
    assert ratios["mirrorlake/mirrormaker2"]["records_per_second"] == 0.25
    assert ratios["mirrorlake/mirrormaker2"]["records_per_second_from_first_record"] == 1.0
    assert set(ratios) == {"mirrorlake/mirrormaker2", "mirrorlake/mirrormaker2_and_landing"}
    assert made["latency"]["ratios"] == {
        "mirrorlake/mirrormaker2": {"p50": 0.1, "p95": 0.1, "p99": 0.1}
    }


@pytest.mark.parametrize(
    ("laps", "counts"), [((5.0,), 5.0), ((9.0, 1.0), 1.0), ((9.0, 2.0, 4.0), 4.0)]
)
def test_the_median_lap_counts(laps: tuple[float, ...], counts: float) -> None:
    run = Throughput(10, 1000, 2000, 3, 4, 20)
    made = throughput_document(
        {MIRRORLAKE: [replace(run, records_per_second=lap) for lap in laps], MIRROR: [run]}
    )
    assert made["contestants"][MIRRORLAKE]["records_per_second"] == counts
    assert made["ratios"]["mirrorlake/mirrormaker2"]["records_per_second"] == counts / 1000
    assert made["laps"] == {MIRRORLAKE: list(laps), MIRROR: [1000]}


def test_tables_show_every_contestant_and_the_ratio() -> None:
    out = Console(file=StringIO(), width=200)
    for table in tables(document()):
        out.print(table)
    text = out.file.getvalue()  # type: ignore[attr-defined]
    for shown in ("5,000,000 records of 1024 B", "MM2 + Spark landing", "0.25x", "0.10x / 0.10x"):
        assert shown in text


@pytest.mark.parametrize("size", [80, 120, 200, 399, 400, 1024, 5000])
def test_payload_lines_are_json_of_the_size_asked_for(size: int) -> None:
    lines = payload_lines(size, 50)
    assert {len(line.encode()) for line in lines} == {size}
    assert all(json.loads(line)["id"] for line in lines)
    assert lines == payload_lines(size, 50)


def test_payload_lines_refuse_what_is_too_small() -> None:
    with pytest.raises(InputError, match="79 bytes"):
        payload_lines(79, 1)


def job(directory: Path, tuned: bool = True) -> Job:
    return Job(
        "localhost:1",
        "localhost:2",
        "bench-1024",
        alias="mm2-1024",
        directory=directory,
        tuned=tuned,
    )


def test_mirror_properties(tmp_path: Path) -> None:
    lines = mirror_properties(job(tmp_path)).splitlines()
    assert "mm2-1024->west.topics=bench-1024" in lines
    assert "tasks.max=2" in lines
    assert "mm2-1024->west.source.consumer.max.poll.records=5000" in lines
    assert "west.producer.batch.size=262144" in lines
    plain = mirror_properties(job(tmp_path, tuned=False))
    assert "linger" not in plain
    assert job(tmp_path).target_topic == "mm2-1024.bench-1024"


def test_table_rows_reads_each_commit_once(tmp_path: Path) -> None:
    rows = TableRows(tmp_path)
    assert rows.refresh() == 0
    log = tmp_path / "_delta_log"
    log.mkdir()
    added = [json.dumps({"add": {"stats": json.dumps({"numRecords": count})}}) for count in (3, 4)]
    (log / f"{0:020d}.json").write_text('{"metaData": {}}\n' + "\n".join(added) + "\n")
    assert rows.refresh() == rows.refresh() == 7
    (log / f"{1:020d}.json").write_text(added[0])
    assert rows.refresh() == 10


def test_reading_since_is_the_oldest_first_batch(tmp_path: Path) -> None:
    running = Running("x", tmp_path, checkpoints=tmp_path)
    assert running.reading_since() is None
    for name, at in (("a", 200), ("b", 100)):
        first = tmp_path / name / "offsets" / "0"
        first.parent.mkdir(parents=True)
        first.touch()
        os.utime(first, (at, at))
    assert running.reading_since() == 100.0
    assert Running("x", tmp_path).reading_since() is None


def test_a_figure_of_many_partitions_stands_beside_what_it_may_be() -> None:
    ours = {name: 1.0 for name in SCALE_GOALS if name.endswith(("seconds", "cores", "ms", "mib"))}
    commands = dict.fromkeys(SCALE_GOALS.keys() - ours.keys(), 2.0)
    part = {"topics": 100, "partitions": 20, "pace": {"records_per_second": 1_000}}
    contestants = {MIRRORLAKE: {**ours, "commands": commands}, MIRROR: {**ours, "commands": {}}}
    table = scale_table({**part, "contestants": contestants})
    assert table.row_count == len(SCALE_GOALS) and "2,000 partitions" in str(table.title)
    columns = [list(column.cells) for column in table.columns]
    rows = dict(zip(columns[0], zip(*columns[1:], strict=True), strict=True))
    assert rows["idle cores"] == ("1.00", "1.00", "0.06") and rows["plan"] == ("2.00", "", "4.00")
    more = scale_table({**part, "topics": 600, "contestants": contestants})
    assert [list(column.cells) for column in more.columns][-1][0] == "12.00"


def test_groups_grow_with_partitions() -> None:
    assert Size.of(2_000) == Size()
    assert (Size.of(12_000).topics, Size.of(12_000).groups) == (600, 500)
